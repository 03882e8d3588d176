"""Runs from Python: functions as models, configs, and runs to continue."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from contextvars import copy_context
from dataclasses import dataclass, fields
from functools import wraps
from html import escape
from inspect import signature
from os import PathLike
from pathlib import Path
from shutil import rmtree
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, Literal, ParamSpec, TypeAlias, TypeVar
from weakref import finalize

from adaptive_eval.build.assembly import build, config_of_run
from adaptive_eval.config import load_config
from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.core.results import ModelResult, Results, StopVerdict, Table
from adaptive_eval.core.results_table import frame_of
from adaptive_eval.endpoints.function import Answerer, FunctionEndpoint
from adaptive_eval.errors import UsageError
from adaptive_eval.options.decisions import StoppingSpec
from adaptive_eval.options.limit_options import RunBudget
from adaptive_eval.options.mistakes import did_you_mean
from adaptive_eval.run.claims import Claim, Place, at_least, not_worse
from adaptive_eval.run.execution import RunEnd, RunOptions, execute, set_aside
from adaptive_eval.run.observers import shown_progress
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TrialRecord
from adaptive_eval.store.run_files import RUN_FILE
from adaptive_eval.views.decision_sentences import describe
from adaptive_eval.views.headline import headline
from adaptive_eval.views.verdicts import model_order

if TYPE_CHECKING:
    from adaptive_eval.engine.events import Event

IN_PROCESS = "http://in-process.invalid/v1"
"""Stands for the endpoint of a function in the stored config, whose grammar wants a URL."""

QUESTIONS = "questions.jsonl"
"""File in the run's directory with questions that were given as rows."""

_ANSWER_COLUMNS = ("model", "task", "question", "repeat", "category", "extracted", "answer", "missing")

AsScorer: TypeAlias = str | Mapping[str, Any] | Sequence[Any] | Callable[..., Any]
Rows: TypeAlias = Sequence[Mapping[str, Any]]


_Result = TypeVar("_Result")
_Parameters = ParamSpec("_Parameters")


_OURS: Final = {"adaptive_eval", "asyncio", "concurrent", "threading"}
"""Packages in which no user's line stands."""


class EvaluationWarning(UserWarning):
    """A ranking rests on something that a person should look at, such as answers that are copies."""


