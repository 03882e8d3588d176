"""The independence audit: whether repeated answers to a question are copies of one answer.

A proxy that caches, or a server with a fixed seed, answers the same question with the same text whatever the
trial's seed is. Nothing fails then, and every repeat looks like evidence although it tells nothing new. The
audit compares each answer with those before it of the same model to the same question. One with the response
id of an earlier one is stored as a missing trial, so every view, file and later run agrees on it. One with
the text alone may be a sure model's draw: it counts, and has a signal by which it is read both ways.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

from adaptive_eval.engine.health import KEPT
from adaptive_eval.engine.protocols import Endpoint, Executor
from adaptive_eval.errors import Coded, PermanentEndpointError
from adaptive_eval.store.records import LoggedTrial
from adaptive_eval.trial import COPY_REASON, SAME_TEXT, Completion, Message, Score, TrialRequest

COPY: Final = "copy"
"""Signal of an answer that is a copy of an earlier one: it has its text and its response id."""

Kind: TypeAlias = Literal["", "copy", "same_text"]

ENOUGH: Final = 20
"""Answers, or repeats of them, from which a share is looked at: of fewer, half may be so by chance."""

LONG: Final = 500
"""Bytes of an answer at temperature 1 from which on it does not come again by chance; 500/T at T."""

UNKNOWN_TEMPERATURE: Final = 0.6

_DIGEST: Final = "Q"
"""Type code of an array of digests."""


def temperature_of(parameters: Mapping[str, Any]) -> float:
    """Return the temperature at which a model is asked; 0 if it takes the likeliest token.

    Examples
    --------
    >>> temperature_of({"temperature": 0.8}), temperature_of({}), temperature_of({"top_k": 1})
    (0.8, 0.6, 0.0)
    """
    temperature = parameters.get("temperature")
    if temperature is None:
        temperature = UNKNOWN_TEMPERATURE
    if parameters.get("top_k") == 1:
        return 0.0
    return float(temperature)


@dataclass(frozen=True, slots=True)
class _Answer:
    """A model's answer to a question, by digests; the text is known while the run lives."""

    question: tuple[str, str]
    digest: int
    response: int | None
    text: bytes | None = None


@dataclass(slots=True)
class _ModelAudit:
    """The audit's record of one model; of most answers it keeps only digests of text and response id."""

    temperature: float
    # of the answers to each question, in the order of arrival
    digests: dict[tuple[str, str], array[int]] = field(default_factory=dict)
    responses: dict[tuple[str, str], array[int]] = field(default_factory=dict)
    latest: _Answer | None = None
    earlier: _Answer | None = None
    repeats: int = 0
    same: int = 0  # those with the text of the answer before
    copies: int = 0  # those under the id of an earlier answer with their text
    alike: int = 0  # long ones with the text of an earlier answer
    in_a_row: int = 0  # of copies and such answers, without another text in between

    def elsewhere(self, question: tuple[str, str]) -> _Answer | None:
        """Return the latest answer to another question."""
        latest = self.latest
        if latest is None or latest.question != question:
            return latest
        return self.earlier

    def responses_with_text(self, answer: _Answer) -> list[int]:
        """Return the response ids of the earlier answers to the same question with the same text."""
        digests = self.digests.get(answer.question, ())
        if answer.digest not in digests:
            return []
        pairs = zip(digests, self.responses[answer.question], strict=True)
        return [response for digest, response in pairs if digest == answer.digest]

    def count(self, answer: _Answer, kind: str, counted: Collection[str]) -> None:
        """Take in an answer of this kind; those of the kinds `counted` say nothing new."""
        digests = self.digests.get(answer.question)
        if digests is None:
            digests = self.digests[answer.question] = array(_DIGEST)
            self.responses[answer.question] = array(_DIGEST)
        else:
            same = answer.digest in digests
            self.repeats += 1
            self.same += digests[-1] == answer.digest
            self.copies += kind == COPY
            self.alike += kind == SAME_TEXT
            if same:
                self.in_a_row += kind in counted
            else:
                self.in_a_row = 0
        digests.append(answer.digest)
        self.responses[answer.question].append(answer.response or 0)
        if self.latest is not None and self.latest.question != answer.question:
            self.earlier = self.latest
        self.latest = answer


