"""One function that runs: open, replay, audit, probe, ask, watch, report."""

COLLECT_AFTER = 20_000
"""Objects after which a garbage collection looks for rings, 700 by default: trials in flight are many, and
hardly any are rings."""
