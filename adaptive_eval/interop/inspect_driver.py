"""Inspect runs the samples; our session says which, for which model, and when it is enough.

Every model has its own Inspect task, whose dataset is a source that we feed: a trial of ours, repeat r
of a question, is epoch r + 1 of a sample. Solvers, agents, sandboxes and scorers are those of the task, and
Inspect writes its logs as ever.
"""

import asyncio
import contextvars
import copy
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any

from adaptive_eval.config import RunConfig
from adaptive_eval.config.model import ModelConfig
from adaptive_eval.engine.protocols import Endpoint
from adaptive_eval.errors import (
    PermanentEndpointError,
    RunFileError,
    TransientEndpointError,
    UsageError,
    first_line,
)
from adaptive_eval.interop.inspect_task import SampleCompletion, SampleMessage, load_inspect_task, sample_id
from adaptive_eval.options.section import IN_INSPECT, INSPECT
from adaptive_eval.options.task_options import SolverConfig, TaskConfig
from adaptive_eval.tasks.task import Task
from adaptive_eval.trial import CUT_OFF, IMAGE_TOKENS, Completion, DiscardCause, Message, TrialRequest, Usage

LOGS = "inspect"
"""Folder of Inspect's logs in the run's directory."""

_SAMPLING = ("temperature", "top_p", "max_tokens", "logprobs", "top_logprobs", "reasoning_effort")
"""Parameters of a request that Inspect calls as we do."""

_NOT_PASSED = ("api", "batch", "stream", "timeout", "samples_per_request", "send_seed", "rate_limit")
"""Settings of a model that nothing passes on to Inspect; one that is set is refused."""


_SENT = {"content", "tool_calls", "tool_call_id", "function"}
"""Fields of a message of Inspect that a model reads."""


class SampleLimits:
    """Counts a model's requests for the samples of one task, and refuses those beyond the limits.

    A sample that fails is run again by Inspect; both runs share the limits. Other models that the task asks,
    such as a grader, are not counted.
    """

    def __init__(self, limits: SolverConfig, longest: int | None) -> None:
        self._limits = limits
        self._longest = longest  # most tokens of an answer
        # what each request of a sample has cost so far; one without an answer counts at its most
        self._spent: dict[tuple[str, int], list[Usage]] = {}

    def hold(self, model: Any) -> None:
        """Have every request of a model of Inspect, retries too, counted before it is sent."""
        generate = model.api.generate
        now = import_module("inspect_ai.solver._task_state").sample_state  # it has no public name

        async def held(input: Any, tools: Any, tool_choice: Any, config: Any) -> Any:
            state = now()
            spent = self._spent.setdefault((str(state.sample_id), state.epoch), [])
            most = most_prompt_tokens(input, tools)
            most_written = (config.max_tokens or self._longest or 0) * (config.num_choices or 1)
            self._require(len(spent) + 1, sum(spent, Usage(most, most_written)))
            number = len(spent)
            spent.append(Usage(most, most_written))
            result = await generate(input=input, tools=tools, tool_choice=tool_choice, config=config)
            output = result
            if isinstance(result, tuple):
                output = result[0]
            usage = getattr(output, "usage", None)
            if usage is not None:
                spent[number] = usage_of([usage])
            return result

        model.api.generate = held

    def _require(self, requests: int, spent: Usage) -> None:
        """Raise Inspect's error of a limit if so many requests at this cost do not fit."""
        most, longest = self._limits, self._longest
        checks = [
            ("calls", requests, most.calls),
            ("prompt_tokens", spent.prompt_tokens, most.prompt_tokens),
        ]
        if longest is not None:
            checks.append(("calls times max_tokens", spent.completion_tokens, most.calls * longest))
        for name, value, limit in checks:
            if value > limit:
                words = f"the next request may take {value:,}, and solver.{name} is {limit:,}"
                error = import_module("inspect_ai.util").LimitExceededError
                raise error("custom", value=value, limit=limit, message=words)

    def taken(self, sample: str, epoch: int) -> Usage:
        """Return what a sample that has ended has cost, and forget it."""
        return sum(self._spent.pop((sample, epoch), []), Usage())


def usage_of(usages: Sequence[Any]) -> Usage:
    """Return the sum of usages of Inspect, whose input tokens leave out what a cache read or wrote."""
    total = Usage()
    for one in usages:
        read = one.input_tokens_cache_read or 0
        written = one.input_tokens_cache_write or 0
        total += Usage(one.input_tokens + read + written, one.output_tokens, read)
    return total


