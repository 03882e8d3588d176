"""The whole config: :class:`RunConfig`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, model_validator

from adaptive_eval.config.model import ModelConfig
from adaptive_eval.mimic.mimic_spec import (
    LatencySpec,
    MimicSpec,
    ModelOptions,
    ServerOptions,
    TokenSpec,
    spec_from_data,
)
from adaptive_eval.options.decisions import AllocationSpec, Goal, GoalSpec, Spend, StoppingSpec
from adaptive_eval.options.limit_options import BudgetSpec, RunBudget, ServerConfig
from adaptive_eval.options.mistakes import shown
from adaptive_eval.options.request_options import OnConfig, RetryConfig
from adaptive_eval.options.section import EnvName, Label, RunName, Seconds, Section
from adaptive_eval.options.task_options import TaskConfig
from adaptive_eval.tasks.sources import is_file_source


class MimicConfig(ServerOptions):
    """The mimic server: an OpenAI-compatible server of biased coins."""

    latency: LatencySpec = LatencySpec()
    """How long answers take, if a model does not say."""
    tokens: TokenSpec = TokenSpec()
    """How long prompts and answers are, if a model does not say."""
    models: dict[Label, ModelOptions] = Field(min_length=1)
    """The models it serves, by id."""

    def spec(self, questions: Iterable[Mapping[str, Any]]) -> MimicSpec:
        """Return the server's spec with `questions` as its answer key.

        Examples
        --------
        >>> mimic = MimicConfig(models={"a": {"mean": 0.7}}, latency={"median": 0.05})
        >>> mimic.spec([]).models[0].latency.median
        0.05
        """
        shared = self.model_dump(exclude={"models"})
        defaults = {name: shared.pop(name) for name in ("latency", "tokens")}
        models = [
            {"name": name, **defaults, **model.model_dump(exclude_none=True)}
            for name, model in self.models.items()
        ]
        return spec_from_data({**shared, "models": models, "questions": list(questions)}, "mimic")


def _address(value: str) -> str:
    scheme, _, rest = value.rpartition("://")
    host, _, port = rest.rpartition(":")
    if value in ("auto", "local") or (scheme in ("", "ray") and host and port.isdecimal()):
        return value
    raise ValueError(
        f"{shown(value)} is no address of a cluster: write local (start one on this machine), auto (the one "
        "this machine belongs to), HOST:PORT, or ray://HOST:10001"
    )


class ExecutorConfig(Section):
    """Where requests are made and answers scored: in this process, or by workers on a cluster of Ray."""

    kind: Literal["local", "ray"] = "local"
    """local: in this process; ray: by workers on a cluster of Ray."""
    address: Annotated[str, AfterValidator(_address)] = "auto"
    """The cluster: auto (the one this machine belongs to), local (started for the run), HOST:PORT or
    ray://HOST:PORT."""
    actors: int = Field(default=2, ge=1, le=10_000)
    """Workers."""
    cpus_per_actor: float = Field(default=1.0, gt=0)
    """CPUs that a worker takes on its node: it scores as many answers at once."""
    patience: Seconds = Field(default=300.0, gt=0)
    """Seconds without a worker after which the run ends; `run RUN` continues it."""

    @model_validator(mode="before")
    @classmethod
    def _has_a_kind(cls, data: Any) -> Any:
        if isinstance(data, dict) and data and "kind" not in data:
            raise ValueError(f"kind is missing: {', '.join(data)} would do nothing; write kind: ray")
        return data


NoticeKind = Literal["pair_decided", "stopped", "error"]


def _command(value: Any) -> Any:
    if not isinstance(value, tuple) or not value or not all(isinstance(part, str) for part in value):
        raise ValueError("write the program and its arguments as a list of texts, such as [notify-send, run]")
    if not value[0]:
        raise ValueError("the first text is the program, and it is empty")
    return value


class NotifyConfig(Section):
    """Recipients of notices: webhook, command, experiment trackers; none can delay or fail the run."""

    webhook_env: EnvName | None = None
    """Name of the environment variable that holds the URL to post to; the URL is a secret."""
    command: Annotated[tuple[str, ...] | None, BeforeValidator(_command)] = None
    """Program with its arguments; it gets the notice as JSON on its input."""
    wandb: str | None = Field(default=None, min_length=1)
    """Project of Weights & Biases that the figures are logged to."""
    mlflow: str | None = Field(default=None, min_length=1)
    """Experiment of MLflow that the figures are logged to."""
    otel: bool = False
    """Send spans, metrics and scores of requests by OpenTelemetry, to OTEL_EXPORTER_OTLP_ENDPOINT."""
    on: tuple[NoticeKind, ...] = Field(default=("pair_decided", "stopped", "error"), min_length=1)
    """Events that are sent."""

    @model_validator(mode="after")
    def _has_a_recipient(self) -> NotifyConfig:
        if not any((self.webhook_env, self.command, self.wandb, self.mlflow, self.otel)):
            raise ValueError("there is no recipient: give webhook_env, command, wandb, mlflow or otel")
        return self


