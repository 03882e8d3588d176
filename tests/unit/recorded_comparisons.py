"""Tests for one look, looks at every time, their bounds, and bets by labels: crossed, as recorded."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from course_facts import digest, text
from crossed_options import Case, Options, Refused, chance
from recorded_statistics import fact, graded_of, lost_of, right_of, table_of

from scorio import sequential
from scorio.sequential.bounds import Sample
from scorio.sequential.contrasts import Contrasts
from scorio.sequential.families import family
from scorio.sequential.fold import Levels

# ---------------------------------------------------------------------------- tests for one look

TESTS: Options = {
    "scores": ("right", "graded", "numbers", "range"),
    "lost": ("none", "some", "of-one"),
    "clusters": ("none", "pairs", "uneven"),
    "weighed": ("no", "yes"),
    "confidence": ("high", "low"),
    "questions": ("twelve", "six", "many", "one"),
    "trials": ("three", "one", "uneven"),
    "gap": ("some", "none", "large"),
    "draws": ("few", "many"),
}
"""The options of tests for one look; each test takes some of them."""
TESTS_REFUSED: Refused = (("questions", "one", "clusters", "pairs uneven"),)


def outcomes_of(
    case: Case, models: int, questions: int, trials: int, spread: float
) -> tuple[np.ndarray, dict[str, Any]]:
    """Return scores of some models on the scale of a case, with the options that say how they are read."""
    shape = (models, questions, trials)
    name = ("outcomes", models, questions)
    if case["scores"] == "right":
        return right_of(str(name), shape, spread), {}
    if case["scores"] == "graded":
        return graded_of(str(name), shape, spread), {"weights": (-1.0, 2.0, 0.5)}
    values = np.clip(table_of(str(name), shape, spread), 0.0, 1.0)
    values = np.round(values, 2)
    if case["scores"] == "range":
        return 1.0 + 4.0 * values, {"range": (1.0, 5.0)}
    return values, {}


def missing_of(case: Case, shape: tuple[int, ...]) -> np.ndarray | None:
    """Return which outcomes are lost."""
    if case["lost"] == "none":
        return None
    gone = lost_of("looks", shape, 0.2)
    if case["lost"] == "whole-questions":
        gone = np.zeros(shape, dtype=bool)
        gone[0, ::5] = True
    elif case["lost"] == "of-one":
        gone[0] = False
    return gone


def test_facts(written: Case) -> list[str]:
    """Return what the tests for one look say of two models."""
    case = {name: written.get(name, values[0]) for name, values in TESTS.items()}
    questions = {"one": 1, "six": 6, "twelve": 12, "many": 110}[case["questions"]]
    trials = {"one": 1, "three": 3, "uneven": 4}[case["trials"]]
    spread = {"none": 0.0, "some": 0.3, "large": 0.8}[case["gap"]]
    R, reading = outcomes_of(case, 2, questions, trials, spread)
    gone = missing_of(case, R.shape)
    if case["trials"] == "uneven":
        short = np.zeros(R.shape, dtype=bool)
        short[1, :, 3] = True
        gone = short if gone is None else gone | short
    options: dict[str, Any] = dict(reading)
    if gone is not None:
        gone[:, :, 0] = False  # these tests take an answer to every question
        R = np.where(gone, np.nan, R)
        options["missing"] = np.nan
    sure: dict[str, Any] = {"confidence": {"high": 0.95, "low": 0.6}[case["confidence"]]}
    groups: dict[str, Any] = {}
    if case["clusters"] != "none":
        places = np.arange(questions)
        groups["clusters"] = places // 2 if case["clusters"] == "pairs" else 2 * places // 3
    weighed: dict[str, Any] = {}
    if case["weighed"] == "yes":
        weighed["question_weights"] = [(2 * place + 1) / questions**2 for place in range(questions)]
    draws = {"draws": {"few": 200, "many": 5_000}[case["draws"]]}
    facts = [
        fact("paired", sequential.paired_difference, *R, **options, **sure, **groups, **weighed),
        fact("mean", sequential.mean_score, R[0], **options, **sure, **groups, **weighed),
        fact("signs", sequential.permutation_test, *R, **options, **groups, **draws),
        fact("exchanged", sequential.permutation_test, *R, null=EQUAL, seed=2, **options, **draws),
    ]
    alone = {"clusters": (groups["clusters"], groups["clusters"][::-1])} if groups else {}
    facts.append(fact("unpaired", sequential.unpaired_difference, *R, **options, **sure, **alone))
    if questions > 50:
        for name, given in (("bootstrap", R), ("bootstrap of one", R[1:])):
            facts.append(fact(name, sequential.bootstrap, *given, **options, **sure, **groups, **draws))
    if case["scores"] in ("right", "graded"):
        facts.append(fact("posterior", sequential.posterior_interval, R[0], **options, **sure, **draws))
    if case["scores"] == "right":
        facts.append(fact("mcnemar", sequential.mcnemar, *R[:, :, 0]))
    return facts


EQUAL = "equal on every question"


# ---------------------------------------------------------------------------- comparisons at every look

DOORS: Options = {
    "door": ("recorded", "monitor", "score-monitor"),
    "scores": ("right", "graded", "numbers", "range"),
    "lost": ("none", "some", "whole-questions", "of-one"),
    "target": ("benchmark", "population", "clusters"),
    "equivalence": ("none", "near", "wide"),
    "confidence": ("high", "low"),
    "family": ("holm", "pair"),
    "order": ("drawn", "given", "own"),
    "against": ("none", "below", "at", "above"),
    "questions": ("twenty", "five", "ninety"),
    "trials": ("four", "one", "ten"),
    "gap": ("some", "none", "large"),
    "models": ("two", "three", "four"),
    "best": ("first", "last"),
}  # fmt: skip
"""The options of comparisons that hold at every look; each takes some of them."""
DOORS_REFUSED: Refused = (
    ("questions", "ninety", "trials", "ten"),
    ("door", "monitor score-monitor", "questions", "ninety"),
    ("door", "monitor score-monitor", "trials", "ten"),
)


def door_facts(written: Case) -> list[str]:
    """Return what is known of models at every look, or at the last."""
    case = {name: written.get(name, values[0]) for name, values in DOORS.items()}
    door = case["door"]
    models = {"two": 2, "three": 3, "four": 4}[case["models"]]
    questions = {"five": 5, "twenty": 20, "ninety": 90}[case["questions"]]
    trials = {"one": 1, "four": 4, "ten": 10}[case["trials"]]
    spread = {"none": 0.0, "some": 0.5, "large": 0.8}[case["gap"]]
    R, options = outcomes_of(case, models, questions, trials, spread)
    if case["best"] == "last":
        R = R[::-1]
    gone = missing_of(case, R.shape)
    options["confidence"] = {"high": 0.95, "low": 0.7}[case["confidence"]]
    low, high = options.get("range", (0.0, 1.0))
    if case["scores"] == "graded":
        low, high = -1.0, 2.0
    unit = high - low
    if case["equivalence"] != "none":
        options["equivalence"] = {"near": 0.1, "wide": 0.4}[case["equivalence"]] * unit
    if case["order"] != "drawn":
        options["order"] = None if case["order"] == "given" else np.arange(questions)[::-1]
    against = {"below": 0.3, "at": 0.5, "above": 0.8}.get(case["against"])
    if against is not None:
        against = low + against * unit
    if case["target"] != "benchmark":
        options["target"] = "population"
    clusters = {"clusters": np.arange(questions) // 3} if case["target"] == "clusters" else {}
    if door in ("monitor", "score-monitor"):
        return monitor_facts(case, R, gone, options, clusters, against)
    if gone is not None:
        R = np.where(gone, np.nan, R)
        options["missing"] = np.nan
    alone = {name: value for name, value in options.items() if name != "equivalence"}
    ahead = {name: value for name, value in options.items() if name != "target"}
    flow = {name: value for name, value in ahead.items() if name != "order"}
    streams = {f"s{row}": one.ravel()[: one.size - row] for row, one in enumerate(R)}
    first, second, *_ = streams.values()
    gap = {"none": 0.0, "some": 0.2, "large": 0.5}[case["gap"]]
    planned = {name: value for name, value in options.items() if name in ("confidence", "equivalence")}
    planned |= {"questions": questions, "passes": 3, "replicates": 20, "mean": 0.3, "correlation": 0.2}
    return [
        fact("compare", sequential.compare, *R[:2], **options, **clusters),
        fact("board", sequential.board, R, family=case["family"], **options, **clusters),
        fact("score", sequential.score, R[0], against=against, **alone),
        fact("least score", sequential.score, R[-1], against=against, **alone),
        fact("ahead", sequential.forecast, *R[:2], passes=30, paths=100, **ahead),
        fact("streams", sequential.compare, first, second, **flow),
        fact("all streams", sequential.board, streams, family=case["family"], **flow),
        fact("stream", stream_score, second, flow, against),
        fact("planned", sequential.sample_size, gap, **planned),
    ]


def stream_score(outcomes: np.ndarray, options: Mapping[str, Any], against: float | None) -> Any:
    """Return the score of a stream, which has no margin."""
    own = {name: value for name, value in options.items() if name != "equivalence"}
    return sequential.score(outcomes, against=against, **own)


def monitor_facts(
    case: Case,
    R: np.ndarray,
    gone: np.ndarray | None,
    options: dict[str, Any],
    clusters: Mapping[str, Any],
    against: float | None,
) -> list[str]:
    """Return what a monitor says while outcomes arrive, and what it asks next."""
    models, questions, trials = R.shape
    if case["scores"] == "numbers":
        options["range"] = (0.0, 1.0)
    names = [f"m{row}" for row in range(models)]
    outcomes = R.astype(object)
    if gone is not None:
        outcomes[gone] = None
    facts = []
    if case["door"] == "monitor":
        monitor = sequential.Monitor(names, questions, family=case["family"], **options, **clusters)
        asked = []
        made = np.zeros((models, questions), dtype=int)
        for step in range(questions * trials):
            for row, name in enumerate(names):
                question = monitor.next(name)
                repeat = made[row, question]
                made[row, question] += 1
                if repeat >= trials:
                    continue
                asked.append((name, question))
                state = monitor.update(name, question, outcomes[row, question, repeat])
            if step in (2, 11, 30):
                facts.append(fact(f"after {step}", lambda state=state: state))
        return [*facts, f"asked {digest(asked)}", fact("end", lambda: monitor.state)]
    options.pop("equivalence", None)
    alone = sequential.ScoreMonitor(questions, against=against, **options)
    stream = {name: value for name, value in options.items() if name not in ("order", "target")}
    flow = sequential.ScoreMonitor(against=against, **stream)
    made = np.zeros(questions, dtype=int)
    for step in range(min(questions * trials, 70)):
        question = alone.next()
        repeat = made[question]
        made[question] += 1
        if repeat >= trials:
            continue
        outcome = outcomes[0, question, repeat]
        states = alone.update(outcome, question), flow.update(outcome)
        if step in (2, 11, 30):
            facts.append(fact(f"after {step}", lambda states=states: states))
    return [*facts, fact("end", lambda: (alone.state, flow.state))]


# ---------------------------------------------------------------------------- bets by labels

LABELLED: Options = {
    "models": ("two", "one"),
    "chosen": ("given", "by-labels"),
    "lost": ("none", "answers", "labels", "both"),
    "chance": ("one", "of-each"),
    "stake": ("none", "some"),
    "groups": ("none", "questions", "clusters"),
    "doubted": ("none", "some"),
    "slope": ("learned", "none", "half"),
    "judge": ("fair", "harsh", "opposite"),
    "scores": ("right", "between"),
}
"""The options of bets on scores that labels correct."""
LABELLED_REFUSED: Refused = ()


def labelled_facts(written: Case) -> list[str]:
    """Return the evidence of bets, for and against, and the interval."""
    case = {name: written.get(name, values[0]) for name, values in LABELLED.items()}
    models, steps = {"one": 1, "two": 2}[case["models"]], 60
    shape = (models, steps)
    truth = np.clip(table_of("labelled", shape, 0.7, 0.55), 0.0, 1.0)
    if case["scores"] == "right":
        truth = (truth > 0.5).astype(float)
    flip = np.array([chance("flip", place) for place in np.ndindex(shape)]).reshape(shape)
    judge = np.where(flip < {"fair": 0.1, "harsh": 0.3, "opposite": 0.9}[case["judge"]], 1.0 - truth, truth)
    if case["judge"] == "harsh":
        judge = np.minimum(judge, truth)
    each = np.array([0.3 + 0.4 * (step % 3 == 0) for step in range(steps)])
    chances = each if case["chance"] == "of-each" else np.full(steps, 0.5)
    chosen = np.array([chance("chosen", step) for step in range(steps)]) < chances
    label = np.where(chosen, truth, np.nan)
    if case["lost"] in ("labels", "both"):
        label = np.where(lost_of("label", shape, 0.15), np.nan, label)
    if case["lost"] in ("answers", "both"):
        gone = lost_of("answer", shape, 0.1)
        judge, label = np.where(gone, np.nan, judge), np.where(gone, np.nan, label)
    options: dict[str, Any] = {}
    if case["chosen"] == "given":
        options["chosen"] = chosen
    if case["stake"] == "some":
        options["stake"] = np.array([1.0 if step % 2 else 0.4 for step in range(steps)])
    question = np.arange(steps) * 7 % 24
    if case["groups"] != "none":
        options["groups"] = [question, question // 3 if case["groups"] == "clusters" else question]
    if case["doubted"] == "some":
        options["doubted"] = np.array([chance("doubt", step) < 0.2 for step in range(steps)])
    if case["slope"] != "learned":
        options["slope"] = {"none": 0.0, "half": 0.5}[case["slope"]]
    share: Any = chances if case["chance"] == "of-each" else 0.5
    bets = sequential.label_bets(judge, label, share, **options)
    facts = [fact("bets", lambda: bets), fact("estimate", lambda: bets.estimate)]
    for against, side in ((0.0, 0), (0.1, 1), (0.1, -1), (0.5, 0)):
        facts.append(fact(f"at {against} {side}", evidence_of, bets, against, side))
    low = 0.0 if models == 1 else -1.0
    facts += [fact(f"interval {level}", bets.interval, level, low, 1.0) for level in (0.05, 0.4)]
    return facts


def evidence_of(bets: sequential.LabelBets, against: float, side: int) -> tuple[np.ndarray, float]:
    return bets.log_e(against, side), bets.last(against, side)


# ---------------------------------------------------------------------------- how many questions are too few

BOUNDS: Options = {
    "clusters": ("none", "pairs", "uneven"),
    "tasks": ("one", "two", "weighed"),
    "answers": ("right", "graded"),
    "stored": ("none", "some"),
    "margin": ("none", "near", "wide"),
    "confidence": ("high", "low"),
    "family": ("holm", "pair"),
    "claims": ("none", "some", "many"),
    "threshold": ("evidence", "fixed"),
}
"""The options of samples of questions."""
BOUNDS_REFUSED: Refused = (("margin", "none", "claims", "some many"),)
MOST_CLUSTERS = 60


def bound_facts(written: Case) -> list[str]:
    """Return from which number of clusters on each contrast can be decided."""
    case = {name: written.get(name, values[0]) for name, values in BOUNDS.items()}
    alpha = {"high": 0.05, "low": 0.3}[case["confidence"]]
    margin = {"none": None, "near": 0.1, "wide": 0.3}[case["margin"]]
    claims = {"none": 0, "some": 2, "many": 9}[case["claims"]]
    each = family(case["family"])
    fixed = 2.0 if case["threshold"] == "fixed" else None
    levels = Levels(each, family("pair"), 5, alpha / 2.0, alpha, fixed, claims, margin or 0.0, 1)
    none = np.nan
    contrasts = Contrasts(
        first=np.array([0, 1, 2, 0, 0, 1, 0]),
        second=np.array([1, 2, -1, -1, -1, -1, 2]),
        value=np.array([0.0, 0.0, 0.5, 0.9, 0.0, 0.0, 0.0]),
        width=np.array([none, none, none, none, 0.6, 0.8, none]),
        claim=np.array([none, none, none, none, none, none, 0.1]),
    )
    weights = {"one": [1.0], "two": [0.5, 0.5], "weighed": [0.8, 0.2]}[case["tasks"]]
    found = np.full(contrasts.first.size, MOST_CLUSTERS)
    figures = []
    for number in range(MOST_CLUSTERS - 1, 0, -1):
        sizes = [np.ones(number), np.ones(2 * number)][: len(weights)]
        if case["clusters"] != "none":
            sizes = [
                2.0 * one if case["clusters"] == "pairs" else 1.0 + np.arange(one.size) % 4 for one in sizes
            ]
        clustered = case["clusters"] != "none"
        sample = Sample(sizes, weights, clustered, case["answers"] == "right", case["stored"] == "some")
        found[sample.decidable(contrasts, levels, margin)] = number
        if number % 20 == 1:
            figures += [*sample.worth.tolist(), sample.least_radius(alpha)]
    return [f"from {text(found.tolist())}", fact("figures", lambda: figures)]


COMPARISONS: Mapping[str, tuple[Options, Refused, Callable[[Case], list[str]]]] = {
    "tests": (TESTS, TESTS_REFUSED, test_facts),
    "doors": (DOORS, DOORS_REFUSED, door_facts),
    "bounds": (BOUNDS, BOUNDS_REFUSED, bound_facts),
    "labelled": (LABELLED, LABELLED_REFUSED, labelled_facts),
}
"""What is crossed: options, what is refused, and what a case leads to."""
