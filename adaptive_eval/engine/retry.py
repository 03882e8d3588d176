"""When a failed request is sent again: a pure decision, and tenacity's retries with it.

References
----------
.. [1] M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception

from adaptive_eval.engine.clock import TICK, backoff
from adaptive_eval.errors import TransientEndpointError
from adaptive_eval.options.request_options import RetryConfig

T = TypeVar("T")


def wait_after(error: BaseException | None, attempt: int, jitter: float) -> float:
    """Return the seconds to wait after attempt number `attempt` has failed with `error`.

    They are uniform between 0 and those of the backoff: full jitter [1], so that clients that failed together
    do not come back together.

    Examples
    --------
    >>> busy = TransientEndpointError("busy", kind="server")
    >>> [wait_after(busy, attempt, jitter=0.5) for attempt in range(1, 9)]
    [0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0, 15.0]
    """
    asked = None
    if isinstance(error, TransientEndpointError):
        asked = error.retry_after
    if asked:  # the requests that were refused together come back over a quarter of the time
        return asked + jitter * min(TICK, asked / 4)
    return jitter * backoff(attempt)


def is_allowed(retry: RetryConfig, attempt: int, waited: float) -> bool:
    """Return whether another attempt may follow attempt number `attempt`, after so many seconds.

    A server that asks for more seconds than `retry` has is not waited for.
    """
    return attempt < retry.attempts and waited <= retry.max_seconds


def is_transient(error: BaseException) -> bool:
    """Return whether a failure is worth another attempt."""
    return isinstance(error, TransientEndpointError)


async def with_retries(
    attempt: Callable[[], Awaitable[T]],
    retry: RetryConfig,
    *,
    sleep: Callable[[float], Awaitable[None]],
    jitter: Callable[[], float],
    unwanted: Callable[[], bool],
    worth: Callable[[BaseException], bool] = is_transient,
) -> T:
    """Make attempts until one succeeds or fails for good, or no further one is wanted.

    A failure is `worth` another attempt, or ends them. `attempt` is a function with ``async``.

    Examples
    --------
    >>> import asyncio
    >>> async def attempt():
    ...     raise TransientEndpointError("busy", kind="server")
    >>> async def no_wait(seconds):
    ...     print(f"waits {seconds:g} s")
    >>> retry, half, never = RetryConfig(attempts=3), lambda: 0.5, lambda: False
    >>> asyncio.run(with_retries(attempt, retry, sleep=no_wait, jitter=half, unwanted=never))
    Traceback (most recent call last):
    adaptive_eval.errors.TransientEndpointError: busy
    """
    try:
        return await attempt()
    except BaseException as error:  # noqa: BLE001 - as in tenacity's loop, which most trials do without
        failed = [error]

    async def again() -> T:
        if failed:
            raise failed.pop()
        return await attempt()

    def wait(state: RetryCallState) -> float:
        error = None
        if state.outcome is not None:
            error = state.outcome.exception()
        return wait_after(error, state.attempt_number, jitter())

    def stop(state: RetryCallState) -> bool:
        waited = state.idle_for + state.upcoming_sleep
        return unwanted() or not is_allowed(retry, state.attempt_number, waited)

    retry_if = retry_if_exception(worth)
    retrying = AsyncRetrying(retry=retry_if, wait=wait, stop=stop, sleep=sleep, reraise=True)
    return await retrying(again)
