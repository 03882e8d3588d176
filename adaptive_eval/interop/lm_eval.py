"""Samples of lm-evaluation-harness: ``samples_{task}_{date}.jsonl``, as ``--log_samples`` writes them.

A row is a question under one filter, with all repeats of its answer in ``resps`` and one metric for the
question. With one repeat that metric is the trial's score; with several, each answer is scored again, by the
harness's own filters and metric (:class:`HarnessMetric`) or a scorer of this package.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from adaptive_eval.errors import OutcomesError
from adaptive_eval.interop.found import (
    Flaw,
    Found,
    Log,
    Piece,
    ReadingOptions,
    Rescorer,
    chosen_metric,
    cluster_in,
    content_of,
    in_range,
    json_object,
)
from adaptive_eval.interop.lm_eval_task import filtered_answer
from adaptive_eval.tasks.rows import Row, stream_rows

_NAME = re.compile(r"samples_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT[\d.:-]+)\.jsonl")
_HASHES = ("doc_hash", "prompt_hash", "target_hash")
_METRICS = ("exact_match", "acc")


def is_samples_row(row: Mapping[str, Any]) -> bool:
    """Tell whether a row is one of lm-evaluation-harness.

    Examples
    --------
    >>> is_samples_row({"doc_id": 0, "resps": [["4"]], "target": "4"})
    True
    """
    return {"doc_id", "resps", "target"} <= row.keys()


def samples_log(path: Path, choices: ReadingOptions) -> Log:
    """Return the log in a file of samples.

    The model's name is taken from the ``results_{date}.json`` next to it, else from the folder's name.
    """
    samples = _Samples(path, choices)
    version = samples.results.get("versions", {}).get(samples.task)
    if version is not None:
        versions = {samples.called: str(version)}
    else:
        versions = {}
    return Log(
        path,
        "lm-evaluation-harness samples",
        samples.pieces,
        versions=versions,
    )


class _Samples:
    """One file of samples and its results file."""

    def __init__(self, path: Path, choices: ReadingOptions) -> None:
        self.path, self.choices = path, choices
        match = _NAME.fullmatch(path.name)
        place = None
        if match is not None:
            place = path.with_name(f"results_{match['date']}.json")
        # the contents of ``results_{date}.json``; empty where there is no such file
        if place is not None and place.is_file():
            self.results = json_object(place)
        else:
            self.results = {}
        self.task = path.stem if match is None else match["task"]  # as the harness calls it
        self.called = choices.task or self.task
        folder = ""
        if match is not None:
            folder = path.resolve().parent.name
        named = choices.model or str(self.results.get("model_name") or "") or folder
        self.model = choices.named(named, path)

    @cached_property
    def group(self) -> str:
        """The smallest group of tasks that has this one, as its results say; else the task itself."""
        groups = self.results.get("group_subtasks", {})
        having = [name for name, tasks in groups.items() if self.task in tasks]
        return min(having, key=lambda name: len(groups[name]), default=self.task)

    @cached_property
    def score_answer(self) -> Callable[[Mapping[str, Any], str], dict[str, Any]]:
        """The scorer of one answer of a row: ours, or the harness's own."""
        if self.choices.scorer is None:
            config = self.results.get("configs", {}).get(self.task)
            return HarnessMetric(self.path, config, self.choices).score
        rescorer = Rescorer(self.choices)
        return lambda row, text: rescorer.score(text, str(row["target"]), _doc(row))

    def pieces(self) -> Iterator[Piece]:
        """Yield the trials."""
        chosen = self.choices.filter
        used, others = chosen, set()
        for found in stream_rows(self.path):
            if not isinstance(found, Row):
                line = ""
                if found[0]:
                    line = f"line {found[0]}"
                yield Flaw(line, found[1])
                continue
            row = found.values
            place = f"line {found.line}"
            if not is_samples_row(row):
                yield Flaw(place, "is no sample of lm-evaluation-harness: it lacks doc_id, resps or target")
                continue
            name = str(row.get("filter", "none"))
            if used is None:
                used = name
            if name != used:
                others.add(name)
                continue
            yield from self._question(row, place)
        if chosen is None and others:
            names = ", ".join([str(used), *sorted(others)])
            raise OutcomesError(
                f"{self.path}: it has results of several filters ({names}); choose one with --filter"
            )

    def _question(self, row: Mapping[str, Any], place: str) -> Iterator[Piece]:
        """Yield the trials of one question."""
        doc = _doc(row)
        field = self.choices.question_id
        if field is not None and field not in doc:
            yield Flaw(place, f"its document has no field {field!r}; there are {', '.join(doc)}")
            return
        if field is None:
            name = row["doc_id"]
        else:
            name = doc[field]
        shared: dict[str, Any] = {
            "model": self.model,
            "task": self.called,
            "question": str(name),
            "content": _content(row),
            "prompt": _prompt(row),
            "target": str(row["target"]),
            "rule": str(row.get("stopping_rule") or ""),
        }
        answers = _answers(row)
        try:
            shared["cluster"] = cluster_in(
                self.choices.cluster, row, doc, {"group": self.group, "task": self.task}
            )
            for number, result in enumerate(self._results(row, answers)):
                if len(answers or "") < 2:
                    where = place
                else:
                    where = f"{place}, repeat {number + 1}"
                yield Found(**shared, place=where, number=number, **result)
        except ValueError as error:
            yield Flaw(place, f"doc_id {row['doc_id']}: {error}")
        if answers is not None and not answers:
            yield Flaw(place, f"doc_id {row['doc_id']}: resps is empty")

    def _results(self, row: Mapping[str, Any], answers: list[str] | None) -> Iterator[dict[str, Any]]:
        """Yield each answer with its score: as stored for each, or for the only one, or as scored again."""
        scores = _own_scores(row, answers)
        again = self.choices.scorer is not None
        if answers is not None and scores is not None and not again:
            for text, score in zip(answers, scores, strict=True):
                yield {"text": text, "score": in_range(score, "scores", self.choices.range)}
            return
        stored = self._stored(row)
        if not again and (answers is None or len(answers) == 1):
            first = ""
            if answers:
                first = answers[0]
            yield {"text": first, "score": stored, "reason": self._metric(row)}
            return
        for number, text in enumerate(answers or ()):
            result = self.score_answer(row, text)
            if number == 0 and not again:
                _compare(row, stored, result["score"])
            yield {"text": text, **result}

    def _metric(self, row: Mapping[str, Any]) -> str:
        """Return the name of the metric that is taken."""
        names = list(map(str, row.get("metrics", ()))) or [name for name in _METRICS if name in row]
        wanted = self.choices.metric
        if wanted is not None and wanted in row:
            name = wanted
        else:
            name = chosen_metric(self.path, wanted, names)
        if self.results.get("higher_is_better", {}).get(self.task, {}).get(name) is False:
            raise OutcomesError(
                f"{self.path}: a lower {name} is better, and models are ranked by higher scores"
            )
        return name

    def _stored(self, row: Mapping[str, Any]) -> float:
        """Return the score that the harness stored for the question."""
        name = self._metric(row)
        return in_range(row.get(name), name, self.choices.range)


