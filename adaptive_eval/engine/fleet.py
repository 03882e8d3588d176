"""The servers of all models: pools, limits, health, what is said of them, and who gets their free slots."""

import asyncio
import math
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Protocol

from adaptive_eval.engine.clock import LONGEST_WAIT, Alarm
from adaptive_eval.engine.discovery import PoolChanges
from adaptive_eval.engine.health import HealthMonitor
from adaptive_eval.engine.limits import UNTRIED, AdaptiveConcurrency, BatchRounds, Server
from adaptive_eval.engine.model_client import ModelClient
from adaptive_eval.engine.overdue import TIMES
from adaptive_eval.engine.pool import AT_END, SPARED, Late, Member, Pool, Prober, Silence, Slot
from adaptive_eval.engine.protocols import Clock, Endpoint
from adaptive_eval.engine.trial_task import Sending
from adaptive_eval.errors import Coded, EndpointError, TransientEndpointError
from adaptive_eval.options.limit_options import SharedLimits
from adaptive_eval.store.records import EndpointHealth
from adaptive_eval.trial import Completion


class Dispatch:
    """Gives free slots to requests, first come, first served."""

    def __init__(self, pools: Mapping[str, Pool], clock: Clock) -> None:
        self._pools = pools
        self._clock = clock
        self._tokens = dict.fromkeys(pools, 1)
        self._started = dict.fromkeys(pools, 0)
        self._waiting: dict[str, deque[tuple[Sending, asyncio.Future[None]]]] = {
            model: deque() for model in pools
        }

    def slots(self, wanted: Mapping[str, int]) -> dict[str, int]:
        """Return how many of the wanted requests of each model may start now.

        If models share a server, what is free there is divided among them, one each in turn; those first
        that have had the fewest.
        """
        now = self._clock.now()
        slots = dict.fromkeys(wanted, 0)
        # Where requests wait already, more would only wait behind them.
        able = [model for model in self._in_turn() if not self._waiting[model]]
        open_models = [model for model in able if wanted.get(model, 0)]
        shares = {model: _Share(self._pools[model], self._tokens[model], now) for model in open_models}
        at_servers: dict[Server, float] = {}
        while open_models:
            for model in tuple(open_models):
                given = shares[model].reserve(wanted[model] - slots[model], at_servers)
                slots[model] += given
                if given == 0 or slots[model] == wanted[model]:
                    open_models.remove(model)
        return slots

    def free_at(self, models: Collection[str]) -> float:
        """Return when time alone frees a slot for `models` or a waiting request; infinity if never."""
        now = self._clock.now()
        times = []
        for model, pool in self._pools.items():
            queue = self._waiting[model]
            if queue or model in models:
                tokens = queue[0][0].tokens if queue else self._tokens[model]
                times.append(pool.free_at(tokens, now=now))
        return min((at for at in times if at > now), default=math.inf)

    def admit_now(self, sending: Sending) -> bool:
        """Give a request a slot, unless none is free or others wait already."""
        return not self._waiting[sending.model] and self._give(sending)

    async def admit(self, sending: Sending) -> Slot:
        """Wait until a request has a slot, and return it."""
        if sending.slot is None and not self.admit_now(sending):
            await self._wait(sending)
        assert sending.slot is not None
        return sending.slot

    def members(self, model: str) -> Sequence[Member]:
        """Return the servers of a model."""
        return self._pools[model].members

    def release(self, sending: Sending, used: int | None = None) -> None:
        """Free the slot of a request for the next one; `used` is its tokens (None: those reserved)."""
        slot = sending.slot
        if slot is not None:
            sending.slot = None
            if used is None:
                used = slot.tokens
            self._pools[sending.model].leave(slot, used, now=self._clock.now())
            self.serve()

    def enter(self, sending: Sending, member: Member) -> bool:
        """Give a request a slot at this server, though it is out; return whether limits allow it."""
        now, pool, server = self._clock.now(), self._pools[sending.model], member.server
        if min(pool.rates.free(sending.tokens, now=now), server.free(sending.tokens, now=now)) < 1:
            return False
        sending.slot = pool.enter(member, sending.tokens, now=now)
        return True

    def serve(self) -> None:
        """Give all free slots to the requests that wait."""
        if not any(self._waiting.values()):
            return
        for model in self._in_turn():
            queue = self._waiting[model]
            while queue:
                sending, given = queue[0]
                if not given.cancelled():
                    if not self._give(sending):
                        break
                    given.set_result(None)
                queue.popleft()

    def elsewhere(
        self, sending: Sending, member: Member, error: EndpointError, failed: Collection[Member]
    ) -> bool:
        """Return whether a request that has failed at `member` goes to another server at once."""
        return self._pools[sending.model].elsewhere(member, error, failed, now=self._clock.now())

    def _in_turn(self) -> list[str]:
        return sorted(self._pools, key=self._started.__getitem__)

    async def _wait(self, sending: Sending) -> None:
        entry = (sending, asyncio.get_running_loop().create_future())
        queue = self._waiting[sending.model]
        queue.append(entry)
        try:
            await entry[1]
        except asyncio.CancelledError:
            if entry in queue:
                queue.remove(entry)
            raise

    def _give(self, sending: Sending) -> bool:
        """Take a free slot for a request; return whether there was one."""
        model, tokens = sending.model, sending.tokens
        slot = self._pools[model].reserve(tokens, now=self._clock.now(), failed_at=sending.failed_at)
        if slot is None:
            return False
        sending.slot = slot
        self._tokens[model] = tokens
        self._started[model] += 1
        return True


