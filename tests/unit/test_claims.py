"""Results of a run: claims on them, their columns and frames, and labels of arrays and frames."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from session_scripts import coin, drive, make_spec

from adaptive_eval.core.results_table import columns_of
from adaptive_eval.core.session import Session
from adaptive_eval.errors import UsageError
from adaptive_eval.run.claims import at_least, not_worse
from adaptive_eval.simulate import BiasedCoins, simulate
from scorio import rank, sequential


@pytest.fixture(scope="module")
def results():
    found = drive(Session(make_spec(2, 60, equivalence=0.05)), coin([0.5, 0.75])).results()
    (pair,) = found.pairs
    pair = replace(pair, difference=-0.2, difference_low=-0.3, difference_high=-0.1)
    lines = [
        replace(line, score_low=low, score_high=low + 0.2)
        for line, low in zip(found.models, (0.4, 0.6), strict=True)
    ]
    return replace(found, pairs=(pair,), models=tuple(lines))


@pytest.mark.parametrize(
    ("model", "than", "margin", "holds"),
    [
        ("m1", "m0", 0.0, True),
        ("m0", "m1", 0.0, False),
        ("m0", "m1", 0.05, False),
        ("m0", "m1", 0.2, None),
        ("m0", "m1", 0.3, True),
    ],
)
def test_a_pair_is_read_the_way_round_that_is_asked(results, model, than, margin, holds):
    assert not_worse(results, model, than, margin).holds is holds
    assert not_worse(replace(results, scale=(1.0, 10.0)), "m0", "m1", 2.0).holds


@pytest.mark.parametrize(("value", "holds"), [(0.4, True), (0.5, None), (0.6, None), (0.61, False)])
def test_a_score_holds_where_all_of_its_interval_does(results, value, holds):
    assert at_least(results, "m0", value).holds is holds


def test_a_verdict_against_a_number_bounds_the_score():
    """The bet calls earlier than the interval of the score would."""
    spec = make_spec(1, 60, goal="threshold", value=0.5, max_passes=4)
    session = drive(Session(spec), coin([0.7]))
    (line,), (pair,) = session.results().models, session.results().pairs
    assert (pair.verdict, line.score_low) == ("better", 0.5)
    assert at_least(session.results(), "m0", 0.5).holds


# Results as columns and frames.


@pytest.fixture(scope="module")
def session():
    """Return a session that has ended."""
    return drive(Session(make_spec(3, 30, equivalence=0.15, max_passes=60)), coin((0.9, 0.5, 0.45)))


@pytest.mark.parametrize("table", ["models", "pairs", "budgets"])
def test_every_table_of_results_has_equally_long_columns(session, table):
    results = session.results()
    columns = results.to_columns(table)
    assert {len(column) for column in columns.values()} == {len(getattr(results, table))}


def test_a_mapping_becomes_a_column_for_each_of_its_keys(session):
    columns = columns_of(session.decisions)
    assert len(set(map(len, columns.values()))) == 1
    calls = [one for one in session.decisions if one.kind == "pair"]
    told = [value for value in columns["evidence.difference"] if value is not None]
    assert told == [one.evidence["difference"] for one in calls]


def test_without_pandas_the_advice_is_to_columns(session, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match="pip install pandas"):
        session.results().to_frame()


@pytest.mark.filterwarnings("default")
def test_frames_are_the_columns(session):
    pytest.importorskip("pandas")
    results = session.results()
    frame = results.to_frame("pairs")
    assert frame.to_dict("list").keys() == results.to_columns("pairs").keys()
    assert frame["verdict"].tolist() == [pair.verdict for pair in results.pairs]
    result = simulate(make_spec(2, 20, max_passes=5), BiasedCoins((0.9, 0.2)), 3, seed=1, workers=1)
    assert result.to_frame("models")["model"].tolist() == ["m0", "m1"]


# Labels of outcomes that come as labelled arrays and nullable frames name the models.


R = (np.random.default_rng(5).random((3, 40, 4)) < np.array([0.9, 0.5, 0.2])[:, None, None]).astype(int)
NAMES = ("best", "middle", "last")


class Labelled:
    """Stands for an xarray.DataArray."""

    dims = ("model", "question", "trial")
    coords = {"model": SimpleNamespace(values=np.array(NAMES))}  # noqa: RUF012

    def __array__(self, dtype=None, copy=None):
        return R if dtype is None else R.astype(dtype)


def test_labels_of_arrays_are_kept():
    assert sequential.board(Labelled()).names == NAMES
    assert rank.avg(Labelled()).names == NAMES


def test_nullable_frames_name_models():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(R[:, :, 0].T, columns=list(NAMES)).astype("Int64")
    frame.iloc[3, 0] = pandas.NA
    found = rank.bayes(frame, missing=np.nan)
    assert (found.names, found.ranks.tolist()) == (NAMES, [1, 2, 3])
    assert sequential.board(frame, missing=np.nan).names == NAMES
