"""Answers that hold no answer, are lost, or report impossible usage."""

import random
import re
import shlex
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from answering_server import answering, reply, run_two, said, two_models
from command_line import Finished, in_process, report, trials, write_config

# Models whose answers hold no answer: counted by cause, told, and not ranked as if they were wrong.


REASONING = {**said(None), "reasoning_content": "I think it is 7."}
TOOLS = {**said(None), "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f"}}]}
CAUSES: dict[str, dict[str, Any]] = {
    "reasoning": {"message": REASONING},
    "tool_calls": {"message": TOOLS, "finish_reason": "tool_calls"},
    "content_filter": {"message": said(None), "finish_reason": "content_filter"},
    "length": {"message": REASONING, "finish_reason": "length"},
    "empty": {"message": said("")},
}


def run(folder: Path, bad: Callable[[str, int], dict[str, Any]], **more: Any) -> Finished:
    """Run good, which is right, against bad, which answers as `bad` says of prompt and number."""

    def answer(model: str, prompt: str, number: int) -> dict[str, Any]:
        return {"message": reply(prompt, number)} if model == "good" else dict(bad(prompt, number))

    return run_two(folder, answer, code=None, **more)


def of_bad(folder: Path) -> dict[str, Any]:
    """Return what the report says of the model bad."""
    return next(model for model in report(folder / "run")["models"] if model["model"] == "bad")


@pytest.mark.slow
@pytest.mark.parametrize("cause", CAUSES)
def test_a_model_that_gives_no_answer_is_not_ranked(tmp_path, cause):
    done = run(tmp_path, lambda *_: CAUSES[cause])
    data = report(tmp_path / "run")
    assert done.code == 4, done.said
    assert data["run"]["stop"]["reason"] == "unusable"
    assert of_bad(tmp_path)["no_answer"].keys() == {cause}
    assert 10 <= of_bad(tmp_path)["no_answer"][cause] < 60
    assert f"({cause} " in done.said
    assert any(f"({cause} " in text for text in data["warnings"])


def test_the_ranking_is_resolved_where_that_is_wanted(tmp_path):
    def withheld(prompt: str, number: int) -> dict[str, Any]:
        return {"message": said(f"Part {number} of"), "finish_reason": "content_filter"}

    done = run(tmp_path, withheld, on={"mostly_empty": "rank", "content_filter": "wrong"})
    assert done.code == 0, done.said
    assert report(tmp_path / "run")["run"]["stop"]["reason"] == "resolved"
    first = report(tmp_path / "run")
    assert any("(content_filter " in text for text in first["warnings"])
    in_process("run", "run", "-o", "budget.wall_clock=1h", "--display", "none", cwd=tmp_path, code=0)
    later = report(tmp_path / "run")
    assert (later["warnings"], later["models"]) == (first["warnings"], first["models"])
    assert [line["name"] for line in later["budgets"]][-1] == "wall_clock"


@pytest.mark.parametrize("treated", ["wrong", "missing"])
def test_some_such_answers_are_wrong_or_missing_as_the_config_says(tmp_path, treated):
    def half(prompt: str, number: int) -> dict[str, Any]:
        return CAUSES["content_filter"] if number % 2 else {"message": reply(prompt, number, right=False)}

    done = run(tmp_path, half, on={"content_filter": treated}, goal="budget", budget={"trials": 80})
    bad = of_bad(tmp_path)
    withheld = bad["no_answer"]["content_filter"]
    assert 15 <= withheld <= 25, done.said
    assert bad["missing"] - bad["copies"] == (withheld if treated == "missing" else 0)
    reasons = {"unscored: no answer: content_filter": withheld} if treated == "missing" else {}
    assert reasons.items() <= bad["missing_reasons"].items()
    assert all(record.completion is not None for record in trials(tmp_path / "run"))
    assert any("bad: " in text and "content_filter" in text for text in report(tmp_path / "run")["warnings"])
    shown = in_process("monitor", "run", "--once", cwd=tmp_path).said
    assert "no answer" in shown
    assert f"content\\_filter {withheld}" in (tmp_path / "run" / "report.md").read_text("utf-8")
    assert f"content_filter {withheld}" in (tmp_path / "run" / "report.html").read_text("utf-8")


def test_a_run_that_a_filter_keeps_open_is_told_the_command_that_counts_such_answers(tmp_path):
    def third(prompt: str, number: int) -> dict[str, Any]:
        return {"message": reply(prompt, number)} if number % 3 else CAUSES["content_filter"]

    done = run(tmp_path, third, budget={"trials": 1200})
    assert done.code == 6, done.said
    command = shlex.split(done.out.splitlines()[-1].partition("adaptive-eval ")[2])
    assert command == ["run", "run", "--new", "-o", "on.content_filter=wrong"]
    assert in_process(*command, cwd=tmp_path).code == 4  # the server has gone; the setting is right


