"""How a run chooses its questions: a run that is continued keeps what it began with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from adaptive_eval.config import RunConfig, parse_config
from adaptive_eval.core.spec import QuestionPolicy

__all__ = ["ROUNDS", "SHARED_ROUNDS", "question_policy"]

ROUNDS: Final = "rounds"
"""Key of the identity of a run's trials that names the tasks asked in rounds of each model's own."""
SHARED_ROUNDS: Final = (
    "this run began with rounds that all models share, and is continued with them: they call two equal "
    "models different in up to 10 % of runs, not in 5 %; run --new starts again with rounds that keep 5 %"
)
"""Notice for a run that an older version started."""


def question_policy(config: RunConfig, continued: Mapping[str, str] | None) -> QuestionPolicy:
    """Return how questions are chosen."""
    wanted = config.allocation.questions
    if continued is None or wanted == "schedule":
        return wanted
    in_rounds = ROUNDS in json.loads(continued.get("identity", "{}"))
    if wanted == "auto":
        return "auto" if in_rounds else "schedule"
    if in_rounds or "config" not in continued:
        return "rounds"
    began = parse_config(continued["config"], continued["source"], continued["base_dir"])
    return "shared-rounds" if began.allocation.questions == "rounds" else "rounds"
