"""Sentences about a whole run, the same in every view."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter

from adaptive_eval import __version__
from adaptive_eval.core.discarded import rest_on_words
from adaptive_eval.core.forecast import HORIZON_PASSES
from adaptive_eval.core.results import BudgetLine, ModelResult, PairResult, Results, RunForecast, StopVerdict
from adaptive_eval.errors import without_home
from adaptive_eval.store.records import EndpointHealth
from adaptive_eval.views.accounts import MOST_SUSPECT, Suspect
from adaptive_eval.views.budgets import BudgetUse, budget_name
from adaptive_eval.views.decision_sentences import describe
from adaptive_eval.views.inert import inert
from adaptive_eval.views.numbers import (
    amount,
    chance,
    count,
    duration,
    fixed,
    listing,
    percent,
    range_words,
    short,
    signed,
    stamp,
    trimmed,
    usd,
)
from adaptive_eval.views.one_look_sentences import (
    interval_name,
    is_one_look,
    one_look_methods,
    one_look_note,
)
from adaptive_eval.views.sentences import level_words, score_name
from adaptive_eval.views.summary import Outlook, RunState, RunSummary
from adaptive_eval.views.verdicts import (
    decided_trials,
    exact_pairs,
    exact_words,
    family_words,
    fixed_length,
    is_single,
    of_kind,
    open_pairs,
    pair_name,
    questions_words,
    rank_column,
    resolved_words,
    saved_cost,
    saving,
    waiting_words,
)

NOISE = 0.05
"""Share below which a difference in trials is not told: another run would have another one."""


def rule_words(results: Results) -> str:
    """Return rule, confidence, family and margin."""
    words = f"{results.rule}, {level_words(results)}, {family_words(results.family)}"
    if results.equivalence is None:
        return words
    return f"{words}, ties within ±{trimmed(results.equivalence)}"


def settings_words(results: Results) -> str:
    """Return the goal and the rule.

    Examples
    --------
    >>> run = Results("rank all models", "anytime", 0.95, "holm", 0.05, 30, (), (), (), 0, None)
    >>> settings_words(run)
    'Goal: rank all models; rule: anytime at 95 %; Holm over all pairs; ties within ±0.05.'
    """
    parts = [f"Goal: {results.goal}", f"rule: {results.rule} at {level_words(results)}"]
    parts.append(family_words(results.family))
    if results.equivalence is not None:
        parts.append(f"ties within ±{trimmed(results.equivalence)}")
    asked = questions_words(results.in_rounds, len(results.tasks))
    if asked is not None:
        parts.append(f"questions: {asked}")
    return f"{'; '.join(parts)}."


def reason_words(stop: StopVerdict) -> str:
    """Return the reason of a stop as words."""
    return stop.reason.replace("_", " ")


def stopped_words(stop: StopVerdict) -> str:
    """Return that and why a run stopped, as the begin of a sentence without its full stop."""
    return f"Stopped ({reason_words(stop)}): {describe(stop).strip().rstrip('.')}"


def course_words(summary: RunSummary) -> str:
    """Return whether the run has ended and why, and its times."""
    end = "The run is not finished: these are the figures of its last snapshot"
    if summary.stop is not None:
        end = stopped_words(summary.stop)
    times = f"Started {stamp(summary.started)}, last snapshot {stamp(summary.updated)}"
    return f"{end}. {times}, {duration(summary.elapsed)} of running time."


def spent_words(results: Results, elapsed: float) -> str:
    """Return what a run has used, and why it stopped."""
    late = results.trials - decided_trials(results)
    after = ""
    if late:
        after = f" ({late:,} answered after the stop)"
    parts = [f"{count(results.trials, 'trial')}{after}", _tokens(results)]
    if results.usd is not None:
        presumed = _presumed(results, "usd")
        more = ""
        if presumed:
            more = f" and at most {usd(presumed)}"
        parts.append(f"{usd(results.usd)}{more}")
    parts.append(duration(elapsed))
    used = ", ".join(parts) + _scorers(results)
    if results.stop is None:
        return f"Not finished: {used} so far."
    return f"{_inert_stop(results)}. Used {used}."


def _inert_stop(results: Results) -> str:
    assert results.stop is not None
    return inert(stopped_words(results.stop))


def _presumed(results: Results, name: str) -> float:
    """Return what the run's budget of this name has presumed billed."""
    lines = [line for line in results.budgets if (line.scope, line.name) == ("run", name)]
    return sum(line.presumed for line in lines)


