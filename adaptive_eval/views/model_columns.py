"""The columns of models: the leaderboard, and the tables of missing answers and of costs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from adaptive_eval.core.results import ModelResult, Results
from adaptive_eval.views.accounts import ModelAccount
from adaptive_eval.views.column_types import Column, Shown, Span, Unit
from adaptive_eval.views.numbers import fixed, short
from adaptive_eval.views.sentences import kinds_words, note_words, state_words
from adaptive_eval.views.verdicts import has_few, rank_column, state_word

JSON, CSV, TERMINAL, PAPER = Shown.JSON, Shown.CSV, Shown.TERMINAL, Shown.PAPER
PROMETHEUS, TRACKER = Shown.PROMETHEUS, Shown.TRACKER
RANKING, ANSWERS, COST = Shown.RANKING, Shown.ANSWERS, Shown.COST
FILES = JSON | CSV


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model of a run."""

    line: ModelResult
    results: Results
    standing: str  # its rank interval, or the verdict in its place
    account: ModelAccount | None = None  # None where only the results are known
    running: bool = False

    @property
    def whole_account(self) -> ModelAccount:
        """The account, which has to have been read."""
        assert self.account is not None
        return self.account

    @property
    def tokens(self) -> int:
        """All tokens charged."""
        return self.line.prompt_tokens + self.line.completion_tokens

    @property
    def span(self) -> Span:
        """The score with its interval."""
        return Span(self.line.score_low, self.line.score, self.line.score_high)


def model_rows(
    results: Results, accounts: Sequence[ModelAccount] = (), *, running: bool = False
) -> list[ModelRow]:
    """Return the models of a run, best first; `accounts` are in the same order."""
    ranks = rank_column(results)
    known: Sequence[ModelAccount | None] = accounts or [None] * len(results.models)
    return [
        ModelRow(line, results, ranks.of[line.model], account, running)
        for line, account in zip(results.models, known, strict=True)
    ]


_FEWEST, _SHARE = 5, 0.1  # answers that are none, and their share, from which a terminal counts them


def _often_without_answer(row: ModelRow) -> bool:
    """Return whether the answers of a model are often none, so that its score is about something else."""
    return row.line.no_answer_trials >= max(_FEWEST, _SHARE * row.line.trials)


def _if_one(has: Callable[[ModelRow], Any]) -> Callable[[Sequence[ModelRow]], bool]:
    """Return the condition that one of the models has something to show."""
    return lambda rows: any(map(has, rows))


def _bounds(row: ModelRow) -> str:
    worst = row.line.score_if_missing_wrong
    best = row.line.score_if_missing_right
    if worst is None or best is None:
        return fixed(None)
    return f"{fixed(worst)} / {fixed(best)}"


