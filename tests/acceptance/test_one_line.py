"""A run without a config: one line writes the config that it runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import ARITHMETIC, Finished, in_process, mimic_spec, report

from adaptive_eval.mimic.process import MimicProcess


def refused(done: Finished, words: str) -> None:
    assert (done.code, words in done.err) == (2, True), done


@pytest.mark.slow
def test_a_line_writes_the_config_that_it_runs_and_continues_it(tmp_path: Path) -> None:
    (tmp_path / "sums.jsonl").write_text(ARITHMETIC.read_text("utf-8"), "utf-8")
    quick = ("-o", "budget.trials=40", "--display", "none")
    with MimicProcess(mimic_spec()) as mimic:
        models = [f"{mimic.base_url}#{name}" for name in ("sage", "guesser")]
        line = ("run", "--model", models[0], "--model", models[1], "--task", "sums.jsonl", "--margin", "0.1")
        done = in_process(*line, *quick, cwd=tmp_path)
        assert done.code in (0, 3), done
        assert "sums.yaml" in done.err
        written = report(tmp_path / "runs" / "sums")
        assert {one["model"] for one in written["models"]} == {"sage", "guesser"}
        assert in_process("run", "sums.yaml", *quick, cwd=tmp_path).code in (0, 3)
        assert in_process(*line, *quick, cwd=tmp_path).code in (0, 3), "the same line again"
        other = in_process(*line[:-1], "0.05", *quick, cwd=tmp_path)
        refused(other, "sums.yaml")
        (tmp_path / "sums.yaml").unlink()
        one = in_process("run", *line[1:3], *line[5:], *quick, "--out", "one", cwd=tmp_path)
        assert one.code in (0, 3), one
        assert "width=0.2" in (tmp_path / "sums.yaml").read_text("utf-8")


def test_what_a_line_lacks_is_said(tmp_path: Path) -> None:
    refused(in_process("run", cwd=tmp_path), "--model")
    refused(in_process("run", "--model", "sage", "--task", "gsm8k", cwd=tmp_path), "URL#NAME")
    refused(in_process("run", "a.yaml", "--task", "gsm8k", cwd=tmp_path), "a.yaml")
    assert not list(tmp_path.iterdir())
