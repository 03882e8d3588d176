"""How a run chooses its questions, kept from session to session of the run."""

import json

import pytest
from command_line import command, finished, mimic_config

from adaptive_eval.store.reader import RunReader
from adaptive_eval.views.verdicts import questions_words


def config(questions, trials):
    same = {"sage": {"mean": 0.5}, "novice": {"mean": 0.5}}
    return mimic_config(mimics=same, budget={"trials": trials}, allocation={"questions": questions})


def identity(run):
    with RunReader(run) as reader:
        return json.loads(reader.meta()["identity"])


@pytest.fixture
def begun(tmp_path, request):
    return finished(tmp_path, config(request.param, 120), code=3)


@pytest.mark.slow
@pytest.mark.parametrize("begun", ["auto"], indirect=True)
def test_own_rounds_are_kept(begun):
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
@pytest.mark.parametrize("begun", ["schedule"], indirect=True)
def test_a_run_along_the_schedule_stays_there(begun):
    assert "rounds" not in identity(begun)
    assert questions_words([], 1) in (begun / "report.md").read_text("utf-8")
    refused = command("run", begun, "-o", "allocation.questions=rounds", "--display", "none", code=2)
    assert "rounds is new" in refused.err
    on = ("-o", "budget.trials=160", "-o", "allocation.questions=auto")
    assert command("run", begun, *on, "--display", "none").code in (0, 3)
    assert "rounds" not in identity(begun)
