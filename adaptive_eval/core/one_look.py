"""Verdicts of one look at all answers, whose number was fixed before anybody looked: the rule ``fixed``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from adaptive_eval.core.board import SessionAnswers
from adaptive_eval.core.goals import Goal, make_goal, rank_ranges
from adaptive_eval.core.model_states import ModelStates
from adaptive_eval.core.overview import best_k, pair_results, positions, shown_where
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
from scorio.arrays import AT_ONCE, Bools, Floats, Ints
from scorio.sequential.parts import Looks, VerdictCode, look_at_difference, look_at_score


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


def counted_answers(board: SessionAnswers, states: ModelStates) -> AnswerCounts:
    """Return all answers that are counted; what the logs of an import lack was not asked."""
    cells = board.cells
    number = np.concatenate([one.counts.sum(axis=2) for one in cells], axis=1)
    total = np.concatenate([one.counts @ one.scale.levels for one in cells], axis=1)
    lost = np.concatenate([one.lost for one in cells], axis=1)
    for (model, task, question), times in states.absent.items():
        lost[model, board.spec.columns[task].start + question] -= times
    return AnswerCounts(np.rint(number).astype(np.int64), total, lost).asked_of_all()


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
            trials = int(answers.number[row].sum())
            lost = int(answers.lost[row].sum())
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
            score, low, high = (self._shown(float(end)) for end in (test.estimate, test.low, test.high))
            line = replace(line, score=score, score_low=low, score_high=high, rank=ranks[row])
            lines.append(replace(line, rank_low=ranges[row][0], rank_high=ranges[row][1]))
        lines = [replace(line, state=self._state(row, verdicts, line)) for row, line in enumerate(lines)]
        several = range(len(self.spec.tasks)) if len(self.spec.tasks) > 1 else ()
        return replace(
            results,
            rule=FIXED,
            goal=self.spec.goal.text,
            family=self.spec.stopping.family,
            top_k=best_k(self.spec.goal),
            models=tuple(lines),
            pairs=self._pairs(tests, verdicts, levels),
            tasks=tuple(map(self._task, several)),
            target=self.spec.stopping.target,
            fixed_passes=None,
            forecast=None,
        )

    def _state(self, model: int, verdicts: Ints, line: ModelResult) -> ModelState:
        """Return that a model is decided if none of its contrasts is open."""
        own = (self._goal.first == model) | (self._goal.second == model)
        if (verdicts[own] == VerdictCode.OPEN).any() or line.state == "stopped":
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

    def _tests(self) -> Looks:
        """Return the tests of the goal's contrasts; estimates are differences, or scores."""
        size = self._goal.first.size
        names = np.full(size, "", dtype=object)
        figures = np.zeros((4, size))
        for rows, (name, *values) in self._by_kind():
            names[rows], figures[:, rows] = name, values
        estimate, low, high, p_value = figures
        return Looks(names, estimate, np.maximum(low, -1.0), np.minimum(high, 1.0), p_value)

    def _by_kind(self) -> Iterator[tuple[Ints | int, Looks]]:
        """Yield contrasts with their tests."""
        goal = self._goal
        first, second = goal.first, goal.second
        pairs = np.flatnonzero(~goal.single & ~goal.claimed)
        together = max(AT_ONCE // self._shares.size, 1)
        for begin in range(0, pairs.size, together):
            rows = pairs[begin : begin + together]
            yield rows, self._differences(first[rows], second[rows])
        for row in np.flatnonzero(goal.claimed).tolist():
            yield row, self._claim(int(first[row]), int(second[row]), float(goal.claim[row]))
        for row in np.flatnonzero(goal.single).tolist():
            against = None
            if not goal.measured[row]:
                against = float(goal.value[row])
            yield row, self._score(int(first[row]), against)

    def _claim(self, first: int, second: int, margin: float) -> Looks:
        """Test one-sided whether a model is worse than another by more, or by less, than the margin."""
        test = self._differences(np.array(first), np.array(second), margin)
        return test._replace(low=test.low - margin, high=test.high - margin, p_value=test.p_value / 2.0)

    def _differences(self, first: Ints, second: Ints, margin: float = 0.0) -> Looks:
        """Test pairs; lost answers count as the worst of one model and the best of the other, both ways."""
        answers = self.answers
        confidence = self.spec.stopping.confidence
        single = self._alike and answers.single and not margin
        some_lost = answers.some_lost[first].any() or answers.some_lost[second].any()
        ends = []
        for worth in (0.0, 1.0) if some_lost else (0.0,):
            gap = margin + answers.filled(worth)[first] - answers.filled(1.0 - worth)[second]
            ends.append(look_at_difference(gap, self._shares, self._groups, confidence, single=single))
        return _less_sure(ends)._replace(estimate=self._scores[first] - self._scores[second])

    def _score(self, model: int, against: float | None = None) -> Looks:
        """Look at the score of a model, over all tasks."""
        found = self._score_on(model, slice(None), self._shares, against)
        return found._replace(estimate=self._scores[model])

    def _score_on(self, model: int, here: slice, shares: Floats, against: float | None = None) -> Looks:
        answers = self.answers
        confidence = self.spec.stopping.confidence
        groups = None
        if self._groups is not None:
            groups = np.unique(self._groups[here], return_inverse=True)[1]
        ends = []
        for worth in (0.0, 1.0) if answers.lost[model, here].any() else (0.0,):
            scores = answers.filled(worth)[model, here]
            ends.append(look_at_score(scores, shares, groups, confidence, against))
        return _less_sure(ends, against or 0.0, least=0.0)

    def _verdicts(self, tests: Looks) -> tuple[Ints, Floats]:
        """Return verdicts, and the level at which each contrast was tested: by Holm, or each by itself."""
        stopping = self.spec.stopping
        goal = self._goal
        margin = self.spec.margin
        verdicts = np.full(goal.first.size, VerdictCode.OPEN, dtype=np.int64)
        levels = np.full(goal.first.size, 1.0 - stopping.confidence)
        for family in (goal.claimed, ~goal.claimed & ~goal.measured):  # claims are a family of their own
            self._step_down(np.flatnonzero(family), tests, verdicts, levels)
        close = goal.measured & (tests.high - tests.low <= goal.width)
        if margin is not None:
            low, high = goal.value - margin, goal.value + margin
            close |= ~goal.measured & ~goal.claimed & (low < tests.low) & (tests.high < high)
        verdicts[close & (verdicts == VerdictCode.OPEN)] = VerdictCode.TIE
        return verdicts, levels

    def _step_down(self, rows: Ints, tests: Looks, verdicts: Ints, levels: Floats) -> None:
        """Give the contrasts of a family their winners, by Holm's procedure or each at its own level."""
        goal = self._goal
        rows = rows[np.argsort(tests.p_value[rows], kind="stable")]
        won = tests.p_value[rows] <= levels[rows]
        if self.spec.stopping.family != "pair":
            steps = levels[rows] / np.arange(rows.size, 0, -1)
            won = np.logical_and.accumulate(tests.p_value[rows] <= steps)
            # after the first that is not shown, none is, and the level falls no more
            levels[rows] = steps[np.minimum(np.arange(rows.size), won.sum())]
        rows = rows[won]
        against = np.where(goal.claimed, -goal.claim, goal.value)[rows]
        verdicts[rows] = np.where(tests.estimate[rows] > against, VerdictCode.BETTER, VerdictCode.WORSE)

    def _pairs(self, tests: Looks, verdicts: Ints, levels: Floats) -> tuple[PairResult, ...]:
        goal, answers = self._goal, self.answers
        origin, unit = self.spec.scale
        shift = np.where(goal.measured, origin, 0.0)
        value = np.where(goal.measured, 0.0, goal.value)
        trials = np.minimum(answers.trials[goal.first], answers.trials[goal.partner])
        evidence = -np.log(np.maximum(tests.p_value, np.finfo(np.float64).tiny))
        columns = {
            "difference": shift + unit * (tests.estimate - value),
            "difference_low": shift + unit * (tests.low - value),
            "difference_high": shift + unit * (tests.high - value),
            "evidence": np.where(goal.measured, 0.0, evidence),
            "threshold": -np.log(levels),
            "tie_margin": np.full(trials.size, None),
            "trials_each": trials,
            "questions": answers.shared[goal.first, goal.partner],
            "decided_at": shown_where(verdicts != VerdictCode.OPEN, trials),
            "p_value": shown_where(~goal.measured, tests.p_value),
            "test": np.where(goal.measured, "", tests.test),
        }
        return tuple(pair_results(self.spec, goal, verdicts, columns))

    def _task(self, number: int) -> TaskResult:
        task = self.spec.tasks[number]
        here = self.spec.columns[number]
        size = len(task.questions)
        origin = min(task.weights)
        unit = max(task.weights) - min(task.weights)
        shares = np.full(size, 1.0 / size)
        lines = []
        for model, score in enumerate(self._of_task(number).tolist()):
            look = self._score_on(model, here, shares)
            ends = (origin + unit * end for end in (score, float(look.low), float(look.high)))
            lines.append(TaskScore(self.spec.names[model], *ends))
        return TaskResult(task.name, size, self.spec.task_weights[number], tuple(lines))

    def _shown(self, score: float) -> float:
        origin, unit = self.spec.scale
        return float(origin + unit * score)


def _less_sure(ends: list[Looks], against: float = 0.0, least: float = -1.0) -> Looks:
    """Return the less sure of the tests with lost answers at either end, with intervals that hold both."""
    test, estimates, lows, highs, p_values = ends[0].test, *map(np.stack, list(zip(*ends, strict=True))[1:])
    above = estimates > against
    same_side = above.all(axis=0) | ~above.any(axis=0)
    p_value = np.where(same_side, p_values.max(axis=0), 1.0)
    low, high = np.maximum(lows.min(axis=0), least), np.minimum(highs.max(axis=0), 1.0)
    return Looks(test, estimates[0], low, high, p_value)


def counted(
    tasks: tuple[TaskSpec, ...], columns: tuple[slice, ...], categories: NDArray[np.integer]
) -> AnswerCounts:
    """Return the answers in a table of categories (L, Q, N), with −1 for no trial and −2 for a lost one."""
    total = np.zeros(categories.shape[:2])
    for task, here in zip(tasks, columns, strict=True):
        part = categories[:, here]
        total[:, here] = np.where(part < 0, 0.0, task.unit_scores[part]).sum(axis=2)
    return AnswerCounts((categories >= 0).sum(axis=2), total, (categories == -2).sum(axis=2))
