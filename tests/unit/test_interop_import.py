"""Importing tables, logs and runs: the same outcomes afterwards, or one clear error and nothing at all."""

import json
import subprocess
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import run_examples as runs
from run_examples import command, printed

from adaptive_eval.core.spec import TaskSpec
from adaptive_eval.errors import UsageError
from adaptive_eval.interop.found import RUN, Found, Log, ReadingOptions, weighted
from adaptive_eval.interop.import_run import BATCH, default_spec, import_logs
from adaptive_eval.interop.recorded_files import open_logs, read_recorded
from adaptive_eval.interop.run_tables import run_log
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TrialRecord
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.trial import COPY_REASON, SAME_TEXT, Completion, Score, TrialKey, TrialRequest, Usage
from adaptive_eval.views.files import write_reports
from adaptive_eval.views.reading import summarise
from adaptive_eval.views.verdicts import decided_trials


def csv(path, *rows, head="model,question,category"):
    path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return path


def jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def imported(folder, *paths, choices=None, **options):
    return import_logs(open_logs(paths, choices or ReadingOptions()), folder / "run", **options)


def archive(path, outcomes, models=("a", "b")):
    questions = [f"q{number}" for number in range(outcomes.shape[1])]
    np.savez(path, R=outcomes, models=list(models), questions=questions)
    return path


def random_outcomes(shape=(2, 20, 6), seed=0):
    means = np.array([0.9, 0.3])[: shape[0], None, None]
    return (np.random.default_rng(seed).random(shape) < means).astype(int)


def scores(result):
    return {line.model: line.score for line in result.results.models}


def test_every_trial_of_an_archive_is_in_the_run_and_the_score_is_its_mean(tmp_path):
    outcomes = random_outcomes()
    result = imported(tmp_path, archive(tmp_path / "x.npz", outcomes))
    assert scores(result) == pytest.approx(dict(zip("ab", outcomes.mean(axis=(1, 2)), strict=True)))
    alone = imported(tmp_path / "alone", archive(tmp_path / "a.npz", outcomes[:1], "a"))
    assert alone.results.warnings == result.results.warnings == (), "recorded trials bound the session"
    again = read_recorded([tmp_path / "run"])
    for model, name in enumerate("ab"):
        row = again.categories[again.models.index(name)]
        for place, (_, question) in enumerate(again.questions):
            recorded = outcomes[model, int(question[1:])]  # its trials come in random order
            assert sorted(row[place].tolist()) == sorted(recorded.tolist())


def test_ragged_counts_are_kept_and_what_the_walk_passes_is_missing(tmp_path):
    outcomes = random_outcomes((2, 3, 4))
    outcomes[1, 2, 1:] = -1
    result = imported(tmp_path, archive(tmp_path / "x.npz", outcomes))
    assert result.trials == 21
    assert read_recorded([tmp_path / "run"]).counts.sum() == 21
    means = [outcomes[1, question][outcomes[1, question] >= 0].mean() for question in range(3)]
    assert scores(result)["b"] == pytest.approx(np.mean(means))
    with RunReader(tmp_path / "run") as reader:
        assert {record.missing for record in reader.trials(missing=True)} == {"not in the logs"}


def test_a_model_with_few_trials_does_not_hold_up_the_others(tmp_path):
    rng = np.random.default_rng(1)
    outcomes = (rng.random((3, 10, 40)) < np.array([0.7, 0.4, 0.5])[:, None, None]).astype(int)
    outcomes[2, :, 2:] = -1
    result = imported(tmp_path, archive(tmp_path / "x.npz", outcomes, models="abc"))
    verdicts = {frozenset((pair.first, pair.second)): pair.verdict for pair in result.results.pairs}
    assert verdicts[frozenset("ab")] in ("better", "worse")
    states = {line.model: (line.state, line.note) for line in result.results.models}
    assert states["c"] == ("stopped", "its imported trials end here")


