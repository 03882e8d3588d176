"""A run as timestamped lines, for logs and pipes: start, each decision, progress now and then, the end."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from adaptive_eval.monitor.snapshot import RunView
from adaptive_eval.text.budgets import amount_words, budget_name
from adaptive_eval.text.decision_words import describe
from adaptive_eval.text.headline import resolved_words
from adaptive_eval.text.inert import inert
from adaptive_eval.text.numbers import count, duration
from adaptive_eval.text.outlook import outlook_parts

__all__ = ["PlainLines"]

_FIGURES = re.compile(r"[\d.,]+")

_SPENDING = ("tokens", "prompt_tokens", "completion_tokens", "usd")
"""Budgets of the run that a line of progress names; trials and time are in it anyway."""


class PlainLines:
    """Turns successive views of one run into lines; each thing is said once.

    Lines begin with the time of the snapshot (UTC) and a keyword: ``start``, ``decision``, ``warning``,
    ``progress`` or ``end``.

    Parameters
    ----------
    every : float
        Seconds between two lines of progress, on the clock that :meth:`lines` is given.
    """

    def __init__(self, every: float = 10.0) -> None:
        self._every = every
        self._started = False
        self._ended = False
        self._decisions = 0
        self._warned: set[str] = set()
        self._last_progress = 0.0

    def lines(self, view: RunView, now: float) -> list[str]:
        """Return the lines that `view` adds.

        Parameters
        ----------
        view : RunView
            The run now.
        now : float
            Seconds on any clock that only moves forward.

        Returns
        -------
        list of str
            Inert text without line ends; empty where nothing is new.
        """
        if view.state == "waiting":
            return []
        said: list[str] = []
        if not self._started:
            self._started = True
            self._last_progress = now
            said.append(f"start {view.name}: {_start_words(view)}")
        said += [
            f"decision at {count(d.trials, 'trial')}: {describe(d)}"
            for d in view.decisions[self._decisions :]
        ]
        self._decisions = len(view.decisions)
        for text in view.warnings:
            what = _FIGURES.sub("", text)  # a warning whose figures alone have moved is not a new one
            if what not in self._warned:
                self._warned.add(what)
                said.append(f"warning {text}")
        running = view.state == "running"
        if running and now - self._last_progress >= self._every:
            self._last_progress = now
            said.append(f"progress {_progress_words(view)}")
        if not running and not self._ended:
            said.append(f"end {_end_words(view)}")
        self._ended = not running
        stamp = _stamp(view.at)
        return [inert(f"{stamp} {text}") for text in said]


def _stamp(at: float | None) -> str:
    return f"{datetime.fromtimestamp(at or 0.0, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _start_words(view: RunView) -> str:
    models, questions = count(len(view.models), "model"), count(view.results.questions, "question")
    return f"goal {view.goal}; rule {view.rule}; {models}, {questions}"


def _progress_words(view: RunView) -> str:
    parts = [count(view.results.trials, "trial"), resolved_words(view.results)]
    if view.trials_per_second is not None:
        parts.append(f"{view.trials_per_second:.1f} trials/s")
    parts += [
        f"{amount_words(use.line, use.line.spent)} of {amount_words(use.line, use.line.limit)} "
        f"{budget_name(use.line)}"
        for use in view.budgets
        if use.line.limit is not None and use.line.scope == "run" and use.line.name in _SPENDING
    ]
    parts.append(f"running {duration(view.elapsed)}")
    if view.models and view.models[0].score is not None:
        parts.append(f"highest score {view.models[0].model} {view.models[0].score:.3f}")
    if view.outlook is not None:
        parts.append(f"forecast (approximate): {'; '.join(outlook_parts(view.outlook))}")
    return ", ".join(parts)


def _end_words(view: RunView) -> str:
    reason = view.stop.reason.replace("_", " ") if view.stop is not None else "interrupted"
    return f"{reason} after {duration(view.elapsed)}: {view.headline}"
