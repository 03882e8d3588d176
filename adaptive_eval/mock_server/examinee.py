"""What each model answers to each prompt: a pure function of the spec and hashes, without a clock."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from adaptive_eval.mock_server.accuracies import question_accuracies
from adaptive_eval.mock_server.answer_key import Answerable, Recogniser, load_answer_key, squeeze
from adaptive_eval.mock_server.draws import Stream
from adaptive_eval.mock_server.grades import is_content_free, is_letter_asked, read_grading
from adaptive_eval.mock_server.mock_spec import MockServerSpec, ModelSpec
from adaptive_eval.mock_server.prose import count_tokens, worked_answer

__all__ = ["Asked", "Examinee", "Reply"]

_UNKNOWN = Answerable(id="", question="", right="heads", wrong=("tails",))
_REMEMBERED_PROMPTS = 16_384


@dataclass(frozen=True, slots=True)
class Asked:
    """A prompt as one model sees it.

    `question` is a known question, or a verdict on an answer in the prompt, else heads or tails; `chance` is
    the probability of a right answer, `prompt_tokens` are without the chat template, `stream` has the coins.
    """

    model: ModelSpec
    question: Answerable
    chance: float
    prompt_tokens: int
    stream: Stream


@dataclass(frozen=True, slots=True)
class Reply:
    """One sample's answer before limits such as ``max_tokens`` are put on it.

    `latency` is in seconds, `pick` a uniform number in [0, 1) for choices still to be made, `noise` 64 random
    bits for log-probabilities. Where one letter is asked for, `labels` are all possible letters; `even` says
    whether they are equally likely.
    """

    right: bool
    answer: str
    text: str
    tokens: int
    latency: float
    pick: float
    noise: int
    labels: tuple[str, ...] = ()
    even: bool = False


class Examinee:
    """The models of a mock server, answering prompts.

    Examples
    --------
    >>> from adaptive_eval.mock_server.mock_spec import KnownQuestion
    >>> question = KnownQuestion(id="q", question="What is 6 times 7?", target="42")
    >>> examinee = Examinee(MockServerSpec(models=(ModelSpec(name="sage", mean=1.0),), questions=(question,)))
    >>> examinee.reply(examinee.asked("sage", "What is 6 times 7? Think."), seed=1).answer
    '42'
    """

    def __init__(self, spec: MockServerSpec) -> None:
        key = load_answer_key(spec)
        self.spec = spec
        self.models = {model.name: model for model in spec.models}
        self.questions: Sequence[Answerable] = [question for group in key for question in group]
        self.accuracies = question_accuracies(spec, [[_identity(item) for item in group] for group in key])
        self._recogniser = Recogniser(self.questions)
        self._find = lru_cache(maxsize=_REMEMBERED_PROMPTS)(self._recognise)
        self._see = lru_cache(maxsize=_REMEMBERED_PROMPTS)(self._ask)

    def asked(self, model: str, prompt: str) -> Asked:
        """Return `prompt` as `model` sees it."""
        return self._see(model, prompt)

    def _recognise(self, prompt: str) -> tuple[int | None, int]:
        return self._recogniser.find(prompt), count_tokens(prompt)

    def _ask(self, model: str, prompt: str) -> Asked:
        spec = self.models[model]
        index, tokens = self._find(prompt)
        stream = Stream(self.spec.seed, model, prompt)
        grading = read_grading(prompt, self.spec.answer)
        if grading is not None:
            return Asked(spec, grading, spec.average, tokens, stream)
        if index is None:
            return Asked(spec, _UNKNOWN, spec.average, tokens, stream)
        return Asked(spec, self.questions[index], self.accuracies[model][index], tokens, stream)

    def reply(self, asked: Asked, seed: int | None) -> Reply:
        """Return the answer to `asked` under `seed`."""
        toss = asked.stream.toss("greedy" if seed is None else seed)
        right = asked.chance >= 0.5 if seed is None else toss.coin < asked.chance
        question, model = asked.question, asked.model
        answer = question.right if right else question.wrong[int(toss.pick * len(question.wrong))]
        spread = model.tokens.completion_sigma * toss.other_normal
        length = min(model.tokens.completion_median * math.exp(spread), model.context_length)
        text, tokens = worked_answer(answer, self.spec.answer, length, toss.tail)
        if is_letter_asked(question):
            text, tokens = answer, 1
        seconds = model.latency.median * math.exp(model.latency.sigma * toss.normal)
        if right:
            seconds *= model.latency.correct_factor
        labels = (question.right, *question.wrong) if is_letter_asked(question) else ()
        return Reply(
            right, answer, text, tokens, seconds, toss.pick, toss.tail, labels, is_content_free(question)
        )


def _identity(question: Answerable) -> str:
    return "\x1f".join([squeeze(question.question), *question.choices])
