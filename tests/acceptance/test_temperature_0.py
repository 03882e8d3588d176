"""Models at temperature 0: measured by repeats, or asked each question once if the user vouches for them."""

import json
from pathlib import Path
from typing import Any

import pytest
from answering_server import Answer, answering, number_in, said, two_models
from command_line import in_process, ran, report, trials, write_config


def config(folder: Path, url: str, *, vouched: bool = True, **more: Any) -> Path:
    data = two_models(folder, url, questions=100, budget={"trials": 4000}, **more)
    for model in data["models"]:
        model["sampling"]["temperature"] = 0
        model["deterministic"] = vouched
    return write_config(folder, data)


def right_in(**questions: int) -> Answer:
    """Answer always right in so many of 100 questions by each model."""

    def answer(model: str, prompt: str, _: int) -> dict[str, Any]:
        number = number_in(prompt)
        return {"message": said(number if int(number) * 37 % 100 < questions[model] else "no")}

    return answer


def test_a_pair_is_exact_after_one_pass(tmp_path):
    with answering(right_in(good=73, bad=70)) as url:
        path = config(tmp_path, url)
        valid = in_process("validate", path, cwd=tmp_path)
        assert "good, bad: `deterministic: true` vouches for the same answer every time" in valid.said
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


def test_repeats_bound_the_flips_of_a_model_that_nobody_vouches_for(tmp_path):
    with answering(right_in(good=75, bad=65)) as url:
        path = config(tmp_path, url, vouched=False)
        valid = in_process("validate", path, cwd=tmp_path)
        assert "answers may flip at temperature 0" in valid.said
        ran(path)
    found = report(tmp_path / "run")
    (pair,) = found["pairs"]
    assert (pair["verdict"], pair["exact"]) == ("better", False)
    assert max(model["trials"] for model in found["models"]) <= 200
    assert all(model["missing"] == 0 for model in found["models"])
