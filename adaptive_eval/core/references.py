"""References: models with stored trials, from a previous run or an imported matrix.

A reference is on the board like any model, but gets no trials. It comes after the other models in every list.
Its progress counts as unlimited, so a contrast with it follows the other model's trial sequence. Two
references are not compared, because no trial could change the result.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from adaptive_eval.core.spec import SessionSpec
from adaptive_eval.errors import Coded, SessionError
from scorio.sequential.parts import Cells


def check_references(spec: SessionSpec) -> None:
    """Check that the references of a session can be compared with its models."""
    if not spec.references:
        return
    if spec.stopping.rule == "exact":
        raise SessionError("the rule exact reads single trials, which references do not have; use anytime")
    names, stored = spec.names, {reference.name for reference in spec.references}
    for name in stored:
        if names.count(name) > 1:
            raise SessionError(f"two models are called {name!r}; a reference needs a unique name")
    for pair in (pair for goal in spec.goal.parts for pair in goal.pairs):
        if stored.issuperset(pair):
            raise SessionError(f"{' and '.join(pair)} are both references: there is nothing left to ask")
    for reference in spec.references:
        for task in spec.tasks:
            table = reference.counts.get(task.name)
            expected = (len(task.questions), len(task.weights))
            found = None if table is None else table.shape
            if table is None or found != expected:
                raise SessionError(
                    f"reference {reference.name!r} needs counts of shape {expected} (questions x categories) "
                    f"for task {task.name!r}, got {'none' if found is None else found}"
                )
            if table.min() < 0 or not table.any():
                raise SessionError(
                    f"the counts of reference {reference.name!r} for task {task.name!r} must not be "
                    "negative, and not all 0"
                )


def load_references(spec: SessionSpec, cells: Sequence[Cells]) -> None:
    """Give the cells the trials of the references."""
    for row, reference in enumerate(spec.references, start=len(spec.models)):
        for task, moments in zip(spec.tasks, cells, strict=True):
            moments.load(row, reference.counts[task.name])


def reference_warnings(spec: SessionSpec) -> list[Coded]:
    """Return warnings about contrasts that the references cannot decide."""
    warnings = []
    for reference in spec.references:
        questions = sum(len(task.questions) for task in spec.tasks)
        tables = [reference.counts[task.name] for task in spec.tasks]
        answered = sum(int(np.count_nonzero(table.sum(axis=1))) for table in tables)
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
