"""Figures from stored trials: missing and truncated answers, latency, hard questions."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from adaptive_eval.core.results import ModelResult, Results, TaskResult
from adaptive_eval.core.stored_spec import SESSION, spec_from_json
from adaptive_eval.store.cells import OutcomeCells, mean_and_spread
from adaptive_eval.store.reader import RunReader
from adaptive_eval.trial import NO_ANSWER

_QUESTIONS = 10

MOST_SUSPECT = 20
"""Suspect questions that a report lists at most."""

MOST_QUESTIONS = 2_000
"""Questions that a page lists at most."""

_SUSPECT_GAP = 0.5  # by how much the lower half of the board is better on a suspect question

_AGREEMENT = 0.03  # rounds weight the trials of a question, which moves a score from the plain mean

_LATENCIES = 500_000  # trials that quantiles of latency are taken over: of more, every so many-th


@dataclass(frozen=True, slots=True)
class ModelAccount:
    """The outcome of one model's trials."""

    model: str  # its name
    # stored answers by category, from category 0 on; those after the stop included; none of numbers
    categories: tuple[int, ...]
    truncated: int  # answers cut off at the token limit. They are scored like any other.
    missing: Mapping[str, int]  # trials without an answer, by reason
    errors: Mapping[str, int]  # failed attempts by kind, those that a later attempt made good included
    # seconds an answer took, of a long run in a sample of 500,000 trials; None without an answer
    latency_p50_seconds: float | None
    latency_p95_seconds: float | None
    # answers that are none, by cause (:attr:`adaptive_eval.trial.Completion.no_answer`)
    no_answer: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QuestionAccount:
    """The models' results on one question of a right-or-wrong rubric."""

    # which one
    task: str
    question: str
    trials: int  # counted trials of all models
    correct: float  # mean over the models asked of their fraction correct, in [0, 1]
    # standard deviation over the models asked of (k + 1)/(n + 2), k of n trials correct: fractions shrunk
    # towards ½, so that a question asked once does not look like one on which models differ
    spread: float
    # counted trials and how many of them were right, by model in the order of the results; (0, 0) for a
    # model that was not asked
    by_model: tuple[tuple[int, int], ...] = ()


def model_accounts(reader: RunReader, cells: OutcomeCells, results: Results) -> tuple[ModelAccount, ...]:
    """Return an account of every model, in the order of the results."""
    errors = reader.error_counts()
    latencies = reader.latencies(_LATENCIES)
    none: dict[str, Counter[str]] = {}
    for (model, _), (_, causes) in reader.signals_named(NO_ANSWER).items():
        none.setdefault(model, Counter()).update(causes)
    cut = np.bincount(cells.model, cells.truncated, len(cells.models) + 1)  # none of a model without answers
    numbers = any(line.score is not None and line.bayes_mu is None for line in results.models)
    categories = range(max((category for _, category in cells.categories), default=0) + 1)
    if numbers:
        categories = range(0)
    accounts = []
    for line in results.models:
        if line.model in cells.models:
            row = cells.models.index(line.model)
        else:
            row = -1
        p50, p95 = _quantiles(latencies.get(line.model))
        missing = {reason: n for (model, reason), n in cells.missing.items() if model == row}
        accounts.append(
            ModelAccount(
                model=line.model,
                categories=tuple(cells.categories.get((row, category), 0) for category in categories),
                truncated=int(cut[row]),
                missing=missing,
                errors=errors.get(line.model, {}),
                latency_p50_seconds=p50,
                latency_p95_seconds=p95,
                no_answer=none.get(line.model, {}),
            )
        )
    return tuple(accounts)


def question_accounts(
    reader: RunReader, cells: OutcomeCells, results: Results
) -> tuple[QuestionAccount, ...] | None:
    """Return an account of every question asked, or None if scores are not simply the fraction correct.

    Whether they are is not assumed but seen: the scores recomputed from the stored categories as fractions
    of category 1 have to agree, about, with the scores of the session.
    """
    index = {name: i for i, name in enumerate(cells.models)}
    trials = np.zeros((len(results.models), len(cells.questions)))
    correct = np.zeros_like(trials)
    for i, line in enumerate(results.models):
        if line.model not in index or line.score is None:
            continue
        here = cells.model == index[line.model]
        trials[i], correct[i] = _counted(reader, cells, here, line)
        asked = np.flatnonzero(trials[i])
        if not asked.size or cells.category_max[here].max(initial=0) > 1:
            return None
        weights = _weights([cells.questions[q][0] for q in asked.tolist()], results.tasks)
        if abs(weights @ (correct[i, asked] / trials[i, asked]) - line.score) > _AGREEMENT:
            return None
    mean, spread = mean_and_spread(trials, correct)
    columns = trials.T.astype(int).tolist(), correct.T.astype(int).tolist()
    return tuple(
        QuestionAccount(
            *cells.questions[q],
            trials=sum(columns[0][q]),
            correct=float(mean[q]),
            spread=float(spread[q]),
            by_model=tuple(zip(columns[0][q], columns[1][q], strict=True)),
        )
        for q in np.flatnonzero(trials.any(axis=0)).tolist()
    )


def _lost_draws(reader: RunReader, line: ModelResult) -> list[int]:
    """Return the steps of a model's trials that are lost, since a draw of them was given up."""
    meta = reader.meta()
    if not line.discarded_trials or SESSION not in meta:
        return []
    redrawn = spec_from_json(meta[SESSION]).redrawn
    given_up = reader.trials(model=line.model, discarded=True)
    return [one.request.key.index for one in given_up if set(one.discarded) - redrawn]


