"""Which request meets which fault."""

from __future__ import annotations

import pytest

from adaptive_eval.mimic.delivery import FaultPlan
from adaptive_eval.mimic.mimic_spec import FaultSpec


def struck(fault: FaultSpec, requests: str) -> str:
    """Return x for every struck request of `requests`, a dot for the others."""
    plan = FaultPlan([fault], seed=1)
    return "".join("x" if plan.strike(request) else "." for request in requests)


@pytest.mark.parametrize(
    ("fault", "requests", "pattern"),
    [
        (FaultSpec(kind="drop"), "abc", "xxx"),
        (FaultSpec(kind="drop", first=2), "abcd", "xx.."),
        (FaultSpec(kind="drop", requests=(2, 3)), "abcde", ".xx.."),
        (FaultSpec(kind="drop", every=3), "abcdefg", "..x..x."),
        (FaultSpec(kind="drop", attempts=1), "abacab", "xx.x.."),
        (FaultSpec(kind="drop", attempts=2), "aaabbb", "xx.xx."),
        (FaultSpec(kind="drop", probability=0.0), "abc", "..."),
        (FaultSpec(kind="drop", probability=1.0), "abc", "xxx"),
    ],
)
def test_each_trigger_strikes_where_it_says(fault: FaultSpec, requests: str, pattern: str) -> None:
    assert struck(fault, requests) == pattern


def test_chance_depends_on_the_request_and_its_attempt_not_on_the_order() -> None:
    fault = FaultSpec(kind="drop", probability=0.5)
    names = [f"request {index}" for index in range(50)]

    def fates(order: list[str]) -> dict[tuple[str, int], bool]:
        plan, seen, result = FaultPlan([fault], seed=3), dict.fromkeys(order, 0), {}
        for name in order:
            seen[name] += 1
            result[name, seen[name]] = plan.strike(name) is not None
        return result

    forward, backward = fates(names * 2), fates([name for name in reversed(names) for _ in range(2)])
    assert forward == backward
    assert any(forward[name, 1] != forward[name, 2] for name in names)
