"""A run in the form of every_eval_ever, https://github.com/evaleval/every_eval_ever, schema 0.3.0."""

import hashlib
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from adaptive_eval import __version__
from adaptive_eval.config import RunConfig
from adaptive_eval.core.results import ModelResult, Results, TaskScore
from adaptive_eval.interop.found import Found
from adaptive_eval.interop.run_tables import (
    ModelQuestion,
    RunDescription,
    cells_of_run,
    file_names,
    tasks_of_run,
)
from adaptive_eval.interop.stored_config import config_of_file, model_section, task_section
from adaptive_eval.interop.trial_weights import weights_of_run
from adaptive_eval.options.section import HUB
from adaptive_eval.store.reader import RunReader
from adaptive_eval.trial import RIGHT_OR_WRONG, score_of
from adaptive_eval.views.summary import RunSummary

VERSION = "0.3.0"
COLLECTION = "adaptive-eval"
"""Folder of the collection, below ``data``."""

_ORGANISATION = "unknown"


def write_every_eval(
    reader: RunReader, about: RunDescription, summary: RunSummary, folder: Path
) -> list[Path]:
    """Write ``data/adaptive-eval/DEVELOPER/MODEL/UUID.json`` and ``UUID_samples.jsonl`` for each model.

    The aggregate has a result for each task with its anytime interval and standard error. A line of the
    samples is a trial, with its weight in the score of the model.
    """
    models, tasks = tasks_of_run(reader)
    counted = weights_of_run(reader, about.weights, about.results)
    config = config_of_file(reader)
    written = []
    for model in models:
        line = next((one for one in summary.results.models if one.model == model), None)
        if line is None or line.score is None:
            continue
        developer, _, name = model.rpartition("/")
        parts = file_names([developer or _ORGANISATION, name], "_")
        place = Path("data", COLLECTION, *parts)
        number = _number(f"{summary.name}/{summary.started}/{summary.updated}/{model}")
        samples = place / f"{number}_samples.jsonl"
        (folder / place).mkdir(parents=True, exist_ok=True)
        identity = f"{summary.name}/{model}/{summary.updated or 0.0:.0f}"
        results = []
        with (folder / samples).open("w", encoding="utf-8") as file:
            rows = 0
            for task, questions in tasks.items():
                cells = list(cells_of_run(reader, model, task, questions, counted, about.target))
                worth = about.weights.get(task, RIGHT_OR_WRONG)
                for row in _samples(cells, worth, model, task, identity):
                    file.write(json.dumps(row) + "\n")
                    rows += 1
                results.append(_result(summary, line, task, cells, worth, identity, config))
        checksum = hashlib.sha256((folder / samples).read_bytes()).hexdigest()
        aggregate = {
            "schema_version": VERSION,
            "evaluation_id": identity,
            "evaluation_timestamp": _stamp(summary.started),
            "retrieved_timestamp": f"{summary.updated or 0.0:.0f}",
            "source_metadata": {
                "source_name": summary.name,
                "source_type": "evaluation_run",
                "source_organization_name": _ORGANISATION,
                "evaluator_relationship": "other",
            },
            "eval_library": {"name": "adaptive-eval", "version": __version__},
            "model_info": _model_info(model, developer, config),
            "evaluation_results": results,
            "detailed_evaluation_results": {
                "format": "jsonl",
                "file_path": samples.as_posix(),
                "hash_algorithm": "sha256",
                "checksum": checksum,
                "total_rows": rows,
            },
        }
        path = folder / place / f"{number}.json"
        path.write_text(json.dumps(aggregate, indent=2), encoding="utf-8")
        written += [path, folder / samples]
    return written


def _number(text: str) -> uuid.UUID:
    """Return the UUID of a text, of the version that the schema wants."""
    return uuid.UUID(bytes=hashlib.sha256(text.encode("utf-8", "replace")).digest()[:16], version=4)


def _stamp(at: float | None) -> str:
    return datetime.fromtimestamp(at or 0.0, UTC).isoformat(timespec="seconds")


def _model_info(model: str, developer: str, config: RunConfig | None) -> dict[str, Any]:
    section = model_section(config, model)
    model_id = model
    if section is not None:
        model_id = section.model_id
    found: dict[str, Any] = {
        "name": model,
        "id": model_id,
        "additional_details": {"deployment_type": "unknown", "model_availability": "unknown"},
    }
    if developer:
        found["developer"] = developer
    return found


def _task_score(results: Results, line: ModelResult, task: str) -> ModelResult | TaskScore:
    """Return what holds the score of a model on a task; in a run of one task its line."""
    for one in results.tasks:
        if one.task == task:
            return next(score for score in one.scores if score.model == line.model)
    return line


