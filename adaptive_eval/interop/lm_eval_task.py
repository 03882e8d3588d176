"""Tasks of lm-evaluation-harness: their questions as rows, and the scorer of their filters and metrics."""

import math
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from adaptive_eval.errors import DatasetError, first_line, library
from adaptive_eval.interop.inspect_task import taken
from adaptive_eval.options.scorers import LmEvalScorerConfig
from adaptive_eval.scoring.text import answer_part, storable
from adaptive_eval.trial import Completion, Question, Score

TASK, BASE, DOC = "lm_eval_task", "lm_eval_base", "lm_eval_doc"
"""Fields of a question: its task, the folder where a relative one is found, its place in the task."""

_LOCK = threading.Lock()
"""The harness's filters keep state while they are applied."""


def lm_eval_rows(name: str, base: Path) -> Iterator[dict[str, Any]]:
    """Yield the documents of a task as rows."""
    place = str(base.resolve())
    _seen[name, place] = _sources(name, place)
    task = _task(name, place)
    shots = task.config.num_fewshot or 0
    for number, doc in enumerate(_documents(name, place)):
        target = task.doc_to_target(doc)
        targets = target
        if not isinstance(target, list):
            targets = [target]
        yield {
            "id": str(number),
            "input": task.fewshot_context(doc, num_fewshot=shots),
            "target": ", ".join(map(str, targets)) or "-",
            TASK: name,
            BASE: place,
            DOC: number,
        }


@dataclass(frozen=True)
class HarnessScore:
    """The harness's scoring of one answer."""

    extracted: str | None  # what its filters have left; None where that is no text
    metrics: Mapping[str, Any]


def judged(fields: Mapping[str, Any], text: str, chosen: str | None = None) -> HarnessScore:
    """Score one answer with a task's filters and metrics."""
    name = str(fields[TASK])
    base = str(fields[BASE])
    task = _task(name, base)
    doc = _documents(name, base)[int(fields[DOC])]
    for end in _ends(task):
        text = text.split(end, 1)[0]
    pipeline = next(one for one in _filters(task) if chosen is None or one.name == chosen)
    with _LOCK:
        filtered = filtered_answer(pipeline, doc, (name, int(fields[DOC]), 1), text)
        metrics = task.process_results(doc, [filtered])
    answer = None
    if isinstance(filtered, str):
        answer = filtered
    return HarnessScore(answer, metrics)


def filtered_answer(pipeline: Any, doc: Any, metadata: tuple[str, Any, int], text: str) -> Any:
    """Return what a pipeline of filters leaves of one answer, as if it were the only one."""
    instance = import_module("lm_eval.api.instance").Instance(
        request_type="generate_until", doc=doc, arguments=("", {}), idx=0, metadata=metadata
    )
    instance.resps = [text]
    pipeline.apply([instance])
    return instance.filtered_resps[pipeline.name]


def scoring_of(fields: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of a task's filters and of its metrics, if its config gives them."""
    task = _task(str(fields[TASK]), str(fields[BASE]))
    metrics = [str(entry["metric"]) for entry in task.config.metric_list or ()]
    return tuple(one.name for one in _filters(task)), tuple(metrics)


def _filters(task: Any) -> list[Any]:
    return list(task._filters)  # the harness has no public name for them


def _ends(task: Any) -> list[str]:
    found = (task.config.generation_kwargs or {}).get("until") or []
    if isinstance(found, str):
        return [found]
    return [end for end in found if end]


_Sources: TypeAlias = tuple[tuple[str, int, int], ...]

_seen: dict[tuple[str, str], _Sources] = {}
"""The files of each task as they were when its rows were last asked for: an edited task is another one."""


def _sources(name: str, base: str) -> _Sources:
    """Return time and size of the files in the folder of a task."""
    folder, slash, _ = name.rpartition("/")
    if not slash:
        return ()
    found = []
    for file in sorted((Path(base) / Path(folder).expanduser()).glob("*")):
        status = file.stat()
        found.append((file.name, status.st_mtime_ns, status.st_size))
    return tuple(found)


def _documents(name: str, base: str) -> list[Any]:
    return _documents_of(name, base, _seen.get((name, base), ()))


def _task(name: str, base: str) -> Any:
    return _loaded(name, base, _seen.get((name, base), ()))


@lru_cache(maxsize=64)
def _documents_of(name: str, base: str, sources: _Sources) -> list[Any]:
    return list(_loaded(name, base, sources).eval_docs)


@lru_cache(maxsize=64)
def _loaded(name: str, base: str, sources: _Sources) -> Any:
    manager = library("lm_eval.tasks", f"lm_eval:{name}", "lm-eval", DatasetError).TaskManager
    folder, _, task = name.rpartition("/")
    place = Path(base) / Path(folder).expanduser()
    if folder and not place.is_dir():
        raise DatasetError(f"lm_eval:{name}: there is no folder {place}")
    if folder:
        known = manager(include_path=str(place), include_defaults=False)
    else:
        known = manager()
    if task not in known.all_tasks:
        where = f"in {place}" if folder else "installed"
        raise DatasetError(f"lm_eval:{name}: no task {task!r} is {where}; `lm_eval ls tasks` lists what is")
    errors = import_module("datasets.exceptions").DatasetsError
    try:
        loaded = known.load([task])["tasks"]
    except (errors, OSError, ValueError, KeyError) as error:
        raise DatasetError(f"lm_eval:{name}: cannot be loaded: {first_line(error)}") from None
    if list(loaded) != [task]:
        raise DatasetError(
            f"lm_eval:{name}: is a group of tasks ({', '.join(loaded)}); give one of them each"
        )
    if loaded[task].OUTPUT_TYPE != "generate_until":
        raise DatasetError(
            f"lm_eval:{name}: is a task of kind {loaded[task].OUTPUT_TYPE}; only those that generate answers "
            "(generate_until) can be asked again and again"
        )
    return loaded[task]


class LmEvalScorer(LmEvalScorerConfig):
    """Scores an answer as the harness would have scored it alone."""

    def check_target(self, question: Question) -> str | None:
        """Return the flaw of the question or of the choice of metric and filter, or None."""
        if TASK not in question.fields:
            return "the scorer lm-eval is for tasks of lm-evaluation-harness: write lm_eval: NAME"
        filters, metrics = scoring_of(question.fields)
        for kind, chosen, known in (("filter", self.filter, filters), ("metric", self.metric, metrics)):
            if chosen is None and len(known) > 1:
                return (
                    f"the task has the {kind}s {', '.join(known)}; choose one: {{kind: lm-eval, {kind}: …}}"
                )
            if chosen is not None and known and chosen not in known:
                return f"the task has no {kind} {chosen!r}; it has {', '.join(known)}"
        return None

    def score(self, completion: Completion, question: Question) -> Score:
        """Return the score; without a category if the metric is no number."""
        text = answer_part(completion.text, strip_reasoning=self.strip_reasoning)
        found = judged(question.fields, text, self.filter)
        name = self.metric or next(iter(found.metrics), "")
        value = found.metrics.get(name)
        if value is not None and not isinstance(value, str | list | dict):
            number = float(value)
        else:
            number = math.nan
        if math.isnan(number):
            return Score(None, reason=storable(f"the metric {name} gave {value!r:.100}"))
        return taken(self, name, number, found.extracted, completion)
