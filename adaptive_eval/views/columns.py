"""What a run shows, each figure once: the columns of its tables, which every output reads.

A figure that is to be shown is one more :class:`Column`, here or, of a model, in
:data:`adaptive_eval.views.model_columns.MODELS`. Its key is the same in JSON, CSV, Prometheus and trackers;
`outlets` says where it is shown.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from adaptive_eval.core.results import Decision, PairForecast, PairResult, Results, TaskResult, TaskScore
from adaptive_eval.errors import without_home
from adaptive_eval.store.records import EndpointHealth
from adaptive_eval.views.accounts import QuestionAccount
from adaptive_eval.views.budgets import BudgetUse, budget_name, used_words
from adaptive_eval.views.column_types import Column, Shown, Span, Unit
from adaptive_eval.views.decision_sentences import describe
from adaptive_eval.views.inert import cut, inert
from adaptive_eval.views.numbers import amount, duration, fixed, percent, range_words, short
from adaptive_eval.views.sentences import condition_words, difference_words, evidence_words, span_words
from adaptive_eval.views.summary import evidence_progress, tie_progress
from adaptive_eval.views.verdicts import pair_name, verdict_words

JSON, MONITOR, CSV, TERMINAL = Shown.JSON, Shown.MONITOR, Shown.CSV, Shown.TERMINAL
PROMETHEUS, PAIRS_TABLE, OPEN_TABLE = Shown.PROMETHEUS, Shown.PAIRS, Shown.OPEN
FILES = JSON | CSV


_ADDRESS = 48  # characters that are shown of a server's address


@dataclass(frozen=True, slots=True)
class PairRow:
    """A contrast of a run."""

    pair: PairResult
    equivalence: float | None
    ahead: PairForecast | None = None  # the forecast of an open one
    digits: int = 3  # decimals of the differences that are shown together

    @property
    def span(self) -> Span:
        """The difference with its interval."""
        return Span(self.pair.difference_low, self.pair.difference, self.pair.difference_high)

    @property
    def progress(self) -> float | None:
        """Its evidence as a share of what calls a winner; a score that is measured has none."""
        pair = self.pair
        if pair.kind == "width":
            return None
        return evidence_progress(pair.evidence, pair.threshold)

    @property
    def tie(self) -> float | None:
        """How close its interval is to a tie, or to the width that is wanted."""
        return tie_progress(self.pair.tie_margin)


def pair_rows(pairs: Sequence[PairResult], results: Results, digits: int = 3) -> list[PairRow]:
    """Return contrasts of a run as rows."""
    if results.forecast is not None:
        forecasts = results.forecast.pairs
    else:
        forecasts = ()
    ahead = {one.key: one for one in forecasts}
    return [PairRow(pair, results.equivalence, ahead.get(pair.key), digits) for pair in pairs]


def _share(part: float | None) -> str:
    if part is None:
        return ""
    return percent(part)


def _decided_after(row: PairRow) -> str:
    pair = row.pair
    if pair.decided_at is None:
        return f"not by {pair.trials_each:,}"
    return f"{pair.decided_at:,}"


def _more_trials(row: PairRow) -> str:
    trials = None
    if row.ahead is not None:
        trials = row.ahead.trials
    if trials is None:
        return ""
    return f"{short(trials.median)} ({range_words(trials)})"


def _verdict_of(row: PairRow) -> str:
    return verdict_words(row.pair.verdict, row.equivalence, row.pair.kind, needed=row.pair.needed)


def _colour(row: PairRow) -> str:
    verdict = row.pair.verdict
    if verdict == "worse":
        return "better"
    return verdict


PAIRS: tuple[Column[PairRow], ...] = (
    Column(
        key="pair",
        short="open",
        unit=Unit.PAIR,
        value=lambda row: row.pair,
        text=lambda row: pair_name(row.pair),
        outlets=TERMINAL | PAIRS_TABLE | OPEN_TABLE,
    ),
    Column(
        key="first",
        unit=Unit.NAME,
        value=lambda row: row.pair.first,
        outlets=FILES,
        meaning="the model from which the pair is seen",
    ),
    Column(
        key="second",
        unit=Unit.NAME,
        value=lambda row: row.pair.second,
        outlets=FILES,
        meaning="the other model; of a goal about single models, the number or the width",
    ),
    Column(
        key="kind",
        unit=Unit.WORDS,
        value=lambda row: row.pair.kind,
        outlets=FILES,
        meaning="`pair`, `not-worse` (a claim), `threshold` (a model against a number) or `width` (a score "
        "to be measured)",
    ),
    Column(
        key="margin",
        unit=Unit.NUMBER,
        value=lambda row: row.pair.margin,
        optional=True,
        outlets=FILES,
        meaning="of a claim: by how much `first` may be worse than `second`",
    ),
    Column(
        key="verdict",
        unit=Unit.VERDICT,
        value=lambda row: row.pair.verdict,
        text=_verdict_of,
        kind=_colour,
        outlets=FILES | PAIRS_TABLE,
        meaning="`better` (`first` is, or the claim holds), `worse` (or the claim fails), `tie` or `open`",
    ),
    Column(
        key="words",
        unit=Unit.WORDS,
        value=_verdict_of,
        outlets=JSON,
        meaning="the same in words: `separated`, `above`, `below`, `tied within ±ε`, `measured`, `not "
        "resolved`, `not needed`",
    ),
    Column(
        key="needed",
        unit=Unit.FLAG,
        value=lambda row: row.pair.needed,
        outlets=JSON,
        meaning="false for an open pair whose verdict the goal can do without",
    ),
    Column(
        key="difference",
        unit=Unit.DIFFERENCE,
        value=lambda row: row.pair.difference,
        text=lambda row: difference_words(row.pair, row.digits),
        optional=True,
        outlets=FILES | TERMINAL | PAIRS_TABLE | OPEN_TABLE,
        meaning="`first` minus `second` at equal progress; for a width the score itself",
    ),
    Column(
        key="difference_low",
        unit=Unit.DIFFERENCE,
        value=lambda row: row.pair.difference_low,
        optional=True,
        outlets=FILES,
        meaning="lower end of its confidence sequence",
    ),
    Column(
        key="difference_high",
        unit=Unit.DIFFERENCE,
        value=lambda row: row.pair.difference_high,
        optional=True,
        outlets=FILES,
        meaning="upper end of its confidence sequence",
    ),
    Column(
        key="difference_interval",
        heading="{level} {difference_interval}",
        short="interval",
        unit=Unit.SIGNED_INTERVAL,
        value=lambda row: None if row.pair.kind == "width" else row.span,
        kind=_colour,
        text=lambda row: span_words(row.pair, row.digits),
        outlets=TERMINAL | PAIRS_TABLE | OPEN_TABLE,
        need=3,
    ),
    Column(
        key="decided_at",
        heading="decided after",
        unit=Unit.COUNT,
        value=lambda row: row.pair.decided_at,
        text=_decided_after,
        optional=True,
        spare=True,
        outlets=FILES | PAIRS_TABLE,
        meaning="the index at which it was decided; null while open",
    ),
    Column(
        key="questions",
        heading="{pair_questions}",
        unit=Unit.COUNT,
        value=lambda row: row.pair.questions,
        spare=True,
        outlets=FILES | PAIRS_TABLE,
        meaning="questions both had seen by then; of several tasks, the fewest of one",
    ),
    Column(
        key="evidence",
        unit=Unit.NUMBER,
        value=lambda row: row.pair.evidence,
        text=lambda row: evidence_words(row.pair),
        optional=True,
        spare=True,
        outlets=FILES | PAIRS_TABLE,
        meaning="highest log e-value, at most that of the strictest level that the run reads (for "
        "`zscore`: z); at the call for a decided pair",
    ),
    Column(
        key="evidence_beyond",
        unit=Unit.FLAG,
        value=lambda row: row.pair.evidence_beyond,
        outlets=FILES,
        meaning="whether the evidence was above that level, so that `evidence` is a least value",
    ),
    Column(
        key="threshold",
        unit=Unit.NUMBER,
        value=lambda row: row.pair.threshold,
        optional=True,
        outlets=FILES,
        meaning="the value that calls a winner; at the call for a decided pair",
    ),
    Column(
        key="progress",
        heading="evidence",
        unit=Unit.SHARE,
        value=lambda row: row.progress,
        text=lambda row: _share(row.progress),
        optional=True,
        outlets=TERMINAL | OPEN_TABLE,
        need=1,
    ),
    Column(
        key="tie_margin",
        unit=Unit.SHARE,
        value=lambda row: row.pair.tie_margin,
        optional=True,
        outlets=FILES,
        meaning="closeness to a tie from 0 to 1; null without a margin; for a width the share of the "
        "precision that is reached",
    ),
    Column(
        key="tie",
        heading="tie or width",
        unit=Unit.SHARE,
        value=lambda row: row.tie,
        text=lambda row: _share(row.tie),
        optional=True,
        spare=True,
        kind=lambda row: "tie",
        outlets=TERMINAL | OPEN_TABLE,
        need=2,
    ),
    Column(
        key="trials_each",
        unit=Unit.COUNT,
        value=lambda row: row.pair.trials_each,
        spare=True,
        outlets=FILES | TERMINAL | OPEN_TABLE,
        meaning="index of both models at which the pair was last read",
        need=4,
    ),
    Column(
        key="more_trials",
        heading="more trials (approx.)",
        unit=Unit.COUNT,
        value=lambda row: row.ahead,
        text=_more_trials,
        spare=True,
        outlets=OPEN_TABLE,
    ),
    Column(
        key="test",
        unit=Unit.WORDS,
        value=lambda row: row.pair.test,
        outlets=JSON,
        meaning="under the rule `fixed`, the name of the test of one look; else empty",
    ),
    Column(
        key="p_value",
        unit=Unit.SHARE,
        value=lambda row: row.pair.p_value,
        optional=True,
        outlets=JSON,
        meaning="under the rule `fixed`, its p-value, whose -ln is `evidence`; else null",
    ),
    Column(
        key="exact",
        unit=Unit.FLAG,
        value=lambda row: row.pair.exact,
        outlets=JSON,
        meaning="whether `difference` is known on these questions: both models repeat their answers and "
        "have answered all of them",
    ),
    Column(
        key="population_low",
        unit=Unit.DIFFERENCE,
        value=lambda row: row.pair.population_low,
        optional=True,
        outlets=JSON,
        meaning="of an exact one, lower end of the confidence interval for questions like these; else null",
    ),
    Column(
        key="population_high",
        unit=Unit.DIFFERENCE,
        value=lambda row: row.pair.population_high,
        optional=True,
        outlets=JSON,
        meaning="its upper end",
    ),
)
"""What the goal compares, one contrast a row, each seen from its better model."""


BUDGETS: tuple[Column[BudgetUse], ...] = (
    Column(
        key="budget",
        unit=Unit.NAME,
        value=lambda use: budget_name(use.line),
        outlets=TERMINAL | Shown.BUDGETS,
    ),
    Column(
        key="name",
        unit=Unit.WORDS,
        value=lambda use: use.line.name,
        outlets=JSON,
        meaning="`trials`, `tokens`, `prompt_tokens`, `completion_tokens`, `usd` or `wall_clock`, in "
        "seconds; for scorers also `requests`",
    ),
    Column(
        key="scope",
        unit=Unit.WORDS,
        value=lambda use: use.line.scope,
        outlets=JSON,
        meaning="`run`, `model`, `task` or `scorer`: a judge or verifier, whose costs are no part of "
        "the run's",
    ),
    Column(
        key="owner",
        unit=Unit.NAME,
        value=lambda use: use.line.owner,
        outlets=JSON,
        meaning="the model or task, or `judge of TASK`; empty for the run",
    ),
    Column(
        key="spent",
        unit=Unit.NUMBER,
        value=lambda use: use.line.spent,
        text=lambda use: amount(use.line.spent, use.line.name),
        outlets=JSON | TERMINAL | Shown.BUDGETS | PROMETHEUS,
        meaning="spent, with what is presumed billed",
    ),
    Column(
        key="presumed",
        unit=Unit.NUMBER,
        value=lambda use: use.line.presumed,
        outlets=JSON | PROMETHEUS,
        meaning="the part of `spent` that no server has reported: requests without an answer that may "
        "have been billed, each at its worst case",
    ),
    Column(
        key="reserved",
        heading="in flight",
        unit=Unit.NUMBER,
        value=lambda use: use.line.reserved,
        text=lambda use: amount(use.line.reserved, use.line.name),
        spare=True,
        outlets=JSON | TERMINAL | Shown.BUDGETS | PROMETHEUS,
        meaning="reserved by trials in flight",
        need=3,
    ),
    Column(
        key="limit",
        unit=Unit.NUMBER,
        value=lambda use: use.line.limit,
        text=lambda use: amount(use.line.limit, use.line.name),
        optional=True,
        outlets=JSON | TERMINAL | Shown.BUDGETS | PROMETHEUS,
        meaning="the limit; null for none",
        need=1,
    ),
    Column(
        key="used",
        unit=Unit.NUMBER,
        value=lambda use: use.fraction,
        text=lambda use: used_words(use.line),
        outlets=TERMINAL | Shown.BUDGETS,
        need=2,
    ),
    Column(
        key="per_second",
        unit=Unit.NUMBER,
        value=lambda use: use.rate,
        optional=True,
        outlets=MONITOR,
        meaning="units spent a second, lately",
    ),
    Column(
        key="seconds_left",
        heading="lasts at this rate",
        unit=Unit.SECONDS,
        value=lambda use: use.seconds_left,
        text=lambda use: duration(use.seconds_left),
        optional=True,
        spare=True,
        outlets=MONITOR | Shown.RUNNING,
        meaning="running time until the limit at this rate",
        need=4,
    ),
)
"""Every budget, one a row."""


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """A decision, and when it was made (Unix time)."""

    at: float
    made: Decision

    def model(self, place: int) -> str:
        """Return the name of the first or the second model concerned; empty if there is none."""
        models = self.made.models
        if place < len(models):
            return models[place]
        return ""


DECISIONS: tuple[Column[DecisionRow], ...] = (
    Column(
        key="at",
        heading="time",
        unit=Unit.TIME,
        value=lambda row: row.at,
        spare=True,
        outlets=FILES | Shown.DECISIONS,
        meaning="when",
    ),
    Column(
        key="trials",
        heading="trials of the run",
        unit=Unit.COUNT,
        value=lambda row: row.made.trials,
        spare=True,
        outlets=FILES | Shown.DECISIONS,
        meaning="counted trials of the run at that moment",
    ),
    Column(
        key="kind",
        unit=Unit.WORDS,
        value=lambda row: row.made.kind,
        outlets=FILES,
        meaning="`pair`, `retired`, `model_stopped`, `withdrawn` (a verdict that a changed rule, rubric "
        "or goal does not lead to any more), `stop`, `servers` (of those found: `joined`, "
        "`left`, `refused`), or `laid_out` (a model's next round, while answers before it are awaited)",
    ),
    Column(
        key="models",
        unit=Unit.NAMES,
        value=lambda row: list(row.made.models),
        outlets=JSON,
        meaning="the models concerned",
    ),
    Column(key="first", unit=Unit.NAME, value=lambda row: row.model(0), outlets=CSV),
    Column(key="second", unit=Unit.NAME, value=lambda row: row.model(1), outlets=CSV),
    Column(
        key="verdict",
        unit=Unit.WORDS,
        value=lambda row: row.made.verdict,
        outlets=FILES,
        meaning="for a pair as above, seen from the first of `models`; for a stop its reason",
    ),
    Column(
        key="step",
        unit=Unit.COUNT,
        value=lambda row: row.made.step,
        outlets=FILES,
        meaning="index in the trial sequence at which it was made",
    ),
    Column(
        key="text",
        heading="decision",
        unit=Unit.TEXT,
        value=lambda row: describe(row.made),
        outlets=FILES | Shown.DECISIONS,
        meaning="in words",
    ),
    Column(
        key="evidence",
        unit=Unit.DATA,
        value=lambda row: dict(row.made.evidence),
        outlets=JSON,
        meaning="what is behind it: numbers and names; of a pair `statistic` is a least value if "
        "`statistic_beyond` is there",
    ),
)
"""What the session decided, one decision a row, oldest first."""


TASK_SCORES: tuple[Column[TaskScore], ...] = (
    Column(key="model", unit=Unit.MODEL, value=lambda one: one.model, outlets=JSON),
    Column(key="score", unit=Unit.SCORE, value=lambda one: one.score, optional=True, outlets=JSON),
    Column(key="score_low", unit=Unit.SCORE, value=lambda one: one.score_low, optional=True, outlets=JSON),
    Column(key="score_high", unit=Unit.SCORE, value=lambda one: one.score_high, optional=True, outlets=JSON),
)
"""Every model's score on a task, in the task's own units."""

TASKS: tuple[Column[TaskResult], ...] = (
    Column(key="task", unit=Unit.NAME, value=lambda task: task.task, outlets=JSON, meaning="the name"),
    Column(
        key="questions",
        unit=Unit.COUNT,
        value=lambda task: task.questions,
        outlets=JSON,
        meaning="number of its questions",
    ),
    Column(
        key="weight",
        unit=Unit.SHARE,
        value=lambda task: task.weight,
        outlets=JSON,
        meaning="its share of the overall score",
    ),
    Column(
        key="scores",
        unit=Unit.ROWS,
        value=lambda task: task.scores,
        columns=TASK_SCORES,
        outlets=JSON,
        meaning="every model's score on it with its interval, in the task's own units",
    ),
)
"""The tasks of a run of several, one a row."""


@dataclass(frozen=True, slots=True)
class Tally:
    """One model's counted trials of a question; no model in the row of the whole question."""

    question: QuestionAccount
    model: str = ""
    trials: int = 0
    right: int = 0


