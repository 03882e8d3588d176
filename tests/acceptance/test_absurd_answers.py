"""Answers with impossible token counts: the run continues with a warning, and can be resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from answering_server import answering, reply, two_models
from command_line import in_process, report, trials, write_config

ABSURD: list[Any] = [
    {"prompt_tokens": 10**30, "completion_tokens": 2},
    {"prompt_tokens": 3, "completion_tokens": 2**63},
    {"prompt_tokens": -(10**30), "completion_tokens": -1},
    {"prompt_tokens": "12", "completion_tokens": [1]},
    {"prompt_tokens": {"a": 1}, "completion_tokens": 1e300, "total_tokens": 10**30},
    {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 10**30}},
    10**30,
]


@pytest.mark.slow
@pytest.mark.parametrize("budget", [{"trials": 60}, {"trials": 60, "tokens": "1M", "usd": 1000}])
def test_absurd_usage_counts_as_no_report_and_the_run_resumes(tmp_path: Path, budget: dict[str, Any]) -> None:
    def answer(model: str, prompt: str, number: int) -> dict[str, Any]:
        usage = (
            ABSURD[number % 10] if number % 10 < len(ABSURD) else {"prompt_tokens": 9, "completion_tokens": 2}
        )
        right = model == "good" or number % 2 == 0
        return {"message": reply(prompt, number, right=right), "usage": usage}

    with answering(answer) as url:
        data = two_models(tmp_path, url, budget=budget)
        for model in data["models"]:
            model["price"] = {"input": 1.0, "output": 2.0, "cached_input": 0.5}
        config = write_config(tmp_path, data)
        done = in_process("run", config, "--out", "run", "--display", "none", cwd=tmp_path)
        assert done.code in (0, 3), done.said
        assert "Traceback" not in done.said
        assert "reported more tokens than can be" in done.said
        usages = [record.usage for record in trials(tmp_path / "run")]
        assert max(usage.total_tokens for usage in usages) <= 11
        assert any(usage.total_tokens == 0 for usage in usages)
        assert all(0 <= usage.cached_tokens <= usage.prompt_tokens for usage in usages)
        spent = {line["name"]: line["spent"] for line in report(tmp_path / "run")["budgets"]}
        assert 0 < spent["tokens"] <= 1e6
        assert 0 < spent["usd"] < 1
        again = in_process("run", "run", "--display", "none", cwd=tmp_path)
        assert again.code in (0, 3), again.said
        assert "Traceback" not in again.said
