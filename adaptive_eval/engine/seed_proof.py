"""Whether the servers of a model honour seeds, tested before another attempt counts as the same draw.

An idle server may repeat short answers and diverge under load. So the test asks a question of the run again,
with its own parameters and with others in flight: two answers to one seed are equal, and two seeds differ.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from math import ceil, lgamma, log
from math import exp as exponential
from typing import NamedTuple, TypeAlias

from adaptive_eval.engine.health import SEVERAL
from adaptive_eval.engine.independence import LONG

CHANCE = 0.02
"""Most chance that a test is passed where seeds are ignored, of answers that may be equal by chance."""
TESTS = 2
"""Tests of a model in one session, at most."""
ODD_ONES = ceil(-log(CHANCE, 3))
"""Questions on which the answer under another seed is the odd one of three: if seeds were ignored, each of
the three would be as often, and this one on all of four questions with a chance of 3^-4 = .012."""
SURE = 3
"""Seeds after which answers that never differ show nothing, but of a model that is to repeat itself."""


class Repeat(NamedTuple):
    """An answer to a request that was sent again."""

    content: str
    server: str


Ask: TypeAlias = Callable[[int, Collection[str]], Awaitable[Repeat | None]]
"""Asks again with the seed of a number (0: the trial's own), elsewhere than at these servers if possible."""


class Trio(NamedTuple):
    """An answer of a server that is not asked any more, and two to the same question from another."""

    content: str
    same: Repeat | None  # under the same seed
    other: Repeat | None  # under another seed


def chance_of_pairs(pairs: Sequence[tuple[str, str]]) -> float:
    """Return the chance that answers in random order would form only equal pairs, as these do.

    Examples
    --------
    >>> round(chance_of_pairs([("a", "a"), ("b", "b"), ("c", "c")]), 4), chance_of_pairs([("a", "a")] * 5)
    (0.0667, 1.0)
    """
    counts = Counter(answer for pair in pairs for answer in pair)
    log_all = lgamma(2 * len(pairs) + 1)
    log_paired = lgamma(len(pairs) + 1)
    for number in counts.values():
        log_all -= lgamma(number + 1)
        log_paired -= lgamma(number // 2 + 1)
    return exponential(log_paired - log_all)


@dataclass
class SeedProof:
    """What is known about the seeds of one model in this session."""

    proven: set[str] = field(default_factory=set)  # addresses of servers that give equal answers to a seed
    refuted: bool = False
    tests: int = 0
    comparisons: int = 0  # tests of a server by its past answers
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def holds(self, first: Repeat, servers: Collection[str], ask: Ask, *, repeats: bool) -> bool:
        """Return whether `servers` give the same answer to the same request; test it if it is not known.

        `first` is an answer that is here; `repeats`: the model is to answer the same whatever the seed.
        """
        async with self.lock:
            if not self.refuted and not self.proven >= set(servers) and self.tests < TESTS:
                self.tests += 1
                await self._test(first, servers, ask, repeats=repeats)
        return not self.refuted and self.proven >= set(servers)

    async def compare(
        self,
        server: str,
        others: Collection[str],
        questions: int,
        ask: Callable[[int], Awaitable[Trio]],
        *,
        repeats: bool,
    ) -> None:
        """Test whether `others` repeat answers of a server, which is not asked, a few questions at a time.

        `ask` returns what the server has said to a question, and what others say.
        """
        async with self.lock:
            if self.refuted or self.comparisons >= TESTS:
                return
            self.comparisons += 1
            covered, odd = {server}, 0
            for first in range(0, questions, ODD_ONES):
                numbers = range(first, min(first + ODD_ONES, questions))
                for said, same, other in await asyncio.gather(*map(ask, numbers)):
                    if same is None or other is None:
                        return
                    self.refuted = self.refuted or said != same.content
                    covered.add(same.server)
                    odd += said != other.content
                if self.refuted:
                    return
                if covered >= set(others) and (repeats or odd >= ODD_ONES):
                    self.proven |= covered
                    return

    async def _test(self, first: Repeat, servers: Collection[str], ask: Ask, *, repeats: bool) -> None:
        covered = {first.server}
        pairs: list[tuple[str, str]] = []
        shown = False
        for number in range(SEVERAL + 1):  # of two texts in shares of .7 and .3, so many show as much
            one = first if number == 0 else await ask(number, covered)
            if one is None:
                return
            if (
                pairs
                and not repeats
                and _is_long(one.content, first.content)
                and one.content != first.content
            ):
                shown = True
                break
            two = await ask(number, covered | {one.server})
            if two is None:
                return
            self.refuted = one.content != two.content
            if self.refuted:
                return
            covered |= {one.server, two.server}
            pairs.append((one.content, two.content))
            alike = len(pairs) >= SURE and len({said for said, _ in pairs}) == 1
            shown = alike if repeats else chance_of_pairs(pairs) <= CHANCE
            if alike or shown:
                break
        if shown and await self._cover(first, servers, covered, ask):
            self.proven |= covered

    async def _cover(self, first: Repeat, servers: Collection[str], covered: set[str], ask: Ask) -> bool:
        """Ask the other servers too; return False if an answer is lacking or differs."""
        for _ in range(2 * len(set(servers) - covered)):
            if covered >= set(servers):
                break
            again = await ask(0, covered)
            if again is None:
                return False
            self.refuted = again.content != first.content
            if self.refuted:
                return False
            covered.add(again.server)
        return True


def _is_long(*texts: str) -> bool:
    return all(len(text) >= LONG for text in texts)
