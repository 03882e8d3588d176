"""Tasks of Inspect and lm-evaluation-harness in a config, as far as they can be told without them."""

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from config_texts import plain

from adaptive_eval.build.assembly import build
from adaptive_eval.config.config_schema import json_schema
from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.errors import UsageError
from adaptive_eval.interop.inspect_driver import generate_options, require_drivable
from adaptive_eval.interop.inspect_task import InspectScorer, SampleCompletion, load_inspect_task
from adaptive_eval.interop.lm_eval_task import lm_eval_rows
from adaptive_eval.trial import Completion, Question

# Tasks of Inspect in a config, as far as they can be told without Inspect; and its scores.


QUESTION = Question("t", "q", "4")
DATA = Path(__file__).parents[1] / "data"
REFUSED = json.loads((DATA / "config_changes.json").read_text("utf-8"))["not_for_inspect"]


def config(task=None, **sections):
    return plain(tasks=[task or {"name": "t", "inspect": "sums.py@sums"}], **sections)


def answer(**scores):
    return SampleCompletion("It is 4.", "stop", scores={name: (value, "4") for name, value in scores.items()})


@pytest.mark.parametrize(
    ("value", "category"),
    [("C", 1), ("I", 0), ("P", 1), ("N", 0), (0.4, 0), (True, 1), ("no", 0), ("0.9", 1)],
)
def test_values_of_inspect_become_categories(value, category):
    score = InspectScorer().score(answer(match=value), QUESTION)
    assert (score.category, score.extracted) == (category, "4")


@pytest.mark.parametrize("options", [{"right_from": 1.0, "metric": "part"}, {"metric": "wrong"}])
def test_one_of_several_scorers_is_chosen_and_partial_credit_can_be_asked_more_of(options):
    given = answer(right="C", part="P", wrong="I")
    assert InspectScorer(metric="right").score(given, QUESTION).category == 1
    assert InspectScorer(**options).score(given, QUESTION).category == 0


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (answer(one="C", two="I"), "scored by one, two; choose one with metric"),
        (answer(), "not scored by Inspect"),
        (answer(match=float("nan")), "left unscored by match"),
        (answer(match=7), "match: 7 is not a score from 0 to 1"),
        (answer(match={"a": 1}), "is not a score"),
        (Completion("4", "stop"), "not scored by Inspect"),
    ],
)
def test_what_cannot_be_used_is_no_wrong_answer(given, words):
    score = InspectScorer().score(given, QUESTION)
    assert score.category is None
    assert words in score.reason


GSM8K = {"name": "t", "lm_eval": "gsm8k"}


@pytest.mark.parametrize(
    ("task", "dataset", "scorer", "library", "missing"),
    [
        (None, "inspect:sums.py@sums", "inspect", "inspect-ai", "inspect_ai"),
        (GSM8K, "lm_eval:gsm8k", "lm-eval", "lm-eval", "lm_eval.tasks"),
    ],
)
def test_a_task_of_a_library_needs_no_dataset_and_no_scorer(
    monkeypatch, task, dataset, scorer, library, missing
):
    read = config_from_data(config(task))
    assert (read.tasks[0].dataset, read.tasks[0].scorer.kind) == (dataset, scorer)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(UsageError, match=f"pip install {library}"):
        build(read)


def test_a_task_of_a_library_may_name_a_scorer():
    both = {"name": "t", "inspect": "sums.py@sums", "scorer": {"kind": "inspect", "metric": "match"}}
    assert config_from_data(config(both)).tasks[0].scorer.metric == "match"
    assert config_from_data(config({**GSM8K, "scorer": "numeric"})).tasks[0].scorer.kind == "numeric"


def test_the_schema_lets_an_editor_know():
    task = json_schema()["$defs"]["TaskConfig"]
    assert task["anyOf"] == [{"required": ["name"]}, {"required": ["benchmark"]}]
    assert "inspect" in task["properties"]


def test_tasks_of_one_name_in_two_folders_are_told_apart(tmp_path, monkeypatch):
    """Read by one process, with what each imports from beside it."""
    library = ModuleType("inspect_ai")
    library.Task = SimpleNamespace
    monkeypatch.setitem(sys.modules, "inspect_ai", library)
    monkeypatch.setattr(sys, "path", list(sys.path))
    code = "import sys\nfrom inspect_ai import Task\n\nHERE = sys.modules[__name__].__file__\n\n"
    code += "def sums():\n    import own_samples\n    return Task(place=HERE, samples=own_samples.NAME)\n"
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "own_sums.py").write_text(code, encoding="utf-8")
        (tmp_path / folder / "own_samples.py").write_text(f"NAME = {folder!r}\n", encoding="utf-8")
    for folder in ("one", "two", "one"):
        task = load_inspect_task("own_sums.py@sums", tmp_path / folder)
        assert (task.place, task.samples) == (str(tmp_path / folder / "own_sums.py"), folder)


class TestSettingsOfAModel:
    def model(self, **settings):
        data = config()
        data["models"][0] |= settings
        return config_from_data(data)

    def test_all_that_inspect_knows_is_passed_on(self, monkeypatch):
        monkeypatch.setenv("TEAM", "blue")
        made = self.model(
            sampling={"max_completion_tokens": 9, "reasoning_effort": "low", "stop": "END", "top_p": 0.5},
            extra_body={"guided_regex": "[AB]"},
            headers={"X-Team": {"env": "TEAM"}},
        )
        known = {"reasoning_effort": "low", "stop_seqs": ["END"], "top_p": 0.5}
        known["extra_headers"] = {"X-Team": "blue"}
        body = {"guided_regex": "[AB]"}
        (served, _), own = made.models, "http://a/v1"
        assert generate_options(served, own) == {**known, "extra_body": {**body, "max_completion_tokens": 9}}
        assert generate_options(served, "inspect") == {**known, "extra_body": body, "max_tokens": 9}

    @pytest.mark.parametrize("settings", REFUSED)
    def test_what_inspect_cannot_be_told_is_refused(self, settings):
        with pytest.raises(UsageError, match="Inspect"):
            require_drivable(self.model(**settings))


# Tasks of lm-evaluation-harness in a config, as far as they can be told without it.


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
