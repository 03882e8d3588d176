"""The main job: ``adaptive-eval run configs/quickstart.yaml``, and what it leaves behind."""

import json
import re
from pathlib import Path

import pytest
from command_line import (
    ARITHMETIC,
    QUICKSTART,
    Finished,
    adaptive_eval,
    in_process,
    quickstart,
    ranks,
    report,
    trials,
    write_config,
)

HURRIED = ("-o", "mimic.latency.median=0", "-o", "stopping.equivalence=0.15")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("quickstart")


@pytest.fixture(scope="module")
def finished(home: Path) -> Finished:
    """The quickstart, but that its mimics do not take their time and its margin is wide."""
    return adaptive_eval("run", QUICKSTART, *HURRIED, cwd=home)


@pytest.fixture(scope="module")
def run(home: Path, finished: Finished) -> Path:
    """The directory that a person finds without having named one."""
    assert finished.code == 0, finished
    return home / "runs" / "quickstart"


def test_it_resolves_the_ranking_and_shows_all_three_verdicts(run, finished):
    assert finished.code == 0
    assert finished.err == ""
    assert "sage is ahead of guesser" in finished.out
    assert re.search(r"(scholar and student|student and scholar) are tied within ±0.15", finished.out)
    assert re.search(r"guesser is resolved after \d+ trials", finished.out)
    stamped = re.findall(r"^[\dT:-]{19}Z (\w+)", finished.out, re.MULTILINE)
    assert (stamped[0], stamped[-1], "\x1b" in finished.out) == ("start", "end", False)
    assert stamped.count("decision") == 10 + 5 + 1  # pairs, models retired, the stop
    found = report(run)
    assert found["run"]["stop"]["reason"] == "resolved"
    assert (found["counts"]["separated"], found["counts"]["tied"], found["counts"]["open"]) == (9, 1, 0)
    for model in found["models"]:
        stored = [one for one in trials(run) if one.request.key.model == model["model"]]
        assert model["prompt_tokens"] == sum(one.usage.prompt_tokens for one in stored)
        assert model["completion_tokens"] == sum(one.usage.completion_tokens for one in stored)
        assert model["categories"][1] == sum(one.score.category for one in stored)
    assert ranks(run) == {
        "sage": (1, 1),
        "scholar": (2, 3),
        "student": (2, 3),
        "novice": (4, 4),
        "guesser": (5, 5),
    }


def test_a_finished_run_is_not_run_again(home, run):
    before = trials(run)
    again = in_process("run", QUICKSTART, *HURRIED, cwd=home, code=0)
    assert "complete already" in again.out
    assert "Report  runs/quickstart/report.html" in again.out
    assert trials(run) == before
    assert in_process("run", "runs/quickstart", cwd=home).code == 0
    assert trials(run) == before


def test_wrong_answers_are_shown_with_the_expected_one_while_the_dataset_is_the_same(tmp_path):
    data = quickstart()
    dataset = tmp_path / "questions.jsonl"
    dataset.write_text(ARITHMETIC.read_text("utf-8"), "utf-8")
    data["tasks"][0]["dataset"] = str(dataset)
    command = ("run", write_config(tmp_path, data), "-o", "budget.trials=60", "--display", "none")
    assert in_process(*command, cwd=tmp_path).code == 3
    run = tmp_path / "runs" / "quickstart"
    wrong = next(one for one in trials(run) if one.score and one.score.category == 0)
    rows = map(json.loads, dataset.read_text("utf-8").splitlines())
    expected = next(row["answer"] for row in rows if row["id"] == wrong.request.question)
    written = (run / "report.html").read_text("utf-8")
    assert f"Expected: {expected}" in written
    assert in_process("report", run, cwd=tmp_path).code == 0
    assert (run / "report.html").read_text("utf-8") == written
    changed = dataset.read_text("utf-8").replace('"answer": ', '"answer": 1')
    dataset.write_text(changed, "utf-8")
    assert in_process("report", run, cwd=tmp_path).code == 0
    assert "Expected" not in (run / "report.html").read_text("utf-8")


@pytest.mark.slow
def test_new_keeps_the_earlier_run_and_does_not_rename_the_directory_one_is_in(tmp_path):
    inside = tmp_path / "run" / "inside"
    config = write_config(tmp_path, quickstart())
    brief = ("-o", "budget.trials=5", "--display", "none")
    assert in_process("run", config, "--out", "run", *brief, cwd=tmp_path).code == 3
    inside.mkdir()
    kept = trials(tmp_path / "run")
    for place, out in ((tmp_path / "run", "."), (inside, "..")):
        done = in_process("run", config, "--out", out, "--new", *brief, cwd=place, code=2)
        assert done.err.startswith(
            f"error: --new renames the directory of the previous run, {tmp_path / 'run'}, "
        )
    done = in_process("run", config, "--out", "run/inside/..", "--new", *brief, cwd=tmp_path, code=3)
    assert "run-1" in done.out
    assert trials(tmp_path / "run-1") == kept
    assert len(trials(tmp_path / "run")) == 5


@pytest.mark.slow
def test_the_commands_that_the_quickstart_prints_next_work(tmp_path):
    done = adaptive_eval("quickstart", "--display", "none", *HURRIED, cwd=tmp_path, code=0)
    offered = [line.split("  ")[1].split() for line in done.out.partition("\nNext\n")[2].splitlines()]
    assert [one[1] for one in offered] == ["monitor", "samples", "init"]
    program, *samples = offered[1]
    assert Path(program).name == "adaptive-eval"
    assert "arithmetic/" in in_process(*samples, cwd=tmp_path).out
    for _, command, *_arguments in (offered[0], offered[2]):
        assert in_process(command, "--help", cwd=tmp_path).code == 0
