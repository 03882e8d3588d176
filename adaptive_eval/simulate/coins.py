"""Sources of simulated outcomes, and their truth.

A source of answers makes one *stream* per replicate. A stream hands out each model's categories step by step
along the trial sequence; what a model answers at a step does not depend on when it is asked or on what others
answered, so that runs with different policies and concurrencies can be compared outcome for outcome.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from adaptive_eval.core.spec import SessionSpec
from adaptive_eval.errors import UsageError
from scorio.arrays import Floats, Ints
from scorio.sequential.parts import RunSequence
from scorio.study import biased_coins

ENDLESS = int(np.iinfo(np.int64).max)
"""Limit of a model that never runs out of answers."""


class ReplicateAnswers(Protocol):
    """The answers of one replicate."""

    @property
    def limit(self) -> Ints:
        """Trials of each model before its answers run out; :data:`ENDLESS` without end."""

    def draw(self, models: Ints, start: int, stop: int) -> Ints:
        """Return the next categories of some models."""


@runtime_checkable
class RepeatedAnswers(Protocol):
    """Answers of one replicate some of which may be copies of earlier ones."""

    def copied(self, models: Ints, start: int, stop: int) -> Ints | None:
        """Return what tells the texts of possible copies apart, 0 for other answers; None without any."""


class AnswerSource(Protocol):
    """A source of simulated answers; it must be picklable to be used by several processes."""

    def truth(self, spec: SessionSpec) -> Floats:
        """Return the true overall score of each model, shape (L,), in score units."""

    def begin(
        self, spec: SessionSpec, run_sequence: RunSequence, seed: np.random.SeedSequence
    ) -> ReplicateAnswers:
        """Return the answers of one replicate."""


def asked(run_sequence: RunSequence, models: Ints, start: int, stop: int) -> tuple[Ints, Ints]:
    """Return questions and repeats of models at indices ``start .. stop-1``, shape (I, stop - start).

    Examples
    --------
    >>> questions, repeats = asked(RunSequence([4, 2], seed=None), np.array([0]), 0, 7)
    >>> questions.tolist(), repeats.tolist()
    ([[0, 4, 1, 2, 5, 3, 0]], [[0, 0, 0, 0, 0, 0, 1]])
    """
    questions, repeats = np.empty((2, models.size, stop - start), dtype=np.int64)
    tasks = run_sequence.task(start, stop)
    begins = run_sequence.local(start)
    ends = run_sequence.local(stop)
    first = 0
    for task, (sequence, begin, end) in enumerate(zip(run_sequence.sequences, begins, ends, strict=True)):
        here = tasks == task
        questions[:, here] = first + sequence.questions_of(models, begin, end)
        repeats[:, here] = sequence.repeats_of(models, begin, end)
        first += sequence.questions
    return questions, repeats


def to_score_units(spec: SessionSpec, unit: ArrayLike) -> Floats:
    """Return overall unit scores in the units that the run reports."""
    origin, scale = spec.scale
    return np.asarray(origin + scale * np.asarray(unit, dtype=np.float64))


@dataclass(frozen=True)
class BiasedCoins:
    """Models whose chances per question are drawn again for every replicate, with exactly the stated means.

    An answer is either the best or the worst category of the task's rubric.

    Parameters
    ----------
    means : tuple of float
        Mean chance of the best category per model, in [0, 1]; the same on every task.
    concentration : float
        How alike the questions are: chances follow Beta(κ·mean, κ·(1 − mean)). 8 is paper-like; below about
        2 most questions are nearly always or nearly never solved.
    correlation : float
        How much the same questions are hard for all models, in [0, 1].

    Raises
    ------
    UsageError
        If a value is out of range.

    Examples
    --------
    >>> from adaptive_eval.core.spec import ModelSpec, TaskSpec
    >>> questions = tuple(f"q{number}" for number in range(30))
    >>> spec = SessionSpec((ModelSpec("a"), ModelSpec("b")), (TaskSpec("t", questions),))
    >>> BiasedCoins((0.7, 0.4)).truth(spec)
    array([0.7, 0.4])
    """

    means: tuple[float, ...]
    concentration: float = 8.0
    correlation: float = 0.0

    def __post_init__(self) -> None:
        if not self.means or not all(0.0 <= mean <= 1.0 for mean in self.means):
            raise UsageError(f"means must be numbers in [0, 1], at least one, got {self.means}")
        if not 0.0 < self.concentration < np.inf:
            raise UsageError(f"concentration must be positive and finite, got {self.concentration}")
        if not 0.0 <= self.correlation <= 1.0:
            raise UsageError(f"correlation must lie in [0, 1], got {self.correlation}")

    def truth(self, spec: SessionSpec) -> Floats:
        """Return the stated means in score units."""
        _check_models(spec, len(self.means))
        return to_score_units(spec, self.means)

    def begin(
        self, spec: SessionSpec, run_sequence: RunSequence, seed: np.random.SeedSequence
    ) -> ReplicateAnswers:
        """Draw the chances of one replicate."""
        coins, trials = seed.spawn(2)
        chances = [
            biased_coins(
                self.means,
                size,
                seed=child,
                concentration=self.concentration,
                correlation=self.correlation,
            ).p
            for size, child in zip(run_sequence.sizes, coins.spawn(len(run_sequence.sizes)), strict=True)
        ]
        drawn = _settled(spec, np.concatenate(chances, axis=1), trials)
        return _coins(spec, drawn, run_sequence, trials)


@dataclass(frozen=True, eq=False)
class GivenChances:
    """Models whose chances are given outright.

    Parameters
    ----------
    chances : array_like of float, shape (L, Q) or (L, Q, C + 1)
        Chance of the best category of the rubric per model and question (all tasks' questions one after the
        other); or the chance of every category.

    Raises
    ------
    UsageError
        If the chances are no probabilities or, per category, do not sum to 1.

    Examples
    --------
    >>> import numpy as np
    >>> GivenChances(np.full((2, 30), 0.5)).chances.shape
    (2, 30)
    """

    chances: Floats

    def __post_init__(self) -> None:
        chances = np.array(self.chances, dtype=np.float64)
        if chances.ndim not in (2, 3) or chances.size == 0:
            raise UsageError(f"chances must have shape (L, Q) or (L, Q, C + 1), got {chances.shape}")
        if not np.all((chances >= 0.0) & (chances <= 1.0)):
            raise UsageError("chances must be probabilities, in [0, 1]")
        if chances.ndim == 3 and not np.allclose(chances.sum(axis=2), 1.0, atol=1e-9):
            raise UsageError("the chances of a model's categories on a question must sum to 1")
        chances.setflags(write=False)
        object.__setattr__(self, "chances", chances)

    def truth(self, spec: SessionSpec) -> Floats:
        """Return the expected scores in score units."""
        self._check(spec)
        overall = np.zeros(len(spec.models))
        for task, weight, here in zip(spec.tasks, spec.task_weights, spec.columns, strict=True):
            part = self.chances[:, here]
            expected = part
            if part.ndim != 2:
                expected = part @ task.unit_scores
            overall += weight * expected.mean(axis=1)
        return to_score_units(spec, overall)

    def settled(self, spec: SessionSpec, seed: np.random.SeedSequence) -> GivenChances:
        """Return the chances of one replicate, in which models at temperature 0 repeat their answers."""
        if not any(model.repeats for model in spec.models):
            return self
        if self.chances.ndim == 2:
            return GivenChances(_settled(spec, self.chances, seed))
        chances = self.chances.copy()
        for number, model in enumerate(spec.models):
            if model.repeats:
                chances[number] = _one_category(chances[number], seed, number)
        return GivenChances(chances)

    def begin(
        self, spec: SessionSpec, run_sequence: RunSequence, seed: np.random.SeedSequence
    ) -> ReplicateAnswers:
        """Return the answers of one replicate."""
        self._check(spec)
        chances = self.settled(spec, seed).chances
        if chances.ndim == 2:
            return _coins(spec, chances, run_sequence, seed)
        cumulative = np.cumsum(chances, axis=2)[:, :, :-1]
        categories = np.tile(np.arange(self.chances.shape[2]), (spec.questions, 1))
        return _Draws(cumulative, categories, run_sequence, seed)

    def _check(self, spec: SessionSpec) -> None:
        _check_models(spec, self.chances.shape[0])
        if self.chances.shape[1] != spec.questions:
            raise UsageError(
                f"chances are given for {self.chances.shape[1]} questions, the run has {spec.questions}"
            )
        if self.chances.ndim == 3:
            for task in spec.tasks:
                if len(task.weights) != self.chances.shape[2]:
                    raise UsageError(
                        f"chances are given for {self.chances.shape[2]} categories, "
                        f"task {task.name!r} has {len(task.weights)}"
                    )


@dataclass(frozen=True, eq=False)
class Fitted:
    """Earlier outcomes of one model on the questions of one task.

    Parameters
    ----------
    model, start : int
        Row of the model, and column of the task's first question.
    share : ndarray of float, shape (C + 1,)
        Mean chances over the questions.
    strength : float
        Of the Dirichlet prior of a question's chances around `share`.
    counts : ndarray of int64, shape (M, C + 1)
        How often each category was seen on each question.
    """

    model: int
    start: int
    share: Floats
    strength: float
    counts: Ints

    @property
    def expected(self) -> Floats:
        """The posterior mean chances, shape (M, C + 1)."""
        n = self.counts.sum(axis=1, keepdims=True)
        return np.asarray((self.strength * self.share + self.counts) / (self.strength + n))

    def draw(self, rng: np.random.Generator) -> Floats:
        """Draw the mean chances, and each question's chances around them, from their posterior."""
        n = self.counts.sum(axis=1)
        asked, s = n > 0, self.strength
        mean_n = n[asked].mean()
        # A question's mean score has variance m(1 - m)(1 + s/n)/(s + 1): so many single trials tell as much.
        worth = asked.sum() * mean_n * (s + 1.0) / (mean_n + s)
        share = _dirichlet(rng, worth * self.share, self.share)
        return _dirichlet(rng, s * share + self.counts, self.expected)


