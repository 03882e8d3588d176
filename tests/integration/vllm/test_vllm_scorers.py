"""Runs whose answers are judged or verified by a real vLLM server: structured output, log-probabilities."""

import json
import math
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from command_line import adaptive_eval, report, trials, write_config
from vllm_install import MODELS
from vllm_server import CHOICE_TASK, Counters, VllmServer

from adaptive_eval.scoring.verifier import calibrated, label_logits
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TrialRecord

FIRST, SECOND, WISE = MODELS

CONFIG: dict[str, Any] = {
    "name": "scored-by-a-model",
    "seed": 5,
    "tasks": [{**CHOICE_TASK, "limit": 8}],
    "goal": "budget",
    "budget": {"trials": 32},
}


@dataclass(frozen=True)
class Scored:
    """A run that has ended: its directory, its trials, and what the scoring server counted meanwhile."""

    directory: Path
    trials: list[TrialRecord]
    counted: Counters

    def total(self, signal: str) -> int:
        """Return the sum of a signal over all answers."""
        return sum(int(record.score.signals[signal]) for record in self.trials)

    def spent(self, owner: str) -> dict[str, float]:
        """Return what the report says was spent, by unit."""
        lines = report(self.directory)["budgets"]
        return {line["name"]: line["spent"] for line in lines if line["owner"] == owner}


@pytest.fixture(scope="module")
def carry_out(
    servers: dict[str, VllmServer], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Scored]:
    """Run the two models with a scorer that asks the third."""

    def carry_out(scorer: dict[str, Any], rubric: str = "binary") -> Scored:
        folder = tmp_path_factory.mktemp("vllm-scored")
        config = json.loads(json.dumps(CONFIG))
        config["models"] = [servers[name].choosing(4) for name in (FIRST, SECOND)]
        config["tasks"][0]["scorer"] = {**scorer, "endpoint": servers[WISE].base_url, "model": WISE}
        config["tasks"][0]["rubric"] = rubric
        write_config(folder, config)
        before = servers[WISE].wait_until_idle()
        done = adaptive_eval("run", "config.yaml", "--out", "run", "--display", "none", cwd=folder)
        assert done.code == 0, done
        return Scored(folder / "run", trials(folder / "run"), servers[WISE].wait_until_idle() - before)

    return carry_out


@pytest.fixture(scope="module")
def judged(carry_out: Callable[..., Scored]) -> Scored:
    return carry_out({"kind": "judge", "votes": 3, "price": {"input": 1.0, "output": 2.0}})


@pytest.fixture(scope="module")
def verified(carry_out: Callable[..., Scored]) -> Scored:
    scorer = {"kind": "verifier", "is_correct": "choice", "top_logprobs": 256}
    return carry_out(scorer, rubric="verifier-probe")


def test_structured_output_makes_even_a_random_model_a_judge(judged):
    assert len(judged.trials) == 32
    assert all(record.missing is None for record in judged.trials)
    assert {record.score.category for record in judged.trials} <= {0, 1}
    assert all(record.score.reason.startswith("judged ") for record in judged.trials)
    assert all(2 <= record.score.signals["judgements"] <= 3 for record in judged.trials)


def test_what_the_judge_costs_is_what_the_server_counted(judged):
    assert judged.counted.finished == judged.total("judge_requests") >= 64
    assert judged.counted.prompt_tokens == judged.total("judge_prompt_tokens")
    assert judged.counted.generation_tokens == judged.total("judge_completion_tokens")
    spent = judged.spent(f"judge of {CONFIG['tasks'][0]['name']}")
    assert spent["requests"] == judged.counted.finished
    assert spent["tokens"] == judged.counted.prompt_tokens + judged.counted.generation_tokens
    assert spent["usd"] == pytest.approx(
        (judged.counted.prompt_tokens + 2 * judged.counted.generation_tokens) / 1e6
    )


def test_a_verifier_gives_every_answer_probabilities(verified):
    assert len(verified.trials) == 32
    for record in verified.trials:
        signals = record.score.signals
        assert record.missing is None
        assert sum(signals[f"verifier_{label}"] for label in "abc") == pytest.approx(1.0)
        assert all(0.0 < signals[f"verifier_{label}"] < 1.0 for label in "abc")
        assert isinstance(signals["is_correct"], bool)
    assert len({record.score.signals["verifier_a"] for record in verified.trials}) > 8
    assert {record.score.category for record in verified.trials} <= set(range(5))
    # One token of each of 32 answers, and one for the baseline.
    assert verified.total("verifier_requests") == verified.counted.finished == 33
    assert verified.counted.generation_tokens == 33


def test_the_probabilities_are_those_that_the_server_gives_for_the_same_question(verified, servers):
    from adaptive_eval.build.assembly import build, config_of_run
    from adaptive_eval.scoring.registry import build_scorer

    record = verified.trials[-1]
    scorer = build_scorer("verifier", {"endpoint": servers[WISE].base_url, "model": WISE})
    with RunReader(verified.directory) as reader:
        (task,) = build(config_of_run(reader)).tasks
    question = task.asked(task.by_id[record.request.question], record.request.seed)
    messages = scorer.messages(scorer.shown(record.completion), question)
    plain = [{"role": message.role, "content": message.content} for message in messages]
    asked = label_logits(_slot(servers[WISE], plain))
    raw = calibrated(asked, (0.0, 0.0, 0.0))
    stored = [record.score.signals[f"verifier_raw_{label}"] for label in "abc"]
    assert stored == pytest.approx(raw, abs=0.02)  # bfloat16, batched otherwise
    assert all(math.isfinite(value) for value in asked)


def _slot(server: VllmServer, messages: list[dict[str, str]]) -> list[tuple[str, float]]:
    """Ask a server, without any code of ours, for the tokens that could begin its reply."""
    body = {"model": server.model, "messages": messages, "max_tokens": 1, "temperature": 0.0}
    request = urllib.request.Request(
        f"{server.base_url}/chat/completions",
        json.dumps({**body, "logprobs": True, "top_logprobs": 256}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60.0) as response:
        (choice,) = json.load(response)["choices"]
    return [(one["token"], one["logprob"]) for one in choice["logprobs"]["content"][0]["top_logprobs"]]
