"""A run held against labels: its verdict by them, and what they say of its judge."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from adaptive_eval.build.describe import describe_run
from adaptive_eval.build.replay import replay
from adaptive_eval.config import RunConfig
from adaptive_eval.config.label_checks import label_files
from adaptive_eval.core.by_labels import further_labels, label_look
from adaptive_eval.core.held import Bias, Held, Noise
from adaptive_eval.core.label_look import LabelLook, agreement
from adaptive_eval.core.label_record import LabelRecord
from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import GoalSpec
from adaptive_eval.errors import UsageError
from adaptive_eval.interop.run_tables import RunDescription
from adaptive_eval.run.label_choice import CALLS, LabelChoices, allowed_scores
from adaptive_eval.run.label_files import KnownAnswer, Label, LabelFile
from adaptive_eval.store.reader import RunReader
from adaptive_eval.trial import TrialKey
from adaptive_eval.views.reading import layouts
from scorio.arrays import Floats, Ints

LEAST_CHANCE = 0.25
"""Of the mean one: the chance of a label where the judge has not been seen to err."""
_DIGITS = 9
"""Of a spread, in unit scores; the rest is rounding."""


def hold_against(reader: RunReader, about: RunDescription, file: Path) -> Held:
    """Hold a run against a file of labels.

    Raises
    ------
    UsageError
        If the file has mistakes, all of which are named, or there are no labels in it.
    """
    record = _read(reader, about, file)
    if not record.filled:
        raise UsageError(f"{file}: no row has a score yet; fill in labels first")
    made = replay(reader)
    alone, session = made.results, made.session
    if session.spec.references or session.spec.labels is not None:
        # Answers of references are not here to be labelled, and the judge is asked alone.
        spec = replace(session.spec, labels=None)
        if spec.references:
            spec = replace(spec, references=(), prior=None, goal=GoalSpec("ranking"))
        session = Session(spec)
        session.replay(reader.log(), decisions=layouts(reader))
        alone = session.results()
    look = label_look(session.spec, session.board, record)
    judged = look.judged
    results = None
    if record.decides and look.answers.number.any():
        results = look.verdicts(alone)
    known = ~np.isnan(judged.judge) & ~np.isnan(judged.label)
    share, kappa = agreement(judged.judge[known], judged.label[known])
    names = session.spec.names
    models = tuple(_bias(look, [model]) for model in range(len(names)))
    pairs = tuple(_bias(look, pair) for pair in combinations(range(len(names)), 2))
    if results is not None:
        further = tuple(further_labels(look, results))
    else:
        further = ()
    return Held(
        results=results,
        alone=alone,
        rows=record.rows,
        filled=record.filled,
        questions=int(judged.chosen.sum()),
        of=judged.chosen.size,
        agreement=_number(share),
        kappa=_number(kappa),
        models=models,
        pairs=pairs,
        further=further,
        noise=tuple(_noise(look)),
    )


def labels_of_run(config: RunConfig, reader: RunReader | None) -> LabelRecord | None:
    """Return the labels that a config's judge names, of the run that continues; None if it names none.

    A file that is not there has no label yet.

    Raises
    ------
    UsageError
        If the file has mistakes, or is of another run.
    """
    named = next((file for _, file in label_files(config)), None)
    if named is None:
        return None
    file = config.base_dir / Path(named).expanduser()
    if not file.exists():
        return LabelRecord(named)
    if reader is None or not reader.count():
        raise UsageError(
            f"labels: {file} is there, and this run has no answers yet that it could be of; name a file for "
            "this run's own labels, such as labels.jsonl in its directory"
        )
    try:
        return replace(_read(reader, describe_run(reader), file), file=named)
    except UsageError as error:
        raise UsageError(f"labels: {error}") from None


def _read(reader: RunReader, about: RunDescription, file: Path) -> LabelRecord:
    """Read a file of labels of a run."""
    choices = LabelChoices.from_run(reader)
    labels = _file(choices, allowed_scores(about.weights, about.categories)).read(file)
    by_id = [one.by_id for one in labels]
    if any(by_id) and not all(by_id):
        raise UsageError(f"{file}: some rows have an id and some a model and a trial; use two files")
    return _recorded(choices, labels, about.models, str(file))


def _file(choices: LabelChoices, allowed: Mapping[str, Any]) -> LabelFile:
    """Return what reads labels of the run: its answers, and which of them were chosen."""
    columns = choices.columns
    own = choices.chosen.chances
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


def _recorded(
    choices: LabelChoices, labels: Sequence[Label], models: Collection[str], file: str
) -> LabelRecord:
    """Return what the run file keeps of labels; they are all by id, or all by model and trial."""
    ours = all(one.by_id for one in labels)
    stored = len(choices.columns)
    chosen: dict[int, float] = {}
    steps, chance = choices.pool(stored), 1.0
    if ours and labels:
        if not choices.calls:
            raise UsageError(f"{CALLS} is not in the run's folder; it says from what answers were chosen")
        stored = choices.calls[-1].stored
        steps = choices.chosen.steps
        chance = choices.chosen.chance
        chosen = dict.fromkeys(steps[choices.chosen.marked].tolist(), chance)
    pool = {*steps.tolist()}
    kept = []
    for given in labels:
        step = given.key.index
        if given.key.model not in models or step not in pool:
            continue
        if not ours:
            of_step = given.chance or 1.0
            if chosen.setdefault(step, of_step) != of_step:
                raise UsageError(f"line {given.line}: answers to one question in one pass need one pi")
        if given.score is not None:
            kept.append((given.key.model, step, given.score))
    filled = sum(one.score is not None for one in labels)
    return LabelRecord(
        file=file,
        rows=len(labels),
        filled=filled,
        with_chances=all(one.chance is not None for one in labels),
        spans=tuple(_spans(steps)),
        progress=choices.progress(stored),
        chance=chance,
        chosen=tuple(sorted(chosen.items())),
        labels=tuple(kept),
    )


def _spans(steps: Ints) -> Iterator[tuple[int, int]]:
    """Yield runs of steps, from each start to before its end.

    Examples
    --------
    >>> list(_spans(np.array([0, 1, 2, 5, 6])))
    [(0, 3), (5, 7)]
    """
    for part in np.split(steps, np.flatnonzero(np.diff(steps) != 1) + 1):
        if part.size:
            yield int(part[0]), int(part[-1]) + 1


def _number(value: float) -> float | None:
    if value != value:
        return None
    return float(value)


def _bias(look: LabelLook, models: Sequence[int]) -> Bias:
    names = [look.spec.names[model] for model in models]
    unit = look.spec.scale[1]
    labels, bias, low, high = look.biases(models)
    share = kappa = float("nan")
    if len(models) == 1:
        _, part = look.judged.shared_by(models)
        known = ~np.isnan(part.judge[0]) & ~np.isnan(part.label[0])
        share, kappa = agreement(part.judge[0][known], part.label[0][known])
    mean = None
    if bias == bias:
        mean = unit * bias
    second = None
    if len(names) > 1:
        second = names[1]
    return Bias(names[0], second, labels, mean, unit * low, unit * high, _number(share), _number(kappa))


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
            groups = np.linspace(0.1, 0.9, 5)
            scores = np.clip(np.floor(scores * 5), 0, 4) / 5 + 0.1
        rows += [(task, group, residual[np.isclose(scores, group)]) for group in groups.tolist()]
    sizes = np.array([part.size for *_, part in rows], dtype=float)
    spreads = np.zeros(sizes.size)
    for place, (*_, part) in enumerate(rows):
        if part.size:
            spreads[place] = part.std()
    spreads = spreads.round(_DIGITS)
    mean = 0.0
    if sizes.sum():
        mean = float((spreads * sizes).sum() / sizes.sum())
    found = []
    for (task, group, part), spread in zip(rows, spreads.tolist(), strict=True):
        low, high = min(spec.tasks[task].weights), max(spec.tasks[task].weights)
        unit = high - low
        relative = 1.0
        if mean:
            relative = max(spread / mean, LEAST_CHANCE)
        found.append(Noise(spec.tasks[task].name, low + unit * group, part.size, unit * spread, relative))
    return [one for one in found if one.labels]


def _slope(judge: Floats, label: Floats) -> float:
    squares = float((judge**2).sum())
    if squares:
        return min(max(float((judge * label).sum()) / squares, 0.0), 1.0)
    return 0.0
