"""The scorers of a run at work: off the event loop, and with what those that ask other models may spend."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from adaptive_eval.build.stored_answers import EarlierAnswers
from adaptive_eval.core.results import BudgetLine
from adaptive_eval.endpoints.openai_chat import OpenAIChat
from adaptive_eval.endpoints.openai_endpoint import OpenAIEndpoint
from adaptive_eval.scoring import Scorer, ServedScorer, Spent, TaskScoring
from adaptive_eval.store.reader import RunReader
from adaptive_eval.tasks import Task
from adaptive_eval.trial import Completion, Score, Signal, TrialRequest

__all__ = [
    "MIMIC",
    "Grading",
    "ScorersAllowance",
    "connected",
    "resume_accounts",
    "scorer_endpoints",
    "served",
]

MIMIC = "mimic"
"""The word that stands for the local server of biased coins."""


def served(scorers: Mapping[str, Scorer]) -> dict[str, ServedScorer]:
    """Return the scorers that ask another model, by task."""
    return {task: scorer for task, scorer in scorers.items() if isinstance(scorer, ServedScorer)}


def connected(scorers: Mapping[str, Scorer], mimic_url: str | None) -> dict[str, Scorer]:
    """Return the scorers with the address of the started mimic in place of its word."""
    return {
        task: replace(scorer, endpoint=mimic_url)
        if isinstance(scorer, ServedScorer) and scorer.endpoint == MIMIC and mimic_url is not None
        else scorer
        for task, scorer in scorers.items()
    }


def scorer_endpoints(scorers: Mapping[str, Scorer]) -> dict[str, tuple[OpenAIEndpoint, ...]]:
    """Return the server of every judge and verifier under a name for people, to be probed."""
    return {
        f"{scorer.kind} of {task}": (
            OpenAIChat(scorer.endpoint, scorer.model, api_key_env=scorer.api_key_env),
        )
        for task, scorer in served(scorers).items()
    }


class Grading:
    """Scores the answers of a run in threads: as many at once as the scorer's server is to be asked.

    Parameters
    ----------
    tasks : sequence of Task
        The tasks.
    scoring : mapping of str to TaskScoring
        Scorer and rubric of each.
    earlier : EarlierAnswers, optional
        Answers that a pilot has had scored: another model is not asked about them again.
    threads : ThreadPoolExecutor, optional
        For scorers that ask no other model. Default: those of the event loop.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        scoring: Mapping[str, TaskScoring],
        earlier: EarlierAnswers | None = None,
        threads: ThreadPoolExecutor | None = None,
    ) -> None:
        self._own_threads = threads
        self._tasks = {task.name: task for task in tasks}
        self._scoring = scoring
        self._earlier = earlier
        own = served({task: one.scorer for task, one in scoring.items()})
        self._threads = {
            task: ThreadPoolExecutor(scorer.concurrency, thread_name_prefix=f"{scorer.kind}-{task}")
            for task, scorer in own.items()
        }

    async def score(self, request: TrialRequest, completion: Completion) -> Score:
        """Return the category of `completion` as an answer to the trial's question."""
        scoring = self._scoring[request.task]
        threads = self._threads.get(request.task)
        if threads is not None and self._earlier is not None:
            known = self._earlier.score(request, completion)
            if known is not None:
                signals = _without_bill(known.signals)
                return scoring.categorised(replace(known, signals=signals), completion)
        task = self._tasks[request.task]
        question = task.asked(task.by_id[request.question], request.seed)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(threads or self._own_threads, scoring.score, completion, question)


class ScorersAllowance:
    """What judges and verifiers may still spend, for the runner.

    Parameters
    ----------
    tasks : sequence of Task
        The tasks.
    scorers : mapping of str to Scorer
        The scorer of each.
    """

    def __init__(self, tasks: Sequence[Task], scorers: Mapping[str, Scorer]) -> None:
        self._scorers = served(scorers)
        self._questions = {task.name: task.questions for task in tasks}
        self._bounds = {
            name: max(scorer.bound(question) for question in self._questions[name])
            for name, scorer in self._scorers.items()
        }

    def room(self) -> int | None:
        """Return how many answers can still be scored at worst, whichever task they are of; None: any."""
        rooms = [room for task in self._scorers if (room := self._room(task)) is not None]
        return min(rooms, default=None)

    def spent(self) -> dict[str, Any]:
        """Return which budget leaves no room, as evidence of a stop."""
        name = min(
            (task for task in self._scorers if self._room(task) is not None),
            key=lambda task: self._room(task) or 0,
        )
        scorer = self._scorers[name]
        used = {
            line.unit: [line.spent, line.limit] for line in scorer.account.lines() if line.limit is not None
        }
        return {"scope": "scorer", "owner": f"{scorer.kind} of {name}", "used": used}

    def lines(self) -> tuple[BudgetLine, ...]:
        """Return what each scorer has spent, under its own name."""
        return tuple(
            BudgetLine(line.unit, line.spent, 0.0, line.limit, "scorer", f"{scorer.kind} of {task}")
            for task, scorer in self._scorers.items()
            for line in scorer.account.lines()
        )

    def _room(self, task: str) -> int | None:
        scorer = self._scorers[task]
        return scorer.account.room(Spent(1, self._bounds[task], scorer.longest_reply) * scorer.requests_each)


def resume_accounts(scorers: Mapping[str, Scorer], directories: Iterable[Path]) -> None:
    """Charge the scorers' accounts with what the answers stored in these runs have cost."""
    asking = served(scorers)
    if not asking:
        return
    totals = dict.fromkeys(asking, Spent())
    for directory in directories:
        with RunReader(directory) as reader:
            for task, scorer in asking.items():
                for record in reader.trials(task=task):
                    if record.score is not None:
                        totals[task] += _billed(record.score.signals, scorer.kind)
    for task, spent in totals.items():
        asking[task].account.resume(spent)


def _billed(signals: Mapping[str, Signal], kind: str) -> Spent:
    counts = (signals.get(f"{kind}_{what}") for what in _BILLED)
    return Spent(*(count if isinstance(count, int) else 0 for count in counts))


_BILLED = ("requests", "prompt_tokens", "completion_tokens")


def _without_bill(signals: Mapping[str, Signal]) -> dict[str, Signal]:
    """Return the signals of an answer whose judgement the pilot has paid for, without the bill."""
    billed = {f"{kind}_{what}" for kind in ("judge", "verifier") for what in _BILLED}
    return {name: value for name, value in signals.items() if name not in billed}
