"""Models and priors from previous runs, stored with the run.

The run file holds a copy of them, so that a continued run decides as before even if the previous run has
changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from glob import glob
from itertools import chain, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from adaptive_eval.config import RunConfig
from adaptive_eval.config.run_config import PriorConfig, ReferenceConfig
from adaptive_eval.core.spec import PriorSpec, ReferenceSpec
from adaptive_eval.errors import AdaptiveEvalError, OutcomesError
from adaptive_eval.scoring.rubric import Rubric
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.run_files import RUN_FILE
from adaptive_eval.tasks.task import Task

if TYPE_CHECKING:  # reading previous trials needs much that a run without them does not
    from adaptive_eval.build.previous_trials import StoredTrials, WantedTask

RUNS = "runs"
"""The folder that runs are kept in."""

META = "previous"
"""Key of the run file's description that holds what was taken."""

Steps = tuple[tuple[int, ...], ...]
Counts = Mapping[str, NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class Previous:
    """The models and priors that a run takes from previous runs."""

    settings: Mapping[str, Any]
    references: tuple[ReferenceSpec, ...]
    prior: PriorSpec | None

    def meta(self) -> dict[str, str]:
        """Return its entries for the run file; none if nothing is to be taken."""
        asked = self.settings["references"] or self.prior is not None
        if asked:
            return {META: self.to_json()}
        return {}

    def to_json(self) -> str:
        """Return everything as JSON."""
        prior = None
        if self.prior is not None:
            prior = asdict(self.prior)
        data = {
            "settings": self.settings,
            "references": list(map(asdict, self.references)),
            "prior": prior,
        }
        return json.dumps(data, default=np.ndarray.tolist)

    @classmethod
    def from_json(cls, text: str) -> Previous:
        """Return what :meth:`to_json` was given."""
        data = json.loads(text)
        references = tuple(ReferenceSpec(**_as_tables(one)) for one in data["references"])
        prior = None
        if data["prior"] is not None:
            prior = PriorSpec(**_as_tables(data["prior"]))
        return cls(data["settings"], references, prior)


def _as_tables(value: Any) -> Any:
    """Return stored data with arrays in place of its lists."""
    if isinstance(value, dict):
        return {name: _as_tables(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return np.array(value)
    return value


def previous_of(
    config: RunConfig,
    tasks: Sequence[Task],
    rubrics: Mapping[str, Rubric],
    scoring: Mapping[str, Mapping[str, Any]],
    meta: Mapping[str, str] | None,
) -> Previous:
    """Return the models and priors that a run takes from previous runs."""
    settings: dict[str, Any] = {
        "references": [one.model_dump(mode="json") for one in config.references],
        "prior": None,
    }
    if config.prior is not None:
        settings["prior"] = config.prior.model_dump(mode="json", by_alias=True)
    if meta is not None and META in meta:
        taken = Previous.from_json(meta[META])
        if taken.settings == settings:
            return taken
    if not config.references and config.prior is None:
        return Previous(settings, (), None)
    from adaptive_eval.build.previous_trials import WantedTask

    names = [task.name for task in tasks]
    wanted = [
        WantedTask(task, config.task(name), rubrics[name], scoring[name])
        for name, task in zip(names, tasks, strict=True)
    ]
    references = []
    for one in config.references:
        reader = _references
        if one.series:
            reader = _series
        references += reader(one, config, wanted)
    prior = None
    if config.prior is not None:
        prior = _prior(config.prior, config, wanted)
    return Previous(settings, tuple(references), prior)


def _read(place: str, config: RunConfig, wanted: Sequence[WantedTask], *, all_tasks: bool) -> StoredTrials:
    from adaptive_eval.build.previous_trials import trials_of_file, trials_of_run

    path = config.base_dir / Path(place).expanduser()
    read = trials_of_file if path.is_file() else trials_of_run
    return read(path, place, wanted, all_tasks=all_tasks)


def _references(
    section: ReferenceConfig, config: RunConfig, wanted: Sequence[WantedTask]
) -> list[ReferenceSpec]:
    place = section.run or section.file or ""
    trials = _read(place, config, wanted, all_tasks=True)
    if trials.is_grouped and config.stopping.target == "population":
        for one in wanted:
            if "cluster" not in one.config.fields:
                raise OutcomesError(
                    f"{place}: its questions are in groups, and task {one.task.name!r} names none here: say "
                    "which column of the dataset has them, with fields: {cluster: COLUMN}"
                )
    return [_reference(name, trials, wanted) for name in section.models]


def _reference(name: str, trials: StoredTrials, wanted: Sequence[WantedTask]) -> ReferenceSpec:
    tables, lost, alike = {}, {}, {}
    for one in wanted:
        counts = trials.counts(name, one)
        if counts is None:
            raise OutcomesError(
                f"{trials.shown} has no trial of model {name!r} on task {one.task.name!r}; "
                f"its models are {', '.join(trials.models)}"
            )
        tables[one.task.name], lost[one.task.name] = counts, trials.lost[name, one.task.name]
        alike[one.task.name] = trials.alike[name, one.task.name]
    return ReferenceSpec(name, tables, f"from {trials.shown}", lost, alike)


def _series(section: ReferenceConfig, config: RunConfig, wanted: Sequence[WantedTask]) -> list[ReferenceSpec]:
    """Return the models of a series, those of the run before this one first."""
    from adaptive_eval.build.previous_trials import trials_of_run

    seen = {model.name for model in config.models}
    found: list[ReferenceSpec] = []
    left_out = f"no run matches {section.run or named_as(config.name)}"
    for directory in _latest_first(section.run, config.base_dir, config.name):
        try:
            trials = trials_of_run(directory, str(directory), wanted, all_tasks=True)
            found += [_reference(name, trials, wanted) for name in trials.models if name not in seen]
        except AdaptiveEvalError as error:  # it asked or scored otherwise, or cannot be read
            left_out = str(error)
            continue
        seen |= set(trials.models)
        if found and section.series == "previous":
            break
    alone = len(config.models) == 1 and not found
    if alone and not any(goal.kind in ("width", "threshold", "budget") for goal in config.goal.parts):
        raise OutcomesError(
            f"references: there is no earlier run to compare with ({left_out}). The first run of a series "
            "measures its model: write goal: width=0.1 and ranking"
        )
    return found


_NUMBER = re.compile(r"(\d+(?:\.\d+)*)")  # or a version, whose parts are compared: 1.10 is after 1.9


def named_as(own: str) -> str:
    """Return the pattern of the runs that are named as the run `own`, but for a number."""
    words, steps = _words_and_numbers(own)
    if steps:
        return f"{RUNS}/{'*'.join(words)} with a lower number"
    return f"{RUNS}/{own} with a number"


def _latest_first(pattern: str | None, base: Path, own: str) -> list[Path]:
    """Return the directories of runs that match a pattern, below the config's folder or the current one.

    Those that differ from the name `own` by lower numbers come first, the next lower one before all; then
    the others, the one that was started last first. Without a pattern only the former belong to the series.
    """
    if pattern is None:
        wanted_runs = f"{RUNS}/*"
    else:
        wanted_runs = pattern
    place = Path(wanted_runs).expanduser() / RUN_FILE
    found = (glob(str(folder / place)) for folder in (base, Path.cwd()))  # noqa: PTH207 - may be absolute
    files = {Path(file).resolve() for file in chain.from_iterable(found)}
    started = {}
    for directory in sorted(file.parent for file in files):
        with suppress(AdaptiveEvalError), RunReader(directory) as reader:
            started[directory] = float(reader.meta().get("started_at", 0.0))
    words, steps = _words_and_numbers(own)

    def lower(directory: Path) -> Steps:
        theirs, their_steps = _words_and_numbers(directory.name)
        if theirs == words and their_steps < steps:
            return their_steps
        return ()

    belonging = [directory for directory in started if pattern is not None or lower(directory)]
    return sorted(belonging, key=lambda directory: (lower(directory), started[directory]), reverse=True)


def _words_and_numbers(name: str) -> tuple[Sequence[str], Steps]:
    parts = _NUMBER.split(name)
    return parts[::2], tuple(tuple(map(int, number.split("."))) for number in parts[1::2])


def _prior(section: PriorConfig, config: RunConfig, wanted: Sequence[WantedTask]) -> PriorSpec:
    place = section.from_
    trials = _read(place, config, wanted, all_tasks=False)
    names = [model.name for model in config.models if model.name in trials.models]
    if not names:
        raise OutcomesError(
            f"{place} has no trial of a model of this config; its models are {', '.join(trials.models)}. A "
            "prior is found by the model's name"
        )

    found: dict[str, dict[str, Any]] = {name: {} for name in names}
    for name, one in product(names, wanted):
        counts = trials.counts(name, one, section.depth)
        if counts is not None:
            found[name][one.task.name] = counts
    left_out = [model.name for model in config.models if model.name not in names]
    return PriorSpec(found, _in_words(place, found, left_out))


def _in_words(place: str, counts: Mapping[str, Counts], left_out: Sequence[str]) -> str:
    """Say how many previous trials a question are used, of which models, and where from."""
    groups: dict[str, list[str]] = {}
    for name, tables in counts.items():
        trials = np.concatenate([table.sum(axis=1) for table in tables.values()])
        low, high = int(trials.min()), int(trials.max())
        if low == high:
            number = f"{high}"
        else:
            number = f"{low} to {high}"
        groups.setdefault(f"{number} previous trial{'' if high == 1 else 's'} a question", []).append(name)
    parts = [f"{words} of {', '.join(names)}" for words, names in groups.items()]
    text = f"{'; '.join(parts)}, from {place}"
    if left_out:
        text += f"; none of {', '.join(left_out)}"
    return text
