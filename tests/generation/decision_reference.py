"""Decisions about a pair where answers are missing: c, D, V and log E, from the definitions, from scratch.

    python tests/generation/decision_reference.py        # rewrites tests/data/decision_reference.json
                                                         # and the estimates of decision_vectors.json

Nothing here knows scorio. At every step all sums are taken again over all trials, question by question, in
plain Python: STATISTICS, section 5, with its walk of one pass with calibration repeats and of plain passes
after it, the steps at which a model's prior is fitted, missing answers dropped for a pair as a whole, and the
bets on the answers in which the two models differ.
"""

import json
import random
from math import cosh, exp, lgamma, log, log1p, pi, sin, sqrt
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parent.parent / "data"
GOLDEN, VECTORS = DATA / "decision_reference.json", DATA / "decision_vectors.json"
MISSING = -1
GUARD = log(20.0)  # κ at the 5 % level
GATE = 2  # Σ n v from which on the noise within questions is believed
ON_ANSWERS, ON_CLUSTERS = 0.2, 0.9  # the parts of the stake that are bet
FEW = 2  # questions up to which bets alone decide
RATES = [sign * 0.99 * sin(pi * (k + 0.5) / 32) ** 2 for k in range(16) for sign in (1, -1)]


def walk(questions: int, steps: int) -> list[int]:
    """Return which question each step asks."""
    start = max(16, 16 * -(-questions // 128))
    asked: list[int] = []
    repeats = 0
    for question in range(questions):
        if question >= start and (question - start) % 16 == 0 and repeats < 128:
            asked.append(repeats)
            repeats += 1
        asked.append(question)
    second = True
    while len(asked) < steps:  # the second pass leaves out what was asked twice already
        asked += range(repeats if second else 0, questions)
        second = False
    return asked[:steps]


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def scores_by_question(asked: list[int], said: list[int], scores: list[float]) -> dict[int, list[float]]:
    found: dict[int, list[float]] = {}
    for question, category in zip(asked, said, strict=True):
        if category != MISSING:
            found.setdefault(question, []).append(scores[category])
    return found


def prior(cells: dict[int, list[float]], scores: list[float]) -> tuple[float, float, float]:
    """Return A, m1 and m2 of a model."""
    p1, p2 = mean(scores), mean([x * x for x in scores])
    if not cells:
        return 1e4, p1, p2
    m = len(cells)
    each = sum(len(xs) for xs in cells.values()) / m
    y = mean([mean(xs) for xs in cells.values()])
    y2 = mean([mean([x * x for x in xs]) for xs in cells.values()])
    m1, m2 = (m * y + p1 / each) / (m + 1 / each), (m * y2 + p2 / each) / (m + 1 / each)
    total = (y2 - y * y) * m / max(m - 1, 1)
    repeated = [xs for xs in cells.values() if len(xs) >= 2]
    spread = [sum((x - mean(xs)) ** 2 for x in xs) / (len(xs) - 1) for xs in repeated]
    within = (sum(spread) + total) / (len(repeated) + 1)
    if not repeated or total <= within:
        return 1e4, m1, m2
    return min(max(within / (total - within), 0.05), 1e4), m1, m2


def noise(asked: list[int], said: list[int], scores: list[float], questions: int) -> list[tuple[float, ...]]:
    """Return w, u, G and R of a model after each step."""
    found, at, fitted = [], (1e4, mean(scores), mean([x * x for x in scores])), 0
    size, p1, p2 = len(scores), mean(scores), mean([x * x for x in scores])
    for step in range(1, len(asked) + 1):
        cells = scores_by_question(asked[:step], said[:step], scores)
        twice = sum(len(xs) >= 2 for xs in cells.values())
        doubled = twice >= 2 * max(fitted, 1)
        if doubled or step % questions == 0 or (twice == 0 and step & (step - 1) == 0):
            at = prior(cells, scores)
            fitted = twice if doubled else fitted
        strength, m1, m2 = at
        w = u = g = r = 0.0
        for xs in cells.values():
            n, sx, sxx = len(xs), sum(xs), sum(x * x for x in xs)
            a, b = (strength * m1 + sx) / (n + strength), (strength * m2 + sxx) / (n + strength)
            v = (b - a * a) * (n + strength) / (n + strength + 1)
            a, b = (size * p1 + sx) / (n + size), (size * p2 + sxx) / (n + size)
            u += ((n + size) / n) ** 2 * (b - a * a) / (n + size + 1)
            w, g, r = w + v / n, g + n * v, r + n - 1
        m = max(len(cells), 1)
        found.append((w / m, u / m, g, r))
    return found


def range_of(asked: list[int], said: list[int], own: dict[int, list[float]]) -> tuple[float, float, float]:
    """Return the mean over answered questions, between what it is if lost answers were all 0, and all 1."""
    score, ends = mean([mean(xs) for xs in own.values()]), [0.0, 0.0]
    for question in set(asked):
        times = [category for one, category in zip(asked, said, strict=True) if one == question]
        for worth in (0, 1):
            known = own.get(question, [])
            filled = [*known, *[worth] * (len(times) - len(known))]
            ends[worth] += mean(filled) / len(set(asked))
    return ends[0], score, ends[1]


def rows_of(case: dict[str, Any]) -> list[dict[str, Any]]:
    """Return c, D, V and log E after each step."""
    weights, questions = case["weights"], case["M"]
    low, high = min(weights), max(weights)
    scores = [(weight - low) / (high - low) for weight in weights]
    a, b = case["A"], case["B"]
    asked, rows = walk(questions, len(a)), []
    sides = [noise(asked, said, scores, questions) for said in (a, b)]
    for step in range(1, len(a) + 1):
        own = [scores_by_question(asked[:step], said[:step], scores) for said in (a, b)]
        d = {question: mean(own[0][question]) - mean(own[1][question]) for question in own[0].keys() & own[1]}
        c = len(d)
        if c == 0:
            continue
        (wa, ua, ga, ra), (wb, ub, gb, rb) = sides[0][step - 1], sides[1][step - 1]
        w, u, g, r = wa + wb, ua + ub, min(ga, gb), min(ra, rb)
        square = sum(value**2 for value in d.values())
        single = len(weights) == 2 and max(ra, rb) == 0 and not case["cluster_size"]
        guard = 0.0 if single else GUARD / c**2
        if case["cluster_size"]:
            groups: dict[int, list[float]] = {}
            for question, value in d.items():
                groups.setdefault(question // case["cluster_size"], []).append(value)
            square = sum(sum(values) ** 2 for values in groups.values())
            effective = c**2 / sum(len(values) ** 2 for values in groups.values())
            guard = GUARD / effective**2
        between = square / c**2 + guard
        variance = between
        if case["target"] == "benchmark":
            trust = 1 - (8 / (8 + r)) ** 2
            trials = w / c + (0.0 if single else GUARD / (c + r) ** 2)
            within = (1 - trust) * between + trust * trials if g >= GATE else min(between, max(w, u) / c)
            variance = (1 - c / questions) * between + c / questions * within
        variance = max(variance, 1e-15)
        ends = [range_of(asked[:step], said[:step], one) for said, one in zip((a, b), own, strict=True)]
        difference = ends[0][1] - ends[1][1]
        worst, best = ends[0][0] - ends[1][2], ends[0][2] - ends[1][0]
        slack = max(difference - worst, best - difference)
        least = max(abs(difference) - slack, 0.0)
        row = {"t": step, "c": c, "D": difference, "V": variance, "slack": slack, "log_E": None}
        trials = [sum(len(xs) for xs in one.values()) for one in own]
        if min(trials) >= 10:
            now = exp(log_evidence(least, variance, case["epsilon"]))
            if case["cluster_size"]:
                sums = [sum(values) / min(case["cluster_size"], questions) for values in groups.values()]
                bets = 0.0 if slack > 1e-12 else mean([product(rate, sums) for rate in RATES])
                row["log_E"] = log((1 - ON_CLUSTERS) * now + ON_CLUSTERS * bets)
            else:
                won, lead = bets_on_answers(case["target"], scores, asked[:step], a[:step], b[:step], d)
                side = 0 if abs(difference) <= slack + 1e-9 else 1 if difference > 0 else -1
                agrees = side == (abs(lead) > 1e-9) * (1 if lead > 0 else -1)
                share = ON_ANSWERS if case["target"] == "benchmark" else ON_CLUSTERS
                share = 1.0 if questions <= FEW else share
                e = (1 - share) * now + share * (won if agrees else 0.0)
                row["log_E"] = log(e) if e > 0.0 else None
        rows.append(row)
    return rows


def bets_on_answers(
    target: str, scores: list[float], asked: list[int], a: list[int], b: list[int], d: dict[int, float]
) -> tuple[float, float]:
    """Return what bets on the differences of answers have won, at the worst of lost ones, and their sum."""
    both = [(x, y) for x, y in zip(a, b, strict=True) if MISSING not in (x, y)]
    gaps = [scores[x] - scores[y] for x, y in both]
    if target == "benchmark" and len(scores) == 2:
        first, second = gaps.count(1.0), gaps.count(-1.0)
        high, low = max(first, second), min(first, second)
        low = min(low + len(asked) - len(both), high)  # lost ones join the fewer
        log_won = (high + low) * log(2) + lgamma(high + 0.5) + lgamma(low + 0.5) - lgamma(high + low + 1)
        return exp(log_won - log(pi)), first - second
    if target == "population":
        gaps = list(d.values())
    lowest, highest = [], []
    for x, y in zip(a, b, strict=True):
        if MISSING in (x, y):
            lowest.append((0.0 if x == MISSING else scores[x]) - (1.0 if y == MISSING else scores[y]))
            highest.append((1.0 if x == MISSING else scores[x]) - (0.0 if y == MISSING else scores[y]))
    won = [product(rate, gaps + (lowest if rate > 0 else highest)) for rate in RATES]
    return mean(won), sum(gaps)


def product(rate: float, sums: list[float]) -> float:
    """Return what a bet of so much on each cluster has won."""
    won = 1.0
    for one in sums:
        won *= 1.0 + rate * one
    return won


def log_evidence(d: float, v: float, epsilon: float | None) -> float:
    def factor(tau: float) -> float:
        x = tau * tau / v
        return exp(0.5 * d * d / v * x / (1 + x)) / sqrt(1 + x)

    if epsilon is None or epsilon * abs(d) / v < 300:
        e = 0.75 * factor(0.05) + 0.25 * factor(0.2)
        if epsilon is None:
            return log(e)
        return log(0.5 * e + 0.5 * cosh(epsilon * d / v) * exp(-(epsilon**2) / (2 * v)))
    shift = epsilon * abs(d) / v
    return shift + log1p(exp(-2 * shift)) - log(4.0) - epsilon**2 / (2 * v)


def cases() -> list[dict[str, Any]]:
    rng = random.Random(20)
    found = []
    for weights, questions, steps, epsilon, cluster_size, missing in [
        ([0, 1], 20, 130, None, None, (0.06, 0.0)),
        ([0, 1], 40, 150, 0.1, None, (0.02, 0.06)),
        ([0, 1], 150, 210, None, None, (0.03, 0.03)),
        ([0, 0.5, 1], 30, 140, None, None, (0.04, 0.02)),
        ([1, -1, 0], 25, 120, 0.05, None, (0.0, 0.08)),
        ([0, 1], 60, 150, None, 5, (0.03, 0.03)),
        ([0, 1, 4], 45, 120, None, 3, (0.0, 0.06)),
        ([0, 1], 35, 120, None, 1, (0.0, 0.03)),
        ([0, 1, 2], 25, 90, 0.05, 1, (0.02, 0.0)),
        ([0, 1], 1, 60, None, None, (0.03, 0.0)),
        ([0, 1, 2], 3, 60, 0.1, None, (0.0, 0.03)),
        ([0, 1], 8, 90, 0.1, None, (0.02, 0.03)),
    ]:
        sample = cluster_size is not None
        if cluster_size == 1:  # questions that are a sample, each for itself
            cluster_size = None
        case: dict[str, Any] = {
            "M": questions,
            "weights": weights,
            "epsilon": epsilon,
            "target": "population" if sample else "benchmark",
            "cluster_size": cluster_size,
        }
        asked = walk(questions, steps)
        ease = [rng.gauss(0.0, 0.2) for _ in range(questions)]
        for name, level, lost in zip("AB", (0.9, 0.2), missing, strict=True):
            said = []
            for question in asked:
                chance = min(max(level + ease[question], 0.02), 0.98)
                right, other = len(weights) - 1 if weights[0] == 0 else 0, rng.randrange(len(weights))
                said.append(right if rng.random() < chance else other if len(weights) > 2 else 1 - right)
                if rng.random() < lost:
                    said[-1] = MISSING
            case[name] = said
        rows = rows_of(case)
        case["rows"] = rows[::7] + rows[-1:]
        found.append(case)
    return found


def renewed(vector: dict[str, Any]) -> dict[str, Any]:
    """Return a vector with V, log E and the step of its winner from the definitions."""
    found = {row["t"]: row for row in rows_of(vector)}
    rows = [
        {name: found[row["t"]][name] if name in ("V", "log_E") else row[name] for name in row}
        for row in vector["rows"]
    ]
    called = [row for row in found.values() if row["log_E"] is not None and row["log_E"] >= GUARD]
    decision = vector["decision"]
    if decision is None or decision[1] != "tie":
        first = called[0] if called else None
        decision = first and [first["t"], "A>B" if first["D"] > 0 else "B>A"]
    return {**vector, "rows": rows, "decision": decision}


if __name__ == "__main__":
    lines = ",\n".join(json.dumps(case) for case in cases())
    GOLDEN.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    vectors = [renewed(vector) for vector in json.loads(VECTORS.read_text(encoding="utf-8"))]
    VECTORS.write_text(json.dumps(vectors), encoding="utf-8")
