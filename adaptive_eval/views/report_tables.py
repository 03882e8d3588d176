"""The tables of a run's report."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from adaptive_eval.core.results import PairResult
from adaptive_eval.views.accounts import (
    SEVERAL,
    QuestionAccount,
    SeveralAnswers,
    Suspect,
    hardest,
    most_apart,
    several_answers,
    suspect,
)
from adaptive_eval.views.budgets import limited_budgets
from adaptive_eval.views.column_types import Column, Shown, Unit, selected, shown_to_people
from adaptive_eval.views.columns import BUDGETS, DECISIONS, ENDPOINTS, PAIRS, pair_rows
from adaptive_eval.views.details import settings
from adaptive_eval.views.inert import inert
from adaptive_eval.views.model_columns import MODELS, ModelRow, model_rows
from adaptive_eval.views.numbers import NOTHING, count
from adaptive_eval.views.one_look_sentences import difference_interval_name, interval_name
from adaptive_eval.views.plots import (
    MATRIX,
    MOST_DECISIONS,
    Axis,
    Plot,
    ShownPairs,
    pair_matrix,
    scale_over,
    shown_pairs,
)
from adaptive_eval.views.report_columns import decision_rows
from adaptive_eval.views.score_tables import ranking_rows
from adaptive_eval.views.sentences import (
    difference_words,
    level_words,
    pair_decimals,
    score_decimals,
    score_name,
    span_words,
    task_rows,
)
from adaptive_eval.views.summary import RunSummary
from adaptive_eval.views.tables import Cell, Look, Table, column, named, table_of
from adaptive_eval.views.verdicts import of_kind, rank_column, verdict_words

_LATEST = 5  # decisions that a page shows at once

MOST_OPEN = 20
"""Open pairs that a page lists with their progress."""

LABEL = 32
"""Cells that a model's name takes at most; all of it appears on hover, and in report.json."""

_REASON = 40  # characters of a reason that a column has room for
_REASONS = 10  # reasons that a page lists
_OF_MODELS = 6  # models of a reason that a page lists
_SHORT = 18  # cells of a name in a grid, and before a pair
_TINY = 9  # cells of a name in a grid of many columns on a phone
_DENSE = 10  # columns of a grid from which its cells are narrow
_SIGNS = {
    "better": ("▲", "ahead"),
    "worse": ("▼", "behind"),
    "tie": ("=", "tied"),
    "open": ("?", "not resolved"),
    "not needed": ("–", "not needed"),
}


