"""The web monitor: its pages and how they are served."""

import itertools
import re
import shutil
from dataclasses import replace
from urllib.parse import urljoin, urlsplit

import hostile_run
import pytest
import run_examples as runs
import standings_examples as examples
from run_examples import Clock
from starlette.testclient import TestClient
from test_report_html import Page

from adaptive_eval.build.describe import _lettered
from adaptive_eval.errors import RunNotFound
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.trial import AGAINST, Question
from adaptive_eval.views.page import to_html
from adaptive_eval.views.trial_page import figures
from adaptive_eval.views.trials import outcome
from adaptive_eval.views.web_app import create_app
from adaptive_eval.views.web_runs import LIST_EVERY, LOOK_EVERY, SHARE, Folder, WatchedRun

# The live page is the report; it and the pages of trials are escaped and bounded, and links lead on.


HOSTILE = "/secret/runs/host'ile%20%3Cb%3E/"


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """Return a client of a folder with a finished run, one under way, a hostile and a broken one."""
    folder = tmp_path_factory.mktemp("runs")
    runs.make_run(folder / "forest", missing=0.03, truncated=0.2)
    runs.make_run(folder / "under way", rounds=5)
    hostile_run.make_hostile_run(folder / "host'ile <b>")
    (folder / "broken").mkdir()
    (folder / "broken" / "run.db").write_bytes(b"no run file at all" * 100)
    RunWriter.create(folder / "empty", meta={"name": "empty"}).close()
    shown = Folder(folder, single=False)
    with TestClient(create_app(shown, "secret"), base_url="http://127.0.0.1") as client:
        yield client
    shown.close()


def links(html: str) -> list[str]:
    return [value for name, value in Page(html).attributes if name == "href"]


def test_the_live_page_is_the_report(client, tmp_path):
    report = Page(to_html(runs.summary_of(tmp_path / "forest", missing=0.03, truncated=0.2)))
    live = Page(client.get("/secret/runs/forest/").text)
    assert set(report.ids) <= set(live.ids)
    assert report.tags["table"] == live.tags["table"]
    for words in ("oak is ahead of all others", "What these figures promise", "Course"):
        assert words in report.shown
        assert words in live.shown


def test_a_run_under_way_says_so_and_a_new_one_waits(client):
    page = client.get("/secret/runs/under%20way/").text
    assert "interrupted" in Page(page).shown
    assert "Waiting for the first snapshot" in client.get("/secret/runs/empty/").text


def test_answers_are_shown_with_what_was_expected(tmp_path):
    runs.make_run(tmp_path / "forest")
    shown = Folder(tmp_path, single=False, targets=lambda reader: lambda record: "the right one")
    with TestClient(create_app(shown, "secret"), base_url="http://127.0.0.1") as client:
        for path in ("samples", "trials/0/3"):
            assert "Expected: the right one" in Page(client.get(f"/secret/runs/forest/{path}").text).shown
    shown.close()


def test_the_figures_of_a_trial_are_its_signals_but_for_the_answer_that_it_was_compared_with(tmp_path):
    runs.make_run(tmp_path / "forest")
    with RunReader(tmp_path / "forest") as reader:
        record = next(one for one in reader.trials(limit=100) if one.score is not None)
    signals = {AGAINST: "a stored answer", "is_correct": True, "votes": 2}
    rows = figures(replace(record, score=replace(record.score, signals=signals))).rows
    shown = {row[0].text: row[1].text for row in rows}
    assert {name for name in shown if name.startswith("signal ")} == {"signal is_correct", "signal votes"}
    assert shown["category"] == str(record.score.category)
    assert shown["ended by"] == record.completion.finish_reason


@pytest.mark.parametrize(
    ("missing", "changes"),
    [("unscored", {"category": None}), (None, {"category": 12_600, "signals": {"score": 0.5}})],
)
def test_an_answer_without_a_category_shows_none(tmp_path, missing, changes):
    """It could not be scored, or its score is a number, of which the category is a step."""
    runs.make_run(tmp_path / "forest")
    with RunReader(tmp_path / "forest") as reader:
        record = next(one for one in reader.trials(limit=100) if one.score is not None)
    rows = figures(replace(record, missing=missing, score=replace(record.score, **changes))).rows
    assert "category" not in {row[0].text for row in rows}


@pytest.mark.parametrize(
    ("target", "first", "shown"),
    [
        ("2", 1, "B"), (" 0 ", 0, "A"), ("0", 1, "0"), ("3", 1, "C"), ("4", 1, "4"), ("3", 0, "3"),
        ("2", None, "2"), ("B", 1, "B"),
    ],
)  # fmt: skip
def test_the_number_of_an_option_is_expected_as_its_letter(target, first, shown):
    assert _lettered(Question("t", "q", target, choices=("x", "y", "z")), first) == shown


