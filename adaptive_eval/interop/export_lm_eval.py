"""A run as lm-evaluation-harness would have logged it: samples and results of every model."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from adaptive_eval import __version__
from adaptive_eval.interop.cells_of_run import Cell, RunDescription, cells_of_run, tasks_of_run
from adaptive_eval.interop.found import Found, content_of
from adaptive_eval.store.reader import RunReader

METRIC = "score"
"""Name of the metric: the mean of what the answers to a question are worth."""

FILTER = "none"


def write_lm_eval(reader: RunReader, about: RunDescription, folder: Path) -> list[Path]:
    """Write ``MODEL/samples_{task}_{date}.jsonl`` and ``MODEL/results_{date}.json``.

    A row is a question with all its answers in ``resps``; ``scores`` has what each is worth. Trials without
    an answer are left out, and counted in the results as ``missing``.
    """
    written = []
    date = datetime.now(UTC).replace(tzinfo=None).isoformat(timespec="microseconds").replace(":", "-")
    models, tasks = tasks_of_run(reader)
    for model in models:
        place = folder / model.replace("/", "__").replace(":", "_")
        place.mkdir(parents=True, exist_ok=True)
        results = {}
        for task, questions in tasks.items():
            path = place / f"samples_{task.replace('/', '_')}_{date}.jsonl"
            cells = cells_of_run(reader, model, task, questions)
            results[task] = _write_task(cells, task, about.weights.get(task, (0.0, 1.0)), path)
            written.append(path)
        path = place / f"results_{date}.json"
        path.write_text(json.dumps(_summary(model, results), indent=2), encoding="utf-8")
        written.append(path)
    return written


def _write_task(cells: Iterable[Cell], task: str, weights: tuple[float, ...], path: Path) -> dict[str, Any]:
    total, questions, missing = 0.0, 0, 0
    with path.open("w", encoding="utf-8") as file:
        for cell in cells:
            scores = [weights[trial.category or 0] for trial in _answered(cell)]
            missing += len(cell.trials) - len(scores)
            if not scores:
                continue
            mean = sum(scores) / len(scores)
            total, questions = total + mean, questions + 1
            file.write(json.dumps(_sample(cell, scores, mean)) + "\n")
    score = total / questions if questions else None
    return {"alias": task, f"{METRIC},{FILTER}": score, "sample_len": questions, "missing": missing}


def _answered(cell: Cell) -> list[Found]:
    return [trial for trial in cell.trials if trial.category is not None]


def _sample(cell: Cell, scores: list[float], mean: float) -> dict[str, Any]:
    trials = _answered(cell)
    prompt, target = trials[0].prompt, trials[0].target
    doc = {"id": cell.question, "input": prompt, "target": target}
    return {
        "doc_id": cell.place,
        "doc": doc,
        "target": target,
        "arguments": {"gen_args_0": {"arg_0": prompt, "arg_1": {}}},
        "resps": [[trial.text for trial in trials]],
        "filtered_resps": [[trial.extracted for trial in trials]],
        "filter": FILTER,
        "metrics": [METRIC],
        "doc_hash": content_of(prompt, target),
        METRIC: mean,
        "scores": scores,
    }


def _summary(model: str, results: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "results": results,
        "configs": {task: {"task": task, "output_type": "generate_until"} for task in results},
        "n-samples": {
            task: {"original": found["sample_len"], "effective": found["sample_len"]}
            for task, found in results.items()
        },
        "higher_is_better": {task: {METRIC: True} for task in results},
        "model_name": model,
        "model_source": f"adaptive-eval {__version__}",
        "date": datetime.now(UTC).timestamp(),
    }
