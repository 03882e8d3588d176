"""What the web page keeps of a run and plots: bounded, up to date, and the same however it was read."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import run_examples as runs
import standings_examples as examples

from adaptive_eval.core.results import Forecast, PairForecast, Range
from adaptive_eval.core.results_json import from_json
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.views.snapshot import RunHeader, run_view
from adaptive_eval.views.web.history import MOST, History
from adaptive_eval.views.web.plots import EVIDENCE_PAIRS, plots_data
from adaptive_eval.views.web.tally import Tally


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return the directory of a finished run with missing and truncated answers."""
    directory = tmp_path_factory.mktemp("runs") / "forest"
    runs.make_run(directory, missing=0.1, truncated=0.2)
    return directory


def history_of(*results):
    history = History()
    for second, one in enumerate(results):
        history.add(examples.snapshot_of(one, float(second)), one)
    return history


def plots_of(reader):
    history, tally = History(), Tally()
    history.catch_up(reader)
    tally.catch_up(reader)
    snapshot = reader.latest_snapshot()
    return plots_data(run_view(RunHeader("forest"), snapshot), history.moments, tally), history, tally


def test_a_history_takes_in_what_is_new_and_stays_bounded(tmp_path):
    history = History()
    with RunWriter.create(tmp_path / "run", meta={}) as writer, RunReader(tmp_path / "run") as reader:
        assert not history.catch_up(reader)
        for second in range(3 * MOST):
            writer.snapshot(
                examples.snapshot_of(examples.example(examples.QUICKSTART, 1 + second), float(second))
            )
            writer.commit()
            if second % 7 == 0:
                assert history.catch_up(reader)
                assert len(history.moments) <= MOST
                assert history.moments[-1].at == examples.STARTED + second
    times = [moment.at for moment in history.moments]
    assert times == sorted(set(times))
    assert times[0] == examples.STARTED
    assert len(times) > MOST // 4


def test_a_tally_counted_at_once_or_bit_by_bit_is_the_same(run, tmp_path):
    with RunReader(run) as reader:
        whole, missing, truncated = Tally(), Counter(), Counter()
        whole.catch_up(reader)
        trials = list(reader.trials())
    for trial in trials:
        model = trial.request.key.model
        if trial.score is None:
            missing[model] += 1
        else:
            truncated[model] += trial.completion.finish_reason == "length"
    parts = Tally()
    with RunWriter.create(tmp_path / "again", meta={}) as writer, RunReader(tmp_path / "again") as reader:
        for start in range(0, len(trials), 41):
            for trial in trials[start : start + 41]:
                writer.outcome(trial)
            writer.commit()
            assert parts.catch_up(reader)
        assert not parts.catch_up(reader)
    for field in ("stored", "scored", "category_sum", "truncated"):
        np.testing.assert_array_equal(getattr(parts, field), getattr(whole, field))
    for model in whole.models:
        assert sum(whole.missing_reasons(model).values()) == missing[model]
        assert whole.truncated_answers(model) == truncated[model]
    assert parts.missing == whole.missing
    assert whole.binary


def test_question_lines_agree_with_the_trials(run):
    with RunReader(run) as reader:
        tally = Tally()
        tally.catch_up(reader)
        trials = list(reader.trials(question="q3"))
    (line,) = [line for line in tally.question_lines() if line.question == "q3"]
    assert line.trials == len(trials)
    assert line.missing == sum(trial.score is None for trial in trials)
    by_model = {}
    for trial in trials:
        if trial.score is not None:
            by_model.setdefault(trial.request.key.model, []).append(trial.score.category)
    means = [sum(values) / len(values) for values in by_model.values()]
    shrunk = [(sum(values) + 1) / (len(values) + 2) for values in by_model.values()]
    assert line.mean == pytest.approx(np.mean(means))
    assert line.spread == pytest.approx(np.std(shrunk))


# The plots


