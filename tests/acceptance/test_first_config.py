"""From nothing to a finished comparison, by init or by one line."""

import json
import os
import pty
import re
import select
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from command_line import (
    ARITHMETIC,
    COMMAND,
    PATIENCE,
    ROOT,
    environment,
    in_process,
    mimic_spec,
    report,
)
from json_server import Replies, serving

from adaptive_eval.config import load_config
from adaptive_eval.mimic.mimic_spec import DatasetSpec, LatencySpec, MimicModelSpec, MimicSpec
from adaptive_eval.mimic.process import MimicProcess

# From nothing to a finished comparison: ``init``, ``plan``, ``run``, ``report``.


SUMS = [(f"Ann has {a} pens and buys {a % 7 + 2}. How many now?", a + a % 7 + 2) for a in range(10, 50)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    key = tmp_path_factory.mktemp("key") / "key.jsonl"
    key.write_text("".join(json.dumps({"question": q, "answer": str(n)}) + "\n" for q, n in SUMS), "utf-8")
    means = {"org/alpha": 0.95, "org/beta": 0.3, "c": 0.5}
    spec = MimicSpec(
        models=tuple(
            MimicModelSpec(name=name, mean=mean, latency=LatencySpec(median=0.001))
            for name, mean in means.items()
        ),
        datasets=(DatasetSpec(path=str(key)),),
    )
    with MimicProcess(spec) as mimic:
        yield mimic.base_url


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file of GSM8K's columns."""
    rows = [{"question": q, "answer": f"It is <<{n}={n}>>{n}.\n#### {n}"} for q, n in SUMS]
    (tmp_path / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return tmp_path


def answered(command: list[str], answers: Iterable[tuple[str, str]], cwd: Path) -> tuple[int, str]:
    """Run a command at a terminal and answer its questions; return its exit code and the screen."""
    ours, theirs = pty.openpty()
    screen, seen = "", 0
    with subprocess.Popen(
        command, cwd=cwd, env=environment(), stdin=theirs, stdout=theirs, stderr=theirs
    ) as it:
        os.close(theirs)

        def read_on() -> bool:
            nonlocal screen
            assert select.select([ours], [], [], PATIENCE)[0], screen
            try:
                more = os.read(ours, 4096)
            except OSError:  # the terminal has no more users
                more = b""
            screen += more.decode()
            return bool(more)

        for question, answer in answers:
            while not re.search(f"{question}.*: ", screen[seen:]):
                assert read_on(), screen
            seen = len(screen)
            os.write(ours, f"{answer}\n".encode())
        while read_on():
            pass
    os.close(ours)
    return it.returncode, screen


@pytest.mark.slow
def test_the_questions_are_asked_at_a_terminal(server, folder):
    code, screen = answered(
        [str(COMMAND), "init", "first.yaml", "--task", "gsm8k", "--dataset", "sums.jsonl"],
        [
            ("Servers", server),
            ("Numbers of the models", "1 2"),
            ("count as tied", "2"),  # out of range: it is asked again
            ("count as tied", "0.1"),
            ("Budget in trials", ""),
        ],
        folder,
    )
    assert code == 0, screen
    config = load_config(folder / "first.yaml")
    assert [model.name for model in config.models] == ["alpha", "beta"]
    assert config.stopping.equivalence == 0.1
    offered = dict(re.findall(r"^ +(0\.\d+) +[\d,]+ +([\d,]+) ", screen, re.MULTILINE))
    assert {"0.1", "0.05"} <= {*offered}
    assert config.budget.trials == int(offered["0.1"].replace(",", ""))
    schema = re.search(r"\$schema=(\S+)", (folder / "first.yaml").read_text("utf-8"))
    assert schema is not None
    assert "tasks" in json.loads((folder / schema[1]).read_text("utf-8"))["properties"]


@pytest.mark.slow
def test_the_four_commands_of_the_page_compare_two_models(tmp_path):
    page = (ROOT / "docs" / "getting-started.md").read_text("utf-8")
    (script,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    with chdir(tmp_path):
        exec(script, {})
    serving, *commands = [
        line for block in re.findall(r"```console\n(.*?)```", page, re.DOTALL) for line in block.splitlines()
    ]
    means = re.findall(r"--model (\w+)=(\S+)", serving)
    spec = MimicSpec(
        models=tuple(
            MimicModelSpec(name=name, mean=float(mean), latency=LatencySpec(median=0.0))
            for name, mean in means
        ),
        datasets=(DatasetSpec(path=str(tmp_path / "key.jsonl")),),
    )
    hurried = {"plan": ["--replicates", "5"], "run": ["--display", "none"]}
    with MimicProcess(spec) as mimic:
        for line in commands:
            _, name, *arguments = line.replace("http://127.0.0.1:8000/v1", mimic.base_url).split()
            in_process(name, *arguments, *hurried.get(name, []), cwd=tmp_path, code=0)
    (pair,) = report(tmp_path / "runs" / "first")["pairs"]
    assert (pair["first"], pair["second"], pair["verdict"]) == ("strong", "weak", "better")


def test_a_file_gives_its_columns_and_scorer(server, folder):
    rows = [{"question": q, "answer": n % 2, "options": [str(n), str(n + 1)]} for q, n in SUMS]
    (folder / "choice.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    for file, scorer in (("sums.jsonl", "numeric"), ("choice.jsonl", "choice")):
        line = ("init", f"{scorer}.yaml", "--endpoint", server, "--task", file)
        in_process(*line, "--trials", "99", "--margin", "0.1", cwd=folder, code=0)
        config = load_config(folder / f"{scorer}.yaml")
        assert (config.tasks[0].scorer.kind, len(config.models), config.budget.trials) == (scorer, 3, 99)


# A run without a config: one line writes the config that it runs.


@pytest.mark.slow
def test_a_line_writes_the_config_that_it_runs_and_continues_it(tmp_path):
    (tmp_path / "sums.jsonl").write_text(ARITHMETIC.read_text("utf-8"), "utf-8")
    quick = ("-o", "budget.trials=40", "--display", "none")
    with MimicProcess(mimic_spec()) as mimic:
        models = [f"{mimic.base_url}#{name}" for name in ("sage", "guesser")]
        line = ("run", "--model", models[0], "--model", models[1], "--task", "sums.jsonl", "--margin", "0.1")
        done = in_process(*line, *quick, cwd=tmp_path, code=(0, 3))
        assert "sums.yaml" in done.err
        written = report(tmp_path / "runs" / "sums")
        assert {one["model"] for one in written["models"]} == {"sage", "guesser"}
        assert in_process("run", "sums.yaml", *quick, cwd=tmp_path).code in (0, 3)
        assert in_process(*line, *quick, cwd=tmp_path).code in (0, 3), "the same line again"
        other = in_process(*line[:-1], "0.05", *quick, cwd=tmp_path, code=(0, 3))
        assert "sums-2.yaml" in other.err
        assert len(list((tmp_path / "runs").iterdir())) == 2, "another config is another run"
        (tmp_path / "sums.yaml").unlink()
        in_process("run", *line[1:3], *line[5:], *quick, "--out", "one", cwd=tmp_path, code=(0, 3))
        assert "width=0.2" in (tmp_path / "sums.yaml").read_text("utf-8")


OWN_COLUMNS = ("--task", "rows.jsonl", "--field", "input=frage", "--field", "target=loesung")


@pytest.fixture
def hosted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A server that wants a key and tells a short context, and the bodies of its requests; the key is set."""
    rows = [{"frage": q, "loesung": str(n)} for q, n in SUMS]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    monkeypatch.setenv("KEY_OF_HOST", "sk-of-the-host-1")
    bodies: list[dict[str, Any]] = []

    class Handler(Replies):
        def refuses(self) -> bool:
            wrong = self.headers["Authorization"] != "Bearer sk-of-the-host-1"
            if wrong:
                self.reply({"error": {"message": "Incorrect API key"}}, 401)
            return wrong

        def do_GET(self) -> None:
            if not self.refuses():
                self.reply({"object": "list", "data": [{"id": one, "max_model_len": 2048} for one in "ab"]})

        def do_POST(self) -> None:
            body = self.asked()
            if not self.refuses():
                bodies.append(body)
                choice = {"index": 0, "message": {"content": "\\boxed{1}"}, "finish_reason": "stop"}
                self.reply({"id": "1", "model": body["model"], "choices": [choice], "usage": {}})

    with serving(Handler) as url:
        yield f"{url}/v1", bodies


def test_a_line_asks_a_hosted_model_with_key_columns_and_the_context_that_it_has(folder, hosted):
    url, bodies = hosted
    models = ("--model", f"{url}#a", "--model", f"{url}#b")
    more = ("--api-key-env", "KEY_OF_HOST", "--temperature", "none", "--system", "Be brief.")
    scorer = ("--scorer", "{kind: numeric, tolerance: 0.5}")
    line = ("run", *models, *OWN_COLUMNS, *more, *scorer, "-o", "budget.trials=10", "--display", "none")
    in_process(*line, cwd=folder, code=3)
    sent = {(body["max_tokens"], "temperature" in body, body["messages"][0]["content"]) for body in bodies}
    assert sent == {(1024, False, "Be brief.")}
    config = load_config(folder / "rows.yaml")
    assert config.tasks[0].scorer.kind == "numeric"
    in_process(*line, "-o", "goal=no-such-goal", cwd=folder, code=2)
    assert (folder / "rows.yaml").exists(), "it is the config of a run"
    done = in_process(*line[:9], *line[11:], cwd=folder, code=2)  # without the column of the target
    assert "--field target=COLUMN" in done.err


def test_a_provider_is_a_prefix_where_no_address_is_given(folder, hosted, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    done = in_process("run", "--model", "openai/gpt-x", *OWN_COLUMNS, cwd=folder, code=2)
    assert "OPENAI_API_KEY" in done.err
    monkeypatch.setenv("OPENAI_API_KEY", "sk-any-of-openai")
    line = ("init", "rows.yaml", "--model", "openai/gpt-x", *OWN_COLUMNS, "--margin", "0.1")
    in_process(*line, cwd=folder, code=0)
    (model,) = load_config(folder / "rows.yaml").models
    assert (model.model_id, model.addresses) == ("gpt-x", ("https://api.openai.com/v1",))
    assert model.sampling.as_sent() == {"temperature": 0.7, "max_completion_tokens": 4096}
    done = in_process("run", "--model", "opnai/gpt-x", *OWN_COLUMNS, cwd=folder, code=2)
    assert "openrouter" in done.err


@pytest.mark.parametrize(
    ("more", "code"),
    [
        (("--api-key-env", "NO_KEY_HERE"), 2),
        (("-o", "goal=no-such-goal"), 2),
        (("-o", "models[a].endpoints=[http://127.0.0.1:9/v1]"), 4),
    ],
)
def test_a_line_that_asks_nothing_leaves_no_config(more, code, folder, hosted, monkeypatch):
    monkeypatch.delenv("NO_KEY_HERE", raising=False)
    line = ("run", "--model", f"{hosted[0]}#a", *OWN_COLUMNS, *more)
    in_process(*line, cwd=folder, code=code)
    assert not [*folder.glob("*.yaml")]
    (folder / "rows.yaml").write_text("of the user", "utf-8")
    in_process(*line, cwd=folder, code=code)
    assert [(file.name, file.read_text("utf-8")) for file in folder.glob("*.yaml")] == [
        ("rows.yaml", "of the user")
    ]


def test_init_survives_a_server_that_wants_a_key(folder, hosted):
    url, _ = hosted
    line = ("init", "first.yaml", "--endpoint", url, *OWN_COLUMNS, "--margin", "0.1", "--trials", "99")
    done = in_process(*line, cwd=folder, code=4)
    assert "--api-key-env" in done.err
    named = ("--model", "a", "--model", "b")
    assert "--api-key-env" in in_process(*line, *named, cwd=folder, code=0).err
    in_process(*line, "--api-key-env", "KEY_OF_HOST", "--force", cwd=folder, code=0)
    models = load_config(folder / "first.yaml").models
    assert [(one.api_key_env, one.sampling.max_tokens) for one in models] == [("KEY_OF_HOST", 1024)] * 2


@pytest.mark.slow
def test_init_asks_for_the_variable_of_the_key_and_for_columns(folder, hosted, monkeypatch):
    url, _ = hosted
    line = ("init", "first.yaml", "--endpoint", url, *OWN_COLUMNS[:2], "--margin", "0.1", "--trials", "9")
    monkeypatch.setenv("HOST", "sk-of-the-host-1")
    answers = [
        ("Environment variable", "HOST"),
        ("Column of the input", "frage"),
        ("Column of the target", "loesung"),
    ]
    code, screen = answered([str(COMMAND), *line], answers, folder)
    assert code == 0, screen
    assert load_config(folder / "first.yaml").models[0].api_key_env == "HOST"


@pytest.mark.usefixtures("hosted")
def test_init_takes_the_models_that_are_named_if_a_server_lists_none(folder):
    class Handler(Replies):
        def do_GET(self) -> None:
            self.reply({"object": "list", "data": []})

    with serving(Handler) as url:
        line = ("init", "first.yaml", *OWN_COLUMNS, "--endpoint", f"{url}/v1", "--margin", "0.1")
        assert "--model NAME" in in_process(*line, cwd=folder, code=4).err
        in_process(*line, "--model", "a", "--model", "b", cwd=folder, code=0)
    assert [one.model_id for one in load_config(folder / "first.yaml").models] == ["a", "b"]


def test_init_takes_models_by_provider_and_address_as_run_does(folder, hosted, monkeypatch):
    url, _ = hosted
    monkeypatch.setenv("OPENAI_API_KEY", "sk-any-of-openai")
    line = ("init", "first.yaml", *OWN_COLUMNS, "--margin", "0.1", "--trials", "9")
    named = ("--model", "openai/gpt-x", "--model", f"{url}#a", "--api-key-env", "KEY_OF_HOST")
    in_process(*line, *named, cwd=folder, code=0)
    models = load_config(folder / "first.yaml").models
    assert [(one.model_id, one.api_key_env, one.addresses) for one in models] == [
        ("gpt-x", "OPENAI_API_KEY", ("https://api.openai.com/v1",)),
        ("a", "KEY_OF_HOST", (url,)),
    ]


def test_init_measures_one_model_alone(folder, hosted):
    url, _ = hosted
    line = ("init", "first.yaml", *OWN_COLUMNS, "--model", f"{url}#a", "--margin", "0.1")
    in_process(*line, "--api-key-env", "KEY_OF_HOST", cwd=folder, code=0)
    config = load_config(folder / "first.yaml")
    assert (config.goal.kind, config.goal.width, config.stopping.equivalence) == ("width", 0.2, None)
    assert 50 < config.budget.trials < 400, "40 questions, a score of 0.5"
    text = (folder / "first.yaml").read_text("utf-8")
    assert "threshold=0.8" in text
    assert text.startswith("# yaml-language-server")


def test_a_key_in_the_place_of_its_variable_is_not_shown(folder):
    key = "sk-proj-abcdefghijklmnop1234"
    for command in (("run",), ("init", "first.yaml")):
        line = (*command, *OWN_COLUMNS, "--model", "http://localhost:9/v1#a", "--api-key-env", key)
        done = in_process(*line, cwd=folder, code=2)
        assert key not in done.err
        assert "looks like a key" in done.err


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        (("--model", "http://localhost:9/v1", *OWN_COLUMNS), "http://localhost:9/v1#NAME"),
        (
            ("--model", "openai/x", "--task", "sums.jsonl", "--field", "answer=target"),
            "--field target=answer",
        ),
        (
            ("--model", "openai/x", *OWN_COLUMNS[:2], "--field", "inptu=frage", *OWN_COLUMNS[4:]),
            "--field input=COLUMN; did you mean 'input'?",
        ),
    ],
)
def test_a_model_or_a_column_that_is_written_wrong_is_shown_right(given, advice, folder):
    (folder / "rows.jsonl").write_text('{"frage": "1 + 1", "loesung": "2"}\n', "utf-8")
    assert advice in in_process("run", *given, cwd=folder, code=2).err