# One model whose answers cannot be used, and a scorer that can use none.


def run_three(folder: Path, answer: Callable[[str, str, int], dict[str, Any]], **more: Any) -> Finished:
    """Run good, bad and odd, which answer as `answer` says."""
    with answering(answer) as url:
        data = two_models(folder, url, **{"budget": {"trials": 1200}, **more})
        data["models"].append({**data["models"][0], "name": "odd"})
        return in_process("run", write_config(folder, data), "--out", "run", "--display", "none", cwd=folder)


def half_cut_off(model: str, prompt: str, number: int) -> dict[str, Any]:
    """Answer right in two thirds as good, wrong as bad; as odd right, but two thirds cut off."""
    cut = {"finish_reason": "length"} if model == "odd" and number % 3 else {}
    right = model == "odd" or (model == "good" and number % 3 > 0)
    return {"message": reply(prompt, number, right=right), **cut}


def test_a_model_that_cannot_be_used_is_stopped_alone_and_the_others_are_ranked(tmp_path):
    done = run_three(tmp_path, half_cut_off)
    assert done.code == 3, done.said
    data = report(tmp_path / "run")
    assert data["run"]["stop"]["reason"] == "partial"
    assert data["run"]["stop"]["evidence"]["unusable"] == ["odd"]
    verdicts = {frozenset((pair["first"], pair["second"])): pair["verdict"] for pair in data["pairs"]}
    assert verdicts.pop(frozenset({"good", "bad"})) in ("better", "worse")
    assert set(verdicts.values()) == {"open"}
    odd = next(model for model in data["models"] if model["model"] == "odd")
    assert 10 <= odd["trials"] < 60
    (stopped,) = (one["text"] for one in data["decisions"] if one["kind"] == "model_stopped")
    assert "cut off at the token limit" in stopped
    assert "on: {length: wrong}" in stopped
    assert "Change how answers of odd count" in done.out
    again = in_process("run", "run", "--display", "none", cwd=tmp_path)
    assert (again.code, report(tmp_path / "run")["pairs"]) == (3, data["pairs"])


def test_a_run_ends_when_nothing_is_left_that_its_goal_needs(tmp_path):
    goals = {
        "baseline": ({"kind": "baseline", "model": "odd"}, 4),
        "threshold": ({"kind": "threshold", "value": 0.4}, 3),
    }
    for name, (goal, code) in goals.items():
        (tmp_path / name).mkdir()
        done = run_three(tmp_path / name, half_cut_off, goal=goal)
        assert done.code == code, done.said
        assert "has the highest score" not in done.said
    assert report(tmp_path / "baseline" / "run")["run"]["stop"]["evidence"]["cause"] == "models"
    found = report(tmp_path / "threshold" / "run")["pairs"]
    assert {pair["first"]: pair["verdict"] for pair in found} == {
        "good": "better",
        "bad": "worse",
        "odd": "open",
    }


@pytest.mark.parametrize("on", [{}, {"nothing_found": "wrong"}])
def test_a_scorer_that_finds_nothing_in_any_answer_gives_no_verdict(tmp_path, on):
    def answer(model: str, prompt: str, number: int) -> dict[str, Any]:
        return {"message": said(f"No number, attempt {'x' * (number % 7)}")}

    done = run_three(tmp_path, answer, on=on, stopping={"equivalence": 0.15}, budget={"trials": 900})
    data = report(tmp_path / "run")
    if on:
        assert (done.code, {pair["verdict"] for pair in data["pairs"]}) == (0, {"tie"})
        return
    assert done.code == 4, done.said
    assert {pair["verdict"] for pair in data["pairs"]} == {"open"}
    assert all(model["trials"] < 60 for model in data["models"])
    assert " ".join(done.said.split()).count("No number, attempt") >= 3
    again = in_process("run", "run", "--display", "none", cwd=tmp_path, code=4)
    assert " ".join(again.said.split()).count("No number, attempt") >= 3
    assert "highest score" not in again.said


def test_a_run_that_is_continued_shows_the_stored_answers_in_which_nothing_was_found(tmp_path):
    def answer(model: str, prompt: str, number: int) -> dict[str, Any]:
        return {"message": said(f"No number, attempt {'x' * (number % 7)}")}

    command = ("--display", "none")
    with answering(answer) as url:
        path = write_config(tmp_path, two_models(tmp_path, url, budget={"trials": 10}))
        in_process("run", path, "--out", "run", *command, cwd=tmp_path, code=3)
        done = in_process("run", "run", "-o", "budget.trials=900", *command, cwd=tmp_path, code=4)
    assert " ".join(done.said.split()).count("No number, attempt") >= 3


# A server that loses answers for being wrong: the run calls no verdict that they could turn.


