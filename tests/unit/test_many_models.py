"""Views of a board of 100 models: what matters first, and no part that grows with the 4,950 pairs."""

from __future__ import annotations

from dataclasses import replace

import pytest
import standings_examples as examples
from run_examples import summary_of
from session_scripts import coin, drive, make_spec

from adaptive_eval.core.session import Session
from adaptive_eval.views.html import to_html
from adaptive_eval.views.markdown import to_markdown
from adaptive_eval.views.outlook import outlook_parts
from adaptive_eval.views.report_json import report_data
from adaptive_eval.views.snapshot import run_view
from adaptive_eval.views.web.pages import render_parts, run_context
from adaptive_eval.views.web.tally import Tally

MODELS = 100
PAIRS = MODELS * (MODELS - 1) // 2


@pytest.fixture(scope="module")
def session():
    means = [0.2 + 0.7 * model / MODELS for model in range(MODELS)]
    spec = make_spec(MODELS, 60, equivalence=0.05)
    return drive(Session(spec), coin(means), slots=2_000, most=120 * MODELS)


@pytest.fixture(scope="module")
def summary(session, tmp_path_factory):
    small = summary_of(tmp_path_factory.mktemp("many") / "run")
    results = session.results()
    accounts = tuple(replace(small.models[0], model=line.model) for line in results.models)
    return replace(small, results=results, models=accounts, questions=None, ties=())


def test_the_report_shows_the_open_and_the_closest_pairs_and_the_rest_is_in_a_table(summary):
    html, markdown = to_html(summary), to_markdown(summary)
    still_open = sum(pair.verdict == "open" for pair in summary.results.pairs)
    assert 0 < still_open < PAIRS
    for text in (html, markdown):
        assert f"100 of {PAIRS:,} pairs" in text
        assert "report/pairs.csv" in text
    assert len(html) < 400_000
    assert len(report_data(summary)["pairs"]) == PAIRS


def test_the_page_and_its_forecast_are_bounded(session):
    results = session.results()
    view = run_view(examples.HEADER, examples.snapshot_of(results), session.decisions)
    parts = render_parts(run_context(view, Tally()))
    assert parts["pairs"].count("<tr data-key") == 150
    assert parts["open"].count("<tr data-key") == 20
    assert parts["decisions"].count("<li data-key") <= 200
    assert sum(map(len, parts.values())) < 300_000
    simulated = len(results.forecast.pairs)
    assert simulated < results.forecast.open_pairs
    assert any(f"from the {simulated:,} slowest of" in words for words in outlook_parts(view.outlook))
