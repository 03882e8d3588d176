"""One trial in flight as a state machine, and the request that is sent for it and maybe for others."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, NamedTuple, cast

from adaptive_eval.engine.answer_watch import NEARLY_ALL
from adaptive_eval.engine.model_client import ModelClient
from adaptive_eval.engine.pool import Member, Slot
from adaptive_eval.engine.protocols import SamplingEndpoint
from adaptive_eval.engine.solving import call_seed
from adaptive_eval.errors import EndpointError, SessionError
from adaptive_eval.store.records import AttemptRecord
from adaptive_eval.trial import Completion, DiscardCause, Message, Score, TrialRequest, Usage, stored_body


class State(Enum):
    """The state of a trial."""

    QUEUED = "queued"  # it waits for its model to have a free slot
    WAITING = "waiting"  # for a slot at a server, or for its next attempt
    ASKING = "asking"  # its request is in flight
    SCORING = "scoring"  # it is answered and paid for: nothing cancels it now
    ENDED = "ended"  # with a score, or with a failure
    WITHDRAWN = "withdrawn"  # cancelled while nothing was in flight
    CANCELLED = "cancelled"  # cancelled while its request was in flight

    __hash__ = object.__hash__  # each state is there once; an Enum's own takes ten times as long


_NEXT: Mapping[State, frozenset[State]] = {
    State.QUEUED: frozenset({State.WAITING, State.ASKING, State.SCORING, State.ENDED, State.WITHDRAWN}),
    State.WAITING: frozenset({State.WAITING, State.ASKING, State.SCORING, State.ENDED, State.WITHDRAWN}),
    State.ASKING: frozenset({State.WAITING, State.ASKING, State.SCORING, State.ENDED, State.CANCELLED}),
    State.SCORING: frozenset({State.SCORING, State.ENDED}),
    State.ENDED: frozenset({State.QUEUED}),
    State.WITHDRAWN: frozenset(),
    State.CANCELLED: frozenset(),
}


REDRAWN = "redrawn"
"""In place of the number of a solver's call: the seed of another draw."""


class Prompt(NamedTuple):
    """What is asked: the messages, the most tokens that they can be, and the seed."""

    messages: Sequence[Message]
    tokens: int
    seed: int
    redrawn: bool = False  # whether the seed is another than that of the first draw

    def another(self) -> Prompt:
        """Return the same with another seed."""
        return self._replace(seed=call_seed(self.seed, REDRAWN), redrawn=True)


def is_late(attempt: AttemptRecord) -> bool:
    """Return whether an attempt ended because it reached our own time limit."""
    return attempt.error == "timeout" and attempt.status is None


@dataclass(slots=True, eq=False)
class TrialTask:
    """A trial that was launched and has not ended."""

    request: TrialRequest  # the trial
    client: ModelClient  # how its model is asked
    sending: Sending = field(init=False)  # the request that is sent for it
    state: State = State.QUEUED
    wanted: bool = True  # whether another attempt is wanted after the present one
    attempts: int = 0  # attempts made so far
    requeued: int = 0  # how often it was queued again
    since: float | None = None  # monotonic seconds when it was started first
    completion: Completion | None = None  # the answer, which is kept while its scorer is out of reach
    score: Score | None = None  # the score of the answer
    failure: EndpointError | None = None  # why it has no answer, or no score
    # failed attempts to get the present answer, those of earlier sessions included, and the causes for which
    # draws of the answers so far were given up
    failed: list[AttemptRecord] = field(default_factory=list)
    discarded: list[DiscardCause] = field(default_factory=list)
    spent: Usage = field(default_factory=Usage)  # the cost of the calls of its solver so far
    task: asyncio.Task[None] | None = None  # runs it

    @classmethod
    def from_request(
        cls,
        request: TrialRequest,
        client: ModelClient,
        messages: Sequence[Message],
        failed: Iterable[AttemptRecord] = (),
    ) -> TrialTask:
        """Return a trial that asks with `messages`, after attempts of earlier sessions that have `failed`."""
        trial = cls(request, client, failed=list(failed))
        prompt = Prompt(messages, client.prompt_tokens(messages), request.seed)
        for attempt in trial.failed:  # nearly all: as clocks tell it
            late = client.time_limit is not None and attempt.latency >= NEARLY_ALL * client.time_limit
            if late and is_late(attempt) and not client.repeats:
                prompt = prompt.another()
        trial.sending = Sending((trial,), prompt)
        return trial

    def enter(self, state: State) -> None:
        """Change the state.

        Raises
        ------
        SessionError
            The present state cannot lead to that one.
        """
        if state not in _NEXT[self.state]:
            raise SessionError(f"trial {self.request.key} is {self.state.value}; it cannot be {state.value}")
        self.state = state

    @property
    def abandoned(self) -> bool:
        """Whether it was cancelled and leaves no outcome."""
        return self.state in (State.WITHDRAWN, State.CANCELLED)

    def queue_again(self) -> None:
        """Return to the queue, if it asks for itself alone."""
        self.requeued += 1
        self.enter(State.QUEUED)
        if self.completion is None:
            self.sending = self.sending.alone(self)

    def abandon(self) -> None:
        """Cancel it, unless it is answered: an answer that was paid for is kept."""
        self.wanted = False
        if self.state in (State.WAITING, State.ASKING) and self.task is not None:
            if self.state is State.ASKING:
                self.enter(State.CANCELLED)
            else:
                self.enter(State.WITHDRAWN)
            self.task.cancel()

    def finish_attempt(self) -> None:
        """Let the request in flight finish, and make no further attempt."""
        self.wanted = False
        if self.state is State.WAITING:
            self.abandon()


