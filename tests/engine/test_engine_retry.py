"""When a failed request is sent again: the decision as a table, and the layer built from it in time."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from owned_clock import OwnedClock, run_owned
from scripted import Scene, broken, busy, refused

from adaptive_eval.engine.retry import RetryPolicy, with_retries
from adaptive_eval.errors import PermanentEndpointError, TransientEndpointError

POLICY = RetryPolicy(attempts=6, base=1.0, cap=10.0, total_wait=100.0)


@pytest.mark.parametrize(
    ("error", "attempt", "waited", "jitter", "wait"),
    [
        # Exponential, capped, full jitter.
        (broken(), 1, 0.0, 0.0, 0.0),
        (broken(), 1, 0.0, 0.999, 0.999),
        (broken(), 2, 0.0, 0.5, 1.0),
        (broken(), 3, 0.0, 0.5, 2.0),
        (broken(), 4, 0.0, 0.5, 4.0),
        (broken(), 5, 0.0, 0.5, 5.0),
        # Attempts are capped.
        (broken(), 6, 0.0, 0.5, None),
        (broken(), 7, 0.0, 0.5, None),
        # The total wait is capped.
        (broken(), 5, 95.0, 0.5, 5.0),
        (broken(), 5, 95.1, 0.5, None),
        # What the server asks for is obeyed, exactly or a little later.
        (busy(7.0), 1, 0.0, 0.0, 7.0),
        (busy(7.0), 5, 0.0, 0.0, 7.0),
        (busy(7.0), 1, 0.0, 0.5, 7.5),
        (busy(0.0), 1, 0.0, 0.0, 0.0),
        (busy(40.0), 1, 0.0, 0.0, 40.0),
        (busy(100.0), 1, 0.0, 0.0, 100.0),
        # More than we are ready to wait: never earlier instead.
        (busy(100.1), 1, 0.0, 0.0, None),
        (busy(40.0), 3, 61.0, 0.0, None),
        (busy(), 2, 0.0, 0.5, 1.0),
        # No attempt helps.
        (refused(), 1, 0.0, 0.5, None),
    ],
)
def test_the_decision(error, attempt, waited, jitter, wait):
    found = POLICY.wait(error, attempt, jitter)
    again = isinstance(error, TransientEndpointError) and POLICY.allows(attempt, waited + found)
    assert (found if again else None) == (None if wait is None else pytest.approx(wait))


@given(
    attempt=st.integers(1, 10**6),
    waited=st.floats(0.0, 1e6),
    jitter=st.floats(0.0, 1.0, exclude_max=True),
    retry_after=st.none() | st.floats(0.0, 1e6),
    attempts=st.integers(1, 10**6),
    total=st.floats(0.0, 1e6),
)
def test_no_wait_breaks_a_promise(attempt, waited, jitter, retry_after, attempts, total):
    policy = RetryPolicy(attempts=attempts, base=1.0, cap=60.0, total_wait=total)
    wait = policy.wait(busy(retry_after), attempt, jitter)
    if policy.allows(attempt, waited + wait):
        assert attempt < attempts
        assert waited + wait <= total
    assert wait >= (retry_after or 0.0)
    if retry_after is None:
        assert wait <= 60.0


def layer_in_time(errors, policy=POLICY, jitter=lambda: 0.5, unwanted=lambda: False):
    """Run the layer over attempts that fail with `errors`; return its end, and when attempts began."""
    starts = []
    remaining = list(errors)

    async def attempt():
        starts.append(asyncio.get_running_loop().time())
        if remaining:
            raise remaining.pop(0)
        return "answer"

    async def main():
        sleep = OwnedClock().sleep
        try:
            return await with_retries(attempt, policy, sleep=sleep, jitter=jitter, unwanted=unwanted)
        except (TransientEndpointError, PermanentEndpointError) as error:
            return error

    return run_owned(main()), starts


def test_retry_after_is_obeyed_exactly():
    result, starts = layer_in_time([busy(30.0), busy(12.5)], jitter=lambda: 0.0)
    assert result == "answer"
    assert starts == pytest.approx([0.0, 30.0, 42.5])


def test_giving_up_is_asked_for_after_every_failure():
    verdicts = iter([False, True])
    result, starts = layer_in_time([broken()] * 6, unwanted=lambda: next(verdicts))
    assert isinstance(result, TransientEndpointError)
    assert len(starts) == 2


@pytest.mark.parametrize(
    ("errors", "policy", "attempts"),
    [
        ([broken()] * 6, POLICY, 6),
        ([refused()], POLICY, 1),
        ([busy(40.0)] * 6, POLICY, 3),  # 40 + 40 s, and a third wait would be too much
        ([busy(100.1)], POLICY, 1),
        ([broken()] * 2, RetryPolicy(attempts=1), 1),
    ],
)
def test_the_end_of_the_attempts(errors, policy, attempts):
    result, starts = layer_in_time(errors, policy, jitter=lambda: 0.0)
    assert result in errors
    assert len(starts) == attempts


def test_trials_that_retry_at_once_do_not_mix_their_states():
    # tenacity keeps the state of a call in the layer; each trial must have its own.
    script = {"a": lambda step, attempt: broken() if attempt <= step % 5 else 0.25}
    scene = Scene(
        steps={"a": 60}, concurrency=30, retry=RetryPolicy(attempts=5), scripts=script, jitter=lambda: 0.5
    )
    run_owned(scene.run())
    assert {step: scene.endpoints["a"].attempts[step] for step in range(60)} == {
        step: step % 5 + 1 for step in range(60)
    }


def test_a_cancelled_wait_is_cancelled():
    async def main():
        async def attempt():
            raise broken()

        retries = with_retries(
            attempt, POLICY, sleep=asyncio.sleep, jitter=lambda: 0.9, unwanted=lambda: False
        )
        task = asyncio.create_task(retries)
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return asyncio.get_running_loop().time()

    assert run_owned(main()) == pytest.approx(0.1)
