"""Plans of configs and simulated rules of crossed options: what ``adaptive-eval plan`` says before a run."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import run_examples as runs
from course_facts import digest, text, together
from crossed_options import Case, Options, Refused, chance
from recorded_runs import parts_of

PLANS: Options = {
    "goal": (
        "ranking", "best-two", "baseline", "claims", "good-enough", "threshold", "width", "mixed",
        "of-reference", "claim-of-reference",
    ),
    "known": ("nothing", "assumed", "mimic", "outcomes", "some-outcomes", "prior"),
    "budget": ("none", "trials", "tokens", "usd", "time", "parts", "of-models"),
    "scale": ("right", "graded", "numbers", "mixed"),
    "tasks": ("one", "two", "weighed", "pooled"),
    "rule": ("anytime", "exact", "zscore"),
    "equivalence": ("near", "none", "wide"),
    "questions": ("auto", "schedule", "rounds"),
    "policy": ("round-robin", "uniform"),
    "limits": ("none", "requests", "tokens", "both", "of-one", "of-server", "in-flight"),
    "concurrency": ("auto", "few", "batch"),
    "times": ("all", "none", "latency", "tokens"),
    "longest": ("max_tokens", "none", "one"),
    "price": ("each", "cached", "none", "one"),
    "spend": ("trials", "usd", "time", "tokens"),
    "references": ("none", "one", "two"),
    "samples": ("one", "four"),
    "passes": ("seven", "four"),
    "margins": ("usual", "given"),
    "shape": ("usual", "narrow", "correlated"),
    "target": ("benchmark", "population"),
    "family": ("holm", "pair"),
    "changed": ("nothing", "seed", "confidence", "budget-by-hand", "shorter"),
}  # fmt: skip
"""The options of configs, and of what is assumed of them."""

PLANS_REFUSED: Refused = (
    ("rule", "exact zscore", "questions", "rounds"),
    ("rule", "exact zscore", "goal", "claims good-enough claim-of-reference"),
    ("rule", "exact", "goal", "threshold width mixed"),
    ("rule", "exact", "tasks", "two weighed pooled"),
    ("rule", "exact", "scale", "mixed"),
    ("rule", "exact", "references", "one two"),
    ("rule", "exact", "goal", "of-reference claim-of-reference"),
    ("scale", "mixed", "tasks", "one"),
    ("goal", "threshold mixed", "questions", "rounds"),
    ("goal", "good-enough", "equivalence", "none"),
    ("goal", "of-reference claim-of-reference", "references", "none"),
    ("longest", "none one", "budget", "tokens usd parts of-models"),
    ("longest", "none one", "limits", "tokens both of-one"),
    ("price", "none one", "budget", "usd of-models"),
    ("price", "none one", "spend", "usd"),
    ("price", "none one", "changed", "budget-by-hand"),
    ("scale", "numbers mixed", "known", "outcomes some-outcomes prior"),
    ("scale", "numbers mixed", "references", "one two"),
    ("scale", "numbers mixed", "goal", "of-reference claim-of-reference"),
    ("concurrency", "batch", "known", "mimic"),
    ("limits", "of-server in-flight", "known", "mimic"),
    ("concurrency", "few", "samples", "four"),
)  # fmt: skip

SERVERS: Mapping[str, Mapping[str, Any]] = {
    "of-server": {"concurrency": "auto", "rate_limit": {"requests_per_minute": 70}},
    "in-flight": {"concurrency": 3},
}
MODELS = {"fair": 0.55, "good": 0.95, "poor": 0.06}
UNITS = {"right": (0.0, 1.0), "graded": (-1.0, 3.0), "numbers": (0.0, 10.0), "mixed": (0.0, 1.0)}
SCORERS: Mapping[str, Mapping[str, Any]] = {
    "right": {"scorer": "numeric"}, "numbers": {"scorer": {"kind": "f1", "range": [0, 10]}},
    "graded": {"scorer": "numeric", "rubric": {"schema": "exact-match", "weights": [1, -1, 2]}},
}  # fmt: skip
SIZES = {"long": 6, "short": 3}
BUDGETS: Mapping[str, Mapping[str, Any]] = {
    "trials": {"trials": 140}, "tokens": {"tokens": 9_000}, "usd": {"usd": 0.04}, "time": {"wall_clock": 50},
    "parts": {"prompt_tokens": 3_500, "completion_tokens": 7_500},
}  # fmt: skip
LATENCY, PROMPT, ANSWER = 1.7, 12.5, 40.0
"""What options say of a trial."""


@cache
def folder() -> Path:
    """Return a folder with the files that configs name."""
    place = Path(_FILES.name)
    for name, size in SIZES.items():
        rows = [
            {"id": f"q{n}", "input": f"{n} + {n}?" + " Go." * n, "target": str(2 * n)} for n in range(size)
        ]
        (place / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    for file, means in {
        "old": {"old": 0.4, "older": 0.7},
        "all": MODELS,
        "two": {"fair": 0.4, "old": 0.3},
    }.items():
        (place / f"{file}.csv").write_text("\n".join(outcomes(means)), "utf-8")
    return place


_FILES = TemporaryDirectory()


def outcomes(
    means: Mapping[str, float], *, uneven: bool = False, lost: float = 0.0, copied: float = 0.0
) -> Iterator[str]:
    """Yield the lines of a file of recorded outcomes; a share of the texts is the same at each repeat."""
    yield "model,task,question,repeat,category" + ",text" * (copied > 0.0)
    for place, (model, mean) in enumerate(means.items()):
        for task, size in SIZES.items():
            for turn in range(5 * size):
                question, repeat = turn % size, turn // size
                key = (model, task, question, repeat)
                right = mean + 0.4 * (chance("hard", task, question) - 0.5)
                if (uneven and place == 1 and repeat > 1 + question % 2) or chance("lost", key) < lost:
                    continue
                worth = int(chance("right", key) < right)
                line = f"{model},{task},q{question},{repeat},{worth}"
                if copied:
                    said = (model, task, question, worth) if chance("copied", key) < copied else key
                    line += "," + " ".join(f"{text(said)}{number}" for number in range(60)).replace(",", "-")
                yield line


def goal_of(name: str, low: float, unit: float) -> Any:
    """Return a goal as it is written."""
    level = f"threshold={low + 0.6 * unit}"
    claims = [{"kind": "not-worse", "model": one, "margin": 0.1 * unit} for one in ("fair", "good")]
    return {
        "best-two": "top-k=2", "baseline": "baseline=good", "good-enough": "not-worse=fair",
        "threshold": level,
        "claims": {"kind": "all", "goals": claims}, "width": {"kind": "width", "width": 0.35 * unit},
        "mixed": f"top-k and {level}", "of-reference": "baseline=old",
        "claim-of-reference": {**claims[0], "model": "old"},
    }.get(name, name)  # fmt: skip


def plan_config(case: Case) -> dict[str, Any]:
    """Return the config of a case."""
    low, unit = UNITS[case["scale"]]
    models = []
    mimic = case["known"] == "mimic"
    for place, name in enumerate(MODELS):
        model: dict[str, Any] = {"name": name, "endpoints": ["mimic" if mimic else "http://one/v1"]}
        sampling = {}
        if case["longest"] == "max_tokens" or (case["longest"] == "one" and place):
            sampling["max_tokens"] = 60 + 20 * place
        if case["price"] in ("each", "cached") or (case["price"] == "one" and place):
            model["price"] = {"input": 1.0 + place, "output": 4.0 * (1 + place)}
        if case["price"] == "cached":
            model["price"]["cached_input"] = 0.1
        rates = {"requests": {"requests_per_minute": 100 - 40 * place}, "tokens": {"tokens_per_minute": 900}}
        rates["both"] = {**rates["requests"], "tokens_per_minute": "2k"}
        if case["limits"] in rates or (case["limits"] == "of-one" and place == 1):
            model["rate_limit"] = rates.get(case["limits"], rates["both"])
        if case["concurrency"] == "few":
            model["concurrency"] = 2 + place
        elif case["concurrency"] == "batch" and place < 2:
            model["batch"] = True
        model["samples_per_request"] = 4 if case["samples"] == "four" else 1
        if case["budget"] == "of-models":
            model["budget"] = {"usd": 0.03} if place else {"trials": 60}
        models.append({**model, "sampling": sampling})
    tasks = []
    for place, name in enumerate(list(SIZES)[: 1 + (case["tasks"] != "one")]):
        scale = ("graded", "right")[place] if case["scale"] == "mixed" else case["scale"]
        weight = (3.0, 1.0)[place] if case["tasks"] in ("weighed", "pooled") else 1.0
        tasks.append({"name": name, "dataset": f"{name}.jsonl", "weight": weight, **SCORERS[scale]})
    margin = {"near": 0.12, "none": None, "wide": 0.3}[case["equivalence"]]
    stopping = {"rule": case["rule"], "family": case["family"], "target": case["target"], "confidence": 0.7}
    data: dict[str, Any] = {
        "name": "demo", "models": models, "tasks": tasks, "spend": case["spend"], "seed": 4,
        "overall": "pooled" if case["tasks"] == "pooled" else "macro",
        "goal": goal_of(case["goal"], low, unit), "budget": BUDGETS.get(case["budget"], {}),
        "stopping": {**stopping, "max_passes": {"four": 4, "seven": 7}[case["passes"]]},
        "allocation": {"models": case["policy"], "questions": case["questions"]},
    }  # fmt: skip
    if case["limits"] in SERVERS:
        data["servers"] = [{"url": "http://one/v1", **SERVERS[case["limits"]]}]
    if margin is not None:
        data["stopping"]["equivalence"] = margin * unit
    if case["references"] != "none":
        names = ["old", "older"][: 1 + (case["references"] == "two")]
        data["references"] = [{"file": "old.csv", "models": names}]
    if case["known"] == "prior":
        data["prior"] = {"from": "all.csv"}
    if mimic:
        coins: dict[str, Any] = {name: {"mean": mean, "spread": 5.0} for name, mean in MODELS.items()}
        coins["good"] = {"accuracies": [0.8, 0.9, 0.7], "latency": {"median": 3, "correct_factor": 2.0}}
        coins["poor"]["tokens"] = {"completion_median": 25, "completion_sigma": 0.3}
        data["mimic"] = {"correlation": 0.4, "models": coins, "latency": {"median": 0.9}}
    return data


def plan_facts(written: Case) -> list[str]:
    """Return what is planned for a config."""
    case = {name: written.get(name, values[0]) for name, values in PLANS.items()}
    file = folder() / "demo.yaml"
    file.write_text(json.dumps(plan_config(case)), "utf-8")
    options: list[object] = ["--json", "--replicates", 1 + (case["passes"] == "four"), "--workers", 1]
    stated = {"assumed": "fair good poor", "some-outcomes": "good poor"}
    for name in stated.get(case["known"], "").split():
        options += ["--assume", f"{name}={MODELS[name] - 0.04}"]
    if case["known"].endswith("outcomes"):
        options += ["--from", folder() / ("all.csv" if case["known"] == "outcomes" else "two.csv")]
    if case["times"] in ("all", "latency"):
        options += ["--latency", LATENCY]
    if case["times"] in ("all", "tokens"):
        options += ["--prompt-tokens", PROMPT, "--answer-tokens", ANSWER]
    if case["margins"] == "given":
        options += ["--margin", 0.2 * UNITS[case["scale"]][1], "--margin", 0.06]
    options += {"narrow": ["--spread", 30], "correlated": ["--correlation", 0.8]}.get(case["shape"], [])
    options += {
        "seed": ["--seed", 3],
        "confidence": ["-o", "stopping.confidence=0.55"],
        "budget-by-hand": ["-o", "budget.trials=40", "-o", "models[0].price.input=3"],
        "shorter": ["-o", "tasks[0].limit=3", "-o", "stopping.max_passes=3"],
    }.get(case["changed"], [])
    done = runs.command("plan", file, *options)
    if done.exception is not None:
        return [f"refused {getattr(done.exception, 'code', type(done.exception).__name__)}"]
    plan = json.loads(done.stdout)
    if case["times"] == "all":
        hold_costs(case, plan)
    return list(facts_of_plan(plan))


def hold_costs(case: Case, plan: Mapping[str, Any]) -> None:
    """Hold what uniform allocation costs against its trials, of which every model has the same number."""
    config = plan_config(case)
    if case["changed"] == "budget-by-hand" and "price" in config["models"][0]:
        config["models"][0]["price"]["input"] = 3.0
    waits, prices = [], []
    for model in config["models"]:
        rate = model.get("rate_limit", {})
        wait = LATENCY / (16 if model.get("concurrency", "auto") == "auto" else model["concurrency"])
        wait = max(wait, 60 / rate.get("requests_per_minute", 1e9))
        waits.append(
            max(
                wait,
                60 * (PROMPT + ANSWER) / float(str(rate.get("tokens_per_minute", 1e9)).replace("2k", "2000")),
            )
        )
        price = model.get("price")
        prices.append(None if price is None else (PROMPT * price["input"] + ANSWER * price["output"]) / 1e6)
    for row in plan["rows"]:
        if row["policy"] != "uniform":
            continue
        each = row["trials"]["median"] / len(MODELS)
        assert row["tokens"]["median"] == pytest.approx(row["trials"]["median"] * (PROMPT + ANSWER))
        if None in prices:
            assert row["usd"] is None
        else:
            assert row["usd"]["median"] == pytest.approx(each * sum(prices))
        if case["concurrency"] == "batch":
            assert row["hours"] is None
        else:
            server = {"of-server": len(MODELS) * 60 / 70, "in-flight": len(MODELS) * LATENCY / 3}
            seconds = max(*waits, server.get(case["limits"], 0.0))
            assert row["hours"]["median"] == pytest.approx(each * seconds / 3600)


def facts_of_plan(plan: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each row of a plan."""
    truth, sources = text(together(plan["truth"])), len(plan["assumptions"])
    yield f"truth {truth} sources={sources} safe={plan['safe_budget']}"
    for row in (*plan["rows"], plan["all_equal"]):
        if row is None:
            yield "none"
            continue
        words, figures = parts_of(row)
        shares = text([round(row[name], 3) for name in ("winners", "ties", "open", "held")])
        spent = {name: row[name] and row[name]["median"] for name in ("trials", "usd", "hours")}
        about = f"{row['policy']} {text(row['margin'])} {text(spent)} {shares}"
        yield f"{about} {digest(words)} {text(together(figures))}"
    words, figures = parts_of(plan["budgets"])
    yield f"budgets {digest(words)} {text(together(figures))}"


