"""From a config to sources and clients: who shares what, and what real servers say to being found."""

import asyncio

import pytest

from adaptive_eval.build.server_discovery import Finder
from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.engine.limits import AdaptiveConcurrency
from adaptive_eval.errors import PermanentEndpointError, TransientEndpointError, UsageError
from adaptive_eval.mimic.mimic_spec import MimicSpec, ModelSpec
from adaptive_eval.mimic.process import MimicProcess

FILE = {"discover": "file", "path": "servers/*.txt"}


def config(*sections, **model):
    """Return a config with a model for each of the sections that say where its servers are."""
    named = zip("abc", sections, strict=False)
    models = [{"name": name, "endpoints": section, **model} for name, section in named]
    task = {"name": "t", "dataset": "t.jsonl", "scorer": "exact"}
    return config_from_data({"name": "demo", "models": models, "tasks": [task]})


def test_models_that_name_the_same_source_share_it():
    finder = Finder(config(FILE, {**FILE, "patience": 5}, {**FILE, "every": 1}))
    one, two, other = (finder.discoveries[name] for name in "abc")
    assert one.source is two.source
    assert one.source is not other.source
    assert (one.patience, two.patience) == (600.0, 5.0)


def test_each_server_has_limits_of_its_own():
    each = {"concurrency": "auto", "rate_limit": {"requests_per_minute": 60}}
    finder = Finder(config({**FILE, "each": each}, {"discover": "file", "path": "others.txt"}))
    limits = finder.discoveries["a"].limits
    one, two = limits().concurrency, limits().concurrency
    assert isinstance(one, AdaptiveConcurrency)
    assert one is not two
    assert limits().rate.requests_per_minute == 60
    assert finder.discoveries["b"].limits().concurrency is None


@pytest.mark.parametrize(
    "model", [{"api_key_env": "NO_SUCH_KEY"}, {"headers": {"X-Team": {"env": "NO_SUCH_KEY"}}}]
)
def test_a_key_that_is_not_set_is_told_before_any_server_is_found(monkeypatch, model):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with pytest.raises(UsageError, match="NO_SUCH_KEY is not set"):
        Finder(config(FILE, FILE, **model))


def test_a_server_is_let_in_once_it_serves_the_model():
    async def main():
        async with Finder(config(FILE, FILE, FILE)) as finder:
            there, of_another, too_late = (finder.discoveries[name].connect for name in "abc")
            with MimicProcess(MimicSpec(models=(ModelSpec(name="a", mean=0.5),))) as process:
                url = process.base_url
                client = await there(url)
                assert (client.url, client.model) == (url, "a")
                assert await there(url) is client
                with pytest.raises(PermanentEndpointError, match="does not serve 'b'"):
                    await of_another(url)
            with pytest.raises(TransientEndpointError, match="is the server running"):
                await too_late(url)

    asyncio.run(main())
