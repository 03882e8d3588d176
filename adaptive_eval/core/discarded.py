"""What discarded draws, and other lost answers, mean for the verdicts of a run, also in words."""

from collections import Counter
from collections.abc import Container, Iterator, Mapping

import numpy as np

from adaptive_eval.core.board import SessionAnswers, SessionContrasts
from adaptive_eval.core.budget import Account
from adaptive_eval.core.forecast import HORIZON_PASSES
from adaptive_eval.core.model_states import ModelStates
from adaptive_eval.core.results import Results
from adaptive_eval.core.spec import SessionSpec
from adaptive_eval.errors import Coded
from adaptive_eval.trial import DiscardCause
from scorio.arrays import Bools, Floats
from scorio.sequential.parts import Mark

PARTS = 4
"""Parts of a model's trials: what is lost in each of them is lost all along, and no burst."""
LEAST = 16.0
"""Times the trials until now for which a run is foreseen at least, as its budget may be raised."""


def slack_left(slack: Floats, still: Floats, growth: Floats) -> Floats:
    """Return what lost answers will weigh after `growth` times the trials.

    Of the rate at which answers were lost until now, the share `still` continues; the rest is diluted.

    Examples
    --------
    >>> slack_left(np.array([0.3, 0.3]), np.array([0.0, 1.0]), np.array([29.0, 29.0])).round(3).tolist()
    [0.01, 0.3]
    """
    return slack * (still + (1.0 - still) / growth)


def lost_all_along(lost: Bools) -> float:
    """Return the part of the rate of losses that was there all along: that of the best part of the trials.

    Examples
    --------
    >>> steady, burst = np.arange(100) % 10 == 0, np.arange(100) < 30
    >>> round(lost_all_along(steady), 2), lost_all_along(burst), lost_all_along(burst[::-1])
    (0.8, 0.0, 0.0)
    """
    rate = 0.0
    if lost.size >= PARTS:
        rate = lost.mean()
    if rate == 0.0:
        return 0.0
    least = min(part.mean() for part in np.array_split(lost, PARTS))
    return float(least / rate)


def open_for_good(comparison: SessionContrasts, account: Account) -> Bools:
    """Return the needed contrasts that lost answers leave open whatever the run may still ask."""
    goal, board = comparison.contrasts, comparison.answers
    progress = np.maximum(comparison.fold.progress, 1)
    further = _further(account) / max(len(comparison.members), 1)
    passes = comparison.spec.stopping.max_passes or HORIZON_PASSES
    growth = np.minimum(1.0 + further / progress, passes * comparison.spec.questions / progress)
    growth = np.maximum(growth, LEAST)
    slack = np.append(board.scores().slack[:, 0], 0.0)  # the last one is no model, as second may be
    still = np.array([*map(lost_all_along, _lost(board)), *np.ones(len(comparison.spec.references)), 0.0])
    both = slack[goal.first] + slack[goal.second]
    going_on = (slack * still)[goal.first] + (slack * still)[goal.second]
    share = np.divide(going_on, both, out=np.ones_like(both), where=both > 0.0)
    return comparison.undecidable(slack_left(comparison.latest.slack, share, growth), growth)


def _lost(board: SessionAnswers) -> Iterator[Bools]:
    """Yield which of the trials of each model are lost, in their order."""
    for model in range(len(board.spec.models)):
        yield np.isin(board.answers[model, : board.progress[model]], (Mark.MISSING, Mark.DROPPED))


def _further(account: Account) -> float:
    """Return how many trials an account still allows at what they cost; infinite without a limit."""
    further = np.inf
    for line in account.lines():
        used = line.spent - line.presumed
        if line.limit is not None and used > 0.0:
            further = min(further, (line.limit - used) / used * account.trials)
    return max(further, 0.0)


CAUSE_WORDS: Mapping[str, str] = {
    "timeout": "took longer than the timeout",
    "server": "failed at the server after it may have begun",
    "connection": "lost with their connection",
    "killed": "lost with the process or cancelled",
}
"""What each cause is, in words."""


def causes_words(causes: Mapping[DiscardCause, int]) -> str:
    """Return the causes with their numbers, the most frequent first.

    Examples
    --------
    >>> causes_words({"connection": 2, "timeout": 7})
    '7 took longer than the timeout, 2 lost with their connection'
    """
    ordered = Counter(causes).most_common()
    return ", ".join(f"{number:,} {CAUSE_WORDS[cause]}" for cause, number in ordered)


def redrawn_words(trials: int, causes: Mapping[DiscardCause, int] | None = None) -> str:
    """Return what verdicts rest on where another draw than the first counts in so many trials.

    Examples
    --------
    >>> print(redrawn_words(1, {"killed": 1})[:57])
    verdicts rest on the config's word (on.discarded) that wh
    """
    those = "1 trial was"
    if trials != 1:
        those = f"{trials:,} trials were"
    why = ""
    if causes:
        why = f" ({causes_words(causes)})"
    return (
        "verdicts rest on the config's word (on.discarded) that what was lost does not depend on the answer: "
        f"{those} answered by another draw than the first{why}"
    )


def rest_on_words(results: Results) -> str:
    """Return in a sentence what verdicts rest on if draws other than the first count; else nothing."""
    redrawn = sum(line.redrawn_trials for line in results.models)
    if not redrawn:
        return ""
    words = redrawn_words(redrawn)
    return f"{words[0].upper()}{words[1:]}."


def discards_of(spec: SessionSpec, states: ModelStates) -> dict[str, dict[str, int]]:
    """Return how many draws of lost trials of each model were given up, by cause."""
    found = {}
    for model, causes in zip(spec.models, states.causes, strict=True):
        if causes:
            found[model.name] = {str(cause): number for cause, number in causes.items()}
    return found


def discard_warnings(
    comparison: SessionContrasts, states: ModelStates, names: Container[str] | None = None
) -> Iterator[Coded]:
    """Say of each model, or of `names`, how many trials a later draw has answered, and what that does."""
    spec = comparison.spec
    slack = spec.scale[1] * comparison.answers.scores().slack[:, 0]
    for row, model in enumerate(spec.models):
        if names is not None and model.name not in names:
            continue
        if lost := states.discarded[row]:
            causes = causes_words(states.causes[row])
            yield Coded(
                "warning/discarded",
                f"{model.name}: {_trials(lost)} answered by a later draw ({causes}). "
                "What makes an answer late may also make it wrong, so verdicts count each as anything from 0 "
                f"to 1; lost answers can move the score by up to {slack[row]:.3f}",
            )
        if kept := states.redrawn[row]:
            words = redrawn_words(kept, states.redrawn_causes[row])
            yield Coded("warning/redrawn", f"{model.name}: {words}")


def _trials(number: int) -> str:
    if number == 1:
        return "1 trial was"
    return f"{number:,} trials were"
