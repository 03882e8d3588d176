"""A scripted controller, endpoint and store, which write down in one journal what happens in which order."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from adaptive_eval.core.results import Decision, Results, StopVerdict
from adaptive_eval.engine.solving import call_seed
from adaptive_eval.engine.trial_task import REDRAWN
from adaptive_eval.errors import PermanentEndpointError, TransientEndpointError
from adaptive_eval.trial import Completion, Message, Score, TrialKey, TrialRequest, Usage

Journal = list[tuple[Any, ...]]


def busy(retry_after: float | None = None) -> TransientEndpointError:
    return TransientEndpointError(
        "HTTP 429: slow down", kind="rate_limit", status=429, retry_after=retry_after
    )


def broken() -> TransientEndpointError:
    return TransientEndpointError("HTTP 503: down", kind="server", status=503)


def refused() -> PermanentEndpointError:
    return PermanentEndpointError("HTTP 401: no key", kind="auth", status=401)


def vanished() -> TransientEndpointError:
    return TransientEndpointError("the connection was reset", kind="dropped")


def fails(error: Exception, times: int = 1, then: Any = 1.0) -> Callable[[int, int], Any]:
    """Return a script by which the first `times` attempts of each step fail."""
    return lambda step, attempt: error if attempt <= times else then


@dataclass(frozen=True)
class Chance:
    """Draws numbers from 0 to 1 that follow from a seed and from what they are drawn for."""

    seed: int

    def __call__(self, *what: Any) -> float:
        return hash((self.seed, *what)) % 1000 / 1000

    def unsteady(self, number: int, error: Callable[[int], Exception] = lambda step: broken()) -> Any:
        """Return the script of a server: up to 3 s an answer, and one attempt in ten fails."""

        def script(step: int, attempt: int) -> Any:
            if self(number, step, attempt) < 0.1:
                return self(number, step), error(step)
            return 3 * self(step, number)

        return script


def always(at: float) -> bool:
    return True


@dataclass
class ScriptedController:
    """Asks for `steps` trials of every model in order, and is resolved when all have ended."""

    steps: dict[str, int]
    journal: Journal
    resolve_after: int | None = None
    next: Counter[str] = field(default_factory=Counter)
    told: list[Any] = field(default_factory=list)
    stopped_models: dict[str, str] = field(default_factory=dict)
    spent: set[str] = field(default_factory=set)  # models that have used up a budget
    stopped: StopVerdict | None = None
    presumed: list[TrialKey] = field(default_factory=list)
    abandoned: dict[TrialKey, bool] = field(default_factory=dict)
    affords: Callable[[TrialKey], bool] = lambda key: True
    capacities: list[dict[str, int]] = field(default_factory=list)

    def ask(self, capacity):
        self.capacities.append(dict(capacity))
        requests = []
        for model, free in capacity.items():
            for _ in range(min(free, self.steps[model] - self.next[model])):
                step = self.next[model]
                self.next[model] += 1
                requests.append(TrialRequest(TrialKey(model, step), "task", f"q{step}", 0, seed=step))
        return requests

    def tell(self, outcomes):
        self.journal.append(("tell", [outcome.key for outcome in outcomes]))
        self.told.extend(outcomes)
        return self._resolve()

    def presume_billed(self, key):
        self.presumed.append(key)
        return self.affords(key)

    def overdue(self, keys):
        if keys:
            self.journal.append(("overdue", keys))
        return []

    def may_repeat(self, key):
        return False

    def abandon(self, key, *, billed):
        self.journal.append(("abandon", key))
        self.abandoned[key] = billed

    def stop_model(self, model, reason, *, spent=False, unusable=False):
        self.journal.append(("stop_model", model))
        self.stopped_models[model] = reason
        self.spent |= {model} if spent else set()
        if len(self.stopped_models) == len(self.steps):
            return self._stop("unusable" if unusable else "endpoints", "no model is left")
        decision = Decision("model_stopped", (model,), reason, 0, len(self.told), reason, {})
        return [decision, *self._resolve()]

    def end(self, reason, text="", evidence=None):
        if self.stopped is not None:
            return []
        self.journal.append(("end", reason))
        return self._stop(reason, text, evidence)

    def results(self):
        return Results("ranking", "anytime", 0.95, "holm", None, 10, (), (), (), len(self.told), self.stopped)

    def _resolve(self):
        expected = sum(count for model, count in self.steps.items() if model not in self.stopped_models)
        counted = sum(1 for outcome in self.told if outcome.key.model not in self.stopped_models)
        if counted >= min(self.resolve_after or expected, expected) and self.stopped is None:
            return self._stop("resolved", "all is settled")
        return []

    def _stop(self, reason, text, evidence=None):
        self.stopped = StopVerdict(reason, text, evidence or {})
        return [Decision("stop", (), reason, 0, len(self.told), text, {"log_e": 3.2})]


class JournalRecorder:
    """Keeps what it is given; `durable` is what a commit has confirmed."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.pending: list[tuple[Any, ...]] = []
        self.durable: list[tuple[Any, ...]] = []
        self.known: set[TrialKey] = set()
        self.commits = 0
        self.fail_commit: Callable[[int], None] = lambda number: None

    def _add(self, *row: Any) -> None:
        self.journal.append(row)
        self.pending.append(row)

    def launch(self, requests, at):
        for request in requests:
            self._add("launch", request.key, at)

    def attempt(self, record):
        self._add("attempt", record)

    def outcome(self, record):
        known = record.request.key in self.known
        if not known:
            self.known.add(record.request.key)
            self._add("outcome", record.request.key, record)
        return not known

    def decision(self, at, trials, body):
        self._add("decision", body)

    def snapshot(self, record):
        self._add("snapshot", record)

    def commit(self):
        self.commits += 1
        self.fail_commit(self.commits)
        self.journal.append(("commit",))
        self.durable += self.pending
        self.pending = []
        return 0

    def of(self, kind: str) -> list[Any]:
        """Return the durable rows of one kind: the last field of each."""
        return [row[-1] for row in self.durable if row[0] == kind]

    @property
    def outcomes(self) -> dict[TrialKey, Any]:
        return {row[1]: row[2] for row in self.durable if row[0] == "outcome"}

    @property
    def launched(self) -> Counter[TrialKey]:
        return Counter(row[1] for row in self.durable if row[0] == "launch")


