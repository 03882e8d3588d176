"""A categorical schema: an ordered list of categories, each with the condition that makes an attempt one.

The first category whose condition holds is the attempt's category. A schema is checked when it is made:
every attempt there can be must fall into a category, and every category must be reachable.

The paper's rubric variables and thresholds (Table 4) and its twelve schemas (Table 5) [1]_ are data, in
``schemas.json``. The categories and their numbers are the paper's. If the table leaves a case open or decides
it twice, the schema's `note` says how it is read here. Weights are this package's, unless the note says
otherwise: 0 for the worst category and for invalid output, 1 for the best, in steps that follow the table's
one-line description of the schema (appendix D.1); no category is worth less than invalid output, so that no
model gains by degenerating. ``invalid`` is always category 0; it holds for truncated answers
(``repeated_pattern``) and, if a verifier was run, for those it calls off-task. Table 5 grades correct answers
by confidence in three levels; Table 4 gives their two cut points (``corr_p33``, ``corr_p66``) without naming
the levels, which are ``corr_high_conf``, ``corr_mid_conf`` and ``corr_low_conf`` here.

References
----------
.. [1] Hariri, Samandar, Hinczewski and Chaudhary (2026). Don't Pass@k: A Bayesian Framework for Large
   Language Model Evaluation. arXiv:2510.04265.
"""

from __future__ import annotations

import copy
import functools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from scorio._arguments import first
from scorio.arrays import Bools, Floats, Ints
from scorio.categorical.conditions import (
    Condition,
    Grammar,
    Values,
    Variable,
    finite_number,
    names_in,
    value_of,
)
from scorio.categorical.partition import check_partition
from scorio.categorical.signals import BASE_SIGNALS, Signals

_TABLES = json.loads(files("scorio.categorical").joinpath("schemas.json").read_text(encoding="utf-8"))
RUBRIC_VARIABLES: Mapping[str, object] = _TABLES["variables"]
"""Rubric variables of Table 4: name to condition."""
THRESHOLD_RULES: Mapping[str, object] = _TABLES["thresholds"]
"""Thresholds of Table 4: name to the signal and quantile they are, and among which attempts."""

