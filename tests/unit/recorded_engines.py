"""Runs of the engine under an owned clock, with crossed servers: what is sent, when, and the end."""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from course_facts import condensed, decision_fact, digest, moment, text, together
from crossed_options import COURSES, Case, Options, Refused, category, chance, spec_of
from owned_clock import OwnedClock, run_owned
from scripted import JournalRecorder, VirtualCommitter

from adaptive_eval.config.model import DiscoveryConfig
from adaptive_eval.core.results import BudgetLine, Results
from adaptive_eval.core.session import Session
from adaptive_eval.engine.attempts import InProcess
from adaptive_eval.engine.clock import Deadlines
from adaptive_eval.engine.discovery import Discovery, Reading
from adaptive_eval.engine.events import Draining, Event, Launched, Progress, Remarked
from adaptive_eval.engine.limits import BatchRounds, FixedConcurrency
from adaptive_eval.engine.model_client import ModelClient
from adaptive_eval.engine.runner import Runner, RunnerOptions
from adaptive_eval.engine.solving import Solver
from adaptive_eval.errors import PermanentEndpointError, ScorerUnavailable, TransientEndpointError
from adaptive_eval.options.limit_options import BudgetSpec, RateLimit, SharedLimits
from adaptive_eval.options.request_options import RetryConfig
from adaptive_eval.store.records import KILLED, AttemptRecord
from adaptive_eval.trial import Completion, Message, Score, TrialKey, Usage

ENGINES: Options = {
    "servers": ("one", "two", "shared", "found", "sources"),
    "fails": (
        "none", "busy", "waits", "server", "dropped", "timeout", "hangs", "refused", "unfit", "down",
    ),
    "limit": ("fixed", "of-servers", "auto", "batches"),
    "rate": ("none", "requests", "tokens", "of-server", "large"),
    "samples": ("one", "three", "fewer"),
    "solver": ("none", "two-calls"),
    "scoring": ("at-once", "slow", "unavailable", "malformed", "budget"),
    "budget": ("none", "trials", "tokens", "usd", "of-models"),
    "failed": ("presume", "prompt-only", "free"),
    "ends": ("itself", "asked", "cancelled", "deadline", "model-deadline"),
    "retry": ("usual", "once", "long"),
    "seeds": ("drawn", "honoured", "same"),
    "earlier": ("none", "reached", "unfinished"),
    "answers": ("quick", "uneven", "without-usage"),
    "commits": ("at-once", "slow"),
    "tasks": ("one", "two"),
}  # fmt: skip
"""The options of runs."""
ENGINES_REFUSED: Refused = (
    ("solver", "two-calls", "samples", "three fewer"),
    ("limit", "batches", "samples", "three fewer"),
    ("limit", "batches", "servers", "found sources"),
    ("rate", "large", "ends", "asked cancelled deadline model-deadline"),
    ("rate", "large", "fails", "hangs down"),
)
MODELS = ("m0", "m1")
FASTEST = 0.5


class Brief(Session):
    """A session whose results are found every tenth time: a snapshot a second would take most of the time."""

    looks = 0
    found: Results

    def results(self) -> Results:
        self.looks += 1
        if self.looks % 10 == 1 or self.stopped is not None:
            self.found = super().results()
        return self.found


