"""What discarded draws mean for the verdicts of a run."""

from collections.abc import Iterator

from adaptive_eval.core.board import Comparison
from adaptive_eval.core.discard_words import causes_words
from adaptive_eval.core.model_states import ModelStates
from adaptive_eval.core.spec import SessionSpec
from adaptive_eval.errors import Coded


def discards_of(spec: SessionSpec, states: ModelStates) -> dict[str, dict[str, int]]:
    """Return how many draws of each model were given up, by cause."""
    found = {}
    for model, causes in zip(spec.models, states.causes, strict=True):
        if causes:
            found[model.name] = {str(cause): number for cause, number in causes.items()}
    return found


def discard_warnings(comparison: Comparison, states: ModelStates) -> Iterator[Coded]:
    """Say of each model how many trials another draw than the first has answered, and what that does."""
    spec = comparison.spec
    slack = spec.scale[1] * comparison.answers.scores().slack[:, 0]
    for row, model in enumerate(spec.models):
        causes = causes_words(states.causes[row])
        if lost := states.discarded[row]:
            yield Coded(
                "warning/discarded",
                f"{model.name}: {_trials(lost)} answered by a later draw ({causes}). "
                "What makes an answer late may also make it wrong, so verdicts count each as anything from 0 "
                f"to 1; lost answers can move the score by up to {slack[row]:.3f}",
            )
        if kept := states.redrawn[row]:
            yield Coded(
                "warning/redrawn",
                f"{model.name}: {_trials(kept)} answered by another draw than the first ({causes}), and "
                "verdicts rest on it: the config says that this does not depend on the answer (on.discarded)",
            )


def _trials(number: int) -> str:
    return "1 trial was" if number == 1 else f"{number:,} trials were"
