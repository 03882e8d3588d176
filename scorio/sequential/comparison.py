"""Compare models on recorded or growing outcomes, with an error rate that holds at every look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import exp, log
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scorio.eval._arguments import credibility, positive
from scorio.eval._inputs import Missing, read_trials
from scorio.sequential._named import Named, plotting
from scorio.sequential.cells import Cells, unit_scores
from scorio.sequential.contrasts import ContrastBlock, PairReader, Target, score_block
from scorio.sequential.evidence import MIN_QUESTIONS, confidence_radius, log_evidence
from scorio.sequential.families import family as family_called
from scorio.sequential.families import rank_intervals
from scorio.sequential.rules import Anytime
from scorio.sequential.trial_sequence import TrialSequence

__all__ = ["Board", "Comparison", "Score", "board", "compare", "interval", "lay_out", "score"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Verdict = Literal["first", "second", "tie", "open"]
Order: TypeAlias = "int | Sequence[int] | NDArray[np.integer[Any]] | None"

_UNKNOWN = 1e6
"""Stands for the infinite variance of a single cluster."""
_BLOCK = 512
"""Trials of each model that are read at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Comparison(Named):
    """What the outcomes of two models say; arrays have one entry per trial of each model.

    Parameters
    ----------
    verdict : {'first', 'second', 'tie', 'open'}
        Which model is better; that they differ by less than the margin; or that nothing is decided.
    trials : int
        Trials of each model at which the verdict fell; all trials where it is open.
    e_value : float
        Largest evidence that the models differ, of all moments at which a call is allowed (ten questions and
        more); at least 1 / (1 - confidence) for a winner.
    difference, low, high : float
        First minus second, after all trials, with the confidence sequence's interval.
    confidence : float
        Level of verdict and intervals, however often one looks.
    equivalence : float or None
        Equivalence margin, on the scale of the weights.
    course_difference, course_low, course_high, course_log_e : ndarray
        The same after each trial.
    names : tuple of str
        The two models.
    """

    verdict: Verdict
    trials: int
    e_value: float
    difference: float
    low: float
    high: float
    confidence: float
    equivalence: float | None
    course_difference: Floats
    course_low: Floats
    course_high: Floats
    course_log_e: Floats
    names: tuple[str, str] = ("first", "second")

    def rows(self) -> Mapping[str, Any]:
        """Return the course, one row a trial."""
        return {
            "trials": np.arange(1, self.course_difference.size + 1),
            "difference": self.course_difference,
            "low": self.course_low,
            "high": self.course_high,
            "log_e": self.course_log_e,
        }

    def __str__(self) -> str:
        """Say verdict and interval in two lines."""
        a, b = self.names
        said = {
            "first": f"{a} is better than {b}",
            "second": f"{b} is better than {a}",
            "tie": f"{a} and {b} differ by less than {self.equivalence}",
            "open": f"{a} and {b}: no verdict yet",
        }[self.verdict]
        interval = f"{self.difference:+.4f} [{self.low:+.4f}, {self.high:+.4f}]"
        return (
            f"{said} (after {self.trials} trials of each model; largest e-value {self.e_value:.4g})\n"
            f"{a} - {b}: {interval} at {100 * self.confidence:g} %, valid at every look"
        )

    def plot(self, axes: Any = None) -> Any:
        """Draw difference and confidence sequence against the trials; needs matplotlib."""
        axes = plotting(axes)
        trials = np.arange(1, self.course_difference.size + 1)
        shown = np.isfinite(self.course_low)
        axes.fill_between(trials[shown], self.course_low[shown], self.course_high[shown], alpha=0.25)
        axes.plot(trials[shown], self.course_difference[shown])
        axes.axhline(0.0, linewidth=0.8)
        if self.verdict != "open":
            axes.axvline(self.trials, linestyle="--", linewidth=0.8)
        axes.set(xlabel="trials of each model", ylabel=f"{self.names[0]} - {self.names[1]}")
        return axes


