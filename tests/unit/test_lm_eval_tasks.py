"""Tasks of lm-evaluation-harness in a config, as far as they can be told without it."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from config_texts import plain

from adaptive_eval.build.assembly import build
from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.errors import UsageError
from adaptive_eval.interop.lm_eval_task import lm_eval_rows


def config(**task):
    return plain(tasks=[{"name": "t", **task}])


def test_a_task_of_the_harness_needs_no_dataset_and_no_scorer():
    task = config_from_data(config(lm_eval="gsm8k")).tasks[0]
    assert (task.dataset, task.scorer.kind) == ("lm_eval:gsm8k", "lm-eval")
    own = config_from_data(config(lm_eval="gsm8k", scorer="numeric")).tasks[0]
    assert own.scorer.kind == "numeric"


def test_without_the_library_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "lm_eval.tasks", None)
    with pytest.raises(UsageError, match="pip install lm-eval"):
        build(config_from_data(config(lm_eval="gsm8k")))


def test_a_task_that_was_edited_is_the_new_one_to_the_next_run(tmp_path, monkeypatch):
    """As in a notebook; the harness is stubbed."""

    class Manager:
        all_tasks = ("sums",)

        def __init__(self, include_path, include_defaults):
            self.words = Path(include_path, "sums.yaml").read_text(encoding="utf-8")

        def load(self, names):
            task = SimpleNamespace(
                config=SimpleNamespace(num_fewshot=0),
                OUTPUT_TYPE="generate_until",
                eval_docs=[self.words],
                doc_to_target=lambda doc: "4",
                fewshot_context=lambda doc, num_fewshot: doc,
            )
            return {"tasks": {"sums": task}}

    for name in ("lm_eval", "lm_eval.tasks", "datasets", "datasets.exceptions"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules["lm_eval.tasks"].TaskManager = Manager
    sys.modules["datasets.exceptions"].DatasetsError = OSError
    (tmp_path / "own").mkdir()
    for words in ("2 + 2?", "What is 2 + 2?", "What is 2 + 2?"):
        (tmp_path / "own" / "sums.yaml").write_text(words, encoding="utf-8")
        assert [row["input"] for row in lm_eval_rows("own/sums", tmp_path)] == [words]
