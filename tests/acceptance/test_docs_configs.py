"""The blocks of the pages in RUN are run: YAML as part of a small config, on a local server and made-up rows.

A block is a set of keys. Those of a task or a model are put into the config's own; addresses and datasets are
replaced by local ones; everything else is as written. What a block needs and a quick test cannot have is in
ONLY_VALID, with the reason: such a block is validated.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import chdir
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
from answering_server import hub
from command_line import PATIENCE, ROOT, environment, in_process, needs_sandbox, trials, write_config
from json_server import Replies, serving
from pages import Snippet, blocks
from ruamel.yaml import YAML
from test_packages_of_rules import ENTRY_POINTS, EXAMPLE

from adaptive_eval.config import RunConfig, parse_config
from adaptive_eval.config.model import ModelConfig
from adaptive_eval.config.short_forms import PROVIDERS
from adaptive_eval.options.task_options import TaskConfig
from adaptive_eval.views.notifications import Notice

_NAMES = """README ci endpoints howto interop previous-results reliability report scaling scoring servers
statistics tasks"""
RUN = {f"{name}.md" for name in _NAMES.split()}
"""Pages whose blocks run here. test_providers.py runs those of providers.md, the site's build the gallery."""
ONLY_VALID = {
    "batch:": "batches of a provider; tests/acceptance/test_batches.py runs them",
    "discover:": "servers that come and go; tests/acceptance/test_found_servers.py runs them",
    "inspect:": "a task of Inspect; tests/interop/test_inspect_driver.py runs one",
    "choice_probability": "log-probabilities of letters; tests/unit/test_number_scores.py runs it",
    "lm_eval:": "a task of lm-evaluation-harness; tests/interop/test_lm_eval_task.py runs one",
    "kind: ray": "a cluster; ./scripts/ray runs one",
    "stream: true": "answers as a stream; tests/contract/test_endpoint_streaming.py reads them",
    "otel:": "OpenTelemetry; tests/interop/test_telemetry.py runs this block",
}
"""Texts of blocks that are not run, and why."""

BENCHMARKS = json.loads((ROOT / "tests" / "data" / "benchmark_rows.json").read_text("utf-8"))
COMMANDS = [
    pytest.param(one, id=str(one))
    for one in blocks("console")
    if one.page.name in {*RUN, "install.md", "monitor.md", "simulate.md"}
]
ELSEWHERE = {
    " init ": "tests/acceptance/test_first_config.py",
    " --model http": "tests/acceptance/test_first_config.py",
    " --model openai/": "tests/acceptance/test_first_config.py",
    " --web": "tests/integration/test_web_monitor.py",
    " eval-results ": "tests/unit/test_interop_export.py, on a task with a dataset of the Hub",
}
"""Commands that are not run here, and what runs them."""
HURRIED = {
    "run": ("--display", "none"),
    "run runs/": ("--display", "none", "-o", "budget.trials=60"),
    "monitor": ("--display", "none", "--until", "stopped"),
    "plan": ("--replicates", "2", "--workers", "1"),
    "analyze": ("--workers", "1"),
}
ENDS = {"run": {0, 3}, "monitor": {0, 3}, "check": {0, 3, 5}}
"""Exit codes of commands whose answer is one."""
PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)
TRIALS = 6


