"""SIGINT and SIGTERM at every stage of a run; it imports next to nothing, to hold from the start.

While a run starts or writes its report, a signal ends the process at once: nothing is in flight, and what is
stored is safe. While it asks, the first signal drains the trials in flight and the second cancels them.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from adaptive_eval.stops import INTERRUPTED

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_stops: list[Callable[[], object]] = []
_owner = os.getpid()


@contextmanager
def ends_at_once() -> Iterator[None]:
    """End the process at a signal within this context; outside of the main thread it does nothing."""
    previous = {number: signal.getsignal(number) for number in _SIGNALS}
    ours = [number for number, handler in previous.items() if handler not in (signal.SIG_IGN, _handle)]
    try:
        for number in ours:
            signal.signal(number, _handle)
    except ValueError:  # not the main thread
        ours = []
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, previous[number])


@contextmanager
def stop_instead(stop: Callable[[], object]) -> Iterator[None]:
    """Call `stop` at a signal within this context, in place of ending the process."""
    _stops.append(stop)
    try:
        yield
    finally:
        _stops.remove(stop)


def use_defaults() -> None:
    """Give up the handlers of :func:`ends_at_once`: for commands that clean up after a KeyboardInterrupt."""
    if signal.getsignal(signal.SIGINT) is _handle:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGTERM) is _handle:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _handle(number: int, frame: FrameType | None) -> None:
    if os.getpid() != _owner:  # a forked child
        os._exit(INTERRUPTED)
    if _stops:
        _stops[-1]()
        return
    with suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
        if sys.stdout.isatty():
            os.write(1, b"\x1b[?25h")  # a spinner hides the cursor
    with suppress(OSError):
        os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)
