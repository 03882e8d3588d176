"""Run files for tests of monitor and report, made by a real session over biased coins.

:func:`make_run` drives :class:`~adaptive_eval.core.session.Session` by hand and stores everything a running
process would store, with times that are counted and not measured.
"""

import json
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import asdict, fields, replace
from pathlib import Path

import numpy as np
from click.testing import CliRunner, Result
from session_scripts import make_spec

from adaptive_eval import __version__
from adaptive_eval.build.session_spec import as_configured, rounds_identity, worth_of
from adaptive_eval.cli.main import cli
from adaptive_eval.config import parse_config
from adaptive_eval.core.results import to_json
from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import Price, SessionSpec
from adaptive_eval.core.stored_spec import SESSION, spec_to_json
from adaptive_eval.store import run_files
from adaptive_eval.store.codec import unpack, unpacked
from adaptive_eval.store.queries import FILTERS, RESCORED, TRIALS
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import AttemptRecord, SnapshotRecord, TrialRecord
from adaptive_eval.store.trial_rows import TrialDecoder, checksum_of, scoring_checksum
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.trial import Completion, Score, TrialRequest, Usage
from adaptive_eval.views.reading import summarise
from adaptive_eval.views.summary import RunSummary

STARTED = 1_750_000_000.0  # 2025-06-15T15:06:40Z
COINS = {"oak": 0.95, "elm": 0.6, "ash": 0.6, "yew": 0.2}
CONFIG = "name: forest\nmodels:\n  - name: oak  # the ```best```\n"
WHOLE_CONFIG = """
name: forest
models:
- {name: oak, endpoints: ["http://127.0.0.1:8000/v1"]}
- {name: elm, endpoints: ["http://127.0.0.1:8000/v1"]}
- {name: ash, endpoints: ["http://127.0.0.1:8000/v1"]}
- {name: yew, endpoints: ["http://127.0.0.1:8000/v1"]}
tasks:
- {name: forest, dataset: trees.jsonl, scorer: numeric}
"""


class Clock:
    """A clock that a test moves."""

    def __init__(self, now: float = 0.0):
        self.now = now

    def __call__(self) -> float:
        return self.now


class Coins:
    """Answers of biased coins: the same for the same request, whenever it comes."""

    def __init__(self, coins: dict[str, float], *, missing: float = 0.0, truncated: float = 0.0):
        self.coins = coins
        self.missing = missing
        self.truncated = truncated

    def answer(self, request: TrialRequest, at: float, *, after_stop: bool = False) -> TrialRecord:
        """Return the stored form of one trial."""
        rng = np.random.default_rng(request.seed)
        lost, cut, right = rng.random(3)
        if lost < self.missing:
            return TrialRecord(request, at, None, None, missing="timeout", after_stop=after_stop)
        correct = int(right < self.coins[request.key.model])
        text, end = f"The answer is \\boxed{{{correct}}}.", "length" if cut < self.truncated else "stop"
        completion = Completion(text, end, Usage(100, 40), latency=0.5 + float(cut))
        score = Score(correct, str(correct), {"is_correct": bool(correct)})
        return TrialRecord(request, at, completion, score, after_stop=after_stop)


def command(*arguments: object, code: int | None = None) -> Result:
    """Run a command of ours here; with `code`, it has to end with that code."""
    done = CliRunner().invoke(cli, [str(one) for one in arguments], standalone_mode=False)
    if code is not None:
        assert (done.exception, done.return_value or 0) == (None, code), (done.output, done.exception)
    return done


def printed(*arguments: object, code: int = 0) -> str:
    """Return what a command prints that ends with this code."""
    return command(*arguments, code=code).stdout


def spec_of(coins: dict[str, float], *, trials: int | None = None, **stopping) -> SessionSpec:
    """Return a ranking over these models and 30 questions."""
    limits = {"equivalence": 0.15, "trials": trials} | stopping
    spec = make_spec(list(coins), 30, seed=7, max_tokens=64, **limits)
    models = tuple(replace(model, price=Price(0.1, 0.4)) for model in spec.models)
    return replace(spec, models=models, tasks=(replace(spec.tasks[0], name="forest"),))


