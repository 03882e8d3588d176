"""Runs of this package: as a tidy table, a row a trial, never all in memory, and as logs for readers."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, TextIO

from adaptive_eval.config import parse_config
from adaptive_eval.core.results import Results
from adaptive_eval.errors import OutcomesError, UsageError, library
from adaptive_eval.interop.found import IMPORTED, RUN, Found, Log, Piece, ReadingOptions, content_of
from adaptive_eval.interop.run_groups import groups_by_field, in_groups, stored_groups
from adaptive_eval.interop.stored_config import (
    equal_texts,
    independent_copies,
    redrawn_causes,
    redrawn_trials,
    run_rule,
    with_lost_draws,
)
from adaptive_eval.interop.trial_weights import Weights, weights_of_run
from adaptive_eval.options.task_options import TaskConfig
from adaptive_eval.store.cells import OutcomeColumns
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TargetLookup, TrialRecord
from adaptive_eval.store.run_files import RUN_FILE
from adaptive_eval.trial import (
    CHECK,
    NOT_THERE,
    SAME_TEXT,
    DiscardCause,
    ScoreRange,
    TrialKey,
    score_of,
    sent_messages,
    shown_message,
)
from adaptive_eval.views.inert import without_formula
from adaptive_eval.views.reading import stored_results

_TYPES = (
    ("string", "model task question"),
    ("int64", "trial step category"),
    ("float64", "score weight"),
    ("string", "weights rule cluster missing"),
    ("int64", "discarded"),
    ("string", "discarded_cause"),
    ("bool_", "redrawn repeats truncated"),
    ("string", "extracted reason target"),
    ("int64", "prompt_tokens cached_tokens completion_tokens reasoning_tokens"),
    ("float64", "latency finished_at"),
    ("bool_", "after_stop"),
    ("int64", "seed"),
    ("string", "prompt text reasoning tool_calls"),
)
COLUMNS: Mapping[str, str] = MappingProxyType({name: kind for kind, of in _TYPES for name in of.split()})
"""The columns and their types, as Arrow calls them. `category` and `score` are empty for a missing trial;
`weight` times `score`, summed over the trials of a model, is its score. `weights`
is what the task's categories are worth, as a JSON list, from which Bayes@N is rebuilt; `rule` the
stopping rule, by which the table is read again; `cluster` the group of the question, if it has one;
`discarded` the number of earlier draws that were given up: such a trial is lost to verdicts, but for one
that is `redrawn`, which counts by the config's word (`on.discarded`); `repeats` whether its answer may be a
copy of an earlier one. The results of a scorer's checks are further columns, `check_NAME`."""

TEXTS = ("prompt", "text", "reasoning", "tool_calls")
"""Columns that can be left out: they are nearly all of the size."""


def trial_rows(reader: RunReader, about: RunDescription, *, texts: bool = True) -> Iterator[dict[str, Any]]:
    """Yield the trials of a run as rows, in commit order."""
    counted = weights_of_run(reader, about.weights, about.results)
    checks = reader.checks()
    for record in reader.trials():
        key = record.request.key
        row = _row(record, about.weights.get(record.request.task), about)
        if record.score is not None:
            signals: Mapping[str, Any] = record.score.signals
        else:
            signals = {}
        found = _checks(signals)
        row |= {name: found.get(name) for name in checks}
        row["weight"] = counted.get((key.model, key.index), 0.0)
        if not texts:
            for name in TEXTS:
                del row[name]
        yield row


