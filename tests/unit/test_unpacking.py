"""Bounds on what files unpack to that say another size, or none: Parquet, folders, scorio's own readers."""

import bz2
import gzip
import lzma
import zipfile

import numpy as np
import pyarrow
import pytest
import zstandard
from pyarrow import ipc, parquet

import scorio._arguments as arguments
from adaptive_eval.errors import DatasetError
from adaptive_eval.tasks import unpacking
from adaptive_eval.tasks.sources import read_source
from scorio.categorical import load_records
from scorio.study import paper

MOST = 200_000
"""Bytes to which any file may unpack in these tests."""


@pytest.fixture(autouse=True)
def bounded(monkeypatch):
    monkeypatch.setattr(unpacking, "ALWAYS", MOST)
    monkeypatch.setattr(unpacking, "MOST_TIMES", 2)


def say(path, true, said):
    """Have the footer of a Parquet file say a smaller number in place of a true one."""
    data = path.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    length = len(coded(true))
    assert coded(true) in data[start:]
    path.write_bytes(data[:start] + data[start:].replace(coded(true), coded(said, length)))


def coded(number, length=1):
    """Return a number as Thrift's compact protocol writes it, in `length` bytes or more."""
    left, parts = 2 * number, []
    while left or len(parts) < length:
        parts.append(left % 128 | 128)
        left //= 128
    parts[-1] &= 127
    return bytes(parts)


LONG = "x" * (MOST // 2)
SHORT = "y" * (MOST // 4)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize(("text", "within"), [(LONG, False), (SHORT, True)])
def test_a_parquet_file_is_bounded_by_its_pages_whatever_its_footer_says(tmp_path, text, within, version):
    rows = pyarrow.table({"input": [f"{number}{text}" for number in range(3)], "target": ["1"] * 3})
    path = tmp_path / "rows.parquet"
    parquet.write_table(
        rows,
        path,
        compression="zstd",
        use_dictionary=False,
        write_statistics=False,
        data_page_version=version,
    )
    chunk = parquet.ParquetFile(path).metadata.row_group(0).column(0)
    say(path, chunk.total_uncompressed_size, 100)
    assert parquet.ParquetFile(path).metadata.row_group(0).column(0).total_uncompressed_size == 100
    if within:
        assert len(read_source(str(path)).rows) == 3
        return
    with pytest.raises(DatasetError, match="unpack to 3"):
        read_source(str(path))


@pytest.mark.parametrize("form", ["a dictionary", "shared beginnings"])
@pytest.mark.parametrize(("number", "within"), [(50, False), (3, True)])
def test_texts_that_are_stored_once_count_in_each_row(tmp_path, form, number, within):
    path = tmp_path / "rows.parquet"
    texts = pyarrow.array([SHORT] * number)
    options = {"use_dictionary": False, "column_encoding": {"input": "DELTA_BYTE_ARRAY"}}
    if form == "a dictionary":
        options = {}
    table = pyarrow.table({"input": texts})
    parquet.write_table(table, path, compression="zstd", write_statistics=False, **options)
    chunk = parquet.ParquetFile(path).metadata.row_group(0).column(0)
    say(path, chunk.total_uncompressed_size, 100)
    if within:
        assert len(read_source(str(path)).rows) == number
        return
    with pytest.raises(DatasetError, match="unpack to"):
        read_source(str(path))


def test_pages_without_a_header_are_not_read(tmp_path):
    path = tmp_path / "rows.parquet"
    parquet.write_table(pyarrow.table({"input": ["a"]}), path, compression="zstd")
    data = path.read_bytes()
    for begin in (b"\x1b", b"\xff" * 40, b"\x15\x03\x15\x03\x15\x03\0", b"\x1c" * 30):
        path.write_bytes(data[:4] + begin + data[4 + len(begin) :])
        with pytest.raises(DatasetError, match="not readable as Parquet: column 'input'"):
            read_source(str(path))


BOMB = b'{"input": "' + b"x" * (MOST + 1) + b'", "target": "1"}\n'
FINE = b'{"input": "a", "target": "1"}\n'


def zipped(path, rows):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("test.jsonl", rows)


def packed(pack):
    return lambda path, rows: path.write_bytes(pack(rows))


def arrow_of(write):
    def written(path, rows):
        table = pyarrow.table({"input": [rows.decode()], "target": ["1"]})
        compression = "zstd" if len(rows) > MOST else None
        with write(str(path), table.schema, options=ipc.IpcWriteOptions(compression=compression)) as file:
            file.write_table(table)

    return written


def in_parquet(path, rows):
    table = pyarrow.table({"input": [rows.decode()], "target": ["1"]})
    parquet.write_table(table, path, compression="zstd", use_dictionary=False, write_statistics=False)


KINDS = {
    "test.jsonl.gz": packed(gzip.compress),
    "test.jsonl": packed(gzip.compress),  # what it is, is told by its first bytes
    "test.json.bz2": packed(bz2.compress),
    "test.jsonl.xz": packed(lzma.compress),
    "test.jsonl.zst": packed(zstandard.compress),
    "test.zip": zipped,
    "test.parquet": in_parquet,
    "stream-test.arrow": arrow_of(ipc.new_stream),
    "file-test.arrow": arrow_of(ipc.new_file),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", KINDS)
def test_files_of_a_folder_are_bounded_as_single_ones_are(tmp_path, monkeypatch, name):
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    for folder, rows in (("fine", FINE), ("bomb", BOMB)):
        (tmp_path / folder).mkdir()
        KINDS[name](tmp_path / folder / name, rows)
    assert len(read_source("hf:./fine", tmp_path).rows) == 1
    with pytest.raises(DatasetError, match="unpack to"):
        read_source("hf:./bomb", tmp_path)


def test_a_saved_dataset_has_no_compressed_rows(tmp_path):
    datasets = pytest.importorskip("datasets")
    rows = [{"input": "a", "target": "1"}]
    datasets.Dataset.from_list(rows).save_to_disk(tmp_path / "saved")
    assert len(read_source("hf:./saved", tmp_path).rows) == 1
    (file,) = (tmp_path / "saved").glob("*.arrow")
    words = pyarrow.array(["a"]).dictionary_encode()
    table = pyarrow.table({"input": words, "target": ["1"]})
    with ipc.new_stream(str(file), table.schema, options=ipc.IpcWriteOptions(compression="zstd")) as stream:
        stream.write_table(table)
    with pytest.raises(DatasetError, match="its rows are compressed"):
        read_source("hf:./saved", tmp_path)


def test_scorio_reads_no_more_than_a_file_may_unpack_to(tmp_path, monkeypatch):
    line = b'{"model": "m", "data_id": 1, "seed": 1}\n'
    (tmp_path / "run.jsonl.gz").write_bytes(gzip.compress(line * 2))
    np.savez_compressed(tmp_path / "R.npz", R=np.ones((2, 40, 2), dtype=np.uint8))
    assert len(load_records(tmp_path)["model"]) == 2
    assert paper.read_outcomes(tmp_path / "R.npz")["R"].shape == (2, 40, 2)
    for module in ("scorio.categorical.records", "scorio.study.paper"):
        monkeypatch.setattr(f"{module}.most_unpacked", lambda _: 79)
    with pytest.raises(ValueError, match="unpacks to more than 79"):
        load_records(tmp_path)
    with pytest.raises(ValueError, match=r"unpacks to .* and 79 is the most"):
        paper.read_outcomes(tmp_path / "R.npz")
    assert arguments.most_unpacked(2**20) == 2**30
