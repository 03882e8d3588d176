"""Scorers that ask another model: their prompts, costs and failures."""

from __future__ import annotations

import asyncio
import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from string import ascii_uppercase
from types import MappingProxyType
from typing import Any, Protocol

from pydantic import PrivateAttr

from adaptive_eval.errors import UsageError
from adaptive_eval.options.scorers import ModelGradedScorerConfig
from adaptive_eval.scoring.text import answer_part
from adaptive_eval.trial import GIVEN, Completion, DiscardCause, Message, Question, Score, Signal

LONGEST = 20_000
"""Bytes, from the end, of an answer that another model is shown."""

_NONE: Mapping[str, Signal] = MappingProxyType({})


class CannotScore(Exception):
    """An answer that is there cannot be scored, now or later; the message says why."""

    def __init__(self, why: str, signals: Mapping[str, Signal] = _NONE) -> None:
        super().__init__(why)
        self.signals = signals  # what was found all the same


@dataclass(slots=True)
class Bill:
    """The cost of requests to a grading model: those answered, and those that may have been billed."""

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    discarded: list[DiscardCause] = field(default_factory=list)  # why judgements of this answer were given up

    def add(self, other: Bill) -> None:
        """Add what other requests have cost, maybe those about another answer."""
        self.requests += other.requests
        self.prompt_tokens += other.prompt_tokens
        self.completion_tokens += other.completion_tokens

    @classmethod
    def from_signals(cls, signals: Mapping[str, Signal], kind: str) -> Bill:
        """Return what :meth:`signals` was given."""
        counts = []
        for name in cls().signals(kind):
            count = signals.get(name)
            if isinstance(count, int):
                counts.append(count)
            else:
                counts.append(0)
        requests, prompt_tokens, completion_tokens = counts
        return cls(requests, prompt_tokens, completion_tokens)

    def signals(self, kind: str) -> dict[str, Signal]:
        """Return it as signals of the answer, from which the account is restored on resume."""
        return {
            f"{kind}_requests": self.requests,
            f"{kind}_prompt_tokens": self.prompt_tokens,
            f"{kind}_completion_tokens": self.completion_tokens,
        }


class GradingModel(Protocol):
    """The model that a scorer asks, with its limits, its retries and its account."""

    async def ask(
        self, messages: Sequence[Message], bill: Bill, *, seed: int | None = None, **parameters: Any
    ) -> Completion:
        """Ask within the budget, and put the cost on `bill`."""

    @property
    def spare(self) -> bool:
        """Whether the budget has room for requests that decide nothing: half of every limit is left."""

    async def aclose(self) -> None:
        """Close the connections of this event loop."""


MODELS: dict[str, Callable[[Any], GradingModel]] = {}
"""Makes the grading model of a scorer, by the kind of its server; :mod:`adaptive_eval.build` fills it."""


