"""Run files and inputs from an attacker: small ones that unpack to gigabytes, foreign SQL, forged rows."""

import csv
import gzip
import io
import json
import sqlite3
import subprocess
import sys
import zipfile
import zlib
from unicodedata import category

import numpy as np
import pyarrow
import pytest
import run_examples as runs
import zstandard
from pyarrow import parquet
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient

import adaptive_eval.views.web_app  # noqa: F401 - it says which numbers an address has
from adaptive_eval.errors import DatasetError, OutcomesError, RunDamaged
from adaptive_eval.interop.run_tables import write_csv
from adaptive_eval.store.codec import MOST_BYTES, pack, unpack
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.trial_rows import scoring_checksum
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.tasks import unpacking
from adaptive_eval.tasks.rows import read_rows


@pytest.fixture
def run(tmp_path):
    runs.make_run(tmp_path / "bad" / "run")
    runs.make_run(tmp_path / "bad" / "other")
    return tmp_path / "bad" / "run"


def _changed(run, *statements):
    with sqlite3.connect(run / "run.db") as db:
        for statement, *values in statements:
            db.execute(statement, values)
    db.close()


@pytest.mark.parametrize("says_its_size", [True, False])
def test_a_small_blob_of_much_text_is_not_unpacked(says_its_size):
    compressor = zstandard.ZstdCompressor(level=19).compressobj(size=MOST_BYTES + 1 if says_its_size else -1)
    blob = b"".join(compressor.compress(bytes(2**20)) for _ in range(MOST_BYTES // 2**20))
    blob += compressor.compress(b"0") + compressor.flush()
    with pytest.raises(ValueError, match="unpacks to more"):
        unpack(blob)
    assert unpack(pack("thinking " * 10**6)) == "thinking " * 10**6


def test_a_generated_column_is_never_executed(run):
    _changed(run, ("ALTER TABLE decisions ADD COLUMN more TEXT AS (hex(zeroblob(400000000)))",))
    with pytest.raises(RunDamaged, match="decisions"):
        RunReader(run)


def test_an_index_whose_definition_was_changed_is_refused(run):
    _changed(
        run,
        ("DROP INDEX attempts_failed",),
        ("CREATE INDEX attempts_failed ON attempts (hex(message)) WHERE error IS NOT NULL",),
    )
    with pytest.raises(RunDamaged, match="attempts_failed"):
        RunReader(run)


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("snapshots", "at", "soon"),
        ("snapshots", "at", 1e300),
        ("snapshots", "elapsed", "long"),
        ("snapshots", "body", "{}"),
        ("snapshots", "body", json.dumps({"results": 3, "endpoints": []})),
        ("snapshots", "body", json.dumps({"results": {"trials": 10**400}, "endpoints": []})),
        ("decisions", "at", -1e300),
        ("decisions", "at", 1e18),
    ],
)
def test_results_that_cannot_be_read_are_damage_of_one_run(run, table, column, value):
    _changed(run, (f"UPDATE {table} SET {column} = ?", value))
    for command in (("report", run), ("monitor", run, "--once"), ("validate", run)):
        done = runs.command(*command)
        assert done.exception is None or isinstance(done.exception, RunDamaged), (command, done.exception)
        assert done.exception is not None or done.return_value == 1
    listed = runs.printed("monitor", run.parent)
    assert "run: cannot be read" in listed
    assert "other: resolved" in listed


@pytest.mark.parametrize(
    "body", ["{}", '{"results": 3}', '{"results": {"trials": ' + "9" * 400 + "}}", "NaN"]
)
def test_a_scoring_that_cannot_be_read_is_damage(run, body):
    told = ("strict", 1750000000.0, body)
    _changed(run, ("INSERT INTO scorings VALUES (0, ?, ?, ?, ?)", *told, scoring_checksum(told, ())))
    for command in (("report", run), ("export", run, "--format", "markdown"), ("check", run)):
        assert isinstance(runs.command(*command).exception, RunDamaged), command
    assert "damaged" in runs.printed("validate", run, code=1)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("session", "[3]"),
        ("thresholds", "[]"),
        ("worth", '{"forest": 3}'),
        ("identity", "[3]"),
        ("identity", "{}"),
        ("labels", "x"),
        ("labels", '{"rows": 3}'),
        ("imported", '{"rule": "anytime"}'),
        ("previous", '{"settings": {}, "references": [3], "prior": null}'),
        ("against", '{"forest": 4}'),
        ("scoring", '{"forest": "numeric"}'),
        ("versions", '{"python": 3}'),
        ("changes", "[3]"),
        ("seed", "9" * 5000),
        ("started_at", "soon"),
    ],
)
def test_a_description_of_another_shape_is_damage_though_its_checksum_fits(run, key, value):
    with RunWriter.open(run) as writer:
        writer.set_meta("config", runs.WHOLE_CONFIG)
        writer.set_meta(key, value)
    for command in (
        ("samples", run),
        ("export", run, "--format", "csv"),
        ("report", run),
        ("monitor", run, "--once"),
    ):
        error = runs.command(*command).exception
        assert error is None or isinstance(error, RunDamaged), (command, error)
        assert error is not None or command[0] == "monitor", command


