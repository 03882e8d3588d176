"""Functions of one's own as models: evaluated, asserted on, checked on the command line."""

import asyncio
import csv
import gc
import json
import random
import re
from collections import defaultdict
from decimal import Decimal
from statistics import fmean
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from click.testing import CliRunner
from scripted_chat import scripted_chat

import adaptive_eval
from adaptive_eval.build.describe import describe_run, report_targets
from adaptive_eval.cli.main import cli
from adaptive_eval.errors import ConfigError, RunMismatch, UsageError, UserCodeError
from adaptive_eval.interop.recorded_files import read_recorded
from adaptive_eval.store.reader import RunReader
from adaptive_eval.views.files import write_reports

ROWS = [{"id": f"q{n}", "input": f"{n} + {n}?", "target": str(2 * n)} for n in range(30)]


def coin(mean, seed=0):
    """An async model that is right with this probability."""
    rng = random.Random(seed)

    async def answer(prompt):
        right = 2 * int(prompt.split()[0])
        return f"It is {right if rng.random() < mean else right + 1}."

    return answer


def command(*arguments):
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def evaluate(**options):
    models = {"old": coin(0.5, 1), "new": coin(0.95, 2)}
    models, task = options.pop("models", models), options.pop("task", ROWS)
    return adaptive_eval.evaluate(models, task, **{"scorer": "numeric", **options})


def last_number(answer, target):
    return answer.rstrip(".").split()[-1] == target


async def with_signals(answer, row):
    await asyncio.sleep(0)
    right = str(row["target"]) in answer
    return {"score": float(right), "extracted": answer, "signals": {"words": len(answer.split())}}


class Judge:
    def __call__(self, answer, **known):
        return known["question"]["target"] in answer

    def holds(self, answer, target):
        return target in answer


WEIGHED = {"kind": "checks", "parts": {"a": "numeric", "b": "exact"}, "by": "mean"}


def misnamed(answer, traget):
    return True


def wordy(answer):
    return "yes" if answer.startswith("It is") else False


def leaving(answer):
    raise SystemExit(3)


def finding_nothing(answer):
    return next(word for word in () if word in answer)


def closing(answer):
    raise GeneratorExit


def exactly(answer, target):
    counted = {"words": np.int64(len(answer.split())), "share": Decimal("0.5"), "text": "x"}
    return {"score": Decimal(target in answer), "signals": counted}


def by_position(answer, target, /):
    return target in answer


def loosely(answer, *others, **known):
    return known["target"] in answer


async def reading(answer):
    return json.loads(answer)