def test_missing_and_cut_off_answers_are_kept_apart_from_wrong_ones(tmp_path):
    rows = [
        {"model": "a", "question": "q", "trial": 0, "category": 1, "text": "yes", "target": "yes"},
        {"model": "a", "question": "q", "trial": 1, "missing": "error: no answer"},
        {"model": "a", "question": "q", "trial": 2, "category": 0, "truncated": True, "target": "yes"},
    ]
    result = imported(tmp_path, jsonl(tmp_path / "x.jsonl", rows))
    assert (result.trials, result.missing, scores(result)) == (2, 1, {"a": 0.5})
    with RunReader(tmp_path / "run") as reader:
        records = {record.score and record.score.category: record for record in reader.trials()}
    assert records[None].missing == "error: no answer"
    assert records[0].completion.finish_reason == "length"
    assert (records[1].completion.text, records[1].sent["target"]) == ("yes", "yes")


def test_scores_between_right_and_wrong_keep_their_worth(tmp_path):
    table = csv(tmp_path / "x.csv", "a,q1,0.25", "a,q1,1", "a,q2,0.5", head="model,question,score")
    assert scores(imported(tmp_path, table)) == {"a": pytest.approx((0.625 + 0.5) / 2)}
    printed("analyze", tmp_path / "run", "--goal", "width=1", "--replicates", "1")


def test_several_files_become_one_table_and_ids_that_do_not_match_are_named(tmp_path):
    one = csv(tmp_path / "one.csv", "a,q1,1", "a,q2,1")
    two = csv(tmp_path / "two.csv", "b,q1,0", "b,q3,0")
    result = imported(tmp_path, one, two)
    assert result.notes == (
        "task 'recorded': model 'a' has no trial of 1 of 3 questions: q3",
        "task 'recorded': model 'b' has no trial of 1 of 3 questions: q2",
    )


def test_a_folder_of_logs_is_ranked_as_the_options_say_how_to_read_it(tmp_path):
    rows = [f"{m},q{q},{worth + q % 2}" for m, worth in (("a", 8), ("b", 2)) for q in range(8)]
    (tmp_path / "logs").mkdir()
    csv(tmp_path / "logs" / "x.csv", *rows, head="model,question,points")
    given = ("--map", "score=points", "--range", "1,10", "--json", "--replicates", 1, "--workers", 1)
    found = json.loads(printed("analyze", tmp_path / "logs", *given))
    scores = [(one["model"], one["score"]) for one in found["models"]]
    assert scores == [("a", pytest.approx(8.5, abs=1e-3)), ("b", pytest.approx(2.5, abs=1e-3))]


def test_trials_that_no_log_has_are_not_exported_and_not_counted_again(tmp_path):
    outcomes = random_outcomes((2, 3, 4))
    outcomes[1, 2, 1:] = -1
    run = imported(tmp_path, archive(tmp_path / "x.npz", outcomes)).directory
    printed("export", run, "--format", "eee", "--out", tmp_path / "eee")
    samples = [path.read_text("utf-8").splitlines() for path in tmp_path.rglob("*_samples.jsonl")]
    assert sorted(map(len, samples)) == [9, 12]
    again = import_logs(open_logs([run], ReadingOptions()), tmp_path / "again")
    assert (again.trials, again.missing) == (21, 0)


@pytest.fixture
def run(tmp_path):
    imported(tmp_path, archive(tmp_path / "x.npz", random_outcomes((2, 30, 4))))
    return tmp_path / "run"


def test_report_monitor_samples_analyze_and_simulate_read_it(run):
    write_reports(run)
    assert "a is ahead of b" in (run / "report.md").read_text(encoding="utf-8")
    for arguments in (
        ("monitor", run, "--once"),
        ("samples", run, "--model", "a", "--json"),
        ("analyze", run, "--replicates", "2", "--workers", "1"),
        ("plan", "--recorded", run, "--replicates", "2", "--workers", "1"),
    ):
        assert printed(*arguments)


def test_the_decisions_are_those_of_the_sequential_rule_in_recorded_order(run):
    with RunReader(run) as reader:
        kinds = [record.body["kind"] for record in reader.decisions()]
        after = [record.after_stop for record in reader.trials()]
    assert kinds[0] == "pair"
    assert kinds[-1] == "stop"
    assert after == sorted(after)
    assert after[-1]


