"""Who gets in, what a browser is told, how often a run is looked at, and when a stream speaks."""

from __future__ import annotations

import asyncio
import itertools
import json
import shutil

import pytest
import run_examples as runs
import standings_examples as examples
from run_examples import Clock
from starlette.testclient import TestClient

from adaptive_eval.errors import RunNotFound, UsageError
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.views.web import plotly_library as library
from adaptive_eval.views.web.app import create_app, follow
from adaptive_eval.views.web.feed import LOOK_EVERY, PARTS_EVERY, SHARE, Feed, News, RunWatch
from adaptive_eval.views.web.folder import LIST_EVERY, Folder, open_folder
from adaptive_eval.views.web.guard import content_security_policy
from adaptive_eval.views.web.plotly_library import plotly_styles


@pytest.fixture
def run(tmp_path):
    """Return the directory of a finished run."""
    runs.make_run(tmp_path / "forest")
    return tmp_path / "forest"


@pytest.fixture
def client(run):
    folder = open_folder(run)
    with TestClient(create_app(folder, "secret"), base_url="http://127.0.0.1") as client:
        yield client
    folder.close()


# Who gets in


@pytest.mark.parametrize(
    "path", ["/", "/runs/forest/", "/Secret/", "/secre/", "/secrets/", "//secret/", "/static/style.css"]
)
def test_without_the_token_there_is_nothing(client, path):
    answer = client.get(path)
    assert answer.status_code == 404
    assert "forest" not in answer.text


