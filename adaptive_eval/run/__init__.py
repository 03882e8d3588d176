"""One function that runs: open, replay, audit, probe, pilot, ask, watch, report."""