@dataclass(eq=False)
class Answering:
    """A server of one model; answers, faults and times follow from what is asked, how often and when."""

    case: Case
    model: str
    url: str
    alone: bool  # whether no other server is there
    asked: list[tuple[float, str, int, int]] = field(default_factory=list)
    tries: Counter = field(default_factory=Counter)
    in_flight: int = 0
    most: int = 0
    probes: list[float] = field(default_factory=list)

    def body(self, messages: Sequence[Message], *, seed: int | None, n: int = 1) -> Mapping[str, Any]:
        return {"messages": [one.content for one in messages], "seed": seed, "n": n}

    async def complete(self, messages: Sequence[Message], *, seed: int) -> Completion:
        (answer,) = await self.sample(messages, seed=seed, n=1)
        assert answer is not None
        return answer

    async def sample(self, messages: Sequence[Message], *, seed: int, n: int) -> list[Completion | None]:
        said = messages[-1].content
        self.asked.append((round(now(), 6), said, seed, n))
        self.tries[said] += 1
        luck = chance("luck", self.model, self.url, said, self.tries[said])
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        try:
            return await self.answer(said, seed, n, luck)
        finally:
            self.in_flight -= 1

    async def answer(self, said: str, seed: int, n: int, luck: float) -> list[Completion | None]:
        began = now()
        seconds, failure = self.fault(said, luck, began)
        if failure is not None:
            await asyncio.sleep(seconds)
            raise failure
        long = chance("long", self.model, said, seed)
        seconds += FASTEST + long * (6.0 if self.case["answers"] == "uneven" else 0.5)
        await asyncio.sleep(seconds)
        answers: list[Completion | None] = []
        for number in range(n):
            own = 0 if self.case["seeds"] == "same" else seed + number
            if self.case["seeds"] == "drawn":
                own += 1000 * self.tries[said]
            usage = Usage(20, int(5 + 30 * chance("tokens", self.model, said, own)))
            if self.case["answers"] == "without-usage" and luck > 0.8:
                usage = Usage()
            pause = 1.5 if self.case["answers"] == "uneven" and 0.2 < luck < 0.3 else 0.0
            share = usage if n == 1 else replace(usage, prompt_tokens=20 * (number == 0))
            answers.append(
                Completion(
                    f"{said} {own}",
                    "stop",
                    usage,
                    latency=now() - began,
                    share=share,
                    pause=pause,
                    model=f"{self.model}-{int(luck > 0.97)}",
                    response_id=f"{self.url} {len(self.asked)} {number}",
                )
            )
        if self.case["samples"] == "fewer" and n > 1 and luck < 0.3:
            answers[int(luck * 10) % n] = None
        return answers

    def fault(self, said: str, luck: float, at: float) -> tuple[float, Exception | None]:
        """Return the seconds that are lost, and how the request fails."""
        kind = self.case["fails"]
        here = self.alone or self.url.endswith("1")
        if kind == "down" and here and not self.up(at):
            return 0.01, TransientEndpointError("connection refused", kind="connection")
        if kind == "hangs" and here and 8.0 < at < 60.0:
            return (700.0 if luck < 0.95 else 0.0), TransientEndpointError("no word", kind="timeout")
        if kind == "refused" and self.model == "m1" and at > 6.0 and here:
            return 0.01, PermanentEndpointError("no key", kind="auth", status=401)
        if kind == "unfit" and luck < 0.06:
            return 0.02, PermanentEndpointError("too long", kind="bad_request", status=400)
        if luck > 0.15:
            return 0.0, None
        transient: Mapping[str, tuple[float, str, int | None, float | None]] = {
            "busy": (0.01, "rate_limit", 429, None),
            "waits": (0.01, "rate_limit", 429, 2.0 + 20 * luck),
            "server": (8 * luck, "server", 503 if luck < 0.1 else 500, 1.0 if luck < 0.03 else None),
            "dropped": (4 * luck, "dropped", None, None),
            "timeout": (20.0, "timeout", None if luck < 0.1 else 504, None),
            "unfit": (0.6, "malformed" if luck < 0.1 else "too_large", 200, None),
        }
        if kind not in transient:
            return 0.0, None
        seconds, name, status, wait = transient[kind]
        return seconds, TransientEndpointError("it failed", kind=name, status=status, retry_after=wait)

    def up(self, at: float) -> bool:
        return not 5.0 < at % 50.0 < 12.0

    async def alive(self) -> bool:
        self.probes.append(round(now(), 6))
        await asyncio.sleep(0.02)
        return self.case["fails"] != "down" or self.up(now())


def now() -> float:
    return asyncio.get_running_loop().time()


