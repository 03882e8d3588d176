"""The HTML report, its tables and its course; and reports of a board of 100 models."""

import csv
import io
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from types import SimpleNamespace

import hostile_run
import numpy as np
import pytest
import run_examples as runs
import standings_examples as examples
from hypothesis import given
from hypothesis import strategies as st
from session_scripts import coin, drive, make_spec

from adaptive_eval.core.results import PairForecast, Range
from adaptive_eval.core.session import Session
from adaptive_eval.errors import Coded
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.views.accounts import QuestionAccount, several_answers, suspect
from adaptive_eval.views.columns import pair_rows
from adaptive_eval.views.decision_sentences import describe
from adaptive_eval.views.details import MOST, ScorePoint, WatchedCourse, moment_of
from adaptive_eval.views.files import models_csv
from adaptive_eval.views.inert import inert
from adaptive_eval.views.page import to_html, to_markdown
from adaptive_eval.views.plots import HEIGHT, LINES, MATRIX, WIDTH, Axis, Plot, course_plots, pair_matrix
from adaptive_eval.views.promises import promises
from adaptive_eval.views.report_json import report_data
from adaptive_eval.views.run_changes import compare
from adaptive_eval.views.run_sentences import methods_words, outlook_phrases
from adaptive_eval.views.score_tables import agreement, paper_latex, paper_markdown, tex
from adaptive_eval.views.summary import summary_at
from adaptive_eval.views.trials import ApartExample
from adaptive_eval.views.verdicts import flipped
from scorio.eval import pass_at_k, pass_hat_k

# The HTML report: one file that loads and runs nothing, whatever the run holds.


MADE = {"missing": 0.03, "truncated": 0.05, "meta": {"versions": '{"python": "3.11.2"}'}}
VOID = {"meta", "line", "rect", "br", "link", "img", "input"}
LOADS = {
    "script", "link", "img", "iframe", "object", "embed", "audio", "video", "source", "base", "form", "use",
}  # fmt: skip


