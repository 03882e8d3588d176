"""The rows of trials: how a record becomes one, the query that selects them, and how they become records."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

from adaptive_eval.store.codec import (
    Shape,
    dump_json,
    moment,
    read_shaped,
    real,
    unpack,
    unpack_optional,
    whole,
)
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


class OutcomeRow(NamedTuple):
    """The columns of an outcome after what was asked."""

    category: int | None
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    latency: Any  # float; None for a missing trial
    finished_at: float
    finish_reason: str | None
    missing: str | None
    after_stop: int
    answer: int | None
    response: int | None
    discarded: str | None


class AnswerRow(NamedTuple):
    """An answer with its score: names of signals for their id, JSON as text; all None for a missing trial."""

    text: Any = None
    logprobs: str | None = None
    details: Any = None
    signal_set: Any = None
    signals: Any = None


class TrialRow(NamedTuple):
    """A row of the query of trials; texts are packed, names are by number."""

    id: int
    model: int
    step: int
    question: int
    repeat: int
    seed: int
    category: int | None
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    latency: float | None
    finished_at: float
    finish_reason: Any
    missing: Any
    after_stop: int
    answer: int | None
    response: int | None
    discarded: Any
    body: Any
    sent_seed: int | None
    checksum: bytes
    text: Any
    logprobs: Any
    details: Any
    signal_set: int
    signals: Any


Parts: TypeAlias = tuple[TrialRequest, OutcomeRow, tuple[str, int | None], AnswerRow]
"""What was asked, its outcome, body and seed as sent, and the answer."""

_DETAILS = ("model", "response_id", "reasoning", "reasoning_tokens", "tool_calls", "calls")
"""Fields of an answer that are stored where they are not empty."""
_details_of = attrgetter(*_DETAILS)

_SHAPE_OF_DETAILS: Shape = {
    "model?": (str, None),
    "response_id?": (str, None),
    "reasoning?": (str, None),
    "reasoning_tokens?": int,
    "tool_calls?": [dict],
    "calls?": [dict],
    "usage?": [int],
    "extracted": (str, None),
    "reason": str,
}
"""An answer without its text, and what its score says besides the category."""

_NAMES: Shape = [str]


def id_of(names: Sequence[str], name: str | None) -> int | None:
    """Return the id of a name to filter by: None for no filter, -1 (no row) for one not seen yet."""
    if name is None:
        return None
    if name in names:
        return names.index(name)
    return -1


def ids_of(names: Sequence[str], wanted: str | Collection[str] | None) -> str | None:
    """Return the ids of the names to filter by as a JSON list, or None for no filter.

    Examples
    --------
    >>> ids_of(["oak", "elm"], "elm"), ids_of(["oak", "elm"], {"ash"}), ids_of(["oak"], None)
    ('[1]', '[]', None)
    """
    if wanted is None:
        return None
    if isinstance(wanted, str):
        some = {wanted}
    else:
        some = set(wanted)
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


def outcome_row(record: TrialRecord) -> OutcomeRow:
    """Return the outcome of a trial as it is stored; its words are not packed."""
    answer, score = record.completion, record.score
    category = None
    if score is not None and score.category is not None:
        category = whole("category", score.category)
    latency = finish_reason = digest = response = None
    if answer is not None:
        whole("reasoning_tokens", answer.reasoning_tokens)
        latency = real("latency", answer.latency)
        finish_reason = answer.finish_reason
        digest, response = answer.digest, answer.response_digest
    prompt_tokens, completion_tokens, cached_tokens = _tokens(record.usage)
    return OutcomeRow(
        category=category,
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        cached_tokens=cached_tokens,
        latency=latency,
        finished_at=moment(real("finished_at", record.finished_at)),
        finish_reason=finish_reason,
        missing=record.missing,
        after_stop=int(record.after_stop),
        answer=digest,
        response=response,
        discarded=",".join(record.discarded) or None,
    )


def answer_row(record: TrialRecord) -> AnswerRow:
    """Return the answer of a trial as it is stored; nothing is packed."""
    answer, score = record.completion, record.score
    if answer is None or score is None:
        return AnswerRow()
    values = zip(_DETAILS, _details_of(answer), strict=True)
    details = {name: value for name, value in values if value}
    details |= {"extracted": score.extracted, "reason": score.reason}
    if answer.usage != record.usage:
        details["usage"] = _tokens(answer.usage)
    logprobs = None
    if answer.logprobs is not None:
        logprobs = dump_json(answer.logprobs)
    return AnswerRow(
        text=answer.text,
        logprobs=logprobs,
        details=dump_json(details),
        signal_set=_names_json(tuple(score.signals)),
        signals=dump_json(list(score.signals.values())),
    )


def sent_parts(sent: Mapping[str, Any]) -> tuple[str, int | None]:
    """Return a request's body without its seed, as JSON text, and the seed."""
    seed = sent.get("seed")
    if type(seed) is int and 0 <= seed < 2**63:
        return dump_json({name: value for name, value in sent.items() if name != "seed"}), seed
    return dump_json(sent), None


def checksum_of(request: TrialRequest, outcome: OutcomeRow, sent: Sequence[Any], answer: AnswerRow) -> bytes:
    """Return the checksum of a trial: all that was asked, sent, answered and scored."""
    key = request.key
    asked = (key.model, key.index, request.task, request.question, request.repeat, request.seed)
    # in ASCII: which characters `repr` shows as they are depends on the version of Python
    whole_trial = ascii(list(map(str, (*asked, *outcome, *sent, *answer))))
    return blake2b(whole_trial.encode(), digest_size=8).digest()


