"""Put the pages of the documentation site together: docs/, the README as first page, the API, the gallery.

Before mkdocs builds them: ``scripts/site_pages.py build/site-pages``. After it, ``--check build/site`` finds
links within the site that lead nowhere.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import notebooks

import adaptive_eval

ROOT = Path(__file__).parents[1]
COMMAND = Path(sys.executable).with_name("adaptive-eval")
ABOVE = {f"{name}.md": f"{name.lower()}.md" for name in ("CHANGELOG", "CONTRIBUTING", "SECURITY")}
ABOVE["README.md"] = "index.md"
"""Pages outside docs/, and where the site has them."""


def write(pages: Path) -> None:
    """Write every page of the site into a folder, replacing what is in it."""
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(ROOT / "docs", pages)
    for name, page in ABOVE.items():
        text = (ROOT / name).read_text("utf-8").replace("](docs/", "](")
        for other, target in ABOVE.items():
            text = text.replace(f"]({other}", f"]({target}")
        (pages / page).write_text(text, "utf-8")
    for one in pages.glob("*.md"):
        # Unlike GitHub, the site's tables show the backslash of an escaped | in code.
        text = re.sub(r"`[^`\n]*`", lambda code: code[0].replace(r"\|", "|"), one.read_text("utf-8"))
        one.write_text(text.replace(".ipynb)", ".md)"), "utf-8")
    for path in notebooks.NOTEBOOKS:
        shown = notebooks.page(notebooks.read(path)).replace(".ipynb)", ".md)")
        note = f"*This page is a notebook, [{path.name}]({path.name}). The tests run it.*\n"
        (pages / f"{path.stem}.md").write_text(f"{shown}\n{note}", "utf-8")
    modules: dict[str, str] = vars(adaptive_eval)["_MODULE_OF"]
    names = "".join(f"::: {module}.{name}\n\n" for name, module in modules.items())
    intro = "Every name that `adaptive_eval` exports. [Python](python.md) says how they work together."
    (pages / "api.md").write_text(f"# Python API\n\n{intro}\n\n{names}", "utf-8")
    write_gallery(pages / "gallery.md")


def write_gallery(page: Path) -> None:
    """Run every config of the page, and put the reports in the folder gallery next to it."""
    text, reports = page.read_text("utf-8"), page.with_suffix("")
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        shutil.copytree(ROOT / "configs" / "data", place / "data")
        configs = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
        # The last one again, with a larger budget.
        configs.append(configs[-1].replace("name: ", "name: larger-", 1).replace("trials: 300", "trials: 6k"))
        runs = [run_of(config, place) for config in configs]
        called("report", *runs, "--leaderboard", "--output", reports)
        called("report", *runs[-2:], "--output", reports / "comparison")
    names = [run.name for run in runs]
    for name in names[:-1]:
        link = f"\n\n[The report of `{name}`](gallery/{name}/report.html)"
        text = re.sub(rf"(```yaml\nname: {name}\n.*?```)", rf"\1{link}", text, count=1, flags=re.DOTALL)
    text += f"""
- [The report of `{names[-1]}`](gallery/{names[-1]}/report.html), with 6,000 trials
- [What changed](gallery/comparison/comparison.html) from 300 to 6,000 trials
- [All runs on one page](gallery/index.html)
"""
    page.write_text(text, "utf-8")


def run_of(config: str, place: Path) -> Path:
    """Run a config to its end; return the run."""
    name = config.partition("\n")[0].removeprefix("name: ")
    file = place / f"{name}.yaml"
    file.write_text(config, "utf-8")
    called("run", file, "--out", place / "runs" / name, "--display", "none")
    return place / "runs" / name


def called(*arguments: str | Path) -> None:
    """Run a command of this program; a run may end at its budget."""
    done = subprocess.run([COMMAND, *arguments], capture_output=True, text=True)
    if done.returncode not in (0, 3):
        sys.exit(f"adaptive-eval {' '.join(map(str, arguments))} failed:\n{done.stderr}")


class Links(HTMLParser):
    """Collects what a page links to and loads."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the addresses of an element."""
        self.found += [value for name, value in attrs if name in ("href", "src") and value]


def broken_links(site: Path) -> Iterator[str]:
    """Yield every link within the site that leads nowhere."""
    for page in site.rglob("*.html"):
        links = Links()
        links.feed(page.read_text("utf-8"))
        for link in links.found:
            parts = urlsplit(link)
            inside = parts.path and not (parts.scheme or parts.netloc or parts.path.startswith("/"))
            if inside and not (page.parent / unquote(parts.path)).exists():
                yield f"{page.relative_to(site)} links to {link}, which is not there"


if __name__ == "__main__":
    if sys.argv[1] == "--check":
        sys.exit("\n".join(broken_links(Path(sys.argv[2]))) or None)
    write(Path(sys.argv[1]))
