"""The rows of trials and attempts: the queries that select them, and how they become records."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any, TypeAlias, TypeVar

from adaptive_eval.store.codec import unpack, unpack_optional
from adaptive_eval.store.records import AttemptRecord, TrialRecord
from adaptive_eval.store.zstd import Dictionaries
from adaptive_eval.trial import Completion, Score, TrialKey, TrialRequest, Usage

Name = TypeVar("Name")
ByNumber: TypeAlias = Sequence[Name] | Mapping[int, Name]
"""Names by their number in the file, which counts from 0."""


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
       a.signal_set, a.signals, {reasoning}, {digest}, {checksum}
FROM outcomes AS o CROSS JOIN answers AS a ON a.outcome = o.id CROSS JOIN bodies AS b ON b.id = a.body
{join}
WHERE o.id {beyond} :last AND o.id <= :end
  AND (:models IS NULL OR o.model IN (SELECT value FROM json_each(:models)))
  AND (:questions IS NULL OR o.question IN (SELECT value FROM json_each(:questions)))
  AND (:step IS NULL OR o.step = :step)
  AND (:category IS NULL OR o.category = :category)
  AND (:missing IS NULL OR (o.missing IS NOT NULL) = :missing)
  AND (:after_stop IS NULL OR o.after_stop = :after_stop)
ORDER BY o.id {order} LIMIT :batch
"""


_HAS_CHECKSUMS = "SELECT 1 FROM pragma_table_info('answers') WHERE name = 'checksum'"
_REASONING = "SELECT name FROM pragma_table_info('reasoning')"


def has_calls(db: sqlite3.Connection) -> bool:
    """Return whether a run file keeps calls of tools: an older one does not."""
    return ("tool_calls",) in db.execute(_REASONING).fetchall()


def trials_query(db: sqlite3.Connection, *, newest_first: bool = False) -> str:
    """Return the query for whole trials after id ``:last``, each filter NULL or a value.

    Its rows are for :class:`TrialDecoder`. An older file has no checksums, reasoning or calls of tools.
    """
    (version,) = db.execute("PRAGMA user_version").fetchone()
    # Both are asked, so that damage to one of them does not switch the checksums off.
    checked = version >= 5 or db.execute(_HAS_CHECKSUMS).fetchone()
    # Where one of them is lost to damage, the checksums tell.
    thought, calls = db.execute(_REASONING).fetchone(), "t.tool_calls" if has_calls(db) else "NULL"
    return _QUERY.format(
        checksum="a.checksum" if checked else "NULL",
        digest="o.answer" if version >= 6 else "NULL",
        reasoning=f"t.text, t.tokens, {calls}" if thought else "NULL, NULL, NULL",
        join="LEFT JOIN reasoning AS t ON t.outcome = o.id" if thought else "",
        beyond="<" if newest_first else ">",
        order="DESC" if newest_first else "ASC",
    )


def checksum_of(
    numbers: Sequence[float | None],
    texts: Sequence[str | None],
    thought: Sequence[str | int | None] | None = None,
) -> bytes:
    """Return the checksum of a trial: its numbers and its texts, names and request included."""
    # SQLite gives 1 as 1.0 in a REAL column, and -0.0 as 0.0. No reasoning: as before there was any.
    whole = [*map(_as_read, numbers), *texts, *(thought or ())]
    return blake2b(json.dumps(whole).encode(), digest_size=8).digest()


def _as_read(number: float | None) -> float | None:
    if type(number) is int or number is None:  # nearly all
        return number
    whole = isinstance(number, bool) or (isinstance(number, float) and number.is_integer())
    return int(number) if whole else number


class TrialDecoder:
    """Turns rows of :func:`trials_query` into records; names are by number."""

    def __init__(
        self,
        models: ByNumber[str],
        questions: ByNumber[tuple[str, str]],
        signal_sets: ByNumber[str],
        dictionaries: Dictionaries,
    ) -> None:
        self._models = models
        self._questions = questions
        self._signal_sets = signal_sets
        self._dictionaries = dictionaries

    def __call__(self, row: tuple[Any, ...]) -> TrialRecord:
        """Return the trial of one row."""
        _, model, step, question, repeat, seed = row[:6]
        category, prompt, completion, cached, latency, finished_at, finish_reason, missing, after_stop = row[
            6:15
        ]
        body, sent_seed, packed, *rest, signal_set, signals = row[15:-5]
        thought, thought_tokens, calls, digest, checksum = row[-5:]
        text = unpack_optional(packed, self._dictionaries)
        reasoning, calls = unpack_optional(thought, self._dictionaries), unpack_optional(calls)
        names = None if text is None else self._signal_sets[signal_set]
        plain = (text, *map(unpack_optional, rest), names, unpack_optional(signals))
        task, name = self._questions[question]
        request = TrialRequest(TrialKey(self._models[model], step), task, name, repeat, seed)
        tokens, sent = (prompt, completion, cached), unpack(body)
        finish_reason, missing = unpack_optional(finish_reason), unpack_optional(missing)
        if checksum is not None:
            numbers = (step, repeat, seed, category, *tokens, latency, finished_at, after_stop, sent_seed)
            asked = (request.key.model, request.task, request.question, finish_reason, missing, sent)
            kept = (reasoning, thought_tokens, *(() if calls is None else (calls,)))
            if checksum_of(numbers, (*asked, *plain), None if reasoning is None else kept) != checksum:
                raise ValueError(f"trial {step} of {request.key.model} does not match its checksum")
        sent_body = json.loads(sent)
        if sent_seed is not None:
            sent_body["seed"] = sent_seed
        answer, score = None, None
        if text is not None:
            answer, score = _answer(category, Usage(*tokens), latency, finish_reason or "", plain)
            if reasoning is not None:
                answer = replace(
                    answer, reasoning=reasoning, reasoning_tokens=thought_tokens, **_called(calls)
                )
            if digest is not None and digest != answer.digest:
                raise ValueError(
                    f"trial {step} of {request.key.model} does not match the digest of its answer"
                )
        return TrialRecord(
            request, finished_at, answer, score, missing, bool(after_stop), sent_body, Usage(*tokens)
        )


def _answer(
    category: int | None, charged: Usage, latency: float, finish_reason: str, plain: tuple[Any, ...]
) -> tuple[Completion, Score]:
    text, served_model, response_id, usage, logprobs, extracted, reason, names, signals = plain
    reported = charged if usage is None else Usage(*json.loads(usage))
    completion = Completion(
        text,
        finish_reason,
        reported,
        latency,
        served_model,
        response_id,
        None if logprobs is None else json.loads(logprobs),
        charged if charged.total_tokens < reported.total_tokens else None,
    )
    values = dict(zip(json.loads(names), json.loads(signals), strict=True))
    return completion, Score(category, extracted, values, reason)


def _called(packed: str | None) -> dict[str, Any]:
    """Return the calls of tools, and of the model, that an answer holds."""
    found = [] if packed is None else json.loads(packed)
    by_name = found if isinstance(found, dict) else {"tool_calls": found}
    return {name: tuple(calls) for name, calls in by_name.items()}


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


def attempt_of(models: ByNumber[str], endpoints: ByNumber[str], row: Sequence[Any]) -> AttemptRecord:
    """Return the attempt of one row of :data:`ATTEMPTS`; names are by id."""
    _, model, step, attempt, endpoint, started_at, latency, status, error, message = row
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
