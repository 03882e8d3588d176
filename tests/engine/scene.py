"""A scene: a scripted run under an owned clock, and what holds of every run."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from owned_clock import OwnedClock, run_owned
from scripted import (
    Journal,
    JournalRecorder,
    Prompts,
    ScoreByStep,
    ScriptedController,
    ScriptedEndpoint,
    VirtualCommitter,
)

from adaptive_eval.core.results import StopVerdict
from adaptive_eval.engine.attempts import InProcess
from adaptive_eval.engine.discovery import Discovery
from adaptive_eval.engine.events import Remarked
from adaptive_eval.engine.limits import FixedConcurrency
from adaptive_eval.engine.model_client import ModelClient
from adaptive_eval.engine.runner import Runner, RunnerOptions
from adaptive_eval.options.limit_options import RateLimit
from adaptive_eval.options.request_options import RetryConfig
from adaptive_eval.trial import Missing, TrialKey


@dataclass
class Scene:
    """Everything of one scripted run; a number of steps is of model ``a``, and so are the `others`."""

    steps: Any = 8
    script: Any = 1.0  # of all models that are not in `scripts`
    concurrency: Any = 4  # a number, a limit, or None for as many as servers take
    resolve_after: int | None = None
    scripts: dict[str, Any] = field(default_factory=dict)
    others: list[ScriptedEndpoint] = field(default_factory=list)
    retry: RetryConfig = field(default_factory=RetryConfig)
    outage: int = 8
    jitter: Callable[[], float] = lambda: 0.0
    options: RunnerOptions = field(default_factory=RunnerOptions)
    servers: dict[str] = field(default_factory=dict)
    discoveries: dict[str, Discovery] = field(default_factory=dict)
    rates: dict[str, RateLimit] = field(default_factory=dict)
    most_tokens: int = 0
    scoring: Any = field(default_factory=ScoreByStep)
    scoring_budget: Any = None
    solver: Any = None
    watches: Any = None
    commit_seconds: float = 0.0
    committer: Any = None  # one of virtual time, unless given
    clock: Any = field(default_factory=OwnedClock)
    fresh: bool = False  # whether no model has answered in an earlier session
    seconds: float = 0.0  # that the run took

    def __post_init__(self) -> None:
        self.steps = {"a": self.steps} if isinstance(self.steps, int) else self.steps
        self.journal: Journal = []
        self.events: list[Any] = []
        self.controller = ScriptedController(self.steps, self.journal, self.resolve_after)
        self.recorder = JournalRecorder(self.journal)
        self.endpoints = {
            model: ScriptedEndpoint(self.scripts.get(model, self.script), f"http://{model}/v1")
            for model in self.steps
        }

    @property
    def server(self) -> ScriptedEndpoint:
        return self.endpoints["a"]

    def pool(self, model: str = "a") -> list[ScriptedEndpoint]:
        """Return all servers of a model."""
        return [self.endpoints[model], *(self.others if model == "a" else [])]

    def client(self, model: str) -> ModelClient:
        """Return how a model is asked; where its servers are found, there are none to begin with."""
        return ModelClient(
            () if model in self.discoveries else self.pool(model),
            FixedConcurrency(self.concurrency) if isinstance(self.concurrency, int) else self.concurrency,
            self.retry,
            self.outage,
            rate=self.rates.get(model, RateLimit()),
            prompt_tokens=lambda messages: 0 if self.solver is None else 10 * len(messages),
            answer_tokens=self.most_tokens,
            solvers={} if self.solver is None else {"task": self.solver},
            discovery=self.discoveries.get(model),
        )

    def runner(self) -> Runner:
        """Build the runner; call inside the loop."""
        return Runner(
            self.controller,
            self.recorder,
            {model: self.client(model) for model in self.endpoints},
            servers=self.servers,
            prompts=Prompts(),
            executor=InProcess(self.scoring),
            clock=self.clock,
            jitter=self.jitter,
            options=self.options if self.fresh else replace(self.options, reached=frozenset(self.steps)),
            observer=self.events.append,
            committer=self.committer or VirtualCommitter(self.commit_seconds),
            scoring_budget=self.scoring_budget,
            watches=self.watches,
        )

    async def run(self, *stop_at: float) -> StopVerdict:
        """Run to the end, asked to stop at each of `stop_at`, and check what holds of every run."""
        runner, loop = self.runner(), asyncio.get_running_loop()
        for at in stop_at:
            loop.call_at(at, runner.request_stop)
        async with asyncio.timeout(1e5):
            verdict = await runner.run()
        self.seconds = loop.time()
        self.check()
        return verdict

    async def unchecked(self) -> StopVerdict:
        """Run with a real session or a real store, of which :meth:`check` knows nothing."""
        return await self.runner().run()

    def play(self, *stop_at: float) -> StopVerdict:
        """Run to the end under an owned clock."""
        return run_owned(self.run(*stop_at))

    @property
    def outcomes(self) -> dict[TrialKey, Any]:
        return self.recorder.outcomes

    @property
    def answered(self) -> list[Any]:
        """The attempts that have an answer."""
        return [record for record in self.recorder.of("attempt") if record.error is None]

    @property
    def failed(self) -> list[Any]:
        """The attempts that have none."""
        return [record for record in self.recorder.of("attempt") if record.error is not None]

    @property
    def verdict(self) -> StopVerdict:
        assert self.controller.stopped is not None
        return self.controller.stopped

    def seen(self, kind: type) -> list[Any]:
        """Return the events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def remarks(self) -> list[str]:
        return [event.text for event in self.seen(Remarked)]

    def check(self) -> None:
        """Check what holds of every run, however it went."""
        check_order(self.journal)
        assert all(count == 1 for count in self.recorder.launched.values())
        assert set(self.outcomes) <= set(self.recorder.launched)
        assert not set(self.controller.abandoned) & set(self.outcomes)
        assert not self.recorder.pending
        told = [outcome.key for outcome in self.controller.told]
        assert len(told) == len(set(told))
        ended = {*self.controller.abandoned, *told}
        assert ended == set(self.recorder.launched), "a trial has ended without a word to the session"
        for model in self.endpoints:
            for endpoint in self.pool(model):
                if isinstance(self.concurrency, int):
                    assert endpoint.most_in_flight <= self.concurrency
                assert endpoint.in_flight == 0

    def check_answered_once(self, trials: int, stop_at: float | None) -> None:
        """Run, to `stop_at` at most; check that no model is stopped and each trial is answered once."""
        self.play(*(() if stop_at is None else (stop_at,)))
        assert not self.missing()
        assert not self.controller.stopped_models
        answered = [record.key for record in self.answered]
        assert sorted(answered, key=str) == sorted(self.outcomes, key=str)
        if stop_at is None:
            assert len(answered) == trials

    def missing(self) -> list[Missing]:
        """Return the missing trials the controller was told of."""
        return [outcome for outcome in self.controller.told if isinstance(outcome, Missing)]


