"""Copies of a server that caches decide nothing, and are told in every view."""

import json

import pytest
from command_line import in_process, mimic_config, ran, report, write_config

from adaptive_eval import results_of
from adaptive_eval.interop.recorded_files import read_recorded
from adaptive_eval.trial import COPY_REASON

QUESTIONS = 16


@pytest.mark.slow
def test_a_cache_of_letters_decides_nothing(tmp_path):
    rows = [
        {"id": f"q{n}", "input": f"Which is right, number {n}?", "choices": list("wxyz"), "target": "A"}
        for n in range(QUESTIONS)
    ]
    (tmp_path / "letters.jsonl").write_text("\n".join(map(json.dumps, rows)))
    task = {"dataset": "letters.jsonl", "fields": {}, "prompt": "{input}", "scorer": "choice"}
    mimics = {"good": {"mean": 0.7, "cached": True}, "bad": {"mean": 0.55, "cached": True}}
    config = mimic_config(task, mimics, budget={"trials": 3000})
    config["mimic"]["tokens"] = {"completion_median": 2}
    ran(write_config(tmp_path, config), code=4)
    data = report(tmp_path / "run")
    assert [pair["verdict"] for pair in data["pairs"]] == ["open"]
    assert [model["trials"] for model in data["models"]] == [QUESTIONS] * 2
    copies = sum(model["copies"] for model in data["models"])
    for model in data["models"]:
        assert model["copies"] == model["missing"] >= 300
        assert model["missing_reasons"] == {COPY_REASON: model["missing"]}
    warned = [text for text in data["warnings"] if "asked again are copies" in text]
    assert len(warned) == 2
    in_process("run", "run", "--display", "none", cwd=tmp_path, code=4)  # which counts the stored ones too
    assert [text for text in report(tmp_path / "run")["warnings"] if "asked again are" in text] == warned
    # A copy is the same thing in every view.
    listed = in_process("samples", "run", "--missing", "--json", "--limit", "5000", cwd=tmp_path)
    exported = in_process("export", "run", "--format", "jsonl", cwd=tmp_path)
    for shown in (listed, exported):
        assert sum(COPY_REASON in line for line in shown.out.splitlines()) == copies
    assert f"({data['models'][0]['copies']:,} copies)" in str(results_of(tmp_path / "run"))
    assert read_recorded([tmp_path / "run"]).trials == 2 * QUESTIONS
    analysed = in_process("analyze", "run", "--write", "again", "--json", cwd=tmp_path)
    assert (json.loads(analysed.out)["trials"], json.loads(analysed.out)["missing"]) == (
        2 * QUESTIONS,
        copies,
    )