@dataclass(frozen=True)
class ReportTables:
    """The tables of one summary, for a page or as Markdown."""

    summary: RunSummary
    html: bool

    @cached_property
    def names(self) -> Mapping[str, str]:
        """The labels of models."""
        return self.summary.labels(LABEL)

    @cached_property
    def short_names(self) -> Mapping[str, str]:
        """Their labels if there is little room."""
        return self.summary.labels(_SHORT)

    @cached_property
    def rows(self) -> list[ModelRow]:
        """The models, best first."""
        return model_rows(self.summary.results, self.summary.whole_details.models)

    @cached_property
    def pairs(self) -> ShownPairs:
        """The contrasts that a table shows."""
        return shown_pairs(self.summary.results)

    def ranking(self) -> Table:
        """Return the leaderboard."""
        results = self.summary.results
        ranks = rank_column(results)
        words = {
            "standing": ranks.head,
            "score": score_name(results),
            "level": level_words(results),
            "interval": interval_name(results),
        }
        ends = chain.from_iterable(row.span for row in self.rows)
        look = Look(
            digits=score_decimals(results.models), words=words, names=self.names, scale=scale_over(ends)
        )
        kind = "rank intervals" if ranks.ranked else "verdicts"
        return self._of_models(f"Models by score, with {kind}", Shown.RANKING, look)

    def answers(self) -> Table:
        """Return what answers are missing or cut off, by model."""
        caption, look = "Missing and cut-off answers by model", Look(names=self.names)
        columns = shown_to_people(MODELS, Shown.ANSWERS, self.rows)
        if self.long_reasons:
            columns = [one for one in columns if one.key != "missing_reasons"]
        return table_of(caption, columns, self.rows, look)

    @cached_property
    def long_reasons(self) -> list[str]:
        """Why answers are missing, if that takes sentences, as a page lists it: a reason with its models."""
        models: dict[str, list[tuple[int, str]]] = {}
        totals: Counter[str] = Counter()
        for row in self.rows:
            for reason, trials in row.whole_account.missing.items():
                if trials:
                    totals[reason] += trials
                    models.setdefault(reason, []).append((trials, self.names[row.line.model]))
        if not self.html or all(len(reason) <= _REASON for reason in models):
            return []
        found = []
        for reason, total in totals.most_common(_REASONS):
            most = sorted(models[reason], key=lambda one: -one[0])
            named = [f"{name} {trials:,}" for trials, name in most[:_OF_MODELS]]
            if len(most) > _OF_MODELS:
                named.append(count(len(most) - _OF_MODELS, "more model", "more models"))
            found.append(f"{count(total, 'trial')}: {inert(reason)} ({', '.join(named)})")
        if len(totals) > _REASONS:
            found.append(f"{count(len(totals) - _REASONS, 'more reason')}: see report.json.")
        return found

    def cost(self) -> Table:
        """Return what each model has cost."""
        caption = "Trials, tokens, cost and latency by model"
        return self._of_models(caption, Shown.COST, Look(names=self.names))

    def _of_models(self, caption: str, outlet: Shown, look: Look) -> Table:
        return table_of(caption, shown_to_people(MODELS, outlet, self.rows), self.rows, look)

    def tasks(self) -> Table:
        """Return every model's score on every task."""
        results = self.summary.results
        columns: list[Column[Sequence[str]]] = [column("model", _cell_at(0), Unit.MODEL)]
        for place, task in enumerate(results.tasks, start=1):
            weight = f"weight {100 * task.weight:.3g} %"
            head = f"{task.task} ({count(task.questions, 'question')}, {weight})"
            columns.append(column(head, _cell_at(place), Unit.NUMBER))
        caption, rows = "Every model's score on every task", task_rows(results)
        return table_of(
            caption, columns, rows, Look(names=self.names), classes=_grid("figures", len(columns))
        )

    def contrasts(self) -> Table:
        """Return the contrasts with difference, interval and verdict."""
        caption = f"Pairs with difference, {difference_interval_name(self.summary.results)} and verdict"
        return self._of_pairs(caption, Shown.PAIRS, self.pairs.shown)

    def open_contrasts(self) -> Table:
        """Return the open contrasts with their progress, nearest to a verdict first."""
        pairs = [one.pair for one in self.summary.open_pairs[:MOST_OPEN]]
        return self._of_pairs("Open contrasts, nearest to a verdict first", Shown.OPEN, pairs)

    def _of_pairs(self, caption: str, outlet: Shown, pairs: Sequence[PairResult]) -> Table:
        results = self.summary.results
        rows = pair_rows(pairs, results, pair_decimals(pairs))
        pair_questions = "questions"
        if results.tasks:
            pair_questions = "fewest questions of a task"
        words = {
            "level": level_words(results),
            "difference_interval": difference_interval_name(results),
            "pair_questions": pair_questions,
        }
        ends = [end for row in rows if row.pair.kind != "width" for end in row.span]
        scale = Axis.around_zero([results.equivalence, *ends])
        look = Look(words=words, names=self.short_names, scale=scale, margin=results.equivalence)
        return table_of(caption, selected(PAIRS, outlet), rows, look)

    def matrix(self) -> Table | None:
        """Return the verdict of every pair, row against column; None for few pairs or too many models."""
        results = of_kind(self.summary.results, "pair")
        known = pair_matrix(results)
        if known is None:
            return None
        digits = pair_decimals(results.pairs)
        models = [line.model for line in results.models]
        heads = [Cell(text="model", is_head=True)]
        heads += [Cell(text=str(n), whole=name, is_head=True) for n, name in enumerate(models, start=1)]
        if len(models) > _DENSE:
            tiny = self.summary.labels(_TINY)
        else:
            tiny = {}
        rows = []
        for number, (name, pairs) in enumerate(zip(models, known, strict=True), start=1):
            head = named(name, self.short_names)
            whole = ""
            if head.whole:
                whole = head.full
            narrow = ""
            if tiny:
                narrow = f"{number} {tiny[name]}"
            cells = [replace(head, text=f"{number} {head.text}", whole=whole, narrow=narrow, is_head=True)]
            cells += [self._called(pair, digits) for pair in pairs]
            rows.append(cells)
        caption = "Verdict of every pair, row against column"
        return Table(caption=caption, heads=heads, rows=rows, classes=_grid("matrix", len(models)))

    def _called(self, pair: PairResult | None, digits: int) -> Cell:
        if pair is None:
            return Cell(text="", classes="self")
        is_left = pair.verdict == "open" and not pair.needed
        sign, words = _SIGNS["not needed" if is_left else pair.verdict]
        equivalence = self.summary.results.equivalence
        verdict = verdict_words(pair.verdict, equivalence, pair.kind, needed=pair.needed)
        figures = f"{difference_words(pair, digits)} {span_words(pair, digits)}"
        whole = f"{self.names[pair.first]} − {self.names[pair.second]}: {verdict}, {figures}"
        return Cell(text=sign, hidden=words, classes=pair.verdict, whole=whole)

    def rankings(self) -> Table:
        """Return the ranks by each rubric."""
        head, *rows = ranking_rows(self.summary.whole_details.rankings)
        columns: list[Column[Sequence[str]]] = [column(head[0], _cell_at(0), Unit.MODEL)]
        columns += [
            column(name, _cell_at(place), Unit.NUMBER) for place, name in enumerate(head[1:], start=1)
        ]
        look = Look(names=self.names)
        return table_of(
            "Ranks by rubric or check", columns, rows, look, classes=_grid("figures", len(columns))
        )

    def budgets(self) -> Table | None:
        """Return the budgets that have a limit, and those of scorers; None if there are none."""
        uses = limited_budgets(self.summary.rates.budgets)
        running = self.summary.state == "running"
        if running:
            outlet = Shown.BUDGETS | Shown.RUNNING
        else:
            outlet = Shown.BUDGETS
        if uses:
            return table_of("Budgets", selected(BUDGETS, outlet), uses, classes="")
        return None

    def endpoints(self) -> Table:
        """Return the servers."""
        columns = selected(ENDPOINTS, Shown.ENDPOINTS)
        look = Look(names=self.names)
        return table_of("Endpoints over the last minute", columns, self.summary.endpoints, look)

    def decisions(self) -> list[Table]:
        """Return the decisions: as Markdown in one table, on a page the latest first in one by itself."""
        rows = decision_rows(self.summary)[-MOST_DECISIONS:]
        columns = selected(DECISIONS, Shown.DECISIONS)
        if not self.html:
            return [table_of("Decisions", columns, rows)]
        parts = {
            "Decisions, the latest first": rows[: -_LATEST - 1 : -1],
            "Earlier decisions": rows[-_LATEST - 1 :: -1],
        }
        if len(rows) <= _LATEST:
            del parts["Earlier decisions"]
        return [table_of(caption, columns, part) for caption, part in parts.items()]

    def settings(self) -> Table:
        """Return the settings of the run that fit a line."""
        columns: list[Column[tuple[str, str]]] = [
            column("setting", lambda row: row[0], Unit.NAME),
            column("value", lambda row: row[1], Unit.TEXT),
        ]
        return table_of("Settings of the run", columns, settings(self.summary.whole_details.meta), classes="")

    @property
    def _questions(self) -> Sequence[QuestionAccount]:
        return self.summary.whole_details.questions or ()

    def apart(self) -> Table:
        """Return the questions on which models differ most, with the share of right answers by model."""
        columns: list[Column[QuestionAccount]] = [
            column("question", _question_name, Unit.NAME),
            column("spread", lambda one: one.spread, Unit.SCORE, spare=True),
        ]
        models = self.summary.results.models[:MATRIX]
        for place, line in enumerate(models):
            if self.html:
                head = str(place + 1)
            else:
                head = line.model
            text = _right_words(place, self.html)
            shade = _shade(place)
            columns.append(
                column(head, _right_at(place), Unit.NUMBER, text=text, kind=shade, hover=line.model)
            )
        caption = "Questions on which models differ most: right answers in per cent, by model"
        rows = most_apart(self._questions)
        classes = _grid("shares", len(models))
        return table_of(caption, columns, rows, classes=classes)

    def several(self) -> Table | None:
        """Return pass@k and pass^k by model; None if no question has several answers."""
        if self.summary.whole_details.together:
            return None
        rows = several_answers(self._questions, self.summary.results)
        if not rows:
            return None
        columns: list[Column[SeveralAnswers]] = [
            column("model", lambda row: row.model, Unit.MODEL),
            column("fewest answers to a question", lambda row: row.fewest, Unit.COUNT, spare=True),
        ]
        for k in SEVERAL:
            if any(k in row.pass_at for row in rows):
                spare = k > SEVERAL[0]
                columns.append(column(f"pass@{k}", _pass_at(k), Unit.SCORE, spare=spare))
                columns.append(column(f"pass^{k}", _pass_hat(k), Unit.SCORE, spare=spare))
        return table_of("pass@k and pass^k by model", columns, rows, Look(names=self.names), classes="")

    def suspects(self, most: int) -> Table:
        """Return the questions whose right answer may be wrong."""
        columns: list[Column[Suspect]] = [
            column("question", lambda row: _question_name(row.question), Unit.NAME),
            column("fraction correct", lambda row: row.question.correct, Unit.SCORE),
            column("trials", lambda row: row.question.trials, Unit.COUNT, spare=True),
            column("why", lambda row: row.why),
        ]
        rows = suspect(self._questions)[:most]
        return table_of("Questions whose right answer may be wrong", columns, rows, classes="")

    def hardest(self) -> Table:
        """Return the questions that were answered right least often."""
        return difficulty("The hardest questions", hardest(self._questions))


