"""Base signals of attempts: facts about each answer before a rubric judges it, and how they are computed.

The names and meanings are those of the paper (appendix D.1) [1]_; the verifier's ``compass_context_A``,
``_B``, ``_C`` are called ``verifier_a``, ``verifier_b``, ``verifier_c`` here.

References
----------
.. [1] Hariri, Samandar, Hinczewski and Chaudhary (2026). Don't Pass@k: A Bayesian Framework for Large
   Language Model Evaluation. arXiv:2510.04265.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scorio._arguments import first, positive
from scorio.arrays import Bools, Floats, floats

_SLACK = 1e-6
"""Probabilities that a softmax in single precision returned may leave [0, 1] by this much."""


class SignalKind(NamedTuple):
    """The meaning, source and values of a base signal.

    Parameters
    ----------
    meaning : str
        One line, for messages and documentation.
    source : str
        What to do to have it: the end of the message when it is missing.
    low, high : float
        Closed range of values.
    flag : bool
        Only 0 and 1 are allowed.
    """

    meaning: str
    source: str
    low: float = -np.inf
    high: float = np.inf
    flag: bool = False


_SCORER = "let the scorer record it"
_LOGPROBS = "ask the endpoint for log-probabilities"
_VERIFIER = "run a verifier over the answers"

BASE_SIGNALS: Mapping[str, SignalKind] = {
    "has_box": SignalKind("1 where a final boxed answer is present", _SCORER, 0.0, 1.0, flag=True),
    "is_correct": SignalKind("1 where the answer is correct", _SCORER, 0.0, 1.0),
    "token_ratio": SignalKind(
        "completion tokens over 32,768", "let the endpoint report token usage", 0.0, np.inf
    ),
    "repeated_pattern": SignalKind(
        "0 where finish_reason is 'stop', else 1", "record the finish reason", 0.0, 1.0, flag=True
    ),
    "prompt_bpt": SignalKind("bits per token of the prompt", f"{_LOGPROBS} of the prompt"),
    "completion_bpt": SignalKind("bits per token of the completion", f"{_LOGPROBS} of the completion"),
    "verifier_a": SignalKind("verifier's probability of 'correct'", _VERIFIER, 0.0, 1.0),
    "verifier_b": SignalKind("verifier's probability of 'wrong'", _VERIFIER, 0.0, 1.0),
    "verifier_c": SignalKind("verifier's probability of 'invalid or off-task'", _VERIFIER, 0.0, 1.0),
}
"""Every base signal of the paper, by name."""


class Signals:
    """Signals of attempts as a structure of arrays, all of one shape.

    The shape is free: (M, N) for M questions and N trials, (L, M, N) for L models, (n,) for a plain list
    of attempts, () for one. NaN (or None inside a list) marks an attempt without a signal. Arrays are copied,
    stored as float64 and read-only.

    Parameters
    ----------
    observed : array_like of bool, optional
        False for an attempt that was not made, as in the padding of a ragged matrix. Signals there are
        ignored. Default: every attempt was made.
    **signals : array_like
        Base signals (:data:`BASE_SIGNALS` has their meaning and range) and a user's own signals for a user's
        own schema, by name; None is left out.

    Raises
    ------
    ValueError
        If no signal is given, shapes differ, or a value is not a number, infinite or out of its range.

    Examples
    --------
    >>> signals = Signals(is_correct=[[1, 0], [1, 1]], has_box=[[1, 1], [0, 1]])
    >>> signals.shape
    (2, 2)
    >>> sorted(signals.names)
    ['has_box', 'is_correct']
    """

    def __init__(self, observed: ArrayLike | None = None, **signals: ArrayLike | None) -> None:
        arrays = {name: _numbers(name, value) for name, value in signals.items() if value is not None}
        if not arrays:
            raise ValueError("Signals needs at least one signal, such as is_correct")
        shapes = {name: array.shape for name, array in arrays.items()}
        shape = next(iter(shapes.values()))
        if set(shapes.values()) != {shape}:
            raise ValueError(f"every signal needs one value per attempt; got shapes {shapes}")
        if observed is None:
            made = np.ones(shape, dtype=np.bool_)
        else:
            made = np.array(observed)
        if made.dtype != np.bool_ or made.shape != shape:
            raise ValueError(
                f"observed must be booleans of the signals' shape {shape}, "
                f"got dtype {made.dtype}, shape {made.shape}"
            )
        for name, array in arrays.items():
            _check_range(name, array, made)
            array.setflags(write=False)
        made.setflags(write=False)
        self._arrays, self._made = arrays, made

    @classmethod
    def from_records(
        cls,
        records: Sequence[Mapping[str, Any]],
        names: Iterable[str] | None = None,
        shape: tuple[int, ...] | None = None,
    ) -> Signals:
        """Build signals from one mapping per attempt, such as a scorer records.

        Parameters
        ----------
        records : sequence of mapping
            Signal values of each attempt by name. A missing name or None means the attempt lacks it.
        names : iterable of str, optional
            Signals to take, such as ``schema.signals | schema.optional_signals``; default: the base
            signals. Other keys are left.
        shape : tuple of int, optional
            Shape of the result, in C order; default ``(len(records),)``.

        Returns
        -------
        Signals
            A signal that no record has is left out.

        Raises
        ------
        ValueError
            If `records` is empty, does not fill `shape`, or holds a value that is not a number.

        Examples
        --------
        >>> records = [{"is_correct": True, "finish_reason": "stop"}, {"is_correct": False}]
        >>> Signals.from_records(records)["is_correct"]
        array([1., 0.])
        """
        if not records:
            raise ValueError("records is empty: give one mapping per attempt")
        if shape is None:
            shape = (len(records),)
        if int(np.prod(shape)) != len(records):
            raise ValueError(f"shape {shape} does not hold {len(records)} records")
        columns: dict[str, ArrayLike | None] = {}
        for name in BASE_SIGNALS if names is None else names:
            values = [record.get(name) for record in records]
            known = any(value is not None for value in values)
            columns[name] = _numbers(name, values).reshape(shape) if known else None
        return cls(**columns)

    @property
    def names(self) -> frozenset[str]:
        """Names of the signals that were recorded."""
        return frozenset(self._arrays)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of every array."""
        return self._made.shape

    @property
    def made(self) -> Bools:
        """True if an attempt was made, in `shape`; read-only."""
        return self._made

    def __contains__(self, name: object) -> bool:
        return name in self._arrays

    def __getitem__(self, name: str) -> Floats:
        """Return a recorded signal's array, read-only."""
        try:
            return self._arrays[name]
        except KeyError:
            known = ", ".join(sorted(self._arrays))
            raise KeyError(f"signal {name!r} was not recorded; recorded: {known}") from None


