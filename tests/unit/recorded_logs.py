"""Logs of other tools made of the same trials: each as its tool writes it, by the options of a case.

``inspect_ai`` is stood in for by plain objects in a file, which is what its log API returns.
"""

import csv
import json
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as arrow
from crossed_options import Case, chance
from pyarrow import parquet

MODELS = {"oak": 0.9, "elm": 0.55, "ash": 0.2}
SIZES = {"sums": 12, "roots": 5}
"""Questions of the tasks; of 17 and more, a session repeats some early."""
WEIGHTS = (-1.0, 0.0, 2.0)
"""What the categories are worth, where trials have categories."""


@dataclass(frozen=True)
class Answer:
    """One trial, before any tool has written it down."""

    model: str
    task: str
    place: int  # of its question
    repeat: int
    worth: float | None  # what the log says of it; None for a lost one
    other: float  # by another metric
    text: str
    end: str = "stop"
    lost: str = ""  # why there is no answer

    @property
    def question(self) -> str:
        return f"{self.task[0]}{self.place}"

    @property
    def fields(self) -> dict[str, Any]:
        """The question in its dataset."""
        named = {"name": f"{self.task} {self.place}", "subject": f"g{self.place * self.place % 3}"}
        return {"input": f"{self.place} + {self.place}?", "target": self.target, **named}

    @property
    def target(self) -> str:
        return str(2 * self.place)

    @property
    def tokens(self) -> tuple[int, int]:
        return 20 + self.place, int(5 + 50 * chance("long", self.model, self.task, self.place, self.repeat))


def answers_of(case: Case) -> list[Answer]:
    """Return the trials of a case."""
    found = []
    for row, (model, mean) in enumerate(MODELS.items()):
        for task, size in SIZES.items():
            if task == "roots" and case["tasks"] == "one":
                continue
            for place in range(size):
                times = {"one": 1, "several": 2}.get(case["trials"], 2)
                times -= case["trials"] == "of-one" and row == 1
                times += case["trials"] == "uneven" and place % 4 - 1
                found += [answer_of(case, (model, task, place, repeat), mean) for repeat in range(times)]
    return found


def answer_of(case: Case, key: tuple[str, str, int, int], mean: float) -> Answer:
    model, task, place, repeat = key
    drawn = (model, task, place) if case["texts"] == "equal" and model == "oak" else key
    luck, fate = chance("right", drawn), chance("fate", key)
    right = luck < mean
    part = {"right": float(right), "graded": round(4 * mean * luck) / 4, "categories": float(int(3 * luck))}
    share = part.get(case["scores"], round(mean * luck, 3))
    worth = 1.0 + 9.0 * share if case["scores"] == "range" else share
    other = (10.0 if case["scores"] == "range" else 1.0) * (not right) + (case["scores"] == "range") * right
    answer = Answer(model, task, place, repeat, worth, other, f"It is {2 * place + 1 - right}.")
    if case["texts"] == "own":
        answer = replace(answer, text=f"{model} says {'abcd'[repeat]}: {answer.text}")
    lost = case["lost"] == "some" and fate < 0.1
    if lost or (case["lost"] == "of-one" and model == "elm" and fate < 0.3):
        return replace(answer, worth=None, text="", lost=("timeout", "error: 500")[int(100 * fate) % 2])
    if case["lost"] == "cut-off" and fate < 0.15:
        return replace(answer, end="length")
    return answer


def unscored(case: Case, answers: Iterable[Answer]) -> list[Answer]:
    """Return the answers of a tool that leaves lost ones out."""
    return [one for one in answers if one.worth is not None]


def jsonl(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def dumped(path: Path, data: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data), "utf-8")


def table(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)))
        writer.writeheader()
        writer.writerows(rows)


# ---------------------------------------------------------------------------- files that name models


def column_of(case: Case) -> str:
    return {"right": "correct", "categories": "category"}.get(case["scores"], "score")