@dataclass(frozen=True, repr=False)
class Evaluation:
    """The result of an evaluation.

    Parameters
    ----------
    results : Results
        Ranking, pairs, intervals.
    stop : StopVerdict
        Why it ended.
    directory : Path
        The run's directory. One that was not asked for is temporary: it goes with this object.

    Examples
    --------
    Printed, and in a notebook, it is a short table. The pair is decided after 16 answers
    of each model: each question once, and one of them again.

    >>> rows = [{"id": str(n), "input": f"{n} + {n}?", "target": str(n + n)} for n in range(15)]
    >>> async def good(prompt):
    ...     return str(2 * int(prompt.split()[0]))
    >>> async def bad(prompt):
    ...     return "7"
    >>> models = {"good": good, "bad": bad}
    >>> found = evaluate(models, rows, scorer="numeric", deterministic=models)
    >>> print(found)
    good is ahead of bad; 1 of 1 pair resolved after 32 trials on these questions.
    rank  model  score   95 % interval  trials  missing
       1  good   1.000  [0.580, 1.000]      16        0
       2  bad    0.000  [0.000, 0.420]      16        0
    32 trials; 1 of 1 comparisons decided
    Stopped (resolved): goal reached (rank all models): 1 pair decided.
    >>> found.answers(model="bad")[0].completion.text
    '7'
    """

    results: Results
    stop: StopVerdict
    directory: Path

    def __repr__(self) -> str:
        """Return the verdict, the table and the reason of the stop."""
        ended = f"Stopped ({self.stop.reason}): {describe(self.stop)}."
        return f"{headline(self.results)}\n{self.results}\n{ended}"

    def _repr_html_(self) -> str:
        """Return the HTML for notebooks."""
        return f"<p><b>{escape(headline(self.results))}</b></p>{self.results._repr_html_()}"

    def plot(self, axes: Any = None) -> Any:
        """Draw the scores; see :meth:`adaptive_eval.core.results_table.ResultsTable.plot`."""
        return self.results.plot(axes)

    def to_frame(self, table: Table | Literal["answers"] = "models") -> Any:
        """Return a table of the results, or all answers, as a ``pandas.DataFrame``."""
        if table != "answers":
            return self.results.to_frame(table)
        with RunReader(self.directory) as reader:
            checks = reader.checks()
        columns: dict[str, list[Any]] = {name: [] for name in (*_ANSWER_COLUMNS, *checks)}
        for record in self.answers():
            asked = record.request
            score = record.score
            answer = record.completion
            if score is not None:
                scored = (score.category, score.extracted)
            else:
                scored = (None, None)
            text = None
            if answer is not None:
                text = answer.text
            row = (asked.key.model, asked.task, asked.question, asked.repeat, *scored, text, record.missing)
            if score is not None:
                signals: Mapping[str, Any] = score.signals
            else:
                signals = {}
            for name, value in zip(columns, (*row, *map(signals.get, checks)), strict=True):
                columns[name].append(value)
        return frame_of(columns)

    def answers(self, model: str | None = None, question: str | None = None) -> list[TrialRecord]:
        """Return the trials as they were stored: request, answer, score.

        Parameters
        ----------
        model, question : str, optional
            Only trials of this model, of this question's id.
        """
        with RunReader(self.directory) as reader:
            return list(reader.trials(model=model, question=question))

    @property
    def resolved(self) -> bool:
        """Whether the goal was reached."""
        return self.stop.reason == "resolved"

    @property
    def ranking(self) -> tuple[str, ...]:
        """The models in the order of the leaderboard."""
        return tuple(line.model for line in model_order(self.results))

    def model(self, name: str) -> ModelResult:
        """Return the result of a model; KeyError if there is none."""
        return {line.model: line for line in self.results.models}[name]

    def not_worse(self, model: str, than: str, margin: float | None = None) -> Claim:
        """See :func:`adaptive_eval.run.claims.not_worse`."""
        return not_worse(self.directory, model, than, margin)

    def at_least(self, model: str, value: float) -> Claim:
        """See :func:`adaptive_eval.run.claims.at_least`."""
        return at_least(self.directory, model, value)


def _in_new_loop(run: Coroutine[Any, Any, _Result]) -> _Result:
    """Run a coroutine to its end; if a loop is running, as in a notebook, in a thread with another."""
    try:
        asyncio.get_running_loop()
        within = True
    except RuntimeError:
        within = False
    if within:
        return _in_thread(run)
    return asyncio.run(run)


def _in_thread(run: Coroutine[Any, Any, _Result]) -> _Result:
    begun: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = Future()

    async def whole() -> _Result:
        task = asyncio.current_task()
        assert task is not None
        begun.set_result((asyncio.get_running_loop(), task))
        return await run

    with ThreadPoolExecutor(1, thread_name_prefix="evaluate") as pool:
        done = pool.submit(copy_context().run, asyncio.run, whole())
        try:
            return done.result()
        except KeyboardInterrupt:
            loop, task = begun.result()
            loop.call_soon_threadsafe(task.cancel)
            raise


