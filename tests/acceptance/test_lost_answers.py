"""A server that loses answers for being wrong: the run calls no verdict that they could turn."""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

from answering_server import answering, reply, two_models
from command_line import Finished, in_process, report, write_config


def run(folder: Path, loses: float, bad: float) -> Finished:
    """Run good, right in 70 %, against bad, of whose wrong answers the server loses a share."""
    asked: Counter[tuple[str, str]] = Counter()

    def answer(model: str, prompt: str, number: int) -> dict[str, Any]:
        asked[model, prompt] += 1
        rng = random.Random(f"{model} {prompt} {asked[model, prompt]}")  # whatever the order of arrival
        right = rng.random() < {"good": 0.7, "bad": bad}[model]
        if model == "bad" and not right and rng.random() < loses:
            return {"status": 500}
        return {"message": reply(prompt, number, right=right)}

    with answering(answer) as url:
        data = two_models(folder, url, questions=60, budget={"trials": 1500})
        data["retry"] = {"attempts": 1, "requeue": 0}
        config = write_config(folder, data)
        return in_process("run", config, "--out", "run", "--display", "none", cwd=folder)


def test_losses_that_could_turn_the_only_verdict_end_the_run_without_it(tmp_path: Path) -> None:
    done = run(tmp_path, loses=0.95, bad=0.55)  # of the answers that arrive, 96 % are right
    assert done.code == 6, done.said
    data = report(tmp_path / "run")
    (pair,) = data["pairs"]
    assert pair["verdict"] == "open"
    stop = data["run"]["stop"]
    assert (stop["reason"], stop["evidence"]["lost"].keys()) == ("lost", {"bad"})
    advice = re.search(r"on: \{(\w+): (\w+)\}", stop["text"])
    assert advice, stop["text"]
    setting = f"on.{advice[1]}={advice[2]}"
    assert in_process("run", "run", "-o", setting, "-o", "budget.trials=60", cwd=tmp_path).code != 2
    lossy = next(model for model in data["models"] if model["model"] == "bad")
    assert lossy["missing"] == sum(lossy["missing_reasons"].values()) > 10
    assert lossy["score_if_missing_wrong"] < 0.7 < lossy["score"]


def test_few_losses_turn_no_verdict(tmp_path: Path) -> None:
    assert run(tmp_path, loses=0.05, bad=0.2).code == 0
    (pair,) = report(tmp_path / "run")["pairs"]
    assert (pair["first"], pair["verdict"]) == ("good", "better")
