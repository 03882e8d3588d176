"""Forecasts of a board: simulations of its models' scores, and of the calls that follow.

A single number would mislead (a plug-in estimate is off by a factor of about two), so paths are drawn. True
scores come from their posterior given the present ones, with the covariance that the questions in common give
them. A score's error is that of the questions asked, which ends with the first pass, and the noise of the
answers, which falls with the trials. All contrasts of a model share its path, and are called if the rule
would call them, at thresholds that fall with the calls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import exp, log, sqrt

import numpy as np
from numpy.typing import ArrayLike

from scorio.arrays import Bools, Floats, Ints
from scorio.sequential.answer_bets import answers_share, bet_steps, least_lead
from scorio.sequential.answers import Answers
from scorio.sequential.boards import Board
from scorio.sequential.cells import Cells
from scorio.sequential.contrasts import TRUST, Contrasts
from scorio.sequential.evidence import (
    FLOOR,
    MIN_TRIALS,
    MIXTURE,
    ROUNDING,
    confidence_radius,
    least,
    log_evidence_above,
    measured_radius,
    tie_boundary,
    tie_variance,
)
from scorio.sequential.fold import Levels
from scorio.sequential.moments import ENOUGH_NOISE
from scorio.sequential.trial_sequence import MAX_REPEATS, REPEAT_EVERY

MOMENTS = 48
"""Moments of a path that are looked at, spaced geometrically; also variances at which the radius of a call is
computed, between which it is interpolated."""
OVERSHOOT = 0.583
"""−ζ(1/2)/√(2π): by how many standard deviations of a move a boundary lies nearer if it is looked at between
moments too (Siegmund, Sequential Analysis, 1985)."""
TAIL = 0.1
"""Share of the paths beyond each end of the interval of a forecast."""
QUANTILES = (TAIL, 0.5, 1.0 - TAIL)
"""The low end of a forecast, its median and its high end."""


@dataclass(frozen=True, slots=True)
class BoardScores:
    """The models of a board, L of them; every array has shape (L,) but `between`.

    Parameters
    ----------
    score : ndarray of float
        Present scores, in [0, 1].
    steps : ndarray of float
        Trials of each; infinite for stored results, which stay as they are.
    between : ndarray of float, shape (L, L)
        Covariance over questions of the models' chances.
    within : ndarray of float
        Variance of one answer to a question; 0 for stored results.
    held : ndarray of float
        Variance of stored results by the noise of their answers; 0 for others.
    share : ndarray of float
        Variance of a score by a round over that by passes of as many trials, from step `rounds` on.
    questions : int
        M, the number of questions.
    rounds : float
        The step from which models follow rounds of their own.
    population : bool
        Whether the questions are a sample, whose spread stays when all are asked.
    """

    score: Floats
    steps: Floats
    between: Floats
    within: Floats
    held: Floats
    share: Floats
    questions: int
    rounds: float = np.inf
    population: bool = False

    def repeats(self, steps: Floats) -> Floats:
        """Return the repeated answers of a model by some steps."""
        first = REPEAT_EVERY * max(-(-self.questions // (8 * REPEAT_EVERY)), 1)
        calibration = np.clip((steps - first + REPEAT_EVERY) // (REPEAT_EVERY + 1), 0.0, MAX_REPEATS)
        return np.maximum(calibration, steps - self.questions)

    def asked(self, steps: Floats) -> Floats:
        """Return the questions asked by some steps."""
        return np.clip(steps - self.repeats(steps), 1.0, self.questions)

    def unasked(self, asked: Floats) -> Floats:
        """Return the share of the spread between questions that is left when so many are asked."""
        if self.population:
            return np.ones_like(asked)
        return 1.0 - asked / self.questions

    def worth(self, steps: Floats, share: Floats) -> Floats:
        """Return the trials of passes that are worth as much as `steps`."""
        return np.minimum(steps, self.rounds) + np.maximum(steps - self.rounds, 0.0) / share


@dataclass(frozen=True, eq=False)
class OpenContrasts(Contrasts):
    """The open contrasts of a board; every array has shape (P,).

    Parameters
    ----------
    first, second : ndarray of int
        Their models; `second` is negative for one model alone.
    value, width : ndarray of float
        The number that a single model is held against, and the width to which its score is to be measured;
        NaN for others.
    claim : ndarray of float
        The margin of a claim; NaN for others.
    variance, steps : ndarray of float
        V now, which future ones are made to agree with, and the equal progress at which it was read.
    early, late : ndarray of float
        Continuity terms of V before the first repeats and since.
    squares : ndarray of float
        Σ d² of the answers that are bet on (:mod:`scorio.sequential.answer_bets`); NaN without bets.
    stake : float
        Mean stake of a step of these bets.
    """

    variance: Floats
    steps: Floats
    early: Floats
    late: Floats
    squares: Floats
    stake: float = 1.0

    @classmethod
    def of_pairs(
        cls,
        first: ArrayLike,
        second: ArrayLike,
        variance: Floats,
        steps: Floats,
        early: Floats,
        late: Floats,
        squares: Floats,
    ) -> OpenContrasts:
        """Return contrasts of two models each."""
        models = (np.asarray(first, dtype=np.int64), np.asarray(second, dtype=np.int64))
        none = np.nan * late
        return cls(*models, 0.0 * late, none, none, variance, steps, early, late, squares)

    def differences(self, values: Floats) -> Floats:
        """Return the differences of values of the models, shape (…, L)."""
        other = np.where(self.single, self.value, values[..., self.second])
        return values[..., self.first] - other

    def sum(self, values: Floats) -> Floats:
        """Return the sums of values of the models, shape (L,)."""
        return values[self.first] + np.where(self.single, 0.0, values[self.second])

    def future_variance(self, scores: BoardScores, steps: Floats) -> Floats:
        """Return V at future `steps`, shape (K,), scaled to agree with the present V."""
        held = self.sum(scores.held)
        now = self._variance(scores, np.maximum(self.steps, 1.0)[:, None])[:, 0]
        ratio = np.maximum(self.variance - held, 0.1 * self.variance) / now
        return held[:, None] + ratio[:, None] * self._variance(scores, steps[None, :])

    def winning_differences(self, scores: BoardScores, steps: Floats, level: float) -> Floats:
        """Return the differences at which bets alone make a winner at future `steps`, shape (P, K)."""
        kind = scores.questions, scores.rounds
        now, then = (bet_steps(one, *kind, sample=scores.population) for one in (self.steps, steps))
        with np.errstate(invalid="ignore"):
            squares = self.squares[:, None] * then / np.maximum(now, 1.0)[:, None]
            share = answers_share(scores.questions, sample=scores.population)
            lead = least_lead(np.nan_to_num(squares), level - log(share))
        return np.where(np.isnan(squares), np.inf, lead / (self.stake * then))

    def steps_between(self, scores: BoardScores, steps: Floats) -> Floats:
        """Return the standard deviations of the differences' moves to each of `steps`, shape (P, K)."""
        spread, within = self._noise(scores, np.concatenate([[self.steps.min()], steps])[None, :])
        error = spread + within
        return np.sqrt(np.maximum(error[:, :-1] - error[:, 1:], 0.0))

    def _noise(self, scores: BoardScores, steps: Floats) -> tuple[Floats, Floats]:
        """Return the variances of the differences by the questions asked and by the noise of answers."""
        asked = scores.asked(steps)
        spread = self.sum(scores.between.diagonal())
        spread -= np.where(self.single, 0.0, 2.0 * scores.between[self.first, self.second])
        one = self.sum(scores.within)
        share = np.maximum(self.sum(scores.within * scores.share) / np.maximum(one, FLOOR), FLOOR)
        within = one[:, None] / scores.worth(steps, share[:, None])
        return np.maximum(spread, 0.0)[:, None] * scores.unasked(asked) / asked, within

    def _variance(self, scores: BoardScores, steps: Floats) -> Floats:
        """Return :func:`scorio.sequential.contrasts.contrast_variance` of what is expected, shape (P, K)."""
        one = self.sum(scores.within)
        spread = self.sum(scores.between.diagonal())
        together = 2.0 * scores.between[self.first, self.second] - self.differences(scores.score) ** 2
        spread = np.maximum(spread - np.where(self.single, 0.0, together), 0.0)[:, None]
        least = np.where(scores.steps < np.inf, scores.within, np.inf)
        least = np.minimum(least[self.first], np.where(self.single, np.inf, least[self.second]))[:, None]
        _, within = self._noise(scores, steps)
        one = one[:, None]
        asked = scores.asked(steps)
        repeats = scores.repeats(steps)
        kappa = np.where(repeats > 0.0, self.late[:, None], self.early[:, None])
        between = spread / asked + within + kappa / asked**2
        n = steps / asked
        uniform = (n * (n - 1.0) * one + 2.0 * (n + 1.0)) / (n * n * (n + 3.0)) / asked
        trust = np.where(one > 0.0, 1.0 - (TRUST / (TRUST + repeats)) ** 2, 1.0)
        seen = (1.0 - trust) * between + trust * (within + kappa / steps**2)
        # Little noise has been seen: the larger of it and of that of uniform priors, as for two models.
        guarded = np.minimum(between, np.maximum(within, uniform))
        trusted = least * steps >= ENOUGH_NOISE - ROUNDING
        within = np.where(trusted | (one <= 0.0), seen, guarded)
        unasked = scores.unasked(asked)
        return np.maximum(unasked * between + (1.0 - unasked) * within, FLOOR)


