"""Runs that ask for several answers with one request, against a mimic in its own process."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from command_line import in_process
from whole_mimic import WholeMimic

from adaptive_eval.mimic.mimic_spec import KnownQuestion, LatencySpec, MimicSpec, ModelSpec
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TrialRecord
from adaptive_eval.trial import TrialKey

QUESTIONS = tuple(
    KnownQuestion(id=f"q{n}", question=f"What is {n} plus {n + 1}?", target=str(2 * n + 1), kind="numeric")
    for n in range(12)
)
CONFIG = """
name: several
seed: 5
models:
  - {{name: one, endpoints: ["{url}"], concurrency: 8, sampling: {sampling}, samples_per_request: {samples}}}
  - {{name: two, endpoints: ["{url}"], concurrency: 8, sampling: {sampling}, samples_per_request: {samples}}}
tasks:
  - {{name: sums, dataset: sums.jsonl, prompt: "{{input}} Explain.", scorer: numeric}}
goal: budget
stopping: {{max_passes: 9}}
budget: {budget}
allocation: {{questions: schedule}}  # a question is asked as often however its answers come
"""


def model(name: str, **quirks: Any) -> ModelSpec:
    return ModelSpec(name=name, mean=0.6, latency=LatencySpec(median=0.02, sigma=0.3), **quirks)


@pytest.fixture(scope="module")
def mimic() -> Iterator[WholeMimic]:
    with WholeMimic(MimicSpec(models=(model("one"), model("two")), questions=QUESTIONS, seed=3)) as process:
        yield process


def write_config(
    folder: Path, url: str, samples: int = 4, budget: str = "{trials: 10k}", limit: int = 200
) -> Path:
    rows = [{"id": one.id, "input": one.question, "target": one.target} for one in QUESTIONS]
    (folder / "sums.jsonl").write_text("\n".join(map(json.dumps, rows)))
    sampling = f"{{temperature: 0.8, max_tokens: {limit}}}"
    text = CONFIG.format(url=url, sampling=sampling, samples=samples, budget=budget)
    (folder / "config.yaml").write_text(text)
    return folder / "config.yaml"


def stored(folder: Path) -> dict[TrialKey, TrialRecord]:
    with RunReader(folder) as reader:
        return {record.request.key: record for record in reader.trials()}


def served(process: WholeMimic) -> dict[str, Any]:
    stats: dict[str, Any] = httpx.get(f"{process.url}/mimic/stats").json()["models"]
    return stats


def counted(process: WholeMimic, before: dict[str, Any], field: str) -> int:
    return sum(counts[field] - before[name][field] for name, counts in served(process).items())


@pytest.fixture(scope="module")
def run(mimic: WholeMimic, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    folder = tmp_path_factory.mktemp("several")
    before = served(mimic)
    in_process("run", write_config(folder, mimic.base_url), "--out", folder / "run", cwd=folder, code=3)
    return folder / "run", counted(mimic, before, "requests")


@pytest.mark.slow
def test_one_request_asks_for_several_answers(run):
    trials = stored(run[0])
    assert len(trials) == 2 * 12 * 9
    sizes = Counter(record.sent.get("n", 1) for record in trials.values())
    assert sizes[1] <= 2 * 16
    assert sizes[4] >= 2 * 12 * 8 - 16
    # Nearly all repeats share a request, four by four.
    assert run[1] < 2 * (12 + 12 * 2 + 8)


def test_the_prompt_is_paid_once_in_each_request_and_no_token_is_lost(run, mimic):
    trials = stored(run[0])
    requests = defaultdict(list)
    for key, record in trials.items():
        requests[key.model, record.request.question, record.sent["seed"]].append(record)
    assert len(requests) == run[1]
    for records in requests.values():
        prompts = [record.usage.prompt_tokens for record in records if record.usage.prompt_tokens]
        assert len(prompts) == 1
        assert all(record.completion.usage.prompt_tokens == prompts[0] for record in records)


@pytest.mark.slow
def test_answers_are_those_of_single_requests_with_the_trials_own_seeds(run, mimic, tmp_path):
    """The mimic gives sample i the seed + i, as vLLM does: how trials are put together changes no answer."""
    rows = stored(run[0])
    asked = {(key.model, one.request.question, one.request.repeat): one for key, one in rows.items()}
    folder = tmp_path / "singly"
    folder.mkdir()
    config = write_config(folder, mimic.base_url, samples=1)
    in_process("run", config, "--out", folder / "run", cwd=folder, code=3)
    singly = stored(folder / "run")
    assert len(singly) == len(asked)
    for key, record in singly.items():
        other = asked[key.model, record.request.question, record.request.repeat]
        assert (record.request.seed, record.completion.text) == (other.request.seed, other.completion.text)


@pytest.mark.slow
def test_a_pilots_answers_are_paid_once_too(mimic, tmp_path):
    """The pilot asks for whole blocks, and the run takes its answers however requests were put together."""
    config = write_config(tmp_path, mimic.base_url)
    text = config.read_text().replace("max_tokens: 200", "max_tokens: 200, logprobs: true")
    text = text.replace("scorer: numeric", "scorer: numeric, rubric: {schema: concision-high-conf, pilot: 2}")
    config.write_text(text)
    before = served(mimic)
    in_process("run", config, "--out", tmp_path / "run", cwd=tmp_path, code=3)
    trials, pilot = stored(tmp_path / "run"), stored(tmp_path / "run" / "pilot")
    assert len(trials) == 2 * 12 * 9
    assert Counter(one.request.question for one in pilot.values()) == {one.id: 2 * 5 for one in QUESTIONS}
    assert all(trials[key].completion.text == one.completion.text for key, one in pilot.items())
    for field in ("prompt_tokens", "completion_tokens"):
        paid = sum(getattr(record.usage, field) for record in trials.values())
        assert paid == counted(mimic, before, field)


@pytest.mark.slow
def test_a_run_over_plain_completions(mimic, tmp_path):
    config = write_config(tmp_path, mimic.base_url)
    text = config.read_text().replace("concurrency: 8,", "concurrency: 8, api: completions,")
    config.write_text(
        text.replace(
            "scorer: numeric", 'system: "Sums.", few_shot: {count: 1, answer: "{target}"}, scorer: numeric'
        )
    )
    in_process("run", config, "--out", tmp_path / "run", cwd=tmp_path, code=3)
    trials = stored(tmp_path / "run")
    assert len(trials) == 2 * 11 * 9  # one question is the worked example
    for record in trials.values():
        number = int(record.request.question[1:])
        assert record.sent["prompt"] == (
            f"Sums.\n\nWhat is 0 plus 1? Explain. 1\n\nWhat is {number} plus {number + 1}? Explain."
        )
        assert "messages" not in record.sent
    assert any(record.sent.get("n") == 4 for record in trials.values())
    assert "Explain. 1" in in_process("samples", "run", "--limit", "1", cwd=tmp_path).out
