"""Verdicts of a judge's scores that labels of a random share of the answers correct."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import exp
from typing import Final

import numpy as np

from adaptive_eval.core.label_record import LABELS
from adaptive_eval.core.one_look import OneLook
from adaptive_eval.core.overview import VERDICTS
from adaptive_eval.core.results import Results, StopVerdict, TaskResult, TaskScore
from scorio.arrays import Bools, Floats, Ints
from scorio.sequential import LabelBets, label_bets
from scorio.sequential.parts import ContrastStates, Looks, VerdictCode, expected_log_e

TEST: Final = "bets on labels"


@dataclass(frozen=True, eq=False)
class Judged:
    """What a judge and labels say of the steps that could be chosen, in the order of asking.

    Arrays of models have shape (L, T), the others (T,). Scores are unit scores.
    """

    judge: Floats  # NaN where a model has no answer
    label: Floats  # NaN where there is none
    chosen: Bools
    chance: Floats
    task: Ints
    question: Ints  # over all tasks
    there: Bools  # (L, T): before each model's first step that is not complete, and a draw
    doubted: Bools  # (L, T): answers that may be copies

    def shared_by(self, models: Sequence[int], task: int | None = None) -> tuple[Ints, Judged]:
        """Return the steps at which all of some models have been asked, and what is known of them."""
        shown = self.there[list(models)].all(axis=0)
        if task is not None:
            shown &= self.task == task
        at = np.flatnonzero(shown)
        here = np.array(models)[:, None], at
        part = Judged(
            judge=self.judge[here],
            label=self.label[here],
            chosen=self.chosen[at],
            chance=self.chance[at],
            task=self.task[at],
            question=self.question[at],
            there=self.there[here],
            doubted=self.doubted[here],
        )
        return at, part


@dataclass(frozen=True, eq=False)
class LabelLook(OneLook):
    """Tests by bets on scores that labels correct, in the place of tests of one look: they hold at any look.

    The level of a winner is Holm's on p = 1/E. A tie says that the whole interval lies within the margin.
    """

    judged: Judged

    def verdicts(self, results: Results) -> Results:
        """Return results of the same models with scores, intervals, ranks and verdicts by labels."""
        found = replace(self.within(results), rule=LABELS, in_rounds=None)
        return replace(found, stop=self._stop(found))

    def _stop(self, results: Results) -> StopVerdict:
        """Return whether the goal is reached by labels."""
        codes = {said: code for code, said in VERDICTS.items()}
        verdict = np.array([codes[pair.verdict] for pair in results.pairs], dtype=np.int64)
        none = np.zeros(verdict.size, dtype=bool)
        states = ContrastStates(verdict, none, self._scores, np.zeros((2, verdict.size), dtype=bool))
        if verdict.size:
            met = self._goal.condition.met(states)
        else:
            met = ()
        if met:
            return StopVerdict("resolved", evidence={"goals": list(met)})
        is_goal = self.spec.goal.kind == "budget"
        undecided = int((verdict == VerdictCode.OPEN).sum())
        return StopVerdict("partial", evidence={"open": undecided, "is_goal": is_goal})

    def bets(self, models: Sequence[int], task: int | None = None, slope: float | None = None) -> LabelBets:
        """Return the bets on the score of one model, or on the difference of two."""
        _, part = self.judged.shared_by(models, task)
        sizes = np.array([len(one.questions) for one in self.spec.tasks])
        of_question = np.array(self.spec.task_weights) / sizes
        clusters = None
        if self.spec.stopping.target == "population":
            clusters = [part.question, self._cluster[part.question]]
        return label_bets(
            part.judge,
            part.label,
            part.chance,
            chosen=part.chosen,
            stake=(of_question / of_question.max())[part.task],
            groups=clusters,
            doubted=part.doubted.any(axis=0),
            slope=slope,
        )

    @cached_property
    def _cluster(self) -> Ints:
        """Cluster of each question; a question without one is its own."""
        if self._groups is None:
            return np.arange(self.spec.questions)
        return self._groups

    @cached_property
    def _scores(self) -> Floats:
        scores = [self._mean([model]) for model in range(len(self.spec.names))]
        return np.asarray(np.nan_to_num(np.array(scores)))

    def _mean(self, models: Sequence[int]) -> float:
        """Return the corrected score, or difference: of each task the mean, weighted."""
        parts = [self.bets(models, task).estimate for task in range(len(self.spec.tasks))]
        return float(np.dot(self.spec.task_weights, parts))

    def _differences(self, first: Ints, second: Ints, margin: float = 0.0) -> Looks:
        looks = [self._difference(*pair) for pair in zip(first.tolist(), second.tolist(), strict=True)]
        return Looks(TEST, *np.array([look[1:] for look in looks]).reshape(-1, 4).T)

    def _difference(self, first: int, second: int) -> Looks:
        bets = self.bets([first, second])
        low, high = bets.interval(self._alpha)
        return _look(self._mean([first, second]), low, high, bets.last())

    def _claim(self, first: int, second: int, margin: float) -> Looks:
        """Test whether a model is worse by more than the margin, or by less: each by one-sided bets."""
        look = self._difference(first, second)
        bets = self.bets([first, second])
        if look.estimate > -margin:
            side = 1
        else:
            side = -1
        return look._replace(p_value=np.asarray(_p_value(bets.last(-margin, side))))

    def _score(self, model: int, against: float | None = None) -> Looks:
        bets = self.bets([model])
        low, high = bets.interval(self._alpha, 0.0, 1.0)
        log_e = 0.0
        if against is not None:
            log_e = bets.last(against)
        return _look(self._scores[model], low, high, log_e)

    @property
    def _alpha(self) -> float:
        return 1.0 - self.spec.stopping.confidence

    def _task(self, number: int) -> TaskResult:
        task = self.spec.tasks[number]
        origin = min(task.weights)
        unit = max(task.weights) - min(task.weights)
        lines = []
        for model, name in enumerate(self.spec.names):
            bets = self.bets([model], number)
            low, high = bets.interval(self._alpha, 0.0, 1.0)
            score = float(np.clip(np.nan_to_num(bets.estimate), low, high))
            lines.append(TaskScore(name, *(origin + unit * end for end in (score, low, high))))
        return TaskResult(task.name, len(task.questions), self.spec.task_weights[number], tuple(lines))

    # ------------------------------------------------------------------ the judge, and further labels

    def biases(self, models: Sequence[int]) -> tuple[int, float, float, float]:
        """Return answers with labels, and the judge's bias with its interval; of two models, the difference.

        The bias is the mean of judge less label, in unit scores; NaN without labels.
        """
        _, part = self.judged.shared_by(models)
        gap = part.judge - part.label
        if len(models) == 1:
            gap = gap[0]
        else:
            gap = gap[0] - gap[1]
        known = ~np.isnan(gap)
        gap = gap[known]
        size = len(models)
        if not gap.size:
            return 0, float("nan"), -float(size), float(size)
        ones = np.ones(gap.size)
        bets = LabelBets(gap, gap, 0.0 * ones, ones, 2.0 * size)
        low, high = bets.interval(self._alpha, -float(size), float(size))
        return gap.size, float(gap.mean()), low, high

    def share_for(self, first: int, second: int, level: float) -> float | None:
        """Return the share of labels with which a pair would be decided if its difference is what it seems.

        None if not even labels of all answers would do.
        """
        at, part = self.judged.shared_by([first, second])
        x, y = (one[0] - one[1] for one in (part.judge, part.label))
        known = ~np.isnan(x + y)
        if known.sum() < 2:
            return None
        bets = self.bets([first, second])
        predicted = bets.slope[-1] * x[known]
        actual = y[known]
        stake = bets.stake[known]
        have = float(part.chosen.mean())
        scale = 1.0
        if bets.groups is not None:  # a cluster is bet on once, so that its questions win less
            now = expected_log_e(predicted, actual, stake, have, at.size)
            scale = 0.0
            if now > 0.0:
                scale = min(max(bets.last(), 0.0) / now, 1.0)
        for share in np.geomspace(have, 1.0, 60).tolist():
            if scale * expected_log_e(predicted, actual, stake, share, at.size) >= level:
                return float(share)
        return None


def agreement(judge: Floats, label: Floats) -> tuple[float, float]:
    """Return the share of answers to which judge and label give one score, and κ with squared weights.

    Of right or wrong answers that is Cohen's κ; NaN if both always say the same.

    Examples
    --------
    >>> one, other = np.array([1.0, 1.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.0, 0.0])
    >>> agreement(one, other)
    (0.75, 0.5)
    """
    if not judge.size:
        return float("nan"), float("nan")
    apart = float(judge.var() + label.var() + (judge.mean() - label.mean()) ** 2)
    if apart:
        kappa = 1.0 - float(np.mean((judge - label) ** 2)) / apart
    else:
        kappa = float("nan")
    return float(np.mean(np.abs(judge - label) < 1e-9)), kappa


def unit_score(weights: tuple[float, ...], score: float) -> float:
    """Return a score in [0, 1]."""
    low, high = min(weights), max(weights)
    return (score - low) / (high - low)


def _look(estimate: float, low: float, high: float, log_e: float) -> Looks:
    middle = float(np.clip(np.nan_to_num(estimate), low, high))
    return Looks(TEST, *map(np.asarray, (middle, low, high, _p_value(log_e))))


def _p_value(log_e: float) -> float:
    return exp(-max(log_e, 0.0))
