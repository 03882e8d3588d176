"""Samples that lm-evaluation-harness has just written: imported, they give what it reports."""

import json
import shutil

import numpy as np
import pytest

from adaptive_eval.errors import UsageError
from adaptive_eval.interop.found import ReadingOptions, checked
from adaptive_eval.interop.import_run import import_logs
from adaptive_eval.interop.recorded_files import open_logs, read_recorded
from adaptive_eval.store.reader import RunReader

pytestmark = pytest.mark.interop


def reported(folder):
    """Return the accuracy that lm-eval reports, by model."""
    results = [json.loads(path.read_text(encoding="utf-8")) for path in folder.rglob("results_*.json")]
    return {data["model_name"]: data["results"]["sums"]["exact_match,boxed"] for data in results}


def samples(folder, model):
    (path,) = (folder / model).glob("samples_*.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def changed(folder, tmp_path, change):
    """Copy a model's log with its rows changed; return the file."""
    copy = tmp_path / "changed" / "sage"
    shutil.copytree(folder / "sage", copy)
    (path,) = copy.glob("samples_*.jsonl")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    change(rows)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_one_answer_a_question_gives_the_accuracy_that_is_reported(lm_eval_once, tmp_path):
    result = import_logs(open_logs([lm_eval_once], ReadingOptions()), tmp_path / "run")
    ours = {line.model: line.score for line in result.results.models}
    assert ours == pytest.approx(reported(lm_eval_once))


def test_every_repeat_is_scored_as_the_harness_would_have(lm_eval_repeated, tmp_path):
    import_logs(open_logs([lm_eval_repeated], ReadingOptions()), tmp_path / "run")
    recorded = read_recorded([tmp_path / "run"])
    assert recorded.counts.min() == recorded.counts.max() == 3
    for name, accuracy in reported(lm_eval_repeated).items():
        row = recorded.categories[recorded.models.index(name)]
        first = []
        by_doc = {str(sample["doc_id"]): sample for sample in samples(lm_eval_repeated, name)}
        for place, (_, question) in enumerate(recorded.questions):
            sample = by_doc[question]
            right = [f"boxed{{{sample['target']}}}" in text for text in sample["resps"][0]]
            assert sorted(row[place].tolist()) == sorted(map(int, right))  # they are read in random order
            first.append(right[0])
        assert np.mean(first) == pytest.approx(accuracy)  # lm-eval scores the first answer alone
    assert 0 < recorded.categories.mean() < 1


def test_a_scorer_of_this_package_agrees(lm_eval_repeated):
    paths = [lm_eval_repeated]
    theirs = [trial.score for log in open_logs(paths, ReadingOptions()) for trial in checked(log)]
    numeric = ReadingOptions(scorer="numeric")
    assert [trial.score for log in open_logs(paths, numeric) for trial in checked(log)] == theirs


def test_questions_can_go_by_a_field_of_the_dataset_and_texts_are_kept(lm_eval_once, dataset, tmp_path):
    import_logs(open_logs([lm_eval_once], ReadingOptions(question_id="id")), tmp_path / "run")
    ids = [json.loads(line)["id"] for line in dataset.read_text(encoding="utf-8").splitlines()]
    with RunReader(tmp_path / "run") as reader:
        records = [record for record in reader.trials() if record.completion is not None]
    assert {record.request.question for record in records} == set(ids)
    assert all("boxed" in record.completion.text and "boxed" in record.sent["prompt"] for record in records)


def test_a_file_that_is_cut_off_names_its_line(lm_eval_once, tmp_path):
    path = changed(lm_eval_once, tmp_path, lambda rows: None)
    path.write_text(path.read_text(encoding="utf-8")[:-200], encoding="utf-8")
    with pytest.raises(UsageError, match=r"line 20: not valid JSON"):
        import_logs(open_logs([path], ReadingOptions()), tmp_path / "run")
    assert not (tmp_path / "run").exists()


CHANGES = {
    r"line 3: doc_id 2: exact_match: 3.5 is not a score from 0 to 1": (
        lambda rows: rows[2].update(exact_match=3.5)
    ),
    r"line 5: question '4' of task 'sums'.*another revision": lambda rows: rows[4].update(doc_hash="another"),
    r"several filters .boxed, strict.": lambda rows: rows.append({**rows[0], "filter": "strict"}),
    r"line 21: trial 0 of model 'sage' on question '7' appears twice": lambda rows: rows.append(rows[7]),
}


@pytest.mark.parametrize("words", CHANGES)
def test_rows_that_cannot_be_imported_are_named(lm_eval_once, tmp_path, words):
    path = changed(lm_eval_once, tmp_path, CHANGES[words])
    with pytest.raises(UsageError, match=words):
        import_logs(open_logs([lm_eval_once / "novice", path], ReadingOptions()), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_one_of_several_filters_is_chosen(lm_eval_once, tmp_path):
    path = changed(lm_eval_once, tmp_path, lambda rows: rows.append({**rows[0], "filter": "strict"}))
    assert import_logs(open_logs([path], ReadingOptions(filter="boxed")), tmp_path / "run").trials == 20


def test_a_task_that_scores_otherwise_is_refused_not_guessed(lm_eval_repeated, tmp_path):
    path = changed(
        lm_eval_repeated, tmp_path, lambda rows: rows[1].update(exact_match=1 - rows[1]["exact_match"])
    )
    with pytest.raises(UsageError, match="line 2: doc_id 1: scoring its first answer gives"):
        import_logs(open_logs([path], ReadingOptions()), tmp_path / "run")


def test_without_the_summary_a_scorer_is_asked_for(lm_eval_repeated, tmp_path):
    path = changed(lm_eval_repeated, tmp_path, lambda rows: None)
    for summary in path.parent.glob("results_*.json"):
        summary.unlink()
    with pytest.raises(UsageError, match=r"no results_….json .* --scorer exact"):
        import_logs(open_logs([path], ReadingOptions()), tmp_path / "run")


def test_the_summary_is_no_log(lm_eval_once):
    summary = next(lm_eval_once.rglob("results_*.json"))
    with pytest.raises(UsageError, match=r"give the samples_….jsonl"):
        open_logs([summary], ReadingOptions())
