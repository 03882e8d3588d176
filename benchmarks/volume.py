"""What a run of millions of trials with answers of 4 KB costs: bytes, writing, looking, reporting, exporting.

Two run files are made. The first holds ``--answers`` trials as the engine writes them, with English text:
distinct answers put together from paragraphs of Python's own documentation. From it come the bytes and the
time that a trial takes, packed in several ways, and the speed of reading all answers and of exporting them.
The second holds ``--trials`` trials with empty answers, made by copying rows with SQL; from it come the
first look of the web page and the report. What is read is read by a process of its own, beside which its
memory is printed.

    python benchmarks/volume.py                                    # about four minutes
    python benchmarks/volume.py --trials 5000000 --answers 5000    # needs 1.5 GB
"""

from __future__ import annotations

import argparse
import ast
import random
import shutil
import sqlite3
import subprocess
import sys
import sysconfig
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from unittest.mock import patch

import zstandard
from watching import MODELS, NAMES, QUESTIONS, STARTED, Moments, make, store

from adaptive_eval.store.queries import FILTERS, TRIALS
from adaptive_eval.store.records import AttemptRecord, TrialRecord
from adaptive_eval.store.run_files import in_words, stored_bytes, trial_bytes
from adaptive_eval.store.trial_rows import TrialDecoder, checksum_of
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.trial import Completion, Score, TrialKey, TrialRequest, Usage

ANSWER_CHARACTERS = 4096
PER_COMMIT = 100
IMPORTED = {"imported": '{"weights": {"bench": [0, 1]}}'}
BASE = 20_000
"""Trials of the second file that are written; the others are copies of them."""


