"""Pages of the documentation and public names: what they name exists, and what is public is on them."""

import ast
import inspect
import json
import re
import runpy
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import numpy as np
import pytest
from ruamel.yaml import YAML
from run_examples import command

import adaptive_eval
import scorio.eval
import scorio.rank
from adaptive_eval.config.config_schema import json_schema
from scorio import eval as metrics
from scorio import rank, sequential
from scorio.study import paper

# The reference pages hold what the program has, and each example fits its key.


ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def reference() -> SimpleNamespace:
    return SimpleNamespace(**runpy.run_path(str(ROOT / "scripts" / "reference.py")))


def test_every_section_key_command_and_option_is_on_the_pages(reference):
    """With its type, bounds and default. Its words too: ./scripts/check writes the pages again."""
    for name, text in (("config", reference.config_page()), ("cli", reference.cli_page())):
        page = (ROOT / "docs" / f"{name}-reference.md").read_text("utf-8")
        for start in re.findall(r"^(?:## .*|- `[^`]*`(?: \([^)]*\))?)", text, re.MULTILINE):
            assert start in page, f"{start} is missing: .venv/bin/python scripts/reference.py"
        keys = [line for line in text.splitlines() if line.startswith("- `")]
        assert not [key for key in keys if key.endswith(": ") and name == "config"], "a key has no meaning"
    page = (ROOT / "docs" / "report-schema.md").read_text("utf-8")
    assert reference.schema_page(page) == page, "run .venv/bin/python scripts/reference.py"


CODE = re.compile(
    "(?:code|config|dataset|endpoint|library|outcomes|run|scorer|session|usage|warning)/[a-z]+(?:-[a-z]+)*"
)


def texts_of_the_package():
    for path in (ROOT / "adaptive_eval").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


@pytest.mark.slow
def test_every_code_of_a_message_is_explained_and_none_else():
    used = {text for text in texts_of_the_package() if CODE.fullmatch(text)}
    page = (ROOT / "docs" / "troubleshooting.md").read_text("utf-8")
    explained = re.findall(r"^- `(\S+/\S+)`", page, re.MULTILINE)
    assert sorted(explained) == sorted(used)


def test_every_key_is_there_with_an_example_that_fits(reference):
    definitions = json_schema()["$defs"]
    paths = [path for path, _ in reference.sections()]
    assert len(set(paths)) == len(paths)
    for path, section in reference.sections():
        for key, value in section["properties"].items():
            shown = reference.example(path, key, value)
            if shown is None:
                assert list(reference._references(value)), f"{path}.{key} has no example"
                continue
            fits = jsonschema.Draft202012Validator({**value, "$defs": definitions}).is_valid(shown)
            assert fits, f"{path}.{key}: {shown!r}"


@pytest.mark.slow
def test_every_message_of_the_troubleshooting_page_is_one_of_ours():
    page = (ROOT / "docs" / "troubleshooting.md").read_text("utf-8")
    quoted = re.findall(r"`([^`]+)`", " ".join(re.findall(r"^- \*\*(.*?)\*\*(?!: \*\*)", page, re.MULTILINE)))
    ours = " ".join(texts_of_the_package())
    assert len(quoted) > 15
    assert [text for text in quoted if text not in ours] == []


# The files and names of docs/architecture.md exist.


ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
FILES_NAMED = sorted(
    set(re.findall(r"`([\w./*]+(?:/|\.(?:py|md|sql|jinja|jsonl|yaml|ipynb))(?:: [\w.]+)?)`", ARCHITECTURE))
)


def test_files_and_their_names_exist():
    assert len(FILES_NAMED) > 40
    for named in FILES_NAMED:
        path, _, name = named.partition(": ")
        below = ("adaptive_eval", "scorio", ".")
        found = [file for folder in below for file in (ROOT / folder).glob(path.rstrip("/"))]
        assert found, path
        for part in filter(None, name.split(".")):
            text = found[0].read_text("utf-8")
            assert re.search(rf"^\s*(?:(?:async )?def |class )?{part}\b", text, re.MULTILINE), named


