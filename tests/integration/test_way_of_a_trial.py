"""The way of a trial in docs/architecture.md, against the calls of a real run."""

import re
import sys
from pathlib import Path

from command_line import finished, mimic_config

import adaptive_eval
from adaptive_eval.core.session import Session
from adaptive_eval.endpoints.exchange import Exchange
from adaptive_eval.engine.in_flight import InFlightTrials

PACKAGE = Path(adaptive_eval.__file__).parent
PAGE = PACKAGE.parent / "docs" / "architecture.md"


def documented() -> list[str]:
    """Return ``file.py: function`` of every numbered line up to the wire, in order."""
    way = PAGE.read_text(encoding="utf-8").split("## The way of one trial")[1].split("And back")[0]
    return re.findall(r"^\d+\. `([\w/]+\.py: [\w.]+)`", way, re.MULTILINE)


def callers() -> list[str]:
    """Return the project's functions on the stack below the caller's, the outermost first."""
    frame, found = sys._getframe(2), []
    while frame is not None:
        code = frame.f_code
        if Path(code.co_filename).is_relative_to(PACKAGE):
            found.append(f"{Path(code.co_filename).relative_to(PACKAGE).as_posix()}: {code.co_qualname}")
        frame = frame.f_back
    return found[::-1]


def test_the_documented_way_is_the_one_that_a_trial_takes(tmp_path, monkeypatch):
    stacks = {}

    def noted(owner, name):
        inner = getattr(owner, name)

        def called(*arguments, **options):
            stacks[name] = callers()
            return inner(*arguments, **options)

        monkeypatch.setattr(owner, name, called)

    for owner, name in ((Session, "ask"), (InFlightTrials, "start"), (Exchange, "post")):
        noted(owner, name)
    finished(tmp_path, mimic_config(budget={"trials": 20}))
    way = documented()
    ask, launch, start, *in_task, wire = way
    assert len(way) <= 10
    assert (ask, wire) == ("core/session.py: Session.ask", "endpoints/exchange.py: Exchange.post")
    assert stacks["ask"][-1] == stacks["start"][-1] == launch
    assert start == "engine/in_flight.py: InFlightTrials.start"
    assert stacks["post"][-len(in_task) :] == in_task
