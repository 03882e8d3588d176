"""Answers that are lost because they are wrong: the report names the verdicts that they could undo."""

from __future__ import annotations

import json
from zlib import crc32

import pytest
from mimic_runs import run_config
from scripted_chat import scripted_chat

MEANS = {"shy": 0.7, "plain": 0.8, "weak": 0.05}


def answering(model):
    """Return how a model answers: right as often as it does; the shy one fails instead of being wrong."""

    def answer(body):
        prompt = body["messages"][-1]["content"]
        chance = crc32(f"{model} {prompt} {body['seed']}".encode()) / 2**32
        if chance < MEANS[model]:
            return prompt.split()[0]
        return 500 if model == "shy" else "no idea"

    return answer


@pytest.fixture
def report(tmp_path):
    rows = [json.dumps({"id": f"q{n}", "input": f"{n} is?", "target": str(n)}) for n in range(100, 160)]
    (tmp_path / "rows.jsonl").write_text("\n".join(rows), encoding="utf-8")
    with scripted_chat() as make:
        config = {
            "name": "losses",
            "seed": 3,
            "models": [
                {"name": name, "model": "wise", "concurrency": 1, "endpoints": [make(answering(name)).url]}
                for name in MEANS
            ],
            "tasks": [{"name": "copy", "dataset": "rows.jsonl", "prompt": "{input}", "scorer": "exact"}],
            "stopping": {"equivalence": 0.1, "max_passes": 12},
            "retry": {"attempts": 1},
        }
        out, result = run_config(tmp_path, config)
    assert result.exit_code in (0, 3), result.output
    return json.loads((out / "report.json").read_text()), (out / "report.md").read_text(), result.output


def test_the_verdict_that_losses_made_is_named_and_no_other(report):
    found, markdown, said = report
    pairs = {frozenset((pair["first"], pair["second"])): pair for pair in found["pairs"]}
    lossy = pairs[frozenset(("shy", "plain"))]
    assert lossy["verdict"] != "open", [(one["state"], one["note"]) for one in found["models"]]
    assert lossy["missing_may_undo"]
    assert not pairs[frozenset(("plain", "weak"))]["missing_may_undo"]
    (warning,) = [text for text in found["warnings"] if "could be wrong" in text]
    assert "shy ahead of plain" in warning
    assert "shy ahead of plain" in markdown
    assert "shy ahead of plain" in " ".join(said.split())
