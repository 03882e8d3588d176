"""Copies decide nothing: those of a server that caches, and those of a log whose repeats have one seed."""

import json
from pathlib import Path

import pytest
from answering_server import run_two, said
from command_line import in_process, ran, report, write_config

from adaptive_eval import results_of
from adaptive_eval.interop.recorded_files import read_recorded
from adaptive_eval.trial import COPY_REASON

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


def reasoning(doc: int, score: float) -> str:
    """Return a long answer of its own to a question, which ends with a number."""
    steps = " ".join(f"step{doc * 1000 + step}" for step in range(150))
    return f"{steps} {doc if score else doc + 1}"


def lm_eval_log(folder: Path, model: str, right: int, repeats: int, *, vary: bool) -> Path:
    """Write samples as lm-eval does with ``repeats``; its default seed makes them copies."""
    place = folder / model
    place.mkdir(parents=True)
    rows = []
    for doc in range(80):
        scores = [float((doc * 7 + repeat * (3 if vary else 0)) % 80 < right) for repeat in range(repeats)]
        texts = [f"{reasoning(doc, score)}{' ' * (vary * repeat)}." for repeat, score in enumerate(scores)]
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
def test_repeats_of_a_log_that_are_copies_do_not_count(tmp_path, vary):
    logs = [lm_eval_log(tmp_path, name, right, 3, vary=vary) for name, right in (("good", 44), ("bad", 40))]
    done = in_process(
        "analyze", *logs, "--scorer", "contains", "--write", "run", "--json", cwd=tmp_path, code=0
    )
    found = json.loads(done.out)
    assert found["trials"] == (480 if vary else 164)
    assert found["copies"] == (0 if vary else 316)
    table = str(results_of(tmp_path / "run"))
    assert (" 158 (158 copies)" in table, "copies" in table) == (not vary, not vary)
    assert in_process("report", "run", cwd=tmp_path).code == 0
    models = report(tmp_path / "run")["models"]
    assert [sum(line["missing_reasons"].values()) for line in models] == [line["copies"] for line in models]
    assert any("are copies" in note for note in found["notes"]) is not vary
    in_process(
        "analyze", *logs, "--json", "--replicates", "2", "--workers", "1", cwd=tmp_path, code=(0, 2, 3)
    )


def test_equal_scores_of_a_table_without_texts_count_and_are_told_of(tmp_path):
    rows = [
        f"{model},q{n},{int(n < right)}" for model, right in (("good", 44), ("bad", 40)) for n in range(80)
    ]
    table = tmp_path / "table.csv"
    table.write_text("model,question,category\n" + "\n".join(rows * 4) + "\n")
    assert in_process("analyze", "table.csv", "--write", "run", cwd=tmp_path).code == 2  # rows there 4 times?
    numbered = [f"{row},{trial}" for trial in range(4) for row in rows]
    table.write_text("model,question,category,trial\n" + "\n".join(numbered) + "\n")
    done = in_process("analyze", "table.csv", "--write", "run", "--json", cwd=tmp_path)
    found = json.loads(done.out)
    assert (found["trials"], found["copies"]) == (640, 0)
    assert (
        sum("all 240 answers to a question asked again are the same" in note for note in found["notes"]) == 2
    )
    assert read_recorded([tmp_path / "table.csv"]).trials == 640


@pytest.mark.slow
@pytest.mark.parametrize("text", ["1", ""])
@pytest.mark.parametrize("temperature", [0, 0.8])
def test_healthy_models_with_one_short_text_lose_nothing(tmp_path, text, temperature):
    model = {"sampling": {"max_tokens": 64, "temperature": temperature}}
    more = {"on": {"mostly_empty": "rank"}, "budget": {"trials": 200}}
    run_two(tmp_path, lambda *_: {"message": said(text)}, model=model, **more)
    lines = report(tmp_path / "run")["models"]
    assert (sum(line["trials"] for line in lines), sum(line["missing"] for line in lines)) == (200, 0)


@pytest.mark.slow
def test_a_cache_of_letters_decides_nothing(tmp_path):
    config = letters_config(tmp_path, cached=True)
    ran(config, code=4)
    data = report(tmp_path / "run")
    assert [pair["verdict"] for pair in data["pairs"]] == ["open"]
    assert [model["trials"] for model in data["models"]] == [QUESTIONS] * 2
    copies = sum(model["copies"] for model in data["models"])
    for model in data["models"]:
        assert model["copies"] == model["missing"] >= 300
        assert model["missing_reasons"] == {COPY_REASON: model["missing"]}
    warned = [text for text in data["warnings"] if "asked again are copies" in text]
    assert len(warned) == 2
    # A copy is the same thing in every view.
    listed = in_process("samples", "run", "--missing", "--json", "--limit", "5000", cwd=tmp_path)
    exported = in_process("export", "run", "--format", "jsonl", cwd=tmp_path)
    for shown in (listed, exported):
        assert sum(COPY_REASON in line for line in shown.out.splitlines()) == copies
    assert f"({data['models'][0]['copies']:,} copies)" in str(results_of(tmp_path / "run"))
    assert read_recorded([tmp_path / "run"]).trials == 2 * QUESTIONS
    analysed = in_process("analyze", "run", "--write", "again", "--json", cwd=tmp_path)
    assert (json.loads(analysed.out)["trials"], json.loads(analysed.out)["missing"]) == (
        2 * QUESTIONS,
        copies,
    )