def paragraphs() -> list[str]:
    """Return the paragraphs of the docstrings of Python's standard library."""
    found = set()
    for path in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py")):
        if "site-packages" in path.parts or "test" in path.parts:
            continue
        try:
            tree = ast.parse(path.read_text("utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
                found.update((ast.get_docstring(node) or "").split("\n\n"))
    topics = Path(sysconfig.get_path("stdlib"), "pydoc_data", "topics.py")
    for node in ast.walk(ast.parse(topics.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.update(node.value.split("\n\n"))
    return sorted(text for text in found if len(text) > 80)


def answers(count: int) -> Iterator[str]:
    """Yield distinct answers."""
    rng, known = random.Random(1), paragraphs()
    for _ in range(count):
        parts: list[str] = []
        while sum(map(len, parts)) < ANSWER_CHARACTERS:
            parts.append(rng.choice(known))
        yield "\n\n".join(parts)[:ANSWER_CHARACTERS]


def timed(name: str, work: Callable[[], object], per: int = 0) -> None:
    """Do `work` and print what it took."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    rate = f"   {1e6 * cpu / per:7.1f} µs CPU, {per / wall:9,.0f} a second" if per else ""
    print(f"{name:<34} {wall:8.2f} s {cpu:8.2f} s CPU {peak_memory():6.0f} MB{rate}", flush=True)


def peak_memory() -> float:
    """Return the most memory this process has had, in MB; `getrusage` would count its parent's too."""
    status = Path("/proc/self/status").read_text("utf-8")
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def packing() -> None:
    """Compare ways to pack one answer."""
    texts = [text.encode() for text in answers(2500)]
    ways: dict[str, Callable[[bytes], bytes]] = {
        "zlib 1": lambda data: zlib.compress(data, 1),
        "zstd 3": zstandard.ZstdCompressor(level=3).compress,
        "zstd 6": zstandard.ZstdCompressor(level=6).compress,
    }
    for name, pack in ways.items():
        began = time.process_time()
        size = sum(len(pack(text)) for text in texts) / len(texts)
        micros = 1e6 * (time.process_time() - began) / len(texts)
        print(f"  {name:<24} {size:6.0f} B of {ANSWER_CHARACTERS}   {micros:5.1f} µs", flush=True)


def write(directory: Path, texts: Iterator[str]) -> None:
    """Write trials as the engine does: launch, attempt, outcome, a commit now and then."""
    rng = random.Random(2)
    with RunWriter.create(directory, meta=IMPORTED, durability="normal") as writer:
        for number, text in enumerate(texts):
            step, model = divmod(number, MODELS)
            name = NAMES[model]
            request = TrialRequest(
                TrialKey(name, step), "bench", f"q{step % QUESTIONS}", step // QUESTIONS, rng.getrandbits(31)
            )
            writer.launch([request], STARTED + number)
            writer.attempt(AttemptRecord(request.key, 1, "http://127.0.0.1:8000/v1", STARTED, 1.5, 200))
            answer = Completion(text, "stop", Usage(120, 1000), 1.5, name, f"cmpl-{rng.getrandbits(128):x}")
            score = Score(int(rng.random() < 0.6), "42", {"is_correct": True}, "equal to the target")
            sent = {"model": name, "messages": [{"role": "user", "content": f"Question {step % QUESTIONS}"}]}
            writer.outcome(TrialRecord(request, STARTED + number, answer, score, sent=sent))
            if number % PER_COMMIT == PER_COMMIT - 1:
                writer.commit()


def with_answers(folder: Path, count: int) -> None:
    """Measure writing, reading and exporting trials with answers."""
    texts = list(answers(count))
    timed("writing, empty answers", lambda: write(folder / "empty", iter([""] * count)), count)
    with patch("adaptive_eval.store.codec.pack", lambda text: text):
        timed("writing, answers uncompressed", lambda: write(folder / "plain", iter(texts)), count)
    timed("writing, answers compressed", lambda: write(folder / "full", iter(texts)), count)
    empty, plain, full = (stored_bytes(folder / name) / count for name in ("empty", "plain", "full"))
    print(f"bytes a trial: {full:,.0f}; {plain:,.0f} uncompressed, {empty:,.0f} with an empty answer")
    print(
        f"5 million trials: {in_words(5e6 * full)}; forecast {in_words(5e6 * trial_bytes(1024))}", flush=True
    )
    for name, code in READINGS.items():
        apart(name, folder / "full", code, count)
    size = sum(path.stat().st_size for path in folder.glob("parts/*.parquet")) / count
    print(f"bytes a row of Parquet: {size:,.0f}", flush=True)


READER = "from adaptive_eval.store.reader import RunReader\nreader = RunReader(run)\n"
EXPORT = (
    "from adaptive_eval.build.describe import describe_run\n"
    "from adaptive_eval.interop import run_tables\n"
    "rows = lambda: run_tables.trial_rows(reader, describe_run(reader))\n"
)
READINGS = {
    "reading all answers": "look = lambda: sum(1 for _ in reader.trials())",
    "export to Parquet parts": EXPORT
    + "look = lambda: run_tables.write_parts(rows(), run.with_name('parts'))",
    "export to JSON Lines": EXPORT + "look = lambda: run_tables.write_jsonl(rows(), open('/dev/null', 'w'))",
}
LOOKS = {
    "first look of the page": "from adaptive_eval.views.web_runs import WatchedRun\n"
    "look = WatchedRun(run).page",
    "report": "from adaptive_eval.views.files import write_reports\nlook = lambda: write_reports(run)",
    "newest 50 trials": "look = lambda: list(reader.trials(newest_first=True, limit=50))",
    "requests without an answer": "look = reader.unanswered",
}


def apart(name: str, run: Path, code: str, per: int = 0) -> None:
    """Time something in a process of its own."""
    program = (
        f"from pathlib import Path\nfrom volume import timed\nrun = Path({str(run)!r})\n{READER}{code}\n"
    )
    command = [sys.executable, "-c", f"{program}timed({name!r}, look, {per})"]
    subprocess.run(command, cwd=Path(__file__).parent, check=True)


COPIES = (
    """
    INSERT INTO outcomes
    SELECT id + :to, model, step + :steps, question, repeat + :passes, seed, category, prompt_tokens,
           completion_tokens, cached_tokens, latency + abs(random() % 1000) / 1000.0, finished_at,
           finish_reason, missing, after_stop, answer, response, discarded
    FROM outcomes WHERE id < :many
    """,
    """
    INSERT INTO answers
    SELECT outcome + :to, body, sent_seed, checksum, '', logprobs, details, signal_set, signals
    FROM answers WHERE outcome < :many
    """,
)
REST = (
    "INSERT INTO launches SELECT id, model, step, question, repeat, seed, finished_at FROM outcomes",
    "INSERT INTO attempts SELECT id, model, step, 1, 0, finished_at, 1.5, 200, NULL, '' FROM outcomes",
    "INSERT INTO endpoints (id, name) VALUES (0, 'http://127.0.0.1:8000/v1')",
)


ALL_TRIALS = {
    **dict.fromkeys(FILTERS),
    "last": -1,
    "end": sys.maxsize,
    "batch": -1,
}


def with_checksums(db: sqlite3.Connection) -> None:
    """Give every trial the checksum that the store gives it: copies have other steps and latencies."""
    questions = [("bench", f"q{number}") for number in range(QUESTIONS)]
    decoder = TrialDecoder(NAMES, questions, ['["is_correct"]'])
    checksums = [(checksum_of(*decoder.parts(*row)), row[0]) for row in db.execute(TRIALS, ALL_TRIALS)]
    db.execute("BEGIN")
    db.executemany("UPDATE answers SET checksum = ? WHERE outcome = ?", checksums)
    db.execute("COMMIT")


def multiply(directory: Path, trials: int) -> None:
    """Make a run of `trials` trials, without answers."""
    moments = Moments(BASE)
    make(directory, BASE, moments)
    with closing(sqlite3.connect(directory / "run.db", isolation_level=None)) as db:
        db.execute("PRAGMA synchronous = OFF")
        stored = BASE
        while stored < trials:
            many = min(stored, trials - stored)
            steps = stored // MODELS
            to = {"to": stored, "steps": steps, "passes": steps // QUESTIONS, "many": many}
            for statement in COPIES:
                db.execute(statement, to)
            stored += many
        for statement in REST:
            db.execute(statement)
        with_checksums(db)
    with RunWriter.open(directory, durability="normal") as writer:
        store(writer, [], moments, trials, STARTED + trials)


def main() -> None:
    """Make the files and print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=1_000_000, help="of the run that is looked at")
    parser.add_argument("--answers", type=int, default=20_000, help="of 4 KB that are written")
    parser.add_argument("--directory", type=Path, help="where the files are made, and removed again")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=options.directory))
    try:
        packing()
        with_answers(folder, options.answers)
        if options.trials:
            timed(f"making {options.trials:,} trials", lambda: multiply(folder / "long", options.trials))
            print(f"the file: {in_words(stored_bytes(folder / 'long'))}", flush=True)
            for name, code in LOOKS.items():
                apart(name, folder / "long", code)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
