"""What several acceptance tests compare with: the quickstart's run that nobody disturbs."""

import pytest
from command_line import Reached, mimic_spec, quickstart, ran, write_config

from adaptive_eval.mimic.process import MimicProcess


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Reached:
    """Return what the run of ``quickstart(base_url=...)`` against ``mimic_spec()`` reaches."""
    folder = tmp_path_factory.mktemp("undisturbed")
    with MimicProcess(mimic_spec()) as mimic:
        ran(write_config(folder, quickstart(base_url=mimic.base_url)))
    return Reached.by(folder / "run")
