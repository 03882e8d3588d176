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


class TestLighteval:
    def test_one_generation_keeps_the_stored_metric(self, tmp_path):
        path = details(tmp_path, [detail(0, ["4"], "4", {"em": 1.0}), detail(1, ["5"], "6", {"em": 0.0})])
        found = trials(path)
        assert [(t.model, t.task, t.question, t.score, t.text) for t in found] == [
            ("sage", "lighteval|sums|0", "0", 1.0, "4"),
            ("sage", "lighteval|sums|0", "1", 0.0, "5"),
        ]

    def test_several_generations_are_scored_one_by_one(self, tmp_path):
        path = details(tmp_path, [detail(0, ["It is 4.", "5", "4"], "4", {"pass@k": 0.66})])
        assert [t.score for t in trials(path, scorer="numeric")] == [1.0, 0.0, 1.0]
        with pytest.raises(UsageError, match="score each with --scorer"):
            trials(path)


def review(group, generation, value, **score):
    return {
        "index": group * 2 + generation,
        "target": ["4"],
        "messages": [
            {"role": "user", "content": f"Question {group}?"},
            {"role": "assistant", "content": "4"},
        ],
        "sample_score": {
            "score": {"value": value, "prediction": "It is 4.", "extracted_prediction": "4", **score},
            "sample_id": group * 2 + generation,
            "group_id": group,
            "generation_index": generation,
        },
    }


def reviews(folder, rows):
    path = folder / "reviews" / "sage" / "gsm8k_main.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


class TestEvalscope:
    def test_groups_are_questions_and_generations_trials(self, tmp_path):
        rows = [review(group, generation, {"acc": float(group)}) for group in (0, 1) for generation in (0, 1)]
        reviews(tmp_path, rows)
        (log,) = open_logs([tmp_path], Choices())
        assert [(t.model, t.task, t.question, t.number, t.score) for t in checked(log)] == [
            ("sage", "gsm8k_main", "0", 0, 0.0),
            ("sage", "gsm8k_main", "0", 1, 0.0),
            ("sage", "gsm8k_main", "1", 0, 1.0),
            ("sage", "gsm8k_main", "1", 1, 1.0),
        ]

    def test_several_scores_and_bad_ones(self, tmp_path):
        path = reviews(tmp_path, [review(0, 0, {"acc": 1.0, "f1": 2.0})])
        with pytest.raises(UsageError, match="the metrics acc, f1; choose one"):
            trials(path)
        with pytest.raises(UsageError, match=r"line 1: f1: 2.0 is not a score"):
            trials(path, metric="f1")

    def test_a_judge_that_failed_is_no_wrong_answer(self, tmp_path):
        rows = [review(0, 0, {}), review(1, 0, {"acc": 1.0})]
        rows[0]["sample_score"]["score"] |= {"status": "parse_error"}
        rows[1]["sample_score"]["score"] |= {"status": "fallback"}
        found = trials(reviews(tmp_path, rows))
        assert [(t.score, t.missing) for t in found] == [
            (None, "unscored: evalscope says parse_error"),
            (1.0, None),
        ]


def promptfoo(folder, rows):
    data = {"evalId": "eval-1", "results": {"version": 3, "results": rows}, "config": {"description": "sums"}}
    path = folder / "results.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def result(test, score, provider="openai:gpt", **fields):
    return {
        "provider": {"id": provider, "label": ""}, "testIdx": test, "promptIdx": 0, "vars": {"n": test},
        "prompt": {"raw": f"Question {test}?", "label": "p"}, "score": score, "success": score == 1,
        "response": {"output": "4", "tokenUsage": {"prompt": 9, "completion": 2}}, "latencyMs": 1500,
        "failureReason": 0, "namedScores": {}, **fields,
    }  # fmt: skip


class TestPromptfoo:
    def test_providers_are_models_and_repeats_trials(self, tmp_path):
        rows = [result(0, 1), result(0, 0, failureReason=1), result(0, 1, "openai:other"), result(1, 0.5)]
        found = trials(promptfoo(tmp_path, rows))
        assert [(t.model, t.task, t.question, t.score) for t in found] == [
            ("openai:gpt", "sums", "0", 1.0),
            ("openai:gpt", "sums", "0", 0.0),
            ("openai:other", "sums", "0", 1.0),
            ("openai:gpt", "sums", "1", 0.5),
        ]
        assert (found[0].tokens, found[0].latency, found[0].text) == ((9, 2), 1.5, "4")

    def test_errors_are_missing_and_bad_rows_are_named(self, tmp_path):
        failed = result(0, 0, failureReason=2, error="API error: 500", response={})
        for choices in ({}, {"scorer": "numeric"}):
            assert trials(promptfoo(tmp_path, [failed]), **choices)[0].missing == "error: API error: 500"
        with pytest.raises(UsageError, match=r"line 1: score: 3 is not a score from 0 to 1"):
            trials(promptfoo(tmp_path, [result(0, 3)]))
        with pytest.raises(UsageError, match="line 2: is not as the tool writes it"):
            trials(promptfoo(tmp_path, [result(0, 1), {"testIdx": 0}]))


