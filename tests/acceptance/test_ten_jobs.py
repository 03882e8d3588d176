"""Ten jobs of a first hour, from an empty home, by the commands of README and of the pages that it links.

Only addresses are replaced, by those of servers here. ``TIME_JOBS=1`` writes what each took into
docs/measurements.md, with ``-n 0``, so that one process has all of them.
"""

import json
import os
import random
import re
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from command_line import COMMAND, ROOT, ended, environment, report
from json_server import Replies, serving
from pages import PAGES, blocks

pytestmark = pytest.mark.slow

MEASUREMENTS = ROOT / "docs" / "measurements.md"
KEY = "sk-of-the-stand-in-1"
SUMS = [(f"{n} + {n % 7}?", str(n + n % 7)) for n in range(10, 50)]


class Here:
    """An empty home, a clone without its packages, and a server that stands in for those of the pages."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url
        self.env = environment(HOME=str(folder / "home"), MY_KEY=KEY)
        self.commands: list[str] = []

    def run(self, line: str, code: int = 0) -> str:
        """Run a command as it is written, with this server in the place of the page's; return its words."""
        self.commands.append(line)
        first, *rest = shlex.split(re.sub(r"https?://[\w.]+(:\d+)?/v1", self.url, line))
        program = {"adaptive-eval": str(COMMAND), "python": sys.executable}[first]
        return ended(program, *rest, cwd=self.folder, env=self.env, code=code).said

    def rows(self, name: str) -> None:
        """Write a data set."""
        file = self.folder / name
        file.parent.mkdir(exist_ok=True)
        rows = [{"id": f"q{n}", "input": asked, "target": right} for n, (asked, right) in enumerate(SUMS)]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")

    def config(self, page: str, name: str) -> None:
        """Write the config of this name that a page shows."""
        (text,) = (one for one in of_page(page, "yaml") if re.match(rf"(#.*\n)?name: {name}\n", one))
        text = re.sub(r"https?://[\w.]+(:\d+)?/v1", self.url, text)
        (self.folder / f"{name}.yaml").write_text(text, "utf-8")


def of_page(page: str, *languages: str) -> list[str]:
    return [one.text for one in blocks(*languages) if one.page.name == page]


def lines(page: str, words: str) -> list[str]:
    """Return the lines of the block of commands that has these words."""
    (block,) = (one for one in of_page(page, "console", "sh") if words in one)
    return block.splitlines()


def written(page: str, words: str) -> str:
    """Return the command in the text of a page that begins so."""
    (file,) = (one for one in PAGES if one.name == page)
    (found,) = set(re.findall(rf"`({re.escape(words)}[^`]*)`", file.read_text("utf-8")))
    return " ".join(str(found).split())


EVERY = ("a", "b", "production", "candidate", "Qwen/Qwen3-32B")


