r"""Prompt templates: ``{field}`` is replaced by a field of the question, LaTeX stays as it is.

The rules, read from left to right:

1. ``{{…}}``, braces that open together and close together, stand for one pair ``{…}``; so does each half
   alone.
2. ``{name}``, a brace pair around one identifier, is replaced by that field. A name that the question does
   not have is an error, never sent as it is.
3. A brace pair directly after a LaTeX command, ``^``, ``_`` or another such pair is its argument and is
   left as it is, whatever it holds: ``\boxed{answer}``, ``\frac{a}{b}``, ``x^{n}``. To put a field there,
   double the outer braces: ``\boxed{{{input}}}``.
4. Every other brace is left as it is: ``{}``, ``{1, 2}``, ``{"a": 1}``.

The values put in are never read as templates themselves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from adaptive_eval.trial import Message

_BRACE = re.compile(r"[{}]")
_FIELD = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}", re.ASCII)
_TAKES_ARGUMENT = re.compile(r"(?:\\[A-Za-z]+\*?(?:\[[^\[\]{}\n]*\])?|[\^_])\Z", re.ASCII)
_LONGEST_COMMAND = 80


@dataclass(frozen=True, slots=True)
class PromptTemplate:
    r"""A parsed prompt template.

    Examples
    --------
    >>> template = PromptTemplate.parse(r"{input} Put it within \boxed{{}}, not \frac{a}{b}.")
    >>> template.fields
    ('input',)
    >>> template.render({"input": "What is {x}?"})
    'What is {x}? Put it within \\boxed{}, not \\frac{a}{b}.'
    """

    text: str  # the template as written
    parts: tuple[str, ...]  # literal text at even positions, field names at odd ones

    @classmethod
    def parse(cls, text: str) -> PromptTemplate:
        """Read a template; every text is one."""
        return cls(text, tuple(_Parser(text).parts()))

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the fields it asks for, each once, in order."""
        return tuple(dict.fromkeys(self.parts[1::2]))

    def render(self, values: Mapping[str, str]) -> str:
        """Return the text with every field replaced."""
        pieces = list(self.parts)
        pieces[1::2] = [values[name] for name in pieces[1::2]]
        return "".join(pieces)

    def conversation(self, values: Mapping[str, str]) -> tuple[Message, ...]:
        """Return the text as a message of the user."""
        return (Message("user", self.render(values)),)


def template_problem(fields: Sequence[str], columns: Mapping[str, str | tuple[str, ...]]) -> str | None:
    """Say what makes a template that asks for these fields useless whatever the dataset, or return None.

    Examples
    --------
    >>> template_problem(["question", "answer"], {"target": "answer"})
    'the prompt shows the model the right answer: {answer}'
    """
    if not fields:
        return "the prompt has no {field}: every question would be asked with the same words"
    target = columns.get("target", "target")
    shown_by_intent = [column for name, column in columns.items() if name != "target"]
    for name in fields:
        if name == "target" or (name == target and target not in shown_by_intent):
            return f"the prompt shows the model the right answer: {{{name}}}"
    return None


class _Parser:
    """Cuts one template into literal text and field names."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.partner = _partners(text)
        self.doubled_closers: set[int] = set()  # where a `}}` that closes a `{{` begins
        self.argument_ends: set[int] = set()  # positions just behind a LaTeX argument

    def parts(self) -> list[str]:
        """Return literal text at even positions and field names at odd ones."""
        parts = [""]
        position = 0
        for brace in _BRACE.finditer(self.text):
            here = brace.start()
            if here < position:
                continue
            parts[-1] += self.text[position:here]
            token = self._token(here)
            position = here + len(token)
            field = _FIELD.fullmatch(token)
            if field and not self._is_argument(here):
                parts += [field[1], ""]
                continue
            if token in ("{{", "}}"):
                parts[-1] += token[0]
            else:
                parts[-1] += token
            if token[0] == "{" and self._is_argument(here):
                self.argument_ends.add(self.partner.get(here, -1) + 1)
        parts[-1] += self.text[position:]
        return parts

    def _token(self, here: int) -> str:
        """Return the token at the brace `here`: ``{{``, ``}}``, a field, or the brace alone."""
        text, partner = self.text, self.partner
        two = text[here : here + 2]
        if two == "{{":
            outer = partner.get(here)
            inner = partner.get(here + 1)
            if outer is not None and inner is not None and inner + 1 == outer:
                self.doubled_closers.add(inner)
                return two
            if outer is None and inner is None:
                return two
        if two == "}}" and (here in self.doubled_closers or not {here, here + 1} & partner.keys()):
            return two
        field = _FIELD.match(text, here)
        if field:
            return field[0]
        return text[here]

    def _is_argument(self, here: int) -> bool:
        """Tell whether the brace `here` opens the argument of a LaTeX command, ``^`` or ``_``."""
        start = max(0, here - _LONGEST_COMMAND)
        return here in self.argument_ends or bool(_TAKES_ARGUMENT.search(self.text, start, here))


def _partners(text: str) -> dict[int, int]:
    """Return, for each brace that has one, the position of its other half."""
    partner: dict[int, int] = {}
    open_braces: list[int] = []
    for brace in _BRACE.finditer(text):
        if brace[0] == "{":
            open_braces.append(brace.start())
        elif open_braces:
            opening = open_braces.pop()
            partner[opening], partner[brace.start()] = brace.start(), opening
    return partner
