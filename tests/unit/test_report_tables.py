"""The report's tables: CSV that a spreadsheet cannot be tricked by, and a table for a paper."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import run_examples as runs
from hypothesis import given
from hypothesis import strategies as st

from adaptive_eval.views.accounts import QuestionAccount, several_answers
from adaptive_eval.views.files import models_csv, pairs_csv, questions_csv
from adaptive_eval.views.score_tables import paper_latex, paper_markdown, tex
from adaptive_eval.views.sentences import say
from scorio.eval import pass_at_k, pass_hat_k


@pytest.fixture(scope="module")
def summary(tmp_path_factory):
    """Return the summary of a finished run."""
    directory = tmp_path_factory.mktemp("tables") / "forest"
    return runs.summary_of(directory, missing=0.03, truncated=0.05)


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_the_models_are_there_with_every_digit(summary):
    for row, line in zip(rows_of(models_csv(summary)), summary.results.models, strict=True):
        assert row["model"] == line.model
        assert float(row["score"]) == line.score
        assert float(row["bayes_sigma"]) == line.sigma
        assert int(row["trials"]) == line.trials


def test_the_pairs_are_there(summary):
    for row, pair in zip(rows_of(pairs_csv(summary)), summary.results.pairs, strict=True):
        assert (row["first"], row["second"], row["verdict"]) == (pair.first, pair.second, pair.verdict)
        assert float(row["difference_low"]) == pair.low
        assert int(row["decided_at"]) == pair.decided_at


def test_the_questions_add_up_to_the_models(summary):
    rows = rows_of(questions_csv(summary))
    for line in summary.results.models:
        mine = [row for row in rows if row["model"] == line.model]
        assert sum(int(row["trials"]) for row in mine) == line.trials
        fractions = [int(row["correct"]) / int(row["trials"]) for row in mine]
        assert sum(fractions) / len(fractions) == pytest.approx(line.score)


def test_no_cell_is_a_formula_and_no_number_is_infinite(summary):
    names = ("=1+1", "+1", "-x", "@sum(a)", " =1", "a,b\nc", "-3")
    line, account = summary.results.models[0], summary.details.models[0]
    results = replace(
        summary.results, models=tuple(replace(line, model=name, score=float("inf")) for name in names)
    )
    text = models_csv(runs.with_details(replace(summary, results=results), models=(account,) * len(names)))
    rows = rows_of(text)
    assert [row["model"] for row in rows] == ["'=1+1", "+1", "'-x", "'@sum(a)", "' =1", "a,b␊c", "-3"]
    assert {row["score"] for row in rows} == {""}


def test_a_papers_table_has_every_model_in_per_cent(summary):
    latex, markdown = paper_latex(summary), paper_markdown(summary)
    plain = markdown.replace("\\", "")
    for line in summary.results.models:
        assert rf"{100 * line.mu:.2f} $\pm$ {100 * line.sigma:.2f}" in latex
        assert f"| {line.model} | {100 * line.score:.2f} | [{100 * line.low:.2f}" in plain
        assert f"| {100 * line.mu:.2f} ± {100 * line.sigma:.2f} |" in plain
    assert "Mean of questions (\\%) & 95 \\% interval & Bayes@N" in latex, "what ranks leads, by its name"
    assert latex.count(r" \\") == len(summary.results.models) + 1
    assert latex.count(r"\begin") == latex.count(r"\end") == 2


def test_a_papers_sentence_counts_scored_trials_as_its_table_does(summary):
    results = summary.results
    cut = replace(results, models=tuple(replace(line, questions=7) for line in results.models))
    said = say("run.methods", replace(summary, results=cut))
    assert f"7 of {results.questions} questions" in said
    assert f"N = {sum(line.trials for line in results.models):,} scored trials" in said
    assert f"{sum(line.missing for line in results.models)} further trials without a score" in said


@given(st.text(st.sampled_from("\\{}$&#%_^~ab[]\n\x1b|<>"), max_size=20))
def test_text_runs_no_command_in_latex(text):
    printed = re.sub(
        r"\\(textbackslash|textasciicircum|textasciitilde|text(less|greater|bar))\{\}|\\[{}$&#%_]",
        "",
        tex(text),
    )
    assert not set("\\$&#%_^~|<>\n\x1b") & set(printed)
    assert re.sub(r"\{[][]\}", "", printed).count("{") == 0


def test_pass_at_k_is_given_where_every_question_that_was_asked_has_k_answers():
    rng = np.random.default_rng(5)
    answers = rng.integers(0, 2, (12, 5))
    asked = [
        QuestionAccount("t", f"q{n}", 5, 0.5, 0.0, ((5, int(row.sum())), (1 + n, 1), (0, 0)))
        for n, row in enumerate(answers)
    ]
    models = [SimpleNamespace(model=name) for name in ("all", "few", "none")]
    ((name, fewest, found),) = several_answers(asked, SimpleNamespace(models=models, tasks=()))
    assert (name, fewest) == ("all", 5)
    expected = [(pass_at_k(answers, k), pass_hat_k(answers, k)) for k in (2, 4)]
    assert [one for one in found if one] == [pytest.approx(one) for one in expected]
    assert found[2:] == [None, None]


def test_pass_at_k_weighs_questions_as_the_score_does():
    rights = {"long": [2] * 40, "short": [1] * 10}
    asked = [
        QuestionAccount(task, f"q{n}", 2, 0.5, 0.0, ((2, right),))
        for task, of_task in rights.items()
        for n, right in enumerate(of_task)
    ]
    tasks = [SimpleNamespace(task=name, weight=share) for name, share in (("long", 0.25), ("short", 0.75))]
    ((*_, found),) = several_answers(asked, SimpleNamespace(models=[SimpleNamespace(model="m")], tasks=tasks))
    assert found[0] == pytest.approx((1.0, 0.25))
