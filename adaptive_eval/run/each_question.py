"""Claims about every question: so many of its first answers are right, or a higher share of all of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path

import numpy as np
from scipy.special import betainc, betaincc, betaln

from adaptive_eval.core.stored_spec import SESSION
from adaptive_eval.errors import RunDamaged, RunFileError, UsageError
from adaptive_eval.interop.run_tables import run_weights
from adaptive_eval.interop.stored_config import possible_copies, session_of_file, with_lost_draws
from adaptive_eval.run.claims import Claim, Place
from adaptive_eval.store.reader import RunReader
from adaptive_eval.trial import COPY_REASON, NOT_THERE, STEPS, ScoreRange, TrialKey
from adaptive_eval.views.inert import inert
from scorio.arrays import Bools, Floats

MOST_LISTED = 10
"""Questions that a claim lists of each kind."""

LOST = -1
"""In place of 1 for a right answer and 0 for another: it is lost, and may have been either."""

_NO_DRAWS = (COPY_REASON, NOT_THERE)
"""Why trials are missing that are no draws of their own."""


@dataclass(frozen=True, slots=True)
class QuestionClaim:
    """So many right answers of so many, to every question."""

    right: int
    of: int

    @classmethod
    def parse(cls, text: str) -> QuestionClaim:
        """Read what a person writes.

        Examples
        --------
        >>> QuestionClaim.parse("8 of 10")
        QuestionClaim(right=8, of=10)
        """
        found = re.fullmatch(r"\s*(\d+)\s*of\s*(\d+)\s*", text)
        right, number = (0, 0) if found is None else map(int, found.groups())
        if not 0 < right <= number:
            raise UsageError(f"--each-question {text!r} is not RIGHT of ANSWERS, such as '8 of 10'")
        return cls(right, number)


def each_question(
    run: Place, asked: str, model: str | None = None, confidence: float | None = None
) -> list[Claim]:
    """Say of models whether each question gets enough right answers.

    Parameters
    ----------
    run : path
        The directory of a run.
    asked : str
        Such as ``"8 of 10"``: of the first ten answers to each question at least eight are right. An answer
        is right if its category is worth most. With fewer answers a question is undecided. A lost answer may
        have been right or wrong.
    model : str, optional
        Default: every model of the run, a claim each.
    confidence : float, optional
        In place of the first answers, each question's share of right ones is held against 8/10, by a
        beta-binomial sequence that may be looked at whenever one likes. That all hold is claimed at this
        confidence; so is that one fails, by Holm over the questions.

    Raises
    ------
    UsageError
        If `asked` cannot be read, the run has no such model, or `confidence` is not between 0.5 and 1.
    RunFileError
        If the run has no answers.
    """
    wanted = QuestionClaim.parse(asked)
    if confidence is not None and not 0.5 < confidence < 1.0:
        raise UsageError(f"--confidence {confidence:g}: give a number between 0.5 and 1")
    if confidence is not None and wanted.right == wanted.of:
        raise UsageError(f"--each-question {asked!r}: no share is above 1; with --confidence ask for less")
    with RunReader(Path(run)) as reader:
        columns = with_lost_draws(reader.outcomes(), reader)
        weights = run_weights(reader)
        if SESSION in reader.meta():
            tasks = session_of_file(reader).tasks
        else:
            tasks = ()
        copies = possible_copies(reader)
        never = {one.request.key for one in reader.trials(missing=True) if one.missing in _NO_DRAWS}
    if not len(columns):
        raise RunFileError(f"{run} has no answers yet", code="run/no-results")
    if model is not None and model not in columns.models:
        raise UsageError(f"there is no model {model!r}; there are {', '.join(map(inert, columns.models))}")
    for of, _ in columns.questions:
        if of not in weights:
            raise RunDamaged(
                f"{run} is damaged: it has answers to {of!r}, of which its description says nothing"
            )
    best = [_best(weights[task]) for task, _ in columns.questions]
    every = dict.fromkeys(columns.questions)
    for task in tasks:
        every |= dict.fromkeys(
            (task.name, question) for question in task.questions
        )  # also those not asked yet
    names = [_name(one, list(every)) for one in every]
    order = np.lexsort((columns.step, columns.model))
    claims = []
    for number, name in enumerate(columns.models):
        if model not in (None, name):
            continue
        answers: dict[str, list[int]] = {question: [] for question in names}
        copied: dict[str, list[bool]] = {question: [] for question in names}
        for row in order[columns.model[order] == number].tolist():
            key = TrialKey(name, int(columns.step[row]))
            if key in never:
                continue
            question = int(columns.question[row])
            category = int(columns.category[row])
            if category < 0:
                given = LOST
            else:
                given = int(category == best[question])
            answers[names[question]].append(given)
            copied[names[question]].append(key in copies)
        claims.append(_claim(name, answers, copied, wanted, confidence))
    return claims


def _best(weights: tuple[float, ...]) -> int:
    """Return the category that is worth most."""
    if isinstance(weights, ScoreRange):
        return STEPS
    return weights.index(max(weights))


def _name(question: tuple[str, str], every: Sequence[tuple[str, str]]) -> str:
    task, name = question
    tasks = {task for task, _ in every}
    if len(tasks) == 1:
        return name
    return f"{task} / {name}"


def _claim(
    model: str,
    answers: Mapping[str, list[int]],
    copied: Mapping[str, list[bool]],
    wanted: QuestionClaim,
    confidence: float | None,
) -> Claim:
    """Return the claim about one model, from its answers to each question in their order.

    Whether each may be a copy of an earlier one is known too.
    """
    names = list(answers)
    if confidence is None:
        verdicts = [_of_first(given, wanted) for given in answers.values()]
        what = f"at least {wanted.right} of the first {wanted.of} answers right (plain counts)"
        counted = [given[: wanted.of] for given in answers.values()]
    else:
        verdicts = _by_confidence(list(answers.values()), list(copied.values()), wanted, 1.0 - confidence)
        share = wanted.right / wanted.of
        what = f"a share of right answers above {share:g} (at {100 * confidence:g} %, at every look)"
        counted = list(answers.values())
    shown = {name: _counts(given) for name, given in zip(names, counted, strict=True)}
    failed = [f"{name} {shown[name]}" for name, one in zip(names, verdicts, strict=True) if one is False]
    open_ = [f"{name} {shown[name]}" for name, one in zip(names, verdicts, strict=True) if one is None]
    held = len(names) - len(failed) - len(open_)
    words = f"{model}: {held:,} of {len(names):,} questions have {what}"
    if failed:
        words += f"; {len(failed):,} fail: {_listed(failed)}"
    if open_:
        words += f"; {len(open_):,} undecided: {_listed(open_)}"
    verdict: bool | None = True
    if failed:
        verdict = False
    elif open_:
        verdict = None
    return Claim(verdict, words)


def _listed(names: Sequence[str]) -> str:
    more = ""
    if len(names) > MOST_LISTED:
        more = f" and {len(names) - MOST_LISTED:,} more"
    return f"{', '.join(names[:MOST_LISTED])}{more}"


def _counts(given: Sequence[int]) -> str:
    """Return how many answers are right, and how many are lost."""
    lost = given.count(LOST)
    words = f"{given.count(1)}/{len(given)}"
    if lost:
        return f"{words} ({lost} lost)"
    return words


def _of_first(given: Sequence[int], wanted: QuestionClaim) -> bool | None:
    """Return whether enough of the first answers are right; None if too few came, or lost ones decide."""
    if len(given) < wanted.of:
        return None
    first = given[: wanted.of]
    if first.count(1) >= wanted.right:
        return True
    if first.count(1) + first.count(LOST) >= wanted.right:
        return None
    return False


def _by_confidence(
    answers: Sequence[Sequence[int]], copied: Sequence[Sequence[bool]], wanted: QuestionClaim, alpha: float
) -> list[bool | None]:
    """Return which questions' shares are above the one asked for, and which below.

    All hold together if each does at `alpha`. That one fails needs Holm over the questions.
    """
    share = wanted.right / wanted.of
    evidence = [peak_evidence(given, share, again) for given, again in zip(answers, copied, strict=True)]
    order = sorted(range(len(answers)), key=lambda number: -evidence[number][1])
    verdicts: list[bool | None] = [above >= log(1.0 / alpha) or None for above, _ in evidence]
    for called, number in enumerate(order):
        if evidence[number][1] < log((len(answers) - called) / alpha):
            break
        verdicts[number] = False
    return verdicts


def peak_evidence(
    given: Sequence[int], share: float, copied: Sequence[bool] | None = None
) -> tuple[float, float]:
    """Return the highest log e-values so far that a chance is above `share`, and that it is below.

    A lost answer is taken for what speaks against either. One that may be a copy of an earlier one counts
    only on the side that it speaks against: a cache's says nothing new.

    Each is the likelihood of a uniform mixture over that side to the likelihood at `share`: for a chance on
    the other side its mean is at most 1, so that it ever reaches 1/α with probability at most α.

    Examples
    --------
    >>> above, below = peak_evidence([1] * 30, 0.8)
    >>> above > log(20), below > 0.5
    (True, False)
    """
    answers = np.asarray(given)
    again = np.zeros(answers.size, dtype=bool) if copied is None else np.asarray(copied, dtype=bool)
    for_above = answers[~again | (answers != 1)]
    for_below = answers[~again | (answers != 0)]
    above = _peak(for_above == 1, share, betaincc, 1.0 - share)
    return above, _peak(for_below != 0, share, betainc, share)


def _peak(given: Bools, share: float, inside: Callable[..., Floats], width: float) -> float:
    """Return the highest log e-value for a side of `share`, whose `width` is known, from right answers."""
    right = np.concatenate([[0.0], np.cumsum(given)])
    wrong = np.arange(right.size) - right
    base: Floats = betaln(right + 1.0, wrong + 1.0) - right * log(share) - wrong * np.log1p(-share)
    of_side = np.maximum(inside(right + 1.0, wrong + 1.0, share), 1e-300)
    return float((base + np.log(of_side) - log(width)).max())