class IndependenceAudit:
    """Finds the answers that are copies or may be, and the models whose answers never vary.

    Of an answer with the text of an earlier answer of the model to the same question, byte for byte:

    - it is a copy if both carry the same response id, and responses to other questions carry other ids;
    - it may be one if it is too long to be equal by chance: 500 bytes at temperature 1, 500/T at T. What it
      shares at either end with the model's latest answer to another question (a template, a disclaimer) does
      not count.

    Short or empty answers come again by nature, and answers at temperature 0 whatever their length. They
    count. A model whose answers never vary is warned of.

    The first 5,000 questions that a model answers are watched.

    Examples
    --------
    >>> audit = IndependenceAudit({"m": 0.7})
    >>> essay = " ".join(f"word{number}" for number in range(200))
    >>> for name in ("q1", "q2") * 4:
    ...     _ = audit.observe("m", ("essays", name), Completion(f"{name} {essay} {name}", "stop"))
    >>> print(audit.remarks()[0][:59])
    m: 6 of 6 answers to a question asked again are the text of
    """

    own_id = 8  # characters; a shorter id may be the same for every response
    pointless_copies = 300  # without a different answer in between, after which a model is asked nothing more

    def __init__(
        self, temperatures: Mapping[str, float] = MappingProxyType({}), *, independent: bool = False
    ) -> None:
        self._independent = independent
        self._counted = (COPY,) if independent else (COPY, SAME_TEXT)
        self._models = {model: _ModelAudit(temperature) for model, temperature in temperatures.items()}

    def watch(self, model: str) -> None:
        """Audit a model whose temperature is not known."""
        self._models.setdefault(model, _ModelAudit(UNKNOWN_TEMPERATURE))

    def observe(self, model: str, question: tuple[str, str], completion: Completion) -> Kind:
        """Take in an answer; return whether it is a copy of an earlier one, or may be one by its text."""
        known = self._watched(model, question)
        if known is None:
            return ""
        text = completion.content.encode("utf-8", "surrogatepass")
        answer = _Answer(question, completion.digest, completion.response_digest, text)
        kind = self._kind(known, answer, id_length=len(completion.response_id))
        known.count(answer, kind, self._counted)
        return kind

    def _watched(self, model: str, question: tuple[str, str]) -> _ModelAudit | None:
        known = self._models.get(model)
        if known is None or (question not in known.digests and len(known.digests) >= KEPT):
            return None
        return known

    def pointless(self, model: str) -> str | None:
        """Return why asking a model again tells nothing new; None if it may."""
        known = self._models.get(model)
        if known is None or known.in_a_row < self.pointless_copies:
            return None
        same = f"the last {known.in_a_row:,} answers to questions asked again had the text of an earlier one"
        return f"{same}. {_CAUSES}. {_INDEPENDENT}"

    def take(self, trial: LoggedTrial) -> Sequence[Coded]:
        """Take in a trial of an earlier session; an answer of this one was observed when it was scored."""
        question = trial.task, trial.question
        known = None
        if trial.earlier:
            known = self._watched(trial.key.model, question)
        if known is not None and trial.answer is not None:
            kinds = [kind for kind in (COPY, SAME_TEXT) if kind in trial.signals]
            first_kind = ""
            if kinds:
                first_kind = kinds[0]
            known.count(_Answer(question, trial.answer, trial.response), first_kind, self._counted)
        return ()

    def verdict(self) -> None:
        """Return None: copies end no run."""

    def remarks(self) -> tuple[Coded, ...]:
        """Return a warning for each model whose answers are copies, or never vary."""
        said = []
        for name, known in self._models.items():
            if known.copies:
                said.append(f"{name}: {_copies(known)}")
            if known.alike and not self._independent:
                said.append(f"{name}: {_may_be(known)}")
            elif not known.copies and known.temperature > 0.0 and known.same == known.repeats >= ENOUGH:
                said.append(f"{name}: {_alike(known)}")
        return tuple(Coded("warning/copies", f"{words} {_CAUSES}") for words in said)

    def _kind(self, known: _ModelAudit, answer: _Answer, *, id_length: int) -> Kind:
        """Return whether an answer is a copy of an earlier one, or may be one by its text."""
        responses = known.responses_with_text(answer)
        elsewhere = known.elsewhere(answer.question)
        if not responses:
            return ""
        varies = elsewhere is not None and elsewhere.response != answer.response
        if answer.response in responses and varies and id_length >= self.own_id:
            return COPY
        is_long = min(known.temperature, 1.0) * _novel(answer, elsewhere) >= LONG
        if is_long:
            return SAME_TEXT
        return ""