def most_prompt_tokens(messages: Sequence[Any], tools: Sequence[Any]) -> int:
    """Return an upper bound on the tokens of a prompt of Inspect; see ``build.model_clients.prompt_bound``.

    Raises
    ------
    ValueError
        A message holds audio, video or a document, whose tokens nothing bounds.
    """
    tokens = 64
    for message in messages:
        tokens += 64 + len(message.model_dump_json(include=_SENT, exclude_none=True).encode())
        for part in message.content if isinstance(message.content, list) else ():
            if part.type == "image":
                tokens += IMAGE_TOKENS
            elif part.type not in ("text", "reasoning"):
                raise ValueError(f"the tokens of {part.type} content cannot be bounded; leave solver out")
    for tool in tools:
        tokens += 1024 + len(json.dumps(tool.model_dump(mode="json"), indent=4))
    return tokens


class InspectPrompts:
    """The samples of Inspect that are the questions."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = {task.name: task for task in tasks}

    def messages(self, request: TrialRequest) -> Sequence[Message]:
        """Return the sample and epoch that a trial is."""
        question = self._tasks[request.task].by_id[request.question]
        text = str(question.fields["input"])
        epoch = request.repeat + 1
        return (SampleMessage("user", text, request.task, request.question, epoch),)


class _Feed:
    """The samples of one Inspect task, enqueued one by one from outside."""

    def __init__(self, samples: Mapping[str, Any], limits: SampleLimits | None) -> None:
        self._samples = samples
        self.limits = limits
        self._enqueue = import_module("inspect_ai").enqueue_sample
        self._context: contextvars.Context | None = None
        self._early: list[tuple[Any, int]] = []
        self._wake = asyncio.Event()
        self._closed = False
        self._waiting: dict[tuple[str, int], asyncio.Future[Any]] = {}
        self._failure: str | None = None

    async def run(self, name: str, epoch: int) -> Any:
        """Have a sample run as an epoch, and return Inspect's record of it."""
        if self._failure is not None:
            raise PermanentEndpointError(self._failure, kind="aborted")
        sample = copy.deepcopy(self._samples[name])
        sample.id = name
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[name, epoch] = future
        if self._context is None:
            self._early.append((sample, epoch))
        else:
            self._context.run(self._enqueue, sample, epoch=epoch)
        self._wake.set()
        return await future

    async def next_samples(self) -> list[Any] | None:
        """Wait for something to do; Inspect calls this when it has nothing."""
        if self._context is None:  # what is enqueued must know this task
            self._context = contextvars.copy_context()
            for sample, epoch in self._early:
                self._enqueue(sample, epoch=epoch)
            self._early.clear()
            return []
        await self._wake.wait()
        self._wake.clear()
        if self._closed:
            return None
        return []

    async def sample_complete(self, sample: Any) -> None:
        """Take Inspect's record of a sample that has ended."""
        future = self._waiting.pop((str(sample.id), sample.epoch), None)
        if future is not None and not future.done():
            future.set_result(sample)

    async def sample_abandoned(self, sample: Any, epoch: int) -> None:
        """Take note of a sample that was cancelled before it began."""
        future = self._waiting.pop((str(sample.id), epoch), None)
        if future is not None and not future.done():
            words = "cancelled in Inspect before it began"
            future.set_exception(TransientEndpointError(words, kind="expired"))

    def close(self) -> None:
        """End the Inspect task once running samples are complete."""
        self._closed = True
        self._wake.set()

    def fail(self, words: str) -> None:
        """Tell everybody who waits that the Inspect task has ended."""
        self._failure = words
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(PermanentEndpointError(words, kind="aborted"))
        self._waiting.clear()


