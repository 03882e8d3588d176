"""Copies decide nothing: those of a server that caches, and those of a log whose repeats have one seed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from command_line import in_process, report, write_config

from adaptive_eval import results_of
from adaptive_eval.interop.recorded_files import read_recorded

QUESTIONS = 16


def letters_config(folder: Path, *, cached: bool) -> Path:
    """Write a config of two models that answer by letters; the servers may cache."""
    rows = [
        {"id": f"q{n}", "input": f"Which is right, number {n}?", "choices": list("wxyz"), "target": "A"}
        for n in range(QUESTIONS)
    ]
    (folder / "letters.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    models = {"good": {"mean": 0.7, "cached": cached}, "bad": {"mean": 0.55, "cached": cached}}
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
                "doc_id": doc, "doc": {"question": f"What is {doc}?"}, "target": str(doc),
                "arguments": [["What?", {}]], "resps": [texts], "filtered_resps": texts, "filter": "none",
                "metrics": ["exact_match"], "exact_match": scores[0],
            }
        )  # fmt: skip
    path = place / "samples_sums_2026-01-02T03-04-05.000001.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return place


@pytest.mark.parametrize("vary", [False, True])
def test_repeats_of_a_log_that_are_copies_do_not_count(tmp_path: Path, vary: bool) -> None:
    logs = [lm_eval_log(tmp_path, name, right, 3, vary=vary) for name, right in (("good", 44), ("bad", 40))]
    done = in_process("analyze", *logs, "--scorer", "contains", "--write", "run", "--json", cwd=tmp_path)
    assert done.code == 0, done
    found = json.loads(done.out)
    assert found["trials"] == (480 if vary else 160)
    assert found["copies"] == (0 if vary else 320)
    table = str(results_of(tmp_path / "run"))
    assert (" 160 (160 copies)" in table, "copies" in table) == (not vary, not vary)
    assert in_process("report", "run", cwd=tmp_path).code == 0
    models = report(tmp_path / "run")["models"]
    assert [sum(line["missing_reasons"].values()) for line in models] == [line["copies"] for line in models]
    assert any("are copies of the one before" in note for note in found["notes"]) is not vary
    analysed = in_process("analyze", *logs, "--json", "--replicates", "2", "--workers", "1", cwd=tmp_path)
    assert analysed.code in (0, 2, 3), analysed


@pytest.mark.parametrize("vary", [False, True])
def test_epochs_of_an_inspect_log_that_are_copies_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vary: bool
) -> None:
    """The summaries in an Inspect log lack the answers: their scores and numbers of tokens have to do."""

    def summaries(path: str) -> list[SimpleNamespace]:
        name = Path(path).stem
        right = {"good": 44, "bad": 40}[name]
        return [
            SimpleNamespace(
                id=doc, epoch=epoch, input=f"What is {doc}?", target=str(doc), choices=None, metadata={},
                error=None, limit=None, working_time=1.0, total_time=1.0, completed_at=None, uuid=None,
                model_usage={name: SimpleNamespace(input_tokens=9, output_tokens=30 + vary * epoch)},
                scores={"m": SimpleNamespace(value=float(doc * 7 % 80 < right), answer="", explanation="")},
            )
            for doc in range(80)
            for epoch in (1, 2, 3)
        ]  # fmt: skip

    def header(path: str, header_only: bool) -> SimpleNamespace:
        name = Path(path).stem
        return SimpleNamespace(
            status="success", eval=SimpleNamespace(task_version=0, eval_id=name, task="sums", model=name)
        )

    library = SimpleNamespace(read_eval_log=header, read_eval_log_sample_summaries=summaries)
    monkeypatch.setitem(sys.modules, "inspect_ai.log", library)
    monkeypatch.setitem(sys.modules, "inspect_ai", SimpleNamespace(log=library))
    logs = [tmp_path / f"{name}.eval" for name in ("good", "bad")]
    for log in logs:
        log.write_bytes(b"PK")
    done = in_process("analyze", *logs, "--write", "run", "--json", cwd=tmp_path)
    assert done.code == 0, done
    found = json.loads(done.out)
    assert (found["trials"], found["copies"]) == ((480, 0) if vary else (160, 320))


def test_a_table_of_copies_without_texts_gives_no_verdict(tmp_path: Path) -> None:
    rows = [
        f"{model},q{n},{int(n < right)}" for model, right in (("good", 44), ("bad", 40)) for n in range(80)
    ]
    (tmp_path / "table.csv").write_text("model,question,category\n" + "\n".join(rows * 48) + "\n")
    done = in_process("analyze", "table.csv", "--write", "run", "--json", cwd=tmp_path)
    assert (json.loads(done.out)["trials"], json.loads(done.out)["copies"]) == (160, 160 * 47)
    in_process("report", "run", cwd=tmp_path)
    assert [pair["verdict"] for pair in report(tmp_path / "run")["pairs"]] == ["open"]
    assert read_recorded([tmp_path / "table.csv"]).trials == 160


def test_a_cache_of_letters_decides_nothing(tmp_path: Path) -> None:
    config = letters_config(tmp_path, cached=True)
    done = in_process("run", config, "--out", "run", "--display", "none", cwd=tmp_path)
    assert done.code == 4, done
    data = report(tmp_path / "run")
    assert [pair["verdict"] for pair in data["pairs"]] == ["open"]
    assert [model["trials"] for model in data["models"]] == [QUESTIONS] * 2
    for model in data["models"]:
        assert model["copies"] == model["missing"] >= 300
        assert sum(model["missing_reasons"].values()) == model["missing"]
        assert model["score_if_missing_wrong"] < model["score"] < model["score_if_missing_right"]
    warned = [text for text in data["warnings"] if "asked again are the same text" in text]
    assert len(warned) == 2
    assert all("do not count" in text for text in warned)
