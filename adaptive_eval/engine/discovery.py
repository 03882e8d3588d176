"""Where the servers of a model come from when they are not known beforehand."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from adaptive_eval.engine.protocols import Endpoint
from adaptive_eval.engine.server import ServerLimits
from adaptive_eval.errors import UsageError

__all__ = ["Discovery", "Reading", "Source"]


@dataclass(frozen=True, slots=True)
class Reading:
    """What a source says now.

    Parameters
    ----------
    addresses : tuple of str
        Base addresses of the servers that are there, without repetition. Where the source cannot be read,
        or only in part, the last known ones stand for what is lacking.
    problems : tuple of str
        Why something could not be read, in words; empty where all was.
    """

    addresses: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


class Source(Protocol):
    """Says which servers are there: a file, a command, a name. Models that share one share its servers."""

    @property
    def name(self) -> str:
        """What it is, in words for people."""
        ...

    @property
    def every(self) -> float:
        """Seconds from one reading to the next."""
        ...

    async def read(self) -> Reading:
        """Read it anew. It raises nothing, holds nobody up, and ends within its own limit of time."""
        ...


@dataclass(frozen=True, slots=True)
class Discovery:
    """How the servers of one model are found.

    Parameters
    ----------
    source : Source
        Names them.
    connect : callable
        Returns the endpoint at an address once it has said that it serves the model; raises EndpointError
        where it does not. Asked again for an address, it may return the same endpoint.
    patience : float
        Seconds without any server after which the model is stopped.
    limits : callable
        Returns fresh limits for a server that has none of its own.

    Raises
    ------
    UsageError
        `patience` is negative.
    """

    source: Source
    connect: Callable[[str], Awaitable[Endpoint]]
    patience: float = 600.0
    limits: Callable[[], ServerLimits] = ServerLimits

    def __post_init__(self) -> None:
        if not self.patience >= 0.0:
            raise UsageError(f"patience is {self.patience}; it must be 0 or more seconds")