# ---------------------------------------------------------------------------- a rule on coins and outcomes

RULES: Options = {
    "source": ("coins", "means", "outcomes", "uneven", "lost", "copied", "config"),
    "goal": ("ranking", "top-two", "baseline", "claim", "threshold", "width", "best-and-width"),
    "rule": ("anytime", "exact", "zscore"),
    "margin": ("near", "none", "wide"),
    "policy": ("round-robin", "uniform"),
    "questions": ("auto", "schedule", "rounds"),
    "flight": ("one", "few", "slow", "skewed"),
    "weights": ("usual", "graded"),
    "shape": ("usual", "narrow", "correlated"),
    "passes": ("four", "nine"),
    "confidence": ("high", "low"),
    "family": ("holm", "pair"),
    "target": ("benchmark", "population"),
    "only": ("all", "two"),
    "spend": ("trials", "time"),
}
"""The options of a rule that is measured without a config."""
RULES_REFUSED: Refused = (
    ("rule", "exact zscore", "questions", "rounds"),
    ("rule", "exact zscore", "goal", "claim"),
    ("rule", "exact", "goal", "threshold width best-and-width"),
    ("rule", "exact", "source", "config outcomes uneven lost copied"),
    ("goal", "threshold", "questions", "rounds"),
    ("goal", "claim", "margin", "none"),
    ("goal", "top-two", "only", "two"),
    ("only", "two", "source", "means config"),
    ("source", "config", "weights", "graded"),
    ("source", "config", "confidence", "low"),
)
MEANS = (0.45, 0.9, 0.1)
RECORDED = ("outcomes", "uneven", "lost", "copied")
"""Sources that are files of outcomes."""


