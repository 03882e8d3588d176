"""Scores answers off the event loop, within the budgets of model-graded scorers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from adaptive_eval.build.anchors import Anchors
from adaptive_eval.build.grading_model import GradingModelClient
from adaptive_eval.core.results import BudgetLine
from adaptive_eval.endpoints.apis import OpenAIChat
from adaptive_eval.endpoints.openai_endpoint import OpenAIEndpoint
from adaptive_eval.scoring.choice import ChoiceProbabilityScorer, ChoiceScorer
from adaptive_eval.scoring.match import ContainsScorer, ExactScorer, NumericScorer
from adaptive_eval.scoring.model_graded import Bill, ModelGradedScorer, grader_of
from adaptive_eval.scoring.rubric import TaskScoring
from adaptive_eval.scoring.scorer import AwaitedScorer, Scorer, grade_or_failure
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.run_files import RUN_FILE
from adaptive_eval.tasks.task import Task
from adaptive_eval.trial import (
    Completion,
    Score,
    TrialRequest,
)


def model_graded(scorers: Mapping[str, Scorer]) -> dict[str, ModelGradedScorer]:
    """Return the scorers that ask another model, by task."""
    graders = {task: grader_of(scorer) for task, scorer in scorers.items()}
    return {task: grader for task, grader in graders.items() if grader is not None}


def grading_model_of(scorer: ModelGradedScorer) -> GradingModelClient:
    """Return the model that a scorer asks, with its account."""
    client = scorer.grading_model
    assert isinstance(client, GradingModelClient)
    return client


def scorer_endpoints(scorers: Mapping[str, Scorer]) -> dict[str, tuple[OpenAIEndpoint, ...]]:
    """Return the server of every judge and verifier under a name for people, to be probed."""
    return {
        f"{scorer.kind} of {task}": (
            OpenAIChat(scorer.endpoint, scorer.model, api_key_env=scorer.api_key_env),
        )
        for task, scorer in model_graded(scorers).items()
    }


QUICK = (ChoiceProbabilityScorer, ChoiceScorer, ContainsScorer, ExactScorer, NumericScorer)
QUICK_TEXT = 4_000
"""Scorers that hold up the event loop for a few milliseconds at most, for a text of so many characters."""


class Grading:
    """Scores the answers of a run: as many at once as a grading model is to be asked, slow ones in threads.

    To be left as an asynchronous context if a scorer asks another model: its connections are closed then.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        scoring: Mapping[str, TaskScoring],
        threads: ThreadPoolExecutor | None = None,
        anchors: Mapping[str, Anchors] = MappingProxyType({}),
    ) -> None:
        self._threads, self._anchors = threads, anchors
        self._tasks = {task.name: task for task in tasks}
        self._scoring = scoring
        scorers = {task: one.scorer for task, one in scoring.items()}
        self._awaited = {task: one for task, one in scorers.items() if isinstance(one, AwaitedScorer)}
        self._graded = model_graded(scorers)
        self._places = {task: asyncio.Semaphore(one.concurrency) for task, one in self._graded.items()}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        for scorer in self._graded.values():
            await scorer.grading_model.aclose()

    async def score(self, request: TrialRequest, completion: Completion) -> Score:
        """Return the category of `completion` as an answer to the trial's question."""
        scoring = self._scoring[request.task]
        scorer = self._awaited.get(request.task)
        task = self._tasks[request.task]
        question = task.asked(task.by_id[request.question], request.seed, request.repeat)
        if scorer is None:
            if isinstance(scoring.scorer, QUICK) and len(completion.text) <= QUICK_TEXT:
                return scoring.score(completion, question)
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, scoring.score, completion, question)
        anchors = self._anchors.get(request.task)
        without = scoring.not_scored(completion)
        if without is not None:
            return without
        async with self._places.get(request.task) or nullcontext():
            score = await grade_or_failure(scorer, completion, question)
            if anchors is not None:
                score = await anchors.judged_again(request, score)
        found = scoring.categorised(score, completion)
        if anchors is None:
            return found
        return anchors.keep(request, completion, question, found)


class GradingBudget:
    """The remaining budget of judges and verifiers, for the runner."""

    def __init__(self, tasks: Sequence[Task], scorers: Mapping[str, Scorer]) -> None:
        self._scorers = model_graded(scorers)
        self._prompts = {
            task.name: grading_model_of(self._scorers[task.name]).longest_prompt(task.questions)
            for task in tasks
            if task.name in self._scorers
        }

    def room(self) -> int | None:
        """Return how many answers can still be scored at worst, whichever task they are of; None: any."""
        return min(self._rooms().values(), default=None)

    def spent(self) -> dict[str, Any]:
        """Return which budget leaves no room, as evidence of a stop."""
        rooms = self._rooms()
        name = min(rooms, key=rooms.__getitem__)
        scorer = self._scorers[name]
        lines = grading_model_of(scorer).lines()
        used = {line.name: [line.spent, line.limit] for line in lines if line.limit is not None}
        return {"scope": "scorer", "owner": f"{scorer.kind} of {name}", "used": used}

    def lines(self) -> tuple[BudgetLine, ...]:
        """Return what each scorer has spent, under its own name."""
        return tuple(
            line
            for task, scorer in self._scorers.items()
            for line in grading_model_of(scorer).lines(f"{scorer.kind} of {task}")
        )

    def _rooms(self) -> dict[str, int]:
        rooms = {
            task: grading_model_of(scorer).room(self._prompts[task]) for task, scorer in self._scorers.items()
        }
        return {task: room for task, room in rooms.items() if room is not None}


def resume_accounts(tasks: Sequence[Task], scorers: Mapping[str, Scorer], directory: Path) -> None:
    """Charge the accounts of model-graded scorers with what the run in `directory` has cost, if there is one.

    An answer that a killed process was having scored has left no bill: it is presumed at its worst case.
    """
    graded = model_graded(scorers)
    if not graded or not (directory / RUN_FILE).exists():
        return
    bills = {name: Bill() for name in graded}
    with RunReader(directory) as reader:
        lost = reader.lost_launches()
        for name, scorer in graded.items():
            for record in reader.trials(task=name):
                if record.score is not None:
                    bills[name].add(Bill.from_signals(record.score.signals, scorer.kind))
    for task in tasks:
        scorer_of_task = graded.get(task.name)
        if scorer_of_task is not None:
            client = grading_model_of(scorer_of_task)
            client.resume(bills[task.name], lost.get(task.name, 0), task.questions)
