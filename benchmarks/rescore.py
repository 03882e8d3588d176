"""How long stored answers take to be rescored: ``adaptive-eval rescore`` against reading them alone.

python benchmarks/rescore.py [--answers 100000]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import tempfile
import time
from pathlib import Path

from adaptive_eval.build.assembly import build
from adaptive_eval.cli.main import cli
from adaptive_eval.config import parse_config
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TrialRecord
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.trial import Completion, Score, TrialKey, TrialRequest, Usage

CONFIGS = Path(__file__).parents[1] / "configs"
TEXT = "First I write down what is known. " * 40


def write_run(directory: Path, answers: int) -> None:
    """Write a run with so many answers of about 1.4 KB."""
    text = (CONFIGS / "quickstart.yaml").read_text("utf-8")
    built = build(parse_config(text, "quickstart.yaml", CONFIGS, ["budget.trials=10M"]))
    run_sequence, questions = built.session().board.run_sequence, built.spec.tasks[0].questions
    models = [model.name for model in built.spec.models]
    with RunWriter.create(directory, meta=built.meta(), durability="normal") as writer:
        for step in range(answers // len(models)):
            question, repeat = questions[run_sequence.at(step)[1]], run_sequence.repeat(step)
            answer = Completion(f"{TEXT}\\boxed{{{step % 50}}}", "stop", Usage(90, 400), 1.0)
            for model in models:
                request = TrialRequest(TrialKey(model, step), "arithmetic", question, repeat, seed=step)
                writer.outcome(TrialRecord(request, 1.0, answer, Score(0, "x", {"is_correct": False})))


def main() -> None:
    """Write a run, read it, rescore it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=int, default=100_000)
    answers = parser.parse_args().answers
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder, "run")
        write_run(run, answers)
        started = time.perf_counter()
        with RunReader(run) as reader:
            count = sum(1 for _ in reader.trials())
        reading = time.perf_counter() - started
        started, cpu = time.perf_counter(), time.process_time()
        with contextlib.redirect_stdout(io.StringIO()):
            cli.main(["rescore", str(run), "--scorer", "exact"], standalone_mode=False)
        rescoring, cpu = time.perf_counter() - started, time.process_time() - cpu
    ratio = rescoring / reading
    print(
        f"{count:,} answers: read in {reading:.1f} s, rescored in {rescoring:.1f} s ({ratio:.1f}x), "
        f"{cpu:.1f} s of CPU time"
    )


if __name__ == "__main__":
    main()
