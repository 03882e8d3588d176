"""Tasks of Inspect: found by ``FILE.py@NAME``, and their samples as rows."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from adaptive_eval.errors import DatasetError
from adaptive_eval.library import library
from adaptive_eval.tasks.user_code import modules_of
from adaptive_eval.trial import Message


@dataclass(frozen=True, slots=True)
class SampleMessage(Message):
    """A question that is a sample of Inspect; `content` is its text, for people."""

    task: str = ""
    sample: str = ""
    epoch: int = 1


def load_inspect_task(name: str, base: Path) -> Any:
    """Return a fresh task of Inspect."""
    inspect = library("inspect_ai", f"inspect:{name}", "inspect-ai", DatasetError)
    place, at, function = name.rpartition("@")
    if not (at and place and function):
        raise DatasetError(f"inspect:{name}: write inspect:FILE.py@TASK")
    with ExitStack() as stack:
        found = getattr(_module(place, base, name, stack), function, None)
        task = found() if callable(found) else None
    if not isinstance(task, inspect.Task):
        raise DatasetError(f"inspect:{name}: {place} has no task {function!r}")
    return task


def _module(place: str, base: Path, name: str, stack: ExitStack) -> Any:
    if not place.endswith(".py"):
        try:
            return import_module(place)
        except ImportError as error:
            raise DatasetError(f"inspect:{name}: the module cannot be imported: {error}") from None
    path = (base / Path(place).expanduser()).resolve()
    if not path.is_file():
        raise DatasetError(f"inspect:{name}: there is no such file ({path})", code="dataset/not-found")
    folder = str(path.parent)
    sys.path[:] = [folder, *(other for other in sys.path if other != folder)]  # for what it imports later
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    stack.enter_context(modules_of(path.parent, path.stem))
    sys.modules.setdefault(path.stem, module)
    try:
        spec.loader.exec_module(module)
    except ImportError as error:
        raise DatasetError(f"inspect:{name}: {path.name} cannot be imported: {error}") from None
    return module


def inspect_rows(name: str, base: Path) -> Iterator[dict[str, str]]:
    """Yield the samples of a task as rows with ``id``, ``input`` and ``target``; only texts of them."""
    task = load_inspect_task(name, base)
    for number, sample in enumerate(task.dataset):
        target = sample.target if isinstance(sample.target, str) else ", ".join(sample.target)
        # a scorer of Inspect need not look at a target; a row of ours has one
        yield {"id": sample_id(sample, number), "input": sample_text(sample) or "-", "target": target or "-"}


def sample_id(sample: Any, number: int) -> str:
    """Return a sample's id, as Inspect gives it to one that has none."""
    return str(number + 1 if sample.id is None else sample.id)


def sample_text(sample: Any) -> str:
    """Return the prompt of a sample as text; of a conversation its last message."""
    if isinstance(sample.input, str):
        return sample.input
    return str(sample.input[-1].text) if sample.input else ""
