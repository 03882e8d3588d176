"""Budgets in words, the same in every view, and the settings that raise them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import ceil

from adaptive_eval.config import RunConfig
from adaptive_eval.core.forecast import HORIZON_PASSES, LIKELY
from adaptive_eval.core.results import BudgetLine, Chance, Decision, Results, RunForecast
from adaptive_eval.core.spec import SessionSpec
from adaptive_eval.errors import Coded
from adaptive_eval.options.decisions import DEFAULT_PASSES
from adaptive_eval.options.scorers import ModelGradedScorerConfig
from adaptive_eval.views.numbers import NOTHING, percent

_NAMES = {"wall_clock": "time", "usd": "USD"}


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """One budget with its use."""

    line: BudgetLine  # what is spent, reserved, and the limit
    rate: float | None  # units spent per second of running time, None before anything is known
    # running time until the limit at this rate, if nothing changes; None without a limit or a rate
    seconds_left: float | None

    @property
    def fraction(self) -> float | None:
        """Spent over limit, None without a limit."""
        if self.line.limit:
            return self.line.spent / self.line.limit
        return None


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


def used_words(line: BudgetLine) -> str:
    """Return how much of its limit a budget has used.

    Examples
    --------
    >>> used_words(BudgetLine("trials", 50.0, 0.0, 200.0)), used_words(BudgetLine("trials", 50.0, 0.0, None))
    ('25 %', '–')
    """
    if line.limit:
        return percent(line.spent / line.limit)
    return NOTHING


def limited_budgets(uses: Iterable[BudgetUse]) -> list[BudgetUse]:
    """Return the budgets that have a limit, the run's first, and all that judges and verifiers spend."""
    return [use for use in uses if use.line.limit is not None or use.line.scope == "scorer"]


def unbounded_words(spec: SessionSpec) -> Coded | None:
    """Return a warning if neither a budget nor a margin ends the run before its last pass."""
    needs_margin = any(goal.kind not in ("not-worse", "width", "budget") for goal in spec.goal.parts)
    if spec.budget.limited or spec.stopping.equivalence is not None or not needs_margin:
        return None
    return Coded(
        "warning/unbounded",
        "neither a budget nor stopping.equivalence bounds this run: models that are equally good take all "
        "passes. Set one of the two",
    )


def more_passes(results: Results, config: RunConfig) -> str:
    """Return the setting that allows a run as many more passes as it will probably need, or twice as many."""
    passes = config.stopping.max_passes or DEFAULT_PASSES
    return f"stopping.max_passes={ceil(_factor(results) * passes)}"


def likely_trials(forecast: RunForecast) -> Chance | None:
    """Return the fewest trials in all that reach the goal with the chance :data:`LIKELY`, if any foreseen do.

    Examples
    --------
    >>> from adaptive_eval.core.results import Range
    >>> none = Range(0.0, 0.0, 0.0)
    >>> chances = (Chance(100.0, 0.5), Chance(200.0, 0.85))
    >>> likely_trials(RunForecast(0.1, none, none, None, (), 1, chances)).trials
    200.0
    """
    return next((one for one in forecast.chances if one.resolved >= LIKELY), None)


def chance_words(results: Results) -> str:
    """Return the chance that the budget or the passes that are suggested reach the goal, in brackets.

    Examples
    --------
    >>> chance_words(Results("rank all models", "anytime", 0.95, "holm", None, 30, (), (), (), 0, None))
    ' (whether twice as much reaches the goal is not known)'
    """
    likely = None
    if results.forecast is not None:
        likely = likely_trials(results.forecast)
    if likely is None:
        return " (whether twice as much reaches the goal is not known)"
    return f" (reaches the goal with a chance of about {percent(likely.resolved)}, simulated)"


def hopeless_words(results: Results) -> str:
    """Return that no larger budget is likely to reach the goal; empty if one is, or nothing is foreseen.

    Examples
    --------
    >>> hopeless_words(Results("rank all models", "anytime", 0.95, "holm", None, 30, (), (), (), 0, None))
    ''
    """
    ahead = results.forecast
    if ahead is None or not ahead.open_pairs or likely_trials(ahead) is not None:
        return ""
    questions = ""
    if results.target == "population":
        questions = "more questions, stopping.target benchmark, "
    return (
        f"No budget for up to {HORIZON_PASSES:,} passes reaches the goal with a chance of {LIKELY:.0%} "
        f"(simulated, approximate). Take {questions}a wider margin, or another goal."
    )


