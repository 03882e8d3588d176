"""Server-sent events: what an open page is told when something has changed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable

from starlette.concurrency import run_in_threadpool

from adaptive_eval.errors import RunFileError
from adaptive_eval.monitor.web.feed import News

__all__ = ["event", "follow"]

_POLL = 0.5  # seconds; asking again costs nothing where the feed finds it too early
_BEAT = 15.0  # seconds of silence after which a comment shows whether anyone still listens


def event(name: str, data: object) -> bytes:
    r"""Return one server-sent event whose data is JSON on one line.

    Examples
    --------
    >>> event("part", {"name": "cost", "html": "<p>\n"})
    b'event: part\ndata: {"name": "cost", "html": "<p>\\n"}\n\n'
    """
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()


async def follow(
    news: Callable[[], News], closing: Callable[[], bool], *, poll: float = _POLL
) -> AsyncIterator[bytes]:
    """Yield events for one page until the server closes.

    ``part`` carries the HTML of a part that has changed, ``plots`` says that there is more to plot, ``said``
    carries a decision in words, ``trouble`` says why the run cannot be read any more.

    Parameters
    ----------
    news : callable
        The page as it should be now; called in a thread.
    closing : callable
        Whether the server is closing.
    poll : float
        Seconds between two calls of `news`.
    """
    shown: dict[str, str] = {}
    plots, decided, trouble, silent = 0, -1, "", 0.0
    while not closing():
        told: list[bytes] = []
        try:
            now = await run_in_threadpool(news)
        except RunFileError as error:
            if str(error) != trouble:
                told.append(event("trouble", str(error)[:500]))
            trouble = str(error)
        else:
            trouble = ""
            told += [
                event("part", {"name": name, "html": html})
                for name, html in now.parts.items()
                if shown.get(name) != html
            ]
            shown = dict(now.parts)
            if now.plots != plots:
                plots = now.plots
                told.append(event("plots", plots))
            if decided >= 0:
                told += [event("said", text[:300]) for text in now.decisions[decided:]]
            decided = len(now.decisions)
        silent = 0.0 if told else silent + poll
        if silent >= _BEAT:
            told, silent = [b":\n\n"], 0.0
        for one in told:
            yield one
        await asyncio.sleep(poll)
