"""Thresholds of rubric variables: rules that say how they are found, and their frozen values.

A threshold that is computed again after each attempt moves, and with it the category of answers already
judged. A run that adds trials therefore finds its thresholds once, stores them and
judges every attempt by the same values; :class:`Thresholds` is that frozen set.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from scorio.categorical.conditions import Condition, Scope, finite_number, parse
from scorio.categorical.io import BINARY_SIGNALS, SIGNAL_TO_COLUMN
from scorio.categorical.signals import Signals

FloatArray: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ThresholdRule:
    """A threshold as a quantile of a signal.

    Parameters
    ----------
    name : str
        Name under which conditions use it.
    signal : str
        Signal whose values are taken.
    quantile : float
        In [0, 1]; linear interpolation between order statistics.
    among : Condition, optional
        Only attempts where it holds count; default: all.
    """

    name: str
    signal: str
    quantile: float
    among: Condition | None = None

    def __str__(self) -> str:
        among = "" if self.among is None else f" among {self.among}"
        return f"{self.quantile:g} quantile of {self.signal}{among}"

    def values(self, signals: Signals, fixed: Mapping[str, float]) -> FloatArray:
        """Return the values that the quantile is taken of: 1-D, without missing ones.

        `fixed` holds the thresholds of fixed value, which `among` may use.
        """
        scope = SignalScope(signals, fixed)
        taken = signals.made & ~np.isnan(scope.signal(self.signal))
        if self.among is not None:
            taken &= self.among.truth(scope).holds
        return scope.signal(self.signal)[taken]


@dataclass(frozen=True, slots=True)
class SignalScope(Scope):
    """Recorded signals and threshold values as a condition's scope; missing values are NaN."""

    signals: Signals
    thresholds: Mapping[str, float]

    def signal(self, name: str) -> FloatArray:
        """Return a signal's values, NaN where it is missing."""
        return self.signals[name] if name in self.signals else np.full(self.signals.shape, np.nan)

    def threshold(self, name: str) -> float:
        """Return a threshold's value, NaN where it is not set."""
        return self.thresholds.get(name, math.nan)


@dataclass(frozen=True, slots=True)
class Threshold:
    """One frozen threshold: its name, value and where the value comes from, in words."""

    name: str
    value: float
    source: str = "given"


class HasRules(Protocol):
    """A schema's description of its thresholds."""

    @property
    def name(self) -> str:
        """Name, for messages."""

    @property
    def threshold_rules(self) -> tuple[ThresholdRule, ...]:
        """Rules of the thresholds that its categories use."""

    @property
    def given_thresholds(self) -> Mapping[str, float]:
        """Values that the schema itself fixes."""

    def check_signals(self, signals: Signals) -> None:
        """Raise ValueError where a signal that the schema needs was not recorded."""