def _row(record: TrialRecord, weights: tuple[float, ...] | None, about: RunDescription) -> dict[str, Any]:
    request = record.request
    answer = record.completion
    score = record.score
    row = {
        **dict.fromkeys(COLUMNS),
        **_parts(request, "task", "question", "seed"),
        **_parts(record, "missing", "finished_at", "after_stop"),
        **_parts(record.usage, "prompt_tokens", "cached_tokens", "completion_tokens"),
        **_parts(score, "category", "extracted", "reason"),
        "model": request.key.model,
        "trial": request.repeat,
        "step": request.key.index,
        "target": about.target(record),
        "prompt": shown_prompt(record.sent),
        "rule": about.rule or None,
        "cluster": about.clusters.get(request.task, {}).get(request.question),
        "discarded": len(record.discarded),
        "discarded_cause": ",".join(record.discarded) or None,
        "redrawn": bool(record.discarded) and about.redrawn.issuperset(record.discarded),
        "repeats": score is not None and SAME_TEXT in score.signals,
        "truncated": False,
        "reasoning_tokens": 0,
        **_parts(answer, "reasoning_tokens", "latency", "text", "reasoning"),
    }
    if weights is not None:
        row["score"] = None if row["category"] is None else score_of(weights, row["category"])
        numbers = isinstance(weights, ScoreRange)  # which have no categories
        row.update({"category": None} if numbers else {"weights": json.dumps(weights)})
    if answer is not None:
        row["truncated"] = answer.cut_off
        row["tool_calls"] = json.dumps(answer.tool_calls) if answer.tool_calls else None
    return row


def _parts(whole: object | None, *names: str) -> dict[str, Any]:
    """Return some attributes by name; nothing of what is not there."""
    if whole is None:
        return {}
    return {name: getattr(whole, name) for name in names}


def write_csv(rows: Iterable[Mapping[str, Any]], file: TextIO) -> None:
    """Write rows as CSV with a header; nothing for a value that is not there, and no text is a formula.

    Examples
    --------
    >>> import sys
    >>> write_csv([{"model": "=a", "missing": None, "truncated": False, "step": -1}], sys.stdout)
    model,missing,truncated,step
    '=a,,false,-1
    """
    writer = csv.writer(file, lineterminator="\n")
    names: list[str] = []
    for row in rows:
        cells = encodable(row)
        if not names:
            names = [*cells]
            writer.writerow(map(_cell, names))
        writer.writerow([_cell(cells.get(name)) for name in names])


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return value
    return without_formula(value).replace("\r\n", "\n").translate(_PICTURES)