def scoring_checksum(told: Sequence[Any], rows: Iterable[Sequence[Any]]) -> bytes:
    """Return the checksum of a scoring: name, time and body, and its rows in the order of the trials."""
    made = blake2b(digest_size=16)
    for part in chain([told], rows):
        made.update(ascii([*part]).encode())
    return made.digest()


@dataclass(frozen=True, slots=True)
class TrialDecoder:
    """Turns rows of :data:`TRIALS` into records; names are by number."""

    models: ByNumber[str]
    questions: ByNumber[tuple[str, str]]
    signal_sets: ByNumber[str]

    def __call__(self, *row: Any) -> TrialRecord:
        """Return the trial of one row; ValueError if it does not match its checksum."""
        request, outcome, (body, seed), stored = self.checked(*row)
        whole("step", request.key.index)
        if outcome.category is not None:
            whole("category", outcome.category)
        sent = json.loads(body)
        if seed is not None:
            sent["seed"] = seed
        charged = usage_of(outcome.prompt_tokens, outcome.completion_tokens, outcome.cached_tokens)
        answer, score = None, None
        if stored.text is not None:
            answer, score = _answer(outcome, stored, charged)
            if (answer.digest, answer.response_digest) != (outcome.answer, outcome.response):
                raise ValueError(f"the digests of an answer of {request.key.model} are not those of its text")
        return TrialRecord(
            request=request,
            finished_at=moment(outcome.finished_at),
            completion=answer,
            score=score,
            missing=outcome.missing,
            after_stop=bool(outcome.after_stop),
            sent=sent,
            charged=charged,
            discarded=causes_in(outcome.discarded),
        )

    def checked(self, *row: Any) -> Parts:
        """Return the parts of a row that matches its checksum."""
        parts = self.parts(*row)
        if checksum_of(*parts) != TrialRow(*row).checksum:
            key = parts[0].key
            raise ValueError(f"trial {key.index} of {key.model} does not match its checksum")
        return parts

    def parts(self, *row: Any) -> Parts:
        """Return the parts of a row, all that :func:`checksum_of` takes."""
        stored = TrialRow(*row)
        task, question = self.questions[stored.question]
        key = TrialKey(self.models[stored.model], stored.step)
        request = TrialRequest(key, task, question, stored.repeat, stored.seed)
        outcome = OutcomeRow(
            category=stored.category,
            prompt_tokens=stored.prompt_tokens,
            completion_tokens=stored.completion_tokens,
            cached_tokens=stored.cached_tokens,
            latency=stored.latency,
            finished_at=stored.finished_at,
            finish_reason=unpack_optional(stored.finish_reason),
            missing=unpack_optional(stored.missing),
            after_stop=stored.after_stop,
            answer=stored.answer,
            response=stored.response,
            discarded=unpack_optional(stored.discarded),
        )
        signal_set = None
        if stored.text is not None:
            signal_set = self.signal_sets[stored.signal_set]
        answer = AnswerRow(
            text=unpack_optional(stored.text),
            logprobs=unpack_optional(stored.logprobs),
            details=unpack_optional(stored.details),
            signal_set=signal_set,
            signals=unpack_optional(stored.signals),
        )
        return request, outcome, (unpack(stored.body), stored.sent_seed), answer


def usage_of(prompt: int, completion: int, cached: int) -> Usage:
    """Return stored numbers of tokens; ValueError if they are none."""
    if not type(prompt) is type(completion) is type(cached) is int or min(prompt, completion, cached) < 0:
        raise ValueError(f"{prompt!r}, {completion!r} and {cached!r} are no numbers of tokens")
    return Usage(prompt, completion, cached)


def _answer(outcome: OutcomeRow, stored: AnswerRow, charged: Usage) -> tuple[Completion, Score]:
    names = names_in(stored.signal_set)
    signals = json.loads(stored.signals)
    if not all(isinstance(value, float | int | str | None) for value in signals):
        raise ValueError("the signals of an answer are no numbers and texts")
    found = details_in(stored.details)
    score = Score(
        category=outcome.category,
        extracted=found.pop("extracted"),
        signals=dict(zip(names, signals, strict=True)),
        reason=found.pop("reason"),
    )
    usage = found.pop("usage", None)
    reported = charged
    if usage is not None:
        reported = Usage(*usage)
    logprobs = None
    if stored.logprobs is not None:
        logprobs = json.loads(stored.logprobs)
    share = None
    if charged.total_tokens < reported.total_tokens:
        share = charged
    completion = Completion(
        text=stored.text,
        finish_reason=outcome.finish_reason or "",
        usage=reported,
        latency=real("latency", outcome.latency),
        logprobs=logprobs,
        share=share,
        **found,
    )
    return completion, score


def details_in(text: str) -> dict[str, Any]:
    """Return the details of an answer by the names of the completion's fields."""
    found: dict[str, Any] = read_shaped(text, _SHAPE_OF_DETAILS)
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
    """Return the names of signals of a stored set; ValueError if it holds no texts."""
    return tuple(read_shaped(text, _NAMES))


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