def _compare(row: Mapping[str, Any], stored: float, score: float) -> None:
    """Refuse the harness's own scoring if the first answer does not get what the harness has stored."""
    filtered = row.get("filtered_resps", ())
    if len(filtered) == 1 and isinstance(filtered[0], str) and score != stored:
        raise ValueError(
            f"scoring its first answer gives {score:g} and the log has {stored:g}: the filter does not take "
            "the first answer, or the task scores in its own way; score the answers with --scorer"
        )


def _own_scores(row: Mapping[str, Any], answers: list[str] | None) -> list[object] | None:
    """Return what each answer is worth, in a file that this package has exported."""
    scores = row.get("scores")
    known = isinstance(scores, list) and answers is not None and len(scores) == len(answers)
    if known:
        return scores
    return None


def _answers(row: Mapping[str, Any]) -> list[str] | None:
    """Return the repeats of a generated answer; None if the model chose among options."""
    resps = row["resps"]
    one_request = isinstance(resps, list) and len(resps) == 1 and isinstance(resps[0], list)
    if not one_request or not all(isinstance(text, str) for text in resps[0]):
        return None
    if isinstance(_first_arguments(row).get("arg_1"), str):
        return None
    return list(resps[0])


def _doc(row: Mapping[str, Any]) -> Mapping[str, Any]:
    return row["doc"] if isinstance(row.get("doc"), dict) else {}


