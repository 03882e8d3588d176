"""Forecasts of the trials that a verdict takes: in a running comparison, and before the first trial."""

from dataclasses import dataclass
from math import ceil, log
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from scorio._arguments import credibility, finite, positive, whole
from scorio._named import Named
from scorio.eval._inputs import Missing
from scorio.sequential._recorded import Order, Range, ScoreScale, lay_out, read_each, sequence_of
from scorio.sequential.answer_bets import AnswerBets
from scorio.sequential.boards import Board
from scorio.sequential.cells import Cells
from scorio.sequential.contrasts import Contrasts
from scorio.sequential.families import family
from scorio.sequential.fold import Levels, VerdictCode
from scorio.sequential.outlook import (
    QUANTILES,
    BoardScores,
    OpenContrasts,
    covariance_of,
    noise_of,
    simulate_calls,
)
from scorio.sequential.pairs import PairReader
from scorio.sequential.rules import Anytime
from scorio.sequential.trial_sequence import RunSequence


@dataclass(frozen=True, slots=True, repr=False)
class Forecast(Named):
    """When an open comparison will be decided.

    Parameters
    ----------
    trials : int
        Trials of each model so far.
    low, median, high : float
        Trials of each model at the verdict: median and 80 % interval of simulated continuations; infinite
        beyond the horizon.
    within : float
        Probability of a verdict within the horizon.
    horizon : int
        Trials of each model up to which continuations were simulated.
    """

    trials: int
    low: float
    median: float
    high: float
    within: float
    horizon: int

    def __str__(self) -> str:
        """Say median, interval and probability in a line."""
        return (
            f"verdict after {self.median:.0f} trials of each model "
            f"(80 %: {self.low:.0f} to {self.high:.0f}); {100 * self.within:.0f} % within {self.horizon}"
        )


@dataclass(frozen=True, slots=True, repr=False)
class SampleSize(Named):
    """Trials and power of a comparison at an assumed gap.

    Parameters
    ----------
    gap : float
        Assumed difference of the mean scores.
    power : float
        Share of simulated comparisons with the right verdict within `limit`.
    wrong : float
        Share with a wrong verdict: a winner of the wrong sign or of equal models, or a tie of models that
        differ by the margin or more.
    low, median, high : float
        Trials of each model at the verdict: median and 80 % interval; infinite beyond the limit.
    limit : int
        Trials of each model up to which comparisons were simulated.
    fixed_trials : int or None
        Trials of each model that a test of fixed length needs for power 0.8, looked at once; None at gap 0.
    replicates : int
        Simulated comparisons; the power's standard error is at most 0.5 / sqrt(replicates).
    """

    gap: float
    power: float
    wrong: float
    low: float
    median: float
    high: float
    limit: int
    fixed_trials: int | None
    replicates: int

    def __str__(self) -> str:
        """Say power, trials and the trials of a fixed-length test."""
        fixed = ""
        if self.fixed_trials is not None:
            fixed = f"; a fixed test needs {self.fixed_trials} for power 0.8"
        return (
            f"gap {self.gap:g}: power {self.power:.2f} within {self.limit} trials of each model, median "
            f"{self.median:.0f} (80 %: {self.low:.0f} to {self.high:.0f}){fixed}"
        )


def forecast(
    A: ArrayLike,
    B: ArrayLike,
    *,
    equivalence: float | None = None,
    confidence: float = 0.95,
    passes: int = 100,
    paths: int = 1000,
    seed: int = 0,
    order: Order = 0,
    weights: ArrayLike | None = None,
    range: Range = None,
    missing: Missing = None,
) -> Forecast:
    """Forecast when a comparison that is still open will be decided.

    Continuations are drawn from the posterior of the difference, so the forecast is an interval: a single
    number would be off by a factor of two.

    Parameters
    ----------
    A, B, equivalence, confidence, order, weights, range, missing
        As in :func:`scorio.sequential.compare`.
    passes : int
        Trials of each question up to which continuations are followed.
    paths, seed : int
        Number of continuations and their seed.

    Returns
    -------
    Forecast

    Raises
    ------
    ValueError
        If an argument is malformed, or no question is answered by both.

    Examples
    --------
    >>> rng = np.random.default_rng(5)
    >>> A, B = rng.random((100, 1)) < 0.6, rng.random((100, 1)) < 0.5
    >>> expected = forecast(A, B)
    >>> bool(expected.low <= expected.median <= expected.high)
    True
    """
    given = read_each({"A": A, "B": B}, weights, missing, range)
    if given.form == "stream":
        raise ValueError("A must have shape (M, N); got a vector: A[:, None] has one trial of each question")
    scale = given.scale
    alpha = 1.0 - credibility(confidence)
    margin = scale.margin(equivalence)
    sequence, categories, made = lay_out(given.trials(), order)
    questions = sequence.questions
    steps = max(int(made.min()), 1)
    cells = Cells(sequence, scale.scores, 2, moments=scale.numbers)
    guard = log(1.0 / alpha)
    cells.absorb(np.arange(2), categories[:, :steps])
    block = PairReader(cells, [0], [1], guard=guard).read(np.arange(1), steps)
    if not block.questions[0, -1]:
        raise ValueError("A and B must share an answered question; got none")
    latest = cells.latest()
    noise, _ = noise_of(cells)
    horizon = max(questions * whole("passes", passes), steps)
    none = np.zeros(2)
    late = np.full(1, guard)
    start = np.full(1, float(steps))
    models = BoardScores(
        latest.mean[:, 0], start.repeat(2), covariance_of(cells, noise), noise, none, none + 1.0, questions
    )
    early = late
    if cells.scale.binary:
        early = 0.0 * late
    bets = AnswerBets([cells], RunSequence.of_task(sequence), [1.0], [0], [1])
    bets.read(np.zeros(1, dtype=np.int64), 0, steps)
    pair = OpenContrasts.of_pairs([0], [1], block.variance[:, -1], start, early, late, bets.squares)
    drawn = simulate_calls(
        models,
        pair,
        Levels(family("pair"), family("pair"), 1, alpha, alpha),
        lambda open_, scores, enough: open_,
        enough=np.zeros((2, 1), dtype=bool),
        horizon=horizon,
        rng=np.random.default_rng(seed),
        paths=whole("paths", paths),
        equivalence=margin,
    ).steps[:, 0]
    low, median, high = np.quantile(drawn, QUANTILES, method="higher").tolist()
    return Forecast(steps, low, median, high, float(np.isfinite(drawn).mean()), horizon)