@dataclass(eq=False)
class Source:
    """Names servers, and others as time passes; for a while it cannot be read."""

    name: str
    every: float
    read_at: list[float] = field(default_factory=list)

    async def read(self) -> Reading:
        at = now()
        self.read_at.append(round(at, 6))
        await asyncio.sleep(0.01)
        if 21.0 < at < 33.0:
            return Reading(self.named(20.0), f"{self.name} cannot be read")
        return Reading(self.named(at))

    def named(self, at: float) -> tuple[str, ...]:
        turn = int(at / 9.0) % 3
        found = {0: ("1",), 1: ("1", "2"), 2: ("2", "3")}[turn]
        return tuple(f"http://{self.name}{number}" for number in found)


class Scoring:
    """Scores an answer as it is worth, after the troubles of a case."""

    def __init__(self, case: Case, session: Session) -> None:
        self.case = case
        self.tasks = {task.name: task for task in session.spec.tasks}
        self.tries: Counter = Counter()
        self.left = 50

    async def score(self, request: Any, completion: Completion) -> Score:
        kind, luck = self.case["scoring"], chance("score", request.key)
        self.tries[request.key] += 1
        if kind == "slow":
            await asyncio.sleep(3 * luck)
        if kind == "unavailable" and luck < 0.2 and (self.tries[request.key] == 1 or luck < 0.05):
            raise ScorerUnavailable("busy", kind="server", status=503, discarded=("server",) * (luck < 0.1))
        if kind == "malformed" and luck < 0.1 and (self.tries[request.key] == 1 or luck < 0.03):
            raise TransientEndpointError("a signal is missing", kind="malformed")
        if kind == "malformed" and luck > 0.95:
            return Score(None, None, {"tries": 1}, "the scorer failed", ("server",))
        self.left -= kind == "budget"
        mean = {"m0": 0.8, "m1": 0.4}[request.key.model]
        question = (request.key.model, request.task, request.question)
        worth = category(self.tasks[request.task], mean, question, (request.key.model, completion.text))
        return Score(worth, completion.text[-8:], {"is_correct": bool(worth)}, "right" if worth else "wrong")

    def room(self) -> int | None:
        return self.left

    def spent(self) -> Mapping[str, Any]:
        return {"answers": 50 - self.left}

    def lines(self) -> Sequence[BudgetLine]:
        return (BudgetLine("task", "t", "judge_requests", 50 - self.left, 0, 50),)


class Asking:
    """Returns what is asked."""

    def messages(self, request: Any) -> list[Message]:
        return [Message("user", f"{request.task}/{request.question}")]


async def twice(model: Callable[..., Any], messages: Sequence[Mapping[str, Any]]) -> str:
    """Answer by a first call, and a second one that sees its answer."""
    first = await model(messages)
    asked = {"role": "user", "content": "Sure?"}
    second = await model([*messages, {"role": "assistant", "content": first.text}, asked])
    return f"{first.text} {second.text}"


