"""The page on which answers are labelled: one file that holds the answers, and saves what labels they get."""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from adaptive_eval.views.label_sentences import how_to_label
from adaptive_eval.views.page import filled

_SCRIPT = Path(__file__).parent / "static" / "labels.js"


def label_page(
    name: str, rows: Sequence[Mapping[str, Any]], tasks: Sequence[str], allowed: Mapping[str, Any]
) -> str:
    """Return the page for rows to be labelled, `tasks` with the task of each and `allowed` what fits each."""
    script = _SCRIPT.read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    data = json.dumps({"rows": rows, "tasks": tasks, "allowed": allowed})
    return filled(
        "labels.html",
        name=name,
        words=how_to_label(len(rows)),
        script=Markup(script),  # noqa: S704 - our own file
        script_source=f"'sha256-{digest}'",
        data=Markup(data.replace("<", "\\u003c")),  # noqa: S704 - JSON that cannot end its element
    )