def run_losing(folder: Path, loses: float, bad: float) -> Finished:
    """Run good, right in 70 %, against bad, of whose wrong answers the server loses a share."""
    asked: Counter[tuple[str, str]] = Counter()

    def answer(model: str, prompt: str, number: int) -> dict[str, Any]:
        asked[model, prompt] += 1
        rng = random.Random(f"{model} {prompt} {asked[model, prompt]}")  # whatever the order of arrival
        right = rng.random() < {"good": 0.7, "bad": bad}[model]
        if model == "bad" and not right and rng.random() < loses:
            return {"status": 500}
        return {"message": reply(prompt, number, right=right)}

    retry = {"attempts": 1, "requeue": 0}
    return run_two(folder, answer, code=None, questions=60, budget={"trials": 1500}, retry=retry)


def test_losses_that_could_turn_the_only_verdict_end_the_run_without_it(tmp_path):
    done = run_losing(tmp_path, loses=0.95, bad=0.55)  # of the answers that arrive, 96 % are right
    assert done.code == 6, done.said
    data = report(tmp_path / "run")
    (pair,) = data["pairs"]
    assert pair["verdict"] == "open"
    stop = data["run"]["stop"]
    assert (stop["reason"], stop["evidence"]["lost"].keys()) == ("lost", {"bad"})
    advice = re.search(r"on: \{(\w+): (\w+)\}", stop["text"])
    assert advice, stop["text"]
    setting = f"on.{advice[1]}={advice[2]}"
    assert in_process("run", "run", "-o", setting, "-o", "budget.trials=60", cwd=tmp_path).code != 2
    assert "--new" not in done.out.splitlines()[-1]
    lossy = next(model for model in data["models"] if model["model"] == "bad")
    assert lossy["missing"] == sum(lossy["missing_reasons"].values()) > 10
    assert lossy["score_if_missing_wrong"] < 0.7 < lossy["score"]


def test_a_run_of_too_few_questions_is_told_the_command_that_decides_it(tmp_path):
    with answering(
        lambda model, prompt, number: {"message": reply(prompt, number, right=model == "good")}
    ) as url:
        data = two_models(tmp_path, url, questions=2, stopping={"equivalence": 0.1, "target": "population"})
        done = in_process(
            "run", write_config(tmp_path, data), "--out", "run", "--display", "none", cwd=tmp_path, code=3
        )
        command = shlex.split(done.out.splitlines()[-1].partition("adaptive-eval ")[2])
        assert in_process(*command, "--display", "none", cwd=tmp_path).code == 0
    assert report(tmp_path / "run")["pairs"][0]["verdict"] != "open"


# Answers with impossible token counts: the run continues with a warning, and can be resumed.


ABSURD: list[Any] = [
    {"prompt_tokens": 10**30, "completion_tokens": 2},
    {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 10**30}},
    10**30,
]
"""tests/data/server_answers.json has other such reports."""


@pytest.mark.slow
def test_absurd_usage_counts_as_no_report_and_the_run_resumes(tmp_path):
    def answer(model: str, prompt: str, number: int) -> dict[str, Any]:
        usage = [*ABSURD, {"prompt_tokens": 9, "completion_tokens": 2}][number % 4]
        return {"message": reply(prompt, number, right=model == "good" or number % 2 == 0), "usage": usage}

    budget = {"trials": 60, "tokens": "1M", "usd": 1000}
    price = {"input": 1.0, "output": 2.0, "cached_input": 0.5}
    with answering(answer) as url:
        data = two_models(tmp_path, url, budget=budget)
        data["models"] = [{**model, "price": price} for model in data["models"]]
        done = in_process("run", write_config(tmp_path, data), "--out", "run", cwd=tmp_path, code=(0, 3))
        assert "reported more tokens than can be" in done.said
        assert "reported no tokens" in done.said
        usages = [record.usage for record in trials(tmp_path / "run")]
        assert max(usage.total_tokens for usage in usages) <= 11
        assert any(usage.total_tokens == 0 for usage in usages)
        assert all(0 <= usage.cached_tokens <= usage.prompt_tokens for usage in usages)
        spent = {line["name"]: line["spent"] for line in report(tmp_path / "run")["budgets"]}
        assert 0 < spent["tokens"] <= 1e6
        assert 0 < spent["usd"] < 1
        in_process("run", "run", cwd=tmp_path, code=(0, 3))


def test_no_verdict_is_withdrawn_when_a_run_is_continued_that_stopped_a_model(tmp_path):
    run_three(tmp_path, half_cut_off)
    in_process("run", "run", "--display", "none", cwd=tmp_path)
    assert "withdrawn" not in [one["kind"] for one in report(tmp_path / "run")["decisions"]]
    assert in_process("validate", "run", cwd=tmp_path).code == 0