CONFIGS = [
    pytest.param(one, id=str(one))
    for one in blocks("yaml")
    if one.page.name in RUN and "\njobs:" not in one.text  # which is a workflow of GitHub
]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Serve answers of which every kind of scorer can make something."""

    class Handler(Replies):
        def do_GET(self) -> None:
            self.reply({"object": "list", "data": []})

        def do_POST(self) -> None:
            body = self.asked()
            message: dict[str, Any] = {"role": "assistant", "content": "A. It is \\boxed{4}"}
            if body.get("tools") and body["messages"][-1]["role"] == "user":
                given = {"a": 2, "b": 2, "city": "Oslo", "unit": "C"}
                function = {"name": called(body["tools"][0]), "arguments": json.dumps(given)}
                message |= {"tool_calls": [{"id": "1", "type": "function", "function": function}]}
            if "response_format" in body:  # of a judge
                verdicts = body["response_format"]["json_schema"]["schema"]["properties"]["verdict"]["enum"]
                message["content"] = json.dumps({"reason": "It is so.", "verdict": verdicts[0]})
            usage = {"prompt_tokens": 9, "completion_tokens": 9}
            choice = {"message": message, "finish_reason": "stop"}
            if body.get("logprobs"):
                likely = [{"token": token, "logprob": -1.0} for token in "ABC"]
                choice["logprobs"] = {"content": [{**likely[0], "top_logprobs": likely}]}
            self.reply({"choices": [choice], "usage": usage})

    with serving(Handler) as url:
        yield f"{url}/v1"


def called(tool: Mapping[str, Any]) -> str:
    return str(tool["function"]["name"])


@pytest.mark.slow
@pytest.mark.parametrize("written", CONFIGS)
def test_a_config_of_the_docs_runs(written, server, tmp_path, monkeypatch):
    data = whole(written)
    parse_config(json.dumps(data), str(written))
    for text in ONLY_VALID:
        if text in written.text:
            return
    at_home(data, server, monkeypatch)
    for task in data["tasks"]:
        make_dataset(task, written, tmp_path)
    make_functions(written, data, tmp_path)
    make_earlier_run(data, tmp_path)
    library = MagicMock()  # tests/unit/test_monitor_notify.py looks at what trackers are told
    library.get_tracking_uri.return_value = "http://tracking"
    for name in ("wandb", "mlflow"):
        monkeypatch.setitem(sys.modules, name, library)
    config = write_config(tmp_path, data)
    options = ("-o", f"budget.trials={TRIALS}", "--out", "run", "--display", "none")
    done = in_process("run", config, *options, cwd=tmp_path, code=(0, 3))
    records = trials(tmp_path / "run")
    assert records
    assert all(record.score is not None for record in records), done.said


@pytest.fixture(scope="module")
def results(server: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make what the commands of the pages read: configs, runs, and results of other tools."""
    folder = tmp_path_factory.mktemp("results")
    board = [{"agent": "a", "task_id": "q1", "is_resolved": True, "trial": k} for k in (0, 1)]
    raw = [{"data_id": 1, "seed": seed, "processed": {"ok": True}} for seed in (7, 8)]
    for place, model in (("logs", "new"), ("logs", "old"), ("lm_eval_out", "new"), ("lm_eval_out", "old")):
        details = [{"example_abbr": "q1", "pred": ["4", place], "correct": [True, False]}]
        write_rows(
            folder / place / "results" / model / f"{place}.json", [{"details": details}]
        )  # OpenCompass
    (folder / "raw.json").write_text(json.dumps({"run": {"rows": raw}}), "utf-8")
    lines = [",".join(map(str, row)) for row in (board[0], *(one.values() for one in board))]
    (folder / "board.csv").write_text("\n".join(lines), "utf-8")
    wide = ["question,old,new,subject", *(f"q{n},{int(n % 3 > 0)},1,s{n % 5}" for n in range(30))]
    (folder / "two-models.csv").write_text("\n".join(wide), "utf-8")
    np.savez(folder / "outcomes.npz", R=np.random.default_rng(1).integers(0, 2, (2, 20, 8)))
    (folder / "configs").symlink_to(ROOT / "configs")
    task = {"name": "t", "dataset": "t.jsonl", "scorer": "numeric"}
    write_rows(folder / "t.jsonl", [row(task, number) for number in range(20)])
    for name, models in (("my", ("qwen3-4b", "old")), ("nightly", ("production", "candidate"))):
        data = {"name": name, "models": [{"name": model, "endpoints": [server]} for model in models]}
        data |= {"tasks": [task], "stopping": {"equivalence": 0.05}, "budget": {"trials": 50}}
        if name == "nightly":
            data["goal"] = {"kind": "not-worse", "model": "production", "margin": 0.02}
        write_config(folder, data, f"{name}.yaml")
    assert in_process("run", "my.yaml", "--out", "runs/aime", "--display", "none", cwd=folder).code == 3
    for name in ("long", "quickstart", "aime-shootout", "judged"):
        shutil.copytree(folder / "runs" / "aime", folder / "runs" / name)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("written", COMMANDS)
