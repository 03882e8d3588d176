"""Words for the lines and figures of a run, the same in every view."""

from collections.abc import Mapping, Sequence

from adaptive_eval.core.determinism import REPEATS
from adaptive_eval.core.results import ModelResult, PairResult, Results
from adaptive_eval.core.spec import SessionSpec
from adaptive_eval.store.records import EndpointHealth
from adaptive_eval.views.decision_sentences import own_budget_words
from adaptive_eval.views.inert import inert
from adaptive_eval.views.numbers import (
    NOTHING,
    decimals_for,
    fixed,
    interval,
    short,
    signed,
    trimmed,
    usd,
)
from adaptive_eval.views.verdicts import gap_after_two_passes, state_word


def repeat_notices(spec: SessionSpec) -> list[str]:
    """Say how models that should repeat their answers are treated, and if `spend` saves nothing."""
    notices = []
    if spec.by_cost and not spec.tasks_in_rounds:
        advice = "only rounds ask expensive questions less often, and they do not go with these settings"
        if spec.rounds_suit:
            advice = "allocation.questions: rounds asks expensive questions less often"
        notices.append(
            f"spend: {spec.spend} saves nothing here, because all models share one order of questions; "
            f"{advice}"
        )
    vouched = [model.name for model in spec.models if model.deterministic]
    if vouched:
        notices.append(
            f"{', '.join(vouched)}: `deterministic: true` vouches for the same answer every time. {REPEATS} "
            "questions are asked twice; if the answers agree, every question is asked once only"
        )
    if spec.greedy:
        greedy = [spec.models[number].name for number in spec.greedy]
        notices.append(
            f"{', '.join(greedy)}: answers may flip at temperature 0 too, so questions are asked again. If "
            f"none flips, a difference of {gap_after_two_passes(spec):.2g} takes about 2 passes, and half of "
            "it 4"
        )
    return notices


def ceiling_words(spec: SessionSpec) -> str:
    """Return the most trials under passes and budget, in words; nothing if none bounds them.

    Examples
    --------
    >>> from adaptive_eval.core.spec import ModelSpec, StoppingSpec, TaskSpec
    >>> task = TaskSpec("t", tuple(f"q{i}" for i in range(60)))
    >>> models = (ModelSpec("a"), ModelSpec("b"))
    >>> spec = SessionSpec(models, (task,), stopping=StoppingSpec(max_passes=80))
    >>> ceiling_words(spec)
    'at most 9,600 trials: 80 passes × 60 questions × 2 models'
    """
    passes = spec.stopping.max_passes
    budget = spec.budget.trials
    models = len(spec.models)
    whole = None
    if passes is not None:
        whole = passes * spec.questions * models
    if budget is not None and (whole is None or budget < whole):
        return f"at most {budget:,} trials: the budget"
    if whole is None:
        return ""
    return f"at most {whole:,} trials: {passes:,} passes × {spec.questions:,} questions × {models:,} models"


def note_words(line: ModelResult, results: Results) -> str:
    """Return why a model has stopped, or where a reference is from; empty for any other."""
    if line.note or line.state != "stopped":
        return line.note
    own = [one for one in results.budgets if (one.scope, one.owner) == ("model", line.model)]
    used = {one.name: (one.spent, one.limit) for one in own if one.limit is not None}
    return own_budget_words(used)


def used(results: Results) -> str:
    """Return what a run has used: USD, or tokens if the config gives no price."""
    if results.usd is None:
        return f"{short(results.tokens)} tokens"
    return usd(results.usd)


_KINDS = 5


def task_rows(results: Results) -> list[list[str]]:
    """Return every model's name and its scores on all tasks, in the order of the leaderboard."""
    cells: dict[str, list[str]] = {line.model: [] for line in results.models}
    for task in results.tasks:
        decimals = decimals_for(
            value for one in task.scores for value in (one.score_low, one.score, one.score_high)
        )
        for one in task.scores:
            span = interval(one.score_low, one.score_high, decimals)
            if one.score is None:
                cells[one.model].append(NOTHING)
            else:
                cells[one.model].append(f"{fixed(one.score, decimals)} {span}")
    return [[model, *row] for model, row in cells.items()]


def level_words(results: Results) -> str:
    """Return the confidence, such as ``95 %``."""
    return f"{trimmed(results.confidence * 100)} %"


def state_words(line: ModelResult, results: Results) -> str:
    """Return a model's state with its note."""
    state = state_word(line, results, running=results.stop is None)
    note = note_words(line, results)
    if note:
        return f"{state}: {note}"
    return state


def score_name(results: Results) -> str:
    """Return the name of the score that ranks: the mean of question means, of several tasks their mean."""
    if results.tasks:
        return "mean of tasks"
    return "mean of questions"


def difference_words(pair: PairResult, decimals: int) -> str:
    """Return a difference with its sign, or a score that is to be measured."""
    if pair.kind == "width":
        return fixed(pair.difference, decimals)
    return signed(pair.difference, decimals)


def span_words(pair: PairResult, decimals: int) -> str:
    """Return the confidence sequence of a difference, or of a score that is to be measured."""
    return interval(pair.difference_low, pair.difference_high, decimals, sign=pair.kind != "width")


def evidence_words(pair: PairResult) -> str:
    """Return the evidence and its threshold; a score that is to be measured has none."""
    if pair.kind == "width":
        return NOTHING
    least = "≥ " if pair.evidence_beyond else ""
    return f"{least}{fixed(pair.evidence, 2)} / {fixed(pair.threshold, 2)}"


def kinds_words(counts: Mapping[str, int]) -> str:
    """Return counts by kind, most frequent first.

    Examples
    --------
    >>> kinds_words({"timeout": 2, "rate_limit": 12}), kinds_words({})
    ('rate_limit 12, timeout 2', 'none')
    """
    ordered = sorted((-n, kind) for kind, n in counts.items() if n)
    shown = [f"{inert(kind)} {-n:,}" for n, kind in ordered[:_KINDS]]
    if len(ordered) > len(shown):
        shown.append(f"{len(ordered) - len(shown)} more kinds")
    return ", ".join(shown) or "none"


def seconds_words(value: float | None) -> str:
    """Return a latency.

    Examples
    --------
    >>> seconds_words(0.5), seconds_words(None)
    ('0.50 s', '–')
    """
    if value is None:
        return NOTHING
    return f"{value:.2f} s"


def score_decimals(lines: Sequence[ModelResult]) -> int:
    """Return the number of decimals that suits the scores."""
    return decimals_for(value for line in lines for value in (line.score_low, line.score, line.score_high))


def pair_decimals(pairs: Sequence[PairResult]) -> int:
    """Return the number of decimals that suits the differences."""
    return decimals_for(
        value for pair in pairs for value in (pair.difference, pair.difference_low, pair.difference_high)
    )


SERVER_STATES = {
    "out": "does not answer",
    "probation": "answers again",
    "refused": "refuses the model",
    "joining": "has not answered yet",
    "left": "removed",
}
"""Words of the views for a server that is not in normal use."""


def condition_words(health: EndpointHealth) -> str:
    """Return the problems of an endpoint in words, empty if it has none.

    Examples
    --------
    >>> errors = {"server": 2}
    >>> condition_words(EndpointHealth("a", "http://a/v1", 0, 8, 0, 0.0, 0.0, None, None, errors, "out"))
    'does not answer, server 2'
    """
    state = ""
    if health.state != "in":
        state = SERVER_STATES.get(health.state, inert(health.state))
    errors = ""
    if any(health.errors.values()):
        errors = kinds_words(health.errors)
    return ", ".join(filter(None, (state, errors)))
