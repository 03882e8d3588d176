"""Models at temperature 0: equal ones whose answers flip are not called different, steady ones cost little.

Seeds are fixed. A count may be what a rate of exactly 5 % exceeds with probability 1e-4 (`many_pairs.most`).
"""

from dataclasses import replace

import numpy as np
import pytest
from many_pairs import SCALE, PairSetting, at_most
from numpy.typing import NDArray
from session_scripts import drive, make_spec

from adaptive_eval.core.session import Session
from adaptive_eval.trial import ScoreRange, TrialRequest


class Flipping(PairSetting):
    """Pairs of equal models: 2, 5 or 10 of their answers are coins, and the others never vary."""

    def chances(self, seed: int) -> NDArray[np.float64]:
        """Return the chances of both models of each pair."""
        rng = np.random.default_rng([1, seed])
        p = (rng.random((self.pairs, self.questions)) < self.mean).astype(float)
        for pair, row in enumerate(p):
            row[rng.permutation(self.questions)[: (2, 5, 10)[pair % 3]]] = 0.5
        return np.repeat(p, 2, axis=0)


@pytest.mark.slow
@pytest.mark.parametrize("margin", [None, 0.02])
def test_equal_models_whose_answers_flip_are_not_called_different(margin):
    """Taken as steady, about half of the pairs (a quarter with a margin) get a winner.

    `simulate` does not serve here: it takes models at temperature 0 as steady.
    """
    setting = Flipping(100, 4, 0.7, pairs=60 * SCALE, greedy=True)
    session, rng = Session(setting.spec(equivalence=margin)), np.random.default_rng(3)
    chances = dict(zip((model.name for model in session.spec.models), setting.chances(1), strict=True))

    def answer(request: TrialRequest) -> int:
        return int(rng.random() < chances[request.key.model][int(request.question[1:])])

    drive(session, answer, slots=1)
    verdicts = [pair.verdict for pair in session.results().pairs]
    at_most(verdicts.count("better") + verdicts.count("worse"), 60 * SCALE, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("gap", [0.0, 2.0])
def test_equal_models_whose_chances_of_letters_shift_are_not_called_different(gap):
    """Scores of `choice_probability`: the log-odds of a letter shift with every request, by .01, .1 or .5.

    Models whose odds differ by `gap` are told apart all the same.
    """
    pairs, questions = 60 * SCALE, 30
    rng = np.random.default_rng(11)
    setting = PairSetting(questions, 3, 0.7, pairs=pairs, greedy=True)
    unit = ScoreRange((0.0, 1.0))
    spec = setting.spec()
    session = Session(replace(spec, tasks=(replace(spec.tasks[0], weights=unit),)))
    odds = np.repeat(rng.normal(1.0, 2.0, (pairs, questions)), 2, axis=0)
    odds[1::2] -= gap
    shift = np.repeat(np.resize((0.01, 0.1, 0.5), pairs), 2)
    place = {model.name: number for number, model in enumerate(session.spec.models)}

    def answer(request: TrialRequest) -> int:
        model = place[request.key.model]
        shifted = odds[model, int(request.question[1:])] + shift[model] * rng.standard_normal()
        return unit.category(float(1.0 / (1.0 + np.exp(-shifted)))) or 0

    drive(session, answer, slots=2)
    verdicts = [pair.verdict for pair in session.results().pairs]
    at_most(verdicts.count("worse") + (not gap) * verdicts.count("better"), pairs, 0.05)
    assert not gap or verdicts.count("better") > pairs / 2


@pytest.mark.parametrize(("questions", "gap", "passes"), [(1000, 20, 1.2), (100, 10, 2.0)])
@pytest.mark.parametrize("alike", [True, False])
def test_steady_models_are_decided_soon(questions, gap, passes, alike):
    rng = np.random.default_rng(questions)
    good = rng.permutation(questions) < 0.7 * questions
    bad = good.copy() if alike else rng.permutation(good)
    bad[rng.permutation(np.flatnonzero(bad))[:gap]] = False
    right = {"a": good, "b": bad}

    def answer(request: TrialRequest) -> int:
        return int(right[request.key.model][int(request.question[1:])])

    session = drive(Session(make_spec("ab", questions, max_passes=3, greedy=True, seed=1)), answer)
    assert session.results().pairs[0].verdict == "better"
    assert max(session.states.issued) <= passes * questions
