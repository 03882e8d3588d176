"""Codes of problems that checks find; docs/troubleshooting.md says what each means."""

from __future__ import annotations

from functools import partial
from typing import Final

from adaptive_eval.errors import Coded

CONFLICT: Final = "config/conflict"
"""The code of problems without their own: settings that conflict."""

MALFORMED: Final = "config/value"

malformed = partial(Coded, MALFORMED)
no_dataset = partial(Coded, "config/no-dataset")
not_accepted = partial(Coded, "config/not-accepted")
not_allowed = partial(Coded, "config/not-allowed")
not_one_of = partial(Coded, "config/not-one-of")
out_of_range = partial(Coded, "config/out-of-range")
reserved = partial(Coded, "config/reserved")
secret = partial(Coded, "config/secret")
twice = partial(Coded, "config/twice")
unheld = partial(Coded, "config/budget")
unknown_name = partial(Coded, "config/unknown-name")
unusable_prompt = partial(Coded, "config/prompt")
