"""The independence audit: whether repeated answers to a question are independent.

A proxy that caches, or a server with a fixed seed, answers the same question with the same text whatever the
trial's seed is. Nothing fails then, and every repeat looks like evidence although it tells nothing new. The
audit compares each answer with the one before it of the same model to the same question. A repeat whose text
could hardly be the same by chance is a copy, and so is any repeat once the model's answers come again more
often than independent answers would. A copy is stored as a missing trial: no decision rests on it. Short
answers of a model that never varies are left to :mod:`adaptive_eval.core.copies`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final, Literal, TypeAlias

from adaptive_eval.core.copies import COPY_REASON
from adaptive_eval.engine.protocols import Endpoint, Executor
from adaptive_eval.errors import Coded, PermanentEndpointError
from adaptive_eval.store.reader import RunReader
from adaptive_eval.trial import Completion, Message, Score, TrialRequest
from scorio.sequential.copies import CopyEvidence

COPY: Final = "copy"
"""Signal of an answer that is a copy of an earlier one."""

Repeat: TypeAlias = Literal["first", "different", "same", "copy"]
"""The relation of an answer to the one before it: `copy` is the same text, too long to be equal by chance."""

FALSE_ALARM: Final = 0.001
"""Bound on the probability of a false warning about a model in a session, at any time."""

FREE: Final = 300
"""Bytes of an answer that may always come again: a letter, a number, a sentence, a refusal."""

SCALE: Final = 400.0
"""Bytes beyond them over which independent answers at temperature 1 part ways with a chance of 1 − 1/e."""

LEAST: Final = 0.001
"""No coincidence is held to be less likely than this, however long the answer."""

_UNKNOWN_TEMPERATURE: Final = 0.6
_OWN_ID: Final = 8
"""A shorter id may be the same for every response."""

ENOUGH: Final = 20
"""Repeats without any variation after which a warning is raised, and a complete log's do not count."""


def coincidence(size: int, temperature: float) -> float:
    """Return the largest probability with which two independent answers are held to coincide.

    Examples
    --------
    >>> coincidence(1, 0.7), round(coincidence(1000, 0.7), 3), coincidence(100_000, 0.7)
    (1.0, 0.294, 0.001)
    """
    return max(LEAST, math.exp(-min(temperature, 1.0) * max(0, size - FREE) / SCALE))


def temperature_of(parameters: Mapping[str, Any]) -> float | None:
    """Return the temperature at which a model is asked, or None where its answers have to be the same.

    Examples
    --------
    >>> temperature_of({"temperature": 0.8}), temperature_of({}), temperature_of({"temperature": 0})
    (0.8, 0.6, None)
    """
    temperature = parameters.get("temperature")
    if temperature is None:
        temperature = _UNKNOWN_TEMPERATURE
    greedy = temperature == 0 or parameters.get("top_k") == 1
    return None if greedy else float(temperature)


@dataclass(frozen=True, slots=True)
class _Answer:
    """A model's latest answer to a question."""

    question: tuple[str, str]
    text: bytes
    response_id: str


@dataclass(slots=True)
class _Model:
    """The audit's record of one model; of most answers it keeps only digests of text and response id."""

    temperature: float
    evidence: CopyEvidence = field(default_factory=CopyEvidence)
    digests: dict[tuple[str, str], tuple[bytes, bytes]] = field(default_factory=dict)
    same_bytes: int = 0
    same_ids: int = 0
    latest: _Answer | None = None
    earlier: _Answer | None = None
    repeated: int = 0
    varied: bool = False
    copies: int = 0

    @property
    def suspected(self) -> bool:
        """Whether a repeat with the same text is a copy, by a complete log."""
        return (not self.varied and self.evidence.pairs >= ENOUGH) or _alarmed(self)

    def elsewhere(self, question: tuple[str, str]) -> _Answer | None:
        """Return the latest answer to another question."""
        latest = self.latest
        return latest if latest is None or latest.question != question else self.earlier

    def remember(self, answer: _Answer) -> None:
        """Keep the latest answers to two different questions."""
        if self.latest is not None and self.latest.question != answer.question:
            self.earlier = self.latest
        self.latest = answer


