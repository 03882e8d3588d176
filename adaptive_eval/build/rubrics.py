"""The rubrics of a config at work, and the thresholds that a run has frozen for them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

from adaptive_eval.config import RunConfig
from adaptive_eval.config.run_config import difference
from adaptive_eval.errors import RunFileError, RunMismatch, UsageError
from adaptive_eval.options.task_options import RubricConfig, TaskConfig
from adaptive_eval.scoring.rubric import Rubric
from adaptive_eval.store.reader import RunReader
from adaptive_eval.trial import ScoreRange, Signal


def rubrics_of(config: RunConfig) -> dict[str, Rubric]:
    """Return the rubric of every task, with the thresholds that the config or an earlier run gives."""
    return {task.name: _with_source(rubric_of(task.rubric), task, config) for task in config.tasks}


def rubric_of(section: RubricConfig) -> Rubric:
    """Return a rubric with the thresholds that its section gives.

    Examples
    --------
    >>> rubric_of(RubricConfig(schema="efficiency-adjusted", thresholds={"len_p33": 0.1})).open_thresholds
    ('len_p66',)
    """
    scores = None
    if section.range is not None:
        scores = ScoreRange(section.range)
    return Rubric(section.schema_definition, section.thresholds, section.truncated, scores)


def _with_source(rubric: Rubric, task: TaskConfig, config: RunConfig) -> Rubric:
    source = task.rubric.thresholds_from
    if source is None:
        return rubric
    directory = config.base_dir / Path(source).expanduser()
    with RunReader(directory) as reader:
        known = stored_thresholds(reader.meta()).get(task.name, {})
        if all(name in known for name in rubric.open_thresholds):
            return _frozen(rubric, {**known, **dict(rubric.thresholds)}, task.name)
        return observed_thresholds(rubric, stored_signals(reader, task.name), task.name, str(directory))


def observed_thresholds(
    rubric: Rubric, records: Sequence[Mapping[str, Signal]], task: str, source: str
) -> Rubric:
    """Return the rubric with its open thresholds taken from the signals of attempts."""
    if not records:
        raise UsageError(
            f"{source} has no scored answer to task {task!r}: there is nothing to find thresholds in"
        )
    try:
        return rubric.with_thresholds(rubric.observed(records))
    except ValueError as error:
        raise UsageError(f"thresholds of task {task!r} from {source}: {error}") from None


def _frozen(rubric: Rubric, values: Mapping[str, Any], task: str) -> Rubric:
    from scorio.categorical import Thresholds

    wanted = {name: values[name] for name in (*rubric.open_thresholds, *rubric.thresholds)}
    try:
        return rubric.with_thresholds(Thresholds.from_dict(wanted))
    except ValueError as error:
        raise UsageError(f"thresholds of task {task!r}: {error}") from None


def stored_signals(reader: RunReader, task: str) -> list[Mapping[str, Signal]]:
    """Return the signals of every stored answer to a task, in commit order."""
    trials = reader.trials(task=task, missing=False)
    return [record.score.signals for record in trials if record.score is not None]


def dump_thresholds(rubrics: Mapping[str, Rubric]) -> str:
    """Return the thresholds of every task with their sources, as JSON text for the run file."""
    return json.dumps({name: _as_stored(rubric) for name, rubric in rubrics.items() if rubric.thresholds})


def _as_stored(rubric: Rubric) -> dict[str, dict[str, float | str]]:
    from scorio.categorical import Thresholds

    frozen = rubric.thresholds
    return (frozen if isinstance(frozen, Thresholds) else Thresholds(frozen)).to_dict()


def stored_thresholds(meta: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return the thresholds that a run has frozen, by task."""
    found: dict[str, dict[str, Any]] = json.loads(meta.get("thresholds", "{}"))
    return found


def with_stored_thresholds(rubrics: Mapping[str, Rubric], meta: Mapping[str, str]) -> dict[str, Rubric]:
    """Return the rubrics with the thresholds that the run of `meta` has frozen."""
    stored = stored_thresholds(meta)
    frozen = {}
    for task, rubric in rubrics.items():
        known = stored.get(task, {})
        missing = [name for name in rubric.open_thresholds if name not in known]
        if missing:
            raise RunFileError(f"the run file has no thresholds {', '.join(missing)} for task {task!r}")
        frozen[task] = _frozen(rubric, known, task) if known else rubric
    return frozen


def require_same_scoring(
    directory: Path, stored: Mapping[str, Any] | None, now: Mapping[str, Any], tasks: Sequence[TaskConfig]
) -> None:
    """Refuse to continue a run under another scorer or rubric: its categories would not be comparable."""
    if stored is not None:
        differences = difference({"tasks": stored}, {"tasks": now})
    else:
        differences = []
    if stored is not None and differences:
        listed = "\n".join(f"  {line}" for line in differences)
        options = _to_rescore(stored, now, tasks)
        command = f"adaptive-eval rescore {quote(str(directory))}{options}"
        advice = ""
        if options:
            advice = f"To rank the stored answers by it: {command}. "
        raise RunMismatch(
            f"{directory}: its answers were scored in another way than the config now says:\n{listed}\n"
            + advice
            + "To continue, undo the change, or start a new run with run --new."
        )


def _to_rescore(stored: Mapping[str, Any], now: Mapping[str, Any], tasks: Sequence[TaskConfig]) -> str:
    """Return the options that score stored answers as the tasks say; empty if no options do."""
    parts = {(task, key) for task in now for key in {**stored.get(task, {}), **now[task]}}
    changed = {key for task, key in parts if stored.get(task, {}).get(key) != now[task].get(key)}
    found = ""
    for name in ("scorer", "rubric"):
        written = [
            getattr(task, name).model_dump(mode="json", by_alias=True, exclude_unset=True) for task in tasks
        ]
        of_it = {key for key in changed if key == name or (name == "scorer" and key.endswith(".py"))}
        changed -= of_it
        if of_it and any(one != written[0] or "thresholds_from" in one for one in written):
            return ""
        if of_it:
            found += f" --{name} {quote(json.dumps(written[0]))}"
    if changed:
        return ""
    return found
