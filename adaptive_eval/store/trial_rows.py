"""The rows of trials: how a record becomes one, the query that selects them, and how they become records."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from operator import attrgetter
from typing import Any, TypeAlias, TypeVar, cast

from adaptive_eval.store.codec import dump_json, moment, real, unpack, unpack_optional, whole
from adaptive_eval.store.records import AttemptRecord, TrialRecord
from adaptive_eval.trial import (
    DISCARD_CAUSES,
    Completion,
    DiscardCause,
    Score,
    TrialKey,
    TrialRequest,
    Usage,
)

Name = TypeVar("Name")
ByNumber: TypeAlias = Sequence[Name] | Mapping[int, Name]
"""Names by their number in the file, which counts from 0."""

Texts: TypeAlias = tuple[str | int | None, ...]
"""An answer with its score, as :data:`TEXTS` orders its parts; all None for a missing trial."""

Parts: TypeAlias = tuple[TrialRequest, Sequence[Any], tuple[str, int | None], Texts]
"""What was asked, the columns :data:`OUTCOME`, body and seed as sent, and the answer."""

_DETAILS = ("model", "response_id", "reasoning", "reasoning_tokens", "tool_calls", "calls")
"""Fields of an answer that are stored where they are not empty."""
_details_of = attrgetter(*_DETAILS)
_TEXTS = {"model", "response_id", "reasoning", "extracted", "reason"}
"""Those that hold texts, and what a score says besides its category."""


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
    found = []
    for number, (of, name) in enumerate(questions):
        if task in (None, of) and question in (None, name):
            found.append(number)
    return json.dumps(found)


def causes_in(discarded: str | None) -> tuple[DiscardCause, ...]:
    """Return the causes that a column holds; ValueError if one is unknown.

    Examples
    --------
    >>> causes_in("timeout,server"), causes_in(None)
    (('timeout', 'server'), ())
    """
    if not discarded:
        return ()
    causes = tuple(discarded.split(","))
    if not set(causes) <= set(DISCARD_CAUSES):
        raise ValueError(f"{discarded!r:.40} are no causes of discarded draws")
    return cast("tuple[DiscardCause, ...]", causes)


def outcome_row(record: TrialRecord) -> tuple[Any, ...]:
    """Return the columns :data:`OUTCOME` of a trial; its words are not packed."""
    answer, score = record.completion, record.score
    category = None
    if score is not None and score.category is not None:
        category = whole("category", score.category)
    latency = finish_reason = digest = response = None
    if answer is not None:
        whole("reasoning_tokens", answer.reasoning_tokens)
        latency, finish_reason = real("latency", answer.latency), answer.finish_reason
        digest, response = answer.digest, answer.response_digest
    finished_at = moment(real("finished_at", record.finished_at))
    ended = (finish_reason, record.missing, int(record.after_stop))
    discarded = ",".join(record.discarded) or None
    ids = digest, response, discarded
    return (category, *_tokens(record.usage), latency, finished_at, *ended, *ids)


def texts_of(record: TrialRecord) -> Texts:
    """Return the columns :data:`TEXTS` of a trial; names of signals in place of their id, nothing packed."""
    answer, score = record.completion, record.score
    if answer is None or score is None:
        return (None,) * 5
    values = zip(_DETAILS, _details_of(answer), strict=True)
    details = {name: value for name, value in values if value}
    details |= {"extracted": score.extracted, "reason": score.reason}
    if answer.usage != record.usage:
        details["usage"] = _tokens(answer.usage)
    return (
        answer.text,
        None if answer.logprobs is None else dump_json(answer.logprobs),
        dump_json(details),
        _names_json(tuple(score.signals)),
        dump_json(list(score.signals.values())),
    )


def sent_parts(sent: Mapping[str, Any]) -> tuple[str, int | None]:
    """Return a request's body without its seed, as JSON text, and the seed."""
    seed = sent.get("seed")
    if type(seed) is int and 0 <= seed < 2**63:
        return dump_json({name: value for name, value in sent.items() if name != "seed"}), seed
    return dump_json(sent), None


def checksum_of(request: TrialRequest, outcome: Sequence[Any], sent: Sequence[Any], texts: Texts) -> bytes:
    """Return the checksum of a trial: all that was asked, sent, answered and scored."""
    key = request.key
    asked = (key.model, key.index, request.task, request.question, request.repeat, request.seed)
    # in ASCII: which characters `repr` shows as they are depends on the version of Python
    whole_trial = ascii(list(map(str, (*asked, *outcome, *sent, *texts))))
    return blake2b(whole_trial.encode(), digest_size=8).digest()


