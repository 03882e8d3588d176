"""Configs of crossed options: the session, servers and limits that they lead to."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from course_facts import digest, text, together
from crossed_options import Case, Options, Refused
from recorded_runs import parts_of

from adaptive_eval.build.assembly import PreparedRun, build
from adaptive_eval.build.model_clients import (
    concurrency_within,
    endpoints_of,
    model_clients_of,
    server_limits,
)
from adaptive_eval.build.session_spec import as_configured, deadlines_of
from adaptive_eval.config.load_config import config_from_data, parse_config
from adaptive_eval.core.session import Session
from adaptive_eval.core.stored_spec import spec_to_json
from adaptive_eval.run.disk import forecast

CONFIGS: Options = {
    "goal": (
        "ranking", "best", "two-and-width", "baseline", "not-worse", "good-enough", "threshold", "width",
        "pairs", "budget", "several",
    ),
    "scale": ("right", "graded", "numbers", "judged", "mixed"),
    "budget": ("none", "trials", "tokens", "usd", "time", "parts", "all"),
    "tasks": ("one", "two", "weighed", "pooled"),
    "rule": ("anytime", "exact", "zscore"),
    "equivalence": ("near", "none", "wide"),
    "family": ("holm", "pair"),
    "ties": ("pair", "family"),
    "questions": ("auto", "schedule", "rounds"),
    "policy": ("round-robin", "uniform", "top-two"),
    "target": ("benchmark", "population", "clusters"),
    "own": ("none", "models", "tasks", "time"),
    "failure": ("presume", "prompt-only", "none"),
    "passes": ("usual", "seven"),
    "longest": ("max_tokens", "completion", "none", "one"),
    "price": ("each", "cached", "none"),
    "samples": ("one", "four", "auto", "of-one"),
    "temperature": ("usual", "zero", "body"),
    "same": ("none", "one", "all"),
    "api": ("chat", "completions", "responses", "messages"),
    "asks": ("once", "solver", "answers"),
    "prompt": ("of-task", "own-system", "own-prompt"),
    "limits": ("none", "of-model", "of-server", "found"),
    "concurrency": ("auto", "few", "many", "batch"),
    "stored": ("none", "file", "prior"),
    "on": ("usual", "missing", "redraw", "independent"),
    "spend": ("trials", "time", "tokens", "usd"),
    "models": ("three", "two", "one", "varied"),
    "chosen": ("all", "shuffled", "limited", "filtered"),
    "shots": ("none", "two", "of-file"),
}  # fmt: skip
"""The options of configs that are accepted."""

CONFIGS_REFUSED: Refused = (
    ("rule", "exact zscore", "questions", "rounds"),
    ("rule", "exact zscore", "goal", "not-worse good-enough several"),
    ("rule", "exact", "goal", "threshold width two-and-width"),
    ("rule", "exact", "tasks", "two weighed pooled"),
    ("rule", "exact", "stored", "file"),
    ("rule", "zscore", "ties", "family"),
    ("rule", "exact", "scale", "mixed"),
    ("scale", "mixed", "tasks", "one"),
    ("goal", "threshold several", "questions", "rounds"),
    ("goal", "good-enough", "equivalence", "none"),
    ("goal", "budget", "budget", "none"),
    ("policy", "top-two", "budget", "none"),
    ("goal", "two-and-width", "models", "two one"),
    ("goal", "ranking best two-and-width baseline not-worse good-enough pairs several", "models", "one"),
    ("family", "pair", "ties", "family"),
    ("policy", "top-two", "goal", " ".join(one for one in CONFIGS["goal"] if one != "budget")),
    ("longest", "none one", "budget", "tokens usd parts all"),
    ("longest", "none one", "own", "models tasks"),
    ("longest", "none one", "limits", "of-model of-server found"),
    ("longest", "none completion one", "api", "completions messages"),
    ("price", "none", "budget", "usd all"),
    ("price", "none", "own", "models tasks"),
    ("price", "none", "spend", "usd"),
    ("samples", "four auto of-one", "temperature", "zero"),
    ("samples", "four auto of-one", "asks", "solver answers"),
    ("samples", "four auto of-one", "api", "responses messages"),
    ("samples", "four of-one", "concurrency", "few"),
    ("scale", "graded numbers judged mixed", "asks", "answers"),
    ("limits", "found", "concurrency", "batch"),
    ("stored", "file prior", "scale", "numbers judged mixed"),
    ("temperature", "zero body", "questions", "rounds"),
    ("temperature", "body", "samples", "four auto of-one"),
)  # fmt: skip

NAMES = ("fair", "good", "poor")
UNITS = {"right": (0.0, 1.0), "graded": (-1.0, 3.0), "numbers": (0.0, 10.0), "judged": (1.0, 9.0)}
"""Lowest score and range of the tasks; mixed ones are put on 0 to 1."""
SCORERS: Mapping[str, Mapping[str, Any]] = {
    "right": {"scorer": "numeric"},
    "graded": {"scorer": "numeric", "rubric": {"schema": "exact-match", "weights": [1, -1, 2]}},
    "numbers": {"scorer": {"kind": "python", "function": "own.py:score", "range": [0, 10]}},
    "judged": {
        "scorer": {
            "kind": "judge", "endpoint": "http://j/v1", "model": "wise", "range": [1, 10],
            "budget": {"requests": 500, "usd": 3}, "price": {"input": 1, "output": 2},
        }
    },
}  # fmt: skip
SIZES = {"long": 12, "short": 5}
OWN = "async def solve(model, messages):\n    return 1\n\n\ndef score(answer, target):\n    return 1.0\n"


@cache
def folder() -> Path:
    """Return a folder with the files that configs name."""
    place = Path(_FILES.name)
    (place / "own.py").write_text(OWN, "utf-8")
    (place / "plain.txt").write_text("Be brief.\n\n", "utf-8")
    for name, size in (*SIZES.items(), ("shown", 4)):
        rows = [row(name, number) for number in range(size)]
        (place / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    lines = ["model,task,question,repeat,category"]
    for model in ("old", "fair"):
        for name, size in SIZES.items():
            for turn in range(4 * size):
                question, repeat = turn % size, turn // size
                lines.append(f"{model},{name},q{question},{repeat},{int((question + repeat) % 3 > 0)}")
    (place / "old.csv").write_text("\n".join(lines), "utf-8")
    return place


_FILES = TemporaryDirectory()


def row(name: str, number: int) -> dict[str, Any]:
    """Return a row of a dataset."""
    asked = f"{number} + {number} in {name}?" + " Think." * number
    known = {"id": f"q{number}", "input": asked, "target": str(2 * number), "group": f"c{number // 2}"}
    return {**known, "hard": number % 3 == 0, "options": ["one", "two"]}


def config_data(case: Case) -> dict[str, Any]:
    """Return the config of a case."""
    low, unit = UNITS.get(case["scale"], (0.0, 1.0))
    margin = {"near": 0.08, "none": None, "wide": 0.3}[case["equivalence"]]
    stopping: dict[str, Any] = {
        "rule": case["rule"], "family": case["family"], "ties": case["ties"], "confidence": 0.9,
        "target": "benchmark" if case["target"] == "benchmark" else "population",
    }  # fmt: skip
    if margin is not None:
        stopping["equivalence"] = margin * unit
    if case["passes"] == "seven":
        stopping["max_passes"] = 7
    data: dict[str, Any] = {
        "name": "demo", "seed": 7, "models": list(models_of(case)), "tasks": list(tasks_of(case)),
        "overall": "pooled" if case["tasks"] == "pooled" else "macro",
        "goal": goal_of(case["goal"], low, unit), "stopping": stopping, "spend": case["spend"],
        "allocation": {"models": case["policy"], "questions": case["questions"]},
        "budget": {"usage_on_failure": case["failure"], **BUDGETS[case["budget"]]},
        "on": ON[case["on"]],
    }  # fmt: skip
    if case["limits"] == "of-server":
        rate = {"requests_per_minute": 90, "tokens_per_minute": "9k"}
        data["servers"] = [{"url": "http://one/v1", "concurrency": 3, "rate_limit": rate}]
    if case["stored"] == "file":
        data["references"] = [{"file": "old.csv", "models": ["old"]}]
    if case["stored"] == "prior":
        data["prior"] = {"from": "old.csv", "depth": 2}
    return data


BUDGETS: Mapping[str, Mapping[str, Any]] = {
    "none": {}, "trials": {"trials": "2k"}, "tokens": {"tokens": "0.5M"}, "usd": {"usd": 2.5},
    "time": {"wall_clock": "90m", "at_deadline": "cancel"},
    "parts": {"prompt_tokens": "40k", "completion_tokens": 50_000},
    "all": {"trials": 900, "tokens": "2M", "usd": 1.25, "wall_clock": 3600},
}  # fmt: skip
ON: Mapping[str, Mapping[str, Any]] = {
    "usual": {}, "missing": {"length": "missing", "empty": "missing", "content_filter": "wrong"},
    "redraw": {"discarded": "redraw", "mostly_empty": "rank"}, "independent": {"copies": "independent"},
}  # fmt: skip


def models_of(case: Case) -> Iterator[dict[str, Any]]:
    """Yield the models of a case."""
    for place, name in enumerate(NAMES[: {"one": 1, "two": 2}.get(case["models"], 3)]):
        model: dict[str, Any] = {"name": name, "endpoints": ["http://one/v1"], "api": case["api"]}
        if place == 2:
            model |= {"endpoints": ["http://two/v1", "http://more/v1"], "model": "big/poor"}
        sampling: dict[str, Any] = {}
        if case["longest"] == "max_tokens" or (case["longest"] == "one" and not place):
            sampling["max_tokens"] = 200 + place
        elif case["longest"] == "completion":
            sampling["max_completion_tokens"] = 300 - place
        if case["temperature"] == "zero":
            sampling["temperature"] = 0
        elif case["temperature"] == "body" and place:
            model["extra_body"] = {"temperature": 0.0, "top_k": 5}
        if case["price"] != "none":
            model["price"] = {"input": 1.5 + place, "output": 6.0}
            if case["price"] == "cached":
                model["price"]["cached_input"] = 0.5
        if case["samples"] != "one" and (case["samples"] != "of-one" or place == 1):
            model["samples_per_request"] = "auto" if case["samples"] == "auto" else 4
        if case["same"] == "all" or (case["same"] == "one" and place == 1):
            model["deterministic"] = True
        if case["prompt"] == "own-system" and place == 0:
            model["system"] = "plain.txt"
        elif case["prompt"] == "own-prompt" and place != 1:
            model["prompt"] = "Say what this is, and in a number: {input} "
        rate = {"requests_per_minute": 60 + place, "tokens_per_minute": "6k"}
        if case["limits"] == "of-model" and place != 1:
            model["rate_limit"] = dict(list(rate.items())[: 2 - place // 2])
        elif case["limits"] == "found" and place < 2:
            found = {"concurrency": 5, "rate_limit": rate if place == 3 else {"tokens_per_minute": "7k"}}
            model["endpoints"] = {"discover": "file", "path": "hosts/*.txt", "every": "20s", "each": found}
        if case["concurrency"] == "batch" and case["api"] in ("chat", "messages") and place < 2:
            model["batch"] = {"poll": "1m"} if place else True
        elif case["concurrency"] in ("few", "many"):
            model["concurrency"] = {"few": 2, "many": 30}[case["concurrency"]] + place
        if case["own"] == "models" and place < 2:
            model["budget"] = ({"trials": 400, "completion_tokens": "90k"}, {"usd": 0.75})[place]
        elif case["own"] == "time":
            model |= {"budget": {"wall_clock": 600 + place}, "timeout": {"total": "2m"}}
        yield {**model, "sampling": sampling}
    if case["models"] == "varied":
        yield {"variants": {"of": "poor", "system": ["plain.txt", "Count twice."], "top_p": [0.5, 0.9]}}
        yield {"variants": {"of": "fair", "temperature": [0.4, 0.8], "extra_body": {"min_p": 0.1}}}


def tasks_of(case: Case) -> Iterator[dict[str, Any]]:
    """Yield the tasks of a case."""
    for place, name in enumerate(list(SIZES)[: 1 + (case["tasks"] != "one")]):
        task: dict[str, Any] = {"name": name, "dataset": f"{name}.jsonl", "system": "Count."}
        scale = ("graded", "numbers")[place] if case["scale"] == "mixed" else case["scale"]
        task |= SCORERS[scale]
        if case["tasks"] in ("weighed", "pooled"):
            task["weight"] = (3.0, 0.5)[place]
        if case["target"] == "clusters" and not place:
            task["fields"] = {"cluster": "group"}
        if case["asks"] == "answers":
            task["answers"] = {"k": 3, "by": ("majority", "any")[place]}
        elif case["asks"] == "solver" and not place:
            task["solver"] = {"function": "python:own.py:solve", "calls": 4, "prompt_tokens": "3k"}
        if case["chosen"] == "shuffled":
            task["shuffle"] = (True, 3)[place]
        elif case["chosen"] == "limited":
            task |= {"shuffle": place == 0, "limit": 4}
        elif case["chosen"] == "filtered":
            task["filter"] = {"hard": [False] if place else False}
        if case["shots"] == "two":
            task["few_shot"] = {"count": 1}
        elif case["shots"] == "of-file":
            task["few_shot"] = {"count": 2, "dataset": "shown.jsonl", "answer": "So \\boxed{{{target}}}."}
        if case["own"] == "tasks" and not place:
            task["budget"] = {"trials": 700, "tokens": "0.3M", "usd": 5}
        elif case["own"] == "time":
            task["budget"] = {"wall_clock": "1h"}
        yield task


def goal_of(name: str, low: float, unit: float) -> Any:
    """Return a goal as it is written."""
    level, width = low + 0.55 * unit, 0.3 * unit
    claim = {"kind": "not-worse", "model": "fair", "margin": 0.1 * unit}
    return {
        "best": {"kind": "top-k", "k": 1} if unit > 1 else "top-k",
        "two-and-width": f"top-k=2 and width={width}",
        "baseline": "baseline=fair", "not-worse": claim, "good-enough": "not-worse=good",
        "threshold": f"threshold={level}", "width": {"kind": "width", "width": width},
        "pairs": {"kind": "pairs", "pairs": [["good", "fair"]]},
        "several": {"kind": "all", "goals": ["ranking", claim, f"threshold={level}"]},
    }.get(name, name)  # fmt: skip


def config_facts(written: Case) -> list[str]:
    """Return what a config leads to."""
    case = {name: written.get(name, values[0]) for name, values in CONFIGS.items()}
    data = config_data(case)
    config = config_from_data(data, folder())
    again = parse_config(config.text, config.source, folder())
    assert (again.hash(), again.text) == (config.hash(), config.text)
    built = build(config)
    spec = built.spec
    if not any(one.prompt_varies for one in spec.tasks):
        assert as_configured(config, spec) == spec
    return [*spec_facts(json.loads(spec_to_json(spec))["spec"]), *run_facts(built)]


def spec_facts(stored: Mapping[str, Any]) -> Iterator[str]:
    """Yield the parts of a stored specification, the smaller ones together."""
    rest: dict[str, Any] = {}
    for name, value in stored.items():
        if name in ("models", "tasks", "goal", "stopping", "references", "prior") and value:
            yield plain_fact(name, value)
        else:
            rest[name] = value
    yield plain_fact("rest", rest)


def plain_fact(name: str, value: Any) -> str:
    """Return a line of JSON: its words and whole numbers, and its figures."""
    words, figures = parts_of(json.loads(json.dumps(value)))
    return f"{name} {digest(words)} {text(together(figures))}"


def run_facts(built: PreparedRun) -> Iterator[str]:
    """Yield what a config says of servers, limits, the scoring and the disk."""
    config = built.config
    samples = {one.name: config.samples(one, built.samples_per_prompt) for one in config.models}
    pools: dict[str, Any] = endpoints_of(config.models, None)
    clients = model_clients_of(config, pools, config.retry, samples)
    for name, one in clients.items():
        limit = None if one.limit is None else [type(one.limit).__name__, one.limit.slots]
        known = (one.samples, one.batched, one.repeats, one.answer_tokens, limit)
        rest = f"time={text(one.time_limit)} rate={digest([one.rate])} servers={len(one.endpoints)}"
        yield f"asks {name} {text(known)} {rest}"
    servers = {url: one.model_dump() for url, one in server_limits(config, pools).items()}
    yield f"servers {digest(servers.items())} room={text(concurrency_within(config, 50))}"
    yield plain_fact("deadlines", asdict(deadlines_of(config)))
    stored = [json.dumps(one, sort_keys=True) for one in (built.identity, built.judging)]
    yield f"identity {digest(stored[:1])} judged {digest(stored[1:])}"
    need = forecast(built, folder() / "none")
    codes = sorted(getattr(one, "code", "") for one in Session(built.spec).results().warnings)
    room = "" if need is None else f" disk={text([need.trials, need.per_trial])}"
    yield f"before notices={len(built.notices)} warnings={text(codes)}{room}"
