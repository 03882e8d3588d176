"""The live page is the report; it and the pages of trials are escaped and bounded, and links lead on."""

from __future__ import annotations

import re
from urllib.parse import urljoin, urlsplit

import hostile_run
import pytest
import run_examples as runs
from starlette.testclient import TestClient
from test_report_html import Page

from adaptive_eval.store.writer import RunWriter
from adaptive_eval.views.page import to_html
from adaptive_eval.views.web_app import create_app
from adaptive_eval.views.web_runs import Folder

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
