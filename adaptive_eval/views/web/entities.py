"""The pages behind the run's page: one model, one pair, one question, one trial, and lists of them.

Models and pairs are addressed by their number in the results, questions by theirs in the run file: names
can hold anything, numbers cannot.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from starlette.exceptions import HTTPException

from adaptive_eval.core.results import PairResult
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TrialRecord
from adaptive_eval.trial import TrialKey
from adaptive_eval.views.decisions import note_words
from adaptive_eval.views.labels import distinct_labels
from adaptive_eval.views.numbers import decimals_for
from adaptive_eval.views.snapshot import RunView
from adaptive_eval.views.verdicts import oriented
from adaptive_eval.views.web.pages import (
    LABEL,
    brief_labels,
    pair_numbers,
    pair_words,
    render,
    state_words,
)
from adaptive_eval.views.web.tally import QuestionLine, Tally
from adaptive_eval.views.web.trial_pages import shown, trial_page

QUESTIONS_PER_PAGE = 200
MOST_DIFFERENT = 10
"""Questions shown on a pair's page."""

_LARGEST = 2**63 - 1  # as far as the run file counts

_ORDERS = (
    ("spread", "models differ most"),
    ("hard", "hardest"),
    ("easy", "easiest"),
    ("asked", "as first asked"),
)


@dataclass(frozen=True, slots=True)
class _PairQuestion:
    number: int
    question: str
    first_sum: int
    first_n: int
    second_sum: int
    second_n: int

    @property
    def difference(self) -> float:
        return self.first_sum / self.first_n - self.second_sum / self.second_n


@dataclass(frozen=True, slots=True)
class _ModelOnQuestion:
    model: str
    trials: int
    missing: int
    mean: float | None