class EngineRun:
    """A run of a case."""

    def __init__(self, written: Case) -> None:
        self.case = case = {name: written.get(name, values[0]) for name, values in ENGINES.items()}
        spec_case = {
            "models": "two", "passes": "six" if case["commits"] == "at-once" else "three",
            "tasks": case["tasks"], "failed": case["failed"],
            "budget": case["budget"], "samples": "one" if case["samples"] == "one" else "three",
            "noise": "all-repeat" if case["seeds"] == "same" else "drawn",
            "lost": "redrawn" if case["retry"] == "once" else "none",
        }  # fmt: skip
        spec = spec_of({name: value for name, value in spec_case.items() if value in COURSES[name]})
        if case["rate"] == "large":  # a minute for each trial
            spec = replace(spec, budget=BudgetSpec(trials=14))
        self.session = Brief(spec)
        self.recorder = JournalRecorder([])
        self.events: list[Event] = []
        self.servers: dict[tuple[str, str], Answering] = {}
        self.sources = [Source("a", 4.0), Source("b", 7.0)]
        self.scoring = Scoring(case, self.session)

    def endpoint(self, model: str, url: str, *, alone: bool = False) -> Answering:
        key = (model, url)
        if key not in self.servers:
            self.servers[key] = Answering(self.case, model, url, alone)
        return self.servers[key]

    def discovery(self, model: str) -> Discovery:
        place = MODELS.index(model) * (self.case["servers"] == "sources")

        async def connect(url: str) -> Answering:
            await asyncio.sleep(0.3)
            if url.endswith("3"):
                raise PermanentEndpointError("it serves another model", kind="not_found", status=404)
            if now() < 3.0 and url.endswith("1"):
                raise TransientEndpointError("not yet", kind="connection")
            return self.endpoint(model, url)

        config = DiscoveryConfig(discover="file", path="x", patience=30.0, each=SharedLimits(concurrency=6))
        return Discovery(self.sources[place], connect, config)

    def client(self, model: str) -> ModelClient:
        case = self.case
        urls = {
            "one": [f"http://{model}/1"], "two": [f"http://{model}/1", f"http://{model}/2"], "shared": ["http://s/1"],
        }.get(case["servers"], [])  # fmt: skip
        limits = {"fixed": FixedConcurrency(5), "batches": BatchRounds(10)}
        rates = {
            "requests": RateLimit(requests_per_minute=150), "tokens": RateLimit(tokens_per_minute=2500),
            "large": RateLimit(tokens_per_minute=300),
        }  # fmt: skip
        retries = {
            "usual": RetryConfig(attempts=3, max_seconds=40.0), "once": RetryConfig(attempts=1, requeue=0),
            "long": RetryConfig(attempts=5, max_seconds=4.0, requeue=2),
        }  # fmt: skip
        tasks = [task.name for task in self.session.spec.tasks]
        return ModelClient(
            [self.endpoint(model, url, alone=len(urls) == 1) for url in urls],
            limits.get(case["limit"]),
            retries[case["retry"]],
            outage=6,
            samples=1 if case["samples"] == "one" else 3,
            rate=rates.get(case["rate"], RateLimit()),
            prompt_tokens=lambda messages: 30 * len(messages),
            answer_tokens=400 if case["rate"] == "large" else 40,
            solvers={tasks[0]: Solver("twice", twice, 2, 200)} if case["solver"] == "two-calls" else {},
            batched=case["limit"] == "batches",
            repeats=case["seeds"] == "same",
            time_limit=20.0,
            discovery=self.discovery(model) if case["servers"] in ("found", "sources") else None,
        )

    def options(self) -> RunnerOptions:
        ends, earlier = self.case["ends"], self.case["earlier"]
        deadlines = Deadlines(run=24.0) if ends == "deadline" else Deadlines()
        if ends == "model-deadline":
            deadlines = Deadlines(models={"m1": 15.0})
        unfinished = {}
        if earlier == "unfinished":
            for number, (url, error, seconds) in enumerate(
                (("http://m0/1", "timeout", 20.0), ("", KILLED, 0.0), ("http://m1/1", "server", 3.0))
            ):
                for model in MODELS:
                    key = TrialKey(model, number)
                    status = 503 if error == "server" else None
                    unfinished[key] = [AttemptRecord(key, 1, url, 0.0, seconds, status, error, "it failed")]
        return RunnerOptions(
            deadlines=deadlines,
            at_deadline="cancel" if self.case["commits"] == "slow" else "drain",
            elapsed=2.0 if earlier != "none" else 0.0,
            reached=frozenset(MODELS if earlier != "none" else ()),
            unfinished=unfinished,
            fastest={"http://m1/1": 2.0} if earlier == "unfinished" else {},
        )

    async def go(self) -> None:
        limits: dict[str, Any] = {}
        if self.case["limit"] != "fixed":
            limits["concurrency"] = "auto" if self.case["limit"] == "auto" else 4
        if self.case["rate"] == "of-server":
            limits["rate_limit"] = RateLimit(requests_per_minute=90, tokens_per_minute=4000)
        urls = [f"http://{name}/{number}" for name in (*MODELS, "s") for number in "12"]
        runner = Runner(
            self.session,
            self.recorder,
            {model: self.client(model) for model in MODELS},
            servers=dict.fromkeys(urls, SharedLimits(**limits)) if limits else {},
            prompts=Asking(),
            executor=InProcess(self.scoring),
            clock=OwnedClock(),
            jitter=lambda: 0.5,
            options=self.options(),
            observer=self.events.append,
            committer=VirtualCommitter(0.3 if self.case["commits"] == "slow" else 0.0),
            scoring_budget=self.scoring if self.case["scoring"] == "budget" else None,
        )
        loop = asyncio.get_running_loop()
        stops = {"asked": (21.3,), "cancelled": (21.3, 22.9)}.get(self.case["ends"], ())
        for at in stops:
            loop.call_at(at, runner.request_stop)
        async with asyncio.timeout(1e5):
            self.verdict = await runner.run()
        self.seconds = loop.time()

    def facts(self) -> Iterator[str]:
        """Yield what was sent, what came of it, and what was said of it."""
        for (model, url), server in sorted(self.servers.items()):
            times = [at for at, *_ in server.asked]
            asked = digest((said, seed, n) for _, said, seed, n in server.asked)
            yield f"{model} {url} {len(times)} most={server.most} {asked} {text(together(times))}"
            if server.probes:
                yield f"probes {len(server.probes)} {text(together(server.probes))}"
        for source in self.sources:
            if source.read_at:
                yield f"read {source.name} {len(source.read_at)}"
        attempts = self.recorder.of("attempt")
        kinds = Counter(f"{one.error} {one.status}" for one in attempts if one.error)
        words = digest((one.key, one.attempt, one.endpoint, one.status, one.error) for one in attempts)
        figures = together(figure for one in attempts for figure in (one.started_at % 1e6, one.latency))
        yield f"attempts {len(attempts)} {text(kinds)} {words} {text(figures)}"
        outcomes = list(self.recorder.outcomes.values())
        missing = Counter(" ".join(re.findall(r"\d+", one.missing)) for one in outcomes if one.missing)
        causes = Counter(cause for one in outcomes for cause in one.discarded)
        usage = sum((one.usage for one in outcomes), Usage())
        late = sum(one.after_stop for one in outcomes)
        words = digest(
            (one.request.key, one.usage, one.discarded, one.sent, one.completion and one.completion.text)
            for one in outcomes
        )
        figures = together(one.finished_at % 1e6 for one in outcomes)
        counts = f"{len(outcomes)} late={late} {text(missing)} {text(causes)} tokens={usage.total_tokens}"
        yield f"outcomes {counts} {words} {text(figures)}"
        decisions = list(map(decision_fact, self.session.decisions))
        yield condensed(["decisions", *(f"decisions {one}" for one in decisions)])[0]
        servers = [one for one in self.recorder.of("decision") if one["kind"] == "servers"]
        yield f"servers {[(one['verdict'], one['trials']) for one in servers]}".replace(" ", "")
        codes = Counter(getattr(one.text, "code", "other") for one in self.of(Remarked))
        launches = [len(one.requests) for one in self.of(Launched)]
        drained = [(one.reason, one.in_flight) for one in self.of(Draining)]
        yield f"launches {digest(launches)} drained={text(drained)} remarks={text(codes)}"
        shown, figures_shown = [], []
        for one in self.of(Progress):
            for server in one.endpoints:
                count = (server.in_flight, server.limit, server.answered, sorted(server.errors.items()))
                shown.append((server.model, server.endpoint, server.state, *count))
                figures_shown += [
                    server.requests_per_second,
                    server.tokens_per_second,
                    server.p50,
                    server.p95,
                ]
        budgets = self.of(Progress)[-1].results.budgets
        added = [line for line in budgets if line.name in ("wall_clock", "judge_requests")]
        lines = [(line.scope, line.owner, line.name, line.spent) for line in added]
        yield f"shown {len(self.of(Progress))} {digest(shown)} {text(together(figures_shown))} {text(lines)}"
        evidence = {
            name: value for name, value in self.verdict.evidence.items() if isinstance(value, int | float)
        }
        results = moment(self.session.results())
        yield f"end {self.verdict.reason} {text(evidence)} {text(self.seconds)} {results}"

    def of(self, kind: type) -> list[Any]:
        return [one for one in self.events if isinstance(one, kind)]


def engine_facts(written: Case) -> list[str]:
    """Return what a run does and says."""
    run = EngineRun(written)
    run_owned(run.go())
    return list(run.facts())