def sample_size(
    gap: float,
    *,
    questions: int,
    mean: float = 0.5,
    equivalence: float | None = None,
    confidence: float = 0.95,
    passes: int = 20,
    concentration: float = 8.0,
    correlation: float = 0.5,
    replicates: int = 400,
    seed: int = 0,
) -> SampleSize:
    r"""Simulate how many trials a comparison takes, and its power, at an assumed gap.

    Question chances are Beta distributed around `mean` and ``mean + gap``; pairs of models are simulated to
    their verdict by the rule of :func:`scorio.sequential.compare`, a look after every trial.

    Parameters
    ----------
    gap : float
        True difference of the mean scores; 0 for equal models, of which a tie is the right verdict.
    questions : int
        M.
    mean : float
        Mean score of the weaker model; mean + gap below 1.
    equivalence, confidence
        As in :func:`scorio.sequential.compare`.
    passes : int
        Trials of each question up to which a comparison goes.
    concentration : float
        Of the Beta distribution: 8 is usual, 0.5 makes questions nearly always right or wrong.
    correlation : float
        Correlation of the two models' question chances, in [0, 1].
    replicates, seed : int
        Simulated comparisons and their seed.

    Returns
    -------
    SampleSize

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    The bound `fixed_trials` is :math:`(z_{1-\alpha/2} + z_{0.8})^2` times the variance of one trial's
    difference over the squared gap; the questions' share of the variance falls away as they are all asked.

    Examples
    --------
    >>> planned = sample_size(0.15, questions=500, replicates=100)
    >>> planned.fixed_trials, bool(planned.power > 0.9), bool(planned.median < 500)
    (155, True, True)
    """
    from scorio.study import biased_coins

    number = whole("replicates", replicates)
    size = whole("questions", questions)
    limit = size * whole("passes", passes)
    if not (0.0 < finite("mean", mean) <= mean + finite("gap", gap) < 1.0):
        raise ValueError(f"gap must be in [0, 1 - mean) and mean in (0, 1); got gap {gap}, mean {mean}")
    alpha = 1.0 - credibility(confidence)
    margin = ScoreScale.of_weights(None).margin(equivalence)
    positive("concentration", concentration)
    rng = np.random.default_rng(seed)
    coins = [
        biased_coins((mean + gap, mean), size, seed=rng, concentration=concentration, correlation=correlation)
        for _ in range(number)
    ]
    chances = np.concatenate([coin.p for coin in coins])
    sequence = sequence_of(rng.permutation(size), size)
    models = np.arange(2 * number)
    zero = np.zeros(number)
    none = np.full(number, np.nan)
    contrasts = Contrasts(models[::2], models[1::2], zero, none, none)
    board = Board.of_pairs(sequence, models.size, Anytime(alpha, margin), contrasts=contrasts)
    start = 0
    while start < limit and board.members:
        stop = min(start + 256, limit)
        live = np.array(board.members)
        asked = sequence.question(start, stop)
        right_answers = rng.random((live.size, stop - start)) < chances[live][:, asked]
        board.answers.extend(right_answers.astype(np.int64), live)
        board.read()
        start = stop
    verdict = board.fold.verdict
    fell = np.where(verdict == VerdictCode.OPEN, np.inf, board.fold.decided_at)
    if gap > 0:
        truth = VerdictCode.BETTER
    else:
        truth = VerdictCode.TIE
    right = verdict == truth
    if margin is not None and gap < margin:
        right |= verdict == VerdictCode.TIE
    wrong = (verdict != VerdictCode.OPEN) & ~right & ~((verdict == VerdictCode.BETTER) & (gap > 0))
    low, median, high = np.quantile(fell, QUANTILES, method="higher").tolist()
    fixed_trials = None
    if gap > 0:
        fixed_trials = _fixed_trials(gap, chances, alpha, size)
    return SampleSize(
        gap=gap,
        power=float(right.mean()),
        wrong=float(wrong.mean()),
        low=low,
        median=median,
        high=high,
        limit=limit,
        fixed_trials=fixed_trials,
        replicates=number,
    )


def _fixed_trials(gap: float, chances: np.ndarray, alpha: float, questions: int) -> int:
    """Return the trials of each model of a paired test of fixed length with power 0.8."""
    first, second = chances[::2], chances[1::2]
    within = float((first * (1.0 - first) + second * (1.0 - second)).mean())
    between = float((first - second).var(axis=1).mean())
    needed = (gap / (NormalDist().inv_cdf(1.0 - alpha / 2.0) + NormalDist().inv_cdf(0.8))) ** 2
    in_first_pass = (within + between) / (needed + between / questions)
    if in_first_pass <= questions:
        number = in_first_pass
    else:
        number = within / needed
    return max(1, ceil(number))
