"""How a run chooses its questions, kept from session to session of the run."""

import json

import pytest
from command_line import command, finished, mimic_config

from adaptive_eval.store.reader import RunReader
from adaptive_eval.views.verdicts import questions_words


def config(questions):
    same = {"sage": {"mean": 0.5}, "novice": {"mean": 0.5}}
    return mimic_config(mimics=same, budget={"trials": 120}, allocation={"questions": questions})


def identity(run):
    with RunReader(run) as reader:
        return json.loads(reader.meta()["identity"])


@pytest.mark.slow
def test_own_rounds_are_kept(tmp_path):
    begun = finished(tmp_path, config("auto"), code=3)
    assert identity(begun)["rounds"] == ["arithmetic"]
    assert questions_words(["arithmetic"], 1) in (begun / "report.md").read_text("utf-8")
    command("run", begun, "-o", "budget.trials=160", "-o", "spend=time", "--display", "none", code=(0, 3))
    assert identity(begun)["rounds"] == ["arithmetic"]
    refused = command(
        "run", begun, "-o", "stopping.rule=zscore", "-o", "spend=trials", "--display", "none", code=2
    )
    assert "run/mismatch" in refused.err
    assert "rounds is gone: ['arithmetic'] (goal, stopping, allocation and spend decide" in refused.err


@pytest.mark.slow
def test_a_run_along_the_schedule_stays_there(tmp_path):
    begun = finished(tmp_path, config("schedule"), code=3)
    assert "rounds" not in identity(begun)
    assert questions_words([], 1) in (begun / "report.md").read_text("utf-8")
    refused = command("run", begun, "-o", "allocation.questions=rounds", "--display", "none", code=2)
    assert "rounds is new" in refused.err
    on = ("-o", "budget.trials=160", "-o", "allocation.questions=auto")
    assert command("run", begun, *on, "--display", "none").code in (0, 3)
    assert "rounds" not in identity(begun)
