"""A model that is swapped during a run is noticed: what has changed, and when."""

import random
from typing import Any

import pytest
from answering_server import answering, reply, two_models
from command_line import in_process, ran, report, write_config


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
        done = ran(write_config(tmp_path, data), code=3)
        if sessions == 2:
            more = ("-o", "budget.trials=1000", "--display", "none")
            done = in_process("run", "run", *more, cwd=tmp_path, code=3)
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
