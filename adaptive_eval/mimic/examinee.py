"""The answer of each model to each prompt: a pure function of the spec and hashes, without a clock.

Random numbers are hashes: the same words give the same numbers in every process and order. An answer is
reasoning of a given length and a last sentence with the answer. A token is a word piece of at most six
letters, digits or underscores with the space before it, one other visible character with the space before
it, or one character of white space. Joined, the tokens are the text. English prose has about 1.2 tokens a
word, as with the tokenizers of real models.
"""

import math
import random
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Final, NamedTuple

from adaptive_eval.errors import UsageError
from adaptive_eval.mimic.answer_key import Answerable, Recogniser, load_answer_key, squeeze
from adaptive_eval.mimic.mimic_spec import MimicModelSpec, MimicSpec

_TOKEN = re.compile(r" ?\w{1,6}| ?[^\w\s]|\s")


def tokenize(text: str) -> list[str]:
    r"""Split `text` into tokens; ``"".join(tokenize(text)) == text``.

    Examples
    --------
    >>> tokenize("Seventeen apples, 3.5 kg")
    ['Sevent', 'een', ' apples', ',', ' 3', '.', '5', ' kg']
    """
    return _TOKEN.findall(text)


def count_tokens(text: str) -> int:
    """Return the number of tokens of `text`.

    Additive if the second text begins with white space and the first does not end with it.

    Examples
    --------
    >>> count_tokens("The answer") + count_tokens(" is 42.") == count_tokens("The answer is 42.")
    True
    """
    return len(_TOKEN.findall(text))


# Neither digits nor single letters: no extractor may take a step of the reasoning for the answer.
_STEPS: Final = (
    " Start from what the question gives and note what it asks for.",
    " Write the known quantities down in the order in which they are mentioned.",
    " Put every quantity into the same unit before combining any of them.",
    " The first relation follows directly from the wording.",
    " Substitute the known values and simplify.",
    " Keep the intermediate result, because the next step needs it.",
    " The second relation connects that result with what is asked.",
    " Carry the calculation through without rounding.",
    " Compare the size of the result with an estimate.",
    " The estimate agrees with the calculation.",
    " Check once more that no condition of the question was overlooked.",
    " Look at the other possible readings and rule them out.",
    " Work backwards from the result to see whether it fits the question.",
    " The units come out as they should.",
)
_STEP_SIZES: Final = tuple(map(count_tokens, _STEPS))
_OPENING: Final = "Work through it step by step."
_OPENING_SIZE: Final = count_tokens(_OPENING)


def worked_answer(answer: str, template: str, length: float, start: int) -> tuple[str, int]:
    r"""Return a worked answer and its number of tokens.

    Examples
    --------
    >>> text, tokens = worked_answer("42", "The answer is \\boxed{{answer}}.", 30, start=0)
    >>> text.splitlines()[-1], tokens == count_tokens(text)
    ('The answer is \\boxed{42}.', True)
    """
    sentence = "\n" + template.replace("{answer}", answer)
    parts = [_OPENING]
    tokens = _OPENING_SIZE + count_tokens(sentence)
    while tokens < length:
        step = start % len(_STEPS)
        parts.append(_STEPS[step])
        tokens += _STEP_SIZES[step]
        start += 1
    return "".join([*parts, sentence]), tokens


def clip(text: str, stop: tuple[str, ...]) -> tuple[str, str | None]:
    """Return `text` up to the first stop sequence in it, and that sequence.

    Examples
    --------
    >>> clip("one two three", ("three", "two"))
    ('one ', 'two')
    >>> clip("one", ("x",))
    ('one', None)
    """
    places = [(place, -len(word), word) for word in stop if (place := text.find(word)) >= 0]
    if not places:
        return text, None
    place, _, word = min(places)
    return text[:place], word


_DIGEST = 40
_UNPACK = struct.Struct("<5Q").unpack
_UNIT = 2.0**-53


class Toss(NamedTuple):
    """The random draws of one hash."""

    # independent uniform numbers in [0, 1)
    coin: float
    pick: float
    # independent standard normal numbers (Box and Muller 1958)
    normal: float
    other_normal: float
    tail: int  # 64 further random bits


