"""Two runs compared: verdicts that have changed, and differences of scores with intervals that hold."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import run_examples as runs
from hostile_run import IMAGE, hostile_summary
from markdown_it import MarkdownIt
from test_report_html import LOADS, Page

from adaptive_eval.views.comparison import comparison_data, comparison_html, comparison_markdown
from adaptive_eval.views.comparison_sentences import comparison_words
from adaptive_eval.views.inert import inert
from adaptive_eval.views.plain_data import json_text
from adaptive_eval.views.run_changes import compare

DOCS = Path(__file__).parents[2] / "docs" / "report-schema.md"
ASKED = {"tasks": {"forest": {"prompt": "?", "dataset": "a1"}}, "models": {}, "seed": 7}


def asked(**changes):
    """Return the description of a run that asks this."""
    return {
        "identity": json.dumps({**ASKED, **changes}),
        "scoring": json.dumps({"forest": {"scorer": {"kind": "numeric"}}}),
    }


def summary_of(directory, **options):
    return runs.summary_of(directory, **{"meta": asked(), **options})


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    """Return the summary of a finished run."""
    return summary_of(tmp_path_factory.mktemp("compare") / "before")


@pytest.fixture(scope="module")
def after(tmp_path_factory):
    """Return the summary of a later run: yew has become the best, oak the worst, fir is new, ash gone."""
    coins = {"oak": 0.2, "elm": 0.6, "yew": 0.95, "fir": 0.6}
    return summary_of(tmp_path_factory.mktemp("compare") / "after", coins=coins)


def test_a_run_is_as_itself_and_a_reference_has_no_score_of_its_own_run(before):
    same = compare(before, before)
    assert {pair.kind for pair in same.pairs} == {"same"}
    assert all(one.difference == 0 and one.direction == "unknown" for one in same.models)
    assert (same.differences, same.comparable) == ((), True)
    assert same.confidence == pytest.approx(0.9), "either of two intervals may miss"
    said = comparison_words(same)
    assert said.startswith("Of 6 shared pairs: 6 with the same verdict; of 4 shared models 0")
    first, *others = before.results.models
    models = (replace(first, state="reference"), *others)
    stored = replace(before, results=replace(before.results, models=models))
    comparison = compare(before, stored)
    for either in (comparison, compare(stored, before), compare(stored, stored)):
        assert [one.difference for one in either.models] == [None, 0, 0, 0]
    assert "of 3 shared models 0 score higher" in comparison_words(comparison)


def test_scores_are_higher_or_lower_where_both_intervals_say_so_and_reversals_are_seen(before, after):
    comparison = compare(before, after)
    changes = {one.model: one for one in comparison.models}
    assert [changes[name].direction for name in ("yew", "oak", "elm")] == ["higher", "lower", "unknown"]
    assert changes["fir"].before is changes["ash"].after is changes["ash"].difference is None
    pair = next(one for one in comparison.pairs if {one.first, one.second} == {"oak", "yew"})
    assert pair.kind == "reversed"
    assert (pair.first, pair.before.first, pair.after.first) == ("yew", "yew", "yew")
    assert (pair.before.verdict, pair.after.verdict) == ("worse", "better")
    assert comparison.counts()["only_before"] == comparison.counts()["only_after"] == 3
    assert " reversed" in comparison_words(comparison)
    assert "| yew − oak | oak ahead | yew ahead | reversed |" in comparison_markdown(comparison)


KINDS = {"open better": "settled", "tie open": "reopened", "better worse": "reversed"}
KINDS |= {"tie better": "changed", "worse tie": "changed", "tie tie": "same"}


@pytest.mark.parametrize("verdicts", KINDS)
def test_every_change_has_its_kind(before, verdicts):
    pair, runs_ = before.results.pairs[0], []
    for verdict in verdicts.split():
        pairs = (replace(pair, verdict=verdict),)
        runs_.append(replace(before, results=replace(before.results, pairs=pairs)))
    assert [one.kind for one in compare(*runs_).pairs] == [KINDS[verdicts]]


WORTH = [{"worth": json.dumps({"forest": {"share": share, "worths": [0, 1]}})} for share in (0.5, 0.25)]
OTHERS = {
    "the questions or right answers of its dataset have changed": (
        asked(), asked(tasks={"forest": {"prompt": "?", "dataset": "b2"}}),
    ),
    "share was 0.5 and is now 0.25": (asked() | WORTH[0], asked() | WORTH[1]),
}  # fmt: skip


@pytest.mark.parametrize("words", OTHERS)
def test_other_questions_or_weights_give_no_difference_of_scores(tmp_path, words):
    one, other = (summary_of(tmp_path / str(place), meta=meta) for place, meta in enumerate(OTHERS[words]))
    assert compare(one, one).comparable
    comparison = compare(one, other)
    assert comparison.comparable is False
    assert {found.difference for found in comparison.models} == {None}
    assert comparison.differences == (f"task 'forest': {words}",)
    assert "scores are not compared" in comparison_words(comparison)


def test_scores_of_another_scale_or_target_give_no_difference(before, tmp_path):
    """Imported runs do not say what was asked; their scale they say."""
    unknown = runs.summary_of(tmp_path / "other")
    scaled = replace(unknown, results=replace(unknown.results, scale=(0.0, 100.0)))
    for other in (scaled, replace(before, details=replace(before.whole_details, target="population"))):
        comparison = compare(before, other)
        assert (comparison.comparable, {one.difference for one in comparison.models}) == (False, {None})
    assert compare(before, scaled).differences == ("scores went from 0 to 1 and now go from 0 to 100",)


def test_a_rule_without_an_error_rate_is_named_and_each_warning_is_a_paragraph_of_its_own(before):
    runs_ = [replace(before, results=replace(before.results, rule=r, stop=None)) for r in ("exact", "zscore")]
    comparison = compare(*runs_)
    assert "rule was exact and is now zscore" in comparison.differences
    assert "promises no error rate" in comparison_markdown(comparison)
    rendered = MarkdownIt().render(comparison_markdown(comparison))
    warned = [part for part in rendered.split("</p>") if "Warning:" in part]
    assert [part.count("Warning:") for part in warned] == [1, 1]


def test_the_page_and_the_json_say_the_same(before, after):
    comparison = compare(before, after)
    page = Page(comparison_html(comparison))
    assert comparison_words(comparison) in page.shown
    assert not LOADS & set(page.tags)
    for rows in page.rows:
        assert len(set(rows)) == 1
    data = json.loads(json_text(comparison_data(comparison)))
    assert (data["schema"], data["version"]) == ("adaptive-eval/comparison", 1)
    documented = set(re.findall(r"`(\w+)`", DOCS.read_text(encoding="utf-8")))
    structure = set(data) | set(data["before"]) | set(data["models"][0]) | set(data["pairs"][0])
    structure |= {key for one in data["models"] if one["before"] for key in one["before"]}
    assert structure - documented == set()


def test_hostile_names_are_inert(before, tmp_path):
    comparison = compare(before, hostile_summary(tmp_path / "hostile"))
    html, markdown = comparison_html(comparison), comparison_markdown(comparison)
    assert not LOADS & set(Page(html).tags)
    assert not {"\x1b", "\u202e"} & set(html + markdown)
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown)
    kinds = {child.type for token in tokens for child in token.children or []}
    assert kinds <= {"text", "strong_open", "strong_close", "softbreak"}
    assert inert(IMAGE) in Page(html).shown
