"""What the reports say of earlier results: which are in, from where, and that no verdict rests on them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from run_examples import summary_of

from adaptive_eval.views.page import to_html, to_markdown
from adaptive_eval.views.report_json import report_data

SOURCE = "2 earlier trials a question of oak, from runs/<b>first</b>"


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return summary_of(tmp_path_factory.mktemp("run") / "forest", meta={"previous": '{"settings": {}}'})


@pytest.fixture(scope="module")
def primed(plain):
    lines = [
        replace(line, early_rank=place, transfer_mu=1.0 - 0.1 * place, transfer_sigma=0.02)
        for place, line in enumerate(plain.results.models, start=1)
    ]
    return replace(plain, results=replace(plain.results, prior=SOURCE, models=tuple(lines)))


def test_the_table_of_earlier_trials_stays_in_the_run_file(plain):
    assert "previous" not in plain.details.meta
    assert "forest" in to_markdown(plain)


def test_every_report_says_what_is_in(primed):
    order = ", ".join(f"{line.model} {line.transfer_mu:.3f}" for line in primed.results.models)
    for text in (to_markdown(primed), to_html(primed)):
        assert "starts from previous runs; no verdict does: 2 earlier trials a question of oak" in text
        assert f"which decides nothing: {order}." in text
        assert "<b>first</b>" not in text
    data = report_data(primed)
    assert data["prior"] == SOURCE
    assert [line["early_rank"] for line in data["models"]] == [1, 2, 3, 4]


def test_and_nothing_where_there_is_none(plain):
    for text in (to_markdown(plain), to_html(plain)):
        assert "earlier trials" not in text
    assert report_data(plain)["prior"] is None


def test_without_a_transfer_there_is_no_early_ranking(plain):
    summary = replace(plain, results=replace(plain.results, prior=SOURCE))
    assert "starts from previous runs" in to_markdown(summary)
    assert "Early ranking" not in to_markdown(summary)