def _result(
    summary: RunSummary,
    line: ModelResult,
    task: str,
    cells: Iterable[ModelQuestion],
    worth: tuple[float, ...],
    identity: str,
    config: RunConfig | None,
) -> dict[str, Any]:
    results = summary.results
    found = _task_score(summary.results, line, task)
    means = [fmean(cell.scores(worth)) for cell in cells if cell.answered]
    uncertainty: dict[str, Any] = {"num_samples": len(means)}
    if len(means) > 1:
        spread = stdev(means)
        uncertainty["standard_deviation"] = spread
        uncertainty["standard_error"] = {"value": spread / len(means) ** 0.5, "method": "analytic"}
    if found.score_low is not None and found.score_high is not None:
        uncertainty["confidence_interval"] = {
            "lower": found.score_low,
            "upper": found.score_high,
            "confidence_level": results.confidence,
            "method": "anytime-valid confidence sequence",
        }
    weights = {one.task: one.weight for one in results.tasks}
    return {
        "evaluation_result_id": f"{identity}#{task}",
        "evaluation_name": task,
        "source_data": _source(task, config, means),
        "metric_config": {
            "metric_id": "score",
            "metric_name": "score",
            "metric_kind": "mean",
            "lower_is_better": False,
            "score_type": "continuous",
            "min_score": min(worth),
            "max_score": max(worth),
        },
        "score_details": {
            "score": found.score if found.score is not None else 0.0,
            "details": {
                "stopping_rule": results.rule,
                "trials": str(line.trials),
                "redrawn_trials": str(line.redrawn_trials),
                "rank": f"{line.rank_low}–{line.rank_high}",
                "task_weight": f"{weights.get(task, 1.0):.6g}",
            },
            "uncertainty": uncertainty,
        },
        "generation_config": _generation(line.model, config),
    }


def _source(task: str, config: RunConfig | None, means: list[float]) -> dict[str, Any]:
    section = task_section(config, task)
    if section is not None and section.dataset.startswith(HUB):
        return {
            "dataset_name": task,
            "source_type": "hf_dataset",
            "hf_repo": section.dataset.removeprefix(HUB),
            "hf_split": section.split,
            "samples_number": len(means),
        }
    return {"dataset_name": task, "source_type": "other"}


def _generation(model: str, config: RunConfig | None) -> dict[str, Any]:
    section = model_section(config, model)
    if section is not None:
        sent: Mapping[str, Any] = section.sampling.as_sent()
    else:
        sent = {}
    known = ("temperature", "top_p", "max_tokens")
    return {"generation_args": {name: sent[name] for name in known if name in sent}}


def _samples(
    cells: Iterable[ModelQuestion], worth: tuple[float, ...], model: str, task: str, identity: str
) -> Iterator[dict[str, Any]]:
    for cell in cells:
        for number, trial in enumerate(cell.trials):
            yield _sample(cell.question, number, trial, worth, model, task, identity)


def _sample(
    question: str,
    number: int,
    trial: Found,
    worth: tuple[float, ...],
    model: str,
    task: str,
    identity: str,
) -> dict[str, Any]:
    read, written = trial.tokens
    value = 0.0
    if trial.category is not None:
        value = score_of(worth, trial.category)
    digest = hashlib.sha256(f"{trial.prompt}{trial.target}".encode("utf-8", "replace")).hexdigest()
    checks = {name: repr(value) for name, value in trial.checks.items()}
    row = {
        "schema_version": VERSION,
        "evaluation_id": identity,
        "model_id": model,
        "evaluation_name": task,
        "evaluation_result_id": f"{identity}#{task}",
        "sample_id": question,
        "sample_hash": digest,
        "interaction_type": "single_turn",
        "input": {"raw": trial.prompt, "reference": [trial.target]},
        "output": {"raw": [trial.text]},
        "messages": None,
        "answer_attribution": [
            {
                "turn_idx": 0,
                "source": "output.raw",
                "extracted_value": trial.extracted or "",
                "extraction_method": "custom",
                "is_terminal": True,
            }
        ],
        "evaluation": {"score": value, "is_correct": trial.category is not None and value == max(worth)},
        "token_usage": {"input_tokens": read, "output_tokens": written, "total_tokens": read + written},
        "performance": {"latency_ms": 1000.0 * trial.latency},
        "metadata": {"trial": str(number), "weight": repr(trial.weight), **checks},
    }
    if trial.category is None:
        row["error"] = trial.missing or "no answer"
    return row