def config_of(spec: SessionSpec) -> str:
    """Return the text of a config that leads to a session of :func:`spec_of`."""
    models = []
    for model in spec.models:
        price = {"input": model.price.input, "output": model.price.output}
        sampling = {"max_tokens": model.max_tokens}
        served = {"endpoints": ["http://127.0.0.1:8000/v1"], "sampling": sampling, "price": price}
        models.append({"name": model.name, **served})
    chosen = {one.name: getattr(spec.stopping, one.name) for one in fields(spec.stopping)}
    data = {
        "name": "forest",
        "seed": spec.seed,
        "models": models,
        "tasks": [{"name": "forest", "dataset": "trees.jsonl", "scorer": "numeric"}],
        "stopping": {name: value for name, value in chosen.items() if value is not None},
        "allocation": {"models": spec.allocation.models, "questions": spec.allocation.questions},
        "budget": {"trials": spec.budget.trials} if spec.budget.trials else {},
    }
    return json.dumps(data)


def description_of(text: str, spec: SessionSpec) -> dict[str, str]:
    """Return what a run that was started from a config says of itself, in addition to the config."""
    config = parse_config(text, "forest.yaml")
    scoring = {
        one.name: one.scoring_identity() | {"missing": list(config.on.missing)} for one in config.tasks
    }
    identity = config.trial_identity() | {"samples_per_request": 1, "code": None}
    for task in identity["tasks"].values():
        task["dataset"] = "a checksum"
    return {
        "source": "forest.yaml",
        "base_dir": "/nowhere",
        "config_hash": config.hash(),
        "identity": json.dumps(identity | rounds_identity(spec)),
        "scoring": json.dumps(scoring),
        "worth": json.dumps(worth_of(spec)),
        "thresholds": "{}",
        "changes": "[]",
        "versions": json.dumps({"adaptive-eval": __version__}),
    }


_MADE: dict[str, tuple[dict[str, bytes], Session]] = {}
"""The files of each run that this process has made, and its session, which nobody may change."""


def make_run(directory: Path, coins: dict[str, float] | None = None, **options) -> Session:
    """Make a run file as :func:`_make_run` does, or copy the one that was made so before."""
    asked = repr((coins, options))
    if asked not in _MADE:
        session = _make_run(directory, coins, **options)
        _MADE[asked] = {path.name: path.read_bytes() for path in directory.iterdir()}, session
        return session
    files, session = _MADE[asked]
    directory.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (directory / name).write_bytes(data)
    return session


def read_summary(directory: Path) -> RunSummary:
    """Return what a report says of a run."""
    with RunReader(directory) as reader:
        return summarise(reader)


def with_details(summary: RunSummary, **changes) -> RunSummary:
    """Return the summary with changed details."""
    return replace(summary, details=replace(summary.details, **changes))


def summary_of(directory: Path, coins: dict[str, float] | None = None, **options) -> RunSummary:
    """Make a run as :func:`make_run` does, and return what a report says of it."""
    make_run(directory, coins, **options)
    return read_summary(directory)


def _make_run(
    directory: Path,
    coins: dict[str, float] | None = None,
    *,
    missing: float = 0.0,
    truncated: float = 0.0,
    trials: int | None = None,
    rounds: int | None = None,
    meta: dict[str, str] | None = None,
    one_by_one: bool = False,
    held: tuple[str, int] | None = None,
    slots: int = 16,
    order: int = 1,
    whole: bool = False,
    **stopping,
) -> Session:
    """Make a run file and return the session that made it.

    Parameters
    ----------
    directory : Path
        The run's directory.
    coins : dict
        Probability of a right answer by model.
    missing, truncated : float
        Probability that a trial has no answer, that an answer is cut off.
    trials : int, optional
        Trial budget.
    rounds : int, optional
        Leave the run after so many rounds, as a kill would: no stop, the last answers not in a snapshot.
    meta : dict, optional
        More of the run's description.
    one_by_one : bool
        Tell every answer by itself: those in flight when the session stops come after the stop.
    held : tuple, optional
        Model and step of a trial that is never answered: those after it wait.
    slots, order : int
        Requests in flight; their answers come one by one in this order, -1 for the latest first.
    whole : bool
        Describe it as runs are that were started from a config.
    """
    coins = coins or COINS
    spec = spec_of(coins, trials=trials, **stopping)
    described = {"name": "forest", "started_at": repr(STARTED), "config": CONFIG, "seed": "7"}
    if whole:
        text = config_of(spec)
        spec = as_configured(parse_config(text, "forest.yaml"), spec)
        described |= {"config": text, **description_of(text, spec)}
    described |= meta or {}
    session = Session(spec)
    answers = Coins(coins, missing=missing, truncated=truncated)
    store_run(
        directory,
        described,
        session,
        answers.answer,
        rounds=rounds,
        one_by_one=one_by_one,
        held=held,
        slots=slots,
        order=order,
    )
    return session


