"""``plan`` and ``analyze`` as a person uses them: installed command, files, exit codes."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from answering_server import two_models
from command_line import COINS, Finished, in_process, quickstart, write_config

from adaptive_eval.views.numbers import usd

QUICK = ("--replicates", "12", "--workers", "1")
FEW = ("--replicates", "3", "--workers", "1")


def as_json(done: Finished) -> dict[str, Any]:
    """Return the JSON that a command printed."""
    assert done.code == 0, done
    assert all(" of " in line for line in done.err.splitlines())  # its progress, if it is slow
    data: dict[str, Any] = json.loads(done.out)
    return data


def test_recorded_outcomes_are_replayed_by_plan_and_ranked_by_analyze(tmp_path):
    """Of three coins, plan replays two; requests in flight and slow ones cost trials, and decide nothing."""
    rng = np.random.default_rng(7)
    lines = ["model,question,trial,category"]
    for model, mean in (("low", 0.2), ("middle", 0.55), ("high", 0.9)):
        for question in range(25):
            lines += [f"{model},q{question},{trial},{int(rng.random() < mean)}" for trial in range(20)]
    (tmp_path / "coins.csv").write_text("\n".join(lines), "utf-8")
    rule = ("plan", "--recorded", "coins.csv", "--only", "high,low", *QUICK)
    plain = as_json(in_process(*rule, "--json", cwd=tmp_path))
    flying = ("--in-flight", "16", "--latency", "2", "--latency-factor", "3", "--json")
    late = as_json(in_process(*rule, *flying, cwd=tmp_path))
    assert [pair["better"] for pair in plain["pairs"]] == [1.0]
    assert plain["pairs"] == late["pairs"]
    assert plain["mean_trials"] < late["mean_trials"] < 2 * 25 * 9
    assert (plain["decided"], plain["tied"], plain["undecided"]) == (1.0, 0.0, 0.0)
    assert plain["any_wrong_winner"]["count"] == 0 < plain["any_wrong_winner"]["high"] < 0.5
    shown = in_process(*rule, "--workers", "2", cwd=tmp_path, code=0).out
    assert "12: 100.0 % resolved" in shown
    uniform = plain["compared"]["uniform"]
    assert f"{uniform:,.0f} trials: {plain['mean_trials'] / uniform:.2f} of them" in shown
    ranked = in_process("analyze", "coins.csv", "--equivalence", "0.1", *QUICK, cwd=tmp_path, code=0).out
    assert "3 models, 25 questions, 1,500 trials" in ranked
    found = re.findall(r"^(high|middle|low) .* (\d) +(\d)–(\d) +500 +(\d+) ", ranked, re.MULTILINE)
    assert [line[:4] for line in found] == [("high", *"111"), ("middle", *"222"), ("low", *"333")]
    used = sum(int(line[4]) for line in found)
    assert re.search(rf" {used}: {1 - used / 1500:.0%} saved".replace("%", " %"), ranked)
    assert "everything decided" in ranked


def unknown_models(folder: Path, scorer: Any = "numeric") -> Path:
    """Write a config of two models of which nothing is known."""
    stopping = {"equivalence": 0.1, "max_passes": 20}
    data = two_models(folder, "http://127.0.0.1:9/v1", questions=12, stopping=stopping, budget={})
    data["tasks"][0]["scorer"] = scorer
    return write_config(folder, data)


class TestPlan:
    def test_tabulates_policies_margins_and_budgets_and_sends_nothing(self, tmp_path):
        config = short_config(tmp_path)
        done = in_process("plan", config, *QUICK, "--margin", "0.2", cwd=tmp_path, code=0)
        assert re.search(r"round-robin +0\.1 ", done.out)
        assert re.search(r"uniform +0\.2 ", done.out)
        assert "What a budget in trials decides" in done.out
        assert "take --replicates 200" in done.out
        assert "If all models were equally good" in done.out
        assert "the config's mimic" in done.out
        assert not (tmp_path / "runs").exists()

    def test_validate_says_the_ceiling_and_what_does_not_bound_the_run(self, tmp_path):
        done = in_process("validate", unknown_models(tmp_path), "--offline", cwd=tmp_path)
        assert "at most 480 trials: 20 passes × 12 questions × 2 models" in done.out
        assert "warning" not in done.out
        loose = in_process(
            "validate", unknown_models(tmp_path), "--offline", "-o", "stopping.equivalence=null", cwd=tmp_path
        )
        assert "warning    neither a budget nor stopping.equivalence" in loose.out

    @pytest.mark.parametrize("scorer", [{"kind": "f1", "range": [0, 1]}, "numeric"])
    def test_a_plan_says_what_it_takes_numbers_for(self, tmp_path, scorer):
        done = in_process("plan", unknown_models(tmp_path, scorer), *FEW, cwd=tmp_path, code=0)
        assert ("spread of scores: unknown" in done.out) is (scorer != "numeric")

    @pytest.mark.slow
    def test_in_a_pipe_its_progress_is_lines(self, tmp_path, monkeypatch):
        monkeypatch.setattr("adaptive_eval.cli.simulating._ProgressLines.every", 0.0)
        done = in_process("plan", short_config(tmp_path), *QUICK, "--json", cwd=tmp_path)
        assert re.search(r"^all equal: [1-9]\d* of \d+$", done.err, re.MULTILINE), done.err
        assert json.loads(done.out)["rows"]

    @pytest.mark.slow
    def test_assumptions_can_be_stated(self, tmp_path):
        config = short_config(tmp_path)
        stated = [part for name in COINS for part in ("--assume", f"{name}=0.6")]
        data = as_json(
            in_process(
                "plan", config, *stated, "--answer-tokens", "1000", "--prompt-tokens", "100", "--latency",
                "36", *FEW, "--json", cwd=tmp_path,
            )
        )  # fmt: skip
        assert data["truth"] == pytest.approx([0.6] * len(COINS))
        row = data["rows"][0]
        assert row["tokens"]["median"] == pytest.approx(1100 * row["trials"]["median"])
        assert row["hours"]["median"] > 0.0

    @pytest.mark.slow
    def test_a_price_is_a_range_until_the_length_of_answers_is_known(self, tmp_path):
        data = quickstart(equivalence=0.2)
        data["stopping"]["max_passes"] = 4
        data["mimic"]["latency"] = {"median": 0}
        earlier = tmp_path / "earlier"
        in_process("run", write_config(tmp_path, data), "--out", earlier, cwd=tmp_path, code=(0, 3))
        del data["mimic"]
        for model in data["models"]:
            model["endpoints"] = ["http://127.0.0.1:9/v1"]
            model["price"] = {"input": 1, "output": 4}
        config = write_config(tmp_path, data)
        unknown = in_process("plan", config, *FEW, cwd=tmp_path)
        row = as_json(in_process("plan", config, *FEW, "--json", cwd=tmp_path))["rows"][0]
        low, high = row["least_usd"]["median"], row["usd"]["median"]
        assert 0.0 < low < high
        assert f"{usd(low)} (empty answers) to {usd(high)} (longest answers)" in " ".join(unknown.out.split())
        stated = in_process("plan", config, "--answer-tokens", "9", *FEW, cwd=tmp_path)
        assert "USD is an upper bound" not in stated.out
        analysed = as_json(in_process("analyze", earlier, *QUICK, "--json", cwd=tmp_path))
        assert analysed["models"][0]["model"] == "sage"
        before = as_json(in_process("plan", config, "--from", earlier, *FEW, "--json", cwd=tmp_path))
        assert any("from" in line and "earlier" in line for line in before["assumptions"])
        scores = dict(zip(COINS, before["truth"], strict=True))
        assert scores["sage"] > scores["novice"] > scores["guesser"]
        prior = ("-o", f"prior.from={earlier}")
        planned = as_json(in_process("plan", config, *prior, *FEW, "--json", cwd=tmp_path))
        assert any("tokens of an answer: the mean in" in line for line in planned["assumptions"])
        assert planned["rows"][0]["usd"] == planned["rows"][0]["least_usd"]
        assert planned["rows"][0]["usd"]["median"] < 0.5 * high


def short_config(folder: Path) -> Path:
    """Write the quickstart with a wide margin and few passes."""
    data = quickstart(equivalence=0.1)
    data["stopping"]["max_passes"] = 20
    return write_config(folder, data)
