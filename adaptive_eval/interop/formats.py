"""Formats of other tools: which files they are, and where a trial's fields are.

``formats.toml`` has a row for each; here is what no column says, by the names that the rows give.
"""

import ast
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from adaptive_eval.errors import OutcomesError
from adaptive_eval.interop.column_maps import find
from adaptive_eval.interop.found import ReadingOptions, json_object

Values: TypeAlias = Mapping[str, Any]

ANSWERS = "answers"
"""In place of a column: the list of all answers to a question, where they have one score together."""

METRIC = "main metric"
"""In place of a column: the name of the metric that counts."""


@dataclass(frozen=True)
class Format:
    """How one tool writes results; a column has alternatives, and points lead into objects."""

    name: str
    columns: Mapping[str, str]  # from ours to the file's
    keys: tuple[str, ...] = ()  # columns of a row that tell the format
    top: tuple[str, ...] = ()  # columns of the object in a JSON file that tell it
    rows: Callable[[Any, Path, ReadingOptions], Iterator[Values]] | None = None  # makes rows of a whole file
    whole: bool = True  # whether such a file is one JSON value; if not, `rows` is given None
    convert: Callable[[Values], Values] | None = None  # makes fields of a row that are no column
    named: Callable[[Path], tuple[str | None, str | None]] = lambda _path: (None, None)  # model and task
    # files in a folder that are logs, and what their first bytes hold
    files: tuple[tuple[str, bytes], ...] = ()
    metrics: str = ""  # column that holds the value of each metric
    ids: str = ""  # column that holds the fields of the dataset
    # columns that identify a question as asked
    asked: tuple[str, ...] = ("prompt", "target")
    identity: str = ""  # key of the object whose value no other file has
    beside: str = ""  # a file in the same folder that holds the same trials, and is read in its place


# ---------------------------------------------------------------------- rows of a whole file


_HELM_NO_SCORE = re.compile(
    "(num|inference|finish_reason|training)_.*|prompt_truncated|batch_size|logprob|max_prob|predicted_index"
)
"""Statistics of HELM that say nothing of how good an answer is."""


def _helm(rows: Any, path: Path, choices: ReadingOptions) -> Iterator[Values]:
    """Yield the trials of one metric; each metric may have rows of its own, and each split is a task."""
    spec = _beside(path, "run_spec.json")
    named = str(spec.get("name") or path.resolve().parent.name)
    task = choices.task or re.sub(r"([:,])model=[^=,]*,?", r"\1", named).rstrip(":,")
    asked = [row for row in rows if not row.get("perturbation")]  # others are made harder on purpose
    known = {name for row in asked for name, _, _ in _helm_scores(row)}
    wanted = choices.metric or _helm_metric(known)
    if wanted not in known:
        measures = ", ".join(sorted(filter(_is_helm_score, known))) or "none, only counts and times"
        raise OutcomesError(
            f"{path}: there is no metric {wanted!r}; choose one with --metric. There are: {measures}"
        )
    for row in asked:
        for name, split, score in _helm_scores(row):
            if name == wanted:
                yield {**row, "task": f"{task}/{split}", wanted: score, "score": score}


def _helm_scores(row: Values) -> Iterator[tuple[str, str, float]]:
    """Yield name, split and value of each statistic of an answer; predictions are shown without a split."""
    stats = row["stats"]
    if isinstance(stats, dict):
        for name, value in stats.items():
            yield name, "all", float(value)
        return
    for stat in stats:
        name = stat["name"]
        if stat["count"]:
            yield name["name"], name.get("split") or "all", float(stat["sum"]) / stat["count"]


def _is_helm_score(name: str) -> bool:
    return not _HELM_NO_SCORE.fullmatch(name)


def _helm_metric(known: set[str]) -> str:
    """Return the metric that is read if none is chosen: the only one, else exact_match."""
    scores = [name for name in known if _is_helm_score(name)]
    if len(scores) == 1:
        return scores[0]
    return "exact_match"


def _promptfoo(data: Any, _path: Path, _choices: ReadingOptions) -> Iterator[Values]:
    """Yield the results; the questions of a second prompt are questions of their own."""
    described = (data.get("config") or {}).get("description")
    first = None
    for row in data["results"]["results"]:
        label = str(row.get("promptIdx", 0))
        if first is None:
            first = label
        fields = {"task": described}
        if label != first:
            other = f" (prompt {label})"
            variables = row.get("vars") or {}
            fields["testIdx"] = f"{row['testIdx']}{other}"
            fields["vars"] = {name: f"{value}{other}" for name, value in variables.items()}
        yield {**row, **fields}


