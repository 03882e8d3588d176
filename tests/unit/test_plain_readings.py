"""What a session reads of its answers, with every option crossed, against sums over single trials.

Copies, lost and dropped answers, draws that were given up, several tasks and weights, grades, clusters, and
stored results with gaps and lost answers of their own.
"""

from dataclasses import asdict, replace

import numpy as np
import plain_readings as plain
import pytest

from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import (
    AllocationSpec,
    ModelSpec,
    ReferenceSpec,
    SessionSpec,
    StoppingSpec,
    TaskSpec,
)
from adaptive_eval.trial import COPY_REASON, Missing, TrialOutcome, Usage
from scorio.sequential.moments import unit_scores

BINARY, GRADED = (0.0, 1.0), (-1.0, 2.0, 1.0)
FIELDS = ("difference", "variance", "guarded", "margin", "questions", "trials", "slack")
CASES = {
    "right or wrong": ((19,), BINARY, "benchmark", False),
    "graded": ((17,), GRADED, "benchmark", False),
    "several tasks": ((12, 7), BINARY, "benchmark", False),
    "several tasks, graded": ((7, 15), GRADED, "benchmark", False),
    "a sample": ((16,), BINARY, "population", False),
    "clusters": ((27,), BINARY, "population", True),
    "several tasks in clusters": ((9, 14), GRADED, "population", True),
    "more questions than were asked": ((90,), BINARY, "benchmark", False),
    "rounds": ((9,), BINARY, "rounds", False),
    "rounds, graded": ((8,), GRADED, "rounds", False),
    "rounds of several tasks": ((9, 5), BINARY, "rounds", False),
}


def are_copies(name, question):
    """Say whether equal stored answers to a question are one text."""
    return name == "r1" and question % 3 == 1


def spec_of(sizes, weights, target, clustered, rng):
    """Return a session of three models against two stored ones, at a level at which nothing is decided."""
    tasks, stored = [], [({}, {}), ({}, {})]
    for number, size in enumerate(sizes):
        names = tuple(f"q{question}" for question in range(size))
        groups = tuple(f"g{question // 3}" for question in range(size)) if clustered else None
        tasks.append(TaskSpec(f"t{number}", names, weights, clusters=groups, weight=3.0 - 2.0 * number))
        for place, (counts, lost) in enumerate(stored):
            counts[f"t{number}"] = rng.integers(0, 2 + 2 * place, (size, len(weights)))
            counts[f"t{number}"][:2], counts[f"t{number}"][2] = 0, 1
            if place:  # and of some it has lost all
                lost[f"t{number}"] = rng.integers(0, 2, size)
                lost[f"t{number}"][:2] = number, 1
    references = []
    for place, (counts, lost) in enumerate(stored):
        alike = {}
        for task, table in counts.items():
            chosen = np.array([are_copies(f"r{place}", question) for question in range(len(table))])
            alike[task] = np.where(chosen, (table * (table - 1)).sum(axis=1), 0)
        references.append(ReferenceSpec(f"r{place}", counts, lost=lost, alike=alike))
    order, target = ("rounds", "benchmark") if target == "rounds" else ("schedule", target)
    stopping = StoppingSpec(
        confidence=0.8 if target == "population" else 1.0 - 1e-9, equivalence=0.1, target=target, max_passes=9
    )
    models = tuple(ModelSpec(name) for name in ("a", "b", "c"))
    given = {"references": tuple(references), "allocation": AllocationSpec(questions=order)}
    return SessionSpec(models, tuple(tasks), stopping=stopping, seed=3, **given)


