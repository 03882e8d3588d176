"""The wider grammar: what may be written in each place."""

from __future__ import annotations

import pytest
from config_texts import WIDE, with_changes

from adaptive_eval.config import parse_config


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("goal", "ranking"),
        ("goal", {"kind": "ranking"}),
        ("stopping.rule", "zscore"),
        ("stopping.target", "population"),
        ("stopping.family", "pair"),
        ("allocation.models", "uniform"),
        ("tasks.0.rubric.schema", "binary"),
        ("tasks.0.dataset", "questions.csv"),
        ("models.0.api", "chat"),
        ("models.0.rate_limit", {"requests_per_minute": 600}),
        ("servers", [{"url": "http://a/v1", "concurrency": 8, "rate_limit": {"tokens_per_minute": "2M"}}]),
        ("models.0.endpoints", ["http://x/v1", "http://y/v1"]),
        ("models.0.endpoints", {"discover": "file", "path": "servers/*.txt", "every": 5, "patience": 0}),
        (
            "models.0.endpoints",
            {"discover": "command", "run": ["squeue", "--me"], "timeout": 5, "each": {"concurrency": "auto"}},
        ),
        (
            "models.0",
            {"name": "a", "endpoints": ["http://a/v1"], "api": "completions", "sampling": {"max_tokens": 5}},
        ),
        ("budget", {"usd": None}),
        ("prior", {"from": "runs/previous", "depth": 2, "transfer": True}),
        ("references", [{"run": "runs/previous", "models": ["old"]}]),
    ],
)
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