def _opencompass(data: Any, _path: Path, _choices: ReadingOptions) -> Iterator[Values]:
    """Yield the details, which are a list, or an object with numbers as names."""
    details = data["details"]
    listed = details if isinstance(details, list) else ()
    places = details.items() if isinstance(details, dict) else enumerate(listed)
    for place, row in places:
        if isinstance(row, dict):  # not the type of the details
            yield {"place": str(place), **row}


def _runs(data: Any, _path: Path, _choices: ReadingOptions) -> Iterator[Values]:
    for _, run in sorted(data["runs"].items()):
        yield {**run, "model": data["model"], "service": data["service"], "question": data["task"]}


def _instances(data: Any, _path: Path, _choices: ReadingOptions) -> Iterator[Values]:
    solved = set(data["resolved_ids"])
    for one in data["submitted_ids"]:
        yield {"question": one, "correct": one in solved}


def _details_of(data: Any, _path: Path, _choices: ReadingOptions) -> Iterator[Values]:
    for one, details in data.items():
        yield {"question": one, "correct": details["resolved"]}


def _leaderboards(data: Any, path: Path, choices: ReadingOptions) -> Iterator[Values]:
    """Yield the results of submissions by instance; a leaderboard is a task. The first of each counts."""
    first: dict[str, str] = {}
    for board in data["leaderboards"]:
        for result in board["results"]:
            named = {"model": result["folder"], "task": board["name"]}
            is_first = first.setdefault(result["folder"], board["name"]) == board["name"]
            details = None
            if is_first:
                details = result.get("per_instance_details")
            for row in _details_of(details or {}, path, choices):
                yield {**named, **row}


def _failures(_data: Any, path: Path, _choices: ReadingOptions) -> Iterator[Values]:
    """Yield a result a question of a file that names failures only; all others are right."""
    counts, *failed = _lines(path)
    wrong = {row["id"] for row in failed}
    known = set[str]()
    folder = _bfcl_folder(path)
    for sibling in folder.parent.glob(f"*/{path.resolve().relative_to(folder)}"):
        known |= {row["id"] for row in _lines(sibling)[1:]}
    yield from _verdicts(known - wrong, wrong, counts["total_count"], rest=True)


_BFCL_GROUPS = {
    "non_live", "live", "multi_turn", "agentic", "format_sensitivity", "memory", "kv", "vector", "rec_sum",
}  # fmt: skip
"""Folders that version 4 puts between a model's folder and its files."""


def _bfcl_folder(path: Path) -> Path:
    """Return the folder of the model of a file of BFCL."""
    return next(folder for folder in path.resolve().parents if folder.name not in _BFCL_GROUPS)


def _lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


_SWE_BENCH = {"verified": 500, "lite": 300, "test": 2294, "multimodal": 517, "multilingual": 300}
"""Instances of the splits of SWE-bench."""


def _both_statuses(row: Values) -> Values:
    """Return the verdict of EvalPlus, whose `plus_status` is of the extra tests alone."""
    counts = row["base_status"] == "pass" and row["plus_status"] is not None  # None with --base-only
    if counts:
        status = row["plus_status"]
    else:
        status = row["base_status"]
    return {"correct": status}


def _better_than_baseline(row: Values) -> Values:
    """Return the score of AlpacaEval, in which 1 prefers the baseline's answer, 2 the model's."""
    score = None
    if row["preference"] is not None:
        score = row["preference"] - 1
    return {"score": score}


def _resolved(data: Any, path: Path, _choices: ReadingOptions) -> Iterator[Values]:
    """Yield a result an instance of a file that names the resolved ones only."""
    split = path.resolve().parents[2]
    solved = set(data["resolved"])
    known = set(solved)
    for sibling in split.glob("*/results/results.json"):
        known |= set(json_object(sibling)["resolved"])
    yield from _verdicts(solved, known - solved, _SWE_BENCH.get(split.name, len(known)), rest=False)


def _verdicts(right: set[str], wrong: set[str], total: int, *, rest: bool) -> Iterator[Values]:
    """Yield the verdicts on questions that a model of the folder is told apart by, and on the rest alike."""
    for question in sorted(right | wrong):
        yield {"question": question, "correct": question in right}
    for number in range(total - len(right | wrong)):
        yield {"question": f"other {number + 1}", "correct": rest}