def test_a_right_answer_that_counts_as_wrong_for_being_cut_off_says_so(tmp_path):
    runs.make_run(tmp_path / "forest")
    with RunReader(tmp_path / "forest") as reader:
        record = next(one for one in reader.trials(limit=100) if one.score.signals["is_correct"])
    assert outcome(record) == ("good", "correct")
    cut_off = replace(record.score, category=0, signals={"is_correct": True, "truncated": True})
    kind, words = outcome(replace(record, score=cut_off))
    assert kind == "bad"
    assert "cut off" in words


def test_pages_of_the_hostile_run_hold_nothing_that_acts(client):
    for path in ("", "trials/1/7", "trials/1/0"):
        answer = client.get(HOSTILE + path)
        assert answer.status_code == 200, path
        page = Page(answer.text)
        assert page.tags["img"] == 0, path
        assert page.tags["h1"] == 1, path
        assert page.tags["script"] == 2, path
        assert all(not name.startswith("on") and name != "style" for name, _ in page.attributes), path
        assert not {"\x1b", "\x07", "\0", "\u202e", "\u2028"} & set(answer.text), path
        assert "49" not in page.shown.split(), "a template in an answer is text"


def test_long_answers_are_cut_and_can_be_had_whole(client):
    step = hostile_run.ANSWERS.index(hostile_run.LONG_LINE)
    alone = client.get(f"{HOSTILE}trials/1/{step}").text
    assert "800,000 more characters not shown" in alone
    assert len(alone) < 1_000_000
    whole = client.get(f"{HOSTILE}trials/1/{step}/answer.txt")
    assert whole.text == hostile_run.LONG_LINE
    assert whole.headers["content-type"] == "text/plain; charset=utf-8"
    assert whole.headers["content-disposition"].startswith("attachment")
    assert whole.headers["x-content-type-options"] == "nosniff"


def test_a_trial_is_next_to_other_models_answers_first_those_that_differ(client):
    page = client.get("/secret/runs/forest/trials/0/3").text
    side = page[page.index('id="others"') :]
    outcomes = re.findall(r"<span class=\"badge [a-z]*\">([^<]+)</span></h3>", side)
    alike = [outcome == outcomes[0] for outcome in outcomes[1:]]
    assert len(alike) > 2
    assert alike == sorted(alike)
    assert set(alike) == {True, False}


def test_every_link_leads_somewhere(client):
    seen, left = set(), ["/secret/"]
    while left:
        path = left.pop()
        if path in seen:
            continue
        seen.add(path)
        answer = client.get(path)
        assert answer.status_code in (200, 500), path
        assert (answer.status_code == 500) == path.endswith("runs/broken/"), path
        if answer.headers["content-type"].startswith("text/html"):
            for link in links(answer.text):
                target = urlsplit(urljoin(f"http://127.0.0.1{path}", link))
                if target.scheme == "http":
                    assert target.netloc == "127.0.0.1"
                    left.append(target.path)
    assert len([path for path in seen if re.search(r"trials/\d+/\d+$", path)]) > 10


@pytest.mark.parametrize(
    "path",
    [
        "runs/nothing/", "runs/..%2F..%2Fetc/", "runs/forest/trials/0/99999", "runs/forest/trials/99/0",
        "runs/forest/trials/0/99999999999999999999", "runs/forest/trials/0/0/secrets.txt",
        "static/../app.py", "static/%2e%2e/app.py", "static/missing.js",
    ],
)  # fmt: skip
def test_what_is_not_there_is_not_found(client, path):
    answer = client.get(f"/secret/{path}")
    assert answer.status_code == 404, path
    assert "Traceback" not in answer.text


# Who gets in, what a browser is told, and how often a run is looked at.


@pytest.fixture
def run(tmp_path):
    """Return the directory of a finished run."""
    runs.make_run(tmp_path / "forest")
    return tmp_path / "forest"


@pytest.mark.parametrize(
    "path", ["/", "/runs/forest/", "/Secret/", "/secre/", "/secrets/", "//secret/", "/static/live.js"]
)
def test_without_the_token_there_is_nothing(client, path):
    answer = client.get(path)
    assert answer.status_code == 404
    assert "forest" not in answer.text


