"""What is refused, with its kind and its code: ``tests/data/refusals.txt``; and exit codes.

A line is Python, or a command after ``$``; a line ``  Kind [code]`` below it is the error that it must end
with, and what has none must not fail. An error without a code of ours has the first words of its message. A
title ``# …`` begins a section. ``REWRITE=1 pytest tests/unit/test_refusals.py`` writes what is refused now.
"""

import json
import os
import re
import shlex
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import click
import pytest

import adaptive_eval.cli.main  # noqa: F401 - for its module: the package's own `main` is a function
from adaptive_eval import errors
from adaptive_eval.cli.main import main
from adaptive_eval.errors import ConfigError, Problem
from adaptive_eval.stops import STOPS, StopReason

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


MAIN = sys.modules["adaptive_eval.cli.main"]
CODES = json.loads((Path(__file__).parents[1] / "data" / "exit_codes.json").read_text("utf-8"))
OF_ERROR, OF_STOP = CODES["errors"], CODES["stops"]


def made(name):
    kind = getattr(errors, name)
    if name == "ConfigError":
        return kind([errors.Problem("models", "there is none")])
    return kind("why", kind="server") if issubclass(kind, errors.EndpointError) else kind("why")


def test_every_error_and_stop_reason_is_in_the_table():
    known = {
        name for name, kind in vars(errors).items() if isinstance(kind, type) and kind is not errors.Problem
    }
    assert {one for one in known if issubclass(getattr(errors, one), errors.AdaptiveEvalError)} == set(
        OF_ERROR
    )
    assert set(get_args(StopReason)) == set(OF_STOP)


@pytest.mark.parametrize(("name", "code"), OF_ERROR.items())
def test_an_error_ends_the_program_with_its_code_and_its_words(name, code, monkeypatch, capsys):
    def fails(**options):
        raise made(name)

    monkeypatch.setattr(MAIN, "cli", SimpleNamespace(main=fails))
    assert MAIN._exit_code([]) == code == made(name).exit_code
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert name == "ConfigError" or f"[{getattr(errors, name).code}]\n" in said
    assert "Traceback" not in said
    assert MAIN._exit_code(["monitor", "--json"]) == code
    shown = json.loads(capsys.readouterr().out)["error"]
    assert (shown["code"], shown["message"]) == (made(name).code, str(made(name)))
    problems = [{"path": "models", "message": "there is none", "line": None, "code": "config/unreadable"}]
    assert shown.get("problems") == (problems if name == "ConfigError" else None)


@pytest.mark.parametrize(
    ("error", "code"),
    [(click.UsageError("no such option"), 2), (click.Abort(), 130), (BrokenPipeError(), 1)],
    ids=["usage", "abort", "pipe"],
)
def test_so_does_what_the_command_line_itself_raises(error, code, monkeypatch, capsys):
    def fails(**options):
        raise error

    monkeypatch.setattr(MAIN, "cli", SimpleNamespace(main=fails))
    monkeypatch.setattr(sys.stderr, "close", lambda: None)
    assert MAIN._exit_code(["--json"]) == code
    usage = {"error": {"code": "usage/argument", "message": "no such option"}}
    assert capsys.readouterr().out == (json.dumps(usage) + "\n" if code == 2 else "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("run my.yaml --trials 100", "-o budget.trials="),
        ("run my.yaml --max-passes 4", "-o stopping.max_passes="),
        ("validate my.yaml --seed 4", "-o seed="),
        ("run my.yaml --modle a", "Did you mean '--model'?"),
        ("report my --trials 4", "No such option"),
    ],
)
def test_a_setting_that_is_given_as_an_option_is_named_as_the_option_for_settings(arguments, words, capsys):
    with pytest.raises(SystemExit):
        main(arguments.split())
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(("reason", "code"), OF_STOP.items())
def test_a_run_ends_with_the_code_of_its_reason(reason, code):
    assert STOPS[reason].exit_code == code


def test_a_folder_that_is_gone_is_one_message(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(errors.UsageError, match="current folder"):
        MAIN._require_folder()
    assert MAIN._exit_code(["init", "my.yaml"]) == errors.UsageError.exit_code
