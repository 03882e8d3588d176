from __future__ import annotations

import sqlite3

import numpy as np
import pytest
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st

from adaptive_eval.store.codec import dump_json, pack, unpack

any_text = st.text(st.characters(exclude_categories=()))


def through_sqlite(value: str | bytes) -> str | bytes:
    db = sqlite3.connect(":memory:")
    try:
        db.execute("CREATE TABLE t (value TEXT)")
        db.execute("INSERT INTO t VALUES (?)", (value,))
        return db.execute("SELECT value FROM t").fetchone()[0]
    finally:
        db.close()


@given(any_text, st.sampled_from([1, 700]))
@example("", 1)
@example("\0", 1)
@example("\ud83d\ude00", 1)  # two lone surrogates, not one emoji
@example("\udcff", 700)
def test_any_text_survives(text, times):
    text = text * times
    assert unpack(through_sqlite(pack(text))) == text


def test_long_text_is_compressed_and_text_that_cannot_be_is_not():
    assert len(pack("so the answer is 42 " * 100)) < 200
    rng = np.random.default_rng(1)
    noise = "".join(chr(code) for code in rng.integers(0x4E00, 0x9FFF, 2000))
    assert len(pack(noise)) <= len(noise.encode())


def test_damaged_bytes_are_noticed():
    packed = bytearray(pack("so the answer is 42 " * 100))
    packed[-1] ^= 1
    with pytest.raises(zstandard.ZstdError):
        unpack(bytes(packed))


@pytest.mark.parametrize("data", [{1, 2}, b"bytes", object(), np.arange(3)])
def test_json_names_what_it_cannot_store(data):
    with pytest.raises(TypeError, match=r"cannot store .* give JSON-able data"):
        dump_json({"key": data})