def test_a_run_may_ask_a_question_in_several_wordings_and_each_trial_keeps_its_own(tmp_path):
    """Options that are shuffled for each trial, and prompts of models; a table of another tool is refused."""
    rows = []
    for model in "ab":
        for number, target in enumerate("ABA"):
            asked = {"prompt": f"{target} is right. {model}", "target": target}
            rows.append({"model": model, "question": "q", "trial": number, "category": 1, **asked})
    with pytest.raises(UsageError, match="another revision of the dataset or prompt"):
        imported(tmp_path, jsonl(tmp_path / "other.jsonl", rows))
    table = jsonl(tmp_path / "x.jsonl", [{**row, "after_stop": False} for row in rows])
    run = imported(tmp_path, table).directory
    again = import_logs(open_logs([run], ReadingOptions()), tmp_path / "again").directory
    said = sorted((row["model"], row["prompt"], row["target"]) for row in rows)
    for directory in (run, again):
        with RunReader(directory) as reader:
            trials = list(reader.trials())
        found = [(one.request.key.model, one.sent["prompt"], one.sent["target"]) for one in trials]
        assert sorted(found) == said
    second = jsonl(tmp_path / "y.jsonl", [{**row, "model": "c", "after_stop": False} for row in rows[:3]])
    assert (
        import_logs(open_logs([table, second], ReadingOptions()), tmp_path / "both").trials == len(rows) + 3
    )


class TestRefusals:
    def test_a_copy_of_a_file_would_count_twice(self, tmp_path):
        rows = ("a,q,1", "b,q,0")
        table, copy = csv(tmp_path / "x.csv", *rows), csv(tmp_path / "copy.csv", *rows)
        with pytest.raises(UsageError, match=r"copy\.csv has the same contents as .*x\.csv"):
            imported(tmp_path, table, copy)
        same = [csv(tmp_path / name, "q,1", head="question,category") for name in ("a.csv", "b.csv")]
        two_models = ReadingOptions(models=dict(zip(same, "ab", strict=True)))
        assert scores(imported(tmp_path, *same, choices=two_models)) == {"a": 1.0, "b": 1.0}

    def test_a_retry_has_the_trials_of_the_log_before(self, tmp_path):
        trial = Found("a", "t", "q", "sample 1", score=1.0, uuid="x1")
        logs = [Log(tmp_path / name, "Inspect log", lambda: iter([trial])) for name in ("first", "retry")]
        with pytest.raises(UsageError, match=r"retry: sample 1 is in .*first too: one is a retry"):
            import_logs(logs, tmp_path / "run")
        trial = replace(trial, uuid="", number=1)  # two logs, each with a first epoch
        assert import_logs(logs, tmp_path / "run").trials == 2
        contents = [
            Log(tmp_path / text, "x", lambda text=text: iter([replace(trial, content=text)])) for text in "ab"
        ]
        with pytest.raises(UsageError, match="another revision of the dataset or prompt"):
            import_logs(contents, tmp_path / "other")
        # Each tool writes down a question in its own way.
        tools = [replace(log, format=tool) for log, tool in zip(contents, "xy", strict=True)]
        assert import_logs(tools, tmp_path / "tools").trials == 2

    def test_no_rename_and_no_space_mixes_or_splits_models(self, tmp_path):
        table = csv(tmp_path / "x.csv", "a,q,1", "b ,q,0", "b,q,1")
        run = imported(tmp_path, table)
        assert scores(run) == {"a": 1.0, "b": 0.5}
        with pytest.raises(UsageError, match="is given twice"):
            open_logs([run.directory, run.directory / ".." / "run"], ReadingOptions())
        for several in (table, run.directory, archive(tmp_path / "x.npz", random_outcomes())):
            for texts in (True, False):
                logs = open_logs([several], ReadingOptions(rename={"a": "b"}), texts=texts)
                with pytest.raises(UsageError, match="has the models 'a' and 'b'"):
                    import_logs(logs, tmp_path / "mixed")
        swapped = open_logs([table], ReadingOptions(rename={"a": "b", "b": "a"}))
        assert scores(import_logs(swapped, tmp_path / "swapped")) == {"b": 1.0, "a": 0.5}