class InspectEndpoint:
    """One model, as Inspect asks it."""

    def __init__(self, model: str, feeds: Mapping[str, _Feed]) -> None:
        self._model = model
        self._feeds = feeds

    @property
    def url(self) -> str:
        """The name in place of an address in the run file."""
        return f"inspect:{self._model}"

    def body(self, messages: Sequence[Message], *, seed: int | None, n: int = 1) -> Mapping[str, Any]:
        """Return the stored form of a request."""
        asked = _asked(messages)
        return {
            "model": self._model,
            "messages": [{"role": asked.role, "content": asked.content}],
            "sample": asked.sample,
            "epoch": asked.epoch,
        }

    async def alive(self) -> bool:
        """Return True: Inspect itself asks again if a server is away."""
        return True

    async def complete(self, messages: Sequence[Message], *, seed: int | None) -> Completion:
        """Have the sample run."""
        asked = _asked(messages)
        sample = await self._feeds[asked.task].run(asked.sample, asked.epoch)
        if sample.error is not None:
            said = sample.error.message or "error in Inspect"
            raise TransientEndpointError(first_line(said), kind="server")
        limits = self._feeds[asked.task].limits
        usage = sample.model_usage.values()
        if limits is None:
            tokens = usage_of(usage)
        else:
            tokens = limits.taken(asked.sample, asked.epoch)
        return _completion(sample, self._model, tokens)

    async def sample(self, messages: Sequence[Message], *, seed: int | None, n: int) -> Sequence[Completion]:
        """Return one answer: an epoch is one trial."""
        return [await self.complete(messages, seed=seed)]


def _asked(messages: Sequence[Message]) -> SampleMessage:
    asked = messages[-1]
    assert isinstance(asked, SampleMessage)
    return asked


def _completion(sample: Any, model: str, tokens: Usage) -> SampleCompletion:
    reasons = [str(choice.stop_reason) for choice in sample.output.choices]  # none, without a generation
    scores = {name: (score.value, score.answer) for name, score in (sample.scores or {}).items()}
    cut = sample.limit is not None or any(reason in CUT_OFF for reason in reasons)
    finish_reason = "stop"
    if cut:
        finish_reason = "length"
    return SampleCompletion(
        sample.output.completion,
        finish_reason,
        tokens,
        float(sample.working_time or sample.total_time or 0.0),
        sample.output.model or model,
        str(sample.uuid or ""),
        scores=scores,
        discarded=_given_up(sample),
    )


def _given_up(sample: Any) -> tuple[DiscardCause, ...]:
    """Return a cause for each request and each run of a sample that Inspect has repeated, as its log counts.

    It does not say why: each may have given up a draw.
    """
    calls = (event for event in sample.events or () if event.event == "model")
    cause: DiscardCause = "server"
    return (cause,) * (len(sample.error_retries or ()) + sum(event.retries or 0 for event in calls))


@dataclass
class InspectDriver:
    """Runs Inspect next to our session; the value of this context is the endpoints of the models."""

    config: RunConfig  # its tasks are ``inspect:`` ones
    logs: Path  # where Inspect writes its logs
    # base URL of each model's server, or the word ``inspect`` for a model that Inspect finds by its name
    addresses: Mapping[str, str]
    _feeds: dict[tuple[str, str], _Feed] = field(default_factory=dict)
    _running: asyncio.Task[Any] | None = None

    async def __aenter__(self) -> Mapping[str, Sequence[Endpoint]]:
        os.environ.setdefault("INSPECT_DISPLAY", "none")  # one display is enough, and it is ours
        import_module("inspect_ai.util").display_type()  # reads it
        library = import_module("inspect_ai")
        tasks: list[Any] = []
        endpoints: dict[str, Sequence[Endpoint]] = {}
        for model in self.config.models:
            tasks += [self._task(library, task, model) for task in self.config.tasks]
            feeds = {task.name: self._feeds[task.name, model.name] for task in self.config.tasks}
            endpoints[model.name] = (InspectEndpoint(str(tasks[-1].model), feeds),)
        most = max(model.in_flight for model in self.config.models)
        self._running = asyncio.create_task(
            library.eval_async(
                tasks,
                log_dir=str(self.logs),
                max_tasks=len(tasks),
                max_samples=most,
                fail_on_error=False,
                retry_on_error=1,  # which its log counts
            )
        )
        self._running.add_done_callback(self._ended)
        return endpoints

    def _task(self, library: Any, section: TaskConfig, model: ModelConfig) -> Any:
        """Return an Inspect task for one model, fed by us."""
        task = load_inspect_task(section.dataset.removeprefix(INSPECT), self.config.base_dir)
        samples = {sample_id(sample, number): sample for number, sample in enumerate(task.dataset)}
        known = _inspect_model(model, self.addresses[model.name])
        limits = None
        if section.solver is not None:
            limits = SampleLimits(section.solver, model.sampling.token_limit)
            limits.hold(known)
        feed = self._feeds[section.name, model.name] = _Feed(samples, limits)
        source = library.SampleSource.from_samples(
            [],
            next_samples=feed.next_samples,
            sample_complete=feed.sample_complete,
            sample_abandoned=feed.sample_abandoned,
        )
        return library.task_with(task, dataset=source, model=known, epochs=1, fail_on_error=False)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._running is not None
        ended_before = self._running.done()  # then the waiting task has the reason
        for feed in self._feeds.values():
            feed.close()
        if error is not None:
            self._running.cancel()
        await asyncio.wait([self._running])
        failure = None
        if not self._running.cancelled():
            failure = self._running.exception()
        if failure is not None and error is None and not ended_before:
            raise RunFileError(f"{self.logs}: Inspect could not finish its logs: {failure}") from failure

    def _ended(self, running: asyncio.Task[Any]) -> None:
        """Release all waits for an evaluation that is over."""
        words = "the evaluation in Inspect has ended"
        if not running.cancelled() and running.exception() is not None:
            words = f"the evaluation in Inspect has failed: {running.exception()}"
        for feed in self._feeds.values():
            feed.fail(words)


