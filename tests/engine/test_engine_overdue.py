"""Answers that hang: the session plans without them, and launches go on until their timeout."""

from dataclasses import replace

import pytest
from owned_clock import OwnedClock, run_owned
from scene import Scene
from scripted import ScriptedEndpoint, broken
from session_scripts import make_spec

from adaptive_eval.core.session import Session
from adaptive_eval.engine.overdue import AnswerTimes
from adaptive_eval.trial import DISCARD_CAUSES, Score, TrialKey

KEY = TrialKey("a", 37)


@pytest.mark.parametrize(
    ("answers", "longest", "awaited", "late"),
    [
        (32, 1.0, {37: 5.1}, [37]),  # five seconds at the least
        (32, 1.0, {37: 5.0}, []),
        (15, 1.0, {37: 50.0}, []),  # too few have come
        (200, 4.0, {37: 12.1, 38: 12.0, 39: 1.0}, [37]),  # three times as long as the longest
        (32, 1.0, {37: 9.0, 38: 9.0}, [37, 38]),
        (32, 1.0, {37: 9.0, 38: 9.0, 39: 9.0}, []),  # too many: its server is slow
        (48, 1.0, {37: 9.0, 38: 9.0, 39: 9.0}, [37, 38, 39]),
    ],
)
def test_an_answer_is_overdue_that_takes_three_times_as_long_as_any_other(answers, longest, awaited, late):
    times = AnswerTimes()
    for number in range(answers):
        times.took(longest if number == 3 else 0.5 * longest)
    found = times.overdue({TrialKey("a", step): seconds for step, seconds in awaited.items()})
    assert [key.index for key in found] == late


@pytest.mark.parametrize(
    ("script", "times"),
    [
        (lambda attempt: 30.0, 25),  # without the first five seconds
        (lambda attempt: 4.0, 0),
        (lambda attempt: (4.0, broken()) if attempt == 1 else 4.0, 3),  # awaited from its first attempt on
    ],
)
def test_the_session_is_told_of_overdue_answers_once_a_second_until_they_end(script, times):
    scripts = {"a": lambda step, attempt: script(attempt) if step == 37 else 0.25}
    scene = Scene({"a": 160, "b": 80}, scripts=scripts, concurrency=4)
    scene.play()
    told = [entry[1] for entry in scene.journal if entry[0] == "overdue"]
    assert told == [[KEY]] * len(told)
    assert abs(len(told) - times) <= 1


class ByModel:
    """Answers are right in these shares."""

    async def score(self, request, completion):
        chance = {"a": 0.3, "b": 0.5, "c": 0.58, "d": 0.85}[request.key.model]
        return Score(int(hash((request.key.index, chance)) % 1000 / 1000 < chance), completion.text)


@pytest.mark.slow
@pytest.mark.parametrize("rounds", ["schedule", "rounds"])
def test_while_an_answer_hangs_all_that_is_needed_is_asked(rounds):
    """Answers take a second, the 20th one of the first model ten minutes, which is the timeout."""
    calls, hung = [], []

    def script(seed, attempt):
        calls.append(OwnedClock().now())
        if len(calls) == 20:
            hung.append(seed)
        return 600.0 if seed in hung else 1.0

    scene = Scene(dict.fromkeys("abcd", 0), concurrency=4)
    spec = make_spec("abcd", 30, max_passes=60, equivalence=0.12, rounds=rounds)
    session = scene.controller = Session(replace(spec, redrawn=frozenset(DISCARD_CAUSES)))
    scene.scoring = ByModel()
    other = ScriptedEndpoint(1.0)
    scene.pool = lambda model: [ScriptedEndpoint(script)] if model == "a" else [other]
    assert run_owned(scene.unchecked()).reason == "resolved"
    assert 25.0 < max(at for at in calls) < 100.0  # 21.0 without a plan
    assert max(at for at, _ in other.calls) < 100.0  # 115.0
    assert max(session.states.issued) < 400  # 464
