"""The files that a Python interpreter needs, as it names them itself: all of it that a sandbox shows.

The text of this module is given to the interpreter with ``-c``; :func:`ask` runs it, outside the sandbox.
"""

import json
import os
import subprocess
import sys
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

_PATIENCE = 60.0
"""Seconds that an interpreter may take to name its files."""


class InterpreterFiles(NamedTuple):
    """The files of an interpreter, with absolute paths."""

    program: str  # behind any virtual environment
    library: str  # the folder of the modules of the standard library
    modules: list[str]  # further places of the standard library: the folder of C modules, a zip
    shared_objects: list[str]  # what the program and the C modules load, at each path that leads to it


class NotAnInterpreter(Exception):
    """A program did not name the files of a Python interpreter."""


@lru_cache
def ask(python: str) -> InterpreterFiles:
    """Return the files of an interpreter, which is run for it; a failure is not remembered.

    Raises
    ------
    NotAnInterpreter
        If it cannot be run, or is not Python.

    Examples
    --------
    >>> ask(sys.executable).library == str(Path(os.__file__).parent)
    True
    """
    command = [python, "-I", "-S", "-B", "-c", Path(__file__).read_text(encoding="utf-8")]
    try:
        done = subprocess.run(  # noqa: S603 - the user's own interpreter
            command, stdin=subprocess.DEVNULL, capture_output=True, env={}, timeout=_PATIENCE, check=False
        )
        return InterpreterFiles(**json.loads(done.stdout))
    except OSError as error:
        raise NotAnInterpreter(f"{python} cannot be run: {error.strerror}") from None
    except (subprocess.TimeoutExpired, TypeError, ValueError):
        raise NotAnInterpreter(f"{python} is no Python that names its files") from None


def _files() -> InterpreterFiles:
    known = list(map(Path, sys.path))
    folders = [place for place in known if place.name == "lib-dynload" and place.is_dir()]
    zips = [place for place in known if place.is_file()]
    for folder in folders:
        _load_all(folder)
    program = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    return InterpreterFiles(
        program=str(program),
        library=str(Path(os.__file__).parent),
        modules=list(map(str, folders + zips)),
        shared_objects=list(map(str, _loaded())),
    )


def _load_all(folder: Path) -> None:
    """Import all C modules, so that the shared objects they need are loaded."""
    for file in sorted(folder.iterdir()):
        name = file.name.partition(".")[0]
        if "test" not in name:
            try:
                import_module(name)
            except Exception:  # noqa: BLE001, S112 - one that lacks what it needs would lack it in the sandbox
                continue


def _loaded() -> list[Path]:
    """Return the loaded shared objects, and the links to them in their folders: they are found by these."""
    lines = Path("/proc/self/maps").read_text("utf-8", "surrogateescape").splitlines()
    mapped = [line.split(maxsplit=5) for line in lines]
    paths = {Path(fields[-1]) for fields in mapped if len(fields) == 6}
    loaded = {path for path in paths if ".so" in path.name and path.is_file()}
    links = set()
    for folder in {path.parent for path in loaded}:
        for entry in folder.iterdir():
            if entry.is_symlink() and entry.resolve() in loaded:
                links.add(entry)
    return sorted(loaded | links)


if __name__ == "__main__":
    json.dump(_files()._asdict(), sys.stdout)
