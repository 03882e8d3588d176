"""Recorded outcomes in two views: all at once, and as a sequential run."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adaptive_eval.core.board import Board
from adaptive_eval.core.goals import OPEN, make_goal, rank_ranges
from adaptive_eval.core.results_table import columns_of, frame_of
from adaptive_eval.core.spec import SessionSpec
from adaptive_eval.errors import UsageError
from adaptive_eval.simulate.coins import to_score_units
from adaptive_eval.simulate.drivers import run_together
from adaptive_eval.simulate.many_runs import Simulator, collected
from adaptive_eval.simulate.recorded import LOST, NO_TRIAL, RecordedAnswers, RecordedOutcomes
from adaptive_eval.simulate.result import RunOutcome, SimulationResult
from adaptive_eval.trial import STEPS, ScoreRange
from scorio.rank import rank_with_confidence
from scorio.sequential import FixedTest, mcnemar, paired_difference
from scorio.sequential.parts import Floats, Ints


@dataclass(frozen=True, slots=True)
class ModelAnalysis:
    """One model in both views."""

    model: str  # name
    # recorded trials; fewest and most on one question
    trials: int
    fewest: int
    most: int
    score: float  # mean over questions of the mean of all trials
    # bayes@N posterior mean and standard deviation (uniform prior); None where scores are numbers
    mu: float | None
    sigma: float | None
    fixed_rank: int  # the paper's rank: by μ, neighbours that z cannot part share one; else by score
    # rank interval of the replay in recorded order; 1 to L where the goal declares no order
    rank_low: int
    rank_high: int
    # trials that this replay needed of the model: all that are recorded where a pair of it stays open
    used: int
    used_shuffled: float  # mean of that over shuffled replays


@dataclass(frozen=True, slots=True, eq=False)
class Analysis:
    """The result of :func:`analyze`."""

    models: tuple[ModelAnalysis, ...]  # by score, best first
    recorded: int  # recorded trials
    replay: RunOutcome  # the replay in recorded order
    shuffled: SimulationResult  # replays with the trials of every cell in random order

    @property
    def saved(self) -> float:
        """Share of the recorded trials that the shuffled replays did without, on average."""
        return 1.0 - float(self.shuffled.total.mean()) / self.recorded

    def to_columns(self) -> dict[str, list[Any]]:
        """Return the models in both views as columns of plain Python values, best first."""
        return columns_of(self.models)

    def to_frame(self) -> Any:
        """Return the models in both views as a ``pandas.DataFrame``."""
        return frame_of(self.to_columns())


def analyze(recorded: RecordedOutcomes, spec: SessionSpec, simulator: Simulator) -> Analysis:
    """Rank recorded outcomes, and replay them through the session's decisions.

    Examples
    --------
    >>> from adaptive_eval.core.spec import ModelSpec
    >>> outcomes = (np.random.default_rng(1).random((2, 30, 20)) < [[[0.8]], [[0.3]]]).astype(int)
    >>> questions = tuple(("t", f"q{number}") for number in range(30))
    >>> recorded = RecordedOutcomes(("good", "bad"), questions, outcomes)
    >>> spec = SessionSpec((ModelSpec("good"), ModelSpec("bad")), recorded.task_specs())
    >>> analysis = analyze(recorded, spec, Simulator(replicates=10, seed=1, workers=1))
    >>> [(line.model, line.fixed_rank, line.rank_low, line.rank_high) for line in analysis.models]
    [('good', 1, 1, 1), ('bad', 2, 2, 2)]
    >>> analysis.recorded, analysis.saved > 0.9
    (1200, True)
    """
    answers = RecordedAnswers(recorded, shuffled=False)
    scores = answers.truth(spec)
    board = Board(spec)
    stream = answers.begin(spec, board.run_sequence, np.random.SeedSequence(simulator.seed))
    (replay,) = run_together([spec], board, stream)
    replay = replace(replay, trials=_needed(spec, recorded, replay.verdict, replay.trials))
    if replay.verdict.size:
        shuffled = simulator.run(spec, RecordedAnswers(recorded), "shuffled replays")
    else:  # one model: nothing is compared, in no order
        shuffled = collected(spec, scores, [replay], True)
    shuffled = replace(shuffled, trials=_needed(spec, recorded, shuffled.verdict, shuffled.trials))
    mu, sigma = _bayes(recorded, spec)
    known = bool(np.isfinite(mu).all())
    ranks = rank_with_confidence(*((mu, sigma) if known else (scores, np.zeros(len(scores)))))
    intervals = rank_ranges(make_goal(spec), replay.verdict, len(spec.models))
    counts, used = recorded.answered, shuffled.trials.mean(axis=0)
    unit = spec.scale[1]
    lines = [
        ModelAnalysis(
            model=name,
            trials=int(counts[row].sum()),
            fewest=int(counts[row].min()),
            most=int(counts[row].max()),
            score=float(scores[row]),
            mu=float(to_score_units(spec, mu[row])) if known else None,
            sigma=float(unit * sigma[row]) if known else None,
            fixed_rank=int(ranks[row]),
            rank_low=intervals[row][0],
            rank_high=intervals[row][1],
            used=int(replay.trials[row]),
            used_shuffled=float(used[row]),
        )
        for row, name in enumerate(recorded.models)
    ]
    ordered = tuple(sorted(lines, key=lambda line: -line.score))
    return Analysis(ordered, recorded.trials, replay, shuffled)


@dataclass(frozen=True, slots=True)
class FixedPair:
    """One pair by one look at all trials, whose number was fixed before anybody looked."""

    first: str
    second: str
    # McNemar test of one right or wrong answer a question that weigh the same, else paired difference
    # (Student's t)
    test: str
    difference: float  # of the scores, first − second, over all questions that are answered
    p_value: float
    winner: str | None  # by Holm's procedure over all pairs of the goal; None where nobody wins


def fixed_pairs(recorded: RecordedOutcomes, spec: SessionSpec) -> list[FixedPair]:
    """Test the pairs of the goal once; every model was asked every question.

    Lost answers count as the worst of one model and the best of the other, whichever way is less sure.

    Examples
    --------
    >>> from adaptive_eval.core.spec import ModelSpec
    >>> outcomes = np.array([[[1]] * 9 + [[0]], [[0]] * 10])
    >>> questions = tuple(("t", f"q{number}") for number in range(10))
    >>> recorded = RecordedOutcomes(("good", "bad"), questions, outcomes)
    >>> spec = SessionSpec((ModelSpec("good"), ModelSpec("bad")), recorded.task_specs())
    >>> (pair,) = fixed_pairs(recorded, spec)
    >>> pair.test, round(pair.p_value, 4), pair.winner
    ('McNemar test', 0.0039, 'good')
    """
    goal = make_goal(spec)
    if goal.single.all():
        raise UsageError("--fixed tests pairs of models, and the goal compares none; leave it out")
    shares = [np.full(len(task.questions), 1.0 / len(task.questions)) for task in spec.tasks]
    weighted = [weight * share for weight, share in zip(spec.task_weights, shares, strict=True)]
    scores = RecordedAnswers(recorded).truth(spec)
    test = _FixedTests(recorded, spec.tasks[0].weights, np.concatenate(weighted), scores)
    pairs = zip(goal.first[~goal.single], goal.second[~goal.single], strict=True)
    tested = sorted((test.of(*pair) for pair in pairs), key=lambda pair: pair.p_value)
    level = 1.0 - spec.stopping.confidence
    for place, pair in enumerate(tested):
        if pair.p_value > level / (len(tested) - place):
            level = 0.0  # Holm: after the first pair that is not shown, none is
        tested[place] = pair if level else replace(pair, winner=None)
    return tested


@dataclass(frozen=True, slots=True)
class _FixedTests:
    recorded: RecordedOutcomes
    weights: tuple[float, ...] | ScoreRange
    shares: Floats  # of the questions in the score
    scores: Floats  # of the models, over all answers

    def of(self, first: int, second: int) -> FixedPair:
        """Test a pair; the winner is the better model, however sure that is."""
        outcomes = self.recorded.categories[[first, second]]
        worst, best = 0, STEPS
        if not isinstance(self.weights, ScoreRange):
            worst, best = int(np.argmin(self.weights)), int(np.argmax(self.weights))
        ends = []
        for fill in ([[[worst]], [[best]]], [[[best]], [[worst]]]):
            ends.append(self._test(*np.where(outcomes == LOST, fill, outcomes)))
            if not (outcomes == LOST).any():
                break
        found = max(ends, key=_p_value)
        one_way = len({np.sign(end.estimate) for end in ends}) == 1
        p_value = _p_value(found) if one_way else 1.0
        names = self.recorded.models[first], self.recorded.models[second]
        winner = names[0] if found.estimate > 0 else names[1]
        difference = found.estimate if len(ends) == 1 else float(self.scores[first] - self.scores[second])
        return FixedPair(*names, found.test, difference, p_value, winner)

    def _test(self, one: Ints, other: Ints) -> FixedTest:
        weights = self.weights
        alike = bool(np.ptp(self.shares) <= 1e-12)
        if alike and weights == (0.0, 1.0) and int(self.recorded.counts.max()) == 1:
            return mcnemar(one[:, :1], other[:, :1])
        if isinstance(weights, ScoreRange):  # few of its steps are there
            steps = np.unique(np.append([one, other], [NO_TRIAL, 0, STEPS]))
            one, other = np.searchsorted(steps, one) - 1, np.searchsorted(steps, other) - 1
            weights = tuple(weights.score(step) for step in steps[1:].tolist())
        shares = None if alike else self.shares
        return paired_difference(one, other, weights=weights, missing=NO_TRIAL, question_weights=shares)


def _p_value(test: FixedTest) -> float:
    return 1.0 if test.p_value is None else test.p_value


def _needed(spec: SessionSpec, recorded: RecordedOutcomes, verdict: NDArray[np.int8], trials: Ints) -> Ints:
    """Return the trials of each model, shape (…, L): all that are recorded where nothing was decided."""
    goal = make_goal(spec)
    needed = np.broadcast_to(recorded.answered.sum(axis=1), trials.shape).copy()
    for model in range(len(spec.models)):
        pairs = (goal.first == model) | (~goal.single & (goal.second == model))
        if pairs.any():
            decided = (verdict[..., pairs] != OPEN).all(axis=-1)
            needed[..., model] = np.where(decided, trials[..., model], needed[..., model])
    return needed


def _bayes(recorded: RecordedOutcomes, spec: SessionSpec) -> tuple[Floats, Floats]:
    """Return Bayes@N μ and σ over all trials, in unit scores."""
    board = Board(spec)
    for task, cells, here in zip(spec.tasks, board.cells, spec.columns, strict=True):
        cells.counts[: len(recorded.models)] = task.shares[recorded.categories[:, here]].sum(axis=2)
    mu, sigma = board.posterior()
    return mu[: len(recorded.models)], sigma[: len(recorded.models)]