MODELS: tuple[Column[ModelRow], ...] = (
    Column(
        key="rank",
        heading="{standing}",
        unit=Unit.RANK,
        value=lambda row: row.line.rank,
        text=lambda row: row.standing,
        outlets=FILES | TRACKER | TERMINAL | RANKING | PAPER,
        meaning="position by score; equal scores share one",
    ),
    Column(
        key="model",
        unit=Unit.MODEL,
        value=lambda row: row.line.model,
        outlets=FILES | TERMINAL | RANKING | PAPER | ANSWERS | COST,
        meaning="the name",
    ),
    Column(
        key="rank_low",
        unit=Unit.RANK,
        value=lambda row: row.line.rank_low,
        outlets=FILES | PROMETHEUS,
        meaning="best rank that the verdicts leave, for all models together at the family's level",
    ),
    Column(
        key="rank_high",
        unit=Unit.RANK,
        value=lambda row: row.line.rank_high,
        outlets=FILES | PROMETHEUS,
        meaning="worst rank that the verdicts leave",
    ),
    Column(
        key="score",
        heading="{score}",
        short="{short_score}",
        unit=Unit.SCORE,
        value=lambda row: row.line.score,
        optional=True,
        outlets=FILES | PROMETHEUS | TRACKER | TERMINAL | RANKING | PAPER,
        meaning="mean over questions, which decides (from the third pass on weighted by round if the "
        "task is in `in_rounds`)",
    ),
    Column(
        key="score_low",
        unit=Unit.SCORE,
        value=lambda row: row.line.score_low,
        optional=True,
        outlets=FILES | PROMETHEUS | TRACKER,
        meaning="lower end of the score's anytime interval",
    ),
    Column(
        key="score_high",
        unit=Unit.SCORE,
        value=lambda row: row.line.score_high,
        optional=True,
        outlets=FILES | PROMETHEUS | TRACKER,
        meaning="upper end of the score's anytime interval",
    ),
    Column(
        key="score_interval",
        heading="{level} {interval}",
        short="interval",
        unit=Unit.INTERVAL,
        value=lambda row: row.span,
        outlets=TERMINAL | RANKING | PAPER,
        need=4,
    ),
    Column(
        key="bayes_mu",
        unit=Unit.SCORE,
        value=lambda row: row.line.bayes_mu,
        optional=True,
        outlets=FILES,
        meaning="Bayes@N posterior mean, with the run's prior if it has one",
    ),
    Column(
        key="bayes_sigma",
        unit=Unit.SCORE,
        value=lambda row: row.line.bayes_sigma,
        optional=True,
        outlets=FILES,
        meaning="its standard deviation",
    ),
    Column(
        key="bayes",
        heading="Bayes@N μ ± σ",
        short="Bayes@N",
        unit=Unit.PLUS_MINUS,
        value=lambda row: (row.line.bayes_mu, row.line.bayes_sigma),
        outlets=Shown.BAYES | RANKING | PAPER,
        need=1,
        spare=True,
    ),
    Column(
        key="trials",
        unit=Unit.COUNT,
        value=lambda row: row.line.trials,
        outlets=FILES | PROMETHEUS | TRACKER | TERMINAL | RANKING | PAPER,
        meaning="counted trials",
    ),
    Column(
        key="issued",
        heading="trials issued",
        unit=Unit.COUNT,
        value=lambda row: row.line.issued,
        summed=True,
        spare=True,
        outlets=FILES | PROMETHEUS | COST,
        meaning="trials issued",
    ),
    Column(
        key="questions",
        unit=Unit.COUNT,
        value=lambda row: row.line.questions,
        spare=True,
        outlets=FILES | RANKING,
        meaning="questions with a counted trial",
    ),
    Column(
        key="few_answers",
        heading="answers",
        unit=Unit.FLAG,
        value=lambda row: has_few(row.line),
        text=lambda row: "few answers" if has_few(row.line) else "",
        outlets=FILES | TERMINAL | RANKING | PAPER,
        meaning="whether it has fewer than ten counted trials, and so comes after all others",
        need=1,
        when=_if_one(lambda row: has_few(row.line)),
    ),
    Column(
        key="missing",
        heading="no answer",
        short="missing",
        unit=Unit.COUNT,
        value=lambda row: row.line.missing,
        outlets=FILES | PROMETHEUS | TRACKER | TERMINAL | ANSWERS,
        meaning="trials without an answer, never scored",
        need=3,
        when=_if_one(lambda row: row.account is not None or row.line.missing),
    ),
    Column(
        key="missing_reasons",
        heading="reasons",
        unit=Unit.COUNTS,
        value=lambda row: dict(row.whole_account.missing),
        text=lambda row: kinds_words(row.whole_account.missing),
        outlets=JSON | ANSWERS,
        meaning="the same by reason",
    ),
    Column(
        key="copies",
        unit=Unit.COUNT,
        value=lambda row: row.line.copies,
        outlets=JSON,
        meaning="of the missing, answers that are held to be copies of earlier ones",
    ),
    Column(
        key="discarded_trials",
        heading="other draw",
        short="other draw",
        unit=Unit.COUNT,
        value=lambda row: row.line.discarded_trials,
        outlets=FILES | PROMETHEUS | TRACKER | TERMINAL | ANSWERS,
        meaning="trials that another draw than the first has answered, lost to verdicts",
        need=2,
        when=_if_one(lambda row: row.line.discarded_trials),
    ),
    Column(
        key="redrawn_trials",
        unit=Unit.COUNT,
        value=lambda row: row.line.redrawn_trials,
        outlets=FILES,
        meaning="trials that another draw has answered and that count: the config says so (`on.discarded`)",
    ),
    Column(
        key="score_if_missing_wrong",
        unit=Unit.SCORE,
        value=lambda row: row.line.score_if_missing_wrong,
        optional=True,
        outlets=FILES,
        meaning="the score if every missing answer among the counted trials were wrong; null if none is "
        "missing",
    ),
    Column(
        key="score_if_missing_right",
        unit=Unit.SCORE,
        value=lambda row: row.line.score_if_missing_right,
        optional=True,
        outlets=FILES,
        meaning="the score if every one of them were right",
    ),
    Column(
        key="score_if_missing",
        heading="score if those were worst / best",
        unit=Unit.SCORE,
        value=lambda row: row.line.score_if_missing_wrong,
        text=_bounds,
        spare=True,
        outlets=ANSWERS,
    ),
    Column(
        key="no_answer_trials",
        heading="no answer",
        unit=Unit.COUNT,
        value=lambda row: row.line.no_answer_trials,
        outlets=JSON | TERMINAL,
        meaning="answers that hold no answer, right or wrong",
        need=2,
        when=_if_one(_often_without_answer),
    ),
    Column(
        key="no_answer",
        heading="answers without text",
        unit=Unit.COUNTS,
        value=lambda row: dict(row.whole_account.no_answer),
        text=lambda row: kinds_words(row.whole_account.no_answer),
        spare=True,
        outlets=JSON | ANSWERS,
        meaning="answers without text, by [cause](scoring.md#answers-without-text)",
        when=_if_one(lambda row: row.whole_account.no_answer),
    ),
    Column(
        key="truncated",
        heading="cut off",
        unit=Unit.COUNT,
        value=lambda row: row.whole_account.truncated,
        outlets=FILES | ANSWERS,
        meaning="answers truncated at the token limit",
    ),
    Column(
        key="after_stop",
        unit=Unit.COUNT,
        value=lambda row: row.line.after_stop,
        spare=True,
        outlets=FILES | ANSWERS,
        meaning="answers that came after the stop: in the estimates, in no verdict",
    ),
    Column(
        key="categories",
        unit=Unit.DATA,
        value=lambda row: list(row.whole_account.categories),
        outlets=JSON,
        meaning="stored answers by category, from category 0 on",
    ),
    Column(
        key="errors",
        unit=Unit.COUNTS,
        value=lambda row: dict(row.whole_account.errors),
        text=lambda row: kinds_words(row.whole_account.errors),
        spare=True,
        outlets=JSON | ANSWERS,
        meaning="failed attempts of trials by kind, those made good later included; a request for n "
        "answers counts n times",
    ),
    Column(
        key="prompt_tokens",
        unit=Unit.COUNT,
        value=lambda row: row.line.prompt_tokens,
        summed=True,
        spare=True,
        outlets=FILES | PROMETHEUS | COST,
        meaning="prompt tokens charged",
    ),
    Column(
        key="completion_tokens",
        unit=Unit.COUNT,
        value=lambda row: row.line.completion_tokens,
        summed=True,
        outlets=FILES | PROMETHEUS | COST,
        meaning="answer tokens charged",
    ),
    Column(
        key="tokens",
        unit=Unit.COUNT,
        value=lambda row: row.tokens,
        text=lambda row: short(row.tokens),
        outlets=JSON | TERMINAL | TRACKER,
        meaning="all tokens charged",
        need=6,
    ),
    Column(
        key="usd",
        heading="USD",
        short="cost",
        unit=Unit.USD,
        value=lambda row: row.line.usd,
        optional=True,
        summed=True,
        outlets=FILES | PROMETHEUS | TRACKER | TERMINAL | COST,
        meaning="US dollars charged; null without a price",
        need=7,
        when=_if_one(lambda row: row.account is not None or row.line.usd is not None),
    ),
    Column(
        key="latency_p50_seconds",
        heading="latency p50",
        unit=Unit.SECONDS,
        value=lambda row: row.whole_account.latency_p50_seconds,
        optional=True,
        outlets=FILES | COST,
        meaning="median latency of the answers",
    ),
    Column(
        key="latency_p95_seconds",
        heading="p95",
        unit=Unit.SECONDS,
        value=lambda row: row.whole_account.latency_p95_seconds,
        optional=True,
        spare=True,
        outlets=FILES | COST,
        meaning="95 % of the answers took no longer",
    ),
    Column(
        key="state",
        unit=Unit.WORDS,
        value=lambda row: row.line.state,
        text=lambda row: state_word(row.line, row.results, running=row.running),
        outlets=FILES | TERMINAL,
        meaning="`active`, `retired` (no open pair needs it; views call it resolved), `stopped` (its "
        "endpoint refused it) or `reference` (of an earlier run)",
    ),
    Column(
        key="waits_for",
        unit=Unit.NAMES,
        value=lambda row: list(row.line.waits_for),
        outlets=JSON,
        meaning="names of the models whose answers it waits for before it is asked more; empty while it "
        "waits for none",
    ),
    Column(
        key="note",
        heading="state",
        unit=Unit.WORDS,
        value=lambda row: note_words(row.line, row.results),
        text=lambda row: state_words(row.line, row.results),
        spare=True,
        outlets=JSON | RANKING,
        meaning="one phrase, such as why it was stopped; for a reference, the source of its results",
    ),
)
"""The leaderboard, one model a row, and the tables of answers and costs."""
