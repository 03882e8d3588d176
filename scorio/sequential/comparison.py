"""Compare two models, or one with a number, with an error rate that holds at every look."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike

from scorio._arguments import credibility, finite
from scorio._named import Named, Outcomes, name_of, plotting
from scorio.arrays import Floats, Ints
from scorio.eval._inputs import Missing
from scorio.sequential._recorded import Order, Range, ScoreScale, lay_out, read_each, read_models
from scorio.sequential.boards import Board, strictest_level
from scorio.sequential.contrasts import Contrasts, Target
from scorio.sequential.courses import interval
from scorio.sequential.fold import Course, Piece, VerdictCode
from scorio.sequential.rules import Anytime
from scorio.sequential.trial_sequence import TrialSequence

Verdict = Literal["first", "second", "tie", "open"]

_PLACES = ("first", "second")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comparison(Named):
    """Results of two models; arrays have one entry per trial of each model.

    Parameters
    ----------
    verdict : {'first', 'second', 'tie', 'open'}
        Which model is better; that they differ by less than the margin; or that nothing is decided.
    trials : int
        Trials of each model at which the verdict fell; all trials if it is open.
    e_value : float
        Largest evidence that the models differ, of all moments from the tenth trial of each model on; at
        least 1 / (1 - confidence) for a winner. It is guarded down to this level, so no more is given: this
        value says that the e-value is as large or larger.
    p_value : float
        Always-valid p-value of no difference, 1 / e_value or 1, however often one looks; 1 - confidence says
        that it is as small or smaller.
    difference, low, high : float
        First minus second, after all trials, with the confidence sequence's interval.
    confidence : float
        Level of verdict and intervals, however often one looks.
    equivalence : float or None
        Equivalence margin, on the scale of the weights.
    course_difference, course_low, course_high, course_log_e : ndarray
        The same after each trial. The natural logarithm of the e-value is given up to that of
        1 / (1 - confidence), which says that it is as large or larger.
    names : tuple of str
        The two models.
    reading : str
        How the outcomes were read: as questions x trials, or as streams.
    """

    verdict: Verdict
    trials: int
    e_value: float
    difference: float
    low: float
    high: float
    confidence: float
    equivalence: float | None
    p_value: float
    course_difference: Floats
    course_low: Floats
    course_high: Floats
    course_log_e: Floats
    names: tuple[str, str]
    reading: str

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
        largest = _at_least(self.e_value, self.confidence)
        return (
            f"{said} (after {self.trials} trials of each model; largest e-value {largest})\n"
            f"{a} - {b}: {interval} at {100 * self.confidence:g} %, valid at every look; {self.reading}"
        )

    def plot(self, axes: Any = None) -> Any:
        """Draw difference and confidence sequence against the trials; needs matplotlib."""
        axes = _with_course(axes, self.course_difference, self.course_low, self.course_high)
        axes.axhline(0.0, linewidth=0.8)
        if self.verdict != "open":
            axes.axvline(self.trials, linestyle="--", linewidth=0.8)
        axes.set(xlabel="trials of each model", ylabel=f"{self.names[0]} - {self.names[1]}")
        return axes


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ModelScore(Named):
    """One model's mean score with its confidence sequence.

    Parameters
    ----------
    score, low, high : float
        After all trials; the interval holds at every look. Before the first trial the score is NaN.
    confidence : float
        Level of the interval.
    against : float or None
        The number that the score is compared with.
    verdict : {'above', 'below', 'open'} or None
        Whether the score is above or below `against`; None without it.
    trials : int
        Trials at which the verdict fell; all trials if it is open.
    e_value : float or None
        Largest evidence that the score is not `against`; at least 1 / (1 - confidence) for a verdict.
    name : str or None
        The model.
    p_value : float or None
        Always-valid p-value of a score of `against`: 1 / e_value or 1; 1 - confidence says that it is as
        small or smaller.
    course_score, course_low, course_high : ndarray
        Score and interval after each trial.
    reading : str
        How the outcomes were read: as questions x trials, or as a stream.
    """

    score: float
    low: float
    high: float
    confidence: float
    against: float | None
    verdict: str | None
    trials: int
    e_value: float | None
    name: str | None
    p_value: float | None
    course_score: Floats
    course_low: Floats
    course_high: Floats
    reading: str

    def rows(self) -> Mapping[str, Any]:
        """Return the course, one row a trial."""
        return {
            "trials": np.arange(1, self.course_score.size + 1),
            "score": self.course_score,
            "low": self.course_low,
            "high": self.course_high,
        }

    def __str__(self) -> str:
        """Say score, interval and verdict in a line."""
        said = ""
        if self.verdict is not None:
            said = f"; {self.verdict} {self.against} (after {self.trials} trials)"
        interval = f"{self.score:.4f} [{self.low:.4f}, {self.high:.4f}]"
        name = ""
        if self.name is not None:
            name = f"{self.name}: "
        return f"{name}{interval} at {100 * self.confidence:g} %, valid at every look{said}; {self.reading}"

    def plot(self, axes: Any = None) -> Any:
        """Draw the score and its confidence sequence against the trials; needs matplotlib."""
        axes = _with_course(axes, self.course_score, self.course_low, self.course_high)
        if self.against is not None:
            axes.axhline(self.against, linewidth=0.8)
        if self.verdict in ("above", "below"):
            axes.axvline(self.trials, linestyle="--", linewidth=0.8)
        axes.set(xlabel="trials", ylabel=self.name or "score")
        return axes


def _with_course(axes: Any, course: Floats, low: Floats, high: Floats) -> Any:
    """Return axes with an estimate and its confidence sequence against the trials."""
    axes = plotting(axes)
    shown = np.flatnonzero(np.isfinite(low))
    axes.fill_between(shown + 1, low[shown], high[shown], alpha=0.25)
    axes.plot(shown + 1, course[shown])
    return axes


def compare(
    A: Outcomes,
    B: ArrayLike | None = None,
    *,
    equivalence: float | None = None,
    confidence: float = 0.95,
    target: Target = "benchmark",
    clusters: ArrayLike | None = None,
    order: Order = 0,
    weights: ArrayLike | None = None,
    range: Range = None,
    missing: Missing = None,
    names: Sequence[str] | None = None,
) -> Comparison:
    """Compare two models trial by trial, with an error rate that holds at any time.

    The outcomes are read as if they had come one after another: every question once in a random order, then
    again. A winner is declared at the first trial at which the e-value of a difference reaches
    1 / (1 - confidence), a tie at the first at which a difference of `equivalence` or more is refuted. Of two
    equal models at most a share 1 - confidence of all comparisons ever declares a winner.

    Parameters
    ----------
    A, B : array_like, shape (M, N) or (N,)
        Outcomes of two models on the same M questions in N trials: 0 and 1, scores between 0 and 1 (or in
        `range`), or categories with `weights`. Vectors are streams of trials that repeat no question, read in
        their order as far as both go, with target 'population'. Without `B`, `A` has both models: a mapping
        of names to either, an array of shape (2, M, N), or a frame with a model a column and a question a
        row. The result's `reading` says how they were read.
    equivalence : float, optional
        Differences below this are practical ties, on the scale of the weights; by default there are none.
    confidence : float
        In (0, 1).
    target : {'benchmark', 'population'}
        Whether the M questions are the target, or a sample of the questions that matter.
    clusters : array_like, shape (M,), optional
        Group of each question, such as its source text; only with ``target="population"``.
    order : int, None or permutation of 0..M-1
        Order of the questions: drawn with this seed, as given (None), or explicit. If the rows are sorted
        by topic or difficulty, an order as given breaks the promise.
    weights : array_like, shape (C + 1,), optional
        Reward of each category; default 0 and 1.
    range : (float, float), optional
        The least and the greatest score that is possible, for scores that are numbers; default 0 and 1.
    missing : number or array_like of bool, optional
        Value that marks missing trials, such as NaN, or their mask. Missing at a model's end, they were not
        made; others were lost, may have been anything, and widen the interval.
    names : (str, str), optional
        Names of the models, for printing; by default the keys or labels of the outcomes.

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
    For streams of right or wrong trials, and for the part of the evidence that is bet, the e-value is a
    theorem; for the rest it is asymptotic and checked by simulation; measured, 0.7 to
    4.3 % of equal pairs get a winner at 95 %. A fixed-length test (:func:`paired_difference`) needs
    fewer trials if their number is fixed in advance and the result is looked at once.

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
    ('first', 17)
    >>> print(result)
    new is better than old (after 17 trials of each model; largest e-value ≥ 20)
    new - old: +0.2325 [+0.1330, +0.3320] at 95 %, valid at every look; 200 questions x 2 trials

    Two streams of scores, the second longer:

    >>> compare(rng.beta(8, 2, 300), rng.beta(4, 4, 500)).verdict
    'first'
    """
    if B is None:
        given = read_models(A, weights, missing, range)
        labels = names or given.names or _PLACES
    else:
        given = read_each({"A": cast(ArrayLike, A), "B": B}, weights, missing, range)
        labels = names or (name_of(A) or _PLACES[0], name_of(B) or _PLACES[1])
    if len(given.models) != 2 or len(labels) != 2:
        raise ValueError(f"A and names must be of two models; got {len(given.models)} and {len(labels)}")
    scale = given.scale
    alpha = 1.0 - credibility(confidence)
    margin = scale.margin(equivalence)
    sequence, categories, made = lay_out(given.trials(), given.order(order))
    board = Board.of_pairs(
        sequence,
        2,
        Anytime(alpha, margin),
        "pair",
        scale.scores,
        given.target(target),
        clusters,
        numbers=scale.numbers,
    )
    read = _Reading(board, categories, made)
    verdicts: dict[int, Verdict] = {
        VerdictCode.BETTER: "first",
        VerdictCode.WORSE: "second",
        VerdictCode.TIE: "tie",
    }
    low, high, difference = *read.interval(), read.course.difference[0]
    return Comparison(
        verdict=verdicts.get(read.verdict, "open"),
        trials=read.trials,
        e_value=read.e_value,
        difference=scale.width * float(difference[-1]),
        low=scale.width * float(low[-1]),
        high=scale.width * float(high[-1]),
        confidence=confidence,
        equivalence=equivalence,
        p_value=read.p_value,
        course_difference=scale.width * difference,
        course_low=scale.width * low,
        course_high=scale.width * high,
        course_log_e=read.log_e,
        names=(str(labels[0]), str(labels[1])),
        reading=given.reading,
    )


def score(
    A: ArrayLike,
    *,
    against: float | None = None,
    confidence: float = 0.95,
    target: Target = "benchmark",
    order: Order = 0,
    weights: ArrayLike | None = None,
    range: Range = None,
    missing: Missing = None,
    name: str | None = None,
) -> ModelScore:
    """Estimate one model's mean score with an interval that holds at every look.

    Parameters
    ----------
    A : array_like, shape (M, N) or (N,)
        Outcomes 0 and 1, scores, or categories with `weights`; a vector is a stream, as in :func:`compare`.
    against : float, optional
        A number between the lowest and the highest score that is possible; the verdict says on which side of
        it the score is.
    confidence, target, order, weights, range, missing
        As in :func:`compare`.
    name : str, optional
        Name of the model, for printing; by default that of an xarray.DataArray.

    Returns
    -------
    Score

    Raises
    ------
    ValueError
        If an argument is malformed; the message names it and the value.

    Notes
    -----
    The verdict is evidence by betting [1]_, as for adaptive-eval's goal ``threshold``: for right-or-wrong
    answers a theorem at the ends of passes, however rare either is; looks between them were checked by
    simulation. Of scores equal to `against` at most a share 1 - confidence ever gets a verdict. From it on
    the interval ends at `against`.

    References
    ----------
    .. [1] Waudby-Smith and Ramdas (2024). Estimating means of bounded random variables by betting. Journal of
       the Royal Statistical Society B 86, 1-27.

    Examples
    --------
    >>> rng = np.random.default_rng(3)
    >>> result = score(rng.random((80, 4)) < 0.7, against=0.5)
    >>> result.verdict, result.trials, result.reading
    ('above', 112, '80 questions x 4 trials')
    """
    given = read_each({"A": A}, weights, missing, range)
    sequence, categories, made = lay_out(given.trials(), given.order(order))
    course = ScoreCourse(sequence, given.scale, given.target(target), against, confidence)
    course.board.answers.extend(categories[:, : max(int(made[0]), 1)])
    course.update()
    return course.score(name or name_of(A), given.reading)


class ScoreCourse:
    """One model's score, read trial by trial: the evidence against a number, and the confidence sequence.

    Parameters
    ----------
    sequence, target
        As in :meth:`scorio.sequential.boards.Board.of_pairs`.
    scale : Scale
        What outcomes are worth.
    against, confidence
        As in :func:`score`.
    """

    def __init__(
        self,
        sequence: TrialSequence,
        scale: ScoreScale,
        target: Target,
        against: float | None,
        confidence: float,
    ) -> None:
        alpha = 1.0 - credibility(confidence)
        self._level = 0.0
        value, width = [0.0], [0.0]  # a score is measured to no width at all: this is never called
        if against is not None:
            self._level = float(scale.unit(finite("against", against)))
            if not 0.0 < self._level < 1.0:
                raise ValueError(
                    f"against must lie between the lowest and the highest score, {scale.limits}; "
                    f"got {against!r}"
                )
            value = [self._level, 0.0]
            width = [np.nan, 0.0]
        first, second = np.zeros(len(value), dtype=np.int64), np.full(len(value), Contrasts.SINGLE)
        none = np.full(len(value), np.nan)
        self.board = Board.of_pairs(
            sequence,
            1,
            Anytime(alpha),
            "pair",
            scale.scores,
            target,
            numbers=scale.numbers,
            contrasts=Contrasts(first, second, np.array(value), np.array(width), none),
        )
        self.scale = scale
        self.against = against
        self.confidence = confidence
        self._measured = len(value) - 1
        self._path = np.empty((3, 64))  # score, low and high after each trial
        self._steps = 0

    def update(self) -> None:
        """Read what the answers of the board have been given."""
        pieces: list[Piece] = []
        self.board.read(pieces)
        for piece in pieces:
            line = np.flatnonzero(piece.rows == self._measured)
            if line.size:
                self._keep(piece.course, int(line[0]))

    def _keep(self, course: Course, line: int) -> None:
        """Keep score and interval after some trials; a verdict bounds them too, sometimes before they do."""
        fold = self.board.fold
        level = self._level
        ends = interval(course, self.board.alpha)
        low, high = (np.clip(end[line], 0.0, 1.0) for end in ends)
        begin = self._steps
        self._steps = self._steps + low.size
        verdict = VerdictCode.OPEN
        if self._measured:
            verdict = int(fold.verdict[0])
        after = np.arange(begin + 1, self._steps + 1) >= fold.decided_at[0]
        if verdict == VerdictCode.BETTER:
            low = np.where(after & (high > level), np.maximum(low, level), low)
        elif verdict == VerdictCode.WORSE:
            high = np.where(after & (low < level), np.minimum(high, level), high)
        if self._steps > self._path.shape[1]:
            self._path = np.pad(self._path, ((0, 0), (0, self._steps)))
        self._path[:, begin : self._steps] = course.difference[line], low, high

    def score(self, name: str | None, reading: str) -> ModelScore:
        """Return what is known now, on the scale of the caller."""
        fold = self.board.fold
        scale = self.scale
        path = scale.lowest + scale.width * self._path[:, : self._steps]
        score, low, high = path[:, -1].tolist() if self._steps else (np.nan, *scale.ends)
        verdict = e_value = p_value = None
        trials = self._steps
        if self.against is not None:
            said = int(fold.verdict[0])
            verdict = {VerdictCode.BETTER: "above", VerdictCode.WORSE: "below"}.get(said, "open")
            if said == VerdictCode.OPEN:
                trials = self._steps
            else:
                trials = int(fold.decided_at[0])
            level = strictest_level(self.board)
            log_e = float(fold.latest.statistic[0])
            e_value = min(exp(min(log_e, 700.0)), 1.0 / level)
            p_value = max(exp(-max(log_e, 0.0)), level)
        return ModelScore(
            score=score,
            low=low,
            high=high,
            confidence=self.confidence,
            against=self.against,
            verdict=verdict,
            trials=trials,
            e_value=e_value,
            name=name,
            p_value=p_value,
            course_score=path[0],
            course_low=path[1],
            course_high=path[2],
            reading=reading,
        )


def _at_least(e_value: float, confidence: float) -> str:
    """Return an e-value in words: evidence is guarded down to the level of the comparison only."""
    limit = 1.0 / (1.0 - confidence)
    if e_value >= limit * (1.0 - 1e-9):
        return f"≥ {limit:.4g}"
    return f"{e_value:.4g}"


class _Reading:
    """The only contrast of a board, read along recorded trials."""

    def __init__(self, board: Board, categories: Ints, made: Ints) -> None:
        self._level = strictest_level(board)
        pieces: list[Piece] = []
        steps = max(int(made.min()), 1)
        board.answers.extend(categories[:, :steps])
        calls = board.read(pieces)
        self.course = pieces[0].course
        self.verdict = int(board.fold.verdict[0])
        if calls:
            self.trials = calls[0].event.step
        else:
            self.trials = steps
        self.alpha = board.alpha
        self.margin = board.margin
        self._largest = float(self.course.statistic.max())

    @property
    def e_value(self) -> float:
        """The largest evidence of all moments, as far as it is guarded."""
        return min(exp(min(self._largest, 700.0)), 1.0 / self._level)

    @property
    def p_value(self) -> float:
        """1 over the largest evidence, or 1, as far as it is guarded."""
        return max(exp(-max(self._largest, 0.0)), self._level)

    @property
    def log_e(self) -> Floats:
        """The log e-value at each step, as far as it is guarded."""
        return np.asarray(np.minimum(self.course.statistic[0], -log(self._level)))

    def interval(self) -> tuple[Floats, Floats]:
        """Return the confidence sequence; a verdict bounds it too, sometimes before it does so by itself."""
        margin = self.margin
        (low,), (high,) = interval(self.course, self.alpha, margin)
        after = np.arange(low.size) >= self.trials - 1
        if self.verdict == VerdictCode.BETTER:
            low = np.where(after & (high > 0.0), np.maximum(low, 0.0), low)
        elif self.verdict == VerdictCode.WORSE:
            high = np.where(after & (low < 0.0), np.minimum(high, 0.0), high)
        elif self.verdict == VerdictCode.TIE and margin is not None:
            low = np.where(after & (high > -margin), np.maximum(low, -margin), low)
            high = np.where(after & (low < margin), np.minimum(high, margin), high)
        return low, high
