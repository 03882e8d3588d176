"""Options crossed in pairs: cases in which each two values meet, and what they make of a session."""

import struct
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import blake2b
from itertools import combinations, product
from typing import TypeAlias

import numpy as np

from adaptive_eval.core.spec import (
    AllocationSpec,
    BudgetSpec,
    GoalSpec,
    ModelSpec,
    Price,
    PriorSpec,
    ReferenceSpec,
    SessionSpec,
    StoppingSpec,
    TaskSpec,
)
from adaptive_eval.trial import ScoreRange

Case: TypeAlias = Mapping[str, str]
"""A value of each option; one that is left out has its first value."""
Options: TypeAlias = Mapping[str, tuple[str, ...]]
"""The values of each option."""
Refused: TypeAlias = Sequence[tuple[str, str, str, str]]
"""Values of two options that never meet: an option, its values, another, its values."""


def pairs_of(refused: Refused) -> set[frozenset]:
    """Return the pairs of values that never meet."""
    never = set()
    for first, values, second, others in refused:
        for one in values.split():
            never |= {frozenset({(first, one), (second, other)}) for other in others.split()}
    return never


def covering(options: Options, refused: Refused, known: Sequence[Case] = (), name: str = "") -> list[Case]:
    """Return cases in which all values of each two options meet, beginning with those that are known.

    Another name leads to others.
    """
    never = pairs_of(refused)
    wanted = {}
    for first, second in combinations(options, 2):
        for one, other in product(options[first], options[second]):
            wanted[frozenset({(first, one), (second, other)})] = None
    for pair in never:
        wanted.pop(pair, None)
    found: list[Case] = []

    def add(case: dict[str, str]) -> None:
        found.append(case)
        for pair in map(frozenset, combinations(case.items(), 2)):
            wanted.pop(pair, None)

    for one in known:
        case = {name: one.get(name, values[0]) for name, values in options.items()}
        pairs = list(map(frozenset, combinations(case.items(), 2)))
        if never.isdisjoint(pairs) and all(case[name] in options[name] for name in options):
            add(case)
    while wanted:
        best: tuple[int, dict[str, str]] = (-1, {})
        for turn in range(30):
            case = dict(sorted(next(iter(wanted))))
            mixed = {
                chance("order", name, len(found), turn, name): name for name in options.keys() - case.keys()
            }
            names = [mixed[place] for place in sorted(mixed)]
            for option in names:
                scores = []
                for value in options[option]:
                    new = [frozenset({(option, value), item}) for item in case.items()]
                    if never.isdisjoint(new):
                        rank = chance("value", name, len(found), turn, option, value)
                        scores.append((sum(pair in wanted for pair in new), rank, value))
                if not scores:
                    break
                case[option] = max(scores)[2]
            if case.keys() == options.keys():
                gain = sum(pair in wanted for pair in map(frozenset, combinations(case.items(), 2)))
                best = max(best, (gain, case), key=lambda one: one[0])
        assert best[0] > 0, f"no case holds {set(next(iter(wanted)))}"
        add({name: best[1][name] for name in options})
    return found


@cache
def chance(*key: object) -> float:
    """Return a number from 0 to 1 that follows from the key alone, on every machine."""
    digest = blake2b(repr(key).encode(), digest_size=8).digest()
    return int(struct.unpack("<Q", digest)[0]) / 2.0**64


def plain(case: Case, options: Options) -> str:
    """Return a case as it is written: the values that are not the first."""
    return " ".join(f"{name}={case[name]}" for name, values in options.items() if case[name] != values[0])


def case_of(written: str) -> Case:
    """Return the case that is written in a line."""
    return dict(one.split("=") for one in written.split()[1:])


