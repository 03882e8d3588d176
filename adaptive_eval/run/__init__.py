"""One function that runs: open, replay, audit, probe, ask, watch, report."""
