"""What stored answers predict of each question: fixed before the run, and 0 on average."""

from dataclasses import replace

import numpy as np
import pytest
from session_scripts import make_spec

from adaptive_eval.core.spec import ReferenceSpec
from adaptive_eval.simulate import GivenChances, simulate
from scorio.sequential.cells import Cells
from scorio.sequential.control import ONE_MODEL, StoredAnswers, control, stored_answers
from scorio.sequential.moments import unit_scores
from scorio.sequential.trial_sequence import RunSequence

EASY = np.linspace(0.1, 0.9, 40)


def stored(*scores, trials=1000.0):
    """Return stored answers of models with these scores of the questions; NaN if a question has none."""
    table = np.array(scores)
    known = np.isfinite(table)
    return StoredAnswers(np.where(known, trials, 0.0), np.where(known, trials * table, 0.0))


@pytest.mark.parametrize("value", [0.02, 0.5, 0.99])
@pytest.mark.parametrize("trials", [1.0, 1000.0])
def test_its_weighted_mean_is_0_and_no_question_leaves_the_scores(value, trials):
    rng = np.random.default_rng(1)
    weight = np.repeat([0.5, 2.0], [20, 20])
    weight /= weight.mean()
    scores = np.round(rng.random((3, 40)) * trials) / trials
    lead = control(stored(*scores, trials=trials), weight, value)
    assert weight @ lead == pytest.approx(0.0, abs=1e-9)
    assert (lead > -value).all()
    assert (lead < 1.0 - value).all()


def test_a_question_weighs_as_much_as_its_copies_would():
    weight, asked_less = np.repeat([3.0, 1.0], [10, 30]), np.where(np.arange(40) < 30, EASY, np.nan)
    copies = np.repeat(np.arange(40), weight.astype(int))
    lead = control(stored(asked_less, EASY**2), weight / weight.mean(), 0.5)
    alone = control(stored(asked_less[copies], EASY[copies] ** 2), np.ones(copies.size), 0.5)
    assert lead[copies] == pytest.approx(alone)


def test_models_that_agree_are_relied_on_and_others_are_not():
    weight, shuffled = np.ones(40), np.random.default_rng(2).permutation(EASY)
    assert control(stored(EASY, EASY**2), weight, 0.5) == pytest.approx(EASY - 0.5, abs=0.05)
    assert control(stored(EASY, 1.0 - EASY), weight, 0.5) == pytest.approx(0.0)
    unlike = control(stored(EASY, shuffled, shuffled[::-1]), weight, 0.5)
    alike = control(stored(EASY, EASY**2, EASY**0.5), weight, 0.5)
    assert np.abs(unlike).max() < 0.3 * np.abs(alike).max()


def test_one_model_is_relied_on_by_half():
    lead = control(stored(EASY), np.ones(40), 0.5)
    assert lead == pytest.approx(ONE_MODEL * (EASY - 0.5), abs=1e-3)


def test_one_trial_of_a_question_says_less_than_many():
    scores = np.arange(40) % 2
    few, many = (control(stored(scores, scores, trials=n), np.ones(40), 0.5) for n in (1.0, 1000.0))
    assert 0.1 < np.abs(few).max() < 0.9 * np.abs(many).max()


def test_a_question_without_answers_is_typical_and_a_model_without_some_is_no_easier():
    gaps, half = EASY.copy(), EASY.copy()
    gaps[20] = np.nan
    lead = control(stored(gaps), np.ones(40), 0.5)
    assert lead[20] == pytest.approx(0.0, abs=0.02)
    half[:20] = np.nan  # it was asked the easy ones alone
    both = control(stored(EASY, half), np.ones(40), 0.5)
    assert (np.diff(np.sign(both[[0, 10, 30, 39]])) >= 0).all()
    assert both[10] < 0.0 < both[39]


def test_answers_of_finished_models_are_taken_from_the_cells_of_all_tasks():
    sequences = RunSequence([2, 3], seed=None).sequences
    cells = [Cells(one, unit_scores([0.0, 0.5, 1.0]), 3) for one in sequences]
    assert stored_answers(cells, 3) is None
    cells[0].load(2, np.array([[1, 0, 3], [0, 2, 0]]))
    cells[1].load(2, np.array([[0, 0, 0], [4, 0, 0], [0, 0, 5]]))
    found = stored_answers(cells, 2)
    assert found.trials.tolist() == [[4, 2, 0, 4, 5]]
    assert found.total.tolist() == [[3.0, 1.0, 0.0, 0.0, 5.0]]


@pytest.mark.parametrize(("order", "least", "most"), [(1, 0.6, 0.8), (-1, 0.97, 1.03)])
def test_references_spare_trials_of_a_score_measured_to_a_width(order, least, most):
    """60 models that find the same questions hard as three references, or the opposite ones."""
    chance = np.tile(np.linspace(0.02, 0.98, 600), (60, 1))
    right = np.rint(20 * chance[:3, ::order]).astype(int)
    old = tuple(ReferenceSpec(f"old{n}", {"t": np.stack([20 - one, one], 1)}) for n, one in enumerate(right))
    spec = make_spec(60, 600, goal="width", width=0.12, max_passes=3)
    used = []
    for references in ((), old):
        asked = replace(spec, references=references)
        result = simulate(asked, GivenChances(chance), 1, seed=3, in_flight=1, workers=1)
        used.append(result.trials.sum())
    assert least < used[1] / used[0] < most
