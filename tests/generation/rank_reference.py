"""Golden numbers of the ranking methods, from the published scorio and from independent packages.

Both packages are called ``scorio``, so this runs in an environment of its own:

    python -m venv /tmp/published && /tmp/published/bin/pip install scorio==0.2.3 choix networkx
    /tmp/published/bin/python -I tests/generation/rank_reference.py

It rewrites tests/data/rank_reference.json.

Girth estimates 2PL marginally, not jointly, so it is no reference here. Rasch is checked against choix: it is
Bradley-Terry between models and questions.
"""

import json
from pathlib import Path
from typing import Any

import choix
import networkx as nx
import numpy as np

from scorio import rank, utils

GOLDEN = Path(__file__).resolve().parent.parent / "data" / "rank_reference.json"

METHODS: list[tuple[str, dict[str, Any]]] = [
    ("bradley_terry", {}),
    ("bradley_terry_map", {"prior": 0.5}),
    ("bradley_terry_davidson", {}),
    ("bradley_terry_davidson_map", {"prior": 2.0}),
    ("rao_kupper", {"tie_strength": 1.3}),
    ("rao_kupper_map", {}),
    ("plackett_luce", {"tol": 1e-13, "max_iter": 100_000}),
    ("plackett_luce_map", {}),
    ("rasch", {}),
    ("rasch_map", {}),
    ("rasch_2pl", {"reg_discrimination": 1.0}),
    ("rasch_2pl_map", {"reg_discrimination": 1.0}),
    ("rasch_mml", {"em_iter": 300}),
    ("rasch_mml", {"em_iter": 300, "n_quadrature": 11}),
    ("elo", {}),
    ("elo", {"K": 10.0, "tie_handling": "draw"}),
    ("elo", {"tie_handling": "skip"}),
    ("glicko", {}),
    ("glicko", {"c": 30.0, "initial_rd": 300.0, "rd_max": 200.0, "tie_handling": "draw"}),
    ("glicko", {"tie_handling": "skip"}),
    ("trueskill", {}),
    ("trueskill", {"tau": 0.5, "tie_handling": "draw"}),
    ("trueskill", {"sigma_initial": 5.0, "tie_handling": "correct_draw_only", "draw_margin": 1.5}),
    ("borda", {}),
    ("copeland", {}),
    ("win_rate", {}),
    ("schulze", {}),
    ("schulze", {"tie_policy": "ignore"}),
    ("ranked_pairs", {}),
    ("ranked_pairs", {"strength": "winning_votes", "tie_policy": "ignore"}),
    ("kemeny_young", {}),
    ("kemeny_young", {"tie_policy": "ignore"}),
    ("pagerank", {"tol": 1e-14, "max_iter": 10_000}),
    ("rank_centrality", {}),
    ("rank_centrality", {"tie_handling": "ignore", "smoothing": 0.5, "teleport": 0.1}),
]


def tensors() -> list[np.ndarray]:
    rng = np.random.default_rng(20261121)
    spread = rng.normal(0.0, 0.7, (6, 1, 1)) - rng.normal(0.0, 0.7, (1, 9, 1))
    first = rng.random((6, 9, 8)) < 1.0 / (1.0 + np.exp(-spread))
    near = rng.random((5, 7, 3)) < 0.5
    near[1] = near[0]  # two models that no method can tell apart
    return [tensor.astype(int) for tensor in (first, near)]


def pair_wins(R: np.ndarray) -> list[tuple[int, int]]:
    wins = [(i, j, int(((a == 1) & (b == 0)).sum())) for i, a in enumerate(R) for j, b in enumerate(R)]
    return [(i, j) for i, j, number in wins for _ in range(number)]


def main() -> None:
    cases = []
    for number, R in enumerate(tensors()):
        for name, options in METHODS:
            ranks, scores = getattr(rank, name)(R, return_scores=True, **options)
            case = {"tensor": number, "name": name, "options": options}
            cases.append({**case, "ranks": ranks.tolist(), "scores": scores.tolist()})
    R = tensors()[0]
    models, questions, trials = R.shape
    wins = pair_wins(R)
    answers = [
        (i, models + m) if R[i, m, t] else (models + m, i)
        for i in range(models)
        for m in range(questions)
        for t in range(trials)
    ]
    rasch = choix.opt_pairwise(models + questions, answers, tol=1e-12)
    graph = nx.DiGraph()
    shares = np.array([[((a > b).sum() + 0.5 * (a == b).sum()) / a.size for b in R] for a in R])
    np.fill_diagonal(shares, 0.0)
    np.fill_diagonal(shares, shares.sum(axis=1))
    graph.add_weighted_edges_from((j, i, shares[i, j]) for i in range(models) for j in range(models))
    pages = nx.pagerank(graph, alpha=0.85, tol=1e-15, max_iter=10_000)
    independent = {
        "bradley_terry": np.exp(choix.opt_pairwise(models, wins, tol=1e-12)).tolist(),
        "rank_centrality": choix.rank_centrality(models, wins).tolist(),
        "rasch": (rasch[:models] - rasch[models:].mean()).tolist(),
        "pagerank": [pages[i] for i in range(models)],
    }
    agreement = utils.compare_rankings([1, 2, 3, 4, 5], [1, 3, 2, 5, 4])
    golden = {
        "tensors": [tensor.tolist() for tensor in tensors()],
        "cases": cases,
        "independent": independent,
        "compare_rankings": agreement,
    }
    GOLDEN.write_text(json.dumps(golden, indent=None, separators=(",", ":")) + "\n")
    print(f"{len(cases)} cases in {GOLDEN.name}")


if __name__ == "__main__":
    main()