class IndependenceAudit:
    """Compares answers with those before them; says which models' answers come again too often.

    The statistic, for each model, is the e-process of :class:`scorio.sequential.copies.CopyEvidence` over
    all answers that have a predecessor (same model, same question, in the order of arrival). An answer is
    *the same* when its text is, byte for byte. Its chance of being so is bounded by :func:`coincidence`, or
    by 0.001 where both carry the same response id and the model's responses to other questions do not. A
    warning is raised once the evidence reaches 1000: where independent answers coincide no more often than
    assumed, and no two responses share an id, this happens to a model in a session with probability at most
    0.001, whenever one looks.

    Short answers are naturally identical and add no evidence: the first 300 bytes of an answer are free,
    and so is what it shares at either end with the model's latest answer to another question (a template,
    a disclaimer). A longer answer (700 bytes at temperature 0.7) that repeats an earlier one is a copy at
    once: a coincidence of at most 0.5. A model whose short answers never vary is warned of; whether they
    count is decided in the order of its trial sequence, by :mod:`adaptive_eval.core.copies`.

    The first 5,000 questions that a model answers are watched.

    Examples
    --------
    >>> audit = IndependenceAudit({"m": 0.7})
    >>> essay = " ".join(f"word{number}" for number in range(200))
    >>> for name in ("q1", "q2") * 4:
    ...     _ = audit.observe("m", ("essays", name), Completion(f"{name} {essay} {name}", "stop"))
    >>> print(audit.warnings()[0][:60])
    m: 6 of 6 answers to a question asked again are the same tex
    """

    questions = 5_000  # of a model that are watched: enough to find copies, in memory that does not grow
    unlikely = 0.5  # a coincidence held to be no more likely than this is a copy at once
    # copies in a row after which a model is asked nothing more: one that varies in 2 % of its repeats gives
    # so many with probability 0.2 %, one that varies in 5 % with 2e-7
    pointless_copies = 300
    seed = 20_000  # stored answers, about, from which the audit of a resumed run starts

    def __init__(self, temperatures: Mapping[str, float | None]) -> None:
        self._models = {
            model: _Model(temperature)
            for model, temperature in temperatures.items()
            if temperature is not None
        }

    def watch(self, model: str) -> None:
        """Audit a model whose temperature is not known."""
        self._models.setdefault(model, _Model(_UNKNOWN_TEMPERATURE))

    def observe(self, model: str, question: tuple[str, str], completion: Completion) -> bool:
        """Read an answer; return whether it is a copy by present evidence, and must not count."""
        known = self._models.get(model)
        if known is None or (question not in known.digests and len(known.digests) >= self.questions):
            return False
        repeat = self.compare(model, question, completion)
        copy = repeat == "copy" or (repeat == "same" and _alarmed(known))
        known.copies += copy
        return copy

    def compare(self, model: str, question: tuple[str, str], completion: Completion) -> Repeat:
        """Take in an answer, and return how it relates to the one before it to the same question."""
        known = self._models[model]
        answer = _Answer(question, completion.said.encode("utf-8", "surrogatepass"), completion.response_id)
        digests = _digest(answer.text), _digest(answer.response_id.encode())
        before = known.digests.get(question)
        known.digests[question] = digests
        found: Repeat = "first"
        if before is not None:
            same = before[0] == digests[0]
            chance = self._compare(known, answer, same=same, same_id=before[1] == digests[1])
            found = "different" if not same else "copy" if chance <= self.unlikely else "same"
        known.remember(answer)
        return found

    def suspected(self, model: str) -> bool:
        """Return whether repeats of a model that are the same text are copies, by all that was observed."""
        known = self._models.get(model)
        return known is not None and known.suspected

    def pointless(self, model: str) -> str | None:
        """Return why asking a model again tells nothing new; None where it may."""
        known = self._models.get(model)
        if known is None or known.repeated < self.pointless_copies:
            return None
        if not _alarmed(known) and known.varied:
            return None
        return f"the last {known.repeated:,} answers to questions asked again were copies. {_CAUSES}"

    def _compare(self, known: _Model, answer: _Answer, *, same: bool, same_id: bool) -> float:
        chance = 1.0
        if same:
            elsewhere = known.elsewhere(answer.question)
            cached = same_id and _is_own(answer.response_id, elsewhere)
            chance = LEAST if cached else coincidence(_novel(answer.text, elsewhere), known.temperature)
            known.same_bytes += len(answer.text)
            known.same_ids += cached
        known.evidence.add(same=same, chance=chance)
        known.repeated = known.repeated + 1 if same else 0
        known.varied |= not same
        return chance

    def read(self, reader: RunReader) -> None:
        """Take in stored answers: all of as many questions as give about 20,000 of them."""
        for model, question, completion in reader.answers(self.seed):
            self.observe(model, question, completion)

    def warnings(self) -> tuple[str, ...]:
        """Return a warning for each model whose answers come again too often, or never vary."""
        return tuple(
            _words(name, known)
            for name, known in self._models.items()
            if _alarmed(known) or (not known.varied and known.evidence.pairs >= ENOUGH)
        )


