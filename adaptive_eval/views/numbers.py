"""Figures as people read them: counts, tokens, money, durations, scores, ranks."""

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from adaptive_eval.core.results import Range

NOTHING = "–"
"""Shown where there is no figure yet."""

_SCALES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def count(n: float, noun: str, plural: str | None = None) -> str:
    """Return a whole number with its noun.

    Examples
    --------
    >>> count(1, "trial"), count(4210, "trial"), count(2, "query", "queries")
    ('1 trial', '4,210 trials', '2 queries')
    """
    return f"{n:,.0f} {noun if round(n) == 1 else plural or noun + 's'}"


def short(n: float) -> str:
    """Return a number in about five characters, with a unit prefix from 10,000 on.

    Examples
    --------
    >>> [short(n) for n in (0, 950, 9_999, 12_345, 1_234_567, 50_000_000)]
    ['0', '950', '9,999', '12.3k', '1.23M', '50M']
    """
    if abs(n) < 9_999.5:
        return f"{n:,.0f}"
    for scale, unit in _SCALES:
        scaled = n / scale
        if abs(scaled) >= 0.9995:
            digits = (abs(scaled) < 9.995) + (abs(scaled) < 99.95)
            text = f"{scaled:.{digits}f}"
            short = text
            if "." in text:
                short = text.rstrip("0").rstrip(".")
            return short + unit
    return f"{n:.0f}"


def duration(seconds: float | None) -> str:
    """Return a length of time in its two leading units.

    Examples
    --------
    >>> [duration(s) for s in (0.4, 8, 754, 7380, 280_800, None)]
    ['0 s', '8 s', '12 min 34 s', '2 h 03 min', '3 d 6 h', '–']
    """
    if seconds is None or not math.isfinite(seconds):
        return NOTHING
    whole = max(0, round(seconds))
    minutes, s = divmod(whole, 60)
    hours, m = divmod(minutes, 60)
    days, h = divmod(hours, 24)
    if days:
        return f"{days} d {h} h"
    if hours:
        return f"{hours} h {m:02d} min"
    if minutes:
        return f"{minutes} min {s:02d} s"
    return f"{s} s"


def stamp(at: float | None) -> str:
    """Return a Unix time as people write it.

    Examples
    --------
    >>> stamp(1_750_000_000.0), stamp(None)
    ('2025-06-15 15:06:40 UTC', '–')
    """
    if at is None:
        return NOTHING
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


def decimals_for(values: Iterable[float | None]) -> int:
    """Return the number of decimals that suits scores of this size: 3 below 10, 2 below 100, else 1.

    Examples
    --------
    >>> decimals_for([0.2, 0.81, None]), decimals_for([12.5]), decimals_for([250.0]), decimals_for([])
    (3, 2, 1, 3)
    """
    largest = max((abs(v) for v in values if v is not None and math.isfinite(v)), default=0.0)
    if largest < 10:
        return 3
    if largest < 100:
        return 2
    return 1


def fixed(value: float | None, decimals: int = 3) -> str:
    """Return a score with a fixed number of decimals, or a dash if there is none.

    Examples
    --------
    >>> fixed(0.8125), fixed(None), fixed(float("nan"))
    ('0.812', '–', '–')
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    return f"{value:.{decimals}f}"


def signed(value: float | None, decimals: int = 3) -> str:
    """Return a difference with its sign; a rounded zero has none.

    Examples
    --------
    >>> signed(0.05), signed(-0.0301), signed(-0.0001), signed(None)
    ('+0.050', '-0.030', '0.000', '–')
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    text = f"{value:+.{decimals}f}"
    if float(text) == 0:
        return text[1:]
    return text


def interval(low: float | None, high: float | None, decimals: int = 3, *, sign: bool = False) -> str:
    """Return ``[low, high]``, or a dash if there is none.

    Examples
    --------
    >>> interval(0.1, 0.25), interval(-0.1, 0.25, 2, sign=True), interval(None, None)
    ('[0.100, 0.250]', '[-0.10, +0.25]', '–')
    """
    if low is None or high is None:
        return NOTHING
    show = signed if sign else fixed
    return f"[{show(low, decimals)}, {show(high, decimals)}]"


