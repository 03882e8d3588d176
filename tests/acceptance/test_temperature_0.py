"""Models that the user vouches for at temperature 0 are asked each question once."""

import json
from typing import Any

import pytest
from answering_server import answering, number_in, said, two_models
from command_line import in_process, ran, report, trials, write_config


def test_a_pair_is_exact_after_one_pass(tmp_path):
    def answer(model: str, prompt: str, _: int) -> dict[str, Any]:
        right = int(number_in(prompt)) * 37 % 100 < {"good": 73, "bad": 70}[model]
        return {"message": said(number_in(prompt) if right else "no")}

    with answering(answer) as url:
        data = two_models(tmp_path, url, questions=100, budget={"trials": 4000})
        for model in data["models"]:
            model["sampling"]["temperature"] = 0
            model["deterministic"] = True
        path = write_config(tmp_path, data)
        valid = in_process("validate", path, cwd=tmp_path)
        assert "good, bad: `deterministic: true` vouches for the same answer every time" in valid.said
        unsure = ("-o", "models[good].deterministic=false")
        valid = in_process("validate", path, *unsure, cwd=tmp_path)
        assert "good: answers may flip at temperature 0" in valid.said
        done = ran(path)
    assert len(trials(tmp_path / "run")) <= 210
    found = report(tmp_path / "run")
    (pair,) = found["pairs"]
    assert (pair["verdict"], pair["exact"]) == ("better", True)
    assert pair["difference"] == pytest.approx(0.03)
    assert pair["population_low"] < pair["difference"] < pair["population_high"]
    written = (tmp_path / "run" / "report.md").read_text("utf-8")
    page = (tmp_path / "run" / "report.html").read_text("utf-8")
    notes = json.dumps(found, ensure_ascii=False)
    for words in (" ".join(done.said.split()), written, page, notes):
        assert "exact on these questions (the verdict rests on deterministic: true); on questions" in words
    (called,) = (one["text"] for one in found["decisions"] if one["kind"] == "pair")
    assert "trial" not in called
    in_process("run", "run", "--display", "none", cwd=tmp_path, code=0)
    assert len(trials(tmp_path / "run")) <= 210