def _numbers(name: str, value: object) -> Floats:
    """Return a fresh float64 array of `value`; None becomes NaN."""
    raw = np.asarray(value)
    numeric = raw.dtype.kind in "biuf" or (raw.dtype.kind == "O" and _all_numbers(raw))
    if not numeric:
        raise ValueError(f"signal {name!r} must hold numbers (None or NaN where missing), got {value!r:.80}")
    return np.array(raw, dtype=np.float64)


def _all_numbers(raw: NDArray[Any]) -> bool:
    return all(item is None or isinstance(item, (bool, int, float, np.number, np.bool_)) for item in raw.flat)


def _check_range(name: str, array: Floats, made: Bools) -> None:
    """Raise ValueError for the first value of an attempt that is infinite or outside the signal's range."""
    kind = BASE_SIGNALS.get(name)
    bad = np.isinf(array)
    expected = "finite"
    if kind is not None and kind.flag:
        bad = ~((array == 0) | (array == 1) | np.isnan(array))
        expected = "0 or 1"
    elif kind is not None and np.isfinite(kind.low):
        slack = 0.0
        if np.isfinite(kind.high):
            slack = _SLACK
        bad |= (array < kind.low - slack) | (array > kind.high + slack)
        expected = f"in [{kind.low:g}, {kind.high:g}]"
    bad &= made
    if bad.any():
        place = first(bad)
        raise ValueError(f"signal {name!r} must be {expected}, got {array[place]:g} at {place}")


TOKEN_RATIO_UNIT = 32_768
"""Tokens to which ``token_ratio`` is relative: the paper's limit on an answer's length."""