def _counted(
    reader: RunReader, cells: OutcomeCells, here: npt.NDArray[np.bool_], line: ModelResult
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return trials and sums of categories by question, of the model's complete prefix that is in its score.

    Answers that came after the stop are among them: they are in the estimates, though in no verdict. All that
    is stored of the model is counted already; what its score leaves out is at the end of its trial sequence.
    """
    trials, correct = np.zeros((2, len(cells.questions)))
    trials[cells.question[here]] = cells.scored[here]
    correct[cells.question[here]] = cells.category_sum[here]
    first, lost = line.trials, _lost_draws(reader, line)
    tail = reader.in_sequence(line.model, cells.end, first)
    if lost or int(cells.stored[here].sum()) - len(tail) < first:
        # Something before is not in the score: an answer that is lost, or one after an index that is missing.
        first = 0
        tail = reader.in_sequence(line.model, cells.end)
    step, question, category = tail.T
    answered = category >= 0
    scored = answered & ~np.isin(step, lost)
    before = int(trials.sum()) - int(answered.sum())
    within = (step == first + np.arange(len(step))) & (before + np.cumsum(scored) <= line.trials)
    out = answered & ~(scored & within)
    np.subtract.at(trials, question[out], 1)
    np.subtract.at(correct, question[out], category[out])
    return trials, correct


def _weights(of: Sequence[str], tasks: Sequence[TaskResult]) -> npt.NDArray[np.float64]:
    """Return the weights in a score of questions `of` these tasks, with sum 1."""
    share = {task.task: task.weight for task in tasks}
    size = Counter(of)
    weights = np.array([share.get(task, 1.0) / size[task] for task in of])
    return np.asarray(weights / weights.sum())


def _quantiles(latency: npt.NDArray[np.float64] | None) -> tuple[float | None, float | None]:
    if latency is None or latency.size == 0:
        return None, None
    p50, p95 = np.quantile(latency, (0.5, 0.95))
    return float(p50), float(p95)


def hardest(questions: Sequence[QuestionAccount]) -> list[QuestionAccount]:
    """Return the questions that were answered right least often."""
    return sorted(questions, key=lambda one: (one.correct, -one.trials))[:_QUESTIONS]


class Suspect(NamedTuple):
    """A question whose right answer may be wrong, and why."""

    question: QuestionAccount
    why: str


def suspect(questions: Sequence[QuestionAccount]) -> list[Suspect]:
    """Return questions whose right answer may be wrong, and why, the most suspect first."""
    found = []
    for one in questions:
        shares = [right / trials for trials, right in one.by_model if trials]
        half = len(shares) // 2
        gap = 0.0
        if half:
            gap = sum(shares[-half:]) / half - sum(shares[:half]) / half
        if one.correct == 0.0:
            found.append((1.0, Suspect(one, "no model right")))
        elif gap >= _SUSPECT_GAP:
            found.append((gap, Suspect(one, "weak models right, strong ones wrong")))
    found.sort(key=lambda each: -each[0])
    return [one for _, one in found]


SEVERAL = (2, 4, 8, 16)
"""Numbers k of answers for which pass@k and pass^k are shown."""


class SeveralAnswers(NamedTuple):
    """What a model does in several answers to a question."""

    model: str
    fewest: int  # answers to a question
    pass_at: dict[int, float]  # pass@k by k; without those for which a question has too few answers
    pass_hat: dict[int, float]  # pass^k by k


def several_answers(questions: Sequence[QuestionAccount], results: Results) -> list[SeveralAnswers]:
    """Return, by model, its fewest answers to a question, and pass@k and pass^k for each k of `SEVERAL`.

    Questions weigh as in the score. A k is left out if a question that was asked has fewer answers, and a
    model without any.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> asked = [QuestionAccount("t", "q", 2, 0.5, 0.0, ((2, 1),))]
    >>> several_answers(asked, SimpleNamespace(models=[SimpleNamespace(model="m")], tasks=()))
    [SeveralAnswers(model='m', fewest=2, pass_at={2: 1.0}, pass_hat={2: 0.0})]
    """
    from scorio.eval import pass_at_k, pass_hat_k

    rows = []
    cells = zip(*(one.by_model for one in questions), strict=True)
    for line, of_model in zip(results.models, cells, strict=False):
        fewest = min((trials for trials, _ in of_model if trials), default=0)
        if fewest < SEVERAL[0]:
            continue
        asked = [(one.task, *cell) for one, cell in zip(questions, of_model, strict=True) if cell[0]]
        counts = np.array([(trials - right, right) for _, trials, right in asked])
        weights = _weights([task for task, _, _ in asked], results.tasks)
        row = SeveralAnswers(line.model, fewest, {}, {})
        for k in SEVERAL:
            if k > fewest:
                break
            row.pass_at[k] = pass_at_k(None, k, counts=counts, question_weights=weights)
            row.pass_hat[k] = pass_hat_k(None, k, counts=counts, question_weights=weights)
        rows.append(row)
    return rows


def most_apart(questions: Sequence[QuestionAccount]) -> list[QuestionAccount]:
    """Return the questions on which models differ most."""
    return sorted(questions, key=lambda one: -one.spread)[:_QUESTIONS]