QUESTIONS: tuple[Column[Tally], ...] = (
    Column(
        key="task", unit=Unit.NAME, value=lambda row: row.question.task, outlets=FILES, meaning="its task"
    ),
    Column(
        key="question",
        unit=Unit.NAME,
        value=lambda row: row.question.question,
        outlets=FILES,
        meaning="which one",
    ),
    Column(
        key="trials",
        unit=Unit.COUNT,
        value=lambda row: row.question.trials,
        outlets=JSON,
        meaning="counted trials of all models",
    ),
    Column(
        key="question_correct",
        unit=Unit.SHARE,
        value=lambda row: row.question.correct,
        outlets=FILES,
        meaning="mean over models of their fraction correct",
    ),
    Column(
        key="question_spread",
        unit=Unit.NUMBER,
        value=lambda row: row.question.spread,
        outlets=FILES,
        meaning="standard deviation over models of (k + 1)/(n + 2), k of n trials correct",
    ),
    Column(key="model", unit=Unit.MODEL, value=lambda row: row.model, outlets=CSV),
    Column(key="model_trials", unit=Unit.COUNT, value=lambda row: row.trials, outlets=CSV),
    Column(key="model_correct", unit=Unit.COUNT, value=lambda row: row.right, outlets=CSV),
    Column(
        key="by_model",
        unit=Unit.DATA,
        value=lambda row: list(map(list, row.question.by_model)),
        outlets=JSON,
        meaning="counted trials and right answers, `[n, k]`, of every model in the order of `models`",
    ),
)
"""The questions asked: in JSON one a row, in CSV one question and model a row."""