def token_ratio(completion_tokens: ArrayLike, unit: float = TOKEN_RATIO_UNIT) -> Floats:
    """Return completion tokens relative to `unit` tokens.

    Parameters
    ----------
    completion_tokens : array_like
        Token counts, any shape, not negative.
    unit : float
        Tokens that count as 1; positive.

    Returns
    -------
    numpy.ndarray
        Ratios, in the shape of `completion_tokens`.

    Raises
    ------
    ValueError
        If a count is negative or not finite, or `unit` is not positive.

    Examples
    --------
    >>> token_ratio([8192, 32768])
    array([0.25, 1.  ])
    """
    tokens = floats(completion_tokens)
    _check_finite("completion_tokens", tokens, least=0.0)
    return tokens / positive("unit", unit)


def repeated_pattern(finish_reason: ArrayLike) -> Floats:
    """Return 0 if the model ended its answer itself (``stop``) and 1 otherwise.

    An answer cut off at the token limit (``length``) therefore counts as degenerate, which makes it
    category 0, ``invalid``, in every schema of the paper.

    Parameters
    ----------
    finish_reason : array_like of str
        The endpoint's finish reason of each attempt, any shape.

    Returns
    -------
    numpy.ndarray
        Zeros and ones, in the shape of `finish_reason`.

    Raises
    ------
    ValueError
        If an entry is not a string.

    Examples
    --------
    >>> repeated_pattern(["stop", "length"])
    array([0., 1.])
    """
    reasons = np.asarray(finish_reason)
    if reasons.dtype.kind != "U":
        raise ValueError(f"finish_reason must hold strings such as 'stop', got {finish_reason!r:.80}")
    return floats(reasons != "stop")


def bits_per_token(logprob_sum: ArrayLike, tokens: ArrayLike) -> Floats:
    """Return the mean negative log-probability in bits per token; lower is more confident.

    Parameters
    ----------
    logprob_sum : array_like
        Sum of the tokens' natural log-probabilities, as endpoints report them.
    tokens : array_like
        Number of tokens summed over, at least 1; broadcasts against `logprob_sum`.

    Returns
    -------
    numpy.ndarray
        Bits per token.

    Raises
    ------
    ValueError
        If a sum is not finite or a count is below 1.

    Examples
    --------
    >>> bits_per_token(np.log([0.5, 0.25]), [1, 2])
    array([1., 1.])
    """
    sums = floats(logprob_sum)
    counts = floats(tokens)
    _check_finite("logprob_sum", sums)
    _check_finite("tokens", counts, least=1.0)
    return np.asarray(-sums / (counts * np.log(2.0)))


def verifier_probabilities(
    logits: ArrayLike, baseline: ArrayLike | None = None, temperature: float = 1.0
) -> Floats:
    """Return calibrated verifier probabilities of the labels A (correct), B (wrong) and C (off-task).

    Contextual calibration as in the paper: softmax((s − b) / T), with s the verifier's logits of the
    labels, b those for a content-free input and T the temperature.

    Parameters
    ----------
    logits : array_like, shape (..., 3)
        Logits of the labels A, B, C at the answer slot.
    baseline : array_like, optional
        Logits of the same labels for a content-free input; broadcasts against `logits`. Default 0.
    temperature : float
        Positive.

    Returns
    -------
    numpy.ndarray, shape (..., 3)
        Probabilities that sum to 1 over the last axis: ``verifier_a``, ``verifier_b``, ``verifier_c``.

    Raises
    ------
    ValueError
        If the last axis is not 3 long, a value is not finite, or `temperature` is not positive.

    Examples
    --------
    >>> verifier_probabilities([2.0, 1.0, 0.0], baseline=[2.0, 1.0, 0.0]).round(3)
    array([0.333, 0.333, 0.333])
    """
    scores = floats(logits)
    if scores.ndim == 0 or scores.shape[-1] != 3:
        raise ValueError(f"logits must have a last axis of 3 (labels A, B, C), got shape {scores.shape}")
    shifted = scores
    if baseline is not None:
        shifted = scores - floats(baseline)
    _check_finite("logits minus baseline", shifted)
    shifted = (shifted - shifted.max(axis=-1, keepdims=True)) / positive("temperature", temperature)
    exponentials = np.exp(shifted)
    return np.asarray(exponentials / exponentials.sum(axis=-1, keepdims=True))


def _check_finite(name: str, values: Floats, least: float = -np.inf) -> None:
    bad = ~(np.isfinite(values) & (values >= least))
    if bad.any():
        limit = ""
        if least != -np.inf:
            limit = f" and at least {least:g}"
        raise ValueError(f"{name} must be finite{limit}, got {values[bad].flat[0]}")
