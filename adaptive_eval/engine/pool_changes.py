"""Reads the sources that name servers again and again, and keeps the pools of models in line with them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping

from adaptive_eval.core.results import Decision
from adaptive_eval.engine.discovery import Discovery, Source
from adaptive_eval.engine.pool import Member, Pool
from adaptive_eval.engine.pool_members import Change, PoolMembers
from adaptive_eval.engine.protocols import Clock, Endpoint
from adaptive_eval.store.records import EndpointHealth

__all__ = ["Membership"]

_NAMED = 4
"""Servers that one sentence names; of more the number is told."""


class Membership:
    """The rosters of all models whose servers are found; each source is read once for all of them.

    Parameters
    ----------
    discoveries : mapping of str to Discovery
        How the servers of these models are found.
    pools : mapping of str to Pool
        The pool of each of them.
    enrol : callable
        Returns the member of a model's pool that asks through an endpoint.
    clock : Clock
        Waits.
    on_change : callable
        Called when a server has joined or left, or something is to be told.
    """

    def __init__(
        self,
        discoveries: Mapping[str, Discovery],
        pools: Mapping[str, Pool],
        enrol: Callable[[str, Endpoint], Member],
        clock: Clock,
        on_change: Callable[[], None],
    ) -> None:
        def enrolling(model: str) -> Callable[[Endpoint], Member]:
            return lambda endpoint: enrol(model, endpoint)

        self._pool_members = {
            model: PoolMembers(model, discovery, pools[model], enrolling(model), clock, on_change)
            for model, discovery in discoveries.items()
        }
        self._clock = clock
        self._announce = on_change
        self._problems: dict[Source, tuple[str, ...]] = {}
        self._readers: list[asyncio.Task[None]] = []
        self._told: set[str] = set()

    def begin(self, tasks: asyncio.TaskGroup) -> None:
        """Read the sources from now on, and ask the servers that they name, in `tasks`."""
        for source in {members.discovery.source: None for members in self._pool_members.values()}:
            self._readers.append(tasks.create_task(self._follow(source, tasks)))

    def close(self) -> None:
        """Read no more."""
        for reader in self._readers:
            reader.cancel()
        for members in self._pool_members.values():
            members.close()

    def drop(self, model: str) -> None:
        """Let nobody join the pool of `model` any more: it has been stopped."""
        members = self._pool_members.pop(model, None)
        if members is not None:
            members.close()

    def take_decisions(self, trials: int) -> list[Decision]:
        """Return what has changed since the last call as decisions, made after so many trials."""
        decisions = []
        for model, members in self._pool_members.items():
            alike: dict[str, list[Change]] = {}
            for change in members.take_changes():
                alike.setdefault(change.what, []).append(change)
            for what, changes in alike.items():
                text = _in_words(model, what, [change.url for change in changes], changes[0].words)
                decisions.append(Decision("servers", (model,), what, 0, trials, text, {}))
        return decisions

    def remarks(self) -> tuple[str, ...]:
        """Return what a reader has to know now: sources that cannot be read, models without a server."""
        return tuple(dict.fromkeys([*self._of_sources(), *self._of_models()]))

    def news(self) -> list[str]:
        """Return the remarks that were not returned before."""
        news = [words for words in self.remarks() if words not in self._told]
        self._told.update(news)
        return news

    def lacking(self, model: str) -> tuple[str, ...]:
        """Return why `model` has no server that could be asked; empty where it has one, or fixed ones."""
        members = self._pool_members.get(model)
        return () if members is None else members.lacking

    def health(self) -> Iterator[EndpointHealth]:
        """Yield the state of servers that are named and not in a pool yet, or have left one of late."""
        now = self._clock.now()
        for members in self._pool_members.values():
            yield from members.health(now)

    def _of_sources(self) -> Iterator[str]:
        for problems in self._problems.values():
            for problem in problems:
                yield f"{problem}; the servers known last stay"

    def _of_models(self) -> Iterator[str]:
        alike: dict[tuple[float, tuple[str, ...]], list[str]] = {}
        for model, members in self._pool_members.items():
            if members.lacking:
                alike.setdefault((members.discovery.patience, members.lacking), []).append(model)
        for (patience, reasons), models in alike.items():
            verb = "waits" if len(models) == 1 else "wait"
            yield f"{', '.join(models)} {verb} for a server, {patience:g} s at most: {'; '.join(reasons)}"

    async def _follow(self, source: Source, tasks: asyncio.TaskGroup) -> None:
        while pool_members := self._following(source):
            reading = await source.read()
            self._problems[source] = reading.problems
            for members in pool_members:
                if members.model in self._pool_members:  # it may have been stopped meanwhile
                    members.heed(reading.addresses, tasks)
            self._announce()
            await self._clock.sleep(source.every)
        self._problems.pop(source, None)

    def _following(self, source: Source) -> list[PoolMembers]:
        return [members for members in self._pool_members.values() if members.discovery.source is source]


def _in_words(model: str, what: str, urls: list[str], words: str) -> str:
    """Return changes of one kind in a sentence; `words` say why, for the first of them.

    Examples
    --------
    >>> _in_words("qwen", "joined", ["http://gpu1:8000/v1", "http://gpu2:8000/v1"], "")
    'qwen: servers http://gpu1:8000/v1, http://gpu2:8000/v1 joined'
    >>> _in_words("qwen", "refused", ["http://gpu1:8000/v1"], "HTTP 401: no key")
    'qwen: server http://gpu1:8000/v1 is left out: HTTP 401: no key'
    """
    shown = ", ".join(urls[:_NAMED]) + (f" and {len(urls) - _NAMED} more" if len(urls) > _NAMED else "")
    noun = "server" if len(urls) == 1 else "servers"
    verb = {"joined": "joined", "left": "left"}.get(what, f"{'is' if len(urls) == 1 else 'are'} left out")
    return f"{model}: {noun} {shown} {verb}{f': {words}' if words else ''}"
