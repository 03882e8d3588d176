"""What counts as lost, or may be a copy, in a run counts so in its export, and in an import of that."""

import json
import random
import re
from dataclasses import replace
from itertools import product

import pytest
from command_line import command

from adaptive_eval import EvaluationWarning, evaluate, results_of
from adaptive_eval.build.describe import describe_run
from adaptive_eval.errors import OutcomesError
from adaptive_eval.interop.found import ReadingOptions
from adaptive_eval.interop.recorded_files import read_recorded
from adaptive_eval.interop.run_tables import trial_rows
from adaptive_eval.simulate.recorded import LOST
from adaptive_eval.store.reader import RunReader
from adaptive_eval.trial import SAME_TEXT

ROWS = [{"id": f"q{number}", "input": f"What? {number}", "target": "4"} for number in range(10)]
FORMS = ("run", "table.csv", "table.parquet")


def ran(folder):
    """Run a model that is late with wrong answers now and then, and a sure one, and export the run."""
    rng = random.Random(5)

    def late(prompt):
        right = rng.random() < 0.6
        if not right and rng.random() < 0.3:
            raise TimeoutError
        return f"{rng.random()}, so {4 if right else 5}"

    def sure(prompt):
        number = int(prompt.removeprefix("What? "))
        return f"{' '.join(str(number + digit * 7919) for digit in range(300))}, so {4 if number % 2 else 5}"

    models, budget = {"late": late, "sure": sure}, {"trials": 200}
    with pytest.warns(EvaluationWarning):
        evaluate(
            models, ROWS, scorer="numeric", budget=budget, goal="budget", out=folder / "run", progress=False
        )
    for form in FORMS[1:]:
        kind = form.partition(".")[2]
        command("export", folder / "run", "--format", kind, "--out", folder / form, code=0)


def told(run):
    """Return how many trials of each model have a discarded draw, and how many may be copies."""
    discarded, repeats = {}, {}
    with RunReader(run) as reader:
        for trial in reader.trials():
            model = trial.request.key.model
            discarded[model] = discarded.get(model, 0) + bool(trial.discarded)
            repeats[model] = repeats.get(model, 0) + (
                trial.score is not None and SAME_TEXT in trial.score.signals
            )
    return discarded, repeats


def test_an_import_keeps_what_is_lost_and_what_may_be_a_copy(tmp_path):
    ran(tmp_path)
    before, lines = told(tmp_path / "run"), results_of(tmp_path / "run").models
    assert before[0]["late"] >= 5
    assert before[1]["sure"] >= 50
    for number, form in enumerate(FORMS):
        again = tmp_path / f"again{number}"
        command("analyze", tmp_path / form, "--write", again, code=0)
        assert told(again) == before, form
        shown = [(line.discarded_trials, line.trials) for line in results_of(again).models]
        assert shown == [(line.discarded_trials, line.trials) for line in lines], form
        table = read_recorded([tmp_path / form], ReadingOptions())
        assert (table.categories == LOST).sum() == before[0]["late"], form
        table = read_recorded([again], ReadingOptions())
        assert (table.categories == LOST).sum() == before[0]["late"], f"a reference from {form}"
    with RunReader(tmp_path / "run") as reader:
        rows = list(trial_rows(reader, describe_run(reader), texts=False))
        about = replace(describe_run(reader), redrawn=frozenset({"timeout"}))
        kept = list(trial_rows(reader, about, texts=False))
    assert sum(row["redrawn"] for row in kept) == before[0]["late"]
    for line in lines:
        of_model = [row for row in rows if row["model"] == line.model]
        assert {row["weight"] for row in of_model if row["discarded"]} <= {0.0}
        assert sum(row["weight"] * row["score"] for row in of_model) == pytest.approx(line.score)


def test_weights_of_an_export_are_those_of_a_rule_that_takes_copies_as_lost(tmp_path):
    rows = []  # of the first question, no other text is known by then
    for model, number in product("ab", range(10)):
        texts = [
            " ".join(f"{model}{number * kind + digit}" for digit in range(400)) for kind in (7919, 104729)
        ]
        for repeat, said in enumerate((texts[0], *texts)):
            row = {"model": model, "question": f"q{number}", "repeat": repeat, "text": said}
            rows.append(row | {"category": int(repeat == 1 or number < 4)})
    (tmp_path / "table.jsonl").write_text("\n".join(map(json.dumps, rows)))
    for rule, lost in (("anytime", 0), ("exact", 9), ("zscore", 9)):
        run = tmp_path / rule
        command("analyze", tmp_path / "table.jsonl", "--write", run, "-o", f"stopping.rule={rule}", code=0)
        with RunReader(run) as reader:
            exported = list(trial_rows(reader, describe_run(reader), texts=False))
        for line in results_of(run).models:
            of_model = [row for row in exported if row["model"] == line.model]
            assert sum(row["weight"] * row["score"] for row in of_model) == pytest.approx(line.score)
            weightless = sum(row["repeats"] and not row["weight"] for row in of_model)
            assert (line.missing, weightless) == (lost, lost)


