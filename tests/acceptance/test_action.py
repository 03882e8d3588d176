"""The GitHub Action: its step, run as it stands on a finished run."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import run_examples as runs
from command_line import ROOT
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version
from ruamel.yaml import YAML


@pytest.mark.slow
@pytest.mark.parametrize(
    ("claim", "margin", "code"),
    [("NOT_WORSE=oak:elm", 0.02, 0), ("NOT_WORSE=yew:oak", 0.02, 5), ("NOT_WORSE=elm:oak", 0.9, 0),
     ("NOT_WORSE=elm:oak", 0, 2), ("NOT_WORSE=elm:oak", 0.02, 3),
     ("AT_LEAST=oak:0.999", "", 5)],
)  # fmt: skip
def test_the_action_ends_as_check_does_and_adds_the_ranking_to_the_summary(tmp_path, claim, margin, code):
    runs.make_run(tmp_path / "run")
    [step] = YAML(typ="safe").load((ROOT / "action.yml").read_text("utf-8"))["runs"]["steps"]
    names = dict.fromkeys(step["env"], "")
    name, _, value = claim.partition("=")
    environment = os.environ | names | {
        "RUN": str(tmp_path / "run"), "MARGIN": str(margin), name: value,
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }  # fmt: skip
    done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", step["run"]], env=environment, check=False)
    summary = (tmp_path / "summary").read_text("utf-8")
    assert done.returncode == code, summary
    assert re.search(r"^\| 1 \| oak \|", summary, re.MULTILINE)
    said = summary.partition("```text")[2].partition("```")[0]
    assert (value.partition(":")[0] in said) == (code != 2)
    assert "## Pairs" not in summary


def test_the_dockerfile_names_files_extras_and_a_command_that_exist():
    lines = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ").splitlines()
    steps = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    known = {"FROM", "COPY", "ENV", "RUN", "USER", "WORKDIR", "ENTRYPOINT", "CMD"}
    assert {word for word, _ in steps} == known
    stages = re.findall(r"^FROM \S+ AS (\w+)$", "\n".join(lines), re.MULTILINE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    said = "\n".join(rest for _, rest in steps)
    images = re.findall(r"^FROM (\S+)", "\n".join(lines), re.MULTILINE)
    assert [image for image in images if not re.search("@sha256:[0-9a-f]{64}$", image)] == []
    assert set(re.findall(r"from=(\w+)", said)) <= {*stages}
    (extras,) = re.findall(r"\.whl\)\[([\w,-]+)\]", said)
    assert {*extras.split(",")} <= {*project["optional-dependencies"]}
    run = dict(steps[-2:])
    assert json.loads(run["ENTRYPOINT"])[0] in project["scripts"]
    for image in re.findall(r"^FROM python:(\d+\.\d+)", "\n".join(lines), re.MULTILINE):
        assert Version(image) in SpecifierSet(project["requires-python"])


def test_actions_are_named_by_commit():
    flows = [*(ROOT / ".github" / "workflows").glob("*.yml"), ROOT / "action.yml"]
    uses = re.findall(r"uses: (?!\./)(\S+)", "".join(path.read_text("utf-8") for path in flows))
    assert uses
    assert [one for one in uses if not re.search("@[0-9a-f]{40}$", one)] == []


def test_each_part_of_the_release_image_has_one_version_and_no_address():
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    found = [Requirement(line) for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"==[\w.]+", str(one.specifier)) and one.url is None for one in found)
    versions = {canonicalize_name(one.name): str(one.specifier)[2:] for one in found}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    for text in [*project["dependencies"], *extras["data"], *extras["scoring"]]:
        needed = Requirement(text)
        assert needed.specifier.contains(versions[canonicalize_name(needed.name)])
    assert {"hatchling", "twine", "check-wheel-contents"} <= {*versions}


def test_the_release_runs_scripts_that_exist_on_a_tag_that_is_the_version():
    flow = YAML(typ="safe").load((ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8"))
    jobs = flow["jobs"]
    assert flow["on"]["push"]["tags"] == ["v*"]
    assert jobs["publish"]["needs"] in jobs
    assert jobs["build"]["needs"] == "tests"
    assert (ROOT / jobs["tests"]["uses"]).is_file()
    steps = [step for job in jobs.values() for step in job.get("steps", ())]
    assert all(("uses" in step) != ("run" in step) for step in steps)
    assert all("@" in step["uses"] for step in steps if "uses" in step)
    checked, *scripts = [step["run"] for step in steps if "run" in step]
    assert scripts
    assert all(os.access(ROOT / script, os.X_OK) for script in scripts)
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    for tag, code in ((f"v{version}", 0), ("v99.0", 1)):
        done = subprocess.run(
            ["bash", "-c", checked], cwd=ROOT, env={**os.environ, "GITHUB_REF_NAME": tag}, capture_output=True
        )
        assert done.returncode == code
    handed = [step["with"] for step in steps if step.get("with", {}).get("name") == "dist"]
    assert len(handed) == 2
    assert {one["path"] for one in handed} == {"dist/"}


def test_a_pull_request_runs_each_step_of_ci_and_the_tests_on_each_supported_python():
    flow = YAML(typ="safe").load((ROOT / ".github" / "workflows" / "tests.yml").read_text("utf-8"))
    assert {"push", "pull_request", "workflow_call"} <= set(flow["on"])
    steps, pythons = flow["jobs"]["steps"], flow["jobs"]["pythons"]
    order = re.search(r"^order=\((.*)\)$", (ROOT / ".ci" / "run").read_text("utf-8"), re.MULTILINE)
    run = " ".join(steps["strategy"]["matrix"]["steps"]).split()
    assert sorted(run) == sorted(order[1].split())
    assert ".ci/run ${{ matrix.steps }}" in [step.get("run") for step in steps["steps"]]
    assert ".ci/run quick" in [step.get("run") for step in pythons["steps"]]
    release = YAML(typ="safe").load((ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8"))
    assert release["jobs"]["tests"]["uses"] == "./.github/workflows/tests.yml"
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["classifiers"]
    supported = {text.rpartition(" ")[2] for text in classifiers if re.search(r"Python :: 3\.\d+$", text)}
    assert supported <= {*pythons["strategy"]["matrix"]["python"], "3.12"}
