"""Answers to look through: a bounded part in a report, and all of a run from a server, a page at a time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias
from urllib.parse import urlencode

from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TargetLookup, TrialRecord
from adaptive_eval.trial import TrialKey
from adaptive_eval.views.blocks import (
    Block,
    Choice,
    Code,
    Form,
    ListedAnswer,
    Para,
    Samples,
    WholePage,
    note,
)
from adaptive_eval.views.inert import excerpt
from adaptive_eval.views.numbers import count
from adaptive_eval.views.trial_page import badge, figures
from adaptive_eval.views.trials import Example, Examples, answer_text, messages_of, why_words

Address: TypeAlias = Callable[[TrialKey], str]
"""Gives the address of a trial's page."""

PAGE = 30
"""Answers on a page of a server."""

LOOKED_AT = 1_000
"""Answers in which a text is looked for at once; a link leads on."""

_CHOSEN = 12  # models and tasks between which a file can choose
_MESSAGES = 3  # last messages of a prompt that are shown
_LONGEST = 200  # characters of a text that is looked for

_KINDS = (
    ("", "all"),
    ("right", "right"),
    ("wrong", "wrong"),
    ("missing", "missing"),
    ("cut", "cut off"),
    ("discarded", "discarded draws"),
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which answers a reader wants; models and tasks by their place in the lists."""

    model: str = ""
    task: str = ""
    kind: str = ""
    beaten: str = ""  # the model that must have been wrong where these answers are right
    text: str = ""

    @classmethod
    def asked(cls, query: Mapping[str, str]) -> "Wanted":
        """Read what an address asks for; anything unknown is ignored."""
        known = {name: query.get(name, "")[:_LONGEST] for name in cls.__slots__}
        return cls(**known)

    def address(self, **more: str) -> str:
        """Return the address of a page of these answers."""
        own = {name: getattr(self, name) for name in self.__slots__}
        return f"samples?{urlencode({name: value for name, value in (own | more).items() if value})}"

    def filters(self, models: Sequence[str], tasks: Sequence[str], top: int) -> dict[str, Any]:
        """Return the arguments of :meth:`RunReader.trials`; right is the highest category."""
        found: dict[str, Any] = {"model": _at(models, self.model), "task": _at(tasks, self.task)}
        found["beaten"] = _at(models, self.beaten)
        if self.kind == "right" or found["beaten"] is not None:
            found["lowest"] = top
        elif self.kind == "wrong":
            found["below"] = top
        elif self.kind in ("missing", "discarded"):
            found[self.kind] = True
        elif self.kind == "cut":
            found["truncated"] = True
        return found


def _at(names: Sequence[str], place: str) -> str | None:
    if place.isdecimal() and int(place) < len(names):
        return names[int(place)]
    return None


@dataclass(frozen=True, slots=True)
class Part:
    """Some of the answers that a reader wants, in the order in which they came."""

    records: Sequence[TrialRecord]
    before: TrialKey | None  # before which there may be more, None for none
    after: TrialKey | None
    looked_at: int = 0  # answers in which the text was looked for


def part_of(
    reader: RunReader, wanted: Wanted, filters: Mapping[str, Any], beyond: TrialKey | None, *, back: bool
) -> Part:
    """Read one page of answers after `beyond`, or before it."""
    most = LOOKED_AT
    if not wanted.text:
        most = PAGE
    found: list[TrialRecord] = []
    last, looked_at, more = beyond, 0, None
    for record in reader.trials(**filters, beyond=beyond, newest_first=back, limit=most + 1):
        if len(found) == PAGE or looked_at == most:
            more = last
            break
        last = record.request.key
        looked_at = looked_at + 1
        if not wanted.text or wanted.text.casefold() in _searched(record):
            found.append(record)
    if back:
        found.reverse()
    # The way back leads from the answer at the other end, or from the last one that holds no text.
    if beyond is None:
        returns = None
    elif found:
        returns = found[-1 if back else 0].request.key
    else:
        returns = last
    before, after = (more, returns) if back else (returns, more)
    looked = 0
    if wanted.text:
        looked = looked_at
    return Part(found, before, after, looked)


def _searched(record: TrialRecord) -> str:
    texts = [content for _, content in messages_of(record.sent)]
    texts += [answer_text(record.completion), record.request.question]
    if record.completion is not None:
        texts.append(record.completion.reasoning)
    return "\n".join(texts).casefold()


def samples_page(
    wanted: Wanted,
    part: Part,
    models: Sequence[str],
    tasks: Sequence[str],
    numbers: Mapping[str, int],
    target: TargetLookup,
) -> WholePage:
    """Return a page of a server with some of a run's answers."""
    every = [("", "all"), *((str(place), name) for place, name in enumerate(models))]
    none = [("", "–"), *every[1:]]
    of_tasks = [("", "all"), *((str(place), name) for place, name in enumerate(tasks))]
    form = Form(
        [
            Choice(name="model", label="model", options=every, chosen=wanted.model),
            Choice(name="task", label="task", options=of_tasks, chosen=wanted.task),
            Choice(name="kind", label="result", options=_KINDS, chosen=wanted.kind),
            Choice(
                name="beaten", label="right, where this one was wrong:", options=none, chosen=wanted.beaten
            ),
        ],
        wanted.text,
    )
    listed = []
    for record in part.records:
        key = record.request.key
        address = f"trials/{numbers[key.model]}/{key.index}"
        listed.append(_sample(record, key.model, target(record), address))
    links = []
    if part.before is not None:
        links.append((wanted.address(before=_named(part.before, numbers)), "Previous answers"))
    if part.after is not None:
        links.append((wanted.address(after=_named(part.after, numbers)), "Next answers"))
    words = f"{count(len(listed), 'answer')} here. The arrow keys, n and p go from one to the next."
    if part.looked_at:
        words += f" The text was looked for in {count(part.looked_at, 'answer')}; the links lead on."
    blocks: list[Block] = [form, Para(words, links=links)]
    if listed:
        blocks.append(Samples(listed))
    return WholePage(title="Answers", intro=[Para("", links=[("./", "The run")]), *blocks], is_front=True)


def _named(key: TrialKey, numbers: Mapping[str, int]) -> str:
    return f"{numbers[key.model]}-{key.index}"


def key_named(text: str, models: Sequence[str]) -> TrialKey | None:
    """Return the trial that an address names; None for none."""
    model, _, step = text.partition("-")
    name = _at(models, model[:9])
    if name is not None and step.isdecimal():
        return TrialKey(name, int(step[:18]))
    return None


def _sample(
    record: TrialRecord, label: str, expected: str | None, address: str = "", classes: str = ""
) -> ListedAnswer:
    request = record.request
    title = f"{label} · {request.task} / {request.question} · trial {request.key.index:,}"
    blocks = list(_blocks(record, expected, address))
    return ListedAnswer(title=title, badge=badge(record), blocks=blocks, classes=classes)


def _blocks(record: TrialRecord, expected: str | None, address: str) -> Iterator[Block]:
    """Yield prompt, answer and why it has its score first, and the raw figures last."""
    messages = messages_of(record.sent)
    for role, content in messages[-_MESSAGES:]:
        yield from (note(f"Prompt ({role})"), Code("Prompt", excerpt(content)))
    if record.completion is not None:
        yield note("Answer")
        yield Code("Answer", excerpt(answer_text(record.completion) or "(empty)"))
    yield from map(Para, why_words(record, expected))
    if address:
        yield Para("", links=[(address, "all of it")])
    yield figures(record)


def samples_in_file(found: Examples, names: Mapping[str, str], stored: int) -> list[Block]:
    """Return the answers that a report carries, for a reader to choose from."""
    kept: dict[TrialKey, Example] = {}
    for one in _every(found):
        kept.setdefault(one.record.request.key, one)
    examples = list(kept.values())
    models = _names(one.record.request.key.model for one in examples)
    tasks = _names(one.record.request.task for one in examples)
    wrong: dict[tuple[str, str, int], list[str]] = {}
    for one in examples:
        if _is(one, "wrong"):
            wrong.setdefault(_asked(one), []).append(one.record.request.key.model)
    listed = []
    for one in examples:
        request = one.record.request
        classes = [_class("m", models, request.key.model), _class("t", tasks, request.task), *_kinds(one)]
        if _is(one, "right"):
            classes += [_class("b", models, model) for model in wrong.get(_asked(one), ())]
        label = names.get(request.key.model, request.key.model)
        expected = None
        if one.kind != "right":
            expected = one.expected
        listed.append(_sample(one.record, label, expected, classes=" ".join(classes)))
    choices = [_choice("model", "model", "m", models, names)]
    if len(tasks) > 1:
        choices.append(_choice("task", "task", "t", tasks, {}))
    choices.append(Choice(name="result", label="result", options=_KINDS))
    if len(models) > 1:
        choices.append(_choice("beaten", "right, where this one was wrong", "b", models, names))
    words = (
        f"This file carries {len(listed):,} of {count(stored, 'answer')}: the first of each kind of each "
        f"model, of at most {_CHOSEN} models, and those to the questions on which models differ most; long "
        "texts are cut in the middle. adaptive-eval monitor RUN --web shows and searches all of them, "
        "adaptive-eval samples RUN lists them. The arrow keys go from one to the next."
    )
    return [note(words), Samples(listed, choices)]


def _every(found: Examples) -> Iterator[Example]:
    for _, own in found.models:
        yield from own
    for question in found.apart:
        yield from question.answers
    yield from found.further


def _names(found: Iterator[str]) -> list[str]:
    return list(islice(dict.fromkeys(found), _CHOSEN))


def _is(one: Example, kind: str) -> bool:
    return one.kind == kind or (kind == "wrong" and one.kind == "unparsed")


def _asked(one: Example) -> tuple[str, str, int]:
    request = one.record.request
    return request.task, request.question, request.repeat


def _class(letter: str, names: Sequence[str], name: str) -> str:
    if name in names:
        return f"{letter}{names.index(name)}"
    return ""


def _kinds(one: Example) -> Iterator[str]:
    yield from (kind for kind in ("right", "wrong") if _is(one, kind))
    record = one.record
    if record.missing is not None:
        yield "missing"
    if record.completion is not None and record.completion.cut_off:
        yield "cut"
    if record.discarded:
        yield "discarded"


def _choice(name: str, label: str, letter: str, values: Sequence[str], names: Mapping[str, str]) -> Choice:
    options = [("", "all")]
    options += [(f"{letter}{place}", names.get(value, value)) for place, value in enumerate(values)]
    return Choice(name=name, label=label, options=options)