def noise_of(cells: Cells) -> tuple[Floats, Floats]:
    """Return the variance of one answer of each model to a question, and that of its score by this noise."""
    latest = cells.latest()
    trials = latest.seen[:, 0] + latest.r[:, 0]
    known = np.isfinite(trials) & (trials > 0.0)
    noise = np.where(known, latest.g[:, 0] / np.where(known, trials, 1.0), 0.0)
    return noise, np.asarray(latest.w[:, 0] / np.maximum(latest.seen[:, 0], 1.0))


def covariance_of(cells: Cells, noise: Floats) -> Floats:
    """Return the covariance of the models' chances over the questions that each two have answered."""
    n, total, _ = cells.scale.sums(cells.counts)
    seen = (n > 0).astype(np.float64)
    many = np.maximum(n, 1)
    means = total / many
    asked = np.maximum(seen.sum(axis=1), 1.0)
    centred = seen * (means - (means.sum(axis=1) / asked)[:, None])
    covariance = centred @ centred.T / np.maximum(seen @ seen.T - 1.0, 1.0)
    own = np.arange(len(noise))
    covariance[own, own] -= noise * (seen / many).sum(axis=1) / asked
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


class _Paths:
    """Simulated scores of all models, shape (paths, L), which advance together."""

    def __init__(self, scores: BoardScores, paths: int, rng: np.random.Generator) -> None:
        self._scores, self._rng = scores, rng
        self._stored = np.isinf(scores.steps)
        self.steps = np.where(self._stored, 1.0, np.maximum(scores.steps, 1.0))
        asked = np.where(self._stored, scores.questions, scores.asked(self.steps))
        most = np.maximum(asked[:, None], asked)
        by_questions = scores.between * scores.unasked(most) / most
        noise = scores.within / scores.worth(self.steps, scores.share) + scores.held
        self._draw(by_questions, noise + FLOOR, paths)

    @cached_property
    def _root(self) -> Floats:
        return _root(self._scores.between)

    def _draw(self, by_questions: Floats, noise: Floats, paths: int) -> None:
        """Draw true scores and the parts of the present errors that add up to the present scores."""
        score = self._scores.score
        draw = self._rng.standard_normal
        shape = (paths, score.size)
        weights = []
        drawn = []
        root = _root(by_questions)
        for weight, tau in MIXTURE:
            own = 0.5 * tau**2  # variance of a model's score around what all have in common, of variance 1
            parts = (1.0 + own * np.eye(score.size), by_questions, np.diag(noise))
            whole = sum(parts)
            truth = draw((paths, 1)) + sqrt(own) * draw(shape)
            free = [truth, draw(shape) @ root.T, np.sqrt(noise) * draw(shape)]
            gain = np.linalg.solve(whole, (score - sum(free)).T).T
            drawn.append([one + gain @ part for one, part in zip(free, parts, strict=True)])
            fit = score @ np.linalg.solve(whole, score) + np.linalg.slogdet(whole)[1]
            weights.append(weight * exp(-0.5 * max(min(fit, 1e3), -1e3)))
        second = self._rng.random(paths) * sum(weights) > weights[0]
        self.truth, self._of_questions, self._of_noise = (
            np.where(second[:, None], b, a) for a, b in zip(*drawn, strict=True)
        )

    def advance(self, step: float) -> Floats:
        """Return the scores once every model has made so many steps."""
        scores = self._scores
        shape = self.truth.shape
        later = np.where(self._stored, self.steps, np.maximum(self.steps, step))
        worth = scores.worth(self.steps, scores.share)
        more = scores.worth(later, scores.share)
        moved = np.sqrt(scores.within * (more - worth)) * self._rng.standard_normal(shape)
        self._of_noise = np.where(self._stored, self._of_noise, (self._of_noise * worth + moved) / more)
        asked = scores.asked(self.steps)
        then = scores.asked(later)
        if (then > asked).any():
            # Of the questions that are left, those not asked yet have what those asked lack.
            before, after = scores.unasked(asked), scores.unasked(then)
            kept = np.divide(after, before, out=np.zeros_like(after), where=before > 0.0)
            moved = np.sqrt((then - asked) * kept) / then * (self._rng.standard_normal(shape) @ self._root.T)
            self._of_questions = np.where(
                self._stored, self._of_questions, self._of_questions * kept * asked / then + moved
            )
        self.steps = later
        return np.asarray(self.truth + self._of_questions + self._of_noise)


