"""When a failed request is sent again: a pure decision, and tenacity's retries with it."""

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from tenacity import BaseRetrying, RetryCallState, retry_if_exception

from adaptive_eval.errors import TransientEndpointError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The limits of retrying.

    References
    ----------
    .. [1] M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.

    Examples
    --------
    >>> policy = RetryPolicy(attempts=5, base=1.0, cap=10.0, total_wait=100.0)
    >>> busy = TransientEndpointError("busy", kind="server")
    >>> [policy.wait(busy, attempt, jitter=0.5) for attempt in range(1, 6)]
    [0.5, 1.0, 2.0, 4.0, 5.0]
    >>> policy.allows(attempt=4, waited=95.0), policy.allows(attempt=5, waited=0.0)
    (True, False)
    """

    attempts: int = 10  # most attempts, the first included
    # the wait before attempt k + 1 is uniform between 0 and min(cap, base · 2^(k − 1)) seconds: full jitter
    # [1]_, so that clients that failed together do not come back together
    base: float = 1.0
    cap: float = 60.0
    # most seconds spent waiting between the attempts of one trial. A server that asks for more is not
    # waited for.
    total_wait: float = 600.0

    def wait(self, error: BaseException | None, attempt: int, jitter: float) -> float:
        """Return the seconds to wait after attempt number `attempt` has failed with `error`."""
        asked = error.retry_after if isinstance(error, TransientEndpointError) else None
        if asked:  # the requests that were refused together come back over a quarter of the time
            return asked + jitter * min(self.base, asked / 4)
        # 2^(k − 1) overflows a float beyond k = 1024; the cap is reached long before.
        return jitter * min(self.cap, self.base * 2.0 ** min(attempt - 1, 64))

    def allows(self, attempt: int, waited: float) -> bool:
        """Return whether another attempt may follow attempt number `attempt`, after so many seconds."""
        return attempt < self.attempts and waited <= self.total_wait


def is_transient(error: BaseException) -> bool:
    """Return whether a failure is worth another attempt."""
    return isinstance(error, TransientEndpointError)


class _Retrying(BaseRetrying):
    """tenacity's loop for attempts that are awaited and decisions that are not."""

    async def __call__(self, fn: Callable[..., Awaitable[T]], *args: Any, **kwargs: Any) -> T:  # type: ignore[override]
        state = RetryCallState(self, fn, args, kwargs)
        while True:
            try:
                return await fn(*args, **kwargs)
            except BaseException as error:  # noqa: BLE001 - as tenacity's own loop: `retry` decides
                state.set_exception((type(error), error, error.__traceback__))
            if state.attempt_number == 1:
                self.begin()
            self.iter(state)  # raises the failure where no attempt follows
            state.prepare_for_next_attempt()
            await self.sleep(state.upcoming_sleep)  # type: ignore[misc]


def with_retries(
    attempt: Callable[[], Awaitable[T]],
    policy: RetryPolicy,
    *,
    sleep: Callable[[float], Awaitable[None]],
    jitter: Callable[[], float],
    unwanted: Callable[[], bool],
    worth: Callable[[BaseException], bool] = is_transient,
) -> Coroutine[Any, Any, T]:
    """Make attempts until one succeeds or fails for good, or no further one is wanted.

    A failure is `worth` another attempt, or ends them. `attempt` is a function with ``async``.

    Examples
    --------
    >>> import asyncio
    >>> async def attempt():
    ...     raise TransientEndpointError("busy", kind="server")
    >>> async def no_wait(seconds):
    ...     print(f"waits {seconds:g} s")
    >>> policy, half, never = RetryPolicy(attempts=3), lambda: 0.5, lambda: False
    >>> asyncio.run(with_retries(attempt, policy, sleep=no_wait, jitter=half, unwanted=never))
    Traceback (most recent call last):
    adaptive_eval.errors.TransientEndpointError: busy
    """

    def wait(state: RetryCallState) -> float:
        error = None if state.outcome is None else state.outcome.exception()
        return policy.wait(error, state.attempt_number, jitter())

    def stop(state: RetryCallState) -> bool:
        return unwanted() or not policy.allows(state.attempt_number, state.idle_for + state.upcoming_sleep)

    retry = retry_if_exception(worth)
    retrying = _Retrying(retry=retry, wait=wait, stop=stop, sleep=sleep, reraise=True)  # type: ignore[arg-type]
    return retrying(attempt)