def plain_row(case: Case, one: Answer) -> dict[str, Any]:
    """Return a row with our columns."""
    value = int(one.worth or 0) if column_of(case) != "score" else one.worth
    row = {
        "model": one.model, "task": one.task, "question": one.question, "trial": one.repeat,
        column_of(case): None if one.worth is None else value, "missing": one.lost or None,
        "truncated": one.end == "length", "text": one.text or None, "target": one.target,
        "prompt": one.fields["input"], "prompt_tokens": one.tokens[0], "completion_tokens": one.tokens[1],
        "latency": 0.5 + one.place, "finished_at": 1.75e9 + one.repeat, "subject": one.fields["subject"],
        "name": one.fields["name"],
    }  # fmt: skip
    if case["metrics"] == "several" and column_of(case) == "score":
        row["other"] = one.other
    if case["groups"] == "column":
        row["cluster"] = one.fields["subject"]
    return row


def plain_table(case: Case, path: Path, answers: Sequence[Answer]) -> None:
    table(path.with_suffix(".csv"), [plain_row(case, one) for one in answers])


MAPPED = {"model": "who.name", "question": "item", "trial": "attempt", "text": "said", "task": "who.bench"}


def mapped_rows(case: Case, path: Path, answers: Sequence[Answer]) -> None:
    """Write rows under names that a map gives."""
    rows = []
    for one in answers:
        row = plain_row(case, one)
        value = row.pop(column_of(case))
        row = {"grade": {"value": value}, "item": row.pop("question"), "said": row.pop("text"), **row}
        who = {"name": row.pop("model"), "bench": row.pop("task")}
        rows.append({**row, "who": who, "attempt": f"run_{row.pop('trial')}"})
    dumped(path.with_suffix(".json"), {"about": 1, "deep": {"rows": rows}})


def wide_table(case: Case, path: Path, answers: Sequence[Answer]) -> None:
    """Write a column for each model."""
    rows: dict[tuple[str, int, int], dict[str, Any]] = {}
    for one in answers:
        start = {"Task ID": one.question, "benchmark": one.task, "subject": one.fields["subject"]}
        row = rows.setdefault((one.task, one.place, one.repeat), {**start, "name": one.fields["name"]})
        row[one.model] = {"": one.worth, "timeout": "n/a"}.get(one.lost, "")
    table(path.with_suffix(".csv"), list(rows.values()))


def archive(case: Case, path: Path, answers: Sequence[Answer]) -> None:
    """Write an array for each task; a category that is missing is -1."""
    arrays = {}
    for task in dict.fromkeys(one.task for one in answers):
        depth = 1 + max(one.repeat for one in answers)
        names = [name for name in MODELS if any(one.model == name for one in answers)]
        found = np.full((len(names), SIZES[task], depth), -1)
        for one in answers:
            if one.task == task and one.worth is not None:
                found[names.index(one.model), one.place, one.repeat] = int(one.worth)
        arrays[task if case["tasks"] == "two" else "R"] = found
    np.savez(path.with_suffix(".npz"), models=names, **arrays)


def openai_items(case: Case, path: Path, answers: Sequence[Answer]) -> None:
    """Write output items; a grader has a score, or only whether it passed."""
    rows = []
    for one in answers:
        result = {"name": "score", "score": one.worth, "passed": bool(one.worth)}
        if case["scores"] == "right":
            result["score"] = None
        graders = [result, {"name": "other", "score": one.other, "passed": True}]
        usage = dict(zip(("prompt_tokens", "completion_tokens"), one.tokens, strict=True))
        asked = [{"role": "user", "content": one.fields["input"]}]
        sample = {
            "model": one.model, "input": asked, "output": [{"content": one.text}], "usage": usage,
            "finish_reason": one.end, "error": {"message": one.lost} if one.lost else None,
        }  # fmt: skip
        rows.append({
            "datasource_item_id": one.question, "eval_id": one.task, "datasource_item": one.fields,
            "results": [] if one.lost else graders[: 1 + (case["metrics"] == "several")], "sample": sample,
        })  # fmt: skip
    dumped(path.with_suffix(".json"), {"data": rows, "has_more": False})