def test_the_commands_of_the_docs_run(written, results, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_of_this_test")
    here = tmp_path / "here"
    shutil.copytree(results, here, symlinks=True)
    with hub() as (address, _, files):
        monkeypatch.setenv("HF_ENDPOINT", address)
        for line in written.text.splitlines():
            program, *command = shlex.split(re.split(r" [#|>]", line)[0])
            if program != "adaptive-eval" or any(text in line for text in ELSEWHERE):
                continue
            if "inspect" in command and find_spec("inspect_ai") is None:
                continue  # tests/interop/test_inspect_export.py has it
            continues = command[0] == "run" and (here / command[1]).is_dir()
            hurry = HURRIED["run runs/"] if continues else HURRIED.get(command[0], ())
            hurry = () if {"--write", "--preview"} & set(command) else hurry
            done = in_process(*command, *hurry, cwd=here)
            assert done.code in ENDS.get(command[0], {0}), (line, done.said)
            for option in {"--out", "--write"} & set(command):
                assert (here / command[command.index(option) + 1]).exists(), line
            assert ("README.md" in files) == ("--push" in command), line


def test_the_job_of_the_docs_names_its_server_while_it_runs(tmp_path):
    (script,) = blocks("bash")
    seen = "while ! cat servers/*.txt > seen 2>/dev/null; do read -rt 0.02 <> <(:); done"
    for name, text in (("vllm", f"#!/bin/bash\n{seen}\n"), ("job", script.text)):
        (tmp_path / name).write_text(text, "utf-8")
        (tmp_path / name).chmod(0o755)
    env = environment(SLURM_JOB_ID="71", PATH=f"{tmp_path}:{os.environ['PATH']}")
    subprocess.run(["./job"], cwd=tmp_path, env=env, check=False, timeout=PATIENCE)
    (line,) = (tmp_path / "seen").read_text("utf-8").split()
    assert line.endswith(":20071")
    assert not [*(tmp_path / "servers").iterdir()]


def test_the_exported_table_is_read_as_the_docs_read_it(results, tmp_path):
    pytest.importorskip("pandas")
    code = next(one.text for one in blocks("py") if "read_parquet" in one.text)
    table = tmp_path / "aime.parquet"
    assert in_process("export", "runs/aime", "--out", table, cwd=results).code == 0
    with chdir(tmp_path):
        *lines, last = code.splitlines()
        exec("\n".join(lines), found := {})
    assert eval(last, found).to_dict() == {"old": 1.0, "qwen3-4b": 1.0}


def test_the_notice_of_the_docs_has_the_keys_of_one_that_is_sent():
    (shown,) = (json.loads(one.text) for one in blocks("json") if one.page.name == "report.md")
    assert shown.keys() == json.loads(Notice("stopped", "run", 0.0, "done").to_json()).keys()


def test_the_proxy_of_the_docs_has_the_models_that_the_page_asks():
    (proxy,) = (json.loads(one.text) for one in blocks("json") if one.page.name == "providers.md")
    asked = [one.text for one in blocks("yaml") if "localhost:4000" in one.text]
    models = [model for text in asked for model in YAML(typ="safe", pure=True).load(text)["models"]]
    known = {one["model_name"] for one in proxy["model_list"]}
    assert {model.get("model", model["name"]) for model in models} <= known


def test_the_package_of_the_docs_is_the_one_that_is_tested():
    code, names = (one.text for one in blocks("python", "toml") if one.page.name == "extending.md")
    assert EXAMPLE.read_text("utf-8").endswith(code)
    groups = tomllib.loads(names)["project"]["entry-points"]
    assert groups["adaptive_eval.rules"]["patient"] in ENTRY_POINTS
    assert groups["adaptive_eval.policies"]["most-wanted"] in ENTRY_POINTS


def whole(written: Snippet) -> dict[str, Any]:
    """Return a config with the keys of a block; those of a task or a model are put there."""
    block: dict[str, Any] = YAML(typ="safe", pure=True).load(written.text)
    task = {"name": "t", "dataset": "t.jsonl", "scorer": "numeric"}
    models = [{"name": name, "endpoints": ["http://gpu1:8000/v1"]} for name in ("new", "old")]
    data: dict[str, Any] = {"name": "docs", "models": models, "tasks": [task], "budget": {"trials": 400}}
    for key, value in block.items():
        if key in RunConfig.model_fields:
            data[key] = value
        elif key in TaskConfig.model_fields:
            task[key] = value
        else:
            assert key in ModelConfig.model_fields, f"{written}: {key} has no place in a config"
            data["models"] = [{**model, key: value} for model in data["models"]]
    if len(data["models"]) == 1:
        data["models"] = [*data["models"], models[1]]
    data["tasks"] = [{"benchmark": one} if isinstance(one, str) else one for one in data["tasks"]]
    return data


def at_home(data: Any, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the local server in the place of every address, and a key into every variable that is named."""
    if isinstance(data, list):
        for inner in data:
            at_home(inner, url, monkeypatch)
    if not isinstance(data, dict):
        return
    for key, value in data.items():
        if key in ("api_key_env", "env") and isinstance(value, str):
            monkeypatch.setenv(value, "a-key")
        elif key in ("endpoint", "url"):
            data[key] = url
        elif key == "webhook_env":
            monkeypatch.setenv(value, url)
        elif key == "command":
            data[key] = ["true"]
        elif key == "endpoints" and str(value[0]).startswith("http"):
            data[key] = [url]
        else:
            at_home(value, url, monkeypatch)
    if "provider" in data:
        data["endpoints"] = [url]
        if (variable := PROVIDERS[data["provider"]].get("api_key_env")) is not None:
            monkeypatch.setenv(variable, "a-key")


def make_dataset(task: dict[str, Any], written: Snippet, folder: Path) -> None:
    """Write rows for the dataset of a task, and of its worked examples, with the columns that it reads."""
    (folder / "images").mkdir(exist_ok=True)
    (folder / "images" / "1.png").write_bytes(PNG)
    name = task.get("benchmark")
    if name is not None:
        rows = [BENCHMARKS[name]["row"]]
        task["dataset"] = f"{name}.jsonl"
        if "allow_execution" in str(task.get("scorer")):
            needs_sandbox()
    elif shown := re.search(rf"{re.escape(task['dataset'])} .*# (\{{.*\}})$", written.text, re.MULTILINE):
        rows = [json.loads(shown[1])]
    else:
        rows = [row(task, number) for number in range(20)]
    kept = {
        column: values[0] if isinstance(values, list) else values
        for column, values in task.get("filter", {}).items()
    }
    write_rows(folder / task["dataset"], [{**row, **kept} for row in rows])
    if "dataset" in (task.get("few_shot") or {}):
        write_rows(folder / task["few_shot"]["dataset"], [row(task, number) for number in range(90, 99)])


def row(task: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Return a row with the columns that a task reads."""
    chosen = "choices" in task.get("fields", {})
    values = {
        "input": f"{number} + 4?",
        "target": "A" if chosen else "4",
        "choices": ["4", "5", f"6{number}"],
    }
    columns = {"input": "input", "target": "target", **task.get("fields", {})}
    return {column: values.get(name, f"x{number}") for name, column in columns.items()} | {"id": f"q{number}"}


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(one) + "\n" for one in rows), "utf-8")