@dataclass(frozen=True, slots=True, eq=False)
class Board(Named):
    """What the outcomes of several models say about their order.

    Parameters
    ----------
    names : tuple of str
        The models.
    scores, low, high : ndarray, shape (L,)
        Mean scores after all trials; each interval holds on its own at every look.
    ranks : tuple of (int, int)
        Interval of each model's rank, all at once at the level of the family.
    verdicts : dict
        ``"i > j"`` names to the trials at which winner i was declared; ``"i = j"`` for ties.
    open : tuple of (str, str)
        Pairs without a verdict.
    difference : ndarray, shape (L, L)
        Row minus column, after all trials.
    confidence, family, equivalence
        As given.
    """

    names: tuple[str, ...]
    scores: Floats
    low: Floats
    high: Floats
    ranks: tuple[tuple[int, int], ...]
    verdicts: dict[str, int]
    open: tuple[tuple[str, str], ...]
    difference: Floats
    confidence: float
    family: str
    equivalence: float | None

    def rows(self) -> Mapping[str, Any]:
        """Return one row a model, the best first."""
        order = np.argsort(-self.scores, kind="stable")
        best, worst = np.array(self.ranks).T
        return {
            "model": [self.names[model] for model in order],
            "score": self.scores[order],
            "low": self.low[order],
            "high": self.high[order],
            "best_rank": best[order],
            "worst_rank": worst[order],
        }

    def __str__(self) -> str:
        """Show the models, the best first, with intervals of their scores and ranks."""
        width = max(len(name) for name in (*self.names, "model"))
        lines = [f"{'model':<{width}}   score  interval            rank"]
        for name, *values, best, worst in zip(*self.rows().values(), strict=True):
            score, low, high = values
            rank = f"{best}" if best == worst else f"{best}-{worst}"
            lines.append(f"{name:<{width}}  {score:6.4f}  [{low:.4f}, {high:.4f}]    {rank}")
        lines.append(
            f"{len(self.open)} of {len(self.names) * (len(self.names) - 1) // 2} pairs are open; "
            f"{self.family} at {100 * self.confidence:g} %, valid at every look"
        )
        return "\n".join(lines)

    def plot(self, axes: Any = None) -> Any:
        """Draw the scores with their intervals, the best on top; needs matplotlib."""
        axes = plotting(axes)
        table = self.rows()
        at = np.arange(len(self.names))[::-1]
        score = table["score"]
        axes.errorbar(score, at, xerr=[score - table["low"], table["high"] - score], fmt="o", capsize=3)
        axes.set_yticks(at, table["model"])
        axes.set_xlabel("mean score")
        return axes


@dataclass(frozen=True, slots=True, eq=False)
class Score(Named):
    """One model's mean score with its confidence sequence.

    Parameters
    ----------
    score, low, high : float
        After all trials; the interval holds at every look.
    confidence : float
        Level of the interval.
    against : float or None
        The number that the score is compared with.
    verdict : {'above', 'below', 'open'} or None
        Whether the interval lies above or below `against`; None without it.
    trials : int
        Trials at which the verdict fell; all trials where it is open.
    """

    score: float
    low: float
    high: float
    confidence: float
    against: float | None
    verdict: str | None
    trials: int

    def __str__(self) -> str:
        """Say score, interval and verdict in a line."""
        said = "" if self.verdict is None else f"; {self.verdict} {self.against} (after {self.trials} trials)"
        interval = f"{self.score:.4f} [{self.low:.4f}, {self.high:.4f}]"
        return f"{interval} at {100 * self.confidence:g} %, valid at every look{said}"