_OF_TRIALS = ("validate", "check", "samples")
_OF_RESULTS = ("report", "validate", "check", "monitor")
_FIRST_DECISION = "UPDATE decisions SET body = json_set(body, {}) WHERE id = 0"
_LAST_DECISION = "UPDATE decisions SET body = json_set(body, {}) WHERE id = (SELECT max(id) FROM decisions)"


@pytest.mark.parametrize(
    ("statements", "commands"),
    [
        (["UPDATE outcomes SET discarded = 'timeout,x' WHERE id = 3"], (*_OF_TRIALS, "report")),
        (["UPDATE outcomes SET finished_at = 1e300 WHERE id = 3"], _OF_TRIALS),
        (["UPDATE outcomes SET completion_tokens = 1.5 WHERE id = 3"], (*_OF_TRIALS, "report", "monitor")),
        (["UPDATE outcomes SET latency = NULL"], _OF_TRIALS),
        (["UPDATE outcomes SET category = -(1 << 62)"], ("validate", "samples")),
        (["UPDATE outcomes SET step = 50000000 WHERE id = 59"], ("validate", "check", "monitor")),
        (["UPDATE outcomes SET category = 'x'"], (*_OF_TRIALS, "report")),
        (["UPDATE tasks SET name = 'wood'"], ("each", "validate", "check")),
        (["UPDATE questions SET name = 'x' WHERE id = 3"], ("validate", "check")),
        (["UPDATE outcomes SET answer = 3 WHERE id = 3"], (*_OF_TRIALS, "analyze")),
        (["UPDATE outcomes SET response = 3 WHERE id = 3"], _OF_TRIALS),
        (["UPDATE answers SET signals = replace(signals, 'true', '{}')"], _OF_TRIALS),
        (["UPDATE signal_sets SET name = '[3]'"], _OF_TRIALS),
        (["UPDATE answers SET details = json_set(details, '$.extracted', 3)"], _OF_TRIALS),
        (
            ["UPDATE answers SET details = json_set(details, '$.reasoning_tokens', 'x')"],
            ("validate", "samples"),
        ),
        (['UPDATE snapshots SET body = \'{"results": {"pairs": 3}, "endpoints": []}\''], ("analyze",)),
        ([_LAST_DECISION.format("'$.verdict', 'budget', '$.evidence.used.trials', 3")], _OF_RESULTS),
        ([_LAST_DECISION.format("'$.evidence.goals', 3")], _OF_RESULTS),
        ([_FIRST_DECISION.format("'$.evidence.low', 'x'")], _OF_RESULTS),
        ([_FIRST_DECISION.format("'$.evidence.threshold', 'x'")], _OF_RESULTS),
    ],
)
def test_a_forged_row_whose_checksums_fit_is_damage(run, statements, commands):
    _changed(run, ("UPDATE meta SET value = ? WHERE key = 'config'", pack(runs.WHOLE_CONFIG)))
    _changed(run, *((statement,) for statement in statements))
    runs.reseal(run)
    for command in commands:
        if command == "monitor":
            done = runs.command(command, run, "--once")
        elif command == "each":
            done = runs.command("check", run, "--each-question", "1 of 1")
        else:
            done = runs.command(command, run)
        if command == "validate":
            assert done.exception is None, done.exception
            assert (done.return_value, "damaged" in done.output) == (1, True)
        else:
            assert isinstance(done.exception, RunDamaged), (command, done.exception)


def test_no_control_character_but_line_feed_and_tab_is_in_a_csv_export():
    every = "".join(chr(code) for code in range(0xA0) if chr(code) not in "\n\t")
    texts = {"text": f"a{every}\nb\tc\r\nd", "formula": f"={every}", "led": "\r=1+1", f"check_{every}": "x"}
    file = io.StringIO()
    write_csv([texts, texts], file)
    header, row, _ = csv.reader(io.StringIO(file.getvalue()))
    controls = {char for cell in (*header, *row) for char in cell if category(char) == "Cc"}
    assert controls == {"\n", "\t"}
    assert row[0].startswith("a␀␁")
    assert row[0].endswith("\\x9f\nb\tc\nd")
    assert row[1].startswith("'=␀")
    assert row[2] == "'␍=1+1"


def test_an_address_of_5000_digits_is_no_page():
    with TestClient(Starlette(routes=[Route("/{step:place}", lambda _: Response("there"))])) as client:
        assert client.get(f"/{'9' * 5000}").status_code == 404
        assert client.get("/17").status_code == 200


