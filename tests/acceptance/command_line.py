"""The installed command as a person uses it, for the acceptance tests: configs, processes, what they left."""

from __future__ import annotations

import copy
import json
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import httpx
import pytest
from ruamel.yaml import YAML

from adaptive_eval.cli.main import main
from adaptive_eval.errors import UsageError
from adaptive_eval.mimic.mimic_spec import DatasetSpec, FaultSpec, LatencySpec, MimicModelSpec, MimicSpec
from adaptive_eval.mimic.process import MimicProcess
from adaptive_eval.scoring.sandbox import require_sandbox
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TrialRecord

ROOT = Path(__file__).parents[2]
QUICKSTART = ROOT / "configs" / "quickstart.yaml"
ARITHMETIC = ROOT / "configs" / "data" / "arithmetic.jsonl"
COMMAND = Path(sys.executable).with_name("adaptive-eval")

PATIENCE = 240.0
"""Seconds after which a command counts as hanging, on a machine that is busy with other things."""

ARITHMETIC_TASK: dict[str, Any] = {
    "name": "arithmetic",
    "dataset": str(ARITHMETIC),
    "fields": {"input": "question", "target": "answer"},
    "prompt": "{input}\nPut the final answer within \\boxed{}.",
    "scorer": "numeric",
}
"""The task of most configs here."""


Code = int | tuple[int, ...] | None


OF_RAY = "Exception in thread ray_client_streaming_rpc:\nTraceback"
"""What Ray's client may write when it is disconnected: a fault in a thread of its own."""


@dataclass(frozen=True)
class Finished:
    """A command that has ended: exit code, standard output, standard error. None shows a traceback."""

    code: int
    out: str
    err: str

    def __post_init__(self) -> None:
        assert "Traceback" not in self.said.replace(OF_RAY, ""), self.err

    @property
    def said(self) -> str:
        """Everything it wrote."""
        return self.out + self.err

    def ending_with(self, code: Code) -> Finished:
        """Check the exit code, where one is given."""
        codes = (code,) if isinstance(code, int) else code
        assert codes is None or self.code in codes, self
        return self


def environment(**variables: str) -> dict[str, str]:
    """Return the environment of a command: ours, with `variables`, not a terminal's and without keys."""
    inherited = {name: value for name, value in os.environ.items() if "KEY" not in name and name != "COLUMNS"}
    return {**inherited, **variables}


def in_process(*arguments: object, cwd: Path, code: Code = None) -> Finished:
    """Call the function that the command calls, where the promise is not about the process.

    It takes a third of the time: a process of its own first has to import everything. With `code` it has to
    end with that exit code, or with one of them.
    """
    out, err = StringIO(), StringIO()
    with chdir(cwd), redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    assert isinstance(end.value.code, int)
    return Finished(end.value.code, out.getvalue(), err.getvalue()).ending_with(code)


def ran(config: Path, *options: object, code: int = 0) -> Finished:
    """Run a config into the folder ``run`` next to it; it has to end with this code."""
    line = ("run", config, "--out", "run", "--display", "none", *options)
    return in_process(*line, cwd=config.parent, code=code)


def adaptive_eval(*arguments: object, **options: Any) -> Finished:
    """Run the command to its end."""
    return ended(COMMAND, *arguments, **options)


def python(*arguments: object, cwd: Path = ROOT, **options: Any) -> Finished:
    """Run this Python to its end."""
    return ended(sys.executable, *arguments, cwd=cwd, **options)


def ended(*command: object, cwd: Path, env: dict[str, str] | None = None, code: Code = None) -> Finished:
    """Run any command to its end, which has to be with this exit code, or one of them."""
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env=env or environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    return Finished(done.returncode, done.stdout, done.stderr).ending_with(code)


def needs_sandbox() -> None:
    """Skip the test where programs cannot be run safely."""
    try:
        require_sandbox()
    except UsageError as missing:
        pytest.skip(f"no sandbox: {missing}")


