"""What a page is made of; a page is shown by a template, or as Markdown by a function here."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from adaptive_eval.views import inert
from adaptive_eval.views.inert import fenced, md, md_with_code
from adaptive_eval.views.plots import Bin, Plot
from adaptive_eval.views.tables import Cell, Table, markdown_table


@dataclass(frozen=True, slots=True)
class Para:
    """A paragraph."""

    text: str
    badge: tuple[str, str] | None = None  # a word before it with its colour
    classes: str = ""
    links: Sequence[tuple[str, str]] = ()  # addresses and words after it
    kind: str = "para"


def note(text: str) -> Para:
    """Return a remark."""
    return Para(text, classes="note")


@dataclass(frozen=True, slots=True)
class Warn:
    """A warning."""

    text: str
    kind: str = "warning"


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    texts: Sequence[str]
    classes: str = ""
    has_code: bool = False  # whether text between backticks is code
    kind: str = "items"


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading within a section."""

    text: str
    id: str = ""
    badge: tuple[str, str] | None = None
    link: str = ""
    kind: str = "heading"


@dataclass(frozen=True, slots=True)
class Code:
    """Text line by line as it is."""

    label: str
    text: str
    language: str = ""
    classes: str = ""
    kind: str = "code"


@dataclass(frozen=True, slots=True)
class Plots:
    """Drawings, each with the names of its lines, and as a table."""

    drawn: Sequence[tuple[Plot, Sequence[Cell], Table]]
    kind: str = "plots"


@dataclass(frozen=True, slots=True)
class Bins:
    """Questions by how hard they are, as a drawing."""

    bins: Sequence[Bin]
    kind: str = "bins"


@dataclass(frozen=True, slots=True)
class Passage:
    """The first characters of a text of a model or a user."""

    label: str
    text: str
    most: int
    whole: str = ""  # where all of it is
    kind: str = "passage"

    @property
    def part(self) -> inert.InertBlock:
        """What is shown, inert."""
        return inert.block(self.text, self.most)


@dataclass(frozen=True, slots=True)
class Side:
    """Blocks side by side, if there is room."""

    columns: Sequence[Sequence["Block"]]
    kind: str = "side"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Values of which one is chosen, with their words."""

    name: str
    label: str
    options: Sequence[tuple[str, str]]
    chosen: str = ""


@dataclass(frozen=True, slots=True)
class Form:
    """What a reader asks a server for."""

    choices: Sequence[Choice]
    text: str
    kind: str = "form"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedAnswer:
    """An answer, of which a list shows one at a time."""

    title: str
    badge: tuple[str, str]
    blocks: Sequence["Block"]
    classes: str = ""  # by which it is chosen


@dataclass(frozen=True, slots=True)
class Samples:
    """Answers in a list: the arrow keys go through them. A file chooses among them by its style sheet."""

    listed: Sequence[ListedAnswer]
    choices: Sequence[Choice] = ()
    kind: str = "samples"


@dataclass(frozen=True, slots=True)
class Unfolding:
    """What a page shows only when it is opened."""

    id: str
    summary: str
    blocks: Sequence["Block"]
    kind: str = "fold"


Block: TypeAlias = (
    Para | Warn | Items | Heading | Code | Passage | Side | Form | Samples | Plots | Bins | Unfolding | Table
)


@dataclass(frozen=True, slots=True)
class PageSection:
    """A part with a heading, to which the contents lead."""

    id: str
    title: str
    blocks: Sequence[Block]
    short: str = ""  # the title in the contents, if another

    @property
    def contents(self) -> str:
        """The title in the contents."""
        return self.short or self.title


@dataclass(frozen=True, slots=True, kw_only=True)
class WholePage:
    """A whole page."""

    title: str
    window: str = ""  # the title of its window, if another
    before: str = ""  # words before the title in its heading
    verdict: str = ""
    badges: Sequence[tuple[str, str]] = ()  # words with their colours
    status: str = ""  # read aloud where it changes
    intro: Sequence[Block] = ()
    tiles: Sequence[tuple[str, str]] = ()
    sections: Sequence[PageSection] = ()
    is_front: bool = False  # whether its title is large, and there are no contents


def to_text(page: WholePage) -> str:
    """Return a page as Markdown, in which every name, message and setting is escaped."""
    parts = [f"# {md(page.title)}", f"**{md(page.verdict)}**", *map(_markdown, page.intro)]
    for section in page.sections:
        parts += [f"## {md(section.title)}", *map(_markdown, section.blocks)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _markdown(block: Block) -> str:
    """Return a block as Markdown; drawings have none."""
    match block:
        case Para():
            return md(block.text)
        case Warn():
            return f"> **Warning:** {md(block.text)}"
        case Items():
            write = md
            if block.has_code:
                write = md_with_code
            shown = map(write, block.texts)
            return "\n".join(f"- {text}" for text in shown)
        case Heading():
            return f"### {md(block.text)}"
        case Code():
            return fenced(block.text, block.language)
        case Table():
            return markdown_table(block)
    return ""
