"""lighteval, evalscope and promptfoo: files as their schemas have them, down to what is wrong with one."""

import json
from pathlib import Path

import pytest
import zstandard

from adaptive_eval.errors import UsageError
from adaptive_eval.interop.found import Choices, checked
from adaptive_eval.interop.recorded_files import open_log, open_logs
from adaptive_eval.trial import ScoreRange


def trials(path, **choices):
    return list(checked(open_log(path, Choices(**choices))))


def details(folder, rows, name="details_lighteval|sums|0_2026-01-02T03-04-05.123456.parquet"):
    """Write details as lighteval does, in a folder of the date in a folder of the model."""
    pyarrow = pytest.importorskip("pyarrow", reason="this test is for where Parquet can be read")
    from pyarrow import parquet

    place = folder / "details" / "org" / "sage" / "2026-01-02T03-04-05.123456"
    place.mkdir(parents=True)
    parquet.write_table(pyarrow.Table.from_pylist(rows), place / name)
    return place / name


def detail(number, texts, gold, metric):
    doc = {
        "query": f"Question {number}?",
        "choices": [gold],
        "gold_index": 0,
        "id": str(number),
        "task_name": "sums",
    }
    response = {
        "input": doc["query"],
        "text": texts,
        "logprobs": [],
        "input_tokens": [1],
        "output_tokens": [[2]],
    }
    return {"doc": doc, "metric": metric, "model_response": response}


def test_one_generation_of_lighteval_keeps_the_stored_metric(tmp_path):
    path = details(tmp_path, [detail(0, ["4"], "4", {"em": 1.0}), detail(1, ["5"], "6", {"em": 0.0})])
    found = trials(path)
    assert [(t.model, t.task, t.question, t.score, t.text) for t in found] == [
        ("sage", "lighteval|sums|0", "0", 1.0, "4"),
        ("sage", "lighteval|sums|0", "1", 0.0, "5"),
    ]


def test_several_generations_of_lighteval_are_scored_one_by_one(tmp_path):
    path = details(tmp_path, [detail(0, ["It is 4.", "5", "4"], "4", {"pass@k": 0.66})])
    assert [t.score for t in trials(path, scorer="numeric")] == [1.0, 0.0, 1.0]
    with pytest.raises(UsageError, match="score each with --scorer"):
        trials(path)


def test_a_score_in_a_range_is_that_of_the_scorer(tmp_path):
    path = tmp_path / "table.json"
    row = {"model": "a", "question": "q", "score": 0, "text": "It is 4.", "target": "4"}
    path.write_text(json.dumps([row]), "utf-8")
    numbers = {"scorer_options": {"range": (0, 1)}, "range": ScoreRange((0, 1))}
    assert [found.score for found in trials(path, scorer="f1", **numbers)] == [0.5]


FILE = Path(__file__).parents[1] / "data" / "published_verdicts.jsonl"
PUBLISHED = [json.loads(line) for line in FILE.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("case", PUBLISHED, ids=lambda case: case["of"])
def test_published_verdicts_are_read_as_trials(tmp_path, case):
    """A case names its file, what of it is asked for, and what its trials are or why it is refused."""
    path = tmp_path / case.get("path", "results.json")
    written(path, case["data"] if path.suffix == ".jsonl" else [case["data"]])
    choices = Choices(**case.get("choices", {"model": "mine"}))
    if "refused" in case:
        with pytest.raises(UsageError, match=case["refused"]):
            list(checked(open_log(path, choices)))
        return
    (log,) = open_logs([path], choices)
    found = list(checked(log))
    worth = [one.category if one.score is None else one.score for one in found]
    named = zip(found, worth, strict=True)
    assert [[one.model, one.question, value] for one, value in named] == case["verdicts"]
    assert [one.missing is not None for one in found] == [value is None for value in worth]
    named = {"task", "number", "tokens", "latency", "text", "missing", "finish_reason", "weights"}
    for name in named & case.keys():
        expected = [tuple(one) if isinstance(one, list) else one for one in case[name]]
        assert [getattr(one, name) for one in found] == expected, name


def test_an_evaluation_that_was_written_twice_is_refused(tmp_path):
    data = next(case["data"] for case in PUBLISHED if "evalId" in case["data"])
    paths = [tmp_path / "one.json", tmp_path / "two.json"]
    for indent, path in enumerate(paths):
        path.write_text(json.dumps(data, indent=indent), "utf-8")
    with pytest.raises(UsageError, match=r"two\.json is the same evaluation as .*one\.json"):
        open_logs(paths, Choices())


def verdicts_in(*paths, **choices):
    found = [trial for log in open_logs(paths, Choices(**choices)) for trial in checked(log)]
    return {(trial.model, trial.task, trial.question): trial.category for trial in found}


def written(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = data if isinstance(data, list) else [data]
    path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")


@pytest.mark.parametrize("group", ["", "non_live", "agentic/memory/kv"])
def test_files_of_failures_only_are_matched_over_the_models_of_their_folder(tmp_path, group):
    for model, failed in (("big", ["simple_2"]), ("small", ["simple_2", "simple_4"])):
        counts = {"accuracy": 0.0, "correct_count": 5 - len(failed), "total_count": 5}
        rows = [counts, *({"id": name, "valid": False, "error": "no call"} for name in failed)]
        written(tmp_path / "score" / model / group / "BFCL_v3_simple_score.json", rows)
    found = verdicts_in(tmp_path)
    task = "BFCL_v3_simple_score"
    assert (found["big", task, "simple_2"], found["big", task, "simple_4"]) == (0, 1)
    assert (found["small", task, "simple_2"], found["small", task, "simple_4"]) == (0, 0)
    assert sum(found.values()) == 4 + 3
    assert len(found) == 10


def test_sets_of_resolved_ids_are_counted_over_the_instances_of_their_split(tmp_path):
    for model, solved in (("one", ["a-1", "b-2"]), ("two", ["b-2"])):
        data = {"no_generation": [], "no_logs": [], "resolved": solved}
        written(tmp_path / "verified" / model / "results" / "results.json", data)
    found = verdicts_in(tmp_path)
    assert len(found) == 1000
    assert {key[0]: found[key] for key in found if key[2] == "a-1"} == {"one": 1, "two": 0}
    assert sum(found.values()) == 3


def test_a_compressed_answer_of_matharena_is_named_by_its_file(tmp_path):
    place = tmp_path / "outputs" / "aime_2025" / "lab" / "m"
    place.mkdir(parents=True)
    data = {"idx": 6, "gold_answer": "4", "answers": ["4", "5"], "correct": [True, False]}
    (place / "7.json.zst").write_bytes(zstandard.compress(json.dumps(data).encode()))
    (log,) = open_logs([tmp_path], Choices())
    assert [(t.model, t.task, t.question, t.category) for t in checked(log)] == [
        ("m", "aime_2025", "7", 1), ("m", "aime_2025", "7", 0),
    ]  # fmt: skip
    (place / "7.json.zst").write_bytes(b"no frame")
    with pytest.raises(UsageError, match="cannot be read"):
        open_logs([place / "7.json.zst"], Choices())