class Running:
    """A command that is still running; killed at the end of the block that :func:`started` opens."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def finish(self) -> Finished:
        """Wait for its end."""
        out, err = self.process.communicate(timeout=PATIENCE)
        return Finished(self.process.returncode, out or "", err or "")  # None: the test closed it

    def for_a_moment(self, seconds: float = 0.01) -> bool:
        """Let it run on, and say whether it still does."""
        try:
            self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return True
        return False

    def until_said(self, words: str) -> None:
        """Let it run on until it has written a line with `words` to standard error."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if words in line:
                return
        raise AssertionError(f"it ended without saying {words!r}")

    def until_stored(self, run: Path, trials: int) -> None:
        """Let it run on until `trials` outcomes are stored in `run`."""
        assert self.towards(run, trials), f"it ended before {trials} trials: {self.finish()}"

    def towards(self, run: Path, trials: int) -> bool:
        """Let it run on until `trials` outcomes are stored in `run`, or it ends; say whether they are."""
        deadline = time.monotonic() + PATIENCE
        while stored_trials(run) < trials:
            if not self.for_a_moment():
                return stored_trials(run) >= trials
            assert time.monotonic() < deadline, f"no {trials} trials within {PATIENCE} s"
        return True


@contextmanager
def started(
    *arguments: object, cwd: Path, env: dict[str, str] | None = None, **options: Any
) -> Iterator[Running]:
    """Start the command, with other options of Popen where they are given, and end it with the block."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(
        [COMMAND, *map(str, arguments)],
        cwd=cwd,
        env=env or environment(),
        text=True,
        **{**pipes, **options},
    )
    try:
        yield Running(process)
    finally:
        process.kill()
        process.communicate()


# Configs


def quickstart(
    *, latency: float = 0.0, equivalence: float = 0.15, base_url: str | None = None
) -> dict[str, Any]:
    """Return the quickstart's config as plain data, hurried: no latency, a wider margin.

    With `base_url` its models are asked there, and no mimic is started for the run.
    """
    data: dict[str, Any] = copy.deepcopy(YAML(typ="safe", pure=True).load(QUICKSTART))
    data["tasks"][0]["dataset"] = str(ARITHMETIC)
    data["stopping"]["equivalence"] = equivalence
    data["mimic"]["latency"]["median"] = latency
    if base_url is not None:
        del data["mimic"]
        for model in data["models"]:
            model["endpoints"] = [base_url]
    return data


def mimic_config(
    task: dict[str, Any] | None = None, mimics: dict[str, Any] | None = None, **sections: Any
) -> dict[str, Any]:
    """Return a config of mimics on the quickstart's questions: settings of the task, the mimics, sections."""
    models = mimics or {"sage": {"mean": 0.9}, "novice": {"mean": 0.3}}
    sampling = {"temperature": 0.7, "max_tokens": 400, "logprobs": True}
    asked = {"endpoints": ["mimic"], "concurrency": 8, "sampling": sampling}
    config = {
        "name": "mimicked",
        "seed": 3,
        "mimic": {"seed": 7, "models": models},
        "models": [{"name": name, **asked} for name in models],
        "tasks": [{**ARITHMETIC_TASK, **(task or {})}],
        "goal": "ranking",
        "budget": {"trials": 2000},
    }
    return copy.deepcopy({**config, **sections})


def command(*arguments: object, code: Code = None) -> Finished:
    """Run ``adaptive-eval`` with these arguments where this process is; it has to end with this code."""
    return in_process(*arguments, cwd=Path.cwd(), code=code)


def run_config(folder: Path, config: dict[str, Any], *options: object) -> tuple[Path, Finished]:
    """Run a config; return the run's directory and the command's result."""
    out = folder / "run"
    return out, command("run", write_config(folder, config), "--out", out, "--display", "none", *options)


def finished(folder: Path, config: dict[str, Any], code: Code = (0, 3)) -> Path:
    """Run a config to its goal, to the end of its budget, or to the exit code; return the run's directory."""
    out, done = run_config(folder, config)
    done.ending_with(code)
    return out


def write_config(folder: Path, data: dict[str, Any], name: str = "config.yaml") -> Path:
    """Write a config and return its path. JSON is YAML."""
    path = folder / name
    path.write_text(json.dumps(data, indent=2), "utf-8")
    return path


# The mimic, served apart from the run, so that it can be asked what it was asked


COINS = {"sage": 0.92, "scholar": 0.74, "student": 0.735, "novice": 0.45, "guesser": 0.15}
"""The quickstart's models."""