class TestOwnScorers:
    @pytest.mark.parametrize(
        "scorer",
        [
            last_number,
            with_signals,
            exactly,
            loosely,
            Judge(),
            Judge().holds,
            lambda answer, target: target in answer,
        ],
    )
    def test_a_function_scores_the_answers(self, scorer):
        found = evaluate(scorer=scorer)
        assert found.ranking == ("new", "old")
        answers = found.answers()
        for one in answers:
            right = f" {2 * int(one.request.question[1:])}." in one.completion.text
            assert one.score.category == int(right)
        assert all(("words" in one.score.signals) == (scorer in (with_signals, exactly)) for one in answers)

    @pytest.mark.parametrize(
        ("scorer", "words"),
        [
            (wordy, "test_evaluate.py, line {}: wordy() returned 'yes', neither a bool nor a score"),
            (leaving, "the scorer failed: SystemExit: 3 (test_evaluate.py, line {})"),
            (finding_nothing, "the scorer failed: StopIteration (test_evaluate.py, line {})"),
            (closing, "the scorer failed: GeneratorExit (test_evaluate.py, line {})"),
            (reading, "JSONDecodeError"),
        ],
    )
    def test_what_a_function_does_wrong_is_told_with_its_place(self, scorer, words):
        found = evaluate(scorer=scorer)
        (said,) = {one.missing for one in found.answers()}
        first = scorer.__code__.co_firstlineno
        assert words.format(first + (scorer is not wordy)) in said
        assert f"(test_evaluate.py, line {first + 1})" in said or scorer is wordy
        assert (found.stop.reason, found.model("new").trials) == ("unusable", 0)

    def test_a_function_with_another_parameter_is_refused_and_nothing_is_asked(self):
        asked = []
        with pytest.raises(UserCodeError, match="has the parameter 'traget'; did you mean 'target'"):
            evaluate(models={"a": asked.append, "b": asked.append}, scorer=misnamed)
        assert not asked

    def test_a_run_is_continued_with_the_same_function_alone(self, tmp_path):
        for trials in (20, 40):
            evaluate(out=tmp_path / "run", scorer=last_number, budget={"trials": trials})
        with pytest.raises(RunMismatch, match="scorer"):
            evaluate(out=tmp_path / "run", scorer=lambda answer: True)
        done = command("rescore", tmp_path / "run", "--scorer", "numeric", "--json")
        as_run, numeric = json.loads(done.stdout)
        assert as_run["models"] == numeric["models"]

    @pytest.mark.parametrize(
        ("scorer", "words"),
        [
            (Judge, r"Judge is a class .*: write score = Judge\(\)"),
            ([Judge, "numeric"], r"Judge is a class .*: write score = Judge\(\)"),
            (Judge.holds, r"score = Judge\(\).holds"),
            (by_position, "given by their names: remove the /"),
            ("scores.py:Judge.holds", r"score = CLASS\(\).METHOD"),
            ("scores.py", "write my_scorers.py:score"),
            (["exact", ["numeric", last_number]], "a part is one scorer, and not several"),
            ({"kind": "checks", "parts": {"a": "exact", "b": ["numeric"]}}, "a part is one scorer"),
            ({"a": "numeric", "b": last_number}, "{kind: checks, parts: {NAME: SCORER"),
            (WEIGHED | {"weights": [1, 2]}, "{PART: WEIGHT, OTHER: WEIGHT}"),
            (WEIGHED | {"weights": {"a": 1, "c": 2}}, "'c' is no part and 'b' has none"),
        ],
    )
    def test_what_is_no_scorer_is_told_what_to_write(self, scorer, words):
        with pytest.raises((UserCodeError, ConfigError), match=words):
            evaluate(scorer=scorer)

    def test_columns_of_other_names_are_told_how_to_be_named(self):
        rows = [{"question": "1", "answer": "2"}]
        with pytest.raises(UsageError, match=r'"fields": {"input": COLUMN.*there are: question, answer'):
            adaptive_eval.evaluate({"a": str, "b": str}, rows, scorer="numeric")

    def test_functions_without_names_are_told_what_to_write(self):
        with pytest.raises(UsageError, match=r'evaluate\({"wordy": wordy, .*scorer="numeric"'):
            adaptive_eval.evaluate(wordy, ROWS)
        with pytest.raises(TypeError, match=r"evaluate\(\) has no argument 'scorers'; did you mean 'scorer'"):
            evaluate(scorers="numeric")
        for key, section in {"trials": "budget", "equivalence": "stopping"}.items():
            with pytest.raises(TypeError, match=rf"no argument '{key}'; write {section}={{'{key}'"):
                evaluate(**{key: 5})

    def test_a_function_with_a_parameter_that_nothing_is_given_for_is_refused(self):
        with pytest.raises(UserCodeError, match="model 'a': its function has the parameter 'other'"):
            adaptive_eval.evaluate({"a": lambda prompt, other: "1", "b": str}, ROWS)

    @pytest.mark.parametrize(
        ("model", "words"),
        [
            (lambda: "1", "no first parameter for the prompt"),
            (lambda *, seed: "1", "no first parameter for the prompt"),
            (Judge, "model 'a' is the class Judge: give an instance or a method"),
        ],
    )
    def test_a_model_that_takes_no_prompt_is_refused(self, model, words):
        with pytest.raises(UserCodeError, match=words):
            adaptive_eval.evaluate({"a": model, "b": str}, ROWS)

    @pytest.mark.parametrize("rows", [[], SimpleNamespace(to_dict=list)])
    def test_rows_that_are_none_are_told_what_to_give(self, rows):
        with pytest.raises(UsageError, match=r"list of rows is empty|frame.to_dict\(\"records\"\)"):
            adaptive_eval.evaluate({"a": str, "b": str}, rows)


