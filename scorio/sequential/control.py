"""Stored answers of other models as a control variate: how easy each question is, known before a run.

What finished models answered predicts part of a new model's answer. A bet on the answer less the predicted
part has less noise, so it wins sooner ([1]_). The prediction is fixed before the run, and its mean over all
questions is 0: the bets need no more (:mod:`scorio.sequential.betting`). A wrong prediction delays a call,
and makes a wrong call no likelier. A score that is measured to a width is the mean of the answers less the
predicted parts, too: it gains until all questions have been asked. The stored answers must not be draws of
the run itself. So those of a prior are not used: under the same seeds the same model may give some of them
again.

References
----------
.. [1] Lavenberg, Welch, "A perspective on the use of control variables to increase the efficiency of Monte
       Carlo simulations", Management Science 27 (1981).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from scorio.arrays import Bools, Floats
from scorio.sequential.cells import Cells

ONE_MODEL: Final = 0.5
"""Slope if only one model is stored: nothing tells how far another one agrees with it."""
EXTREME: Final = 0.005
"""No stored score counts as nearer to 0 or 1."""


class StoredAnswers(NamedTuple):
    """Answers of finished models to the questions of all tasks, one task after the other.

    Parameters
    ----------
    trials : ndarray of float, shape (models, questions)
        Answers to each question; a question may have none.
    total : ndarray of float, shape (models, questions)
        Sum of their scores, in unit scores.
    """

    trials: Floats
    total: Floats


def stored_answers(cells: Sequence[Cells], asked: int) -> StoredAnswers | None:
    """Return the answers of the models after the first `asked` ones; None without any."""
    counts = [one.counts[asked:] for one in cells]
    if not len(counts[0]):
        return None
    trials = [table.sum(axis=2) for table in counts]
    total = [table @ one.scale.levels for table, one in zip(counts, cells, strict=True)]
    return StoredAnswers(np.concatenate(trials, axis=1), np.concatenate(total, axis=1))


def control(stored: StoredAnswers, weight: Floats, value: float) -> Floats:
    """Return by how much each question is predicted to exceed the mean, for a model that scores `value`.

    Parameters
    ----------
    stored : StoredAnswers
        Answers of the stored models.
    weight : ndarray of float, shape (questions,)
        What a trial of each question weighs; 1 on average.
    value : float
        The mean score, in (0, 1).

    Returns
    -------
    ndarray of float, shape (questions,)
        β(f − θ₀), whose weighted mean is 0: f are the stored models' scores of the questions, shifted on the
        scale of logits to the mean θ₀. The slope β in [0, 1] is fitted to each stored model by the others.

    Examples
    --------
    >>> trials = np.full((3, 4), 10.0)
    >>> total = np.array([[9.0, 8, 2, 1], [8, 7, 3, 2], [9, 9, 4, 2]])
    >>> lead = control(StoredAnswers(trials, total), np.ones(4), 0.5)
    >>> print(lead.round(2), abs(round(lead.sum(), 9)))
    [ 0.33  0.26 -0.23 -0.35] 0.0
    """
    return _slope(stored, weight) * _profile(stored, weight, value)


def usual_control(stored: StoredAnswers, questions: slice) -> Floats:
    """Return :func:`control` of the questions of one task, for a model as good as the stored ones are."""
    here = StoredAnswers(stored.trials[:, questions], stored.total[:, questions])
    weight = np.ones(here.trials.shape[1])
    return control(here, weight, _typical(_means(here, weight)))


def _typical(level: Floats) -> float:
    """Return the mean of mean scores, not too near to 0 or 1."""
    return min(max(float(level.mean()), EXTREME), 1.0 - EXTREME)


def _profile(stored: StoredAnswers, weight: Floats, value: float) -> Floats:
    """Return f − θ₀ of each question, for some stored models together."""
    known = stored.trials > 0
    mean = stored.total / np.maximum(stored.trials, 1.0)
    level = _means(stored, weight)[:, None]
    # Models that were asked other questions differ in their levels: only what is beyond them is averaged.
    beyond = np.where(known, mean - level, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    typical = _typical(level)
    trials = stored.trials.sum(axis=0)
    pooled = np.clip(typical + beyond, 0.0, 1.0)
    # No score is 0 or 1: each question has one answer of the mean score in addition.
    score = (trials * pooled + typical) / (trials + 1.0)
    shifted = _shifted(score, weight, value)
    return shifted - np.average(shifted, weights=weight)


def _means(stored: StoredAnswers, weight: Floats) -> Floats:
    """Return the mean score of each stored model over its questions, shape (models,)."""
    asked = (stored.trials > 0) * weight
    mean = stored.total / np.maximum(stored.trials, 1.0)
    return np.asarray((asked * mean).sum(axis=1) / np.maximum(asked.sum(axis=1), 1e-9))


def _shifted(score: Floats, weight: Floats, value: float) -> Floats:
    """Return scores whose logits are all shifted so that their weighted mean is `value`."""
    from scipy.special import expit, logit

    logits = logit(score)
    low = float(logit(value) - logits.max())
    high = float(logit(value) - logits.min())
    while low < (middle := (low + high) / 2.0) < high:
        if np.average(expit(logits + middle), weights=weight) < value:
            low = middle
        else:
            high = middle
    return np.asarray(expit(logits + high))


def _slope(stored: StoredAnswers, weight: Floats) -> float:
    """Return β: the slope of each stored model's scores on what the others predict, by least squares."""
    models = len(stored.trials)
    if models == 1:
        return ONE_MODEL
    means = np.clip(_means(stored, weight), EXTREME, 1.0 - EXTREME)
    product = square = 0.0
    for model, level in enumerate(means.tolist()):
        others: Bools = np.arange(models) != model
        predicted = _profile(StoredAnswers(stored.trials[others], stored.total[others]), weight, level)
        asked = stored.trials[model] > 0
        lead = stored.total[model] / np.maximum(stored.trials[model], 1.0) - level
        product += float((weight * asked * lead * predicted).sum())
        square += float((weight * asked * predicted**2).sum())
    return min(max(product / max(square, 1e-9), 0.0), 1.0)
