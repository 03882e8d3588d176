"""Verdicts of a session by labels of a random share of its answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from adaptive_eval.core.board import SessionAnswers
from adaptive_eval.core.held import Further
from adaptive_eval.core.label_look import Judged, LabelLook, unit_score
from adaptive_eval.core.label_record import LabelRecord
from adaptive_eval.core.one_look import AnswerCounts
from adaptive_eval.core.results import Results
from adaptive_eval.core.spec import SessionSpec
from adaptive_eval.errors import Coded
from scorio.arrays import Bools, Ints
from scorio.sequential.parts import Mark, RunSequence


def label_look(spec: SessionSpec, board: SessionAnswers, record: LabelRecord) -> LabelLook:
    """Return the tests of a session's answers by labels."""
    judged = _judged(spec, board, record)
    none = np.zeros((len(spec.names), spec.questions), dtype=np.int64)
    number = none.copy()
    row, at = np.nonzero(judged.there & ~np.isnan(judged.judge))
    np.add.at(number, (row, judged.question[at]), 1)
    return LabelLook(spec, AnswerCounts(number, np.zeros(number.shape), none), judged)


def results_by_labels(
    spec: SessionSpec, board: SessionAnswers, record: LabelRecord, alone: Results
) -> Results:
    """Return results by labels, whose stop says if the goal is reached; without labels all pairs are open."""
    look = label_look(spec, board, record)
    found = look.verdicts(alone)
    if not (record.decides and look.answers.number.any()):
        found = _undecided(found)
    remarks = tuple(_remarks(look, found, record))
    return replace(found, warnings=remarks)


def further_labels(look: LabelLook, results: Results) -> list[Further]:
    """Return of each open pair how many more labels would decide it."""
    place = {name: row for row, name in enumerate(look.spec.names)}
    found = []
    have = 0.0
    if look.judged.chosen.size:
        have = float(look.judged.chosen.mean())
    for pair in results.pairs:
        if pair.verdict == "open" and pair.kind == "pair":
            share = look.share_for(place[pair.first], place[pair.second], pair.threshold)
            more = None
            if share is not None:
                more = max(round((share - have) * look.judged.chosen.size), 1)
            found.append(Further(pair.first, pair.second, share, more))
    return found


def _undecided(results: Results) -> Results:
    """Return results in which nothing is known: there is no label, or no chance of one."""
    number = len(results.models)
    models = [
        replace(line, score=None, score_low=None, score_high=None, rank=1, rank_low=1, rank_high=number)
        for line in results.models
    ]
    pairs = [
        replace(pair, verdict="open", difference=None, difference_low=None, difference_high=None)
        for pair in results.pairs
    ]
    return replace(results, models=tuple(models), pairs=tuple(pairs), tasks=(), stop=None)


MOST_TOLD = 5
"""Open pairs of which is said what labels would decide."""


def _remarks(look: LabelLook, results: Results, record: LabelRecord) -> Iterator[Coded]:
    """Say what labels are lacking."""
    code = "warning/labels-needed"
    if not record.with_chances:
        yield Coded(
            code,
            f"the rows of {record.file} have no pi, so they decide nothing; rescore --labels shows "
            "the judge's bias and agreement. Choose answers with samples --label",
        )
        return
    if not record.decides:
        yield Coded(
            code,
            f"no label in {record.file} yet, and the judge alone decides nothing: choose answers with "
            "samples --label 0.1, label them, and continue the run",
        )
        return
    blank = record.rows - record.filled
    if blank:
        yield Coded(
            code,
            f"{blank:,} of {record.rows:,} rows of {record.file} have no label and count as the worst for "
            "every verdict; label them too",
        )
    open_pairs = further_labels(look, results)
    for one in open_pairs[:MOST_TOLD]:
        words = f"{one.first} and {one.second} are open by labels"
        if one.share is None:
            words += "; labels of all answers would not decide them if they are as they look: ask more"
        else:
            words += (
                f"; about {one.questions or 0:,} more questions with labels would decide them if they are as "
                f"they look (samples --label {one.share:.2g})"
            )
        yield Coded(code, words)
    if len(open_pairs) > MOST_TOLD:
        yield Coded(code, f"{len(open_pairs) - MOST_TOLD:,} more pairs are open by labels")


