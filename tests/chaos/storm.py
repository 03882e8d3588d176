"""Real runs and run files against servers, clocks and disks that misbehave, in virtual time.

A run is made in sessions. Each ends in its own way: killed before or after a commit, a torn write behind it,
a full disk, interrupts, deadlines. Meanwhile servers refuse, limit, drop, hang and vanish, and the machine
falls asleep. In the end the run file must hold every answer that was ever stored, each once, and nobody may
have billed more than a budget allows.
"""

import asyncio
import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from chaos_books import Bill, Books, Figures
from owned_clock import OwnedClock, OwnedClockLoop, run_owned
from scripted import Prompts

from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import (
    AllocationSpec,
    BudgetSpec,
    GoalSpec,
    ModelSpec,
    Price,
    SessionSpec,
    TaskSpec,
)
from adaptive_eval.engine.attempts import InProcess
from adaptive_eval.engine.clock import Deadlines
from adaptive_eval.engine.limits import FixedConcurrency
from adaptive_eval.engine.model_client import ModelClient
from adaptive_eval.engine.runner import Runner, RunnerOptions
from adaptive_eval.errors import RunDiskFull, TransientEndpointError
from adaptive_eval.options.request_options import RetryConfig
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.trial import Completion, Message, Score, TrialRequest, Usage

MODELS = ("a", "b", "c")
MOST = 120
PATIENCE = 30.0
"""Seconds after which the client gives a request up."""

NIGHT = 8 * 3600.0


class Killed(BaseException):
    """The process is no more."""


def spec_of(rng: random.Random) -> SessionSpec:
    """Return a run whose budgets are all near enough to be met."""
    tasks = tuple(
        TaskSpec(name, tuple(f"{name}{n}" for n in range(20)), prompt_bounds=(40,) * 20, budget=budget)
        for name, budget in (
            ("s", BudgetSpec()),
            ("t", BudgetSpec(completion_tokens=rng.randrange(30_000, 90_000))),
        )
    )
    prices = {name: Price(0.1, 0.4, cached_input=0.05) for name in MODELS}
    own = {
        "a": BudgetSpec(usd=rng.choice((0.01, 0.02, 0.5))),
        "b": BudgetSpec(tokens=rng.randrange(20_000, 90_000)),
    }
    return SessionSpec(
        models=tuple(ModelSpec(name, MOST, prices[name], own.get(name, BudgetSpec())) for name in MODELS),
        tasks=tasks,
        allocation=AllocationSpec(questions="schedule"),
        samples_per_prompt=rng.choice((1, 1, 3)),
        goal=GoalSpec(rng.choice(("budget", "ranking"))),
        budget=BudgetSpec(trials=3_000, tokens=rng.randrange(90_000, 160_000), usd=0.05),
        seed=rng.randrange(1000),
    )


@dataclass
class World:
    """What lasts over the sessions of a run: servers with their bills, and what is known to be stored."""

    seed: int
    run: Path
    trouble: float = 0.3

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.spec = spec_of(self.random)
        self.bill = Bill(self.spec)
        self.books = Books(self.run)
        self.mute = self.random.choice((None, None, ("c", "t")))  # a model that never answers a task
        self.stored: set[int] = set()
        self.in_flight = self.most_in_flight = 0

    def fault(self, kind: str) -> None:
        """Count a fault."""
        self.books.figures.faults[kind] += 1


