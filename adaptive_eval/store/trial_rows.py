"""The rows of trials and attempts: the queries that select them, and how they become records."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

from adaptive_eval.store.codec import Packed, load_json, unpack, unpack_optional
from adaptive_eval.store.records import AttemptRecord, TrialRecord
from adaptive_eval.store.zstd import Dictionaries
from adaptive_eval.trial import Completion, Score, TrialKey, TrialRequest, Usage

__all__ = [
    "ANSWERS_BY_SIGNALS",
    "ATTEMPTS",
    "ERROR_COUNTS",
    "TRIALS",
    "TRIALS_NEWEST_FIRST",
    "TrialDecoder",
    "attempt_of",
    "id_of",
    "ids_of",
    "question_ids",
]


def id_of(names: Sequence[str], name: str | None) -> int | None:
    """Return the id of a name to filter by: None for no filter, -1 (no row) for one not seen yet."""
    if name is None:
        return None
    return names.index(name) if name in names else -1


def ids_of(names: Sequence[str], wanted: str | Collection[str] | None) -> str | None:
    """Return the ids of the names to filter by as a JSON list, or None for no filter.

    Examples
    --------
    >>> ids_of(["oak", "elm"], "elm"), ids_of(["oak", "elm"], {"ash"}), ids_of(["oak"], None)
    ('[1]', '[]', None)
    """
    if wanted is None:
        return None
    some = {wanted} if isinstance(wanted, str) else set(wanted)
    return json.dumps([number for number, name in enumerate(names) if name in some])


def question_ids(questions: Sequence[tuple[str, str]], task: str | None, question: str | None) -> str | None:
    """Return the ids of the questions to filter by as a JSON list, or None for no filter.

    Examples
    --------
    >>> question_ids([("aime", "1"), ("gsm", "1")], "gsm", None)
    '[1]'
    """
    if task is None and question is None:
        return None
    return json.dumps(
        [
            number
            for number, (of, name) in enumerate(questions)
            if task in (None, of) and question in (None, name)
        ]
    )


# CROSS JOIN: outcomes first, in id order, filtered before any answer is looked up.
_QUERY = """
SELECT o.id, o.model, o.step, o.question, o.repeat, o.seed,
       o.category, o.prompt_tokens, o.completion_tokens, o.cached_tokens, o.latency, o.finished_at,
       o.finish_reason, o.missing, o.after_stop,
       b.body, a.sent_seed, a.text, a.served_model, a.response_id, a.usage, a.logprobs, a.extracted, a.reason,
       a.signal_set, a.signals
FROM outcomes AS o CROSS JOIN answers AS a ON a.outcome = o.id CROSS JOIN bodies AS b ON b.id = a.body
WHERE o.id {beyond} :last AND o.id <= :end
  AND (:models IS NULL OR o.model IN (SELECT value FROM json_each(:models)))
  AND (:questions IS NULL OR o.question IN (SELECT value FROM json_each(:questions)))
  AND (:step IS NULL OR o.step = :step)
  AND (:category IS NULL OR o.category = :category)
  AND (:missing IS NULL OR (o.missing IS NOT NULL) = :missing)
  AND (:after_stop IS NULL OR o.after_stop = :after_stop)
ORDER BY o.id {order} LIMIT :batch
"""

TRIALS = _QUERY.format(beyond=">", order="ASC")
"""Whole trials from id ``:last`` on, the filters being NULL or a value; rows for :class:`TrialDecoder`."""

TRIALS_NEWEST_FIRST = _QUERY.format(beyond="<", order="DESC")
"""The same backwards."""


class TrialDecoder:
    """Turns rows of :data:`TRIALS` into records."""

    def __init__(
        self,
        models: list[str],
        questions: list[tuple[str, str]],
        signal_sets: list[str],
        dictionaries: Dictionaries,
    ) -> None:
        self._models = models
        self._questions = questions
        self._signal_sets: list[list[str]] = [json.loads(names) for names in signal_sets]
        self._dictionaries = dictionaries

    def __call__(self, row: tuple[Any, ...]) -> TrialRecord:
        """Return the trial of one row."""
        _, model, step, question, repeat, seed = row[:6]
        category, prompt, completion, cached, latency, finished_at, finish_reason, missing, after_stop = row[
            6:15
        ]
        body, sent_seed, *answer = row[15:]
        charged = Usage(prompt, completion, cached)
        sent = load_json(body)
        if sent_seed is not None:
            sent["seed"] = sent_seed
        task, name = self._questions[question]
        request = TrialRequest(TrialKey(self._models[model], step), task, name, repeat, seed)
        answered = answer[0] is not None  # its text
        return TrialRecord(
            request,
            finished_at,
            self._completion(finish_reason, latency, charged, *answer[:5]) if answered else None,
            self._score(category, *answer[5:]) if answered else None,
            unpack_optional(missing),
            bool(after_stop),
            sent,
            charged,
        )

    def _score(
        self, category: int | None, extracted: Packed | None, reason: Packed, signal_set: int, signals: Packed
    ) -> Score:
        names, values = self._signal_sets[signal_set], load_json(signals)
        return Score(
            category, unpack_optional(extracted), dict(zip(names, values, strict=True)), unpack(reason)
        )

    def _completion(
        self,
        finish_reason: Packed,
        latency: float,
        charged: Usage,
        text: Packed,
        served_model: Packed,
        response_id: Packed,
        usage: Packed | None,
        logprobs: Packed | None,
    ) -> Completion:
        reported = charged if usage is None else Usage(*load_json(usage))
        return Completion(
            unpack(text, self._dictionaries),
            unpack(finish_reason),
            reported,
            latency,
            unpack(served_model),
            unpack(response_id),
            None if logprobs is None else load_json(logprobs),
            charged if charged.total_tokens < reported.total_tokens else None,
        )


ATTEMPTS = """
SELECT id, model, step, attempt, endpoint, started_at, latency, status, error, message FROM attempts
WHERE id > :last AND id <= :end AND (:model IS NULL OR model = :model) AND (:step IS NULL OR step = :step)
  AND (NOT :errors_only OR error IS NOT NULL)
ORDER BY id LIMIT 4096
"""
"""Attempts from id ``:last`` on, the filters being NULL or a value."""

ANSWERS_BY_SIGNALS = """
SELECT o.model, a.signal_set, count(*) FROM answers AS a JOIN outcomes AS o ON o.id = a.outcome
WHERE a.signal_set IS NOT NULL GROUP BY o.model, a.signal_set
"""
"""Answers by model and the names of their signals."""

ERROR_COUNTS = """
SELECT model, error, count(*) FROM attempts
WHERE error IS NOT NULL AND error NOT IN ('cancelled', 'withdrawn')
GROUP BY model, error ORDER BY model, error
"""
"""Failed attempts by model and kind of failure."""


def attempt_of(
    models: list[str],
    endpoints: list[str],
    _id: int,
    model: int,
    step: int,
    attempt: int,
    endpoint: int,
    started_at: float,
    latency: float,
    status: int | None,
    error: Packed | None,
    message: Packed,
) -> AttemptRecord:
    """Return the attempt of one row of :data:`ATTEMPTS`; names are by id."""
    return AttemptRecord(
        TrialKey(models[model], step),
        attempt,
        endpoints[endpoint],
        started_at,
        latency,
        status,
        unpack_optional(error),
        unpack(message),
    )
