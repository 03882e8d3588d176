"""Scores answers off the event loop, within the budgets of model-graded scorers; answers of a pilot."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from adaptive_eval.build.grading_model import GradingModelClient
from adaptive_eval.core.results import BudgetLine
from adaptive_eval.endpoints.apis import OpenAIChat
from adaptive_eval.endpoints.openai_endpoint import OpenAIEndpoint
from adaptive_eval.endpoints.streaming import STREAMED
from adaptive_eval.engine.protocols import Endpoint, Executor
from adaptive_eval.scoring.choice import ChoiceProbabilityScorer, ChoiceScorer
from adaptive_eval.scoring.match import ContainsScorer, ExactScorer, NumericScorer
from adaptive_eval.scoring.model_graded import Bill, ModelGradedScorer
from adaptive_eval.scoring.rubric import TaskScoring
from adaptive_eval.scoring.scorer import Scorer
from adaptive_eval.store.reader import RunReader
from adaptive_eval.tasks.task import Task
from adaptive_eval.trial import (
    Completion,
    Message,
    Score,
    Signal,
    TrialRequest,
    stored_body,
)


def model_graded(scorers: Mapping[str, Scorer]) -> dict[str, ModelGradedScorer]:
    """Return the scorers that ask another model, by task."""
    return {task: scorer for task, scorer in scorers.items() if isinstance(scorer, ModelGradedScorer)}


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

    To be left as an asynchronous context where a scorer asks another model: its connections are closed then.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        scoring: Mapping[str, TaskScoring],
        stored: StoredAnswers | None = None,
        threads: ThreadPoolExecutor | None = None,
    ) -> None:
        self._threads = threads
        self._tasks = {task.name: task for task in tasks}
        self._scoring = scoring
        self._stored = stored
        self._graded = model_graded({task: one.scorer for task, one in scoring.items()})
        self._places = {task: asyncio.Semaphore(one.concurrency) for task, one in self._graded.items()}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        for scorer in self._graded.values():
            await scorer.grading_model.aclose()

    async def score(self, request: TrialRequest, completion: Completion) -> Score:
        """Return the category of `completion` as an answer to the trial's question."""
        scoring, scorer = self._scoring[request.task], self._graded.get(request.task)
        task = self._tasks[request.task]
        question = task.asked(task.by_id[request.question], request.seed, request.repeat)
        if scorer is None:
            if isinstance(scoring.scorer, QUICK) and len(completion.text) <= QUICK_TEXT:
                return scoring.score(completion, question)
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, scoring.score, completion, question)
        without = scoring.not_scored(completion)
        if without is not None:
            return without
        known = None if self._stored is None else self._stored.score(request, completion)
        if known is None:
            async with self._places[request.task]:
                known = await scorer.grade(completion, question)
        else:
            known = replace(known, signals=_without_bill(known.signals))
        return scoring.categorised(known, completion)


class ScorersAllowance:
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


def resume_accounts(
    tasks: Sequence[Task], scorers: Mapping[str, Scorer], directories: Iterable[Path]
) -> None:
    """Charge the accounts of model-graded scorers with what these runs have cost.

    An answer that a killed process was having scored has left no bill: it is presumed at its worst case.
    """
    graded = model_graded(scorers)
    if not graded:
        return
    bills, lost = {task: Bill() for task in graded}, Counter[str]()
    for directory in directories:
        with RunReader(directory) as reader:
            lost.update(reader.lost_launches())
            for task, scorer in graded.items():
                for record in reader.trials(task=task):
                    if record.score is not None:
                        bills[task].add(_bill_in(record.score.signals, scorer.kind))
    questions = {task.name: task.questions for task in tasks}
    for task, bill in bills.items():
        grading_model_of(graded[task]).resume(bill, lost[task], questions[task])


def _bill_in(signals: Mapping[str, Signal], kind: str) -> Bill:
    counts = (signals.get(name) for name in Bill().signals(kind))
    return Bill(*(count if isinstance(count, int) else 0 for count in counts))


def _without_bill(signals: Mapping[str, Signal]) -> dict[str, Signal]:
    """Return the signals of an answer whose judgement the pilot has paid for, without the bill."""
    billed = {name for kind in ("judge", "verifier") for name in Bill().signals(kind)}
    return {name: value for name, value in signals.items() if name not in billed}


@dataclass(frozen=True)
class StoredAnswers:
    """Stored answers by model and trial seed, with the request each one answered."""

    answers: Mapping[tuple[str, int], tuple[Mapping[str, Any], Completion]]
    scores: Mapping[tuple[str, int], Score]

    @classmethod
    def read(cls, directory: Path) -> StoredAnswers:
        """Return every answer stored in the run in `directory`."""
        answers, scores = {}, {}
        with RunReader(directory) as reader:
            for record in reader.trials():
                key = record.request.key.model, record.request.seed
                if record.completion is not None:
                    answers[key] = record.sent, record.completion
                if record.score is not None and record.score.category is not None:
                    scores[key] = record.score
        return cls(answers, scores)

    def find(self, model: str, seed: int, body: Mapping[str, Any]) -> Completion | None:
        """Return the answer to this very request, or None where it was not asked before."""
        found = self.answers.get((model, seed))
        return found[1] if found is not None and _content(found[0]) == _content(body) else None

    def score(self, request: TrialRequest, completion: Completion) -> Score | None:
        """Return the stored score of this answer, or None where it was not scored before."""
        key = request.key.model, request.seed
        found = self.answers.get(key)
        return self.scores.get(key) if found is not None and found[1] is completion else None


class AnsweringFromStore:
    """An executor that returns stored answers and makes only the other requests."""

    def __init__(self, executor: Executor, stored: StoredAnswers) -> None:
        self._executor = executor
        self._stored = stored

    async def attempt(
        self, endpoint: Endpoint, messages: Sequence[Message], requests: Sequence[TrialRequest]
    ) -> Sequence[Completion | None]:
        """Return the stored answers to these requests; ask where none has one.

        Where only some have one, the others are asked one by one.
        """
        body = stored_body(endpoint.body(messages, seed=requests[0].seed), messages)
        found = [self._stored.find(one.key.model, one.seed, body) for one in requests]
        if any(found):
            return found
        return await self._executor.attempt(endpoint, messages, requests)

    def score(self, request: TrialRequest, completion: Completion) -> Coroutine[Any, Any, Score]:
        """Return the category of `completion` as an answer to the trial's question."""
        return self._executor.score(request, completion)


def _content(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a request without its trials and its transport.

    Answer i of several has the seed plus i.
    """
    return {name: value for name, value in body.items() if name not in ("seed", "n", *STREAMED)}