class ReferenceConfig(Section):
    """Models of earlier runs to compare with; they are asked nothing."""

    run: str | None = Field(default=None, min_length=1)
    """The earlier run's directory."""
    file: str | None = Field(default=None, min_length=1)
    """A file of recorded outcomes, instead of a run."""
    models: tuple[Label, ...] = ()
    """Names of its models to compare with."""
    series: Literal["previous", "earlier"] | None = None
    """In place of models, if run is a pattern such as runs/step-*: the models of the run before (previous) or
    of all its runs (earlier), without models of this config and without runs that asked or scored otherwise.
    Without run: of runs/* those named as this one, with a lower number."""


def _series(value: Any) -> Any:
    """Return references that are one word in full: the series that the run's own name belongs to."""
    if isinstance(value, str):
        return ({"series": value},)
    return value


class PriorConfig(Section):
    """Earlier results that enter the estimates, never a stopping decision."""

    from_: str = Field(alias="from", min_length=1)
    """The earlier run's directory, or a file of recorded outcomes."""
    depth: int = Field(default=1, ge=1, le=10**6)
    """How many earlier trials per question Bayes@N starts from; 1 to 4 help."""


class RunConfig(Section):
    """A run: models, tasks, goal, rule and budget.

    Made by :func:`adaptive_eval.config.load_config`, :func:`~adaptive_eval.config.parse_config` or
    :func:`~adaptive_eval.config.config_from_data`, which check what concerns several sections together;
    building the class directly checks each value alone.
    """

    name: RunName
    """The run's name; its results are kept under it."""
    seed: int = Field(default=0, ge=0, lt=2**63)
    """Seed of the question order, of every trial and of shuffling."""
    models: tuple[ModelConfig, ...] = Field(min_length=1)
    """The models."""
    servers: tuple[ServerConfig, ...] = ()
    """Limits of servers, for all models that are served there together."""
    tasks: tuple[TaskConfig, ...] = Field(min_length=1)
    """The tasks."""
    overall: Literal["macro", "pooled"] = "macro"
    """The overall score of several tasks: each counts the same (macro), or each question (pooled)."""
    goal: Goal = GoalSpec()
    """The decision to reach: a section, or one line such as top-k=2 and width=0.05."""
    stopping: StoppingSpec = Field(default_factory=StoppingSpec)
    """When a pair counts as decided."""
    allocation: AllocationSpec = Field(default_factory=AllocationSpec)
    """Which model and question gets the next trial."""
    spend: Spend = "trials"
    budget: RunBudget = Field(default_factory=RunBudget)
    """Budget of the run."""
    references: Annotated[
        tuple[ReferenceConfig, ...],
        BeforeValidator(_series, json_schema_input_type=tuple[ReferenceConfig, ...] | str),
    ] = ()
    """Models of earlier runs to compare with; they are asked nothing. The word previous or earlier alone is
    that series of the runs named as this one, with a lower number."""
    prior: PriorConfig | None = None
    """Earlier results for the estimates."""
    retry: RetryConfig = Field(default_factory=RetryConfig)
    """Retry policy of failed requests."""
    on: OnConfig = Field(default_factory=OnConfig)
    """Category of a response without an answer."""
    executor: ExecutorConfig = Field(default_factory=ExecutorConfig)
    """Where requests are made and answers scored."""
    notify: NotifyConfig | None = None
    """Recipients of notices about the run."""
    mimic: MimicConfig | None = None
    """A local server of biased coins, started for the run."""

    _text: str = PrivateAttr("")
    _source: str = PrivateAttr("config")
    _base_dir: Path | None = PrivateAttr(None)

    @property
    def text(self) -> str:
        """The config as it was written, overrides applied; it holds no secret."""
        return self._text

    @property
    def source(self) -> str:
        """The file's name, for messages."""
        return self._source

    @property
    def base_dir(self) -> Path:
        """The folder against which relative paths resolve."""
        if self._base_dir is not None:
            return self._base_dir
        return Path()

    @property
    def own_budgets(self) -> list[BudgetSpec]:
        """The budgets of single models and tasks."""
        of_models = [model.budget for model in self.models]
        return of_models + [task.budget for task in self.tasks]

    def model(self, name: str) -> ModelConfig:
        """Return the model of this name; KeyError if there is none."""
        return {model.name: model for model in self.models}[name]

    def task(self, name: str) -> TaskConfig:
        """Return the task of this name; KeyError if there is none."""
        return {task.name: task for task in self.tasks}[name]

    def dataset_source(self, task: TaskConfig) -> str:
        """Return the dataset of `task` for messages: a file's path, or the config's entry."""
        if not is_file_source(task.dataset):
            return task.dataset
        return str(self.base_dir / Path(task.dataset).expanduser())

    def hash(self) -> str:
        """Return a SHA-256 over every setting, defaults included; comments and layout do not matter."""
        settings = self.model_dump(mode="json", by_alias=True)
        return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()

    def trial_identity(self) -> dict[str, Any]:
        """Return the identity of this run's trials: two runs may share a run file only when it is equal."""
        tasks = {task.name: _task_identity(task, self.seed) for task in self.tasks}
        models = {model.name: self._model_identity(model) for model in self.models}
        samples = self.samples_written
        return {"seed": self.seed, "tasks": tasks, "models": models, "samples_per_request": samples}

    @property
    def samples_written(self) -> int:
        """The largest number of answers that a request asks for; 1 if there is none but ``auto``.

        Examples
        --------
        >>> from adaptive_eval.config.load_config import config_from_data
        >>> models = [{"name": name, "endpoints": [f"http://{name}/v1"]} for name in "ab"]
        >>> tasks = [{"name": "t", "dataset": "t.jsonl", "scorer": "exact"}]
        >>> config_from_data({"name": "demo", "models": models, "tasks": tasks}).samples_written
        1
        """
        wanted = [model.samples_per_request for model in self.models]
        return max((number for number in wanted if isinstance(number, int)), default=1)

    def samples(self, model: ModelConfig, samples_per_prompt: int) -> int:
        """Return the most answers of one request to `model`."""
        wanted, most = model.samples_per_request, model.concurrency
        if wanted != "auto":
            return wanted
        if most == "auto":
            return samples_per_prompt
        return min(samples_per_prompt, most)

    def _model_identity(self, model: ModelConfig) -> dict[str, Any]:
        identity: dict[str, Any] = {
            "model": model.model_id,
            "api": model.api,
            "sampling": model.sampling.as_sent(),
            "extra_body": model.extra_body,
            "send_seed": model.send_seed,
            "system": model.system,
            "prompt": model.prompt,
        }
        if model.uses_mimic and self.mimic is not None:
            coin = self.mimic.models[model.model_id]
            identity["mimic"] = {
                "seed": self.mimic.seed,
                "correlation": self.mimic.correlation,
                "answer": self.mimic.answer,
                **coin.model_dump(mode="json", include={"mean", "accuracies", "spread", "like"}),
            }
        as_stored: dict[str, Any] = json.loads(json.dumps(identity))
        return as_stored