class _Share:
    """The requests that one model may still start while slots are divided."""

    def __init__(self, pool: Pool, tokens: int, now: float) -> None:
        self._members = {member: member.free(now) for member in pool.members}
        self._several = len(pool.members) > 1
        self._rate = pool.rates.free(tokens, now=now)
        self._tokens = tokens
        self._now = now

    def reserve(self, wanted: int, at_servers: dict[Server, float]) -> int:
        """Take one slot, or all that are wanted if nothing bounds them; return how many."""
        for member, at_member in self._members.items():
            server = member.server
            if server not in at_servers:
                at_servers[server] = server.free(self._tokens, now=self._now)
                if self._several and server.untried(self._now):
                    at_servers[server] = min(at_servers[server], UNTRIED - server.in_flight)
            free = min(at_member, at_servers[server], self._rate)
            if free >= 1:
                given = 1
                if free == math.inf:
                    given = wanted
                self._members[member] -= given
                self._rate -= given
                at_servers[server] -= given
                return given
        return 0


class ServerTests(Protocol):
    """Tests servers by requests that are no trial's."""

    async def replies(self, model: str, member: Member, seconds: float) -> bool:
        """Return whether a server that fell silent replies to a request in time."""

    def spares(self, model: str, member: Member) -> bool:
        """Return whether all other servers of a model would give the draws that are in flight at one."""

    async def compare(self, model: str, member: Member) -> None:
        """Find out whether they would."""


