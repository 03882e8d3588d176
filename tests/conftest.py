"""Settings of the whole suite."""

import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

for _shared in ("acceptance", "unit"):  # the command as a person uses it, example builders
    sys.path.insert(0, str(Path(__file__).parent / _shared))

# Each process of the suite has a core at most: further threads of NumPy's, which nothing above imports, would
# spin and wait for one another.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A shell that runs the suite in the background has Ctrl-C ignored, and all that it starts would inherit that.
for _ignored, _usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_ignored) is signal.SIG_IGN:
        signal.signal(_ignored, _usual)

# The same examples every time, however slow the machine is; HYPOTHESIS_PROFILE=search draws others, and more.
settings.register_profile(
    "suite", deadline=None, derandomize=True, max_examples=25, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("search", settings.get_profile("suite"), derandomize=False, max_examples=300)
_PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "suite")
settings.load_profile(_PROFILE)
if _PROFILE == "suite" and hasattr(providers, "_get_local_constants"):
    # Hypothesis also draws constants that it finds in those of our modules that are loaded: which these are
    # depends on the tests that the same process has run before.
    providers._get_local_constants = lambda: providers._local_constants


def pytest_configure(config: pytest.Config) -> None:
    """Keep skips and reruns where CI asks for it; the process that starts the workers hears of all."""
    if "CI_LEDGER" in os.environ and not hasattr(config, "workerinput"):
        sys.path.insert(0, str(Path(__file__).parent))
        from ledger import Ledger

        config.pluginmanager.register(Ledger(Path(os.environ["CI_LEDGER"])))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect no garbage while thousands of tests are collected, which all stay to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """Leave no folder of a test, or of what it shares with others, where later tests import modules from."""
    path = list(sys.path)
    try:
        return (yield)
    finally:
        sys.path[:] = path


_WITH_PROCESSES = ("acceptance", "chaos", "integration", "interop")
"""Folders of tests with real servers, browsers and processes."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the longest file first, and mark what opens a browser.

    Tests with real processes may fail once in CI, which prints them as RERUN.
    """
    # Where it came last it would keep one process busy when the others have ended.
    items.sort(key=lambda item: item.path.name != "test_recorded_courses.py")
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)
    if "RERUN_ONCE" in os.environ and config.pluginmanager.hasplugin("rerunfailures"):
        for item in items:
            folder = item.path.relative_to(Path(__file__).parent).parts[0]
            if folder in _WITH_PROCESSES or item.get_closest_marker("ray"):
                item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return what the run of ``quickstart(base_url=...)`` against ``mimic_spec()`` reaches."""
    from command_line import Reached, mimic_spec, quickstart, ran, write_config

    from adaptive_eval.mimic.process import MimicProcess

    folder = tmp_path_factory.mktemp("undisturbed")
    with MimicProcess(mimic_spec()) as mimic:
        ran(write_config(folder, quickstart(base_url=mimic.base_url)))
    return Reached.by(folder / "run")
