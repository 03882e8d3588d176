"""Copies decide nothing: those of a server that caches, and those of a log whose repeats have one seed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import in_process, report, write_config

QUESTIONS = 16
CAPITALS = "ABCD"


def letters_config(folder: Path, *, cached: bool) -> Path:
    """Write a config of two models that answer by letters; the servers may cache."""
    rows = [
        {"id": f"q{n}", "input": f"Which is right, number {n}?", "choices": list("wxyz"), "target": "A"}
        for n in range(QUESTIONS)
    ]
    (folder / "letters.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    models = {
        "good": {"mean": 0.7, "cached": cached},
        "bad": {"mean": 0.55, "cached": cached},
    }
    return write_config(
        folder,
        {
            "name": "letters",
            "seed": 5,
            "mimic": {"seed": 2, "tokens": {"completion_median": 2}, "models": models},
            "models": [
                {"name": name, "endpoints": ["mimic"], "sampling": {"temperature": 0.8, "max_tokens": 50}}
                for name in models
            ],
            "tasks": [
                {"name": "letters", "dataset": "letters.jsonl", "prompt": "{input}", "scorer": "choice"}
            ],
            "goal": "ranking",
            "budget": {"trials": 3000},
        },
    )


def lm_eval_log(folder: Path, model: str, right: int, repeats: int, *, vary: bool) -> Path:
    """Write samples as lm-eval does with ``repeats``; its default seed makes them copies."""
    place = folder / model
    place.mkdir(parents=True)
    rows = []
    for doc in range(80):
        scores = [float((doc * 7 + repeat * (3 if vary else 0)) % 80 < right) for repeat in range(repeats)]
        texts = [
            f"{doc if score else doc + 1}{' ' * (vary * repeat)}." for repeat, score in enumerate(scores)
        ]
        rows.append(
            {
                "doc_id": doc,
                "doc": {"question": f"What is {doc}?"},
                "target": str(doc),
                "arguments": [["What?", {}]],
                "resps": [texts],
                "filtered_resps": texts,
                "filter": "none",
                "metrics": ["exact_match"],
                "exact_match": scores[0],
            }
        )
    path = place / "samples_sums_2026-01-02T03-04-05.000001.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return place


@pytest.mark.parametrize("vary", [False, True])
def test_repeats_of_a_log_that_are_copies_do_not_count(tmp_path: Path, vary: bool) -> None:
    logs = [lm_eval_log(tmp_path, name, right, 3, vary=vary) for name, right in (("good", 44), ("bad", 40))]
    done = in_process("import", *logs, "--scorer", "contains", "--out", "run", "--json", cwd=tmp_path)
    assert done.code == 0, done
    found = json.loads(done.out)
    assert found["trials"] == (480 if vary else 160)
    assert found["copies"] == (0 if vary else 320)
    assert any("are copies of the one before" in note for note in found["notes"]) is not vary
    analysed = in_process("analyze", *logs, "--json", "--replicates", "2", "--workers", "1", cwd=tmp_path)
    assert analysed.code in (0, 2, 3), analysed


def test_a_log_of_copies_gives_no_verdict_that_its_first_answers_do_not_give(tmp_path: Path) -> None:
    verdicts = {}
    for repeats in (1, 48):
        folder = tmp_path / str(repeats)
        logs = [
            lm_eval_log(folder, name, right, repeats, vary=False)
            for name, right in (("good", 44), ("bad", 40))
        ]
        done = in_process("import", *logs, "--scorer", "contains", "--out", folder / "run", cwd=tmp_path)
        assert done.code == 0, done
        in_process("report", folder / "run", cwd=tmp_path)
        verdicts[repeats] = [pair["verdict"] for pair in report(folder / "run")["pairs"]]
    assert verdicts[48] == verdicts[1] == ["open"]


def test_a_cache_of_letters_is_warned_of(tmp_path: Path) -> None:
    config = letters_config(tmp_path, cached=True)
    done = in_process("run", config, "--out", "run", "--display", "none", cwd=tmp_path)
    assert done.code in (0, 3), done
    warnings = report(tmp_path / "run")["warnings"]
    assert sum("answers to a question asked again are the same text" in text for text in warnings) == 2
