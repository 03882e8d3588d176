"""What is refused, with its kind and its code: ``tests/data/refusals.txt``.

A line is Python, or a command after ``$``; a line ``  Kind [code]`` below it is the error that it must end
with, and what has none must not fail. An error without a code of ours has the first words of its message. A
title ``# …`` begins a section. ``REWRITE=1 pytest tests/unit/test_refusals.py`` writes what is refused now.
"""

import os
import re
import shlex
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from adaptive_eval.cli.main import main
from adaptive_eval.errors import ConfigError, Problem

FILE = Path(__file__).parents[1] / "data" / "refusals.txt"
QUICKSTART = FILE.parents[2] / "configs" / "quickstart.yaml"
SECTIONS = re.split(r"^(?=# )", FILE.read_text("utf-8"), flags=re.MULTILINE)[1:]
ERROR = re.compile(r"  (exit \d|[A-Z]\w+( \[.+\]|:|$))")
CODE = re.compile(r"\[[a-z]+/[a-z-]+\]")
WORDS = 4
"""Words that are compared of a message without a code."""


def run(source: str, names: dict[str, Any]) -> str | None:
    """Run Python or a command, and return what it was refused with."""
    if source.startswith("$ "):
        err = StringIO()
        with redirect_stderr(err), redirect_stdout(StringIO()), pytest.raises(SystemExit) as end:
            main([str(names.get(word, word)) for word in shlex.split(source[2:])])
        return " ".join([f"  exit {end.value.code}", *CODE.findall(err.getvalue())])
    try:
        exec(source, names)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is compared
        kind, code = type(error).__name__, getattr(error, "code", None)
        if isinstance(error, ConfigError):
            code = ", ".join(problem_shown(problem) for problem in error.problems)
        if isinstance(code, str):
            return f"  {kind} [{code}]"
        return f"  {kind}: {' '.join(str(error).split()[:WORDS])}"
    return None


def problem_shown(problem: Problem) -> str:
    """Return a problem's place and code; the first words as well if the file cannot be read at all."""
    words = problem.message.split()[:WORDS] if problem.code == Problem("", "").code else []
    return " ".join([problem.path, problem.code, *words]).strip()


def rewritten(section: str, here: Path) -> str:
    """Return the section with what is refused now."""
    names: dict[str, Any] = {"HERE": here, "FOLDER": FILE.parent, "QUICKSTART": QUICKSTART}
    lines, source = [], ""
    for line in [*section.splitlines(), "# end"]:
        if ERROR.match(line):
            continue
        if line[:1] not in (" ", "", ")", "]", "}") and source:
            said = run(source, names)
            lines += [source.rstrip("\n"), *([said.replace(str(here), "HERE")] if said else [])]
            source = ""
        source += line + "\n"
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.splitlines()[0][2:])
def test_it_is_refused_with_its_kind_and_code(section, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    now = rewritten(section, tmp_path)
    if "REWRITE" in os.environ:
        FILE.write_text(FILE.read_text("utf-8").replace(section, now), "utf-8")
    else:
        assert now == section
