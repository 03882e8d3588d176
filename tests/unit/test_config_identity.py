"""What a trial of a run is, what may change between two sittings, and how a difference is told."""

import copy
import json
from pathlib import Path

import pytest
from config_texts import with_changes

from adaptive_eval.config import parse_config
from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.config.run_config import difference

CHANGES = json.loads((Path(__file__).parents[1] / "data" / "config_changes.json").read_text("utf-8"))
BASE = {
    "name": "demo",
    "seed": 1,
    "models": [
        {
            "name": "a",
            "endpoints": ["http://a/v1"],
            "sampling": {"temperature": 0.6, "max_tokens": 100, "stop": ["x"]},
            "extra_body": {"top_k": 20},
        },
        {"name": "coin", "endpoints": ["mimic"], "sampling": {"max_tokens": 100}},
    ],
    "tasks": [
        {
            "name": "t",
            "dataset": "t.jsonl",
            "prompt": "{input}!",
            "system": "Think.",
            "scorer": "numeric",
            "limit": 5,
        }
    ],
    "mimic": {"models": {"coin": {"mean": 0.5}}, "seed": 3},
}


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