class Honoured(Scene):
    """A scene whose budgets allow to test whether the server gives one answer to one seed, as it does."""

    repeats = False

    def __post_init__(self):
        super().__post_init__()
        self.controller.may_repeat = lambda key: True

    def client(self, model):
        return replace(super().client(model), repeats=self.repeats)


def played(*args: Any, **options: Any) -> Scene:
    """Return a scene that has been run to its end; `stop_at` are the times at which it is asked to stop."""
    stop_at = options.pop("stop_at", ())
    scene = Scene(*args, **options)
    scene.play(*stop_at)
    return scene


def check_order(journal: Journal) -> None:
    """Check that launches are durable before requests go out, and outcomes before they are told."""
    durable: set[tuple[str, TrialKey]] = set()
    pending: set[tuple[str, TrialKey]] = set()
    for kind, *fields in journal:
        if kind in ("launch", "outcome"):
            pending.add((kind, fields[0]))
        elif kind == "commit":
            durable |= pending
            pending.clear()
        elif kind == "tell":
            for key in fields[0]:
                assert ("outcome", key) in durable, f"{key} was told before it was stored"
                assert ("launch", key) in durable
        elif kind == "attempt":
            assert ("launch", fields[0].key) in durable, (
                f"{fields[0].key} was sent before its launch was stored"
            )