def played(spec, rng, steps):
    """Tell a session so many trials of each model, or to its end; return it with what was told, by step."""
    session, log, texts = Session(spec), {}, {}
    while len(log) < 3 * steps and session.stopped is None:
        outcomes = []
        for request in session.ask(4):
            key, place = request.key, int(request.task[1:])
            worth, fate = rng.integers(len(spec.tasks[place].weights)), rng.random()
            text = (int(worth), int(rng.integers(4) == 0))
            seen = texts.setdefault((key.model, request.task, request.question), set())
            may_be_copy = key.model != "c" and text[1] == 0 and text in seen
            told = spec.tasks[place].unit_scores[worth]
            outcome = TrialOutcome(key, int(worth), Usage(), hash(text), may_be_copy)
            if fate < 0.08:
                told, outcome = plain.LOST, Missing(key, "timeout")
            elif fate < 0.12:
                told, outcome = plain.DROPPED, Missing(key, COPY_REASON)
            elif fate < 0.16:
                told = plain.LOST
                outcome = TrialOutcome(key, int(worth), Usage(), hash(text), may_be_copy, ("timeout",))
            else:
                seen.add(text)
            question = int(request.question[1:])
            copied = hash(text) if may_be_copy and told not in (plain.LOST, plain.DROPPED) else None
            log[key.model, key.index] = place, plain.Trial(question, told, copied)
            outcomes.append(outcome)
        session.tell(outcomes)
    return session, log


@pytest.fixture(scope="module", params=CASES)
def read(request):
    """Return a session, what its models and references answered by task, and how clusters are made."""
    sizes, weights, target, clustered = CASES[request.param]
    rng = np.random.default_rng([7, *request.param.encode()])
    spec = spec_of(sizes, weights, target, clustered, rng)
    session, log = played(spec, rng, 78)
    scores = unit_scores(weights)
    clusters = [np.arange(size) // 3 for size in sizes] if clustered else [None] * len(sizes)

    def answers(name, task, steps):
        size = sizes[task]
        if name.startswith("r"):
            one = spec.references[int(name[1:])]
            counts, lost = one.counts[f"t{task}"], one.lost.get(f"t{task}", np.zeros(size, int))
            trials = []
            for question in range(size):
                for category, number in enumerate(counts[question].tolist()):
                    first = plain.Trial(question, float(scores[category]))
                    again = replace(first, text=category) if are_copies(name, question) else first
                    trials += [first] * min(number, 1) + [again] * (number - 1)
                trials += [plain.Trial(question, plain.LOST)] * int(lost[question])
            return plain.Plain(trials, scores, size, stored=True)
        own = [trial for place, trial in (log[name, step] for step in range(steps)) if place == task]
        in_rounds = spec.own_rounds[task] and len(own) > 2 * size
        return (plain.PlainRounds if in_rounds else plain.Plain)(own, scores, size)

    return session, answers, clusters


def near(expected):
    return pytest.approx(asdict(expected), rel=1e-9, abs=1e-9)


def test_every_pair_is_read_as_defined(read):
    session, answers, clusters = read
    spec, fold = session.spec, session.comparison.fold
    goal, latest = session.comparison.contrasts, fold.latest
    options = {"guard": fold.levels.guard, "margin": spec.margin, "target": spec.stopping.target}
    kinds = set()
    for row, (first, second) in enumerate(zip(goal.first.tolist(), goal.second.tolist(), strict=True)):
        names, parts, steps = (spec.names[first], spec.names[second]), [], int(fold.progress[row])
        of = plain.against_stored if names[1].startswith("r") else plain.pair
        for task, groups in enumerate(clusters):
            both = [answers(name, task, steps) for name in names]
            parts.append(of(*both, clusters=groups, **options))
        expected = plain.overall(spec.task_weights, parts)
        found = {name: float(getattr(latest, name)[row]) for name in FIELDS}
        assert found == near(expected), names
        assert steps > 15
        kinds.add(of)
    assert len(kinds) == 2
    task = answers("a", 0, int(fold.progress[0]))
    copies = sum(trial.text is not None for trial in task.trials)
    assert copies >= (task.count - len(task.answers)) // 8, "else they were not crossed"


def test_every_score_is_read_as_defined(read):
    session, answers, clusters = read
    spec, board = session.spec, session.board
    found = board.scores()
    guard = -np.log(1.0 - spec.stopping.confidence)
    for row, name in enumerate(spec.names):
        steps = 0 if name.startswith("r") else int(board.progress[row])
        parts = []
        for task, groups in enumerate(clusters):
            own = answers(name, task, steps)
            parts.append(plain.score(own, guard=guard, target=spec.stopping.target, clusters=groups))
        expected = plain.overall(spec.task_weights, parts)
        assert {one: float(getattr(found, one)[row, 0]) for one in FIELDS} == near(expected), name
