"""Logs of other tools as they are ranked, written as runs, exported again, and read back."""

import csv
import io
import json
import pickle
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import run_examples as runs
from course_facts import condensed, digest, text, together
from crossed_options import Case, Options, Refused
from recorded_logs import (
    APART,
    IN_ONE,
    MAPPED,
    ONLY_RIGHT,
    WEIGHTS,
    column_of,
    inspect_installed,
    named_by,
    write_logs,
)
from recorded_runs import command_facts, json_facts, parts_of, table_fact

from adaptive_eval.build.replay import replay
from adaptive_eval.core.stored_spec import SESSION, spec_from_json
from adaptive_eval.store.reader import RunReader
from adaptive_eval.views.report_json import report_data

IMPORTS: Options = {
    "tool": (*IN_ONE, *APART),
    "scores": ("right", "graded", "numbers", "range", "categories"),
    "trials": ("several", "one", "uneven", "of-one"),
    "lost": ("some", "none", "of-one", "cut-off"),
    "texts": ("own", "equal"),
    "files": ("one", "of-models", "of-tasks", "twice"),
    "tasks": ("two", "one"),
    "groups": ("none", "column", "of-tasks", "nested"),
    "metrics": ("one", "several"),
    "named": ("plain", "renamed", "one-task", "by-name"),
    "scored": ("usual", "again", "right-from"),
    "copies": ("lost", "independent"),
    "goal": ("ranking", "baseline", "threshold", "width"),
    "rule": ("usual", "fixed", "sequential"),
    "read": ("written", "ranked"),
    "back": ("csv", "lm-eval", "inspect", "run"),
}
"""The options of imports."""
IMPORTS_REFUSED: Refused = (
    ("tool", ONLY_RIGHT, "scores", "graded numbers range"),
    ("tool", " ".join({*IN_ONE, *APART} - {"table", "mapped", "archive"}), "scores", "categories"),
    ("tool", "archive", "groups", "column of-tasks"),
    ("tool", " ".join({*IN_ONE, *APART} - {"lm-eval"}), "groups", "nested"),
    ("groups", "nested", "scores", "categories"),
    ("groups", "nested", "files", "of-models of-tasks"),
    ("groups", "nested", "named", "one-task"),
    ("tool", "archive", "named", "by-name"),
    ("tool", "archive", "files", "of-tasks"),
    ("tool", "archive helm inspect wide openai promptfoo", "scored", "again"),
    ("tool", " ".join(APART), "files", "of-models of-tasks"),
    ("tool", "evalscope", "metrics", "one"),
    ("tool", "wide", "files", "of-models twice"),
    ("tool", "evalplus archive", "files", "twice"),
    ("tool", "lm-eval archive", "named", "one-task"),
    ("trials", "one", "files", "twice"),
    ("tasks", "one", "files", "of-tasks"),
    ("scores", "range categories", "scored", "right-from again"),
    ("tasks", "one", "groups", "of-tasks"),
    ("read", "ranked", "scored", "right-from"),
    ("read", "ranked", "back", "lm-eval inspect run"),
)


RANGES = {"range": (1.0, 10.0), "categories": (WEIGHTS[0], WEIGHTS[-1])}
"""Lowest and highest score, where it is not from 0 to 1."""


def options_of(case: Case) -> list[object]:
    """Return how the logs of a case are read and decided."""
    given: list[object] = ["-o", "stopping.max_passes=5", "--confidence", 0.8]
    low, high = {"range": (1.0, 10.0), "categories": (WEIGHTS[0], WEIGHTS[-1])}.get(
        case["scores"], (0.0, 1.0)
    )
    columns = {}
    if case["tool"] == "mapped":
        columns = {**MAPPED, column_of(case): "grade.value", "rows": "deep.rows"}
    if case["groups"] != "none" and (case["groups"], case["tool"]) != ("column", "table"):
        columns["cluster"] = {"of-tasks": "task", "nested": "group"}.get(case["groups"], "subject")
    if columns:
        given += ["--map", ",".join("=".join(pair) for pair in columns.items())]
    if case["scores"] == "range":
        given += ["--range", "1,10"]
    if case["scores"] == "categories":
        given += ["--weights", ",".join(map(str, WEIGHTS))]
    if case["metrics"] == "several":
        name = {"helm": "exact_match", "table": "score", "mapped": "score", "wide": "score"}
        names = {"lm-eval": "acc", "lighteval": "acc", "evalscope": "other"}
        if case["tool"] in {*names, "promptfoo", "inspect", "openai", "helm"}:
            given += ["--metric", {**name, **names}.get(case["tool"], "score")]
    if case["named"] != "plain":
        given += {"renamed": ["--rename", f"{named_by(case, 'ash')}=yew"], "one-task": ["--task", "all"]}.get(
            case["named"], ["--id", "name"]
        )
    if case["scored"] == "again":
        given += ["--scorer", "numeric"]
    if case["copies"] == "independent":
        given += ["-o", "on.copies=independent"]
    unit = high - low
    goals = {
        "baseline": f"baseline={named_by(case, 'elm')}", "threshold": f"threshold={low + 0.4 * unit}",
        "width": f"width={0.6 * unit}",
    }  # fmt: skip
    given += ["--goal", goals.get(case["goal"], case["goal"]), "--equivalence", 0.1 * unit]
    return [*given, *{"fixed": ["--fixed"], "sequential": ["--sequential"]}.get(case["rule"], [])]


def import_facts(written: Case) -> list[str]:
    """Return what is made of the logs of a case."""
    case = {name: written.get(name, values[0]) for name, values in IMPORTS.items()}
    with TemporaryDirectory() as place, inspect_installed():
        return list(facts_in(case, Path(place)))


