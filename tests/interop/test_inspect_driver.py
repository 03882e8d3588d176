"""Tasks of Inspect under our session: it stops early, and both run file and logs say what happened."""

import shutil
from pathlib import Path

import pytest
from harness_logs import inspect_task, models_at, run
from json_server import Replies, serving

from adaptive_eval.errors import UsageError
from adaptive_eval.interop.found import ReadingOptions, checked
from adaptive_eval.interop.recorded_files import open_logs
from adaptive_eval.store.reader import RunReader

pytestmark = pytest.mark.interop


def config(task, url, **sections):
    tasks = [{"name": "sums", "inspect": str(task)}]
    return {"name": "driven", "models": models_at(url), "tasks": tasks, **sections}


@pytest.fixture
def folder(tmp_path):
    """A folder with the tasks of tests/data."""
    shutil.copy(Path(__file__).parents[1] / "data" / "inspect_tasks.py", tmp_path / "tasks.py")
    return tmp_path


@pytest.fixture(scope="module")
def driven(inspect, dataset, mimic_url, tmp_path_factory):
    folder = tmp_path_factory.mktemp("driven")
    task = f"{inspect_task(folder, dataset).name}@sums"
    # So sure a verdict takes more than one pass, which is one epoch.
    sections = {"budget": {"trials": 2000}, "stopping": {"confidence": 0.99999}}
    code, output = run(folder, config(task, mimic_url, **sections))
    return folder / "run", code, output


def outcomes(directory):
    """Return what our run file has, by model, sample and epoch."""
    with RunReader(directory) as reader:
        return {
            (r.request.key.model, r.request.question, r.request.repeat + 1): r.score.category
            for r in reader.trials()
            if r.score is not None
        }


def test_two_models_stop_early_and_the_verdict_is_in_the_report(driven):
    directory, code, output = driven
    assert code == 0, output
    found = outcomes(directory)
    assert 20 < len(found) < 400
    assert "sage is ahead of novice" in (directory / "report.md").read_text(encoding="utf-8")


def test_the_logs_open_with_inspects_reader_and_agree_with_the_run_file(driven):
    from inspect_ai.log import read_eval_log

    directory, _, _ = driven
    ours, theirs = outcomes(directory), {}
    logs = sorted((directory / "inspect").glob("*.eval"))
    assert len(logs) == 2
    for path in logs:
        log = read_eval_log(str(path))
        assert log.status == "success"
        model = log.eval.model.rpartition("/")[2]
        for sample in log.samples:
            theirs[model, sample.id, sample.epoch] = int(sample.scores["pattern"].value == "C")
    assert ours == theirs


def test_the_answers_and_their_tokens_are_in_the_run_file(driven):
    with RunReader(driven[0]) as reader:
        records = [record for record in reader.trials() if record.completion is not None]
    assert all("boxed" in record.completion.text for record in records)
    assert all(record.usage.completion_tokens > 0 for record in records)
    assert {record.sent["epoch"] for record in records} >= {1, 2}


def test_a_run_goes_on_where_it_was(inspect, dataset, mimic_url, tmp_path):
    task = f"{inspect_task(tmp_path, dataset).name}@sums"
    sections = {"goal": "budget", "budget": {"trials": 20}}
    code, _ = run(tmp_path, config(task, mimic_url, **sections))
    assert code == 0
    first = outcomes(tmp_path / "run")
    run(tmp_path, config(task, mimic_url, **sections), "-o", "budget.trials=40")
    second = outcomes(tmp_path / "run")
    assert len(second) == 40
    assert first.items() <= second.items()


def test_errors_of_samples_are_missing_trials(inspect, mimic_url, folder):
    run(folder, config("tasks.py@erring", mimic_url, budget={"trials": 60}))
    with RunReader(folder / "run") as reader:
        missing = list(reader.trials(missing=True))
        scored = {r.request.key.model: r.score.category for r in reader.trials(missing=False)}
    assert missing
    assert {record.request.question for record in missing} == {"bad"}
    assert all("the sandbox went away" in record.missing for record in missing)
    assert scored == {"sage": 1, "novice": 0}


def test_an_evaluation_that_inspect_cannot_run_stops_the_models_and_says_why(inspect, mimic_url, folder):
    code, _ = run(folder, config("tasks.py@failing", mimic_url, budget={"trials": 60}))
    assert code == 4
    assert "nowhere" in (folder / "run" / "report.md").read_text(encoding="utf-8")


@pytest.fixture
def wire():
    """Serve one canned answer; the value is the URL and the requests: bodies, headers by lower-case name."""
    requests = []

    class Canned(Replies):
        def do_POST(self):
            requests.append((self.asked(), {name.lower(): value for name, value in self.headers.items()}))
            choice = {"index": 0, "message": {"role": "assistant", "content": "yes"}, "finish_reason": "stop"}
            usage = {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}
            answer = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "usage": usage}
            self.reply({**answer, "choices": [choice]})

        def do_GET(self):
            self.reply({"data": [{"id": "m"}]})

    with serving(Canned) as url:
        yield f"{url}/v1", requests


