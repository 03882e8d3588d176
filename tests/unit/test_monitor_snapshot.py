"""From a stored snapshot to the view of a run."""

from __future__ import annotations

import json

import pytest
import standings_examples as examples
from standings_examples import HEADER, view_of

from adaptive_eval.core.results import BudgetLine, to_json
from adaptive_eval.store.records import SnapshotRecord
from adaptive_eval.views.summary import (
    budget_use,
    evidence_progress,
    summary_at,
    waiting_summary,
)


@pytest.mark.parametrize("moment", examples.MOMENTS)
def test_every_moment_has_a_view_after_a_trip_through_json(moment):
    results = examples.MOMENTS[moment]()
    stored = json.loads(json.dumps(to_json(results)))
    view = summary_at(
        HEADER, SnapshotRecord(1.0, 2.0, results.trials, stored), examples.decisions_of(results)
    )
    assert sorted(view.results.models, key=repr) == sorted(results.models, key=repr)
    assert len(view.results.pairs) == len(results.pairs)
    assert len(view.open_pairs) + len(view.decided_pairs) == len(results.pairs)


def test_open_pairs_come_nearest_to_a_verdict_first():
    view = view_of(examples.midrun())
    assert [(row.pair.first, row.pair.second) for row in view.open_pairs] == [
        ("oak", "ash"),
        ("oak", "elm"),
        ("elm", "ash"),
    ]
    nearness = [row.nearness for row in view.open_pairs]
    assert nearness == sorted(nearness, reverse=True)


@pytest.mark.parametrize(
    ("evidence", "threshold", "progress"),
    [
        (0.0, 5.0, 0.0), (-3.0, 5.0, 0.0), (2.5, 5.0, 0.5), (5.0, 5.0, 1.0), (1.0, float("inf"), 0.0),
        (0.5, 0.0, 1.0), (float("nan"), 5.0, 0.0),
    ],
)  # fmt: skip
def test_progress_of_the_evidence_is_clipped(evidence, threshold, progress):
    assert evidence_progress(evidence, threshold) == progress


def test_rates_are_taken_between_two_snapshots():
    then, now = examples.example(examples.QUICKSTART, 10), examples.example(examples.QUICKSTART, 40)
    earlier = examples.snapshot_of(then, 100.0)
    view = view_of(now, 130.0, previous=earlier)
    assert view.rates.trials == pytest.approx((200 - 50) / 30)
    assert view.rates.tokens == pytest.approx(470 * 150 / 30)
    trials = view.rates.budgets[0]
    assert trials.rate == pytest.approx(5.0)
    assert trials.seconds_left == pytest.approx((20_000 - 200) / 5.0)


def test_a_budget_without_a_limit_or_a_rate_has_no_end():
    assert budget_use(BudgetLine("trials", 10, 0, None), 0.0, 5.0).seconds_left is None
    assert budget_use(BudgetLine("trials", 0, 0, 100), 0.0, 5.0).seconds_left is None
    assert budget_use(BudgetLine("usd", 3.0, 0, 2.0), 0.0, 6.0).seconds_left == 0.0


def test_states():
    assert view_of(examples.midrun()).state == "running"
    assert view_of(examples.midrun(), alive=False).state == "interrupted"
    assert view_of(examples.finished()).state == "stopped"
    assert view_of(examples.finished(), alive=False).state == "stopped"
    assert view_of(examples.hostile()).state == "interrupted"
    assert waiting_summary(HEADER).state == "waiting"
