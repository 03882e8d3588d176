"""``export --push`` against a stand-in of the Hugging Face Hub's interface."""

import json
from io import BytesIO

import pytest
from answering_server import hub, run_two
from command_line import in_process
from ruamel.yaml import YAML


def test_trials_report_and_card_are_pushed(tmp_path, monkeypatch):
    pytest.importorskip("huggingface_hub")
    parquet = pytest.importorskip("pyarrow.parquet")
    run_two(tmp_path, goal="budget", budget={"trials": 6})
    monkeypatch.setenv("HF_TOKEN", "hf_of_this_test")
    with hub() as (address, created, files):
        monkeypatch.setenv("HF_ENDPOINT", address)
        done = in_process("export", "run", "--push", "me/results", "--no-texts", cwd=tmp_path)
    assert done.code == 0, done.said
    assert done.out.strip() == f"{address}/datasets/me/results"
    assert [created[0][key] for key in ("name", "organization", "type")] == ["results", "me", "dataset"]
    assert created[0].get("private") is True or created[0].get("visibility") == "private"
    table = parquet.read_table(BytesIO(files["trials.parquet"]))
    assert table.num_rows == 6
    assert "text" not in table.column_names
    assert json.loads(files["report.json"])["run"]
    _, front, report = files["README.md"].decode().split("---\n", 2)
    assert YAML(typ="safe", pure=True).load(front)["configs"][0]["data_files"] == "trials.parquet"
    assert "good" in report
    with hub(refuse=True) as (address, _, _):
        monkeypatch.setenv("HF_ENDPOINT", address)
        refused = in_process("export", "run", "--push", "me/results", cwd=tmp_path)
    for name in ("results", "me/", "/results", "me/my/results"):
        asked = in_process("export", "run", "--push", name, cwd=tmp_path)
        assert (asked.code, repr(name) in asked.err) == (2, True), "nothing is asked of the Hub"
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    away = in_process("export", "run", "--push", "me/results", cwd=tmp_path)
    assert (refused.code, away.code) == (2, 2)
    assert "--push me/results:" in away.err
    assert "does HF_TOKEN hold a token that may write?" in refused.err
    assert "hf_of_this_test" not in refused.said
