"""``adaptive-eval analyze``: recorded outcomes, ranked at once and as a sequential run would have."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from adaptive_eval.cli.options import log_options
from adaptive_eval.cli.simulating import (
    decision_options,
    per_cent,
    print_json,
    print_table,
    progress_bar,
    simulation_options,
    workers_of,
)

if TYPE_CHECKING:  # numpy and all that is built on it; --help needs none of it
    from adaptive_eval.core.spec import SessionSpec
    from adaptive_eval.simulate.analysis import Analysis


@click.command("analyze")
@click.argument("recorded", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILES…")
@log_options
@decision_options(watched=False)
@simulation_options(100)
def command(**options: Any) -> None:
    """Rank recorded outcomes, and show how many a sequential run would have needed.

    FILES are npz archives (R: models x questions x trials), JSONL, CSV or Parquet files with the columns
    model, question, category (or correct), optionally task and trial; the directories of runs; or logs of
    Inspect, lm-evaluation-harness and others, as import takes them. Several are read as one table.
    """
    from adaptive_eval.cli.simulated_run import replayed
    from adaptive_eval.simulate.analysis import analyze

    spec, answers = replayed(options)
    with workers_of(options) as workers, progress_bar() as report:
        analysis = analyze(
            answers.recorded,
            spec,
            options["replicates"],
            options["seed"],
            workers,
            partial(report, "shuffled replays"),
        )
    if options["as_json"]:
        print_json(_as_data(analysis))
    else:
        _show(spec, analysis)


def _show(spec: SessionSpec, analysis: Analysis) -> None:
    shuffled, replay = analysis.shuffled, analysis.replay
    click.echo(f"{len(spec.models)} models, {spec.questions} questions, {analysis.recorded:,} trials\n")
    print_table(
        ("<model", "score", "Bayes@N", "± sigma", "rank", "rank interval", "trials", "needed", "shuffled"),
        [
            (
                line.model,
                f"{line.score:.4f}",
                f"{line.mu:.4f}",
                f"{line.sigma:.4f}",
                str(line.fixed_rank),
                f"{line.rank_low}–{line.rank_high}",
                f"{line.trials:,}",
                f"{line.used:,}",
                f"{line.used_shuffled:,.0f}",
            )
            for line in analysis.models
        ],
    )
    click.echo(
        "rank: all trials, one look; neighbours below z = 1.645 share a rank (the paper's credible-interval "
        "ties).\nrank interval, needed: the sequential run in recorded order; its intervals hold together at "
        f"confidence {spec.stopping.confidence:g}.\nshuffled: trials needed on average over "
        f"{shuffled.replicates} replays in random order.\n"
    )
    if not replay.verdict.size:
        click.echo("There is one model: nothing is compared.")
        return
    total = int(replay.trials.sum())
    print_table(
        ("<the sequential run", "<in recorded order", "<shuffled"),
        [
            ("ends", _ending(replay.reason), _endings(analysis)),
            (
                "trials",
                f"{total:,}: {per_cent(1 - total / analysis.recorded)} saved",
                f"{shuffled.total.mean():,.0f}: {per_cent(analysis.saved)} saved; 80 % of replays "
                f"{shuffled.trials_quantile(0.1):,.0f} to {shuffled.trials_quantile(0.9):,.0f}",
            ),
            (
                "pairs with a winner, tied, undecided",
                ", ".join(f"{count}" for count in _verdicts(analysis)),
                ", ".join(per_cent(shuffled.share(kind)) for kind in ("decided", "tie", "open")),
            ),
            ("any winner against the all-trial means", "", str(shuffled.family_wise)),
        ],
    )


def _verdicts(analysis: Analysis) -> tuple[int, int, int]:
    verdict = analysis.replay.verdict
    return int((abs(verdict) == 1).sum()), int((verdict == 2).sum()), int((verdict == 0).sum())


_ENDINGS = {
    "resolved": "everything decided",
    "partial": "trials ran out, some pairs undecided",
    "endpoints": "trials ran out, nothing decided",
    "max_passes": "trials ran out",
}


def _ending(reason: str) -> str:
    return _ENDINGS.get(reason, reason)


def _endings(analysis: Analysis) -> str:
    number = analysis.shuffled.replicates
    return "; ".join(
        f"{per_cent(count / number)} {_ending(why)}" for why, count in analysis.shuffled.reasons.items()
    )


def _as_data(analysis: Analysis) -> dict[str, Any]:
    shuffled, replay = analysis.shuffled, analysis.replay
    winners, ties, undecided = _verdicts(analysis)
    return {
        "recorded_trials": analysis.recorded,
        "models": [asdict(line) for line in analysis.models],
        "in_recorded_order": {
            "reason": replay.reason,
            "trials": int(replay.trials.sum()),
            "winners": winners,
            "ties": ties,
            "undecided": undecided,
        },
        "shuffled": {
            "replicates": shuffled.replicates,
            "reasons": shuffled.reasons,
            "mean_trials": float(shuffled.total.mean()),
            "saved": analysis.saved,
            "winners": shuffled.share("decided"),
            "ties": shuffled.share("tie"),
            "undecided": shuffled.share("open"),
            "any_wrong_winner": shuffled.family_wise.share,
            "pairs": shuffled.to_rows("pairs"),
        },
    }
