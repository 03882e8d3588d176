"""Reviews that evalscope has just written: imported, they give what it reports.

It brings more than a gigabyte, so ``scripts/interop`` leaves it out. To run this::

    .venvs/interop/bin/pip install evalscope
    ./scripts/interop -k evalscope
"""

import json
import os
import subprocess
import sys

import pytest

from adaptive_eval.interop.found import Choices
from adaptive_eval.interop.import_run import import_logs
from adaptive_eval.interop.recorded_files import open_logs, read_recorded

pytestmark = pytest.mark.interop
pytest.importorskip("evalscope", reason="evalscope is not installed")

REPEATS = 3
RUN = """
import json, sys
from evalscope import TaskConfig, run_task
task = json.load(open(sys.argv[1]))
(report,) = run_task(TaskConfig(**task)).values()
print("REPORTED", report.metrics[0].score)
"""
CARD = """---
configs:
- config_name: main
  data_files:
  - {split: train, path: main.jsonl}
  - {split: test, path: main.jsonl}
---
"""


@pytest.fixture(scope="module")
def reviews(tmp_path_factory, dataset, mimic_url):
    """Return the folder of evalscope's own runs of two models, and the accuracy it reports of each."""
    folder = tmp_path_factory.mktemp("evalscope")
    data = folder / "gsm"
    data.mkdir()
    rows = [json.loads(line) for line in dataset.read_text(encoding="utf-8").splitlines()]
    lines = [
        json.dumps({"question": row["question"], "answer": f"It follows.\n#### {row['answer']}"})
        for row in rows
    ]
    (data / "main.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (data / "README.md").write_text(CARD, encoding="utf-8")
    reported = {}
    for model in ("sage", "novice"):
        task = {
            "model": model, "api_url": mimic_url, "api_key": "EMPTY", "eval_type": "openai_api",
            "datasets": ["gsm8k"], "dataset_args": {"gsm8k": {"local_path": str(data), "few_shot_num": 0}},
            "repeats": REPEATS, "eval_batch_size": 2, "work_dir": str(folder / "out" / model),
            "no_timestamp": True, "generation_config": {"temperature": 1.0, "max_tokens": 400},
        }  # fmt: skip
        (folder / "task.json").write_text(json.dumps(task), encoding="utf-8")
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "huggingface")}
        command = [sys.executable, "-c", RUN, str(folder / "task.json")]
        done = subprocess.run(
            command, env=environment, cwd=folder, capture_output=True, text=True, timeout=240, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]
        (line,) = [line for line in done.stdout.splitlines() if line.startswith("REPORTED")]
        reported[model] = float(line.split()[1])
    return folder / "out", reported


def test_reviews_give_the_accuracy_that_is_reported(reviews, tmp_path):
    folder, reported = reviews
    result = import_logs(open_logs([folder], Choices()), tmp_path / "run")
    assert {line.model: line.score for line in result.results.models} == pytest.approx(reported, abs=1e-4)
    recorded = read_recorded([tmp_path / "run"])
    assert recorded.counts.min() == recorded.counts.max() == REPEATS
    assert recorded.categories.min() == 0 < recorded.categories.max()


def test_a_scorer_of_this_package_agrees(reviews, tmp_path):
    folder, _ = reviews
    import_logs(open_logs([folder], Choices()), tmp_path / "theirs")
    import_logs(open_logs([folder], Choices(scorer="numeric")), tmp_path / "ours")
    theirs, ours = (read_recorded([tmp_path / name]) for name in ("theirs", "ours"))
    assert ours.categories.tolist() == theirs.categories.tolist()
