"""What the tests with real harnesses share: one server, and one set of logs of each harness."""

import os

import pytest
from harness_logs import MODELS, inspect_task, lm_eval_logs, mimic_spec, questions

from adaptive_eval.mimic.process import MimicProcess

INSTALL = "run ./scripts/interop, which installs the harnesses in an environment of their own"


@pytest.fixture(scope="session")
def harness_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("harness")


@pytest.fixture(scope="session")
def dataset(harness_folder):
    return questions(harness_folder)


@pytest.fixture(scope="session")
def mimic_url(dataset):
    with MimicProcess(mimic_spec(dataset)) as mimic:
        os.environ["MIMIC_BASE_URL"], os.environ["MIMIC_API_KEY"] = mimic.base_url, "none"
        yield mimic.base_url


@pytest.fixture(scope="session")
def inspect():
    return pytest.importorskip("inspect_ai", reason=f"inspect_ai is not installed; {INSTALL}")


@pytest.fixture(scope="session")
def lm_eval():
    return pytest.importorskip("lm_eval", reason=f"lm_eval is not installed; {INSTALL}")


@pytest.fixture(scope="session")
def inspect_logs(inspect, harness_folder, dataset, mimic_url):
    """Logs of two models, three epochs: one format each."""
    task = f"{inspect_task(harness_folder, dataset)}@sums"
    logs = []
    for name, kind in zip(MODELS, ("eval", "json"), strict=True):
        logs += inspect.eval(
            task, model=f"openai-api/mimic/{name}", epochs=3, log_dir=str(harness_folder / "inspect"),
            log_format=kind, display="none", temperature=0.7, max_tokens=400,
        )  # fmt: skip
    assert [log.error for log in logs] == [None, None]
    return logs


@pytest.fixture(scope="session")
def lm_eval_repeated(lm_eval, harness_folder, dataset, mimic_url):
    return lm_eval_logs(harness_folder, dataset, mimic_url, repeats=3)


@pytest.fixture(scope="session")
def lm_eval_once(lm_eval, harness_folder, dataset, mimic_url):
    return lm_eval_logs(harness_folder, dataset, mimic_url, repeats=1)
