"""Programs that end early, replace what judges them or look for the secret: none of them passes its tests."""

from pathlib import Path

import pytest
from programs import programs

from adaptive_eval.errors import UsageError
from adaptive_eval.scoring.sandbox import Limits, require_sandbox, run_tests

try:
    require_sandbox()
except UsageError as error:
    pytest.skip(f"no sandbox: {error}", allow_module_level=True)

PATIENT = Limits(wall=60.0, cpu=20.0)
CHEATING, REPLACING, HONEST = (programs(group) for group in ("cheating", "replacing", "honest"))


@pytest.mark.parametrize("name", CHEATING)
def test_a_program_that_ends_early_or_cheats_is_wrong(name):
    code, tests, _ = CHEATING[name]
    assert not run_tests(code, tests, PATIENT).passed


@pytest.mark.parametrize("name", [name for name in CHEATING if name.startswith("the secret")])
def test_nor_where_bubblewrap_is_of_the_same_user(name):
    """As for every user but root: then a program may read the descriptors of bubblewrap's first process."""
    python = "/usr/bin/python3"
    if not Path(python).exists():
        pytest.skip(f"no {python}")
    code, tests, _ = CHEATING[name]
    assert not run_tests(code, tests, PATIENT, python).passed


@pytest.mark.parametrize("name", REPLACING)
def test_a_program_that_replaces_what_judges_it_is_wrong(name):
    code, tests, _ = REPLACING[name]
    assert not run_tests(code, tests, PATIENT).passed


@pytest.mark.parametrize("name", HONEST)
def test_a_right_program_may_shadow_builtins_and_its_tests_may_end_themselves(name):
    code, tests, _ = HONEST[name]
    outcome = run_tests(code, tests, PATIENT)
    assert outcome.passed, outcome.reason
