"""Verdicts of one look at all answers, whose number was fixed before anybody looked: the rule ``fixed``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import log

import numpy as np
from numpy.typing import NDArray

from adaptive_eval.core.goals import (
    BETTER,
    OPEN,
    TIE,
    WORSE,
    Goal,
    contrast_kind,
    make_goal,
    rank_ranges,
    sides,
)
from adaptive_eval.core.overview import VERDICTS, best_k, positions
from adaptive_eval.core.results import (
    FIXED,
    ModelResult,
    ModelState,
    PairResult,
    Results,
    TaskResult,
    TaskScore,
)
from adaptive_eval.core.spec import SessionSpec, TaskSpec
from scorio.sequential import FixedTest
from scorio.sequential.parts import Bools, Floats, Ints, look_at_difference, look_at_score

_LEAST_P = 1e-300


@dataclass(frozen=True, eq=False)
class AnswerCounts:
    """The answers of every model to the questions of all tasks, arrays of shape (L, Q)."""

    number: Ints  # with a score
    total: Floats  # sum of their scores, each from 0 to 1
    lost: Ints  # without one; each may be worth anything

    @cached_property
    def means(self) -> Floats:
        """Mean scores; 0 if there is none."""
        return np.asarray(self.total / np.maximum(self.number, 1))

    @cached_property
    def _ends(self) -> tuple[Floats, Floats]:
        trials = np.maximum(self.number + self.lost, 1)
        return self.total / trials, (self.total + self.lost) / trials

    def filled(self, worth: float) -> Floats:
        """Return mean scores with every lost answer worth 0 or 1."""
        return self._ends[1 if worth else 0]

    def asked_of_all(self) -> AnswerCounts:
        """Return the answers with lost ones if a model has none of a question; they may be wrong."""
        trials = self.number + self.lost
        most = int(trials.max(initial=1))
        fewest = np.where(trials > 0, trials, most).min(axis=1, keepdims=True)
        return replace(self, lost=np.where(trials > 0, self.lost, fewest))

    @cached_property
    def trials(self) -> Ints:
        """Answers of each model, shape (L,)."""
        return np.asarray(self.number.sum(axis=1))

    @cached_property
    def shared(self) -> Ints:
        """Questions that each two models have answered, shape (L, L)."""
        answered = (self.number > 0).astype(np.float64)
        return np.rint(answered @ answered.T).astype(np.int64)

    @cached_property
    def some_lost(self) -> Bools:
        """Whether each model has lost answers, shape (L,)."""
        return np.asarray(self.lost.any(axis=1))

    @cached_property
    def single(self) -> bool:
        """Whether there is at most one answer to a question, right or wrong."""
        return int((self.number + self.lost).max()) == 1 and bool(np.isin(self.total, (0.0, 1.0)).all())


@dataclass(frozen=True, eq=False)
class OneLook:
    """The tests of one look.

    Examples
    --------
    >>> from adaptive_eval.core.spec import ModelSpec
    >>> spec = SessionSpec((ModelSpec("new"), ModelSpec("old")), (TaskSpec("t", tuple("abcdefghij")),))
    >>> right = np.array([[1.0] * 9 + [0.0], [0.0] * 10])
    >>> look = OneLook(spec, AnswerCounts(np.ones((2, 10), int), right, np.zeros((2, 10), int)))
    >>> (pair,) = look.results().pairs
    >>> pair.test, pair.verdict, round(pair.p_value, 4)
    ('McNemar', 'better', 0.0039)
    """

    spec: SessionSpec
    answers: AnswerCounts

    def results(self) -> Results:
        """Return results that hold nothing else, such as costs."""
        spec, answers = self.spec, self.answers
        lines = []
        for row, name in enumerate(spec.names):
            trials, lost = int(answers.number[row].sum()), int(answers.lost[row].sum())
            line = ModelResult(
                model=name,
                state="active",
                trials=trials,
                issued=trials + lost,
                missing=lost,
                after_stop=0,
                questions=int((answers.number[row] > 0).sum()),
                score=None,
                score_low=None,
                score_high=None,
                bayes_mu=None,
                bayes_sigma=None,
                rank=1,
                rank_low=1,
                rank_high=len(spec.names),
                prompt_tokens=0,
                completion_tokens=0,
                usd=None,
            )
            lines.append(line)
        plain = Results(
            goal=spec.goal.text,
            rule=FIXED,
            confidence=spec.stopping.confidence,
            family=spec.stopping.family,
            equivalence=spec.stopping.equivalence,
            questions=spec.questions,
            models=tuple(lines),
            pairs=(),
            budgets=(),
            trials=int(answers.number.sum() + answers.lost.sum()),
            stop=None,
            top_k=best_k(spec.goal),
            scale=(spec.scale[0], sum(spec.scale)),
        )
        return self.within(plain)

    def within(self, results: Results) -> Results:
        """Return results of the same models with these scores, intervals, ranks and verdicts."""
        tests = self._tests()
        verdicts, levels = self._verdicts(tests)
        ranges = rank_ranges(self._goal, verdicts, len(self.spec.names))
        ranks = positions(self._scores)
        lines = []
        for row, line in enumerate(results.models):
            test = self._score(row)
            score, low, high = (self._shown(end) for end in (test.estimate, *_ends(test)))
            line = replace(line, score=score, score_low=low, score_high=high, rank=ranks[row])
            lines.append(replace(line, rank_low=ranges[row][0], rank_high=ranges[row][1]))
        lines = [replace(line, state=self._state(row, verdicts, line)) for row, line in enumerate(lines)]
        pairs = []
        for row, test in enumerate(tests):
            pairs.append(self._pair(row, test, int(verdicts[row]), levels[row]))
        several = range(len(self.spec.tasks)) if len(self.spec.tasks) > 1 else ()
        return replace(
            results,
            rule=FIXED,
            goal=self.spec.goal.text,
            family=self.spec.stopping.family,
            top_k=best_k(self.spec.goal),
            models=tuple(lines),
            pairs=tuple(pairs),
            tasks=tuple(map(self._task, several)),
            target=self.spec.stopping.target,
            fixed_passes=None,
            forecast=None,
        )

    def _state(self, model: int, verdicts: Ints, line: ModelResult) -> ModelState:
        """Return that a model is decided if none of its contrasts is open."""
        own = (self._goal.first == model) | (self._goal.second == model)
        if (verdicts[own] == OPEN).any() or line.state == "stopped":
            return "active"
        return "retired"

    @cached_property
    def _goal(self) -> Goal:
        return make_goal(self.spec)

    @cached_property
    def _shares(self) -> Floats:
        """Weight of each question in the score."""
        parts = []
        for task, weight in zip(self.spec.tasks, self.spec.task_weights, strict=True):
            size = len(task.questions)
            parts.append(np.full(size, weight / size))
        return np.concatenate(parts)

    @cached_property
    def _alike(self) -> bool:
        """Whether all questions weigh the same."""
        return bool(np.ptp(self._shares) <= 1e-12)

    @cached_property
    def _groups(self) -> Ints | None:
        """Group of each question; a question without one is its own."""
        if all(task.clusters is None for task in self.spec.tasks):
            return None
        names: list[tuple[str, ...]] = []
        for task in self.spec.tasks:
            if task.clusters is None:
                names += [(task.name, question) for question in task.questions]
            else:
                names += [(group,) for group in task.clusters]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        return np.array([numbers[name] for name in names], dtype=np.int64)

    @cached_property
    def _scores(self) -> Floats:
        """Scores from 0 to 1: of each task the mean over its questions that have an answer."""
        scores = np.zeros(len(self.spec.names))
        for task, weight in enumerate(self.spec.task_weights):
            scores += weight * self._of_task(task)
        return scores

    def _of_task(self, task: int) -> Floats:
        here = self.spec.columns[task]
        there = self.answers.number[:, here] > 0
        return np.asarray(self.answers.means[:, here].sum(axis=1) / np.maximum(there.sum(axis=1), 1))

    def _tests(self) -> list[FixedTest]:
        """Return the test of every contrast of the goal; its estimate is the difference, or the score."""
        goal, found = self._goal, []
        for row in range(goal.first.size):
            first, second, value = int(goal.first[row]), int(goal.second[row]), float(goal.value[row])
            if goal.measured[row]:
                found.append(self._score(first))
            elif goal.single[row]:
                found.append(self._score(first, value))
            elif goal.claimed[row]:
                found.append(self._claim(first, second, float(goal.claim[row])))
            else:
                found.append(self._difference(first, second))
        return found

    def _claim(self, first: int, second: int, margin: float) -> FixedTest:
        """Test one-sided whether a model is worse than another by more, or by less, than the margin."""
        test = self._difference(first, second, margin)
        low, high = _ends(test)
        return replace(test, low=low - margin, high=high - margin, p_value=_p_value(test) / 2.0)

    def _difference(self, first: int, second: int, margin: float = 0.0) -> FixedTest:
        """Test a pair; lost answers count as the worst of one model and the best of the other, both ways."""
        answers, confidence = self.answers, self.spec.stopping.confidence
        ends = []
        for worth in (0.0, 1.0) if answers.some_lost[first] or answers.some_lost[second] else (0.0,):
            gap = margin + answers.filled(worth)[first] - answers.filled(1.0 - worth)[second]
            single = self._alike and answers.single and not margin
            ends.append(look_at_difference(gap, self._shares, self._groups, confidence, single=single))
        return _less_sure(ends, estimate=float(self._scores[first] - self._scores[second]))

    def _score(self, model: int, against: float | None = None) -> FixedTest:
        """Look at the score of a model, over all tasks."""
        found = self._score_on(model, slice(None), self._shares, against)
        return replace(found, estimate=float(self._scores[model]))

    def _score_on(self, model: int, here: slice, shares: Floats, against: float | None = None) -> FixedTest:
        answers, confidence = self.answers, self.spec.stopping.confidence
        groups = None if self._groups is None else np.unique(self._groups[here], return_inverse=True)[1]
        ends = []
        for worth in (0.0, 1.0) if answers.lost[model, here].any() else (0.0,):
            scores = answers.filled(worth)[model, here]
            ends.append(look_at_score(scores, shares, groups, confidence, against))
        found = _less_sure(ends, against or 0.0)
        return replace(found, low=max(found.low or 0.0, 0.0), high=min(found.high or 0.0, 1.0))

    def _verdicts(self, tests: list[FixedTest]) -> tuple[Ints, list[float]]:
        """Return verdicts, and the level at which each contrast was tested: by Holm, or each by itself."""
        stopping, goal, margin = self.spec.stopping, self._goal, self.spec.margin
        verdicts = np.full(len(tests), OPEN, dtype=np.int64)
        levels = [1.0 - stopping.confidence] * len(tests)
        for family in (goal.claimed, ~goal.claimed & ~goal.measured):  # claims are a family of their own
            self._step_down(np.flatnonzero(family).tolist(), tests, verdicts, levels)
        for row in np.flatnonzero(verdicts == OPEN).tolist():
            low, high = _ends(tests[row])
            if goal.claimed[row]:
                close = False
            elif goal.measured[row]:
                close = high - low <= goal.width[row]
            else:
                middle = 0.0
                if goal.single[row]:
                    middle = float(goal.value[row])
                close = margin is not None and middle - margin < low and high < middle + margin
            if close:
                verdicts[row] = TIE
        return verdicts, levels

    def _step_down(
        self, rows: list[int], tests: list[FixedTest], verdicts: Ints, levels: list[float]
    ) -> None:
        """Give the contrasts of a family their winners, by Holm's procedure or each at its own level."""
        goal, by_holm = self._goal, self.spec.stopping.family != "pair"
        shown, left = True, len(rows)
        for row in sorted(rows, key=lambda row: _p_value(tests[row])):
            if by_holm:
                levels[row] /= left
            if shown and _p_value(tests[row]) <= levels[row]:
                against = float(goal.value[row])
                if goal.claimed[row]:
                    against = -float(goal.claim[row])
                verdicts[row] = BETTER if tests[row].estimate > against else WORSE
                left -= 1
            elif by_holm:
                shown = False  # after the first that is not shown, none is

    def _pair(self, row: int, test: FixedTest, verdict: int, level: float) -> PairResult:
        goal, spec, answers = self._goal, self.spec, self.answers
        origin, unit = spec.scale
        first, single = int(goal.first[row]), bool(goal.single[row])
        second = first if single else int(goal.second[row])
        names = sides(spec, goal, row) if single else (spec.names[first], spec.names[second])
        shift = origin if goal.measured[row] else 0.0
        value = 0.0
        if single and not goal.measured[row]:
            value = float(goal.value[row])
        difference, low, high = (shift + unit * (end - value) for end in (test.estimate, *_ends(test)))
        margin = unit * float(goal.claim[row]) if goal.claimed[row] else None
        trials = int(min(answers.trials[first], answers.trials[second]))
        p_value, evidence, name = None, 0.0, ""
        if not goal.measured[row]:
            p_value, name = _p_value(test), test.test
            evidence = -log(max(p_value, _LEAST_P))
        return PairResult(
            *names,
            verdict=VERDICTS[verdict],
            difference=difference,
            difference_low=low,
            difference_high=high,
            evidence=evidence,
            threshold=-log(level),
            tie_margin=None,
            trials_each=trials,
            questions=int(answers.shared[first, second]),
            decided_at=None if verdict == OPEN else trials,
            kind=contrast_kind(goal, row),
            margin=margin,
            p_value=p_value,
            test=name,
        )

    def _task(self, number: int) -> TaskResult:
        task, here = self.spec.tasks[number], self.spec.columns[number]
        size = len(task.questions)
        origin, unit = min(task.weights), max(task.weights) - min(task.weights)
        shares, lines = np.full(size, 1.0 / size), []
        for model, score in enumerate(self._of_task(number).tolist()):
            low, high = _ends(self._score_on(model, here, shares))
            ends = (origin + unit * end for end in (score, low, high))
            lines.append(TaskScore(self.spec.names[model], *ends))
        return TaskResult(task.name, size, self.spec.task_weights[number], tuple(lines))

    def _shown(self, score: float) -> float:
        origin, unit = self.spec.scale
        return float(origin + unit * score)