class Tosses:
    """Tosses named by words, such as (seed, model, prompt), and then by a number or word each.

    Examples
    --------
    >>> Tosses(7, "model", "prompt").toss(3) == Tosses(7, "model", "prompt").toss(3)
    True
    >>> Tosses("ab", "c").toss(0) == Tosses("a", "bc").toss(0)
    False
    """

    __slots__ = ("_hash",)

    def __init__(self, *words: object) -> None:
        self._hash = blake2b(digest_size=_DIGEST)
        for word in words:
            data = str(word).encode("utf-8", "surrogatepass")
            self._hash.update(b"%d:" % len(data) + data)

    def toss(self, word: object) -> Toss:
        """Return the toss that `word` names in this stream."""
        hasher = self._hash.copy()
        hasher.update(str(word).encode("utf-8", "surrogatepass"))
        coin, pick, radius, angle, tail = _UNPACK(hasher.digest())
        # 1 - u is in (0, 1], where the logarithm is finite.
        length = math.sqrt(-2.0 * math.log(1.0 - (radius >> 11) * _UNIT))
        turn = math.tau * ((angle >> 11) * _UNIT)
        return Toss(
            (coin >> 11) * _UNIT,
            (pick >> 11) * _UNIT,
            length * math.cos(turn),
            length * math.sin(turn),
            tail,
        )


def question_accuracies(spec: MimicSpec, datasets: Sequence[Sequence[str]]) -> Mapping[str, Sequence[float]]:
    """Return every model's probability of a right answer for every question.

    Examples
    --------
    >>> spec = MimicSpec(models=(MimicModelSpec(name="a", mean=0.7), MimicModelSpec(name="b", mean=0.2)))
    >>> p = question_accuracies(spec, [["Q1", "Q2", "Q3", "Q4"]])
    >>> round(sum(p["a"]) / 4, 9), round(sum(p["b"]) / 4, 9)
    (0.7, 0.2)
    """
    orders: dict[str, list[list[int]]] = {}
    result: dict[str, Sequence[float]] = {}
    count = sum(map(len, datasets))
    for model in spec.models:
        if model.accuracies is not None:
            if len(model.accuracies) != count:
                raise UsageError(
                    f"mimic spec: model {model.name!r} has {len(model.accuracies)} accuracies "
                    f"but there are {count} questions; give one for each"
                )
            result[model.name] = model.accuracies
            continue
        family = _family(spec, model)
        if family not in orders:
            orders[family] = [_hardest_first(spec, family, questions) for questions in datasets]
        result[model.name] = _drawn(spec, model, orders[family])
    return result


def _drawn(spec: MimicSpec, model: MimicModelSpec, orders: Sequence[Sequence[int]]) -> Sequence[float]:
    result: list[float] = []
    for dataset, order in enumerate(orders):
        chances = [0.0] * len(order)
        sample = _beta_sample(spec, model, dataset, len(order))
        for question, value in zip(order, sample, strict=True):
            chances[question] = value
        result += chances
    return result


def _family(spec: MimicSpec, model: MimicModelSpec) -> str:
    """Return whose difficulties `model` shares; at correlation 1 there is one family, the empty name."""
    if spec.correlation == 1.0:
        return ""
    by_name = {other.name: other for other in spec.models}
    while model.like is not None:
        model = by_name[model.like]
    return model.name


def _hardest_first(spec: MimicSpec, family: str, questions: Sequence[str]) -> list[int]:
    ease = [_ease(spec, family, question) for question in questions]
    return sorted(range(len(questions)), key=lambda index: (ease[index], index))


def _ease(spec: MimicSpec, family: str, question: str) -> float:
    common = Tosses(spec.seed, "ease").toss(question).normal
    if not family:
        return common
    own = Tosses(spec.seed, "ease", family).toss(question).normal
    return math.sqrt(spec.correlation) * common + math.sqrt(1.0 - spec.correlation) * own


def _beta_sample(spec: MimicSpec, model: MimicModelSpec, dataset: int, count: int) -> Sequence[float]:
    mean = model.average
    alpha = model.spread * mean
    beta = model.spread * (1.0 - mean)
    if not (alpha > 0.0 and beta > 0.0):  # a mean of 0 or 1, or too near for a number to tell
        return [mean] * count
    rng = random.Random(Tosses(spec.seed, "accuracies", model.name, dataset).toss("").tail)
    return _with_mean(sorted(rng.betavariate(alpha, beta) for _ in range(count)), mean)


