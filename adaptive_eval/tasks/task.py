"""A task: its questions, their prompts and their identity."""

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from adaptive_eval.tasks.messages import MessagesTemplate
from adaptive_eval.tasks.questions import LETTERS, TOOLS_GIVEN, option_lines
from adaptive_eval.tasks.template import PromptTemplate
from adaptive_eval.trial import GIVEN, IMAGE_TOKENS, Conversation, Message, Question


def target_option(question: Question) -> int | None:
    """Return the place of the option that is right, named by its letter or its text; None if it is not.

    Examples
    --------
    >>> target_option(Question("t", "q", "B", choices=("red", "blue")))
    1
    >>> target_option(Question("t", "q", "red", choices=("red", "blue")))
    0
    """
    target = question.target.strip()
    texts = [choice.strip() for choice in question.choices]
    if target in texts:
        return texts.index(target)
    letters = LETTERS[: len(question.choices)]
    if len(target) == 1 and target.upper() in letters:
        return letters.index(target.upper())
    return None


def shuffled(question: Question, seed: int) -> Question:
    """Return `question` with its options in the order that `seed` gives, and the target's new letter.

    Examples
    --------
    >>> question = Question("t", "q", "B", {"choices": "", "input": "Sky?"}, ("red", "blue", "green"))
    >>> one = shuffled(question, 4)
    >>> one.choices["ABC".index(one.target)]
    'blue'
    """
    place = target_option(question)
    if place is None:
        return question
    order = list(range(len(question.choices)))
    random.Random(f"options:{question.id}:{seed}").shuffle(order)
    choices = tuple(question.choices[option] for option in order)
    target = LETTERS[order.index(place)]
    fields = {**question.fields, "choices": option_lines(choices), "target": target}
    return replace(question, choices=choices, target=target, fields=fields)


def split_system(messages: Sequence[Message]) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """Return the system messages at the head of a conversation, and the rest."""
    head = next((at for at, one in enumerate(messages) if one.role != "system"), len(messages))
    return tuple(messages[:head]), tuple(messages[head:])


@dataclass(frozen=True)
class Task:
    """A dataset ready to be asked.

    Examples
    --------
    >>> question = Question("t", "q1", "4", {"input": "2 + 2?"})
    >>> task = Task("t", (question,), PromptTemplate.parse("{input} Be brief."))
    >>> task.render(question)
    (Message(role='user', content='2 + 2? Be brief.'),)
    """

    name: str  # the task's name
    questions: tuple[Question, ...]  # in the order that the trial sequence permutes
    template: PromptTemplate | MessagesTemplate  # the user message, or all messages
    system: str | None = None  # the system message
    source: str = ""  # where the questions come from, for reports
    examples: tuple[Message, ...] = ()  # worked examples between the system message and the question
    shuffles_options: bool = False  # whether every trial shows the options in its own order
    tools: tuple[Mapping[str, Any], ...] = ()  # offered with every question that brings none of its own
    image_tokens: int = IMAGE_TOKENS  # most tokens of an image
    # stored answers to each question, in random order, that take the target's place
    against: Mapping[str, Sequence[str]] = field(default_factory=dict, repr=False)
    # SHA-256 over ids, options, targets and prompts as asked, system message included, in order. It changes
    # when, and only when, what is asked or what is right changes.
    content_hash: str = field(init=False)
    repeated: int = field(init=False, compare=False)  # questions that ask the same as an earlier one
    by_id: Mapping[str, Question] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_id", {question.id: question for question in self.questions})
        content_hash, repeated = self._hash()
        object.__setattr__(self, "content_hash", content_hash)
        object.__setattr__(self, "repeated", repeated)

    def render(self, question: Question) -> Conversation:
        """Return the messages that ask `question`, with the tools that are offered."""
        before = () if self.system is None else (Message("system", self.system),)
        if GIVEN in question.fields:
            asked = tuple(map(Message.from_mapping, question.fields[GIVEN]))
        else:
            asked = self.template.conversation(question.fields)
        tools = question.fields.get(TOOLS_GIVEN, self.tools)
        fields = {"tools": list(tools)} if tools else {}
        if self.examples:  # chat templates refuse a system message after the first user's
            system, asked = split_system(asked)
            before = (*before, *system, *self.examples)
        return Conversation((*before, *asked), fields, self.image_tokens)

    def asked(self, question: Question, seed: int, repeat: int = 0) -> Question:
        """Return `question` as the trial with this seed asks it, its options shuffled if so configured.

        If stored answers take the target's place, all models get the same one at the same `repeat`.
        """
        if self.shuffles_options:
            question = shuffled(question, seed)
        stored = self.against.get(question.id)
        if stored:
            return replace(question, target=stored[repeat % len(stored)])
        return question

    def _hash(self) -> tuple[str, int]:
        digest, seen = hashlib.sha256(), set()
        for question in self.questions:
            asked = self.render(question)
            prompt = [message.whole or [message.role, message.content] for message in asked]
            content = json.dumps([question.id, prompt, question.choices, question.target])
            digest.update(content.encode() + b"\n")
            fields = ""
            if asked.fields:
                fields = json.dumps(asked.fields)
            if fields:
                digest.update(fields.encode() + b"\n")
            seen.add((content[len(json.dumps(question.id)) :], fields))
        if self.shuffles_options:
            digest.update(b"options shuffled")
        return digest.hexdigest(), len(self.questions) - len(seen)