class Fleet:
    """All servers; models that name the same address share the server. Nothing here awaits."""

    def __init__(
        self,
        clients: Mapping[str, ModelClient],
        limits: Mapping[str, SharedLimits],
        clock: Clock,
        tasks: asyncio.TaskGroup,
        on_slots: Callable[[], None],
        trials: ServerTests,
    ) -> None:
        self._clients = dict(clients)
        self._trials = trials
        self._task_group = tasks
        self._comparing: dict[str, asyncio.Task[None]] = {}  # tests of seeds, by model
        self._clock = clock
        self._announce = on_slots
        self._limits = limits
        self._servers: dict[str, Server] = {}
        self.pools: dict[str, Pool] = {}
        for model, client in clients.items():
            members = [self._member(model, endpoint) for endpoint in client.endpoints]
            since = None
            if client.discovery is not None:
                since = clock.now()
            self.pools[model] = Pool(members, client.rate, open_since=since)
        self.dispatch = Dispatch(self.pools, clock)
        discoveries = {name: one.discovery for name, one in clients.items() if one.discovery is not None}
        self.changes = PoolChanges(discoveries, self.pools, self._member, clock, tasks, self._on_slots)
        self._prober = Prober(clock, tasks, self._on_slots, self._replies)
        self._alarm = Alarm(clock, tasks, self._on_slots)
        self._news: list[str] = []
        self._silences = 0  # times that a server fell silent

    def close(self) -> None:
        """Watch no server any more."""
        for watch in (self.changes, self._prober, self._alarm):
            watch.close()
        for test in self._comparing.values():
            test.cancel()

    def ring_when_free(self, models: Collection[str]) -> None:
        """Announce slots when the rate limit or pause ends that delays one of `models`."""
        self._alarm.set(self.dispatch.free_at(models))

    def ended(
        self,
        sending: Sending,
        member: Member,
        result: Sequence[Completion | None] | EndpointError,
        latency: float,
    ) -> None:
        """Take note of the end of a request at `member`."""
        now = self._clock.now()
        model = sending.model
        server = member.server
        pool = self.pools[model]
        was_out = member.presence.out_since
        # No longer than a trial would wait: a server that says "tomorrow" is asked again before.
        longest = sending.sender.client.retry.max_seconds
        if isinstance(result, EndpointError):
            if server.adaptive is not None:
                server.adaptive.failed(result, sent_at=now - latency, now=now)
            if pool.failed(member, result, sending.sender.request.key, now=now, longest=longest):
                self._left(model, member, first=was_out is None)
            return
        answers = [answer for answer in result if answer is not None]
        if server.adaptive is not None:
            in_flight = server.in_flight
            tokens = sum(answer.usage.completion_tokens for answer in answers)
            server.adaptive.answered(sent_at=now - latency, now=now, tokens=tokens, in_flight=in_flight)
        pool.answered(member, answers, now=now, longest=longest)
        self._speaks(server)
        member.monitor.withheld(len(sending.trials) - len(answers))
        if was_out is not None and member.presence.out_since is None:
            self._news.append(f"{model}: {member.endpoint.url} answers again")

    def give_up_silent(self, *, ending: bool) -> None:
        """Take out the servers that answer nothing, with their requests; soon if the run is `ending`."""
        now = self._clock.now()
        rule = AT_END if ending else Silence()
        if not ending:
            self._give_up_spared(now)
        found: list[tuple[str, Late]] = []
        requests: Counter[Server] = Counter()
        for model in self._asked():
            for late in self.pools[model].late(now, rule, self._silences):
                found.append((model, late))
                requests[late.member.server] += late.requests
        silent: dict[Server, float] = {}
        for model, (member, _, seconds) in found:
            if requests[member.server] >= rule.requests or not member.server.answered:
                words = self._silent(model, member, seconds, now)
                member.give_up(TransientEndpointError(member.says(words), kind="aborted"))
                silent[member.server] = seconds
        if not ending:
            self._leave_alone(silent, now)

    def _asked(self) -> list[str]:
        """Return the models that are not asked in batches, whose answers take hours."""
        return [name for name, one in self._clients.items() if not isinstance(one.limit, BatchRounds)]

    def _give_up_spared(self, now: float) -> None:
        """Take out silent servers sooner if others give the same draws, and find out whether they do."""
        found: list[tuple[str, Late]] = []
        for model in self._asked():
            found += [(model, late) for late in self.pools[model].late(now, SPARED, self._silences)]
        requests: Counter[Server] = Counter()
        for _, late in found:
            requests[late.member.server] += late.requests
        silent: dict[Server, float] = {}
        for model, (member, _, seconds) in found:
            server = member.server
            hangs = server.answered and (server.silent or requests[server] >= SPARED.requests)
            if not (hangs and member.awaited):
                continue
            if self._trials.spares(model, member):
                words = self._silent(model, member, seconds, now)
                member.give_up(TransientEndpointError(member.says(words), kind="aborted"))
                silent[server] = seconds
            elif model not in self._comparing or self._comparing[model].done():
                self._comparing[model] = self._task_group.create_task(self._trials.compare(model, member))
        self._leave_alone(silent, now)

    def _leave_alone(self, silent: Mapping[Server, float], now: float) -> None:
        """Take silent servers out for the other models that they have not answered; await their requests."""
        for model in self._asked():
            for member in self.pools[model].members:
                seconds = silent.get(member.server)
                if seconds is not None and now - member.monitor.last >= seconds:
                    self._silent(model, member, seconds, now)

    def _speaks(self, server: Server) -> None:
        """Note that a server has answered a model; let all ask it if it was silent."""
        was_silent = server.silent
        server.heard()
        if was_silent:
            for pool in self.pools.values():
                for member in pool.members:
                    if member.server is server:
                        member.presence.probed(there=True)
            self._on_slots()

    async def _replies(self, model: str, member: Member) -> bool:
        """Return whether a server that fell silent replies to a request, which is no trial's."""
        server, started = member.server, self._clock.now()
        if started < server.prove_at:
            return False
        server.prove_at = math.inf  # one request of all models
        longest = max(one.monitor.longest for one in self.pools[model].members)
        replied = await self._trials.replies(model, member, max(LONGEST_WAIT, TIMES * longest))
        now = self._clock.now()
        if replied:
            member.monitor.took(now - started)
            self._speaks(server)
        else:
            server.not_proven(now, self._clients[model].patience)
        return replied

    def _silent(self, model: str, member: Member, seconds: float, now: float) -> str:
        """Take out a server that is silent, unless it is out, and return why."""
        words = f"silent for {seconds:.0f} s, far longer than any answer took"
        if member.usable:
            first = member.presence.out_since is None
            member.presence.leave(words, now=now)
            self._silences += not member.server.silent
            member.server.fall_silent(now)
            self._left(model, member, first=first)
        return words

    def take_news(self) -> list[str]:
        """Return which servers have left or answer again since the last call."""
        news, self._news = self._news, []
        return news

    def lost(self, models: Collection[str]) -> dict[str, str]:
        """Return which of `models` have had no server for longer than their patience, and why."""
        now = self._clock.now()
        found = {}
        for model in models:
            patience = self._clients[model].patience
            reason = self.pools[model].lost(now, patience, self.changes.lacking(model))
            if reason is not None:
                found[model] = reason
        return found

    def remarks(self) -> Iterator[str]:
        """Yield warnings about servers."""
        yield from self.changes.remarks()
        for model, pool in self.pools.items():
            for member in pool.members:
                for count, reported in member.monitor.usages_lacking():
                    answers = "an answer" if count == 1 else f"{count:,} answers"
                    yield Coded(
                        "warning/usage-lacking",
                        f"{model}: {member.endpoint.url} reported {reported} for {answers}; the tokens and "
                        "costs shown lack these, which count at the worst case if a budget limits tokens "
                        "or money",
                    )
                if len(member.monitor.names) > 1:
                    first, other = member.monitor.names
                    yield Coded(
                        "warning/model-changed",
                        f"{model}: {member.endpoint.url} named {first!r} as the model that answered, and "
                        f"{other!r} later; its verdicts may be about both",
                    )

    def health(self, slots: Mapping[str, int]) -> tuple[EndpointHealth, ...]:
        """Return how every server of every model is doing; `slots` are those that the models may use."""
        now = self._clock.now()
        found = [
            member.monitor.health(
                now=now,
                in_flight=member.in_flight,
                limit=int(min(slots[model], member.server.slots)),
                state=member.presence.state,
            )
            for model, pool in self.pools.items()
            for member in pool.members
        ]
        return (*found, *self.changes.health())

    def _left(self, model: str, member: Member, *, first: bool) -> None:
        """Probe a server that has gone out, and say so once until it answers again."""
        self._prober.watch(model, member)
        if not first:
            return
        said = member.says(member.presence.reason)
        self._news.append(f"{model}: {said}; it gets no requests until it is back")
        pool = self.pools[model]
        if not pool.usable:
            self._news.append(
                f"{model}: no server is left to ask; waiting {self._clients[model].patience:g} s at most"
            )

    def _member(self, model: str, endpoint: Endpoint) -> Member:
        """Return the pool member that asks `model` through `endpoint`."""
        client = self._clients[model]
        server = self._servers.get(endpoint.url)
        if server is None:
            if client.discovery is None:
                found = SharedLimits()
            else:
                found = client.discovery.config.each
            server = Server(endpoint.url, self._limits.get(endpoint.url, found))
            self._servers[endpoint.url] = server
        if client.limit is None and server.concurrency is None:
            server.concurrency = AdaptiveConcurrency()
        return Member(endpoint, server, HealthMonitor(model, endpoint.url))

    def _on_slots(self) -> None:
        self.dispatch.serve()
        self._announce()
