"""Ranking methods of the published package: the same names, signatures and numbers, by independent means."""

import inspect
import json
from pathlib import Path

import numpy as np
import pytest

from scorio import rank

GOLDEN = json.loads((Path(__file__).resolve().parents[1] / "data" / "rank_reference.json").read_text())
TENSORS = [np.array(tensor) for tensor in GOLDEN["tensors"]]
CASES = GOLDEN["cases"]
FITTED = {case["name"] for case in CASES if case["name"].startswith(("bradley", "rao", "plackett", "rasch"))}

TAIL = "method='competition', return_scores=False"
SIGNATURES = {
    "bradley_terry": f"R, {TAIL}, max_iter=500",
    "bradley_terry_map": f"R, prior=1.0, {TAIL}, max_iter=500",
    "bradley_terry_davidson": f"R, {TAIL}, max_iter=500",
    "bradley_terry_davidson_map": f"R, prior=1.0, {TAIL}, max_iter=500",
    "rao_kupper": f"R, tie_strength=1.1, {TAIL}, max_iter=500",
    "rao_kupper_map": f"R, tie_strength=1.1, prior=1.0, {TAIL}, max_iter=500",
    "plackett_luce": f"R, {TAIL}, max_iter=10000, tol=1e-08",
    "plackett_luce_map": f"R, prior=1.0, {TAIL}, max_iter=500",
    "rasch": f"R, {TAIL}, max_iter=500, return_item_params=False",
    "rasch_map": f"R, prior=1.0, {TAIL}, max_iter=500, return_item_params=False",
    "rasch_2pl": f"R, {TAIL}, max_iter=500, return_item_params=False, reg_discrimination=0.01",
    "rasch_2pl_map": f"R, prior=1.0, {TAIL}, max_iter=500, return_item_params=False, reg_discrimination=0.01",
    "elo": f"R, K=32.0, initial_rating=1500.0, tie_handling='correct_draw_only', {TAIL}",
    "borda": f"R, {TAIL}",
    "copeland": f"R, {TAIL}",
    "win_rate": f"R, {TAIL}",
    "schulze": f"R, tie_policy='half', {TAIL}",
    "kemeny_young": f"R, tie_policy='half', {TAIL}, time_limit=None, tie_aware=True",
    "pagerank": f"R, damping=0.85, max_iter=100, tol=1e-06, {TAIL}, teleport=None",
    "rank_centrality": f"R, {TAIL}, tie_handling='half', smoothing=0.0, teleport=0.0, max_iter=10000, "
    "tol=1e-12",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures_are_those_of_the_published_package(name):
    parameters = inspect.signature(getattr(rank, name)).parameters.values()
    shown = ", ".join(p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in parameters)
    assert shown == SIGNATURES[name]


@pytest.mark.parametrize("case", CASES, ids=[f"{c['name']}-{c['tensor']}-{c['options']}" for c in CASES])
def test_scores_and_ranks_are_those_of_the_published_package(case):
    name, R = case["name"], TENSORS[case["tensor"]]
    ranks, scores = getattr(rank, name)(R, return_scores=True, **case["options"])
    # The published fits stop at L-BFGS's default accuracy, and part models there that are exactly equal.
    tolerance = 2e-3 if name in FITTED else 1e-9
    assert scores == pytest.approx(case["scores"], rel=tolerance, abs=tolerance)
    assert ranks.tolist() == rank.rank_scores(case["scores"], tol=1e-5 if name in FITTED else 1e-9).tolist()


def test_independent_packages_agree():
    R, expected = TENSORS[0], GOLDEN["independent"]
    strengths = rank.bradley_terry(R, return_scores=True)[1]
    assert strengths == pytest.approx(expected["bradley_terry"], rel=1e-6)
    assert rank.rasch(R, return_scores=True)[1] == pytest.approx(expected["rasch"], rel=1e-6)
    assert rank.pagerank(R, return_scores=True)[1] == pytest.approx(expected["pagerank"], rel=1e-9)
    logs = np.log(rank.rank_centrality(R, return_scores=True, tie_handling="ignore")[1])
    assert logs - logs.mean() == pytest.approx(expected["rank_centrality"], rel=1e-7)


@pytest.mark.parametrize("name", SIGNATURES)
def test_order_of_the_models_does_not_matter_and_equal_models_tie(name):
    R = TENSORS[1]
    options = {"reg_discrimination": 1.0} if "2pl" in name else {}
    ranks = getattr(rank, name)(R, **options)
    order = [3, 0, 4, 1, 2]
    assert getattr(rank, name)(R[order], **options).tolist() == ranks[order].tolist()
    assert ranks[0] == ranks[1]


@pytest.mark.parametrize("name", ["bradley_terry", "plackett_luce", "rao_kupper", "rasch", "rasch_2pl"])
def test_separated_models_have_no_maximum_likelihood_strengths_but_map_ranks_them(name):
    R = np.array([[[1, 1], [1, 1], [1, 1]], [[0, 1], [0, 1], [1, 0]], [[0, 0], [0, 0], [0, 0]]])
    if name == "rao_kupper":  # ties say that nobody is infinitely better
        assert rank.rao_kupper(R).tolist() == [1, 2, 3]
    else:
        with pytest.raises(ValueError, match=f"no finite .* use {name}_map"):
            getattr(rank, name)(R)
    assert getattr(rank, f"{name}_map")(R).tolist() == [1, 2, 3]


def test_a_condorcet_cycle_ties():
    # Questions that rank the models 0 > 1 > 2, 1 > 2 > 0 and 2 > 0 > 1.
    R = np.array([[[1, 1], [0, 0], [1, 0]], [[1, 0], [1, 1], [0, 0]], [[0, 0], [1, 0], [1, 1]]])
    for method in (rank.copeland, rank.schulze, rank.kemeny_young, rank.borda, rank.win_rate):
        assert method(R).tolist() == [1, 1, 1]


def test_an_empirical_prior_decides_where_there_are_no_decisive_outcomes():
    prior = rank.EmpiricalPrior([[0, 0, 1], [1, 1, 1]], var=0.5)
    assert rank.bradley_terry_map([[1, 0, 1], [1, 0, 1]], prior).tolist() == [2, 1]


@pytest.mark.parametrize("name", ["avg", "pass_at_k", "borda", "elo", "bradley_terry_map", "rasch_map"])
def test_names_of_models_are_kept(name):
    method, arguments = getattr(rank, name), (2,) if name == "pass_at_k" else ()
    names = [f"m{number}" for number in range(len(TENSORS[0]))]
    ranks, scores = method(TENSORS[0], *arguments, return_scores=True)
    named = method(dict(zip(names, TENSORS[0], strict=True)), *arguments)
    assert named.names == tuple(names)
    assert np.asarray(named).tolist() == ranks.tolist()
    assert named.scores.tolist() == scores.tolist()
    assert named.to_dict()["ranking"] == name
    assert str(named).splitlines()[1].split()[1] == names[int(np.argmin(ranks))]