def _less_sure(ends: list[FixedTest], against: float = 0.0, estimate: float | None = None) -> FixedTest:
    """Return the less sure of the tests with lost answers at either end, with an interval that holds both.

    Its estimate is `estimate`, if that is given.
    """
    found = max(ends, key=_p_value)
    lows, highs = zip(*map(_ends, ends), strict=True)
    sides_of = {bool(test.estimate > against) for test in ends}
    p_value = found.p_value if len(sides_of) == 1 else 1.0
    if estimate is None:
        estimate = found.estimate
    return replace(found, estimate=estimate, low=min(lows), high=max(highs), p_value=p_value)


def _p_value(test: FixedTest) -> float:
    if test.p_value is None:
        return 1.0
    return test.p_value


def _ends(test: FixedTest) -> tuple[float, float]:
    """Return the ends of the interval, as far as they are possible."""
    low = -1.0 if test.low is None else max(test.low, -1.0)
    high = 1.0 if test.high is None else min(test.high, 1.0)
    return low, high


def counted(
    tasks: tuple[TaskSpec, ...], columns: tuple[slice, ...], categories: NDArray[np.integer]
) -> AnswerCounts:
    """Return the answers in a table of categories (L, Q, N), with −1 for no trial and −2 for a lost one."""
    total = np.zeros(categories.shape[:2])
    for task, here in zip(tasks, columns, strict=True):
        part = categories[:, here]
        total[:, here] = np.where(part < 0, 0.0, task.unit_scores[part]).sum(axis=2)
    return AnswerCounts((categories >= 0).sum(axis=2), total, (categories == -2).sum(axis=2))