# docs/metrics.md: its code runs, and what it names exists.


METRICS = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")


def test_the_code_runs(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", METRICS, flags=re.DOTALL)
    exec(code, {})
    assert "new is better than old" in capsys.readouterr().out


def test_every_metric_is_explained():
    names = {name.removesuffix("_ci") for name in metrics.__all__} - {"TailPassProfile"}
    assert [name for name in sorted(names) if f"`{name}`" not in METRICS] == []


def test_every_function_named_with_its_module_exists():
    for module, name in re.findall(r"`(eval|rank|sequential)\.(\w+)", METRICS):
        assert hasattr({"eval": metrics, "rank": rank, "sequential": sequential}[module], name)


def test_rankings_said_to_order_as_avg_do():
    R = (np.random.default_rng(0).random((6, 12, 5)) < np.linspace(0.2, 0.8, 6)[:, None, None]).astype(int)
    expected = rank.avg(R).tolist()
    for method in (rank.rasch_map, rank.bradley_terry_davidson_map, rank.pagerank, rank.rank_centrality):
        assert method(R).tolist() == expected


# The paper's figures and tables in one command, at a scale that takes seconds.


@pytest.mark.slow
def test_the_command_writes_a_page_with_all_its_figures(tmp_path):
    said = command("paper", "--out", tmp_path, "--scale", 0.001, "--jobs", 1, code=0).output
    assert said.strip() == str(tmp_path / "paper.md")
    text = (tmp_path / "paper.md").read_text()
    assert "{" not in text
    figures = sorted(path.name for path in tmp_path.glob("*.svg"))
    assert len(figures) == 11
    for name in figures:
        assert f"]({name})" in text
        ET.parse(tmp_path / name)
    for section in ("Figure 1", "Figure 2", "Figure 3", "Table 1", "Figures 5 and 9", "Figure 6", "Table 2"):
        assert section in text


@pytest.mark.slow
def test_a_page_of_recorded_outcomes(tmp_path, monkeypatch):
    outcomes = np.random.default_rng(1).random((6, 10, 12)) < np.linspace(0.2, 0.8, 6)[:, None, None]
    np.savez(tmp_path / "R.npz", mine=outcomes, pair=outcomes[:2].astype(int))
    paper.write_page(tmp_path / "page", 0.0001, jobs=1, data=tmp_path / "R.npz")
    text = (tmp_path / "page" / "paper.md").read_text()
    assert "mine: 6 models, 10 questions, 12 trials" in text
    assert "Table 1" not in text
    for figure in ("4-mine", "5-mine", "5-permuted-mine", "6-mine", "9-permuted-pair"):
        assert (tmp_path / "page" / f"figure-{figure}.svg").exists()
    assert not (tmp_path / "page" / "figure-6-pair.svg").exists()
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="the page needs matplotlib"):
        paper.write_page(tmp_path / "other")


# Faults of docs/reliability.md and promises of tests/statistical name their tests, and these exist.


RELIABILITY = (ROOT / "docs" / "reliability.md").read_text("utf-8")
PROMISES = (ROOT / "tests" / "statistical" / "README.md").read_text("utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py::[\w:]+)`", RELIABILITY + PROMISES)))
ROWS = [line for line in RELIABILITY.partition("\n## Faults")[2].splitlines() if line.startswith("| ")][2:]


def test_tests_that_are_named_exist():
    for node in NAMED:
        path, *names = node.split("::")
        body = ast.parse((ROOT / path).read_text("utf-8")).body
        for name in names:
            found = [item for item in body if getattr(item, "name", None) == name]
            assert found, f"{node}: there is no {name}"
            body = getattr(found[0], "body", [])
        assert names[-1].startswith("test_")


def test_every_fault_has_a_test():
    assert len(ROWS) > 30
    for row in ROWS:
        _, _fault, _what, tests, _ = re.split(r"(?<!`)\|", row)
        assert any(node in tests for node in NAMED), row