_KEYS = frozenset({"name", "title", "note", "variables", "thresholds", "categories", "weights"})
_OTHER_NAMES = {"concise-high-conf": "concision-high-conf", "verifier-prob": "verifier-probe"}
"""Names that the paper's text uses for schemas of Table 5."""


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
        Only attempts for which it holds count; default: all.
    """

    name: str
    signal: str
    quantile: float
    among: Condition | None = None

    def __str__(self) -> str:
        among = ""
        if self.among is not None:
            among = f" among {self.among}"
        return f"{self.quantile:g} quantile of {self.signal}{among}"

    def values(self, signals: Signals, fixed: Mapping[str, float]) -> Floats:
        """Return the values that the quantile is taken of: 1-D, without missing ones.

        `fixed` holds the thresholds of fixed value, which `among` may use.
        """
        known = _known(signals, fixed)
        values = np.broadcast_to(value_of(Variable("signal", self.signal), known), signals.shape)
        taken = signals.made & ~np.isnan(values)
        if self.among is not None:
            taken &= self.among.truth(known) == 1
        return values[taken]


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
        Base or own signals that an attempt must have, and those that count only if recorded.
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
        >>> signals = Signals(token_ratio=[0.1, 0.9, 0.1], faithfulness=[0.9, 0.9, 0.3])
        >>> schema.assign(signals, {"faithful": 0.8, "len_p66": 0.5})
        array([2, 1, 0])
        """
        where = f"schema {data.get('name')!r}"
        unknown = sorted(str(key) for key in data if key not in _KEYS)
        if unknown:
            raise ValueError(f"{where}: unknown key {unknown[0]!r}; known: {', '.join(sorted(_KEYS))}")
        name = _text(data, "name", "schema")
        variables = {**RUBRIC_VARIABLES, **_own(data, "variables", where)}
        specs = {**THRESHOLD_RULES, **_own(data, "thresholds", where)}
        categories = _categories(data, Grammar(variables, specs, where))
        used = names_in(category.condition for category in categories)
        fixed = {key: number for key, spec in specs.items() if (number := finite_number(spec)) is not None}
        rules = tuple(
            _rule(key, specs[key], Grammar(variables, fixed, f"{where}, threshold {key!r}"))
            for key in specs
            if key in used.thresholds and key not in fixed
        )
        among = names_in(rule.among for rule in rules if rule.among is not None)
        needed = used.signals | among.signals | {rule.signal for rule in rules}
        weights = data.get("weights")
        given = {key: value for key, value in fixed.items() if key in used.thresholds | among.thresholds}
        checked = None
        if weights is not None:
            checked = check_weights(weights, categories, where)
        schema = cls(
            name=name,
            title=str(data.get("title", name)),
            note=str(data.get("note", "")),
            categories=categories,
            weights=checked,
            threshold_rules=rules,
            given_thresholds=given,
            signals=needed,
            optional_signals=(used.optional | among.optional) - needed,
            _definition=copy.deepcopy(dict(data)),
        )
        check_partition(where, [(str(item), item.condition) for item in categories])
        return schema

    def to_dict(self) -> dict[str, Any]:
        """Return the plain data this schema was made from."""
        return copy.deepcopy(self._definition)

    def assign(self, signals: Signals, thresholds: Mapping[str, float]) -> Ints:
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
            Categories 0..C in the shape of the signals; −1 if no attempt was made.

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
        known = _known(signals, {**self.given_thresholds, **thresholds})
        assigned = np.full(signals.shape, -1, dtype=np.int64)
        undecided = signals.made.copy()
        for index, category in enumerate(self.categories):
            truth = category.condition.truth(known)
            np.copyto(assigned, index, where=undecided & (truth == 1))
            stuck = undecided & (truth == 0)
            if stuck.any():
                raise self._missing(category, known, np.asarray(stuck))
            undecided &= truth == -1
        return assigned

    def check_signals(self, signals: Signals) -> None:
        """Raise ValueError, naming it, if a signal that this schema needs was not recorded at all."""
        for name in sorted(self.signals):
            if name not in signals:
                kind = BASE_SIGNALS.get(name)
                what = f" ({kind.meaning}); {kind.source}" if kind else f"; pass it in Signals({name}=...)"
                raise ValueError(
                    f"schema {self.name!r} needs signal {name!r}, which was not recorded{what}, or choose "
                    "another schema"
                )

    def _missing(self, category: Category, known: Values, stuck: Bools) -> ValueError:
        """Return the error for attempts whose category depends on something that is missing."""
        used = names_in([category.condition])
        lacking = []
        needed = [Variable("signal", name) for name in sorted(used.signals)]
        needed += [Variable("threshold", name) for name in sorted(used.thresholds)]
        for variable in needed:
            values = np.broadcast_to(value_of(variable, known), stuck.shape)
            if np.isnan(values[stuck]).any():
                lacking.append(f"{variable.kind} {variable.name!r}")
        return ValueError(
            f"schema {self.name!r}, {category}: {' and '.join(lacking)} missing for {int(stuck.sum())} "
            f"attempt(s), first at {first(stuck)}; record it, or mark attempts that "
            "were not made in Signals(observed=...)"
        )


def _known(signals: Signals, thresholds: Mapping[str, float]) -> Values:
    """Return what is known of attempts, as conditions read it."""
    known: dict[Variable, ArrayLike] = {Variable("signal", name): signals[name] for name in signals.names}
    for name, value in thresholds.items():
        known[Variable("threshold", name)] = value
    return known