def _tokens(results: Results) -> str:
    words = f"{short(results.tokens)} tokens"
    presumed = _presumed(results, "tokens")
    if presumed:
        return f"{words} of answers, at most {short(presumed)} of requests without an answer or usage"
    unknown = any(getattr(text, "code", "") == "warning/unanswered" for text in results.warnings)
    if unknown:
        return f"{words} of answers, those of other requests unknown"
    return words


def _scorers(results: Results) -> str:
    """Return what judges and verifiers took, which is no part of the costs of the models."""
    lines = sorted((line for line in results.budgets if line.scope == "scorer"), key=attrgetter("owner"))
    words = ""
    for owner, owned in groupby(lines, key=attrgetter("owner")):
        parts = [_scorer_words(line) for line in owned if line.name != "requests"]
        words += f"; the {inert(owner)} {', '.join(parts)}"
    return words


def _scorer_words(line: BudgetLine) -> str:
    show, unit = (short, " tokens") if line.name == "tokens" else (usd, "")
    more = ""
    if line.presumed:
        more = f" and at most {show(line.presumed)}"
    return f"{show(line.spent - line.presumed)}{more}{unit}"


def presumed_words(lines: Sequence[BudgetLine]) -> list[str]:
    """Return what was billed and what is presumed billed; nothing if nothing is presumed."""
    billed, assumed = [], []
    for line in lines:
        if line.presumed and line.scope in ("run", "scorer"):
            unit = budget_name(line).removeprefix("USD").strip()
            billed.append(f"{amount(line.spent - line.presumed, line.name)} {unit}".rstrip())
            assumed.append(f"{amount(line.presumed, line.name)} {unit}".rstrip())
    if not billed:
        return []
    return [
        f"Billed {listing(billed, len(billed))}; presumed billed {listing(assumed, len(assumed))}: requests "
        "that failed or reported no usage and may have been billed."
    ]


def asked_models(results: Results) -> list[ModelResult]:
    """Return the models that the run asks, without references."""
    return [line for line in results.models if line.state != "reference"]


def waiting_answers(results: Results) -> list[str]:
    """Return how many answers do not count yet; nothing for none."""
    waiting = results.trials - sum(line.counted_steps for line in asked_models(results))
    if waiting <= 0:
        return []
    do = "does" if waiting == 1 else "do"
    return [
        f"{count(waiting, 'answer')} {do} not count yet: an earlier trial of the same model is still to come."
    ]


def uncounted_words(summary: RunSummary) -> list[str]:
    """Return how many stored outcomes no figure holds; nothing for none."""
    number = summary.uncounted
    if not number:
        return []
    are, they = ("is", "it") if number == 1 else ("are", "they")
    words = (
        f"{count(number, 'stored outcome')} {are} not in these figures: {they} came after the last snapshot, "
        "or an earlier trial of the same model is still to come."
    )
    can_continue = summary.stop is None and summary.state != "running"
    if can_continue:
        return [f"{words} Continuing the run counts them."]
    return [words]