class AuditedExecutor:
    """Has attempts made and answers scored by another executor, and shows each answer to the audit, once.

    An answer is scored again where its scorer was out of reach, and asked for again, with the same seed,
    where it lacked something. Neither is a copy, so an answer is shown once it has its score.
    """

    def __init__(self, executor: Executor, audit: IndependenceAudit) -> None:
        self._executor = executor
        self._audit = audit

    async def attempt(
        self, endpoint: Endpoint, messages: Sequence[Message], requests: Sequence[TrialRequest]
    ) -> Sequence[Completion | None]:
        """Ask `endpoint` once for the answers to `requests`."""
        why = self._audit.pointless(requests[0].key.model) if requests[0].repeat else None
        if why is not None:
            raise PermanentEndpointError(why, kind="copies")
        return await self._executor.attempt(endpoint, messages, requests)

    async def score(self, request: TrialRequest, completion: Completion) -> Score:
        """Return the category of `completion` as an answer to the trial's question; a copy has none."""
        score = await self._executor.score(request, completion)
        if self._audit.observe(request.key.model, (request.task, request.question), completion):
            signals = {**score.signals, COPY: True}
            return Score(None, score.extracted, signals, COPY_REASON)
        return score


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=8).digest()


def _is_own(response_id: str, elsewhere: _Answer | None) -> bool:
    """Return whether a response id is unique, and not the same for every response."""
    return len(response_id) >= _OWN_ID and elsewhere is not None and elsewhere.response_id != response_id


def _novel(text: bytes, elsewhere: _Answer | None) -> int:
    """Return how many bytes of an answer are not shared, at either end, with one to another question.

    Without one, all of it may be a template.
    """
    if elsewhere is None:
        return 0
    start = _common(text, elsewhere.text)
    return len(text) - start - _common(text[start:][::-1], elsewhere.text[start:][::-1])


def _common(first: bytes, second: bytes) -> int:
    """Return with how many bytes both begin."""
    differ = (place for place, (a, b) in enumerate(zip(first, second, strict=False)) if a != b)
    return next(differ, min(len(first), len(second)))


def _alarmed(known: _Model) -> bool:
    return known.evidence.peak >= -math.log(FALSE_ALARM)


_CAUSES = (
    "Does a proxy cache, or the server keep one seed? Where the model is deterministic, "
    "`deterministic: true` in its section says so"
)


def _words(name: str, known: _Model) -> str:
    found = known.evidence
    counted = f"{known.copies:,} copies do not count. {_CAUSES}"
    if not _alarmed(known):
        said = counted if known.copies else f"They do not count until one differs. {_CAUSES}"
        return Coded(
            "warning/copies",
            f"{name}: all {found.pairs:,} answers to a question asked again are the same text as the one "
            f"before. {said}",
        )
    ids = f", {known.same_ids:,} of them under the same response id" if known.same_ids else ""
    return Coded(
        "warning/copies",
        f"{name}: {found.same:,} of {found.pairs:,} answers to a question asked again are the same text as "
        f"the one before ({known.same_bytes // found.same:,} bytes on average{ids}), more than independent "
        f"answers at temperature {known.temperature:g} would be. {counted}",
    )
