"""The process that test_store_crash.py kills: ``python store_crash_child.py MODE DIRECTORY SEED``.

It prints the number of trials committed so far after each commit. In mode ``write`` it closes and reopens the
run now and then, in mode ``stay`` it does not.
"""

import random
import sys
from pathlib import Path

from adaptive_eval.store.records import AttemptRecord, SnapshotRecord, TrialRecord
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.trial import Completion, Score, TrialKey, TrialRequest, Usage

MODELS = ("a", "b", "c")


def trial(number: int) -> TrialRecord:
    """Return trial `number` of the run; everything in it follows from the number."""
    rng = random.Random(number)
    step, model = divmod(number, len(MODELS))
    request = TrialRequest(
        TrialKey(MODELS[model], step), "t", f"q{step % 50}", step // 50, rng.getrandbits(31)
    )
    # mostly short, now and then longer than a page many times over; digits hardly compress
    length = rng.choice((5, 50, 2_000, 20_000))
    text = "".join(rng.choices("0123456789abcdef", k=length))
    completion = Completion(text, "stop", Usage(10, length), 0.5, "served", f"id-{number}")
    score = Score(number % 2, text[:5], {"is_correct": bool(number % 2)})
    sent = {"model": MODELS[model], "prompt": request.question, "seed": request.seed}
    return TrialRecord(request, float(number), completion, score, sent=sent, charged=completion.usage)


def write(directory: Path, rng: random.Random, *, reopen: bool) -> None:
    """Continue the run for ever."""
    while True:
        exists = (directory / "run.db").exists()
        with (
            RunWriter.open(directory) if exists else RunWriter.create(directory, meta={"upto": "0"}) as writer
        ):
            with writer.reader() as reader:
                number = reader.count()
            for _ in range(rng.randint(1, 60) if reopen else sys.maxsize):
                number = write_group(writer, number, rng.randint(1, 20))
                print(number, flush=True)


def write_group(writer: RunWriter, number: int, size: int) -> int:
    """Commit trials `number` to ``number + size`` with all that belongs to them, as one group."""
    records = [trial(number + offset) for offset in range(size)]
    writer.launch([record.request for record in records], at=float(number))
    for record in records:
        writer.attempt(AttemptRecord(record.request.key, 1, "http://x/v1", record.finished_at, 0.5, 200))
        writer.outcome(record)
    number += size
    writer.decision(float(number), number, {"upto": number})
    writer.snapshot(SnapshotRecord(float(number), 0.0, number, {"upto": number}))
    writer.set_meta("upto", str(number))
    writer.commit()
    return number


if __name__ == "__main__":
    mode, directory, seed = sys.argv[1:]
    write(Path(directory), random.Random(int(seed)), reopen=mode == "write")