def test_every_error_rate_that_is_simulated_has_a_row_with_its_seed():
    rows = [re.split(r"(?<!`)\|", line)[1:-1] for line in PROMISES.splitlines() if line.startswith("| ")][2:]
    assert all(len(row) == 5 and re.search(r"\d", row[3]) and re.search(r"\d", row[4]) for row in rows)
    tests = [
        f"{path.relative_to(ROOT)}::{name}"
        for path in sorted((ROOT / "tests" / "statistical").glob("test_*.py"))
        for name in re.findall(r"^def (test_\w+)", path.read_text("utf-8"), re.MULTILINE)
        if "at_most" in name or "level" in name
    ]
    assert len(tests) > 8
    assert [name for name in tests if f"`{name}`" not in PROMISES] == []


def test_the_table_of_storms_shows_no_harm():
    """`./scripts/chaos --write` makes it, and what it shows is what the page promises."""
    table = RELIABILITY.partition("<!-- chaos: begin -->")[2].partition("<!-- chaos: end -->")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if "|" in line
    ]
    faults = {row[0]: row[1:] for row in rows if len(row) == 3}
    assert faults["**all**"][0] == faults["**all**"][1] != "0"
    assert [row[1] for row in rows if len(row) == 2] == ["number", "--:", "0", "0", "0", "0"]


# What is public: exported, documented, known to type checkers, and cheap to import.


def test_what_is_public_exists_is_on_the_page_and_known_to_type_checkers():
    public = set(adaptive_eval.__all__)
    assert all(getattr(adaptive_eval, name) is not None for name in public)
    text = (ROOT / "docs" / "python.md").read_text("utf-8")
    table = text.partition("## What is public")[2].partition("\n## ")[0]
    first_cells = " ".join(re.findall(r"^\| (`.*?) \|", table, re.MULTILINE))
    assert set(re.findall(r"`(\w+)`", first_cells)) == public
    stub = (ROOT / "adaptive_eval" / "__init__.pyi").read_text("utf-8")
    assert set(re.findall(r"import \w+ as (\w+)", stub)) | {"__version__"} == public


# Code that a reader can find: whole docstrings, described packages, one name for each file.


PACKAGES = ("scorio", "adaptive_eval")
DEFINITIONS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@pytest.mark.slow
def test_every_docstring_is_whole_and_every_package_is_described():
    joined, silent = [], []
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            tree = ast.parse(path.read_text())
            for node in ast.walk(tree):
                text = ast.get_docstring(node) if isinstance(node, DEFINITIONS) else None
                if text and re.search(r" -{4,} ", text):
                    joined.append(f"{path}: {text[:60]}")
            if path.name == "__init__.py" and len((ast.get_docstring(tree) or "").split()) < 4:
                silent.append(str(path))
    assert joined == [], "a section's underline is joined into a line"
    assert silent == [], "a package does not say what it is"


def test_no_two_files_of_a_package_share_a_name():
    for package in PACKAGES:
        names = Counter(path.name for path in (ROOT / package).rglob("*.py"))
        assert {name for name, times in names.items() if times > 1} <= {"__init__.py", "__main__.py"}


def test_a_parameter_that_is_as_in_another_function_is_described_there():
    """Above "As in :func:`bayes`." stand names that the parameters of `bayes` have."""
    reference = re.compile(r"^([\w, ]+)\n    As in (?::func:)?`(\w+)`", re.MULTILINE)
    wrong, seen = [], 0
    for package in (scorio.eval, scorio.rank):
        for name in package.__all__:
            function = getattr(package, name)
            for names, other in reference.findall(inspect.getdoc(function) or ""):
                there = inspect.signature(getattr(package, other)).parameters
                wrong += [f"{name}: {one}" for one in names.split(", ") if one not in ("ranks", *there)]
                seen += 1
    assert seen > 20
    assert wrong == []


# The notebooks in docs/ run, and show what they have stored.