def _root(covariance: Floats) -> Floats:
    """Return R with R Rᵀ = covariance, negative eigenvalues left out."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


class _Boundaries:
    """What the rule asks of a difference at every moment, for the contrasts of a board."""

    def __init__(
        self,
        scores: BoardScores,
        contrasts: OpenContrasts,
        levels: Levels,
        grid: Floats,
        equivalence: float | None,
        called: Called,
    ) -> None:
        won, tied = called.won, called.tied
        left = np.arange(contrasts.first.size + 1)
        self.threshold = np.array([levels.winner(won + more) for more in left.tolist()])
        high = self.threshold[0]
        self._low = min(self.threshold[-1], max(high - 1.0, 0.5 * high))  # above 0 at any confidence
        variance = contrasts.future_variance(scores, grid)
        ends = [_radius(variance, level, equivalence) for level in (self._low, high)]
        if np.isfinite(contrasts.squares).any():
            bets = [contrasts.winning_differences(scores, grid, level) for level in (self._low, high)]
            ends = [np.minimum(*both) for both in zip(ends, bets, strict=True)]
        self._square = ends[0] ** 2
        upper = ends[1] ** 2
        self._slope = (high - self._low) / (upper - self._square)
        # Between two moments a path may cross a boundary and come back: Siegmund's correction.
        self._beyond = OVERSHOOT * contrasts.steps_between(scores, grid)
        early = grid < MIN_TRIALS
        self._square[:, early] = np.inf
        self._tie = np.full(variance.shape, -np.inf)
        self._enough = np.full(variance.shape, np.inf)
        if equivalence is not None:
            n = grid
            if scores.population:
                n = scores.asked(grid)
            at_margin = tie_variance(0.5 * equivalence, variance, variance, n, equivalence)
            self._tie = tie_boundary(at_margin, equivalence, exp(-levels.tie(tied)))
            self._tie[:, early] = -np.inf
            if levels.claims:
                self._enough = _least_enough(at_margin, np.log(levels.claims / levels.alpha), equivalence)
                self._enough[:, early] = np.inf
        measured = contrasts.measured
        self._holds, self._fails = np.full((2, *variance.shape), np.inf)
        for margin in np.unique(contrasts.claim[contrasts.claimed]).tolist():
            rows = contrasts.claim == margin
            n = grid
            if scores.population:
                n = scores.asked(grid)
            at_margin = tie_variance(margin, variance[rows], variance[rows], n, margin)
            self._holds[rows] = _least_enough(at_margin, levels.claim(called.held), margin)
            self._fails[rows] = _least_enough(at_margin, levels.claim(called.failed), margin) + 2.0 * margin
        self._holds[:, early] = self._fails[:, early] = np.inf
        alone = measured | contrasts.claimed  # they have no winners and no ties
        self._tie[alone] = -np.inf
        self._square[alone] = np.inf
        self._relative = np.full(variance.shape, np.inf)
        if measured.any():
            shared = levels.alpha / contrasts.widths[measured, None]
            radius = measured_radius(variance[measured], shared)
            self._relative[measured] = 2.0 * radius / contrasts.width[measured, None]
            self._relative[:, early] = np.inf

    def level(self, place: int, difference: Floats) -> Floats:
        """Return about the log evidence of a winner: its square root is nearly linear in the difference."""
        size = np.abs(difference) + self._beyond[:, place]
        return np.asarray(self._low + (size**2 - self._square[:, place]) * self._slope[:, place])

    def ended(self, place: int, difference: Floats, spread: Floats) -> Bools:
        """Return which contrasts end otherwise than by a winner: ties, claims, and scores that are measured.

        Scores are measured given their standard deviations over the present.
        """
        beyond = self._beyond[:, place]
        tied = np.abs(difference) - beyond <= self._tie[:, place]
        claimed = (difference + beyond >= self._holds[:, place]) | (
            beyond - difference >= self._fails[:, place]
        )
        return np.asarray(tied | claimed | (self._relative[:, place] * spread <= 1.0))

    def good_enough(self, place: int, difference: Floats) -> Bools:
        """Return where the first model, and where the second, is not worse by more than the margin."""
        sides = np.stack([difference, -difference]) + self._beyond[:, place]
        return sides >= self._enough[:, place]


def _radius(variance: Floats, level: float, equivalence: float | None) -> Floats:
    """Return the difference at which the log evidence reaches a level, interpolated."""
    logs, points = _points(variance)
    radius = confidence_radius(np.exp(points), exp(-level), equivalence)
    return np.exp(np.interp(logs, points, np.log(radius)))


def _least_enough(variance: Floats, level: float, equivalence: float) -> Floats:
    """Return the least difference at which a model is good enough, interpolated."""
    logs, points = _points(variance)
    found = least(
        lambda difference: log_evidence_above(difference, np.exp(points), equivalence) >= level,
        np.full(MOMENTS, -equivalence),
        np.full(MOMENTS, 2.0),
    )
    return np.asarray(np.interp(logs, points, found))


def _points(variance: Floats) -> tuple[Floats, Floats]:
    """Return the logarithms of variances, and points among which they lie."""
    logs = np.log(variance)
    return logs, np.linspace(logs.min(), logs.max() + 1e-9, MOMENTS)


@dataclass(frozen=True, slots=True)
class Called:
    """Winners, ties, and claims that hold and that fail, which are called already."""

    won: int = 0
    tied: int = 0
    held: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Calls:
    """The simulated rest of a board.

    Parameters
    ----------
    steps : ndarray of float, shape (paths, P)
        Step at which each contrast is called, or a model of it found good enough; infinite if it is not
        within the horizon.
    until : ndarray of float, shape (paths, L)
        Step up to which each model is needed.
    done : ndarray of bool, shape (paths,)
        Whether nothing is needed any more.
    """

    steps: Floats
    until: Floats
    done: Bools


def simulate_calls(
    scores: BoardScores,
    contrasts: OpenContrasts,
    levels: Levels,
    needed: Callable[[Bools, Floats, Bools], Bools],
    *,
    enough: Bools,
    horizon: float,
    rng: np.random.Generator,
    paths: int,
    equivalence: float | None,
    called: Called = Called(),
) -> Calls:
    """Simulate the calls of a board's open contrasts.

    Parameters
    ----------
    scores, contrasts : BoardScores, OpenContrasts
        The board.
    levels : Levels
        Thresholds of winners and ties.
    needed : callable
        From open contrasts, shape (paths, P), scores, shape (paths, L), and where the first and the second
        model is good enough, shape (2, paths, P), to the contrasts that are needed.
    enough : ndarray of bool, shape (2, P)
        Where the first and the second model is known to be good enough now.
    horizon : float
        Steps up to which paths are drawn.
    rng : numpy.random.Generator
        Source of randomness.
    paths : int
        Number of paths.
    equivalence : float, optional
        Equivalence margin ε.
    called : Called
        What is called already.

    Returns
    -------
    Calls
    """
    start = max(float(contrasts.steps.min()), 1.0)
    pace = _pace(scores, contrasts, paths, rng)
    furthest = max(horizon / float(pace.min()), start)
    grid = np.unique(np.ceil(start * (furthest / start) ** (np.arange(1, MOMENTS + 1) / MOMENTS)))
    ahead = _Boundaries(scores, contrasts, levels, grid, equivalence, called)
    drawn = _Paths(scores, paths, rng)
    members = np.zeros((contrasts.first.size, scores.score.size))
    rows = np.arange(contrasts.first.size)
    pairs = ~contrasts.single
    members[rows, contrasts.first] = members[rows[pairs], contrasts.second[pairs]] = 1.0
    open_ = np.ones((paths, rows.size), dtype=bool)
    enough = np.repeat(enough[:, None], paths, axis=1)
    won = np.zeros(paths, dtype=np.int64)
    peak = np.full(open_.shape, -np.inf)
    spread = _spread(scores, contrasts, drawn.truth, rng)
    steps = np.full(open_.shape, np.inf)
    until = np.zeros(drawn.truth.shape)
    before = start
    wanted = needed(open_, drawn.advance(start), enough)
    for place, step in enumerate(grid.tolist()):
        values = drawn.advance(step)
        middle = np.sqrt(before * step)
        difference = contrasts.differences(values)
        np.maximum(peak, ahead.level(place, difference), out=peak)
        ended = ahead.ended(place, difference, spread)
        asked = wanted @ members > 0.0
        wanted = needed(open_, values, enough)
        if levels.claims:
            enough |= wanted & ahead.good_enough(place, difference)
            still = needed(open_, values, enough)
            steps[wanted & ~still] = middle
            wanted = still
        while True:
            winner = peak >= ahead.threshold[won][:, None]
            new = wanted & (winner | ended)
            if not new.any():
                break
            steps[new] = middle
            won += (new & winner).sum(axis=1)
            open_ &= ~new
            wanted = needed(open_, values, enough)
        still = wanted @ members > 0.0
        until[asked] = middle
        until[still] = step
        before = step
        if not wanted.any():
            break
    pace = pace[:, None]
    called_at = np.maximum(pace * steps, start + 1.0)
    until = np.where(until > 0.0, np.maximum(pace * until, start + 1.0), 0.0)
    done = np.asarray(~wanted.any(axis=1) & (until <= horizon).all(axis=1))
    return Calls(np.where(called_at <= horizon, called_at, np.inf), np.minimum(until, horizon), done)


def simulate_board(
    board: Board,
    rows: Ints,
    needed: Callable[[Bools, Floats, Bools], Bools],
    *,
    horizon: float,
    rng: np.random.Generator,
    paths: int,
) -> Calls:
    """Simulate the calls of some open contrasts of a board; the rest is as in :func:`simulate_calls`."""
    fold = board.fold
    # Winners among the contrasts that are not simulated may come first.
    others = int((fold.undecided & ~fold.lost).sum()) - rows.size
    return simulate_calls(
        _scores_of(board.answers),
        _contrasts_of(board, rows),
        fold.levels,
        needed,
        enough=fold.enough_at[:, rows] >= 0,
        horizon=horizon,
        rng=rng,
        paths=paths,
        equivalence=board.margin,
        called=Called(fold.won + others, fold.tied, fold.held, fold.failed),
    )


def _scores_of(answers: Answers) -> BoardScores:
    """Collect what is known of the models; several tasks are treated as one."""
    models = answers.progress.size
    questions = answers.run_sequence.questions
    within, held, by_round = np.zeros((3, models))
    between = np.zeros((models, models))
    stored = np.arange(models) >= len(answers.furthest)
    for weight, cells in zip(answers.weights, answers.cells, strict=True):
        noise, of_score = noise_of(cells)
        within += weight * noise
        by_round += weight * noise * cells.variance_by_rounds()
        held += weight**2 * of_score
        between += weight * covariance_of(cells, noise)
    rounds = np.inf
    if any(cells.rounds is not None for cells in answers.cells):
        rounds = (1 + answers.run_sequence.sequences[0].samples_per_prompt) * questions
    return BoardScores(
        score=answers.scores().difference[:, 0],
        steps=np.where(stored, np.inf, np.maximum(answers.progress, 1.0)),
        between=between,
        within=np.where(stored, 0.0, within),
        held=np.where(stored, held, 0.0),
        share=np.where(within > 0.0, by_round / np.maximum(within, 1e-12), 1.0),
        questions=questions,
        rounds=rounds,
        population=answers.target == "population",
    )


def _contrasts_of(board: Board, rows: Ints) -> OpenContrasts:
    """Collect the estimates of contrasts."""
    contrasts = board.contrasts
    levels = board.fold.levels
    single = contrasts.single[rows]
    binary = not single.any() and all(cells.scale.binary for cells in board.answers.cells)
    late = np.where(single, levels.tie(0), levels.guard)
    squares, stake = board.courses.bet_squares(rows)
    early = late
    if binary:
        early = np.zeros(rows.size)
    return OpenContrasts(
        first=contrasts.first[rows],
        second=contrasts.second[rows],
        value=contrasts.value[rows],
        width=contrasts.width[rows],
        claim=contrasts.claim[rows],
        variance=np.minimum(board.latest.variance[rows], 1e6),
        steps=np.maximum(board.fold.progress[rows], 1.0),
        early=early,
        late=late,
        squares=squares,
        stake=stake,
    )


def _pace(scores: BoardScores, contrasts: OpenContrasts, paths: int, rng: np.random.Generator) -> Floats:
    """Draw how much more noise there is than was seen: twice as much noise takes twice the trials.

    As many answers differ as are rarer than the others to their question, and these are what tells of it.
    """
    rare = max(float(np.median(contrasts.sum(scores.within) * contrasts.steps)), 4.0)
    return rng.gamma(rare, size=paths) / rare


def _spread(scores: BoardScores, contrasts: OpenContrasts, truth: Floats, rng: np.random.Generator) -> Floats:
    """Draw the standard deviations that scores to be measured will have over the present ones."""
    shape = (len(truth), contrasts.first.size)
    if not contrasts.measured.any():
        return np.ones(shape)
    least = 1.0 / (contrasts.steps + 2.0)
    score = scores.score[contrasts.first]
    then = np.clip(truth[:, contrasts.first], 0.0, 1.0)
    now = np.maximum(score * (1.0 - score), least)
    # A variance estimated from m questions has about m degrees of freedom.
    freedom = np.minimum(np.maximum(contrasts.steps, 1.0), scores.questions)
    return np.sqrt(np.maximum(then * (1.0 - then), least) / now * freedom / rng.chisquare(freedom, shape))
