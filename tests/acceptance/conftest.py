"""What several acceptance tests compare with: the quickstart's run that nobody disturbs."""

import pytest
from command_line import Reached, in_process, mimic_spec, quickstart, write_config

from adaptive_eval.mimic.process import MimicProcess


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Reached:
    """Return what the run of ``quickstart(base_url=...)`` against ``mimic_spec()`` reaches."""
    folder = tmp_path_factory.mktemp("undisturbed")
    with MimicProcess(mimic_spec()) as mimic:
        config = write_config(folder, quickstart(base_url=mimic.base_url))
        done = in_process("run", config, "--out", "run", "--display", "none", cwd=folder)
    assert done.code == 0, done
    return Reached.by(folder / "run")
