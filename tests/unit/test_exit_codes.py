"""The exit code of every error and of every end of a run."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import click
import pytest

import adaptive_eval.cli.main  # noqa: F401 - for its module: the package's own `main` is a function
from adaptive_eval import errors
from adaptive_eval.stops import STOPS, StopReason

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
    assert {name for name in known if issubclass(getattr(errors, name), Exception)} == set(OF_ERROR)
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


@pytest.mark.parametrize(("reason", "code"), OF_STOP.items())
def test_a_run_ends_with_the_code_of_its_reason(reason, code):
    assert STOPS[reason].exit_code == code