def test_an_import_counts_another_draw_where_the_run_did_and_says_so(tmp_path):
    table, again = tmp_path / "table.csv", tmp_path / "again"
    lines = ["model,question,category,after_stop,discarded_cause,redrawn"]
    for question in range(10):
        lines += [
            f"a,q{question},1,false,killed,{str(question > 3).lower()}",
            f"b,q{question},0,false,,false",
        ]
    table.write_text("\n".join(lines))
    done = command("analyze", table, "--write", again, code=0)
    assert "6 trials were answered by another draw" in " ".join(done.said.split())
    assert told(again)[0] == {"a": 4, "b": 0}, "as others with this cause are lost"
    assert (read_recorded([table], ReadingOptions()).categories == LOST).sum() == 4


LATE = """
from itertools import count

asked = count()

def late(prompt):
    if next(asked) % 5 == 3:
        raise TimeoutError
    return "4"

def wrong(prompt):
    return "5"
"""


def test_every_view_says_that_verdicts_rest_on_the_word_of_the_user(tmp_path):
    (tmp_path / "late.py").write_text(LATE)
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    config = {
        "name": "word",
        "models": [{"name": name, "endpoints": [f"python:late.py:{name}"]} for name in ("late", "wrong")],
        "tasks": [{"name": "t", "dataset": "rows.jsonl", "prompt": "{input}", "scorer": "numeric"}],
        "budget": {"trials": 40},
        "on": {"discarded": "redraw"},
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    run, site, compared = tmp_path / "run", tmp_path / "site", tmp_path / "compared"
    again = tmp_path / "again"
    said = {"run": command("run", tmp_path / "config.json", "--out", run, "--display", "none").said}
    commands = (
        ("monitor", run, "--once"),
        ("monitor", run, "--once", "--json"),
        ("export", run, "--format", "latex"),
        ("export", run, "--format", "markdown"),
        ("analyze", run, "--sequential", "--replicates", 2, "--workers", 1),
        ("check", run, "--at-least", "late:0.1"),
        ("report", run, run),
        ("analyze", run, "--write", again),
        ("monitor", again, "--once"),
        ("export", again, "--format", "markdown"),
        ("check", again, "--at-least", "late:0.1"),
    )
    said |= {" ".join(map(str, one)): command(*one).said for one in commands}
    command("report", run, "--leaderboard", "--output", site, code=0)
    command("report", run, run, "--output", compared, code=0)
    command("report", again, code=0)
    command("validate", again, code=0)
    assert told(again)[0] == told(run)[0]
    assert not (read_recorded([again], ReadingOptions()).categories == LOST).any()
    files = [file for file in tmp_path.glob("*/**/*.*") if file.suffix in (".html", ".md", ".tex")]
    said |= {str(file.relative_to(tmp_path)): file.read_text("utf-8") for file in files}
    assert [name for name, text in said.items() if "verdicts rest on" not in _plain(text)] == []
    for file in (site / "index.json", site / "run/report.json", compared / "comparison.json"):
        counts = re.findall(r'"redrawn_trials": (\d+)', file.read_text("utf-8"))
        assert max(map(int, counts)) > 0, file


def _plain(text):
    return " ".join(text.split()).lower()


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("discarded_cause", "late", "discarded_cause: 'late' is no cause"),
        ("finished_at", "1.7e12", "finished_at: 1.7e\\+12 is no Unix time"),  # in milliseconds
    ],
)
def test_an_unknown_cause_or_time_is_refused(tmp_path, column, value, said):
    table = tmp_path / "table.csv"
    table.write_text(f"model,question,category,after_stop,{column}\na,q1,1,false,{value}\nb,q1,0,false,\n")
    with pytest.raises(OutcomesError, match=f"line 2: {said}"):
        read_recorded([table], ReadingOptions())
