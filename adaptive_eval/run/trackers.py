"""Figures of a run for experiment trackers, Weights & Biases and MLflow, without ever holding it up."""

import math
import os
import re
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from time import monotonic
from types import MappingProxyType
from typing import Any, Protocol, Self

from adaptive_eval.config import RunConfig
from adaptive_eval.core.results import Results, StopVerdict
from adaptive_eval.engine.events import Event, Progress, Stopped
from adaptive_eval.errors import library
from adaptive_eval.views.column_types import Shown, selected
from adaptive_eval.views.decision_sentences import describe
from adaptive_eval.views.model_columns import MODELS, model_rows
from adaptive_eval.views.verdicts import model_order

EVERY = 10.0
"""Seconds between two reports."""

_LONGEST_PARAMETER = 500
"""Characters of a parameter that every version of MLflow takes."""

_NOT_IN_MLFLOW = re.compile(r"[^\w\-. :/]")
"""Characters that the name of a metric must not have there."""


class Backend(Protocol):
    """A service that takes figures; every call may be slow, and may fail."""

    def log(self, step: int, figures: Mapping[str, float]) -> None:
        """Log figures at a number of trials."""

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Log how it ended, and end."""


class Tracker:
    """Passes the events of a run on to a backend, in a thread; a context manager and an observer.

    Reports that arrive faster than the backend takes them are dropped: the next one has newer figures.
    A backend that fails gets no more events and does not disturb the run.

    `open_backend` makes the backend in that thread; it may take its time, and may fail. `every` is in
    seconds.

    Examples
    --------
    >>> class Printer:
    ...     def log(self, step, figures):
    ...         print(step, figures)
    ...     def finish(self, summary):
    ...         print(summary)
    >>> with Tracker(Printer) as tracker:
    ...     tracker(Stopped(StopVerdict("resolved", "goal reached")))
    {'stopped': 'resolved', 'text': 'goal reached'}
    """

    def __init__(
        self,
        open_backend: Callable[[], Backend],
        every: float = EVERY,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._every = every
        self._clock = clock
        self._due = -math.inf
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tracking")
        self._backend = self._thread.submit(open_backend)
        self._sent: list[Future[Any]] = [self._backend]
        self._last: Results | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __call__(self, event: Event) -> None:
        """Take an event; returns at once."""
        if isinstance(event, Progress):
            self._last = event.results
            if self._clock() >= self._due and all(sent.done() for sent in self._sent):
                self._due = self._clock() + self._every
                self._log(event.results)
        elif isinstance(event, Stopped):
            if self._last is not None:
                self._log(self._last)
            summary = _summary(event.verdict, self._last)
            self._send(lambda backend: backend.finish(summary))

    def close(self, error: Exception | None = None, patience: float = 30.0) -> str | None:
        """Wait up to `patience` seconds for pending reports; return a sentence on failures, else None."""
        _, late = wait(self._sent, patience)
        self._thread.shutdown(wait=False, cancel_futures=True)
        if late:
            return f"the tracker had not taken the last figures {patience:g} s after the end"
        problem = self._problem()
        if problem is None:
            return None
        return f"the tracker has failed: {type(problem).__name__}: {problem}"

    def _log(self, results: Results) -> None:
        self._send(lambda backend: backend.log(results.trials, figures_of(results)))

    def _send(self, call: Callable[[Backend], None]) -> None:
        if self._problem() is None:
            self._sent.append(self._thread.submit(lambda: call(self._backend.result())))

    def _problem(self) -> BaseException | None:
        done = (future for future in self._sent if future.done() and not future.cancelled())
        return next((found for future in done if (found := future.exception()) is not None), None)


def figures_of(results: Results) -> dict[str, float]:
    """Return the logged figures of the results: by model score, interval, trials and tokens; and the totals.

    Examples
    --------
    >>> run = Results("rank all models", "anytime", 0.95, "holm", None, 30, (), (), (), 12, None)
    >>> figures_of(run)
    {'trials': 12.0, 'pairs/open': 0.0, 'pairs/decided': 0.0}
    """
    undecided = sum(pair.verdict == "open" for pair in results.pairs)
    figures: dict[str, float | None] = {
        "trials": float(results.trials),
        "pairs/open": float(undecided),
        "pairs/decided": float(len(results.pairs) - undecided),
    }
    for row in model_rows(results):
        for column in selected(MODELS, Shown.TRACKER):
            value = column.value(row)
            figures[f"{row.line.model}/{column.key}"] = None if value is None else float(value)
    return {name: value for name, value in figures.items() if value is not None}


def _summary(verdict: StopVerdict, results: Results | None) -> dict[str, Any]:
    found: dict[str, Any] = {"stopped": verdict.reason, "text": describe(verdict)}
    if results is not None:
        found["ranking"] = ", ".join(line.model for line in model_order(results))
    return found


def parameters_of(config: RunConfig) -> dict[str, str]:
    """Return what a run is about, for the columns by which trackers compare runs."""
    models = ", ".join(model.name for model in config.models)
    tasks = ", ".join(task.name for task in config.tasks)
    return {"goal": config.goal.kind, "seed": str(config.seed), "models": models, "tasks": tasks}


class WandbBackend:
    """A run of Weights & Biases, in a project."""

    def __init__(self, project: str, name: str, config: RunConfig | None) -> None:
        wandb = library("wandb", "logging to Weights & Biases", "wandb")
        self._run = wandb.init(project=project, name=name, config=config and parameters_of(config))

    def log(self, step: int, figures: Mapping[str, float]) -> None:
        """Log figures."""
        self._run.log(dict(figures), step=step)

    def finish(self, summary: Mapping[str, Any]) -> None:
        """End the run."""
        self._run.summary.update(dict(summary))
        self._run.finish()


class MlflowBackend:
    """A run of MLflow in an experiment: on the server of ``MLFLOW_TRACKING_URI``, else in ``mlflow.db``.

    That database is MLflow's own default. The config is kept as an artifact.
    """

    def __init__(self, experiment: str, name: str, config: RunConfig | None) -> None:
        mlflow = library("mlflow", "logging to MLflow", "mlflow")
        if "MLFLOW_TRACKING_URI" not in os.environ and mlflow.get_tracking_uri().startswith("sqlite:"):
            for module in ("sqlalchemy", "alembic"):  # which mlflow-skinny does not bring
                library(module, "MLflow's database mlflow.db", module)
        self._client: Any = mlflow.MlflowClient()
        known = self._client.get_experiment_by_name(experiment)
        if known is None:
            number = self._client.create_experiment(experiment)
        else:
            number = known.experiment_id
        self._run = self._client.create_run(number, run_name=name).info.run_id
        if config is not None:
            for key, value in parameters_of(config).items():
                self._client.log_param(self._run, key, value[:_LONGEST_PARAMETER])
            self._client.log_text(self._run, config.text, "config.yaml")

    def log(self, step: int, figures: Mapping[str, float]) -> None:
        """Log figures."""
        for name, value in figures.items():
            self._client.log_metric(self._run, _NOT_IN_MLFLOW.sub("_", name), value, step=step)

    def finish(self, summary: Mapping[str, Any]) -> None:
        """End the run."""
        for name, value in summary.items():
            self._client.set_tag(self._run, name, str(value))
        self._client.set_terminated(self._run)


_BACKENDS: Mapping[str, Callable[[str, str, RunConfig | None], Backend]] = MappingProxyType(
    {"wandb": WandbBackend, "mlflow": MlflowBackend}
)


def tracker(kind: str, project: str, name: str, config: RunConfig | None = None) -> Tracker:
    """Return a tracker of the kind `wandb` or `mlflow`; UsageError if its library is not installed."""
    library(kind, f"logging to {kind}", kind)
    return Tracker(partial(_BACKENDS[kind], project, name, config))


def trackers_of(config: RunConfig) -> list[Tracker]:
    """Return the trackers that a config asks for."""
    asked = {kind: getattr(config.notify, kind, None) for kind in _BACKENDS}
    return [tracker(kind, project, config.name, config) for kind, project in asked.items() if project]
