"""Configs of crossed options that do not go together: the places of their mistakes, and the codes."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from crossed_options import Case, Options
from recorded_configs import folder

from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.errors import ConfigError

MISTAKES: Options = {
    "goal": (
        "ranking", "unknown", "top-three", "off-scale", "too-wide", "no-margin", "far-claim", "pairs",
        "budget", "nested", "exact-kind",
    ),
    "scale": ("right", "graded", "numbers", "one-worth", "of-choices", "code"),
    "judge": ("none", "plain", "mimic", "function", "unpriced", "labels", "against", "two-parts"),
    "references": ("none", "file", "two-sources", "no-models", "same-name", "twice", "series"),
    "rule": ("anytime", "exact", "zscore", "fixed"),
    "endpoints": (
        "listed", "twice", "found", "function", "two-functions", "mimic", "mimic-and-one", "litellm",
    ),
    "extra": (
        "none", "seed", "same", "idle", "headers", "provider", "unlike", "wrong-seed", "unknown-key",
        "unknown-rule",
    ),
    "limits": ("none", "small", "fitting", "of-server", "unknown-server", "two-servers", "each"),
    "budget": ("none", "trials", "tokens", "prompt", "usd", "time"),
    "own": ("none", "of-model", "of-task", "of-both"),
    "rubric": ("plain", "own-weights", "range", "no-threshold", "open-threshold", "signals", "tracked"),
    "longest": ("max_tokens", "none", "both", "one"),
    "price": ("each", "none", "one"),
    "samples": ("one", "four", "many", "auto"),
    "concurrency": ("auto", "two", "batch"),
    "temperature": ("usual", "zero"),
    "api": ("chat", "completions", "responses", "messages"),
    "asked": ("nothing", "logprobs", "number", "stop-and-effort", "letters"),
    "stream": ("no", "yes"),
    "asks": ("once", "solver", "answers", "no-function"),
    "prompt": ("plain", "shows-target", "no-field", "no-choices", "images", "bad-field"),
    "options": ("kept", "shuffled"),
    "models": ("three", "two", "one", "alike"),
    "tasks": ("one", "two", "alike", "other-range"),
    "equivalence": ("near", "none", "all"),
    "family": ("holm", "pair"),
    "ties": ("pair", "family"),
    "questions": ("auto", "rounds"),
    "policy": ("round-robin", "top-two"),
    "spend": ("trials", "usd"),
    "executor": ("local", "ray"),
}  # fmt: skip
"""The options of configs in which something may not go with another."""

JUDGE: Mapping[str, Any] = {"kind": "judge", "endpoint": "http://j/v1", "model": "wise"}
JUDGES: Mapping[str, Any] = {
    "plain": JUDGE, "mimic": {**JUDGE, "endpoint": "mimic"}, "labels": {**JUDGE, "labels": "l.jsonl"},
    "function": {**JUDGE, "endpoint": "python:own.py:score"}, "unpriced": {**JUDGE, "budget": {"usd": 2}},
    "against": {**JUDGE, "against": "runs/old#a"},
    "two-parts": {"kind": "checks", "parts": {"j": {**JUDGE, "budget": {"usd": 1}}, "c": "code"}},
}  # fmt: skip
RANGE = {"kind": "python", "function": "own.py:score", "range": [0, 10]}
SCALES: Mapping[str, Mapping[str, Any]] = {
    "right": {"scorer": "exact"}, "one-worth": {"scorer": "exact", "rubric": {"weights": [1, 1]}},
    "graded": {"scorer": "exact", "rubric": {"schema": "exact-match", "weights": [-1, 0, 3]}},
    "numbers": {"scorer": RANGE}, "of-choices": {"scorer": "choice_probability"}, "code": {"scorer": "code"},
}  # fmt: skip
RUBRICS: Mapping[str, Mapping[str, Any]] = {
    "own-weights": {"rubric": {"weights": [-2, 2]}}, "range": {"rubric": {"range": [0, 5]}},
    "no-threshold": {"rubric": {"schema": "binary", "thresholds": {"x": 1}}},
    "open-threshold": {"rubric": "format-aware", "track": ["efficiency-adjusted", "efficiency-adjusted"]},
    "signals": {"rubric": {"schema": "conf-calibrated", "thresholds": {"corr_p33": 1, "corr_p66": 2}}},
    "tracked": {"track": ["binary", {"schema": "ood-robustness", "thresholds_from": "runs/old"}]},
}  # fmt: skip
PROMPTS: Mapping[str, Mapping[str, Any]] = {
    "shows-target": {"prompt": "{input}: {target}"}, "no-field": {"prompt": "What?"},
    "no-choices": {"fields": {"choices": "options"}}, "images": {"fields": {"image": "picture"}},
    "bad-field": {"fields": {"in put": "x", "audio": "y", "input": ["x", "y"]}},
}  # fmt: skip


def bad_config(case: Case) -> dict[str, Any]:
    """Return the config of a case."""
    goals: Mapping[str, Any] = {
        "unknown": "baseline=nobody", "top-three": "top-k=3", "off-scale": "threshold=4",
        "too-wide": {"kind": "width", "width": 3.5}, "no-margin": "not-worse=a",
        "far-claim": {"kind": "not-worse", "model": "c", "margin": 3.5}, "nested": "ranking and budget",
        "pairs": {"kind": "pairs", "pairs": [[*"ab"], [*"ba"], [*"cc"], ["a", "old"], ["old", "older"]]},
        "exact-kind": {"kind": "all", "goals": ["top-k=2", {"kind": "threshold", "value": 0.5}]},
    }  # fmt: skip
    stopping: dict[str, Any] = {"rule": case["rule"], "family": case["family"], "ties": case["ties"]}
    if case["equivalence"] != "none":
        stopping["equivalence"] = {"near": 0.05, "all": 3.0}[case["equivalence"]]
    limits: Mapping[str, Any] = {
        "trials": {"trials": 500}, "tokens": {"tokens": "1M"}, "prompt": {"prompt_tokens": "1M"},
        "usd": {"usd": 3}, "time": {"wall_clock": "1h"},
    }  # fmt: skip
    data: dict[str, Any] = {
        "name": "demo", "models": list(bad_models(case)), "tasks": list(bad_tasks(case)),
        "goal": goals.get(case["goal"], case["goal"]), "stopping": stopping, "spend": case["spend"],
        "allocation": {"models": case["policy"], "questions": case["questions"]},
        "budget": limits.get(case["budget"], {}), "references": list(bad_references(case["references"])),
        "mimic": {"models": {"a": {"mean": 0.5}, "b": {"mean": 0.4, "like": "a"}, "d": {"mean": 0.3}}},
    }  # fmt: skip
    server = {"url": "http://one/v1", "rate_limit": {"tokens_per_minute": 90}}
    servers = {
        "of-server": [server], "unknown-server": [{"url": "http://ones/v1"}],
        "two-servers": [server, {"url": "http://two/v1"}, {**server, "concurrency": 4}],
    }  # fmt: skip
    data["servers"] = servers.get(case["limits"], [])
    if case["executor"] == "ray":
        data["executor"] = {"kind": "ray"}
    if case["extra"] == "wrong-seed":
        data["seed"] = "one"
    elif case["extra"] == "unknown-key":
        data["tasks"][0]["scorers"] = "exact"
    elif case["extra"] == "unknown-rule":
        stopping["rule"] = "any-time"
    elif case["extra"] == "unlike":
        data["mimic"]["models"] |= {"c": {"mean": 0.5, "like": "e"}, "d": {"mean": 0.5, "like": "b"}}
    return data


def bad_models(case: Case) -> Iterator[dict[str, Any]]:
    """Yield the models of a case."""
    names = {"one": "a", "two": "ab", "alike": "aba"}.get(case["models"], "abc")
    for place, name in enumerate(names):
        model: dict[str, Any] = {"name": name, "endpoints": [f"http://{('one', 'two', 'six')[place]}/v1"]}
        sampling: dict[str, Any] = {}
        if case["longest"] in ("max_tokens", "both") or (case["longest"] == "one" and place):
            sampling["max_tokens"] = 100
        if case["longest"] == "both":
            sampling["max_completion_tokens"] = 120
        if case["temperature"] == "zero":
            sampling["temperature"] = 0
        asked: Mapping[str, Any] = {
            "logprobs": {"logprobs": True}, "number": {"logprobs": 5, "top_logprobs": 4},
            "stop-and-effort": {"stop": ["."], "reasoning_effort": "low"},
            "letters": {"temperature": 0, "logprobs": True, "top_logprobs": 20},
        }  # fmt: skip
        sampling |= asked.get(case["asked"], {})
        if case["price"] == "each" or (case["price"] == "one" and place):
            model["price"] = {"input": 1, "output": 2}
        wanted: Mapping[str, Any] = {"four": 4, "many": 100, "auto": "auto"}
        if case["samples"] in wanted and place != 1:
            model["samples_per_request"] = wanted[case["samples"]]
        model |= {"two": {"concurrency": 2}, "batch": {"batch": True}}.get(case["concurrency"], {})
        if case["stream"] == "yes" and place != 2:
            model["stream"] = True
        if place != 1 and case["api"] != "chat":
            model["api"] = case["api"]
        rates = {"small": 100, "fitting": 5_000}
        if case["limits"] in rates:
            model["rate_limit"] = {"tokens_per_minute": rates[case["limits"]]}
        if case["own"] in ("of-model", "of-both") and place == 0:
            model["budget"] = {"usd": 1}
        yield {**model, "sampling": sampling, **extra_of(case, place), **answering(case, place)}


def answering(case: Case, place: int) -> dict[str, Any]:
    """Return what answers for a model, if it is no server of its own."""
    listed: Mapping[str, Any] = {
        "twice": ["http://one/v1", "http://two/v1", "http://one/v1"], "function": ["python:own.py:solve"],
        "two-functions": ["python:own.py:solve", "http://one/v1"], "mimic": ["mimic"],
        "mimic-and-one": ["mimic", "http://one/v1"], "litellm": ["litellm"],
    }  # fmt: skip
    found: dict[str, Any] = {"discover": "file", "path": "hosts.txt"}
    if case["limits"] == "each":
        found["each"] = {"concurrency": 2 + place, "rate_limit": {"tokens_per_minute": 90}}
    if case["endpoints"] == "found" and place < 2:
        return {"endpoints": found}
    if case["endpoints"] in listed and place != 1:
        own = {"model": "big/x"} if case["endpoints"] in ("function", "litellm") else {}
        return {"endpoints": listed[case["endpoints"]], **own}
    return {}


def extra_of(case: Case, place: int) -> dict[str, Any]:
    """Return what else is written of a model."""
    extra: Mapping[str, Any] = {
        "seed": {"extra_body": {"seed": 5, "stream": True, "prompt_logprobs": 0}},
        "same": {"extra_body": {"max_tokens": 9, "logprobs": 1}}, "idle": {"timeout": {"idle": "5s"}},
        "headers": {"headers": {"Host": "x", "X-A": {"env": "A"}, "X B": "c", "X-C": "\u00e9"}},
        "provider": {"provider": ("ollama", "olama", "groq")[place]},
    }  # fmt: skip
    return dict(extra.get(case["extra"], {}))


def bad_tasks(case: Case) -> Iterator[dict[str, Any]]:
    """Yield the tasks of a case."""
    names = {"one": "t", "alike": "tt"}.get(case["tasks"], "tu")
    for place, name in enumerate(names):
        task: dict[str, Any] = {"name": name, "dataset": "long.jsonl", **SCALES[case["scale"]]}
        if case["judge"] != "none":
            task["scorer"] = JUDGES[case["judge"]]
            if place and case["judge"] == "labels":
                task["scorer"] = {**JUDGE, "labels": "m.jsonl"}
        if case["tasks"] == "other-range" and place:
            task |= {"scorer": {**RANGE, "range": [0, 4]}, "dataset": "none.jsonl"}
        task |= RUBRICS.get(case["rubric"], {}) if not place or case["tasks"] == "two" else {}
        asks: Mapping[str, Any] = {
            "solver": {"solver": "python:own.py:solve"}, "no-function": {"solver": {"calls": 3}},
            "answers": {"answers": {"k": 3}, **({"solver": "python:own.py:solve"} if place else {})},
        }  # fmt: skip
        task |= asks.get(case["asks"], {})
        task |= PROMPTS.get(case["prompt"], {}) if not place else {}
        task["shuffle_options"] = case["options"] == "shuffled" and not (place and case["tasks"] == "two")
        if case["own"] in ("of-task", "of-both"):
            task["budget"] = {"completion_tokens": "1M"} if place else {"prompt_tokens": "1M"}
        yield task


def bad_references(name: str) -> Iterator[dict[str, Any]]:
    """Yield the references of a case."""
    known: Mapping[str, list[dict[str, Any]]] = {
        "file": [{"file": "old.csv", "models": ["old", "older"]}],
        "two-sources": [{"file": "old.csv", "run": "runs/old", "models": ["old"]}],
        "no-models": [{"run": "runs/old"}, {"file": "old.csv", "series": "earlier"}],
        "same-name": [{"file": "old.csv", "models": ["a", "old"]}],
        "twice": [{"file": "old.csv", "models": ["old"]}, {"run": "runs/old", "models": ["old", "older"]}],
        "series": [{"series": "previous"}, {"models": ["old"]}],
    }  # fmt: skip
    yield from known.get(name, [])


def places_of_mistakes(written: Case) -> list[str]:
    """Return where a config is wrong, and by which codes."""
    case = {name: written.get(name, values[0]) for name, values in MISTAKES.items()}
    try:
        config_from_data(bad_config(case), folder())
    except ConfigError as error:
        return list(mistake_facts(error))
    return ["none"]


def mistake_facts(error: ConfigError) -> Iterator[str]:
    """Yield the places of the mistakes of a config by their code."""
    by_code: dict[str, Counter] = {}
    for one in error.problems:
        by_code.setdefault(one.code, Counter())[one.path or "-"] += 1
    for code in sorted(by_code):
        places = (f"{path}*{times}".removesuffix("*1") for path, times in by_code[code].items())
        yield f"{code} {' '.join(places)}"