class TestEvaluate:
    def test_async_functions_are_ranked_and_nothing_is_left_behind(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        found = evaluate()
        assert found.resolved
        assert found.ranking == ("new", "old")
        assert found.model("new").score > found.model("old").score
        assert not list(tmp_path.iterdir())
        place = found.directory
        assert {one.request.key.model for one in found.answers(question="q3")} == {"old", "new"}
        del found
        gc.collect()
        assert not place.exists()

    def test_people_read_the_letter_of_the_right_option_and_exports_its_number(self, tmp_path):
        rows = [{"input": f"{n}?", "target": n % 3, "choices": ["x", "y", "z"]} for n in range(12)]
        scorer = {"kind": "choice", "index_from": 0}
        adaptive_eval.evaluate(
            {"a": str, "b": str}, rows, scorer=scorer, budget={"trials": 4}, out=tmp_path / "run"
        )
        with RunReader(tmp_path / "run") as reader:
            record = next(iter(reader.trials(limit=1)))
            raw = describe_run(reader).target(record)
            assert report_targets(reader)(record) == "ABC"[int(raw)]

    def test_a_run_can_be_kept_reported_and_looked_at(self, tmp_path):
        found = evaluate(out=tmp_path / "run")
        write_reports(found.directory)
        assert "new is ahead of old" in (tmp_path / "run" / "report.md").read_text(encoding="utf-8")
        with RunReader(tmp_path / "run") as reader:
            record = next(reader.trials())
        assert record.completion.text.startswith("It is ")
        assert record.sent["messages"][0]["content"].endswith("?")
        exported = command("export", found.directory, "--format", "jsonl").output.splitlines()
        rows = [json.loads(line) for line in exported]
        assert {row["target"] for row in rows} <= {row["target"] for row in ROWS}
        assert all(row["score"] == row["category"] for row in rows)
        for arguments in (
            ("samples", found.directory, "--limit", "1"),
            ("analyze", found.directory, "--replicates", "2", "--workers", "1"),
        ):
            assert command(*arguments).exit_code == 0

    def test_a_report_of_rounds_says_that_plain_means_differ_from_its_scores(self, tmp_path):
        """Rounds weight the trials of a question: six passes of two close models."""
        run, models = tmp_path / "run", {"old": coin(0.5, 1), "new": coin(0.55, 2)}
        evaluate(models=models, out=run, seed=4, stopping={"max_passes": 6})
        for arguments in (("report", run), ("export", run, "--out", tmp_path / "trials.csv")):
            assert command(*arguments).exit_code == 0
        given = defaultdict(list)
        with (tmp_path / "trials.csv").open(encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines):
                if row["category"] and not row["missing"]:
                    given[row["model"], row["question"]].append(int(row["category"]))
        report = json.loads((run / "report.json").read_text(encoding="utf-8"))
        assert report["in_rounds"] == ["task"]
        for line in report["models"]:
            plain = fmean(fmean(given[line["model"], row["id"]]) for row in ROWS)
            assert 1e-4 < abs(line["score"] - plain) < 0.03
        page = (run / "report.md").read_text(encoding="utf-8")
        assert "the plain mean of the exported trials differs from the score" in page
        assert "(from the third pass on, rounds weight the trials of a question)" in page
        assert "| changes |" not in page  # an empty setting
        assert "| thresholds |" not in page
        assert ">stopped<" not in (run / "report.html").read_text(encoding="utf-8")  # "Stopped (…)" says it

    def test_a_run_goes_on_where_it_was(self, tmp_path):
        (tmp_path / "sums.jsonl").write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
        same = {
            "task": {"dataset": tmp_path / "sums.jsonl", "prompt": "{input} Be brief.", "scorer": "numeric"}
        }
        same |= {"out": tmp_path / "run", "goal": "budget", "scorer": None}
        first = evaluate(**same, budget={"trials": 40})
        assert first.results.trials == 40
        analyzed = command("analyze", first.directory, "--replicates", "1", "--workers", "1")
        assert "has 30 questions; a model is asked until its pairs are decided" in analyzed.stderr
        assert f"own verdicts and Bayes@N: adaptive-eval report {first.directory}" in analyzed.stderr
        second = evaluate(**same, budget={"trials": 60})
        assert second.results.trials == 60
        with RunReader(tmp_path / "run") as reader:
            assert next(reader.trials()).sent["messages"][0]["content"].endswith("? Be brief.")
        assert 58 <= read_recorded([tmp_path / "run"]).trials <= 60  # the first repeats may be copies

    def test_a_judges_budget_is_not_spent_anew_by_the_next_call(self, tmp_path):
        with scripted_chat() as make:
            judge = make(lambda body: json.dumps({"reason": "so", "verdict": "correct"}))
            scorer = {"kind": "judge", "endpoint": judge.url, "model": "wise", "budget": {"requests": 20}}
            for _ in range(2):
                found = evaluate(out=tmp_path / "run", scorer=scorer)
                assert found.stop.reason == "budget"
                assert 0 < len(judge.asked) <= 20

    def test_within_a_loop_it_may_be_awaited_or_not(self):
        async def notebook():
            models = {"old": coin(0.2), "new": coin(0.9)}
            with pytest.raises(ZeroDivisionError):
                evaluate(models={"broken": lambda prompt: str(1 / 0), **models})
            return evaluate(), await adaptive_eval.evaluate_async(models, ROWS, scorer="numeric")

        assert all(found.resolved for found in asyncio.run(notebook()))

    def test_a_line_of_progress_is_shown_where_it_is_wanted_and_cleared(self, capsys):
        evaluate(progress=True)
        shown = capsys.readouterr().err
        assert "trials, " in shown
        assert shown.split("\r")[-1] == ""
        evaluate()
        assert capsys.readouterr().err == ""

    def test_it_prints_as_a_table_with_a_row_for_each_model(self):
        found = evaluate()
        new, old = (line for line in str(found).splitlines() if line.split()[0] in "12")
        assert (new.split()[1], old.split()[1]) == ("new", "old")
        assert f"{found.model('new').score:.3f}" in new
        page = found._repr_html_()
        assert page.count("<tr>") == 3
        assert page.count("<svg") == 2
        ends = [float(text) for text in re.findall(r' x[12]="([^"]+)%"', page)]
        assert (min(ends), max(ends)) == (0.0, 100.0), "as far as the picture goes"
        drawn = Mock()
        assert found.plot(drawn) is drawn
        assert drawn.errorbar.call_args.args[0] == [found.model(name).score for name in ("new", "old")]
        answers = found.to_frame("answers")
        assert len(answers) == found.results.trials
        assert answers["answer"].str.startswith("It is ").all()

    def test_a_client_of_an_earlier_calls_loop_is_named_with_what_to_do(self):
        loops = []

        async def client(prompt):
            loops.append(asyncio.get_running_loop())
            loops[0].call_soon(list)  # as a connection does that was opened there
            return prompt

        models = {"client": client, "other": lambda prompt: "7"}
        evaluate(models=models, budget={"trials": 20})
        with pytest.raises(UsageError, match=r"'client': Event loop is closed.*make the client within"):
            evaluate(models=models, budget={"trials": 20})


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return evaluate(out=tmp_path_factory.mktemp("claims") / "run")


class TestClaims:
    def test_assertions_pass_where_the_claim_is_shown(self, found):
        adaptive_eval.assert_not_worse(found, "new", than="old", margin=0.02)
        adaptive_eval.assert_not_worse(found.directory, "new", than="old", margin=0.02)
        adaptive_eval.assert_at_least(found, "new", 0.5)

    def test_what_is_shown_false_and_what_cannot_be_told_both_fail_and_say_which(self, found):
        with pytest.raises(
            AssertionError, match=r"^old is worse than new by more than 0.02 on these questions at 95 %"
        ):
            adaptive_eval.assert_not_worse(found, "old", than="new", margin=0.02)
        gap = abs(found.results.pairs[0].difference)
        with pytest.raises(AssertionError, match="it is open whether old is worse"):
            adaptive_eval.assert_not_worse(found, "old", than="new", margin=gap)
        with pytest.raises(AssertionError, match=r"^old scores less than 0.99"):
            adaptive_eval.assert_at_least(found, "old", 0.99)


def _typo(answer, target):
    return answer.strp() == target


async def _column(answer, row):
    return answer == row["anser"]


@pytest.mark.parametrize(
    ("scorer", "error"),
    [
        (_typo, "has no attribute 'strp'"),
        (_column, "KeyError: 'anser'"),
        (["numeric", lambda answer, target: answer + 1], "can only concatenate str"),
        (lambda answer: "yes", "returned 'yes'"),
    ],
)
def test_a_scorer_that_fails_whatever_the_answer_is_is_found_before_a_model_is_asked(scorer, error):
    asked = []
    models = {"a": asked.append, "b": asked.append}
    with pytest.raises(UserCodeError, match=r"test_evaluate.py, line \d+") as raised:
        evaluate(models=models, scorer=scorer)
    assert error in str(raised.value)
    assert asked == []


def _boxed(answer, target):
    return re.search(r"\[(\d+)\]", answer)[1] == target


def _split(answer, target):
    return answer.split("#")[1] == target


@pytest.mark.parametrize("scorer", [_boxed, _split])
def test_a_scorer_that_fails_at_answers_of_another_form_is_used(scorer):
    rows = [{"id": f"q{n}", "input": f"{n}", "target": f"{n}"} for n in range(12)]
    models = {"a": "[{0}]#{0}".format, "b": "[x1]#0{} [00]".format}
    found = evaluate(models=models, task=rows, scorer=scorer, deterministic=models)
    assert (found.ranking, found.resolved) == (("a", "b"), True)
