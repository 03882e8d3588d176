"""Is anything broken? What a reader should know besides the verdicts, in phrases."""

from __future__ import annotations

from adaptive_eval.monitor.snapshot import RunView
from adaptive_eval.monitor.web.tally import Tally
from adaptive_eval.text.numbers import count, listing

__all__ = ["problems"]


def problems(view: RunView, tally: Tally) -> list[str]:
    """Return everything that is not as it should be, the worst first; empty where nothing is.

    Parameters
    ----------
    view : RunView
        The run now.
    tally : Tally
        Its trials, as far as they have been counted.

    Examples
    --------
    >>> from adaptive_eval.monitor.snapshot import RunHeader, waiting_view
    >>> problems(waiting_view(RunHeader("demo")), Tally())
    []
    """
    found = []
    if view.state == "interrupted":
        found.append("No process is running this run: continue it with adaptive-eval resume.")
    stopped = [line.model for line in view.models if line.state == "stopped"]
    if stopped:
        found.append(f"{listing(stopped)} {'was' if len(stopped) == 1 else 'were'} stopped by errors.")
    for health in view.endpoints:
        if health.state in ("out", "joining", "refused") and view.state == "running":
            words = (
                "refuses it" if health.state == "refused" else "does not answer; it is asked again and again"
            )
            found.append(f"The server {health.endpoint} of {health.model} {words}.")
    errors = sum(n for health in view.endpoints for n in health.errors.values())
    if errors:
        failing = [health.model for health in view.endpoints if any(health.errors.values())]
        found.append(
            f"{count(errors, 'failed request')} at the endpoints of {listing(sorted(set(failing)))}."
        )
    missing = sum(line.missing for line in view.models)
    if missing:
        found.append(f"{count(missing, 'trial')} without an answer; they are never scored.")
    truncated = int(tally.truncated.sum())
    if truncated:
        found.append(f"{count(truncated, 'answer')} cut off at the token limit; they are scored like others.")
    return [*found, *view.warnings]