def compare(
    A: ArrayLike,
    B: ArrayLike,
    *,
    equivalence: float | None = None,
    confidence: float = 0.95,
    target: Target = "benchmark",
    clusters: ArrayLike | None = None,
    order: Order = 0,
    weights: ArrayLike | None = None,
    missing: Missing = None,
    names: tuple[str, str] = ("first", "second"),
) -> Comparison:
    """Compare two models trial by trial, with a promise that holds at whatever moment one looks.

    The outcomes are read as if they had come one after another: every question once in a random order, then
    again. A winner is declared at the first trial at which the e-value of a difference reaches
    1 / (1 - confidence), a tie at the first at which a difference of `equivalence` or more is refuted. Of two
    equal models at most a share 1 - confidence of all comparisons ever declares a winner.

    Parameters
    ----------
    A, B : array_like of int, shape (M, N)
        Outcomes 0 and 1 (or categories, with `weights`) of two models on the same M questions in N trials.
    equivalence : float, optional
        Differences below this are practical ties, on the scale of the weights; by default there are none.
    confidence : float
        In (0, 1).
    target : {'benchmark', 'population'}
        Whether the M questions are the target, or a sample of the questions that matter.
    clusters : array_like, shape (M,), optional
        Group of each question, such as its source text; only with ``target="population"``.
    order : int, None or permutation of 0..M-1
        Order of the questions: drawn with this seed, as given (None), or explicit. Where the rows are sorted
        by topic or difficulty, an order as given breaks the promise.
    weights : array_like, shape (C + 1,), optional
        Reward of each category; default 0 and 1.
    missing : number or array_like of bool, optional
        Value that marks trials that were not made, or their mask; such trials are left out for both models.
    names : (str, str)
        Names of the models, for printing.

    Returns
    -------
    Comparison
        Verdict, where it fell, difference with confidence sequence, and the course of all these.

    Raises
    ------
    ValueError
        If shapes differ or an argument is out of range; the message names it and the value.

    Notes
    -----
    In the first pass over binary outcomes the e-value is a theorem, later it is asymptotic; measured, at most
    about 4 % of equal pairs get a winner at 95 %. A fixed-length test (:func:`paired_difference`) needs
    fewer trials where their number is fixed in advance and the result is looked at once.

    References
    ----------
    .. [1] Howard, Ramdas, McAuliffe and Sekhon (2021). Time-uniform, nonparametric, nonasymptotic confidence
       sequences. Annals of Statistics 49.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> A, B = rng.random((200, 2)) < 0.8, rng.random((200, 2)) < 0.6
    >>> result = compare(A, B, names=("new", "old"))
    >>> result.verdict, result.trials
    ('first', 103)
    >>> print(result)
    new is better than old (after 103 trials of each model; largest e-value 5.812e+10)
    new - old: +0.2325 [+0.1340, +0.3310] at 95 %, valid at every look
    """
    scores, _, scale = read_weights(weights)
    trials = np.stack([read_trials(name, R, scores.size, missing) for name, R in (("A", A), ("B", B))])
    alpha, margin = 1.0 - credibility(confidence), read_margin(equivalence, scale)
    sequence, categories = lay_out(trials, order)
    cells = Cells(sequence, scores, 2)
    cells.absorb(np.arange(2), categories)
    steps = categories.shape[1]
    block = PairReader(cells, [0], [1], target, clusters).read(np.arange(1), steps)
    rule = Anytime(alpha, margin)
    evidence = rule.statistic(block, sequence.complete(0, steps))[0]
    won, tied = evidence >= log(1.0 / alpha), rule.tied(block)[0]
    called = np.flatnonzero(won | tied)
    at = int(called[0]) if called.size else steps - 1
    verdict: Verdict = "open"
    if called.size:
        verdict = "tie" if not won[at] else "first" if block.difference[0, at] > 0 else "second"
    low, high = interval(block, alpha, margin)
    log_e = log_evidence(block.difference, block.variance, margin)[0]
    largest = evidence.max() if np.isfinite(evidence).any() else log_e[-1]
    return Comparison(
        verdict=verdict,
        trials=at + 1,
        e_value=exp(min(float(largest), 700.0)),
        difference=scale * float(block.difference[0, -1]),
        low=scale * float(low[0, -1]),
        high=scale * float(high[0, -1]),
        confidence=confidence,
        equivalence=equivalence,
        course_difference=scale * block.difference[0],
        course_low=scale * low[0],
        course_high=scale * high[0],
        course_log_e=log_e,
        names=names,
    )


