"""``adaptive-eval check``: claims about a run, as exit codes for CI."""

from pathlib import Path
from typing import Any

import click

from adaptive_eval.cli.options import PATH, POSITIVE, SHARE, named, option
from adaptive_eval.errors import UsageError
from adaptive_eval.stops import ENDED_FIRST, FAILED, REACHED
from adaptive_eval.views.inert import inert


@named(
    "check",
    "runs/nightly --not-worse candidate:production --margin 0.02",
    "runs/nightly --at-least candidate:0.8",
    "runs/nightly --each-question '8 of 10' --model candidate",
)
@click.argument("run", type=PATH, metavar="RUN")
@option("--not-worse NEW:OLD …", "NEW is not worse than OLD. Repeatable.")
@option(
    "--margin N",
    "Margin for --not-worse, in score units. Default: that of the goal, or the equivalence margin.",
    POSITIVE,
)
@option("--at-least MODEL:SCORE …", "MODEL scores at least SCORE. Repeatable.")
@option("--each-question RULE", "To each question so many of the first answers are right, such as '8 of 10'.")
@option("--model NAME", "Model of --each-question. Default: every model.")
@option("--confidence P", "Claim of --each-question the share of right answers, at this confidence.", SHARE)
def command(
    run: Path, not_worse: tuple[str, ...], margin: float | None, at_least: tuple[str, ...], **each: Any
) -> int:
    """Say whether claims about the models of the run in the directory RUN hold.

    All stored answers are read, by the evidence that the goals not-worse and threshold decide by. The
    confidence is that of the run, at every look; several claims share it. Without a claim, those of the goal
    are checked. Exit codes: 0 all hold; 5 one does not; 3 not decided.
    """
    from adaptive_eval.run import claims
    from adaptive_eval.run.each_question import each_question

    results = claims.results_of(run)
    for words in results.warnings:
        if getattr(words, "code", "") == claims.STORED_RESULTS:
            click.echo(f"Warning: {inert(words)}", err=True)
    names = [line.model for line in results.models]
    asked: list[claims.Asked] = [claims.NotWorse(*_two(text, names), margin) for text in not_worse]
    for text in at_least:
        model, _, score = text.rpartition(":")
        try:
            value = float(score)
        except ValueError:
            raise UsageError(f"--at-least {text!r} is not MODEL:SCORE, such as candidate:0.8") from None
        asked.append(claims.AtLeast(model, value))
    rule = each["each_question"]
    model = each["model"]
    confidence = each["confidence"]
    if rule is None and not (model is None and confidence is None):
        raise UsageError("--model and --confidence are about --each-question RIGHT of ANSWERS; give it")
    if rule is not None:
        found = each_question(run, rule, model, confidence)
    else:
        found = []
    if asked or rule is None:
        found += claims.check(run, asked)
    for claim in found:
        result = {True: "holds      ", False: "FAILS      ", None: "undecided  "}[claim.holds]
        click.echo(result + inert(claim.text))
    holds = [claim.holds for claim in found]
    if False in holds:
        return FAILED
    if None in holds:
        return ENDED_FIRST
    return REACHED


def _two(text: str, names: list[str]) -> tuple[str, str]:
    """Return the two models named; a name may itself have a colon in it."""
    parts = text.split(":")
    for cut in range(1, len(parts)):
        new, old = ":".join(parts[:cut]), ":".join(parts[cut:])
        if new in names and old in names:
            return new, old
    raise UsageError(f"--not-worse {text!r} is not NEW:OLD with two of {', '.join(map(inert, names))}")
