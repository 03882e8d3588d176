"""What may be written in a config, and in settings given beside it."""

import json
from pathlib import Path

import pytest
from config_texts import SECRET, WIDE, plain, with_changes

from adaptive_eval.config import load_config, parse_config
from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.config.run_config import difference
from adaptive_eval.options.section import parse_count, parse_seconds
from scorio.categorical import get_schema, schema_names

# The wider grammar: what may be written in each place.


CHANGES = json.loads((Path(__file__).parents[1] / "data" / "config_changes.json").read_text("utf-8"))


@pytest.mark.parametrize(("place", "value"), CHANGES["written"])
def test_what_may_be_written(place, value):
    parse_config(with_changes({place: value}, WIDE))


def test_models_that_find_the_same_servers_share_their_limits():
    """A server has one limit, whoever finds it; `patience` is each model's own."""
    found = {"discover": "file", "path": "servers.txt", "each": {"concurrency": 4}}
    changes = {"models.0.endpoints": {**found, "patience": 5}, "models.1.endpoints": found}
    one, two, _ = (model.discovery for model in parse_config(with_changes(changes, WIDE)).models)
    assert one.source == two.source
    assert one.patience != two.patience


def test_a_server_that_may_be_found_may_have_limits():
    servers = [{"url": "http://gpu7:8000/v1", "concurrency": 8}]
    changes = {"models.0.endpoints": {"discover": "file", "path": "servers.txt"}, "servers": servers}
    assert parse_config(with_changes(changes, WIDE)).servers[0].concurrency == 8


# Counts and durations as people write them.


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (1, 1), (20000, 20000), ("20000", 20000), ("20_000", 20000), ("2k", 2000), ("2K", 2000),
        ("1.5k", 1500), ("50M", 50_000_000), ("0.5M", 500_000), ("3B", 3 * 10**9), ("3G", 3 * 10**9),
        (" 2 k ", 2000), (1e5, 100_000),
    ],
)  # fmt: skip
def test_counts(text, value):
    assert parse_count(text) == value


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (2.5, 2.5),
        ("90s", 90), ("30m", 1800), ("30min", 1800), ("2h", 7200), ("1h30m", 5400), ("1h 30m 5s", 5405),
        ("1d", 86400), ("1.5h", 5400), ("0.5s", 0.5), (" 2 h ", 7200),
    ],
)  # fmt: skip
def test_durations(text, seconds):
    assert parse_seconds(text) == seconds


# Results of earlier runs in a config: which models may be named, and which not.


REFERENCES = [{"run": "runs/previous", "models": ["old", "older"]}]


@pytest.mark.parametrize(
    "goal",
    [
        "ranking",
        {"kind": "baseline", "model": "old"},
        {"kind": "pairs", "pairs": [["new", "older"]]},
        {"kind": "top-k", "k": 2},
    ],
)
def test_one_model_is_enough_beside_references_and_goals_may_name_them(goal):
    config = config_from_data(plain("new", goal=goal, references=REFERENCES))
    assert [one.models for one in config.references] == [("old", "older")]


def test_neither_references_nor_prior_change_what_a_trial_is():
    bare = config_from_data(plain("new", "newer"))
    for more in ({"references": REFERENCES}, {"prior": {"from": "runs/previous"}}):
        assert config_from_data(plain("new", "newer", **more)).trial_identity() == bare.trial_identity()


# The section ``executor``: where a cluster is, and that nothing written there is passed over.


def test_it_is_no_part_of_what_a_trial_is():
    """A run on a cluster goes on in one process, and the other way round."""
    spread = config_from_data(plain(executor={"kind": "ray", "address": "auto", "actors": 16}))
    alone = parse_config(spread.text, overrides=["executor.kind=local"])
    assert alone.executor.kind == "local"
    assert difference(spread.trial_identity(), alone.trial_identity()) == []


# The rubric section: every schema can be written.


OWN = {
    "name": "mine",
    "categories": [{"name": "bad", "when": "wrong"}, {"name": "good", "when": "otherwise"}],
    "weights": [0, 1],
}
VERIFIED = {name for name in schema_names() if {"verifier_a", "verifier_b"} & get_schema(name).signals}


def task_with(rubric):
    return parse_config(with_changes({"tasks.0.rubric": rubric}, WIDE)).tasks[0]


@pytest.mark.parametrize("name", sorted(set(schema_names()) - VERIFIED))
def test_every_schema_that_needs_no_verifier_can_be_named(name):
    rubric = {"schema": name, "pilot": 2} if get_schema(name).threshold_rules else name
    section = task_with(rubric).rubric
    assert section.label == name
    assert len(section.category_weights) == len(get_schema(name).categories)


def test_an_own_schema_is_read_and_decides_the_weights():
    section = task_with({"schema": OWN}).rubric
    assert (section.label, section.category_weights) == ("mine", (0.0, 1.0))


def test_what_categories_are_is_part_of_the_scoring_but_not_what_they_are_worth():
    task = task_with({"schema": "format-aware", "weights": [0, 0, 1, 1, 2]})
    assert task.scoring_identity() == task_with("format-aware").scoring_identity()
    assert task.scoring_identity() != task_with("strict-compliance").scoring_identity()


# What is taken for no key, and that none is stored; ``test_config_mistakes`` has those that are refused.


def test_the_stored_text_of_a_good_config_has_no_key(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", f"sk-{SECRET}")
    (tmp_path / "t.jsonl").touch()
    file = tmp_path / "c.yaml"
    text = with_changes({"models.0.api_key_env": "MY_KEY"}, WIDE)
    file.write_text(f"# mask-detection-benchmark, see https://example.org/?q=token\n{text}")
    loaded = load_config(file, ["seed=5"])
    assert SECRET not in loaded.text + repr(loaded) + loaded.hash() + str(loaded.trial_identity())


# Settings given beside the file, and the text that is stored with them.


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