class Thresholds(Mapping[str, float]):
    """Frozen values of thresholds, by name.

    Parameters
    ----------
    values : mapping of str to float, or iterable of Threshold
        Finite values.

    Raises
    ------
    ValueError
        If a value is not a finite number or a name comes twice.

    Examples
    --------
    Find the thresholds once, store them, use them again:

    >>> import json
    >>> signals = Signals(is_correct=[1, 0, 1, 1], repeated_pattern=[0, 0, 0, 0],
    ...                   token_ratio=[0.1, 0.2, 0.3, 0.4])
    >>> from scorio.categorical import get_schema
    >>> thresholds = Thresholds.observed(signals, get_schema("efficiency-adjusted"))
    >>> {name: round(value, 3) for name, value in thresholds.items()}
    {'len_p33': 0.199, 'len_p66': 0.298}
    >>> stored = json.dumps(thresholds.to_dict())
    >>> Thresholds.from_dict(json.loads(stored)) == thresholds
    True
    """

    __slots__ = ("_entries",)

    def __init__(self, values: Mapping[str, float] | tuple[Threshold, ...] = ()) -> None:
        if isinstance(values, Mapping):
            values = tuple(Threshold(name, value) for name, value in values.items())
        entries: dict[str, Threshold] = {}
        for entry in values:
            if entry.name in entries:
                raise ValueError(f"threshold {entry.name!r} is given twice")
            entries[entry.name] = Threshold(entry.name, _finite(entry.name, entry.value), entry.source)
        self._entries = entries

    @classmethod
    def observed(
        cls, signals: Signals, schema: HasRules, given: Mapping[str, float] | None = None
    ) -> Thresholds:
        """Find the thresholds that `schema` uses from observed attempts, and freeze them.

        Parameters
        ----------
        signals : Signals
            Attempts of the dataset, of every model that is to be compared (Table 4 takes thresholds per
            dataset).
        schema : Schema
            Its rules say which quantiles are needed.
        given : mapping of str to float, optional
            Values fixed by hand; they take precedence over rules.

        Returns
        -------
        Thresholds
            One value for every threshold of the schema.

        Raises
        ------
        ValueError
            If a needed signal was not recorded, `given` names a threshold the schema does not use, a value
            is not finite, no attempt is there to take a quantile of, or a lower quantile exceeds a higher
            one.
        """
        schema.check_signals(signals)
        thresholds = cls(_found(signals, schema, given or {}))
        thresholds.require(schema)
        return thresholds

    @classmethod
    def observed_where_possible(
        cls, signals: Signals, schema: HasRules, given: Mapping[str, float] | None = None
    ) -> Thresholds:
        """Find thresholds as :meth:`observed` does, leaving out those of which there are no attempts.

        Right only for judging the very attempts they come from: none of them needs what is left out.
        """
        return cls(_found(signals, schema, given or {}))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Thresholds:
        """Rebuild thresholds from what :meth:`to_dict` returned, also after a trip through JSON.

        Parameters
        ----------
        data : mapping
            Name to ``{"value": number, "source": text}``, or simply name to number.

        Raises
        ------
        ValueError
            If an entry has another form.
        """
        entries = []
        for name, entry in data.items():
            if isinstance(entry, Mapping):
                if "value" not in entry or set(entry) - {"value", "source"}:
                    raise ValueError(f"threshold {name!r} must be {{value, source}}, got {dict(entry)!r}")
                entries.append(Threshold(name, entry["value"], str(entry.get("source", "given"))))
            else:
                entries.append(Threshold(name, entry))
        return cls(tuple(entries))

    @classmethod
    def from_columns(cls, columns: Mapping[str, NDArray[Any]]) -> Thresholds:
        """Return the median of every signal that :func:`scorio.categorical.load_records` recorded.

        For :func:`scorio.categorical.evaluate_schema`: 0.5 for signals that are 0 or 1.
        """
        medians = {}
        for name, column in SIGNAL_TO_COLUMN.items():
            values = np.asarray(columns.get(column, ()), dtype=np.float64)
            known = values[np.isfinite(values)]
            if name in BINARY_SIGNALS and column in columns:
                medians[name] = 0.5
            elif known.size:
                medians[name] = float(np.median(known))
        return cls(medians)

    @property
    def medians(self) -> dict[str, float]:
        """The values by name."""
        return dict(self)

    def to_dict(self) -> dict[str, dict[str, float | str]]:
        """Return the values and their sources as JSON-able data; floats survive exactly."""
        return {name: {"value": entry.value, "source": entry.source} for name, entry in self._entries.items()}

    def source(self, name: str) -> str:
        """Return in words where a threshold's value comes from."""
        return self._entries[name].source

    def require(self, schema: HasRules) -> None:
        """Raise ValueError unless every threshold that `schema` does not fix itself is here, in order."""
        missing = [rule for rule in schema.threshold_rules if rule.name not in self]
        if missing:
            names = ", ".join(rule.name for rule in missing)
            rules = "; ".join(f"{rule.name} is the {rule}" for rule in missing)
            raise ValueError(
                f"schema {schema.name!r} needs a value of {names} and there is none: give it, or observe "
                f"attempts that have one ({rules})"
            )
        _check_order(schema, self)

    def __getitem__(self, name: str) -> float:
        return self._entries[name].value

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __hash__(self) -> int:
        return hash(frozenset(self.items()))

    def __repr__(self) -> str:
        inner = ", ".join(f"{name!r}: {value!r}" for name, value in self.items())
        return f"Thresholds({{{inner}}})"