@pytest.mark.parametrize(
    ("form", "parts", "alike"),
    [
        ("Inspect log", {}, 4),  # read both ways, as in a run of our own
        ("Inspect log", {"whole": False}, 0),
        ("Inspect log", {"score": None, "missing": "lost"}, 0),
        (RUN, {}, 0),  # it has found its own
        (RUN, {"repeats": True}, 8),
    ],
)
def test_equal_texts_stay_in_the_mean(tmp_path, form, parts, alike):
    options = {"score": 1.0, **parts}
    found = [
        Found("a", task, question, "", text=f"{question} " * 500, tokens=(0, repeat), **options)
        for repeat in range(2)
        for task in "tu"
        for question in ("q1", "q2")
    ]
    log = Log(tmp_path / "log", form, lambda: iter(found))
    result = import_logs([log], tmp_path / "run")
    assert (result.copies, result.missing) == (0, 8 if "missing" in parts else 0)
    with RunReader(tmp_path / "run") as reader:
        signals = [trial.score.signals for trial in reader.trials() if trial.score is not None]
    assert sum(SAME_TEXT in one for one in signals) == alike


def test_the_command_says_what_it_did(tmp_path):
    rows = [f"{m},q{q},{int(m == 'old')}" for m in ("old", "new") for q in range(40)]
    table = csv(tmp_path / "x.csv", *rows)
    out = tmp_path / "runs" / "table"
    options = ("--rename", "new=newer", "--goal", "baseline=old")
    result = command("analyze", table, "--write", out, *options, code=0)
    assert "80 trials, from 1 log." in result.output
    assert "that no log has" not in result.output  # no repeats are expected where there are none
    assert "newer" in result.output
    data = json.loads(printed("analyze", table, "--write", tmp_path / "other", "--json"))
    assert data["models"] == {"old": 1.0, "new": 0.0}
    rows = [{"model": "a", "question": f"q{q}", "correct": 1, "text": f"{q} " * 500} for q in range(4)]
    result = command(
        "analyze", jsonl(tmp_path / "x.jsonl", [*rows, *rows[:3]]), "--write", tmp_path / "again"
    )
    assert "7 trials, from 1 log." in result.output, "answers that may be copies stay in the mean"
    assert "note: a: 3 of 3 answers" in result.output
    reasons = {"timeout": rows[0], COPY_REASON: rows[1]}
    lacking = [{**row, "text": "", "missing": why} for why, row in reasons.items()]
    result = command(
        "analyze", jsonl(tmp_path / "y.jsonl", [*rows, *lacking]), "--write", tmp_path / "copied"
    )
    assert "copied: 4 trials, 1 without an answer, from 1 log." in result.output, "the other one is a copy"


@pytest.mark.parametrize(("goal", "kinds"), [((), []), (("--goal", "threshold=0.1"), ["threshold"])])
def test_one_model_alone_is_compared_with_a_number_if_that_is_asked(tmp_path, goal, kinds):
    table = csv(tmp_path / "x.csv", *(f"only,q{q},1" for q in range(60)))
    command("analyze", table, "--write", tmp_path / "run", *goal)
    with RunReader(tmp_path / "run") as reader:
        pairs = summarise(reader).results.pairs
    assert [(pair.kind, pair.verdict) for pair in pairs] == [(kind, "better") for kind in kinds]


def test_small_and_uneven_tables_are_read_as_they_are(tmp_path):
    rows = [f"{m},q{q},{s}" for m, s in (("a", 0.5), ("b", 0.49)) for q in range(4)]
    table = csv(tmp_path / "twice.csv", *rows, *rows, head="model,question,score")  # 8 rows may be chance
    assert scores(imported(tmp_path / "right", table, right_from=0.5)) == {"a": 1.0, "b": 0.0}
    uneven = [f"{m},q{q},1" for m in "abc" for q in range(20) for _ in range(4 if m == "c" else 5)]
    result = imported(tmp_path / "uneven", csv(tmp_path / "uneven.csv", *uneven[1:]))
    assert "stopped" not in {line.state for line in result.results.models}
    named = {"models": ["a", "b"], "questions": ["first", "second"]}
    np.savez(tmp_path / "tasks.npz", t=np.ones((2, 5, 1), int), u=np.zeros((2, 3, 1), int), **named)
    assert len(read_recorded([tmp_path / "tasks.npz"]).questions) == 8


