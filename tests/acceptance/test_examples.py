"""The files of docs/examples run, the pages show them, and two prompts are compared as the README says."""

import json
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from command_line import ROOT, in_process, python, report, trials
from pages import blocks

EXAMPLES = ROOT / "docs" / "examples"
SHOWN = {
    "scorer.md": ("own_scorer.py", "own_scorer.yaml"),
    "labels.md": ("labels.py", "labels.yaml"),
    "agent.md": ("agent.py", "agent.yaml"),
    "ci.md": ("test_candidate.py",),
    "checkpoints.md": ("checkpoint.yaml",),
    "server-gates.md": ("server-gate.yaml",),
}
QUICK = ("--display", "none", "-o", "mimic.latency.median=0.001")


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with what the examples need of a clone; their modules are found by the test alone."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    shutil.copytree(EXAMPLES, tmp_path / "docs" / "examples")
    return tmp_path


@pytest.mark.parametrize("page", SHOWN)
def test_a_page_shows_the_files_that_run(page):
    shown = [one.text for one in blocks("python", "yaml") if one.page.name == page]
    for name in SHOWN[page]:
        assert (EXAMPLES / name).read_text("utf-8") in shown, name


SIZES = ("large (70B)", "small (8B)")
LABELS = {"own_scorer": SIZES, "checks": SIZES, "agent": ("large", "small")}


@pytest.mark.slow
@pytest.mark.parametrize("name", LABELS)
def test_an_example_ranks_its_models(name, clone):
    done = in_process("run", f"docs/examples/{name}.yaml", "--out", "run", *QUICK, cwd=clone, code=0)
    large, small = LABELS[name]
    assert f"{large} is ahead of {small}" in done.said
    records = trials(clone / "run")
    signals = [record.score.signals for record in records if record.score]
    assert len(signals) == len(records)
    assert all(("words" in one) == (name == "own_scorer") for one in signals)
    assert all(("check_brief" in one) == (name == "checks") for one in signals)


@pytest.mark.slow
def test_a_label_of_several_words_works_in_every_command(clone):
    large, small = LABELS["own_scorer"]
    goal = ("-o", f"goal=baseline={small}", "-o", f"models[{small}].concurrency=4")
    commands = (
        ("run", "docs/examples/own_scorer.yaml", "--out", "run", *goal, *QUICK),
        ("check", "run", "--not-worse", f"{large}:{small}", "--margin", "0.3", "--at-least", f"{large}:0.5"),
        ("samples", "run", "--compare", large, small, "--limit", "1"),
        ("export", "run", "--out", "table.csv", "--no-texts"),
        ("analyze", "table.csv", "--goal", f"baseline={small}", "--rename", f"{large}=top (1)"),
        ("analyze", "--model", "only (1)=one.csv", "--goal", "threshold=0.1"),
        ("report", "run", "--leaderboard", "--output", "site"),
    )
    (clone / "one.csv").write_text("question,correct\n" + "".join(f"q{n},1\n" for n in range(60)), "utf-8")
    said = []
    for command in commands:
        done = in_process(*command, cwd=clone, code=0)
        said.append(done.said)
    assert "top (1)" in said[4]
    assert "only (1)" in said[5]
    assert large in (clone / "site" / "index.html").read_text("utf-8")


