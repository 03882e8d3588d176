"""Labels: the states of servers, and model names cut to a column but still distinct."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile

from rich.cells import cell_len

from adaptive_eval.views.inert import inert

ELLIPSIS = "…"
SERVER_STATES = {
    "out": "does not answer",
    "probation": "answers again",
    "refused": "refuses the model",
    "joining": "has not answered yet",
    "left": "removed",
}
"""Words of the views for a server that is not in normal use."""


def cut(text: str, width: int) -> str:
    """Return `text`, cut at its end to at most `width` terminal cells.

    Examples
    --------
    >>> cut("Qwen3-4B-Instruct", 10), cut("oak", 10), cut("漢字漢字", 5)
    ('Qwen3-4B-…', 'oak', '漢字…')
    """
    if cell_len(text) <= width:
        return text
    return _head(text, width - 1) + ELLIPSIS if width > 0 else ""


def distinct_labels(names: Iterable[str], width: int) -> Mapping[str, str]:
    """Return a label of at most `width` cells for every name, no two alike.

    Names are cut at the end where that keeps them apart, else in the middle or at the start (vendors put what
    distinguishes their models last), then the same without what all names have in common at either end; and
    where even that is not enough they are numbered.

    Examples
    --------
    >>> distinct_labels(["Qwen3-4B-Thinking", "Qwen3-4B-Instruct"], 10)
    {'Qwen3-4B-Thinking': 'Qwen3…king', 'Qwen3-4B-Instruct': 'Qwen3…ruct'}
    >>> list(distinct_labels(["vendor/model-1-it-2507", "vendor/model-2-it-2507"], 5).values())
    ['…1…', '…2…']
    """
    shown = {name: inert(name) for name in names}
    core = _without_common_ends(shown)
    for texts in (shown, core):
        for shorten in (cut, _cut_middle, _cut_start):
            labels = {name: shorten(text, width) for name, text in texts.items()}
            if len(set(labels.values())) == len(labels):
                return labels
    return _numbered(shown, width)


def _without_common_ends(shown: Mapping[str, str]) -> Mapping[str, str]:
    """Return the texts with what all of them begin or end with replaced by an ellipsis."""
    texts = list(shown.values())
    head = _common_length(texts)
    tail = _common_length([text[head:][::-1] for text in texts])
    return {
        name: (ELLIPSIS if head else "") + text[head : len(text) - tail] + (ELLIPSIS if tail else "")
        for name, text in shown.items()
    }


def _common_length(texts: Sequence[str]) -> int:
    columns = zip(*texts, strict=False)
    return sum(1 for _ in takewhile(lambda chars: len(set(chars)) == 1, columns))


def _numbered(shown: Mapping[str, str], width: int) -> Mapping[str, str]:
    labels: dict[str, str] = {}
    for i, (name, text) in enumerate(shown.items(), start=1):
        tail = f"~{i}"
        labels[name] = _head(text, width - len(tail)) + tail
    return labels


def _cut_middle(text: str, width: int) -> str:
    if cell_len(text) <= width:
        return text
    tail = (width - 1) // 2
    return _head(text, width - 1 - tail) + ELLIPSIS + _head(text[::-1], tail)[::-1]


def _cut_start(text: str, width: int) -> str:
    return text if cell_len(text) <= width else ELLIPSIS + _head(text[::-1], width - 1)[::-1]


def _head(text: str, width: int) -> str:
    used = 0
    for i, char in enumerate(text):
        used += cell_len(char)
        if used > width:
            return text[:i]
    return text
