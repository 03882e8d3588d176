"""The wider grammar: what may be written in each place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from config_texts import WIDE, with_changes

from adaptive_eval.config import parse_config

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