@dataclass
class Server:
    """One server of one model. What becomes of a request follows from its seed and attempt."""

    world: World
    model: str
    url: str
    down: tuple[float, float] = (0.0, 0.0)
    sick: str = ""  # what it does while it is down, although it lists its models
    attempts: dict[int, int] = field(default_factory=dict)

    def body(self, messages: Sequence[Message], *, seed: int | None, n: int = 1) -> Mapping[str, Any]:
        return {"messages": [message.content for message in messages], "seed": seed, "n": n}

    async def alive(self) -> bool:
        return bool(self.sick) or not self._is_down()

    def _is_down(self) -> bool:
        return self.down[0] <= asyncio.get_running_loop().time() < self.down[1]

    async def complete(self, messages: Sequence[Message], *, seed: int | None) -> Completion:
        (answer,) = await self.sample(messages, seed=seed, n=1)
        assert answer is not None
        return answer

    async def sample(
        self, messages: Sequence[Message], *, seed: int | None, n: int
    ) -> Sequence[Completion | None]:
        assert seed is not None
        world, task = self.world, messages[0].content.partition("/")[0]
        self.attempts[seed] = attempt = self.attempts.get(seed, 0) + 1
        rng = random.Random(f"{world.seed}/{self.url}/{seed}/{attempt}/{world.books.figures.sessions}")
        prompt, most = 20 + len(messages[0].content) % 20, n * MOST
        # Asked again although the answer is stored.
        world.books.figures.doubled += len(world.stored.intersection(range(seed, seed + n)))
        world.bill.add(self.model, task, prompt, most)
        world.in_flight += n
        world.most_in_flight = max(world.most_in_flight, world.in_flight)
        try:
            if self._is_down():
                await self._fail(task, prompt, most)
            if rng.random() < world.trouble:
                await self._misbehave(rng, task, prompt, most)
            if world.mute == (self.model, task):
                world.fault("task without an answer")
                raise TransientEndpointError("cut off", kind="aborted")
            seconds = rng.uniform(0.2, 8.0)
            await asyncio.sleep(seconds)
            cached, answers = rng.randrange(prompt), list[Completion | None]()
            for number in range(n):
                if n > 1 and rng.random() < 0.1:
                    world.fault("choice lost")
                    world.bill.add(self.model, task, 0, -MOST)
                    answers.append(None)
                    continue
                used = rng.choice((1, 5, 40, MOST))
                world.bill.add(self.model, task, 0, used - MOST)
                answers.append(Completion(f"answer {seed + number}", "stop", Usage(0, used), seconds))
            if not any(answers):
                raise TransientEndpointError("all choices were broken off", kind="aborted")
            return self._with_prompt(answers, task, prompt, cached)
        finally:
            world.in_flight -= n

    def _with_prompt(
        self, answers: list[Completion | None], task: str, prompt: int, cached: int
    ) -> Sequence[Completion | None]:
        """Let the first answer report the prompt, which was paid once; without one nobody reports it."""
        for number, answer in enumerate(answers):
            if answer is not None:
                usage = Usage(prompt, answer.usage.completion_tokens, cached)
                answers[number] = replace(answer, usage=usage)
                self.world.bill.add(self.model, task, 0, 0, cached)
                break
        return answers

    async def _fail(self, task: str, prompt: int, most: int) -> None:
        """Do what the server does while it is down: refuse, hang, or answer with a page."""
        self.world.fault(f"server {self.sick or 'gone'}")
        if not self.sick:
            self.world.bill.add(self.model, task, -prompt, -most)
            raise TransientEndpointError("connection refused", kind="connection")
        if self.sick == "that hangs":
            await asyncio.sleep(PATIENCE)
            raise TransientEndpointError("no answer", kind="timeout")
        await asyncio.sleep(0.1)
        raise TransientEndpointError("JSON was expected, not: <html>", kind="malformed")

    async def _misbehave(self, rng: random.Random, task: str, prompt: int, most: int) -> None:
        kind = rng.choice(("429", "503", "408", "dropped", "malformed", "aborted", "hang", "504"))
        self.world.fault(kind)
        if kind == "hang":
            await asyncio.sleep(PATIENCE)
            raise TransientEndpointError("no answer", kind="timeout")
        await asyncio.sleep(rng.uniform(0.0, 2.0))
        if kind in ("429", "503"):
            self.world.bill.add(self.model, task, -prompt, -most)
            wait = rng.choice((None, 0.0, 3.0))
            kind_of = "rate_limit" if kind == "429" else "server"
            raise TransientEndpointError(kind, kind=kind_of, status=int(kind), retry_after=wait)
        kind_of = {"408": "timeout", "504": "server"}.get(kind, kind)
        raise TransientEndpointError(kind, kind=kind_of, status=int(kind) if kind.isdigit() else None)


class Coins:
    """Scores by coin."""

    async def score(self, request: TrialRequest, completion: Completion) -> Score:
        await asyncio.sleep(request.seed % 3 / 10)  # a kill may find answers that are not scored yet
        return Score(request.seed % 2, completion.text)


@dataclass
class Disk:
    """Makes commits, until the session ends the way it is to end."""

    world: World
    end: str
    left: int
    into: Path
    """Where the run goes on after a kill: what was on the disk at that moment."""

    async def commit(self, commit: Callable[[], int]) -> None:
        await asyncio.sleep(self.world.random.choice((0.0, 0.001, 0.3)))
        self.left -= 1
        if self.left == 0 and self.end == "full disk":
            raise RunDiskFull("no space left on the disk")
        if self.left == 0 and self.end == "killed before a commit":
            self._die()
        commit()
        if self.left == 0 and self.end in ("killed after a commit", "power loss in a write"):
            self._die()

    def _die(self) -> None:
        shutil.copytree(self.world.run, self.into)
        (self.into / "run.db-shm").unlink(missing_ok=True)
        if self.end == "power loss in a write":
            with (self.into / "run.db-wal").open("ab") as log:
                log.write(self.world.random.randbytes(self.world.random.randrange(1, 9000)))
        self.world.run = self.into
        raise Killed

    def close(self) -> None:
        pass