def test_what_a_model_sets_is_in_the_request_that_inspect_sends(inspect, wire, folder, monkeypatch):
    monkeypatch.setenv("TEAM", "blue")
    monkeypatch.setenv("KEY", "secret-key")
    url, requests = wire
    sampling = {"temperature": 0.7, "top_p": 0.9, "reasoning_effort": "low", "logprobs": True}
    sampling |= {"top_logprobs": 2, "max_completion_tokens": 50, "stop": ["END"]}
    extra = {"structured_outputs": {"choice": ["yes", "no"]}, "top_k": 5}
    models = [
        {"name": "m", "endpoints": [url], "sampling": sampling, "extra_body": extra, "api_key_env": "KEY",
         "headers": {"X-Team": {"env": "TEAM"}}}
    ]  # fmt: skip
    settings = {"goal": "budget", "budget": {"trials": 2}, "models": models}
    run(folder, {**config("tasks.py@asking", url), **settings})
    assert len(requests) >= 2
    for body, headers in requests:
        told = {name: value for name, value in body.items() if name not in ("messages", "model")}
        assert told == {**sampling, **extra}
        assert body["model"] == "m"
        assert headers["x-team"] == "blue"
        assert headers["authorization"] == "Bearer secret-key"


@pytest.mark.parametrize("budget", [{"tokens": 4000}, {"usd": 0.03}], ids=["tokens", "usd"])
def test_budgets_hold_whatever_the_samples_of_inspect_ask(inspect, wire, folder, budget):
    url, requests = wire  # each costs 3 tokens and 1 token
    sampling = {"max_tokens": 20, "temperature": 0.7}
    model = {"name": "m", "endpoints": [url], "concurrency": 4, "sampling": sampling}
    models = [{**model, "price": {"input": 10, "output": 10}}]
    tasks = [{"name": "a", "inspect": "tasks.py@agents", "solver": {"calls": 4, "prompt_tokens": 1000}}]
    settings = {"goal": "budget", "budget": budget, "models": models, "tasks": tasks}
    code, _ = run(folder, {**config("", url), **settings, "on": {"length": "wrong"}})
    assert code == 0
    with RunReader(folder / "run") as reader:
        records = list(reader.trials())
    paid = sum(record.usage.total_tokens for record in records)
    assert paid == 4 * len(requests)  # also those of a run of a sample that has failed
    assert paid <= budget.get("tokens", 3000)
    assert paid > 1500  # a budget is spent until the worst case of a trial does not fit any more
    failed = {record.request.question for record in records if record.discarded == ("server",)}
    assert failed  # their first runs
    assert failed == {record.request.question for record in records if record.discarded}
    calls = {record.request.question: record.usage.completion_tokens for record in records}
    assert {int(name[1:]) % 3: number for name, number in calls.items()} == {0: 2, 1: 3, 2: 4}
    ends = {
        record.completion.finish_reason for record in records if int(record.request.question[1:]) % 3 == 2
    }
    assert ends == {"length"}


def test_a_budget_of_tokens_needs_limits_of_a_sample(inspect, wire, folder):
    with pytest.raises(UsageError, match="calls: 30"):
        run(folder, config("tasks.py@agents", wire[0], budget={"tokens": 4000}))


def test_a_model_that_inspect_finds_by_its_name(inspect, folder):
    models = [
        {"name": name, "model": f"toy/{name}", "endpoints": ["inspect"], "concurrency": 2}
        for name in ("good", "bad")
    ]
    code, _ = run(folder, {**config("tasks.py@asking", ""), "models": models})
    assert code == 0
    assert "good is ahead of bad" in (folder / "run" / "report.md").read_text(encoding="utf-8")


def test_early_stopping_ends_the_epochs_of_a_task(inspect, dataset, mimic_url, tmp_path):
    from inspect_ai.log import read_eval_log

    from adaptive_eval.interop.inspect_task import StopEarly

    task = inspect_task(tmp_path, dataset)
    namespace = {}
    exec(task.read_text(encoding="utf-8"), namespace)  # the task's own file
    stopping = StopEarly(threshold=0.6)
    wanted = inspect.task_with(namespace["sums"](), epochs=12, early_stopping=stopping)
    options = {"temperature": 0.7, "max_tokens": 400, "max_samples": 4, "display": "none"}
    (log,) = inspect.eval(wanted, model="openai-api/mimic/sage", log_dir=str(tmp_path / "logs"), **options)
    assert log.error is None
    summary = read_eval_log(log.location, header_only=True).results.early_stopping
    assert summary.manager == "adaptive-eval"
    assert 0 < len(summary.early_stops) < 240
    assert summary.metadata["stopped"]
    assert summary.metadata["score"] > 0.6
    (again,) = open_logs([Path(log.location)], ReadingOptions())
    assert len(list(checked(again))) == 240 - len(summary.early_stops)