_PART = 2**26
_PARTS = 17  # with 64 MB each, more than a file of a few kB may unpack to
_READ = """
import sys
from pathlib import Path
from adaptive_eval.errors import DatasetError
from adaptive_eval.interop.recorded_files import read_recorded
from adaptive_eval.tasks.sources import read_source
for path in map(Path, sys.argv[1:]):
    try:
        read_recorded([path]) if path.suffix in (".eval", ".npz") else read_source(str(path))
        print(path.name, "was read")
    except DatasetError as error:
        print(error)
print(*(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def _archive(path, name, data, method, *, said=None):
    """Write a zip archive of one member from packed `data`; it says that it unpacks to `said` bytes."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, data)
    written = bytearray(path.read_bytes())
    directory = written.index(b"PK\1\2")
    for start, place in ((0, 8), (directory, 10)):
        written[start + place : start + place + 2] = method.to_bytes(2, "little")
    for start, place in ((0, 22), (directory, 24)):
        written[start + place : start + place + 4] = (said or len(data)).to_bytes(4, "little")
    path.write_bytes(written)


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's /proc")
@pytest.mark.slow
def test_small_files_that_unpack_to_gigabytes_are_refused_before_they_are_unpacked(tmp_path):
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(bytes(_PART)) * _PARTS)
    frames = zstandard.compress(bytes(_PART)) * _PARTS
    (tmp_path / "a.csv.zst").write_bytes(frames)
    _archive(tmp_path / "a.eval", "header.json", b"{}", zipfile.ZIP_DEFLATED, said=_PART * _PARTS)
    _archive(tmp_path / "lies.eval", "header.json", frames, 93)
    _archive(tmp_path / "a.npz", "R.npy", b"{}", zipfile.ZIP_DEFLATED, said=_PART * _PARTS)
    np.savez_compressed(tmp_path / "counts.npz", counts=np.array([[[10**9, 0]]]))
    np.savez_compressed(tmp_path / "trials.npz", R=np.ones((1, 1, 140 * 10**6), dtype=bool))
    places = pyarrow.array(np.zeros(2000, dtype=np.int32))
    once = pyarrow.DictionaryArray.from_arrays(places, ["x" * 2**20])
    within = pyarrow.ListArray.from_arrays([0, 2000], once)
    for name, column in (("once", once), ("within", within), ("empty", pyarrow.nulls(14 * 10**7))):
        table = pyarrow.table({"input": column})
        parquet.write_table(table, tmp_path / f"{name}.parquet", compression="zstd", write_statistics=False)
    paths = sorted(tmp_path.iterdir())
    done = subprocess.run(
        [sys.executable, "-c", _READ, *map(str, paths)], capture_output=True, text=True, check=True
    )
    *lines, kilobytes = done.stdout.splitlines()
    assert len(lines) == len(paths)
    for path, line in zip(paths, lines, strict=True):
        assert line.startswith(f"{path}: its ")
        assert "unpack to" in line
    assert int(kilobytes) < 350_000


MOST = 40_000
"""Bytes to which any file may unpack in these tests."""


@pytest.fixture
def bounded(monkeypatch):
    monkeypatch.setattr(unpacking, "ALWAYS", MOST)
    monkeypatch.setattr(unpacking, "MOST_TIMES", 2)


def _bound_of(path, **read):
    """Return whether a zip archive or a Parquet file is within its bound."""
    try:
        if path.suffix == ".parquet":
            unpacking.require_bounded_parquet(path, parquet, parquet.ParquetFile(path))
        else:
            unpacking.require_bounded_zip(path, **read)
    except DatasetError as error:
        return not str(error).startswith(f"{path}: its {path.stat().st_size:,} bytes unpack to ")
    return True


