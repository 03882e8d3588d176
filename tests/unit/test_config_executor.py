"""The section ``executor``: where a cluster is, and that nothing written there is passed over."""

from __future__ import annotations

import pytest
from config_texts import plain

from adaptive_eval.config import parse_config
from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.config.run_config import difference


def test_it_is_this_process_unless_something_else_is_said() -> None:
    assert config_from_data(plain()).executor.kind == "local"


@pytest.mark.parametrize("address", ["auto", "local", "head:6379", "ray://head.lab:10001"])
def test_addresses_of_clusters(address: str) -> None:
    config = config_from_data(plain(executor={"kind": "ray", "address": address}))
    assert config.executor.address == address


def test_it_is_no_part_of_what_a_trial_is() -> None:
    """A run on a cluster goes on in one process, and the other way round."""
    spread = config_from_data(plain(executor={"kind": "ray", "address": "auto", "actors": 16}))
    alone = parse_config(spread.text, overrides=["executor.kind=local"])
    assert alone.executor.kind == "local"
    assert difference(spread.trial_identity(), alone.trial_identity()) == []