ENDS = (
    "killed before a commit", "killed after a commit", "power loss in a write", "full disk", "interrupt",
    "second interrupt", "deadline: drain", "deadline: cancel", "sleep",
)  # fmt: skip


def one_session(world: World, number: int, end: str) -> Session:
    """Let one session run until its end, by nature or not; return its session."""
    session = Session(world.spec)
    exists = (world.run / "run.db").exists()
    cancels = end == "deadline: cancel"
    # Every session but the last is short, so that the budgets last for many.
    deadline = world.random.uniform(3.0, 12.0 if end.startswith("deadline") else 25.0) if end else None
    options = RunnerOptions(deadlines=Deadlines(deadline), at_deadline="cancel" if cancels else "drain")
    into = world.run.with_name(f"{world.run.name.partition('-')[0]}-{number}")
    disk = Disk(world, end, world.random.randrange(2, 40), into)
    if end:
        world.fault(end)

    async def main(writer: RunWriter) -> None:
        rng = world.random
        clients = {}
        for model in MODELS:
            pool = [Server(world, model, f"http://{model}{n}/v1") for n in range(rng.choice((1, 2, 3)))]
            if len(pool) > 1:
                start = rng.uniform(0.0, 30.0)
                pool[0].down = (start, start + rng.uniform(1.0, 100.0))
                pool[0].sick = rng.choice(("", "that hangs", "with HTML"))
            retry = RetryConfig(attempts=4, max_seconds=60.0)
            limit, samples = FixedConcurrency(200), world.spec.samples_per_prompt
            clients[model] = ModelClient(pool, limit, retry, outage=60, samples=samples)
        runner = Runner(
            session,
            writer,
            clients,
            prompts=Prompts(),
            executor=InProcess(Coins()),
            clock=OwnedClock(),
            jitter=rng.random,
            options=options,
            committer=disk,
        )
        disturbing = asyncio.create_task(disturb(runner, rng))
        try:
            await runner.run()
        finally:
            disturbing.cancel()

    async def disturb(runner: Runner, rng: random.Random) -> None:
        await asyncio.sleep(rng.uniform(1.0, 15.0))
        if end == "sleep":
            loop = asyncio.get_running_loop()
            assert isinstance(loop, OwnedClockLoop)
            loop.elapsed += NIGHT
        if end.endswith("interrupt"):
            runner.request_stop()
        if end == "second interrupt":
            await asyncio.sleep(rng.uniform(0.0, 3.0))
            runner.request_stop()

    try:
        with RunWriter.open(world.run) if exists else RunWriter.create(world.run, meta={}) as writer:
            if exists:
                with writer.reader() as reader:
                    log = list(reader.log())
                    session.replay(log, reader.unanswered())
            if session.stopped is None:
                run_owned(main(writer))
    except (Killed, RunDiskFull):
        pass
    return session


def storm(world: World, sessions: int) -> Figures:
    """Let a run go through `sessions` bad ends and then to its own, and return its figures."""
    for number in range(sessions):
        end = world.random.choice(ENDS)
        session = one_session(world, number, end)
        world.books.look(world.run)
        world.stored |= {record.request.seed for record in world.books.records}
        killed = end.startswith(("killed", "power", "full"))
        assert killed or not session.budget.run.in_flight or session.stopped is None
    session = one_session(world, sessions, "")
    world.books.look(world.run)
    assert session.stopped is not None
    assert session.stopped.reason in ("budget", "partial", "resolved", "lost"), session.stopped
    assert not session.in_flight
    for record in world.books.records:
        # After a timeout of ours a trial is asked with another seed, and its draw counts as discarded.
        seeds = [record.request.seed]
        if record.discarded:
            seeds += range(record.sent["seed"], record.sent["seed"] + record.sent.get("n", 1))
        own = record.completion is None or record.completion.text in [f"answer {seed}" for seed in seeds]
        world.books.figures.doubled += not own
    answers = [
        (record.request.key.model, record.completion.text)
        for record in world.books.records
        if record.completion is not None
    ]
    world.books.figures.doubled += len(answers) - len(set(answers))
    world.books.figures.overrun += world.bill.overruns()
    return world.books.figures
