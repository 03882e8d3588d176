"""A model that is swapped during a run is noticed: what has changed, and when."""

import random
from pathlib import Path
from typing import Any

import pytest
from answering_server import answering, reply, two_models
from command_line import in_process, report, write_config


def warned(folder: Path) -> list[str]:
    """Return the warnings of a run about models that change."""
    return [text for text in report(folder / "run")["warnings"] if "on the same questions" in text]


def run(folder: Path, change: int, resume: bool = False) -> str:
    """Run good and bad, of which bad falls from 0.9 to 0.3 at its request number `change`."""
    rng = random.Random(7)

    def answer(model: str, prompt: str, number: int) -> dict[str, Any]:
        share = 0.3 if model == "bad" and number > change else 0.9
        return {"message": reply(prompt, number, right=rng.random() < share)}

    with answering(answer) as url:
        budget = {"trials": 500 if resume else 1000}
        data = two_models(folder, url, questions=50, goal="budget", budget=budget)
        config = write_config(folder, data)
        done = in_process("run", config, "--out", "run", "--display", "none", cwd=folder)
        if resume:
            more = ("-o", "budget.trials=1000")
            done = in_process("run", "run", *more, "--display", "none", cwd=folder)
    assert done.code == 3, done.said
    return done.said


@pytest.mark.slow
def test_a_swapped_model_is_told_of_with_the_moment(tmp_path):
    said = run(tmp_path, 250)
    (words,) = warned(tmp_path)
    assert words.startswith("bad: ")
    assert "bad: its outcomes on the same questions changed" in " ".join(said.split())
    trials = int(words.partition("after about ")[2].partition(" ")[0])
    assert 200 <= trials <= 300
    (change,) = report(tmp_path / "run")["changes"]
    assert (change["model"], change["server"], change["trials"]) == ("bad", "", trials)
    assert change["before"] > 0.8 > 0.5 > change["after"]
    assert "mean 0.9" in words or "mean 0.8" in words
    assert "at most 0.1%" in words


@pytest.mark.slow
def test_a_swap_between_two_sessions_is_noticed(tmp_path):
    run(tmp_path, 250, resume=True)
    assert [words.partition(":")[0] for words in warned(tmp_path)] == ["bad"]