@pytest.mark.parametrize(("size", "within"), [(0, MOST), (MOST, 2 * MOST)])
def test_a_file_may_unpack_to_so_much_and_not_a_byte_more(tmp_path, bounded, size, within):
    path = tmp_path / "x"
    path.write_bytes(bytes(size))
    unpacking.require_bounded(path, within)
    unpacking.require_bounded_stream(path, io.BytesIO(bytes(within)))
    for refuse in (
        lambda: unpacking.require_bounded(path, within + 1),
        lambda: unpacking.require_bounded_stream(path, io.BytesIO(bytes(within + 1))),
        lambda: unpacking.require_bounded_stream(path, io.BytesIO(bytes(within + 1)), within // 1032 + 1),
    ):
        with pytest.raises(DatasetError, match=f"to {within + 1:,} or more, and {within:,} is the most"):
            refuse()
    # So few bytes cannot unpack to more, and are not read.
    unpacking.require_bounded_stream(path, io.BytesIO(bytes(within + 1)), within // 1032)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, 93], ids=str)
@pytest.mark.parametrize(("size", "said", "within"), [
    (MOST, MOST, True), (MOST + 1, MOST + 1, False), (MOST + 1, 1, False), (10, MOST + 1, False)
])  # fmt: skip
def test_an_archive_is_bounded_by_what_it_says_and_by_what_is_there(
    tmp_path, bounded, method, size, said, within
):
    deflate = zlib.compressobj(wbits=-15)
    packed = {
        zipfile.ZIP_STORED: bytes(size),
        zipfile.ZIP_DEFLATED: deflate.compress(bytes(size)) + deflate.flush(),
        93: zstandard.compress(bytes(size // 2)) + zstandard.compress(bytes(size - size // 2)),
    }[method]
    _archive(tmp_path / "a.zip", "unread/x", packed, method, said=said)
    within |= method == zipfile.ZIP_STORED and said <= size  # the file itself is as long
    assert _bound_of(tmp_path / "a.zip") == within
    assert _bound_of(tmp_path / "a.zip", unread="unread/")
    assert _bound_of(tmp_path / "a.zip", unread="read/") == within


@pytest.mark.parametrize("nested", ["", "list", "struct"])
@pytest.mark.parametrize(("texts", "other", "within"), [(20, 0, True), (80, 0, False), (40, 1_000, False)])
def test_a_text_that_is_stored_once_for_many_rows_counts_in_each(
    tmp_path, bounded, nested, texts, other, within
):
    places = pyarrow.array([0] * texts, pyarrow.int32())
    column = pyarrow.DictionaryArray.from_arrays(places, ["x" * 1000])
    if nested == "list":
        column = pyarrow.ListArray.from_arrays(range(texts + 1), column)
    elif nested == "struct":
        column = pyarrow.StructArray.from_arrays([column], names=["text"])
    beside = pyarrow.nulls(texts, pyarrow.binary(other)) if other else pyarrow.nulls(texts)
    table = pyarrow.table({"beside": beside, "input": column})
    parquet.write_table(table, tmp_path / "x.parquet", write_statistics=False)
    assert _bound_of(tmp_path / "x.parquet") == within


def test_texts_that_differ_count_once_each(tmp_path, bounded):
    texts = pyarrow.table({"input": ["".join(map(chr, range(40, 40 + n))) * 4 for n in range(1, 81)] * 2})
    parquet.write_table(texts, tmp_path / "x.parquet", row_group_size=80, write_statistics=False)
    assert _bound_of(tmp_path / "x.parquet")


@pytest.mark.parametrize(("rows", "within"), [(4_000, True), (6_000, False)])
def test_empty_rows_count_as_numbers(tmp_path, bounded, rows, within):
    parquet.write_table(pyarrow.table({"input": pyarrow.nulls(rows)}), tmp_path / "x.parquet")
    assert _bound_of(tmp_path / "x.parquet") == within


_CALLED = '{"model": "a", "question": "q", "correct": 1'
_OPEN = b"\x93NUMPY\x01\x00" + (10).to_bytes(2, "little") + b"((((((((( "


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.jsonl", f'{{"model": "a", "question": "q", "category": {"9" * 400}}}', "is not a category"),
        ("a.jsonl", f'{{"model": "a", "question": "q", "score": {"9" * 400}}}', "is not a score"),
        ("a.jsonl", f'{_CALLED}, "trial": {"9" * 300}}}', "is not a whole number"),
        ("a.jsonl", f'{_CALLED}, "weights": "[0, {"9" * 400}]"}}', ""),
        ("a.jsonl", f'{_CALLED}, "weights": "{"[" * 5000}"}}', ""),
        ("a.npz", _OPEN, "cannot be read as a NumPy archive"),
        ("a.npz", None, "a pipe or a device"),
        ("a.csv.gz", None, "there is no such file"),
    ],
)
def test_numbers_without_end_headers_that_stay_open_and_devices_are_refused_in_words(
    tmp_path, name, content, words
):
    path = tmp_path / name
    if content is None:
        path.symlink_to("/dev/null")
    elif isinstance(content, bytes):
        _archive(path, "R.npy", content, zipfile.ZIP_STORED, said=len(content))
    else:
        path.write_text(content + "\n", encoding="utf-8")
    error = runs.command("analyze", path).exception
    if not words:
        assert error is None
        return
    assert isinstance(error, OutcomesError | DatasetError), error
    assert words in str(error)
    assert len(str(error)) < 1000


@pytest.mark.parametrize("name", ["a.csv.gz", "a.jsonl"])
def test_a_device_is_no_dataset(tmp_path, name):
    (tmp_path / name).symlink_to("/dev/null")
    with pytest.raises(DatasetError, match="a pipe or a device"):
        read_rows(tmp_path / name)
