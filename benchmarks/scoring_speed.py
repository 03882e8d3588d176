"""Answers that the scorer math judges in a second, and what an answer costs that never comes to an end.

The wall clock depends on whatever else the machine does; the figure to compare is answers per second of CPU
time, of this process and of its workers (their part is measured here, in one process). Two idle cores do
twice as many a second. Every answer is spelt differently, so that no cache helps. Run from the repository::

    .venv/bin/python benchmarks/scoring_speed.py
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from adaptive_eval.scoring import math
from adaptive_eval.scoring.workers import in_worker
from adaptive_eval.trial import Completion, Question

PAIRS = Path(__file__).parents[1] / "tests" / "data"
ROUNDS = 8
AT_ONCE = 8
LIMIT = 2.0


def answers() -> list[tuple[str, str]]:
    """Return answer and target of the tricky pairs for math, each several times and spelt differently."""
    files = (PAIRS / "answer_pairs.jsonl", PAIRS / "held_out_pairs.jsonl")
    rows = [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]
    pairs = [(row["answer"], row["target"]) for row in rows if row["scorer"] == "math"]
    wider = [" " * number for number in range(ROUNDS)]
    return [(answer.replace("{", "{" + space), target) for space in wider for answer, target in pairs]


def score(pair: tuple[str, str]) -> int:
    """Score one pair."""
    found = math.MathScorer().score(Completion(pair[0], "stop"), Question("t", "q", pair[1]))
    return found.category or 0


def _here(function: Callable[..., bool], *arguments: str, limit: float, imports: str) -> bool:
    with suppress(Exception):  # as a worker that reports a failure
        return function(*arguments)
    return False


def main() -> None:
    """Measure and print."""
    work = answers()
    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(score, work[:AT_ONCE]))  # the workers are up
        began, cpu = time.perf_counter(), time.process_time()
        right = sum(threads.map(score, work))
        wall, ours = time.perf_counter() - began, time.process_time() - cpu
    math.in_worker = _here  # the same work without processes, whose time would not be known
    began = time.process_time()
    for pair in work:
        score(pair)
    theirs = time.process_time() - began
    math.in_worker = in_worker
    print(
        f"math: {len(work):,} answers, {right:,} right; {wall:.1f} s here, {len(work) / wall:,.0f} a second"
    )
    rate = 2 * len(work) / (ours + theirs)
    print(f"      {ours:.1f} s + {theirs:.1f} s of CPU time: {rate:,.0f} a second on two idle cores")

    began = time.perf_counter()
    tower = Completion(r"\boxed{9^{9^{9^{9^{9}}}}}", "stop")
    found = math.MathScorer(time_limit=LIMIT).score(tower, Question("t", "q", r"\frac{1}{3}"))
    print(f"a hanging answer: {time.perf_counter() - began:.1f} s of {LIMIT:g} s allowed: {found.reason}")


if __name__ == "__main__":
    main()