def _with_mean(values: Sequence[float], mean: float) -> Sequence[float]:
    """Shift `values` in [0, 1], clipping, until their mean is `mean`; keeps their order."""
    shifted = list(values)
    while shifted:
        gap = mean - math.fsum(shifted) / len(shifted)
        end = 1.0 if gap > 0 else 0.0
        free = [i for i, value in enumerate(shifted) if value != end]
        if abs(gap) < 1e-12 or not free:
            break
        step = gap * len(shifted) / len(free)
        for i in free:
            shifted[i] = min(1.0, max(0.0, shifted[i] + step))
    return shifted


_UNKNOWN = Answerable(id="", question="", right="heads", wrong=("tails",))
_REMEMBERED_PROMPTS = 16_384


@dataclass(frozen=True, slots=True)
class SeenPrompt:
    """A prompt as one model sees it.

    `question` is a known question, else heads or tails; `chance` is the probability of a right answer,
    `prompt_tokens` are without the chat template, `stream` has the coins.
    """

    model: MimicModelSpec
    question: Answerable
    chance: float
    prompt_tokens: int
    stream: Tosses

    @property
    def letters(self) -> dict[str, float] | None:
        """The chance of each letter as the answer to a question with options; None for another."""
        question = self.question
        chance = min(max(self.chance, 1e-9), 1.0 - 1e-9)
        if not question.choices:
            return None
        others = dict.fromkeys(question.wrong, (1.0 - chance) / len(question.wrong))
        return {**others, question.right: chance}


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer, first before limits such as ``max_tokens`` are put on it."""

    text: str
    tokens: int  # generated, those of a stop sequence included, as vLLM counts them
    right: bool = True  # whether the coin fell on the right side
    answer: str = ""  # what it says
    latency: float = 0.0  # seconds
    noise: int = 0  # 64 random bits for log-probabilities
    finish_reason: str = "stop"  # or ``length`` or, by a fault, ``abort``
    stop_reason: str | None = None  # the stop sequence that ended it
    letters: Mapping[str, float] | None = None  # the chance of each letter, where the answer is one letter


class Examinee:
    """The models of a mimic server, answering prompts.

    Examples
    --------
    >>> from adaptive_eval.mimic.mimic_spec import KnownQuestion
    >>> question = KnownQuestion(id="q", question="What is 6 times 7?", target="42")
    >>> examinee = Examinee(MimicSpec(models=(MimicModelSpec(name="sage", mean=1.0),), questions=(question,)))
    >>> examinee.reply(examinee.asked("sage", "What is 6 times 7? Think."), seed=1).answer
    '42'
    """

    def __init__(self, spec: MimicSpec) -> None:
        key = load_answer_key(spec)
        self.spec = spec
        self.models = {model.name: model for model in spec.models}
        self.questions: Sequence[Answerable] = [question for group in key for question in group]
        self.accuracies = question_accuracies(spec, [list(map(_identity, group)) for group in key])
        self._recogniser = Recogniser(self.questions)
        self._find = lru_cache(maxsize=_REMEMBERED_PROMPTS)(self._recognise)
        self.asked = lru_cache(maxsize=_REMEMBERED_PROMPTS)(self._ask)

    def _recognise(self, prompt: str) -> tuple[int | None, int]:
        return self._recogniser.find(prompt), count_tokens(prompt)

    def _ask(self, model: str, prompt: str) -> SeenPrompt:
        """Return `prompt` as `model` sees it."""
        spec = self.models[model]
        index, tokens = self._find(prompt)
        stream = Tosses(self.spec.seed, model, prompt)
        if index is None:
            return SeenPrompt(spec, _UNKNOWN, spec.average, tokens, stream)
        return SeenPrompt(spec, self.questions[index], self.accuracies[model][index], tokens, stream)

    def reply(self, asked: SeenPrompt, seed: int | None) -> Reply:
        """Return the answer to `asked` under `seed`."""
        toss = asked.stream.toss("greedy" if seed is None else seed)
        if seed is None:
            right = asked.chance >= 0.5
        else:
            right = toss.coin < asked.chance
        question, model = asked.question, asked.model
        if right:
            answer = question.right
        else:
            answer = question.wrong[int(toss.pick * len(question.wrong))]
        spread = model.tokens.completion_sigma * toss.other_normal
        length = min(model.tokens.completion_median * math.exp(spread), model.context_length)
        text, tokens = worked_answer(answer, self.spec.answer, length, toss.tail)
        seconds = model.latency.median * math.exp(model.latency.sigma * toss.normal)
        if right:
            seconds *= model.latency.correct_factor
        return Reply(text, tokens, right, answer, seconds, toss.tail)


def _identity(question: Answerable) -> str:
    return "\x1f".join([squeeze(question.question), *question.choices])
