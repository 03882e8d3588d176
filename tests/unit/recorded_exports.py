"""Runs of crossed options as they are exported, with the weight of each trial, and as they are read back."""

import csv
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import run_examples as runs
from course_facts import text
from crossed_options import Case, Options, Refused
from recorded_imports import exported_facts, stored_facts, written_facts
from recorded_logs import inspect_installed
from recorded_runs import RANGES, RUNS, stored

EXPORTS: Options = {
    "form": ("csv", "parts", "lm-eval", "inspect", "eee"),
    "scores": (*RUNS["scores"], "checks"),
    "tasks": RUNS["tasks"],
    "lost": RUNS["lost"],
    "on": RUNS["on"],
    "questions": RUNS["questions"],
    "samples": RUNS["samples"],
    "noise": RUNS["noise"],
    "texts": ("kept", "left-out"),
    "back": ("whole", "renamed", "fixed", "by-check"),
}
"""The options of exports."""
EXPORTS_REFUSED: Refused = (
    ("scores", "two-rubrics", "tasks", "one"),
    ("form", "lm-eval inspect eee", "texts", "left-out"),
    ("scores", " ".join(RUNS["scores"]), "back", "by-check"),
    ("form", "eee", "back", "by-check"),
)


def export_facts(written: Case) -> list[str]:
    """Return what the exports of a case hold, and what is read back."""
    case = {name: written.get(name, values[0]) for name, values in EXPORTS.items()}
    whole = {name: values[0] for name, values in RUNS.items()}
    whole |= {name: value for name, value in case.items() if name in RUNS}
    with TemporaryDirectory() as place, inspect_installed():
        run = stored(whole, Path(place) / "run", budget={"trials": 45})
        return list(facts_of_exports(case, run, Path(place)))


def facts_of_exports(case: Case, run: Path, folder: Path) -> Iterator[str]:
    summary = runs.read_summary(run)
    yield "scores " + " ".join(f"{one.model}={text(one.score)}" for one in summary.results.models)
    form = case["form"]
    out = folder / ("out.csv" if form == "csv" else form)
    more = ["--part-rows", 23] if form == "parts" else []
    more += ["--no-texts"] if case["texts"] == "left-out" else []
    runs.printed("export", run, "--format", "parquet" if form == "parts" else form, "--out", out, *more)
    yield from exported_facts(out)
    if form == "csv":
        yield weighed(case, list(csv.DictReader(out.read_text("utf-8").splitlines())))
    if form == "eee":
        return
    low, high = RANGES.get(case["scores"], (0.0, 1.0))
    given: list[object] = ["--range", f"{low},{high}"] if form in ("lm-eval", "inspect") and low else []
    given += {
        "renamed": ["--rename", "fair=just"], "fixed": ["--fixed"], "by-check": ["--metric", "check_value"],
    }.get(case["back"], [])  # fmt: skip
    yield from written_facts("analyze", out, *given, "--json", "--write", folder / "again")
    if (folder / "again").exists():
        yield from stored_facts("again", folder / "again")


def weighed(case: Case, rows: list[dict]) -> str:
    """Return the sum of weight times score of each model, by a table that was exported."""
    total: Counter[str] = Counter()
    for row in rows:
        lowest = min(json.loads(row["weights"])) if case["scores"] == "two-rubrics" else 0.0
        if row["score"]:
            total[row["model"]] += float(row["weight"]) * (float(row["score"]) - lowest)
    return "weighed " + " ".join(f"{name}={text(value)}" for name, value in sorted(total.items()))