def promptfoo(case: Case, path: Path, answers: Sequence[Answer]) -> None:
    """Write results; failureReason 2 is a failure of the provider."""
    rows = []
    for one in answers:
        scores = {"score": one.worth or 0.0, "other": one.other}
        if case["metrics"] != "several":
            del scores["other"]
        used = dict(zip(("prompt", "completion"), one.tokens, strict=True))
        rows.append({
            "provider": {"id": f"x:{one.model}", "label": one.model}, "testIdx": one.question,
            "vars": one.fields,
            "prompt": {"raw": one.fields["input"]}, "namedScores": scores, "latencyMs": 500.0 + one.place,
            "response": {} if one.lost else {"output": one.text, "tokenUsage": used},
            "error": one.lost or None, "failureReason": 2 if one.lost == "timeout" else 0,
        })  # fmt: skip
    data = {"evalId": path.stem, "config": {"description": answers[0].task}, "results": {"results": rows}}
    dumped(path.with_suffix(".json"), data)


# ---------------------------------------------------------------------------- a file a model and task


def lm_eval(case: Case, path: Path, answers: Sequence[Answer]) -> None:
    """Write samples of lm-evaluation-harness, a row a question, and the results file next to it."""
    first = answers[0]
    date = f"2025-01-0{1 + int(path.name[-1])}T00-00-00.000000"
    asked: dict[int, list[Answer]] = {}
    for one in unscored(case, answers):
        asked.setdefault(one.place, []).append(one)
    rows = []
    for place, of_one in asked.items():
        names = ["acc", "other"][: 1 + (case["metrics"] == "several")]
        one = of_one[0]
        rows.append({
            "doc_id": place, "doc": one.fields, "target": one.target, "filter": "none", "metrics": names,
            "arguments": {"gen_args_0": {"arg_0": one.fields["input"], "arg_1": {}}}, "acc": one.worth,
            "resps": [[each.text for each in of_one]], "filtered_resps": [one.text], "other": one.other,
        })  # fmt: skip
        if len(of_one) > 1:
            rows[-1]["scores"] = [each.worth for each in of_one]
    folder = path.parent / f"{path.name}.samples"
    jsonl(folder / f"samples_{first.task}_{date}.jsonl", rows)
    groups = {"all": list(SIZES), "half": [first.task], "other": ["cubes"], "whole": [*SIZES, "cubes"]}
    about = {"model_name": first.model, "group_subtasks": groups, "versions": {first.task: 2.0}}
    dumped(folder / f"results_{date}.json", about)


def inspect(case: Case, path: Path, answers: Sequence[Answer]) -> None:
    """Write a log of Inspect as its log API returns it."""
    samples = []
    for one in answers:
        scores = {"score": SimpleNamespace(value=one.worth, answer=one.target, explanation=one.text)}
        if case["scores"] == "right" and one.worth is not None:
            scores["score"].value = "CI"[not one.worth]
        if case["metrics"] == "several":
            scores["other"] = SimpleNamespace(value=one.other, answer=None, explanation=None)
        error = SimpleNamespace(message=one.lost) if one.lost == "timeout" else None
        if one.worth is None and error is None:
            scores["score"].value = float("nan")
        usage = SimpleNamespace(input_tokens=one.tokens[0], output_tokens=one.tokens[1])
        samples.append(SimpleNamespace(
            id=one.question, epoch=one.repeat + 1, input=one.fields["input"], target=one.target,
            scores=scores, output=SimpleNamespace(usage=usage), metadata=one.fields, error=error,
            working_time=0.5 + one.place, total_time=9.0, limit="token" if one.end == "length" else None,
        ))  # fmt: skip
    spec = SimpleNamespace(
        task=f"lab/{answers[0].task}",
        model=answers[0].model,
        eval_id=path.name,
        task_version=3,
        metadata=None,
    )
    log = SimpleNamespace(status="success", eval=spec, samples=samples)
    path.with_suffix(".eval").write_bytes(pickle.dumps(log))