def _blocking(
    function: Callable[_Parameters, Coroutine[Any, Any, _Result]], name: str
) -> Callable[_Parameters, _Result]:
    """Return the form of a coroutine function, signature and documentation included, that runs a loop."""
    known = signature(function).parameters

    @wraps(function)
    def blocking(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        for key in kwargs:
            if key not in known:
                raise TypeError(f"{name}() has no argument {key!r}{_meant(key, known)}")
        return _in_new_loop(function(*args, **kwargs))

    blocking.__name__ = blocking.__qualname__ = name
    return blocking


def _meant(key: str, known: Iterable[str]) -> str:
    """Return the argument that was probably meant: one of these, or a key of a section."""
    for section, record in (("stopping", StoppingSpec), ("budget", RunBudget)):
        if key in {field.name for field in fields(record)}:
            return f"; write {section}={{{key!r}: …}}"
    return did_you_mean(key, known)


async def evaluate_async(
    models: Mapping[str, Answerer],
    task: Place | Rows | Mapping[str, Any],
    goal: str | Mapping[str, Any] = "ranking",
    *,
    scorer: AsScorer | None = None,
    stopping: Mapping[str, Any] | None = None,
    budget: Mapping[str, Any] | None = None,
    out: Place | None = None,
    concurrency: int = 8,
    deterministic: Collection[str] = (),
    seed: int = 0,
    name: str | None = None,
    observer: Callable[[Event], None] | None = None,
    progress: bool | None = None,
) -> Evaluation:
    """Compare functions that answer questions, and stop when the goal is reached.

    ``evaluate`` runs a new event loop. If one is running already, it runs in another thread. Await
    ``evaluate_async`` to use the running one.

    Parameters
    ----------
    models : mapping of str to callable
        By name a function from prompt to answer, ``async`` or plain. See
        :class:`adaptive_eval.endpoints.function.FunctionEndpoint` for what it may raise. An asynchronous
        client belongs to the event loop that first uses it, and every call here has its own loop: make
        the client within the function, or await :func:`evaluate_async` for all evaluations in one loop.
    task : path, sequence of mappings, or mapping
        A dataset (file, ``hf:…``, ``python:…``); rows with ``input`` and ``target``, and ``id`` if they
        have one; or a task as in a config: ``{"dataset": …, "prompt": …, "scorer": …}``, where ``dataset``
        may be rows too.
    goal, stopping, budget : str or mapping, optional
        As in a config: ``"ranking"``, ``{"kind": "baseline", "model": "old"}``, ``{"equivalence": 0.02}``,
        ``{"trials": 2000}``.
    scorer : str, mapping, sequence or callable, optional
        As in a config (default ``exact``), or a function, ``async`` or plain, with a parameter ``answer`` and
        any of ``target``, ``row`` and ``question``, that returns whether the answer is right, a score from
        0 to 1, or a mapping with ``score`` and ``signals``; see
        :class:`adaptive_eval.scoring.user_function.CallableScorer`. It is called in this process, a plain
        one in several threads. Before a model is asked, a new run calls it with a target as the answer; if
        that and a wrong answer raise the same error of the function, UserCodeError names its line.
    out : path, optional
        The run's directory, for its report, and to continue a previous call there. Default: a temporary one,
        which goes with the evaluation that is returned.
    concurrency : int
        Calls of each function at once.
    deterministic : collection of str
        Names of functions that give the same answer to the same question every time: each question is asked
        once and then known. Without it, answers that never vary are taken for copies, which do not count.
    seed : int
        Seed of the order of questions.
    name : str, optional
        The run's name; default: that of the directory.
    observer : callable, optional
        Called with every event (:mod:`adaptive_eval.engine.events`), such as a
        :class:`adaptive_eval.run.trackers.Tracker`.
    progress : bool, optional
        Whether to show a line of progress. Default: in a terminal and in a notebook.

    Returns
    -------
    Evaluation
        Ranking and verdicts.

    Raises
    ------
    UsageError
        If an argument is wrong (a ConfigError or DatasetError lists everything).

    Examples
    --------
    >>> rows = [{"id": str(n), "input": f"{n} + {n}?", "target": str(n + n)} for n in range(40)]
    >>> async def good(prompt):
    ...     return str(2 * int(prompt.split()[0]))
    >>> found = evaluate({"good": good, "bad": lambda prompt: "7"}, rows, scorer="numeric")
    >>> found.resolved, found.ranking
    (True, ('good', 'bad'))
    """
    if not isinstance(models, Mapping):
        raise UsageError(_named_advice(models))
    unknown = [one for one in deterministic if one not in models]
    if unknown:
        raise UsageError(f"deterministic: there is no model {unknown[0]!r}; there are {', '.join(models)}")
    with ExitStack() as stack:
        if out is None:
            scratch = tempfile.mkdtemp(prefix="adaptive-eval-")
            stack.callback(rmtree, scratch, ignore_errors=True)
        if out is None:
            folder = Path(scratch, "evaluation")
        else:
            folder = _absolute(out)
        given: dict[str, Callable[..., Any]] = {}
        asked = {"endpoints": [IN_PROCESS], "concurrency": concurrency}
        data = {
            "name": name or folder.name,
            "seed": seed,
            "models": [{"name": one, **asked, "deterministic": one in deterministic} for one in models],
            "tasks": [_task(task, scorer, folder, given)],
            "goal": goal,
            "stopping": dict(stopping or {}),
            "budget": dict(budget or {}),
        }
        built = build(config_from_data(data, _base(task, folder)), models, given)
        endpoints = {
            one: (FunctionEndpoint(one, answer, concurrency=concurrency),) for one, answer in models.items()
        }
        kept = out is not None
        if given and not (folder / RUN_FILE).exists():
            from adaptive_eval.run.scorer_trial import try_functions

            await try_functions(built)
        with shown_progress(progress, observer) as observe:
            options = RunOptions(endpoints=endpoints, observer=observe, disk_check=kept, report=kept)
            found = _evaluation(await execute(built, folder, options), folder)
        if not kept:
            finalize(found, stack.pop_all().close)
        return found


evaluate = _blocking(evaluate_async, "evaluate")


def run_config(
    config: Place | Mapping[str, Any],
    *,
    overrides: Sequence[str] = (),
    out: Place | None = None,
    new: bool = False,
    disk_check: bool = True,
    observer: Callable[[Event], None] | None = None,
    progress: bool | None = None,
) -> Evaluation:
    """Run or continue a config, as ``adaptive-eval run`` does; remarks go to the logger ``adaptive_eval``.

    Parameters
    ----------
    config : path or mapping
        A config file, or its content; relative paths in a mapping start from the current folder.
    overrides : sequence of str
        Settings to change, each ``KEY=VALUE``, such as ``"budget.trials=500"``.
    out : path, optional
        The run's directory. Default: ``runs/NAME``, with the config's name.
    new : bool
        Start over; a previous run is renamed.
    disk_check : bool
        Whether to look first if the run has room on its disk.
    observer : callable, optional
        Called with every event, as in :func:`evaluate`.
    progress : bool, optional
        Whether to show a line of progress. Default: in a terminal and in a notebook.

    Raises
    ------
    AdaptiveEvalError
        As the command reports it (:mod:`adaptive_eval.errors`).
    """
    if isinstance(config, Mapping):
        if overrides:
            raise UsageError("overrides are for a config file; change the mapping instead")
        loaded = config_from_data(dict(config), Path.cwd())
    else:
        loaded = load_config(Path(config), tuple(overrides))
    built = build(loaded)
    directory = _absolute(Path("runs") / loaded.name if out is None else out)
    if new:
        built.session()
        set_aside(directory)
    with shown_progress(progress, observer) as observe:
        options = RunOptions(observer=observe, disk_check=disk_check)
        return _evaluation(_in_new_loop(execute(built, directory, options)), directory)


def resume_run(
    run: Place,
    *,
    overrides: Sequence[str] = (),
    disk_check: bool = True,
    observer: Callable[[Event], None] | None = None,
    progress: bool | None = None,
) -> Evaluation:
    """Continue the run in a directory with the config stored there, as ``adaptive-eval run`` does.

    See :func:`run_config` for the parameters.
    """
    directory = _absolute(run)
    with RunReader(directory) as reader:
        built = build(config_of_run(reader, tuple(overrides)))
    with shown_progress(progress, observer) as observe:
        options = RunOptions(observer=observe, disk_check=disk_check)
        return _evaluation(_in_new_loop(execute(built, directory, options)), directory)


def _evaluation(ended: RunEnd, directory: Path) -> Evaluation:
    for words in ended.results.warnings:
        warnings.warn(words, EvaluationWarning, stacklevel=_level_of_caller())
    return Evaluation(ended.results, ended.verdict, directory)


def _level_of_caller() -> int:
    """Return the level, for who calls this, of the user's line: below the package and the event loop."""
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _OURS:
        frame, level = frame.f_back, level + 1
    return level


def _absolute(place: Place) -> Path:
    return Path(place).absolute()  # a model's function may change the current folder


def _named_advice(models: object) -> str:
    """Return what to write in the place of models that have no names."""
    name = getattr(models, "__name__", "mine").replace("<lambda>", "mine")
    if callable(models):
        what = f"the function {name}"
    else:
        what = f"a {type(models).__name__}"
    return (
        f"models: {what} gives no names; write names with functions, and how an answer is scored: "
        f'evaluate({{"{name}": {name}, "other": other}}, rows, scorer="numeric"), or scorer=f for a '
        "function f(answer, target) that returns whether the answer is right"
    )


def _task(
    task: Place | Rows | Mapping[str, Any],
    scorer: AsScorer | None,
    folder: Path,
    given: dict[str, Callable[..., Any]],
) -> dict[str, Any]:
    """Return the task as a config has it; rows go to the run's directory, functions that score to `given`."""
    if isinstance(task, Mapping):
        section: dict[str, Any] = dict(task)
    else:
        section = {"dataset": task}
    dataset = section.get("dataset")
    if isinstance(dataset, PathLike):
        section["dataset"] = str(dataset)
    elif not isinstance(dataset, str):
        section["dataset"] = _written(dataset, folder)
        if not isinstance(task, Mapping):
            _require_input(dataset)
    chosen = scorer
    if scorer is None:
        chosen = section.get("scorer", "exact")
    return {"name": "task", **section, "scorer": _named(chosen, given)}


def _named(scorer: Any, given: dict[str, Callable[..., Any]]) -> Any:
    """Return a scorer as a config has it, with a name in the place of a function."""
    if isinstance(scorer, Mapping):
        return {key: _named(value, given) for key, value in scorer.items()}
    if isinstance(scorer, list | tuple):
        return [_named(one, given) for one in scorer]
    if not callable(scorer):
        return scorer
    from adaptive_eval.scoring.user_function import name_here

    name = name_here(scorer)
    given[name] = scorer
    return name


def _written(rows: Any, folder: Path) -> str:
    if not isinstance(rows, Sequence) or not all(isinstance(row, Mapping) for row in rows):
        advice = ""
        if hasattr(rows, "to_dict"):
            advice = '; of a data frame give frame.to_dict("records")'
        shown = f"{type(rows).__name__} {rows!r:.60}"
        raise UsageError(
            f"task: {shown} is neither a dataset nor a list of rows with input and target{advice}"
        )
    if not rows:
        raise UsageError("task: the list of rows is empty")
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(dict(row)) + "\n" for row in rows]
    (folder / QUESTIONS).write_text("".join(lines), encoding="utf-8")
    return QUESTIONS


def _require_input(rows: Any) -> None:
    columns = dict.fromkeys(name for row in rows for name in row)
    if columns and "input" not in columns:
        raise UsageError(
            'task: no row has \'input\'; name your columns: evaluate(models, {"dataset": rows, "fields": '
            f'{{"input": COLUMN, "target": COLUMN}}}}) (there are: {", ".join(columns)})'
        )


def _base(task: object, folder: Path) -> Path:
    """Return where relative paths start: rows are in the run's directory, everything else is where we are."""
    dataset = task
    if isinstance(task, Mapping):
        dataset = task.get("dataset")
    if isinstance(dataset, str | PathLike):
        return Path.cwd()
    return folder
