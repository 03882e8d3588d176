"""A run against a server behind a cache says so: in its plain lines, its stored results and its reports."""

import json
from pathlib import Path

import pytest
from command_line import in_process

from adaptive_eval.store.reader import RunReader

CONFIG = """
name: audited
seed: 5
mimic:
  seed: 2
  tokens: {completion_median: 400, completion_sigma: 0.5}
  models:
    fresh: {mean: 0.6}
    stale: {mean: 0.6, cached: true}
    greedy: {mean: 0.6}
models:
  - {name: fresh, endpoints: [mimic], sampling: &sampling {temperature: 0.8, max_tokens: 2000}}
  - {name: stale, endpoints: [mimic], sampling: *sampling}
  - {name: greedy, endpoints: [mimic], sampling: {temperature: 0, max_tokens: 2000}}
tasks:
  - {name: sums, dataset: sums.jsonl, prompt: "{input}", scorer: numeric}
goal: budget
budget: {trials: PASSES_OF_60}
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audited")
    rows = [{"input": f"What is {n} plus {n + 1}? Explain.", "target": str(2 * n + 1)} for n in range(20)]
    (folder / "sums.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "config.yaml").write_text(CONFIG.replace("PASSES_OF_60", "240"))
    return folder / "config.yaml"


@pytest.fixture(scope="module")
def run(config: Path) -> tuple[Path, str]:
    folder = config.parent / "run"
    done = in_process("run", config, "--out", folder, "--display", "plain", cwd=config.parent)
    assert done.code == 3, done
    return folder, done.out


def warnings_of(folder: Path) -> list[str]:
    with RunReader(folder) as reader:
        snapshot = reader.latest_snapshot()
    assert snapshot is not None
    return [text for text in snapshot.results["warnings"] if "asked again" in text]


def test_the_warning_is_in_every_view_and_about_the_cached_model_alone(run):
    folder, said = run
    (warning,) = warnings_of(folder)
    assert warning.startswith("stale: ")
    (line,) = (line for line in said.splitlines() if "Z warning stale: " in line)
    assert "answers to a question asked again are copies" in line
    report = json.loads((folder / "report.json").read_text())
    assert warning in report["warnings"]
    assert "stale: " in (folder / "report.md").read_text()
    assert "asked again are copies" in (folder / "report.md").read_text()
    assert "asked again are copies" in (folder / "report.html").read_text()


@pytest.mark.slow
def test_a_continued_run_takes_up_the_audit_from_what_is_stored(run):
    folder, _ = run
    before = warnings_of(folder)
    done = in_process("run", folder, "--display", "none", "-o", "budget.trials=243", cwd=folder.parent)
    assert done.code == 3, done
    (after,) = warnings_of(folder)
    pairs = [int(text.split(" of ")[1].split(" ")[0].replace(",", "")) for text in (before[0], after)]
    assert pairs[1] >= pairs[0] > 40
