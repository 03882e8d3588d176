"""The pages of the documentation, cut into their blocks."""

import re
from dataclasses import dataclass
from pathlib import Path

from command_line import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Snippet:
    """A piece of a page: its language and text, and where it is."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(*languages: str) -> list[Snippet]:
    """Return the fenced blocks of all pages in these languages."""
    found: list[Snippet] = []
    for page in PAGES:
        text = page.read_text("utf-8")
        found += [
            Snippet(page, text.count("\n", 0, match.start()) + 1, match[1], match[2])
            for match in FENCE.finditer(text)
            if match[1] in languages
        ]
    return found
