"""A run as logs of Inspect, one for each model and task; they open in its viewer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from adaptive_eval import __version__
from adaptive_eval.interop.cells_of_run import Cell, RunDescription, cells_of_run, tasks_of_run
from adaptive_eval.interop.found import Found
from adaptive_eval.library import library
from adaptive_eval.store.reader import RunReader

SCORER = "adaptive_eval"
"""Name of the scorer in the logs."""


def write_inspect(reader: RunReader, about: RunDescription, folder: Path) -> list[Path]:
    """Write a ``.eval`` log for each model and task.

    Trials are epochs. A trial without an answer is a sample with an error. One log's samples are in memory at
    a time.
    """
    inspect = _Inspect()
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    models, tasks = tasks_of_run(reader)
    for model in models:
        for task, questions in tasks.items():
            asked = list(cells_of_run(reader, model, task, questions))
            log = _log(inspect, asked, model, task, about.weights.get(task, (0.0, 1.0)))
            name = f"{task}_{model}".replace("/", "-").replace(":", "-")
            path = folder / f"{name}.eval"
            inspect.log.write_eval_log(log, str(path))
            written.append(path)
    return written


class _Inspect:
    """The parts of inspect_ai that are needed."""

    def __init__(self) -> None:
        self.log, self.model, self.scorer = (
            library(f"inspect_ai.{part}", "writing logs of Inspect", "inspect-ai")
            for part in ("log", "model", "scorer")
        )


def _log(inspect: _Inspect, asked: list[Cell], model: str, task: str, weights: tuple[float, ...]) -> Any:
    samples = [
        _sample(inspect, cell, epoch, trial, weights)
        for cell in asked
        for epoch, trial in enumerate(cell.trials, start=1)
    ]
    log, now = inspect.log, datetime.now(UTC).isoformat()
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
        ),
        results=_results(inspect, asked, weights, len(samples)),
        stats=log.EvalStats(started_at=now, completed_at=now),
        samples=samples,
    )


def _sample(inspect: _Inspect, cell: Cell, epoch: int, trial: Found, weights: Sequence[float]) -> Any:
    model, tokens = inspect.model, trial.tokens
    usage = model.ModelUsage(
        input_tokens=tokens[0], output_tokens=tokens[1], total_tokens=tokens[0] + tokens[1]
    )
    reason = "max_tokens" if trial.finish_reason == "length" else "stop"
    output = model.ModelOutput.from_content("", trial.text, stop_reason=reason)
    output.usage = usage
    messages = [model.ChatMessageUser(content=trial.prompt)]
    scores, error = None, None
    if trial.category is not None:
        messages.append(output.message)
        scores = {
            SCORER: inspect.scorer.Score(
                value=weights[trial.category],
                answer=trial.extracted,
                explanation=trial.reason,
            )
        }
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
        error=error,
        total_time=trial.latency,
        working_time=trial.latency,
    )


def _results(inspect: _Inspect, cells: Sequence[Cell], weights: Sequence[float], samples: int) -> Any:
    """Return the mean over questions of the mean over their answers, as Inspect reports it."""
    means = []
    for cell in cells:
        scores = [weights[trial.category] for trial in cell.trials if trial.category is not None]
        if scores:
            means.append(sum(scores) / len(scores))
    log = inspect.log
    metric = log.EvalMetric(name="mean", value=sum(means) / len(means) if means else 0.0)
    score = log.EvalScore(name=SCORER, scorer=SCORER, metrics={"mean": metric})
    return log.EvalResults(total_samples=samples, completed_samples=samples, scores=[score])
