"""``adaptive-eval check``: claims about a run, as exit codes for CI."""

from pathlib import Path

import click

from adaptive_eval.cli.options import NOT_NEGATIVE, PATH, named, option
from adaptive_eval.errors import UsageError
from adaptive_eval.run import claims
from adaptive_eval.stops import ENDED_FIRST, FAILED, REACHED


@named(
    "check",
    "runs/nightly --not-worse candidate:production --margin 0.02",
    "runs/nightly --at-least candidate:0.8",
)
@click.argument("run", type=PATH, metavar="RUN")
@option("--not-worse NEW:OLD …", "NEW is not worse than OLD. Repeatable.")
@option("--margin N", "Margin for --not-worse, in score units.", NOT_NEGATIVE, default=0.0)
@option("--at-least MODEL:SCORE …", "MODEL scores at least SCORE. Repeatable.")
def command(run: Path, not_worse: tuple[str, ...], margin: float, at_least: tuple[str, ...]) -> int:
    """Say whether claims about the models of the run in the directory RUN hold.

    The confidence is that of the run, at every look. Exit codes: 0 all hold; 5 one does not; 3 not decided.
    """
    if not (not_worse or at_least):
        raise UsageError("say what is to be checked: --not-worse NEW:OLD, or --at-least MODEL:SCORE")
    results = claims.results_of(run)
    names = [line.model for line in results.models]
    found: list[claims.Claim] = []
    for text in not_worse:
        new, old = _two(text, names)
        found.append(claims.not_worse(results, new, old, margin))
    for text in at_least:
        model, _, score = text.rpartition(":")
        try:
            value = float(score)
        except ValueError:
            raise UsageError(f"--at-least {text!r} is not MODEL:SCORE, such as candidate:0.8") from None
        found.append(claims.at_least(results, model, value))
    for claim in found:
        click.echo({True: "holds      ", False: "FAILS      ", None: "undecided  "}[claim.holds] + claim.text)
    if any(claim.holds is False for claim in found):
        return FAILED
    return ENDED_FIRST if any(claim.holds is None for claim in found) else REACHED


def _two(text: str, names: list[str]) -> tuple[str, str]:
    """Return the two models named; a name may itself have a colon in it."""
    parts = text.split(":")
    for cut in range(1, len(parts)):
        new, old = ":".join(parts[:cut]), ":".join(parts[cut:])
        if new in names and old in names:
            return new, old
    raise UsageError(f"--not-worse {text!r} is not NEW:OLD with two of {', '.join(names)}")