@pytest.mark.parametrize(
    "path", ["/secret/runs/forest/", "/secret/static/live.js", "/secret/nothing", "/elsewhere"]
)
def test_every_answer_forbids_what_is_not_ours(client, path):
    headers = client.get(path).headers
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert "unsafe-inline" not in headers["content-security-policy"]
    assert policy["script-src"] == policy["connect-src"] == "'self'"
    assert {policy[name] for name in ("default-src", "frame-ancestors", "base-uri", "form-action")} == {
        "'none'"
    }
    assert (headers["referrer-policy"], headers["x-content-type-options"]) == ("no-referrer", "nosniff")


def test_nothing_can_be_changed(client):
    for method in ("post", "put", "delete", "patch"):
        assert getattr(client, method)("/secret/runs/forest/").status_code == 405


def test_a_page_that_has_not_changed_is_not_sent_again(client):
    first = client.get("/secret/runs/forest/")
    tag = first.headers["etag"]
    again = client.get("/secret/runs/forest/", headers={"If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")
    assert client.get("/secret/runs/forest/", headers={"If-None-Match": '"old"'}).status_code == 200


# How often a run is looked at


def test_a_change_is_seen_at_the_next_look(tmp_path):
    clock = Clock()
    with RunWriter.create(tmp_path / "run", meta={}) as writer:
        watch = WatchedRun(tmp_path / "run", ticks=clock, running=lambda directory, age: True)
        tags = [watch.page().tag]
        for elapsed in (1.0, 2.0):
            writer.snapshot(examples.snapshot_of(examples.midrun(), elapsed))
            writer.commit()
            assert watch.page().tag == tags[-1], "not before it is time"
            clock.now += 60.0
            tags.append(watch.page().tag)
        clock.now += 60.0
        assert watch.page().tag == tags[-1], "nothing has changed"
        watch.close()
    assert len(set(tags)) == 3


def test_a_run_put_in_its_place_is_noticed_and_a_missing_one_named(run, tmp_path):
    clock = Clock()
    watch = WatchedRun(run, ticks=clock)
    before = watch.page()
    shutil.move(run, tmp_path / "forest-1")
    clock.now += LOOK_EVERY
    with pytest.raises(RunNotFound, match="moved or deleted"):
        watch.page()
    runs.make_run(run, rounds=3)
    after = watch.page()
    assert after.tag != before.tag
    assert b"interrupted" in after.html
    watch.close()


def test_what_costs_more_comes_less_often(tmp_path):
    clock, effort = Clock(), Clock()

    def costly():
        """Twenty milliseconds pass at every reading of the clock of effort."""
        effort.now += 0.020
        return effort.now

    with RunWriter.create(tmp_path / "run", meta={}) as writer:
        watch, changed = WatchedRun(tmp_path / "run", ticks=clock, effort=costly), []
        for tick in range(200):
            clock.now = 0.1 * tick
            writer.snapshot(examples.snapshot_of(examples.midrun(), clock.now))
            writer.commit()
            tag = watch.page().tag
            if not changed or tag != changed[-1][1]:
                changed.append((clock.now, tag))
        watch.close()
    pauses = [later - sooner for (sooner, _), (later, _) in itertools.pairwise(changed[1:])]
    assert pauses
    assert min(pauses) >= 0.020 / SHARE - 1e-9
    assert changed[1][0] - changed[0][0] == pytest.approx(LOOK_EVERY), "the first reading reads it all"


# A folder of runs


def test_a_folder_lists_its_runs_as_they_come(tmp_path):
    folder, clock = Folder(tmp_path, single=False), Clock()
    assert folder.rows(ticks=clock) == []
    runs.make_run(tmp_path / "one")
    runs.make_run(tmp_path / "two", rounds=2)
    (tmp_path / "no run").mkdir()
    assert folder.rows(ticks=clock) == [], "not before it is time"
    clock.now += LIST_EVERY
    rows = {row.key: row for row in folder.rows(ticks=clock)}
    assert {key: row.summary.state for key, row in rows.items()} == {"one": "stopped", "two": "interrupted"}
    clock.now += LIST_EVERY
    assert all(rows[row.key] is row for row in folder.rows(ticks=clock)), "what has ended is read once"
    with RunReader(tmp_path / "one") as reader, RunWriter.open(tmp_path / "one") as writer:
        elapsed = reader.latest_snapshot().elapsed + 60.0
        writer.snapshot(examples.snapshot_of(examples.midrun(), elapsed))
    clock.now += LIST_EVERY
    states = {row.key: row.summary.state for row in folder.rows(ticks=clock)}
    assert states["one"] != "stopped", "a run that continues is read again"
    folder.close()


@pytest.mark.parametrize("name", ["..", ".", "/etc", "forest/../forest", "", "no run"])
def test_only_names_in_the_folder_are_opened(run, tmp_path, name):
    folder = Folder(tmp_path, single=False)
    with pytest.raises(RunNotFound):
        folder.watch(name)
