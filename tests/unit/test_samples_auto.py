"""``samples_per_request: auto``: what it is follows from prompts and answers, and stays for a whole run."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptive_eval.build.assembly import build
from adaptive_eval.build.session_spec import MOST_SAMPLES, best_samples_per_prompt
from adaptive_eval.config.load_config import config_from_data

LENGTHS = st.floats(1.0, 100_000.0)


@given(prompt=LENGTHS, answer=LENGTHS, factor=st.floats(1.0, 50.0))
def test_longer_prompts_ask_for_more_and_longer_answers_for_less(prompt, answer, factor):
    best = best_samples_per_prompt(prompt, answer)
    assert 1 <= best <= MOST_SAMPLES
    assert best_samples_per_prompt(factor * prompt, answer) >= best
    assert best_samples_per_prompt(prompt, factor * answer) <= best


@given(prompt=LENGTHS, answer=LENGTHS)
def test_only_the_ratio_counts(prompt, answer):
    assert best_samples_per_prompt(prompt, answer) == best_samples_per_prompt(2.0 * prompt, 2.0 * answer)


def built(folder, question, *, wanted=("auto", "auto"), tokens=64, extra=None, **changes):
    """Return a run over twenty questions of this text."""
    rows = [{"id": f"q{number}", "input": f"{number} {question}", "target": "7"} for number in range(20)]
    (folder / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    models = [
        {
            "name": name,
            "endpoints": [f"http://{name}/v1"],
            "sampling": {"max_tokens": tokens},
            "samples_per_request": number,
            "extra_body": extra or {},
        }
        for name, number in zip("ab", wanted, strict=True)
    ]
    task = {"name": "t", "dataset": "q.jsonl", "scorer": "numeric", "prompt": "{input}"}
    return build(config_from_data({"name": "demo", "models": models, "tasks": [task], **changes}, folder))


SHORT, LONG = "What is 3 + 4?", "Read this. " * 400


@pytest.mark.parametrize(
    ("question", "tokens", "wanted", "samples_per_prompt"),
    [
        (SHORT, 4096, ("auto", "auto"), 1),
        (LONG, 64, ("auto", "auto"), 8),
        (LONG, 64, ("auto", 1), 8),
        (LONG, 32_000, ("auto", "auto"), 1),
        (SHORT, 4096, ("auto", 3), 3),
        (LONG, 64, (1, 1), 1),
    ],
)
def test_it_follows_the_run(tmp_path, question, tokens, wanted, samples_per_prompt):
    run = built(tmp_path, question, tokens=tokens, wanted=wanted)
    assert run.samples_per_prompt == samples_per_prompt
    assert run.spec.samples_per_prompt == samples_per_prompt
    assert run.identity.get("samples_per_request", 1) == samples_per_prompt


def test_answers_at_temperature_0_would_agree_with_each_other(tmp_path):
    run = built(tmp_path, LONG, extra={"temperature": 0})
    assert (run.samples_per_prompt, run.spec.greedy) == (1, (0, 1))


def test_what_may_change_between_two_sittings_does_not_change_it(tmp_path):
    one = built(tmp_path, LONG)
    other = built(
        tmp_path,
        LONG,
        stopping={"max_passes": 5},
        budget={"trials": 100},
        servers=[{"url": "http://a/v1", "concurrency": 2}],
    )
    assert one.samples_per_prompt == other.samples_per_prompt == 8
    assert one.identity == other.identity
