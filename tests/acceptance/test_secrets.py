"""A key in the environment is in no byte of what a run leaves or says: every file, every cell, every word."""

import base64
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import quote

import pytest
from command_line import (
    PATIENCE,
    environment,
    in_process,
    mimic_spec,
    quickstart,
    report,
    served,
    set_faults,
    started,
    trials,
    write_config,
)
from starlette.testclient import TestClient

from adaptive_eval.mimic.mimic_spec import LatencySpec
from adaptive_eval.mimic.process import MimicProcess
from adaptive_eval.store.codec import unpack
from adaptive_eval.views.web_app import create_app
from adaptive_eval.views.web_runs import open_folder

KEY = "sk-Q7/x+2d9=correct horse&battery%staple"
"""A key with characters that JSON, URLs and shells write in other ways."""

TEAM = "team-5d1c0fa2"
EXPORTS = ("csv", "jsonl", "eee", "inspect", "lm-eval", "parquet", "latex", "markdown")
SECRETS = {"OUR_KEY": KEY, "OUR_TEAM": TEAM, "OPENAI_API_KEY": "sk-ambient-0a1b2c3d"}


def forms(secret: str) -> Iterator[bytes]:
    """Yield a secret in the ways in which it might be written."""
    yield secret.encode()
    yield quote(secret, safe="").encode()
    yield secret.replace("/", "\\/").encode()
    yield base64.b64encode(secret.encode()).rstrip(b"=")
    yield secret.encode("utf-16-le")
    yield from (secret.upper().encode(), secret[::-1].encode(), secret.encode().hex().encode())
    yield str(list(secret.encode()))[1:-1].encode()


DIGESTS = {("bodies", 16), ("answers", 8), ("scorings", 16)}
"""Tables whose blobs of so many bytes are no packed text."""


def cells(database: Path) -> Iterator[bytes]:
    """Yield every cell of every table, compressed texts unpacked."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            for row in db.execute(f"SELECT * FROM {table}"):
                for value in row:
                    if isinstance(value, bytes) and (table, len(value)) in DIGESTS:
                        yield value
                    elif isinstance(value, str | bytes):
                        yield unpack(value).encode("utf-8", "surrogatepass")


def check_nowhere(folder: Path, *said: str) -> None:
    """Check that no secret is in any file under `folder`, in any database there, or in what was said."""
    places = {
        str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }
    for database in folder.rglob("run.db"):
        places[f"cells of {database.relative_to(folder)}"] = b"\0".join(cells(database))
    places |= {f"what was said ({number})": text.encode() for number, text in enumerate(said)}
    for secret in SECRETS.values():
        for form in forms(secret):
            found = [place for place, content in places.items() if form in content]
            assert not found, f"{form!r} is in {found}"


@pytest.fixture
def guarded() -> Iterator[MimicProcess]:
    with MimicProcess(mimic_spec(api_key=KEY, latency=LatencySpec(median=0.01))) as process:
        yield process


def arguments() -> Iterator[str]:
    """Yield the arguments of this package's processes."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if "adaptive" in (found := path.read_text()):
                yield found


def pages(run: Path) -> Iterator[str]:
    """Yield what the web monitor serves."""
    folder = open_folder(run)
    with TestClient(create_app(folder, "t"), base_url="http://127.0.0.1") as client:
        names = sorted(model["model"] for model in report(run)["models"])
        shown = {record.request.key.model: record.request.key.index for record in trials(run)}
        whole = ["", *(f"trials/{names.index(model)}/{step}" for model, step in shown.items())]
        whole += [f"{trial}/prompt.txt" for trial in whole[1:]]
        for page in ("/t/", *(f"/t/runs/{run.name}/{page}" for page in whole)):
            answer = client.get(page)
            assert answer.status_code == 200, page
            yield answer.text
    folder.close()


def config(folder: Path, guarded: MimicProcess) -> Path:
    data = quickstart(base_url=guarded.base_url)
    for model in data["models"]:
        model["api_key_env"] = "OUR_KEY"
        model["headers"] = {"X-Team": {"env": "OUR_TEAM"}}
    data["retry"] = {"attempts": 2, "requeue": 0, "max_seconds": 1}
    return write_config(folder, data)


