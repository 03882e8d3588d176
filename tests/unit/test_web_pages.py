"""The pages as HTML: complete, in order, escaped whatever they are given, and every link leads somewhere."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

import hostile_run
import pytest
import run_examples as runs
import standings_examples as examples
from hypothesis import given
from hypothesis import strategies as st
from standings_examples import MORE
from starlette.testclient import TestClient

from adaptive_eval.core.results import StopVerdict
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.views.snapshot import RunHeader, run_view, waiting_view
from adaptive_eval.views.web.app import create_app
from adaptive_eval.views.web.folder import Folder
from adaptive_eval.views.web.pages import FIGURES, problems, render, run_context
from adaptive_eval.views.web.tally import Tally
from adaptive_eval.views.web.trial_pages import LISTED

view_of = partial(examples.view_of, failing=True)
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Outline(HTMLParser):
    """What a page holds: its tags in order, text, links, and whether every tag is closed."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.text, self.links, self.attributes, self.open = [], [], [], [], []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.links += [value for name, value in attrs if tag == "a" and name == "href"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        self.text.append(data)

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())


def page_of(view, tally=None):
    context = run_context(view, tally or Tally())
    return render("run", root="../../", has_list=True, figures=FIGURES, directory="runs/demo", **context)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """Return a client of a folder with a finished run, one under way, a hostile and a broken one."""
    folder = tmp_path_factory.mktemp("runs")
    runs.make_run(folder / "forest", missing=0.1, truncated=0.2)
    runs.make_run(folder / "under way", rounds=5)
    hostile_run.make_hostile_run(folder / "host'ile <b>")
    (folder / "broken").mkdir()
    (folder / "broken" / "run.db").write_bytes(b"no run file at all" * 100)
    RunWriter.create(folder / "empty", meta={"name": "empty"}).close()
    shown = Folder(folder, single=False)
    with TestClient(create_app(shown, "secret"), base_url="http://127.0.0.1") as client:
        yield client
    shown.close()


# The page of a run


@pytest.mark.parametrize("moment", examples.MOMENTS)
@pytest.mark.parametrize("forecast", [None, MORE])
def test_every_moment_makes_a_whole_page(moment, forecast):
    results = replace(examples.MOMENTS[moment](), forecast=forecast)
    outline = Outline(page_of(view_of(results)))
    assert outline.open == []
    assert "None" not in outline.words.split()
    assert re.findall(r"[a-z]\.[A-Z][a-z]+ ", outline.words) == []  # one sentence runs into the next
    assert outline.tags.count("h1") == 1


def test_what_a_run_cannot_show_is_left_out():
    alone = examples.one_model()
    active = tuple(replace(line, state="active") for line in alone.models)
    ended = replace(alone, models=active, stop=StopVerdict("budget", "the budget is spent"))
    for view in (waiting_view(RunHeader("demo")), view_of(ended)):
        page = Outline(page_of(view))
        ids = {value for _, name, value in page.attributes if name == "id"}
        assert "Pairs resolved" not in page.words
        assert ("figure-matrix" in ids) == ("figure-evidence" in ids) == (not view.models)
        assert ("compares no models" in page.words) == bool(view.models)
    assert "done" in page.words
    assert "unresolved" not in page.words


def test_the_four_questions_are_answered_in_order():
    words = Outline(page_of(view_of(replace(examples.midrun(), forecast=MORE)))).words
    order = [
        "First place is not resolved between oak, elm and ash", "7 of 10", "80 % interval 594–4,362 trials",
        "91 % goal reached in budget", "Who is ahead, and how sure", "What is open, and what it will take",
        "Approximate: median and 80 % interval", "900 (500–4,000)", "Cost so far", "Anything broken?",
        "15 failed requests at the endpoints of elm.", "2 trials without an answer", "rate_limit 12", "Plots",
        "Decisions",
    ]  # fmt: skip
    place = 0
    for one in order:
        assert one in words[place:], one
        place = words.index(one, place)


def test_everything_that_can_be_broken_is_named():
    base = examples.midrun()
    models = (replace(base.models[0], state="stopped", note="401 invalid key"), *base.models[1:])
    found = problems(view_of(replace(base, models=models), alive=False), Tally())
    assert [words.split()[0] for words in found] == ["No", "oak", "15", "2", "ash:", "oak:"]
    assert problems(run_view(RunHeader("d"), examples.snapshot_of(examples.finished())), Tally()) == []


