"""The Markdown report: what it holds, and that nothing in a name or a setting acts."""

import re
from dataclasses import replace

import jinja2
import pytest
import run_examples as runs
import standings_examples as examples
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from adaptive_eval.views import sentences
from adaptive_eval.views.inert import fenced, inert, md, table
from adaptive_eval.views.page import to_markdown

PARSER = MarkdownIt("commonmark", {"linkify": False}).enable(["table", "strikethrough"])


def inline_tokens(markdown):
    """Return every inline token of the parsed text."""
    return [child for token in PARSER.parse(markdown) for child in token.children or []]


def visible(markdown):
    """Return what a reader sees of one paragraph."""
    assert all(token.type == "text" for token in inline_tokens(markdown)), inline_tokens(markdown)
    return "".join(token.content for token in inline_tokens(markdown))


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Return the Markdown of a finished run."""
    directory = tmp_path_factory.mktemp("report") / "forest"
    versions = '{"adaptive-eval": "0.1.0", "python": "3.11.2"}'
    meta = {
        "versions": versions,
        "base_dir": "/home/someone/secret-project",
        "identity": "x" * 5_000,
        "source": "/home/someone/forest.yaml",
    }
    return to_markdown(runs.summary_of(directory, missing=0.03, truncated=0.05, meta=meta))


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
    text = to_markdown(summary)
    assert "Continuing" not in to_markdown(replace(summary, state="running"))
    assert "The run is not finished: these are the figures of its last snapshot." in text
    assert (
        "16 stored outcomes are in no figure here: they came after that snapshot, or wait for an earlier "
        "answer. Continuing the run counts them." in text
    )
    assert "not resolved" in text
    assert "not by " in text


def test_hostile_names_and_settings_are_inert(tmp_path):
    names = dict(zip(examples.HOSTILE_NAMES, (0.95, 0.75, 0.5, 0.25, 0.05), strict=True))
    hostile = {
        "name": "<img src=x onerror=alert(1)> | `x`\n# heading",
        "note|": "a|b\x1b[2J",
        "config": "a: |\n  ```\n  </x>\n",
    }
    summary = runs.summary_of(tmp_path / "forest", names, meta=hostile, rounds=30)
    warned = replace(summary.results, warnings=("<b>bold</b> [link](http://evil) ![x](y)\n\n# no",))
    text = to_markdown(replace(summary, results=warned))
    tokens = PARSER.parse(text)
    kinds = {token.type for token in tokens} | {token.type for token in inline_tokens(text)}
    assert not kinds & {"html_block", "html_inline", "link_open", "image", "code_block", "hr"}
    assert "\x1b" not in text
    assert "\u202e" not in text
    shown = " ".join(token.content for token in inline_tokens(text))
    for name in examples.HOSTILE_NAMES:
        assert inert(name) in shown
    _assert_rectangular(tokens)
    headings = [tokens[i + 1].content for i, token in enumerate(tokens) if token.type == "heading_open"]
    assert len(headings) == 15


def _assert_rectangular(tokens):
    cells, width = 0, None
    for token in tokens:
        if token.type == "table_open":
            width = None
        elif token.type == "tr_open":
            cells = 0
        elif token.type in ("td_open", "th_open"):
            cells += 1
        elif token.type == "tr_close":
            width = width or cells
            assert cells == width


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
    tokens = PARSER.parse(table(["a", "b"], [[md(text), "end"]]))
    cells = [tokens[i + 1].content for i, token in enumerate(tokens) if token.type == "td_open"]
    assert len(cells) == 2
    assert cells[1] == "end"


@given(st.text(st.sampled_from("`~ab \n\r\x1b\x0c"), max_size=40))
def test_fenced_text_cannot_leave_its_fence(text):
    tokens = PARSER.parse(fenced(text) + "\n\nafter")
    assert [token.type for token in tokens][:2] == ["fence", "paragraph_open"]
    assert "\x1b" not in tokens[0].content


def test_a_report_of_every_moment_can_be_written(tmp_path):
    summary = runs.summary_of(tmp_path / "forest", rounds=2)
    for build in examples.MOMENTS.values():
        results = build()
        accounts = tuple(replace(summary.details.models[0], model=line.model) for line in results.models)
        text = to_markdown(runs.with_details(replace(summary, results=results), models=accounts))
        _assert_rectangular(PARSER.parse(text))


def test_a_line_of_a_megabyte_is_cut_with_a_word_on_it():
    for shown in (md("x" * 1_000_000), fenced("x" * 1_000_000)):
        assert len(shown) < 2_100
        assert "(1,000,000 characters)" in shown


def test_compiled_templates_are_kept_by_kind_and_missed_where_they_cannot_be(tmp_path, monkeypatch):
    monkeypatch.setattr(sentences, "TEMPLATES", tmp_path / "templates")
    kinds = {"text": False, "html": True}

    def shown():
        loader = jinja2.DictLoader({"page": "{{ '<' }}"})
        caches = {kind: sentences.compiled_templates(kind) for kind in kinds}
        made = {
            kind: jinja2.Environment(loader=loader, autoescape=kinds[kind], bytecode_cache=cache)
            for kind, cache in caches.items()
        }
        return {kind: one.get_template("page").render() for kind, one in made.items()}

    assert shown() == {"text": "<", "html": "&lt;"}
    kept = tmp_path / "__pycache__"
    assert not kept.exists()  # nothing is made where Python keeps nothing
    kept.mkdir()
    assert shown() == shown() == {"text": "<", "html": "&lt;"}
    assert len(list(kept.iterdir())) == 2