class StandIn(Replies):
    """Adds numbers, some models better than others; a judge hears whether an answer calls itself poor."""

    keys: ClassVar[set[str | None]] = set()
    listed: ClassVar[tuple[str, ...]] = EVERY

    def do_GET(self) -> None:
        self.reply({"object": "list", "data": [{"id": one} for one in self.listed]})

    def do_POST(self) -> None:
        body = self.asked()
        self.keys.add(self.headers["Authorization"])
        asked = str(body["messages"][-1]["content"])
        numbers = [int(one) for one in re.findall(r"\d+", asked)[:2]]
        wrong = random.random() < {"a": 0.05, "candidate": 0.05, "strong": 0.1}.get(body["model"], 0.6)
        text = str(sum(numbers) + wrong)
        if body["model"] in "ab":
            text = f"I thought for {random.random():.6f} s, in a {'poor' if wrong else 'good'} way: {text}"
        if "response_format" in body:  # of a judge
            names = body["response_format"]["json_schema"]["schema"]["properties"]["verdict"]["enum"]
            verdict = next(one for one in names if ("wrong" in one) == ("poor way" in asked))
            text = json.dumps({"reason": "It says so.", "verdict": verdict})
        choice = {"index": 0, "message": {"content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 9, "completion_tokens": 9}
        self.reply({"id": "1", "model": body["model"], "choices": [choice], "usage": usage})


def quickstart(here: Here) -> None:
    script = (ROOT / "scripts" / "quickstart").read_text("utf-8")  # scripts/package begins by installing
    (last,) = re.findall(r"exec \.venv/bin/(adaptive-eval quickstart)", script)
    assert "sage is ahead of all others" in here.run(last)


def two_prompts(here: Here) -> None:
    *_, run, samples = lines("README.md", "git clone")
    here.run(run)
    assert re.search(r"^brief · arithmetic/", here.run(samples), re.MULTILINE)


def own_servers(here: Here) -> None:
    (script,) = of_page("getting-started.md", "python")
    ended(sys.executable, "-c", script, cwd=here.folder)
    StandIn.listed = ("strong", "weak")
    for line in lines("getting-started.md", "adaptive-eval init first.yaml"):
        here.run(line)
    StandIn.listed = EVERY
    assert report(here.folder / "runs" / "first")["pairs"][0]["verdict"] == "better"


def hosted(here: Here) -> None:
    here.rows("rows.jsonl")
    *_, line = lines("howto.md", "--api-key-env MY_KEY")
    assert "a is ahead of b" in here.run(line)
    assert f"Bearer {KEY}" in StandIn.keys


def own_scorer(here: Here) -> None:
    said = here.run(written("scorer.md", "adaptive-eval run docs/examples/"))
    assert "large (70B) is ahead of small (8B)" in said


def agent(here: Here) -> None:
    assert "large is ahead of small" in here.run(written("agent.md", "adaptive-eval run docs/examples/"))


def judge(here: Here) -> None:
    here.config("howto.md", "judged")
    here.rows("open.jsonl")
    assert "a is ahead of b" in here.run("adaptive-eval run judged.yaml")
    here.run(written("howto.md", "adaptive-eval samples runs/judged"))


def gate(here: Here) -> None:
    here.config("ci.md", "nightly")
    here.rows("evals/support.jsonl")
    for line in lines("ci.md", "adaptive-eval run nightly.yaml"):
        here.run(line)


def published(here: Here) -> None:
    head = "question,old,new,subject\n"
    rows = [f"q{n},{int(n % 3 > 0)},1,s{n % 5}\n" for n in range(60)]
    (here.folder / "two-models.csv").write_text(head + "".join(rows), "utf-8")
    for line in lines("howto.md", "analyze two-models.csv"):
        here.run(line)


def notebook(here: Here) -> None:
    here.commands.append("docs/evaluate.ipynb")
    program = "import sys, notebooks as n; n.executed(n.read(n.Path(sys.argv[1])))"
    env = {**here.env, "PYTHONPATH": str(ROOT / "scripts")}
    file = ROOT / "docs" / "evaluate.ipynb"
    ended(sys.executable, "-c", program, file, cwd=here.folder, env=env, code=0)


JOBS: dict[str, tuple[Callable[[Here], None], str]] = {
    "quickstart": (quickstart, "README.md"),
    "two prompts of one model": (two_prompts, "README.md"),
    "own servers": (own_servers, "getting-started.md"),
    "hosted models in one line": (hosted, "howto.md"),
    "own scorer": (own_scorer, "scorer.md"),
    "agent": (agent, "agent.md"),
    "judge": (judge, "howto.md"),
    "gate of CI": (gate, "ci.md"),
    "published table": (published, "howto.md"),
    "notebook": (notebook, "evaluate.ipynb"),
}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serving(StandIn) as url:
        yield f"{url}/v1"


@pytest.fixture(scope="module")
def rows() -> Iterator[dict[str, str]]:
    """The rows of the table, written into the page at the end if that is wanted."""
    found: dict[str, str] = {}
    yield found
    if "TIME_JOBS" in os.environ:
        text = MEASUREMENTS.read_text("utf-8")
        table = "".join(f"{found[job]}\n" for job in JOBS)
        head, mark, rest = text.partition(HEAD)
        after = rest[rest.index("\n\n") :]
        MEASUREMENTS.write_text(f"{head}{mark}{table.rstrip()}{after}", "utf-8")


HEAD = "| job | page | commands | seconds |\n| :-- | :-- | :-- | --: |\n"


@pytest.mark.parametrize("job", JOBS)
def test_a_job_is_done_by_what_the_pages_say_and_is_in_the_table(job, server, rows, tmp_path):
    do, page = JOBS[job]
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    shutil.copytree(ROOT / "docs" / "examples", tmp_path / "docs" / "examples")
    (tmp_path / "home").mkdir()
    here, began = Here(tmp_path, server), time.monotonic()
    do(here)
    took = time.monotonic() - began
    commands = "; ".join(f"`{line}`" for line in here.commands)
    link = "README" if page == "README.md" else f"[{Path(page).stem}]({page})"  # the site has it elsewhere
    known = f"| {job} | {link} | {commands} |"
    rows[job] = f"{known} {took:.0f} |"
    assert "TIME_JOBS" in os.environ or known in MEASUREMENTS.read_text("utf-8")