def outlook_phrases(view: Outlook) -> list[str]:
    """Return the forecast in phrases, the most needed first.

    Every figure is the median and the 80 % interval of a simulation.
    """
    forecast = view.forecast
    simulated, of_them = len(forecast.pairs), ""
    if forecast.open_pairs > simulated:
        of_them = f" (from the {simulated:,} slowest of {forecast.open_pairs:,} open pairs)"
    phrases = [f"{chance(forecast.resolved_within_budget)} goal reached{of_them} in budget"]
    phrases.append(f"{amount(forecast.trials.median)} more trials ({range_words(forecast.trials, 'trials')})")
    for value, unit in ((view.seconds, "wall_clock"), (forecast.usd, "usd")):
        if value is not None:
            phrases.append(f"{amount(value.median, unit)} ({range_words(value, unit)})")
    phrases.append(f"{amount(forecast.tokens.median)} tokens ({range_words(forecast.tokens, 'tokens')})")
    return phrases


def chances_words(results: Results) -> list[str]:
    """Return what larger budgets would bring a run that a budget or cap has ended; nothing if unknown."""
    forecast = results.forecast
    if results.stop is None or forecast is None or not forecast.open_pairs:
        return []
    kinds = [pair.kind for pair in open_pairs(results)]
    number = len(kinds) or forecast.open_pairs
    verb = "are"
    if number == 1:
        verb = "is"
    is_open = f"{count(number, _contrast_noun(kinds))} {verb} open"
    if not forecast.chances:
        them = "it" if number == 1 else "them"
        return [
            f"{is_open}, and {HORIZON_PASSES:,} passes would probably not decide {them} "
            "(simulated, approximate)."
        ]
    return [
        f"{is_open}. Chance that the goal is reached{_if_answering(results)} (simulated, approximate): "
        f"{_chances(forecast)}."
    ]


def _contrast_noun(kinds: Sequence[str]) -> str:
    if not kinds:
        return "pair"
    nouns = {"pair": "pair", "not-worse": "claim", "threshold": "model", "width": "score"}
    if len(set(kinds)) == 1:
        return nouns[kinds[0]]
    return "contrast"


def _if_answering(results: Results) -> str:
    stopped = [line.model for line in results.models if line.state == "stopped"]
    if not stopped:
        return ""
    verb = "answer"
    if len(stopped) == 1:
        verb = "answers"
    return f" if {listing(stopped)} {verb} again"


def _chances(forecast: RunForecast) -> str:
    parts = [f"{chance(one.resolved)} at {one.trials:,.0f}" for one in forecast.chances]
    return ", ".join([f"{parts[0]} trials", *parts[1:]])


def problem_words(
    state: RunState,
    models: Sequence[ModelResult],
    endpoints: Sequence[EndpointHealth],
    truncated: int,
    cut_off: Iterable[str] = (),
) -> list[str]:
    """Return the problems of a run and its servers, the worst first; `cut_off` is how such answers count."""
    problems = []
    if state == "interrupted":
        problems.append("No process is running this run: continue it with adaptive-eval run.")
    stopped = [line.model for line in models if line.state == "stopped"]
    if stopped:
        were = "were"
        if len(stopped) == 1:
            were = "was"
        problems.append(f"{listing(stopped)} {were} stopped before the end.")
    if state == "running":
        problems += [_server_problem(one) for one in endpoints if one.state in ("out", "joining", "refused")]
    failed = sum(one.failed for one in endpoints)
    if failed:
        failing = sorted({one.model for one in endpoints if one.failed})
        problems.append(f"{count(failed, 'failed request')} at the endpoints of {listing(failing)}.")
    missing = sum(line.missing for line in models)
    if missing:
        problems.append(f"{count(missing, 'trial')} without an answer; they are never scored.")
    if truncated:
        score = {"zero": "; they have the lowest score", "judged": "; they are scored as they are"}
        words = f"{count(truncated, 'answer')} cut off at the token limit"
        problems.append(f"{words}{score.get(' '.join(cut_off), '')}.")
    return problems


def _server_problem(health: EndpointHealth) -> str:
    what = "does not answer; requests are repeated"
    if health.state == "refused":
        what = "refuses it"
    return f"The server {without_home(health.endpoint)} of {health.model} {what}."


