"""The scorer verifier: labels read off log-probabilities, calibrated; its schemas in whole runs."""

import json
import math
import re
from pathlib import Path

import pytest
from command_line import command, mimic_config, report, run_config, trials
from scripted_chat import answer_is_right, labelled, scripted_chat

import adaptive_eval.build.grading  # noqa: F401  (gives the verifier its client)
from adaptive_eval.scoring.registry import build_scorer
from adaptive_eval.scoring.verifier import calibrated, label_logits
from adaptive_eval.trial import Completion, Question
from scorio.categorical import Signals, get_schema, schema_names

USES_VERIFIER = [name for name in schema_names() if {"verifier_a", "verifier_b"} & get_schema(name).signals]


@pytest.fixture
def serve():
    with scripted_chat() as make:
        yield make


def scored(server, text="It is Paris.", target="Paris", **options):
    scorer = build_scorer("verifier", {"endpoint": server.url, "model": "wise", **options})
    question = Question("t", "q", target, {"input": "Capital of France?"})
    assert scorer.check_target(question) is None
    return scorer.score(Completion(text, "stop"), question)


def is_content_free(body):
    return "Question:\nN/A\n" in body["messages"][0]["content"]


# Reading labels


def test_tokens_that_are_the_same_label_add_up():
    found = label_logits([("A", math.log(0.5)), (" A", math.log(0.25)), ("B", math.log(0.1)), ("C", -9.0)])
    assert [math.exp(value) for value in found] == pytest.approx([0.75, 0.1, math.exp(-9.0)])


def test_calibration_is_the_softmax_of_the_difference_over_the_temperature():
    logits, baseline, temperature = (-0.2, -2.0, -4.0), (-1.5, -0.4, -3.0), 2.5
    weights = [math.exp((s - b) / temperature) for s, b in zip(logits, baseline, strict=True)]
    expected = [weight / sum(weights) for weight in weights]
    assert calibrated(logits, baseline, temperature) == pytest.approx(expected)
    assert calibrated(logits, logits) == pytest.approx([1 / 3] * 3)
    assert calibrated((0.0, -5000.0, -1.0), (0.0, 0.0, 0.0))[1] == 0.0


# Asking


def test_probabilities_are_calibrated_against_what_the_verifier_says_about_nothing(serve):
    server = serve(lambda body: labelled(0.6, 0.3, 0.1) if is_content_free(body) else labelled(0.6, 0.2, 0.2))
    found = scored(server)
    expected = [p / sum((1, 2 / 3, 2)) for p in (1, 2 / 3, 2)]
    assert [found.signals[f"verifier_{label}"] for label in "abc"] == pytest.approx(expected)
    assert [found.signals[f"verifier_raw_{label}"] for label in "abc"] == pytest.approx([0.6, 0.2, 0.2])
    assert (found.category, found.signals["is_correct"]) == (0, False)  # C is the likeliest
    plain = scored(server, content_free=())
    assert [plain.signals[f"verifier_{label}"] for label in "abc"] == pytest.approx([0.6, 0.2, 0.2])
    assert plain.category == 1
    soft = scored(server, content_free=(), temperature=2.0)
    roots = [math.sqrt(p) for p in (0.6, 0.2, 0.2)]
    assert soft.signals["verifier_a"] == pytest.approx(roots[0] / sum(roots))
    assert soft.signals["verifier_raw_a"] == pytest.approx(0.6), "what the verifier itself has said"


def test_the_baseline_is_asked_once_and_averaged_over_its_texts(serve):
    def say(body):
        content = body["messages"][0]["content"]
        if is_content_free(body):
            return labelled(0.8, 0.1, 0.1)
        return labelled(0.2, 0.7, 0.1) if "Question:\n[MASK]\n" in content else labelled(0.5, 0.4, 0.1)

    server = serve(say)
    options = {"endpoint": server.url, "model": "wise", "content_free": ("N/A", "[MASK]")}
    scorer = build_scorer("verifier", options)
    question = Question("t", "q", "Paris", {"input": "Capital of France?"})
    assert scorer.requests_each == 3
    bills = [scorer.score(Completion(f"answer {n}", "stop"), question).signals for n in range(3)]
    assert [bill["verifier_requests"] for bill in bills] == [3, 1, 1]
    assert scorer.requests_each == 1
    assert len(server.asked) == 5
    weights = [0.5 / math.sqrt(0.8 * 0.2), 0.4 / math.sqrt(0.1 * 0.7), 0.1 / 0.1]
    assert bills[2]["verifier_a"] == pytest.approx(weights[0] / sum(weights))


