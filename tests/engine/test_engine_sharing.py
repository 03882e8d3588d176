"""Trials of a question that share a request, under an owned clock: no answer is lost or paid twice."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest
from scene import Scene
from scripted import ScriptedController, ScriptedEndpoint, ScriptedScoring, busy, fails

from adaptive_eval.core.results import StopVerdict
from adaptive_eval.engine.clock import Deadlines
from adaptive_eval.engine.model_client import ModelClient
from adaptive_eval.engine.runner import RunnerOptions
from adaptive_eval.engine.solving import Solver, call_seed
from adaptive_eval.engine.trial_task import REDRAWN, TrialTask, share
from adaptive_eval.errors import ScorerUnavailable, TransientEndpointError
from adaptive_eval.options.limit_options import RateLimit, SharedLimits
from adaptive_eval.options.request_options import RetryConfig
from adaptive_eval.trial import Message, Score, TrialKey, TrialRequest, Usage


class InARow(ScriptedController):
    """Asks each question four times in a row; seeds follow each other all along."""

    def ask(self, capacity):
        if not self.capacities:
            self.fits = min(4, max(capacity.values()))
        whole = {model: free - free % self.fits for model, free in capacity.items()}
        requests = []
        for one in super().ask(whole):
            question, sample = divmod(one.key.index, 4)
            requests.append(TrialRequest(one.key, "task", f"q{question}", sample, one.seed))
        return requests


@dataclass
class Sampler(ScriptedEndpoint):
    """Gives `gives` of n answers at most; the script knows a request by the step of its first trial."""

    gives: int = 99
    lost: int | None = None
    sizes: list[tuple[int, int]] = field(default_factory=list)

    def body(self, messages, *, seed, n=1):
        return {"messages": [message.content for message in messages], "seed": seed, "n": n}

    async def sample(self, messages, *, seed, n):
        self.sizes.append((seed, n))
        first = await super().complete(messages, seed=seed)
        answers = []
        for i in range(min(n, self.gives)):
            part = Usage(10 if i == 0 else 0, 5)
            given = replace(first, text=f"answer {seed + i}", share=part)
            answers.append(None if i == self.lost and n > 1 else given)
        return answers

    async def complete(self, messages, *, seed):
        self.sizes.append((seed, 1))
        return await super().complete(messages, seed=seed)


@dataclass
class Shared(Scene):
    """A scene whose trials share requests of up to `samples` answers."""

    samples: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        self.controller = InARow(self.steps, self.journal, self.resolve_after)
        self.endpoints = {model: Sampler(one.script, one.url) for model, one in self.endpoints.items()}

    def client(self, model):
        return replace(super().client(model), samples=self.samples)

    @property
    def sizes(self):
        return self.server.sizes

    def check_texts(self, trials):
        """Check that the first `trials` trials, and no others, have the answers to their own requests."""
        texts = {key.index: record.completion.text for key, record in self.outcomes.items()}
        assert texts == {step: f"answer {step}" for step in range(trials)}


def played(*args, **options):
    stop_at = options.pop("stop_at", ())
    scene = Shared(*args, **options)
    scene.play(*stop_at)
    return scene


def test_one_request_answers_the_trials_of_a_question_and_pays_the_prompt_once():
    scene = played(24, concurrency=8)
    assert scene.verdict == StopVerdict("resolved", "all is settled")
    assert scene.sizes == [(seed, 4) for seed in range(0, 24, 4)]
    scene.check_texts(24)
    assert scene.server.most_in_flight == 2
    told = {outcome.key.index: outcome.usage for outcome in scene.controller.told}
    assert told == {step: Usage(0 if step % 4 else 10, 5) for step in range(24)}
    for key, record in scene.outcomes.items():
        first = key.index - key.index % 4
        assert record.sent == {"messages": [f"task/q{key.index // 4}"], "seed": first, "n": 4}
        assert (record.completion.usage, record.request.seed) == (Usage(10, 5), key.index)


def test_an_answer_that_waits_for_its_scorer_keeps_the_request_that_gave_it():
    away = ScorerUnavailable("the judge is away", kind="judge")
    scoring = ScriptedScoring(lambda key, time: away if time == 1 else Score(1))
    scene = played(4, retry=RetryConfig(attempts=1), scoring=scoring)
    assert scene.sizes == [(0, 4)]
    assert {(one.sent["seed"], one.sent["n"]) for one in scene.outcomes.values()} == {(0, 4)}


def test_an_answer_that_lacks_something_is_billed_and_asked_for_again_alone():
    lacking = TransientEndpointError("no log-probabilities", kind="malformed")
    scoring = ScriptedScoring(lambda key, time: lacking if (key.index, time) == (1, 1) else Score(1))
    scene = played(4, scoring=scoring)
    assert scene.sizes == [(0, 4), (1, 1)]
    assert scene.controller.presumed == [TrialKey("a", 1)]


@pytest.mark.parametrize(("samples", "sizes"), [(1, {1: 12}), (2, {2: 6}), (3, {3: 3, 1: 3}), (9, {4: 3})])
def test_no_more_answers_are_asked_for_than_the_lane_wants_or_the_question_has(samples, sizes):
    scene = played(12, concurrency=12, samples=samples)
    assert Counter(n for _, n in scene.sizes) == sizes


@pytest.mark.parametrize(
    ("given", "lost"), [(1, None), (2, None), (3, None), (4, 0), (4, 1), (4, 2), (4, 3), (3, 0)]
)
def test_answers_that_do_not_come_are_asked_for_singly_and_reported(given, lost):
    """Each with its own seed; one that is lost in the middle shifts no other."""
    scene = Shared(8, concurrency=8)
    scene.server.gives, scene.server.lost = given, lost
    scene.play()
    scene.check_texts(8)
    lacking = [step for step in range(8) if step % 4 >= given or step % 4 == lost]
    assert sorted(seed for seed, n in scene.sizes if n == 1) == lacking
    assert sorted(record.key.index for record in scene.failed) == lacking
    assert {record.error for record in scene.failed} == {"fewer_choices"}
    said = f"{4 - len(lacking) // 2} answers came although 4 were asked for; asked singly"
    assert scene.failed[0].message == said
    told = {outcome.key.index: outcome.usage for outcome in scene.controller.told}
    assert all(told[step] == Usage(10, 5) for step in lacking)
    assert scene.controller.presumed == []
    assert scene.recorder.of("snapshot")[-1].endpoints[0].errors == {"fewer_choices": len(lacking)}


def test_after_a_time_limit_answers_that_do_not_come_are_asked_for_with_the_other_draw_s_seeds():
    late = TransientEndpointError("it took too long", kind="timeout")
    scene = Shared(4, script=lambda step, attempt: (30.0, late) if (step, attempt) == (0, 1) else 1.0)
    scene.server.gives = 2
    scene.play()
    other = call_seed(0, REDRAWN)
    assert scene.sizes == [(0, 4), (other, 4), (other + 2, 1), (other + 3, 1)]
    sent = {key.index: record.sent["seed"] for key, record in scene.outcomes.items()}
    assert sent == {0: other, 1: other, 2: other + 2, 3: other + 3}
    assert all(record.discarded[0] == "timeout" for record in scene.outcomes.values())


def test_what_may_have_been_billed_is_counted_for_every_trial_of_the_request_and_in_the_rate():
    lost = fails((1.0, TransientEndpointError("no answer in time", kind="timeout")))
    scene = played(4, lost, rates={"a": RateLimit(tokens_per_minute=40)}, most_tokens=8)
    assert Counter(key.index for key in scene.controller.presumed) == dict.fromkeys(range(4), 1)
    assert scene.server.starts == pytest.approx([0.0, 61.0])


def test_trials_whose_request_fails_for_good_come_back_to_the_queue_on_their_own():
    def script(step, attempt):
        return busy() if step == 0 and attempt <= 2 else 1.0

    scene = played(4, script, retry=RetryConfig(attempts=2))
    scene.check_texts(4)
    assert scene.sizes == [(0, 4), (0, 4), (0, 1), (1, 1), (2, 1), (3, 1)]


@pytest.mark.parametrize(
    ("interrupts", "script", "answered", "abandoned"),
    [
        (1, 5.0, 8, {}),
        (2, 5.0, 0, dict.fromkeys(range(8), True)),
        (1, busy(), 0, dict.fromkeys(range(8), False)),  # waits for its next attempt
    ],
)
def test_an_interrupt_lets_shared_requests_come_back_or_abandons_all_of_them(
    interrupts, script, answered, abandoned
):
    patient = {"jitter": lambda: 54.0}
    scene = played(24, script, 8, stop_at=[1.0] * interrupts, **patient)
    scene.check_texts(answered)
    assert scene.controller.abandoned == {TrialKey("a", step): paid for step, paid in abandoned.items()}


def test_the_deadline_keeps_what_has_been_answered():
    scene = played(24, options=RunnerOptions(deadlines=Deadlines(2.5), at_deadline="cancel"))
    scene.check_texts(8)
    assert set(scene.controller.abandoned) == {TrialKey("a", step) for step in range(8, 12)}


@pytest.mark.parametrize(
    ("second", "together"),
    [(("t", "q", 1), 2), (("t", "q", 2), 1), (("u", "q", 1), 1), (("t", "r", 1), 1), (("solved", "q", 8), 1)],
)
def test_only_trials_of_one_question_whose_seeds_follow_share_a_request(second, together):
    solvers = {"solved": Solver("s", Sampler.complete, 1, 99)}
    client = ModelClient([Sampler()], None, samples=4, solvers=solvers)
    first = ("t", "q", 0) if second[0] != "solved" else ("solved", "q", 7)
    asked = [TrialRequest(TrialKey("a", seed), *what, 0, seed) for *what, seed in (first, second)]

    async def main():
        for prompts, size in (("??", together), ("?!", 1)):
            messages = [[Message("user", prompt)] for prompt in prompts]
            trials = [
                TrialTask.from_request(one, client, said) for one, said in zip(asked, messages, strict=True)
            ]
            share(trials)
            assert [len(trial.sending.trials) for trial in trials] == [size, size]

    asyncio.run(main())


@pytest.mark.parametrize(
    "limits",
    [
        {"rates": {"a": RateLimit(requests_per_minute=60)}},
        {"servers": {"http://a/v1": SharedLimits(concurrency=2)}},
        {"servers": {"http://a/v1": SharedLimits(concurrency=2)}, "concurrency": None},
        {"rates": {"a": RateLimit(tokens_per_minute=80)}, "most_tokens": 8},
    ],
    ids=["a request a second", "two requests at a server", "the same, by its limit alone", "tokens"],
)
def test_limits_count_requests_and_break_up_none(limits):
    scene = played(48, 5.0, **{"concurrency": 24, **limits})
    scene.check_texts(48)
    assert scene.sizes == [(seed, 4) for seed in range(0, 48, 4)]
    starts = scene.server.starts
    if "servers" in limits:
        assert scene.server.most_in_flight == 2
    elif "most_tokens" in limits:  # each takes 30 tokens, and 32 at most
        assert all(later - earlier >= 59.9 for earlier, later in zip(starts, starts[2:], strict=False))
    else:
        assert all(later - earlier >= 0.999 for earlier, later in pairwise(starts))


@pytest.mark.parametrize("others", [0, 1])
@pytest.mark.parametrize("refused", range(4))
def test_a_budget_that_refuses_another_request_for_any_of_its_trials_ends_the_attempts(others, refused):
    """What the lost request is counted at may fit for some of its trials, and not for one."""
    lost = (0.1, TransientEndpointError("the connection was lost", kind="dropped"))
    more = [Sampler(lost, f"http://other{one}/v1") for one in range(others)]
    scene = Shared({"a": 4, "b": 1}, scripts={"a": lost}, others=more, resolve_after=1)
    scene.controller.affords = lambda key: key.model == "b" or key.index != refused
    scene.play()
    asked = [size for endpoint in scene.pool() for size in endpoint.sizes]
    assert asked == [(0, 4)]
    assert scene.controller.abandoned == {TrialKey("a", step): False for step in range(4)}
