"""Scores for the Hugging Face Hub: files that its model pages and leaderboards read, one a model.

The format is https://huggingface.co/docs/hub/eval-results: entries of a benchmark's dataset, its task, the
value, its date and source, in ``.eval_results/NAME.yaml`` of the model's repository.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from adaptive_eval.config.document import write_document
from adaptive_eval.errors import UsageError
from adaptive_eval.interop.run_tables import file_names
from adaptive_eval.interop.stored_config import config_of_file, model_section
from adaptive_eval.options.section import HUB
from adaptive_eval.store.reader import RunReader
from adaptive_eval.views.numbers import count, interval, trimmed
from adaptive_eval.views.summary import RunSummary

_DIGITS = 4
_SOURCE = {"url": "https://arxiv.org/abs/2510.04265", "name": "adaptive-eval"}
"""The entries' source; it has to have an address, and ours is that of the method."""


def write_eval_results(reader: RunReader, summary: RunSummary, folder: Path) -> tuple[list[Path], list[str]]:
    """Write ``MODEL/.eval_results/RUN.yaml`` for each model, and return the files and remarks.

    A task whose dataset is not on the Hub has no entry: a remark says so.

    Raises
    ------
    UsageError
        If no task has a dataset of the Hub.
    """
    datasets, remarks = {}, []
    config = config_of_file(reader)
    for section in config.tasks if config is not None else ():
        if section.dataset.startswith(HUB):
            datasets[section.name] = section
        else:
            remarks.append(f"task {section.name}: its dataset is not on the Hub, so there is none to name")
    if not datasets:
        raise UsageError(
            "no task of this run has a dataset of the Hugging Face Hub (dataset: hf:OWNER/NAME), so there is "
            "no dataset to name in eval-results; export csv, eee or lm-eval"
        )
    written = []
    models = [line.model for line in summary.results.models]
    names = []
    for model in models:
        stored = model_section(config, model)
        shown = model
        if stored is not None:
            shown = stored.model_id
        names.append(shown)
    folders = file_names(names, "__")
    for model, name in zip(models, folders, strict=True):
        entries = list(_entries(summary, model, datasets))
        if entries:
            path = folder / name / ".eval_results" / f"{file_names([summary.name], '_')[0]}.yaml"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(write_document(entries), encoding="utf-8")
            written.append(path)
    return written, remarks


def _entries(summary: RunSummary, model: str, datasets: dict[str, Any]) -> Iterator[dict[str, Any]]:
    results = summary.results
    line = next(one for one in results.models if one.model == model)
    scores = {task.task: one for task in results.tasks for one in task.scores if one.model == model}
    for task, section in datasets.items():
        found = scores.get(task, line) if results.tasks else line
        if found.score is None:
            continue
        subset = None
        if isinstance(section.subset, str):
            subset = section.subset
        dataset = {"id": section.dataset.removeprefix(HUB), "task_id": subset or "default"}
        if section.revision is not None:
            dataset["revision"] = section.revision
        notes = (
            f"{trimmed(100 * results.confidence)} % anytime interval "
            f"{interval(found.score_low, found.score_high, _DIGITS)}; stopping rule {results.rule}; "
            f"{count(line.trials, 'trial')} of {count(line.questions, 'question')} in the run"
        )
        yield {
            "dataset": dataset,
            "value": round(found.score, _DIGITS),
            "date": datetime.fromtimestamp(summary.updated or 0.0, UTC).isoformat(timespec="seconds"),
            "source": dict(_SOURCE),
            "notes": notes,
        }