def helm(case: Case, path: Path, answers: Sequence[Answer]) -> None:
    """Write the statistics of one run; counts say nothing of an answer."""
    rows = []
    for one in answers:
        stats = [
            {"name": {"name": "exact_match", "split": "test"}, "sum": 2 * (one.worth or 0.0), "count": 2}
        ]
        stats.append({"name": {"name": "num_prompt_tokens"}, "sum": 30.0, "count": 1})
        if case["metrics"] == "several":
            stats.append({"name": {"name": "other", "split": "test"}, "sum": one.other, "count": 1})
        if one.lost:
            stats[0]["count"] = 0
        rows.append(
            {"instance_id": one.question, "train_trial_index": one.repeat, "stats": stats, **one.fields}
        )
    first = answers[0]
    name = f"{first.task}:k=1,model={first.model}"
    folder = path.parent / f"{path.name}.run" / name
    dumped(folder / "per_instance_stats.json", [{**rows[0], "perturbation": {"name": "typos"}}, *rows])
    if first.model != "ash":
        dumped(folder / "run_spec.json", {"name": name, "adapter_spec": {"model": first.model}})


def one_each(write: Callable[..., None]) -> Callable[..., None]:
    """Return what writes a file for each repeat, of a tool whose files have one answer a question."""

    def written(case: Case, path: Path, answers: Sequence[Answer]) -> None:
        for repeat in sorted({one.repeat for one in answers}):
            kept = [one for one in unscored(case, answers) if one.repeat == repeat]
            if kept:
                write(case, path.parent / f"{path.name}-{repeat}", kept)

    return written


def opencompass(case: Case, path: Path, answers: Sequence[Answer]) -> None:
    first = answers[0]
    details = {}
    for one in answers:
        row = {"pred": one.text, "answer": one.target, "correct": one.worth, **one.fields}
        details[one.question] = {**row, "example_abbr": one.question}
    data = {
        "details": {**details, "type": "GEN"} if first.repeat else list(details.values()),
        "accuracy": 1.0,
    }
    dumped(path / "results" / first.model / f"{first.task}.json", data)


def lighteval(case: Case, path: Path, answers: Sequence[Answer]) -> None:
    rows = []
    for one in answers:
        metric = {"acc": one.worth}
        if case["metrics"] == "several":
            metric["other"] = one.other
        doc = {
            "id": one.question,
            "query": one.fields["input"],
            "choices": ["7", one.target],
            "gold_index": 1,
        }
        columns = {"doc": {**doc, **one.fields}, "metric": metric, "model_response": {"text": [one.text]}}
        rows.append({name: str(value) if one.repeat else value for name, value in columns.items()})
    first = answers[0]
    file = path / first.model / "date" / f"details_{first.task}_2025-01-01T00:00:00.000.parquet"
    file.parent.mkdir(parents=True)
    parquet.write_table(arrow.Table.from_pylist(rows), file)


def evalscope(case: Case, path: Path, answers: Sequence[Answer]) -> None:
    """Write reviews; the main score counts if none is chosen."""
    rows = []
    for number, one in enumerate(answers):
        value = {"acc": one.worth, "other": one.other}
        score = {
            "value": value, "main_score_name": "acc", "prediction": one.text, "explanation": "as is",
            "extracted_prediction": one.target, "status": "failed" if one.lost else "success",
        }  # fmt: skip
        used = {"input_tokens": one.tokens[0], "output_tokens": one.tokens[1], "latency": 0.5}
        sample = {"score": score, "group_id": one.question, "generation_index": one.repeat}
        asked = [{"type": "text", "text": one.fields["input"]}]
        messages = [{"role": "user", "content": asked}, {"role": "assistant", "perf_metrics": used}]
        whole = {"index": number, "sample_score": {**sample, "sample_metadata": one.fields}}
        rows.append({**whole, "messages": messages, "target": [one.target]})
    first = answers[0]
    jsonl(path / "reviews" / first.model / f"{first.task}.jsonl", rows)