COURSES: Options = {
    "goal": (
        "ranking", "best", "best-two", "baseline", "not-worse", "good-enough", "threshold", "width", "pairs",
        "budget", "best-and-width", "ranking-and-claims",
    ),
    "lost": ("none", "some", "of-one", "first", "given-up", "redrawn", "copies", "repeated", "vouched"),
    "rule": ("anytime", "exact", "zscore", "fixed"),
    "noise": ("drawn", "one-repeats", "all-repeat", "claim-fails", "greedy", "greedy-and-one"),
    "budget": ("none", "trials", "tokens", "usd", "parts", "of-models", "of-tasks"),
    "failed": ("none", "presume", "prompt-only", "free"),
    "tasks": ("one", "two", "weighed", "pooled", "three"),
    "scores": ("right", "graded", "uneven", "numbers", "mixed"),
    "target": ("benchmark", "population", "clusters"),
    "stored": ("none", "one", "with-lost", "alike", "two"),
    "questions": ("schedule", "rounds", "auto"),
    "policy": ("round-robin", "uniform", "top-two"),
    "spend": ("trials", "tokens", "usd", "time"),
    "delivery": ("together", "shuffled", "single", "overdue"),
    "dropped": ("none", "failed", "spent", "unusable"),
    "equivalence": ("near", "none", "wide"),
    "passes": ("six", "three", "endless"),
    "size": ("small", "large"),
    "answers": ("apart", "near"),
    "models": ("three", "two", "four"),
    "family": ("holm", "pair"),
    "ties": ("pair", "family"),
    "confidence": ("high", "low"),
    "samples": ("one", "three"),
    "early": ("yes", "no"),
    "prior": ("none", "some"),
    "resumed": ("no", "yes"),
    "capacity": ("in-all", "of-each"),
}  # fmt: skip
"""The options of courses, each with its values."""

REFUSED: Refused = (
    ("rule", "exact zscore", "questions", "rounds"),
    ("rule", "exact zscore fixed", "goal", "not-worse good-enough ranking-and-claims"),
    ("rule", "exact", "goal", "threshold width best-and-width"),
    ("rule", "exact", "tasks", "two weighed pooled three"),
    ("rule", "exact", "stored", "one with-lost alike two"),
    ("rule", "exact", "scores", "mixed"),
    ("rule", "zscore", "ties", "family"),
    ("goal", "threshold ranking-and-claims", "questions", "rounds"),
    ("goal", "good-enough", "equivalence", "none"),
    ("goal", "best-two", "models", "two"),
    ("family", "pair", "ties", "family"),
    ("policy", "top-two", "goal", " ".join(one for one in COURSES["goal"] if one != "budget")),
    ("noise", "greedy greedy-and-one", "questions", "rounds"),
    ("noise", "greedy greedy-and-one", "samples", "three"),
    ("scores", "mixed", "tasks", "one"),
)  # fmt: skip
"""Values of two options that no run may have together, or that say nothing together."""

LONGER: Options = {name: values for name, values in COURSES.items() if name != "size"} | {
    "lost": ("none", "some", "of-one", "steady", "burst", "given-up", "redrawn", "copies", "repeated"),
    "budget": ("none", "raised", "tokens", "usd", "parts", "of-models", "of-tasks"),
    "tasks": ("one", "two", "large", "wide", "pooled"),
    "stored": ("none", "one", "few", "with-lost", "alike", "uneven"),
    "delivery": ("together", "shuffled", "overdue", "hanging"),
    "passes": ("endless", "six", "twenty"),
    "answers": ("near", "apart", "alike"),
    "resumed": ("no", "yes", "often", "changed"),
    "usage": ("within", "beyond", "unreported"),
    "groups": ("few", "many"),
}  # fmt: skip
"""The options of longer courses."""
LONGER_REFUSED: Refused = (
    *REFUSED,
    ("rule", "exact", "tasks", "wide"),
    ("rule", "exact", "stored", "few uneven"),
    ("scores", "mixed", "tasks", "large"),
)


# ---------------------------------------------------------------------------- the specification of a case

SIZES = {
    "one": (12,), "two": (11, 6), "weighed": (9, 6), "pooled": (10, 4), "three": (6, 5, 4),
    "large": (40,), "wide": (34, 9),
}  # fmt: skip
SCALES: Mapping[str, tuple[tuple[float, ...], ...]] = {
    "right": ((0.0, 1.0),), "graded": ((-2.0, 0.0, 2.0),), "uneven": ((1.0, 0.0, 0.3, 0.5),),
    "numbers": (ScoreRange((1.0, 10.0)),), "mixed": ((0.0, 1.0), (0.0, 1.0, 3.0)),
}  # fmt: skip
MEANS = {
    "near": {2: (0.35, 0.9), 3: (0.6, 0.95, 0.2), 4: (0.65, 0.97, 0.15, 0.7)},
    "apart": {2: (0.98, 0.05), 3: (0.99, 0.5, 0.02), 4: (0.99, 0.66, 0.35, 0.02)},
    "alike": {2: (0.6, 0.6), 3: (0.62, 0.6, 0.58), 4: (0.8, 0.6, 0.6, 0.5)},
}
BUDGETS: Mapping[str, Mapping[str, float]] = {
    "trials": {"trials": 170}, "tokens": {"tokens": 13_000}, "usd": {"usd": 0.5},
    "parts": {"prompt_tokens": 9_000, "completion_tokens": 6_000}, "raised": {"trials": 70},
}  # fmt: skip
LENGTH = 3
"""Times the budgets of other courses that longer ones have."""