def _dirichlet(rng: np.random.Generator, weights: Floats, otherwise: Floats) -> Floats:
    """Draw chances along the last axis; `otherwise` if all weights are too small for it."""
    parts = rng.standard_gamma(weights)
    total = parts.sum(axis=-1, keepdims=True)
    return np.asarray(np.where(total > 0.0, parts / np.where(total > 0.0, total, 1.0), otherwise))


@dataclass(frozen=True, eq=False)
class LikelyChances(GivenChances):
    """Models whose chances are known from earlier outcomes: drawn from their posterior for every replicate.

    Parameters
    ----------
    chances : array_like of float, shape (L, Q, C + 1)
        Expected chance of every category.
    fitted : tuple of Fitted
        The outcomes behind the chances; other models and tasks are taken as given.
    """

    fitted: tuple[Fitted, ...] = ()

    def drawn(self, spec: SessionSpec, seed: np.random.SeedSequence) -> GivenChances:
        """Return chances of one replicate; a model at temperature 0 repeats what it answered."""
        chances = self.chances.copy()
        rng = np.random.default_rng((seed.generate_state(1)[0], 2))
        for one in self.fitted:
            here = chances[one.model, one.start : one.start + len(one.counts)]
            here[:] = one.draw(rng)
            if spec.models[one.model].repeats:
                known = one.counts.any(axis=1)
                here[known] = np.eye(here.shape[1])[one.counts[known].argmax(axis=1)]
        return GivenChances(chances)


