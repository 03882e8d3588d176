from __future__ import annotations

from itertools import pairwise

from adaptive_eval.store.pending import KEEP_ALL, expired_by


def kept_after(total: int, keep: int = KEEP_ALL) -> list[int]:
    kept: set[int] = set()
    for newest in range(total):
        kept.add(newest)
        for number in expired_by(newest, keep):
            kept.remove(number)  # KeyError where a number expires twice
    return sorted(kept)


def test_history_grows_with_the_logarithm():
    sizes = [len(kept_after(total)) for total in (1_000, 2_000, 4_000, 8_000, 16_000, 32_000)]
    assert all(newer - older <= KEEP_ALL // 2 + 1 for older, newer in pairwise(sizes))
    assert sizes[-1] < 700