@pytest.mark.slow
def test_the_key_appears_nowhere(tmp_path, guarded, monkeypatch):
    """Not where a server repeats it in errors, not after a kill, not in any report, view, page or export.

    Nor in the arguments of a process; the environment of a process is its user's own.
    """
    set_faults(guarded, {"kind": "echo_key", "every": 5})
    set_faults(guarded, {"kind": "echo_key"}, model="guesser")  # until it is stopped with the server's words
    env = environment(**SECRETS)
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    file, run = config(tmp_path, guarded), tmp_path / "runs" / "quickstart"
    said = [in_process("validate", file, cwd=tmp_path).said]
    first = ("run", file, "-o", "budget.trials=100", "--metrics-file", "figures.prom")
    with started(*first, cwd=tmp_path, env=env) as running:
        running.until_stored(run, 40)
        said += arguments()
        running.process.kill()
        _, err = running.process.communicate()
    check_nowhere(tmp_path, err, *said)
    done = in_process(
        "run", run, "-o", "budget.trials=150", "--metrics-file", "more.prom", cwd=tmp_path, code=3
    )
    said += [err, done.said]
    notes = {model["model"]: model["note"] for model in report(run)["models"]}
    assert "[redacted]" in notes["guesser"], "the server's own words must be told, without the key"
    assert served(guarded)["faults"]["echo_key"] > 20
    exports = [("export", run, "--format", form, "--out", tmp_path / f"as-{form}") for form in EXPORTS]
    for command in (
        ("monitor", run, "--once", "--json"),
        ("monitor", run, "--once"),
        ("samples", run, "--full"),
        ("samples", run, "--json", "--missing"),
        ("report", run),
        *exports,
        ("rescore", run, "--scorer", "exact"),
        ("monitor", run.parent),
        ("validate", run),
    ):
        done = in_process(*command, cwd=tmp_path)
        assert done.code == 0 or "pip install" in done.err, done
        said.append(done.said)
    said += pages(run)
    assert (tmp_path / "more.prom").exists()
    assert {"run.db", "report.md", "report.json", "report.html"} <= {path.name for path in run.iterdir()}
    check_nowhere(tmp_path, *said)


BUG = """
import sys
from importlib import import_module
from adaptive_eval.cli import main

def bug(*arguments, **named):
    raise ZeroDivisionError("a bug where the key is near")

module, name = sys.argv[1].split(":")
assert hasattr(import_module(module), name)
setattr(import_module(module), name, bug)
main(sys.argv[2:])
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "broken",
    [
        "adaptive_eval.endpoints.openai_endpoint:read_completions",
        "adaptive_eval.endpoints.exchange:from_status",
    ],
)
def test_not_in_the_traceback_of_a_bug(tmp_path, guarded, broken):
    set_faults(guarded, {"kind": "echo_key", "every": 5})
    done = subprocess.run(
        [sys.executable, "-c", BUG, broken, "run", str(config(tmp_path, guarded))],
        cwd=tmp_path,
        env=environment(**SECRETS),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "a bug where the key is near" in done.stderr
    check_nowhere(tmp_path, done.stdout, done.stderr)


OWN = """
def good(prompt): return "2"
def bad(prompt): raise ValueError("nothing is read from " + __file__)
def score(answer, question):
    if question["target"] == "3": raise ValueError("no such thing in " + __file__)
    return answer == question["target"]
"""


def test_the_home_is_in_nothing_that_is_passed_on(tmp_path, monkeypatch):
    """Not in reports, pages, exports and notices: only in the run file, which continues with its paths."""
    home = tmp_path / "homes" / "zoe"
    home.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    (home / "own.py").write_text(OWN)
    rows = [f'{{"input": "1 + {number}?", "target": "{number + 1}"}}\n' for number in range(1, 4)]
    (home / "rows.jsonl").write_text("".join(rows))
    notify = ["/bin/sh", "-c", f"cat >> {home}/notices"]
    file = write_config(
        home,
        {
            "name": "paths",
            "models": [
                {"name": name, "endpoints": [f"python:{home}/own.py:{name}"]} for name in ("good", "bad")
            ],
            "tasks": [
                {"name": "t", "dataset": str(home / "rows.jsonl"), "scorer": f"{home}/own.py:score"},
            ],
            "goal": "budget",
            "budget": {"trials": 4},
            "notify": {"command": notify},
            "retry": {"attempts": 1, "requeue": 0},
        },
    )
    in_process("run", file, cwd=home)
    run = home / "runs" / "paths"
    said = [in_process("samples", run, "--json", cwd=home).out, *pages(run)]
    for form in EXPORTS:
        done = in_process("export", run, "--format", form, "--out", run / f"as-{form}", cwd=home)
        assert done.code == 0 or "pip install" in done.err, done
    files = [path for path in run.rglob("*") if path.is_file() and not path.name.startswith("run.")]
    said += [path.read_text("utf-8", "replace") for path in (*files, home / "notices")]
    assert len(said) > 15
    found = [text[max(0, place - 200) :][:400] for text in said if (place := text.find(str(home))) >= 0]
    assert found == []
    for words in (
        "~/own.py:bad raised ValueError: nothing is read from ~/own.py",
        "no such thing in ~/own.py",
    ):
        assert any(words in text for text in said)
