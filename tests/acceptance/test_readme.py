"""README and docs say what is so, and all that is imported is declared."""

import ast
import re
import shlex
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import click
import pytest
from command_line import ROOT, adaptive_eval, in_process, python
from packaging.requirements import Requirement
from pages import FENCE, PAGES, Snippet, blocks

from adaptive_eval.cli.main import COMMANDS, cli
from adaptive_eval.config import parse_config

# README and docs say what is so: commands exist, configs are valid, code runs, links lead somewhere.


def written_commands() -> Iterator[Snippet]:
    """Yield every ``adaptive-eval …`` of the pages: lines of console blocks, and code within sentences."""
    for block in blocks("console", "sh", "bash"):
        joined = block.text.replace("\\\n", " ")
        for line in joined.splitlines():
            words = line.removeprefix("$ ").strip()
            if words.startswith("adaptive-eval "):
                yield Snippet(block.page, block.line, block.language, re.split(r" [#|>]", words)[0])
    for page in PAGES:
        prose = FENCE.sub(lambda match: "\n" * match[0].count("\n"), page.read_text("utf-8"))
        for match in re.finditer(r"`(adaptive-eval [^`]+)`", prose):
            place = prose.count("\n", 0, match.start()) + 1
            yield Snippet(page, place, "", " ".join(match[1].split()))


COMMAND_LINES = list(written_commands())


def test_there_are_commands_to_check():
    assert {"run", "validate", "monitor"} <= {one.text.split()[1] for one in COMMAND_LINES}


@pytest.mark.parametrize("written", COMMAND_LINES, ids=str)
def test_a_written_command_exists_and_takes_its_options(written):
    arguments = shlex.split(written.text.replace("…", ""))[1:]
    parent = click.Context(cli, info_name="adaptive-eval")
    if arguments[0].startswith("-"):
        cli.make_context("adaptive-eval", arguments, resilient_parsing=True)
        return
    command = cli.get_command(parent, arguments[0])
    assert command is not None, f"{written}: there is no command {arguments[0]}"
    # a command that is only named in a sentence need not be complete
    complete = len(arguments) > 1 or written.language != ""
    command.make_context(arguments[0], arguments[1:], parent=parent, resilient_parsing=not complete)


def test_every_command_of_the_readme_s_table_exists():
    text = (ROOT / "README.md").read_text("utf-8")
    table = text.partition("| command |")[2].partition("\n\n")[0]
    named = re.findall(r"^\| `([a-z-]+)", table, re.MULTILINE)
    assert set(named) == set(COMMANDS)


def test_the_exit_codes_are_those_of_the_help():
    text = " ".join((ROOT / "README.md").read_text("utf-8").replace("`", "").split())
    said = " ".join(in_process("--help", cwd=ROOT).out.split())
    listed = re.findall(r"\d+ [^;.]+", said.partition("Exit codes: ")[2])
    assert len(listed) == 8
    for meaning in listed:
        assert meaning in text


WHOLE_CONFIGS = [
    one for one in blocks("yaml") if re.search(r"^models:", one.text, re.MULTILINE) and "tasks:" in one.text
]


def test_the_readme_has_a_whole_config():
    assert ROOT / "README.md" in {one.page for one in WHOLE_CONFIGS}


@pytest.mark.parametrize("written", WHOLE_CONFIGS, ids=str)
def test_a_whole_config_is_valid(written):
    config = parse_config(written.text, str(written))
    assert config.models


@pytest.mark.slow
@pytest.mark.parametrize("written", blocks("python"), ids=str)
def test_a_block_of_python_runs(written, tmp_path):
    python("-W", "error", "-c", written.text, cwd=tmp_path, code=0)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_within_the_project_leads_somewhere(page):
    prose = FENCE.sub("", page.read_text("utf-8"))
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)[^)]*\)", prose):
        if "://" in target:
            continue
        to = page.parent / target if target else page
        assert to.exists(), f"{page.name} links to {target}"
        if anchor and to.suffix == ".md":
            assert anchor in anchors(to), f"{page.name} links to {target}#{anchor}"


def anchors(page: Path) -> set[str]:
    """Return what links can lead to within a page: its headings as GitHub and the site name them."""
    text = FENCE.sub("", page.read_text("utf-8"))
    found = set(re.findall(r"id=\"([^\"]+)\"", text))
    for heading in re.findall(r"^#+ (.*)", text, re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        found.add(re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", words).strip()))
    return found


@pytest.mark.parametrize("name", ["quickstart", "test", "check"])
def test_the_scripts_that_the_readme_names_are_there(name):
    assert f"./scripts/{name}" in (ROOT / "README.md").read_text("utf-8")
    script = ROOT / "scripts" / name
    assert script.stat().st_mode & 0o100, f"{script} cannot be executed"


@pytest.mark.slow
def test_the_readme_shows_what_the_quickstart_really_prints(tmp_path):
    """But for what depends on the clock: how many answers were under way when a verdict fell."""
    (shown,) = (block.text for block in blocks("text") if "Report  runs/quickstart/" in block.text)
    done = adaptive_eval("quickstart", "-o", "mimic.latency.median=0.01", cwd=tmp_path, code=0)
    assert timeless(shown) == timeless(done.out[done.out.rindex("sage is ahead of all others;", 0, -500) :])


def timeless(text: str) -> Counter[str]:
    """Count the words of a summary, with bars, and what depends on the clock, left out.

    Which of two tied models comes first depends on the clock too.
    """
    text = re.sub(r"\S*\badaptive-eval ", "adaptive-eval ", text)
    text = re.sub(r"\s+\([\d,]+\s+answered\s+after\s+the\s+stop\)", "", text)
    words = re.sub(r"[├─●┤]+", " ", text).split()
    return Counter(word for word in words if not re.fullmatch(r"[\d,.k]+%?", word.strip("[(.);:]")))


# A fresh machine installs what pyproject.toml declares and nothing else: all that is imported is there.


COMPANIONS = {"pydantic_core"}
"""Parts of a declared package that come under a name of their own: pydantic pins its core to a version."""

OURS = {"adaptive_eval", "scorio"}


def imported_by(package: str) -> set[str]:
    """Return the top-level names of all modules of others that `package` imports anywhere."""
    names: set[str] = set()
    for path in (ROOT / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                names.update(alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
                names.add(node.module.partition(".")[0])
    return names - OURS - set(sys.stdlib_module_names)


def declared(*extras: str) -> set[str]:
    """Return the names of the distributions that the project asks for, with what their own extras bring."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [*project["dependencies"]]
    for extra in extras:
        wanted += project["optional-dependencies"].get(extra, [])
    names = set()
    for requirement in map(Requirement, wanted):
        names.add(normal(requirement.name))
        for extra in requirement.extras:
            brought = map(Requirement, requires(requirement.name) or ())
            names |= {normal(r.name) for r in brought if r.marker and r.marker.evaluate({"extra": extra})}
    return names


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.slow
@pytest.mark.parametrize("package", sorted(OURS))
def test_everything_imported_is_declared(package):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = [name for name in project["optional-dependencies"] if name != "dev"]
    known, homes = declared(*extras), packages_distributions()
    missing = {
        module
        for module in imported_by(package) - COMPANIONS
        if not known & {normal(home) for home in homes.get(module, [module])}
    }
    assert not missing, f"{package} imports {sorted(missing)}, which pyproject.toml does not declare"