@dataclass(slots=True, eq=False)
class Sending:
    """One request, for a trial alone or for several of a question that share it; the first one sends it."""

    trials: tuple[TrialTask, ...]
    prompt: Prompt  # a call of a solver replaces it
    slot: Slot | None = None  # its slot at a server, from when it is given until it is free again
    last: Member | None = None  # where it was sent last
    failed_at: set[Member] = field(default_factory=set)  # the next attempt goes elsewhere, if possible
    # set once the last attempt, which may have been billed, is stored; the next attempt waits for it
    recorded: asyncio.Event | None = None
    # the end of a shared request: None, or why it failed
    end: asyncio.Future[EndpointError | None] | None = None

    @property
    def sender(self) -> TrialTask:
        """The trial that sends."""
        return self.trials[0]

    @property
    def model(self) -> str:
        """The model that is asked."""
        return self.trials[0].request.key.model

    @property
    def tokens(self) -> int:
        """Most tokens that it can take, prompt and answers."""
        return self.prompt.tokens + len(self.trials) * self.sender.client.answer_tokens

    @property
    def url(self) -> str:
        """Address of its last or first server; empty if none is known."""
        if self.last is not None:
            return self.last.endpoint.url
        endpoints = self.sender.client.endpoints
        if endpoints:
            return endpoints[0].url
        return ""

    def requests(self) -> list[TrialRequest]:
        """Return its trials, with the seed that is sent."""
        requests = [trial.request for trial in self.trials]
        if requests[0].seed != self.prompt.seed:
            seeds = enumerate(requests, self.prompt.seed)
            return [replace(request, seed=seed) for seed, request in seeds]
        return requests

    def body(self) -> Mapping[str, Any]:
        """Return its body, as it is stored."""
        messages = self.prompt.messages
        seed = self.prompt.seed
        if self.last is None:  # a solver made no call
            return stored_body({"messages": [message.sent for message in messages]}, messages)
        endpoint = self.last.endpoint
        n = len(self.trials)
        if n == 1:
            return stored_body(endpoint.body(messages, seed=seed), messages)
        return stored_body(cast(SamplingEndpoint, endpoint).body(messages, seed=seed, n=n), messages)

    def enter(self, state: State) -> None:
        """Change the state of its trials."""
        for trial in self.trials:
            trial.enter(state)

    def alone(self, trial: TrialTask) -> Sending:
        """Return the request that `trial` sends for itself."""
        prompt = self.prompt
        if len(self.trials) > 1:
            seed = prompt.seed + self.trials.index(trial)
            prompt = prompt._replace(seed=seed, redrawn=True)  # one answer alone is another draw
        return Sending((trial,), prompt, last=self.last, failed_at=set(self.failed_at))

    def hand_out(self, answers: Sequence[Completion | None]) -> None:
        """Give each trial the answer with its number; one without an answer sends its own request."""
        if len(self.trials) == 1:
            self.sender.completion = answers[0]
            return
        for number, trial in enumerate(self.trials):
            if number < len(answers):
                trial.completion = answers[number]
            else:
                trial.completion = None
            if trial.completion is None:
                trial.enter(State.WAITING)
                trial.sending = self.alone(trial)
            else:
                trial.enter(State.SCORING)
        self.close(None)

    def close(self, failure: EndpointError | None) -> None:
        """End the wait of the trials that do not send: with their answers, or with a failure."""
        if self.end is not None and not self.end.done():
            self.end.set_result(failure)

    async def wait(self) -> None:
        """Wait for the end of a request that another trial sends; raise its failure."""
        assert self.end is not None
        failure = await asyncio.shield(self.end)
        if failure is not None:
            raise failure


def share(trials: Iterable[TrialTask]) -> None:
    """Let trials that come after each other and ask the same share requests, as far as their clients want.

    Trials whose prompts differ, because their options are shuffled, do not.
    """
    together: list[TrialTask] = []
    for trial in trials:
        if together and not _joins(trial, together):
            _close(together)
            together = []
        together.append(trial)
    _close(together)


def _joins(trial: TrialTask, together: Sequence[TrialTask]) -> bool:
    last = together[-1]
    client = trial.client
    if client is not last.client or len(together) >= client.samples or trial.request.task in client.solvers:
        return False
    new, before = trial.request, last.request
    follows = (new.task, new.question, new.seed) == (before.task, before.question, before.seed + 1)
    return follows and trial.sending.prompt.messages == last.sending.prompt.messages


def _close(together: Sequence[TrialTask]) -> None:
    if len(together) > 1:
        sending = Sending(tuple(together), together[0].sending.prompt)
        sending.end = asyncio.get_running_loop().create_future()
        for trial in together:
            trial.sending = sending