def limits(of: Case, **most: float) -> BudgetSpec:
    """Return a budget; longer courses, which have no size, have more."""
    times = 1 if "size" in of else LENGTH
    return BudgetSpec(**{name: type(limit)(times * limit) for name, limit in most.items()})


def spec_of(case: Case, options: Options = COURSES) -> SessionSpec:
    """Return the specification of a case."""
    of = {name: case.get(name, values[0]) for name, values in options.items()}
    of = {name: values[0] for name, values in COURSES.items() if options is not LONGER} | of
    tasks = tasks_of(of)
    spans = {(min(task.weights), max(task.weights)) for task in tasks}
    low, high = spans.pop() if len(spans) == 1 else (0.0, 1.0)
    unit = high - low
    margin = {"near": 0.08, "none": None, "wide": 0.25}[of["equivalence"]]
    models = models_of(of)
    return SessionSpec(
        models=models,
        tasks=tasks,
        goal=goal_of(of["goal"], low, unit, len(models)),
        stopping=StoppingSpec(
            rule=of["rule"],
            confidence={"high": 0.9, "low": 0.7}[of["confidence"]],
            family=of["family"],
            equivalence=None if margin is None else margin * unit,
            max_passes={"six": 6, "three": 3, "twenty": 20, "endless": None}[of["passes"]],
            target="benchmark" if of["target"] == "benchmark" else "population",
            ties=of["ties"],
        ),
        allocation=AllocationSpec(of["policy"], of["questions"]),
        spend=of["spend"],
        budget=limits(of, **BUDGETS.get(of["budget"], {})),
        seed=3,
        overall="pooled" if of["tasks"] == "pooled" else "macro",
        references=references_of(of, tasks),
        prior=prior_of(tasks) if of["prior"] == "some" else None,
        usage_on_failure={"free": "none", "none": "presume"}.get(of["failed"], of["failed"]),
        samples_per_prompt={"one": 1, "three": 3}[of["samples"]],
        early_repeats=of["early"] == "yes",
        independent_copies=of["lost"] == "vouched",
        redrawn=frozenset({"timeout"} if of["lost"] == "redrawn" else ()),
    )


def models_of(of: Case) -> tuple[ModelSpec, ...]:
    number = {"two": 2, "three": 3, "four": 4}[of["models"]]
    found = []
    for place in range(number):
        own = BudgetSpec()
        if of["budget"] == "of-models" and place < 2:
            own = (limits(of, trials=70), limits(of, tokens=4_000))[place]
        greedy = of["noise"].startswith("greedy")
        claimed = {"one-repeats": (0,), "claim-fails": (1,), "greedy-and-one": (2, 1), "all-repeat": range(9)}
        same = place in claimed.get(of["noise"], ())
        price = Price(input=10.0 + place, output=40.0 * (1 + place), cached_input=2.0)
        found.append(ModelSpec(f"m{place}", 60, price, own, deterministic=same, greedy=greedy))
    return tuple(found)


def tasks_of(of: Case) -> tuple[TaskSpec, ...]:
    found = []
    for number, size in enumerate(SIZES[of["tasks"]]):
        if size < 30 and (of["target"] != "benchmark" or of.get("size") == "large"):
            size *= 3
        scales = SCALES[of["scores"]]
        groups = tuple(f"c{place * place % 7}" for place in range(size))
        if of.get("groups") == "many":
            groups = tuple(f"c{2 * place // 3}" for place in range(size))
        own = limits(of, trials=120) if of["budget"] == "of-tasks" and number == 0 else BudgetSpec()
        task = TaskSpec(
            "tuv"[number],
            tuple(f"q{place}" for place in range(size)),
            scales[min(number, len(scales) - 1)],
            clusters=groups if of["target"] == "clusters" else None,
            prompt_bounds=tuple(30 + place for place in range(size)),
            prompt_varies=number == 1,
            budget=own,
            weight=(3.0, 1.0, 1.0)[number] if of["tasks"] in ("weighed", "pooled") else 1.0,
            calls=1 + (number == 1),
        )
        found.append(task)
    return tuple(found)


