"""Runs that ask for several answers with one request, against a mimic in its own process."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from answering_server import two_models
from command_line import ran, served, trials, write_config
from whole_mimic import WholeMimic

from adaptive_eval.mimic.mimic_spec import KnownQuestion, LatencySpec, MimicModelSpec, MimicSpec
from adaptive_eval.store.records import TrialRecord
from adaptive_eval.trial import TrialKey

QUESTIONS = tuple(
    KnownQuestion(id=f"q{n}", question=f"What is {n} plus {n + 1}?", target=str(2 * n + 1), kind="numeric")
    for n in range(12)
)


@pytest.fixture(scope="module")
def mimic() -> Iterator[WholeMimic]:
    latency = LatencySpec(median=0.02, sigma=0.3)
    models = tuple(MimicModelSpec(name=name, mean=0.6, latency=latency) for name in ("good", "bad"))
    with WholeMimic(MimicSpec(models=models, questions=QUESTIONS, seed=3)) as process:
        yield process


def run(
    folder: Path, mimic: WholeMimic, task: dict[str, Any], sampling: dict[str, Any], **model: Any
) -> dict[TrialKey, TrialRecord]:
    """Ask each question nine times, four answers with a request; return the trials."""
    more = {"goal": "budget", "stopping": {"max_passes": 9}, "budget": {"trials": 10_000}}
    data = two_models(folder, mimic.base_url, allocation={"questions": "schedule"}, **more)
    rows = [{"id": one.id, "input": one.question, "target": one.target} for one in QUESTIONS]
    (folder / "sums.jsonl").write_text("\n".join(map(json.dumps, rows)))
    data["tasks"][0] |= {"dataset": "sums.jsonl", "prompt": "{input} Explain.", **task}
    asked = {"samples_per_request": 4, "sampling": {"temperature": 0.8, "max_tokens": 200, **sampling}}
    data["models"] = [{**one, **asked, **model} for one in data["models"]]
    ran(write_config(folder, data), code=3)
    return {record.request.key: record for record in trials(folder / "run")}


def counted(mimic: WholeMimic, before: dict[str, Any], field: str) -> int:
    after = served(mimic)["models"]
    return sum(counts[field] - before["models"][name][field] for name, counts in after.items())


@pytest.mark.slow
def test_one_request_asks_for_several_answers(mimic, tmp_path):
    before = served(mimic)
    found = run(tmp_path, mimic, {}, {})
    assert len(found) == 2 * 12 * 9
    sizes = Counter(record.sent.get("n", 1) for record in found.values())
    assert sizes[1] <= 2 * 16
    assert sizes[4] >= 2 * 12 * 8 - 16
    # Nearly all repeats share a request, four by four.
    assert counted(mimic, before, "requests") < 2 * (12 + 12 * 2 + 8)


@pytest.mark.slow
def test_a_run_over_plain_completions(mimic, tmp_path):
    task = {"system": "Sums.", "few_shot": {"count": 1, "answer": "{target}"}}
    found = run(tmp_path, mimic, task, {}, api="completions")
    assert len(found) == 2 * 11 * 9  # one question is the worked example
    for record in found.values():
        number = int(record.request.question[1:])
        assert record.sent["prompt"] == (
            f"Sums.\n\nWhat is 0 plus 1? Explain. 1\n\nWhat is {number} plus {number + 1}? Explain."
        )
        assert "messages" not in record.sent
    assert any(record.sent.get("n") == 4 for record in found.values())
