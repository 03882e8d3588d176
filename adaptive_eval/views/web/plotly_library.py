"""The libraries that the web page needs beyond the package's own, and the path of the plotting script."""

from __future__ import annotations

import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from adaptive_eval.errors import UsageError

_NEEDED = ("jinja2", "plotly")


def require_libraries() -> None:
    """Raise UsageError with the command that installs missing libraries."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        words = f"the web page needs libraries that are not installed: pip install {' '.join(missing)}"
        raise UsageError(words, code="library/missing")


def plotly_script() -> Path:
    """Return the path of the plotting library's script in its package."""
    require_libraries()
    spec = find_spec("plotly")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        script = Path(folder, "package_data", "plotly.min.js")
        if script.is_file():
            return script
    words = "the installed plotly has no plotly.min.js: install it again with pip install plotly"
    raise UsageError(words, code="library/missing")


@cache
def plotly_styles() -> tuple[bytes, ...]:
    """Return the style sheets that the plotting library's script writes into a page."""
    text = plotly_script().read_text(encoding="utf-8")
    return tuple(
        re.sub(r"\\(.)", r"\1", sheet).encode()
        for sheet in re.findall(r"\.textContent='((?:[^'\\]|\\.)*)'", text)
    )
