"""Names that are imported when they are asked for, from the modules that a stub beside the file names."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from scorio._published import missing_name


def lazy(module: str, file: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__all__``, ``__getattr__`` and ``__dir__`` of a module, for the names in its stub."""
    stub = Path(file).with_suffix(".pyi").read_text(encoding="utf-8")
    homes = {name: home for home, name in re.findall(r"^from ([\w.]+) import (\w+) as", stub, re.MULTILINE)}

    def load(name: str) -> Any:
        if name not in homes:
            raise missing_name(module, name)
        home = import_module(homes[name])
        value = import_module(f"{module}.{name}") if home.__name__ == module else getattr(home, name)
        setattr(sys.modules[module], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[module]), *homes})

    return sorted(homes), load, names
