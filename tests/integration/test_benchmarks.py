"""Ready benchmarks by name: each on a made-up row of its dataset's real columns."""

import json
import socket
from itertools import count
from pathlib import Path

import pytest
from click.testing import CliRunner
from command_line import needs_sandbox
from scripted_chat import scripted_chat

from adaptive_eval.build.assembly import build
from adaptive_eval.cli.main import cli
from adaptive_eval.cli.validate import unpinned
from adaptive_eval.config import parse_config
from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.config.short_forms import benchmarks
from adaptive_eval.errors import DatasetError
from adaptive_eval.scoring.registry import build_scorer
from adaptive_eval.tasks.sources import read_source
from adaptive_eval.trial import Completion

EXAMPLES = json.loads((Path(__file__).parents[1] / "data" / "benchmark_rows.json").read_text("utf-8"))
MODELS = [{"name": name, "endpoints": [f"http://{name}/v1"]} for name in ("a", "b")]
JUDGE = {"endpoint": "http://judge/v1", "model": "judge"}
ADDED = {"code": {"allow_execution": True}, "judge": JUDGE}


def kind_of(benchmark):
    scorer = benchmark.task["scorer"]
    return scorer if isinstance(scorer, str) else scorer["kind"]


def config(*tasks, **top):
    return config_from_data({"name": "x", "models": MODELS, "tasks": tasks, **top})


def built(name, tmp_path):
    """Build the benchmark's task on its made-up row, with what a user must add to its scorer."""
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(EXAMPLES[name]["row"]) + "\n", "utf-8")
    task = {"benchmark": name, "dataset": str(file)}
    if (added := ADDED.get(kind_of(benchmarks()[name]))) is not None:
        task["scorer"] = added
    return build(config(task))


def test_every_benchmark_has_an_example():
    assert {*EXAMPLES, "ifeval"} == {*benchmarks()}
    assert config("ifeval").tasks[0].dataset == "lm_eval:ifeval"


def test_every_dataset_is_pinned_or_said_not_to_be():
    loose = [name for name, benchmark in benchmarks().items() if benchmark.revision is None]
    assert loose == ["ifeval"]  # the library loads the newest
    listed = CliRunner().invoke(cli, ["tasks"]).output.splitlines()
    assert [line.split()[0] for line in listed if "not pinned" in line] == loose
    assert "not pinned" in CliRunner().invoke(cli, ["tasks", *loose]).output
    assert not [*unpinned(config("gsm8k", {"benchmark": "arc-challenge", "dataset": "x.jsonl"}))]
    (warning,) = unpinned(config("gsm8k", "ifeval", {"benchmark": "mmlu", "dataset": "hf:a/mirror"}))
    assert warning.startswith("ifeval, mmlu: ")


def judge_of(right):
    """Return the words of a judge of known verdicts: bare JSON, and JSON within prose, by turns."""
    turns = count()

    def say(body):
        correct = any(answer in body["messages"][-1]["content"] for answer in right)
        verdict = json.dumps({"reason": "known", "verdict": "correct" if correct else "wrong"})
        return f"<think>Hm.</think>My verdict:\n```json\n{verdict}\n```" if next(turns) % 2 else verdict

    return say


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_row_is_asked_and_scored(name, tmp_path):
    benchmark, example = benchmarks()[name], EXAMPLES[name]
    if kind_of(benchmark) == "code":
        needs_sandbox()
    made = built(name, tmp_path)
    (task,) = made.tasks
    (question,) = task.questions
    asked = task.render(question)[-1].content
    shown = question.choices or (question.fields["input"],)
    assert all(text.strip() in asked for text in shown)
    section = made.config.tasks[0].scorer
    with scripted_chat() as start:
        server = {"endpoint": start(judge_of(example["right"])).url} if section.kind == "judge" else {}
        scorer = build_scorer(section.kind, {**section.options(), **server})
        judged = {
            answer: scorer.score(Completion(answer, "stop"), question).category
            for answer in example["right"] + example["wrong"]
        }
    assert judged == {**dict.fromkeys(example["right"], 1), **dict.fromkeys(example["wrong"], 0)}


def test_the_run_file_keeps_the_task_written_out():
    """A later version of the product resumes the task that the run began with."""
    text = "name: x\nmodels: [{name: a, endpoints: ['http://a/v1']}, {name: b, endpoints: ['http://b/v1']}]\n"
    made = parse_config(f"{text}tasks:\n  - gsm8k\n", overrides=["tasks[gsm8k].limit=5"])
    assert "openai/gsm8k" in made.text
    assert parse_config(made.text).tasks == made.tasks
    assert made.tasks[0].limit == 5


def test_rows_that_lack_the_pattern_or_come_twice(tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text('{"input": "a", "target": "#### 1"}\n' * 2 + '{"input": "b", "target": "1"}\n', "utf-8")
    task = {"name": "t", "dataset": str(file), "scorer": "numeric", "target_pattern": "#### (.+)"}
    with pytest.raises(DatasetError) as refused:
        build(config(task))
    assert "line 2" in str(refused.value)
    assert "line 3: target_pattern finds nothing in '1'" in str(refused.value)
    file.write_text('{"input": "a", "target": "#### 7\\n#### 1"}\n' * 2, "utf-8")  # the last one counts
    (question,) = build(config({**task, "duplicates": "skip"})).tasks[0].questions
    assert question.target == "1"


def test_a_hub_that_cannot_be_reached_is_said_at_once(monkeypatch, tmp_path):
    datasets = pytest.importorskip("datasets")
    from huggingface_hub import constants

    tried = []

    def refuse(address, timeout):
        tried.append(address)
        raise OSError("no route")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(constants, "ENDPOINT", "https://mirror.example")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    for variable in ("https_proxy", "HTTPS_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(DatasetError, match=r"mirror\.example cannot be reached.*HF_ENDPOINT"):
        read_source("hf:openai/no-such-copy", tmp_path)
    assert tried == [("mirror.example", 443)]


def test_the_command_lists_them_and_writes_one_out():
    listed = CliRunner().invoke(cli, ["tasks"])
    assert [line.split()[0] for line in listed.output.splitlines()] == [*benchmarks()]
    for line, benchmark in zip(listed.output.splitlines(), benchmarks().values(), strict=True):
        assert f" {benchmark.questions:,}  {benchmark.about}" in line
        said = CliRunner().invoke(cli, ["tasks", benchmark.name]).output
        assert said.startswith(f"# {benchmark.about} {benchmark.questions:,} questions.\n# License: ")
        assert said.endswith(benchmark.config)
        for text in (line, said):
            assert ("not pinned" in text) == (benchmark.revision is None)
        assert (f"# Needs: {benchmark.needs}.\n" in said) == bool(benchmark.needs)
    written = CliRunner().invoke(cli, ["tasks", "humaneval"]).output
    models = json.dumps(MODELS)
    again = parse_config(f"name: x\nmodels: {models}\n{written}    allow_execution: true\n")
    assert again.tasks == config({"benchmark": "humaneval", "scorer": {"allow_execution": True}}).tasks
    assert CliRunner().invoke(cli, ["tasks", "gsm9k"]).exit_code == 2
