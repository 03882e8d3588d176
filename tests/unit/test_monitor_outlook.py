"""The forecast in the terminal views: what it says, how little room it takes, and when it is silent."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import standings_examples as examples
from standings_examples import MORE

from adaptive_eval.views.report_json import JsonLines
from adaptive_eval.views.sentences import said
from adaptive_eval.views.summary import outlook

WORDS = "91 % goal reached in budget · 1,056 more trials (594–4,362)"


def view_with(forecast, *, elapsed=154.0, before=None):
    results = replace(examples.midrun(), forecast=forecast)
    earlier = None
    if before is not None:
        earlier = replace(examples.snapshot_of(replace(results, trials=before)), elapsed=elapsed - 10)
    return examples.view_of(results, elapsed, previous=earlier)


@pytest.mark.parametrize(("width", "height"), [(80, 23), (100, 30), (200, 60), (80, 16)])
def test_one_line_says_how_sure_and_how_much(width, height):
    lines = examples.drawn(view_with(MORE), width, height)
    assert any(f"Forecast (approx.) {WORDS}" in line for line in lines)
    assert len(lines) <= height


def test_it_stands_between_what_is_open_and_what_it_has_cost():
    text = "\n".join(examples.drawn(view_with(MORE), 80, 23))
    assert text.index("open ") < text.index("Forecast") < text.index("trials    728")


def test_time_is_the_median_at_the_present_rate():
    view = view_with(MORE, before=728 - 40)  # 40 trials in 10 s
    assert view.outlook.seconds.median == pytest.approx(1_056 / 4)
    assert "4 min 24 s (2 min 28 s–18 min 10 s)" in said("run.outlook", view.outlook)


def test_without_a_forecast_nothing_is_said():
    view = view_with(None)
    assert view.outlook is None
    assert "Forecast" not in "\n".join(examples.drawn(view, 200, 60))
    assert json.loads(JsonLines().line(view))["forecast_seconds"] is None
    assert outlook(examples.finished(), 10.0) is None


def test_json_lines_carry_it_in_numbers():
    line = json.loads(JsonLines().line(view_with(MORE, before=728 - 40)))
    assert line["results"]["forecast"]["trials"] == {"low": 594, "median": 1_056, "high": 4_362}
    assert line["forecast_seconds"]["median"] == pytest.approx(264.0)
