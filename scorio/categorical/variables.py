"""The paper's rubric variables and thresholds (Table 4) as data.

Conditions are written in the language of :mod:`scorio.categorical.conditions`. Source: Hariri, Samandar,
Hinczewski and Chaudhary (2026), Don't Pass@k, arXiv:2510.04265, appendix D.
"""

from __future__ import annotations

from collections.abc import Mapping

RUBRIC_VARIABLES: Mapping[str, object] = {
    # The verifier's clause counts only where a verifier was run: without one, degenerate output alone
    # makes an attempt invalid, and the schemas that ask nothing else of a verifier stay usable.
    "invalid": {
        "any": [
            {"signal": "repeated_pattern", "equals": 1},
            {"if_known": {"signal": "verifier_c", "at_least": 0.5}},
        ]
    },
    "correct": {"signal": "is_correct", "at_least": 0.5},
    "wrong": {"signal": "is_correct", "below": 0.5},
    "high_conf": {"signal": "completion_bpt", "at_most": "tau_high"},
    "low_conf": {"signal": "completion_bpt", "above": "tau_high"},
    "wrong_high_conf": {"all": ["wrong", {"signal": "completion_bpt", "at_most": "tau_low_wrong"}]},
    "ood": {"signal": "prompt_bpt", "at_least": "tau_prompt"},
    "ind": {"signal": "prompt_bpt", "below": "tau_prompt"},
    "economical": {"signal": "token_ratio", "at_most": "len_p33"},
    "moderate": {"signal": "token_ratio", "above": "len_p33", "at_most": "len_p66"},
    "verbose": {"signal": "token_ratio", "above": "len_p66"},
    "boxed": {"signal": "has_box", "at_least": 0.5},
    "unboxed": {"signal": "has_box", "below": 0.5},
    "A_high": {"signal": "verifier_a", "at_least": 0.6},
    # Table 5 grades correct answers by confidence in three levels; Table 4 gives their two cut points
    # (corr_p33, corr_p66) without naming the levels.
    "corr_high_conf": {"signal": "completion_bpt", "at_most": "corr_p33"},
    "corr_mid_conf": {"signal": "completion_bpt", "above": "corr_p33", "at_most": "corr_p66"},
    "corr_low_conf": {"signal": "completion_bpt", "above": "corr_p66"},
}
"""Rubric variables: name to condition."""

THRESHOLD_RULES: Mapping[str, object] = {
    "tau_high": {"signal": "completion_bpt", "quantile": 0.40},
    "tau_low_wrong": {"signal": "completion_bpt", "quantile": 0.60, "among": "wrong"},
    "tau_prompt": {"signal": "prompt_bpt", "quantile": 0.90},
    "len_p33": {"signal": "token_ratio", "quantile": 0.33},
    "len_p66": {"signal": "token_ratio", "quantile": 0.66},
    "corr_p33": {"signal": "completion_bpt", "quantile": 0.33, "among": "correct"},
    "corr_p66": {"signal": "completion_bpt", "quantile": 0.66, "among": "correct"},
}
"""Thresholds: name to the signal and quantile they are, and among which attempts."""
