"""A run beside an earlier one: compared with its models, started from its trials, whatever becomes of it."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from command_line import ARITHMETIC_TASK, in_process, pair_decisions, report, trials, write_config


def config(name: str, means: dict[str, float], **parts: Any) -> dict[str, Any]:
    """Return a config of mimics on the quickstart's questions."""
    return {
        "name": name,
        "seed": 5,
        "mimic": {"seed": 7, "models": {model: {"mean": mean} for model, mean in means.items()}},
        "models": [
            {"name": model, "endpoints": ["mimic"], "concurrency": 16, "sampling": {"max_tokens": 400}}
            for model in means
        ],
        "tasks": [{**ARITHMETIC_TASK}],
        **parts,
    }


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the finished run ``runs/first`` of two models, four trials a question."""
    folder = tmp_path_factory.mktemp("earlier")
    means = {"sage": 0.95, "novice": 0.3}
    first = config("first", means, goal="budget", stopping={"max_passes": 4}, budget={"trials": 2000})
    in_process("run", write_config(folder, first), cwd=folder, code=3)
    return folder


@pytest.fixture
def folder(earlier: Path, tmp_path: Path) -> Path:
    shutil.copytree(earlier / "runs", tmp_path / "runs")
    return tmp_path


REFERENCES = [{"run": "runs/first", "models": ["sage", "novice"]}]


def test_a_new_model_is_ranked_among_finished_ones_that_are_asked_nothing(folder):
    second = config("second", {"student": 0.65}, references=REFERENCES, budget={"trials": 2000})
    in_process("run", write_config(folder, second), cwd=folder, code=0)
    assert {record.request.key.model for record in trials(folder / "runs/second")} == {"student"}
    decided = {(models, verdict) for models, verdict, *_ in pair_decisions(folder / "runs/second")}
    assert decided == {(("student", "sage"), "worse"), (("student", "novice"), "better")}
    lines = {line["model"]: line for line in report(folder / "runs/second")["models"]}
    assert [lines[name]["state"] for name in ("sage", "student", "novice")] == [
        "reference",
        "retired",
        "reference",
    ]
    assert lines["sage"]["note"] == "from runs/first"
    assert (lines["sage"]["issued"], lines["sage"]["trials"]) == (0, 160)
    assert lines["student"]["rank_low"] == lines["student"]["rank_high"] == 2
