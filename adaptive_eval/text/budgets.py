"""Budgets in words, the same in every view."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from adaptive_eval.core.results import BudgetLine, Results
from adaptive_eval.core.spec import SessionSpec
from adaptive_eval.errors import Coded
from adaptive_eval.text.numbers import duration, percent, short, usd

_NOTHING = "–"
_NAMES = {"wall_clock": "time", "usd": "USD"}


def budget_name(line: BudgetLine) -> str:
    """Return the name of a budget's owner; not inert.

    Examples
    --------
    >>> budget_name(BudgetLine("wall_clock", 60.0, 0.0, 3600.0))
    'time'
    >>> budget_name(BudgetLine("prompt_tokens", 9.0, 0.0, 100.0, "model", "gpt"))
    'prompt tokens of gpt'
    >>> budget_name(BudgetLine("usd", 9.0, 0.0, 100.0, "task", "aime"))
    'USD of task aime'
    >>> budget_name(BudgetLine("requests", 9.0, 0.0, 100.0, "scorer", "judge of aime"))
    'requests of the judge of aime'
    """
    name = _NAMES.get(line.name, line.name.replace("_", " "))
    if line.scope == "run":
        return name
    owner = {"task": f"task {line.owner}", "scorer": f"the {line.owner}"}.get(line.scope, line.owner)
    return f"{name} of {owner}"


def amount_words(line: BudgetLine, value: float | None) -> str:
    """Return an amount of a budget in its unit.

    Examples
    --------
    >>> tokens, dollars = (BudgetLine(name, 0.0, 0.0, None) for name in ("tokens", "usd"))
    >>> amount_words(tokens, 1_500_000.0)
    '1.5M'
    >>> amount_words(dollars, 1.5), amount_words(dollars, None)
    ('$1.50', '–')
    """
    if value is None:
        return _NOTHING
    if line.name == "usd":
        return usd(value)
    return duration(value) if line.name == "wall_clock" else short(value)


def used_words(line: BudgetLine) -> str:
    """Return how much of its limit a budget has used.

    Examples
    --------
    >>> used_words(BudgetLine("trials", 50.0, 0.0, 200.0)), used_words(BudgetLine("trials", 50.0, 0.0, None))
    ('25 %', '–')
    """
    return percent(line.spent / line.limit) if line.limit else _NOTHING


def limited_budgets(results: Results) -> list[BudgetLine]:
    """Return the budgets that have a limit, the run's first, and all that judges and verifiers spend."""
    return [line for line in results.budgets if line.limit is not None or line.scope == "scorer"]


def assumed_words(lines: Sequence[BudgetLine]) -> str | None:
    """Return the billed and the assumed billed amounts in words; None where nothing is assumed.

    Examples
    --------
    >>> line = BudgetLine("tokens", 5000.0, 0.0, 9000.0, presumed=1200.0)
    >>> print(assumed_words([line]))
    Billed 3,800 tokens; assumed billed 1,200 tokens: requests that failed or reported no usage and may have \
been billed.
    """
    concerned = [line for line in lines if line.presumed and line.scope == "run"]
    if not concerned:
        return None

    def amounts(part: Callable[[BudgetLine], float]) -> str:
        units = ("" if line.name == "usd" else f" {budget_name(line)}" for line in concerned)
        return " and ".join(
            f"{amount_words(line, part(line))}{unit}" for line, unit in zip(concerned, units, strict=True)
        )

    return (
        f"Billed {amounts(lambda line: line.spent - line.presumed)}; assumed billed "
        f"{amounts(lambda line: line.presumed)}: requests that failed or reported no usage and may have been "
        "billed."
    )


def ceiling_words(spec: SessionSpec) -> str | None:
    """Return the most trials under passes and budget, in words; None where nothing bounds them.

    Examples
    --------
    >>> from adaptive_eval.core.spec import ModelSpec, StoppingSpec, TaskSpec
    >>> task = TaskSpec("t", tuple(f"q{i}" for i in range(60)))
    >>> models = (ModelSpec("a"), ModelSpec("b"))
    >>> spec = SessionSpec(models, (task,), stopping=StoppingSpec(max_passes=80))
    >>> ceiling_words(spec)
    'at most 9,600 trials: 80 passes × 60 questions × 2 models'
    """
    passes, budget = spec.stopping.max_passes, spec.budget.trials
    whole = None if passes is None else passes * spec.questions * len(spec.models)
    if budget is not None and (whole is None or budget < whole):
        return f"at most {budget:,} trials: the budget"
    if whole is None:
        return None
    return (
        f"at most {whole:,} trials: {passes:,} passes × {spec.questions:,} questions × {len(spec.models):,} "
        "models"
    )


def unbounded_words(spec: SessionSpec) -> Coded | None:
    """Return a warning where neither a budget nor a margin ends the run before its last pass."""
    needs_margin = any(goal.kind not in ("width", "budget") for goal in spec.goal.parts)
    if spec.budget.limited or spec.stopping.equivalence is not None or not needs_margin:
        return None
    return Coded(
        "warning/unbounded",
        "neither a budget nor stopping.equivalence bounds this run: models that are equally good take all "
        "passes. Set one of the two",
    )