EXACT = 5
"""Pairs whose difference is known that are told one by one."""


def exact_sentences(results: Results) -> list[str]:
    """Return sentences on the first pairs whose difference is known on these questions."""
    found = exact_pairs(results)
    lines = [f"{_exact_figure(pair)}: {_known(pair)}." for pair in found[:EXACT]]
    if len(found) > EXACT:
        lines.append(f"{len(found) - EXACT:,} more are exact on these questions.")
    return lines


def _exact_figure(pair: PairResult) -> str:
    if pair.kind == "width":
        return f"{pair.first} scores {fixed(pair.difference)}"
    return f"{pair_name(pair)} = {signed(pair.difference)}"


def _known(pair: PairResult) -> str:
    return exact_words(pair.population_low or 0.0, pair.population_high or 0.0, pair.kind)


def _compared(issued: float, other: float) -> str:
    if issued < other:
        return f"{percent(1 - issued / other)} fewer here"
    if issued < 2 * other:
        return f"{percent(issued / other - 1)} more here"
    return f"{issued / other:.2g} times as many here"


def _differs(issued: float, other: float) -> bool:
    return abs(issued / other - 1) >= NOISE


def saved_words(results: Results) -> list[str]:
    """Return what uniform allocation and a run of fixed length would have used."""
    figures = saving(results)
    fixed_run = fixed_length(results)
    asked = len(asked_models(results))
    if figures is None:
        return []
    issued, uniform = figures
    lines = []
    if asked > 2 and _differs(issued, uniform):
        lines.append(
            f"{count(issued, 'trial')} issued. Uniform allocation would have used {count(uniform, 'trial')} "
            f"({uniform // asked:,} per model): {_compared(issued, uniform)}."
        )
    if fixed_run is not None and _differs(issued, fixed_run[1]):
        passes, trials = fixed_run
        lines.append(
            "A run of fixed length with the same error rate and 90 % power for what was found here, if the "
            f"right length had been known, would have taken about {trials:,} trials ({passes:,} to each "
            f"question): {_compared(issued, trials)}."
        )
    costs = saved_cost(results)
    if costs is not None:
        spent, even, of_fixed = costs
        what = "Cost"
        if results.spend == "tokens":
            what = "Tokens"
        more = ""
        if of_fixed is not None:
            more = f", the run of fixed length {amount(of_fixed, results.spend)}"
        lines.append(
            f"{what}: {amount(spent, results.spend)}. By what the questions cost here, uniform allocation "
            f"would have taken about {amount(even, results.spend)}{more}."
        )
    return lines


def rankings_note(rankings: Sequence[tuple[str, Results]], results: Results) -> str:
    """Return how to read the rankings by other rubrics."""
    words = (
        "The same answers, ranked by each rubric or check: rank interval, score on its scale, and places "
        "moved against the ranking that the run was decided by. The run's error rate holds for that ranking "
        "only."
    )
    other = [name for name, found in rankings if found.trials != results.trials]
    if other:
        words += f" {', '.join(other)}: computed at another number of trials; run rescore again."
    before = sum(line.missing for line in rankings[0][1].models)
    for name, found in rankings[1:]:
        lost = sum(line.missing for line in found.models) - before
        if lost > 0:
            words += (
                f" {name}: {count(lost, 'answer')} without a score that it can use, such as one within its "
                "range; counted as missing."
            )
    return words


def differences_note(results: Results) -> str:
    """Return how to read the table of pairs."""
    if is_one_look(results):
        return one_look_note(results)
    words = "Differences are first minus second, read when both models had equally many trials"
    if is_single(results) and not of_kind(results, "not-worse").pairs:
        words = "Differences are a model's score minus the number that it is compared with"
    words += '; "decided after" is that number of trials of each.'
    if results.equivalence is not None:
        words += f" Within ±{trimmed(results.equivalence)} models count as tied."
    unit = "ln e-value"
    if results.rule == "zscore":
        unit = "z"
    return (
        f"{words} Evidence is a share: the highest {unit} so far, divided by the value at which a winner is "
        "called. A decided pair shows it at its call, another one at the last reading."
    )


