"""Answers that no scorer could judge: kept, never right or wrong, and never paid for twice."""

from __future__ import annotations

from dataclasses import dataclass, field

from owned_clock import run_owned
from owned_runs import interrupted
from scripted import Scene

from adaptive_eval.engine.retry import RetryPolicy
from adaptive_eval.errors import ScorerUnavailable, TransientEndpointError
from adaptive_eval.trial import Missing, Score, TrialKey


def away() -> ScorerUnavailable:
    return ScorerUnavailable("the judge wise did not answer: APIConnectionError", kind="judge")


@dataclass
class Scripted:
    """Scores by `script`: for a step and how often it was asked about, a score or an error."""

    script: object
    asked: dict[int, int] = field(default_factory=dict)

    async def score(self, request, completion):
        step = request.key.index
        self.asked[step] = self.asked.get(step, 0) + 1
        found = self.script(step, self.asked[step])
        if isinstance(found, Exception):
            raise found
        return found


def right(completion_text: str = "x") -> Score:
    return Score(1, completion_text)


def test_an_answer_waits_for_its_scorer_and_is_not_asked_for_again():
    scoring = Scripted(lambda step, time: away() if time < 4 else right())
    scene = Scene(scoring=scoring, jitter=lambda: 1.0)
    assert run_owned(scene.run()).reason == "resolved"
    assert not scene.missing()
    assert set(scoring.asked.values()) == {4}
    assert set(scene.endpoints["a"].attempts.values()) == {1}


def test_an_answer_whose_scorer_stays_away_is_kept_without_a_category():
    scoring = Scripted(lambda step, time: away() if step == 3 else right())
    scene = Scene(scoring=scoring)
    run_owned(scene.run())
    assert scene.endpoints["a"].attempts[3] == 1
    record = scene.recorder.outcomes[TrialKey("a", 3)]
    assert record.completion.text == "answer 3"
    assert record.score.category is None
    assert record.missing == "unscored: the judge wise did not answer: APIConnectionError"
    assert [outcome.key.index for outcome in scene.missing()] == [3]
    assert record.outcome == Missing(TrialKey("a", 3), record.missing, record.completion.usage)


def test_a_scorer_that_never_answers_stops_the_model_instead_of_making_holes():
    scene = Scene(steps={"a": 100}, scoring=Scripted(lambda step, time: away()), outage=3, concurrency=1)
    run_owned(scene.run())
    # not the address of the model's server, which has answered
    assert scene.controller.stopped_models["a"].startswith(
        "consecutive trials without a score: unscored: the judge"
    )
    assert 3 <= len(scene.missing()) <= 4


def test_an_answer_that_waits_in_the_queue_when_the_run_ends_is_kept():
    once = RetryPolicy(attempts=1)
    scene = Scene(
        steps={"a": 2},
        concurrency=2,
        retry=once,
        scoring=Scripted(lambda step, time: away() if step == 0 else right()),
        scripts={"a": lambda step, attempt: 1.0},
    )
    scene.controller.resolve_after = 1
    run_owned(scene.run())
    record = scene.recorder.outcomes[TrialKey("a", 0)]
    assert record.completion.text == "answer 0"
    assert record.missing.startswith("unscored: the judge wise did not answer")
    assert scene.endpoints["a"].attempts[0] == 1


def test_an_answer_that_lacks_something_is_asked_for_again():
    lacking = TransientEndpointError("the answer has no log-probabilities", kind="malformed")
    scene = Scene(scoring=Scripted(lambda step, time: lacking if time == 1 else right()))
    run_owned(scene.run())
    assert not scene.missing()
    assert set(scene.endpoints["a"].attempts.values()) == {2}


def test_an_interrupt_does_not_wait_for_a_scorer_that_is_away():
    scene = Scene(steps={"a": 4}, scoring=Scripted(lambda step, time: away()), jitter=lambda: 1.0)
    _, ended = interrupted(scene, 5.0)
    assert ended <= 7.0
    assert {record.completion is not None for record in scene.recorder.outcomes.values()} == {True}
