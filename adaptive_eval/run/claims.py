"""Claims about models, tested on the results of a run: they hold, fail, or are undecided."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from adaptive_eval.core.results import FIXED, ModelResult, Results
from adaptive_eval.errors import UsageError

if TYPE_CHECKING:
    from adaptive_eval.views.run_changes import Comparison


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim and its verdict.

    Parameters
    ----------
    holds : bool or None
        None when the trials so far cannot tell.
    text : str
        The verdict in words, with the interval behind it.
    """

    holds: bool | None
    text: str


def not_worse(results: Results, model: str, than: str, margin: float = 0.0) -> Claim:
    """Say whether a model is not worse than another by more than a margin.

    The anytime confidence sequence of the difference decides: it may be looked at whenever one likes.

    Parameters
    ----------
    results : Results
        Results of a run.
    model, than : str
        The model in question, and the one it is compared with.
    margin : float
        In score units, 0 or more.

    Raises
    ------
    UsageError
        If the run does not compare the two, or the margin is negative or as large as the range of scores.
    """
    lowest, highest = results.scale or (0.0, inf)
    if not 0.0 <= margin < highest - lowest:
        raise UsageError(f"margin is {margin!r}: give a difference of scores, 0 or more{_scale(results)}")
    low, high = _difference(results, model, than)
    words = f"{model} not worse than {than} by more than {margin:g} at {_percent(results)}"
    if low is None or high is None:
        return Claim(None, f"cannot tell: {words}: there are no trials of both yet")
    words += f": the difference lies in [{low:+.3f}, {high:+.3f}]"
    return _claim(words, low, high, -margin, "more trials, or a larger margin, would")


def at_least(results: Results, model: str, value: float) -> Claim:
    """Say whether a model's score is at least `value`, by the anytime confidence interval of its score.

    Parameters
    ----------
    results : Results
        Results of a run.
    model : str
        The model.
    value : float
        In score units.

    Raises
    ------
    UsageError
        If the run does not know the model, or the value is no score.
    """
    line = _line(results, model)
    lowest, highest = results.scale or (-inf, inf)
    if not (isfinite(value) and lowest <= value <= highest):
        raise UsageError(f"{model} is held against {value:g}: give a score{_scale(results)}")
    words = f"{model} scores at least {value:g} at {_percent(results)}"
    if line.score_low is None or line.score_high is None:
        return Claim(None, f"cannot tell: {words}: there are no trials yet")
    words += f": its score lies in [{line.score_low:.3f}, {line.score_high:.3f}]"
    return _claim(words, line.score_low, line.score_high, value, "more trials would")


def _claim(words: str, low: float, high: float, least: float, advice: str) -> Claim:
    """Say whether something known to lie between `low` and `high` is at least so much."""
    if low >= least:
        return Claim(True, words)
    if high < least:
        return Claim(False, f"not so: {words}")
    return Claim(None, f"cannot tell yet: {words}; {advice}")


def results_of(run: str | PathLike[str]) -> Results:
    """Return the results of the run in a directory, made again from its trials.

    Raises
    ------
    RunFileError
        If there is no run, or it has no results yet.
    """
    from adaptive_eval.build.replay import replay
    from adaptive_eval.store.reader import RunReader

    with RunReader(Path(run)) as reader:
        reader.require_undamaged()
        return replay(reader).results


def compare_runs(before: str | PathLike[str], after: str | PathLike[str]) -> Comparison:
    """Return which verdicts have changed between two runs, and by how much the scores differ.

    Raises
    ------
    RunFileError
        If there is no run in one of the directories.
    """
    from adaptive_eval.store.reader import RunReader
    from adaptive_eval.views.reading import summarise
    from adaptive_eval.views.run_changes import compare

    with RunReader(Path(before)) as one, RunReader(Path(after)) as two:
        return compare(summarise(one), summarise(two))


def _difference(results: Results, model: str, than: str) -> tuple[float | None, float | None]:
    """Return the confidence sequence of `model` minus `than`."""
    _line(results, model), _line(results, than)
    for pair in results.pairs:
        if (pair.first, pair.second) == (model, than):
            return pair.difference_low, pair.difference_high
        if (pair.first, pair.second) == (than, model):
            if pair.difference_low is None or pair.difference_high is None:
                return None, None
            return -pair.difference_high, -pair.difference_low
    raise UsageError(f"the goal of the run ({results.goal}) does not compare {model} with {than}")


def _scale(results: Results) -> str:
    if results.scale is None:
        return ""
    return "; scores of this run go from {:g} to {:g}".format(*results.scale)


def _percent(results: Results) -> str:
    by_look = ", if the number of answers was fixed before anybody looked" if results.rule == FIXED else ""
    return f"{round(100 * results.confidence, 6):g} %{by_look}"


def _line(results: Results, model: str) -> ModelResult:
    for line in results.models:
        if line.model == model:
            return line
    names = ", ".join(line.model for line in results.models)
    raise UsageError(f"there is no model {model!r}; there are {names}")
