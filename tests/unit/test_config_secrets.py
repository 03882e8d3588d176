"""What is taken for no key, and that none is stored; ``test_config_mistakes`` has those that are refused."""

from __future__ import annotations

import pytest
from config_texts import SECRET

from adaptive_eval.config import load_config, parse_config

CONFIG = """\
name: demo
models:
  - name: a
    endpoints: [http://localhost:8000/v1]
    {model}
  - {{name: b, endpoints: [http://localhost:8001/v1]}}
tasks:
  - {{name: t, dataset: t.jsonl, scorer: exact{task}}}
"""


@pytest.mark.parametrize(
    "line",
    [
        "model: org/risk-assessment-model-2025-01-01",
        "api_key_env: OPENAI_API_KEY_2025_PRODUCTION",
        "headers: {HTTP-Referer: https://example.org/page, X-Title: demo, X-Token-Budget: '5'}",
        "sampling: {max_tokens: 5}",
        "extra_body: {chat_template_kwargs: {enable_thinking: false}, min_tokens: 4, stop_token_ids: [1, 2]}",
        "# mask-detection-benchmark, see https://example.org/?q=token",
    ],
)
def test_ordinary_values_are_not_taken_for_keys(line):
    assert parse_config(CONFIG.format(model=line, task="")).models[0].name == "a"


def test_prose_about_keys_is_not_taken_for_one():
    task = ", system: 'You are the bearer of good news. The key is to think.', fields: {key: token}"
    assert parse_config(CONFIG.format(model="", task=task)).tasks[0].fields == {"key": "token"}


def test_the_stored_text_of_a_good_config_has_no_key(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", f"sk-{SECRET}")
    (tmp_path / "t.jsonl").touch()
    file = tmp_path / "c.yaml"
    file.write_text(CONFIG.format(model="api_key_env: MY_KEY", task=""))
    loaded = load_config(file, ["seed=5"])
    assert SECRET not in loaded.text + repr(loaded) + loaded.hash() + str(loaded.trial_identity())
