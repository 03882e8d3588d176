"""The course of a run, and views of a board of 100 models: bounded, and the same however it was read."""

from dataclasses import replace

import pytest
import run_examples as runs
import standings_examples as examples
from run_examples import summary_of, with_details
from session_scripts import coin, drive, make_spec

from adaptive_eval.core.results import from_json
from adaptive_eval.core.session import Session
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.views.details import MOST, Course
from adaptive_eval.views.page import to_html, to_markdown
from adaptive_eval.views.plots import HEIGHT, LINES, WIDTH, course_plots
from adaptive_eval.views.reading import summarise
from adaptive_eval.views.report_json import report_data
from adaptive_eval.views.sentences import said
from adaptive_eval.views.summary import summary_at

# The course of a run: bounded, up to date, and the same however it was read.


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return the directory of a finished run with missing and truncated answers."""
    directory = tmp_path_factory.mktemp("runs") / "forest"
    runs.make_run(directory, missing=0.03, truncated=0.2)
    return directory


def test_a_course_takes_in_what_is_new_and_stays_bounded(tmp_path):
    course = Course(examples.midrun())
    with RunWriter.create(tmp_path / "run", meta={}) as writer, RunReader(tmp_path / "run") as reader:
        for second in range(4 * MOST):
            writer.snapshot(
                examples.snapshot_of(examples.example(examples.QUICKSTART, 1 + second), float(second))
            )
            writer.commit()
            if second % 7 == 0:
                course.catch_up(reader)
                assert len(course.moments) <= MOST
                assert course.moments[-1].at == examples.STARTED + second
    times = [moment.at for moment in course.moments]
    assert times == sorted(set(times))
    assert times[0] == examples.STARTED
    assert len(times) > MOST // 4


def test_its_last_moment_is_what_the_session_knew(run):
    with RunReader(run) as reader:
        summary, final = summarise(reader), from_json(reader.latest_snapshot().results)
    last = summary.details.course[-1]
    assert (last.trials, last.tokens) == (final.trials, final.tokens)
    assert last.usd == pytest.approx(final.usd)
    for line in final.models:
        assert last.models[line.model] == (line.score, line.low, line.high)
    for pair in final.pairs:
        point = last.pairs[pair.first, pair.second]
        assert (point.evidence, point.threshold) == (pair.evidence, pair.threshold)


def test_the_plots_are_within_their_frame_and_name_what_they_show(run):
    with RunReader(run) as reader:
        summary = summarise(reader)
    plots = {plot.key: plot for plot in course_plots(summary)}
    assert set(plots) == {"scores", "evidence", "spent"}
    assert [name for name, _, _ in plots["scores"].lines] == [line.model for line in summary.results.models]
    for plot in plots.values():
        assert 0 < len(plot.lines) <= LINES
        assert len({len(row) for row in plot.rows}) == 1
        for _, points, band in plot.lines:
            for point in f"{points} {band}".split():
                across, up = map(float, point.split(","))
                assert 0 <= across <= WIDTH
                assert 0 <= up <= HEIGHT
    assert plots["scores"].rows[-1][0] == f"{summary.results.trials:,}"


# Views of a board of 100 models: what matters first, and no part that grows with the 4,950 pairs.


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