def rule_facts(written: Case) -> list[str]:
    """Return what simulated runs of a rule come to."""
    case = {name: written.get(name, values[0]) for name, values in RULES.items()}
    low, unit = (-1.0, 3.0) if case["weights"] == "graded" else (0.0, 1.0)
    names = ("fair", "good") if case["source"] in (*RECORDED, "config") else ("m1", "m2")
    level = f"threshold={low + 0.6 * unit}"
    goal = {
        "top-two": "top-k=2", "baseline": f"baseline={names[0]}", "claim": f"not-worse={names[1]}",
        "threshold": level, "width": f"width={0.4 * unit}", "best-and-width": f"top-k and width={0.5 * unit}",
    }.get(case["goal"], case["goal"])  # fmt: skip
    margin = {"near": 0.12, "none": None, "wide": 0.3}[case["margin"]]
    settings: dict[str, object] = {
        "stopping.rule": case["rule"], "stopping.family": case["family"], "stopping.target": case["target"],
        "stopping.max_passes": {"four": 4, "nine": 9}[case["passes"]], "spend": case["spend"],
        "allocation.models": case["policy"], "allocation.questions": case["questions"],
    }  # fmt: skip
    runs_of_it = 1 + (case["passes"] == "four")
    options: list[object] = ["--json", "--replicates", runs_of_it, "--workers", 1, "--seed", 5]
    if case["source"] == "config":
        settings |= {"goal": goal} | ({} if margin is None else {"stopping.equivalence": margin})
        plain = {name: values[0] for name, values in PLANS.items()}
        file = folder() / "plain.yaml"
        file.write_text(
            json.dumps({**plan_config({**plain, "equivalence": "none"}), "stopping": {}}), "utf-8"
        )
        options = [file, *options, "--means", ",".join(map(str, MEANS))]
    else:
        options += ["--goal", goal, "--confidence", {"high": 0.9, "low": 0.7}[case["confidence"]]]
        if margin is not None:
            options += ["--equivalence", margin * unit]
        if case["weights"] == "graded":
            options += ["--weights", "-1,2"]
    options += source_of(case, names)
    options += {
        "few": ["--in-flight", 6], "slow": ["--in-flight", 9, "--latency", 2],
        "skewed": ["--in-flight", 4, "--latency", 1.5, "--latency-sigma", 1, "--latency-factor", 5],
    }.get(case["flight"], [])  # fmt: skip
    options += {"narrow": ["--spread", 30], "correlated": ["--correlation", 0.8]}.get(case["shape"], [])
    for name, value in settings.items():
        options += ["-o", f"{name}={value}"]
    done = runs.command("plan", *options)
    if done.exception is not None:
        return [f"refused {getattr(done.exception, 'code', type(done.exception).__name__)}"]
    return list(facts_of_rule(json.loads(done.stdout)))