def test_questions_that_all_models_lost_are_not_left_out(tmp_path):
    rows = [f"{m},q{q},{'1,' if q < 20 else ',timeout'}" for m in "ab" for q in range(25)]
    recorded = read_recorded([csv(tmp_path / "x.csv", *rows, head="model,question,category,missing")])
    assert (len(recorded.questions), recorded.trials, recorded.lost) == (25, 40, 10)


def test_tasks_of_a_run_keep_their_weights(tmp_path):
    asked = [f"x,q{q},{int(q % 3 > 0)}" for q in range(10)]
    asked += [f"y,q{q},{int(q % 3 > 0)}" for q in range(25)]
    rows = [f"{m},{one}" for m in "ab" for one in asked]
    table = csv(tmp_path / "x.csv", *rows, head="model,task,question,correct")
    result = imported(tmp_path, table, decide=lambda *of: replace(default_spec(*of), overall="pooled"))
    assert scores(result)["a"] == pytest.approx(22 / 35)
    analyzed = json.loads(printed("analyze", tmp_path / "run", "--json", "--replicates", 2))
    assert analyzed["models"][0]["score"] == pytest.approx(22 / 35)
    again = import_logs(open_logs([tmp_path / "run"], ReadingOptions()), tmp_path / "again")
    assert scores(again) == pytest.approx(scores(result))
    for several in (table, tmp_path / "run"):
        with pytest.raises(UsageError, match="is in several tasks, which --task would take for one"):
            read_recorded([several], ReadingOptions(task="z"))
    equal = imported(tmp_path / "equal", table)
    with pytest.raises(UsageError, match=r"weight in the score of its task 'x' is 0\.5, in .* is 0\.28"):
        read_recorded([tmp_path / "run", equal.directory])


def test_models_that_never_vary_are_named_without_a_run_too(tmp_path):
    cells = [(m, q, n) for m in "ab" for q in range(20) for n in range(4)]
    rows = [f"{m},q{q},{n},{int(m == 'a' or (q * n) % 3 == 0)}" for m, q, n in cells]
    table = csv(tmp_path / "x.csv", *rows, head="model,question,trial,correct")
    result = command("analyze", table, "--replicates", 2)
    assert "note: a: all 60 answers to a question asked again are the same" in result.stderr
    assert "note: b:" not in result.stderr


def test_clusters_that_the_run_file_does_not_hold_are_not_ignored(tmp_path):
    config = """
    name: forest
    models: [{name: m, endpoints: ["http://x/v1"]}, {name: n, endpoints: ["http://x/v1"]}]
    tasks: [{name: forest, dataset: d, fields: {cluster: family}, prompt: "{input}", scorer: numeric}]
    """
    runs.make_run(tmp_path / "run", meta={"config": config})
    target = ("-o", "stopping.target=population")
    for extra in (("--replicates", 2), ("--write", tmp_path / "again")):
        refused = command("analyze", tmp_path / "run", *extra, *target)
        assert isinstance(refused.exception, UsageError)
        assert "--map cluster=family" in str(refused.exception)
        assert printed("analyze", tmp_path / "run", *extra)


@pytest.mark.parametrize("gap", [0.02, 0.9])  # decided at the end, or early
def test_trials_that_no_log_has_are_not_counted(tmp_path, gap):
    right = np.random.default_rng(3).random((2, 200)) < [[0.95], [0.95 - gap]]
    cells = [(m, q) for m in (0, 1) for q in range(200) if m or q % 10]
    rows = [f"{'ab'[m]},q{q},{int(right[m, q])}" for m, q in cells]
    result = imported(tmp_path, csv(tmp_path / "x.csv", *rows))
    assert result.absent > 10
    results = result.results
    assert results.trials == result.trials == len(rows)
    (pair,) = results.pairs
    if pair.decided_at is not None:
        assert decided_trials(results) <= 2 * pair.decided_at + BATCH
    assert 0 < decided_trials(results) <= len(rows)
    with RunReader(tmp_path / "run") as reader:
        late = [one.request.key.model for one in reader.trials(missing=False, after_stop=True)]
    after_stop = {line.model: line.after_stop for line in results.models}
    assert after_stop == {name: late.count(name) for name in "ab"}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's /proc")
