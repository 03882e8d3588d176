"""Results of HELM, OpenCompass and MCPMark, in the JSON files that these tools write."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from adaptive_eval.errors import OutcomesError
from adaptive_eval.interop.found import Choices, Flaw, Found, Log, Piece, json_object, json_value

HELM_FILE = "per_instance_stats.json"
_EXACT = "exact_match"
_CORRECT = ("correct", "is_correct", "cascade_correct")
"""By which of these OpenCompass itself counts, the first that is there."""

_Pieces: TypeAlias = Callable[[Any, Choices, Path], Iterator[Piece]]


def is_opencompass(data: Mapping[str, Any]) -> bool:
    """Tell whether an object holds results of OpenCompass with details.

    Examples
    --------
    >>> is_opencompass({"accuracy": 50.0, "details": [{"example_abbr": "gsm8k_0", "correct": [True]}]})
    True
    """
    details = data.get("details")
    first = next((one for one in _listed(details).values() if isinstance(one, dict)), {})
    return bool(first.keys() & {"example_abbr", "predictions", "pred", *_CORRECT})


def is_mcpmark(data: Mapping[str, Any]) -> bool:
    """Tell whether an object is the result of a task of MCPMark.

    Examples
    --------
    >>> is_mcpmark({"task_name": "t", "model_name": "m", "execution_result": {"success": True}})
    True
    """
    return {"task_name", "model_name", "execution_result"} <= data.keys()


def is_mcpmark_runs(data: Mapping[str, Any]) -> bool:
    """Tell whether an object has the runs of a model at a task of MCPMark.

    Examples
    --------
    >>> is_mcpmark_runs({"model": "m", "service": "notion", "task": "t", "runs": {"run-1": {}}})
    True
    """
    return {"model", "service", "task", "runs"} <= data.keys()


def terminal_bench_agent(path: Path) -> str | None:
    """Return who made results of Terminal-Bench, if ``run_metadata.json`` next to them says it."""
    file = path.with_name("run_metadata.json")
    said = json_object(file) if file.exists() else {}
    return " ".join(str(said[key]) for key in ("agent_name", "model_name") if said.get(key)) or None


def is_terminal_bench(data: Mapping[str, Any]) -> bool:
    """Tell whether an object holds the results of a run of Terminal-Bench.

    Examples
    --------
    >>> is_terminal_bench({"results": [{"trial_name": "t.1-of-1", "is_resolved": True}]})
    True
    """
    rows = data.get("results")
    first = rows[0] if isinstance(rows, list) and rows else None
    return isinstance(first, dict) and {"trial_name", "is_resolved"} <= first.keys()


def _log(kind: str, read: _Pieces, load: Callable[[Path], Any], path: Path, choices: Choices) -> Log:
    data = load(path)

    def pieces() -> Iterator[Piece]:
        try:
            yield from read(data, choices, path)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            yield Flaw("", f"is not as the tool writes it: {type(error).__name__}: {error}")

    return Log(path, kind, pieces)


# Shape: PerInstanceStats in helm/benchmark/metrics/metric.py of HELM.
def _helm(rows: Any, choices: Choices, path: Path) -> Iterator[Piece]:
    spec_file = path.with_name("run_spec.json")
    spec = json_object(spec_file) if spec_file.exists() else {}
    model = choices.named(choices.model or (spec.get("adapter_spec") or {}).get("model"), path)
    named = str(spec.get("name") or path.resolve().parent.name)
    task = choices.task or re.sub(r"([:,])model=[^,]*,?", r"\1", named).rstrip(":,")
    wanted, known = choices.metric or _EXACT, set()
    for row in rows:
        if row.get("perturbation"):
            continue  # the same question, made harder on purpose
        for stat in row["stats"]:  # each metric may have rows of its own
            name = stat["name"]["name"]
            known.add(name)
            if name == wanted and stat["count"]:
                question, number = str(row["instance_id"]), int(row["train_trial_index"])
                score = float(stat["sum"]) / stat["count"]
                of_split = f"{task}/{stat['name'].get('split') or 'all'}"
                yield _scored(model, of_split, question, f"instance {question}", score, number=number)
    if wanted not in known:
        raise OutcomesError(
            f"{path}: there is no metric {wanted!r}; choose one of {', '.join(sorted(known))} with --metric"
        )


# Shape: BaseEvaluator.evaluate, and format_details of OpenICLEvalTask, of OpenCompass.
def _opencompass(data: Any, choices: Choices, path: Path) -> Iterator[Piece]:
    model = choices.named(choices.model or path.resolve().parent.name, path)
    task = choices.task or path.stem
    for place, row in _listed(data["details"]).items():
        if not isinstance(row, dict):
            continue  # the type of the details
        key = choices.metric or next((name for name in _CORRECT if row.get(name) is not None), None)
        if key is None:
            yield Flaw(f"details {place}", f"has none of {', '.join(_CORRECT)}; name another with --metric")
            continue
        replicas = row[key] if isinstance(row[key], list) else [row[key]]
        texts = row.get("origin_prediction", row.get("pred", row.get("predictions")))
        texts = texts if isinstance(texts, list) and len(texts) == len(replicas) else [texts] * len(replicas)
        for number, (value, text) in enumerate(zip(replicas, texts, strict=True)):
            question = str(row.get("example_abbr", place))
            yield _scored(
                model,
                task,
                question,
                f"details {place}",
                float(value),
                number=number,
                text="" if text is None else str(text),
                prompt=str(row.get("prompt") or ""),
                target=str(row.get("references") or row.get("answer") or ""),
            )


# Shape: the published results, https://github.com/eval-sys/mcpmark-experiments.
def _mcpmark_runs(data: Any, choices: Choices, path: Path) -> Iterator[Piece]:
    for number, (name, run) in enumerate(sorted(data["runs"].items())):
        names = (data["model"], data["service"], data["task"])
        yield _mcpmark_trial(run, names, name, choices, path, number=number)


# Shape: save_meta_json in src/results_reporter.py of MCPMark.
def _mcpmark(data: Any, choices: Choices, path: Path) -> Iterator[Piece]:
    run = {**data, **data["execution_result"]}
    names = (data["model_name"], data.get("mcp") or path.stem, data["task_name"])
    yield _mcpmark_trial(run, names, "the file", choices, path)


def _mcpmark_trial(
    run: Mapping[str, Any], names: Sequence[str], place: str, choices: Choices, path: Path, **more: Any
) -> Piece:
    model, service, question = names
    usage = run.get("token_usage") or {}
    return _scored(
        choices.named(choices.model or model, path),
        choices.task or str(service),
        str(question),
        place,
        float(run["success"]),
        reason=str(run.get("error_message") or run.get("verification_error") or ""),
        tokens=(int(usage.get("input_tokens") or 0), int(usage.get("output_tokens") or 0)),
        latency=float(run.get("agent_execution_time") or run.get("execution_time") or 0.0),
        **more,
    )


def _scored(model: str, task: str, question: str, place: str, score: float, **more: Any) -> Piece:
    if not 0.0 <= score <= 1.0:
        return Flaw(place, f"{score!r} is not a score from 0 to 1")
    return Found(model, task, question, place, score=score, **more)


def _listed(details: Any) -> dict[str, Any]:
    """Return details by their place: a list, or an object with numbers as names."""
    if isinstance(details, list):
        return {str(number): one for number, one in enumerate(details)}
    return dict(details) if isinstance(details, dict) else {}


helm_log = partial(_log, "HELM statistics", _helm, json_value)
"""Log in ``per_instance_stats.json`` of HELM; ``run_spec.json`` next to it names the model."""

opencompass_log = partial(_log, "OpenCompass details", _opencompass, json_object)
"""Log in ``results/MODEL/DATASET.json`` of OpenCompass."""

mcpmark_log = partial(_log, "MCPMark result", _mcpmark, json_object)
"""Log in ``meta.json`` of MCPMark: one trial."""

mcpmark_runs_log = partial(_log, "MCPMark results", _mcpmark_runs, json_object)
"""Log in ``model_results/MODEL/TASK.json`` of MCPMark's published results: a trial a run."""