def source_of(case: Case, names: tuple[str, ...]) -> list[object]:
    """Return the options that say whose answers they are."""
    models = {"coins": ["--models", 2 + (case["only"] == "all"), "--questions", 7]}
    models["means"] = ["--means", ",".join(map(str, MEANS)), "--questions", 8]
    if case["source"] not in RECORDED:
        return models.get(case["source"], [])
    file = folder() / f"{case['source']}.csv"
    of_source: Mapping[str, Any] = {
        "uneven": {"uneven": True},
        "lost": {"lost": 0.08},
        "copied": {"copied": 0.5},
    }
    file.write_text("\n".join(outcomes(MODELS, **of_source.get(case["source"], {}))), "utf-8")
    only = ["--only", ",".join(names)] if case["only"] == "two" else []
    return ["--recorded", file, *only]


def facts_of_rule(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is said of the runs, and a line for their models and their pairs."""
    tables = {name: found[name] for name in ("models", "pairs")}
    words, figures = parts_of({name: one for name, one in found.items() if name not in tables})
    known = f"{text(found['reasons'])} trials={text(found['mean_trials'])}"
    yield f"runs {known} {digest(words)} {text(together(figures))}"
    for name, rows in tables.items():
        words, figures = parts_of(rows)
        yield f"{name} {digest(words)} {text(together(figures))}"
