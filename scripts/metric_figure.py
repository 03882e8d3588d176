"""Draw docs/images/metrics.svg: what each metric makes of a question's chance of a right answer."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from scorio import eval as metrics
from scorio.study.paper import Chart

K, TRIALS = 8, 1000
CURVES: dict[str, Callable[[list[list[int]]], Any]] = {
    "avg, Bayes": lambda counts: metrics.avg(None, counts=counts)[0],
    "Pass@8": lambda counts: metrics.pass_at_k(None, K, counts=counts),
    "AUC@8": lambda counts: metrics.auc_at_k(None, K, counts=counts),
    "Maj@8": lambda counts: metrics.maj_at_k(None, K, counts=counts),
    "G-Pass@8, tau 0.5": lambda counts: metrics.g_pass_at_k_tau(None, K, 0.5, counts=counts),
    "mG-Pass@8": lambda counts: metrics.mg_pass_at_k(None, K, counts=counts),
    "Geom@8": lambda counts: metrics.geom_at_k(None, K, counts=counts),
    "GeoSpectrum*@8": lambda counts: metrics.geo_spectrum_star_at_k(None, K, counts=counts),
    "Pass^8": lambda counts: metrics.pass_hat_k(None, K, counts=counts),
}

right = np.arange(0, TRIALS + 1, 10)
lines = {
    name: (right / TRIALS, [curve([[TRIALS - c, c]]) for c in right.tolist()])
    for name, curve in CURVES.items()
}
target = Path(__file__).parent.parent / "docs" / "images" / "metrics.svg"
chart = Chart("One question", "chance p of a right answer", "value", lines)
chart.save(target)