def make_functions(written: Snippet, data: Any, folder: Path) -> None:
    """Write the functions that a config names; they are on the same page."""
    for file, name in re.findall(r"python:([\w./]+\.py):(\w+)", json.dumps(data)):
        defined = [
            one.text for one in blocks("python") if one.page == written.page and f"def {name}(" in one.text
        ]
        assert defined, f"{written}: the page has no function {name}"
        (folder / file).write_text(CLIENT + defined[0], "utf-8")


CLIENT = """
class client:  # of a function that has one
    async def chat(messages, **sampling):
        return client

    text, input, output = "It is \\\\boxed{4}", 9, 9


"""


def make_earlier_run(data: Mapping[str, Any], folder: Path) -> None:
    """Import a table as the earlier run that a config names, with the questions of its tasks."""
    named = [one for one in (*data.get("references", ()), data.get("prior")) if one]
    for place, model in re.findall(r'"against": "(.+?)#(.+?)"', json.dumps(data)):
        named.append({"run": place, "models": [model]})
    for place in {one.get("run") or one["from"] for one in named}:
        models = {name for one in named for name in one.get("models", ())} | {data["models"][0]["name"]}
        rows = [
            {"model": model, "question": f"q{n}", "trial": k, "correct": (n + k) % 2, "text": f"{n}.{k}"}
            for model in models for n in range(20) for k in (0, 1)
        ]  # fmt: skip
        write_rows(folder / "table.jsonl", rows)
        assert in_process("analyze", "table.jsonl", "--write", place, cwd=folder).code == 0
