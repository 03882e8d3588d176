"""Plain code of a user: tests/unit/test_reference_pages.py has mypy --strict read it."""

from typing import TYPE_CHECKING

import numpy as np

from scorio import eval as metrics
from scorio import rank, sequential, sinf, utils

R = np.random.default_rng(1).integers(0, 2, (3, 20, 8))
mu, sigma = metrics.bayes(R[0])
low: float = metrics.bayes_ci(R[0]).lo
passed: float = metrics.pass_at_k(R[0], 2)
ranks = rank.avg(R)
print(ranks[0] + 1, ranks.tolist(), metrics.avg(R[0]).mu + passed)
ranks, scores = rank.bayes(R, return_scores=True)
print(scores.mean(), ranks.max(), rank.pass_at_k(R, 2, return_scores=True).scores.mean())
ranks, theta, items = rank.rasch_map(R, return_item_params=True)
print(items["difficulty"].mean(), theta.max(), rank.avg({"a": R[0], "b": R[1]}).names)
tau, p_value = utils.compare_rankings(ranks, scores, "kendall")
stop: bool = sinf.should_stop(sigma, max_ci_width=0.1)
verdict = sequential.compare(R[0], R[1], equivalence=0.05)
print(verdict, sequential.board(R), tau + p_value + low)
if TYPE_CHECKING:  # a mistake that a type checker sees
    metrics.pass_at_k(R[0], "2")  # type: ignore[arg-type]
    metrics.pass_at_k_ci(R[0], 2, confidenc=0.9)  # type: ignore[call-arg]