def drawn_from(
    answers: AnswerSource, spec: SessionSpec, seed: np.random.SeedSequence
) -> tuple[AnswerSource, Floats | None]:
    """Return the answers of one replicate, and their truth if it differs between replicates."""
    drawn = answers
    if isinstance(answers, LikelyChances):
        drawn = answers.drawn(spec, seed)
    if not isinstance(drawn, GivenChances):
        return drawn, None
    settled = drawn.settled(spec, seed)
    return drawn, None if settled is answers else settled.truth(spec)


def _check_models(spec: SessionSpec, models: int) -> None:
    if models != len(spec.models):
        raise UsageError(f"answers are given for {models} models, the run has {len(spec.models)}")


def _settled(spec: SessionSpec, chances: Floats, seed: np.random.SeedSequence) -> Floats:
    """Return chances in which models at temperature 0 are right on a question always or never.

    As many questions of each task are right as the mean chance says, the likely ones more often.
    """
    if not any(model.repeats for model in spec.models):
        return chances
    rng = np.random.default_rng((seed.generate_state(1)[0], 1))
    settled = chances.copy()
    for number, model in enumerate(spec.models):
        if model.repeats:
            rank = rng.random(chances.shape[1]) - chances[number]
            settled[number] = 0.0
            for here in spec.columns:
                right = round(float(chances[number, here].sum()))
                order = here.start + np.argsort(rank[here], kind="stable")
                settled[number, order[:right]] = 1.0
    return settled


def _one_category(chances: Floats, seed: np.random.SeedSequence, model: int) -> Floats:
    """Return the chances of a model of which one category of each question is certain."""
    rng = np.random.default_rng((seed.generate_state(1)[0], 1, model))
    below = np.cumsum(chances, axis=1)[:, :-1]
    category = (rng.random((len(chances), 1)) >= below).sum(axis=1)
    return np.asarray(np.eye(chances.shape[1])[category])


def _coins(
    spec: SessionSpec, chances: Floats, run_sequence: RunSequence, seed: np.random.SeedSequence
) -> _Draws:
    """Return answers of the best category of every question, with these chances, or of its worst."""
    sizes = [len(task.questions) for task in spec.tasks]
    extremes = [(task.unit_scores.argmax(), task.unit_scores.argmin()) for task in spec.tasks]
    return _Draws(chances[:, :, None], np.repeat(extremes, sizes, axis=0), run_sequence, seed)


class _Draws:
    """Answers drawn with one stream of uniform numbers per model, read along its trial sequence.

    Parameters
    ----------
    cumulative : ndarray of float, shape (L, Q, C)
        Cumulative chances of the categories, without the last one's.
    categories : ndarray of int, shape (Q, C + 1)
        The categories of each question, in that order.
    """

    def __init__(
        self, cumulative: Floats, categories: Ints, run_sequence: RunSequence, seed: np.random.SeedSequence
    ) -> None:
        self._cumulative = cumulative
        self._categories = categories
        self._run_sequence = run_sequence
        self.limit = np.full(len(cumulative), ENDLESS)
        self._generators = [np.random.default_rng(child) for child in seed.spawn(len(cumulative))]

    def draw(self, models: Ints, start: int, stop: int) -> Ints:
        """See :class:`ReplicateAnswers`."""
        questions, _ = asked(self._run_sequence, models, start, stop)
        numbers = np.stack([self._generators[model].random(stop - start) for model in models.tolist()])
        place = np.zeros(questions.shape, dtype=np.int64)
        for column in range(self._cumulative.shape[2]):
            place += numbers >= self._cumulative[models[:, None], questions, column]
        return self._categories[questions, place]