def store_run(
    directory: Path,
    meta: dict[str, str],
    session: Session,
    answer: Callable[..., TrialRecord],
    *,
    rounds: int | None = None,
    one_by_one: bool = False,
    held: tuple[str, int] | None = None,
    slots: int = 16,
    order: int = 1,
) -> None:
    """Drive a session with these answers to its end, and store all of it; see :func:`_make_run`."""
    described = {SESSION: spec_to_json(session.spec)} | meta
    with RunWriter.create(directory, meta=described, durability="normal") as writer:
        at, done = STARTED, 0
        _snapshot(writer, session, at)
        while session.stopped is None and done != rounds:
            done += 1
            requests = [one for one in session.ask(slots) if (one.key.model, one.key.index) != held]
            writer.launch(requests, at)
            at += 1.0
            for part in [[request] for request in requests[::order]] if one_by_one else [requests]:
                late = session.stopped is not None
                answered = [answer(request, at, after_stop=late) for request in part]
                _store(writer, answered, at)
                for decision in session.tell([record.outcome for record in answered]):
                    writer.decision(at, decision.trials, asdict(decision))
            if done != rounds:
                _snapshot(writer, session, at)
            writer.commit()


def _store(writer: RunWriter, records: list[TrialRecord], at: float) -> None:
    for record in records:
        key, lost = record.request.key, record.missing is not None
        error = "timeout" if lost else None
        writer.attempt(AttemptRecord(key, 1, "http://127.0.0.1:8000/v1", at - 1.0, 0.5, error=error))
        writer.outcome(record)


def _snapshot(writer: RunWriter, session: Session, at: float) -> None:
    results = session.results()
    writer.snapshot(SnapshotRecord(at, at - STARTED, results.trials, to_json(results)))


def reseal(run: Path) -> None:
    """Give a run with forged rows the checksums that fit: of its description, trials and scorings."""
    with sqlite3.connect(run / "run.db") as db:
        models = dict(_names(db, "models"))
        tasks = dict(_names(db, "tasks"))
        questions = {}
        for number, task, name in db.execute("SELECT id, task, name FROM questions"):
            questions[number] = tasks[task], unpack(name)
        decoder = TrialDecoder(models, questions, dict(_names(db, "signal_sets")))
        whole = dict.fromkeys(FILTERS) | {"last": -1, "end": 2**62, "batch": 10**6}
        for row in db.execute(TRIALS, whole).fetchall():
            made = checksum_of(*decoder.parts(*row))
            db.execute("UPDATE answers SET checksum = ? WHERE outcome = ?", (made, row[0]))
        for number, name, at, body in db.execute("SELECT id, name, at, body FROM scorings").fetchall():
            scores = map(unpacked, db.execute(RESCORED, {"scoring": number}))
            made = scoring_checksum((unpack(name), at, unpack(body)), scores)
            db.execute("UPDATE scorings SET checksum = ? WHERE id = ?", (made, number))
        run_files.seal(db)
    db.close()


def _names(db: sqlite3.Connection, table: str) -> Iterator[tuple[int, str]]:
    for number, name in db.execute(f"SELECT id, name FROM {table}"):
        yield number, unpack(name)