@dataclass(frozen=True, slots=True)
class TrialDecoder:
    """Turns rows of :data:`TRIALS` into records; names are by number."""

    models: ByNumber[str]
    questions: ByNumber[tuple[str, str]]
    signal_sets: ByNumber[str]

    def __call__(self, *row: Any) -> TrialRecord:
        """Return the trial of one row; ValueError if it does not match its checksum."""
        request, outcome, (body, seed), texts = self.checked(*row)
        category, *tokens, latency, finished_at, reason, missing, after_stop, _, _, discarded = outcome
        charged, sent = Usage(*tokens), json.loads(body)
        if seed is not None:
            sent["seed"] = seed
        answer, score = None, None
        if texts[0] is not None:
            answer, score = _answer(category, charged, latency, reason or "", texts)
        return TrialRecord(
            request,
            moment(finished_at),
            answer,
            score,
            missing,
            bool(after_stop),
            sent,
            charged,
            causes_in(discarded),
        )

    def checked(self, *row: Any) -> Parts:
        """Return the parts of a row that matches its checksum."""
        parts = self.parts(*row)
        if checksum_of(*parts) != row[20]:
            key = parts[0].key
            raise ValueError(f"trial {key.index} of {key.model} does not match its checksum")
        return parts

    def parts(self, *row: Any) -> Parts:
        """Return the parts of a row, all that :func:`checksum_of` takes."""
        _, model, step, question, repeat, seed = row[:6]
        *numbers, finish_reason, missing, after_stop, answer, response, discarded = row[6:18]
        body, sent_seed, _, text, logprobs, details, signal_set, signals = row[18:]
        task, name = self.questions[question]
        request = TrialRequest(TrialKey(self.models[model], step), task, name, repeat, seed)
        ended = (unpack_optional(finish_reason), unpack_optional(missing), after_stop)
        outcome = (*numbers, *ended, answer, response, unpack_optional(discarded))
        sent, names = (unpack(body), sent_seed), None if text is None else self.signal_sets[signal_set]
        parts = map(unpack_optional, (text, logprobs, details))
        texts = (*parts, names, unpack_optional(signals))
        return request, outcome, sent, texts


def _answer(
    category: int | None, charged: Usage, latency: float, finish_reason: str, texts: Sequence[Any]
) -> tuple[Completion, Score]:
    text, logprobs, details, names, signals = texts
    values = dict(zip(names_in(names), json.loads(signals), strict=True))
    found = details_in(details)
    score = Score(category, found.pop("extracted"), values, found.pop("reason"))
    usage = found.pop("usage", None)
    reported = charged if usage is None else Usage(*usage)
    share = charged if charged.total_tokens < reported.total_tokens else None
    known = None if logprobs is None else json.loads(logprobs)
    return Completion(text, finish_reason, reported, latency, logprobs=known, share=share, **found), score


def details_in(text: str) -> dict[str, Any]:
    """Return the details of an answer by the names of the completion's fields."""
    found: dict[str, Any] = json.loads(text)
    for name in _TEXTS & found.keys():
        if not isinstance(found[name], str | None):
            raise TypeError(f"{name} of an answer is {found[name]!r:.40}, no text")
    for name in ("tool_calls", "calls"):
        if name in found:
            found[name] = tuple(found[name])
    return found


def _tokens(usage: Usage) -> tuple[int, int, int]:
    return (
        whole("prompt_tokens", usage.prompt_tokens),
        whole("completion_tokens", usage.completion_tokens),
        whole("cached_tokens", usage.cached_tokens),
    )


@lru_cache(maxsize=256)
def names_in(text: str) -> tuple[str, ...]:
    """Return the names of signals of a stored set; TypeError or ValueError if it holds no texts."""
    names = json.loads(text)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"{text!r:.40} holds no names of signals")
    return tuple(names)


@lru_cache(maxsize=256)
def _names_json(names: tuple[str, ...]) -> str:
    """Return the names of signals, which are the same for all answers of a scorer, as JSON."""
    return dump_json(list(names))


def attempt_of(
    models: ByNumber[str], endpoints: Sequence[str] | Mapping[Any, str], *row: Any
) -> AttemptRecord:
    """Return the attempt of one row of the table; names are by id."""
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
