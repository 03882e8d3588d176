"""The board: tell it outcomes, and it calls contrasts of models in the order of the log.

Each contrast is read along its own two models (:mod:`scorio.sequential.fold`), so a slow answer delays the
contrasts of its model and no others. Sessions, simulations, monitors and comparisons of recorded outcomes are
faces of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike

from scorio.arrays import AT_ONCE, Bools, Floats, Ints, floats
from scorio.sequential.answers import Answers
from scorio.sequential.cells import Cells
from scorio.sequential.contrasts import Contrasts, Target
from scorio.sequential.courses import EXACT, Courses, Intervals
from scorio.sequential.evidence import (
    MIN_TRIALS,
    confidence_radius,
    log_evidence,
    log_evidence_above,
    log_evidence_of_claim,
    log_tie_evidence,
    measured_radius,
)
from scorio.sequential.families import family as family_of
from scorio.sequential.fixed import fixed_passes
from scorio.sequential.fold import NEVER, STEP_BITS, Event, Fold, Levels, Piece, VerdictCode, moments
from scorio.sequential.rules import Rule
from scorio.sequential.trial_sequence import RunSequence, TrialSequence


def strictest_level(board: Board) -> float:
    """Return the smallest level that the evidence of a board is guarded for, to twelve digits."""
    return float(f"{exp(-board.fold.levels.guard):.12g}")


@dataclass(frozen=True, eq=False)
class ContrastStates:
    """What is known of contrasts."""

    verdict: Ints
    lost: Bools  # dropped contrasts
    # scores of the models when they were last reviewed, in unit scores
    score: Floats
    # whether the first model of a contrast is good enough, and the second: the other is not better by more
    # than the margin; shape (2, P)
    enough: Bools


@dataclass(frozen=True, slots=True)
class Call:
    """A contrast was decided, as `event` says.

    `difference` and its confidence sequence from `low` to `high` are in unit scores; `statistic` is on the
    rule's own scale.
    """

    event: Event
    difference: float
    low: float
    high: float
    questions: int
    statistic: float


class Board:
    """Contrasts of models, called while outcomes are told.

    Parameters
    ----------
    answers : Answers
        The models' answers along their trial sequences.
    contrasts : Contrasts
        What is compared.
    rule : Rule
        The stopping rule.
    levels : Levels
        Thresholds of winners and ties.
    margin : float, optional
        Equivalence margin in unit scores.
    needed : callable, optional
        From what is known to the contrasts that are needed; by default all that are open.
    review : int, optional
        Every how many steps of a model `needed` is asked again, with the scores by then.

    Attributes
    ----------
    alpha : float
        1 minus the confidence.
    fold : Fold
        Verdicts, and what is needed.
    latest : Course
        Values of the contrasts at the last step read, or at their call.
    members : list of int
        Models that a needed contrast has.
    version : int
        Grows whenever what is known of the contrasts has changed.

    Examples
    --------
    >>> from scorio.sequential.rules import Anytime
    >>> board = Board.of_pairs(TrialSequence(range(100)), 2, Anytime(0.05))
    >>> calls = [call for t in range(60) for model in (0, 1) for call in board.tell(model, t, 1 - model)]
    >>> [(call.event.verdict, call.event.step) for call in calls]
    [(1, 10)]
    """

    def __init__(
        self,
        answers: Answers,
        contrasts: Contrasts,
        rule: Rule,
        levels: Levels,
        margin: float | None = None,
        *,
        needed: Callable[[ContrastStates], Bools] | None = None,
        review: int | None = None,
    ) -> None:
        self.answers, self.contrasts = answers, contrasts
        self.scores = np.where(answers.progress > 0, answers.scores().difference[:, 0], 0.0)
        """Scores of the models when they were last reviewed; those of references from the start."""
        self._gone: set[int] = set()
        self._needs = needed
        self._review_every = review or NEVER
        self._review_at = self._review_every
        self.rule = rule
        self.margin = margin
        self.alpha = levels.alpha
        self.courses = Courses(answers, contrasts, rule, levels, margin)
        self.fold = Fold(contrasts.measured, levels, self._needed, contrasts.claimed, self._note_needed)
        self.latest = self.fold.latest
        on_clusters = ~contrasts.single & any(names is not None for names in answers.clusters)
        bet = self.courses.bets | on_clusters | (self.courses.bet_place >= 0)
        self.intervals = Intervals(contrasts, bet, levels.alpha, margin)
        self.version = 0
        self.members = self._members()

    @classmethod
    def of_pairs(
        cls,
        sequence: TrialSequence,
        models: int,
        rule: Rule,
        family: str = "pair",
        scores: ArrayLike = (0.0, 1.0),
        target: Target = "benchmark",
        clusters: ArrayLike | None = None,
        *,
        numbers: bool = False,
        contrasts: Contrasts | None = None,
    ) -> Board:
        """Return the board of all pairs of models (or some contrasts) on one task, at the level of the rule.

        Parameters
        ----------
        sequence : TrialSequence
            The order in which the questions are asked.
        models : int
            Number of models.
        rule : Rule
            The stopping rule, with its level and its equivalence margin.
        family : {'holm', 'pair'}
            How winners share the level; each tie has the level to itself.
        scores : array_like of float
            Score of each category, in [0, 1].
        target, clusters
            As in :func:`scorio.sequential.compare`.
        numbers : bool
            Whether scores are numbers, of which only the first two moments are counted.
        contrasts : Contrasts, optional
            By default all pairs.
        """
        if target not in get_args(Target):
            raise ValueError(f"target must be one of {', '.join(get_args(Target))}; got {target!r}")
        if contrasts is None:
            contrasts = Contrasts.pairs(models)
        each = family_of("pair")
        hypotheses = max(contrasts.hypotheses, 1)
        levels = Levels(family_of(family), each, hypotheses, rule.level, rule.level)
        cells = Cells(sequence, floats(scores), models, moments=numbers)
        guard = log(1.0 / rule.level)
        run = RunSequence.of_task(sequence)
        answers = Answers(run, [cells], models, [1.0], target, [clusters], guard)
        return cls(answers, contrasts, rule, levels, getattr(rule, "equivalence", None))

    # ------------------------------------------------------------------ telling

    def tell(self, model: int, index: int, category: int) -> list[Call]:
        """Add the outcome of a model's trial at an index of its sequence; return the calls that follow.

        `category` is that of the answer, or MISSING. Outcomes may come in any order.
        """
        self.answers.add(model, index, category)
        return self.read()

    def tell_all(self, categories: Ints, made: Ints, step: int = 512) -> None:
        """Add recorded categories along the trial sequence, shape (models, steps), so many steps at once.

        `made` is the number of each model's trials, shape (models,).
        """
        start = 0
        while (more := np.flatnonzero(made > start)).size:
            stop = min(start + step, int(made[more].min()))
            self.answers.extend(categories[more, start:stop], more)
            self.read()
            start = stop

    def read(self, seen: list[Piece] | None = None) -> list[Call]:
        """Absorb what has been told and return the calls that follow; the steps read are added to `seen`."""
        self.answers.absorb()
        return self.advance(seen)

    def advance(self, seen: list[Piece] | None = None) -> list[Call]:
        """Read the trials absorbed since the last call, and return the new calls in order."""
        pieces = [self._piece(rows, stop) for rows, stop in self._readable()]
        if seen is not None:
            seen.extend(pieces)
        events = self.fold.read(pieces, self._next_review, self._review)
        self._note_needed()
        self._forget()
        if events:
            return self._described(events)
        return []

    def lose(self, model: int) -> None:
        """Drop the undecided contrasts of a model that will get no more answers."""
        self._gone.add(model)
        self.fold.drop((self.contrasts.first == model) | (self.contrasts.second == model))

    # ------------------------------------------------------------------ looking

    @property
    def reached(self) -> int:
        """Steps that every needed contrast has been read to."""
        needed = self.fold.needed
        if needed.any():
            return int(self.fold.progress[needed].min())
        return 0

    @property
    def states(self) -> ContrastStates:
        """What is known of the contrasts now."""
        return self._states(self.fold)

    @property
    def lost(self) -> Bools:
        """Contrasts that were dropped undecided."""
        return self.fold.lost

    @property
    def exact(self) -> Bools:
        """Contrasts that are known: all questions are answered, by models without noise."""
        return np.asarray(self.latest.guarded <= EXACT)

    def interval(self, rows: slice | list[int] = slice(None)) -> tuple[Floats, Floats]:
        """Confidence sequence of some contrasts at the run's confidence, in unit scores."""
        return self.intervals.ends(rows, self.fold.verdict, self.latest)

    def undecidable(self, left: Floats, growth: ArrayLike) -> Bools:
        """Return the needed contrasts that `growth` times the trials could hardly decide, for lost answers.

        A winner needs |D| above what the lost answers could make of it, a claim its distance from the margin,
        a tie needs both together below ε/2
        (:func:`scorio.sequential.evidence.tie_boundary`), a width both together below it. The noise is below
        what the lost answers will weigh then, which is `left`, and so many times the trials until now would
        not bring it below the distance to either.
        """
        needed = self.fold.needed
        latest = self.latest
        size = np.abs(latest.difference)
        slack = left
        low, high = self.interval()
        noise = (high - low) / 2.0 - latest.slack
        noise = np.where(self.contrasts.measured, self._radius_of_widths(), noise)
        distance = np.maximum(size, 0.5 * (self.margin or 0.0) - size)
        distance = np.where(
            self.contrasts.claimed, np.abs(latest.difference + self.contrasts.claim), distance
        )
        distance -= slack
        near = np.sqrt(growth) * distance  # 16 times the trials bring the noise down to a quarter
        far = np.where(self.contrasts.measured, 2.0 * slack >= self.contrasts.width, near <= noise)
        return needed & (slack > 0.0) & (noise <= slack) & far

    def progress_to_ties(self, margin: float) -> Floats:
        """Return the share of the evidence for a tie that each contrast has, from 0 to 1."""
        size = np.abs(self.latest.difference) + self.latest.slack
        log_e = log_tie_evidence(size, np.minimum(self.latest.margin, 1e6), margin)
        return np.clip(log_e / self.fold.tie_threshold, 0.0, 1.0)

    @property
    def progress_to_widths(self) -> Floats:
        """Return the share of the precision, (wanted width / present width)², that each score has; or NaN."""
        radius = self._radius_of_widths() + self.latest.slack
        return np.clip((0.5 * self.contrasts.width / radius) ** 2, 0.0, 1.0)

    def _radius_of_widths(self) -> Floats:
        """Return by how far each score would be known if now were the look that ends its measurement."""
        return measured_radius(self.latest.variance, self.alpha / self.contrasts.widths)

    def population_interval(self, row: int) -> tuple[float, float]:
        """Return the interval of a known difference or score for questions like these, in unit scores.

        What is known of these questions is a sample then: V = (Σ d² + κ)/M², for a score (Σ (y − ȳ)² + κ)/M².
        """
        contrasts, variance = self.contrasts, 0.0
        for weight, cells in zip(self.answers.weights, self.answers.cells, strict=True):
            first = cells.noise(int(contrasts.first[row]))[0]
            other = first.mean() if contrasts.single[row] else cells.noise(int(contrasts.second[row]))[0]
            gap = first - other
            variance += weight**2 * (float(gap @ gap) - log(self.alpha)) / gap.size**2
        radius = float(confidence_radius(variance, self.alpha))
        middle = float(self.latest.difference[row])
        return middle - radius, middle + radius

    def fixed_passes(self, power: float) -> int | None:
        """Return the passes of a fixed run whose tests find every decided pair with this power.

        A winner at the difference found, a tie between equal models. Only if the questions are the target:
        for a population, more trials of the same questions add little.
        """
        contrasts = self.contrasts
        verdict = self.fold.verdict
        asked = len(self.answers.furthest)
        decided = np.flatnonzero((verdict != VerdictCode.OPEN) & ~contrasts.single & ~contrasts.claimed)
        has_stored = self.answers.progress.size > asked
        if decided.size == 0 or has_stored or self.answers.target != "benchmark":
            return None
        noise = np.zeros(asked)
        for weight, cells in zip(self.answers.weights, self.answers.cells, strict=True):
            noise += weight * weight * cells.mean_noise() / cells.sequence.questions
        of_tie = self.margin or 1.0  # without a margin only models without noise are tied
        to_find = np.where(verdict == VerdictCode.TIE, of_tie, np.abs(self.latest.difference))[decided]
        if not (to_find > 0.0).all():
            return None
        both = noise[contrasts.first[decided]] + noise[contrasts.second[decided]]
        return int(fixed_passes(both, to_find, self.alpha, contrasts.first.size, power).max())

    # ------------------------------------------------------------------ foreseeing

    @staticmethod
    def is_readable(trials: Floats | Ints) -> Bools:
        """Return which contrasts have the trials that a call needs, whatever their evidence."""
        return np.asarray(trials >= MIN_TRIALS)

    def foreseen(
        self, largest: Floats, least: Floats, variance: Floats, at_margin: Floats
    ) -> tuple[Floats, Floats]:
        """Return the log evidence of winners, and how many times over other ends of contrasts are reached.

        Differences may become as large as `largest`, and as small as `least`, with these variances.
        """
        evidence = log_evidence(largest, variance, self.margin)
        tied = np.zeros(largest.shape)
        if self.margin is not None:
            tied = log_tie_evidence(least, at_margin, self.margin) / self.fold.tie_threshold
            if claims := self.fold.levels.claims:
                # The better model of a pair is the one that is sought.
                above = log_evidence_above(largest, at_margin, self.margin)
                tied = np.maximum(tied, above / log(claims / self.alpha))
        return evidence, tied

    def foreseen_claims(self, rows: Ints, difference: Floats, move: Floats, at_margin: Floats) -> Floats:
        """Return how many times over claims reach what decides them; no number for other contrasts.

        The differences may move so far either way, with these variances at the margins of the claims.
        """
        found = np.full(np.broadcast_shapes(difference.shape, move.shape), np.nan)
        claimed = self.contrasts.claimed[rows]
        levels = self.fold.levels
        if claimed.any():
            margin = self.contrasts.claim[rows][claimed].reshape(-1, *(1,) * (difference.ndim - 1))
            variance = at_margin[claimed]
            held = log_evidence_of_claim((difference + move)[claimed], 0.0, variance, margin)[0]
            failed = log_evidence_of_claim((difference - move)[claimed], 0.0, variance, margin)[1]
            enough = levels.claim(self.fold.held), levels.claim(self.fold.failed)
            found[claimed] = np.maximum(held / enough[0], failed / enough[1])
        return found

    # ------------------------------------------------------------------ reading

    def _readable(self) -> Iterator[tuple[Ints, int]]:
        """Yield undecided contrasts that can be read on together, with the step to read to."""
        far = self.answers.progress
        fold = self.fold
        limit = np.minimum(far[self.contrasts.first], far[self.contrasts.partner])
        ready = (fold.undecided & (limit > fold.progress)).nonzero()[0]
        if ready.size == 0 or not fold.needed.any():  # what comes after the call that ended all is not read
            return
        key = fold.progress[ready] * (int(limit.max()) + 1) + limit[ready]
        groups = [ready]
        if (key != key[0]).any():
            order = np.argsort(key, kind="stable")
            groups = np.split(ready[order], np.flatnonzero(np.diff(key[order])) + 1)
        for group in groups:
            for begin in range(0, group.size, AT_ONCE):
                yield group[begin : begin + AT_ONCE], int(limit[group[0]])

    def _piece(self, rows: Ints, stop: int) -> Piece:
        start = int(self.fold.progress[rows[0]])
        contrasts = self.contrasts
        position = self.answers.positions(contrasts.first[rows], start, stop)
        if not contrasts.single[rows].all():
            other = self.answers.positions(contrasts.partner[rows], start, stop)
            position = np.maximum(position, other)
        return Piece(rows, moments(position, start), self.courses.read(rows, start, stop))

    def _described(self, events: Sequence[Event]) -> list[Call]:
        """Return the calls with their estimates, their intervals found together."""
        rows = [event.contrast for event in events]
        latest = self.latest
        (low, high) = self.interval(rows)
        columns = (latest.difference[rows], low, high, latest.questions[rows], latest.statistic[rows])
        estimates = zip(*(column.tolist() for column in columns), strict=True)
        return [Call(one, *values) for one, values in zip(events, estimates, strict=True)]

    def _forget(self) -> None:
        undecided = self.fold.undecided
        if undecided.any():
            self.answers.forget(max(int(self.fold.progress[undecided].min()) - 1, 0))

    # ------------------------------------------------------------------ what is needed

    def _needed(self, fold: Fold) -> Bools:
        if self._needs is None:
            return fold.undecided & ~fold.lost
        return self._needs(self._states(fold))

    def _states(self, fold: Fold) -> ContrastStates:
        return ContrastStates(fold.verdict, fold.lost, self.scores, fold.enough_at >= 0)

    def _note_needed(self) -> None:
        self.version += 1
        self.members = self._members()

    def _members(self) -> list[int]:
        asked = len(self.answers.furthest)
        needed = np.zeros(self.scores.size + 1, dtype=bool)  # the last one is no model, as second may be
        rows = self.fold.needed
        needed[self.contrasts.first[rows]] = needed[self.contrasts.second[rows]] = True
        members: list[int] = np.flatnonzero(needed[:asked]).tolist()
        return members

    def _next_review(self) -> int:
        """Return the moment at which the first needed model makes a trial from the next review's step on."""
        if self._review_every == NEVER:
            return NEVER
        there = [model for model in self._members() if self.answers.progress[model] >= self._review_at]
        found = [self.answers.position_from(model, self._review_at - 1) for model in there]
        at = min((position for position in found if position is not None), default=None)
        if at is None:
            return NEVER
        return (at << STEP_BITS) + self._review_at

    def _review(self, position: int) -> None:
        """Look at the scores that needed models had at a position of the log, if two more were 0 and 1.

        Otherwise, a model whose second answer is late would be the best one by its first.
        """
        for model in self._members():
            steps = self.answers.steps_at(model, position)
            if steps:
                self.scores[model] = (steps * self.answers.score_at(model, steps) + 1.0) / (steps + 2.0)
        self._review_at += self._review_every
