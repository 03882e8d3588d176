"""Keeps Python's garbage collector from holding up a run."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["frozen"]


@contextmanager
def frozen() -> Iterator[None]:
    """Leave what is there now, libraries above all, out of every collection until the end.

    A full collection looks at all objects there are, some 300,000 once the client and the statistics are
    imported, and holds up the event loop for about 100 ms. What a run makes is still collected.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