@dataclass
class ScriptedEndpoint:
    """Answers by `script`: seconds to answer in, an error, or both as a pair, or what gives that.

    A function is called with the step and the number of its attempt. `up` says when it answers at all.
    """

    script: Any = 1.0
    url: str = "http://scripted/v1"
    in_flight: int = 0
    most_in_flight: int = 0
    calls: list[tuple[float, int]] = field(default_factory=list)
    cancelled: list[int] = field(default_factory=list)
    up: Callable[[float], bool] = always
    usage: Callable[[int], Usage] = lambda step: Usage(10, 5)
    pause: Callable[[int], float] = lambda step: 0.0
    named: Callable[[int], str] = lambda step: ""
    ends: list[tuple[float, int]] = field(default_factory=list)
    probes: list[float] = field(default_factory=list)
    steps: dict[int, int] = field(default_factory=dict)
    attempts: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))

    def body(self, messages, *, seed):
        return {"messages": [message.content for message in messages], "seed": seed}

    async def complete(self, messages, *, seed):
        # After a timeout a trial is asked with another seed, which follows from the one before.
        sent, seed = seed, self.steps.get(seed, seed)
        self.steps[call_seed(sent, REDRAWN)] = seed
        self.attempts[seed] += 1
        self.calls.append((asyncio.get_running_loop().time(), seed))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            if not self.up(asyncio.get_running_loop().time()):
                raise vanished()
            planned = self.script(seed, self.attempts[seed]) if callable(self.script) else self.script
            seconds, result = planned if isinstance(planned, tuple) else (planned, None)
            if isinstance(seconds, BaseException):
                seconds, result = 0.0, seconds
            await self._sleep(seconds)
            if result is not None:
                raise result
            usage = self.usage(seed)
            self.ends.append((asyncio.get_running_loop().time(), usage.total_tokens))
            pause, named = self.pause(seed), self.named(seed)
            return Completion(f"answer {seed}", "stop", usage, latency=seconds, pause=pause, model=named)
        except asyncio.CancelledError:
            self.cancelled.append(seed)
            raise
        finally:
            self.in_flight -= 1

    async def _sleep(self, seconds: float) -> None:
        """Sleep, and notice within a tenth of a second that the server has vanished meanwhile."""
        until = asyncio.get_running_loop().time() + seconds
        while (left := until - asyncio.get_running_loop().time()) > 0.0:
            await asyncio.sleep(min(left, 0.1) if self.up is not always else left)
            if not self.up(asyncio.get_running_loop().time()):
                raise vanished()

    @property
    def starts(self) -> list[float]:
        return [at for at, _ in self.calls]

    async def alive(self) -> bool:
        now = asyncio.get_running_loop().time()
        self.probes.append(now)
        return self.up(now)


class Prompts:
    def messages(self, request):
        return [Message("user", f"{request.task}/{request.question}")]


class ScoreByStep:
    """Scores odd steps 1, even steps 0."""

    async def score(self, request, completion):
        return Score(request.key.index % 2, completion.text)


@dataclass
class ScriptedScoring:
    """Scores by `script`: for a trial and how often its answer was scored, a score or an error."""

    script: Callable[[TrialKey, int], Any]
    seconds: float = 0.0
    asked: Counter[TrialKey] = field(default_factory=Counter)

    async def score(self, request, completion):
        if self.seconds:
            await asyncio.sleep(self.seconds)
        self.asked[request.key] += 1
        found = self.script(request.key, self.asked[request.key])
        if isinstance(found, Exception):
            raise found
        return found


class ScoreWithin(ScoreByStep):
    """Scores `left` more answers at most, and is their budget."""

    def __init__(self, left: int) -> None:
        self.left = left

    async def score(self, request, completion):
        self.left -= 1
        assert self.left >= 0
        return await super().score(request, completion)

    def room(self):
        return self.left

    def spent(self):
        return {"left": self.left}

    def lines(self):
        return ()


@dataclass
class VirtualCommitter:
    """Takes `seconds` of the owned clock for a commit; a thread would work in real time."""

    seconds: float = 0.0
    under_way: bool = False

    async def commit(self, commit):
        assert not self.under_way
        self.under_way = True
        if self.seconds > 0.0:
            await asyncio.sleep(self.seconds)
        self.under_way = False
        commit()

    def close(self):
        assert not self.under_way
