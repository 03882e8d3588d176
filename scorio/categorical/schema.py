"""A categorical schema: an ordered list of categories, each with the condition that makes an attempt one.

The first category whose condition holds is the attempt's category. A schema is checked when it is made:
every attempt there can be must fall into a category, and every category must be reachable.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from scorio.categorical.conditions import Condition, Operands, finite_number, operands, parse
from scorio.categorical.partition import check_partition
from scorio.categorical.signals import BASE_SIGNALS, Signals
from scorio.categorical.thresholds import SignalScope, ThresholdRule, parse_rule
from scorio.categorical.variables import RUBRIC_VARIABLES, THRESHOLD_RULES

IntArray: TypeAlias = NDArray[np.int64]

_KEYS = frozenset({"name", "title", "note", "variables", "thresholds", "categories", "weights"})


@dataclass(frozen=True, slots=True)
class Category:
    """One category of a schema: its name and the condition that makes an attempt one."""

    name: str
    condition: Condition

    def __str__(self) -> str:
        return f"category {self.name!r} ({self.condition})"


@dataclass(frozen=True, eq=False)
class Schema:
    """A categorical schema, made by :meth:`from_dict` or :func:`scorio.categorical.get_schema`.

    Attributes
    ----------
    name, title, note : str
        Short name, the paper's heading, and where the definition or its weights come from.
    categories : tuple of Category
        Categories 0..C in order; the first whose condition holds is an attempt's category.
    weights : tuple of float or None
        Default weights w_0..w_C.
    threshold_rules : tuple of ThresholdRule
        Thresholds the categories use that are quantiles of observed attempts.
    given_thresholds : mapping of str to float
        Thresholds the categories use whose values the schema fixes.
    signals, optional_signals : frozenset of str
        Base or own signals that an attempt must have, and those that count only where recorded.
    """

    name: str
    title: str
    note: str
    categories: tuple[Category, ...]
    weights: tuple[float, ...] | None
    threshold_rules: tuple[ThresholdRule, ...]
    given_thresholds: Mapping[str, float]
    signals: frozenset[str]
    optional_signals: frozenset[str]
    _definition: dict[str, Any] = field(repr=False)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Schema:
        """Make a schema from plain data, such as a YAML or JSON file holds.

        Parameters
        ----------
        data : mapping
            ``name``: str. ``categories``: list of ``{name, when}``, category 0 first; `when` is a condition
            (:mod:`scorio.categorical.conditions`). Optional: ``weights``, one number a category;
            ``variables``, rubric variables in addition to those of Table 4; ``thresholds``, thresholds, each
            a number or a rule ``{signal, quantile, among}``, which may replace those of Table 4;
            ``title`` and ``note``, text.

        Returns
        -------
        Schema
            Checked.

        Raises
        ------
        ValueError
            If the data is malformed, an attempt could be without a category, or a category could never be
            assigned. The message names schema, category and condition.

        Examples
        --------
        >>> schema = Schema.from_dict({
        ...     "name": "summary",
        ...     "thresholds": {"faithful": 0.8},
        ...     "categories": [
        ...         {"name": "unfaithful", "when": {"signal": "faithfulness", "below": "faithful"}},
        ...         {"name": "long", "when": {"signal": "token_ratio", "above": "len_p66"}},
        ...         {"name": "good", "when": "otherwise"},
        ...     ],
        ...     "weights": [0, 0.5, 1],
        ... })
        >>> signals = Signals(token_ratio=[0.1, 0.9, 0.1], extra={"faithfulness": [0.9, 0.9, 0.3]})
        >>> schema.assign(signals, {"faithful": 0.8, "len_p66": 0.5})
        array([2, 1, 0])
        """
        name = _text(data, "name", "schema")
        where = f"schema {name!r}"
        unknown = sorted(str(key) for key in data if key not in _KEYS)
        if unknown:
            raise ValueError(f"{where}: unknown key {unknown[0]!r}; known: {', '.join(sorted(_KEYS))}")
        variables = {**RUBRIC_VARIABLES, **_own(data, "variables", where)}
        thresholds = {**THRESHOLD_RULES, **_own(data, "thresholds", where)}
        categories = _categories(data, variables, thresholds, where)
        used = operands(category.condition for category in categories)
        rules, given = _thresholds(thresholds, used, variables, where)
        among = operands(rule.among for rule in rules if rule.among is not None)
        needed = used.signals | among.signals | {rule.signal for rule in rules}
        schema = cls(
            name=name,
            title=str(data.get("title", name)),
            note=str(data.get("note", "")),
            categories=categories,
            weights=None
            if data.get("weights") is None
            else check_weights(data["weights"], categories, where),
            threshold_rules=rules,
            given_thresholds=given,
            signals=frozenset(needed),
            optional_signals=frozenset((used.optional | among.optional) - needed),
            _definition=copy.deepcopy(dict(data)),
        )
        check_partition(where, [(str(item), item.condition) for item in categories])
        return schema

    def to_dict(self) -> dict[str, Any]:
        """Return the plain data this schema was made from."""
        return copy.deepcopy(self._definition)

    def assign(self, signals: Signals, thresholds: Mapping[str, float]) -> IntArray:
        """Return the category of each attempt.

        Parameters
        ----------
        signals : Signals
            Attempts, any shape.
        thresholds : mapping of str to float
            Values of the thresholds, usually :class:`~scorio.categorical.Thresholds`.

        Returns
        -------
        numpy.ndarray of int64
            Categories 0..C in the shape of the signals; −1 where no attempt was made.

        Raises
        ------
        ValueError
            If a needed signal was not recorded, or an attempt lacks a signal or threshold on which its
            category depends.

        Examples
        --------
        >>> from scorio.categorical import get_schema
        >>> signals = Signals(is_correct=[1, 0, 1], has_box=[0, 1, 1], repeated_pattern=[0, 0, 1])
        >>> get_schema("format-aware").assign(signals, {})
        array([3, 2, 0])
        """
        self.check_signals(signals)
        scope = SignalScope(signals, {**self.given_thresholds, **thresholds})
        assigned = np.full(signals.shape, -1, dtype=np.int64)
        undecided = signals.made.copy()
        for index, category in enumerate(self.categories):
            truth = category.condition.truth(scope)
            np.copyto(assigned, index, where=undecided & truth.holds)
            stuck = undecided & ~truth.holds & ~truth.fails
            if stuck.any():
                raise self._missing(category, scope, np.asarray(stuck))
            undecided = undecided & truth.fails
        return assigned

    def check_signals(self, signals: Signals) -> None:
        """Raise ValueError, naming it, where a signal that this schema needs was not recorded at all."""
        for name in sorted(self.signals):
            if name not in signals:
                kind = BASE_SIGNALS.get(name)
                what = f" ({kind.meaning}); {kind.source}" if kind else "; pass it in Signals(extra=...)"
                raise ValueError(
                    f"schema {self.name!r} needs signal {name!r}, which was not recorded{what}, or choose "
                    "another schema"
                )

    def _missing(self, category: Category, scope: SignalScope, stuck: NDArray[np.bool_]) -> ValueError:
        """Return the error for attempts whose category depends on something that is missing."""
        used = operands([category.condition])
        lacking = [f"signal {n!r}" for n in sorted(used.signals) if np.isnan(scope.signal(n)[stuck]).any()]
        lacking += [f"threshold {n!r}" for n in sorted(used.thresholds) if math.isnan(scope.threshold(n))]
        place = tuple(int(i) for i in np.argwhere(stuck)[0])
        return ValueError(
            f"schema {self.name!r}, {category}: {' and '.join(lacking)} missing for {int(stuck.sum())} "
            f"attempt{'s' if stuck.sum() > 1 else ''}, first at {place}; record it, or mark attempts that "
            "were not made in Signals(observed=...)"
        )


def check_weights(weights: object, categories: Sequence[Category], where: str) -> tuple[float, ...]:
    """Return `weights` as floats, one a category.

    Parameters
    ----------
    weights : object
        What the caller gave.
    categories : sequence of Category
        Categories the weights belong to.
    where : str
        Whose weights they are, for messages.

    Raises
    ------
    ValueError
        If they are not finite numbers, or not as many as categories.
    """
    values = list(weights) if isinstance(weights, (Sequence, np.ndarray)) else None
    if values is None or isinstance(weights, str):
        raise ValueError(f"{where}: weights must be a list of numbers, got {weights!r}")
    if len(values) != len(categories):
        names = ", ".join(category.name for category in categories)
        raise ValueError(
            f"{where}: weights must be {len(categories)} numbers, one a category ({names}), got {len(values)}"
        )
    numbers = []
    for value, category in zip(values, categories, strict=True):
        number = finite_number(value)
        if number is None:
            raise ValueError(
                f"{where}: weight of category {category.name!r} must be a finite number, got {value!r}"
            )
        numbers.append(number)
    return tuple(numbers)


def _categories(
    data: Mapping[str, Any], variables: Mapping[str, object], thresholds: Mapping[str, object], where: str
) -> tuple[Category, ...]:
    entries = data.get("categories")
    if not isinstance(entries, Sequence) or isinstance(entries, str) or len(entries) < 2:
        raise ValueError(
            f"{where}: categories must be a list of at least two {{name, when}}, got {entries!r}"
        )
    categories: list[Category] = []
    for index, entry in enumerate(entries):
        place = f"{where}, category {index}"
        if not isinstance(entry, Mapping) or set(entry) != {"name", "when"}:
            raise ValueError(f"{place}: expected {{name, when}}, got {entry!r}")
        name = _text(entry, "name", place)
        if any(category.name == name for category in categories):
            raise ValueError(f"{place}: name {name!r} is used twice")
        condition = parse(entry["when"], variables, thresholds, f"{where}, category {name!r}")
        categories.append(Category(name, condition))
    return tuple(categories)


def _thresholds(
    specs: Mapping[str, object], used: Operands, variables: Mapping[str, object], where: str
) -> tuple[tuple[ThresholdRule, ...], dict[str, float]]:
    """Return the used thresholds that are rules, and those of fixed value that categories or rules use."""
    fixed = {name: number for name, spec in specs.items() if (number := finite_number(spec)) is not None}
    rules: list[ThresholdRule] = []
    for name, spec in specs.items():
        if name in fixed or name not in used.thresholds:
            continue
        if not isinstance(spec, Mapping):
            raise ValueError(
                f"{where}, threshold {name!r}: expected a finite number or {{signal, quantile}}, got {spec!r}"
            )
        rules.append(parse_rule(name, spec, variables, fixed, where))
    among = operands(rule.among for rule in rules if rule.among is not None)
    given = {name: value for name, value in fixed.items() if name in used.thresholds | among.thresholds}
    return tuple(rules), given


def _own(data: Mapping[str, Any], key: str, where: str) -> Mapping[str, object]:
    own = data.get(key)
    if own is None:
        return {}
    if not isinstance(own, Mapping) or not all(isinstance(name, str) and name for name in own):
        raise ValueError(f"{where}: {key} must be a mapping from name to definition, got {own!r}")
    return own


def _text(data: Mapping[str, Any], key: str, where: str) -> str:
    value = data.get(key)
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{where}: {key} must be a non-empty text, got {value!r}")
    return value
