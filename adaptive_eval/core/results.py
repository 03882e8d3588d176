"""The results of a session at one moment, as plain data for views and reports.

:class:`Results` is produced by :meth:`adaptive_eval.core.session.Session.results`, stored in the run
file as JSON (:func:`to_json`), and read back by monitor and report. Scores are in the
rubric's own units (for a binary rubric: fraction correct).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from adaptive_eval.core.results_table import Columns, ResultsTable, columns_of, frame_of
from adaptive_eval.errors import Coded, codes_of
from adaptive_eval.stops import ENDPOINTS, FAILED, INTERRUPTED, REACHED, STOPS, StopReason
from adaptive_eval.trial import FIXED as FIXED

if TYPE_CHECKING:
    from pydantic import TypeAdapter

ModelState = Literal["active", "retired", "stopped", "reference"]
BudgetScope = Literal["run", "model", "task", "scorer"]
Verdict = Literal["open", "better", "worse", "tie"]
Table = Literal["models", "pairs", "tasks", "budgets"]
ContrastKind = Literal["pair", "not-worse", "threshold", "width"]


@dataclass(frozen=True, slots=True)
class ModelResult:
    """One model's line of the leaderboard.

    Parameters
    ----------
    model : str
        The model's name.
    state : {'active', 'retired', 'stopped', 'reference'}
        ``retired``: no open pair needs it; ``stopped``: its endpoint refused it, or its own budget ended (see
        `note`); ``reference``:
        its trials are those of an earlier run (see `note`), and it is asked nothing.
    trials : int
        Trials that count: its common prefix without missing trials; of a reference all.
    issued, missing, after_stop : int
        Steps issued so far; trials without an answer, or with a copy; trials that finished after the stop.
    questions : int
        Questions with at least one counted trial.
    score : float or None
        Raw mean over seen questions, the decision scale; None before the first trial.
    score_low, score_high : float or None
        Anytime confidence interval of `score` at the run's confidence.
    bayes_mu, bayes_sigma : float or None
        Bayes@N posterior mean and standard deviation over all questions (uniform prior, and the run's prior).
    rank : int
        Position in the order by score, ties sharing a position, 1 is best.
    rank_low, rank_high : int
        Rank interval, simultaneous at the family's level.
    prompt_tokens, completion_tokens : int
        Tokens charged so far.
    usd : float or None
        Cost so far; None if the config gives no price.
    note : str
        Words from outside, such as why the model was stopped; empty if its own budget did.
    score_if_missing_wrong, score_if_missing_right : float or None
        What `score` would be had every missing answer among the counted steps been of the least, or of the
        greatest worth; None if none is missing.
    copies : int
        Of the missing trials, those whose answers are held to be copies of earlier ones.
    discarded_trials : int
        Answered trials that are lost to verdicts, because earlier draws of them were given up.
    redrawn_trials : int
        Answered trials that count although earlier draws of them were given up (``on: {discarded: redraw}``).
    no_answer_trials : int
        Answers that hold no answer (:attr:`adaptive_eval.trial.Completion.no_answer`), right or wrong.
    waits_for : tuple of str
        Models whose answers this one waits for before it is asked more; empty while it waits for none.
    """

    model: str
    state: ModelState
    trials: int
    issued: int
    missing: int
    after_stop: int
    questions: int
    score: float | None
    score_low: float | None
    score_high: float | None
    bayes_mu: float | None
    bayes_sigma: float | None
    rank: int
    rank_low: int
    rank_high: int
    prompt_tokens: int
    completion_tokens: int
    usd: float | None
    note: str = ""
    score_if_missing_wrong: float | None = None
    score_if_missing_right: float | None = None
    copies: int = 0
    discarded_trials: int = 0
    redrawn_trials: int = 0
    no_answer_trials: int = 0
    waits_for: tuple[str, ...] = ()

    @property
    def counted_steps(self) -> int:
        """Steps that count: trials, missing ones, and those that are lost to verdicts."""
        return self.trials + self.missing + self.discarded_trials


@dataclass(frozen=True, slots=True)
class PairResult:
    """One contrast the goal asks about: a pair of models, or one model by itself.

    Parameters
    ----------
    first, second : str
        Model names; `verdict` and `difference` are seen from `first`. For a single model, `second` is the
        number it is held against or the width to which it is measured.
    verdict : {'open', 'better', 'worse', 'tie'}
        ``better``: `first` scores higher.
    difference : float or None
        Score of `first` minus score of `second` at equal progress, in score units.
    difference_low, difference_high : float or None
        Anytime confidence sequence of the difference.
    evidence, threshold : float
        Natural logarithm of the e-value, and of the value at which a winner is called now.
    tie_margin : float or None
        How far the tie condition is from holding: 1 when it holds, 0 or less far away; None without a margin.
        For a width, the share of the precision that is reached.
    trials_each : int
        Equal progress at which the pair was last read: trials of both; with a reference, of the other.
    questions : int
        Questions both have seen by then.
    decided_at : int or None
        The step at which the verdict fell.
    kind : {'pair', 'not-worse', 'threshold', 'width'}
        What is compared: two models, a model with a number, or a score's interval with a width; a ``tie`` of
        a width means that the score is measured, and `difference` is the score itself. ``not-worse`` is the
        claim that `first` is not worse than `second` by more than `margin`: ``better`` if it holds, ``worse``
        if it fails.
    margin : float or None
        That of a claim, in score units.
    evidence_beyond : bool
        Whether the log e-value is more than `evidence`, that of the strictest level that the run reads: it is
        guarded no further.
    exact : bool
        Whether the difference is known on these questions: all are answered, by models that repeat their
        answers.
    population_low, population_high : float or None
        Of an exact one, the confidence interval for questions like these.
    needed : bool
        False for an open contrast whose verdict the goal can do without, such as one within the best k.
    p_value : float or None
        Under the rule ``fixed``: of the test of one look, whose -ln p is `evidence`, and whose interval is
        that of one look too.
    test : str
        Name of that test; empty for every other rule.
    """

    first: str
    second: str
    verdict: Verdict
    difference: float | None
    difference_low: float | None
    difference_high: float | None
    evidence: float
    threshold: float
    tie_margin: float | None
    trials_each: int
    questions: int
    decided_at: int | None
    kind: ContrastKind = "pair"
    exact: bool = False
    population_low: float | None = None
    population_high: float | None = None
    needed: bool = True
    p_value: float | None = None
    test: str = ""
    margin: float | None = None
    evidence_beyond: bool = False

    @property
    def key(self) -> ContrastKey:
        """What tells this contrast from all others of a run."""
        return contrast_key(self.kind, self.first, self.second, self.margin)


ContrastKey: TypeAlias = tuple[str, str, str, float | None]


def contrast_key(kind: str, first: str, second: str, margin: float | None) -> ContrastKey:
    """Return what tells a contrast from all others of a run: of a pair, either model may come first.

    Examples
    --------
    >>> contrast_key("pair", "b", "a", None) == contrast_key("pair", "a", "b", None)
    True
    >>> contrast_key("not-worse", "b", "a", 0.1)
    ('not-worse', 'b', 'a', 0.1)
    """
    if kind == "pair" and second < first:
        first, second = second, first
    return kind, first, second, margin


@dataclass(frozen=True, slots=True)
class Decision:
    """Something the session decided, as data; :func:`adaptive_eval.describe` makes the sentence of it.

    Parameters
    ----------
    kind : {'pair', 'retired', 'model_stopped', 'withdrawn', 'stop', 'servers', 'laid_out'}
        What was decided; ``servers``: who of those found for a model is asked from now on; ``laid_out``: what
        a model is asked in its next round, while answers before it are awaited.
    models : tuple of str
        The models concerned.
    verdict : str
        ``better`` / ``worse`` / ``tie`` for a pair (seen from ``models[0]``), the reason for a stop,
        ``joined`` / ``left`` / ``refused`` for servers.
    step : int
        Number of trials of each model at which it fell.
    trials : int
        Counted trials of the whole run at that moment.
    text : str
        Words from outside: of an endpoint that refuses a model, or stored by an earlier version. Else empty.
    evidence : mapping of JSON-able data
        What is behind it. Of a pair: difference, low, high, statistic, threshold, questions, kind, and for a
        tie the equivalence margin; statistic_beyond if the statistic is a least value. Of a retirement: the
        models it is separated from, tied with, and those with which an open pair is lost. Of a stop: as in
        :class:`StopVerdict`. Of ``laid_out``: the indices that are
        awaited, each with the category that stands for it.
    """

    kind: Literal["pair", "retired", "model_stopped", "withdrawn", "stop", "servers", "laid_out"]
    models: tuple[str, ...]
    verdict: str
    step: int
    trials: int
    text: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BudgetLine:
    """One budget: what is spent, what is reserved by trials in flight, and the limit.

    Parameters
    ----------
    name : str
        ``trials``, ``tokens``, ``prompt_tokens``, ``completion_tokens``, ``usd`` or ``wall_clock`` (seconds).
    spent, reserved : float
        Spent so far; what trials in flight may take at most.
    limit : float or None
        The limit.
    scope : {'run', 'model', 'task', 'scorer'}
        Whose budget it is. That of a scorer, a judge or verifier, is no part of the run's; it also has the
        name ``requests``.
    owner : str
        Name of the model or task, or which scorer; empty for the run's.
    presumed : float
        The part of `spent` that no endpoint has reported: requests without an answer that may have been
        billed, each at its worst case.
    """

    name: str
    spent: float
    reserved: float
    limit: float | None
    scope: BudgetScope = "run"
    owner: str = ""
    presumed: float = 0.0


@dataclass(frozen=True, slots=True)
class StopVerdict:
    """Why the session stopped, as data; :func:`adaptive_eval.describe` makes the sentence of it.

    Parameters
    ----------
    reason : str
        ``resolved``, ``partial``, ``budget``, ``max_passes``, ``endpoints``, ``unusable``, ``lost`` or
        ``interrupted``.
    text : str
        Words from outside: of the program that ended the session, or stored by an earlier version. Else
        empty.
    evidence : mapping of JSON-able data
        ``budget``: `scope` (run, task, scorer, or models), `owner`, and `used`, by budget what is spent and
        the limit; or `models`, of each whose budget ended the same or words. ``resolved``: `goals` that are
        met, `pairs` and `models` decided, and how many are tied. ``partial``: `open` pairs, the models that
        stopped answering (`silent`), whose answers cannot be used (`unusable`) or whose budgets ended
        (`spent`), references whose stored answers are too `noisy` for any verdict, and `sample` if the
        questions are too few for any. ``max_passes``: `passes`. ``endpoints``: `models`. ``unusable``:
        `cause`, and either (``models``) why each of the `models` was stopped, or (``scorer``,
        ``nothing_found``) a task (`owner`), how many of its `answers` are `affected`, the scorer's error
        (`said`) and some `examples`. ``lost``: the `open` pairs and the lost answers of each model.

    Examples
    --------
    >>> StopVerdict("budget", evidence={"scope": "run", "owner": "", "used": {"trials": [100, 100]}}).reason
    'budget'
    """

    reason: StopReason
    text: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Range:
    """A forecast quantity: median and 80 % interval."""

    low: float
    median: float
    high: float


@dataclass(frozen=True, slots=True)
class PairForecast:
    """One open contrast: probability that it is called before the cap, and trials (of both) until then."""

    first: str
    second: str
    resolved: float
    trials: Range
    kind: ContrastKind = "pair"
    margin: float | None = None

    @property
    def key(self) -> ContrastKey:
        """That of the contrast that it is about."""
        return contrast_key(self.kind, self.first, self.second, self.margin)


@dataclass(frozen=True, slots=True)
class Chance:
    """Probability that the goal is reached once the run has so many trials in all."""

    trials: float
    resolved: float


@dataclass(frozen=True, slots=True)
class RunForecast:
    """A forecast of the rest of the run; approximate, from a simulation of the open pairs.

    Parameters
    ----------
    resolved_within_budget : float
        Probability that every pair is called before a budget or cap ends the run.
    trials, tokens : Range
        Further trials and tokens.
    usd : Range or None
        Further USD; None if the config gives no price.
    pairs : tuple of PairForecast
        The open pairs that were simulated: of many those that will take longest.
    open_pairs : int
        All open pairs that the goal needs.
    chances : tuple of Chance
        Numbers of trials in all that suffice with probabilities of about 10, 50 and 80 %, as far as some do.
    """

    resolved_within_budget: float
    trials: Range
    tokens: Range
    usd: Range | None
    pairs: tuple[PairForecast, ...]
    open_pairs: int = 0
    chances: tuple[Chance, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskScore:
    """One model on one task: its raw mean over seen questions with its anytime interval, in the task's units.

    None before the first trial.
    """

    model: str
    score: float | None
    score_low: float | None
    score_high: float | None


@dataclass(frozen=True, slots=True)
class TaskResult:
    """One of several tasks.

    Parameters
    ----------
    task : str
        Its name.
    questions : int
        Number of its questions.
    weight : float
        Its share of the overall score.
    scores : tuple of TaskScore
        Every model's score on it, in the order of the session.
    """

    task: str
    questions: int
    weight: float
    scores: tuple[TaskScore, ...]


@dataclass(frozen=True, slots=True)
class RulePlugin:
    """A stopping rule that an installed package offers.

    Parameters
    ----------
    package : str
        The package and its version.
    promise : str
        What the rule says of itself.
    in_family : bool
        Whether the run's family sets its threshold; else it decides every pair by a fixed one.
    """

    package: str
    promise: str
    in_family: bool = True


@dataclass(frozen=True, slots=True)
class ChangedModel:
    """A model, or one of its servers, whose outcomes on the same questions have changed.

    Parameters
    ----------
    model, server : str
        The model; the server's address if only what it answered has changed, else empty.
    trials : int
        Trials before the change, about.
    at : float
        Unix time of the change.
    before, after : float
        Mean category before and after it; mean score if scores are numbers.
    false_alarm : float
        Largest probability that a model which stays the same is said to change in a run.
    """

    model: str
    server: str
    trials: int
    at: float
    before: float
    after: float
    false_alarm: float


@dataclass(frozen=True, slots=True, repr=False)
class Results(ResultsTable):
    """The whole state of a session that a person may want to see.

    `prior` says which earlier trials are in Bayes@N; None for none. `fixed_passes` is
    the number of trials a question that a run of fixed length would have needed to find the decided pairs,
    with the same error rate and a power of 90 % (approximate); None before the end and if that cannot be
    said. `rule_plugin` is where a rule comes from that is not one of ours. `tasks` holds several tasks one by
    one; empty for one.
    `ties` says whether the error rate of ties is that of each pair (``pair``) or of the `family`.
    `top_k` is the k of a goal that asks for the best k models; None for any other. `changes` are models that
    have changed during the run. `in_rounds` are the tasks that are asked in rounds; None if that
    is unknown. `spend` is what the run spends; if tokens or USD, `pass_cost` is what one trial of every
    question of every model costs. `scale` is the lowest and the highest score; None of an earlier version.
    `target` is what verdicts are about: these questions (``benchmark``), or questions like these
    (``population``). The rule ``fixed`` is that of results whose number of trials was fixed before anybody
    looked: its verdicts and intervals are those of one look. Of the rule ``labels`` verdicts are those of
    labels, and `judge_alone` is what the scores alone say of all pairs.
    """

    goal: str
    rule: str
    confidence: float
    family: str
    equivalence: float | None
    questions: int
    models: tuple[ModelResult, ...]
    pairs: tuple[PairResult, ...]
    budgets: tuple[BudgetLine, ...]
    trials: int
    stop: StopVerdict | None
    warnings: tuple[str, ...] = ()
    forecast: RunForecast | None = None
    prior: str | None = None
    fixed_passes: int | None = None
    rule_plugin: RulePlugin | None = None
    tasks: tuple[TaskResult, ...] = ()
    ties: str = "pair"
    top_k: int | None = None
    changes: tuple[ChangedModel, ...] = ()
    in_rounds: tuple[str, ...] | None = None
    spend: str = "trials"
    pass_cost: float | None = None
    scale: tuple[float, float] | None = None
    target: str = "benchmark"
    judge_alone: Results | None = None

    @property
    def tokens(self) -> int:
        """Tokens charged so far, of all models."""
        return sum(line.prompt_tokens + line.completion_tokens for line in self.models)

    @property
    def usd(self) -> float | None:
        """Cost so far, of all models; None if the config gives no price."""
        costs = [line.usd for line in self.models if line.usd is not None]
        if costs:
            return sum(costs)
        return None

    @property
    def exit_code(self) -> int:
        """The exit code of the run: a claim that fails comes before a budget that has ended."""
        if self.stop is None:
            return INTERRUPTED
        code = STOPS[self.stop.reason].exit_code
        if code in (INTERRUPTED, ENDPOINTS):
            return code
        if any(pair.kind == "not-worse" and pair.verdict == "worse" for pair in self.pairs):
            return FAILED
        if self.stop.evidence.get("is_goal"):
            return REACHED
        return code

    def to_columns(self, table: Table = "models") -> dict[str, list[Any]]:
        """Return one of the tables as columns of plain Python values.

        Parameters
        ----------
        table : {'models', 'pairs', 'tasks', 'budgets'}
            One row a model, a contrast, a model and task, or a budget.

        Returns
        -------
        dict of str to list
            Equally long columns, as data-frame libraries take them.
        """
        if table != "tasks":
            return columns_of(getattr(self, table))
        columns: Columns = {"task": [], "questions": [], "weight": []}
        scores: list[TaskScore] = []
        for task in self.tasks:
            scores += task.scores
            for name in ("task", "questions", "weight"):
                columns[name] += [getattr(task, name)] * len(task.scores)
        return columns | columns_of(scores)

    def to_frame(self, table: Table = "models") -> Any:
        """Return one of the tables as a ``pandas.DataFrame``; see :meth:`to_columns`.

        Raises
        ------
        UsageError
            If pandas is not installed.
        """
        return frame_of(self.to_columns(table))


@cache
def _adapter() -> TypeAdapter[Results]:
    from pydantic import TypeAdapter  # a session that stores nothing needs none of it

    return TypeAdapter(Results)


def to_json(results: Results) -> dict[str, Any]:
    """Return `results` as JSON-able data."""
    data: dict[str, Any] = _adapter().dump_python(results, warnings=False)  # NumPy numbers are numbers too
    return {**data, "warning_codes": codes_of(results.warnings)}


def from_json(data: Mapping[str, Any]) -> Results:
    """Rebuild :class:`Results` from what :func:`to_json` returned, as it is or after a trip through JSON."""
    results = _adapter().validate_python(data)
    warnings = list(results.warnings)
    for number, code in enumerate(data.get("warning_codes") or ()):
        if code is not None:
            warnings[number] = Coded(code, warnings[number])
    return replace(results, warnings=tuple(warnings))
