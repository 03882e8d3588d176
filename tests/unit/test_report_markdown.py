"""Reports in Markdown: they hold what the run file says, and nothing in a name or a setting acts."""

import json
import re
from dataclasses import replace

import hostile_run
import jinja2
import pytest
import run_examples as runs
import standings_examples as examples
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from run_examples import read_summary
from test_report_html import tables_of

from adaptive_eval.errors import RunFileError
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.views import page
from adaptive_eval.views.details import Details
from adaptive_eval.views.inert import fenced, inert, md
from adaptive_eval.views.page import to_markdown
from adaptive_eval.views.promises import promises
from adaptive_eval.views.tables import column, markdown_table, named, table_of
from adaptive_eval.views.verdicts import family_words

PARSER = MarkdownIt("commonmark", {"linkify": False}).enable(["table", "strikethrough"])


def inline_tokens(markdown):
    """Return every inline token of the parsed text."""
    return [child for token in PARSER.parse(markdown) for child in token.children or []]


def visible(markdown):
    """Return what a reader sees of one paragraph."""
    assert all(token.type == "text" for token in inline_tokens(markdown)), inline_tokens(markdown)
    return "".join(token.content for token in inline_tokens(markdown))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return (summary, session) of a run that reached its goal, with missing and cut-off answers."""
    versions = '{"adaptive-eval": "0.1.0", "python": "3.11.2"}'
    meta = {
        "versions": versions,
        "base_dir": "/home/someone/secret-project",
        "identity": json.dumps({"tasks": {}, "x": "x" * 5_000}),
    }
    meta["source"] = "/home/someone/forest.yaml"
    directory = tmp_path_factory.mktemp("finished") / "forest"
    session = runs.make_run(directory, missing=0.03, truncated=0.05, meta=meta)
    return read_summary(directory), session


@pytest.fixture(scope="module")
def report(finished):
    """Return the Markdown of that run."""
    return to_markdown(finished[0])


def test_the_sections_answer_in_order(report):
    headings = re.findall(r"^#+ (.*)$", report, re.MULTILINE)
    assert "; ".join(headings) == (
        "forest; Ranking; Pairs; What these figures promise; And what they do not; "
        "Missing and cut-off answers; Cost; Questions; Where models differ most; Several answers; "
        "Hardest; Decisions; For a paper; To reproduce; The config"
    )
    assert report.splitlines()[2].startswith("**oak is ahead of all others; ")


def test_settings_to_reproduce_hold_no_private_path(report):
    assert "| version of python | 3.11.2 |" in report
    assert "| source | forest.yaml |" in report
    assert "/home/someone" not in report
    assert "xxxxx" not in report
    assert "````yaml\nname: forest" in report, "the fence is longer than the backticks in the config"


def test_an_unfinished_run_says_so(tmp_path):
    summary = runs.summary_of(tmp_path / "forest", rounds=4)
    assert summary.results.stop is None
    assert (summary.details.stored, summary.results.trials, summary.uncounted) == (64, 48, 16)
    text = to_markdown(summary)
    assert "Continuing" not in to_markdown(replace(summary, state="running"))
    for words in ("The run is not finished", "16 stored outcomes", "Continuing the run", "not resolved"):
        assert words in text


def test_hostile_names_and_settings_are_inert(tmp_path):
    text = to_markdown(hostile_run.hostile_summary(tmp_path / "run"))
    tokens = PARSER.parse(text)
    kinds = {token.type for token in tokens} | {token.type for token in inline_tokens(text)}
    assert not kinds & {"html_block", "html_inline", "link_open", "image", "code_block", "hr"}
    assert "\x1b" not in text
    assert "\u202e" not in text
    shown = " ".join(token.content for token in inline_tokens(text))
    for name in hostile_run.NAMES:
        assert inert(name)[:80] in shown
    for rows in tables_of(text):
        assert len(set(rows)) == 1
    headings = [tokens[i + 1].content for i, token in enumerate(tokens) if token.type == "heading_open"]
    assert len(headings) == 12


@pytest.mark.parametrize("text", ["https://example.org", "see WWW.example.org"])
def test_an_address_is_no_link(text):
    assert not re.search(r"[a-z]://|www\.", md(text), re.IGNORECASE)


TRICKY = st.text(st.sampled_from("\\`*_{}[]()<>#+-.!|~$&@=:/'\"1aw \n\t\x1b\u202e;"), max_size=14)


@given(TRICKY | st.text(max_size=20))
@example("1. list")
@example("- list")
@example("+")
@example("---")
@example("===")
@example("&lt;script&gt;")
@example("www.evil.example")
@example("https://evil.example")
@example("![x](y)")
@example("2) two")
def test_escaped_text_is_read_as_itself(text):
    plain = inert(text).strip()
    if plain:
        assert visible(md(text)) == plain


@given(TRICKY)
def test_an_escaped_cell_stays_in_its_cell(text):
    columns = [column("a", lambda row: row[0]), column("b", lambda row: row[1])]
    tokens = PARSER.parse(markdown_table(table_of("", columns, [(text, "end")])))
    cells = [tokens[i + 1].content for i, token in enumerate(tokens) if token.type == "td_open"]
    assert len(cells) == 2
    assert cells[1] == "end"


@given(st.text(st.sampled_from("`~ab \n\r\x1b\x0c"), max_size=40))
def test_fenced_text_cannot_leave_its_fence(text):
    tokens = PARSER.parse(fenced(text) + "\n\nafter")
    assert [token.type for token in tokens][:2] == ["fence", "paragraph_open"]
    assert "\x1b" not in tokens[0].content


def test_a_line_of_a_megabyte_is_cut_with_a_word_on_it():
    for shown in (md("x" * 1_000_000), fenced("x" * 1_000_000)):
        assert len(shown) < 2_100
        assert "(1,000,000 characters)" in shown


def test_compiled_templates_are_kept_and_missed_where_they_cannot_be(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "TEMPLATES", tmp_path / "templates")

    def shown():
        loader, cache = jinja2.DictLoader({"page": "{{ '<' }}"}), page.compiled_templates()
        made = jinja2.Environment(loader=loader, autoescape=True, bytecode_cache=cache)
        return made.get_template("page").render()

    assert shown() == "&lt;"
    kept = tmp_path / "__pycache__"
    assert not kept.exists()  # nothing is made where Python keeps nothing
    kept.mkdir()
    assert shown() == shown() == "&lt;"
    assert len(list(kept.iterdir())) == 1


def test_the_report_agrees_with_the_session(finished):
    summary, session = finished
    known = session.results()
    lines = {line.model: line for line in known.models}
    assert {line.model: line for line in summary.results.models} == lines
    assert summary.results.stop == known.stop
    assert summary.results.stop.reason == "resolved"
    assert list(summary.decisions) == session.decisions
    assert summary.headline.startswith("oak is ahead of all others")
    assert summary.headline.endswith(f"after {known.trials:,} trials on these questions.")


def test_a_decided_pair_keeps_the_threshold_it_had_to_reach(finished):
    summary, session = finished
    decisions = [one for one in session.decisions if one.kind == "pair"]
    called = {frozenset(one.models): one.evidence["threshold"] for one in decisions}
    assert len(set(called.values())) > 1, "Holm lowers the threshold from call to call"
    for pair in summary.results.pairs:
        assert pair.threshold == called[frozenset((pair.first, pair.second))]
        assert pair.verdict == "tie" or pair.evidence >= pair.threshold


def test_there_is_nothing_to_report_before_the_first_snapshot(tmp_path):
    RunWriter.create(tmp_path / "new", meta={}).close()
    with pytest.raises(RunFileError, match="no results to report yet"):
        read_summary(tmp_path / "new")


def test_a_report_says_how_steady_its_judge_is():
    run, counts = examples.finished(), {"changed": 3, "same": 57, "by_order": 1, "in_either_order": 9}
    said = " ".join(promises(run, judged=counts).limits)
    assert "changed its verdict on 3 of 60 (5.0 %, 95 % interval 1.0 to 13.9 %)" in said
    assert "decided 1 of 10 (10.0 %" in said
    assert "votes count for neither" in said
    said = " ".join(promises(run, judged={"tied_by_order": 1, "in_either_order": 9}).limits)
    assert "decided 1 of 10 (10.0 %" in said
    assert "votes count as ties" in said
    assert "judge" not in " ".join(promises(run).limits)


def test_what_a_stopped_models_note_says_is_no_second_warning():
    run = examples.finished()
    models = (replace(run.models[0], state="stopped", note="no text. It is not ranked"), *run.models[1:])
    name = models[0].model
    view = examples.view_of(replace(run, models=models, warnings=(f"{name}: no text.", "another")))
    assert view.warnings == ("another", f"{name}: no text. It is not ranked")


def test_a_report_says_how_cut_off_answers_count():
    run = examples.finished()
    for how, words in (("zero", "have the lowest score"), ("judged", "are judged as they are")):
        said = [one for one in promises(run, cut_off={how: ["t"]}).limits if "token limit" in one]
        assert [one.split("limit ")[1].split(" (")[0] for one in said] == [words]
    scored = {task: {"rubric": {"truncated": "judged" if task in "bc" else "zero"}} for task in "abc"}
    details = Details((), None, 0, {"scoring": json.dumps(scored)})
    said = " ".join(promises(run, cut_off=details.cut_off).limits)
    assert "to a have the lowest score" in said
    assert "to b, c are judged" in said


@pytest.mark.parametrize("rule", ["anytime", "exact"])
@pytest.mark.parametrize("family", ["holm", "pair"])
def test_every_rule_and_family_says_what_it_promises(rule, family):
    said = promises(replace(examples.finished(), rule=rule, family=family))
    assert said.holds[0].startswith(f"Rule `{rule}` at 95 %: ")
    assert any("rank intervals" in text for text in said.holds) == (family == "holm")
    assert any("smaller than 0.05" in text for text in said.holds)
    assert any("Bayes@N" in text for text in said.limits)


def test_the_family_of_a_set_of_the_best_promises_the_set():
    said = promises(replace(examples.finished(), family="top-set", top_k=2))
    assert any(text.startswith("The set of the best 2: ") for text in said.holds)
    assert not any("Each pair by itself: the error rate" in text for text in said.holds)
    assert "top-set" not in family_words("top-set")


def test_zscore_promises_nothing_under_peeking():
    said = promises(replace(examples.finished(), rule="zscore", family="pair"))
    assert said.holds == ()
    assert "45–57 % of runs" in said.limits[0]


@pytest.mark.parametrize(
    "options", [{"one_by_one": True}, {"rounds": 12}, {"rounds": 12, "held": ("elm", 3)}]
)
def test_a_question_counts_the_trials_that_are_in_the_scores(tmp_path, options):
    """Answers after the stop among them; without those after a gap, and those after the last snapshot."""
    session = runs.make_run(tmp_path / "forest", missing=0.03, **options)
    assert "rounds" in options or sum(line.after_stop for line in session.results().models) > 0
    summary = read_summary(tmp_path / "forest")
    assert (summary.uncounted > 0) == ("rounds" in options)
    assert summary.details.questions is not None
    for place, line in enumerate(summary.results.models):
        tallies = [one.by_model[place] for one in summary.details.questions]
        assert sum(trials for trials, _ in tallies) == line.trials
        asked = [correct / trials for trials, correct in tallies if trials]
        assert sum(asked) / len(asked) == pytest.approx(line.score)


def test_the_target_is_what_the_config_says(tmp_path):
    here = runs.summary_of(tmp_path / "a", rounds=2)
    drawn = runs.summary_of(tmp_path / "b", rounds=2, meta={"config": "stopping: {target: population}"})
    unknown = runs.summary_of(tmp_path / "c", rounds=2, meta={"config": "not: [yaml"})
    assert tuple(one.details.target for one in (here, drawn, unknown)) == ("benchmark", "population", None)
    limits = [promises(one.results, one.details.target).limits for one in (here, drawn, unknown)]
    assert any("the questions from which these 30 questions were drawn" in one for one in limits[1])
    assert any("unless the config sets `target: population`" in one for one in limits[2])
    assert not any("target: population" in one for one in limits[0])


def test_a_report_reads_no_answers(tmp_path, monkeypatch):
    runs.make_run(tmp_path / "forest", missing=0.03, truncated=0.05)
    monkeypatch.setattr(RunReader, "trials", None)
    assert sum(account.truncated for account in read_summary(tmp_path / "forest").details.models) > 0


@pytest.mark.parametrize(("label", "whole"), [("llama…chat", "llama-70b-chat"), ("llama-70b-chat", "")])
def test_a_label_shows_the_whole_name_where_it_is_shorter(label, whole):
    cell = named("llama-70b-chat", {"llama-70b-chat": label})
    assert (cell.text, cell.whole, cell.full) == (label, whole, "llama-70b-chat")