def board(
    R: ArrayLike | Mapping[str, ArrayLike],
    *,
    family: str = "holm",
    equivalence: float | None = None,
    confidence: float = 0.95,
    target: Target = "benchmark",
    clusters: ArrayLike | None = None,
    order: Order = 0,
    weights: ArrayLike | None = None,
    missing: Missing = None,
    names: Sequence[str] | None = None,
) -> Board:
    """Compare all pairs of several models, with one error rate for the whole board at every look.

    Parameters
    ----------
    R : array_like of int, shape (L, M, N), or mapping of names to matrices (M, N)
        Outcomes of L models on the same M questions. The labels of the first axis of an xarray.DataArray and
        the keys of a mapping become the names.
    family : {'holm', 'ebh', 'pair'}
        What `confidence` promises: no wrong winner on the board, a small expected share of wrong winners, or
        no wrong winner in a given pair.
    equivalence, confidence, target, clusters, order, weights, missing
        As in :func:`compare`. Models with unequal numbers of trials are padded and `missing` marks the rest.
    names : sequence of str, optional
        Names of the models.

    Returns
    -------
    Board
        Rank intervals, scores with intervals, declared winners and ties, and the open pairs.

    Raises
    ------
    ValueError
        If an argument is malformed; the message names it and the value.

    Examples
    --------
    >>> rng = np.random.default_rng(2)
    >>> chances = {"small": 0.3, "medium": 0.5, "large": 0.8}
    >>> outcomes = {name: rng.random((300, 2)) < p for name, p in chances.items()}
    >>> print(board(outcomes))
    model    score  interval            rank
    large   0.8050  [0.7549, 0.8551]    1
    medium  0.4883  [0.4252, 0.5515]    2
    small   0.3217  [0.2637, 0.3796]    3
    0 of 3 pairs are open; holm at 95 %, valid at every look
    """
    labels, tensor = _named_models(R, names)
    scores, lowest, scale = read_weights(weights)
    trials = read_trials("R", tensor, scores.size, missing, models=True)
    models = len(trials)
    if models < 2:
        raise ValueError(f"R must have at least two models; got shape {trials.shape}")
    if len(labels) != models:
        raise ValueError(f"names must have one name a model, {models}; got {len(labels)}")
    alpha, margin = 1.0 - credibility(confidence), read_margin(equivalence, scale)
    control = family_called(family)
    sequence, categories = lay_out(trials, order)
    cells = Cells(sequence, scores, models)
    pairs = np.array(list(combinations(range(models), 2)))
    reader = PairReader(cells, pairs[:, 0], pairs[:, 1], target, clusters)
    rule = Anytime(alpha, margin)
    peak = np.full(len(pairs), -np.inf)
    state = np.zeros(len(pairs), dtype=np.int64)  # 1, -1: winner; 2: tie
    frozen, fell = np.full(len(pairs), -np.inf), np.zeros(len(pairs), dtype=np.int64)
    for start in range(0, categories.shape[1], _BLOCK):
        stop = min(start + _BLOCK, categories.shape[1])
        cells.absorb(np.arange(models), categories[:, start:stop])
        block = reader.read(np.arange(len(pairs)), stop)
        cells.forget(stop - 1)
        evidence = rule.statistic(block, sequence.complete(start, stop))
        tied = rule.tied(block)
        counted = np.maximum.accumulate(np.c_[peak, evidence], axis=1)[:, 1:] if control.peak else evidence
        peak = counted[:, -1] if control.peak else peak
        column = 0
        while (state == 0).any() and column < stop - start:
            rows = np.flatnonzero(state == 0)
            won = control.winners(counted[rows, column:], frozen[np.abs(state) == 1], len(pairs), alpha)
            events = won | tied[rows, column:]
            if not events.any():
                break
            at = int(np.argmax(events.any(axis=0)))
            column += at
            for row, wins in zip(rows[events[:, at]], won[events[:, at], at], strict=True):
                sign = 1 if block.difference[row, column] > 0 else -1
                state[row] = sign if wins else 2
                frozen[row], fell[row] = counted[row, column], start + column + 1
    means = score_block(cells.latest(), sequence.questions, target)
    low, high = interval(means, alpha)
    difference = np.zeros((models, models))
    difference[pairs[:, 0], pairs[:, 1]] = scale * block.difference[:, -1]
    better, verdicts, undecided = [], {}, []
    for pair in np.argsort(fell, kind="stable").tolist():
        i, j = (pairs[pair, ::-1] if state[pair] == -1 else pairs[pair]).tolist()
        if state[pair] == 0:
            undecided.append((labels[i], labels[j]))
            continue
        verdicts[f"{labels[i]} {'=' if state[pair] == 2 else '>'} {labels[j]}"] = int(fell[pair])
        if state[pair] != 2:
            better.append((i, j))
    return Board(
        names=labels,
        scores=lowest + scale * means.difference[:, 0],
        low=lowest + scale * np.clip(low[:, 0], 0.0, 1.0),
        high=lowest + scale * np.clip(high[:, 0], 0.0, 1.0),
        ranks=tuple(rank_intervals(models, better)),
        verdicts=verdicts,
        open=tuple(undecided),
        difference=difference - difference.T,
        confidence=confidence,
        family=family,
        equivalence=equivalence,
    )


