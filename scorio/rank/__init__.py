"""Rankings of models from an (L, M, N) tensor of outcomes: L models, M questions, N trials.

Every metric of :mod:`scorio.eval` is a ranking here, computed for all models at once: ``bayes``, ``avg``,
``pass_at_k`` and so on take a tensor and return ranks, with ``return_scores=True`` the scores too. Tied
models are ranked by ``method`` (:func:`rank_scores`). Unequal numbers of trials are given by ``missing=``
or ``counts=``. Of a mapping of names to matrices, or of labelled xarray or pandas data, the result is a
:class:`NamedRanking`.

:func:`rank_with_confidence` is the paper's ranking with credible intervals, :func:`pairwise_confidence` the
z-score and ranking confidence of every pair, :func:`kendall_tau_b` the agreement of two rankings.
:func:`transfer` ranks early, with the help of earlier results of the same models.
"""

from typing import TYPE_CHECKING

from scorio._names import elsewhere
from scorio.rank import eval_ranking
from scorio.rank._confidence import (
    PairwiseConfidence,
    pairwise_confidence,
    rank_with_confidence,
    ranking_confidence,
)
from scorio.rank._fitting import (
    CauchyPrior,
    CustomPrior,
    EmpiricalPrior,
    GaussianPrior,
    LaplacePrior,
    Prior,
    UniformPrior,
)
from scorio.rank._glicko import glicko
from scorio.rank._guessing import rasch_3pl, rasch_3pl_map
from scorio.rank._irt import rasch, rasch_2pl, rasch_2pl_map, rasch_map
from scorio.rank._kendall import kendall_tau_b
from scorio.rank._marginal import rasch_mml, rasch_mml_credible
from scorio.rank._pairwise import (
    bradley_terry,
    bradley_terry_davidson,
    bradley_terry_davidson_map,
    bradley_terry_map,
    plackett_luce,
    plackett_luce_map,
    rao_kupper,
    rao_kupper_map,
)
from scorio.rank._ranked import NamedRanking, Rated, ScoredItems, ScoredRanks
from scorio.rank._ratings import elo, pagerank, rank_centrality
from scorio.rank._ties import rank_scores
from scorio.rank._transfer import TransferPosterior, transfer, transfer_posterior
from scorio.rank._trueskill import trueskill
from scorio.rank._voting import borda, copeland, kemeny_young, ranked_pairs, schulze, win_rate
from scorio.rank.eval_ranking import (
    auc_at_k,
    avg,
    bayes,
    g_pass_at_k,
    g_pass_at_k_tau,
    geo_spectrum_at_k,
    geo_spectrum_star_at_k,
    geom_at_k,
    geom_ds_at_k,
    maj_at_k,
    max_at_k,
    mg_pass_at_k,
    pass_at_k,
    pass_hat_k,
    threshold_spectrum_at_k,
    unanimous_at_k,
)

__all__ = [
    "CauchyPrior",
    "CustomPrior",
    "EmpiricalPrior",
    "GaussianPrior",
    "LaplacePrior",
    "NamedRanking",
    "PairwiseConfidence",
    "Prior",
    "Rated",
    "ScoredItems",
    "ScoredRanks",
    "TransferPosterior",
    "UniformPrior",
    "auc_at_k",
    "avg",
    "bayes",
    "borda",
    "bradley_terry",
    "bradley_terry_davidson",
    "bradley_terry_davidson_map",
    "bradley_terry_map",
    "copeland",
    "elo",
    "eval_ranking",
    "g_pass_at_k",
    "g_pass_at_k_tau",
    "geo_spectrum_at_k",
    "geo_spectrum_star_at_k",
    "geom_at_k",
    "geom_ds_at_k",
    "glicko",
    "kemeny_young",
    "kendall_tau_b",
    "maj_at_k",
    "max_at_k",
    "mg_pass_at_k",
    "pagerank",
    "pairwise_confidence",
    "pass_at_k",
    "pass_hat_k",
    "plackett_luce",
    "plackett_luce_map",
    "rank_centrality",
    "rank_scores",
    "rank_with_confidence",
    "ranked_pairs",
    "ranking_confidence",
    "rao_kupper",
    "rao_kupper_map",
    "rasch",
    "rasch_2pl",
    "rasch_2pl_map",
    "rasch_3pl",
    "rasch_3pl_map",
    "rasch_map",
    "rasch_mml",
    "rasch_mml_credible",
    "schulze",
    "threshold_spectrum_at_k",
    "transfer",
    "transfer_posterior",
    "trueskill",
    "unanimous_at_k",
    "win_rate",
]

if not TYPE_CHECKING:
    __getattr__ = elsewhere(__name__)
