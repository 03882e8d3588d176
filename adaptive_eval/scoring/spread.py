"""Scores stored answers in batches: in this process, in others, or on a cluster."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from typing import TypeAlias, TypeVar

from adaptive_eval.scoring.model_graded import ModelGradedScorer
from adaptive_eval.scoring.scorer import Scorer, score_or_failure
from adaptive_eval.scoring.workers import bound_workers
from adaptive_eval.trial import Completion, Question, Score

Answers: TypeAlias = Sequence[tuple[Completion, Question]]
"""Answers to be scored, each with its question."""

Tag = TypeVar("Tag")

_AT_ONCE = 8
_AHEAD = 2
"""Batches submitted for each worker: one in work, one waiting."""


def score_here(
    scorer: Scorer | None, batches: Iterable[tuple[Tag, Answers]], *, at_once: bool
) -> Iterator[tuple[Tag, list[Score]]]:
    """Yield the tag and scores of each batch in order, scored here; `at_once`: several answers at a time.

    Without a scorer the batches must be empty.
    """
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        apply = threads.map if at_once else map
        for tag, answers in batches:
            if scorer is None or not answers:
                yield tag, []
            elif isinstance(scorer, ModelGradedScorer):
                yield tag, scorer.score_all(answers)
            else:
                yield tag, list(apply(lambda one: score_or_failure(scorer, *one), answers))


def score_spread(
    scorer: Scorer, batches: Iterable[tuple[Tag, Answers]], pool: Executor, workers: int
) -> Iterator[tuple[Tag, list[Score]]]:
    """Yield the tag and scores of each batch in order, scored by the `workers` of a pool."""
    ahead: deque[tuple[Tag, Future[list[Score]]]] = deque()
    try:
        for tag, answers in batches:
            ahead.append((tag, pool.submit(_scored, scorer, _for_the_way(answers))))
            if len(ahead) >= _AHEAD * workers:
                done, future = ahead.popleft()
                yield done, future.result()
        while ahead:
            done, future = ahead.popleft()
            yield done, future.result()
    finally:
        for _, future in ahead:
            future.cancel()


def _for_the_way(answers: Answers) -> Answers:
    """Return answers that can be pickled; a view of a mapping cannot."""
    return [(completion, replace(question, fields=dict(question.fields))) for completion, question in answers]


def _scored(scorer: Scorer, answers: Answers) -> list[Score]:
    bound_workers(1)  # the pool has a worker for each core
    scores = (score_or_failure(scorer, completion, question) for completion, question in answers)
    return [replace(score, signals=dict(score.signals)) for score in scores]