def _factor(results: Results) -> float:
    """Return how many times the trials so far decide all open pairs with a good chance; 2 if unknown."""
    likely = None
    if results.forecast is not None:
        likely = likely_trials(results.forecast)
    if likely is None:
        return 2.0
    return max(likely.trials / max(results.trials, 1), 1.2)


def raised_budgets(results: Results, decisions: Iterable[Decision], config: RunConfig) -> list[str]:
    """Return settings that raise the limits that have ended a run or left pairs of it open."""
    stop = results.stop
    if stop is None or stop.reason not in ("budget", "partial"):
        return []
    limits = [line for line in results.budgets if line.limit is not None]
    found, factor = stop.evidence, _factor(results)
    scope = found.get("scope")
    owner = found.get("owner", "")
    chosen = [line for line in limits if (line.scope, line.owner) == (scope, owner)]
    settings = []
    if scope == "run":
        settings = _raised(chosen, factor, "budget")
    elif scope == "task":
        settings = _raised(chosen, factor, f"{item_place('tasks', owner, config)}.budget")
    elif scope == "scorer":
        task = owner.partition(" of ")[2]
        settings = _raised(
            chosen, factor, f"{item_place('tasks', task, config)}.{_grader_place(config, task)}"
        )
    spent = [one.models[0] for one in decisions if (one.kind, one.verdict) == ("model_stopped", "budget")]
    stopped = {line.model for line in results.models if line.state == "stopped"}
    for model in dict.fromkeys(model for model in spent if model in stopped):
        chosen = [line for line in limits if (line.scope, line.owner) == ("model", model)]
        settings += _raised(chosen, factor, f"{item_place('models', model, config)}.budget")
    return settings


def _grader_place(config: RunConfig, task: str) -> str:
    """Return the place of the budget of a task's judge or verifier, which may be one of several checks."""
    parts = getattr(config.task(task).scorer, "parts", {})
    named = [f"parts.{name}." for name, part in parts.items() if isinstance(part, ModelGradedScorerConfig)]
    return f"scorer.{''.join(named)}budget"


def _raised(lines: Sequence[BudgetLine], factor: float, place: str) -> list[str]:
    line = _ended(lines)
    if line is None:
        return []
    return [f"{place}.{line.name}={_times(line, factor)}"]


def _ended(lines: Iterable[BudgetLine]) -> BudgetLine | None:
    """Return the limit that has ended a budget.

    It is one that is used up. Tokens and USD end earlier, as soon as the next trial might exceed them. If
    nothing is used up, it is the fullest of these.
    """
    used = [(line.spent / line.limit, line) for line in lines if line.limit]
    reserved = [(part, line) for part, line in used if part >= 1 or line.name not in ("trials", "wall_clock")]
    return max(reserved or used, key=lambda one: one[0], default=(0.0, None))[1]


def _times(line: BudgetLine, factor: float) -> str:
    """Return a multiple of a limit, or of what is spent beyond it, as people write it in a config.

    Examples
    --------
    >>> limits = {"trials": 60, "tokens": 50e6, "prompt_tokens": 20_500, "usd": 0.0012, "wall_clock": 2745.0}
    >>> [_times(BudgetLine(name, 0.0, 0.0, limit), 2.0) for name, limit in limits.items()]
    ['120', '100M', '41k', '0.0024', '1h31m30s']
    >>> _times(BudgetLine("trials", 0.0, 0.0, 480), 20.83)
    '10k'
    >>> _times(BudgetLine("trials", 1234, 0.0, 1234), 2.0), _times(BudgetLine("trials", 1240, 0.0, 1234), 2.0)
    ('2468', '2500')
    """
    assert line.limit is not None
    more = factor * max(line.limit, line.spent)  # more is spent where a limit was lowered
    if factor != 2.0 or line.spent > line.limit:
        more = float(f"{more:.2g}")
    if line.name == "usd":
        return f"{Decimal(repr(float(more))).normalize():f}"
    number = ceil(more)
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


def item_place(section: str, name: str, config: RunConfig) -> str:
    """Return the place of a model or task in a config; a name of digits alone would be read as a position."""
    if not name.isdecimal():
        return f"{section}[{name}]"
    items = config.models if section == "models" else config.tasks
    return f"{section}[{[item.name for item in items].index(name)}]"
