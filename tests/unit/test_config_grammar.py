"""What may be written in a config, beside it and in lists of servers, and what of it a run may change."""

import copy
import json
from pathlib import Path

import pytest
from config_texts import SECRET, WIDE, with_changes
from hypothesis import given
from hypothesis import strategies as st
from test_config_load import said

from adaptive_eval.build.server_discovery import read_addresses
from adaptive_eval.config import load_config, parse_config
from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.config.run_config import difference
from adaptive_eval.options.section import check_url, parse_count, parse_seconds
from scorio.categorical import get_schema, schema_names

# The wider grammar: what may be written in each place.


DATA = Path(__file__).parents[1] / "data"
CHANGES, TEXTS = (
    json.loads((DATA / name).read_text("utf-8")) for name in ("config_changes.json", "read_texts.json")
)


@pytest.mark.parametrize("changes", CHANGES["written"])
def test_what_may_be_written(changes):
    parse_config(with_changes(changes, WIDE))


def test_models_that_find_the_same_servers_share_their_limits():
    """A server has one limit, whoever finds it; `patience` is each model's own."""
    found = {"discover": "file", "path": "servers.txt", "each": {"concurrency": 4}}
    changes = {"models.0.endpoints": {**found, "patience": 5}, "models.1.endpoints": found}
    one, two, _ = (model.discovery for model in parse_config(with_changes(changes, WIDE)).models)
    assert one.source == two.source
    assert one.patience != two.patience


# Counts and durations as people write them.


@pytest.mark.parametrize(("text", "value"), TEXTS["counts"])
def test_counts(text, value):
    assert parse_count(text) == value


@pytest.mark.parametrize(("text", "seconds"), TEXTS["durations"])
def test_durations(text, seconds):
    assert parse_seconds(text) == seconds


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


TEXT = (DATA / "overridden.yaml").read_text("utf-8")


@pytest.mark.parametrize(("override", "place", "value"), CHANGES["overrides"])
def test_an_override_changes_one_setting_and_goes_into_the_stored_text(override, place, value):
    config = parse_config(TEXT, overrides=[override])
    again = parse_config(config.text)
    assert again.hash() == config.hash()
    assert said(again, place) == said(config, place) == value


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


# What a trial of a run is, what may change between two sittings, and how a difference is told.


BASE = CHANGES["base"]


def changed(place, value):
    return parse_config(with_changes({place: value}, BASE))


def told(config):
    return difference(config_from_data(BASE).trial_identity(), config.trial_identity())


@pytest.mark.parametrize(("place", "value", "words"), CHANGES["identity"])
def test_only_a_change_of_what_a_trial_is_is_told(place, value, words):
    assert told(changed(place, value)) == words


def test_models_and_tasks_that_come_or_go_are_told():
    more = copy.deepcopy(BASE)
    more["models"].append({"name": "c", "endpoints": ["http://c/v1"]})
    more["tasks"].append({"name": "u", "dataset": "u.jsonl", "scorer": "exact"})
    before = config_from_data(BASE).trial_identity()
    now = config_from_data(more).trial_identity()
    assert difference(before, now) == ["task 'u' is new", "model 'c' is new"]
    assert difference(now, before) == ["task 'u' is gone", "model 'c' is gone"]
    renamed = {**BASE, "models": [{**BASE["models"][0], "name": "z"}, BASE["models"][1]]}
    assert difference(before, config_from_data(renamed).trial_identity()) == [
        "model 'a' is gone",
        "model 'z' is new",
    ]


def test_the_dataset_is_part_of_it_once_it_is_loaded():
    before, now = config_from_data(BASE).trial_identity(), config_from_data(BASE).trial_identity()
    before["tasks"]["t"]["dataset"], now["tasks"]["t"]["dataset"] = "abc", "def"
    changed = ["task 't': the questions or right answers of its dataset have changed"]
    assert difference(before, now) == changed
    now["tasks"]["t"]["system"] = "Be brief."
    assert difference(before, now) == ["task 't': system was 'Think.' and is now 'Be brief.'"]


def test_the_hash_is_over_every_setting_and_nothing_else():
    base = config_from_data(BASE).hash()
    assert config_from_data(dict(reversed(BASE.items()))).hash() == base
    assert changed("goal", {"kind": "ranking"}).hash() == base
    assert changed("tasks.0.scorer", {"kind": "numeric", "tolerance": 0.0}).hash() == base
    others = [
        changed("name", "x"),
        changed("models.0.concurrency", 3),
        changed("stopping", {"equivalence": 0.1}),
        changed("mimic.latency", {"median": 1}),
    ]
    assert len({base, *(config.hash() for config in others)}) == 5


# Addresses as people and jobs write them.


TEXTS = (Path(__file__).parents[1] / "data" / "read_texts.json").read_text("utf-8")


@pytest.mark.parametrize(("line", "url"), json.loads(TEXTS)["servers"])
def test_what_a_line_may_hold(line, url):
    assert read_addresses(line) == (url,)


@given(st.text())
def test_any_text_is_a_list_of_addresses_or_is_refused(text):
    try:
        found = read_addresses(text)
    except ValueError:
        return
    assert len(set(found)) == len(found)
    assert all(check_url(url) == url for url in found)
