"""What labels say of a run and of its judge, as plain data for views."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adaptive_eval.core.results import Results, to_json


@dataclass(frozen=True)
class Bias:
    """How far the judge is from labels: of one model, or of a model less another."""

    first: str
    second: str | None
    labels: int  # answers, or pairs of answers, with labels
    bias: float | None  # mean of judge less label, in score units; None without labels
    low: float
    high: float
    agreement: float | None = None  # share of answers with the same score
    kappa: float | None = None


@dataclass(frozen=True)
class Further:
    """What labels of more answers would do for an open pair."""

    first: str
    second: str
    share: float | None  # of the questions, with which it would be decided; None where none would do
    questions: int | None  # further ones to be labelled


@dataclass(frozen=True)
class Noise:
    """How far labels lie from what the judge's score predicts, by that score: where labels tell most."""

    task: str
    judge: float  # its score, in score units
    labels: int
    noise: float  # root mean square, in score units
    chance: float  # the chance of a label that suits it, over the mean chance


@dataclass(frozen=True)
class Held:
    """A run held against labels."""

    results: Results | None  # by labels; None where they have no chances
    alone: Results  # what the judge alone says
    rows: int
    filled: int
    questions: int  # that were chosen
    of: int  # among so many
    agreement: float | None
    kappa: float | None
    models: tuple[Bias, ...]
    pairs: tuple[Bias, ...]
    further: tuple[Further, ...]
    noise: tuple[Noise, ...]

    @property
    def body(self) -> Mapping[str, Any]:
        """What is stored of it as a scoring."""
        assert self.results is not None
        return {"tasks": {}, "results": to_json(self.results)}
