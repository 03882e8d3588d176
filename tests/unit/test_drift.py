"""The evidence that a model changes: false alarms as promised, changes found, and per server."""

import random

import pytest

from adaptive_eval.engine import drift
from adaptive_eval.engine.drift import DriftWatch
from adaptive_eval.trial import TrialKey
from scorio.sequential.drift import DriftEvidence, rank_among


def found_at(rng, questions, passes, mean, later=None, change=None, limit=20.0):
    """Return after how many outcomes the evidence reaches `limit`; None where it does not."""
    evidence, seen, n = DriftEvidence(), [{} for _ in range(questions)], 0
    shares = [min(1.0, max(0.0, rng.gauss(mean, 0.2))) for _ in range(questions)]
    for _ in range(passes):
        for question in range(questions):
            share = shares[question] if change is None or n < change else shares[question] + later
            value = float(rng.random() < share)
            evidence.add(rank_among(value, seen[question], rng.random()), value=value)
            seen[question][value] = seen[question].get(value, 0) + 1
            n += 1
            if evidence.peak >= limit:
                return n
    return None


@pytest.mark.slow
@pytest.mark.parametrize(("questions", "passes", "mean"), [(40, 10, 0.5), (10, 40, 0.9), (200, 2, 0.3)])
def test_false_alarms_are_as_rare_as_promised(questions, passes, mean):
    """At the limit 20: 5 % at most. 400 runs, seed 11; 33 alarms or more would have a chance of 0.3 %."""
    rng = random.Random(11)
    alarms = sum(found_at(rng, questions, passes, mean) is not None for _ in range(400))
    assert alarms < 33


def test_ranks_in_the_middle_win_nothing_and_lose_nothing():
    evidence = DriftEvidence()
    for _ in range(60):
        evidence.add(0.5, value=1.0)
    assert evidence.peak == pytest.approx(1.0)


def test_a_fall_is_found_soon():
    rng = random.Random(12)
    delays = [found_at(rng, 50, 40, 0.8, -0.4, 500, limit=2000.0) for _ in range(50)]
    assert all(delay is not None and delay > 500 for delay in delays)
    assert sorted(delays)[25] < 800


def watched(watch, rng, share, trials, servers=("",), questions=50, order=None, lost=lambda step: False):
    """Feed a watch with trials of the model m, whose share of right answers depends on step and server."""
    for step in order or range(trials):
        server = servers[step % len(servers)]
        right = None if lost(step) else int(rng.random() < share(step, server))
        watch.add(TrialKey("m", step), ("t", str(step % questions)), right, at=float(step), server=server)


def test_one_server_of_a_pool_that_changes_is_named():
    watch, rng = DriftWatch(), random.Random(13)
    servers = ("http://gpu1", "http://gpu2", "http://gpu3")
    watched(watch, rng, lambda step, at: 0.2 if at == "http://gpu2" and step > 1500 else 0.9, 4500, servers)
    assert any(words.startswith("m at http://gpu2: ") for words in watch.remarks)
    assert not any("gpu1" in words or "gpu3" in words for words in watch.remarks)


def test_a_server_that_was_alone_is_compared_with_what_it_answered_then():
    """It changes at the moment at which another joins."""
    watch, rng = DriftWatch(), random.Random(15)
    watched(watch, rng, lambda step, at: 0.9, 2000, ("http://gpu1",))
    servers = ("http://gpu1", "http://gpu2")
    watched(
        watch, rng, lambda step, at: 0.3 if at == "http://gpu1" else 0.9, 0, servers, order=range(2000, 4000)
    )
    assert any(words.startswith("m at http://gpu1: ") for words in watch.remarks)
    assert not any("gpu2" in words for words in watch.remarks)


def test_slower_right_answers_are_no_change():
    """Outcomes count in the order of the sequence: those that come late are waited for."""
    late, early = DriftWatch(), DriftWatch()
    rights = [int(random.Random(step).random() < 0.5) for step in range(3000)]
    order = sorted(range(3000), key=lambda step: step + 400 * rights[step])
    for watch, steps in ((late, order), (early, range(3000))):
        for step in steps:
            watch.add(TrialKey("m", step), ("t", str(step % 30)), rights[step], at=0.0, server="")
    assert late.remarks == early.remarks == []


def test_missing_trials_hold_up_nothing():
    watch, rng = DriftWatch(), random.Random(14)
    watched(watch, rng, lambda step, at: 0.9 if step < 1000 else 0.3, 2000, lost=lambda step: step % 7 == 0)
    assert len(watch.remarks) == 1
    assert watch.changes[0].at == pytest.approx(1000, abs=20)


def test_missing_trials_are_no_change():
    watch, rng = DriftWatch(), random.Random(16)
    watched(watch, rng, lambda step, at: 0.9, 3000, lost=lambda step: step > 1500 and rng.random() < 0.6)
    assert watch.remarks == []


def test_a_lost_outcome_is_not_waited_for_without_end(monkeypatch):
    monkeypatch.setattr(DriftWatch, "most_pending", 500)
    watch, rng = DriftWatch(), random.Random(17)
    watched(watch, rng, lambda step, at: 0.9 if step < 1500 else 0.3, 0, order=range(1, 3000))
    assert len(watch.remarks) == 1


def test_a_change_is_said_once_where_the_servers_of_earlier_trials_are_unknown():
    """As in a resumed run: nearly all outcomes of the model are of its only server."""
    watch, rng = DriftWatch(), random.Random(18)
    watched(watch, rng, lambda step, at: 0.9, 50)
    steps = range(50, 4000)
    watched(watch, rng, lambda step, at: 0.9 if step < 2000 else 0.2, 0, ("http://gpu1",), order=steps)
    (words,) = watch.remarks
    assert words.startswith("m: ")


def test_all_alarms_about_a_model_share_the_chance_that_is_promised():
    of_servers = sum(1.0 / drift._limit_of(place) for place in range(1, 10_000))
    assert 1.0 / drift._LIMIT + of_servers == pytest.approx(drift.FALSE_ALARM, rel=1e-3)
