"""Results of promptfoo: the JSON that ``promptfoo eval --output results.json`` writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from adaptive_eval.interop.found import Choices, Flaw, Found, Log, Piece, content_of, in_range, json_object


def is_promptfoo(data: Mapping[str, Any]) -> bool:
    """Tell whether an object is a result file of promptfoo.

    Examples
    --------
    >>> is_promptfoo({"evalId": "e", "results": {"version": 3, "results": []}})
    True
    """
    results = data.get("results")
    return isinstance(results, dict) and isinstance(results.get("results"), list)


def promptfoo_log(path: Path, choices: Choices) -> Log:
    """Return the log in a result file: providers are models, test cases questions, repeats trials."""
    data = json_object(path)
    return Log(path, "promptfoo results", lambda: _pieces(data, choices, path), str(data.get("evalId") or ""))


def _pieces(data: Mapping[str, Any], choices: Choices, path: Path) -> Iterator[Piece]:
    task = choices.task or str((data.get("config") or {}).get("description") or path.stem)
    prompts: dict[str, int] = {}
    for place_number, row in enumerate(data["results"]["results"]):
        place = f"result {place_number}"
        if not isinstance(row, dict):
            yield Flaw(place, "is no object")
            continue
        try:
            piece = _piece(row, choices, task, path, place, prompts)
        except (AttributeError, KeyError, TypeError) as error:
            piece = Flaw(place, f"is not as promptfoo writes it: {error}")
        except ValueError as error:
            piece = Flaw(place, str(error))
        yield piece


def _piece(
    row: Mapping[str, Any], choices: Choices, task: str, path: Path, place: str, prompts: dict[str, int]
) -> Piece:
    provider = row["provider"]
    named = provider.get("label") or provider["id"] if isinstance(provider, dict) else provider
    variables = row.get("vars") or {}
    case = variables.get(choices.question_id) if choices.question_id is not None else row.get("testIdx")
    if case is None:
        return Flaw(place, f"there is no {choices.question_id or 'testIdx'} that says which test case it is")
    prompt = row.get("prompt") or {}
    asked = prompt.get("raw", "") if isinstance(prompt, dict) else str(prompt)
    label = str(row.get("promptIdx", 0))
    prompts.setdefault(label, len(prompts))
    question = str(case) if prompts[label] == 0 else f"{case} (prompt {label})"
    result: dict[str, Any] = {}
    answer = row.get("response") or {}
    usage = answer.get("tokenUsage") or {}
    # failureReason 2: the provider failed; 1: an assertion did, which is an answer
    if row.get("failureReason") == 2 or (row.get("error") and "output" not in answer):
        result = {"missing": f"error: {str(row.get('error')).strip()[:300]}"}
    else:
        score = row["score"] if choices.metric is None else row["namedScores"][choices.metric]
        result = {"score": in_range(score, choices.metric or "score")}
    return Found(
        choices.named(str(named), path),
        task,
        question,
        place,
        content=content_of(sorted((str(k), str(v)) for k, v in variables.items())),
        text=str(answer.get("output") or ""),
        reason=str((row.get("gradingResult") or {}).get("reason") or ""),
        prompt=str(asked),
        tokens=(int(usage.get("prompt") or 0), int(usage.get("completion") or 0)),
        latency=float(row.get("latencyMs") or 0) / 1000.0,
        **result,
    )
