"""Models at temperature 0: equal ones whose answers flip are not called different, steady ones cost little.

Seeds are fixed. A count may be what a rate of exactly 5 % exceeds with probability 1e-4 (`many_pairs.most`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from many_pairs import most

from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import ModelSpec, SessionSpec, StoppingSpec, TaskSpec
from adaptive_eval.trial import TrialOutcome, TrialRequest

RUNS = 30


def greedy(questions: int, margin: float | None, seed: int, max_passes: int) -> Session:
    """Return a session of two models at temperature 0."""
    task = TaskSpec("t", tuple(f"q{number}" for number in range(questions)))
    models = (ModelSpec("a", greedy=True), ModelSpec("b", greedy=True))
    return Session(
        SessionSpec(
            models, (task,), stopping=StoppingSpec(equivalence=margin, max_passes=max_passes), seed=seed
        )
    )


def driven(session: Session, answer: Callable[[TrialRequest], int]) -> Session:
    """Run a session to its stop, sixteen trials at a time."""
    while session.stopped is None:
        session.tell([TrialOutcome(request.key, answer(request)) for request in session.ask(16)])
    return session


def verdict(margin: float | None, flipping: int, seed: int) -> str:
    """Decide two equal models of which as many of 100 answers are coins and the others never vary."""
    rng = np.random.default_rng([1, seed])
    chances = (rng.random(100) < 0.7).astype(float)
    chances[rng.permutation(100)[:flipping]] = 0.5

    def answer(request: TrialRequest) -> int:
        return int(rng.random() < chances[int(request.question[1:])])

    (pair,) = driven(greedy(100, margin, seed, max_passes=4), answer).results().pairs
    return pair.verdict


@pytest.mark.parametrize("margin", [None, 0.02])
def test_equal_models_whose_answers_flip_are_not_called_different(margin: float | None) -> None:
    verdicts = [verdict(margin, flipping, seed) for flipping in (2, 5, 10) for seed in range(RUNS)]
    assert sum(one in ("better", "worse") for one in verdicts) <= most(len(verdicts), 0.05)


@pytest.mark.parametrize(("questions", "gap", "passes"), [(1000, 20, 1.2), (100, 10, 2.0)])
@pytest.mark.parametrize("alike", [True, False])
def test_steady_models_are_decided_soon(questions: int, gap: int, passes: float, alike: bool) -> None:
    rng = np.random.default_rng(questions)
    good = rng.permutation(questions) < 0.7 * questions
    bad = good.copy() if alike else rng.permutation(good)
    bad[rng.permutation(np.flatnonzero(bad))[:gap]] = False
    right = {"a": good, "b": bad}

    def answer(request: TrialRequest) -> int:
        return int(right[request.key.model][int(request.question[1:])])

    session = driven(greedy(questions, None, 1, max_passes=3), answer)
    assert session.results().pairs[0].verdict == "better"
    assert max(session.states.issued) <= passes * questions
