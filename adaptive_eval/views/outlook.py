"""The forecast of a run in words, with time at the present rate.

Every figure here is approximate and says so: it is the median and the 80 % interval of a simulation.
"""

from __future__ import annotations

from dataclasses import dataclass

from adaptive_eval.core.results import Forecast, Range, Results
from adaptive_eval.views.numbers import amount, count

_NOUNS = {"pair": "pair", "threshold": "model", "width": "score"}


@dataclass(frozen=True, slots=True)
class Outlook:
    """A forecast and how long it lasts."""

    forecast: Forecast  # further trials, tokens and USD
    seconds: Range | None  # further running time at the present rate; None where there is no rate


def outlook(results: Results, trials_per_second: float | None) -> Outlook | None:
    """Return the forecast; None where the session has none.

    Examples
    --------
    >>> from dataclasses import replace
    >>> nothing = Results("rank all models", "anytime", 0.95, "holm", None, 30, (), (), (), 0, None)
    >>> more = Forecast(0.9, Range(50, 100, 400), Range(5e3, 1e4, 4e4), None, ())
    >>> outlook(replace(nothing, forecast=more), 10.0).seconds
    Range(low=5.0, median=10.0, high=40.0)
    """
    forecast = results.forecast
    if forecast is None:
        return None
    seconds = None
    if trials_per_second is not None and trials_per_second > 0:
        trials = forecast.trials
        seconds = Range(*(value / trials_per_second for value in (trials.low, trials.median, trials.high)))
    return Outlook(forecast, seconds)


def outlook_parts(view: Outlook) -> list[str]:
    """Return the forecast in phrases, the most needed first.

    Examples
    --------
    >>> more = Forecast(0.94, Range(410, 1_203, 4_120), Range(6e4, 18e4, 62e4), Range(0.2, 0.4, 1.5), ())
    >>> for part in outlook_parts(Outlook(more, Range(41, 120, 412))):
    ...     print(part)
    94 % goal reached in budget
    1,203 more trials (410–4,120)
    2 min 00 s (41 s–6 min 52 s)
    $0.4000 ($0.2000–$1.50)
    180k tokens (60k–620k)
    """
    forecast = view.forecast
    parts = [
        f"{chance(forecast.resolved_within_budget)} {_all(forecast)} in budget",
        f"{amount(forecast.trials.median)} more trials ({range_words(forecast.trials, 'trials')})",
    ]
    for value, unit in ((view.seconds, "wall_clock"), (forecast.usd, "usd")):
        if value is not None:
            parts.append(f"{amount(value.median, unit)} ({range_words(value, unit)})")
    parts.append(f"{amount(forecast.tokens.median)} tokens ({range_words(forecast.tokens, 'tokens')})")
    return parts


def chances_words(results: Results) -> str | None:
    """Return what larger budgets would bring a run that a budget or cap has ended, if that is known.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from adaptive_eval.core.results import Chance, StopVerdict
    >>> ended = Results(
    ...     "rank all models", "anytime", 0.95, "holm", None, 30, (), (), (), 480, StopVerdict("budget"),
    ... )
    >>> more = Forecast(0.0, Range(50, 100, 400), Range(5e3, 1e4, 4e4), None, (), 2, (
    ...     Chance(520, 0.05), Chance(10_000, 0.65),
    ... ))
    >>> print(chances_words(replace(ended, forecast=more)))
    2 pairs are open. Chance that the goal is reached (simulated, approximate): 5 % at 520 trials, 65 % at \
10,000.
    """
    forecast = results.forecast
    if results.stop is None or forecast is None or not forecast.open_pairs:
        return None
    kinds = [pair.kind for pair in results.pairs if pair.verdict == "open" and pair.needed]
    number = len(kinds) or forecast.open_pairs
    noun = _NOUNS[kinds[0]] if len({*kinds}) == 1 else "contrast" if kinds else "pair"
    still = f"{count(number, noun)} {'is' if number == 1 else 'are'} open"
    if not forecast.chances:
        return (
            f"{still}, and hardly to be decided even with 100 times as many trials (simulated, approximate)."
        )
    first, *rest = forecast.chances
    parts = [f"{chance(first.resolved)} at {first.trials:,.0f} trials"]
    parts += [f"{chance(one.resolved)} at {one.trials:,.0f}" for one in rest]
    return f"{still}. Chance that the goal is reached (simulated, approximate): {', '.join(parts)}."


def range_words(value: Range, unit: str = "trials") -> str:
    """Return the 80 % interval of a forecast quantity in the words of its budget's unit.

    Examples
    --------
    >>> range_words(Range(410, 1_203, 4_120)), range_words(Range(60, 90, 300), "wall_clock")
    ('410–4,120', '1 min 00 s–5 min 00 s')
    """
    return f"{amount(value.low, unit)}–{amount(value.high, unit)}"


def _all(forecast: Forecast) -> str:
    """Return the event of the chance, and the number of simulated pairs where not all were."""
    simulated = len(forecast.pairs)
    if forecast.open_pairs <= simulated:
        return "goal reached"
    return f"goal reached (from the {simulated:,} slowest of {forecast.open_pairs:,} open pairs)"


def chance(probability: float) -> str:
    """Return a simulated probability as whole per cent; certainty is not claimed.

    Examples
    --------
    >>> chance(0.0), chance(0.626), chance(1.0)
    ('< 1 %', '63 %', '> 99 %')
    """
    if probability < 0.01:
        return "< 1 %"
    return "> 99 %" if probability > 0.99 else f"{probability * 100:.0f} %"
