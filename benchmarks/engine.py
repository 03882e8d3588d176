"""What the engine and the store cost beside the client: requests per second and CPU per trial.

Six ways to get the same number of answers from the same server (the mimic at zero latency, or a canned
answer with ``--server canned``), each in a process of its own, in turns. The median of the rates counts, and
the least CPU time: a busy machine can only raise it.

aiohttp   the least: workers that post JSON with aiohttp and keep the texts in a list, with no limit, no
          retry and nothing stored
create    what one writes first: workers that await ``client.chat.completions.create`` of the openai client,
          over the aiohttp transport, and keep the texts in a list
endpoint  the same workers over our endpoint alone
runner    the engine: our endpoint, a session that asks for trials in order, a real run file that is synced
          to the disk with every commit, snapshots every second
command   the whole command, ``adaptive-eval run``, of two models with the goal budget: its start, decisions,
          scorer, forecast and report included
httpx     the same command, whose requests go through httpx2 on its aiohttp transport (``httpx_command.py``)

With ``--harnesses PYTHON``, an interpreter that has lm-eval[api], inspect-ai and openai, also their request
phases on the same server (``benchmarks/harnesses.py``; Inspect with a tenth of the trials).

Also printed: the longest time for which the runner held up the event loop, commits, and the peak memory.

    python benchmarks/engine.py                       # about two minutes on two cores
    python benchmarks/engine.py --in-flight 64 --trials 20000 --ways runner
    python benchmarks/engine.py --profile             # where the runner's time goes
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import os
import pstats
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from canned_server import canned_server

from adaptive_eval.core.results import Decision, Results, StopVerdict
from adaptive_eval.endpoints.apis import OpenAIChat
from adaptive_eval.engine.attempts import InProcess
from adaptive_eval.engine.limits import FixedConcurrency
from adaptive_eval.engine.model_client import ModelClient
from adaptive_eval.engine.runner import Runner
from adaptive_eval.run.execution import collecting_little
from adaptive_eval.stops import StopReason
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.trial import Completion, Message, Missing, Score, TrialKey, TrialOutcome, TrialRequest

MODEL = "canned"
QUESTIONS = 100
SAMPLING = {"temperature": 0.6, "top_p": 0.95, "max_tokens": 1024}
WAYS = ("aiohttp", "create", "endpoint", "runner", "command", "httpx")
HARNESSES = ("lm-eval", "inspect")


def prompt(question: int) -> str:
    return f"A farmer has {question} cows and buys 12 more. How many has he now? Put the answer into a box."


class _InOrder:
    """A session that asks for `trials` trials of one model and counts what it is told."""

    def __init__(self, trials: int) -> None:
        self.trials, self.asked, self.told = trials, 0, 0
        self.verdict: StopVerdict | None = None

    @property
    def stopped(self) -> StopVerdict | None:
        return self.verdict

    def ask(self, capacity: Mapping[str, int]) -> Sequence[TrialRequest]:
        first, self.asked = self.asked, min(self.trials, self.asked + capacity[MODEL])
        return [
            TrialRequest(TrialKey(MODEL, step), "bench", f"q{step % QUESTIONS}", step // QUESTIONS, step)
            for step in range(first, self.asked)
        ]

    def tell(self, outcomes: Sequence[TrialOutcome | Missing]) -> Sequence[Decision]:
        self.told += len(outcomes)
        if self.told == self.trials:
            self.verdict = StopVerdict("resolved", "all asked")
        return []

    def presume_billed(self, key: TrialKey) -> bool:
        return True

    def overdue(self, keys: Sequence[TrialKey]) -> list[Decision]:
        return []

    def may_repeat(self, key: TrialKey) -> bool:
        return False

    def abandon(self, key: TrialKey, *, billed: bool) -> None:
        raise SystemExit(f"trial {key} was given up")

    def stop_model(
        self, model: str, reason: str, *, spent: bool = False, unusable: bool = False
    ) -> Sequence[Decision]:
        raise SystemExit(f"the server failed: {reason}")

    def end(
        self, reason: StopReason, text: str = "", evidence: Mapping[str, object] | None = None
    ) -> Sequence[Decision]:
        self.verdict = StopVerdict(reason, text)
        return []

    def results(self) -> Results:
        return Results(
            "ranking", "anytime", 0.95, "holm", None, QUESTIONS, (), (), (), self.told, self.verdict
        )


class _Bench:
    """Prompts and scoring as cheap as they can be."""

    def messages(self, request: TrialRequest) -> Sequence[Message]:
        return [Message("user", prompt(request.key.index % QUESTIONS))]

    async def score(self, request: TrialRequest, completion: Completion) -> Score:
        return Score(int("\\boxed{4}" in completion.text), "4", {"is_correct": True, "has_box": True})


def endpoint(url: str, in_flight: int) -> OpenAIChat:
    return OpenAIChat(url, MODEL, sampling=SAMPLING, concurrency=in_flight)


async def workers(ask: Any, in_flight: int, trials: int) -> None:
    steps = iter(range(trials))

    async def worker() -> None:
        for step in steps:
            await ask(step)

    await asyncio.gather(*(worker() for _ in range(in_flight)))


async def bare(url: str, in_flight: int, trials: int) -> dict[str, float]:
    import aiohttp

    texts: list[str] = []
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=in_flight)) as session:

        async def ask(step: int) -> None:
            messages = [{"role": "user", "content": prompt(step % QUESTIONS)}]
            body = {"model": MODEL, "messages": messages, "seed": step, **SAMPLING}
            async with session.post(f"{url}/chat/completions", json=body) as response:
                answer = await response.json()
            texts.append(answer["choices"][0]["message"]["content"])

        await workers(ask, in_flight, in_flight)
        return await timed(workers(ask, in_flight, trials), trials)


async def create(url: str, in_flight: int, trials: int) -> dict[str, float]:
    import httpx2
    import openai

    limits = httpx2.Limits(max_connections=in_flight, max_keepalive_connections=in_flight)
    texts: list[str | None] = []
    sampling: dict[str, Any] = dict(SAMPLING)
    async with openai.AsyncOpenAI(
        base_url=url,
        api_key="none",
        max_retries=0,
        http_client=openai.DefaultAioHttpClient(limits=limits, timeout=60),
    ) as client:

        async def ask(step: int) -> None:
            answer = await client.chat.completions.create(
                model=MODEL,
                messages=[{"role": "user", "content": prompt(step % QUESTIONS)}],
                seed=step,
                **sampling,
            )
            texts.append(answer.choices[0].message.content)

        await workers(ask, in_flight, in_flight)
        return await timed(workers(ask, in_flight, trials), trials)


async def endpoint_alone(url: str, in_flight: int, trials: int) -> dict[str, float]:
    texts: list[str] = []
    async with endpoint(url, in_flight) as chat:

        async def ask(step: int) -> None:
            answer = await chat.complete([Message("user", prompt(step % QUESTIONS))], seed=step)
            texts.append(answer.text)

        await workers(ask, in_flight, in_flight)
        return await timed(workers(ask, in_flight, trials), trials)


async def runner(url: str, in_flight: int, trials: int) -> dict[str, float]:
    longest_block = 0.0

    async def watch() -> None:
        nonlocal longest_block
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.005)
            longest_block = max(longest_block, time.perf_counter() - before - 0.005)

    async with endpoint(url, in_flight) as chat:
        await workers(
            lambda step: chat.complete([Message("user", prompt(step))], seed=step), in_flight, in_flight
        )
        with (
            tempfile.TemporaryDirectory(dir=".") as directory,
            RunWriter.create(Path(directory, "run"), meta={}) as writer,
        ):
            commits = _Counting(writer)
            client = ModelClient([chat], FixedConcurrency(in_flight))
            engine = Runner(
                _InOrder(trials), commits, {MODEL: client}, prompts=_Bench(), executor=InProcess(_Bench())
            )
            watching = asyncio.create_task(watch())
            with collecting_little():  # as the command does
                figures = await timed(engine.run(), trials)
            watching.cancel()
    return {
        **figures,
        "block": 1000 * longest_block,
        "commits": commits.commits,
        "commit_ms": 1000 * commits.seconds / commits.commits,
    }


CONFIG = """
name: bench
models:
  - {{name: one, model: {model}, endpoints: ["{url}"], concurrency: {each}, sampling: {sampling}}}
  - {{name: two, model: {model}, endpoints: ["{url}"], concurrency: {each}, sampling: {sampling}}}
