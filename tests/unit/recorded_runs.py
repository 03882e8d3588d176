"""Stored runs of configs whose options are crossed, and what reads them: report, export, rescoring, plan."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

import run_examples as runs
from course_facts import digest, text, together
from crossed_options import Case, Options, Refused, chance

from adaptive_eval.build.assembly import build
from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.core.session import Session
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TrialRecord
from adaptive_eval.trial import COPY_REASON, SAME_TEXT, UNSCORED, Completion, TrialRequest, Usage
from adaptive_eval.views.answer_list import Wanted, part_of
from adaptive_eval.views.files import write_reports
from adaptive_eval.views.report_json import report_data

RUNS: Options = {
    "goal": ("ranking", "best", "not-worse", "width"),
    "scores": ("right", "graded", "numbers", "two-rubrics"),
    "tasks": ("two", "one", "pooled"),
    "lost": ("some", "given-up", "cut-off", "repeated", "copies"),
    "on": ("usual", "missing", "redraw", "independent"),
    "stored": ("none", "run", "file", "prior"),
    "questions": ("schedule", "rounds"),
    "spend": ("trials", "usd"),
    "samples": ("one", "three"),
    "noise": ("drawn", "one-repeats"),
    "budget": ("trials", "of-each", "tokens"),
    "rule": ("anytime", "exact"),
    "read": ("shown", "rescored", "replayed", "at-once", "planned", "labelled", "listed"),
}
"""The options of configs."""
RUNS_REFUSED: Refused = (
    ("scores", "two-rubrics", "tasks", "one"),
    ("rule", "exact", "tasks", "two pooled"),
    ("rule", "exact", "goal", "not-worse width"),
    ("rule", "exact", "questions", "rounds"),
    ("rule", "exact", "scores", "two-rubrics"),
    ("rule", "exact", "stored", "run file"),
    ("scores", "two-rubrics", "read", "replayed at-once labelled"),
    ("scores", "numbers", "read", "planned"),
)
CHANCES = {"fair": 0.5, "good": 0.9, "poor": 0.25}
PAST = {"past": 0.6, "good": 0.9}
"""Models of an earlier run, which is a reference or a prior."""
SCORERS: Mapping[str, Any] = {
    "right": {"scorer": "numeric"},
    "graded": {"scorer": "numeric", "rubric": {"schema": "exact-match", "weights": [1, -1, 3]}},
    "numbers": {"scorer": {"kind": "f1", "range": [0, 1]}},
    "two-rubrics": {"scorer": "numeric", "rubric": {"weights": [-1, 3]}},
    "checks": {
        "scorer": {
            "kind": "checks",
            "by": "mean",
            "weights": {"value": 3, "near": 1},
            "parts": {"value": "numeric", "near": {"kind": "numeric", "tolerance": 1}},
        },
    },
}
RANGES = {"graded": (-1.0, 3.0)}
SIZES = {"long": 11, "short": 6}
FEW = {"long": 3, "short": 2}
"""Questions of runs that are short and yet take several passes."""


def config_of(
    case: Case, folder: Path, names: Iterable[str] = CHANCES, sizes: Mapping[str, int] = SIZES, **changes: Any
) -> Any:
    """Write the datasets of a case, and return its config."""
    tasks = []
    for place, (name, size) in enumerate(sizes.items()):
        rows = [{"id": f"q{n}", "input": f"{n} + {n}?", "target": str(2 * n)} for n in range(size)]
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
        scored = SCORERS[case["scores"]]
        if case["scores"] == "two-rubrics" and place:
            scored = SCORERS["right"]
        weight = 1.0 if case["tasks"] == "one" else (3.0, 1.0)[place]
        tasks.append({"name": name, "dataset": f"{name}.jsonl", "weight": weight, **scored})
    low, high = RANGES.get(case["scores"], (0.0, 1.0))
    unit = high - low
    models = []
    for place, name in enumerate(names):
        model = {"name": name, "endpoints": ["http://localhost:9/v1"], "concurrency": 8}
        model |= {
            "samples_per_request": {"one": 1, "three": 3}[case["samples"]],
            "sampling": {"max_tokens": 64},
        }
        model |= {"price": {"input": 2.0 + place, "output": 8.0}}
        if case["noise"] == "one-repeats" and not place:
            model["deterministic"] = True
        if case["budget"] == "of-each":
            model["budget"] = {"trials": 70 - 8 * place}
        models.append(model)
    goals = {
        "best": {"kind": "top-k", "k": 1},
        "not-worse": {"kind": "not-worse", "model": "fair", "margin": 0.1 * unit},
        "width": {"kind": "width", "width": 0.4 * unit},
    }  # fmt: skip
    handled = {
        "missing": {"length": "missing", "empty": "missing"}, "redraw": {"discarded": ["timeout"]},
        "independent": {"copies": "independent"},
    }  # fmt: skip
    budgets = {"trials": {"trials": 150}, "tokens": {"tokens": 8_000}}
    data = {
        "name": "run", "seed": 5, "models": models, "tasks": tasks[: 1 if case["tasks"] == "one" else 2],
        "overall": "pooled" if case["tasks"] == "pooled" else "macro",
        "goal": goals.get(case["goal"], case["goal"]),
        "stopping": {"equivalence": 0.15 * unit, "confidence": 0.8, "rule": case["rule"], "max_passes": 9},
        "allocation": {"questions": case["questions"]}, "spend": case["spend"],
        "budget": budgets.get(case["budget"], {}), "on": handled.get(case["on"], {}),
    }  # fmt: skip
    (folder / "run.yaml").write_text(json.dumps({**data, **changes}), "utf-8")
    return config_from_data({**data, **changes}, folder)


def answering(case: Case, built: Any, session: Session) -> Callable[..., TrialRecord]:
    """Return what answers a request: its fate follows from its key."""
    tasks = {task.name: task for task in built.tasks}

    def answer(request: TrialRequest, at: float, *, after_stop: bool = False) -> TrialRecord:
        name, key = request.key.model, (request.key.model, request.key.index)
        if case["noise"] == "one-repeats" and name == "fair":
            key = (name, request.task, request.question)
        fate, right, cut = chance("fate", key), chance("right", key), chance("cut", key)
        question = tasks[request.task].by_id[request.question]
        sent = {"messages": [{"role": "user", "content": question.fields["input"]}]}
        lost = case["lost"]  # of a kind, or of two
        discarded: tuple = ()
        often = 4.0 if " " in lost else 1.0  # of two kinds, the second is what a changed setting is about
        if "given-up" in lost and fate < 0.1 * often:
            discarded = (("timeout",), ("server",))[int(fate / (0.05 * often))]
        told = {"after_stop": after_stop, "discarded": discarded}
        if "some" in lost and fate < 0.08:
            session.presume_billed(request.key)
            return TrialRecord(
                request, at, None, None, ("timeout", "refused")[int(fate / 0.04)], sent=sent, **told
            )
        better = right < {**CHANCES, **PAST}[name]
        said = f"\\boxed{{{2 * int(request.question[1:]) + 1 - better}}}"
        if case["scores"] == "numbers":
            said = " ".join([str(2 * int(request.question[1:]) + 1 - better), *"abc"[: int(3 * right)]])
        elif "cut-off" in lost and cut < 0.05:
            said = ""
        usage = Usage(20 + int(10 * cut), 5 + int(50 * chance("long", key)), int(6 * right))
        end = "length" if "cut-off" in lost and cut < 0.15 else "stop"
        completion = Completion(said, end, usage, latency=0.5 + cut)
        score = built.scoring[request.task].score(completion, question)
        if "repeated" in lost and request.repeat and fate < 0.3:
            score = replace(score, signals={**score.signals, SAME_TEXT: True})
        missing = f"{UNSCORED}{score.reason}" if score.category is None else None
        if "copies" in lost and request.repeat and fate < 0.15:
            missing, score = COPY_REASON, replace(score, category=None, reason=COPY_REASON)
        return TrialRecord(request, at, completion, score, missing, sent=sent, **told)

    return answer


def stored(case: Case, folder: Path, name: str = "run", **changes: Any) -> Path:
    """Make the run of a case."""
    folder.mkdir(exist_ok=True)
    built = build(config_of(case, folder, name=name, **changes))
    meta = {**built.meta(), "started_at": repr(runs.STARTED)}
    session = built.session()
    runs.store_run(folder / name, meta, session, answering(case, built, session), slots=30)
    return folder / name


@cache
def earlier_run(scores: str, tasks: str, lost: str, *, few: bool = False) -> Path:
    """Return a run that is a reference or a prior of others, and its folder."""
    case = {name: values[0] for name, values in RUNS.items()}
    folder = Path(mkdtemp(dir=_EARLIER.name))
    case |= {"scores": scores, "tasks": tasks, "lost": lost, "stored": "none"}
    run = stored(case, folder, "old", names=PAST, sizes=FEW if few else SIZES, budget={"trials": 100})
    runs.printed("export", run, "--out", folder / "old.csv")
    return run


_EARLIER = TemporaryDirectory()


def run_facts(written: Case) -> list[str]:
    """Return what a command that reads the run of a case says of it."""
    case = {name: written.get(name, values[0]) for name, values in RUNS.items()}
    changes: dict[str, Any] = {}
    if case["stored"] != "none":
        old = earlier_run(case["scores"], case["tasks"], case["lost"])
        source = {"file": str(old.parent / "old.csv")} if case["stored"] == "file" else {"run": str(old)}
        changes = {"references": [{**source, "models": ["past"]}]}
        if case["stored"] == "prior":
            changes = {"prior": {"from": str(old), "depth": 2}}
    with TemporaryDirectory() as place:
        run = stored(case, Path(place) / "new", **changes)
        return list(facts_of_run(case, run, Path(place)))


def facts_of_run(case: Case, run: Path, folder: Path) -> Iterator[str]:
    """Yield what one of the commands that read a run says of it."""
    once = ("--json", "--replicates", 1, "--workers", 1)
    if case["read"] == "replayed":
        yield from command_facts("analyze", run, "--sequential", *once)
    elif case["read"] == "at-once":
        yield from command_facts("analyze", run, "--fixed", *once)
    elif case["read"] == "planned":
        yield from command_facts("plan", folder / "new" / "run.yaml", "--from", run, *once)
    elif case["read"] == "rescored":
        yield from command_facts("rescore", run, "--json", *rescoring(case))
        yield from command_facts("validate", run, "--offline", "--json")
        claims = ["--not-worse", "good:fair", "--margin", 0.1, "--at-least", "good:0.3"]
        done = runs.command("check", run, *claims)
        numbers = digest(re.findall("[0-9.]+", done.output))
        yield f"check {done.return_value} {getattr(done.exception, 'code', '')} {numbers}"
        yield f"samples {digest(sorted(runs.printed('samples', run, '--json').splitlines()))}"
    elif case["read"] == "labelled":
        yield from label_facts(case, run)
    elif case["read"] == "listed":
        yield from list_facts(run)
    yield from report_facts(run, whole=case["read"] == "shown")


def label_facts(case: Case, run: Path) -> Iterator[str]:
    """Yield what labels of some answers say, when they are tried and when they are stored."""
    runs.printed("samples", run, "--label", 12)
    file = run / "labels.jsonl"
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    low, high = RANGES.get(case["scores"], (0.0, 1.0))
    for row in rows:
        is_right = re.search(rf"\b{row['target']}\b", row["answer"]) is not None
        row["score"] = high if is_right != (chance("flip", row["id"]) < 0.1) else low
    yield f"rows {len(rows)} {digest((row['id'], row['pi'], row['score']) for row in rows)}"
    file.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    for more in (("--dry-run",), ()):
        yield from command_facts("rescore", run, "--labels", file, "--json", *more)
        done = runs.command("rescore", run, "--labels", file, "--dry-run")
        yield f"table {digest(re.findall('[0-9.]+', done.output))}"
        with RunReader(run) as reader:
            yield f"scorings {len(list(reader.scorings()))}"


def list_facts(run: Path) -> Iterator[str]:
    """Yield which answers lists hold, page by page and back, and what is claimed of each question."""
    for kind in ("", "wrong", "missing"):
        wanted = Wanted.asked({"kind": kind})
        with RunReader(run) as reader:
            filters = wanted.filters(sorted(CHANCES), [], 1)
            seen, part = [], part_of(reader, wanted, filters, None, back=False)
            for back in (False, True, False):
                while (beyond := part.before if back else part.after) is not None:
                    part = part_of(reader, wanted, filters, beyond, back=back)
                    seen.append([one.request.key for one in part.records])
        yield f"pages {kind or 'all'} {len(seen)} {digest(seen)}"
    for right, confidence in (("2 of 3", ()), ("1 of 4", ("--confidence", 0.9))):
        done = runs.command("check", run, "--each-question", right, *confidence)
        found = digest(re.findall(r"[a-z]+-?\d+|\d+/\d+|\d+", done.output))
        yield f"each {done.return_value} {getattr(done.exception, 'code', '')} {found}"


def report_facts(run: Path, *, whole: bool) -> Iterator[str]:
    """Yield the figures of a report; if it is wanted as a whole, also its tables and the export."""
    if not whole:
        yield from json_facts("report", report_data(runs.read_summary(run)))
        return
    write_reports(run)
    yield from json_facts("report", json.loads((run / "report.json").read_text("utf-8")))
    for file in sorted((run / "report").glob("*.csv")):
        yield f"{file.name} {table_fact(file.read_text('utf-8'))}"
    yield f"export {table_fact(runs.printed('export', run, '--format', 'csv'))}"


def rescoring(case: Case) -> list[object]:
    """Return how the answers of a case are scored again."""
    if case["scores"] == "numbers":
        return ["--scorer", "{kind: f1, right_from: 0.6}"]
    if case["scores"] == "graded":
        return ["--rubric", "{schema: exact-match, weights: [0, 500, 200]}"]
    return ["--scorer", "{kind: numeric, tolerance: 1}", "--rubric", "{schema: binary, weights: [-3, 1]}"]


_NOT_RECORDED = {
    "at",
    "versions",
    "started_at",
    "elapsed",
    "wall_clock",
    "directory",
    "hash",
    "seconds",
    "path",
}
"""Keys of values that a clock or this machine gives."""


LARGE = 1e6
"""Figures from which on a sum would hide the others: moments in time."""


def parts_of(data: Any, key: str = "") -> tuple[list[object], list[float | None]]:
    """Return words and whole numbers of JSON, and its figures; sentences are left out."""
    words: list[object] = []
    figures: list[float | None] = []
    if isinstance(data, Mapping):
        for name, value in data.items():
            if name not in _NOT_RECORDED:
                found = parts_of(value, name)
                words += [name, *found[0]]
                figures += found[1]
    elif isinstance(data, list):
        for value in data:
            found = parts_of(value, key)
            words += [len(data), *found[0]]
            figures += found[1]
    elif data is None or (isinstance(data, float) and abs(data) < LARGE):
        figures.append(data)
    elif not isinstance(data, str) or " " not in data:
        words.append(data)
    return words, figures


def json_facts(name: str, data: Any) -> Iterator[str]:
    """Yield a line for each section of JSON that holds anything."""
    sections = data.items() if isinstance(data, Mapping) else enumerate(data)
    for section, value in sections:
        if section in _NOT_RECORDED:
            continue
        words, figures = parts_of(value, str(section))
        if section == "meta" or (not words and set(figures) <= {None}):
            continue
        yield f"{name} {section} {digest(words)} {text(together(figures))}"


_FLOAT = re.compile(r"-?\d+(\.\d+(e[-+]?\d+)?|e[-+]?\d+)")


def table_fact(written: str) -> str:
    """Return a CSV text by its columns: words and whole numbers, and figures."""
    rows = list(csv.DictReader(io.StringIO(written)))
    parts = [f"rows={len(rows)}"]
    words: list[object] = []
    figures: list[float | None] = []
    for row in rows:
        for name, cell in row.items():
            if name in _NOT_RECORDED or " " in cell:
                continue
            if _FLOAT.fullmatch(cell):
                figures.append(float(cell))
            else:
                words += [name, cell]
    return " ".join([*parts, digest(words), text(together(figures))])


def command_facts(name: str, *arguments: object) -> Iterator[str]:
    """Yield the exit code of a command, and what it prints as JSON or as numbers."""
    done = runs.command(name, *arguments)
    yield f"{name} code={done.return_value} {getattr(done.exception, 'code', '')}".rstrip()
    try:
        data = json.loads(done.stdout)
    except ValueError:
        return
    yield from json_facts(name, data)