def test_the_page_is_named_and_labelled_for_those_who_hear_it():
    page = page_of(view_of(replace(examples.midrun(), forecast=MORE)))
    outline = Outline(page)
    found = {(tag, name) for tag, name, _ in outline.attributes}
    assert ("html", "lang") in found
    ids = [value for _, name, value in outline.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    for tag, name, value in outline.attributes:
        if name == "aria-labelledby":
            assert value in ids, (tag, value)
    assert outline.tags.count("th") > outline.tags.count("table")
    assert all(name != "style" and not name.startswith("on") for _, name, _ in outline.attributes)
    assert "<script>" not in page, "no script in the page itself"


# Hostile content


def test_no_name_and_no_answer_makes_a_tag():
    honest = {
        tag
        for moment in (examples.finished, examples.midrun)
        for tag in Outline(page_of(view_of(moment()))).tags
    }
    hostile = Outline(page_of(view_of(hostile_run.results())))
    assert set(hostile.tags) <= honest
    assert hostile.open == []
    assert "alert(1)" in hostile.words
    assert "\\u202e" in hostile.words


@given(st.text(max_size=50))
def test_whatever_a_string_holds_it_is_printed_as_text(text):
    outline = Outline(render("problem", root="./", title="t", words=text))
    assert outline.tags.count("p") == 1
    assert outline.open == []


def test_pages_of_the_hostile_run_hold_nothing_that_acts(client):
    base = "/secret/runs/host'ile%20%3Cb%3E/"
    for path in ("", "trials", "questions", "models/0", "models/5", "pairs/0", "questions/0", "trials/1/7"):
        answer = client.get(base + path)
        assert answer.status_code == 200, path
        outline = Outline(answer.text)
        assert "img" not in outline.tags, path
        assert outline.tags.count("h1") == 1, path
        assert outline.tags.count("script") <= 2, path
        assert all(not name.startswith("on") for _, name, _ in outline.attributes), path
        for char in "\x1b\x07\0\u202e\u2028":
            assert char not in answer.text, path
        assert "49" not in outline.words.split(), "a template in an answer is text"


def test_long_answers_are_cut_and_can_be_had_whole(client):
    base, step = "/secret/runs/host'ile%20%3Cb%3E/", hostile_run.ANSWERS.index(hostile_run.LONG_LINE)
    listed = client.get(f"{base}questions/{step}").text
    assert len(listed) < 40 * LISTED
    assert "997,000 more characters not shown" in listed
    alone = client.get(f"{base}trials/1/{step}").text
    assert "800,000 more characters not shown" in alone
    assert len(alone) < 1_000_000
    whole = client.get(f"{base}trials/1/{step}/answer.txt")
    assert whole.text == hostile_run.LONG_LINE
    assert whole.headers["content-type"] == "text/plain; charset=utf-8"
    assert whole.headers["content-disposition"].startswith("attachment")
    assert whole.headers["x-content-type-options"] == "nosniff"


# All pages together


def test_every_link_leads_somewhere(client):
    seen, left = set(), ["/secret/"]
    while left:
        path = left.pop()
        if path in seen or len(seen) > 400:
            continue
        seen.add(path)
        answer = client.get(path)
        assert answer.status_code in (200, 500), path
        assert (answer.status_code == 500) == path.endswith("runs/broken/"), path
        if answer.headers["content-type"].startswith("text/html"):
            for link in Outline(answer.text).links:
                target = urlsplit(urljoin(f"http://127.0.0.1{path}", link))
                assert target.netloc == "127.0.0.1"
                left.append(f"{target.path}?{target.query}" if target.query else target.path)
    assert len(seen) > 100


@pytest.mark.parametrize(
    "path",
    [
        "runs/nothing/", "runs/..%2F..%2Fetc/", "runs/forest/models/99", "runs/forest/models/-1",
        "runs/forest/pairs/999", "runs/forest/questions/999", "runs/forest/trials/0/99999",
        "runs/forest/trials/0/99999999999999999999", "runs/forest/trials/0/0/secrets.txt",
        "runs/forest/trials?beyond=x.1", "runs/forest/trials?beyond=0.99999999999999999999",
        "runs/forest/trials?outcome=%C2%B2", "runs/forest/questions?page=-3", "static/../app.py",
        "static/%2e%2e/app.py", "static/missing.js",
    ],
)  # fmt: skip
def test_what_is_not_there_is_not_found(client, path):
    answer = client.get(f"/secret/{path}")
    assert answer.status_code == 404, path
    assert "Traceback" not in answer.text


def test_trials_are_paged_without_a_gap(client):
    path, seen = "/secret/runs/forest/trials", []
    while path:
        answer = client.get(path)
        seen += re.findall(r'<p class="links"><a href="\./(trials/\d+/\d+)"', answer.text)
        following = re.search(r'rel="next" href="([^"]+)"', answer.text)
        path = following and urljoin("/secret/runs/forest/trials", following[1].replace("&amp;", "&"))
    total = client.get("/secret/runs/forest/plots.json").json()["cells"]["counts"]
    assert len(seen) == len(set(seen)) == sum(map(sum, total))