def trimmed(value: float) -> str:
    """Return a setting such as a margin or a confidence without needless zeros.

    Examples
    --------
    >>> trimmed(0.05), trimmed(95.0), trimmed(0.30000000000000004)
    ('0.05', '95', '0.3')
    """
    return f"{value:.6g}"


def percent(fraction: float) -> str:
    """Return a fraction as whole per cent, never rounding an incomplete one up to 100 %.

    Examples
    --------
    >>> percent(0.614), percent(0.999), percent(1.0)
    ('61 %', '99 %', '100 %')
    """
    return f"{math.floor(fraction * 100 + 1e-9)} %"


def usd(value: float | None) -> str:
    """Return a cost in US dollars: cents, or four decimals below a dollar.

    Examples
    --------
    >>> usd(12.345), usd(0.01234), usd(0.0), usd(None)
    ('$12.35', '$0.0123', '$0.00', '–')
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    if 0 < value < 0.995:
        return f"${value:.4f}"
    return f"${value:,.2f}"


def amount(value: float | None, unit: str = "") -> str:
    """Return an amount of a budget in its unit; a dash for None.

    Examples
    --------
    >>> amount(1_500_000.0, "tokens"), amount(1.5, "usd"), amount(90, "wall_clock"), amount(None)
    ('1.5M', '$1.50', '1 min 30 s', '–')
    """
    if value is None:
        return NOTHING
    if unit == "usd":
        return usd(value)
    if unit == "wall_clock":
        return duration(value)
    return short(value)


def rank_interval(low: int, high: int) -> str:
    """Return a rank interval.

    Examples
    --------
    >>> rank_interval(1, 1), rank_interval(2, 4)
    ('1', '2–4')
    """
    if low == high:
        return str(low)
    return f"{low}–{high}"


def listing(names: Sequence[str], most: int = 4) -> str:
    """Return names as a phrase, at most `most` of them.

    Examples
    --------
    >>> listing(["oak"]), listing(["oak", "elm", "ash"])
    ('oak', 'oak, elm and ash')
    >>> listing(["a", "b", "c", "d", "e", "f"])
    'a, b, c and 3 more'
    """
    shown = list(names)
    if len(shown) > most:
        shown = [*shown[: most - 1], f"{len(shown) - most + 1} more"]
    if len(shown) <= 1:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def range_words(value: Range, unit: str = "trials") -> str:
    """Return the 80 % interval of a forecast quantity in the words of its budget's unit.

    Examples
    --------
    >>> range_words(Range(410, 1_203, 4_120)), range_words(Range(60, 90, 300), "wall_clock")
    ('410–4,120', '1 min 00 s–5 min 00 s')
    """
    return f"{amount(value.low, unit)}–{amount(value.high, unit)}"


def chance(probability: float) -> str:
    """Return a simulated probability as whole per cent; certainty is not claimed.

    Examples
    --------
    >>> chance(0.0), chance(0.626), chance(1.0)
    ('< 1 %', '63 %', '> 99 %')
    """
    if probability < 0.01:
        return "< 1 %"
    if probability > 0.99:
        return "> 99 %"
    return f"{probability * 100:.0f} %"


def share_words(part: int, whole: int) -> str:
    """Return a share of a sample with its 95 % interval (Clopper and Pearson).

    Examples
    --------
    >>> share_words(3, 60)
    '3 of 60 (5.0 %, 95 % interval 1.0 to 13.9 %)'
    """
    from scipy.special import betaincinv

    low = betaincinv(part, whole - part + 1, 0.025) if part else 0.0
    high = betaincinv(part + 1, whole - part, 0.975) if part < whole else 1.0
    shares = [f"{100 * share:.1f}" for share in (part / whole, low, high)]
    return "{:,} of {:,} ({} %, 95 % interval {} to {} %)".format(part, whole, *shares)
