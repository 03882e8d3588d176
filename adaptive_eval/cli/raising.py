"""Which settings let a run go on that a budget or a cap has ended, as they are given with ``-o``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from math import ceil

from adaptive_eval.config import RunConfig
from adaptive_eval.core.results import BudgetLine
from adaptive_eval.monitor.snapshot import RunView

__all__ = ["more_passes", "raised_budgets"]


def more_passes(config: RunConfig) -> str:
    """Return the setting that allows a run twice as many passes."""
    return f"stopping.max_passes={2 * config.stopping.max_passes}"


def raised_budgets(view: RunView, config: RunConfig) -> list[str]:
    """Return settings that double the limits that have ended a run or left pairs of it open.

    Parameters
    ----------
    view : RunView
        The run at its end.
    config : RunConfig
        Its config.

    Returns
    -------
    list of str
        Such as ``["budget.trials=40k"]``, or one for each model whose own budget has ended; empty where no
        budget has ended anything.
    """
    if view.stop is None or view.stop.reason not in ("budget", "partial"):
        return []
    limits = [line for line in view.results.budgets if line.limit is not None]
    ended = view.stop.text
    for line in limits:
        if line.scope == "task" and _of_task(ended, line.owner):
            chosen = [one for one in limits if (one.scope, one.owner) == ("task", line.owner)]
            return _doubled(chosen, f"{_item('tasks', line.owner, config)}.budget")
        kind, _, task = line.owner.partition(" of ")
        if line.scope == "scorer" and ended.startswith(f"the budget of the {kind} of task {task!r} "):
            chosen = [one for one in limits if (one.scope, one.owner) == ("scorer", line.owner)]
            return _doubled(chosen, f"{_item('tasks', task, config)}.scorer.budget")
    if view.stop.reason == "budget" and not ended.startswith("the budgets of models ended "):
        return _doubled([line for line in limits if line.scope == "run"], "budget")
    settings = []
    for model in _spent_models(view):
        chosen = [one for one in limits if (one.scope, one.owner) == ("model", model)]
        settings += _doubled(chosen, f"{_item('models', model, config)}.budget")
    return settings


def _of_task(ended: str, task: str) -> bool:
    spent = (f"budget of task {task} ended ", f"budget of task {task} is spent: ")
    return ended.startswith(spent) or ended.endswith(f" of task {task!r} is reached")


def _spent_models(view: RunView) -> list[str]:
    """Return the models that their own budget has stopped."""
    why = {one.models[0]: one.verdict for one in view.decisions if one.kind == "model_stopped"}
    return [
        line.model
        for line in view.results.models
        if line.state == "stopped" and why.get(line.model) == "budget"
    ]


def _doubled(lines: Sequence[BudgetLine], place: str) -> list[str]:
    line = _ended(lines)
    return [] if line is None else [f"{place}.{line.name}={_twice(line)}"]


def _ended(lines: Iterable[BudgetLine]) -> BudgetLine | None:
    """Return the limit that has ended a budget.

    It is one that is used up. Tokens and USD end earlier, as soon as the next trial might exceed them: where
    nothing is used up it is the fullest of these.
    """
    used = [(line.spent / line.limit, line) for line in lines if line.limit]
    reserved = [(part, line) for part, line in used if part >= 1 or line.name not in ("trials", "wall_clock")]
    return max(reserved or used, key=lambda one: one[0], default=(0.0, None))[1]


def _twice(line: BudgetLine) -> str:
    """Return twice a limit as people write it in a config.

    Examples
    --------
    >>> limits = {"trials": 60, "tokens": 50e6, "prompt_tokens": 20_500, "usd": 0.0012, "wall_clock": 2745.0}
    >>> [_twice(BudgetLine(name, 0.0, 0.0, limit)) for name, limit in limits.items()]
    ['120', '100M', '41k', '0.0024', '1h31m30s']
    """
    assert line.limit is not None
    if line.name == "usd":
        return f"{(2 * Decimal(repr(float(line.limit)))).normalize():f}"
    number = ceil(2 * line.limit)
    if line.name != "wall_clock":
        return next((f"{number // size}{unit}" for unit, size in _COUNTS if number % size == 0), str(number))
    parts = []
    for unit, seconds in _SECONDS:
        whole, number = divmod(number, seconds)
        if whole:
            parts.append(f"{whole}{unit}")
    return "".join(parts)


_COUNTS = (("M", 10**6), ("k", 10**3))
_SECONDS = (("h", 3600), ("m", 60), ("s", 1))


def _item(section: str, name: str, config: RunConfig) -> str:
    """Return the place of a model or task in a config; a name of digits alone would be read as a position."""
    if not name.isdecimal():
        return f"{section}[{name}]"
    items = config.models if section == "models" else config.tasks
    return f"{section}[{[item.name for item in items].index(name)}]"