class ModelGradedScorer(ModelGradedScorerConfig, ABC):
    """The common part of judge and verifier."""

    _grading_model: GradingModel | None = PrivateAttr(None)

    @property
    def grading_model(self) -> GradingModel:
        """The model that is asked; made on first use, and the same from then on."""
        if self._grading_model is None:
            if "openai" not in MODELS:
                raise UsageError(f"the {self.kind} has no client: import adaptive_eval.build.grading first")
            self._grading_model = MODELS["openai"](self)
        return self._grading_model

    def check_target(self, question: Question) -> str | None:
        """Return what makes the question unusable, or None; any target can be shown to a model."""
        if self.api_key_env is not None and not os.environ.get(self.api_key_env):
            return f"the {self.kind}'s key: the environment variable {self.api_key_env} is not set"
        return None

    @abstractmethod
    def messages(self, answer: str, question: Question) -> list[Message]:
        """Return the prompt about an answer."""

    @property
    @abstractmethod
    def longest_reply(self) -> int:
        """Most tokens of one reply."""

    @property
    @abstractmethod
    def requests_each(self) -> int:
        """Most requests that one answer takes."""

    @property
    def texts_each(self) -> int:
        """Most answers in a prompt."""
        return 1

    @abstractmethod
    async def grade(self, completion: Completion, question: Question) -> Score:
        """Have one answer graded; ScorerUnavailable if the model cannot be asked now."""

    def score(self, completion: Completion, question: Question) -> Score:
        """Have one answer graded, outside an event loop."""
        return self.score_all([(completion, question)])[0]

    def score_all(self, answers: Sequence[tuple[Completion, Question]]) -> list[Score]:
        """Have stored answers graded, outside an event loop."""

        async def main() -> list[Score]:
            places = asyncio.Semaphore(self.concurrency)

            async def one(completion: Completion, question: Question) -> Score:
                async with places:
                    return await self.grade(completion, question)

            try:
                return list(await asyncio.gather(*(one(*answer) for answer in answers)))
            finally:
                await self.grading_model.aclose()

        return asyncio.run(main())

    def shown(self, completion: Completion) -> str:
        """Return the part of an answer that the other model is shown."""
        text = answer_part(completion.text, strip_reasoning=self.strip_reasoning)
        if self.with_reasoning and completion.reasoning:
            text = f"<think>\n{completion.reasoning}\n</think>\n\n{text}"
        return tail(text)

    def unscored(self, why: str, signals: Mapping[str, Signal], bill: Bill) -> Score:
        """Return the score of an answer that cannot be scored."""
        return self.billed(Score(None, None, signals, f"the {self.kind} ({self.model}) {why}"), bill)

    def billed(self, score: Score, bill: Bill) -> Score:
        """Return a score with the cost of its requests, and why some of them were given up."""
        signals = {**score.signals, **bill.signals(self.kind)}
        return replace(score, signals=signals, discarded=tuple(bill.discarded))


def grader_of(scorer: object) -> ModelGradedScorer | None:
    """Return the judge or verifier that a scorer is, or has among its parts."""
    parts = getattr(scorer, "scorers", {"": scorer}).values()
    return next((one for one in parts if isinstance(one, ModelGradedScorer)), None)


def asked(question: Question) -> str:
    r"""Return the question as another model reads it: its text or conversation, and its options.

    Examples
    --------
    >>> asked(Question("t", "q", "B", {"input": "The sky?"}, ("red", "blue")))
    'The sky?\nA. red\nB. blue'
    >>> said = [{"role": "system", "content": "Add."}, {"role": "user", "content": "2 + 2?"}]
    >>> asked(Question("t", "q", "4", {GIVEN: said}))
    'system: Add.\nuser: 2 + 2?'
    """
    if GIVEN in question.fields:
        said = map(Message.from_mapping, question.fields[GIVEN])
        text = "\n".join(f"{message.role}: {message.content}" for message in said)
    else:
        text = str(question.fields.get("input", ""))
    options = (
        f"{letter}. {option}" for letter, option in zip(ascii_uppercase, question.choices, strict=False)
    )
    return "\n".join((text, *options))


def fenced(word: str, text: str) -> str:
    """Return `text` between two marker lines that it cannot hold, so that it cannot close its own block.

    The marker is a digest of the text: nobody can write a text that contains its own digest, and the same
    text is asked about with the same words every time.

    Examples
    --------
    >>> lines = fenced("ANSWER", "It is 4.").splitlines()
    >>> lines[0] == lines[2], lines[1]
    (True, 'It is 4.')
    """
    marker = f"{word}-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
    return f"{marker}\n{text}\n{marker}"


def tail(text: str) -> str:
    """Return the last :data:`LONGEST` bytes of a text, in whole characters.

    Examples
    --------
    >>> len(tail("é" * 30_000))
    10000
    """
    return text.encode("utf-8", "replace")[-LONGEST:].decode("utf-8", "ignore")