def test_every_plot_of_a_real_run_agrees_with_its_run_file(run):
    with RunReader(run) as reader:
        data, history, tally = plots_of(reader)
        final = from_json(reader.latest_snapshot().results)
    best = sorted(final.models, key=lambda line: line.rank)
    assert [model["name"] for model in data["models"]] == [line.model for line in best]
    for field in ("score", "low", "high"):
        assert [row[-1] for row in data["scores"][field]] == pytest.approx(
            [getattr(line, field) for line in best], rel=1e-5
        )
    assert [row[-1] for row in data["ranks"]] == [line.rank for line in best]
    assert data["trials"][-1] == final.trials
    assert data["cost"]["unit"] == "usd"
    assert data["cost"]["spent"][-1] == pytest.approx(sum(line.usd for line in best), rel=1e-4)
    assert np.sum(data["cells"]["counts"]) == tally.end
    assert len(data["cells"]["questions"]) == 30
    kinds = [one for row in data["matrix"]["kind"] for one in row if one is not None]
    assert kinds.count("better") == kinds.count("worse")
    assert len(kinds) == 2 * len(final.pairs)
    assert len(data["trials"]) == len(history.moments)


@pytest.mark.parametrize("moment", examples.MOMENTS)
def test_plots_of_any_moment_are_strict_json(moment):
    results = examples.MOMENTS[moment]()
    view = run_view(RunHeader("demo"), examples.snapshot_of(results))
    data = plots_data(view, history_of(examples.no_trials(), results).moments, Tally())
    text = json.dumps(data, allow_nan=False, ensure_ascii=False)
    text.encode()
    assert not {"\x1b", "\x07", "\u202e", "\n"} & set(text)
    assert len(data["evidence"]["pairs"]) <= EVIDENCE_PAIRS
    assert (data["matrix"] is None) == (moment in ("one_model", "against_a_number", "to_a_width"))


# Forecasts against what happened


def forecast(trials, **pairs):
    each = tuple(PairForecast("oak", second, 0.9, Range(*said)) for second, said in pairs.items())
    return Forecast(0.9, Range(*trials), Range(1e3, 2e3, 3e3), None, each)


def calibration(final, *before):
    """Return how the forecasts of earlier results compare with the final ones."""
    view = run_view(RunHeader("d"), examples.snapshot_of(final))
    return plots_data(view, history_of(*before).moments, Tally())["calibration"]


def test_forecasts_are_held_against_what_happened():
    early = replace(
        examples.example(examples.QUICKSTART, 20), forecast=forecast((10, 20, 30), ash=(0, 50, 100))
    )
    told_again = replace(examples.example(examples.QUICKSTART, 21), forecast=early.forecast)
    later = replace(
        examples.example(examples.QUICKSTART, 40), forecast=forecast((1, 2, 3), ash=(500, 600, 900))
    )
    final = examples.finished()
    found = calibration(final, early, told_again, later, final)
    assert found["finished"]
    assert found["issued"] == sum(line.issued for line in final.models)
    assert found["trials"] == [100, 200], "each forecast once, where it was first said"
    assert found["total"][0][1] == sum(line.issued for line in early.models) + 20
    (call,) = {pair.decided_at for pair in final.pairs if (pair.first, pair.second) == ("oak", "ash")}
    assert [check["happened"] for check in found["pairs"]] == [2 * (call - 20), 2 * (call - 40)]
    assert [check["said"] for check in found["pairs"]] == [[0, 50, 100], [500, 600, 900]]
    assert found["held"] == [1, 2], "the first promised less than was needed"


def test_a_forecast_that_an_open_pair_has_outlasted_is_missed():
    early = replace(
        examples.example(examples.QUICKSTART, 20), forecast=forecast((10, 20, 30), ash=(0, 10, 39))
    )
    later = replace(early, forecast=forecast((10, 20, 30), ash=(0, 10, 40)))
    final = examples.example(examples.QUICKSTART, 40)
    (pair,) = (pair for pair in final.pairs if (pair.first, pair.second) == ("oak", "ash"))
    assert (pair.decided_at, pair.trials) == (None, 40)
    outlasted = calibration(final, early, final)
    assert outlasted["held"] == [0, 1]
    assert [(check["happened"], check["open"]) for check in outlasted["pairs"]] == [(40, True)]
    assert calibration(final, later, final)["held"] == [0, 0], "it may still hold"
