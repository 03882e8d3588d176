"""`validate` says what servers offer; with --probe, which parameters they ignore."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from answering_server import two_models
from command_line import in_process, served, write_config
from whole_mimic import WholeMimic

from adaptive_eval.mimic.mimic_spec import MimicModelSpec, MimicSpec, TokenSpec

CONFIG = """
name: asked-first
models:
  - {{name: good, endpoints: ["{url}"], sampling: {{temperature: 0.7, max_tokens: 300}}}}
  - {{name: deaf, endpoints: ["{url}"], api: completions, sampling: {{max_tokens: 4096}}}}
tasks:
  - {{name: sums, dataset: sums.jsonl, scorer: numeric}}
"""


@pytest.fixture(scope="module")
def mimic() -> Iterator[WholeMimic]:
    tokens = TokenSpec(completion_median=5_000, completion_sigma=2.0)
    good = MimicModelSpec(name="good", mean=0.5, tokens=tokens)
    deaf = MimicModelSpec(name="deaf", mean=0.5, tokens=tokens, ignores=("n", "stop"), context_length=4096)
    with WholeMimic(MimicSpec(models=(good, deaf), seed=3)) as process:
        yield process


@pytest.fixture
def config(tmp_path: Path, mimic: WholeMimic) -> Path:
    (tmp_path / "sums.jsonl").write_text(
        '{"input": "1 + 1", "target": "2"}\n{"input": "1 + 2", "target": "3"}\n'
    )
    file = tmp_path / "config.yaml"
    file.write_text(CONFIG.format(url=mimic.base_url))
    return file


def test_what_is_found_is_json_with_codes_on_request(config):
    found = [json.loads(in_process("validate", config, "--json", *more, cwd=config.parent).out) for more in (
        (), ("-o", "stopping.rule=anytme", "-o", "goal=baseline=nobody"), ("-o", "models[good].endpoints=[http://127.0.0.1:9/v1]")
    )]  # fmt: skip
    assert [one["valid"] for one in found] == [True, False, False]
    assert {one["code"] for one in found[0]["warnings"]} == {"warning/unbounded"}
    assert any(line.startswith("endpoint   good") for line in found[0]["lines"])
    assert {(one["path"], one["code"]) for one in found[1]["problems"]} == {
        ("stopping.rule", "config/not-one-of"),
        ("goal.model", "config/unknown-name"),
    }
    assert [one["code"] for one in found[2]["problems"]] == ["run/no-endpoint"]


def test_what_servers_offer_is_said_and_costs_nothing(config, mimic):
    before = served(mimic)["requests"]
    done = in_process("validate", config, cwd=config.parent, code=0)
    url = mimic.base_url
    assert f"good: {url} answers; context 131,072 tokens; 2 models" in done.out
    assert f"deaf: {url} answers; context 4,096 tokens; 2 models" in done.out
    assert "warning    deaf: max_tokens is 4,096 and the context 4,096 tokens" in done.out
    assert "warning    good" not in done.out
    assert served(mimic)["requests"] == before


def test_what_servers_ignore_is_said_on_request_with_its_cost(config):
    done = in_process("validate", config, "--probe", cwd=config.parent, code=0)
    lines = [line for line in done.out.splitlines() if line.startswith("probe")]
    assert lines[0].startswith("probe      good: 7 requests took ")
    assert lines[0].endswith("tokens; honoured: max_tokens, stop, logprobs, seed, n")
    assert [line.split(":")[1].strip() for line in lines if " deaf: " in line][1:] == [
        "stop ignored",
        "n ignored",
    ]


def test_a_server_without_log_probabilities_is_refused_where_they_are_the_score(tmp_path):
    (tmp_path / "sums.jsonl").write_text('{"input": "1 + 1", "target": "A", "choices": ["2", "3"]}\n')
    sampling = {"max_tokens": 1, "temperature": 0, "logprobs": True, "top_logprobs": 20}
    task = {"name": "sums", "dataset": "sums.jsonl", "prompt": "{input}\n{choices}"}
    models = (
        MimicModelSpec(name="good", mean=0.5),
        MimicModelSpec(name="bad", mean=0.5, ignores=("logprobs",)),
    )
    with WholeMimic(MimicSpec(models=models)) as server:
        data = two_models(tmp_path, server.base_url, tasks=[{**task, "scorer": "choice_probability"}])
        data["models"] = [{**model, "sampling": sampling} for model in data["models"]]
        path = write_config(tmp_path, data)
        in_process("validate", path, cwd=tmp_path, code=0)
        done = in_process("validate", path, "--probe", cwd=tmp_path, code=4)
        data["tasks"][0]["scorer"] = "choice"
        in_process("validate", write_config(tmp_path, data), "--probe", cwd=tmp_path, code=0)
    assert "bad: the server gives no log-probabilities" in done.err
    assert "good: the server" not in done.err


def test_a_wrong_path_is_noticed_where_the_model_is_found_under_another(config, mimic):
    text = config.read_text()
    config.write_text(text.replace("/v1", "/v2"))
    before = served(mimic)["models"]
    done = in_process("validate", config, cwd=config.parent, code=4)
    assert f"{mimic.base_url} serves 'good': is that the address?" in done.said
    done = in_process("run", config, cwd=config.parent, code=4)
    assert "is that the address?" in done.said
    config.write_text(text.replace(mimic.base_url, "http://127.0.0.1:9/v1", 1))  # of one model alone
    done = in_process("run", config, "-o", "retry.max_seconds=1", cwd=config.parent, code=4)
    assert "is the server running?" in done.said
    assert served(mimic)["models"] == before


def test_every_key_that_is_missing_is_named_with_its_model(config, monkeypatch):
    for name in ("KEY_ONE", "KEY_TWO"):
        monkeypatch.delenv(name, raising=False)
    text = config.read_text().replace("sampling", "api_key_env: KEY_ONE, sampling", 1)
    config.write_text(text.replace("api: c", "api_key_env: KEY_TWO, api: c"))
    done = in_process("validate", config, cwd=config.parent, code=2)
    assert re.findall(r"(\w+): api_key_env: .* (KEY_\w+)", done.err) == [
        ("good", "KEY_ONE"),
        ("deaf", "KEY_TWO"),
    ]
    assert "[endpoint/setup]" in done.err


def test_a_refused_key_is_asked_about(config, monkeypatch):
    monkeypatch.setenv("KEY_ONE", "sk-wrong")
    spec = MimicSpec(
        models=(MimicModelSpec(name="good", mean=0.5), MimicModelSpec(name="deaf", mean=0.5)),
        api_key="sk-right",
    )
    with WholeMimic(spec) as locked:
        text = CONFIG.format(url=locked.base_url).replace("sampling", "api_key_env: KEY_ONE, sampling", 1)
        config.write_text(text.replace("api: completions", "headers: {X-Team: a}", 1))
        done = in_process("validate", config, cwd=config.parent, code=4)
        said = f"{locked.base_url}: HTTP 401 Unauthorized: Incorrect API key provided"
        assert f"  good: {said}; is the key in KEY_ONE the right one?\n" in done.err
        assert f"  deaf: {said}; are the headers right?\n" in done.err
        config.write_text(CONFIG.format(url=locked.base_url))
        done = in_process("validate", config, cwd=config.parent)
        hint = "no key was sent: name the variable that holds it in api_key_env, or with --api-key-env"
        assert f"  good: {said}; {hint}\n" in done.err
