"""Settings given beside the file, and the text that is stored with them."""

from __future__ import annotations

import pytest

from adaptive_eval.config import parse_config

TEXT = """\
# The demo.
name: demo      # its name
models:
  - name: qwen.2-4b
    endpoints: [http://localhost:8000/v1]
    sampling: &s {temperature: 0.6}
  - name: b
    endpoints: [http://localhost:8001/v1]
    sampling: *s
tasks:
  - {name: t, dataset: t.jsonl, prompt: "{input}\\n", scorer: exact}
"""


@pytest.mark.parametrize(
    ("override", "value"),
    [
        ("seed=7", lambda c: c.seed == 7),
        ("budget.trials=2k", lambda c: c.budget.trials == 2000),
        ("budget={trials: 5, wall_clock: 1h}", lambda c: c.budget.wall_clock == 3600),
        ("models[1].concurrency=4", lambda c: c.models[1].concurrency == 4),
        ("models[qwen.2-4b].concurrency=4", lambda c: c.models[0].concurrency == 4),
        ("models[b].sampling.max_tokens=9", lambda c: c.models[1].sampling.max_tokens == 9),
        ("tasks[t].prompt='{input}=?'", lambda c: c.tasks[0].prompt == "{input}=?"),
        ("stopping.equivalence=0.05", lambda c: c.stopping.equivalence == 0.05),
        (" goal = ranking", lambda c: c.goal.kind == "ranking"),
        ("models[b].timeout.total= 5", lambda c: c.models[1].timeout.total == 5),
    ],
)
def test_an_override_changes_one_setting_and_goes_into_the_stored_text(override, value):
    config = parse_config(TEXT, overrides=[override])
    assert value(config)
    again = parse_config(config.text)
    assert again.hash() == config.hash()
    assert value(again)


def test_the_stored_text_is_the_files_own_without_overrides():
    assert parse_config(TEXT).text == TEXT


def test_later_overrides_win_and_several_apply():
    config = parse_config(TEXT, overrides=["seed=1", "budget.trials=5", "seed=2", "budget.trials=6"])
    assert (config.seed, config.budget.trials) == (2, 6)
    assert parse_config(config.text).hash() == config.hash()


def test_a_shared_section_is_changed_for_the_model_named_only():
    config = parse_config(TEXT, overrides=["models[b].sampling.temperature=1"])
    assert [model.sampling.temperature for model in config.models] == [0.6, 1.0]
    again = parse_config(config.text)
    assert [model.sampling.temperature for model in again.models] == [0.6, 1.0]