class AuditedExecutor:
    """Has attempts made and answers scored by another executor, and shows each answer to the audit, once.

    An answer is scored again if its scorer was out of reach, and asked for again, with the same seed,
    if it lacked something. Neither is a copy, so an answer is shown once it has its score.
    """

    def __init__(self, executor: Executor, audit: IndependenceAudit) -> None:
        self._executor = executor
        self._audit = audit

    def attempt(
        self, endpoint: Endpoint, messages: Sequence[Message], requests: Sequence[TrialRequest]
    ) -> Coroutine[Any, Any, Sequence[Completion | None]]:
        """Ask `endpoint` once for the answers to `requests`."""
        why = None
        if requests[0].repeat:
            why = self._audit.pointless(requests[0].key.model)
        if why is not None:
            raise PermanentEndpointError(why, kind="copies")
        return self._executor.attempt(endpoint, messages, requests)

    async def score(self, request: TrialRequest, completion: Completion) -> Score:
        """Return the category of `completion` as an answer to the trial's question; a copy has none."""
        score = await self._executor.score(request, completion)
        kind = self._audit.observe(request.key.model, (request.task, request.question), completion)
        if kind == COPY:
            return Score(None, score.extracted, {**score.signals, COPY: True}, COPY_REASON)
        if kind:
            return replace(score, signals={**score.signals, kind: True})
        return score


def _novel(answer: _Answer, elsewhere: _Answer | None) -> int:
    """Return how many bytes of an answer are not shared, at either end, with one to another question.

    Without one whose text is known, all of it may be a template.
    """
    text = answer.text
    if text is None or elsewhere is None or elsewhere.text is None:
        return 0
    start = _common(text, elsewhere.text)
    return len(text) - start - _common(text[start:][::-1], elsewhere.text[start:][::-1])


def _common(first: bytes, second: bytes) -> int:
    """Return with how many bytes both begin."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if first[:middle] == second[:middle] else (low, middle - 1)
    return low


_CAUSES = (
    "Look for a proxy that caches, or a server that keeps one seed. If the model is deterministic, set "
    "`deterministic: true` in its section"
)


_INDEPENDENT = "If the model repeats itself because it is sure, set on: {copies: independent}"


def _copies(known: _ModelAudit) -> str:
    return (
        f"{known.copies:,} of {known.repeats:,} answers to a question asked again are copies: the text "
        "and the response id of an earlier one. They do not count."
    )


def _may_be(known: _ModelAudit) -> str:
    return (
        f"{known.alike:,} of {known.repeats:,} answers to a question asked again are the text of an earlier "
        "one, too long for a coincidence: copies from a cache, or draws of a model that is sure. They count "
        "in the score, but for the rules exact and zscore, which take them as lost; its interval takes the "
        "more cautious reading, so verdicts may come late. "
        f"{_INDEPENDENT}."
    )


def _alike(known: _ModelAudit) -> str:
    return (
        f"all {known.repeats:,} answers to a question asked again are the same text as the one before. They "
        "count, because short answers often repeat; if they are copies, the verdicts on this model do "
        "not hold."
    )
