"""Trials of a question that share a request, under an owned clock: no answer is lost or paid twice."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest
from owned_runs import interrupted, run
from scripted import Scene, ScoreByStep, ScriptedController, ScriptedEndpoint, busy

from adaptive_eval.core.results import StopVerdict
from adaptive_eval.engine.clock import Deadlines
from adaptive_eval.engine.limits import FixedConcurrency, ServerLimits
from adaptive_eval.engine.model_client import ModelClient
from adaptive_eval.engine.retry import RetryPolicy
from adaptive_eval.engine.runner import RunnerOptions
from adaptive_eval.engine.solving import Solver
from adaptive_eval.engine.trial_task import TrialTask, share
from adaptive_eval.errors import ScorerUnavailable, TransientEndpointError
from adaptive_eval.options.limit_options import RateLimit
from adaptive_eval.trial import Message, TrialKey, TrialRequest, Usage


class InARow(ScriptedController):
    """Asks each question `width` times in a row; seeds follow each other all along."""

    width = 4

    def ask(self, capacity):
        width = min(
            self.width, max(capacity.values()) if not self.told and not self.capacities else self.fits
        )
        self.fits = width
        whole = {model: free - free % width for model, free in capacity.items()}
        return [
            TrialRequest(
                one.key, "task", f"q{one.key.index // self.width}", one.key.index % self.width, one.seed
            )
            for one in super().ask(whole)
        ]


@dataclass
class Sampler(ScriptedEndpoint):
    """Gives `gives(n)` of n answers; a request is known to the script by the step of its first trial."""

    gives: object = staticmethod(lambda n: n)
    lost: int | None = None
    sizes: list[tuple[int, int]] = field(default_factory=list)

    def body(self, messages, *, seed, n=1):
        return {"messages": [message.content for message in messages], "seed": seed, "n": n}

    async def sample(self, messages, *, seed, n):
        self.sizes.append((seed, n))
        first = await super().complete(messages, seed=seed)
        answers = [
            replace(first, text=f"answer {seed + i}", share=Usage(10 if i == 0 else 0, 5))
            for i in range(self.gives(n))
        ]
        return [None if i == self.lost and n > 1 else answer for i, answer in enumerate(answers)]

    async def complete(self, messages, *, seed):
        self.sizes.append((seed, 1))
        return await super().complete(messages, seed=seed)


@dataclass
class Shared(Scene):
    """A scene whose trials share requests of up to `samples` answers."""

    samples: int = 4
    gives: object = staticmethod(lambda n: n)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.controller = InARow(self.steps, self.journal)
        self.endpoints = {
            model: Sampler(url=one.url, script=one.script, gives=self.gives)
            for model, one in self.endpoints.items()
        }

    def client(self, model):
        return replace(super().client(model), samples=self.samples)

    @property
    def sizes(self):
        return self.endpoints["a"].sizes

    def texts(self):
        return {key.index: record.completion.text for key, record in self.recorder.outcomes.items()}


def late():
    return TransientEndpointError("no answer in time", kind="timeout")


ALL = {step: f"answer {step}" for step in range(24)}


def test_one_request_answers_the_trials_of_a_question():
    scene = Shared(steps={"a": 24}, concurrency=8)
    assert run(scene) == StopVerdict("resolved", "all is settled")
    assert scene.sizes == [(seed, 4) for seed in range(0, 24, 4)]
    assert scene.texts() == ALL
    assert scene.endpoints["a"].most_in_flight == 2


def test_the_prompt_is_paid_once_and_what_was_sent_is_stored():
    scene = Shared(steps={"a": 8}, concurrency=8)
    run(scene)
    told = {outcome.key.index: outcome.usage for outcome in scene.controller.told}
    assert told == {step: Usage(0 if step % 4 else 10, 5) for step in range(8)}
    for key, record in scene.recorder.outcomes.items():
        first = key.index - key.index % 4
        assert record.sent == {"messages": [f"task/q{key.index // 4}"], "seed": first, "n": 4}
        assert record.completion.usage == Usage(10, 5)
        assert record.request.seed == key.index


def test_an_answer_that_waits_for_its_scorer_keeps_the_request_that_gave_it():
    asked: set[int] = set()

    class AwayAtFirst(ScoreByStep):
        async def score(self, request, completion):
            if request.seed not in asked:
                asked.add(request.seed)
                raise ScorerUnavailable("the judge is away", kind="judge")
            return await super().score(request, completion)

    scene = Shared(steps={"a": 4}, retry=RetryPolicy(attempts=1), scoring=AwayAtFirst())
    run(scene)
    assert scene.sizes == [(0, 4)]
    assert {(one.sent["seed"], one.sent["n"]) for one in scene.recorder.outcomes.values()} == {(0, 4)}


def test_an_answer_that_lacks_something_is_billed_and_asked_for_again_alone():
    asked: set[int] = set()

    class LackingAtFirst(ScoreByStep):
        async def score(self, request, completion):
            if request.seed == 1 and not asked:
                asked.add(1)
                raise TransientEndpointError("no log-probabilities", kind="malformed")
            return await super().score(request, completion)

    scene = Shared(steps={"a": 4}, scoring=LackingAtFirst())
    run(scene)
    assert scene.sizes == [(0, 4), (1, 1)]
    assert scene.controller.presumed == [TrialKey("a", 1)]


@pytest.mark.parametrize(("samples", "sizes"), [(1, {1: 12}), (2, {2: 6}), (3, {3: 3, 1: 3}), (9, {4: 3})])
def test_no_more_answers_are_asked_for_than_the_lane_wants_or_the_question_has(samples, sizes):
    scene = Shared(steps={"a": 12}, concurrency=12, samples=samples)
    run(scene)
    assert Counter(n for _, n in scene.sizes) == sizes


@pytest.mark.parametrize(
    ("given", "lost"), [(1, None), (2, None), (3, None), (4, 0), (4, 1), (4, 2), (4, 3), (3, 0)]
)
def test_answers_that_do_not_come_are_asked_for_singly_and_reported(given, lost):
    """Each with its own seed; one that is lost in the middle shifts no other."""
    scene = Shared(steps={"a": 8}, concurrency=8, gives=lambda n: min(n, given))
    scene.endpoints["a"].lost = lost
    run(scene)
    assert scene.texts() == {step: f"answer {step}" for step in range(8)}
    lacking = [step for step in range(8) if step % 4 >= given or step % 4 == lost]
    assert sorted(seed for seed, n in scene.sizes if n == 1) == lacking
    short = [record for record in scene.recorder.of("attempt") if record.error is not None]
    assert sorted(record.key.index for record in short) == lacking
    assert {record.error for record in short} == {"fewer_choices"}
    assert short[0].message == f"{4 - len(lacking) // 2} answers came where 4 were asked for; asked singly"
    told = {outcome.key.index: outcome.usage for outcome in scene.controller.told}
    assert all(told[step] == Usage(10, 5) for step in lacking)
    assert scene.controller.presumed == []
    (health,) = (record.endpoints[0] for record in scene.recorder.of("snapshot")[-1:])
    assert health.errors == {"fewer_choices": len(lacking)}


def test_a_failed_request_is_tried_again_for_all():
    scene = Shared(
        steps={"a": 8}, concurrency=8, scripts={"a": lambda step, attempt: busy() if attempt < 3 else 1.0}
    )
    run(scene)
    assert scene.texts() == {step: f"answer {step}" for step in range(8)}
    assert Counter(scene.sizes) == {(0, 4): 3, (4, 4): 3}
    attempts = scene.recorder.of("attempt")
    assert Counter(record.key.index for record in attempts) == dict.fromkeys(range(8), 3)


def test_what_may_have_been_billed_is_presumed_for_every_trial_of_the_request():
    scene = Shared(
        steps={"a": 4}, concurrency=4, scripts={"a": lambda step, attempt: late() if attempt < 2 else 1.0}
    )
    run(scene)
    assert Counter(key.index for key in scene.controller.presumed) == dict.fromkeys(range(4), 1)


def test_trials_whose_request_fails_for_good_come_back_to_the_queue_on_their_own():
    scene = Shared(
        steps={"a": 4},
        concurrency=4,
        retry=RetryPolicy(attempts=2),
        scripts={"a": lambda step, attempt: busy() if (step, attempt) in {(0, 1), (0, 2)} else 1.0},
    )
    run(scene)
    assert scene.texts() == {step: f"answer {step}" for step in range(4)}
    assert scene.sizes == [(0, 4), (0, 4), (0, 1), (1, 1), (2, 1), (3, 1)]


def answering(step, attempt):
    return 5.0


@pytest.mark.parametrize(
    ("interrupts", "script", "answered", "abandoned"),
    [
        (1, answering, 8, {}),
        (2, answering, 0, dict.fromkeys(range(8), True)),
        (1, lambda step, attempt: busy(), 0, dict.fromkeys(range(8), False)),  # waits for its next attempt
    ],
)
def test_an_interrupt_lets_shared_requests_come_back_or_abandons_all_of_them(
    interrupts, script, answered, abandoned
):
    scene = Shared(
        steps={"a": 24},
        concurrency=8,
        retry=RetryPolicy(base=100.0),
        jitter=lambda: 0.9,
        scripts={"a": script},
    )
    interrupted(scene, *[1.0] * interrupts)
    assert scene.texts() == {step: f"answer {step}" for step in range(answered)}
    assert scene.controller.abandoned == {TrialKey("a", step): paid for step, paid in abandoned.items()}


def test_the_deadline_keeps_what_has_been_answered():
    scene = Shared(
        steps={"a": 24}, concurrency=4, options=RunnerOptions(deadlines=Deadlines(2.5), at_deadline="cancel")
    )
    run(scene)
    assert scene.texts() == {step: f"answer {step}" for step in range(8)}
    assert set(scene.controller.abandoned) == {TrialKey("a", step) for step in range(8, 12)}


@pytest.mark.parametrize(
    ("second", "together"),
    [(("t", "q", 1), 2), (("t", "q", 2), 1), (("u", "q", 1), 1), (("t", "r", 1), 1), (("solved", "q", 8), 1)],
)
def test_only_trials_of_one_question_whose_seeds_follow_share_a_request(second, together):
    solvers = {"solved": Solver("s", Sampler.complete, 1, 99)}
    client = ModelClient([Sampler()], None, samples=4, solvers=solvers)
    first = ("t", "q", 0) if second[0] != "solved" else ("solved", "q", 7)
    asked = [
        TrialRequest(TrialKey("a", seed), task, question, 0, seed) for task, question, seed in (first, second)
    ]

    async def main():
        for prompts, size in (("??", together), ("?!", 1)):
            messages = [[Message("user", prompt)] for prompt in prompts]
            trials = [TrialTask.of(one, client, said) for one, said in zip(asked, messages, strict=True)]
            share(trials)
            assert [len(trial.sending.trials) for trial in trials] == [size, size]

    asyncio.run(main())


@pytest.mark.parametrize(
    "limits",
    [
        {"rates": {"a": RateLimit(requests_per_minute=60)}},
        {"servers": {"http://a/v1": ServerLimits(FixedConcurrency(2))}},
        {"servers": {"http://a/v1": ServerLimits(FixedConcurrency(2))}, "concurrency": None},
        {"rates": {"a": RateLimit(tokens_per_minute=80)}, "most_tokens": 8},
    ],
    ids=["a request a second", "two requests at a server", "the same, by its limit alone", "tokens"],
)
def test_limits_count_requests_and_break_up_none(limits):
    scene = Shared(steps={"a": 48}, scripts={"a": lambda step, attempt: 5.0}, **{"concurrency": 24, **limits})
    run(scene)
    assert scene.texts() == {step: f"answer {step}" for step in range(48)}
    assert scene.sizes == [(seed, 4) for seed in range(0, 48, 4)]
    if "servers" in limits:
        assert scene.endpoints["a"].most_in_flight == 2
        return
    calls = [at for at, _ in scene.endpoints["a"].calls]
    if "most_tokens" in limits:  # each takes 30 tokens, and 32 at most
        assert all(later - earlier >= 59.9 for earlier, later in zip(calls, calls[2:], strict=False))
    else:
        assert all(later - earlier >= 0.999 for earlier, later in pairwise(calls))


@pytest.mark.parametrize("others", [0, 1])
def test_a_budget_that_refuses_another_request_for_any_of_its_trials_ends_the_attempts(others):
    """What the lost request is counted at may fit for its first trial and not for its last."""

    def script(step, attempt):
        return (0.1, TransientEndpointError("the connection was lost", kind="dropped"))

    scene = Shared(steps={"a": 4, "b": 1}, scripts={"a": script}, concurrency=4)
    scene.others = {"a": [Sampler(url=f"http://other{one}/v1", script=script) for one in range(others)]}
    scene.controller.affords = lambda key: key.model == "b" or key.index < 3
    scene.controller.resolve_after = 1
    run(scene)
    asked = [size for endpoint in scene.pool("a") for size in endpoint.sizes]
    assert asked == [(0, 4)]
    assert scene.controller.abandoned == {TrialKey("a", step): False for step in range(4)}
