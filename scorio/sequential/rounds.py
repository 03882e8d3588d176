"""Own rounds: each model's trials go where its own answers vary, and its score stays unbiased.

The variance of a model's mean score is the sum of v/n over its questions, for every opponent, so
each model's own Neyman allocation ([1]_) serves all its pairs; if trials have a cost, a question is asked in
proportion to its standard deviation over the root of its cost ([2]_). After the first passes, which models
share, a model's trials come in rounds, each as long as everything before it. A round is laid out from the
model's outcomes up to a fixed step, asks every question at least once, and has one weight for all questions:
counts and weights are fixed by the past, so that the weighted mean of the rounds is unbiased at the end of
each for any model. Averaging a question's trials of all rounds would not be: counts that follow from
outcomes favour the questions whose first answers were extreme.

References
----------
.. [1] Neyman, "On the two different aspects of the representative method", Journal of the Royal Statistical
   Society 97 (1934).
.. [2] Cochran, "Sampling Techniques", third edition, Wiley (1977), section 5.5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scorio.arrays import AT_ONCE, Bools, Floats, Integers, Ints
from scorio.sequential.moments import CategoryScale, Mark, ScorePrior
from scorio.sequential.trial_sequence import TrialSequence

QUIET = 0.25
"""Share of the mean standard deviation that is added to every question's when a round is laid out: a question
that looks quiet must be shown to be."""


def round_weights(variance: Floats, cost: ArrayLike = 1.0) -> Floats:
    """Return the weight of each question in a round, from variance and cost of a trial; of shape (I, M)."""
    deviation = np.sqrt(variance)
    return np.asarray((deviation + QUIET * deviation.mean(axis=1, keepdims=True)) / np.sqrt(cost))


def round_share(prior: ScorePrior) -> Floats:
    """Return the variance of models' scores by a round over that by passes of as many trials.

    For a forecast: with questions as the prior has them (a Beta distribution), whose estimates one by one
    look too much alike while they have few trials.

    Parameters
    ----------
    prior : ScorePrior
        Of shape (I,).

    Returns
    -------
    ndarray of float, shape (I,)
        At most 1.

    Examples
    --------
    >>> one = np.ones(1)
    >>> round_share(ScorePrior(0.3 * one, 0.5 * one, 0.4 * one)).round(2)
    array([0.51])
    """
    from scipy.special import betaincinv

    mean = np.clip(prior.m1, 1e-3, 1.0 - 1e-3)[:, None]
    strength = prior.strength[:, None]
    p = betaincinv(mean * strength, (1.0 - mean) * strength, (np.arange(64) + 0.5) / 64)
    v = np.maximum(p * (1.0 - p), 1e-12)
    weight = round_weights(v)
    share = (v / weight).mean(axis=1) * weight.mean(axis=1) / v.mean(axis=1)
    return np.asarray(np.minimum(share, 1.0))


def round_times(weight: Floats, trials: int, least: int, start: float) -> Ints:
    """Return how often a round asks each question: in proportion to its weight, and at least once.

    Parameters
    ----------
    weight : ndarray of float, shape (M,)
        Positive.
    trials : int
        Trials of the round, a multiple of `least`, at least ``M * least``.
    least : int
        Every number is a multiple of it, and at least it.
    start : float
        Where in [0, 1) the systematic rounding begins: a number that is right on average.

    Returns
    -------
    ndarray of int64, shape (M,)
        Numbers that add up to `trials`.

    Examples
    --------
    >>> round_times(np.array([3.0, 1.0, 0.1, 0.1]), 8, 1, 0.0).tolist()
    [4, 2, 1, 1]
    """
    units = trials // least
    share, free = np.ones(weight.size), np.ones(weight.size, dtype=bool)
    while free.any():
        scale = (units - weight.size + free.sum()) / weight[free].sum()
        share = np.where(free, scale * weight, 1.0)
        low = free & (share < 1.0)
        if not low.any():
            break
        free &= ~low
    ends = np.floor(np.cumsum(share) + start + 1e-9)
    ends[-1] = units
    return np.asarray(least * np.diff(ends, prepend=0.0), dtype=np.int64)


def round_questions(order: Integers, times: Integers, least: int) -> Ints:
    """Return the questions of a round in the order in which they are asked.

    Every question first, in the order of the permutation, then the others spread evenly.

    Parameters
    ----------
    order : ndarray of int, shape (M,)
        The permutation.
    times : ndarray of int, shape (M,)
        How often each question is asked, by position in the permutation.
    least : int
        How many times it is asked in a row.

    Examples
    --------
    >>> round_questions(np.array([2, 0, 1]), np.array([1, 3, 2]), 1).tolist()
    [2, 0, 1, 0, 1, 0]
    """
    more = times // least - 1
    position = np.repeat(np.arange(order.size), more)
    turn = np.arange(position.size) - np.repeat(np.cumsum(more) - more, more)
    spread = np.argsort((turn + 0.5) / more[position], kind="stable")
    positions = np.concatenate([np.arange(order.size), position[spread]])
    return np.asarray(np.repeat(order[positions], least), dtype=np.int64)


@dataclass(slots=True)
class Snapshot:
    """The state of each model when a round begins; arrays of shape (L, M), and (L,) if it says so.

    `variance` is the one-trial variance from which the round was laid out, with the `prior` (L,) it was
    estimated with; `n`, `sx`, `sxx` are all trials so far. `score` holds the sum of the weighted round means,
    `weight` that of the weights, `square` that of weight²/trials, `lost` that of weight times the share of
    trials without an answer, `asked` that of the weights of rounds without any answer, too. `unit` (L,) is
    the variance of the part that has weight 1.
    """

    variance: Floats
    prior: ScorePrior
    unit: Floats
    n: Floats | Ints
    sx: Floats
    sxx: Floats
    score: Floats
    weight: Floats
    square: Floats
    lost: Floats
    asked: Floats

    @classmethod
    def blank(cls, models: int, questions: int) -> Snapshot:
        """Return a state in which no model has any trial."""
        ones = np.ones((models, questions))
        zeros = np.zeros((8, models, questions))
        return cls(ones, ScorePrior(*np.zeros((3, models))), np.ones(models), *zeros)

    def estimate(self, models: Integers) -> Floats:
        """Return the estimated scores of models' questions; 0 if there is none."""
        weight = self.weight[models]
        return self.score[models] / np.where(weight > 0.0, weight, 1.0)

    def answered(self, models: Integers) -> Bools:
        """Return which questions of models had been answered."""
        return self.weight[models] > 0.0

    def __getitem__(self, models: Integers) -> Snapshot:
        """Return the rows of some models."""
        return Snapshot(*(getattr(self, name)[models] for name in self.__slots__))

    def __setitem__(self, models: Integers, rows: Snapshot) -> None:
        """Replace the rows of some models."""
        for name in self.__slots__:
            getattr(self, name)[models] = getattr(rows, name)


