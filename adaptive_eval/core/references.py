"""Trials of previous runs: references, which models are compared with, and priors, for early views alone.

A reference is on the board like any model, but gets no trials. It comes after the other models in every list.
Its progress counts as unlimited, so a contrast with it follows the other model's trial sequence. Two
references are not compared, because no trial could change the result.

Priors enter no decision. Added to the new trials (R0), they make Bayes@N more precise while a model has few.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from adaptive_eval.core.spec import ReferenceSpec, SessionSpec, TaskSpec
from adaptive_eval.errors import Coded, SessionError
from scorio.arrays import Ints
from scorio.sequential.parts import Cells


def check_references(spec: SessionSpec) -> None:
    """Check that the references of a session can be compared with its models."""
    if not spec.references:
        return
    if spec.stopping.rule == "exact":
        raise SessionError("the rule exact reads single trials, which references do not have; use anytime")
    for reference in spec.references:
        if spec.names.count(reference.name) > 1:
            raise SessionError(f"two models are called {reference.name!r}; a reference needs a unique name")
    for reference in spec.references:
        for task in spec.tasks:
            table = reference.counts.get(task.name, np.zeros((0, 0)))
            _check_counts(f"reference {reference.name!r}", task, table)
            if not table.any():
                raise SessionError(
                    f"the counts of reference {reference.name!r} for task {task.name!r} must not be all 0"
                )


def _check_counts(owner: str, task: TaskSpec, table: NDArray[np.integer | np.floating]) -> None:
    """Refuse counts of trials that are not those of a task."""
    expected = (len(task.questions), task.shares.shape[1])
    if table.shape != expected or (table.min() < 0 and not task.numbers):
        raise SessionError(
            f"{owner} needs counts of shape {expected} (questions x categories) for task {task.name!r}, none "
            f"of them negative; got shape {table.shape}"
        )


def load_references(spec: SessionSpec, cells: Sequence[Cells]) -> None:
    """Give the cells the trials of the references."""
    for row, reference in enumerate(spec.references, start=len(spec.models)):
        for task, moments in zip(spec.tasks, cells, strict=True):
            pairs = None if spec.independent_copies else reference.alike.get(task.name)
            moments.load(row, reference.counts[task.name], reference.lost.get(task.name), pairs)


def lost_of(reference: ReferenceSpec) -> int:
    """Return how many trials of a reference have no answer."""
    return sum(int(table.sum()) for table in reference.lost.values())


def reference_warnings(spec: SessionSpec) -> list[Coded]:
    """Return warnings about contrasts that the references cannot decide."""
    warnings = []
    for reference in spec.references:
        questions = sum(len(task.questions) for task in spec.tasks)
        tables = [reference.counts[task.name] for task in spec.tasks]
        answered = sum(int(np.count_nonzero(table.sum(axis=1))) for table in tables)
        if lost := lost_of(reference):
            warnings.append(
                f"trials without an answer of reference {reference.name}: {lost:,}; each counts as anything "
                "from 0 to 1, so pairs with it that these could turn stay open"
            )
        if not spec.independent_copies and any(table.any() for table in reference.alike.values()):
            warnings.append(
                f"reference {reference.name} has long answers with the text of another: copies from a cache, "
                "or draws of a model that is sure. They count in its score, whose interval takes the more "
                "cautious reading. If they are draws, set on: {copies: independent}"
            )
        if answered < questions:
            warnings.append(
                f"reference {reference.name} has results on {answered:,} of {questions:,} questions: only "
                "these are compared"
            )
        elif all(table.sum(axis=1).max() == 1 for table in tables):
            warnings.append(
                f"reference {reference.name} has one trial a question: the noise of its answers is unknown, "
                "so close pairs with it may stay open for any number of trials"
            )
    compared = any(goal.kind in ("ranking", "top-k") for goal in spec.goal.parts)
    if len(spec.references) > 1 and compared:
        names = ", ".join(reference.name for reference in spec.references)
        warnings.append(f"references are not compared with each other ({names}): their trials are all in")
    return [Coded("warning/reference", words) for words in warnings]


class PreviousTrials:
    """The prior of a session, in the layout of its board."""

    def __init__(self, spec: SessionSpec) -> None:
        self.spec = spec
        self._r0: list[Ints] | None = None
        if spec.prior is None:
            return
        self._r0 = [_table(spec, task, spec.prior.counts) for task in spec.tasks]

    def with_prior(self, counts: NDArray[np.int32], task: int) -> NDArray[np.integer]:
        """Return a task's category counts with R0 added."""
        if self._r0 is None:
            return counts
        return counts + self._r0[task]


def _table(spec: SessionSpec, task: TaskSpec, counts: Mapping[str, Mapping[str, Ints]]) -> Ints:
    """Return a task's counts of all models as one table, shape (L, M, C + 1); 0 if there are none."""
    asked = [model.name for model in spec.models]
    shape = (len(spec.names), len(task.questions), task.shares.shape[1])
    table = np.zeros(shape, dtype=task.shares.dtype)
    for name, tasks in counts.items():
        if name not in asked:
            raise SessionError(f"the prior names {name!r}, which is no model of this session")
        found = tasks.get(task.name)
        if found is None:
            continue
        _check_counts(f"the prior of model {name!r}", task, found)
        table[asked.index(name)] = found
    return table
