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

from scorio._names import lazy

__all__, __getattr__, __dir__ = lazy(__name__, __file__)