ENDPOINTS: tuple[Column[EndpointHealth], ...] = (
    Column(
        key="model",
        heading="endpoint of",
        unit=Unit.MODEL,
        value=lambda one: one.model,
        outlets=MONITOR | TERMINAL | Shown.ENDPOINTS,
        meaning="the model",
    ),
    Column(
        key="endpoint",
        heading="address",
        unit=Unit.TEXT,
        value=lambda one: without_home(one.endpoint),
        text=lambda one: cut(inert(without_home(one.endpoint)), _ADDRESS),
        spare=True,
        outlets=MONITOR | TERMINAL | Shown.ENDPOINTS,
        meaning="the server's address",
        need=3,
    ),
    Column(
        key="in_flight",
        unit=Unit.COUNT,
        value=lambda one: one.in_flight,
        text=lambda one: f"{one.in_flight}/{one.limit}",
        outlets=MONITOR | TERMINAL | Shown.ENDPOINTS,
        meaning="requests in flight",
    ),
    Column(
        key="limit",
        unit=Unit.COUNT,
        value=lambda one: one.limit,
        outlets=MONITOR,
        meaning="most requests in flight",
    ),
    Column(
        key="answered",
        unit=Unit.COUNT,
        value=lambda one: one.answered,
        outlets=MONITOR,
        meaning="answers since this process started",
    ),
    Column(
        key="requests_per_second",
        heading="requests/s",
        short="req/s",
        unit=Unit.NUMBER,
        value=lambda one: one.requests_per_second,
        text=lambda one: fixed(one.requests_per_second, 1),
        outlets=MONITOR | TERMINAL | Shown.ENDPOINTS,
        meaning="over the last minute",
        need=2,
    ),
    Column(
        key="tokens_per_second",
        heading="tokens/s",
        short="tok/s",
        unit=Unit.NUMBER,
        value=lambda one: one.tokens_per_second,
        text=lambda one: short(one.tokens_per_second),
        spare=True,
        outlets=MONITOR | TERMINAL | Shown.ENDPOINTS,
        meaning="over the last minute",
        need=4,
    ),
    Column(
        key="p50",
        unit=Unit.SECONDS,
        value=lambda one: one.p50,
        optional=True,
        spare=True,
        outlets=MONITOR | TERMINAL | Shown.ENDPOINTS,
        meaning="median latency in seconds, over the last minute",
        need=5,
    ),
    Column(
        key="p95",
        unit=Unit.SECONDS,
        value=lambda one: one.p95,
        optional=True,
        spare=True,
        outlets=MONITOR | TERMINAL | Shown.ENDPOINTS,
        meaning="95 % of the answers took no longer",
        need=5,
    ),
    Column(
        key="errors",
        unit=Unit.COUNTS,
        value=lambda one: dict(one.errors),
        text=lambda one: condition_words(one) or "none",
        outlets=MONITOR | TERMINAL | Shown.ENDPOINTS,
        meaning="failed attempts by kind",
        need=1,
    ),
    Column(
        key="state",
        unit=Unit.WORDS,
        value=lambda one: one.state,
        outlets=MONITOR,
        meaning="`in`, `out`, `trial` (just back) or `refused`; of servers that are found also "
        "`joining` or `left`",
    ),
)
"""The servers of a run, one model and server a row."""