def facts_in(case: Case, folder: Path) -> Iterator[str]:
    files = write_logs(case, folder / "logs")
    given = options_of(case)
    if case["read"] == "ranked":
        facts = command_facts("analyze", *files, *given, "--json", "--replicates", 1, "--workers", 1)
        yield next(facts)
        yield from condensed(facts)
        return
    run = folder / "run"
    own = ["--right-from", 0.5] if case["scored"] == "right-from" else []
    yield from written_facts("analyze", *files, *given, *own, "--json", "--write", run)
    if not run.exists():
        return
    yield from stored_facts("run", run)
    report = {name: part for name, part in report_data(runs.read_summary(run)).items() if name != "run"}
    yield from condensed(json_facts("report", report))
    back: list[object] = [run]
    if case["back"] != "run":
        out = folder / "out"
        if case["back"] == "csv":
            out = out.with_suffix(".csv")
        done = runs.command("export", run, "--format", case["back"], "--out", out)
        yield f"export {done.return_value} {getattr(done.exception, 'code', '')}"
        yield from exported_facts(out)
        back = [out]
    again = folder / "again"
    low, high = {"range": (1, 10), "categories": (WEIGHTS[0], WEIGHTS[-1])}.get(case["scores"], (0, 1))
    if (
        (case["back"] in ("lm-eval", "inspect") or case["scores"] == "range")
        and case["back"] != "run"
        and (low, high) != (0, 1)
    ):
        back += ["--range", f"{low},{high}"]
    yield from written_facts("analyze", *back, "--json", "--write", again)
    if again.exists():
        yield from stored_facts("again", again)


def written_facts(*arguments: object) -> Iterator[str]:
    """Yield the error of a command that writes a run, or what it says of the run and of its models."""
    done = runs.command(*arguments)
    if done.exception is not None or not done.stdout:
        yield f"refused {getattr(done.exception, 'code', '')}"
        return
    data = json.loads(done.stdout)
    models = " ".join(f"{name}={text(score)}" for name, score in sorted(data["models"].items()))
    counts = " ".join(f"{name}={data[name]}" for name in ("logs", "trials", "missing", "copies", "absent"))
    yield f"written {counts} {models}"


def stored_facts(name: str, run: Path) -> Iterator[str]:
    """Yield what an imported run holds."""
    with RunReader(run) as reader:
        trials = list(reader.trials())
        meta = reader.meta()
        kinds = [one.body["kind"] + one.body["verdict"] for one in reader.decisions()]
        assert not replay(reader).disagreements
    words, figures = [], []
    for one in trials:
        answer, score = one.completion, one.score
        words.append((one.request, one.missing, one.after_stop, one.discarded, sorted(one.sent.items())))
        if answer is not None and score is not None:
            words += [answer.text, answer.finish_reason, answer.usage, score.category, score.extracted]
            words += [score.reason, sorted(one for one in score.signals if one != "score")]
            figures += [answer.latency, score.signals.get("score")]
        if one.finished_at < 1.755e9:  # as the log says
            figures.append(one.finished_at - 1.75e9)
    yield f"{name} trials={len(trials)} {digest(words)} {text(together(figures))}"
    told = json.loads(meta["imported"])
    sources = [(one["format"], one["trials"], sorted(one["versions"].items())) for one in told["sources"]]
    about = f"notes={len(told['notes'])} rule={told['rule']} weights={text(told['weights'])}"
    yield f"{name} of {digest([sorted(sources), told['ranges']])} {about} decisions={digest(kinds)}"
    groups = [task.clusters for task in spec_from_json(meta[SESSION]).tasks if task.clusters]
    if groups:
        yield f"{name} groups={digest(groups)}"


def without_times(written: str) -> str:
    """Return a table without the column of times, which are of this moment where a log says none."""
    rows = list(csv.reader(io.StringIO(written)))
    place = rows[0].index("finished_at")
    out = io.StringIO()
    csv.writer(out).writerows([*row[:place], *row[place + 1 :]] for row in rows)
    return out.getvalue()


NOT_KEPT = {"date", "created", "started_at", "completed_at", "packages", "model_source", "finished_at"}
"""Keys of exports that a clock or the version of the package gives."""


def exported_facts(out: Path) -> Iterator[str]:
    """Yield what each exported file holds."""
    files = sorted(one for one in out.rglob("*") if one.is_file()) if out.is_dir() else [out]
    for file in files:
        if file.suffix == ".csv":
            yield f"csv {table_fact(without_times(file.read_text('utf-8')))}"
            continue
        if file.suffix == ".parquet":
            from pyarrow import parquet

            data: Any = parquet.read_table(file).to_pylist()
        elif file.suffix == ".jsonl":
            data = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
        elif file.suffix == ".eval":
            data = plain(pickle.loads(file.read_bytes()))
        else:
            data = json.loads(file.read_text("utf-8"))
        words, figures = parts_of(kept(data))
        yield f"file {file.suffix} {len(data)} {digest(words)} {text(together(figures))}"


def plain(data: Any) -> Any:
    """Return the plain objects in the place of Inspect's as JSON would have them."""
    if isinstance(data, SimpleNamespace):
        return {name: plain(value) for name, value in vars(data).items()}
    if isinstance(data, dict):
        return {name: plain(value) for name, value in data.items()}
    return [plain(one) for one in data] if isinstance(data, list) else data


def kept(data: Any) -> Any:
    """Return what an export says without what a clock or the version of the package gives."""
    if isinstance(data, Mapping):
        return {name: kept(value) for name, value in data.items() if name not in NOT_KEPT}
    return [kept(one) for one in data] if isinstance(data, list) else data
