"""Details of lighteval: ``details_{task}_{date}.parquet``, a row a question with all its generations."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from adaptive_eval.errors import OutcomesError
from adaptive_eval.interop.found import Choices, Flaw, Found, Log, Piece, chosen_metric, content_of, in_range
from adaptive_eval.interop.log_answers import Rescorer
from adaptive_eval.interop.tabular import parquet_rows

_NAME = re.compile(r"details_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT[\d.:-]+)\.parquet")


def has_details(columns: tuple[str, ...]) -> bool:
    """Tell whether columns are those of lighteval's details.

    Examples
    --------
    >>> has_details(("doc", "metric", "model_response"))
    True
    """
    return {"doc", "model_response", "metric"} <= set(columns)


def details_log(path: Path, choices: Choices) -> Log:
    """Return the log in a file of details; the folder above the date's is named after the model."""
    return Log(path, "lighteval details", lambda: _pieces(path, choices))


def _pieces(path: Path, choices: Choices) -> Iterator[Piece]:
    match = _NAME.fullmatch(path.name)
    task = choices.task or (path.stem if match is None else match["task"])
    model = choices.named(choices.model or path.resolve().parent.parent.name, path)
    rescorer = None if choices.scorer is None else Rescorer(choices)
    for number, row in enumerate(parquet_rows(path), start=1):
        doc, response, metrics = (_object(row[name]) for name in ("doc", "model_response", "metric"))
        place = f"row {number}"
        try:
            question = str(doc[choices.question_id or "id"])
            texts = [str(text) for text in response["text"]]
            yield from _question(path, choices, rescorer, (model, task, question), doc, texts, metrics, place)
        except KeyError as error:
            yield Flaw(place, f"it has no {error}")
        except (TypeError, ValueError, IndexError) as error:
            yield Flaw(place, f"question {doc.get('id')!r}: {error}")


def _question(
    path: Path,
    choices: Choices,
    rescorer: Rescorer | None,
    names: tuple[str, str, str],
    doc: Mapping[str, Any],
    texts: list[str],
    metrics: Mapping[str, Any],
    place: str,
) -> Iterator[Piece]:
    target, prompt = _gold(doc), str(doc.get("query", ""))
    content = content_of(prompt, target)
    if rescorer is None:
        if len(texts) > 1:
            raise OutcomesError(
                f"{path}: it has several answers to a question but one score for all of them; score each "
                "with --scorer exact, numeric, math, …"
            )
        metric = chosen_metric(path, choices.metric, metrics)
        value = in_range(metrics[metric], metric)
        yield Found(
            *names, place, 0, score=value, content=content, text="".join(texts), prompt=prompt, target=target
        )
        return
    for number, text in enumerate(texts):
        found = rescorer.score(text, target, doc)
        yield Found(
            *names, f"{place}, answer {number + 1}", number, content=content, text=text, prompt=prompt,
            target=target, **found,
        )  # fmt: skip


def _gold(doc: Mapping[str, Any]) -> str:
    """Return the right choice's text."""
    choices, index = doc.get("choices") or [], doc.get("gold_index")
    first = index[0] if isinstance(index, list) and index else index
    return str(choices[first]).strip() if choices and isinstance(first, int) else ""


def _object(value: Any) -> Mapping[str, Any]:
    """Return a column's value as a mapping; older versions stored it as text."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            value = ast.literal_eval(value)
    if not isinstance(value, dict):
        raise ValueError(f"holds no object but {type(value).__name__}")
    return {key: inner for key, inner in value.items() if inner is not None}
