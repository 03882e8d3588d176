"""Runs trials: each is asked until it is answered or dropped, then scored."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

from adaptive_eval.engine.clock import TICK
from adaptive_eval.engine.discards import Discards
from adaptive_eval.engine.fleet import Dispatch
from adaptive_eval.engine.health import SEVERAL
from adaptive_eval.engine.model_client import ModelClient
from adaptive_eval.engine.pool import Member, Slot
from adaptive_eval.engine.protocols import Clock, Endpoint, Executor, SamplingEndpoint, Scoring
from adaptive_eval.engine.retry import is_transient, with_retries
from adaptive_eval.engine.seed_proof import Repeat, SeedProof, Trio
from adaptive_eval.engine.solving import Solver, call_seed
from adaptive_eval.engine.trial_task import Prompt, Sending, State, TrialTask, is_late
from adaptive_eval.errors import (
    EndpointError,
    PermanentEndpointError,
    ScorerUnavailable,
    TransientEndpointError,
)
from adaptive_eval.store.records import FEWER_CHOICES, AttemptRecord
from adaptive_eval.trial import Completion, Conversation, DiscardCause, Message, Score, TrialRequest

Result: TypeAlias = Sequence[Completion | None] | EndpointError
"""The answers of one request, in the order of its trials, or how it failed."""

T = TypeVar("T")


def _latest() -> deque[Past]:
    return deque(maxlen=SEVERAL)


class Past(NamedTuple):
    """A trial that was answered, without its answer but for what it said."""

    request: TrialRequest
    client: ModelClient
    messages: Sequence[Message]
    attempts: int
    content: str

    def again(self) -> TrialTask:
        """Return the trial as one that may be asked again."""
        trial = TrialTask.from_request(self.request, self.client, self.messages)
        trial.attempts = self.attempts
        return trial


@dataclass(eq=False)
class TrialRunner:
    """Runs trials, one asyncio task each."""

    clock: Clock
    dispatch: Dispatch
    executor: Executor
    jitter: Callable[[], float]
    on_attempt: Callable[[Sending, Member, Sequence[AttemptRecord], Result], None]
    on_end: Callable[[TrialTask], None]
    discards: Discards = field(default_factory=Discards)
    # called before an answered trial is asked again to test seeds; returns whether it may be
    on_repeat: Callable[[TrialTask, Member], bool] = lambda trial, member: False
    proofs: defaultdict[str, SeedProof] = field(default_factory=lambda: defaultdict(SeedProof))
    # the latest answers of each server of a model, by model and address
    past: defaultdict[tuple[str, str], deque[Past]] = field(default_factory=lambda: defaultdict(_latest))

    async def run(self, trial: TrialTask) -> None:
        """Run `trial` to its end; only bugs raise."""
        try:
            if trial.completion is None and trial.sending.sender is not trial:
                await trial.sending.wait()
            await self._retried(trial, self._answer_and_score, partial(_is_worth_another, trial))
        except EndpointError as error:
            trial.failure = error
            if not isinstance(error, ScorerUnavailable):
                trial.completion = None
        except asyncio.CancelledError:
            if trial.abandoned:
                return
            raise
        self.on_end(trial)

    async def _answer_and_score(self, trial: TrialTask) -> None:
        """Get the answer, unless it is here already, and have it scored."""
        if trial.completion is None:
            solver = trial.client.solvers.get(trial.request.task)
            if solver is None:
                asked = self._attempt(trial)
            else:
                asked = self._solve(trial, solver)
            trial.completion = await asked
        trial.enter(State.SCORING)
        await self._settle_draws(trial, trial.completion)
        try:
            trial.score = await self.executor.score(trial.request, trial.completion)
        except ScorerUnavailable as error:
            trial.discarded += error.discarded
            raise

    async def _settle_draws(self, trial: TrialTask, answer: Completion) -> None:
        """Note why draws were given up on the way to an answer, unless it is the same draw."""
        causes = self.causes(trial)
        if causes and not await self._is_same_draw(trial, answer):
            trial.discarded += causes
        trial.failed.clear()

    async def _is_same_draw(self, trial: TrialTask, answer: Completion) -> bool:
        """Return whether every server that was asked for an answer would have given this one."""
        sending = trial.sending
        client = trial.client
        model = trial.request.key.model
        other_draw = sending.prompt.redrawn and not client.repeats
        if other_draw or client.batched or len(sending.trials) > 1 or sending.last is None:
            return False
        asked = {attempt.endpoint for attempt in trial.failed}
        if "" in asked:  # the server of a killed process is not known
            asked |= {member.endpoint.url for member in self.dispatch.members(model)}
        url = sending.last.endpoint.url
        servers = (asked | {url}) - {""}
        hung = {one.endpoint.url for one in self.dispatch.members(model) if one.server.silent}
        if servers & hung - self.proofs[model].proven:
            return False  # a test there would hang too
        first = Repeat(answer.content, url)
        ask = partial(self._ask_again, trial)
        return await self.proofs[model].holds(first, servers, ask, repeats=client.repeats)

    async def _ask_again(self, trial: TrialTask, number: int, avoid: Collection[str]) -> Repeat | None:
        """Ask with the trial's seed (number 0) or another, elsewhere than at these servers if possible."""
        sent = trial.sending.prompt
        model = trial.request.key.model
        if number == 0:
            seed = sent.seed
        else:
            seed = call_seed(sent.seed, f"test {number}")
        tried = {member for member in self.dispatch.members(model) if member.endpoint.url in avoid}
        for _ in range(SEVERAL):  # more failures in a row say that the server is out
            if not trial.wanted:
                break
            sending = Sending((trial,), sent._replace(seed=seed), failed_at=set(tried))
            with suppress(EndpointError, TimeoutError):
                return await self._repeat(trial, sending)
        return None

    async def _repeat(self, trial: TrialTask, sending: Sending) -> Repeat | None:
        """Send a request that tests seeds; None if no budget has room for it."""
        try:
            async with asyncio.timeout(trial.client.retry.max_seconds):
                slot = await self.dispatch.admit(sending)
            if not self.on_repeat(trial, slot.member):
                return None
            (answer,) = await self._ask(trial, sending, slot)
        finally:
            self.dispatch.release(sending)
        if answer is None:
            return None
        return Repeat(answer.content, slot.member.endpoint.url)

    def remember(self, trial: TrialTask) -> None:
        """Keep an answered trial as one of the latest of its server, if it can be asked again elsewhere."""
        sending, answer, client = trial.sending, trial.completion, trial.client
        model, prompt = trial.request.key.model, sending.prompt
        if answer is None or sending.last is None or len(self.dispatch.members(model)) == 1:
            return
        alone = len(sending.trials) == 1 and trial.request.task not in client.solvers and not client.batched
        large = any(message.whole is not None for message in prompt.messages)  # such as images
        if alone and not large and prompt.seed == trial.request.seed:
            past = Past(trial.request, client, prompt.messages, trial.attempts, answer.content)
            self.past[model, sending.last.endpoint.url].append(past)

    def spares(self, model: str, member: Member) -> bool:
        """Return whether all other servers of a model would give the draws that are in flight at one."""
        servers = {one.endpoint.url for one in self.dispatch.members(model) if one.usable or one is member}
        return len(servers) > 1 and self.proofs[model].proven >= servers

    async def compare(self, model: str, member: Member) -> None:
        """Ask other servers what one has answered, to know whether they would give its draws."""
        members, server = self.dispatch.members(model), member.endpoint.url
        others = [one.endpoint.url for one in members if one.usable and one is not member]
        past = list(self.past[model, server])
        if not past or not others:
            return

        async def ask(number: int) -> Trio:
            trial, said = past[number].again(), past[number].content
            avoid = {server, *others} - {others[number % len(others)]}
            same, other = await asyncio.gather(*(self._ask_again(trial, seed, avoid) for seed in (0, 1)))
            return Trio(said, same, other)

        repeats = past[0].client.repeats
        await self.proofs[model].compare(server, others, len(past), ask, repeats=repeats)

    async def replies(self, trial: TrialTask, member: Member, seconds: float) -> bool:
        """Ask the question of a trial under a seed of none; return whether the server replies in time."""
        sent = trial.sending.prompt
        seed = call_seed(sent.seed, f"proof {trial.attempts}")
        sending = Sending((trial,), sent._replace(seed=seed))
        if not self.dispatch.enter(sending, member) or not self.on_repeat(trial, member):
            self.dispatch.release(sending)
            return False
        try:
            async with asyncio.timeout(seconds):
                await self.executor.attempt(member.endpoint, sent.messages, sending.requests())
        except TimeoutError:
            return False
        except EndpointError as error:
            return isinstance(error, PermanentEndpointError)  # which the next trial meets
        finally:
            self.dispatch.release(sending)
        return True

    def causes(self, trial: TrialTask) -> list[DiscardCause]:
        """Return why failed attempts to get the present answer of a trial gave up a draw."""
        if not trial.failed:
            return []
        servers = [member.endpoint.url for member in self.dispatch.members(trial.request.key.model)]
        return self.discards.causes(trial.failed, servers, batched=trial.client.batched)

    def _retried(
        self,
        trial: TrialTask,
        attempt: Callable[[TrialTask], Coroutine[Any, Any, T]],
        worth: Callable[[BaseException], bool],
    ) -> Coroutine[Any, Any, T]:
        """Make attempts as the retry policy says."""
        return with_retries(
            partial(attempt, trial),
            trial.client.retry,
            sleep=partial(self._pause, trial),
            jitter=self.jitter,
            unwanted=lambda: not trial.wanted,
            worth=worth,
        )

    async def _solve(self, trial: TrialTask, solver: Solver) -> Completion:
        """Have the user's function answer; each of its calls takes the way of a trial's own request."""
        bound = trial.client.prompt_tokens
        first = trial.sending.prompt

        async def ask(messages: Conversation, number: int) -> Completion:
            trial.completion = None
            trial.sending.prompt = Prompt(messages, bound(messages), call_seed(trial.request.seed, number))
            answer = await self._retried(trial, self._attempt, is_transient)
            await self._settle_draws(trial, answer)
            trial.spent += answer.paid
            return answer

        answer = None
        try:
            answer = await solver.solve(ask, first.messages, bound)
        finally:
            if answer is None:  # it is queued again, or dropped
                trial.sending.prompt, trial.completion = first, None
        return answer

    async def _pause(self, trial: TrialTask, seconds: float) -> None:
        if trial.completion is None:
            trial.sending.enter(State.WAITING)
            await self.clock.sleep(seconds)
        else:  # it waits for its scorer, which nothing cancels
            while seconds > 0.0 and trial.wanted:
                await self.clock.sleep(min(seconds, TICK))
                seconds -= TICK

    async def _attempt(self, trial: TrialTask) -> Completion:
        """Ask once; ask another server if the failure is the server's, alone if others got answers."""
        failed: set[Member] = set()
        while True:
            sending = trial.sending
            if sending.recorded is not None:
                await sending.recorded.wait()
            if sending.slot is None and not self.dispatch.admit_now(sending):
                sending.enter(State.WAITING)
                if not trial.wanted:  # at the end of a run nobody would ring when a slot is free
                    raise TransientEndpointError("no further request is wanted", kind="aborted")
            slot = await self.dispatch.admit(sending)
            used: int | None = None
            try:
                answers = await self._send(trial, sending, slot)
                used = sum(answer.paid.total_tokens for answer in answers if answer is not None) or None
                sending.hand_out(answers)
                if trial.completion is not None:
                    return trial.completion
            except EndpointError as error:
                used = None if error.billed else 0
                failed.add(slot.member)
                sending.failed_at.add(slot.member)
                if not trial.wanted or not self.dispatch.elsewhere(sending, slot.member, error, failed):
                    raise
                sending.enter(State.WAITING)
            finally:
                self.dispatch.release(sending, used)

    async def _send(self, trial: TrialTask, sending: Sending, slot: Slot) -> Sequence[Completion | None]:
        """Send a request to the server of its slot, and report how that ended."""
        member = sending.last = slot.member
        sending.enter(State.ASKING)
        started_at = self.clock.time()
        started = self.clock.now()
        result: Result
        try:
            result = await self._ask(trial, sending, slot)
        except EndpointError as error:
            result = error
        self._report(sending, member, started_at, started, result)
        if isinstance(result, EndpointError):
            raise result
        return result

    async def _ask(self, trial: TrialTask, sending: Sending, slot: Slot) -> Sequence[Completion | None]:
        """Send a request to the server of its slot; it fails if it is given up together with the server."""
        endpoint = slot.member.endpoint
        slot.task = trial.task
        try:
            return await self.executor.attempt(endpoint, sending.prompt.messages, sending.requests())
        except asyncio.CancelledError:
            if slot.given_up is None or trial.abandoned or trial.task is None:
                raise
            trial.task.uncancel()
            raise slot.given_up from None
        finally:
            slot.task = None

    def _report(
        self, sending: Sending, member: Member, started_at: float, started: float, result: Result
    ) -> None:
        """Report an attempt for every trial of its request."""
        latency = self.clock.now() - started
        url = member.endpoint.url
        records = []
        if not isinstance(result, EndpointError):
            self.discards.answered(url, latency)
        for number, trial in enumerate(sending.trials):
            trial.attempts += 1
            status, error, message = _outcome(result, number, len(sending.trials))
            key = trial.request.key
            attempt = trial.attempts
            record = AttemptRecord(key, attempt, url, started_at, latency, status, error, message)
            records.append(record)
            if error is not None:
                trial.failed.append(record)
        if is_late(records[0]) and not sending.sender.client.repeats:
            sending.prompt = sending.prompt.another()  # the same draw would be late again
        self.on_attempt(sending, member, records, result)


