"""Sends requests to servers with a free slot; the others wait in order."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Collection, Mapping

from adaptive_eval.engine.limits import Server
from adaptive_eval.engine.pool import Member, Pool, Slot
from adaptive_eval.engine.protocols import Clock
from adaptive_eval.engine.trial_task import Sending
from adaptive_eval.errors import EndpointError


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

        Where models share a server, what is free there is divided among them, one each in turn; those first
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
                given = shares[model].take(wanted[model] - slots[model], at_servers)
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

    def take(self, sending: Sending) -> bool:
        """Give a request a slot, unless none is free or others wait already."""
        return not self._waiting[sending.model] and self._give(sending)

    async def admit(self, sending: Sending) -> Slot:
        """Wait until a request has a slot, and return it."""
        if sending.slot is None and not self.take(sending):
            await self._wait(sending)
        assert sending.slot is not None
        return sending.slot

    def release(self, sending: Sending, used: int | None = None) -> None:
        """Free the slot of a request for the next one; `used` is its tokens (None: those reserved)."""
        slot = sending.slot
        if slot is not None:
            sending.slot = None
            used = slot.tokens if used is None else used
            self._pools[sending.model].leave(slot, used, now=self._clock.now())
            self.serve()

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
            self.release(sending)
            raise

    def _give(self, sending: Sending) -> bool:
        """Take a free slot for a request; return whether there was one."""
        model, tokens = sending.model, sending.tokens
        slot = self._pools[model].take(tokens, now=self._clock.now(), failed_at=sending.failed_at)
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
        self._rate = pool.rates.free(tokens, now=now)
        self._tokens = tokens
        self._now = now

    def take(self, wanted: int, at_servers: dict[Server, float]) -> int:
        """Take one slot, or all that are wanted where nothing bounds them; return how many."""
        for member, at_member in self._members.items():
            server = member.server
            if server not in at_servers:
                at_servers[server] = server.free(self._tokens, now=self._now)
            free = min(at_member, at_servers[server], self._rate)
            if free >= 1:
                given = wanted if free == math.inf else 1
                self._members[member] -= given
                self._rate -= given
                at_servers[server] -= given
                return given
        return 0
