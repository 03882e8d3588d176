"""Tasks of lm-evaluation-harness in a config, as far as they can be told without it."""

import pytest

from adaptive_eval.build import build
from adaptive_eval.config import config_from_data
from adaptive_eval.errors import DatasetError, UsageError
from adaptive_eval.scoring import LmEvalScorer
from adaptive_eval.trial import Question


def config(**task):
    models = [{"name": name, "endpoints": ["http://localhost:1/v1"]} for name in ("a", "b")]
    return {"name": "x", "models": models, "tasks": [{"name": "t", **task}]}


def test_a_task_of_the_harness_needs_no_dataset_and_no_scorer():
    task = config_from_data(config(lm_eval="gsm8k")).tasks[0]
    assert (task.dataset, task.scorer.kind) == ("lm_eval:gsm8k", "lm-eval")
    own = config_from_data(config(lm_eval="gsm8k", scorer="numeric")).tasks[0]
    assert own.scorer.kind == "numeric"


def test_without_the_library_it_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "lm_eval.tasks", None)
    with pytest.raises(UsageError, match=r"pip install 'adaptive-eval\[lm-eval\]'"):
        build(config_from_data(config(lm_eval="gsm8k")))


def test_its_scorer_is_for_its_tasks(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"input": "?", "target": "4"}\n', encoding="utf-8")
    with pytest.raises(DatasetError, match="lm-eval is for tasks of lm-evaluation-harness"):
        build(config_from_data(config(dataset="x.jsonl", scorer="lm-eval"), tmp_path))
    assert "write lm_eval: NAME" in LmEvalScorer().check_target(Question("t", "q", "4"))