def goal_of(name: str, low: float, unit: float, models: int) -> GoalSpec:
    best = (GoalSpec("top-k"), GoalSpec("top-k", k=2))[: models - 1]
    width, level = GoalSpec("width", width=0.5 * unit), GoalSpec("threshold", value=low + 0.55 * unit)
    claim, back = (GoalSpec("not-worse", model=one, margin=0.1 * unit) for one in ("m1", "m0"))
    plain = {
        "best": GoalSpec("top-k"), "best-two": GoalSpec("top-k", k=2), "threshold": level, "width": width,
        "baseline": GoalSpec("baseline", model="m1"), "pairs": GoalSpec("pairs", pairs=(("m1", "m0"),)),
        "not-worse": claim, "good-enough": GoalSpec("not-worse", model="m0"),
        "best-and-width": GoalSpec("all", goals=(*best, width)),
        "ranking-and-claims": GoalSpec("all", goals=(GoalSpec("ranking"), best[0], claim, back, level)),
    }  # fmt: skip
    return plain.get(name) or GoalSpec(name)


def table_of(task: TaskSpec, name: str, mean: float, each: int) -> np.ndarray:
    """Return the counts of a model's stored answers: `each` a question, one more of every third."""
    shares = task.shares
    table = np.zeros((len(task.questions), shares.shape[1]), dtype=shares.dtype)
    for place, question in enumerate(task.questions):
        for turn in range(each + (place % 3 == 0)):
            table[place] += shares[category(task, mean, (name, task.name, question), (name, question, turn))]
    return table


def references_of(of: Case, tasks: Sequence[TaskSpec]) -> tuple[ReferenceSpec, ...]:
    found = []
    means = {"none": {}, "two": {"old": 0.4, "older": 0.8}}.get(of["stored"], {"old": 0.4})
    for name, mean in means.items():
        lost, alike = {}, {}
        counts = {task.name: table_of(task, name, mean, 4) for task in tasks}
        for task in tasks:
            places = np.arange(len(task.questions))
            if of["stored"] == "with-lost":
                lost[task.name] = (places % 4 == 0) * 2 + (places % 5 == 2)
            if of["stored"] == "alike":
                alike[task.name] = (places % 3 == 1) * 2
            table = counts[task.name]
            if of["stored"] == "with-lost":
                table[2::5] = 0  # it has no answer to these, and was not asked the last
                table[-1] = 0
            if of["stored"] == "few":
                table[places % 3 > 0] = 0
            if of["stored"] == "uneven":
                table[places % 4 > 0] = table_of(task, name, mean, 1)[places % 4 > 0]
        found.append(ReferenceSpec(name, counts, "a file", lost, alike))
    return tuple(found)


def prior_of(tasks: Sequence[TaskSpec]) -> PriorSpec:
    counts = {"m0": {task.name: table_of(task, "earlier", 0.7, 2) for task in tasks}}
    counts["m1"] = {tasks[0].name: table_of(tasks[0], "earliest", 0.5, 1)}
    return PriorSpec(counts, "a run")


def category(task: TaskSpec, mean: float, question: tuple, trial: tuple) -> int:
    """Return the category of an answer: of a hard question it is worse."""
    right = min(max(mean + 0.3 * (chance("hard", question) - 0.5), 0.0), 1.0)
    draw, part = chance("draw", trial), chance("part", trial)
    if task.numbers:
        return int(25_200 * min(max(right + 0.6 * (draw - 0.5), 0.0), 1.0))
    worth = task.weights
    if len(worth) > 2 and part < 0.3:
        between = [one for one in range(len(worth)) if min(worth) < worth[one] < max(worth)]
        return between[int(len(between) * part / 0.3)]
    return worth.index(max(worth) if draw < right else min(worth))