# ---------------------------------------------------------------------- fields that are no column


def _review(row: Values) -> Values:
    score = row["sample_score"]["score"]
    messages = row.get("messages") or ()
    target = row.get("target") or []
    asked = [one.get("content", "") for one in messages if one.get("role") == "user"]
    measured = (messages[-1].get("perf_metrics") if messages else None) or {}
    listed = target
    if not isinstance(target, list):
        listed = [str(target)]
    prompt = ""
    if asked:
        prompt = _words(asked[0])
    fields = {
        "text": str(score.get("prediction") or ""),
        "target": ", ".join(listed),
        "prompt": prompt,
        "prompt_tokens": int(measured.get("input_tokens") or 0),
        "completion_tokens": int(measured.get("output_tokens") or 0),
        "latency": measured.get("latency"),
    }
    status = score.get("status", "success")
    if status not in ("success", "fallback"):
        fields["missing"] = f"unscored: evalscope says {status}"
    return fields


def _words(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))


def _details(row: Values) -> Values:
    """Return the columns as objects, which older versions stored as text, and the gold choice."""
    columns = {name: _object(row[name]) for name in ("doc", "metric", "model_response")}
    choices = columns["doc"].get("choices") or []
    index = columns["doc"].get("gold_index")
    first = index
    if isinstance(index, list) and index:
        first = index[0]
    target = ""
    if choices and isinstance(first, int):
        target = str(choices[first]).strip()
    return {**columns, "target": target}


def _object(value: Any) -> Values:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            value = ast.literal_eval(value)
    return {key: inner for key, inner in value.items() if inner is not None}


def _result(row: Values) -> Values:
    provider = row["provider"]
    prompt = row.get("prompt") or {}
    answer = row.get("response") or {}
    named = provider
    if isinstance(provider, dict):
        named = provider.get("label") or provider["id"]
    asked = sorted((str(name), str(value)) for name, value in (row.get("vars") or {}).items())
    prompt_text = prompt
    if isinstance(prompt, dict):
        prompt_text = prompt.get("raw", "")
    fields = {
        "model": str(named),
        "prompt": str(prompt_text),
        "text": str(answer.get("output") or ""),
        "latency": float(row.get("latencyMs") or 0) / 1000.0,
        "asked": asked,
    }
    # failureReason 2: the provider failed; 1: an assertion did, which is an answer
    if row.get("failureReason") == 2 or (row.get("error") and "output" not in answer):
        fields["missing"] = f"error: {str(row.get('error')).strip()[:300]}"
    return fields


def _openai_page(data: Any, path: Path, choices: ReadingOptions) -> Iterator[Values]:
    """Yield the output items of a page of the API; one that others follow is no whole run."""
    if data["has_more"] and not choices.incomplete:
        raise OutcomesError(
            f"{path}: has_more is true, so pages of the run follow; give all, and --incomplete"
        )
    yield from data["data"]


def _openai_item(row: Values) -> Values:
    """Return model, texts and tokens of an output item, and the score of each grader."""
    sample = row.get("sample") or {}
    usage = sample.get("usage") or {}
    messages = sample.get("input") or [{}]
    replies = sample.get("output") or [{}]
    graded = {}
    for result in row["results"]:
        score = result.get("score")
        graded[str(result["name"])] = result.get("passed") if score is None else score
    fields = {
        "graded": graded,
        "prompt": _words(messages[-1].get("content", "")),
        "text": _words(replies[-1].get("content") or ""),
        "finish_reason": str(sample.get("finish_reason") or ""),
        "prompt_tokens": int(usage.get("prompt_tokens") or 0),
        "completion_tokens": int(usage.get("completion_tokens") or 0),
    }
    if sample.get("model"):
        fields["model"] = str(sample["model"])
    error = sample.get("error") or {}
    if error.get("message") or not graded:
        fields["missing"] = f"error: {str(error.get('message') or 'no grader has a result').strip()[:300]}"
        fields["graded"] = graded or {"none": 0.0}
    return fields


# ---------------------------------------------------------------------- names by the path


def _beside(path: Path, name: str) -> dict[str, Any]:
    file = path.with_name(name)
    if file.exists():
        return json_object(file)
    return {}


