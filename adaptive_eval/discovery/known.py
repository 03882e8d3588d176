"""What a source said last: it stands wherever the source cannot be read."""

from __future__ import annotations

from abc import ABC, abstractmethod

from adaptive_eval.engine.discovery import Reading

__all__ = ["Remembering"]


class Remembering(ABC):
    """A source that is read as a whole, and stays with its last answer where that fails.

    Parameters
    ----------
    name : str
        What it is, in words for people.
    every : float
        Seconds from one reading to the next.
    """

    def __init__(self, name: str, every: float) -> None:
        self.name = name
        self.every = every
        self._last: tuple[str, ...] = ()

    async def read(self) -> Reading:
        """Read it anew."""
        try:
            self._last = await self.addresses()
        except (OSError, ValueError) as error:
            return Reading(self._last, (f"{self.name}: {_words(error)}",))
        return Reading(self._last)

    @abstractmethod
    async def addresses(self) -> tuple[str, ...]:
        """Return the addresses; raise OSError or ValueError, with words for people, where that fails."""


def _words(error: Exception) -> str:
    """Return what is wrong, without the number and the path that an OSError repeats."""
    return (error.strerror if isinstance(error, OSError) and error.strerror else str(error)) or "no answer"