def test_a_scorer_scores_the_answers_of_any_table_and_refuses_one_without(tmp_path):
    path = tmp_path / "table.json"
    row = {"model": "a", "question": "q", "score": 0, "text": "It is 4.", "target": "4"}
    path.write_text(json.dumps([row]), "utf-8")
    assert [found.score for found in trials(path, scorer="numeric")] == [1.0]
    numbers = {"scorer_options": {"range": (0, 1)}, "range": ScoreRange((0, 1))}
    assert [found.score for found in trials(path, scorer="f1", **numbers)] == [0.5]
    del row["text"]
    path.write_text(json.dumps([row]), "utf-8")
    with pytest.raises(UsageError, match="no text"):
        trials(path, scorer="numeric")


PUBLISHED = Path(__file__).parents[1] / "data" / "published_verdicts.jsonl"


@pytest.mark.parametrize("line", PUBLISHED.read_text("utf-8").splitlines(), ids=lambda line: line[8:20])
def test_published_verdicts_are_read_as_trials(tmp_path, line):
    case, path = json.loads(line), tmp_path / "results.json"
    path.write_text(json.dumps(case["data"]), "utf-8")
    (log,) = open_logs([path], Choices(model="mine"))
    found = list(checked(log))
    worth = [one.category if one.score is None else one.score for one in found]
    named = zip(found, worth, strict=True)
    assert [[one.model, one.question, value] for one, value in named] == case["verdicts"]
    assert [one.missing is not None for one in found] == [value is None for value in worth]
    if "tokens" in case:
        assert [list(one.tokens) for one in found] == case["tokens"]


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


def test_details_by_instance_are_read_of_a_submission_and_of_the_leaderboards(tmp_path):
    details = {
        "a-1": {"resolved": True, "cost": 0.4, "api_calls": 19},
        "b-2": {"resolved": False, "cost": 0.1},
    }
    written(tmp_path / "bash-only" / "mini_gpt-5" / "per_instance_details.json", details)
    listed = [{"name": "GPT-5", "folder": "mini_gpt-5", "resolved": 50.0, "per_instance_details": details}]
    again = {"name": "Verified", "results": [*listed, {"name": "other", "folder": "o"}]}
    boards = {"leaderboards": [{"name": "bash-only", "results": listed}, again]}
    written(tmp_path / "site" / "leaderboards.json", boards)
    by_instance = {("mini_gpt-5", "bash-only", "a-1"): 1, ("mini_gpt-5", "bash-only", "b-2"): 0}
    assert verdicts_in(tmp_path / "bash-only") == verdicts_in(tmp_path / "site") == by_instance


def test_a_folder_of_answers_of_matharena_names_models_and_competitions(tmp_path):
    place = tmp_path / "outputs" / "aime_2025" / "lab"
    row = {"problem": "?", "gold_answer": "4", "messages": [], "answers": ["4", "5"]}
    for number, correct in enumerate(([True, False], [True, True]), start=1):
        written(place / "m" / f"{number}.json", {"idx": number, **row, "correct": correct})
    (one, two) = open_logs([tmp_path], Choices())
    assert [(t.model, t.task, t.question, t.category) for log in (one, two) for t in checked(log)] == [
        ("m", "aime_2025", "1", 1), ("m", "aime_2025", "1", 0), ("m", "aime_2025", "2", 1),
        ("m", "aime_2025", "2", 1),
    ]  # fmt: skip


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


def test_rows_of_a_dataset_of_matharena_name_their_model_and_trial(tmp_path):
    shared = {
        "problem_idx": "3",
        "model_name": "o1 (medium)",
        "model_config": "openai/o1",
        "gold_answer": "4",
    }
    rows = [
        {**shared, "idx_answer": number, "correct": correct, "parsed_answer": "4", "output_tokens": 9}
        for number, correct in enumerate((True, False))
    ]
    path = tmp_path / "train.jsonl"
    written(path, rows)
    (log,) = open_logs([path], Choices())
    assert [(t.model, t.question, t.number, t.category, t.tokens) for t in checked(log)] == [
        ("o1 (medium)", "3", 0, 1, (0, 9)), ("o1 (medium)", "3", 1, 0, (0, 9)),
    ]  # fmt: skip


def test_a_file_that_names_no_model_is_named_by_its_own_name_or_by_the_user(tmp_path):
    for name in ("a", "b"):
        rows = [{"question_id": "q", "graded_list": [True, False]}]
        (tmp_path / f"{name}_eval_all.json").write_text(json.dumps(rows), encoding="utf-8")
    assert {key[0] for key in verdicts_in(tmp_path)} == {"a_eval_all", "b_eval_all"}
    file = tmp_path / "a_eval_all.json"
    assert {key[0] for key in verdicts_in(file, models={file: "mine"})} == {"mine"}
