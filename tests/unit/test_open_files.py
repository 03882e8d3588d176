"""The limit on open files: raised as far as it goes, and shared by the models where it is too low."""

import resource

import pytest
from config_texts import plain

from adaptive_eval.build.model_clients import concurrency_within, most_connections, shortage
from adaptive_eval.config.load_config import config_from_data


@pytest.fixture
def limit():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield lambda soft: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, before[1]))
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.fixture
def config(tmp_path):
    (tmp_path / "d.jsonl").write_text('{"input": "1", "target": "2"}\n')
    models = [
        {"name": name, "endpoints": ["http://127.0.0.1:9/v1"], "concurrency": concurrency}
        for name, concurrency in (("oak", 1500), ("elm", 500), ("ash", "auto"))
    ]
    return config_from_data(plain(models=models, task={"dataset": str(tmp_path / "d.jsonl")}))


def test_the_soft_limit_is_raised(limit):
    limit(128)
    assert most_connections() > 128
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 128


def test_a_limit_that_cannot_be_raised_is_shared_and_said(config):
    assert concurrency_within(config, 192) == {"oak": 144, "elm": 48}
    assert "192 requests be in flight, not the 2,000 " in (shortage(config, 192) or "")
    assert concurrency_within(config, 2000) == {"oak": 1500, "elm": 500}
    assert shortage(config, 2000) is None