def _first_arguments(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the model was first asked with."""
    arguments = row.get("arguments")
    first = None
    if isinstance(arguments, dict):
        first = arguments.get("gen_args_0")
    if isinstance(first, dict):
        return first
    return {}


def _content(row: Mapping[str, Any]) -> str:
    hashes = [row[name] for name in _HASHES if isinstance(row.get(name), str)]
    if hashes:
        return content_of(*hashes)
    return content_of(row.get("doc"), row["target"])


def _prompt(row: Mapping[str, Any]) -> str:
    """Return the prompt; of a conversation its last message."""
    prompt = _first_arguments(row).get("arg_0", "")
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], str):
        try:
            messages = json.loads(prompt[0])
        except ValueError:
            return prompt[0]
        last = None
        if isinstance(messages, list) and messages:
            last = messages[-1]
        if isinstance(last, dict):
            return str(last.get("content", ""))
        return prompt[0]
    if isinstance(prompt, str):
        return prompt
    return ""


_NOT_THE_METRICS = ("metric", "aggregation", "higher_is_better", "hf_evaluate")


class HarnessMetric:
    """Scores an answer as the harness would have scored it alone."""

    def __init__(self, path: Path, config: Mapping[str, Any] | None, choices: ReadingOptions) -> None:
        self._path = path
        otherwise = "score the answers with a scorer of this package: --scorer exact, numeric, math, …"
        if config is None:
            raise OutcomesError(
                f"{path}: it has several answers to a question but one score, and there is no results_….json "
                f"in its folder that says how they were scored; put it there, or {otherwise}"
            )
        if config.get("process_results") or config.get("output_type", "generate_until") != "generate_until":
            raise OutcomesError(f"{path}: this task scores with its own code; {otherwise}")
        self._config = config
        self._metric = choices.metric
        self._ensembles: dict[str, Any] = {}
        try:
            self._build: Callable[..., Any] = import_module("lm_eval.filters").build_filter_ensemble
            self._registry = import_module("lm_eval.api.registry")
            import_module("lm_eval.api.metrics")
        except ImportError:
            raise OutcomesError(
                f"{path}: it has several answers to a question but one score; to score each with the "
                f"harness's own metric, pip install lm-eval, or {otherwise}"
            ) from None

    def score(self, row: Mapping[str, Any], text: str) -> dict[str, Any]:
        """Return score, extraction and reason of one answer of a row."""
        extracted = self._filtered(row, text)
        if not isinstance(extracted, str):
            raise ValueError(f"the filter {row.get('filter')!r} makes no text of one answer; use --scorer")
        entry = self._entry()
        name = str(entry["metric"])
        kwargs = {key: value for key, value in entry.items() if key not in _NOT_THE_METRICS}
        metric = self._registry.get_metric(name)
        try:
            value = metric(references=[str(row["target"])], predictions=[extracted], **kwargs)
        except TypeError:  # the harness's older metrics take pairs
            value = metric([str(row["target"]), extracted])
        number = value
        if isinstance(value, dict):
            number = value.get(name)
        score = in_range(number, f"the metric {name}")
        return {"score": score, "extracted": extracted, "reason": name}

    def _filtered(self, row: Mapping[str, Any], text: str) -> Any:
        name = str(row.get("filter", "none"))
        if name not in self._ensembles:
            self._ensembles[name] = self._build(name, self._components(name))
        metadata = (self._config.get("task", ""), row["doc_id"], 1)
        return filtered_answer(self._ensembles[name], row.get("doc"), metadata, text)

    def _components(self, name: str) -> list[list[Any]]:
        for section in self._config.get("filter_list") or ():
            if section["name"] == name:
                steps = map(dict, section["filter"])
                return [[step.pop("function"), step] for step in steps]
        return [["take_first", None]]

    def _entry(self) -> Mapping[str, Any]:
        entries = self._config.get("metric_list") or [{"metric": "exact_match"}]
        for entry in entries:
            if len(entries) == 1 or entry["metric"] == self._metric:
                found: Mapping[str, Any] = entry
                return found
        names = ", ".join(str(entry["metric"]) for entry in entries)
        raise ValueError(f"the task has the metrics {names}; choose one with --metric")
