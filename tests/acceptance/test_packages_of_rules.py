"""A package with a rule and an allocation policy of its own, installed and used as a person would."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from command_line import QUICKSTART, Finished, adaptive_eval, environment, report

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "patient_rules.py"
METADATA = "Metadata-Version: 2.1\nName: patient_rules\nVersion: 1.2\n"
ENTRY_POINTS = """\
[adaptive_eval.rules]
patient = patient_rules:Patient
broken = patient_rules:NoSuchRule

[adaptive_eval.policies]
most-wanted = patient_rules:MostWanted
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment of a command that finds the example of the documentation installed."""
    site = tmp_path_factory.mktemp("site")
    (site / "patient_rules.py").write_text(EXAMPLE.read_text(encoding="utf-8"), encoding="utf-8")
    info = site / "patient_rules-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(METADATA, encoding="utf-8")
    (info / "entry_points.txt").write_text(ENTRY_POINTS, encoding="utf-8")
    known = os.environ.get("PYTHONPATH")
    return environment(PYTHONPATH=f"{site}{os.pathsep}{known}" if known else str(site))


def run(*arguments: str, **options: Any) -> Finished:
    return adaptive_eval("run", QUICKSTART, "--out", "run", "--display", "none", *arguments, **options)


@pytest.mark.slow
def test_a_run_is_decided_by_a_packages_rule_and_policy(tmp_path, installed):
    own = ("-o", "stopping.rule=patient", "-o", "allocation.models=most-wanted")
    run(*own, "-o", "stopping.equivalence=0.3", cwd=tmp_path, env=installed, code=0)
    found = report(tmp_path / "run")
    assert found["rule"]["name"] == "patient"
    won = [pair for pair in found["pairs"] if pair["verdict"] in ("better", "worse")]
    assert won
    assert all(pair["questions"] >= 30 for pair in won)
    holds, limits = " ".join(found["promises"]["holds"]), " ".join(found["promises"]["limits"])
    text = (tmp_path / "run" / "report.md").read_text(encoding="utf-8")
    assert "Rule `patient` of patient\\_rules 1.2 at 95 % says" in text
    assert (
        "Rule `patient` of patient_rules 1.2 at 95 % says of itself: no winner before 30 questions" in holds
    )
    assert "Nothing here has proved or checked its error rate" in limits
    versions = json.loads(found["meta"]["versions"])
    assert versions["rule patient"] == versions["policy most-wanted"] == "patient_rules 1.2"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("patent", "'patent' is not one of anytime, exact, zscore, broken, patient"),
        ("patent", "did you mean 'patient'?"),
        ("broken", "'broken' of patient_rules 1.2 cannot be loaded"),
    ],
)
def test_a_rule_that_nobody_offers_or_that_cannot_be_loaded_is_named(tmp_path, installed, rule, words):
    assert words in run("-o", f"stopping.rule={rule}", cwd=tmp_path, env=installed, code=2).err


def test_a_policy_that_nobody_offers_is_refused_with_those_that_are(tmp_path, installed):
    done = adaptive_eval("plan", "-o", "allocation.models=least", cwd=tmp_path, env=installed, code=2)
    assert "most-wanted" in done.err


def test_without_the_package_its_rule_is_unknown(tmp_path):
    done = run("-o", "stopping.rule=patient", cwd=tmp_path, env=environment(), code=2)
    assert "no installed package offers others" in done.err