def mimic_spec(
    *,
    latency: LatencySpec | None = None,
    faults: tuple[FaultSpec, ...] = (),
    api_key: str | None = None,
    models: Collection[str] = tuple(COINS),
) -> MimicSpec:
    """Return the quickstart's mimic, or one that serves some of its `models`."""
    wait = latency or LatencySpec()
    return MimicSpec(
        models=tuple(
            MimicModelSpec(name=name, mean=mean, latency=wait)
            for name, mean in COINS.items()
            if name in models
        ),
        seed=7,
        datasets=(DatasetSpec(path=str(ARITHMETIC)),),
        faults=faults,
        api_key=api_key,
    )


def served(mimic: MimicProcess) -> dict[str, Any]:
    """Return what the mimic says it has served."""
    stats: dict[str, Any] = httpx.get(f"{mimic.url}/mimic/stats").json()
    return stats


def answered_seeds(mimic: MimicProcess) -> dict[tuple[str, int], int]:
    """Return how often each (model, seed) was answered."""
    models = served(mimic)["models"]
    return {(name, int(seed)): n for name, stats in models.items() for seed, n in stats["seeds"].items()}


def set_faults(mimic: MimicProcess, *faults: dict[str, Any], model: str | None = None) -> None:
    """Make the mimic, or one of its models, misbehave from now on; without faults, behave."""
    body = {"faults": list(faults), **({"model": model} if model else {})}
    httpx.post(f"{mimic.url}/mimic/faults", json=body).raise_for_status()


def free_port() -> int:
    """Return a port that was free a moment ago, for a server that has to be told one."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def port_of_ones_own() -> int:
    """Return a free port that nobody is given by chance while its server is away, for one that comes back."""
    while True:
        port = random.randrange(12_000, 32_768)  # connections, and servers at port 0, have those above
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


def hold_back(
    mimic: MimicProcess, after: int, *, seconds: float | None = None, model: str | None = None
) -> None:
    """Let the mimic, or one of its models, answer `after` more requests, and each further one late or never.

    However slowly a test looks, the run that asks is then still under way: beyond these answers it waits
    `seconds` for each, or for ever.
    """
    late = {} if seconds is None else {"seconds": seconds}
    set_faults(mimic, {"kind": "hang", "after": 0.0, "requests": [after + 1, 10**9], **late}, model=model)


# What a run has left


def stored_trials(run: Path) -> int:
    """Return how many outcomes are stored; 0 where there is no run yet."""
    if not (run / "run.db").exists():
        return 0
    with RunReader(run) as reader:
        return reader.count()


def trials(run: Path) -> list[TrialRecord]:
    """Return everything stored about every trial, in commit order."""
    with RunReader(run) as reader:
        return list(reader.trials())


def categories(run: Path) -> set[tuple[str, int | None]]:
    """Return which categories the scored answers of each model have."""
    return {(one.request.key.model, one.score.category) for one in trials(run) if one.score is not None}


def samples(run: Path) -> list[dict[str, Any]]:
    """Return what ``samples --json`` shows of the run's trials."""
    done = in_process("samples", run, "--json", cwd=run.parent, code=0)
    return [json.loads(line) for line in done.out.splitlines()]


def pair_decisions(run: Path) -> list[tuple[tuple[str, ...], str]]:
    """Return the stored pair decisions: models and verdict."""
    with RunReader(run) as reader:
        bodies = [decision.body for decision in reader.decisions()]
    return [(tuple(body["models"]), body["verdict"]) for body in bodies if body["kind"] == "pair"]


def report(run: Path) -> dict[str, Any]:
    """Return the run's JSON report."""
    data: dict[str, Any] = json.loads((run / "report.json").read_text("utf-8"))
    return data


def ranks(run: Path) -> dict[str, tuple[int, int]]:
    """Return the rank interval of every model, from the JSON report."""
    return {model["model"]: (model["rank_low"], model["rank_high"]) for model in report(run)["models"]}


@dataclass(frozen=True)
class Reached:
    """What a run has decided, which depends on the answers alone.

    The step of a call is no part of it: under the family ``holm`` it depends on the order of arrival.
    """

    verdicts: dict[tuple[str, ...], str]
    ranks: dict[str, tuple[int, int]]

    @classmethod
    def by(cls, run: Path) -> Reached:
        """Return what `run` has decided, from its run file and its report."""
        return cls(dict(pair_decisions(run)), ranks(run))