def test_the_request_reads_one_slot(serve):
    server = serve(lambda body: labelled(0.6, 0.3, 0.1))
    scored(server, extra_body={"chat_template_kwargs": {"enable_thinking": False}})
    body = server.asked[-1]
    assert (body["max_tokens"], body["logprobs"], body["top_logprobs"]) == (1, True, 20)
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    content = body["messages"][0]["content"]
    assert all(part in content for part in ("Capital of France?", "Paris", "RESPONSE", "A: correct"))
    assert re.search(r"RESPONSE.*\nIt is Paris\.\n.*RESPONSE", content)


def test_another_scorer_can_say_what_is_right(serve):
    server = serve(lambda body: labelled(0.1, 0.8, 0.1))
    found = scored(server, text=r"\boxed{42}", target="42", is_correct={"kind": "numeric"}, content_free=())
    assert (found.category, found.extracted, found.signals["is_correct"]) == (1, "42", True)
    assert found.signals["verifier_b"] == pytest.approx(0.8)
    assert found.reason == "right (boxed); verifier A 0.100, B 0.800, C 0.100"
    found = scored(serve(lambda body: labelled(0.4, 0.5, 0.1)), content_free=())
    assert found.category == 0  # another label is likelier
    own = Path(__file__).parents[1] / "property" / "own_scorer.py"
    failing = {"kind": "python", "function": f"{own}:failing"}
    found = scored(server, text="42", target="42", is_correct=failing, content_free=())
    assert (found.category, found.reason.split(":")[0]) == (None, "the scorer failed")


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ("A", "gave no log-probabilities"),
        (("<think>", {"<think>": -0.01}), "had none of A, B, C among the likeliest tokens"),
        (400, r"refused the request \(HTTP 400 Bad Request: no\)"),
    ],
)
def test_an_answer_about_which_the_verifier_gives_no_label_is_unscored(serve, reply, words):
    found = scored(serve(lambda body: reply))
    assert found.category is None
    assert re.search(words, found.reason)
    assert not {"is_correct", "verifier_a"} & set(found.signals)


# Whole runs


def label(body):
    if is_content_free(body):
        return labelled(0.25, 0.25, 0.25)
    return labelled(0.8, 0.1, 0.02) if answer_is_right(body) else labelled(0.1, 0.8, 0.02)


def checker(server):
    """Return a verifier that is always right."""
    return {"kind": "verifier", "endpoint": server.url, "model": "wise", "is_correct": "numeric"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run under the schema that looks at nothing but the verifier."""
    folder = tmp_path_factory.mktemp("verified")
    with scripted_chat() as serve:
        task = {"scorer": checker(serve(label)), "rubric": "verifier-only"}
        out, result = run_config(folder, mimic_config(task, goal="budget", budget={"trials": 120}))
    assert result.code == 0, result
    return out


@pytest.mark.slow
def test_a_run_is_ranked_by_the_verifiers_probabilities(run):
    records = trials(run)
    assert len(records) == 120
    signals = [record.score.signals for record in records]
    for one in signals:
        assert sum(one[f"verifier_{label}"] for label in "abc") == pytest.approx(1.0)
    expected = get_schema("verifier-only").assign(Signals.from_records(signals), {}).tolist()
    assert [record.score.category for record in records] == expected
    assert len(set(expected)) >= 2
    assert [model["model"] for model in report(run)["models"]] == ["sage", "novice"]


@pytest.mark.parametrize("name", USES_VERIFIER)
def test_every_schema_with_a_verifier_ranks_the_stored_answers(run, name):
    result = command("rescore", run, "--rubric", name, "--dry-run", "--json", code=0)
    (_, anew) = json.loads(result.out)
    assert [model["model"] for model in anew["models"]] == ["sage", "novice"]