def _judged(spec: SessionSpec, board: SessionAnswers, record: LabelRecord) -> Judged:
    """Return what judge and labels say of the steps that could be chosen."""
    spans = [np.arange(start, end) for start, end in record.spans]
    if spans:
        steps = np.concatenate(spans)
    else:
        steps = np.zeros(0, dtype=np.int64)
    last = 0
    if steps.size:
        last = int(steps[-1]) + 1
    place = np.full(last, -1)
    place[steps] = np.arange(steps.size)
    chosen = np.zeros(steps.size, dtype=bool)
    chance = np.full(steps.size, record.chance)
    for step, of_step in record.chosen:
        chosen[place[step]] = True
        chance[place[step]] = of_step
    task = board.run_sequence.task(0, last)[steps].astype(np.int64)
    names = spec.names
    models = {name: row for row, name in enumerate(names)}
    shape = (len(names), steps.size)
    category = np.stack([_answers(board.answers[row], steps) for row in range(len(names))])
    judge = np.full(shape, np.nan)
    there = np.zeros(shape, dtype=bool)
    doubted = np.zeros(shape, dtype=bool)
    read = _readable(board.run_sequence, steps)
    for row, name in enumerate(names):
        there[row] = (steps < record.progress.get(name, 0)) & (category[row] != Mark.FILLED_IN) & read
        for number, one in enumerate(spec.tasks):
            here = (task == number) & (category[row] >= 0)
            judge[row, here] = one.unit_scores[category[row, here]]
        doubted[row] = _doubted(board, row, steps)
    label = np.full(shape, np.nan)
    for name, step, score in record.labels:
        row = models[name]
        at = int(place[step])
        if category[row, at] == Mark.DROPPED:
            continue
        label[row, at] = unit_score(spec.tasks[int(task[at])].weights, score)
        if np.isnan(judge[row, at]):  # the judge could not score what it has answered
            judge[row, at] = 0.5
    question = np.zeros(steps.size, dtype=np.int64)
    farthest = max(range(len(names)), key=lambda row: record.progress.get(names[row], 0))
    for at, step in enumerate(steps.tolist()):
        of, within = board.run_sequence.at(step, farthest)
        question[at] = spec.columns[of].start + within
    return Judged(judge, label, chosen, chance, task, question, there, doubted)


def _answers(answers: Ints, steps: Ints) -> Ints:
    end = 0
    if steps.size:
        end = int(steps[-1]) + 1
    wide = np.full(max(end, answers.size), -1)
    wide[: answers.size] = answers
    return wide[steps]


def _doubted(board: SessionAnswers, row: int, steps: Ints) -> Bools:
    """Return which answers of a model may be copies."""
    last = 0
    if steps.size:
        last = int(steps[-1]) + 1
    found = np.zeros(last, dtype=bool)
    task = board.run_sequence.task(0, last)
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


def with_verdicts(alone: Results, labelled: Results) -> Results:
    """Return a session's results of now with verdicts, scores and ranks by labels, which stay as they are."""
    by_name = {line.model: line for line in labelled.models}
    models = []
    for line in alone.models:
        known = by_name[line.model]
        models.append(
            replace(
                line,
                score=known.score,
                score_low=known.score_low,
                score_high=known.score_high,
                rank=known.rank,
                rank_low=known.rank_low,
                rank_high=known.rank_high,
            )
        )
    return replace(
        labelled,
        models=tuple(models),
        budgets=alone.budgets,
        trials=alone.trials,
        stop=alone.stop,
        forecast=None,
        changes=alone.changes,
        judge_alone=replace(alone, forecast=None, warnings=()),
        warnings=(*alone.warnings, *labelled.warnings),
    )
