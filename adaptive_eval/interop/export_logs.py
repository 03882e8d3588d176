"""A run as Inspect and lm-evaluation-harness would have logged it."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean, stdev
from types import SimpleNamespace
from typing import Any

from adaptive_eval import __version__
from adaptive_eval.errors import library, without_home
from adaptive_eval.interop.found import Found, content_of
from adaptive_eval.interop.inspect_logs import SCORER
from adaptive_eval.interop.run_tables import (
    ModelQuestion,
    RunDescription,
    cells_of_run,
    checks_of,
    file_names,
    tasks_of_run,
)
from adaptive_eval.interop.stored_config import config_of_file, model_section, task_section
from adaptive_eval.interop.trial_weights import weights_of_run
from adaptive_eval.options.section import HUB
from adaptive_eval.store.reader import RunReader
from adaptive_eval.trial import CUT_OFF, RIGHT_OR_WRONG, score_of


def write_inspect(reader: RunReader, about: RunDescription, folder: Path) -> list[Path]:
    """Write a ``.eval`` log for each model and task.

    Trials are epochs. A trial without an answer is a sample with an error. One log's samples are in memory at
    a time.
    """
    parts = ("log", "model", "scorer")
    libraries = (library(f"inspect_ai.{part}", "writing logs of Inspect", "inspect-ai") for part in parts)
    inspect = SimpleNamespace(**dict(zip(parts, libraries, strict=True)))
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    models, tasks = tasks_of_run(reader)
    counted = weights_of_run(reader, about.weights, about.results)
    cells = [(model, task) for model in models for task in tasks]
    names = file_names([f"{task}_{model}" for model, task in cells], "-")
    for (model, task), name in zip(cells, names, strict=True):
        asked = list(cells_of_run(reader, model, task, tasks[task], counted, about.target))
        log = _log(inspect, asked, model, task, about)
        path = folder / f"{name}.eval"
        inspect.log.write_eval_log(log, str(path))
        written.append(path)
    return written


def _log(inspect: Any, asked: list[ModelQuestion], model: str, task: str, about: RunDescription) -> Any:
    samples = []
    weights = about.weights.get(task, RIGHT_OR_WRONG)
    for cell in asked:
        for epoch, trial in enumerate(cell.trials, start=1):
            samples.append(_epoch(inspect, cell, epoch, trial, weights))
    log = inspect.log
    now = datetime.now(UTC).isoformat()
    epochs = max((len(cell.trials) for cell in asked), default=1)
    ids: list[int | str] = [cell.question for cell in asked]
    return log.EvalLog(
        version=2,
        status="success",
        eval=log.EvalSpec(
            created=now,
            task=task,
            model=model,
            dataset=log.EvalDataset(name=task, samples=len(asked), sample_ids=ids, shuffled=False),
            config=log.EvalConfig(epochs=epochs),
            packages={"adaptive-eval": __version__},
            metadata={"stopping_rule": about.rule},
        ),
        results=_results(inspect, asked, weights, len(samples)),
        stats=log.EvalStats(started_at=now, completed_at=now),
        samples=samples,
    )


def _epoch(inspect: Any, cell: ModelQuestion, epoch: int, trial: Found, weights: tuple[float, ...]) -> Any:
    model = inspect.model
    (read, written) = trial.tokens
    usage = model.ModelUsage(input_tokens=read, output_tokens=written, total_tokens=read + written)
    reason = "stop"
    if trial.finish_reason in CUT_OFF:
        reason = "max_tokens"
    output = model.ModelOutput.from_content("", trial.text, stop_reason=reason)
    output.usage = usage
    messages = [model.ChatMessageUser(content=trial.prompt)]
    scores, error = None, None
    if trial.category is not None:
        messages.append(output.message)
        value = score_of(weights, trial.category)
        said = trial.reason
        scores = {SCORER: inspect.scorer.Score(value=value, answer=trial.extracted, explanation=said)}
        scores |= {name: inspect.scorer.Score(value=value) for name, value in trial.checks.items()}
    else:
        words = trial.missing or "no answer"
        error = inspect.log.EvalError(message=words, traceback=words, traceback_ansi=words)
    return inspect.log.EvalSample(
        id=cell.question,
        epoch=epoch,
        input=trial.prompt,
        target=trial.target,
        messages=messages,
        output=output,
        scores=scores,
        metadata={"weight": trial.weight},
        error=error,
        total_time=trial.latency,
        working_time=trial.latency,
    )


def _results(inspect: Any, cells: Sequence[ModelQuestion], weights: tuple[float, ...], samples: int) -> Any:
    """Return the score on the task and the mean of each check: a trial weighs what it does in the score."""
    weight = sum(trial.weight for cell in cells for trial in cell.answered)
    totals = {SCORER: sum(cell.weighted(weights) for cell in cells)}
    for name in checks_of(cells):
        totals[name] = sum(cell.weighted_check(name) for cell in cells)
    log, scores = inspect.log, []
    for name, total in totals.items():
        value = 0.0
        if weight > 0.0:
            value = total / weight
        metric = log.EvalMetric(name="mean", value=value)
        scores.append(log.EvalScore(name=name, scorer=SCORER, metrics={"mean": metric}))
    return log.EvalResults(total_samples=samples, completed_samples=samples, scores=scores)


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
    counted = weights_of_run(reader, about.weights, about.results)
    configs = _configs(reader, tasks)
    names = file_names(tasks, "_")
    for model, name in zip(models, file_names(models, "__"), strict=True):
        place = folder / name
        place.mkdir(parents=True, exist_ok=True)
        results = {}
        for (task, questions), named in zip(tasks.items(), names, strict=True):
            path = place / f"samples_{named}_{date}.jsonl"
            cells = cells_of_run(reader, model, task, questions, counted, about.target)
            results[task] = _write_task(cells, task, about, path)
            written.append(path)
        path = place / f"results_{date}.json"
        path.write_text(
            json.dumps(_summary(model, results, configs, _generation(reader, model)), indent=2),
            encoding="utf-8",
        )
        written.append(path)
    return written


def _write_task(
    cells: Iterable[ModelQuestion], task: str, about: RunDescription, path: Path
) -> dict[str, Any]:
    total = weight = 0.0  # as the score that ranks weighs the trials
    means = []
    missing = 0
    answered = 0
    weights = about.weights.get(task, RIGHT_OR_WRONG)
    with path.open("w", encoding="utf-8") as file:
        for cell in cells:
            missing += len(cell.trials) - len(cell.answered)
            if cell.answered:
                answered += len(cell.answered)
                scores = cell.scores(weights)
                means.append(fmean(scores))
                total += cell.weighted(weights)
                weight += sum(trial.weight for trial in cell.answered)
                row = {**_sample(cell, scores, means[-1]), "stopping_rule": about.rule}
                file.write(json.dumps(row) + "\n")
    score = None
    if weight > 0.0:
        score = total / weight
    error = None
    if len(means) > 1:
        error = stdev(means) / math.sqrt(len(means))
    return {
        "alias": task,
        f"{METRIC},{FILTER}": score,
        f"{METRIC}_stderr,{FILTER}": error,
        "sample_len": len(means),
        "n": answered,
        "missing": missing,
    }


def _sample(cell: ModelQuestion, scores: list[float], mean: float) -> dict[str, Any]:
    trials = cell.answered
    prompt = trials[0].prompt
    target = trials[0].target
    texts = [trial.text for trial in trials]
    extracted = [trial.extracted for trial in trials]
    row: dict[str, Any] = {
        "doc_id": cell.place,
        "doc": {"id": cell.question, "input": prompt, "target": target},
        "target": target,
        "arguments": {"gen_args_0": {"arg_0": prompt, "arg_1": {}}},
        "resps": [texts],
        "filtered_resps": [extracted],
        "filter": FILTER,
        "metrics": [METRIC],
        "doc_hash": content_of(prompt, target),
        METRIC: mean,
        "scores": scores,
        "weight": [trial.weight for trial in trials],
    }
    for name in checks_of([cell]):
        row[name] = [trial.checks.get(name) for trial in trials]
    return row


def _configs(reader: RunReader, tasks: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return what the tasks are, as lm-evaluation-harness says it."""
    config = config_of_file(reader)
    found = {}
    for task in tasks:
        about: dict[str, Any] = {"task": task, "output_type": "generate_until"}
        found[task] = about
        section = task_section(config, task)
        if section is not None:
            about |= {
                "dataset_path": without_home(section.dataset.removeprefix(HUB)),
                "dataset_name": section.subset,
                "test_split": section.split,
            }
    return found


def _generation(reader: RunReader, model: str) -> dict[str, Any]:
    """Return the parameters that a model was sampled with."""
    section = model_section(config_of_file(reader), model)
    if section is not None:
        return section.sampling.as_sent()
    return {}


def _summary(
    model: str,
    results: Mapping[str, Mapping[str, Any]],
    known: Mapping[str, Mapping[str, Any]],
    generation: Mapping[str, Any],
) -> dict[str, Any]:
    configs, samples = {}, {}
    for task, found in results.items():
        repeats = -(-found["n"] // max(found["sample_len"], 1))
        configs[task] = {**known[task], "generation_kwargs": generation, "repeats": repeats}
        samples[task] = dict.fromkeys(("original", "effective"), found["sample_len"])
    return {
        "results": results,
        "configs": configs,
        "n-samples": samples,
        "higher_is_better": {task: {METRIC: True} for task in results},
        "model_name": model,
        "model_source": f"adaptive-eval {__version__}",
        "date": datetime.now(UTC).timestamp(),
    }
