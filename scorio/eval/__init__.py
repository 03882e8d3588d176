"""Evaluation metrics of one outcome matrix.

``R`` is an (M, N) matrix: rows are questions, columns are trials. Binary metrics take outcomes 0 and 1;
categorical metrics take categories ``0..C`` with a reward vector ``w`` of length ``C + 1``. One-dimensional
input is one question. Point estimators return a float, `bayes` and `avg` a pair ``(mu, sigma)``
(:class:`Estimate`); the ``*_ci`` functions return ``(mu, sigma, lo, hi)`` (:class:`Interval`), a
normal-approximation credible interval around the posterior mean of the metric on new trials. Input is never
modified; bad input raises ValueError naming the argument and its value.

Unequal trial counts
--------------------
Every function also takes questions with unequal numbers of trials, which adaptive runs produce, by keyword:

counts : array_like of int, shape (M, C + 1)
    Trials of each question in each category, for binary metrics wrong and correct ones; `R` is then None.
missing : number or array_like of bool
    Marks the trials of `R` that were not made: a value, such as -1 or nan, or a mask of the shape of `R`.
question_weights : array_like of float, shape (M,)
    Weights of the questions in every mean over questions, at least 0 with sum 1; by default ``1 / M`` each. A
    macro average over T tasks has weights ``1 / (T M_t)``.

Every question's own number of trials ``n_q`` takes the place of N, and a metric of the dataset is the mean
over questions, whatever their ``n_q``. An estimator that draws `k` trials needs ``n_q >= k`` everywhere.
Posteriors exist for any ``n_q``, also 0; if the reference limits a ``*_ci`` function to ``k <= N``, N is
the largest ``n_q``. Equal counts give the same results to the last digit in whichever form they are passed.

Examples
--------
>>> from scorio import eval
>>> eval.pass_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2)
0.95
>>> eval.pass_at_k([[0, 1, 1, 0, 1], [1, 1, -1, 1, 0]], 2, missing=-1)
0.95
>>> eval.pass_at_k(None, 2, counts=[[2, 3], [1, 3]])
0.95
"""

from typing import TYPE_CHECKING

from scorio._names import lazy

if TYPE_CHECKING:
    from scorio.eval._bayes import avg as avg
    from scorio.eval._bayes import avg_ci as avg_ci
    from scorio.eval._bayes import bayes as bayes
    from scorio.eval._bayes import bayes_ci as bayes_ci
    from scorio.eval._drawn import auc_at_k as auc_at_k
    from scorio.eval._drawn import auc_at_k_ci as auc_at_k_ci
    from scorio.eval._drawn import g_pass_at_k as g_pass_at_k
    from scorio.eval._drawn import g_pass_at_k_ci as g_pass_at_k_ci
    from scorio.eval._drawn import geo_spectrum_star_at_k as geo_spectrum_star_at_k
    from scorio.eval._drawn import geo_spectrum_star_at_k_ci as geo_spectrum_star_at_k_ci
    from scorio.eval._drawn import maj_at_k as maj_at_k
    from scorio.eval._drawn import maj_at_k_ci as maj_at_k_ci
    from scorio.eval._drawn import mg_pass_at_k as mg_pass_at_k
    from scorio.eval._drawn import mg_pass_at_k_ci as mg_pass_at_k_ci
    from scorio.eval._drawn import pass_at_k as pass_at_k
    from scorio.eval._drawn import pass_at_k_ci as pass_at_k_ci
    from scorio.eval._drawn import pass_hat_k as pass_hat_k
    from scorio.eval._drawn import pass_hat_k_ci as pass_hat_k_ci
    from scorio.eval._drawn import unanimous_at_k as unanimous_at_k
    from scorio.eval._drawn import unanimous_at_k_ci as unanimous_at_k_ci
    from scorio.eval._geom import geom_at_k as geom_at_k
    from scorio.eval._geom import geom_at_k_ci as geom_at_k_ci
    from scorio.eval._geom import geom_ds_at_k as geom_ds_at_k
    from scorio.eval._geom import geom_ds_at_k_ci as geom_ds_at_k_ci
    from scorio.eval._interval import Estimate as Estimate
    from scorio.eval._interval import Interval as Interval
    from scorio.eval._max_k import max_at_k as max_at_k
    from scorio.eval._max_k import max_at_k_ci as max_at_k_ci
    from scorio.eval._tailpass import TailPassProfile as TailPassProfile
    from scorio.eval._tailpass import tailpass as tailpass
    from scorio.eval._tailpass import tailpass_empirical as tailpass_empirical
    from scorio.eval._thresholds import g_pass_at_k_tau as g_pass_at_k_tau
    from scorio.eval._thresholds import g_pass_at_k_tau_ci as g_pass_at_k_tau_ci
    from scorio.eval._thresholds import geo_spectrum_at_k as geo_spectrum_at_k
    from scorio.eval._thresholds import geo_spectrum_at_k_ci as geo_spectrum_at_k_ci
    from scorio.eval._thresholds import threshold_spectrum_at_k as threshold_spectrum_at_k
    from scorio.eval._thresholds import threshold_spectrum_at_k_ci as threshold_spectrum_at_k_ci

_HOMES = {
    "scorio.eval._bayes": (
        "avg",
        "avg_ci",
        "bayes",
        "bayes_ci",
    ),
    "scorio.eval._drawn": (
        "auc_at_k",
        "auc_at_k_ci",
        "g_pass_at_k",
        "g_pass_at_k_ci",
        "geo_spectrum_star_at_k",
        "geo_spectrum_star_at_k_ci",
        "maj_at_k",
        "maj_at_k_ci",
        "mg_pass_at_k",
        "mg_pass_at_k_ci",
        "pass_at_k",
        "pass_at_k_ci",
        "pass_hat_k",
        "pass_hat_k_ci",
        "unanimous_at_k",
        "unanimous_at_k_ci",
    ),
    "scorio.eval._geom": (
        "geom_at_k",
        "geom_at_k_ci",
        "geom_ds_at_k",
        "geom_ds_at_k_ci",
    ),
    "scorio.eval._interval": (
        "Estimate",
        "Interval",
    ),
    "scorio.eval._max_k": (
        "max_at_k",
        "max_at_k_ci",
    ),
    "scorio.eval._tailpass": (
        "TailPassProfile",
        "tailpass",
        "tailpass_empirical",
    ),
    "scorio.eval._thresholds": (
        "g_pass_at_k_tau",
        "g_pass_at_k_tau_ci",
        "geo_spectrum_at_k",
        "geo_spectrum_at_k_ci",
        "threshold_spectrum_at_k",
        "threshold_spectrum_at_k_ci",
    ),
}
"""Where each name is defined: it is imported when it is asked for."""

__all__ = [name for names in _HOMES.values() for name in names]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(__name__, _HOMES)
