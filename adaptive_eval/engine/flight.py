"""One trial in flight, and the request that several of them may share."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from adaptive_eval.engine.lane import Lane
from adaptive_eval.engine.pool import Member
from adaptive_eval.engine.protocols import SamplingEndpoint
from adaptive_eval.errors import EndpointError
from adaptive_eval.trial import Completion, Message, Score, TrialRequest

__all__ = ["Flight", "Phase", "SharedRequest"]

Phase: TypeAlias = Literal["asking", "waiting", "scoring"]


@dataclass(slots=True, eq=False)
class Flight:
    """A trial that was launched and has not ended.

    Parameters
    ----------
    request : TrialRequest
        The trial.
    lane : Lane
        How its model is asked.
    messages : sequence of Message
        What is asked.
    prompt_tokens : int
        Most tokens of what is asked.
    attempts : int
        Attempts made so far.
    requeued : int
        How many times it has come back to the queue.
    phase : {'asking', 'waiting', 'scoring'}
        A request is out; waiting for a place or before the next attempt; the answer is being scored.
    last_attempt : bool
        True when no attempt beyond the one under way is wanted.
    abandoned : bool
        True when it was cancelled and leaves no outcome.
    completion, score : Completion, Score, optional
        The answer and its score. An answer whose scorer is out of reach is kept while the trial waits.
    failure : EndpointError, optional
        Why it was given up.
    place : Member, optional
        Where it has a place now.
    reserved : int
        Tokens that are counted for it there.
    asked : Member, optional
        Where it was sent last.
    recorded : asyncio.Event, optional
        Set once the last attempt, which may have been billed, is on the disk: none is made before.
    failed_at : set of Member
        Where it has failed: the next attempt goes to another server, if there is one.
    shared : SharedRequest, optional
        The request that asks for it and for others, until its answer is there.
    sent_with : tuple of int, optional
        Seed and number of answers of the shared request that has answered it.
    """

    request: TrialRequest
    lane: Lane
    messages: Sequence[Message]
    prompt_tokens: int = 0
    attempts: int = 0
    requeued: int = 0
    phase: Phase = "asking"
    last_attempt: bool = False
    abandoned: bool = False
    completion: Completion | None = None
    score: Score | None = None
    failure: EndpointError | None = None
    place: Member | None = None
    reserved: int = 0
    asked: Member | None = None
    failed_at: set[Member] = field(default_factory=set)
    recorded: asyncio.Event | None = None
    shared: SharedRequest | None = None
    sent_with: tuple[int, int] | None = None
    task: asyncio.Task[None] | None = None

    @property
    def sends(self) -> bool:
        """Whether it sends a request itself, for others too or for itself alone."""
        return self.shared is None or self.shared.sender is self

    @property
    def party(self) -> Sequence[Flight]:
        """All trials for which its request is sent, itself first."""
        return (self,) if self.shared is None else self.shared.flights

    @property
    def tokens(self) -> int:
        """Most tokens that its request can take, prompt and answers."""
        return self.prompt_tokens + len(self.party) * self.lane.answer_tokens

    @property
    def url(self) -> str:
        """Where it was sent last, or would have been first; empty where no server was known."""
        if self.asked is not None:
            return self.asked.endpoint.url
        return self.lane.endpoints[0].url if self.lane.endpoints else ""

    def body(self) -> Mapping[str, Any]:
        """Return the body of its request."""
        assert self.asked is not None, "it has an outcome, so it was sent"
        endpoint = self.asked.endpoint
        if self.sent_with is None:
            return endpoint.body(self.messages, seed=self.request.seed)
        assert isinstance(endpoint, SamplingEndpoint)
        seed, n = self.sent_with
        return endpoint.body(self.messages, seed=seed, n=n)

    def abandon(self) -> None:
        """Cancel it, unless it is already answered: an answer that was paid for is kept."""
        self.last_attempt = True
        if self.phase != "scoring" and self.task is not None:
            self.abandoned = True
            self.task.cancel()

    def finish_attempt(self) -> None:
        """Let the request that is out come back, and wait for nothing beyond it."""
        self.last_attempt = True
        if self.phase == "waiting":
            self.abandon()


class SharedRequest:
    """A request that the first of several trials sends for all of them.

    Parameters
    ----------
    flights : sequence of Flight
        Trials that ask the same, with seeds that follow each other. The first one sends, and tries again
        where that fails; the others wait for it. They have no place of their own at a server meanwhile.
    """

    def __init__(self, flights: Sequence[Flight]) -> None:
        self.flights = tuple(flights)
        self._done = asyncio.Event()
        self._failure: EndpointError | None = None

    @property
    def sender(self) -> Flight:
        """The trial that sends."""
        return self.flights[0]

    def answered(self, answers: Sequence[Completion]) -> None:
        """Hand out the answers in order; a trial for which there is none asks on its own."""
        with_seed = (self.sender.request.seed, len(self.flights))
        for flight, answer in zip(self.flights, answers, strict=False):
            flight.completion, flight.sent_with = answer, with_seed
            flight.phase = "scoring"  # it is paid for: nothing may break it off now
        for flight in self.flights[len(answers) :]:
            flight.phase = "waiting"
        self._done.set()

    def given_up(self, failure: EndpointError | None) -> None:
        """Let the others know that no answer comes: they fail alike, or (None) ask on their own."""
        self._failure = failure
        self._done.set()

    async def wait(self, flight: Flight) -> Completion | None:
        """Return the answer for `flight`, or None where it has to ask on its own.

        Raises
        ------
        EndpointError
            The sender has given up.
        """
        await self._done.wait()
        if self._failure is not None:
            raise self._failure
        return flight.completion