def test_two_hundred_thousand_rows_stay_below_a_quarter_of_a_gigabyte(tmp_path):
    rng = np.random.default_rng(0)
    with (tmp_path / "x.csv").open("w", encoding="utf-8") as file:
        file.write("model,question,trial,category\n")
        for model in range(4):
            right = (rng.random((50, 1000)) < 0.3 + 0.1 * model).astype(int).tolist()
            for trial, row in enumerate(right):
                file.writelines(f"m{model},q{q},{trial},{category}\n" for q, category in enumerate(row))
    # of this program alone: getrusage counts the process that started it as well
    code = (
        "import sys; from adaptive_eval.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "finally: print(*(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    arguments = ["analyze", str(tmp_path / "x.csv"), "--write", str(tmp_path / "run")]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    kilobytes = int(done.stdout.splitlines()[-1])
    assert "200,000 trials" in done.stdout
    assert kilobytes < 250_000


def test_tasks_weigh_as_files_say_only_where_they_say_it_of_all():
    tasks = tuple(TaskSpec(name, ("q",)) for name in "tu")
    for shares, weights in (({"t": 3.0}, [1.0, 1.0]), ({"t": 3.0, "u": 2.0}, [3.0, 2.0])):
        log = Log(Path("log"), "table", lambda: iter(()), shares=shares)
        assert [task.weight for task in weighted(tasks, [log])] == weights


@pytest.mark.parametrize("task", [None, "renamed"])
@pytest.mark.parametrize("copies", ["bounded", "independent"])
def test_a_run_is_read_with_its_texts_as_without(tmp_path, copies, task):
    config = json.loads(runs.config_of(runs.spec_of({"oak": 0.9, "elm": 0.6})))
    config |= {"on": {"copies": copies, "discarded": ["connection"]}}
    meta = {"name": "forest", "config": json.dumps(config), "source": "c.yaml", "base_dir": str(tmp_path)}
    right, answer = Score(1, "4"), Completion("x" * 900, "stop", Usage(5, 2))
    kinds = {
        "first": {},
        "copy": {"score": Score(1, "4", {SAME_TEXT: True})},
        "redrawn": {"discarded": ("connection",)},
        "lost": {"discarded": ("connection", "timeout")},
        "gone": {"completion": None, "score": None, "missing": "it timed out"},
    }
    with RunWriter.create(tmp_path / "run", meta=meta) as writer:
        for step, (model, changes) in enumerate(product(("oak", "elm"), kinds.values())):
            request = TrialRequest(TrialKey(model, step), "forest", "q1", step % len(kinds), step)
            writer.outcome(TrialRecord(request, 1.7e9, **({"completion": answer, "score": right} | changes)))
    read = {}
    for texts in (False, True):
        log = run_log(tmp_path / "run", ReadingOptions(task=task, rename={"oak": "fir"}), texts=texts)
        assert log.weights == {task or "forest": (0.0, 1.0)}
        read[texts] = {(one.model, one.number): one for one in log.read()}
        assert {one.task for one in read[texts].values()} == {task or "forest"}
    for model, (number, kind) in product(("fir", "elm"), enumerate(kinds)):
        found = [read[texts][model, number] for texts in (False, True)]
        assert [one.redrawn for one in found] == [kind == "redrawn"] * 2
        lost = "no answer" if kind == "lost" else None  # with its texts it is found to be lost later
        assert [one.missing for one in found] == (["it timed out"] * 2 if kind == "gone" else [lost, None])
        assert found[1].discarded == kinds[kind].get("discarded", ())
        assert found[1].repeats is (kind == "copy" and copies == "bounded")
        assert found[0].repeats is (copies == "bounded" and kind != "gone")  # by number, as they may be equal