Section.whole = RunConfig


def _task_identity(task: TaskConfig, run_seed: int) -> dict[str, Any]:
    solver = None
    if task.solver is not None:
        solver = task.solver.model_dump()
    return {
        "solver": solver,
        "prompt": json.loads(json.dumps(task.prompt)),
        "system": task.system,
        "limit": task.limit,
        "shuffle": task.shuffle_seed(run_seed),
    }


_MISSING = object()
_OF_FILES = (".py", ": against")  # what a checksum is stored of
_SINGULAR = {"models": "model", "tasks": "task"}
_ABOUT_ROUNDS = " (goal, stopping, allocation and spend decide which tasks are asked in rounds)"


def difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Say what differs between two trial identities.

    Examples
    --------
    >>> before = {"seed": 1, "models": {"a": {"model": "x"}}}
    >>> for words in difference(before, {"seed": 2, "models": {"a": {"model": "y"}}}):
    ...     print(words)
    seed was 1 and is now 2
    model 'a': model was 'x' and is now 'y'
    >>> difference({"models": {"a": {}}}, {"models": {"a": {}, "b": {}}})
    ["model 'b' is new"]
    """
    return list(_compare(before, now, ""))


def _compare(before: Any, now: Any, place: str) -> Iterator[str]:
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in [*before, *(key for key in now if key not in before)]:
            if key == "dataset" and {**before, key: ""} != {**now, key: ""}:
                continue  # which other changes of the task explain
            yield from _compare(before.get(key, _MISSING), now.get(key, _MISSING), _inside(place, str(key)))
    elif before is _MISSING and now is None:
        return  # an option that is newer than the run, and not used
    elif before is _MISSING or now is _MISSING:
        what = "is new" if before is _MISSING else "is gone"
        value = before
        if before is _MISSING:
            value = now
        is_plain = not isinstance(value, Mapping) and not place.endswith(_OF_FILES)
        about = _ABOUT_ROUNDS if place == "rounds" else ""
        shown = ""
        if is_plain:
            shown = f": {_repr(value)}{about}"
        yield f"{place.removeprefix('code.')} {what}" + shown
    elif before != now and place.endswith(": dataset"):
        yield f"{place.removesuffix('dataset')}the questions or right answers of its dataset have changed"
    elif before != now:
        is_plain = not place.endswith(_OF_FILES)
        what = "has changed"
        if is_plain:
            what = f"was {_repr(before)} and is now {_repr(now)}"
        yield f"{place.removeprefix('code.')} {what}"


def _inside(place: str, key: str) -> str:
    if place in _SINGULAR:
        return f"{_SINGULAR[place]} {key!r}"
    if not place:
        return key
    if place.endswith("'"):
        return f"{place}: {key}"
    return f"{place}.{key}"


def _repr(value: Any) -> str:
    text = repr(value)
    if len(text) <= 120:
        return text
    return f"{text[:100]}… ({len(text)} characters)"