def difficulty(caption: str, questions: Sequence[QuestionAccount]) -> Table:
    """Return questions with how hard they are."""
    columns: list[Column[QuestionAccount]] = [
        column("question", _question_name, Unit.NAME),
        column("trials", lambda one: one.trials, Unit.COUNT, spare=True),
        column("fraction correct", lambda one: one.correct, Unit.SCORE),
        column("spread over models", lambda one: one.spread, Unit.SCORE, spare=True),
    ]
    return table_of(caption, columns, questions, classes="")


def drawn(plot: Plot, names: Mapping[str, str]) -> tuple[Plot, list[Cell], Table]:
    """Return a plot with the names of its lines, and its figures as a table."""
    head, *rows = plot.rows
    columns: list[Column[Sequence[str]]] = []
    for place, name in enumerate(head):
        columns.append(column(names.get(name, name), _cell_at(place), Unit.NUMBER, hover=name))
    table = table_of(f"{plot.title} as a table", columns, rows, classes="figures")
    return plot, [named(name, names) for name, _, _ in plot.lines], table


def _grid(classes: str, columns: int) -> str:
    if columns > _DENSE:
        return f"grid {classes} dense"
    return f"grid {classes}"


def _cell_at(place: int) -> Callable[[Sequence[str]], str]:
    return lambda row: row[place]


def _pass_at(k: int) -> Callable[[SeveralAnswers], float | None]:
    return lambda row: row.pass_at.get(k)


def _pass_hat(k: int) -> Callable[[SeveralAnswers], float | None]:
    return lambda row: row.pass_hat.get(k)


def _right_at(place: int) -> Callable[[QuestionAccount], tuple[int, int]]:
    return lambda one: one.by_model[place]


def _right_words(place: int, percent: bool) -> Callable[[QuestionAccount], str]:
    def text(one: QuestionAccount) -> str:
        trials, right = one.by_model[place]
        if not trials:
            return NOTHING
        if percent:
            return f"{100 * right / trials:.0f}"
        return f"{right}/{trials}"

    return text


def _shade(place: int) -> Callable[[QuestionAccount], str]:
    def shade(one: QuestionAccount) -> str:
        trials, right = one.by_model[place]
        if trials:
            return f"s{5 * right / trials:.0f}"
        return ""

    return shade


def _question_name(one: QuestionAccount) -> str:
    return f"{one.task} / {one.question}"