def evalplus(case: Case, path: Path, answers: Sequence[Answer]) -> None:
    """Write an object of lists; the extra tests count where there are any."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for one in unscored(case, answers):
        base = "pass" if one.worth or one.place % 2 else "fail"
        plus = None if one.place % 2 == 0 else ("fail", "pass")[bool(one.worth)]
        row = {"task_id": one.question, "solution": one.text, "base_status": base, "plus_status": plus}
        rows.setdefault(one.question, []).append({**row, "task": one.task, **one.fields})
    dumped(path.with_name(f"{answers[0].model}_eval_results.json"), {"eval": rows})


IN_ONE: Mapping[str, Callable[[Case, Path, Sequence[Answer]], None]] = {
    "table": plain_table, "mapped": mapped_rows, "wide": wide_table, "archive": archive,
    "openai": openai_items,
}  # fmt: skip
"""Tools whose files hold several models."""
APART: Mapping[str, Callable[[Case, Path, Sequence[Answer]], None]] = {
    "promptfoo": promptfoo, "lm-eval": lm_eval, "inspect": inspect, "helm": helm,
    "opencompass": one_each(opencompass), "lighteval": one_each(lighteval), "evalscope": evalscope,
    "evalplus": evalplus,
}  # fmt: skip
"""Tools with a file for each model and task."""
BY_TASK = APART.keys() - {"evalplus"}
"""Tools whose files are of one task."""
ONLY_RIGHT = "archive evalplus"
"""Tools whose trials are right or wrong."""


def write_logs(case: Case, folder: Path) -> list[str]:
    """Write the logs of a case; return what is given to the command."""
    tool = case["tool"]
    parts: dict[object, list[Answer]] = {}
    for one in answers_of(case):
        key: tuple[object, ...] = ()
        if tool in APART or case["files"] == "of-models":
            key = (one.model,)
        if tool in BY_TASK or case["files"] == "of-tasks":
            key = (*key, one.task)
        if case["files"] == "twice":
            key = (*key, one.model == "oak" and one.repeat == 1)
        parts.setdefault(key, []).append(one)
    number = count()
    write = {**IN_ONE, **APART}[tool]
    folder.mkdir()
    for part in parts.values():
        write(case, folder / f"log{next(number)}", part)
    return [str(one) for one in folder.iterdir()] if tool == "archive" else [str(folder)]


def named_by(case: Case, model: str) -> str:
    """Return the name of a model in the logs of a tool."""
    return f"{model}_eval_results" if case["tool"] == "evalplus" else model


# ---------------------------------------------------------------------------- Inspect


def _made(**told: Any) -> SimpleNamespace:
    return SimpleNamespace(**told)


def _score(value: Any, answer: Any = None, explanation: Any = None) -> SimpleNamespace:
    return SimpleNamespace(value=value, answer=answer, explanation=explanation)


def _output(_model: str, text: str, stop_reason: str) -> SimpleNamespace:
    message = SimpleNamespace(content=text)
    return SimpleNamespace(completion=text, stop_reason=stop_reason, message=message, usage=None)


def _summaries(path: str) -> list[SimpleNamespace]:
    log = pickle.loads(Path(path).read_bytes())
    found = []
    for one in log.samples:
        known = {"choices": None, "uuid": None, "completed_at": None, "limit": None, **vars(one)}
        error = known["error"] and known["error"].message
        usage = {log.eval.model: known["output"].usage}
        found.append(SimpleNamespace(**{**known, "error": error, "model_usage": usage}))
    return found


@contextmanager
def inspect_installed() -> Iterator[None]:
    """Let ``inspect_ai`` be there, with its logs as plain objects."""
    log, model, scorer = (ModuleType(f"inspect_ai.{name}") for name in ("log", "model", "scorer"))
    for name in ["Log", "Dataset", "Config", "Stats", "Sample", "Error", "Metric", "Score", "Results"]:
        setattr(log, f"Eval{name}", _made)
    log.__dict__["EvalSpec"] = partial(_made, task_version=0, eval_id="")
    log.__dict__["write_eval_log"] = lambda made, path: Path(path).write_bytes(pickle.dumps(made))
    log.__dict__["read_eval_log"] = lambda path, **_: pickle.loads(Path(path).read_bytes())
    log.__dict__["read_eval_log_sample_summaries"] = _summaries
    model.__dict__.update(ModelUsage=_made, ChatMessageUser=_made)
    model.__dict__["ModelOutput"] = SimpleNamespace(from_content=_output)
    scorer.__dict__["Score"] = _score
    parts = {one.__name__: one for one in (ModuleType("inspect_ai"), log, model, scorer)}
    sys.modules.update(parts)
    try:
        yield
    finally:
        for name in parts:
            del sys.modules[name]