@pytest.mark.slow
def test_a_checkpoint_is_compared_with_the_last_one_that_is_not_asked_again(clone):
    here = clone / "docs" / "examples"
    (block,) = (one.text for one in blocks("sh") if one.page.name == "checkpoints.md")
    *runs, show = map(shlex.split, block.splitlines())
    for _, *command in runs:
        in_process(*command, *QUICK, cwd=here, code=0)
    names = ("step-1000", "step-2000", "step-3000")
    asked = [{record.request.key.model for record in trials(here / "runs" / name)} for name in names]
    assert asked == [{name} for name in names]
    pairs = [
        [one for one in report(here / "runs" / name)["pairs"] if one["kind"] == "pair"] for name in names
    ]
    compared = [[(one["first"], one["verdict"], one["second"]) for one in found] for found in pairs]
    better = "better"
    assert compared == [[], [("step-2000", better, "step-1000")], [("step-2000", better, "step-3000")]]
    assert in_process(*show[1:], cwd=here).code == 0
    (board,) = json.loads((here / "site" / "index.json").read_text("utf-8"))["boards"]
    assert {one["model"] for one in board["models"]} == set(names)
    assert 'id="plot-series-0"' in (here / "site" / "index.html").read_text("utf-8")
    last = "step-4000"
    fourth = (
        "run",
        "checkpoint.yaml",
        "-o",
        f"mimic.models.{last}.mean=0.9",
        *QUICK,
        "--out",
        f"runs/{last}",
    )
    more = ("-o", f"name={last}", "-o", f"models[step-1000].name={last}", "-o", "references=earlier")
    in_process(*fourth, *more, "-o", "budget.trials=20", cwd=here)
    assert {one["model"] for one in report(here / "runs" / last)["models"]} == {last, *names}


@pytest.mark.slow
def test_a_gate_lets_an_equal_build_pass_and_no_worse_one(clone):
    (block,) = (one.text for one in blocks("console") if one.page.name == "server-gates.md")
    _, equal, worse = (shlex.split(line)[1:] for line in block.splitlines())
    in_process(*equal, *QUICK, cwd=clone, code=0)
    in_process(*worse, *QUICK, cwd=clone, code=5)
    found = [report(clone / "runs" / name)["pairs"][0] for name in ("server-gate", "worse")]
    assert [(one["first"], one["kind"], one["verdict"]) for one in found] == [
        ("new", "not-worse", "better"), ("new", "not-worse", "worse"),
    ]  # fmt: skip


@pytest.mark.slow
def test_the_tests_of_the_example_pass(tmp_path):
    shutil.copy(EXAMPLES / "test_candidate.py", tmp_path)
    python("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_candidate.py", cwd=tmp_path, code=0)


@pytest.mark.slow
def test_two_prompts_are_compared_in_five_commands_and_answers_that_differ_come_first(clone):
    """The first three install the program here; the others run as written, in a clone."""
    (block,) = (
        one.text for one in blocks("console") if one.page.name == "README.md" and "git clone" in one.text
    )
    lines = block.splitlines()
    assert len(lines) == 5
    for line in lines[3:]:
        _, *command = shlex.split(line)
        done = in_process(
            *command, *(("--display", "none") if command[0] == "run" else ()), cwd=clone, code=0
        )
    heads = re.findall(r"^brief · arithmetic/(\S+) ·", done.out, re.MULTILINE)
    assert len(heads) == 10
    compare = ("samples", "runs/prompts", "--compare", "brief", "steps")
    done = in_process(*compare, "--json", cwd=clone)
    pairs = [json.loads(line) for line in done.out.splitlines()]
    assert all(first["model"] == "brief" and second["model"] == "steps" for first, second in pairs)
    for key in ("task", "question", "repeat", "target"):
        assert all(first[key] == second[key] for first, second in pairs)
    alike = [first["category"] == second["category"] for first, second in pairs]
    assert alike == sorted(alike)
    assert len(set(alike)) == 2
    assert len({(first["question"], first["repeat"]) for first, _ in pairs}) == len(pairs) > 100
    one = in_process(*compare, "--question", pairs[0][0]["question"], "--limit", "1", "--json", cwd=clone)
    assert json.loads(one.out)[0]["question"] == pairs[0][0]["question"]
    for wrong in (("--compare", "brief", "none"), ("--compare", "brief", "steps", "--missing")):
        refused = in_process("samples", "runs/prompts", *wrong, cwd=clone)
        assert (refused.code, "--compare" in refused.err) == (2, True), refused
