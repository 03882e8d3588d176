"""Answers that repeat: copies decide nothing, a swapped model is told of, a vouched model is asked once."""

import json
import random
from typing import Any

import pytest
from answering_server import answering, number_in, reply, said, two_models
from command_line import in_process, mimic_config, ran, report, trials, write_config

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


@pytest.mark.slow
@pytest.mark.parametrize("sessions", [1, 2])
def test_a_swapped_model_is_told_of_with_the_moment(tmp_path, sessions):
    """The model bad falls from 0.9 to 0.3 at its 251st request, within a session or after a first one."""
    rng = random.Random(7)

    def answer(model: str, prompt: str, number: int) -> dict[str, Any]:
        share = 0.3 if model == "bad" and number > 250 else 0.9
        return {"message": reply(prompt, number, right=rng.random() < share)}

    with answering(answer) as url:
        data = two_models(tmp_path, url, questions=50, goal="budget", budget={"trials": 1000 // sessions})
        done = ran(write_config(tmp_path, data), code=0)
        if sessions == 2:
            more = ("-o", "budget.trials=1000", "--display", "none")
            done = in_process("run", "run", *more, cwd=tmp_path, code=0)
    found = report(tmp_path / "run")
    (words,) = (text for text in found["warnings"] if "on the same questions" in text)
    assert words.startswith("bad: ")
    if sessions == 1:
        assert "bad: its outcomes on the same questions changed" in " ".join(done.said.split())
        (change,) = found["changes"]
        assert (change["model"], change["server"]) == ("bad", "")
        assert 200 <= change["trials"] <= 300
        assert f"after about {change['trials']} " in words
        assert change["before"] > 0.8 > 0.5 > change["after"]
        assert "at most 0.1%" in words


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


def wordy(model: str, prompt: str, rng: random.Random) -> str:
    """Answer right in 60 %: as same in one text of 1,000 bytes for each question, as free in other words."""
    own = random.Random(prompt if model == "same" else rng.random())
    right = rng.random() < 0.6
    if not right:
        own = random.Random(rng.random())
    words = " ".join(own.choices(["oak", "elm", "ash", "yew", "fir", "bay"], k=250))
    return f"{words}\nThe answer is {number_in(prompt) if right else -1}."


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_model_that_words_its_right_answers_alike_is_not_behind_for_it(tmp_path, seed):
    """Three pairs of equal models: today's rule called each of them in every run, by text."""
    rng = random.Random(seed)

    def answer(model: str, prompt: str, _: int) -> dict[str, Any]:
        return {"message": said(wordy({"good": "same", "bad": "free"}[model], prompt, rng))}

    with answering(answer) as url:
        data = two_models(tmp_path, url, questions=40, budget={"trials": 900}, stopping={"max_passes": 11})
        for model in data["models"]:
            model["sampling"] |= {"temperature": 0.7}
        done = ran(write_config(tmp_path, data), code=(0, 3))
    found = report(tmp_path / "run")
    assert [pair["verdict"] for pair in found["pairs"]] == ["open"], done.said
    (warned,) = (text for text in found["warnings"] if "too long for a coincidence" in text)
    assert "on: {copies: independent}" in warned
    same = next(model for model in found["models"] if model["model"] == "good")
    assert (same["missing"], same["copies"]) == (0, 0)
    assert abs(same["score"] - 0.6) < 0.12
