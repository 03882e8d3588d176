"""Frozen values of the thresholds of a schema.

A threshold that is computed again after each attempt moves, and with it the category of answers already
judged. A run that adds trials therefore finds its thresholds once, stores them and
judges every attempt by the same values; :class:`Thresholds` is that frozen set.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scorio.arrays import floats
from scorio.categorical.conditions import finite_number
from scorio.categorical.records import BINARY_SIGNALS, SIGNAL_TO_COLUMN
from scorio.categorical.schema import Schema
from scorio.categorical.signals import Signals


class Thresholds(Mapping[str, float]):
    """Frozen values of thresholds, by name.

    Parameters
    ----------
    values : mapping of str to float
        Finite values.
    sources : mapping of str to str, optional
        Where values come from, in words; default: given.

    Raises
    ------
    ValueError
        If a value is not a finite number.

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

    __slots__ = ("_sources", "_values")

    def __init__(
        self, values: Mapping[str, float] | None = None, sources: Mapping[str, str] | None = None
    ) -> None:
        self._values: dict[str, float] = {}
        for name, value in (values or {}).items():
            number = finite_number(value)
            if number is None:
                raise ValueError(f"threshold {name!r} must be a finite number, got {value!r}")
            self._values[name] = number
        self._sources = {name: (sources or {}).get(name, "given") for name in self._values}

    @classmethod
    def observed(
        cls,
        signals: Signals,
        schema: Schema,
        given: Mapping[str, float] | None = None,
        *,
        partial: bool = False,
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
        partial : bool
            Leave out thresholds of which there are no attempts. Right only for judging the very attempts they
            come from: none of them needs such a threshold.

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
        rules = {rule.name: rule for rule in schema.threshold_rules}
        known = [*rules, *schema.given_thresholds]
        unknown = [name for name in given or () if name not in known]
        if unknown:
            has = ", ".join(known) or "none"
            raise ValueError(f"given: schema {schema.name!r} has no threshold {unknown[0]!r}; it has: {has}")
        fixed = {**schema.given_thresholds, **(given or {})}
        values, sources = dict(fixed), {}
        for name in rules.keys() - fixed.keys():
            taken = rules[name].values(signals, fixed)
            if taken.size:
                values[name] = float(np.quantile(taken, rules[name].quantile))
                sources[name] = f"{rules[name]}, {taken.size} attempts"
        thresholds = cls({name: values[name] for name in (*fixed, *rules) if name in values}, sources)
        if not partial:
            thresholds.require(schema)
        return thresholds

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
        values, sources = {}, {}
        for name, entry in data.items():
            if isinstance(entry, Mapping):
                parts = dict(entry)
            else:
                parts = {"value": entry}
            values[name], sources[name] = parts.pop("value", None), str(parts.pop("source", "given"))
            if parts:
                raise ValueError(f"threshold {name!r} must be {{value, source}}, got {entry!r}")
        return cls(values, sources)

    @classmethod
    def from_columns(cls, columns: Mapping[str, NDArray[Any]]) -> Thresholds:
        """Return the median of every signal that :func:`scorio.categorical.load_records` recorded.

        For :func:`scorio.categorical.evaluate_schema`: 0.5 for signals that are 0 or 1.
        """
        medians = {}
        for name, column in SIGNAL_TO_COLUMN.items():
            values = floats(columns.get(column, ()))
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
        return {name: {"value": value, "source": self._sources[name]} for name, value in self.items()}

    def source(self, name: str) -> str:
        """Return in words what a threshold's value comes from."""
        return self._sources[name]

    def require(self, schema: Schema) -> None:
        """Raise ValueError unless every threshold that `schema` does not fix itself is here, in order."""
        missing = [f"{rule.name} (the {rule})" for rule in schema.threshold_rules if rule.name not in self]
        if missing:
            raise ValueError(
                f"schema {schema.name!r} needs a value of {', '.join(missing)} and there is none: give it, "
                "or observe attempts that have one"
            )
        ordered = sorted(schema.threshold_rules, key=lambda rule: rule.quantile)
        for lower, upper in itertools.combinations(ordered, 2):
            of_same_values = (lower.signal, lower.among) == (upper.signal, upper.among)
            if of_same_values and self[lower.name] > self[upper.name]:
                raise ValueError(
                    f"schema {schema.name!r}: threshold {lower.name} = {self[lower.name]:g} must not "
                    f"exceed {upper.name} = {self[upper.name]:g}"
                )

    def __getitem__(self, name: str) -> float:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return hash(frozenset(self.items()))

    def __repr__(self) -> str:
        return f"Thresholds({self._values!r})"