@pytest.mark.parametrize(
    "path", ["/secret/runs/forest/", "/secret/static/run.js", "/secret/nothing", "/elsewhere"]
)
def test_every_answer_forbids_what_is_not_ours(client, path):
    headers = client.get(path).headers
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert "unsafe-inline" not in headers["content-security-policy"]
    assert policy["connect-src"] == policy["form-action"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-content-type-options"] == "nosniff"


def test_nothing_can_be_changed(client):
    for method in ("post", "put", "delete", "patch"):
        assert getattr(client, method)("/secret/runs/forest/").status_code == 405


def test_missing_libraries_are_named_with_a_command_that_works_from_a_clone_too(monkeypatch):
    monkeypatch.setattr(library, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install jinja2 plotly$"):
        library.plotly_script()


# How often a run is looked at


def test_a_change_is_seen_at_the_next_look(tmp_path):
    clock = Clock()
    with RunWriter.create(tmp_path / "run", meta={}) as writer:
        watch = RunWatch(tmp_path / "run", ticks=clock, running=lambda directory, age: True)
        versions = [watch.look().version]
        for elapsed in (1.0, 2.0):
            writer.snapshot(examples.snapshot_of(examples.midrun(), elapsed))
            writer.commit()
            clock.now += LOOK_EVERY
            versions.append(watch.look().version)
        with watch.past() as (seen, history, tally):
            assert seen.version == versions[-1]
            assert len(history.moments) == 2
            assert tally.end == 0
        watch.close()
    assert versions == [1, 2, 3]


def test_a_run_put_in_its_place_is_noticed_and_a_missing_one_named(run, tmp_path):
    clock = Clock()
    watch = RunWatch(run, ticks=clock)
    before = watch.look()
    with watch.past() as (_, history, tally):
        many = len(history.moments), tally.end
    shutil.move(run, tmp_path / "forest-1")
    clock.now += LOOK_EVERY
    with pytest.raises(RunNotFound, match="moved or deleted"):
        watch.look()
    runs.make_run(run, rounds=3)
    after = watch.look()
    assert after.version == before.version + 1
    assert after.view.state == "interrupted"
    with watch.past() as (_, history, tally):
        assert len(history.moments) < many[0]
        assert tally.end < many[1]
    watch.close()


def test_what_costs_more_comes_less_often(tmp_path):
    clock, effort = Clock(), Clock()

    def costly():
        """Ten milliseconds pass at every reading of the clock of effort."""
        effort.now += 0.010
        return effort.now

    with RunWriter.create(tmp_path / "run", meta={}) as writer:
        feed, changed = Feed(tmp_path / "run", ticks=clock, effort=costly), []
        for tick in range(200):
            clock.now = 0.1 * tick
            writer.snapshot(examples.snapshot_of(examples.midrun(), clock.now))
            writer.commit()
            seen = feed.news().parts["state"]
            if not changed or seen != changed[-1][1]:
                changed.append((clock.now, seen))
        feed.close()
    pauses = [later - sooner for (sooner, _), (later, _) in itertools.pairwise(changed[1:])]
    assert pauses
    assert min(pauses) >= 0.010 / SHARE - 1e-9
    assert changed[1][0] - changed[0][0] == pytest.approx(PARTS_EVERY), "the first reading reads it all"


# What a stream says


def said(news, *, rounds, closing=None):
    """Return the events of the first rounds, decoded."""
    left = iter(range(rounds))

    async def collect():
        closed = closing or (lambda: next(left, None) is None)
        return [one async for one in follow(news, closed, poll=0.0)]

    events = []
    for one in asyncio.run(collect()):
        lines = one.decode().splitlines()
        events.append((lines[0].removeprefix("event: "), json.loads(lines[1].removeprefix("data: "))))
    return events


def test_only_what_has_changed_is_sent():
    told = iter(
        [
            News({"a": "1", "b": "1"}, 1, ("first",)),
            News({"a": "1", "b": "2"}, 1, ("first",)),
            News({"a": "1", "b": "2"}, 2, ("first", "second")),
        ]
    )
    assert said(lambda: next(told), rounds=3) == [
        ("part", {"name": "a", "html": "1"}),
        ("part", {"name": "b", "html": "1"}),
        ("plots", 1),
        ("part", {"name": "b", "html": "2"}),
        ("plots", 2),
        ("said", "second"),
    ]


def test_a_run_that_is_gone_is_told_once_and_found_again():
    calls = itertools.count()

    def news():
        if next(calls) in (1, 2):
            raise RunNotFound("no run any more")
        return News({"a": "1"}, 1, ())

    assert [name for name, _ in said(news, rounds=4)] == ["part", "plots", "trouble"]


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
    assert {key: row.view.state for key, row in rows.items()} == {"one": "stopped", "two": "interrupted"}
    clock.now += LIST_EVERY
    assert all(rows[row.key] is row for row in folder.rows(ticks=clock)), "what has ended is read once"
    folder.close()


def test_a_run_that_goes_on_after_its_end_is_listed_anew(run, tmp_path):
    folder, clock = Folder(tmp_path, single=False), Clock()
    (row,) = folder.rows(ticks=clock)
    clock.now += LIST_EVERY
    assert folder.rows(ticks=clock)[0] is row, "a finished run is read once"
    with RunReader(run) as reader:
        latest = reader.latest_snapshot()
    with RunWriter.open(run) as writer:
        writer.snapshot(examples.snapshot_of(examples.midrun(), latest.elapsed + 60.0))
    clock.now += LIST_EVERY
    assert folder.rows(ticks=clock)[0].view.state != "stopped"
    folder.close()


@pytest.mark.parametrize("name", ["..", ".", "/etc", "forest/../forest", "", "no run"])
def test_only_names_in_the_folder_are_opened(run, tmp_path, name):
    folder = Folder(tmp_path, single=False)
    with pytest.raises(RunNotFound):
        folder.feed(name)


def test_watching_leaves_no_mark(run):
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    feed = Feed(run)
    feed.news()
    feed.plots()
    feed.close()
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before


def test_the_policy_allows_the_styles_that_the_plots_are_drawn_with_and_no_others():
    styles = plotly_styles()
    assert styles
    assert all(b"{" in style for style in styles)
    policy = content_security_policy(styles)
    assert "unsafe-inline" not in policy
    assert policy.count("sha256-") == len(styles) + 2