def ranks_note(results: Results) -> str:
    """Return how to read the column of ranks, or of verdicts in its place, and the score."""
    ranks = rank_column(results)
    words = "A rank interval such as 2–3 says that the verdicts leave the model anywhere within it."
    if not ranks.ranked:
        what = "against"
        if ranks.kind == "width":
            what = "whether the score's interval is as narrow as"
        who = "Models"
        if ranks.kind in ("pair", "not-worse"):
            who = "The others"
        words = f"Verdict: {what} {ranks.against}. {who} are not compared with each other and have no ranks."
        if results.equivalence is not None and "tied" in ranks.of.values():
            words += f" Tied: within ±{trimmed(results.equivalence)}."
    words += " The score decides: the mean of the means of questions, of several tasks their weighted mean."
    if results.in_rounds:
        words += (
            " From the third pass on, rounds weight the trials of a question, so the plain mean of the "
            "exported trials differs from the score."
        )
    return words


def answered_words(results: Results) -> str:
    """Return how many questions have a score, such as 30 of 40 questions."""
    most = max((line.questions for line in results.models), default=0)
    words = count(results.questions, "question")
    if most and most != results.questions:
        return f"{most:,} of {words}"
    return words


def caption_words(results: Results) -> str:
    """Return the caption of the table for a paper."""
    by = f"rule {results.rule} ({family_words(results.family)})"
    prior = "uniform prior"
    if results.prior is not None:
        prior = f"prior: {results.prior}"
    how = f"Rank: interval that the verdicts of {by} leave open."
    if not rank_column(results).ranked:
        how = f"{ranks_note(results)} By {by}."
    if is_one_look(results):
        how += " Verdicts hold if the number of answers was fixed before anybody looked."
    if words := rest_on_words(results):
        how += f" {words}"
    return (
        f"{score_name(results).capitalize()} on {answered_words(results)}, which ranks, with its "
        f"{level_words(results)} {interval_name(results)}; Bayes@N: posterior mean ± standard deviation "
        f"({prior}), for reference. Trials: of the model, all questions together. {how}"
    )


BAYES_NOTE = (
    "Bayes@N is for reference. For each question it adds one imagined trial of every category, so with few "
    "trials it lies nearer to the middle than the score: a model that is always right has 0.80 after 3 "
    "trials a question. Compare it only between models with about equally many trials."
)

TASKS_NOTE = (
    "The overall score is the mean of the tasks with these weights, and the verdicts are about it. Scores "
    "are in each task's own units, with the anytime interval of that model and task by itself."
)

ANSWERS_NOTE = (
    "No answer: trials that failed after all retries, and copies; they are not scored. Cut off: answers that "
    "ended at the token limit. After stop: answers in flight at the stop. Errors: failed attempts by kind, "
    "those made good by a later attempt included."
)


def start_words(summary: RunSummary) -> str:
    """Return the first line on a run."""
    results = summary.results
    parts = [f"start {summary.name}: goal {results.goal}", f"rule {rule_words(results)}"]
    parts.append(f"{count(len(results.models), 'model')}, {count(results.questions, 'question')}")
    asked = questions_words(results.in_rounds, len(results.tasks))
    all_parts = parts
    if asked is not None:
        all_parts = [*parts, asked]
    return "; ".join(all_parts)