def check_weights(weights: object, categories: Sequence[Category], where: str) -> tuple[float, ...]:
    """Return `weights` as floats, one a category; ValueError, beginning with `where`, if they are not."""
    if isinstance(weights, (list, tuple, np.ndarray)):
        given = list(weights)
    else:
        given = []
    numbers = [number for weight in given if (number := finite_number(weight)) is not None]
    if len(given) != len(categories) or len(numbers) != len(given):
        names = ", ".join(category.name for category in categories)
        raise ValueError(
            f"{where}: weights must be {len(categories)} finite numbers, one a category ({names}), "
            f"got {weights!r}"
        )
    return tuple(numbers)


def _categories(data: Mapping[str, Any], grammar: Grammar) -> tuple[Category, ...]:
    entries = data.get("categories")
    where = grammar.where
    if not isinstance(entries, Sequence) or isinstance(entries, str) or len(entries) < 2:
        raise ValueError(
            f"{where}: categories must be a list of at least two {{name, when}}, got {entries!r}"
        )
    categories: dict[str, Category] = {}
    for index, entry in enumerate(entries):
        place = f"{where}, category {index}"
        if not isinstance(entry, Mapping) or set(entry) != {"name", "when"}:
            raise ValueError(f"{place}: expected {{name, when}}, got {entry!r}")
        name = _text(entry, "name", place)
        if name in categories:
            raise ValueError(f"{place}: name {name!r} is used twice")
        rules = Grammar(grammar.variables, grammar.thresholds, f"{where}, category {name!r}")
        categories[name] = Category(name, rules.parse(entry["when"]))
    return tuple(categories.values())


def _rule(name: str, spec: object, grammar: Grammar) -> ThresholdRule:
    """Return a rule written as ``{signal, quantile, among}``; `among` uses thresholds of fixed value only."""
    if isinstance(spec, Mapping):
        given = dict(spec)
    else:
        given = {}
    signal = given.pop("signal", None)
    among = given.pop("among", None)
    level = finite_number(given.pop("quantile", None))
    if given or not isinstance(signal, str) or level is None or not 0 <= level <= 1:
        raise ValueError(
            f"{grammar.where}: expected a finite number or {{signal: NAME, quantile: number in [0, 1], "
            f"among (optional): condition}}, got {spec!r}"
        )
    condition = None
    if among is not None:
        condition = grammar.parse(among)
    return ThresholdRule(name, signal, level, condition)


def _own(data: Mapping[str, Any], key: str, where: str) -> Mapping[str, object]:
    own = data.get(key) or {}
    if not isinstance(own, Mapping) or not all(isinstance(name, str) and name for name in own):
        raise ValueError(f"{where}: {key} must be a mapping from name to definition, got {own!r}")
    return own


def _text(data: Mapping[str, Any], key: str, where: str) -> str:
    value = data.get(key)
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{where}: {key} must be a non-empty text, got {value!r}")
    return value


def schema_names() -> tuple[str, ...]:
    """Return the names of the paper's twelve schemas, in the order of Table 5.

    Examples
    --------
    >>> schema_names()[:2]
    ('exact-match', 'format-aware')
    """
    return tuple(definition["name"] for definition in _TABLES["schemas"])


def get_schema(name: str) -> Schema:
    """Return one of the paper's twelve schemas.

    Parameters
    ----------
    name : str
        Its name (:func:`schema_names`) or its heading in the paper; case and punctuation do not matter.

    Raises
    ------
    ValueError
        If there is no such schema.

    Examples
    --------
    >>> for category in get_schema("Strict Compliance").categories:
    ...     print(category.name, "=", category.condition)
    invalid = invalid
    wrong or unboxed = wrong or (correct and unboxed)
    correct, boxed = correct and boxed
    """
    key = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    key = _OTHER_NAMES.get(key, key)
    if key not in schema_names():
        raise ValueError(f"schema: unknown name {name!r}; known: {', '.join(schema_names())}")
    return _built(key)


@functools.cache
def _built(name: str) -> Schema:
    return Schema.from_dict(_TABLES["schemas"][schema_names().index(name)])
