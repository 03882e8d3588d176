"""Every scorer on 100,000 answers made to break it: what it raises, and how long an answer takes at most.

Half of the answers are random pieces that the extractors look for. The rest are the tricky pairs of the tests
with parts cut out, doubled and moved; random boxes; and one piece repeated beyond the 50,000 characters that
a scorer looks at. Times are CPU time of the thread, or wall-clock time where a scorer compares in other
processes, which end at the time limit (2 s here for math, 5 s for the others). Run from the repository::

    .venv/bin/python benchmarks/scoring_fuzz.py [--answers 100000] [--kinds math,numeric] [--seed 0]
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from adaptive_eval.scoring.registry import build_scorer
from adaptive_eval.scoring.scorer import Scorer
from adaptive_eval.trial import Completion, Question

DATA = Path(__file__).parents[1] / "tests" / "data"
AT_ONCE = 2
SLOW = 0.1
Measured: TypeAlias = tuple[float, str, str]
KINDS: dict[str, tuple[dict[str, object], Question]] = {
    "exact": ({}, Question("t", "q", "Paris")),
    "numeric": ({}, Question("t", "q", "42")),
    "choice": ({}, Question("t", "q", "B", choices=("red", "blue", r"$\frac{1}{2}$"))),
    "math": ({"time_limit": 2.0}, Question("t", "q", r"\frac{4}{3}")),
    "regex": ({}, Question("t", "q", r"(a+)+b|Par(is)?\b")),
    "contains": ({}, Question("t", "q", "Paris")),
    "json": ({}, Question("t", "q", '{"city": "Paris"}')),
    "json with a schema": ({"schema": {"type": "object", "required": ["city"]}}, Question("t", "q", "")),
    "f1": ({}, Question("t", "q", "Paris in France")),
    "rouge": ({}, Question("t", "q", "Paris in France")),
}
IN_PROCESSES = frozenset({"math", "json with a schema", "rouge"})
PIECES = [
    *(r"\boxed{", r"\boxed ", "{", "}", "[", "]", r"\{", "\\", r"\frac{", r"\dfrac", r"\sqrt{", r"\text{"),
    *("1", "42", "1,234", "e5", "×10", "½", "²", "٣", ",", ".", "-", "/", "^", "_", "%", "$", "$$", "US$"),
    *(" ", "\n", "\t", "**", "(", ")", "A", "B", "a", "red", "blue", " is ", " or ", "not", "million", "="),
    *("The answer is ", "Answer:", "#### ", "答案是", "<think>", "</think>", "<answer>", "9" * 40),
    *("\u202f", "\x00", "\ud800", "\u202e", "\u0301", "\ufdfa", '{"city": ', '"Paris"', "```json\n", "```"),
    *(r"\cup", r"\infty", r"\pi", r"\int", r"\sum_{", r"\binom{", r"\begin{pmatrix}", r"\end{pmatrix}", "&"),
    *("x^", "!", "sin", r"\log", r"\left(", r"\le", "I choose ", "<", ">", r"\in", r"\mathbb{R}", "i", "x"),
]  # fmt: skip


def answers(seed: int) -> Iterator[str]:
    """Yield answers without end."""
    draw = random.Random(seed)
    files = (DATA / "answer_pairs.jsonl", DATA / "held_out_pairs.jsonl")
    tricky = [json.loads(line)["answer"] for file in files for line in file.read_text("utf-8").splitlines()]
    while True:
        kind = draw.random()
        if kind < 0.5:
            yield "".join(draw.choices(PIECES, k=draw.randint(0, 60)))
        elif kind < 0.8:
            yield _mutated(draw.choice(tricky), draw)
        elif kind < 0.98:
            inner = "".join(draw.choices(PIECES, k=draw.randint(1, 25)))
            yield rf"So \boxed{{{inner}}}."
        else:
            unit = "".join(draw.choices(PIECES, k=draw.randint(1, 3)))
            tail = draw.choice(["", "π", r"\boxed{1}", "}" * 1000])
            yield unit * (draw.choice([300, 3_000, 60_000]) // len(unit)) + tail


def _mutated(text: str, draw: random.Random) -> str:
    for _ in range(draw.randint(1, 4)):
        start = draw.randint(0, len(text))
        end = min(len(text), start + draw.randint(0, 12))
        piece = draw.choice(["", draw.choice(PIECES), 2 * text[start:end], text[start:end] * 40])
        text = text[:start] + piece + text[end:]
    return text


def measured(scorer: Scorer, question: Question, clock: Callable[[], float], text: str) -> Measured:
    """Return the seconds that an answer took, its outcome, and itself."""
    began = clock()
    try:
        score = scorer.score(Completion(text, "stop"), question)
        outcome = "unscored" if score.category is None else score.reason.split(":")[0]
    except Exception as error:  # noqa: BLE001 - what is looked for
        outcome = f"RAISED {type(error).__name__}: {error}"
    return clock() - began, outcome, text


def fuzz(kind: str, number: int, seed: int) -> None:
    """Score `number` answers, and print what came of them."""
    options, question = KINDS[kind]
    scorer = build_scorer(kind.split()[0], options)
    clock = time.perf_counter if kind in IN_PROCESSES else time.thread_time
    for text in ("{}", "x^2 + 1", "a b"):  # libraries are imported, processes are up
        scorer.score(Completion(text, "stop"), question)
    outcomes, slowest, slow = Counter[str](), (0.0, "", ""), 0
    source = answers(seed)
    with ThreadPoolExecutor(AT_ONCE if kind in IN_PROCESSES else 1) as threads:
        for done in range(0, number, 1000):
            batch = islice(source, min(number - done, 1000))
            for one in threads.map(partial(measured, scorer, question, clock), batch):
                outcomes[one[1]] += 1
                slow += one[0] > SLOW
                slowest = max(slowest, one)
    seconds, outcome, text = slowest
    words = f"{outcome}, {len(text):,} characters {text[:40]!r}"
    print(f"{kind}: {number:,} answers; slowest {seconds:.3f} s ({words}); {slow:,} above {SLOW:g} s")
    for outcome, count in outcomes.most_common():
        if outcome.startswith(("RAISED", "undecided", "unscored")):
            print(f"    {count:,} {outcome}", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--answers", type=int, default=100_000)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for kind in given.kinds.split(","):
        fuzz(kind, given.answers, given.seed)


if __name__ == "__main__":
    main()
