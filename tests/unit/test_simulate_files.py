"""Recorded outcomes from files: every format, and one clear message for what is none."""

import json

import numpy as np
import pytest

from adaptive_eval.errors import UsageError
from adaptive_eval.interop.recorded_files import read_recorded

ROWS = [
    {"model": "a", "question": "q1", "category": 1},
    {"model": "a", "question": "q1", "category": 0},
    {"model": "a", "question": "q2", "category": 1},
    {"model": "b", "question": "q1", "category": 0},
]


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def jsonl(path, rows):
    return write(path, "".join(json.dumps(row) + "\n" for row in rows))


class TestFormats:
    def test_json_lines(self, tmp_path):
        recorded = read_recorded([jsonl(tmp_path / "x.jsonl", ROWS)])
        assert recorded.models == ("a", "b")
        assert recorded.questions == (("recorded", "q1"), ("recorded", "q2"))
        assert recorded.categories.tolist() == [[[1, 0], [1, -1]], [[0, -1], [-1, -1]]]

    def test_csv_with_tasks_trial_numbers_and_words(self, tmp_path):
        text = "model,task,question,trial,correct\na,t,q,5,true\na,t,q,2,False\na,s,q,0,1\n"
        recorded = read_recorded([write(tmp_path / "x.csv", text)])
        assert recorded.questions == (("t", "q"), ("s", "q"))
        assert recorded.categories.tolist() == [[[0, 1], [1, -1]]]

    def test_npz_moves_missing_trials_to_the_end(self, tmp_path):
        outcomes = np.array([[[-1, 1, 0]], [[1, -1, -1]]], dtype=np.int8)
        np.savez(tmp_path / "x.npz", R=outcomes, models=["a", "b"], questions=["q"])
        recorded = read_recorded([tmp_path / "x.npz"])
        assert recorded.categories.tolist() == [[[1, 0, -1]], [[1, -1, -1]]]
        assert recorded.models == ("a", "b")

    def test_several_files_become_one_table(self, tmp_path):
        np.savez(tmp_path / "x.npz", R=np.ones((1, 2, 1), dtype=int), models=["c"], questions=["q1", "q2"])
        recorded = read_recorded([jsonl(tmp_path / "x.jsonl", ROWS), tmp_path / "x.npz"])
        assert recorded.models == ("a", "b", "c")
        assert recorded.counts.tolist() == [[2, 1], [1, 0], [1, 1]]

    def test_parquet_says_what_it_needs(self, tmp_path):
        pytest.importorskip("pyarrow", reason="this test is for where Parquet can be read")
        import pyarrow
        from pyarrow import parquet

        parquet.write_table(pyarrow.Table.from_pylist(ROWS), tmp_path / "x.parquet")
        assert read_recorded([tmp_path / "x.parquet"]).counts.sum() == 4


class TestRefusals:
    def test_all_bad_rows_are_reported_together_but_not_without_end(self, tmp_path):
        bad = [{"model": "a", "question": "q", "category": f"x{number}"} for number in range(30)]
        with pytest.raises(UsageError) as caught:
            read_recorded([jsonl(tmp_path / "x.jsonl", bad)])
        assert str(caught.value).count("\n") == 11
        assert "… and 20 more" in str(caught.value)

    def test_what_is_wrong_with_many_rows_alike_is_said_once(self, tmp_path):
        alike = [{"model": "a", "question": "q", "category": "x"}] * 30
        other = {"model": "a", "category": 1}
        path = jsonl(tmp_path / "x.jsonl", [*alike, other])
        with pytest.raises(UsageError) as caught:
            read_recorded([path])
        _, first, second = str(caught.value).split("\n")
        assert first.startswith("  line 1: category: 'x' is not a category")
        assert first.endswith("; and 29 more like it")
        assert second.startswith("  line 31: there is no question")
        assert "more" not in second
