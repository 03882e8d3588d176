"""Views of a board of 100 models: what matters first, and no part that grows with the 4,950 pairs."""

from dataclasses import replace

import pytest
import standings_examples as examples
from run_examples import summary_of, with_details
from session_scripts import coin, drive, make_spec

from adaptive_eval.core.session import Session
from adaptive_eval.views.page import to_html, to_markdown
from adaptive_eval.views.report_json import report_data
from adaptive_eval.views.sentences import said
from adaptive_eval.views.summary import summary_at

MODELS = 100
PAIRS = MODELS * (MODELS - 1) // 2


@pytest.fixture(scope="module")
def session():
    means = [0.2 + 0.7 * model / MODELS for model in range(MODELS)]
    spec = make_spec(MODELS, 60, equivalence=0.05)
    return drive(Session(spec), coin(means), slots=2_000, most=60 * MODELS)


@pytest.fixture(scope="module")
def summary(session, tmp_path_factory):
    small = summary_of(tmp_path_factory.mktemp("many") / "run")
    results = session.results()
    accounts = tuple(replace(small.details.models[0], model=line.model) for line in results.models)
    header, snapshot = examples.HEADER, examples.snapshot_of(results)
    known = summary_at(header, snapshot, session.decisions, times=[0.0] * len(session.decisions))
    return with_details(replace(known, details=small.details), models=accounts, questions=None)


@pytest.mark.slow
def test_the_report_shows_the_open_and_the_closest_pairs_and_the_rest_is_in_a_table(summary):
    html, markdown = to_html(summary), to_markdown(summary)
    still_open = sum(pair.verdict == "open" for pair in summary.results.pairs)
    assert 0 < still_open < PAIRS
    for text in (html, markdown):
        assert f"100 of {PAIRS:,} pairs" in text
        assert "report/pairs.csv" in text
    assert len(html) < 400_000
    assert len(report_data(summary)["pairs"]) == PAIRS


def test_the_page_and_its_forecast_are_bounded(session, summary):
    html = to_html(summary)
    assert html.count("<tr>") < 2_000
    simulated = len(session.results().forecast.pairs)
    assert simulated < session.results().forecast.open_pairs
    assert any(
        f"from the {simulated:,} slowest of" in words for words in said("run.outlook", summary.outlook)
    )
