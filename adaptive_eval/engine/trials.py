"""Runs trials: each is asked until it is answered or given up, then scored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeAlias

from adaptive_eval.engine.dispatch import Dispatch
from adaptive_eval.engine.flight import Flight, Phase
from adaptive_eval.engine.pool import Member
from adaptive_eval.engine.protocols import Clock, Executor
from adaptive_eval.engine.retry import with_retries
from adaptive_eval.errors import EndpointError, ScorerUnavailable
from adaptive_eval.store.records import FEWER_CHOICES, AttemptRecord
from adaptive_eval.trial import Completion

__all__ = ["TrialRunner"]

_GLANCE = 1.0
"""Seconds between two looks at whether a wait for a scorer is still wanted."""

AttemptObserver: TypeAlias = Callable[
    [Flight, Member, Sequence[AttemptRecord], Sequence[Completion] | EndpointError], None
]


class TrialRunner:
    """Runs trials; each in a task of its own.

    Parameters
    ----------
    clock : Clock
        Tells the time of attempts and waits between them.
    dispatch : Dispatch
        Says where each request goes.
    executor : Executor
        Makes the attempts and scores the answers.
    jitter : callable
        Returns a uniform random number in [0, 1).
    on_attempt : callable
        Called after every attempt, with a record for each trial that it was made for, and the answers.
    on_end : callable
        Called when the trial has ended, scored or given up; not for one that was abandoned.
    """

    def __init__(
        self,
        clock: Clock,
        dispatch: Dispatch,
        executor: Executor,
        jitter: Callable[[], float],
        *,
        on_attempt: AttemptObserver,
        on_end: Callable[[Flight], None],
    ) -> None:
        self._clock = clock
        self._dispatch = dispatch
        self._executor = executor
        self._jitter = jitter
        self._on_attempt = on_attempt
        self._on_end = on_end

    async def run(self, flight: Flight) -> None:
        """Run `flight` to its end. Only an exception that is a bug gets out."""
        try:
            if flight.completion is None:
                flight.completion = await self._answer(flight)
            flight.phase = "scoring"
            await self._score(flight, flight.completion)
        except ScorerUnavailable as error:
            flight.failure = error
        except EndpointError as error:
            flight.failure, flight.completion = error, None
        except asyncio.CancelledError:
            if flight.abandoned:
                return
            raise
        self._on_end(flight)

    async def _answer(self, flight: Flight) -> Completion:
        """Return the answer to a trial: of the request that it shares, where it does, or of its own."""
        shared = flight.shared
        if shared is None:
            return await self._own_answer(flight)
        if shared.sender is not flight:
            try:
                answer = await shared.wait(flight)
            finally:
                flight.shared = None
            return await self._own_answer(flight) if answer is None else answer
        failure: EndpointError | None = None
        try:
            return await self._own_answer(flight)
        except EndpointError as error:
            failure = error
            raise
        finally:
            if flight.completion is None:
                shared.given_up(failure)
            flight.shared = None

    async def _own_answer(self, flight: Flight) -> Completion:
        async def wait(seconds: float) -> None:
            _enter("waiting", flight)
            await self._clock.sleep(seconds)

        return await with_retries(
            lambda: self._attempt(flight),
            flight.lane.retry,
            sleep=wait,
            jitter=self._jitter,
            give_up=lambda: flight.last_attempt,
        )

    async def _score(self, flight: Flight, completion: Completion) -> None:
        """Score an answer; a scorer that asks another model is given as long as an endpoint."""
        lacking: EndpointError | None = None

        async def attempt() -> Completion:
            nonlocal lacking
            try:
                flight.score = await self._executor.score(flight.request, completion)
            except ScorerUnavailable:
                raise
            except EndpointError as error:  # the answer lacks something: only another one would help
                lacking = error
            return completion

        async def wait(seconds: float) -> None:
            while seconds > 0.0 and not flight.last_attempt:
                await self._clock.sleep(min(seconds, _GLANCE))
                seconds -= _GLANCE

        await with_retries(
            attempt,
            flight.lane.retry,
            sleep=wait,
            jitter=self._jitter,
            give_up=lambda: flight.last_attempt,
        )
        if lacking is not None:
            raise lacking

    async def _attempt(self, flight: Flight) -> Completion:
        """Ask once; again, wherever the failure is one of the server and another server is there."""
        failed: set[Member] = set()
        while True:
            if flight.recorded is not None:
                await flight.recorded.wait()
            member = await self._dispatch.admit(flight)
            _enter("asking", flight, member)
            used: int | None = None
            try:
                answers = await self._ask(flight, member)
                used = sum(answer.paid.total_tokens for answer in answers) or None
                return answers[0]
            except EndpointError as error:
                used = None if error.billed else 0
                failed.add(member)
                flight.failed_at.add(member)
                if flight.last_attempt or not self._dispatch.elsewhere(flight, member, error, failed):
                    raise
                _enter("waiting", flight)
            finally:
                self._dispatch.release(flight, used)

    async def _ask(self, flight: Flight, member: Member) -> Sequence[Completion]:
        started_at, started = self._clock.time(), self._clock.now()
        try:
            requests = [one.request for one in flight.party]
            answers = await self._executor.attempt(member.endpoint, flight.messages, requests)
        except EndpointError as error:
            self._report(flight, member, started_at, started, error)
            raise
        self._report(flight, member, started_at, started, answers)
        if flight.shared is not None:
            flight.shared.answered(answers)
        return answers

    def _report(
        self,
        flight: Flight,
        member: Member,
        started_at: float,
        started: float,
        result: Sequence[Completion] | EndpointError,
    ) -> None:
        """Report an attempt, for every trial that it was made for."""
        latency = self._clock.now() - started
        records = []
        for place, one in enumerate(flight.party):
            one.attempts += 1
            status, error, message = _outcome(result, place, len(flight.party))
            key, url = one.request.key, member.endpoint.url
            records.append(AttemptRecord(key, one.attempts, url, started_at, latency, status, error, message))
        self._on_attempt(flight, member, records, result)


def _outcome(
    result: Sequence[Completion] | EndpointError, place: int, party: int
) -> tuple[int | None, str | None, str]:
    """Return status, kind of failure and message of an attempt for the trial at `place` of its party."""
    if isinstance(result, EndpointError):
        return result.status, result.kind, str(result)
    if place < len(result):
        return None, None, ""
    return None, FEWER_CHOICES, f"{len(result)} answers came where {party} were asked for; asked singly"


def _enter(phase: Phase, flight: Flight, member: Member | None = None) -> None:
    """Let a trial, and those that wait for its request, enter a phase; at `member` where they are asked."""
    for one in flight.party:
        one.phase = phase
        one.asked = member if member is not None else one.asked
