"""What a file of labels says of a run's answers, as the run file keeps it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Final

LABELS: Final = "labels"
"""The rule of verdicts that rest on labels, and the key of the run file's description that holds these."""


@dataclass(frozen=True)
class LabelRecord:
    """Labels of a run's answers, and what they were chosen from."""

    file: str
    rows: int = 0
    filled: int = 0  # with a score
    with_chances: bool = True  # whether the chances at which answers were chosen are known
    spans: tuple[tuple[int, int], ...] = ()  # steps that could be chosen, from each start to before its end
    progress: Mapping[str, int] = field(default_factory=dict)  # steps stored of each model by the choice
    chance: float = 1.0  # of a step that was not chosen
    chosen: tuple[tuple[int, float], ...] = ()  # steps with their chances
    labels: tuple[tuple[str, int, float], ...] = ()  # model, step, score in the units of its task

    @property
    def decides(self) -> bool:
        """Whether a verdict can rest on it."""
        return self.with_chances and bool(self.labels)

    def to_json(self) -> str:
        """Return it as text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> LabelRecord:
        """Return what :meth:`to_json` was given.

        Examples
        --------
        >>> one = LabelRecord("l.jsonl", 2, 1, True, ((0, 9),), {"a": 9}, 0.5, ((3, 0.5),), (("a", 3, 1.0),))
        >>> LabelRecord.from_json(one.to_json()) == one
        True
        """
        data = json.loads(text)
        for name in ("spans", "chosen", "labels"):
            data[name] = tuple(map(tuple, data[name]))
        return cls(**data)