def progress_words(summary: RunSummary) -> str:
    """Return a line on a run on its way."""
    results, rates = summary.results, summary.rates
    parts = [f"progress {count(results.trials, 'trial')}", resolved_words(results)]
    if rates.trials is not None:
        parts.append(f"{fixed(rates.trials, 1)} trials/s")
    parts += [_budget_part(use) for use in rates.budgets if _is_told(use)]
    parts.append(f"running {duration(summary.elapsed)}")
    parts += waiting_words(results)
    if results.models and results.models[0].score is not None:
        best = results.models[0]
        parts.append(f"highest score {best.model} {fixed(best.score)}")
    if summary.outlook is not None:
        parts.append(f"forecast (approximate): {'; '.join(outlook_phrases(summary.outlook))}")
    return ", ".join(parts)


def _is_told(use: BudgetUse) -> bool:
    """Return whether a line of progress tells of a budget that its other figures do not show."""
    line = use.line
    shown = line.name in ("trials", "wall_clock", "requests")
    return line.limit is not None and line.scope == "run" and not shown


def _budget_part(use: BudgetUse) -> str:
    line = use.line
    return f"{amount(line.spent, line.name)} of {amount(line.limit, line.name)} {budget_name(line)}"


def end_words(summary: RunSummary) -> str:
    """Return the last line on a run."""
    why = "interrupted"
    if summary.stop is not None:
        why = reason_words(summary.stop)
    return f"end {why} after {duration(summary.elapsed)}: {summary.headline}"


def suspects_note(suspects: Sequence[Suspect]) -> str:
    """Return how to read the table of suspect questions."""
    words = (
        "Read these questions: the right answer of the dataset may be wrong, or the scorer may not read the "
        "answers. No model right: no trial was. Weak models right: the lower half of the ranking has a "
        "fraction correct that is higher by 0.5 or more; few trials show this by chance too."
    )
    more = len(suspects) > MOST_SUSPECT
    if more:
        return f"The first {MOST_SUSPECT} of {len(suspects):,}. {words}"
    return words


_ENDS = {
    "resolved": "its goal was reached",
    "budget": "its budget was spent",
    "max_passes": "its largest number of passes was done",
    "interrupted": "it was interrupted",
}


def methods_words(summary: RunSummary) -> str:
    """Return the sentences for a paper's section on methods."""
    if is_one_look(summary.results):
        return one_look_methods(summary.results)
    results = summary.results
    asked = asked_models(summary.results)
    trials = [line.trials for line in asked]
    missing = sum(line.missing for line in asked)
    if len(set(trials)) == 1:
        each = f"{min(trials):,}"
    else:
        each = f"{min(trials):,} to {max(trials):,}"
    margin = "no equivalence margin"
    if results.equivalence is not None:
        margin = f"equivalence margin ±{trimmed(results.equivalence)}"
    rule = f"{results.rule} at α = {trimmed(1 - results.confidence)}, {family_words(results.family)}"
    words = (
        f"{count(len(results.models), 'model')} answered {answered_words(results)} with adaptive-eval "
        f"{__version__} (goal: {results.goal}; stopping rule: {rule}; {margin}). The number of trials was "
        f"not fixed in advance: N = {sum(trials):,} scored trials in all, {each} for each model"
    )
    if missing:
        words += f"; {count(missing, 'further trial')} without a score"
    if discarded := sum(line.discarded_trials for line in asked):
        words += f"; {count(discarded, 'further trial')} lost, as an earlier draw was given up"
    end = "the run was not finished"
    if results.stop is not None:
        end = f"the run ended when {_ENDS.get(results.stop.reason, 'no more pairs could be decided')}"
    means = "means of the questions' means"
    if results.tasks:
        means = "means of tasks"
    rounds = ""
    if results.in_rounds:
        rounds = " (from the third pass on, rounds weight the trials of a question)"
    changed = [text for text in results.warnings if getattr(text, "code", "") == "warning/settings-changed"]
    note = "No setting was changed during the run."
    if changed:
        note = f"Note: {'; '.join(changed)}."
    return f"{words}; {end}. Scores are the {means}{rounds}, with intervals that hold at every look. {note}"
