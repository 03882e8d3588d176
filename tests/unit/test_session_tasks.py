"""Several tasks in one run: one trial sequence, each task's own sums, one verdict with the tasks' weights."""

import json
from dataclasses import replace

import numpy as np
import pytest
from session_scripts import calls, drive, make_spec

from adaptive_eval.core.results import from_json, to_json
from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import TaskSpec


def two_tasks(overall="macro", **parts):
    spec = make_spec(3, 1, **parts)
    tasks = (
        TaskSpec("easy", tuple(f"e{number}" for number in range(40))),
        TaskSpec("hard", tuple(f"h{number}" for number in range(20)), (0.0, 0.5, 1.0)),
    )
    return replace(spec, tasks=tasks, overall=overall)


def answer(request):
    model = int(request.key.model[1:])
    rng = np.random.default_rng([3, model, request.key.index])
    chance = {"e": [0.9, 0.8, 0.5], "h": [0.7, 0.4, 0.1]}[request.question[0]][model]
    right = int(rng.random() < chance)
    return right if request.question[0] == "e" else 2 * right


def test_tasks_are_walked_in_proportion_to_their_sizes():
    run_sequence = Session(two_tasks()).board.run_sequence
    assert run_sequence.local(30) == (20, 10)
    assert run_sequence.local(300) == (200, 100)


@pytest.mark.parametrize(
    ("overall", "weights", "expected"),
    [
        ("macro", (1.0, 1.0), (0.5, 0.5)),
        ("macro", (1.0, 3.0), (0.25, 0.75)),
        ("pooled", (1.0, 1.0), (2 / 3, 1 / 3)),
        ("pooled", (1.0, 2.0), (0.5, 0.5)),
    ],
)
def test_a_tasks_own_weight_comes_on_top(overall, weights, expected):
    spec = two_tasks(overall)
    tasks = tuple(replace(task, weight=weight) for task, weight in zip(spec.tasks, weights, strict=True))
    assert replace(spec, tasks=tasks).task_weights == pytest.approx(expected)


def test_every_task_is_shown_in_its_own_units():
    spec = two_tasks(goal="budget", trials=3 * 300)
    graded = replace(spec.tasks[1], weights=(-1.0, 0.0, 3.0))
    session = drive(Session(replace(spec, tasks=(spec.tasks[0], graded))), answer, slots=3)
    results = session.results()
    easy, hard = results.tasks
    assert (easy.task, easy.questions, easy.weight) == ("easy", 40, 0.5)
    assert hard.scores[0].score == pytest.approx(-1.0 + 4.0 * 0.7, abs=0.5)
    assert all(one.low >= -1.0 and one.high <= 3.0 for one in hard.scores)
    assert from_json(json.loads(json.dumps(to_json(results)))) == results


def test_no_call_before_ten_questions_in_every_task():
    spec = two_tasks(max_passes=4)
    session = drive(
        Session(spec),
        lambda request: (2 if request.question[0] == "h" else 1) * int(request.key.model == "m0"),
    )
    first = min(call[2] for call in calls(session))
    local = session.board.run_sequence.local(first)
    assert all(
        sequence.seen(steps) >= 10
        for sequence, steps in zip(session.board.run_sequence.sequences, local, strict=True)
    )
