"""Error control over many pairs, against plain definitions; and where a session hands it evidence."""

import numpy as np
import pytest
from session_scripts import calls, coin, drive, make_spec

from adaptive_eval.core.compare import _running_peak
from adaptive_eval.core.goals import OPEN
from adaptive_eval.core.session import Session
from adaptive_eval.trial import Missing, TrialOutcome
from scorio.sequential.families import family

ALPHA = 0.05


def step_up(open_e, called_e, pairs):
    """Return which open e-values win by e-BH: the k largest of all, for the largest k that can."""
    ranked = sorted([*open_e, *called_e], reverse=True)
    sizes = [k for k in range(1, len(ranked) + 1) if ranked[k - 1] >= pairs / (ALPHA * k)]
    return [bool(sizes) and e >= pairs / (ALPHA * max(sizes)) for e in open_e]


@pytest.mark.parametrize(
    ("open_e", "called_e", "winners"),
    [
        ([119.0, 1.0, 1.0, 1.0, 1.0, 1.0], [], [False] * 6),  # the first call takes 6/α = 120
        ([121.0, 1.0, 1.0, 1.0, 1.0, 1.0], [], [True] + [False] * 5),
        ([61.0, 1.0, 1.0, 1.0, 1.0, 1.0], [], [False] * 6),  # half of that is enough for two only
        ([61.0, 61.0, 1.0, 1.0, 1.0, 1.0], [], [True, True] + [False] * 4),
        ([61.0, 59.0, 39.0, 1.0, 1.0, 1.0], [], [False] * 6),
        ([61.0, 59.0, 41.0, 1.0, 1.0, 1.0], [], [True, True, True] + [False] * 3),
        ([61.0, 1.0, 1.0, 1.0, 1.0], [130.0], [True] + [False] * 4),  # a pair that is called counts
        ([59.0, 1.0, 1.0, 1.0, 1.0], [130.0], [False] * 5),
        ([21.0] * 6, [], [True] * 6),
    ],
)
def test_discoveries_by_hand(open_e, called_e, winners):
    found = family("ebh").winners(np.log([open_e]).T, np.log(called_e), pairs=6, alpha=ALPHA)
    assert found.ravel().tolist() == winners == step_up(open_e, called_e, 6)


@pytest.mark.parametrize("seed", range(20))
def test_discoveries_are_those_of_a_plain_step_up(seed):
    rng = np.random.default_rng(seed)
    pairs = int(rng.integers(1, 13))
    called = rng.integers(0, pairs)
    e = np.exp(rng.uniform(0.0, 6.5, (pairs - called, 50)))
    frozen = np.exp(rng.uniform(3.0, 8.0, called))
    found = family("ebh").winners(np.log(e), np.log(frozen), pairs, ALPHA)
    assert found.T.tolist() == [step_up(column, frozen, pairs) for column in e.T]
    assert found.any()


@pytest.mark.parametrize(
    ("name", "thresholds"), [("holm", [120, 100, 80, 20]), ("pair", [20] * 4), ("ebh", [120, 60, 40, 20])]
)
def test_the_next_single_call_takes_the_threshold_and_no_less(name, thresholds):
    control = family(name)
    for won, threshold in zip((0, 1, 2, 5), thresholds, strict=True):
        assert control.threshold(won, 6, ALPHA) == pytest.approx(np.log(threshold))
        e = np.log([[0.999 * threshold, 1.001 * threshold]])
        called = np.full(won, np.log(1e6))
        assert control.winners(e, called, 6, ALPHA).tolist() == [[False, True]]


def test_a_peak_keeps_the_sign_it_had():
    """Where Holm's threshold falls, a pair may win by an earlier peak although its difference has turned."""
    rng = np.random.default_rng(0)
    statistic, signs = rng.normal(size=(40, 12)), rng.choice([-1, 1], (40, 12)).astype(np.int8)
    peak, sign = rng.normal(size=40), rng.choice([-1, 1], 40).astype(np.int8)
    highest, signs_there = _running_peak(peak, sign, statistic, signs)
    for row in range(40):
        best, at_best = peak[row], sign[row]
        for step in range(12):
            if statistic[row, step] > best:
                best, at_best = statistic[row, step], signs[row, step]
            assert (highest[row, step], signs_there[row, step]) == (best, at_best)


@pytest.mark.parametrize(("name", "is_settled"), [("holm", True), ("pair", True), ("ebh", False)])
def test_a_call_beyond_the_common_prefix_is_certain_only_where_no_e_value_can_fall(name, is_settled):
    session = Session(make_spec(3, 50, family=name))
    for _ in range(40):
        requests = session.ask({"m0": 1, "m1": 1})
        session.tell([TrialOutcome(one.key, int(one.key.model == "m0")) for one in requests])
    assert session.comparison.common_prefix == 0
    assert session.comparison.settled.tolist() == [is_settled, False, False]
    assert session.comparison.verdict.tolist() == [OPEN] * 3


@pytest.mark.parametrize("missing", [None, lambda one: one.key.index % 9 == 4], ids=["all", "missing"])
def test_with_discoveries_a_falling_e_value_is_read_alike_in_any_order(missing):
    """m0 is ahead for thirty steps, then falls back: what is called may not depend on who is read first."""

    def answer(one):
        index, model = one.key.index, int(one.key.model[1:])
        return int(index < 30) if model == 0 else coin([0, 0.4, 0.45, 0.1])(one)

    def run(slots, seed):
        spec = make_spec(4, 25, family="ebh", max_passes=12)
        rng = None if seed is None else np.random.default_rng(seed)
        return drive(Session(spec), answer, slots=slots, rng=rng, missing=missing)

    plain = [call[:3] for call in calls(run(1, None))]
    assert plain
    for seed in range(3):
        assert [call[:3] for call in calls(run(2 + 11 * seed, seed))] == plain


def test_with_families_the_same_outcomes_are_called_no_later_the_less_is_promised():
    last = {}
    for name in ("holm", "ebh", "pair"):
        spec = make_spec(4, 30, family=name, max_passes=100)
        last[name] = {call[0]: call[2] for call in calls(drive(Session(spec), coin([0.9, 0.7, 0.65, 0.2])))}
    assert len(last["holm"]) >= 5
    assert set(last["holm"]) <= set(last["ebh"]) <= set(last["pair"])
    for pair, step in last["holm"].items():
        assert last["pair"][pair] <= min(last["ebh"][pair], step)
    assert sum(last["pair"].values()) < sum(last["ebh"][pair] for pair in last["pair"])


def test_nobody_is_called_where_all_answers_are_missing():
    session = Session(make_spec(2, 20, family="ebh"))
    session.tell([Missing(one.key, "scripted") for one in session.ask(20)])
    assert calls(session) == []
