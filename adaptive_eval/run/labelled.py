"""A run held against labels: its verdict by them, and what they say of its judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from adaptive_eval.build.replay import replay
from adaptive_eval.core.board import SessionAnswers
from adaptive_eval.core.held import Bias, Further, Held, Noise
from adaptive_eval.core.label_look import Judged, LabelLook, agreement, unit_score
from adaptive_eval.core.one_look import AnswerCounts
from adaptive_eval.core.results import Results
from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import GoalSpec
from adaptive_eval.errors import UsageError
from adaptive_eval.interop.run_tables import RunDescription
from adaptive_eval.run.label_choice import CALLS, LabelChoices, allowed_scores
from adaptive_eval.run.label_files import KnownAnswer, Label, LabelFile
from adaptive_eval.store.reader import RunReader
from adaptive_eval.trial import TrialKey
from scorio.sequential.parts import DROPPED, KNOWN, Bools, Floats, Ints, RunSequence

LEAST_CHANCE = 0.25
"""Of the mean one: the chance of a label where the judge has not been seen to err."""


def hold_against(reader: RunReader, about: RunDescription, file: Path) -> Held:
    """Hold a run against a file of labels.

    Raises
    ------
    UsageError
        If the file has mistakes, all of which are named, or there are no labels in it.
    """
    choices = LabelChoices.of(reader)
    allowed = allowed_scores(about.weights, about.categories)
    labels = _file(choices, allowed).read(file)
    if all(one.score is None for one in labels):
        raise UsageError(f"{file}: no row has a score yet; fill in labels first")
    by_id = [one.by_id for one in labels]
    if any(by_id) and not all(by_id):
        raise UsageError(f"{file}: some rows have an id and some a model and a trial; use two files")
    made = replay(reader)
    alone, session = made.results, made.session
    if session.spec.references:  # their answers are not here to be labelled
        spec = replace(session.spec, references=(), prior=None, goal=GoalSpec("ranking"))
        session = Session(spec)
        session.replay(reader.log())
        alone = session.results()
    judged, chance_known = _judged(session, choices, labels, ours=all(by_id))
    counts = (judged.there & ~np.isnan(judged.judge)).sum(axis=1)
    none = np.zeros((len(session.spec.names), session.spec.questions), dtype=np.int64)
    number = none.copy()
    row, at = np.nonzero(judged.there & ~np.isnan(judged.judge))
    np.add.at(number, (row, judged.question[at]), 1)
    look = LabelLook(session.spec, AnswerCounts(number, np.zeros(number.shape), none), judged)
    results = look.verdicts(alone) if chance_known and counts.any() else None
    known = ~np.isnan(judged.judge) & ~np.isnan(judged.label)
    share, kappa = agreement(judged.judge[known], judged.label[known])
    names = session.spec.names
    return Held(
        results=results,
        alone=alone,
        rows=len(labels),
        filled=sum(one.score is not None for one in labels),
        questions=int(judged.chosen.sum()),
        of=judged.chosen.size,
        agreement=_number(share),
        kappa=_number(kappa),
        models=tuple(_bias(look, [model]) for model in range(len(names))),
        pairs=tuple(_bias(look, pair) for pair in combinations(range(len(names)), 2)),
        further=() if results is None else tuple(_further(look, results)),
        noise=tuple(_noise(look)),
    )


def _file(choices: LabelChoices, allowed: Mapping[str, Any]) -> LabelFile:
    """Return what reads labels of the run: its answers, and which of them were chosen."""
    columns, chosen = choices.columns, choices.chosen
    own = dict(zip(chosen.steps[chosen.marked].tolist(), chosen.own[chosen.marked].tolist(), strict=True))
    ids: dict[str, TrialKey] = {}
    answers: dict[TrialKey, KnownAnswer] = {}
    rows = zip(columns.model.tolist(), columns.step.tolist(), columns.question.tolist(), strict=True)
    for model, step, question in rows:
        key = TrialKey(columns.models[model], step)
        task, name = columns.questions[question]
        answers[key] = KnownAnswer(task, name, own.get(step))
        if step in own:
            ids[choices.id(key)] = key
    return LabelFile(ids, answers, allowed)


def _judged(
    session: Session, choices: LabelChoices, labels: Sequence[Label], *, ours: bool
) -> tuple[Judged, bool]:
    """Return what judge and labels say of the steps that could be chosen, and whether chances are known."""
    spec, board = session.spec, session.board
    stored = len(choices.columns)
    if ours:
        if not choices.calls:
            raise UsageError(f"{CALLS} is not in the run's folder; it says from what answers were chosen")
        stored = choices.calls[-1].stored
        steps, chosen = choices.chosen.steps, choices.chosen.marked
        chance = np.full(steps.size, choices.chosen.chance)
    else:
        steps = choices.pool(stored)
        chosen, chance = np.zeros(steps.size, dtype=bool), np.ones(steps.size)
    last = int(steps[-1]) + 1 if steps.size else 0
    place = np.full(last, -1)
    place[steps] = np.arange(steps.size)
    task = board.run_sequence.task(0, last)[steps].astype(np.int64)
    names = spec.names
    models, shape = {name: row for row, name in enumerate(names)}, (len(names), steps.size)
    question = _questions(choices, session, steps, last)
    progress = choices.progress(stored)
    category = np.stack([_answers(board.answers[row], steps) for row in range(len(names))])
    judge = np.full(shape, np.nan)
    there, doubted = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    read = _readable(board.run_sequence, steps)
    for row, name in enumerate(names):
        there[row] = (steps < progress.get(name, 0)) & (category[row] != KNOWN) & read
        for number, one in enumerate(spec.tasks):
            here = (task == number) & (category[row] >= 0)
            judge[row, here] = one.unit_scores[category[row, here]]
        doubted[row] = _doubted(board, row, steps)
    label = np.full(shape, np.nan)
    for given in labels:
        at = int(place[given.key.index]) if given.key.index < last else -1
        if given.key.model not in models or at < 0:
            continue
        if not ours:
            chosen[at] = True
            if given.chance is not None and chance[at] not in (1.0, given.chance):
                raise UsageError(f"line {given.line}: answers to one question in one pass need one pi")
            chance[at] = given.chance or 1.0
        row = models[given.key.model]
        if given.score is None or category[row, at] == DROPPED:
            continue
        label[row, at] = unit_score(spec.tasks[int(task[at])].weights, given.score)
        if np.isnan(judge[row, at]):  # the judge could not score what it has answered
            judge[row, at] = 0.5
    known = all(given.chance is not None for given in labels)
    return Judged(judge, label, chosen, chance, task, question, there, doubted), known


def _questions(choices: LabelChoices, session: Session, steps: Ints, last: int) -> Ints:
    """Return the question of each step, over all tasks."""
    spec, columns = session.spec, choices.columns
    numbers: dict[tuple[str, str], int] = {}
    for one, here in zip(spec.tasks, spec.columns, strict=True):
        numbers |= {(one.name, name): here.start + place for place, name in enumerate(one.questions)}
    of_stored = np.array([numbers[asked] for asked in columns.questions], dtype=np.int64)
    asked = np.zeros(last, dtype=np.int64)
    within = columns.step < last
    asked[columns.step[within]] = of_stored[columns.question[within]]
    return asked[steps]


def _answers(answers: Ints, steps: Ints) -> Ints:
    wide = np.full(max(int(steps[-1]) + 1 if steps.size else 0, answers.size), -1)
    wide[: answers.size] = answers
    return wide[steps]


def _doubted(board: SessionAnswers, row: int, steps: Ints) -> Bools:
    """Return which answers of a model may be copies."""
    last = int(steps[-1]) + 1 if steps.size else 0
    found, task = np.zeros(last, dtype=bool), board.run_sequence.task(0, last)
    for number, cells in enumerate(board.cells):
        if cells.copied is not None:
            places = np.flatnonzero(task == number)[: cells.copied.shape[1]]
            found[places] = cells.copied[row, : places.size]
    return found[steps]


def _readable(sequence: RunSequence, steps: Ints) -> Bools:
    """Leave out what is read only when all questions have been asked as often, and have not been."""
    held = sequence.sequences[0].samples_per_prompt > 1 or sequence.questions == 2
    if not held or not steps.size:
        return np.ones(steps.size, dtype=bool)
    last = int(steps[-1]) + 1
    ends = np.flatnonzero(sequence.complete(0, last)) + 1
    until = max(int(ends[-1]) if ends.size else 0, min(last, sequence.questions))
    return np.asarray(steps < until)


def _number(value: float) -> float | None:
    return None if value != value else float(value)


def _bias(look: LabelLook, models: Sequence[int]) -> Bias:
    names, unit = [look.spec.names[model] for model in models], look.spec.scale[1]
    labels, bias, low, high = look.biases(models)
    share = kappa = float("nan")
    if len(models) == 1:
        _, part = look.judged.of(models)
        known = ~np.isnan(part.judge[0]) & ~np.isnan(part.label[0])
        share, kappa = agreement(part.judge[0][known], part.label[0][known])
    mean = None if bias != bias else unit * bias
    second = names[1] if len(names) > 1 else None
    return Bias(names[0], second, labels, mean, unit * low, unit * high, _number(share), _number(kappa))


def _further(look: LabelLook, results: Results) -> list[Further]:
    """Return of each open pair how many more labels would decide it."""
    place, found = {name: row for row, name in enumerate(look.spec.names)}, []
    have = float(look.judged.chosen.mean()) if look.judged.chosen.size else 0.0
    for pair in results.pairs:
        if pair.verdict == "open" and pair.kind == "pair":
            share = look.share_for(place[pair.first], place[pair.second], pair.threshold)
            more = None if share is None else max(round((share - have) * look.judged.chosen.size), 1)
            found.append(Further(pair.first, pair.second, share, more))
    return found


def _noise(look: LabelLook) -> list[Noise]:
    """Return how far labels lie from what is predicted, by the judge's score in five parts of its range."""
    judged, spec = look.judged, look.spec
    known = ~np.isnan(judged.judge) & ~np.isnan(judged.label)
    slope = _slope(judged.judge[known], judged.label[known])
    rows: list[tuple[int, float, Floats]] = []
    for task in range(len(spec.tasks)):
        here = known & (judged.task == task)
        scores = judged.judge[here]
        residual = judged.label[here] - slope * scores
        groups = np.unique(scores)
        if groups.size > 5:
            groups, scores = np.linspace(0.1, 0.9, 5), np.clip(np.floor(scores * 5), 0, 4) / 5 + 0.1
        rows += [(task, group, residual[np.isclose(scores, group)]) for group in groups.tolist()]
    sizes = np.array([part.size for *_, part in rows], dtype=float)
    spreads = np.array([float(part.std()) if part.size else 0.0 for *_, part in rows])
    mean = float((spreads * sizes).sum() / sizes.sum()) if sizes.sum() else 0.0
    found = []
    for (task, group, part), spread in zip(rows, spreads.tolist(), strict=True):
        low, high = min(spec.tasks[task].weights), max(spec.tasks[task].weights)
        unit = high - low
        relative = max(spread / mean, LEAST_CHANCE) if mean else 1.0
        found.append(Noise(spec.tasks[task].name, low + unit * group, part.size, unit * spread, relative))
    return [one for one in found if one.labels]


def _slope(judge: Floats, label: Floats) -> float:
    squares = float((judge**2).sum())
    return min(max(float((judge * label).sum()) / squares, 0.0), 1.0) if squares else 0.0
