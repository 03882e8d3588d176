"""Several answers with one request against a real vLLM: the same trials, one prompt, and its prefix cache."""

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from vllm_server import VllmServer

from adaptive_eval.endpoints.apis import OpenAIChat
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TrialRecord
from adaptive_eval.trial import Message

COMMAND = Path(sys.executable).with_name("adaptive-eval")
QUESTIONS = Path(__file__).parents[3] / "configs" / "data" / "choice.jsonl"
CONFIG = """
name: several
seed: 11
models:
  - name: tiny-1
    endpoints: ["{url}"]
    sampling: {{temperature: 1.0, max_tokens: 12}}
    extra_body: {{ignore_eos: true}}
    concurrency: 16
    samples_per_request: {samples}
tasks:
  - name: choice
    dataset: {dataset}
    fields: {{input: question, target: answer}}
    prompt: "{{input}}\\n\\n{{choices}}"
    scorer: choice
on: {{length: wrong}}
goal: {{kind: width, width: 0.001}}
stopping: {{max_passes: 5}}
budget: {{trials: 10k}}
"""


def answers_of(server: VllmServer, folder: Path, samples: int) -> tuple[list[TrialRecord], int, int]:
    """Run five passes; return the trials, and the completion tokens that vLLM and we have counted."""
    config = folder / f"{samples}.yaml"
    config.write_text(CONFIG.format(url=server.base_url, samples=samples, dataset=json.dumps(str(QUESTIONS))))
    before = server.wait_until_idle()
    done = subprocess.run(
        [COMMAND, "run", config, "--out", folder / f"run-{samples}", "--display", "none"],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 3, done
    counted = server.wait_until_idle() - before
    with RunReader(folder / f"run-{samples}") as reader:
        trials = list(reader.trials())
    return trials, counted.generation_tokens, sum(record.usage.completion_tokens for record in trials)


def test_how_trials_are_put_into_requests_changes_no_answer_of_vllm(servers, tmp_path):
    singly, *_ = answers_of(servers["tiny-1"], tmp_path, 1)
    together, counted, charged = answers_of(servers["tiny-1"], tmp_path, 4)
    # One question is asked for the second time in the first pass already.
    assert Counter(record.sent.get("n", 1) for record in together) == {1: 25, 3: 3, 4: 23 * 4}
    assert counted == charged == 24 * 5 * 12
    text = {
        (record.request.question, record.request.repeat): (record.request.seed, record.completion.text)
        for record in singly
    }
    same = [
        text[record.request.question, record.request.repeat] == (record.request.seed, record.completion.text)
        for record in together
    ]
    assert len(same) == len(text) == 24 * 5
    assert all(same)
    assert [sum(record.usage.prompt_tokens > 0 for record in trials) for trials in (singly, together)] == [
        120,
        25 + 24,
    ]


REPEATS, MANY = 4, 40


def prompts(salt: str) -> list[list[Message]]:
    """Return prompts of some ten blocks of the cache each, none of which begins like another."""
    return [
        [Message("user", f"{salt} {number} is what this question is about. " * 16)] for number in range(MANY)
    ]


async def pass_by_pass(chat: OpenAIChat) -> None:
    asked = prompts("apart")
    for repeat in range(REPEATS):
        for start in range(0, MANY, 4):
            await asyncio.gather(*(chat.complete(one, seed=repeat) for one in asked[start : start + 4]))


async def close_together(chat: OpenAIChat) -> None:
    for one in prompts("close"):
        await asyncio.gather(*(chat.complete(one, seed=repeat) for repeat in range(REPEATS)))


async def in_one_request(chat: OpenAIChat) -> None:
    for one in prompts("shared"):
        await chat.sample(one, seed=0, n=REPEATS)


def found_in_cache(server: VllmServer, ask: Callable[[OpenAIChat], Awaitable[None]], **options: Any) -> float:
    """Return the share of prompt tokens that vLLM finds in its prefix cache."""

    async def main() -> None:
        async with OpenAIChat(server.base_url, server.model, **options) as chat:
            await ask(chat)

    before = server.prefix_cache()
    asyncio.run(main())
    after = server.prefix_cache()
    return (after[1] - before[1]) / (after[0] - before[0])


def test_the_prefix_cache_finds_the_questions_that_are_asked_close_together(crowded):
    sampling = {"temperature": 1.0, "max_tokens": 2}
    shares = {
        ask.__name__: found_in_cache(crowded, ask, sampling=sampling)
        for ask in (pass_by_pass, close_together, in_one_request)
    }
    print("share of prompt tokens found in vLLM's prefix cache:", shares)
    assert shares["pass_by_pass"] < 0.05
    assert shares["close_together"] > 0.6
    assert shares["in_one_request"] > 0.6


def test_what_only_vllm_knows_is_passed_on(servers):
    async def main() -> Any:
        extra = {"prompt_logprobs": 1, "priority": 0, "min_tokens": 3, "top_k": 20}
        sampling = {"max_tokens": 3, "logprobs": True, "top_logprobs": 2}
        server = servers["tiny-1"]
        async with OpenAIChat(server.base_url, "tiny-1", sampling=sampling, extra_body=extra) as chat:
            return await chat.sample([Message("user", "What is 2 + 2?")], seed=1, n=2)

    answers = asyncio.run(main())
    assert len(answers) == 2
    for answer in answers:
        assert len(answer.logprobs["content"]) == 3
        assert all(len(token["top_logprobs"]) >= 2 for token in answer.logprobs["content"])
        assert len(answer.logprobs["prompt"]) == answer.usage.prompt_tokens
