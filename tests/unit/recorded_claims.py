"""Claims about stored runs of every kind, checked together: exit codes, verdicts and their figures."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

import run_examples as runs
from course_facts import digest, together
from course_facts import text as shown
from crossed_options import Case, Options, Refused
from recorded_runs import RANGES, RUNS, earlier_run, stored

CLAIMS: Options = {
    "run": ("repeated", "threshold", "given-up", "rounds", "reference"),
    "pairs": ("none", "sure", "false", "both"),
    "scores": ("none", "low", "high", "all"),
    "each": ("none", "one", "most", "share"),
    "margin": ("default", "given"),
    "model": ("all", "good"),
}
"""The options of runs and of claims about them."""
CLAIMS_REFUSED: Refused = (("each", "none", "model", "good"), ("pairs", "none", "margin", "given"))
KINDS: Mapping[str, Mapping[str, str]] = {
    "repeated": {"noise": "one-repeats", "tasks": "one"}, "threshold": {"scores": "graded"},
    "given-up": {"lost": "given-up", "tasks": "pooled"}, "rounds": {"questions": "rounds", "tasks": "one"},
    "reference": {"stored": "run", "goal": "not-worse"},
}  # fmt: skip
"""The options of each kind of run."""
PAIRS = {"sure": ("good:poor",), "false": ("poor:good",), "both": ("good:fair", "poor:fair")}
SCORES = {"low": ("good:0.3",), "high": ("poor:0.9",), "all": ("good:0.5", "fair:0.55", "poor:0.05")}
EACH = {"one": ("1 of 2",), "most": ("3 of 4",), "share": ("7 of 8", "--confidence", 0.7)}

_FOLDER = TemporaryDirectory()


@cache
def run_of(kind: str) -> Path:
    """Return the run of a kind."""
    case = {name: values[0] for name, values in RUNS.items()} | {"lost": "repeated", **KINDS[kind]}
    changes: dict[str, Any] = {"budget": {"trials": 110}}
    folder = Path(mkdtemp(dir=_FOLDER.name))
    if kind == "reference":
        old = earlier_run("right", "two", "some")
        changes["references"] = [{"run": str(old), "models": ["past"]}]
    elif kind == "threshold":
        changes["goal"] = {"kind": "all", "goals": ["threshold=2.5", "not-worse=fair"]}
    return stored(case, folder, **changes)


def claim_facts(written: Case) -> list[str]:
    """Return how a check ends, and each verdict with its figures."""
    case = {name: written.get(name, values[0]) for name, values in CLAIMS.items()}
    run = run_of(case["run"])
    low, high = RANGES.get(KINDS[case["run"]].get("scores", ""), (0.0, 1.0))
    asked: list[object] = []
    for pair in PAIRS.get(case["pairs"], ()):
        of_stored = case["run"] == "reference" and pair == "poor:fair"
        asked += ["--not-worse", "fair:past" if of_stored else pair]
    for claim in SCORES.get(case["scores"], ()):
        model, value = claim.split(":")
        asked += ["--at-least", f"{model}:{low + (high - low) * float(value)}"]
    if case["each"] != "none":
        asked += ["--each-question", *EACH[case["each"]]]
    if case["margin"] == "given":
        asked += ["--margin", 0.3 * (high - low)]
    if case["model"] != "all":
        asked += ["--model", case["model"]]
    done = runs.command("check", run, *asked)
    facts = [f"check {done.return_value} {getattr(done.exception, 'code', '')}".rstrip()]
    for said in done.stdout.splitlines():
        line = said.partition(". A run that ends")[0]
        words = digest(re.findall(r"[a-z]+-?\d+|\d+/\d+|\b[a-z]+(?=:)", line))
        figures = together(map(float, re.findall(r"[-+]?\d+\.\d+|\b\d+\b", line)))
        facts.append(f"{line.split()[0]} {words} {shown(figures)}")
    return facts
