"""A model without one scored answer on a task leaves the others to be decided; no NaN decides."""

from dataclasses import replace

import numpy as np
import pytest
from session_scripts import coin, drive, make_spec

from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import TaskSpec
from scorio.sequential.moments import fit_prior


@pytest.mark.parametrize("size", [5, 20])
def test_the_healthy_models_are_decided(size):
    tasks = tuple(TaskSpec(name, tuple(f"{name}{one}" for one in range(size))) for name in "ab")
    spec = replace(make_spec(3, equivalence=0.2, max_passes=40, rounds="rounds"), tasks=tasks)
    with np.errstate(all="raise", under="ignore"):
        session = drive(
            Session(spec),
            coin((0.9, 0.2, 0.5)),
            missing=lambda request: request.key.model == "m2" and request.task == "b",
        )
    (pair,) = (one for one in session.results().pairs if {one.first, one.second} == {"m0", "m1"})
    assert session.stopped is not None
    assert pair.verdict == ("better" if size == 20 else pair.verdict)


def test_without_any_answer_the_moments_are_those_of_a_category_drawn_at_random():
    none = np.zeros((1, 4))
    with np.errstate(all="raise"):
        prior = fit_prior(none, none, none, 0.5, 0.4)
    assert (prior.m1.item(), prior.m2.item()) == (0.5, 0.4)
