"""A run against a real vLLM with a reasoning parser."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

from adaptive_eval.store.reader import RunReader

COMMAND = Path(sys.executable).with_name("adaptive-eval")
QUESTIONS = Path(__file__).parents[3] / "configs" / "data" / "choice.jsonl"
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
        "tasks": [
            {
                "name": "choice",
                "dataset": str(QUESTIONS),
                "fields": {"input": "question", "target": "answer"},
                "prompt": "{input}\n\n{choices}",
                "scorer": "choice",
            }
        ],
        "on": {"length": "wrong"},  # one model is cut off on purpose
        "goal": "budget",
        "budget": {"trials": 72},
    }
    (tmp_path / "config.yaml").write_text(json.dumps(config))

    def command(*arguments: str, code: int = 0) -> str:
        done = subprocess.run(
            [COMMAND, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=240
        )
        assert done.returncode == code, done
        return done.stdout

    before = crowded.wait_until_idle()
    command("run", "config.yaml", "--out", "run", "--display", "none", code=3)
    counted = crowded.wait_until_idle() - before
    with RunReader(tmp_path / "run") as reader:
        records = list(reader.trials())
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

    samples = [json.loads(line) for line in command("samples", "run", "--json").splitlines()]
    command("export", "run", "--out", "run.csv")
    with (tmp_path / "run.csv").open(encoding="utf-8", newline="") as file:
        exported = list(csv.DictReader(file))
    kept = sorted(
        (record.completion.reasoning, record.completion.reasoning_tokens)
        for record in records
        if record.completion
    )
    assert sorted((row["reasoning"], int(row["reasoning_tokens"])) for row in exported) == kept
    assert {(row["reasoning"], row.get("reasoning_tokens", 0)) for row in samples} <= set(kept)
    for model in ("whole", "streamed"):
        assert re.search("reasoning  (<think>)?The answer is ", command("samples", "run", "--model", model))