class Rounds:
    """The rounds of all models on one task.

    Parameters
    ----------
    sequence : TrialSequence
        The task's trial sequence; rounds are laid out on it.
    scale : CategoryScale
        What the categories are worth.
    models : int
        Number of models L.

    Attributes
    ----------
    first : int
        Step at which the first round begins.
    """

    def __init__(self, sequence: TrialSequence, scale: CategoryScale, models: int) -> None:
        self.sequence = sequence
        self.scale = scale
        self.models = models
        self.first = sequence.shared
        size = sequence.questions
        self.begins = [self.first]
        # A round is laid out in the middle of the one before, so that nothing waits for it.
        self._due = [self.first - (self.first - size) // 2]
        self.snapshots: list[Snapshot] = []
        shape = (models, size)
        self._now = np.zeros((4, *shape))  # n, Σx, Σx² and lost trials of the present round
        self._next_variance = np.ones(shape)
        self._next_prior = ScorePrior(*np.ones((3, models)))

    def _extend_to(self, step: int) -> None:
        """Note the rounds that begin up to `step`, and the one after."""
        size, least = self.sequence.questions, self.sequence.samples_per_prompt
        while self.begins[-1] <= step:
            begin = self.begins[-1]
            length = size * least * -(-begin // (size * least))
            self.begins.append(begin + length)
            self._due.append(begin + length - length // 2)

    def number(self, step: int) -> int:
        """Return the number of the round that a step belongs to; -1 before the first."""
        self._extend_to(step)
        return int(np.searchsorted(self.begins, step, side="right")) - 1

    def since(self, start: int, stop: int) -> Ints:
        """Return how many steps each step lies after the beginning of its round; 0 before the first round."""
        self._extend_to(stop)
        steps = np.arange(start, stop)
        round_of = np.searchsorted(self.begins, steps, side="right") - 1
        return np.where(round_of < 0, 0, steps - np.array(self.begins)[round_of])

    def pieces(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Cut steps where a round begins or is laid out."""
        self._extend_to(stop)
        cuts = sorted(cut for cut in {*self.begins, *self._due} if start < cut < stop)
        return list(zip([start, *cuts], [*cuts, stop], strict=True))

    # ------------------------------------------------------------------ laying out

    def reach(
        self,
        models: Integers,
        step: int,
        counts: Integers,
        lost: Integers,
        cost: Callable[[Integers], Floats],
    ) -> None:
        """Lay out or begin the round that is due for models at `step`.

        Parameters
        ----------
        models : ndarray of int
            The models.
        step : int
            Steps of their trial sequences that are complete.
        counts : ndarray of int, shape (I, M, C + 1)
            Their trials in each category.
        lost : ndarray of int, shape (I, M)
            Their trials without an answer.
        cost : callable
            Returns the mean cost of a trial of each question of models.
        """
        self._extend_to(step)
        if step in self._due:
            self._lay_out(models, self._due.index(step), counts, cost(models))
        if step in self.begins:
            self._begin(models, self.begins.index(step), counts, lost)

    def _lay_out(self, models: Integers, number: int, counts: Integers, cost: Floats) -> None:
        self._extend_to(self.begins[number])
        sequence = self.sequence
        trials = self.begins[number + 1] - self.begins[number]
        n, sx, sxx = self.scale.sums(counts)
        prior = self.scale.prior(n, sx, sxx)
        variance = prior[:, None].variance(n, sx, sxx)
        self._next_variance[models], self._next_prior[models] = variance, prior
        weight = round_weights(variance, cost)[:, sequence.order]
        start = float(np.random.default_rng((sequence.seed or 0, number)).random())
        for model, of_model in zip(models.tolist(), weight, strict=True):
            if sequence.laid_out(model) > self.begins[number + 1]:
                continue  # while an answer was awaited, from those that were there
            times = round_times(of_model, trials, sequence.samples_per_prompt, start)
            sequence.extend_own(model, round_questions(sequence.order, times, sequence.samples_per_prompt))

    def _begin(self, models: Integers, number: int, counts: Integers, lost: Integers) -> None:
        if number == len(self.snapshots):
            self.snapshots.append(Snapshot.blank(self.models, self.sequence.questions))
        n, sx, sxx = self.scale.sums(counts)
        variance, prior = self._next_variance[models], self._next_prior[models]
        if number == 0:
            of_first = np.maximum(n, 1.0)
            score = sx / of_first
            weight = np.asarray(n > 0.0, np.float64)
            square = (n > 0.0) / of_first
            share = lost / np.maximum(n + lost, 1.0)
            asked = np.asarray(n + lost > 0.0, np.float64)
        else:
            old = self.snapshots[number - 1][models]
            r, sums, _, gone = self._now[:, models]
            many = np.maximum(r, 1.0)
            h = (old.unit / (old.variance / many).sum(axis=1))[:, None]
            score = old.score + h * sums / many
            share = old.lost + h * gone / np.maximum(r + gone, 1.0)
            weight = old.weight + h * (r > 0.0)
            asked = old.asked + h * (r + gone > 0.0)
            square = old.square + h * h * (r > 0.0) / many
            of_first = np.maximum(self.snapshots[0].n[models], 1.0)
        unit = (variance / of_first).sum(axis=1)
        rows = Snapshot(variance, prior, unit, n, sx, sxx, score, weight, square, share, asked)
        self.snapshots[number][models] = rows
        self._now[:, models] = 0.0

    # ------------------------------------------------------------------ reading

    def absorb(self, models: Integers, start: int, categories: Integers) -> Floats:
        """Take in the next trials of some models, all of one round.

        Returns
        -------
        ndarray of float, shape (9, I, K)
            The sums of :class:`~scorio.sequential.cells.PathBlock`, from `w` to `lost_score`; w is such that
            w over the number of seen questions is the variance of the mean estimate.
        """
        path, self._now[:, models] = self._follow(start, models, categories, self._now[:, models])
        return path

    def begun(self, step: int) -> Snapshot:
        """Return the state when the round of `step` began."""
        return self.snapshots[self.number(step)]

    def score(self, model: int, steps: int, categories: Integers) -> float:
        """Return the mean estimate of a model after `steps` steps of its sequence, all of them complete."""
        path = self.restricted(model, steps - 1, steps, categories)
        return float(path[5, 0] / max(path[4, 0], 1.0))

    def restricted(
        self, model: int, start: int, stop: int, categories: Integers, only: Bools | None = None
    ) -> Floats:
        """Return what :meth:`absorb` did of one model at steps of one round, over some questions only.

        Parameters
        ----------
        model, start, stop : int
            The model and its steps.
        categories : ndarray of int, shape (L, ...)
            All categories of all models.
        only : ndarray of bool, shape (M,), optional
            The questions; all by default.

        Returns
        -------
        ndarray of float, shape (9, stop − start)
        """
        begin = self.begins[self.number(start)]
        zero = np.zeros((4, 1, self.sequence.questions))
        path, _ = self._follow(begin, np.array([model]), categories[[model], begin:stop], zero, only)
        return path[:, 0, start - begin :]

    def _follow(
        self, start: int, models: Integers, categories: Integers, sums: Floats, only: Bools | None = None
    ) -> tuple[Floats, Floats]:
        """Return the path of some models from `start` on, and the sums of their present round at its end."""
        state = self.begun(start)[models]
        seen = state.weight > 0.0 if only is None else (state.weight > 0.0) & only
        questions = self.sequence.questions_of(models, start, start + categories.shape[1])
        estimate = np.where(seen, state.estimate(np.arange(models.size)), 0.0)
        count = seen.sum(axis=1, keepdims=True) * 1.0
        first = estimate.sum(axis=1, keepdims=True)
        centred = (estimate**2).sum(axis=1, keepdims=True) - first**2 / np.maximum(count, 1.0)
        loses = state.lost.any() or sums[3].any() or (categories == Mark.MISSING).any()
        width = max(1, AT_ONCE // max(seen.size, 1))
        pieces = []
        for begin in range(0, categories.shape[1], width):
            part = slice(begin, begin + width)
            category = categories[:, part]
            asked = questions[:, part, None] == np.arange(self.sequence.questions)
            r = _onward(sums[0], asked if category.min() >= 0 else asked & (category >= 0)[:, :, None])
            worth = self.scale.worth[category][:, :, None]
            s = _onward(sums[1], asked * worth)
            s2 = s if self.scale.binary else _onward(sums[2], asked * worth**2)
            gone = np.zeros_like(r)
            if loses:
                gone = _onward(sums[3], asked & (category == Mark.MISSING)[:, :, None])
            sums = np.stack([part[:, -1] for part in (r, s, s2, gone)])
            pieces.append(self._read(state, seen[:, None], r, s, s2, gone if loses else None))
        path = np.concatenate(pieces, axis=2)
        path[4] = count
        path[6] = centred + path[5] ** 2 / np.maximum(count, 1.0)
        return path, sums

    def _read(
        self, state: Snapshot, kept: Bools, r: Floats, s: Floats, s2: Floats, gone: Floats | None
    ) -> Floats:
        """Return the sums of a path; those of the questions seen and of squares are left open."""
        # A choice by a mask costs as much as ten sums, and mostly every question is kept.
        every = bool(kept.all())

        def of_kept(values: Floats, other: float = 0.0) -> Floats:
            if every:
                return values
            return np.where(kept, values, other)

        prior = state.prior[:, None, None]
        many, has = np.maximum(r, 1.0), r > 0.0
        h = (state.unit[:, None] / (state.variance[:, None] / many).sum(axis=2))[:, :, None]
        weight = of_kept(state.weight[:, None] + h * has, 1.0)
        estimate = of_kept((state.score[:, None] + h * s / many) / weight)
        share = of_kept((state.square[:, None] + h * h * has / many) / weight**2, 1.0)
        n, sx = state.n[:, None] + r, state.sx[:, None] + s
        sxx = sx if self.scale.binary else state.sxx[:, None] + s2
        v = prior.variance(n, sx, sxx)
        total = np.maximum(kept.sum(axis=2), 1)
        trials = of_kept(1.0 / share)
        scored = trials * estimate
        squared = scored if self.scale.binary else trials * of_kept(sxx / np.maximum(n, 1.0))
        uniform = self.scale.avg_variance(trials, scored, squared)
        path = np.zeros((9, *r.shape[:2]))
        path[0], path[1] = of_kept(v * share).sum(axis=2) / total, uniform.sum(axis=2) / total
        path[2] = of_kept(n * v).sum(axis=2)
        path[3] = of_kept(n - 1.0).sum(axis=2)  # what is kept was asked
        path[5] = estimate.sum(axis=2)
        if gone is not None:
            asked = r + gone
            whole = state.asked[:, None] + h * (asked > 0.0)
            lost = state.lost[:, None] + h * gone / np.maximum(asked, 1.0)
            lost = of_kept(lost / np.maximum(whole, 1e-300))
            path[7], path[8] = lost.sum(axis=2), (lost * estimate).sum(axis=2)
        return path


def _onward(start: Floats, change: NDArray[np.generic]) -> Floats:
    """Accumulate along steps from `start` (I, M), one by one, so that grouping changes no bit of it."""
    sums = np.empty((change.shape[0], change.shape[1] + 1, change.shape[2]))
    sums[:, 0], sums[:, 1:] = start, change
    return sums.cumsum(axis=1)[:, 1:]


class _Recorded:
    """A trial sequence whose rounds are on record: the questions of one model's trials in their order."""

    seed = None

    def __init__(self, questions: Ints, size: int, samples_per_prompt: int) -> None:
        self.recorded, self.questions, self.order = questions, size, np.arange(size)
        self.samples_per_prompt, self.shared = samples_per_prompt, (1 + samples_per_prompt) * size

    def laid_out(self, model: int) -> float:
        """Return how many steps are on record."""
        return float(self.recorded.size)

    def extend_own(self, model: int, questions: Ints) -> None:
        """Leave the questions of a round as they are recorded."""

    def questions_of(self, models: Integers, start: int, stop: int) -> Ints:
        """Return the recorded questions at some steps."""
        return self.recorded[None, start:stop]


def trial_weights(
    questions: Ints,
    categories: Ints,
    scores: Floats,
    size: int,
    *,
    samples_per_prompt: int | None = None,
    numbers: bool = False,
) -> Floats:
    """Return the weight of each trial of one model on one task in its mean score.

    Parameters
    ----------
    questions, categories : ndarray of int, shape (n,)
        The trials in the order of the trial sequence; a negative category for one without an answer.
    scores : ndarray of float, shape (C + 1,)
        Score of each category in [0, 1].
    size : int
        Number of questions of the task.
    samples_per_prompt : int, optional
        Answers to a request, of a task that is asked in rounds; None for one order of the questions.
    numbers : bool
        Whether scores are numbers, whose categories are the steps of their range.

    Returns
    -------
    ndarray of float, shape (n,)
        Weights that sum to 1 over the trials with an answer, so that their sum with the scores is the mean
        score; all 0 without any.

    Examples
    --------
    >>> trial_weights(np.array([0, 1, 1]), np.array([1, 0, 1]), np.array([0.0, 1.0]), 2).tolist()
    [0.5, 0.25, 0.25]
    """
    answered = categories >= 0
    part = np.zeros(questions.size, np.int64)  # the round of each trial; 0 before the first
    factors = np.ones((1, size))
    if samples_per_prompt is not None and questions.size > (1 + samples_per_prompt) * size:
        recorded = _Recorded(questions, size, samples_per_prompt)
        part, factors = _rounds_of(recorded, categories, scores, numbers=numbers)
    many = np.zeros(factors.shape)
    np.add.at(many, (part[answered], questions[answered]), 1.0)
    total = (factors * (many > 0.0)).sum(axis=0)
    begun = max(
        int(part.max(initial=0)), 1
    )  # a question that the present round found first does not count yet
    known = np.any(many[:begun] > 0.0, axis=0)
    weights = np.zeros(questions.size)
    at = part[answered], questions[answered]
    weights[answered] = factors[at] / (many[at] * total[at[1]]) * known[at[1]]
    return weights / max(int(known.sum()), 1)


def _rounds_of(
    recorded: _Recorded, categories: Ints, scores: Floats, *, numbers: bool
) -> tuple[Ints, Floats]:
    """Return the round of each trial, and how much the mean of each round counts, by question."""
    sequence: Any = recorded
    scale = CategoryScale(scores, moments=numbers)
    rounds, size = Rounds(sequence, scale, 1), recorded.questions
    model, counts = np.array([0]), np.zeros((1, size, scale.levels.size), scale.shares.dtype)
    lost = np.zeros((1, size), np.int64)
    for begin, end in rounds.pieces(0, categories.size):
        asked, given = recorded.recorded[begin:end], categories[begin:end]
        has = given >= 0
        if begin >= rounds.first:
            rounds.absorb(model, begin, given[None])
        np.add.at(counts[0], asked[has], scale.shares[given[has]])
        np.add.at(lost[0], asked[given == Mark.MISSING], 1)
        rounds.reach(model, end, counts, lost, lambda models: np.ones((models.size, size)))
    part = np.searchsorted(rounds.begins, np.arange(categories.size), side="right")
    factors = np.ones((int(part.max()) + 1, size))
    for number in range(1, len(factors)):
        state, inside = rounds.snapshots[number - 1], (part == number) & (categories >= 0)
        many = np.maximum(np.bincount(recorded.recorded[inside], minlength=size), 1.0)
        factors[number] = state.unit[0] / (state.variance[0] / many).sum()
    return part, factors
