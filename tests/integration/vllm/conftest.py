"""Real vLLM servers, one for each tiny model, for all tests of the session."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from vllm_install import MODELS, THINKER, CannotInstall, Installation, installed
from vllm_server import VllmServer

HERE = Path(__file__).parent
INSTALL_SECONDS = 1800.0
"""Time for the test that comes first, and so waits for the installation."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is here, whichever fixtures it uses."""
    for item in items:
        if item.path.parent == HERE:
            item.add_marker(pytest.mark.vllm)
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.timeout(INSTALL_SECONDS))


@pytest.fixture(scope="session")
def installation() -> Iterator[Installation]:
    with ExitStack() as stack:
        try:
            yield stack.enter_context(installed())
        except CannotInstall as reason:
            pytest.skip(f"there can be no vLLM here: {reason}")


@pytest.fixture(scope="session")
def servers(
    installation: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, VllmServer]]:
    """The servers by the name of their model; started side by side."""
    logs = tmp_path_factory.mktemp("vllm-logs")
    with ExitStack() as stack:
        servers = {}
        for model in MODELS:
            servers[model] = VllmServer(installation, model, logs / f"{model}.log")
            stack.callback(servers[model].stop)
        for server in servers.values():
            server.wait_until_ready()
        yield servers


@pytest.fixture(scope="session")
def crowded(installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmServer]:
    """A server with a small cache and a reasoning parser, which answers four at a time."""
    options = {
        "--num-gpu-blocks-override": "96",
        "--max-model-len": "1024",
        "--max-num-seqs": "4",
        "--reasoning-parser": "deepseek_r1",
        # By default a structured output constrains only what follows the reasoning.
        "--structured-outputs-config": json.dumps({"enable_in_reasoning": True}),
    }
    server = VllmServer(installation, THINKER, tmp_path_factory.mktemp("crowded") / "log", options)
    try:
        server.wait_until_ready()
        yield server
    finally:
        server.stop()