class Page(HTMLParser):
    """What is in a page: its tags, attributes and text; complains of tags that do not match."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.text, self.open, self.ids = Counter(), [], [], [], []
        self.rows: list[list[int]] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes += attrs
        self.ids += [value for name, value in attrs if name == "id"]
        if tag == "table":
            self.rows.append([])
        elif tag == "tr":
            self.rows[-1].append(0)
        elif tag in ("td", "th"):
            self.rows[-1][-1] += 1
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] != "style":
            self.text.append(data)

    @property
    def shown(self):
        """Everything a reader sees, with single spaces."""
        return " ".join("".join(self.text).split())


def tables_of(markdown):
    """Yield how many cells each row of a table has."""
    for table in re.findall(r"(?:^\|.*\n)+", markdown, re.MULTILINE):
        yield [len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()]


@pytest.fixture(scope="module")
def summary(tmp_path_factory):
    """Return the summary of a finished run."""
    directory = tmp_path_factory.mktemp("html") / "forest"
    return runs.summary_of(directory, **MADE)


@pytest.fixture(scope="module")
def page(summary):
    """Return the parsed page of that run."""
    return Page(to_html(summary))


def test_warnings_of_one_kind_fold_on_a_page(summary):
    models = [line.model for line in summary.results.models]
    copies = [Coded("warning/copies", f"{model}: 3 answers are copies") for model in models]
    other = Coded("warning/unanswered", "4 requests may have been billed")
    warned = replace(summary.results, warnings=(*summary.results.warnings, *copies, other))
    warned = replace(summary, results=warned)
    html = to_html(warned)
    folded = html[html.index('id="more-warnings"') :].split("</details>")[0]
    assert folded.count("3 answers are copies") == len(models) - 1
    assert "may have been billed" not in folded
    assert to_markdown(warned).count("3 answers are copies") == len(models)


def test_a_long_reason_is_listed_once_with_its_models(summary):
    reason = "HTTP 400 Bad Request: This model's maximum context length is 2048 tokens"
    accounts = [replace(one, missing={reason: 3}) for one in summary.whole_details.models]
    shown = Page(to_html(runs.with_details(summary, models=accounts))).shown
    assert shown.count(reason) == 1
    assert f"{3 * len(accounts)} trials: {reason}" in shown


def test_the_page_says_what_the_report_says(page, summary):
    assert summary.headline in page.shown
    for line in summary.results.models:
        assert f"{line.bayes_mu:.3f} ± {line.bayes_sigma:.3f}" in page.shown
    for pair in summary.results.pairs:
        assert f"{pair.first} − {pair.second}" in page.shown
    promised = promises(summary.results, summary.details.target)
    for text in (*promised.holds, *promised.limits):
        assert text.replace("`", "") in page.shown
    for one in summary.decisions:
        assert describe(one) in page.shown
    assert "fewer trials than uniform" in page.shown
    assert "version of python" in page.shown
    assert " ".join(runs.CONFIG.split()) in page.shown
    assert r"\begin{tabular}" in page.shown


def test_sections_are_labelled_and_every_link_stays_inside(page):
    values = [value for name, value in page.attributes if name in ("href", "aria-labelledby")]
    assert len(page.ids) == len(set(page.ids))
    assert {value.lstrip("#") for value in values} <= set(page.ids)
    assert page.tags["h1"] == page.tags["main"] == 1
    assert page.tags["caption"] == page.tags["table"] == 15


def test_nothing_is_loaded_and_nothing_runs(page, summary, tmp_path):
    whole = hostile_run.hostile_summary(tmp_path / "run")
    (_, answers), *_ = whole.details.examples.models
    apart = (ApartExample(hostile_run.SCRIPT, hostile_run.SCRIPT, answers),)
    html = to_html(runs.with_details(whole, examples=replace(whole.details.examples, apart=apart)))
    hostile = Page(html)
    for shown, text in ((page, to_html(summary)), (hostile, html)):
        assert not LOADS & set(shown.tags)
        names = {name for name, _ in shown.attributes}
        assert not {"src", "srcset", "action", "background"} & names
        assert not [name for name in names if name.startswith("on")]
        assert not re.search(r"url\(|@import|https?://(?!127\.)", text)
        assert "default-src 'none'" in text
    assert {name for name, _ in hostile.attributes} <= {name for name, _ in page.attributes} | {
        *("title", "type", "checked")
    }
    assert not {"\x1b", "\u202e"} & set(html)
    said = " ".join([hostile.shown, *(value for name, value in hostile.attributes if name == "title")])
    for text in (*hostile_run.NAMES, hostile_run.SCRIPT, hostile_run.BREAKOUT):
        assert " ".join(inert(text).split())[:80] in said
    assert f"Report on the run {inert(hostile_run.SCRIPT + hostile_run.OVERRIDE)}" in hostile.shown
    assert "x" * 1_001 not in html
    assert len(html) < 250_000


@pytest.mark.parametrize("moment", examples.MOMENTS)
def test_a_report_of_every_moment_can_be_written(summary, moment):
    results = examples.MOMENTS[moment]()
    accounts = tuple(replace(summary.details.models[0], model=line.model) for line in results.models)
    tallies = ((0, 0), *((3, 1),) * (len(results.models) - 1))
    questions = tuple(replace(one, by_model=tallies) for one in summary.details.questions)
    changed = replace(summary, results=results)
    changed = runs.with_details(changed, models=accounts, questions=questions)
    for rows in (*Page(to_html(changed)).rows, *tables_of(to_markdown(changed))):
        assert len(set(rows)) == 1


# The report's tables: CSV that a spreadsheet cannot be tricked by, and a table for a paper.


def test_no_cell_is_a_formula_and_no_number_is_infinite(summary):
    names = ("=1+1", "+1", "-x", "@sum(a)", " =1", "a,b\nc", "-3")
    line, account = summary.results.models[0], summary.details.models[0]
    results = replace(
        summary.results, models=tuple(replace(line, model=name, score=float("inf")) for name in names)
    )
    text = models_csv(runs.with_details(replace(summary, results=results), models=(account,) * len(names)))
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["model"] for row in rows] == ["'=1+1", "+1", "'-x", "'@sum(a)", "' =1", "a,b␊c", "-3"]
    assert {row["score"] for row in rows} == {""}


def test_a_papers_table_has_every_model_in_per_cent_but_scores_of_another_scale_as_they_are(summary):
    latex, markdown = paper_latex(summary), paper_markdown(summary)
    plain = markdown.replace("\\", "")
    for line in summary.results.models:
        assert rf"{100 * line.bayes_mu:.2f} $\pm$ {100 * line.bayes_sigma:.2f}" in latex
        assert f"| {line.model} | {100 * line.score:.2f} | [{100 * line.score_low:.2f}" in plain
        assert f"| {100 * line.bayes_mu:.2f} ± {100 * line.bayes_sigma:.2f} |" in plain
    assert "Mean of questions (\\%) & 95 \\% interval & Bayes@N" in latex, "what ranks leads, by its name"
    assert latex.count(r" \\") == len(summary.results.models) + 1
    assert latex.count(r"\begin") == latex.count(r"\end") == 2
    for scale in ((-1.0, 1.0), (0.0, 5.0)):
        other = replace(summary, results=replace(summary.results, scale=scale))
        assert f"| {summary.results.models[0].score:.3f} |" in paper_markdown(other)


def test_a_papers_sentence_counts_scored_trials_as_its_table_does(summary):
    results = summary.results
    cut = replace(results, models=tuple(replace(line, questions=7) for line in results.models))
    said = methods_words(replace(summary, results=cut))
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
    answers = rng.integers(0, 2, (12, 4))
    asked = [
        QuestionAccount("t", f"q{n}", 4, 0.5, 0.0, ((4, int(row.sum())), (1 + n, 1), (0, 0)))
        for n, row in enumerate(answers)
    ]
    models = [SimpleNamespace(model=name) for name in ("all", "few", "none")]
    (found,) = several_answers(asked, SimpleNamespace(models=models, tasks=()))
    assert (found.model, found.fewest) == ("all", 4)
    assert found.pass_at == pytest.approx({k: pass_at_k(answers, k) for k in (2, 4)})
    assert found.pass_hat == pytest.approx({k: pass_hat_k(answers, k) for k in (2, 4)})


def test_pass_at_k_weighs_tasks_and_not_their_numbers_of_questions():
    rights = (*[("a", 3)] * 3, ("b", 0))
    asked = [QuestionAccount(task, "q", 3, 0.5, 0.0, ((3, right),)) for task, right in rights]
    tasks = [SimpleNamespace(task=name, weight=0.5) for name in "ab"]
    results = SimpleNamespace(models=[SimpleNamespace(model="m")], tasks=tasks)
    (found,) = several_answers(asked, results)
    assert (found.pass_at, found.pass_hat) == (pytest.approx({2: 0.5}), pytest.approx({2: 0.5}))
    odd = QuestionAccount("t", "q", 4, 0.5, 0.0, ((2, 0), (2, 2)))  # the stronger model is wrong
    assert suspect([odd]) == [(odd, "weak models right, strong ones wrong")]


# The course of a run: bounded, up to date, and the same however it was read.


def test_a_course_takes_in_what_is_new_and_stays_bounded(tmp_path):
    course = WatchedCourse(examples.midrun())
    with RunWriter.create(tmp_path / "run", meta={}) as writer, RunReader(tmp_path / "run") as reader:
        for second in range(4 * MOST):
            writer.snapshot(
                examples.snapshot_of(examples.example(examples.QUICKSTART, 1 + second), float(second))
            )
            writer.commit()
            if second % 7 == 0:
                course.catch_up(reader)
                assert len(course.moments) <= MOST
                assert course.moments[-1].at == examples.STARTED + second
    times = [moment.at for moment in course.moments]
    assert times == sorted(set(times))
    assert times[0] == examples.STARTED
    assert len(times) > MOST // 4


@pytest.mark.parametrize("number", [8, 90])
def test_a_moment_keeps_the_contrasts_that_evidence_decides_of_many_the_open_ones_nearest_to_it(number):
    results = examples.midrun()
    one = replace(results.pairs[0], verdict="open", threshold=4.0, kind="pair")
    pairs = [replace(one, first=f"m{place}", evidence=0.01 * place) for place in range(number)]
    pairs[3] = replace(pairs[3], verdict="better", evidence=5.0)
    measured = replace(one, first="m1", second="width 0.1", kind="width", evidence=3.0)
    moment = moment_of(examples.snapshot_of(replace(results, pairs=(*pairs, measured)), 1.0))
    kept = {replace(one, first=f"m{place}").key for place in (range(8) if number == 8 else range(30, 90))}
    assert set(moment.pairs) == kept
    assert moment.pairs[replace(one, first="m5" if number == 8 else "m50").key].open


def test_a_pair_and_claims_about_the_same_models_are_told_apart(summary):
    results = examples.midrun()
    pair = replace(results.pairs[0], verdict="open", kind="pair", evidence=0.5, threshold=4.0)
    turned = {"first": pair.second, "second": pair.first}
    kinds = [{}, *({"kind": "not-worse", "margin": margin} for margin in (0.1, 0.05))]
    contrasts = [replace(pair, **kind, evidence=0.5 * place) for place, kind in enumerate(kinds, start=1)]
    contrasts.append(replace(contrasts[1], **turned, evidence=2.0))
    ahead = [
        PairForecast(one.first, one.second, 0.1 * place, Range(1, 2, 3), one.kind, one.margin)
        for place, one in enumerate(contrasts)
    ]
    ahead[0] = replace(ahead[0], **turned)  # of a pair, either model may come first
    results = replace(results, pairs=tuple(contrasts), forecast=replace(examples.MORE, pairs=tuple(ahead)))
    assert [row.ahead for row in pair_rows(results.pairs, results)] == ahead

    moment = moment_of(examples.snapshot_of(results, 1.0))
    view = runs.with_details(replace(summary, results=results), course=(moment, moment))
    assert [moment.pairs[one.key].evidence for one in contrasts] == [0.5, 1.0, 1.5, 2.0]
    (plot,) = (one for one in course_plots(view) if one.key == "evidence")
    words = f"{pair.first} − {pair.second}"
    back = f"{pair.second} − {pair.first} + 0.1"
    assert [name for name, _, _ in plot.lines] == [back, f"{words} + 0.05", f"{words} + 0.1", words]

    verdicts = ("better", "worse", "open", "better")
    later = [replace(one, verdict=verdict) for one, verdict in zip(contrasts, verdicts, strict=True)]
    later[0] = replace(flipped(later[0]), kind="pair")
    changes = compare(view, replace(view, results=replace(results, pairs=tuple(later)))).pairs
    assert [one.kind for one in changes] == ["settled", "settled", "same", "settled"]
    assert [one.after.verdict for one in changes] == ["worse", "worse", "open", "better"]
    assert changes[0].before == flipped(contrasts[0])
    assert changes[1].before == contrasts[1]


def test_rankings_agree_by_the_models_that_both_have_scored():
    results = examples.midrun()
    ranked = [replace(line, score=0.5, rank=rank) for rank, line in enumerate(results.models, start=1)]
    first = replace(results, models=tuple(ranked))
    turned = [replace(ranked[0], rank=2), replace(ranked[1], rank=1)]
    rest = [replace(line, score=None) for line in ranked[2:]]
    assert agreement(first, replace(results, models=(*turned, *rest))) == -1.0
    assert agreement(replace(results, models=(*turned, *rest)), first) == -1.0
    assert agreement(first, replace(results, models=(turned[0], *rest))) is None


def test_its_last_moment_is_what_the_session_knew(summary, tmp_path):
    final = runs.make_run(tmp_path / "forest", **MADE).results()
    last = summary.details.course[-1]
    assert (last.trials, last.tokens) == (final.trials, final.tokens)
    assert last.usd == pytest.approx(final.usd)
    for line in final.models:
        assert last.models[line.model] == (line.score, line.score_low, line.score_high)
    for pair in final.pairs:
        point = last.pairs[pair.key]
        assert (point.evidence, point.threshold) == (pair.evidence, pair.threshold)


def test_the_plots_are_within_their_frame_and_name_what_they_show(summary):
    plots = {plot.key: plot for plot in course_plots(summary)}
    assert set(plots) == {"scores", "evidence", "spent"}
    assert [name for name, _, _ in plots["scores"].lines] == [line.model for line in summary.results.models]
    for plot in plots.values():
        assert 0 < len(plot.lines) <= LINES
        assert len({len(row) for row in plot.rows}) == 1
        for _, points, band in plot.lines:
            for point in f"{points} {band}".split():
                across, up = map(float, point.split(","))
                assert 0 <= across <= WIDTH
                assert 0 <= up <= HEIGHT
    assert plots["scores"].rows[-1][0] == f"{summary.results.trials:,}"


def test_a_plot_is_drawn_to_scale_and_its_table_has_the_first_and_the_last_step():
    score = [ScorePoint(0.2, 0.1, 0.3), ScorePoint(None, None, None), ScorePoint(0.3, 0.25, 0.4)]
    steps, up = [50, 100, 200], Axis(0.0, 0.4)
    plot = Plot("x", "", "", steps, {"a": score}, up, lambda point: f"{point.score}", limit=(0.0, None, 0.4))
    assert plot.lines == [("a", "130.5,98.0 390.0,54.0", "130.5,54.0 390.0,10.0 390.0,76.0 130.5,142.0")]
    assert plot.rule == "130.5,186.0 390.0,10.0"
    assert plot.ticks_across == [(44.0, "0"), (217.0, "100"), (390.0, "200")]
    assert plot.ticks_up == [(186.0, "0"), (98.0, "0.2"), (10.0, "0.4")]
    assert plot.rows == [
        ["trials", "", "a"], ["50", "0.0", "0.2"], ["100", "None", "None"], ["200", "0.4", "0.3"]
    ]  # fmt: skip
    along = replace(plot, along="step", steps=[1, 4, 9], unit="usd", limit=())
    assert along.rule == ""
    assert along.ticks_across == [(44.0, "1"), (217.0, "5"), (390.0, "9")]
    assert along.axis == "step"
    later = replace(plot, steps=[10, 15, 2_000])
    assert [words for _, words in later.ticks_across] == ["0", "1,000", "2,000"]
    many = replace(plot, steps=range(1, 101), courses={"a": score[:1] * 100}, limit=())
    counts = [int(row[0]) for row in many.rows[1:]]
    assert (len(counts), counts[0], counts[-1]) == (12, 1, 100)
    assert {later - earlier for earlier, later in pairwise(counts)} == {9}
    assert [row[0] for row in replace(many, steps=[7], courses={"a": score[:1]}).rows[1:]] == ["7"]
    two = replace(many, steps=[7, 9], courses={"a": score[:2]})
    assert [row[0] for row in two.rows[1:]] == ["7", "9"]


@pytest.mark.parametrize("needed", [True, False])
def test_the_matrix_tells_an_open_pair_that_the_goal_needs_from_another(summary, needed):
    pairs = [replace(pair, verdict="open", needed=needed) for pair in summary.results.pairs]
    text = to_html(replace(summary, results=replace(summary.results, pairs=tuple(pairs))))
    grid = text.split('<table class="grid matrix">', 1)[1].split("</table>", 1)[0]
    assert (">?<" in grid, ">–<" in grid) == (needed, not needed)
    assert ("–: not needed" in text) != needed


def test_the_matrix_of_pairs_sees_each_from_its_row_and_no_large_or_empty_board_has_one(summary):
    results = summary.results
    names = [line.model for line in results.models]
    matrix = pair_matrix(results)
    for row, first in zip(matrix, names, strict=True):
        seen = [(pair.first, pair.second) if pair else None for pair in row]
        assert seen == [(first, second) if second != first else None for second in names]
    for pair in results.pairs:
        row, column = names.index(pair.first), names.index(pair.second)
        assert matrix[row][column] == pair
        assert matrix[column][row].difference == -pair.difference
    assert pair_matrix(replace(results, pairs=())) is None
    most = tuple(replace(results.models[0], model=f"m{n}") for n in range(MATRIX + 1))
    assert pair_matrix(replace(results, models=most)) is None
    assert pair_matrix(replace(results, models=most[1:])) is not None


# Views of a board of 100 models: what matters first, and no part that grows with the 4,950 pairs.


MODELS = 100
PAIRS = MODELS * (MODELS - 1) // 2


@pytest.fixture(scope="module")
def large():
    means = [0.2 + 0.7 * model / MODELS for model in range(MODELS)]
    spec = make_spec(MODELS, 60, equivalence=0.05)
    return drive(Session(spec), coin(means), slots=2_000, most=60 * MODELS)


@pytest.fixture(scope="module")
def board(large, summary):
    results = large.results()
    accounts = tuple(replace(summary.details.models[0], model=line.model) for line in results.models)
    header, snapshot = examples.HEADER, examples.snapshot_of(results)
    known = summary_at(header, snapshot, large.decisions, times=[0.0] * len(large.decisions))
    return runs.with_details(replace(known, details=summary.details), models=accounts, questions=None)


@pytest.mark.slow
def test_the_report_shows_the_open_and_the_closest_pairs_and_the_rest_is_in_a_table(board):
    html, markdown = to_html(board), to_markdown(board)
    still_open = sum(pair.verdict == "open" for pair in board.results.pairs)
    assert 0 < still_open < PAIRS
    for text in (html, markdown):
        assert f"100 of {PAIRS:,} pairs" in text
        assert "report/pairs.csv" in text
    assert len(html) < 400_000
    assert len(report_data(board)["pairs"]) == PAIRS


def test_the_page_and_its_forecast_are_bounded(large, board):
    html = to_html(board)
    assert html.count("<tr>") < 2_000
    simulated = len(large.results().forecast.pairs)
    assert simulated < large.results().forecast.open_pairs
    assert any(f"from the {simulated:,} slowest of" in words for words in outlook_phrases(board.outlook))
