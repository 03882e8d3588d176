"""A run that goes on under other settings: verdicts they do not lead to are withdrawn by name."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from command_line import in_process, mimic_config, report, write_config


def config(**stopping: Any) -> dict[str, Any]:
    """Return a config of three mimics, two of them near each other, with a budget that binds."""
    mimics = {"a": {"mean": 0.7}, "b": {"mean": 0.62}, "c": {"mean": 0.3}}
    return mimic_config(mimics=mimics, name="changed", stopping=stopping, budget={"trials": 300})


def decisions(folder: Path, kind: str) -> list[dict[str, Any]]:
    return [one for one in report(folder / "runs/changed")["decisions"] if one["kind"] == kind]


@pytest.mark.slow
def test_a_stricter_rule_withdraws_what_it_would_not_have_decided(tmp_path):
    path = write_config(tmp_path, config(rule="zscore", confidence=0.9))
    assert in_process("run", path, cwd=tmp_path).code in (0, 3)
    before = decisions(tmp_path, "pair")
    assert before
    stricter = ("-o", "stopping.rule=anytime", "-o", "stopping.confidence=0.95")
    again = in_process("run", "runs/changed", *stricter, cwd=tmp_path, code=(0, 3))
    written = report(tmp_path / "runs/changed")
    changes = json.loads(written["meta"]["changes"])
    assert [(one["setting"], one["before"], one["now"]) for one in changes] == [
        ("stopping.rule", "zscore", "anytime"),
        ("stopping.confidence", 0.9, 0.95),
    ]
    assert all(one["trials"] > 0 for one in changes)
    said = "stopping.confidence was changed from 0.9 to 0.95"
    assert said in " ".join(again.out.split())
    assert any(said in text for text in written["warnings"])
    assert said in (tmp_path / "runs/changed/report.md").read_text(encoding="utf-8")
    withdrawn = decisions(tmp_path, "withdrawn")
    assert {tuple(one["models"]) for one in before} <= {
        tuple(one["models"]) for one in withdrawn if one["verdict"] != "retired"
    }
    assert all("withdrawn, since the settings were changed" in one["text"] for one in withdrawn)
    assert "withdrawn, since" in (tmp_path / "runs/changed/report.md").read_text(encoding="utf-8")
    assert in_process("run", "runs/changed", cwd=tmp_path).code in (0, 3)
    assert decisions(tmp_path, "withdrawn") == withdrawn, "once is enough"
    assert json.loads(report(tmp_path / "runs/changed")["meta"]["changes"]) == changes, "the change stays"


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["anytime", "exact"])
def test_the_same_rule_withdraws_nothing(tmp_path, rule):
    path = write_config(tmp_path, config(rule=rule))
    assert in_process("run", path, cwd=tmp_path).code in (0, 3)
    before = decisions(tmp_path, "pair")
    assert before
    assert in_process("run", "runs/changed", "-o", "budget.trials=301", cwd=tmp_path).code in (0, 3)
    assert decisions(tmp_path, "pair") == before
    assert json.loads(report(tmp_path / "runs/changed")["meta"]["changes"]) == []
    assert not decisions(tmp_path, "withdrawn")


@pytest.mark.slow
@pytest.mark.parametrize("role", ["scorer", "solver", "model"])
def test_a_run_is_not_continued_with_changed_code_of_the_user(tmp_path, role):
    file, data = tmp_path / "mine.py", config()
    if role == "scorer":
        file.write_text("def right(answer, question):\n    return question['target'] in answer\n", "utf-8")
        data["tasks"][0]["scorer"] = {"kind": "python", "function": "mine:right"}
    elif role == "solver":
        file.write_text("async def solve(model, messages):\n    return await model(messages)\n", "utf-8")
        data["tasks"][0]["solver"] = {"function": "python:mine.py:solve"}
    else:
        file.write_text("def answer(prompt):\n    return str(len(prompt) in (9, 11))\n", "utf-8")
        data["models"][0]["endpoints"] = ["python:mine:answer"]
    data["budget"] = {"trials": 30}
    assert in_process("run", write_config(tmp_path, data), cwd=tmp_path).code == 3
    more = ("run", "runs/changed", "-o", "budget.trials=40")
    assert in_process(*more, cwd=tmp_path).code == 3
    file.write_text(file.read_text("utf-8").replace("return ", "return not "), "utf-8")
    refused = in_process(*more[:-1], "budget.trials=50", cwd=tmp_path)
    assert (refused.code, "mine.py has changed" in refused.err) == (2, True)
    hint = re.findall("adaptive-eval (rescore .*)[.] To", refused.err)
    assert len(hint) == (role == "scorer")
    for command in hint:
        assert in_process(*shlex.split(command), cwd=tmp_path).code == 0
    assert sum(one["trials"] for one in report(tmp_path / "runs/changed")["models"]) == 40


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "rescored"),
    [
        ({"scorer": "exact"}, True),
        ({"scorer": {"kind": "regex", "pattern": r"it's (\d+)"}, "rubric": "format-aware"}, True),
        (
            {"rubric": {"schema": "efficiency-adjusted", "thresholds": {"len_p33": 0.1, "len_p66": 0.2}}},
            True,
        ),
        ({"answers": {"k": 2}}, False),
    ],
)
def test_the_way_out_of_other_scoring_runs_as_it_is_written(tmp_path, changes, rescored):
    data = config()
    data["budget"] = {"trials": 30}
    assert in_process("run", write_config(tmp_path, data), cwd=tmp_path).code == 3
    data["tasks"][0] |= changes
    data["budget"] = {"trials": 60}
    refused = in_process("run", write_config(tmp_path, data), cwd=tmp_path, code=2)
    hint = re.findall("adaptive-eval (rescore .*)[.] To", refused.err)
    assert len(hint) == rescored, refused.err
    for command in hint:
        in_process(*shlex.split(command), cwd=tmp_path, code=0)