def score(
    A: ArrayLike,
    *,
    against: float | None = None,
    confidence: float = 0.95,
    target: Target = "benchmark",
    order: Order = 0,
    weights: ArrayLike | None = None,
    missing: Missing = None,
) -> Score:
    """Estimate one model's mean score with an interval that holds at every look.

    Parameters
    ----------
    A : array_like of int, shape (M, N)
        Outcomes 0 and 1, or categories with `weights`.
    against : float, optional
        A number on the scale of the weights; the verdict says when the interval left it.
    confidence, target, order, weights, missing
        As in :func:`compare`.

    Returns
    -------
    Score

    Raises
    ------
    ValueError
        If an argument is malformed; the message names it and the value.

    Examples
    --------
    >>> rng = np.random.default_rng(3)
    >>> print(score(rng.random((400, 1)) < 0.7, against=0.5))
    0.7050 [0.6325, 0.7775] at 95 %, valid at every look; above 0.5 (after 115 trials)
    """
    scores, lowest, scale = read_weights(weights)
    alpha = 1.0 - credibility(confidence)
    sequence, categories = lay_out(read_trials("A", A, scores.size, missing)[None], order)
    cells = Cells(sequence, scores, 1)
    cells.absorb(np.arange(1), categories)
    steps = categories.shape[1]
    path = score_block(cells.path(np.arange(1), 0, steps), sequence.questions, target)
    low, high = interval(path, alpha)
    verdict, trials = None, steps
    if against is not None:
        level = (against - lowest) / scale
        above, below = low[0] > level, high[0] < level
        left = np.flatnonzero(above | below)
        verdict = "open" if not left.size else "above" if above[left[0]] else "below"
        trials = int(left[0]) + 1 if left.size else steps
    return Score(
        score=lowest + scale * float(path.difference[0, -1]),
        low=lowest + scale * max(float(low[0, -1]), 0.0),
        high=lowest + scale * min(float(high[0, -1]), 1.0),
        confidence=confidence,
        against=against,
        verdict=verdict,
        trials=trials,
    )


def sequence_of(order: Order, questions: int) -> TrialSequence:
    """Return the trial sequence with the questions in the given order, or drawn with it as seed."""
    if order is None:
        return TrialSequence(np.arange(questions))
    if isinstance(order, (int, np.integer)):
        return TrialSequence(np.random.default_rng(int(order)).permutation(questions))
    permutation = np.asarray(order)
    if permutation.shape != (questions,) or not np.array_equal(np.sort(permutation), np.arange(questions)):
        raise ValueError(f"order must be None, a seed or a permutation of 0..{questions - 1}; got {order!r}")
    return TrialSequence(permutation)


def lay_out(trials: Integers, order: Order) -> tuple[TrialSequence, Integers]:
    """Return the trial sequence of recorded trials (L, M, N), and the categories along it, shape (L, M N)."""
    _, questions, repeats = trials.shape
    sequence = sequence_of(order, questions)
    if repeats == 1:
        # The calibration repeats of the usual sequence need a second trial.
        sequence.endless = False
        sequence.extend(np.arange(questions))
    steps = questions * repeats
    return sequence, trials[:, sequence.question(0, steps), sequence.repeats(0, steps)]


def interval(block: ContrastBlock, alpha: float, margin: float | None = None) -> tuple[Floats, Floats]:
    """Return the confidence sequence of a block's estimates; unbounded before the tenth question."""
    variance = np.minimum(block.variance, _UNKNOWN)
    radius = np.where(block.questions >= MIN_QUESTIONS, confidence_radius(variance, alpha, margin), np.inf)
    return block.difference - radius, block.difference + radius


def read_weights(weights: ArrayLike | None) -> tuple[Floats, float, float]:
    """Return the categories' unit scores, the lowest weight and the weights' range."""
    if weights is None:
        return np.array([0.0, 1.0]), 0.0, 1.0
    given = np.asarray(weights)
    if given.dtype.kind not in "biuf":
        raise ValueError(f"weights must be numbers; got {weights!r}")
    numbers = given.astype(np.float64)
    return unit_scores(numbers), float(numbers.min()), float(np.ptp(numbers))


def read_margin(equivalence: float | None, scale: float) -> float | None:
    return None if equivalence is None else positive("equivalence", equivalence) / scale


def _named_models(R: Any, names: Sequence[str] | None) -> tuple[tuple[str, ...], Any]:
    """Return the models' names and the tensor."""
    labels: Any = names
    if isinstance(R, Mapping):
        labels = names or list(R)
        try:
            R = np.stack([np.asarray(matrix) for matrix in R.values()])
        except ValueError as error:
            raise ValueError(
                f"R must have matrices of one shape; pad them and mark missing trials ({error})"
            ) from error
    elif labels is None and hasattr(R, "coords") and hasattr(R, "dims") and R.dims[0] in R.coords:
        labels = R.coords[R.dims[0]].values.tolist()
    if labels is None:
        labels = [f"model {number}" for number in range(len(np.asarray(R)))]
    return tuple(str(label) for label in labels), R