_PICTURES = {code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\t\n"}
_PICTURES |= {code: f"\\x{code:02x}" for code in range(0x7F, 0xA0)}
_PICTURES |= {code: f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}
"""What is shown of characters that act on a terminal or turn a line around; line ends and tabs stay."""


def write_jsonl(rows: Iterable[Mapping[str, Any]], file: TextIO) -> None:
    """Write rows as JSON Lines."""
    file.writelines(json.dumps(row) + "\n" for row in rows)


def encodable(row: Mapping[str, Any]) -> dict[str, Any]:
    r"""Return a row whose texts can be written as UTF-8: half a surrogate pair, as answers have it, cannot.

    Examples
    --------
    >>> encodable({"text": "half \ud83d", "step": 1})
    {'text': 'half ?', 'step': 1}
    """
    found = dict(row)
    for name, value in row.items():
        if isinstance(value, str):
            found[name] = value.encode("utf-8", "replace").decode()
    return found


PART_ROWS = 100_000
"""Rows of a part: with answers of 4 KB it takes about 150 MB, and half a gigabyte when it is read."""

_BATCH = 2048
_PART = re.compile(r"part-\d{5,}\.parquet")


def write_parquet(rows: Iterator[Mapping[str, Any]], path: Path) -> None:
    """Write rows as one Parquet file."""
    arrow, parquet = _libraries()
    batch = list(islice(rows, _BATCH))
    if batch:
        names = list(batch[0])
    else:
        names = list(COLUMNS)
    schema = arrow.schema([(name, getattr(arrow, COLUMNS.get(name, "float64"))()) for name in names])
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        while batch:
            writer.write_table(arrow.Table.from_pylist(list(map(encodable, batch)), schema=schema))
            batch = list(islice(rows, _BATCH))


def write_parts(rows: Iterator[Mapping[str, Any]], folder: Path, part_rows: int) -> list[Path]:
    """Write rows as a folder of Parquet files, which appears whole or not at all."""
    _require_replaceable(folder)
    draft, former = (folder.with_name(f".{folder.name}.{word}") for word in ("new", "old"))
    for leftover in (draft, former):
        shutil.rmtree(leftover, ignore_errors=True)
    draft.mkdir(parents=True)
    try:
        names = _write_numbered(rows, draft, part_rows)
        if folder.exists():
            folder.rename(former)
        draft.rename(folder)
    except BaseException:
        if former.exists() and not folder.exists():
            former.rename(folder)
        raise
    finally:
        for leftover in (draft, former):
            shutil.rmtree(leftover, ignore_errors=True)
    return [folder / name for name in names]


def parts_of(folder: Path) -> list[Path]:
    """Return the parts in a folder, in order; empty if there are none."""
    found = [path for path in folder.iterdir() if _PART.fullmatch(path.name)]
    return sorted(found, key=lambda path: int(path.stem.rpartition("-")[2]))


def _write_numbered(rows: Iterator[Mapping[str, Any]], folder: Path, part_rows: int) -> list[str]:
    names: list[str] = []
    while (first := next(rows, None)) is not None or not names:  # a run without trials: one part without rows
        part = iter(()) if first is None else chain([first], islice(rows, part_rows - 1))
        names.append(f"part-{len(names):05d}.parquet")
        write_parquet(part, folder / names[-1])
        if first is None:
            break
    return names


def _require_replaceable(folder: Path) -> None:
    if not folder.exists():
        return
    if not folder.is_dir():
        raise UsageError(
            f"{folder} is a file; name a folder for the parts, or one file that ends in .parquet"
        )
    other = next((path.name for path in folder.iterdir() if not _PART.fullmatch(path.name)), None)
    if other is not None:
        raise UsageError(f"{folder} holds {other}, which is no part of an export; name a new folder")


def _libraries() -> tuple[Any, Any]:
    return tuple(library(name, "writing Parquet", "pyarrow") for name in ("pyarrow", "pyarrow.parquet"))


def run_columns(directory: Path) -> OutcomeColumns:
    """Return the outcomes of the run in `directory`."""
    if not (directory / RUN_FILE).exists():
        raise OutcomesError(f"{directory}: there is no run in this directory ({RUN_FILE} is missing)")
    with RunReader(directory) as reader:
        columns = reader.outcomes()
    if not len(columns):
        raise OutcomesError(f"{directory}: this run has no outcomes yet")
    return columns


def run_log(directory: Path, choices: ReadingOptions, *, texts: bool) -> Log:
    """Return a run as a log."""
    read = _with_texts if texts else _outcomes
    questions = [name for _, name in run_columns(directory).questions]
    if choices.task is not None and len(set(questions)) < len(questions):
        raise OutcomesError(f"{directory}: a question is in several tasks, which --task would take for one")
    with RunReader(directory) as reader:
        reader.require_undamaged(whole=True)
        weights = run_weights(reader)
        results = stored_results(reader)
        fields = {str(task.fields["cluster"]) for task in _tasks(reader.meta()) if "cluster" in task.fields}
        rule = run_rule(reader)
        groups = stored_groups(reader)
        if choices.cluster is not None and not (groups and choices.cluster in fields):
            groups = groups_by_field(reader, choices.cluster)
    if results is not None:
        tasks = results.tasks
    else:
        tasks = ()
    shares = {task.task: task.weight for task in tasks}
    if choices.task is not None and len(weights) == 1:
        weights = {choices.task: next(iter(weights.values()))}
    log = Log(directory, RUN, lambda: in_groups(read(directory, choices), groups), weights=weights)
    number = 0
    if results is not None:
        number = results.questions
    field = ""
    if not groups:
        field = ", ".join(sorted(fields))
    return replace(log, shares=shares, unread_groups=field, questions=number, rule=rule)


def run_weights(reader: RunReader) -> dict[str, tuple[float, ...]]:
    """Return the category weights of a run by task; empty if it records none."""
    meta = reader.meta()
    if IMPORTED in meta:
        stored = json.loads(meta[IMPORTED])
        kinds = dict.fromkeys(stored.get("ranges", ()), ScoreRange)
        return {task: kinds.get(task, tuple)(values) for task, values in stored["weights"].items()}
    return {task.name: task.rubric.category_weights for task in _tasks(meta)}


def _tasks(meta: Mapping[str, str]) -> Sequence[TaskConfig]:
    """Return the tasks of a run's config; none of an imported run."""
    if "config" in meta:
        return parse_config(meta["config"], meta.get("source", "config")).tasks
    return ()


def _outcomes(directory: Path, choices: ReadingOptions) -> Iterator[Piece]:
    columns = run_columns(directory)
    models = [choices.named(name, directory) for name in columns.models]
    with RunReader(directory) as reader:
        keys = {record.request.key: record.missing for record in reader.trials(missing=True)}
        texts = equal_texts(reader)
        columns = with_lost_draws(columns, reader)
        redrawn = redrawn_trials(reader)
    reasons = {(key.model, key.index): reason for key, reason in keys.items()}
    names = ("model", "question", "repeat", "category", "step")
    cells = zip(*(getattr(columns, name).tolist() for name in names), strict=True)
    for model, question, repeat, category, step in cells:
        task, name = columns.questions[question]
        place = f"question {name!r}, repeat {repeat}"
        known = (models[model], choices.task or task, name, place, repeat)
        reason = reasons.get((columns.models[model], step), "no answer")
        if category < 0:
            found = Found(*known, missing=reason)
        else:
            found = Found(*known, category=category)
        key = TrialKey(columns.models[model], step)
        if text := texts.get(key, 0):
            found = replace(found, repeats=True, answer=text)
        if key in redrawn:
            yield replace(found, redrawn=True)
        else:
            yield found


def _with_texts(directory: Path, choices: ReadingOptions) -> Iterator[Piece]:
    with RunReader(directory) as reader:
        yield from trials_of_run(reader, choices)


def stored_target(record: TrialRecord) -> str | None:
    """Return the expected answer that is stored with an imported trial."""
    found = record.sent.get("target")
    if found is None:
        return None
    return str(found)


def trials_of_run(
    reader: RunReader,
    choices: ReadingOptions,
    model: str | None = None,
    task: str | None = None,
    counted: Weights = MappingProxyType({}),
    target: TargetLookup = stored_target,
) -> Iterator[Found]:
    """Yield the trials of a run with their texts: all, or those of one model and task."""
    redrawn = redrawn_causes(reader)
    independent = independent_copies(reader)
    for record in reader.trials(model=model, task=task):
        request = record.request
        answer = record.completion
        score = record.score
        prompt = shown_prompt(record.sent)
        content = content_of(prompt) if prompt else ""
        if score is not None:
            checks = _checks(score.signals)
        else:
            checks = {}
        counts = redrawn.issuperset(record.discarded)
        yield Found(
            choices.named(request.key.model, reader.directory),
            choices.task or request.task,
            request.question,
            f"question {request.question!r}, repeat {request.repeat}",
            request.repeat,
            missing=record.missing,
            content=content,
            prompt=prompt,
            target=target(record) or "",
            tokens=(record.usage.prompt_tokens, record.usage.completion_tokens),
            finished_at=record.finished_at,
            of_run=True,
            weight=counted.get((request.key.model, request.key.index), 0.0),
            discarded=record.discarded,
            redrawn=bool(record.discarded) and counts,
            repeats=not independent and score is not None and SAME_TEXT in score.signals,
            checks=checks,
            **_parts(answer, "text", "finish_reason", "latency"),
            **_parts(score, "category", "extracted", "reason"),
        )


def _checks(signals: Mapping[str, Any]) -> dict[str, float]:
    """Return the result of each of an answer's checks, by the name of its signal."""
    return {name: float(value) for name, value in signals.items() if name.startswith(CHECK)}


def shown_prompt(sent: object) -> str:
    """Return the prompt of a stored request: its last message, or that of an imported trial.

    Examples
    --------
    >>> shown_prompt({"messages": [{"role": "user", "content": "2 + 2?"}]})
    '2 + 2?'
    """
    if not isinstance(sent, dict):
        return ""
    messages = sent_messages(sent)
    if messages:
        return shown_message(messages[-1])
    return ""


@dataclass(frozen=True)
class RunDescription:
    """Models, categories and targets of a run, made by :mod:`adaptive_eval.build.describe`."""

    models: tuple[str, ...]
    categories: Mapping[str, Sequence[str]]  # the names of each task's categories
    weights: Mapping[str, tuple[float, ...]]  # what they are worth
    target: TargetLookup
    rule: str = ""  # the rule that decides it
    clusters: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # groups, by task and question
    # causes of discarded draws for which another draw counts
    redrawn: frozenset[DiscardCause] = frozenset()
    results: Results | None = None  # from which trials get their weights; None: the latest stored ones


@dataclass(frozen=True)
class ModelQuestion:
    """All trials of one model on one question."""

    question: str  # its id
    place: int  # its place among the task's questions
    trials: list[Found]

    @property
    def answered(self) -> list[Found]:
        """Its trials with a category."""
        return [trial for trial in self.trials if trial.category is not None]

    def scores(self, weights: tuple[float, ...]) -> list[float]:
        """Return what its answers are worth."""
        return [score_of(weights, trial.category or 0) for trial in self.answered]

    def weighted(self, weights: tuple[float, ...]) -> float:
        """Return the sum of what its answers are worth, each with its weight in the score."""
        return sum(
            trial.weight * score for trial, score in zip(self.answered, self.scores(weights), strict=True)
        )

    def weighted_check(self, name: str) -> float:
        """Return the sum of the results of a check, each with its weight in the score."""
        return sum(trial.weight * trial.checks.get(name, 0.0) for trial in self.answered)


def checks_of(cells: Iterable[ModelQuestion]) -> list[str]:
    """Return the names of the checks that any answer has."""
    return list(dict.fromkeys(name for cell in cells for trial in cell.trials for name in trial.checks))


def tasks_of_run(reader: RunReader) -> tuple[Sequence[str], dict[str, list[str]]]:
    """Return the models of a run, and the questions of each task."""
    columns = run_columns(reader.directory)
    tasks: dict[str, list[str]] = {}
    for task, question in columns.questions:
        tasks.setdefault(task, []).append(question)
    return columns.models, tasks


def cells_of_run(
    reader: RunReader,
    model: str,
    task: str,
    questions: Sequence[str],
    counted: Weights,
    target: TargetLookup,
) -> Iterator[ModelQuestion]:
    """Yield the questions of a task that a model was asked, with its trials; none that no log has."""
    trials: dict[str, list[Found]] = {}
    for found in trials_of_run(reader, ReadingOptions(), model, task, counted, target):
        if found.missing == NOT_THERE:
            continue
        trials.setdefault(found.question, []).append(found)
    for place, question in enumerate(questions):
        if question in trials:
            yield ModelQuestion(
                question, place, sorted(trials[question], key=lambda found: found.number or 0)
            )


def file_names(names: Iterable[str], slash: str) -> list[str]:
    """Return names of files or folders, with a number if an earlier one would be the same.

    Examples
    --------
    >>> file_names(["org/m", "org__m", "ORG:M", ".."], "__")
    ['org__m', 'org__m-2', 'ORG_M', '_.']
    """
    found: list[str] = []
    for name in names:
        clean = name.replace("/", slash).replace(":", slash[0])
        if clean.startswith("."):
            clean = f"_{clean[1:]}"
        number, one = 1, clean
        while one in found:
            number += 1
            one = f"{clean}-{number}"
        found.append(one)
    return found
