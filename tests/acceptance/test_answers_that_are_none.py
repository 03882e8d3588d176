"""Models whose answers hold no answer: counted by cause, told, and not ranked as if they were wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from answering_server import answering, reply, said, two_models
from command_line import Finished, in_process, report, trials, write_config

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

    with answering(answer) as url:
        config = write_config(folder, two_models(folder, url, **more))
        return in_process("run", config, "--out", "run", "--display", "none", cwd=folder)


def of_bad(folder: Path) -> dict[str, Any]:
    """Return what the report says of the model bad."""
    return next(model for model in report(folder / "run")["models"] if model["model"] == "bad")


@pytest.mark.slow
@pytest.mark.parametrize("cause", CAUSES)
def test_a_model_that_gives_no_answer_is_not_ranked(tmp_path: Path, cause: str) -> None:
    done = run(tmp_path, lambda *_: CAUSES[cause])
    data = report(tmp_path / "run")
    assert done.code == 4, done.said
    assert data["run"]["stop"]["reason"] == "endpoints"
    assert of_bad(tmp_path)["no_answer"].keys() == {cause}
    assert 20 <= of_bad(tmp_path)["no_answer"][cause] < 60
    assert f"({cause} " in done.said
    assert any(f"({cause} " in text for text in data["warnings"])
    assert "Traceback" not in done.said


def test_the_ranking_is_resolved_where_that_is_wanted(tmp_path: Path) -> None:
    def withheld(prompt: str, number: int) -> dict[str, Any]:
        return {"message": said(f"Part {number} of"), "finish_reason": "content_filter"}

    done = run(tmp_path, withheld, on={"mostly_empty": "rank"})
    assert done.code == 0, done.said
    assert report(tmp_path / "run")["run"]["stop"]["reason"] == "resolved"
    assert any("(content_filter " in text for text in report(tmp_path / "run")["warnings"])


@pytest.mark.parametrize("treated", ["wrong", "missing"])
def test_some_such_answers_are_wrong_or_missing_as_the_config_says(tmp_path: Path, treated: str) -> None:
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


def test_what_was_counted_counts_on_after_a_resume(tmp_path: Path) -> None:
    def answer(model: str, prompt: str, number: int) -> dict[str, Any]:
        return {"message": reply(prompt, number)} if model == "good" else dict(CAUSES["empty"])

    with answering(answer) as url:
        config = write_config(tmp_path, two_models(tmp_path, url, budget={"trials": 30}))
        first = in_process("run", config, "--out", "run", "--display", "none", cwd=tmp_path)
        assert first.code == 3
        assert of_bad(tmp_path)["trials"] < 20
        more = "budget.trials=400"
        again = in_process("run", "run", "-o", more, "--display", "none", cwd=tmp_path)
    assert report(tmp_path / "run")["run"]["stop"]["reason"] == "endpoints", again.said
    assert 20 <= of_bad(tmp_path)["no_answer"]["empty"] < 60
