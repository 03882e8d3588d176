"""What a trial of a run is, what may change between two sittings, and how a difference is told."""

from __future__ import annotations

import copy

import pytest
from config_texts import with_changes

from adaptive_eval.config import parse_config
from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.config.run_config import difference

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


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ("seed", 2, "seed was 1 and is now 2"),
        ("models.0.model", "b", "model 'a': model was 'a' and is now 'b'"),
        ("models.0.sampling.temperature", 0.7, "model 'a': sampling.temperature was 0.6 and is now 0.7"),
        ("models.0.sampling.top_p", 0.9, "model 'a': sampling.top_p is new: 0.9"),
        ("models.0.sampling.stop", ["y"], "model 'a': sampling.stop was ['x'] and is now ['y']"),
        ("models.0.extra_body", {}, "model 'a': extra_body.top_k is gone: 20"),
        ("tasks.0.prompt", "{input}?", "task 't': prompt was '{input}!' and is now '{input}?'"),
        ("tasks.0.system", "Go.", "task 't': system was 'Think.' and is now 'Go.'"),
        ("tasks.0.limit", 6, "task 't': limit was 5 and is now 6"),
        ("tasks.0.shuffle", True, "task 't': shuffle was None and is now 1"),
        ("mimic.models.coin.mean", 0.6, "model 'coin': mimic.mean was 0.5 and is now 0.6"),
        ("mimic.seed", 4, "model 'coin': mimic.seed was 3 and is now 4"),
    ],
)
def test_a_change_of_what_a_trial_is_is_told_in_words(place, value, words):
    assert told(changed(place, value)) == [words]


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("name", "other"),
        ("models.0.endpoints", ["http://other/v1"]),
        ("models.0.endpoints", ["http://other/v1", "http://third/v1"]),
        ("models.0.endpoints", {"discover": "file", "path": "servers/*.txt"}),
        ("models.0.stream", True),
        ("servers", [{"url": "http://a/v1", "concurrency": 3}]),
        ("models.0.api_key_env", "KEY"),
        ("models.0.headers", {"X-A": "b"}),
        ("models.0.concurrency", 3),
        ("models.0.timeout", {"total": 5}),
        ("models.0.model", "a"),
        ("tasks.0.scorer", "exact"),
        ("tasks.0.rubric", {"weights": [0, 2]}),
        ("tasks.0.dataset", "moved.jsonl"),
        ("tasks.0.fields", {"input": "input"}),
        ("stopping", {"equivalence": 0.1}),
        ("allocation", {"models": "uniform"}),
        ("budget", {"trials": 5}),
        ("retry", {"attempts": 1}),
        ("mimic.latency", {"median": 1}),
        ("mimic.models.other", {"mean": 0.1}),
    ],
)
def test_what_is_decided_or_how_it_is_sent_may_change(place, value):
    assert told(changed(place, value)) == []


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
