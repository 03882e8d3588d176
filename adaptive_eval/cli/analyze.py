"""``adaptive-eval analyze``: results of other tools, ranked at once and sequentially, or written as a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from adaptive_eval.cli.options import (
    FOLDER,
    PATH,
    NumberInRange,
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
from adaptive_eval.trial import FIXED
from adaptive_eval.views.inert import inert
from adaptive_eval.views.numbers import count, fixed, interval, signed, trimmed

if TYPE_CHECKING:  # numpy and all that is built on it; --help needs none of it
    from adaptive_eval.core.results import PairResult, Results
    from adaptive_eval.core.spec import SessionSpec, TaskSpec
    from adaptive_eval.interop.found import Found, ReadingOptions
    from adaptive_eval.interop.gather import CombinedLogs
    from adaptive_eval.interop.import_run import Imported
    from adaptive_eval.simulate.analysis import Analysis

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
    "The number of answers was fixed before anybody looked: the verdict of one look (McNemar or paired t, "
    "with Holm) comes first, even if models have different numbers of answers.",
)
@flag("--sequential", "Only the sequential replay: its verdict holds at any look.")
@log_options
@option("--right-from X", "Lowest score that counts as right.", NumberInRange(0.0, 1.0))
@decision_options
@simulation_options("Default: 100, and fewer for more than 14 models.")
def command(**options: Any) -> None:
    """Rank recorded outcomes, and show how many a sequential run would have needed.

    FILES are files, or folders that a tool wrote; their format is recognised by content. Tools: Inspect,
    lm-evaluation-harness, HELM, OpenCompass, lighteval, promptfoo, SWE-bench and others (docs/interop.md).
    Tables have a row a trial (CSV, JSON, JSONL, Parquet; --map names their columns). Several files become one
    table of models, questions and trials. Its replays are 100, and fewer for more than 14 models.

    --write makes a run of them, for report, check, samples and others, with the verdict that comes first.
    Any mistake is an error, and then nothing is written.
    """
    options["recorded"] = (*options["recorded"], *choices_of(options).models)
    if not options["recorded"]:
        raise UsageError("say what to read: FILES, or --model NAME=FILE")
    if options["preview"]:
        preview(options)
        return
    if options["write"] is not None:
        unused = ("only", "replicates", "workers", "ray")
        refuse_options(unused, "does nothing to a run that is written; leave it out")
        write_run(options)
        return
    refuse_options(("right_from",), "is for a run that is written; give --write too, or leave it out")
    _analyze(options)


def _analyze(options: Mapping[str, Any]) -> None:
    from adaptive_eval.cli.options import replayed
    from adaptive_eval.simulate.analysis import analyze, of_replay, one_look

    spec, answers = replayed(options)
    recorded = answers.recorded
    look = one_look(recorded, spec)
    is_fixed = is_one_look(options, recorded.rules, alike=recorded.alike)
    with simulator_of(options, replays(len(spec.models))) as simulator:
        analysis = analyze(recorded, spec, simulator)
    replayed_look = of_replay(look, analysis, spec)
    first = look if is_fixed else replayed_look
    if options["as_json"]:
        print_json({**_as_data(first, analysis), **_replay_data(analysis)})
        return
    _show_first(first, recorded.trials)
    if analysis.replay.verdict.size or not is_fixed:
        _show_sequential(replayed_look, analysis, second=is_fixed)
    if not (is_fixed or recorded.rules - {FIXED} or sequential_only(options)) and len(spec.models) > 1:
        click.echo(
            "Models have different numbers of answers. If these were fixed before anybody looked, --fixed "
            "gives the verdict of one look."
        )


def is_one_look(options: Mapping[str, Any], rules: frozenset[str], *, alike: bool) -> bool:
    """Return whether the verdict of one look comes first: the numbers of answers may have been fixed."""
    if sequential_only(options):
        return False
    watched = rules - {FIXED}  # the numbers of answers were chosen by looking
    return bool(options["fixed"]) or (alike and not watched)


def sequential_only(options: Mapping[str, Any]) -> bool:
    """Return whether the options ask for a rule that looks again and again; refuse two that disagree."""
    named = [text for text in options["overrides"] if text.startswith("stopping.rule=")]
    asked = ["--sequential"] * options["sequential"] + [f"-o {text}" for text in named]
    if options["fixed"] and asked:
        raise UsageError(
            f"--fixed is one look at all answers, and {asked[0]} looks at every step; leave one out"
        )
    return bool(asked)


def replays(models: int) -> int:
    """Return how many shuffled replays end in good time.

    Examples
    --------
    >>> replays(8), replays(30), replays(300)
    (100, 22, 2)
    """
    return min(100, max(2, 20_000 // models**2))


def _show_first(found: Results, trials: int) -> None:
    """Show the verdict, the models and the pairs of one look; of a sequential rule the models."""
    from adaptive_eval.views.headline import headline
    from adaptive_eval.views.verdicts import model_order, rank_column

    models = count(len(found.models), "model")
    questions = count(found.questions, "question")
    click.echo(f"{models}, {questions}, {count(trials, 'trial')}\n")
    if found.rule == FIXED:
        head = headline(found)
    else:
        head = _in_sequence(found, "At any look")
    click.echo(f"{inert(head)}\n")
    ranks = rank_column(found)
    level = f"{trimmed(100 * found.confidence)} % interval"
    rows = []
    for line in model_order(found):
        span = interval(line.score_low, line.score_high)
        rows.append((line.model, fixed(line.score), span, f"{line.trials:,}", ranks.of[line.model]))
    heading = "rank interval"
    if not ranks.ranked:
        heading = ranks.head
    print_table(("<model", "score", level, "trials", heading), rows)
    if found.rule == FIXED and 0 < len(found.pairs) <= _PAIRS_SHOWN:
        _show_pairs(found, level)
    click.echo("Each interval is of one look at all answers, by itself.\n")


def _show_pairs(found: Results, level: str) -> None:
    from adaptive_eval.views.verdicts import pair_order, verdict_words

    rows = []
    for pair in pair_order(found):
        words = verdict_words(pair.verdict, found.equivalence, pair.kind)
        p_value = ""
        if pair.p_value is not None:
            p_value = f"{pair.p_value:.2g}"
        span = interval(pair.difference_low, pair.difference_high, sign=pair.kind != "width")
        rows.append((pair.first, pair.second, signed(pair.difference), span, p_value, words))
    print_table(("<", "<against", "difference", level, "p", "<verdict"), rows)


def _show_sequential(found: Results, analysis: Analysis, *, second: bool) -> None:
    """Show how many trials a sequential run would have needed, and its verdict."""
    if second:
        click.echo(f"The same answers, read one after another by the rule {found.rule}:\n")
    shuffled, replay = analysis.shuffled, analysis.replay
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
        f"confidence {found.confidence:g}.\nshuffled: trials needed on average over "
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
    if second:
        click.echo(inert(_in_sequence(found, "In sequence, at any look")))


def _in_sequence(found: Results, begin: str) -> str:
    """Return the verdict of the sequential replay in one sentence; of zscore, that it promises nothing."""
    from adaptive_eval.views.headline import headline

    unknown = [
        replace(line, score_low=None, score_high=None) for line in found.models
    ]  # they are of one look
    words = headline(replace(found, models=tuple(unknown)))
    if found.rule == "zscore":
        begin = "By the rule zscore, which promises nothing at several looks"
    return f"{begin}: {words}"


def _verdicts(analysis: Analysis) -> tuple[int, int, int]:
    verdict = analysis.replay.verdict
    return int((abs(verdict) == 1).sum()), int((verdict == 2).sum()), int((verdict == 0).sum())


def _endings(analysis: Analysis) -> str:
    number = analysis.shuffled.replicates
    return "; ".join(
        f"{per_cent(count / number)} {STOPS[why].replayed}"
        for why, count in analysis.shuffled.reasons.items()
    )


def _as_data(found: Results, analysis: Analysis) -> dict[str, Any]:
    """Return the verdict that comes first, and of each model what the replay needed too."""
    from adaptive_eval.views.headline import headline
    from adaptive_eval.views.verdicts import model_order

    is_fixed = found.rule == FIXED
    sequential = {line.model: asdict(line) for line in analysis.models}
    models = []
    for line in model_order(found):
        shown = {name: getattr(line, name) for name in _MODEL_FIELDS}
        models.append({**sequential[line.model], **shown})
    data = {
        "recorded_trials": sum(line.trials for line in found.models),
        "verdict": "anytime",
        "rule": found.rule,
        "sentence": headline(found),
        "target": found.target,
        "models": models,
        "fixed": None,
    }
    if is_fixed:
        data |= {"verdict": FIXED, "fixed": list(map(_fixed_pair, found.pairs))}
    return data


_MODEL_FIELDS = ("model", "trials", "score", "score_low", "score_high", "rank_low", "rank_high")


def _fixed_pair(pair: PairResult) -> dict[str, Any]:
    winner = {"better": pair.first, "worse": pair.second}.get(pair.verdict)
    names = (
        "first",
        "second",
        "test",
        "difference",
        "difference_low",
        "difference_high",
        "p_value",
        "verdict",
    )
    return {**{name: getattr(pair, name) for name in names}, "winner": winner}


def _replay_data(analysis: Analysis) -> dict[str, Any]:
    shuffled, replay = analysis.shuffled, analysis.replay
    winners, ties, undecided = _verdicts(analysis)
    return {
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

    for log in open_logs(options["recorded"], choices_of(options)):
        models, questions, trials = set(), set(), 0
        rows: list[list[str]] = []
        for trials, found in enumerate(checked(log), start=1):
            models.add(found.model)
            questions.add((found.task, found.question))
            if trials <= _PREVIEWED:
                number = "next"
                if found.number is not None:
                    number = str(found.number)
                cells = (found.model, found.task, found.question, number, _result_of(found), found.text[:40])
                rows.append(list(map(inert, cells)))
        words = (count(len(models), "model"), count(len(questions), "question"), count(trials, "trial"))
        click.echo(f"{log.path} ({log.format}): {', '.join(words)}")
        print_table(("<model", "<task", "<question", "<trial", "<result", "<text"), rows)


def write_run(options: Mapping[str, Any]) -> None:
    """Write the results as a run."""
    from adaptive_eval.interop.import_run import import_logs
    from adaptive_eval.interop.recorded_files import open_logs

    weights = None
    if options["weights"] is not None:
        weights = numbers(options["weights"], "--weights")
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
            independent=choices.independent,
            decide=partial(_session, options, choices),
            progress=report,
        )
    _show_written(imported, len(logs), as_json=options["as_json"])


def _result_of(found: Found) -> str:
    if found.missing is not None:
        return f"missing: {found.missing}"
    if found.score is not None:
        return f"score {found.score:g}"
    return f"category {found.category}"


def _session(
    options: Mapping[str, Any], choices: ReadingOptions, gathered: CombinedLogs, tasks: tuple[TaskSpec, ...]
) -> SessionSpec:
    """Return the session that decides; one model alone is only estimated, unless something else is asked."""
    from adaptive_eval.interop.import_run import default_spec

    choices.require_renamed(gathered.models)
    if len(gathered.models) == 1 and options["goal"] in (None, "ranking"):
        spec = default_spec(gathered, tasks)
    else:
        spec = session_spec(options, gathered.models, tasks, rules=gathered.rules)
    if not is_one_look(options, gathered.rules, alike=gathered.alike):
        return spec
    return replace(spec, stopping=replace(spec.stopping, rule=FIXED))


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
    missing = ""
    if lacking:
        missing = f", {lacking:,} without an answer"
    trials = count(imported.trials, "trial")
    click.echo(f"{imported.directory}: {trials}{missing}, from {count(logs, 'log')}.")
    for note in imported.notes:
        click.echo(f"note: {inert(note)}")
    if imported.absent:
        trials = count(imported.absent, "trial")
        click.echo(f"note: the models' trial sequences have {trials} that no log has")
    click.echo(inert(verdict))
    click.echo(f"Report: adaptive-eval report {imported.directory}")