def _is_worth_another(trial: TrialTask, error: BaseException) -> bool:
    """Return whether a failure of a trial lets it be attempted again, with its answer if it has one."""
    if trial.state is State.SCORING:  # where the answer lacks something, only another answer helps
        return isinstance(error, ScorerUnavailable)
    return is_transient(error) and trial.request.task not in trial.client.solvers


def _outcome(result: Result, number: int, trials: int) -> tuple[int | None, str | None, str]:
    """Return status, kind of failure and message of an attempt for one of the `trials` of its request."""
    if isinstance(result, EndpointError):
        return result.status, result.kind, str(result)
    if number < len(result) and result[number] is not None:
        return None, None, ""
    given = sum(answer is not None for answer in result)
    return None, FEWER_CHOICES, f"{given} answers came although {trials} were asked for; asked singly"


class InProcess:
    """Asks the endpoints and scores the answers here."""

    def __init__(self, scoring: Scoring) -> None:
        self._scoring = scoring

    async def attempt(
        self, endpoint: Endpoint, messages: Sequence[Message], requests: Sequence[TrialRequest]
    ) -> Sequence[Completion | None]:
        """Ask `endpoint` once for the answers to `requests`."""
        seed = requests[0].seed
        # Not isinstance: with a protocol that takes Python 3.11 a tenth of the time of the whole trial.
        if hasattr(endpoint, "sample"):
            return await cast(SamplingEndpoint, endpoint).sample(messages, seed=seed, n=len(requests))
        return [await endpoint.complete(messages, seed=seed)]

    def score(self, request: TrialRequest, completion: Completion) -> Coroutine[Any, Any, Score]:
        """Return the category of `completion` as an answer to the trial's question."""
        return self._scoring.score(request, completion)
