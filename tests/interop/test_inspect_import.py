"""Logs that Inspect has just written: imported, they give what Inspect reports."""

import json
import re
import zipfile
from pathlib import Path

import pytest

from adaptive_eval.errors import UsageError
from adaptive_eval.interop.found import ReadingOptions, checked
from adaptive_eval.interop.import_run import import_logs
from adaptive_eval.interop.recorded_files import open_logs, read_recorded
from adaptive_eval.store.reader import RunReader

pytestmark = pytest.mark.interop


def found(*paths, **choices):
    return [trial for log in open_logs(paths, ReadingOptions(**choices)) for trial in checked(log)]


def stored(run):
    with RunReader(run) as reader:
        return list(reader.trials())


def test_accuracy_and_every_outcome_are_those_that_inspect_reports(inspect_logs, tmp_path):
    from inspect_ai.log import read_eval_log

    folder = Path(inspect_logs[0].location).parent
    result = import_logs(open_logs([folder], ReadingOptions()), tmp_path / "run")
    ours = {line.model: line.score for line in result.results.models}
    theirs = {log.eval.model: log.results.scores[0].metrics["accuracy"].value for log in inspect_logs}
    assert ours == pytest.approx(theirs)
    recorded = read_recorded([tmp_path / "run"])
    for log in inspect_logs:
        samples = read_eval_log(log.location).samples
        row = recorded.categories[recorded.models.index(log.eval.model)]
        for place, (_, question) in enumerate(recorded.questions):
            epochs = [int(s.scores["pattern"].value == "C") for s in samples if s.id == question]
            assert sorted(row[place].tolist()) == sorted(epochs)  # they are read in random order


def test_answers_and_tokens_come_along(inspect_logs, tmp_path):
    import_logs(open_logs([Path(log.location) for log in inspect_logs], ReadingOptions()), tmp_path / "run")
    answered = [record for record in stored(tmp_path / "run") if record.completion is not None]
    assert all("boxed" in record.completion.text and record.usage.completion_tokens for record in answered)
    assert all(record.sent["target"] and "boxed" in record.sent["prompt"] for record in answered)
    assert {record.score.extracted == record.sent["target"] for record in answered} == {True, False}


def test_errors_and_unscored_samples_are_not_wrong_answers(inspect, mimic_url, tmp_path):
    from inspect_ai import Task
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import Score, Target, accuracy, scorer
    from inspect_ai.solver import TaskState, solver

    @solver
    def fails_on(word):
        async def solve(state: TaskState, generate):
            if word in state.input_text:
                raise RuntimeError("the sandbox went away")
            state.output = ModelOutput.from_content("none", state.input_text)
            return state

        return solve

    @scorer(metrics=[accuracy()])
    def graded():
        async def score(state: TaskState, target: Target):
            return Score.unscored() if "unscored" in state.input_text else Score(value=target.text)

        return score

    samples = [
        Sample(input="an error", target="C", id="e"),
        Sample(input="unscored", target="C", id="u"),
        *[Sample(input=f"graded {letter}", target=letter, id=letter) for letter in "CIPN"],
    ]
    (log,) = inspect.eval(
        Task(dataset=samples, solver=fails_on("error"), scorer=graded(), name="mixed"),
        model="openai-api/mimic/sage", fail_on_error=False, log_dir=str(tmp_path / "logs"), display="none",
    )  # fmt: skip
    result = {trial.question: (trial.score, trial.missing) for trial in found(Path(log.location))}
    assert {key: score for key, (score, _) in result.items()} == {
        "e": None, "u": None, "C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0,
    }  # fmt: skip
    assert "the sandbox went away" in result["e"][1]
    assert result["u"][1] == "not scored by graded"


def test_a_log_that_is_cut_off_or_damaged(inspect_logs, tmp_path):
    whole = Path(inspect_logs[0].location)
    for name, size in (("half.eval", whole.stat().st_size // 2), ("empty.eval", 0)):
        (tmp_path / name).write_bytes(whole.read_bytes()[:size])
        with pytest.raises(UsageError, match=re.escape(name)):
            found(tmp_path / name)
    cut = tmp_path / "half.json"
    cut.write_text(Path(inspect_logs[1].location).read_text(encoding="utf-8")[:20_000], encoding="utf-8")
    with pytest.raises(UsageError, match=r"half\.json.*cannot be read as an Inspect log"):
        found(cut)


def rewritten(source, target, **changes):
    """Copy a JSON log with other entries of its evaluation, or of the log."""
    data = json.loads(Path(source).read_text(encoding="utf-8"))
    for name, value in changes.items():
        (data if name in data else data["eval"])[name] = value(data) if callable(value) else value
    target.write_text(json.dumps(data), encoding="utf-8")
    return target


def with_another_target(data):
    first = data["samples"][0]["id"]
    other = [{**one, "target": "0"} if one["id"] == first else one for one in data["samples"]]
    return [{**one, "uuid": f"{one['uuid']}x"} for one in other]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"samples": with_another_target, "eval_id": "another"}, r"question '.*another revision"),
        ({"task_version": 7, "eval_id": "another"}, r"the version of its task .* is 7, in .* it is 0"),
        ({}, "is the same evaluation as"),
        ({"eval_id": "retry"}, "one is a retry of the other"),
        ({"status": "cancelled", "eval_id": "another"}, r"has not finished .its status is 'cancelled'."),
    ],
)
def test_a_log_that_does_not_go_with_another_is_refused(inspect_logs, tmp_path, changes, words):
    first = Path(inspect_logs[1].location)
    other = rewritten(first, tmp_path / "other.json", **changes)
    with pytest.raises(UsageError, match=words):
        import_logs(open_logs([first, other], ReadingOptions()), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_epoch_that_is_there_twice_is_named(inspect_logs, tmp_path):
    more = {"samples": lambda data: [*data["samples"], data["samples"][4]]}
    twice = rewritten(inspect_logs[1].location, tmp_path / "twice.json", **more)
    with pytest.raises(UsageError, match=r"sample '.*', epoch \d: appears twice"):
        found(twice)


def test_an_evaluation_that_has_not_finished_is_read_on_request(inspect_logs, tmp_path):
    part = rewritten(inspect_logs[1].location, tmp_path / "part.json", status="cancelled")
    assert len(found(part, incomplete=True)) == 60


def test_a_zip_that_is_no_log(tmp_path, inspect):
    with zipfile.ZipFile(tmp_path / "x.eval", "w") as archive:
        archive.writestr("hello.txt", "hello")
    with pytest.raises(UsageError, match="cannot be read as an Inspect log"):
        found(tmp_path / "x.eval")