def parse_rule(
    name: str,
    data: Mapping[str, object],
    variables: Mapping[str, object],
    fixed: Collection[str],
    where: str,
) -> ThresholdRule:
    """Turn a rule written as plain data, ``{signal, quantile, among}``, into a :class:`ThresholdRule`.

    Parameters
    ----------
    name : str
        The threshold's name.
    data : mapping
        ``signal`` (name), ``quantile`` (in [0, 1]) and, optionally, ``among`` (a condition).
    variables : mapping
        Rubric variables that `among` may name.
    fixed : collection of str
        Thresholds of fixed value, which `among` may use; it may not use other quantiles.
    where : str
        Whose threshold it is, for messages.

    Raises
    ------
    ValueError
        If the rule is malformed.
    """
    place = f"{where}, threshold {name!r}"
    if set(data) - {"signal", "quantile", "among"} or not {"signal", "quantile"} <= set(data):
        raise ValueError(f"{place}: expected {{signal, quantile, among (optional)}}, got {dict(data)!r}")
    signal, quantile = data["signal"], data["quantile"]
    if not isinstance(signal, str):
        raise ValueError(f"{place}: signal must be a signal's name, got {signal!r}")
    level = finite_number(quantile)
    if level is None or not 0 <= level <= 1:
        raise ValueError(f"{place}: quantile must be in [0, 1], got {quantile!r}")
    among = None if data.get("among") is None else parse(data["among"], variables, fixed, place)
    return ThresholdRule(name, signal, level, among)


def _found(signals: Signals, schema: HasRules, given: Mapping[str, float]) -> tuple[Threshold, ...]:
    """Return the thresholds of `schema`: given ones first, quantiles of the attempts for the rest."""
    rules = {rule.name: rule for rule in schema.threshold_rules}
    for name in given:
        if name not in rules and name not in schema.given_thresholds:
            known = ", ".join([*rules, *schema.given_thresholds]) or "none"
            raise ValueError(f"given: schema {schema.name!r} has no threshold {name!r}; it has: {known}")
    fixed = {**schema.given_thresholds, **given}
    entries = [Threshold(name, value) for name, value in fixed.items()]
    for name, rule in rules.items():
        if name in given:
            continue
        values = rule.values(signals, fixed)
        if values.size:
            value = float(np.quantile(values, rule.quantile))
            entries.append(Threshold(name, value, f"{rule}, {values.size} attempts"))
    return tuple(entries)


def _check_order(schema: HasRules, values: Mapping[str, float]) -> None:
    """Raise ValueError where a lower quantile of the same values lies above a higher one."""
    families: dict[tuple[str, Condition | None], list[ThresholdRule]] = {}
    for rule in schema.threshold_rules:
        families.setdefault((rule.signal, rule.among), []).append(rule)
    for rules in families.values():
        ordered = sorted(rules, key=lambda rule: rule.quantile)
        for lower, upper in itertools.pairwise(ordered):
            if values[lower.name] > values[upper.name]:
                raise ValueError(
                    f"schema {schema.name!r}: threshold {lower.name} = {values[lower.name]:g} must not "
                    f"exceed {upper.name} = {values[upper.name]:g}"
                )


def _finite(name: str, value: object) -> float:
    number = finite_number(value)
    if number is None:
        raise ValueError(f"threshold {name!r} must be a finite number, got {value!r}")
    return number
