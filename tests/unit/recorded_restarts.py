"""Runs of configs that are killed on their way and continued under changed settings, as they are recorded."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import run_examples as runs
from course_facts import asked_fact, condensed, decision_fact, digest, text, together
from crossed_options import Case, Options, Refused
from recorded_runs import FEW, RUNS, answering, command_facts, config_of, earlier_run, json_facts, rescoring

from adaptive_eval.build.assembly import build
from adaptive_eval.config.load_config import parse_config
from adaptive_eval.core.results import to_json
from adaptive_eval.core.session import Session
from adaptive_eval.run.execution import RunOptions, _Run
from adaptive_eval.store import pending
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import CANCELLED, KILLED, WITHDRAWN, AttemptRecord, SnapshotRecord
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.trial import TrialRequest
from adaptive_eval.views.report_json import report_data

RESTARTS: Options = {
    "cut": ("middle", "early", "late", "twice"),
    "left": ("sent", "nothing", "failed", "given-up"),
    "changed": ("nothing", "decisions", "weights", "discarded", "copies", "deterministic"),
    "scores": RUNS["scores"],
    "tasks": RUNS["tasks"],
    "lost": RUNS["lost"],
    "on": RUNS["on"],
    "stored": ("none", "run", "prior"),
    "questions": RUNS["questions"],
    "samples": RUNS["samples"],
    "noise": RUNS["noise"],
    "failed": ("presume", "prompt-only", "none"),
    "budget": ("tokens", "of-each", "trials"),
    "tallied": ("in-pieces", "at-once"),
    "read": ("validated", "rescored", "salvaged"),
}
"""The options of runs that are killed."""
RESTARTS_REFUSED: Refused = (
    ("scores", "two-rubrics", "tasks", "one"),
    ("stored", "run prior", "tasks", "one pooled"),
)
ROUNDS = {"early": 1, "middle": 6, "late": 11, "twice": 3}
"""Calls for trials before a kill: rounds follow from the answers from step 25 on, which is late."""
SLOTS = 9


def restart_facts(written: Case) -> list[str]:
    """Return what a killed run has stored, and how it continues and ends."""
    case = {name: written.get(name, values[0]) for name, values in RESTARTS.items()}
    every = {"in-pieces": 7, "at-once": 10**9}[case["tallied"]]
    with TemporaryDirectory() as place, patch.object(pending, "TALLY_EVERY", every):
        return list(facts_of_restarts(case, Path(place)))


def config_at(case: Case, folder: Path, *, changed: bool) -> Any:
    """Return the config of a run, before or after its settings are changed."""
    found: dict[str, Any] = {"budget": {"tokens": 11_500} if case["budget"] == "tokens" else {"trials": 120}}
    found["budget"]["usage_on_failure"] = case["failed"]
    if case["stored"] != "none":
        old = earlier_run(case["scores"], case["tasks"], "some", few=True)
        found["references"] = [{"run": str(old), "models": ["past"]}]
        if case["stored"] == "prior":
            found = {"budget": found["budget"], "prior": {"from": str(old), "depth": 2}}
    config = config_of(whole(case), folder, sizes=FEW, **found)
    if not changed or case["changed"] == "nothing":
        return config
    worth = "[-2, 0, 3]" if case["scores"] == "graded" else "[-2, 3]"
    told = {
        "decisions": [
            "stopping.confidence=0.6",
            "stopping.equivalence=0.3",
            "goal={kind: top-k, k: 2}",
            "models[fair].price.input=9.0",
            "models[good].budget.trials=19",
            "budget.trials=126",
        ],
        "weights": ["tasks[long].weight=1.5", f"tasks[long].rubric.weights={worth}"],
        "discarded": ["on.discarded=[server]"],
        "copies": ["on.copies=independent"],
        "deterministic": ["models[good].deterministic=true"],
    }[case["changed"]]
    if case["scores"] == "numbers":
        told = [one for one in told if "rubric" not in one]
    return parse_config(config.text, "run.yaml", folder, told)


def whole(case: Case) -> dict[str, str]:
    """Return the options that the config has; the trials also have what a changed setting is about."""
    found = {
        name: case[name] if name in case and name != "read" else values[0] for name, values in RUNS.items()
    }
    about = {"discarded": "given-up", "copies": "repeated", "deterministic": "repeated"}.get(case["changed"])
    if about is not None:
        found["lost"] += f" {about}"
    return found


def facts_of_restarts(case: Case, folder: Path) -> Iterator[str]:
    run = folder / "run"
    built = build(config_at(case, folder, changed=False))
    session = built.session()
    answer = answering(whole(case), built, session)
    meta = {**built.meta(), "started_at": repr(runs.STARTED)}
    runs.store_run(run, meta, session, answer, rounds=ROUNDS[case["cut"]], slots=SLOTS)
    yield from killed_facts(case, run, session)
    for last in (False, True) if case["cut"] == "twice" else (True,):
        built = build(config_at(case, folder, changed=last))
        with ExitStack() as stack:
            going = _Run(built, run, RunOptions(), lambda _: None, stack)
            writer = going._continue()
            assert writer is not None
            yield from continued_facts(case, going, writer, rounds=None if last else 2)
        if not last:
            yield from killed_facts(case, run, going.session)
    yield from end_facts(case, run)


def killed_facts(case: Case, run: Path, session: Session) -> Iterator[str]:
    """Launch trials and answer none, as if the process was killed; yield what is stored of them."""
    if case["left"] != "nothing" and session.stopped is None:
        at = runs.STARTED + 50.0
        with RunWriter.open(run) as writer:
            requests = session.ask(9)
            writer.launch(requests, at)
            for place, request in enumerate(requests):
                for attempt, error in enumerate(ends_of(case["left"], place), start=1):
                    url = f"http://server{place % 2}/v1"
                    writer.attempt(
                        AttemptRecord(request.key, attempt, url, at, 0.5 + place, 503, error, "busy")
                    )
            writer.commit()
    with RunReader(run) as reader:
        unfinished = reader.unfinished()
        kinds = Counter(one.error for records in unfinished.values() for one in records)
        left = text([(f"{key.model}:{key.index}", number) for key, number in reader.unanswered()])
        lost = text(reader.lost_launches())
        yield f"killed trials={reader.count()} left={digest([left])} kinds={text(kinds)} lost={lost}"
        yield f"times {text(together(reader.fastest_answers().values()))} {text(reader.running_time())}"


def ends_of(left: str, place: int) -> tuple[str, ...]:
    """Return how the attempts of a trial failed."""
    if left == "failed":
        return (("timeout", "server"), ("refused",), ("timeout",))[place % 3]
    if left == "given-up":
        return ((CANCELLED,), (WITHDRAWN,), (), ("timeout", CANCELLED))[place % 4]
    return ()


def continued_facts(case: Case, going: Any, writer: RunWriter, rounds: int | None) -> Iterator[str]:
    """Go on to the end, or for some rounds; yield what was decided again, and what is asked."""
    session: Session = going.session
    with writer.reader() as reader:
        unfinished = reader.unfinished()
        kinds = [one.body["kind"] for one in reader.decisions()]
    killed = {key for key, records in unfinished.items() if records[-1].error == KILLED}
    yield f"continued trials={session.results().trials} decisions={text(Counter(kinds))}"
    spent = [
        f"{one.name}={text([one.spent, one.reserved, one.presumed])}"
        for one in session.results().budgets
        if one.scope == "run"
    ]
    yield " ".join(["account", *spent])
    answer = answering(whole(case), going.built, session)
    asked: list[TrialRequest] = []
    at = runs.STARTED + 100.0
    while session.stopped is None and rounds != 0:
        rounds = None if rounds is None else rounds - 1
        requests = session.ask(SLOTS)
        asked += requests
        writer.launch(requests, at)
        at += 1.0
        records = []
        for one in requests:
            record = answer(one, at)
            if one.key in killed:
                record = replace(record, discarded=("killed", *record.discarded))
            records.append(record)
            writer.attempt(AttemptRecord(one.key, 1, "http://server0/v1", at - 1.0, 0.5))
            writer.outcome(record)
        for decision in session.tell([one.outcome for one in records]):
            writer.decision(at, decision.trials, asdict(decision))
        writer.commit()
    results = session.results()
    if session.stopped is not None:
        writer.snapshot(SnapshotRecord(at, at - runs.STARTED, results.trials, to_json(results)))
    writer.commit()
    yield asked_fact(asked)
    yield from condensed([f"decided {decision_fact(one)}" for one in session.decisions])


def end_facts(case: Case, run: Path) -> Iterator[str]:
    """Yield whether counts are those of the rows, and what commands say of the run."""
    with RunReader(run) as reader:
        yield f"counted {counts_agree(reader)} changes={len(reader.meta()['changes']) > 2}"
    yield from command_facts("validate", run)
    if case["read"] == "rescored":
        yield from condensed(command_facts("rescore", run, "--json", *rescoring(case)))
        yield from command_facts("validate", run)
    if case["read"] == "salvaged":
        target = run.with_name("saved")
        yield from command_facts("validate", run, "--salvage", target)
        with RunReader(target) as reader:
            yield f"saved {reader.count()} {counts_agree(reader)}"
    report = {name: part for name, part in report_data(runs.read_summary(run)).items() if name != "run"}
    yield from condensed(json_facts("report", report))


def counts_agree(reader: RunReader) -> bool:
    """Tell whether the tallies of a run are what its rows say, counted one by one."""
    stored: Counter[tuple[str, str, str]] = Counter()
    scored: Counter[tuple[str, str, str]] = Counter()
    lost: Counter[tuple[str, str]] = Counter()
    cut: Counter[tuple[str, str, str]] = Counter()
    for trial in reader.trials():
        request = trial.request
        key = (request.key.model, request.task, request.question)
        stored[key] += 1
        scored[key] += trial.score is not None and trial.score.category is not None
        if trial.missing is not None:
            lost[key[0], trial.missing] += 1
        cut[key] += trial.completion is not None and trial.score is not None and trial.completion.cut_off
    cells = reader.cells()
    places = list(zip(cells.model.tolist(), cells.question.tolist(), strict=True))
    keys = [(cells.models[model], *cells.questions[question]) for model, question in places]
    found: Mapping[Any, int] = {(cells.models[model], why): n for (model, why), n in cells.missing.items()}
    return (
        dict(zip(keys, cells.stored.tolist(), strict=True)) == dict(stored)
        and dict(zip(keys, cells.scored.tolist(), strict=True)) == {key: scored[key] for key in stored}
        and dict(zip(keys, cells.truncated.tolist(), strict=True)) == {key: cut[key] for key in stored}
        and found == dict(lost)
    )