tasks: [{{name: cows, dataset: cows.jsonl, prompt: "{{input}}", scorer: numeric}}]
goal: budget
budget: {{trials: {trials}}}
"""


def whole_command(url: str, in_flight: int, trials: int, program: Sequence[str | Path]) -> dict[str, float]:
    """Run the command in a process of its own; the CPU time is that of the whole process."""
    rows = [{"id": f"q{number}", "input": prompt(number), "target": "4"} for number in range(QUESTIONS)]
    sampling = json.dumps(SAMPLING)
    text = CONFIG.format(url=url, model=MODEL, each=in_flight // 2, sampling=sampling, trials=trials)
    with tempfile.TemporaryDirectory(dir=".") as directory:
        Path(directory, "cows.jsonl").write_text("\n".join(map(json.dumps, rows)))
        Path(directory, "config.yaml").write_text(text)
        # as installed: compiled once, not at every start
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        before, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(
            [*program, "run", "config.yaml", "--display", "none"],
            cwd=directory,
            env=kept,
            capture_output=True,
            text=True,
        )
        wall, after = time.perf_counter() - wall, resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode not in (0, 3):
            raise SystemExit(done.stdout + done.stderr)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"rate": trials / wall, "cpu": 1000 * cpu / trials, "memory": after.ru_maxrss / 1024}


class _Counting:
    """The store, with its commits counted and timed."""

    def __init__(self, writer: RunWriter) -> None:
        self.commits, self.seconds = 0, 0.0
        self.launch, self.attempt, self.outcome = writer.launch, writer.attempt, writer.outcome
        self.decision, self.snapshot = writer.decision, writer.snapshot
        self._commit = writer.commit

    def commit(self) -> int:
        started = time.perf_counter()
        count = self._commit()
        self.commits += 1
        self.seconds += time.perf_counter() - started
        return count


async def timed(work: Any, trials: int) -> dict[str, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    await work
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 if sys.platform == "darwin" else 1024)
    return {"rate": trials / wall, "cpu": 1000 * cpu / trials, "memory": peak}


@contextmanager
def mimic_server() -> Iterator[str]:
    from adaptive_eval.mimic.mimic_spec import KnownQuestion, MimicModelSpec, MimicSpec
    from adaptive_eval.mimic.process import MimicProcess

    questions = tuple(
        KnownQuestion(id=f"q{q}", question=prompt(q), target=str(q + 12)) for q in range(QUESTIONS)
    )
    with MimicProcess(
        MimicSpec(models=(MimicModelSpec(name=MODEL, mean=0.6),), questions=questions)
    ) as mimic:
        yield mimic.base_url


def one(way: str, url: str, in_flight: int, trials: int, profile: bool) -> dict[str, float]:
    if way == "command":
        return whole_command(url, in_flight, trials, [Path(sys.executable).with_name("adaptive-eval")])
    if way == "httpx":
        script = Path(__file__).resolve().with_name("httpx_command.py")
        return whole_command(url, in_flight, trials, [sys.executable, script])
    measure = {"aiohttp": bare, "create": create, "endpoint": endpoint_alone, "runner": runner}[way]
    if not profile:
        return asyncio.run(measure(url, in_flight, trials))
    with cProfile.Profile() as profiler:
        figures = asyncio.run(measure(url, in_flight, trials))
    pstats.Stats(profiler, stream=sys.stderr).sort_stats("tottime").print_stats(45)
    return figures


def in_own_process(way: str, url: str, in_flight: int, options: argparse.Namespace) -> dict[str, float]:
    command = [sys.executable, __file__, "--one", way, url, str(in_flight), "--trials", str(options.trials)]
    command += ["--profile"] if options.profile else []
    if way in HARNESSES:
        trials = options.trials // 10 if way == "inspect" else options.trials
        script = str(Path(__file__).with_name("harnesses.py"))
        command = [options.harnesses, script, way, url, str(in_flight), str(trials)]
    errors = subprocess.DEVNULL if way in HARNESSES else None  # their progress bars
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--in-flight", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--trials", type=int, default=4000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--harnesses", metavar="PYTHON", help="interpreter with lm-eval[api] and inspect-ai")
    parser.add_argument("--server", choices=("mimic", "canned"), default="mimic")
    parser.add_argument("--profile", action="store_true", help="print where the time of each way goes")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        way, url, in_flight = options.one
        print(json.dumps(one(way, url, int(in_flight), options.trials, options.profile)))
        return
    ways = [*options.ways, *(HARNESSES if options.harnesses else ())]
    variants = [(in_flight, way) for in_flight in options.in_flight for way in ways]
    turns: dict[tuple[int, str], list[dict[str, float]]] = {variant: [] for variant in variants}
    with mimic_server() if options.server == "mimic" else canned_server() as url:
        for _ in range(options.turns):
            for in_flight, way in variants:
                turns[in_flight, way].append(in_own_process(way, url, in_flight, options))
    report(turns)
    if not options.harnesses:
        print("lm-eval and Inspect are not measured: give --harnesses PYTHON, an interpreter that has them")


def report(turns: Mapping[tuple[int, str], Sequence[Mapping[str, float]]]) -> None:
    bases = ("aiohttp", "create", "endpoint")
    shares = "".join(f"   of {base:>8}" for base in bases)
    print(f"in flight  way        trials/s   CPU ms/trial{shares}   peak MB   loop held up ms")
    best = {
        variant: {
            name: (min if name == "cpu" else statistics.median)(result[name] for result in results)
            for name in results[0]
        }
        for variant, results in turns.items()
    }
    for (in_flight, way), figures in best.items():
        line = f"{in_flight:9d}  {way:9} {figures['rate']:9.0f} {figures['cpu']:14.3f}"
        for base in bases:
            other = best.get((in_flight, base))
            line += f"{figures['cpu'] / other['cpu']:14.2f}" if other else f"{'-':>14}"
        line += f" {figures['memory']:9.0f}"
        if "block" in figures:
            commits, seconds = figures["commits"], figures["commit_ms"]
            line += f"   {figures['block']:.0f} ({commits:.0f} commits of {seconds:.1f} ms)"
        print(line)


if __name__ == "__main__":
    main()
