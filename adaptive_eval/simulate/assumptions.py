"""Assumptions about models before a run: stated means, or chances fitted to earlier outcomes."""

from collections.abc import Mapping
from itertools import cycle

import numpy as np

from adaptive_eval.core.board import SessionAnswers
from adaptive_eval.core.spec import GoalSpec, SessionSpec, TaskSpec
from adaptive_eval.errors import UsageError
from adaptive_eval.simulate.coins import AnswerSource, BiasedCoins, Fitted, LikelyChances
from adaptive_eval.simulate.recorded import RecordedOutcomes
from scorio.arrays import Floats
from scorio.sequential.parts import fit_prior, unit_scores
from scorio.study import biased_coins

RANGE_OF_MEANS = 0.4
"""Difference between the means of the best and the worst model if nothing is known."""


def default_means(models: int) -> tuple[float, ...]:
    """Return evenly spread means for models of which nothing is known.

    Examples
    --------
    >>> default_means(3)
    (0.3, 0.5, 0.7)
    """
    return means_apart(models, RANGE_OF_MEANS / max(models - 1, 1))


def means_apart(models: int, gap: float) -> tuple[float, ...]:
    """Return means around 0.5, neighbours `gap` apart, or as far as [0.02, 0.98] has room.

    Examples
    --------
    >>> means_apart(3, 0.1), means_apart(2, 2.0)
    ((0.4, 0.5, 0.6), (0.02, 0.98))
    """
    reach = min(0.5 * gap * (models - 1), 0.48)
    return tuple(round(float(mean), 6) for mean in np.linspace(0.5 - reach, 0.5 + reach, models))


def sole_kind(spec: SessionSpec) -> str:
    """Return the kind of all parts of the goal, ``mixed`` if they differ."""
    kinds: set[tuple[str, object]] = set()
    for part in spec.goal.parts:
        kinds.add((part.kind, part.value if part.kind == "threshold" else part.model))
    if len(kinds) == 1:
        return kinds.pop()[0]
    return "mixed"


def means_for(spec: SessionSpec, gap: float) -> tuple[float, ...]:
    """Return means with a gap of `gap` between compared models, as far as [0.02, 0.98] has room.

    That is each model and the threshold, or the baseline, by turns above and below; or neighbouring models.
    For the goal not-worse all others are worse than the baseline. A baseline that is a reference has its own
    score. For a goal that measures scores, all means are 0.5, where an interval is widest.

    Examples
    --------
    >>> from adaptive_eval.core.spec import GoalSpec, ModelSpec
    >>> models, tasks = tuple(map(ModelSpec, "abc")), (TaskSpec("t", ("q1", "q2")),)
    >>> means_for(SessionSpec(models, tasks, GoalSpec("threshold", value=0.9)), 0.1)
    (0.8, 0.8, 0.8)
    >>> means_for(SessionSpec(models, tasks, GoalSpec("baseline", model="b")), 0.1)
    (0.6, 0.5, 0.4)
    """
    kind = sole_kind(spec)
    goal = spec.goal.parts[0]
    names = [model.name for model in spec.models]
    if kind == "width":
        return (0.5,) * len(names)
    if kind not in ("threshold", "baseline", "not-worse"):
        return means_apart(len(names), gap)
    centre = _centre(spec, goal)
    if kind == "not-worse":
        means = [round(max(centre - gap, 0.02), 6)] * len(names)
        if goal.model in names:
            means[names.index(goal.model)] = centre
        return tuple(means)
    ends = (centre + gap, centre - gap)
    sides = [round(end, 6) for end in ends if gap == 0.0 or 0.02 <= end <= 0.98]
    if not sides:
        if centre < 0.5:
            sides.append(0.98)
        else:
            sides.append(0.02)
    others = cycle(sides)
    means = [centre] * len(names)
    for place, name in enumerate(names):
        if kind == "threshold" or name != goal.model:
            means[place] = next(others)
    return tuple(means)


def _centre(spec: SessionSpec, goal: GoalSpec) -> float:
    """Return the threshold, or what is taken of the baseline, in unit scores."""
    if goal.kind == "threshold":
        origin, unit = spec.scale
        return (goal.value - origin) / unit
    known = spec.names[len(spec.models) :]
    if goal.model not in known:
        return 0.5
    scores = SessionAnswers(spec).scores().difference[len(spec.models) :, 0]
    return float(scores[known.index(goal.model)])


