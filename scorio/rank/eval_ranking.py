"""The rankings by metrics, under the name that their module has in the published package."""

from scorio.rank._metrics import g_pass_at_k_tau, mg_pass_at_k, pass_at_k, pass_hat_k
from scorio.rank._rewards import avg, bayes

__all__ = ["avg", "bayes", "g_pass_at_k_tau", "mg_pass_at_k", "pass_at_k", "pass_hat_k"]
