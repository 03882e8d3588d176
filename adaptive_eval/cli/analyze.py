"""``adaptive-eval analyze``: results of other tools, ranked at once and sequentially, or written as a run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from adaptive_eval.cli.options import (
    FOLDER,
    PATH,
    Number,
    choices_of,
    decision_options,
    flag,
    log_options,
    named,
    numbers,
    option,
    refuse_options,
    say_read_again,
    session_spec,
)
from adaptive_eval.cli.simulating import (
    per_cent,
    print_json,
    print_table,
    progress_bar,
    simulation_options,
    simulator_of,
)
from adaptive_eval.errors import UsageError
from adaptive_eval.stops import STOPS
from adaptive_eval.views.numbers import count, fixed

if TYPE_CHECKING:  # numpy and all that is built on it; --help needs none of it
    from adaptive_eval.core.spec import SessionSpec, TaskSpec
    from adaptive_eval.interop.found import Choices, Found
    from adaptive_eval.interop.import_run import Imported
    from adaptive_eval.simulate.analysis import Analysis, FixedPair

_PAIRS_SHOWN = 45
"""Pairs up to which a table shows each."""


@named(
    "analyze",
    "lm_eval_out/ logs/*.eval",
    "trials.csv --goal baseline=old --equivalence 0.02 --write runs/table",
    "leaderboard.jsonl --map question=task_id,score=passed --model mine --preview",
)
@click.argument("recorded", nargs=-1, type=PATH, metavar="[FILES…]")
@option(
    "--write RUN",
    "Write the results as a run in the directory RUN, which must not exist, and report that.",
    FOLDER,
)
@flag("--preview", "Show how the first trials are read, and do nothing else.")
@flag(
    "--fixed",
    "The number of trials was fixed before anybody looked: the verdict is that of one look (McNemar or "
    "paired t, with Holm).",
)
@log_options
@option("--right-from X", "Lowest score that counts as right.", Number(0.0, 1.0))
@decision_options
@simulation_options(None)
def command(**options: Any) -> None:
    """Rank recorded outcomes, and show how many a sequential run would have needed.

    FILES are files, or folders that a tool wrote; their format is recognised by content. Tools: Inspect,
    lm-evaluation-harness, HELM, OpenCompass, lighteval, promptfoo, SWE-bench and others (docs/interop.md).
    Tables have a row a trial (CSV, JSON, JSONL, Parquet; --map names their columns). Several files become one
    table of models, questions and trials. Its replays are 100, and fewer for more than 44 models.

    --write makes a run of them, for report, monitor, samples and others. Any mistake is an error, and then
    nothing is written.
    """
    options["recorded"] = (*options["recorded"], *choices_of(options).models)
    if not options["recorded"]:
        raise UsageError("say what to read: FILES, or --model NAME=FILE")
    if options["preview"]:
        preview(options)
        return
    if options["write"] is not None:
        unused = ("only", "fixed", "replicates", "workers", "ray")
        refuse_options(unused, "does nothing to a run that is written; leave it out")
        write_run(options)
        return
    refuse_options(("right_from",), "is for a run that is written; give --write too, or leave it out")
    _analyze(options)


def _analyze(options: Mapping[str, Any]) -> None:
    from adaptive_eval.cli.options import replayed
    from adaptive_eval.simulate.analysis import analyze, fixed_pairs

    spec, answers = replayed(options)
    pairs = fixed_pairs(answers.recorded, spec) if options["fixed"] else None
    with simulator_of(options, replays(len(spec.models))) as simulator:
        analysis = analyze(answers.recorded, spec, simulator)
    if options["as_json"]:
        fixed = None if pairs is None else [asdict(pair) for pair in pairs]
        print_json({**_as_data(analysis), "verdict": "anytime" if fixed is None else "fixed", "fixed": fixed})
        return
    _show(spec, analysis)
    if pairs is not None:
        _show_fixed(pairs, spec.stopping.confidence)
    elif analysis.replay.verdict.size:
        winners = _verdicts(analysis)[0]
        click.echo(f"verdict: {winners} of {analysis.replay.verdict.size} pairs have a winner, at any look")


def replays(models: int) -> int:
    """Return how many shuffled replays end in good time.

    Examples
    --------
    >>> replays(8), replays(60), replays(300)
    (100, 55, 2)
    """
    return min(100, max(2, 200_000 // models**2))


def _show_fixed(pairs: Sequence[FixedPair], confidence: float) -> None:
    if len(pairs) <= _PAIRS_SHOWN:
        rows = [
            (pair.first, pair.second, f"{pair.difference:+.4f}", f"{pair.p_value:.3g}", pair.winner or "open")
            for pair in pairs
        ]
        print_table(("<pair", "<and", "difference", "p", "<winner"), rows)
    won = sum(pair.winner is not None for pair in pairs)
    tests = ", ".join(sorted({pair.test for pair in pairs}))
    click.echo(
        f"verdict: {won} of {len(pairs)} pairs have a winner ({tests} with Holm at confidence "
        f"{confidence:g}); it holds if the number of trials was fixed before anybody looked"
    )


def _show(spec: SessionSpec, analysis: Analysis) -> None:

    shuffled, replay = analysis.shuffled, analysis.replay
    models, questions = count(len(spec.models), "model"), count(spec.questions, "question")
    click.echo(f"{models}, {questions}, {count(analysis.recorded, 'trial')}\n")
    rows = []
    for line in analysis.models:
        trials = f"{line.trials:,}", f"{line.used:,}", f"{line.used_shuffled:,.0f}"
        figures = [fixed(value, 4) for value in (line.score, line.mu, line.sigma)]
        ranks = str(line.fixed_rank), f"{line.rank_low}–{line.rank_high}"
        rows.append((line.model, *figures, *ranks, *trials))
    print_table(
        ("<model", "score", "Bayes@N", "± sigma", "rank", "rank interval", "trials", "needed", "shuffled"),
        rows,
    )
    click.echo(
        "rank: all trials, one look; neighbours below z = 1.645 share a rank (the paper's credible-interval "
        "ties; scores that are numbers have none).\nrank interval, needed: the sequential run in one "
        "order; its intervals hold together at "
        f"confidence {spec.stopping.confidence:g}.\nshuffled: trials needed on average over "
        f"{shuffled.replicates} replays in random order.\n"
    )
    if not replay.verdict.size:
        click.echo("There is one model: nothing is compared.")
        return
    total = int(replay.trials.sum())
    shares = [per_cent(shuffled.share(kind)) for kind in ("decided", "tie", "open")]
    print_table(
        ("<the sequential run", "<in one order", "<shuffled"),
        [
            ("ends", STOPS[replay.reason].replayed, _endings(analysis)),
            (
                "trials",
                f"{total:,}: {per_cent(1 - total / analysis.recorded)} saved",
                f"{shuffled.total.mean():,.0f}: {per_cent(analysis.saved)} saved; 80 % of replays "
                f"{shuffled.trials_quantile(0.1):,.0f} to {shuffled.trials_quantile(0.9):,.0f}",
            ),
            (
                "pairs with a winner, tied, undecided",
                ", ".join(map(str, _verdicts(analysis))),
                ", ".join(shares),
            ),
            ("any winner against the all-trial means", "", str(shuffled.family_wise)),
        ],
    )


def _verdicts(analysis: Analysis) -> tuple[int, int, int]:
    verdict = analysis.replay.verdict
    return int((abs(verdict) == 1).sum()), int((verdict == 2).sum()), int((verdict == 0).sum())


def _endings(analysis: Analysis) -> str:
    number = analysis.shuffled.replicates
    return "; ".join(
        f"{per_cent(count / number)} {STOPS[why].replayed}"
        for why, count in analysis.shuffled.reasons.items()
    )


def _as_data(analysis: Analysis) -> dict[str, Any]:
    shuffled, replay = analysis.shuffled, analysis.replay
    winners, ties, undecided = _verdicts(analysis)
    return {
        "recorded_trials": analysis.recorded,
        "models": [asdict(line) for line in analysis.models],
        "in_one_order": {
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


_PREVIEWED = 10
"""Trials that a preview shows of each log."""


def preview(options: Mapping[str, Any]) -> None:
    """Show how the first trials of each log are read, and count all of them."""
    from adaptive_eval.interop.found import checked
    from adaptive_eval.interop.recorded_files import open_logs
    from adaptive_eval.views.inert import inert

    for log in open_logs(options["recorded"], choices_of(options)):
        models, questions, trials = set(), set(), 0
        rows: list[list[str]] = []
        for trials, found in enumerate(checked(log), start=1):
            models.add(found.model)
            questions.add((found.task, found.question))
            if trials <= _PREVIEWED:
                number = "next" if found.number is None else str(found.number)
                cells = (found.model, found.task, found.question, number, _result_of(found), found.text[:40])
                rows.append(list(map(inert, cells)))
        words = (count(len(models), "model"), count(len(questions), "question"), count(trials, "trial"))
        click.echo(f"{log.path} ({log.format}): {', '.join(words)}")
        print_table(("<model", "<task", "<question", "<trial", "<result", "<text"), rows)


def write_run(options: Mapping[str, Any]) -> None:
    """Write the results as a run."""
    from adaptive_eval.interop.import_run import import_logs
    from adaptive_eval.interop.recorded_files import open_logs

    weights = None if options["weights"] is None else numbers(options["weights"], "--weights")
    choices = choices_of(options)
    weights = choices.range or weights
    logs = open_logs(options["recorded"], choices)
    say_read_again(logs)
    with progress_bar() as report:
        imported = import_logs(
            logs,
            options["write"],
            right_from=options["right_from"],
            weights=weights,
            decide=partial(_session, options, choices),
            progress=report,
        )
    _show_written(imported, len(logs), as_json=options["as_json"])


def _result_of(found: Found) -> str:
    if found.missing is not None:
        return f"missing: {found.missing}"
    return f"score {found.score:g}" if found.score is not None else f"category {found.category}"


def _session(
    options: Mapping[str, Any], choices: Choices, models: tuple[str, ...], tasks: tuple[TaskSpec, ...]
) -> SessionSpec:
    """Return the session that decides; one model alone is only estimated, unless something else is asked."""
    from adaptive_eval.interop.import_run import default_spec

    choices.require_renamed(models)
    if len(models) == 1 and options["goal"] in (None, "ranking"):
        return default_spec(models, tasks)
    return session_spec(options, models, tasks)


def _show_written(imported: Imported, logs: int, *, as_json: bool) -> None:
    from adaptive_eval.views.headline import headline

    verdict = headline(imported.results)
    if as_json:
        data = {
            "run": str(imported.directory),
            "logs": logs,
            "trials": imported.trials,
            "missing": imported.missing,
            "copies": imported.copies,
            "absent": imported.absent,
            "notes": list(imported.notes),
            "models": {line.model: line.score for line in imported.results.models},
            "verdict": verdict,
        }
        click.echo(json.dumps(data, indent=2))
        return
    lacking = imported.missing - imported.copies
    missing = f", {lacking:,} without an answer" if lacking else ""
    trials = count(imported.trials, "trial")
    click.echo(f"{imported.directory}: {trials}{missing}, from {count(logs, 'log')}.")
    for note in imported.notes:
        click.echo(f"note: {note}")
    if imported.absent:
        trials = count(imported.absent, "trial")
        click.echo(f"note: the models' trial sequences have {trials} that no log has")
    click.echo(verdict)
    click.echo(f"Report: adaptive-eval report {imported.directory}")
