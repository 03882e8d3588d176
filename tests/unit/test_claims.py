"""Results of a run: claims on them, their columns and frames, and labels of arrays and frames."""

import re
import sys
from dataclasses import replace
from math import log
from types import SimpleNamespace

import numpy as np
import pytest
from session_scripts import coin, drive, make_spec

import adaptive_eval
from adaptive_eval.build.replay import replay
from adaptive_eval.core.results_table import columns_of
from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import GoalSpec, ReferenceSpec
from adaptive_eval.errors import UsageError
from adaptive_eval.run.claims import (
    AtLeast,
    NotWorse,
    _claims_of,
    _session,
    at_least,
    check,
    not_worse,
    results_of,
)
from adaptive_eval.simulate import BiasedCoins, simulate
from adaptive_eval.store.reader import RunReader
from scorio import rank, sequential

ROWS = [{"id": f"q{number}", "input": f"question {number}", "target": "yes"} for number in range(40)]


def coin_of(chance: float, seed: int):
    """Return a function that answers right with a chance, whatever it is asked."""
    rng = np.random.default_rng(seed)
    return lambda prompt: "yes" if rng.random() < chance else f"no {rng.random()}"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return the directory of a run that ended for another goal: its pair was decided early."""
    chances = {"production": 0.9, "candidate": 0.5, "other": 0.88, "twin": 0.5}
    models = {name: coin_of(chance, seed) for seed, (name, chance) in enumerate(chances.items())}
    more = {"stopping": {"max_passes": 12, "equivalence": 0.01}, "budget": {"trials": 1200}, "concurrency": 1}
    folder = tmp_path_factory.mktemp("claims") / "run"
    adaptive_eval.evaluate(models, ROWS, out=folder, **more)
    return folder


def test_all_answers_are_read_those_of_decided_pairs_too(run):
    (pair,) = [one for one in results_of(run).pairs if {one.first, one.second} == {"candidate", "production"}]
    assert pair.decided_at < 80
    worse = not_worse(run, "candidate", "production", 0.02)
    assert (worse.holds, "0.02 on these questions at 95 %" in worse.text) == (False, True)
    assert not_worse(run, "production", "candidate", 0.02).holds is True
    assert not_worse(run, "other", "production").holds is None  # by the run's margin of ties


def test_a_claim_that_is_open_says_which_goal_and_budget_decide_it(run):
    text = not_worse(run, "other", "production", 0.05).text
    assert "-o 'goal={kind: not-worse, model: production, margin: 0.05}'" in text
    trials = int(re.search(r"budget.trials=(\d+)", text)[1])
    assert trials > 1000


def test_several_claims_share_the_level(run):
    claims = check(run, [NotWorse("candidate", "production", 0.02), AtLeast("production", 0.3)])
    assert [claim.holds for claim in claims] == [False, True]
    with RunReader(run) as reader:
        spec = replay(reader).session.spec
    session = _session(spec, [NotWorse("candidate", "production", 0.02)], 4)
    assert session.comparison.fold.levels.claim(0) == pytest.approx(log(4 / 0.05))


@pytest.mark.parametrize(("value", "holds"), [(0.5, True), (0.9, None), (0.99, False)])
def test_a_score_is_held_against_a_number_by_the_bets_of_the_goal_threshold(run, value, holds):
    claim = at_least(run, "production", value)
    assert claim.holds is holds
    assert (f"goal=threshold={value}" in claim.text) is (holds is None)


def test_the_goal_and_the_check_are_one_function(tmp_path):
    models = {"old": coin_of(0.9, 4), "new": coin_of(0.9, 5), "bad": coin_of(0.4, 6)}
    goal = {"kind": "not-worse", "model": "old", "margin": 0.1}
    found = adaptive_eval.evaluate(models, ROWS, goal, out=tmp_path / "run")
    assert {pair.first: pair.verdict for pair in found.results.pairs} == {"new": "better", "bad": "worse"}
    assert [claim.holds for claim in check(tmp_path / "run")] == [True, False]
    assert (found.not_worse("new", "old").holds, found.not_worse("bad", "old").holds) == (True, False)
    adaptive_eval.assert_not_worse(found, "new", than="old")
    with pytest.raises(AssertionError, match=r"^bad is worse than old by more than 0.1"):
        adaptive_eval.assert_not_worse(tmp_path / "run", "bad", than="old")


@pytest.mark.parametrize("model", ["m0", "old"])
def test_the_claims_of_a_goal_are_the_contrasts_of_its_run(model):
    """Those about references too, but for two of them, whose trials are all in."""
    goals = (GoalSpec("not-worse", model=model, margin=0.1), GoalSpec("threshold", value=0.5))
    stored = tuple(ReferenceSpec(name, {"t": np.ones((3, 2), dtype=int)}) for name in ("old", "older"))
    spec = replace(make_spec(2, 3), goal=GoalSpec("all", goals=goals), references=stored)
    found = [(pair.first, pair.second) for pair in Session(spec).results().pairs]
    claims = [(one.model, getattr(one, "than", "0.5")) for one in _claims_of(spec)]
    assert claims == found
    assert len(claims) == {"m0": 5, "old": 4}[model]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ([NotWorse("nobody", "production", 0.1)], "nobody"),
        ([NotWorse("candidate", "candidate", 0.1)], "two models"),
        ([NotWorse("candidate", "production", 0.0)], "margin"),
        ([NotWorse("candidate", "production", 1.0)], "from 0 to 1"),
        ([AtLeast("candidate", 80.0)], "from 0 to 1"),
        ([AtLeast("candidate", float("nan"))], "give a score"),
        ([], "what is to be checked"),
    ],
)
def test_what_cannot_be_checked_is_refused(run, asked, said):
    with pytest.raises(UsageError, match=said):
        check(run, asked)


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


def test_a_new_model_is_told_of_the_references_that_keep_what_is_paid(tmp_path):
    models = {"old": coin_of(0.9, 1), "new": coin_of(0.5, 2)}
    adaptive_eval.evaluate({"old": models["old"]}, ROWS, "threshold=0.5", out=tmp_path / "run")
    with pytest.raises(UsageError, match=r"only new under models") as caught:
        adaptive_eval.evaluate(models, ROWS, "threshold=0.5", out=tmp_path / "run")
    assert f"references: [{{run: {tmp_path / 'run'}, models: [old]}}]" in str(caught.value)