def assumed_answers(
    spec: SessionSpec,
    means: Mapping[str, float],
    recorded: RecordedOutcomes | None = None,
    *,
    concentration: float = 8.0,
    correlation: float = 0.0,
    seed: int = 0,
) -> AnswerSource:
    """Return the assumed answers of a run's models.

    Examples
    --------
    >>> from adaptive_eval.core.spec import ModelSpec
    >>> spec = SessionSpec((ModelSpec("a"), ModelSpec("b")), (TaskSpec("t", ("q1", "q2")),))
    >>> assumed_answers(spec, {"a": 0.8, "b": 0.6}).truth(spec)
    array([0.8, 0.6])
    """
    names = [model.name for model in spec.models]
    for name in means:
        if name not in names:
            raise UsageError(
                f"a mean is assumed for {name!r}, which is no model of the run ({', '.join(names)})"
            )
    if recorded is not None:
        measured = set(recorded.models) & set(names)
    else:
        measured = set()
    known = set(means) | measured
    unknown = [name for name in names if name not in known]
    if unknown and known:
        raise UsageError(
            f"nothing is known of {', '.join(unknown)}; assume a mean for each, such as {unknown[0]}=0.6"
        )
    if unknown:
        return BiasedCoins(default_means(len(names)), concentration, correlation)
    if recorded is None or set(means) == set(names):
        return BiasedCoins(tuple(means[name] for name in names), concentration, correlation)
    chances = [np.zeros((len(names), len(task.questions), len(task.weights))) for task in spec.tasks]
    fitted = []
    for row, name in enumerate(names):
        for task, here, table in zip(spec.tasks, spec.columns, chances, strict=True):
            if name in means:
                table[row] = _coin(task, means[name], concentration, seed + row)
            else:
                fitted.append(_fitted(task, recorded, name, row, here.start))
                table[row] = fitted[-1].expected
    return LikelyChances(_joined(chances), tuple(fitted))


def _coin(task: TaskSpec, mean: float, concentration: float, seed: int) -> Floats:
    """Return the chances of each category for a coin that shows the worst or the best one."""
    right = biased_coins([mean], len(task.questions), seed=seed, concentration=concentration).p[0]
    chances = np.zeros((right.size, len(task.weights)))
    chances[:, int(np.argmax(task.weights))] = right
    chances[:, int(np.argmin(task.weights))] = 1.0 - right
    return chances


def _fitted(task: TaskSpec, recorded: RecordedOutcomes, model: str, row: int, start: int) -> Fitted:
    """Return the evidence about a model's chances on the questions of `task`."""
    where = {name: column for column, name in enumerate(recorded.questions)}
    columns = [where.get((task.name, id_), -1) for id_ in task.questions]
    if task.numbers:
        raise UsageError(f"the scores of task {task.name!r} are numbers: assume means instead of outcomes")
    tally = task.shares[recorded.only([model]).categories[0]].sum(axis=1)
    counts = np.where(np.array(columns)[:, None] >= 0, tally[columns], 0)
    n = counts.sum(axis=1)
    if not n.any():
        raise UsageError(
            f"the earlier outcomes of model {model!r} have none of the questions of task {task.name!r}"
        )
    scores = unit_scores(task.weights)
    asked = n > 0
    prior = fit_prior(
        n[asked],
        (counts @ scores)[asked],
        (counts @ scores**2)[asked],
        float(scores.mean()),
        float((scores**2).mean()),
    )
    share = (counts[asked] / n[asked, None]).mean(axis=0)
    strength = float(prior.strength)
    if n.max() < 2:
        mean = recorded.scores(task.weights)[:, [column for column in columns if column >= 0]]
        strength = _strength_by_others(recorded, model, mean, strength)
    return Fitted(row, start, share, strength, counts)


def _strength_by_others(recorded: RecordedOutcomes, model: str, mean: Floats, unknown: float) -> float:
    """Return within- over between-question variance of a model whose questions were all asked once.

    Its own outcomes do not tell the two apart. What it shares with other models is between questions.
    """
    own = mean[recorded.models.index(model)]
    shared = []
    known = ~np.isnan(own)
    for name, other in zip(recorded.models, mean, strict=True):
        both = known & ~np.isnan(other)
        if name != model and both.sum() > 2:
            shared.append(float(np.cov(own[both], other[both])[0, 1]))
    between = 0.0
    if shared:
        between = float(np.mean(shared))
    total = float(own[known].var())
    if between <= 0.0:
        return unknown
    return float(np.clip((total - between) / between, 0.05, unknown))


def _joined(chances: list[Floats]) -> Floats:
    """Join the tasks' tables; tasks with fewer categories than others are not supported by one table."""
    sizes = {table.shape[2] for table in chances}
    if len(sizes) > 1:
        raise UsageError(
            "earlier outcomes can be used only if all tasks have equally many categories; "
            "assume means instead"
        )
    return np.concatenate(chances, axis=1)
