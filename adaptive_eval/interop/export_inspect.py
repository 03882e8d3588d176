"""A run as logs of Inspect, one for each model and task; they open in its viewer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from adaptive_eval import __version__
from adaptive_eval.interop.cells_of_run import Cell, CellsOfRun, RunDescription, cells_of_run
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
    with cells_of_run(reader) as cells:
        weights = about.weights
        for model in cells.gathered.models:
            for task in cells.gathered.tasks:
                log = _log(inspect, cells, model, task, weights.get(task, (0.0, 1.0)))
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


def _log(inspect: _Inspect, cells: CellsOfRun, model: str, task: str, weights: tuple[float, ...]) -> Any:
    asked = list(cells.of(model, task))
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


def _sample(
    inspect: _Inspect, cell: Cell, epoch: int, trial: dict[str, Any], weights: Sequence[float]
) -> Any:
    model, answered = inspect.model, trial["category"] is not None
    prompt, tokens = trial["prompt"], trial.get("tokens", (0, 0))
    usage = model.ModelUsage(
        input_tokens=tokens[0], output_tokens=tokens[1], total_tokens=tokens[0] + tokens[1]
    )
    reason = "max_tokens" if trial.get("finish_reason") == "length" else "stop"
    output = model.ModelOutput.from_content("", trial.get("text", ""), stop_reason=reason)
    output.usage = usage
    messages = [model.ChatMessageUser(content=prompt)]
    scores, error = None, None
    if answered:
        messages.append(output.message)
        scores = {
            SCORER: inspect.scorer.Score(
                value=weights[trial["category"]],
                answer=trial.get("extracted"),
                explanation=trial.get("reason"),
            )
        }
    else:
        words = trial["missing"] or "no answer"
        error = inspect.log.EvalError(message=words, traceback=words, traceback_ansi=words)
    return inspect.log.EvalSample(
        id=cell.question,
        epoch=epoch,
        input=prompt,
        target=trial["target"],
        messages=messages,
        output=output,
        scores=scores,
        error=error,
        total_time=trial.get("latency", 0.0),
        working_time=trial.get("latency", 0.0),
    )


def _results(inspect: _Inspect, cells: Sequence[Cell], weights: Sequence[float], samples: int) -> Any:
    """Return the mean over questions of the mean over their answers, as Inspect reports it."""
    means = []
    for cell in cells:
        scores = [weights[trial["category"]] for trial in cell.trials if trial["category"] is not None]
        if scores:
            means.append(sum(scores) / len(scores))
    log = inspect.log
    metric = log.EvalMetric(name="mean", value=sum(means) / len(means) if means else 0.0)
    score = log.EvalScore(name=SCORER, scorer=SCORER, metrics={"mean": metric})
    return log.EvalResults(total_samples=samples, completed_samples=samples, scores=[score])
