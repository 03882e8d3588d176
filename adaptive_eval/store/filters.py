"""Names of models and questions as the ids that a query filters by; in every table ids count from 0."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

__all__ = ["id_of", "ids_of", "question_ids"]


def id_of(names: Sequence[str], name: str | None) -> int | None:
    """Return the id of a name to filter by: None for no filter, -1 (no row) for one not seen yet."""
    if name is None:
        return None
    return names.index(name) if name in names else -1


def ids_of(names: Sequence[str], wanted: str | Collection[str] | None) -> str | None:
    """Return the ids of the names to filter by as a JSON list, or None for no filter.

    Examples
    --------
    >>> ids_of(["oak", "elm"], "elm"), ids_of(["oak", "elm"], {"ash"}), ids_of(["oak"], None)
    ('[1]', '[]', None)
    """
    if wanted is None:
        return None
    some = {wanted} if isinstance(wanted, str) else set(wanted)
    return json.dumps([number for number, name in enumerate(names) if name in some])


def question_ids(questions: Sequence[tuple[str, str]], task: str | None, question: str | None) -> str | None:
    """Return the ids of the questions to filter by as a JSON list, or None for no filter.

    Examples
    --------
    >>> question_ids([("aime", "1"), ("gsm", "1")], "gsm", None)
    '[1]'
    """
    if task is None and question is None:
        return None
    return json.dumps(
        [
            number
            for number, (of, name) in enumerate(questions)
            if task in (None, of) and question in (None, name)
        ]
    )