class RunPages:
    """Pages of one run, at one moment."""

    def __init__(self, reader: RunReader, view: RunView, tally: Tally, query: Mapping[str, str]) -> None:
        self._reader = reader
        self._view = view
        self._tally = tally
        self._query = query
        standing = [line.model for line in view.results.models]
        self._models = [*standing, *(name for name in tally.models if name not in standing)]
        self._brief = brief_labels(view)
        values = [value for line in view.models for value in (line.low, line.score, line.high)]
        self._shared = {
            "view": view,
            "results": view.results,
            "model_number": {name: number for number, name in enumerate(self._models)},
            "question_number": {names: number for number, names in enumerate(tally.questions)},
            "pair_number": pair_numbers(view),
            "label": distinct_labels(self._models, LABEL),
            "brief": self._brief,
            "states": state_words(view),
            "decimals": decimals_for(values),
            "binary": tally.binary,
            "highest_category": max(1, tally.highest_category),
        }

    def trials(self) -> str:
        """Return the page of all trials."""
        return self._listing("trials", {}, title="All trials", root="../../", base="./")

    def model(self, number: int) -> str:
        """Return the page of a model."""
        name = self._model(number)
        lines = [line for line in self._view.models if line.model == name]
        if not lines:
            return self._listing("trials", {"model": name}, title=name)
        pairs = [pair for pair in self._view.results.pairs if name in (pair.first, pair.second)]
        return self._listing(
            "model",
            {"model": name},
            title=name,
            row=lines[0],
            note=note_words(lines[0], self._view.results),
            pairs=[oriented(pair) for pair in pairs],
            missing=self._tally.missing_reasons(name),
            truncated=self._tally.truncated_answers(name),
            errors=self._reader.error_counts().get(name, {}),
        )

    def pair(self, number: int) -> str:
        """Return the page of a pair."""
        pairs = self._view.results.pairs
        if number >= len(pairs):
            raise HTTPException(404)
        pair = oriented(pairs[number])
        models = tuple(name for name in (pair.first, pair.second) if name in self._models)
        return self._listing(
            "pair",
            {"model": models},
            title=f"{self._brief[pair.first]} and {self._brief[pair.second]}",
            pair=pair,
            words=pair_words(pair, self._brief),
            questions=self._most_different(pair),
        )

    def question(self, number: int) -> str:
        """Return the page of a question."""
        if number >= len(self._tally.questions):
            raise HTTPException(404)
        task, question = self._tally.questions[number]
        return self._listing(
            "question",
            {"task": task, "question": question},
            title=question,
            task=task,
            models=self._models_on(number),
        )

    def questions(self) -> str:
        """Return the list of questions."""
        order = self._query.get("order", "")
        if order not in dict(_ORDERS):
            order = "spread" if self._tally.binary else "asked"
        lines = sorted(self._tally.question_lines(), key=lambda line: _place(line, order))
        pages = max(1, math.ceil(len(lines) / QUESTIONS_PER_PAGE))
        page = min(max(1, _whole(self._query.get("page", "1"))), pages)
        start = (page - 1) * QUESTIONS_PER_PAGE
        return render(
            "questions",
            root="../../",
            base="./",
            orders=_ORDERS,
            order=order,
            lines=lines[start : start + QUESTIONS_PER_PAGE],
            page=page,
            pages=pages,
            **self._shared,
        )

    def trial(self, model: int, step: int) -> str:
        """Return the page of a trial."""
        key = self.key(model, step)
        record = self.record(key)
        attempts = list(self._reader.attempts(model=key.model, step=key.index))
        return render(
            "trial",
            root="../../../../",
            base="../../",
            trial=shown(record),
            attempts=attempts[:50],
            **self._shared,
        )

    def key(self, model: int, index: int) -> TrialKey:
        """Return the trial with these numbers."""
        if index > _LARGEST:
            raise HTTPException(404)
        return TrialKey(self._model(model), index)

    def record(self, key: TrialKey) -> TrialRecord:
        """Return a stored trial."""
        for record in self._reader.trials(model=key.model, step=key.index, limit=1):
            return record
        raise HTTPException(404)

    def _listing(
        self,
        template: str,
        wanted: Mapping[str, object],
        *,
        root: str = "../../../",
        base: str = "../",
        **context: object,
    ) -> str:
        chosen, beyond = self._query.get("outcome", ""), self._query.get("beyond", "")
        if chosen == "missing":
            wanted = {**wanted, "missing": True}
        elif chosen:
            wanted = {**wanted, "category": _whole(chosen)}
        page = trial_page(self._reader, wanted, self._beyond(beyond) if beyond else None)
        return render(
            template,
            root=root,
            base=base,
            page=page,
            chosen=chosen,
            first=not beyond,
            **context,
            **self._shared,
        )

    def _beyond(self, text: str) -> TrialKey:
        model, _, index = text.partition(".")
        return self.key(_whole(model), _whole(index))

    def _model(self, number: int) -> str:
        if number >= len(self._models):
            raise HTTPException(404)
        return self._models[number]

    def _models_on(self, question: int) -> list[_ModelOnQuestion]:
        tally, means = self._tally, self._tally.means()
        found = []
        for row, model in enumerate(tally.models):
            stored, scored = int(tally.stored[row, question]), int(tally.scored[row, question])
            mean = float(means[row, question]) if scored else None
            found.append(_ModelOnQuestion(model, stored, stored - scored, mean))
        return sorted(found, key=lambda line: -1.0 if line.mean is None else line.mean, reverse=True)

    def _most_different(self, pair: PairResult) -> list[_PairQuestion]:
        """Return the questions on which the two differ most, for right-or-wrong rubrics."""
        tally = self._tally
        first, second = tally.row(pair.first), tally.row(pair.second)
        if first is None or second is None or not tally.binary:
            return []
        both = np.flatnonzero((tally.scored[first] > 0) & (tally.scored[second] > 0))
        rows = [first, second]
        shrunk = (tally.category_sum[rows][:, both] + 1) / (tally.scored[rows][:, both] + 2)
        order = both[np.argsort(-np.abs(shrunk[0] - shrunk[1]), kind="stable")][:MOST_DIFFERENT]
        return [
            _PairQuestion(
                q,
                tally.questions[q][1],
                *(
                    int(counts[row, q])
                    for row in (first, second)
                    for counts in (tally.category_sum, tally.scored)
                ),
            )
            for q in order.tolist()
        ]


def _place(line: QuestionLine, order: str) -> tuple[float, int]:
    mean = 2.0 if line.mean is None else line.mean
    key = {"spread": -(line.spread or 0.0), "hard": mean, "easy": -mean if mean < 2.0 else 1.0, "asked": 0.0}
    return key[order], line.number


def _whole(text: str) -> int:
    """Return a number from an address."""
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise HTTPException(404)
    return int(text)
