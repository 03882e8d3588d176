"""A run against a real vLLM with a reasoning parser."""

import json
import re

from command_line import adaptive_eval, trials, write_config
from vllm_server import CHOICE_TASK

THOUGHT = "The answer is [ABCD] or [a-z]{1,9}"


def test_reasoning_is_kept_beside_the_answer_and_never_scored(installation, crowded, tmp_path):
    """A grammar makes the model name one letter in its reasoning, and mostly another one after it."""
    tokens = json.loads((installation.models / crowded.model / "tokenizer.json").read_text())
    grammar = {
        "structured_outputs": {"regex": f"<think>{THOUGHT}</think>[ABCD]"},
        "logit_bias": {tokens["model"]["vocab"]["<"]: -100},  # so that it opens and closes with the token
    }
    shared = {
        "model": crowded.model,
        "endpoints": [crowded.base_url],
        "concurrency": 4,
        "extra_body": grammar,
    }
    config = {
        "name": "reasoning",
        "seed": 3,
        "models": [
            {**shared, "name": "whole", "sampling": {"max_tokens": 64}},
            {**shared, "name": "streamed", "sampling": {"max_tokens": 64}, "stream": True},
            {**shared, "name": "cut", "sampling": {"max_tokens": 6}},
        ],
        "tasks": [{**CHOICE_TASK, "prompt": "{input}\n\n{choices}"}],
        "on": {"length": "wrong"},  # one model is cut off on purpose
        "goal": "budget",
        "budget": {"trials": 72},
    }
    write_config(tmp_path, config)
    before = crowded.wait_until_idle()
    done = adaptive_eval("run", "config.yaml", "--out", "run", "--display", "none", cwd=tmp_path)
    assert done.code == 0, done
    counted = crowded.wait_until_idle() - before
    records = trials(tmp_path / "run")
    assert len(records) == 72
    assert sum(record.usage.completion_tokens for record in records) == counted.generation_tokens
    disagreeing = 0
    for record in records:
        answer, score = record.completion, record.score
        assert answer is not None
        assert score is not None
        if record.request.key.model == "cut":
            assert (answer.text, answer.no_answer, score.category) == ("", "length", 0)
            assert answer.reasoning.removeprefix("<think>").startswith("The a")
            assert answer.reasoning_tokens == answer.usage.completion_tokens - 1
        else:
            # Where the first tokens of a stream arrive together, vLLM leaves the tag among them.
            thought = answer.reasoning.removeprefix("<think>")
            assert re.fullmatch(THOUGHT, thought)
            assert thought == answer.reasoning or record.request.key.model == "streamed"
            assert re.fullmatch("[ABCD]", answer.text)
            assert score.extracted == answer.text
            disagreeing += thought[14] != answer.text
            # Neither <think>, </think> and the letter, nor the end are reasoning.
            assert 0 < answer.reasoning_tokens == answer.usage.completion_tokens - 4
    assert disagreeing > 10
