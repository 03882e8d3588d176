"""References in the views: on the board, in no account of what was asked, and no cause for a warning."""

from __future__ import annotations

from dataclasses import replace

import pytest
import standings_examples as examples
from standings_examples import view_of

from adaptive_eval.core.results import StopVerdict
from adaptive_eval.views.sentences import say
from adaptive_eval.views.verdicts import saving

STOPPED = StopVerdict("resolved", "goal reached")


def with_reference(results, name):
    """Turn one model of the results into a reference."""
    lines = [
        replace(line, state="reference", issued=0, trials=9_000, note="from runs/previous")
        if line.model == name
        else line
        for line in results.models
    ]
    return replace(results, models=tuple(lines))


@pytest.mark.parametrize("stop", [None, STOPPED])
def test_the_leaderboard_calls_them_references(stop):
    results = with_reference(replace(examples.midrun(), stop=stop), "oak")
    rows = examples.board_lines(view_of(results), 100, 20)
    assert [row.split()[-1] == "reference" for row in rows if "oak" in row] == [True]


def test_they_are_left_out_of_what_was_saved():
    plain = examples.finished()
    asked = [line for line in plain.models if line.model != "oak"]
    longest = max(line.trials + line.missing for line in asked)
    results = with_reference(plain, "oak")
    assert saving(results) == (sum(line.issued for line in asked), len(asked) * longest)
    assert f"({longest:,} per model)" in say("run.saved", results)
