"""Tasks of lm-evaluation-harness in our runs: questions, prompts, filters and metric, by its own loader."""

import json
from pathlib import Path

import pytest
from harness_logs import LM_EVAL_TASK, MODELS, models_at, run

from adaptive_eval.build.assembly import build
from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.errors import DatasetError
from adaptive_eval.store.reader import RunReader
from adaptive_eval.trial import Completion

pytestmark = pytest.mark.interop


@pytest.fixture
def folder(lm_eval, dataset, tmp_path, monkeypatch):
    """A folder with a task definition, and a config's place beside it."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "tasks").mkdir()
    write(tmp_path, dataset)
    return tmp_path


def write(folder, dataset, **changes):
    task = {**LM_EVAL_TASK, "dataset_kwargs": {"data_files": {"test": str(dataset)}}, **changes}
    path = folder / "tasks" / f"{task['task']}.yaml"
    path.write_text(json.dumps(task), encoding="utf-8")  # JSON is YAML


def config(task, url="http://localhost:1/v1", **sections):
    tasks = [{"name": "sums", **task}]
    return {"name": "harnessed", "models": models_at(url), "tasks": tasks, **sections}


def test_questions_and_prompts_are_the_harness_s(folder, dataset):
    (task,) = build(config_from_data(config({"lm_eval": "tasks/sums"}), folder)).tasks
    rows = [json.loads(line) for line in dataset.read_text(encoding="utf-8").splitlines()]
    assert [question.id for question in task.questions] == [str(number) for number in range(len(rows))]
    assert [question.target for question in task.questions] == [row["answer"] for row in rows]
    asked = [task.render(question)[-1].content for question in task.questions]
    assert asked == [f"{row['question']}\nPut the final answer within \\boxed{{}}." for row in rows]


def test_every_answer_is_scored_as_the_harness_has_scored_it(folder, lm_eval_once):
    built = build(config_from_data(config({"lm_eval": "tasks/sums"}), folder))
    seen = set()
    for path in lm_eval_once.rglob("samples_*.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            sample = json.loads(line)
            question = built.tasks[0].by_id[str(sample["doc_id"])]
            score = built.scorers["sums"].score(Completion(sample["resps"][0][0], "stop"), question)
            assert score.category == sample["exact_match"]
            assert score.extracted == sample["filtered_resps"][0]
            seen.add(score.category)
    assert seen == {0, 1}


def test_a_run_is_decided_by_it(folder, mimic_url):
    code, output = run(folder, config({"lm_eval": "tasks/sums"}, mimic_url, budget={"trials": 2000}))
    assert code == 0, output
    assert "sage is ahead of novice" in (folder / "run" / "report.md").read_text(encoding="utf-8")
    with RunReader(folder / "run") as reader:
        answered = [record for record in reader.trials() if record.score is not None]
    assert all((r.score.reason == "exact_match: 1") == (r.score.category == 1) for r in answered)


def test_answers_end_where_the_task_says(folder, dataset):
    write(folder, dataset, generation_kwargs={"until": ["STOP"]})
    built = build(config_from_data(config({"lm_eval": "tasks/sums"}), folder))
    question = built.tasks[0].questions[0]
    scorer = built.scorers["sums"]
    right = f"\\boxed{{{question.target}}}"
    assert scorer.score(Completion(f"{right} STOP \\boxed{{7777}}", "stop"), question).category == 1
    assert scorer.score(Completion(f"STOP {right}", "stop"), question).category == 0


NO_SPLIT = {"task": "other", "test_split": "missing"}
CHOICE = {
    "task": "choice",
    "output_type": "multiple_choice",
    "doc_to_choice": ["a", "b"],
    "doc_to_target": 0,
    "metric_list": [{"metric": "acc"}],
    "filter_list": None,
}
SECOND_FILTER = {"name": "strict", "filter": [{"function": "take_first"}]}
TWO_FILTERS = {"task": "two", "filter_list": [*LM_EVAL_TASK["filter_list"], SECOND_FILTER]}


@pytest.mark.parametrize(
    ("task", "changes", "words"),
    [
        ("tasks/none", {}, "no task 'none' is in"),
        ("nowhere/sums", {}, "there is no folder"),
        ("tasks/other", NO_SPLIT, "cannot be loaded"),
        ("tasks/choice", CHOICE, "is a task of kind multiple_choice"),
        ("tasks/two", TWO_FILTERS, "the task has the filters boxed, strict; choose one"),
    ],
)
def test_what_cannot_be_used_is_named(folder, dataset, task, changes, words):
    if changes:
        write(folder, dataset, **changes)
    with pytest.raises(DatasetError, match=words):
        build(config_from_data(config({"lm_eval": task}), folder))


def test_ifeval_is_judged_by_its_library(lm_eval, tmp_path, monkeypatch):
    """The scorer of the benchmark, on a row with the columns of IFEval."""
    pytest.importorskip("langdetect")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    none = dict.fromkeys(("num_highlights", "relation", "num_words", "keywords", "postscript_marker"))
    about = "Write about rain with no commas, in at least 5 words. Highlight 1 section, such as *this*."
    row = {
        "key": 1000,
        "prompt": about,
        "instruction_id_list": [
            "punctuation:no_comma",
            "length_constraints:number_words",
            "detectable_format:number_highlighted_sections",
        ],
        "kwargs": [none, {**none, "relation": "at least", "num_words": 5}, {**none, "num_highlights": 1}],
    }
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    (tmp_path / "tasks").mkdir()
    source = Path(lm_eval.__file__).parent / "tasks" / "ifeval" / "ifeval.yaml"
    (tmp_path / "tasks" / "local.yaml").write_text(
        f"include: {source}\ntask: local\ndataset_path: json\ntest_split: test\n"
        f"dataset_kwargs: {{data_files: {{test: {tmp_path / 'rows.jsonl'}}}}}\n",
        "utf-8",
    )
    models = [{"name": name, "endpoints": ["http://localhost:1/v1"]} for name in MODELS]
    task = {"benchmark": "ifeval", "lm_eval": "tasks/local"}
    built = build(config_from_data({"name": "x", "models": models, "tasks": [task]}, tmp_path))
    (question,) = built.tasks[0].questions
    assert built.tasks[0].render(question)[-1].content == about
    judged = {
        answer: built.scorers["ifeval"].score(Completion(answer, "stop"), question).category
        for answer in (
            "The *rain* falls on the roof.",
            "The *rain* falls, on the roof.",  # a comma
            "*Rain* falls.",  # too short
            "The rain falls on the roof.",  # nothing is highlighted
            "",
        )
    }
    assert [*judged.values()] == [1, 0, 0, 0, 0]