def _helm_named(path: Path) -> tuple[str | None, None]:
    """Return the model that run_spec.json names, else that in the name of the run's folder."""
    model = (_beside(path, "run_spec.json").get("adapter_spec") or {}).get("model")
    in_folder = re.search(r"[:,]model=([^=,]*)", path.resolve().parent.name)
    return model or (in_folder and in_folder[1]), None


def _agent(path: Path) -> tuple[str | None, None]:
    said = _beside(path, "run_metadata.json")
    return " ".join(str(said[key]) for key in ("agent_name", "model_name") if said.get(key)) or None, None


def _details_named(path: Path) -> tuple[str, str]:
    match = re.fullmatch(r"details_(.+)_\d{4}-\d\d-\d\dT[\d.:-]+\.parquet", path.name)
    return path.resolve().parent.parent.name, path.stem if match is None else match[1]


def _scenario(path: Path) -> tuple[str | None, None]:
    """Return the model of a published file, which is MODEL/Scenario.codegeneration_N_T_eval_all.json."""
    return path.resolve().parent.name if path.name.startswith("Scenario.") else None, None


Named: TypeAlias = Callable[[Path], tuple[str | None, str | None]]

_ROWS: Mapping[str, Callable[[Any, Path, ReadingOptions], Iterator[Values]]] = {
    "openai_items": _openai_page,
    "bfcl": _failures,
    "helm": _helm,
    "instances": _details_of,
    "leaderboards": _leaderboards,
    "mcpmark_runs": _runs,
    "numbered": lambda data, path, _: iter([{**data, "question": path.name.partition(".")[0]}]),
    "opencompass": _opencompass,
    "promptfoo": _promptfoo,
    "resolved": _resolved,
    "single": lambda data, _path, _choices: iter([data]),
    "submitted": _instances,
}
_CONVERT: Mapping[str, Callable[[Values], Values]] = {
    "alpaca": _better_than_baseline,
    "evalplus": _both_statuses,
    "evalscope": _review,
    "lighteval": _details,
    "openai_item": _openai_item,
    "promptfoo_result": _result,
}
_NAMED: Mapping[str, Named] = {
    "agent": _agent,
    "bfcl": lambda path: (_bfcl_folder(path).name, path.stem),
    "helm": _helm_named,
    "lighteval": _details_named,
    "livecodebench": _scenario,
}


def _by_place(places: Mapping[str, int]) -> Named:
    """Return what reads model and task off the path: 0 is the file without its ending, 1 its folder."""

    def named(path: Path) -> tuple[str | None, str | None]:
        parts = [path.stem, *(folder.name for folder in path.resolve().parents)]
        found = {what: parts[place] for what, place in places.items()}
        return found.get("model"), found.get("task")

    return named


def _format(name: str, row: dict[str, Any]) -> Format:
    rows, convert, named = (row.pop(key, None) for key in ("rows", "convert", "named"))
    files = tuple((pattern, word.encode()) for pattern, word in row.pop("files", ()))
    fields: dict[str, Any] = {}
    for key, value in row.items():
        fields[key] = tuple(value) if isinstance(value, list) else value
    return Format(
        name,
        fields.pop("columns", {}),
        rows=rows and _ROWS[rows],
        convert=convert and _CONVERT[convert],
        named=_NAMED[named] if isinstance(named, str) else _by_place(named or {}),
        files=files,
        **fields,
    )


_TABLE_OF_FORMATS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))

FORMATS = tuple(_format(name, row) for name, row in _TABLE_OF_FORMATS.items())

TABLE = Format("table", {})
"""A table with our columns, or with those that the user maps."""


def format_of_object(data: Values, path: Path) -> Format | None:
    """Return the format that a JSON file's object or name tells; None if only its rows tell it."""
    for known in FORMATS:
        told = all(find(data, key)[0] for key in known.top)
        if not known.top:
            told = path.name in dict(known.files)
        if told and known.rows and known.whole:
            if known.keys:
                row = next(known.rows(data, path, ReadingOptions()), {})
            else:
                row = {}
            if all(find(row, key)[0] for key in known.keys):
                return known
    return None


def format_of_row(row: Values) -> Format:
    """Return the format that a table's first row is told by."""
    if "question" in row:
        return TABLE
    for known in FORMATS:
        if known.keys and not known.top and all(find(row, key)[0] for key in known.keys):
            return known
    return TABLE