notebooks = SimpleNamespace(**runpy.run_path(str(ROOT / "scripts" / "notebooks.py")))


@pytest.mark.slow
@pytest.mark.parametrize("path", notebooks.NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_it_has_stored(path, tmp_path, monkeypatch):
    """In a running event loop, as in Jupyter. Figures of a run depend on what was in flight at its end."""
    monkeypatch.chdir(tmp_path)
    notebook = notebooks.read(path)
    stored = [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert sum(map(len, stored)) >= 5
    shown = notebooks.executed(notebook)
    if path.stem == "evaluate":
        stored, shown = (re.sub(r"[\d.,]+", "#", json.dumps(outputs)) for outputs in (stored, shown))
    assert shown == stored


# A user's type checker reads results of scorio as what they are.


SOURCE = Path(__file__).parents[1] / "data" / "user_of_scorio.py"


@pytest.mark.slow
def test_plain_code_of_a_user_passes_strict_mypy(tmp_path):
    api = pytest.importorskip("mypy.api")
    wrong = SOURCE.with_name("wrong_calls.py")  # ten of each module, each refused: ignores are all used
    files = [str(SOURCE), str(wrong)]
    said, _, status = api.run(["--strict", "--config-file=", f"--cache-dir={tmp_path}", *files])
    assert status == 0, said


@pytest.mark.slow
def test_pyright_refuses_the_same_calls_and_no_other(tmp_path):
    pytest.importorskip("basedpyright")  # pyright's checks, from a package that brings its own Node.js
    project = tmp_path / "pyrightconfig.json"
    files = [SOURCE, SOURCE.with_name("wrong_calls.py")]
    rules = {"typeCheckingMode": "standard", "enableTypeIgnoreComments": False}
    project.write_text(json.dumps({"include": list(map(str, files)), **rules}))
    options = ["-p", str(project), "--pythonpath", sys.executable, "--outputjson"]
    command = [sys.executable, "-m", "basedpyright", *options]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=False).stdout)
    refused = {
        (one["file"], one["range"]["start"]["line"])
        for one in found["generalDiagnostics"]
        if one["severity"] == "error"
    }
    marked = {
        (str(file), number)
        for file in files
        for number, line in enumerate(file.read_text("utf-8").splitlines())
        if "# type: ignore" in line
    }
    assert len(marked) >= 70
    assert refused == marked


def test_that_code_runs(capsys):
    runpy.run_path(str(SOURCE))
    assert "rank" in capsys.readouterr().out


SCHEMA = json.loads((ROOT / "tests" / "data" / "rayjob_schema.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def manifest():
    return YAML(typ="safe").load((ROOT / "configs" / "ray" / "kuberay.yaml").read_text("utf-8"))


def test_the_manifest_has_the_fields_of_kuberay(manifest):
    jsonschema.Draft202012Validator(SCHEMA).validate(manifest)
    cluster = manifest["spec"]["rayClusterSpec"]
    pods = [group["template"]["spec"] for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"])]
    for pod in pods:
        volumes = {volume["name"] for volume in pod.get("volumes", ())}
        (container,) = pod["containers"]
        assert {mount["name"] for mount in container.get("volumeMounts", ())} == volumes
        assert container["image"] == pods[0]["containers"][0]["image"]
        assert container["envFrom"] == pods[0]["containers"][0]["envFrom"]


def test_its_command_writes_to_the_volume_and_reads_the_config_map(manifest, tmp_path):
    program, *arguments = shlex.split(manifest["spec"]["entrypoint"])
    mounts = manifest["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["containers"][0]
    paths = {mount["name"]: mount["mountPath"] for mount in mounts["volumeMounts"]}
    assert program == "adaptive-eval"
    assert arguments[1].startswith(paths["config"])
    assert arguments[arguments.index("--out") + 1].startswith(paths["runs"])
    said = command(*arguments)  # the options are known; the config is not here
    assert "/config/spread.yaml" in said.output + str(said.exception)
