"""The column of ranks: rank intervals, or verdicts where the goal does not rank."""

from dataclasses import replace

import pytest
from session_scripts import coin, drive, make_spec
from standings_examples import QUICKSTART, example

from adaptive_eval.core.session import Session
from adaptive_eval.views.sentences import promises
from adaptive_eval.views.verdicts import rank_column

MEANS = (0.95, 0.5, 0.5, 0.05)


def results(**parts):
    spec = make_spec(4, 30, equivalence=0.2, max_passes=40, **parts)
    return drive(Session(spec), coin(MEANS)).results()


@pytest.mark.parametrize(
    ("parts", "verdicts"),
    [
        ({"goal": "baseline", "model": "m1"}, ["better", "baseline", "tied", "worse"]),
        ({"goal": "baseline", "model": "m3"}, ["better", "better", "better", "baseline"]),
        ({"goal": "threshold", "value": 0.7}, ["above", "below", "below", "below"]),
        ({"goal": "width", "width": 0.3}, ["measured"] * 4),
    ],
    ids=str,
)
def test_a_goal_that_does_not_rank_shows_its_verdicts(parts, verdicts):
    run = results(**parts)
    found = rank_column(run)
    assert [found.of[f"m{number}"] for number in range(4)] == verdicts
    assert (found.head, found.ranked) == ("verdict", False)
    assert str(run.pairs[0].second if parts["goal"] != "baseline" else parts["model"]) in found.note
    assert not any("rank intervals" in words for words in promises(run).holds)


def test_what_is_not_decided_is_open():
    run = results(goal="baseline", model="m1")
    first, *rest = run.pairs
    open_one = replace(run, pairs=(replace(first, verdict="open"), *rest))
    assert "open" in rank_column(open_one).of.values()


@pytest.mark.parametrize(
    "run", [example(QUICKSTART, 900), example({"a": 0.9, "b": 0.1}, 900)], ids=("5", "2")
)
def test_models_that_are_compared_have_ranks(run):
    found = rank_column(run)
    assert (found.head, found.ranked) == ("rank", True)
    assert [*found.of] == [line.model for line in run.models]