def require_drivable(config: RunConfig) -> None:
    """Refuse options that do not work if Inspect runs the samples."""
    others = [task.name for task in config.tasks if not task.dataset.startswith(INSPECT)]
    if others:
        raise UsageError(f"task {others[0]!r} is none of Inspect; run tasks of Inspect by themselves")
    held = {name for budget in (config.budget, *config.own_budgets) for name in budget.limits()}
    unlimited = [task.name for task in config.tasks if task.solver is None]
    if unlimited and held - {"trials", "wall_clock"}:
        raise UsageError(
            f"budget.{min(held - {'trials', 'wall_clock'})} cannot be held: nothing says how many requests a "
            f"sample of Inspect makes; limit them: give the task {unlimited[0]!r} "
            "solver: {calls: 30, prompt_tokens: 200k}"
        )
    for model in config.models:
        if model.discovery is not None or len(model.addresses) > 1:
            raise UsageError(f"model {model.name!r}: Inspect asks one server, so write the URL of one")
        for name in _NOT_PASSED:
            if name in model.model_fields_set:
                raise UsageError(
                    f"model {model.name!r} sets {name}, which Inspect cannot be told; leave it out, or "
                    "set it in the Inspect task"
                )
        if "metadata" in model.extra_body:
            raise UsageError(f"model {model.name!r}: Inspect does not send extra_body.metadata; leave it out")


def generate_options(model: ModelConfig, address: str) -> dict[str, Any]:
    """Return what a model is asked with, by the names of Inspect's GenerateConfig."""
    sent = model.sampling.as_sent()
    options = {name: sent[name] for name in _SAMPLING if name in sent}
    further = dict(model.extra_body)
    if "max_completion_tokens" in sent and address == IN_INSPECT:
        options["max_tokens"] = sent["max_completion_tokens"]
    elif "max_completion_tokens" in sent:  # a server that wants it by this name may refuse max_tokens
        further["max_completion_tokens"] = sent["max_completion_tokens"]
    if "stop" in sent:
        options["stop_seqs"] = [sent["stop"]] if isinstance(sent["stop"], str) else sent["stop"]
    if further:
        options["extra_body"] = further
    if model.headers:
        options["extra_headers"] = {name: header.resolve(name) for name, header in model.headers.items()}
    return options


def _inspect_model(model: ModelConfig, address: str) -> Any:
    """Return the model as Inspect knows it: by its own name, or any server that speaks OpenAI's protocol."""
    library = import_module("inspect_ai.model")
    key = "none" if model.api_key_env is None else os.environ.get(model.api_key_env)
    try:
        config = library.GenerateConfig(**generate_options(model, address), max_connections=model.in_flight)
        if address == IN_INSPECT:
            return library.get_model(model.model_id, config=config, memoize=False)
        return library.get_model(
            f"openai-api/adaptive-eval/{model.model_id}",
            config=config,
            base_url=address,
            api_key=key,
            memoize=False,
        )
    except (ValueError, ImportError, _prerequisite_error()) as error:
        raise UsageError(f"model {model.name!r}: Inspect cannot ask {model.model_id}: {error}") from None


def _prerequisite_error() -> type[Exception]:
    """Return what Inspect raises if a package or key is missing; it has no public name."""
    found: type[Exception] = import_module("inspect_ai._util.error").PrerequisiteError
    return found
