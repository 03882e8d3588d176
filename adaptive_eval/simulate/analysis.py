"""Recorded outcomes in two views: all at once, and as a sequential run."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adaptive_eval.core.board import SessionAnswers
from adaptive_eval.core.goals import make_goal, rank_ranges
from adaptive_eval.core.one_look import OneLook, counted
from adaptive_eval.core.overview import VERDICTS
from adaptive_eval.core.results import Results
from adaptive_eval.core.results_table import columns_of, frame_of
from adaptive_eval.core.spec import SessionSpec
from adaptive_eval.simulate.coins import to_score_units
from adaptive_eval.simulate.drivers import run_together
from adaptive_eval.simulate.many_runs import Simulator, collected
from adaptive_eval.simulate.recorded import RecordedAnswers, RecordedOutcomes
from adaptive_eval.simulate.result import RunOutcome, SimulationResult
from scorio.arrays import Floats, Ints
from scorio.rank import rank_with_confidence
from scorio.sequential.parts import VerdictCode


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
    board = SessionAnswers(spec)
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
    counts = recorded.answered
    used = shuffled.trials.mean(axis=0)
    unit = spec.scale[1]
    lines = []
    for row, name in enumerate(recorded.models):
        line = ModelAnalysis(
            model=name,
            trials=int(counts[row].sum()),
            fewest=int(counts[row].min()),
            most=int(counts[row].max()),
            score=float(scores[row]),
            mu=None,
            sigma=None,
            fixed_rank=int(ranks[row]),
            rank_low=intervals[row][0],
            rank_high=intervals[row][1],
            used=int(replay.trials[row]),
            used_shuffled=float(used[row]),
        )
        if known:
            estimate = float(to_score_units(spec, mu[row]))
            line = replace(line, mu=estimate, sigma=float(unit * sigma[row]))
        lines.append(line)
    ordered = tuple(sorted(lines, key=lambda line: -line.score))
    return Analysis(ordered, recorded.trials, replay, shuffled)


def one_look(recorded: RecordedOutcomes, spec: SessionSpec) -> Results:
    """Return the verdicts of one look at all answers; every model was asked every question.

    Lost answers count as the worst of one model and the best of the other, whichever way is less sure.

    Examples
    --------
    >>> from adaptive_eval.core.spec import ModelSpec
    >>> outcomes = np.array([[[1]] * 9 + [[0]], [[0]] * 10])
    >>> questions = tuple(("t", f"q{number}") for number in range(10))
    >>> recorded = RecordedOutcomes(("good", "bad"), questions, outcomes)
    >>> spec = SessionSpec((ModelSpec("good"), ModelSpec("bad")), recorded.task_specs())
    >>> (pair,) = one_look(recorded, spec).pairs
    >>> pair.test, round(pair.p_value, 4), pair.verdict
    ('McNemar', 0.0039, 'better')
    """
    return OneLook(spec, counted(spec.tasks, spec.columns, recorded.categories)).results()


def of_replay(found: Results, analysis: Analysis, spec: SessionSpec) -> Results:
    """Return `found`, the look at all answers, with the verdicts of the replay in one order instead."""
    goal = make_goal(spec)
    verdicts = analysis.replay.verdict
    ranges = rank_ranges(goal, verdicts, len(spec.models))
    places = zip(found.models, ranges, strict=True)
    lines = [replace(line, rank_low=low, rank_high=high) for line, (low, high) in places]
    pairs = [
        replace(pair, verdict=VERDICTS[int(verdict)], p_value=None, test="")
        for pair, verdict in zip(found.pairs, verdicts, strict=True)
    ]
    trials = int(analysis.replay.trials.sum())
    rule = spec.stopping.rule
    return replace(found, rule=rule, models=tuple(lines), pairs=tuple(pairs), trials=trials)


def _needed(spec: SessionSpec, recorded: RecordedOutcomes, verdict: NDArray[np.int8], trials: Ints) -> Ints:
    """Return the trials of each model, shape (…, L): all that are recorded if nothing was decided."""
    goal = make_goal(spec)
    needed = np.broadcast_to(recorded.answered.sum(axis=1), trials.shape).copy()
    for model in range(len(spec.models)):
        pairs = (goal.first == model) | (~goal.single & (goal.second == model))
        if pairs.any():
            decided = (verdict[..., pairs] != VerdictCode.OPEN).all(axis=-1)
            needed[..., model] = np.where(decided, trials[..., model], needed[..., model])
    return needed


def _bayes(recorded: RecordedOutcomes, spec: SessionSpec) -> tuple[Floats, Floats]:
    """Return Bayes@N μ and σ over all trials, in unit scores."""
    board = SessionAnswers(spec)
    for task, cells, here in zip(spec.tasks, board.cells, spec.columns, strict=True):
        cells.counts[: len(recorded.models)] = task.shares[recorded.categories[:, here]].sum(axis=2)
    mu, sigma = board.posterior()
    return mu[: len(recorded.models)], sigma[: len(recorded.models)]
