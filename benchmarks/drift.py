"""False alarms and delays of the evidence that a model changes: simulated outcomes of right or wrong.

    python benchmarks/drift.py --runs 500

Without a change: the share of runs in which the evidence ever reaches 20 or 100, at most 5 % and 1 % by the
theory. With a fall of every question's accuracy after 1,000 trials: the share of runs in which it reaches
2,000 (the limit for a model), and after how many trials.
"""

from __future__ import annotations

import argparse
import random
from statistics import median

from scorio.sequential.drift import DriftEvidence, rank_among


def alarm(
    rng: random.Random, questions: int, passes: int, means: list[float], fall: float, at: int, limit: float
) -> int | None:
    """Return after how many trials the evidence reaches `limit`; None where it does not."""
    evidence = DriftEvidence()
    seen: list[dict[float, int]] = [{} for _ in range(questions)]
    for trial in range(questions * passes):
        question = trial % questions
        mean = means[question] - (fall if trial >= at else 0.0)
        value = float(rng.random() < mean)
        evidence.add(rank_among(value, seen[question], rng.random()), value=value)
        seen[question][value] = seen[question].get(value, 0) + 1
        if evidence.peak >= limit:
            return trial + 1
    return None


def main() -> None:
    """Print false alarms, then delays."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=500)
    options = parser.parse_args()
    rng = random.Random(5)
    print("questions  passes  means      reaches 20  reaches 100")
    for questions, passes, low, high in ((100, 20, 0.1, 0.9), (20, 100, 0.5, 0.5), (200, 10, 0.95, 0.95)):
        found = []
        for limit in (20.0, 100.0):
            runs = (
                alarm(rng, questions, passes, [rng.uniform(low, high) for _ in range(questions)], 0, 0, limit)
                for _ in range(options.runs)
            )
            found.append(sum(run is not None for run in runs) / options.runs)
        print(f"{questions:9} {passes:7}  {low:.2f}–{high:.2f} {found[0]:11.1%} {found[1]:12.1%}", flush=True)
    print("fall  found  median delay in trials")
    for fall in (0.1, 0.2, 0.3, 0.5):
        delays = [
            alarm(rng, 100, 40, [rng.uniform(0.5, 1.0) for _ in range(100)], fall, 1000, 2000.0)
            for _ in range(max(20, options.runs // 5))
        ]
        after = [delay - 1000 for delay in delays if delay is not None]
        shown = f"{median(after):.0f}" if after else "–"
        print(f"{fall:4}  {len(after) / len(delays):5.0%}  {shown}", flush=True)


if __name__ == "__main__":
    main()
