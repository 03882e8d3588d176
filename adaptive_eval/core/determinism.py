"""Models that answer a question the same every time: tested by asking again, then asked once a question.

A model that is said to be deterministic, by its config or by temperature 0, is asked the first few repeats of
its trial sequence like any other. Once they have all come out the same it is *known* to be: whatever its
sequence asks again counts as answered, and its answers have no noise. One repeat that differs ends that for
good. Both follow from the model's completed prefix, so arrival order and concurrency cannot matter.
"""

from dataclasses import dataclass, field

from adaptive_eval.core.spec import SessionSpec
from adaptive_eval.trial import FIXED
from scorio.sequential.parts import Mark, RunSequence

REPEATS = 5
"""Repeats that must come out the same before a model is known to be deterministic."""
SPOT_CHECK = 8
"""Of the early repeats of a large benchmark, one in so many is asked all the same."""
LARGE = 256
"""Questions from which on there are spot checks."""
READERS = ("anytime",)
"""Rules that can use a noise of 0; the others read single trials."""
COPY_READERS = (*READERS, FIXED)
"""Rules that take possible copies as answers: one look compares the means of questions alone."""

Answer = tuple[int, int]
"""Category and completion tokens: answers that differ in either are not the same."""


@dataclass
class _SteadyModel:
    """The answers of one model that is declared deterministic."""

    deterministic: bool = False
    varies: bool = False
    same: int = 0
    reviewed: int = 0
    answers: dict[tuple[int, int], Answer] = field(default_factory=dict)
    pending: dict[int, Answer] = field(default_factory=dict)


class Determinism:
    """The models known to be deterministic, and the index from which each is."""

    def __init__(self, spec: SessionSpec, run_sequence: RunSequence) -> None:
        readable = spec.stopping.rule in READERS
        self._models = {
            number: _SteadyModel()
            for number, model in enumerate(spec.models)
            if model.deterministic and readable
        }
        self.claimed = tuple(self._models)
        """Models that are said to be deterministic."""
        self._run_sequence = run_sequence
        self._spot_checks = run_sequence.questions >= LARGE
        self.paused = False
        """While a log is replayed nothing is filled in: the log may yet have an answer to it."""

    def is_deterministic(self, model: int) -> bool:
        """Return whether a model is known to be deterministic by now."""
        return model in self._models and self._models[model].deterministic

    def varies(self, model: int) -> bool:
        """Return whether a model was said to be deterministic and is not."""
        return model in self._models and self._models[model].varies

    def note(self, model: int, index: int, category: int, tokens: int) -> None:
        """Take in a trial, in any order."""
        if model in self._models and not self._models[model].varies:
            self._models[model].pending[index] = (category, tokens)

    def review(self, model: int, complete: int) -> int | None:
        """Follow a model's completed prefix; return the index at which its status has changed, if it has."""
        found = self._models[model]
        while found.reviewed < complete and not found.varies:
            index = found.reviewed
            found.reviewed += 1
            answer = found.pending.pop(index, None)
            if answer is None or answer[0] == Mark.MISSING:
                continue
            place = self._run_sequence.at(index, model)
            if place not in found.answers:  # the first turn, or its answer was lost
                found.answers[place] = answer
                continue
            before = found.answers[place]
            found.same += before == answer
            if before != answer:
                changed = found.deterministic
                found.varies = True
                found.deterministic = False
                found.answers, found.pending = {}, {}
                if changed:
                    return index + 1
                return None
            if found.same == REPEATS:
                found.deterministic = True
                return index + 1
        return None

    def needs_no_trial(self, model: int, index: int) -> bool:
        """Return whether the question of an index is known, and not to be checked."""
        if not self.is_deterministic(model):
            return False
        answers = self._models[model].answers
        task, question = self._run_sequence.at(index, model)
        if (task, question) not in answers or self._run_sequence.repeat(index, model) == 0:
            return False
        in_first_pass = len(answers) < self._run_sequence.questions
        return not (self._spot_checks and in_first_pass and question % SPOT_CHECK == 0)

    def next_index(self, model: int, index: int, *, waiting: bool) -> int | None:
        """Return the first index from `index` on that needs a trial; None if there is none for now.

        If none of what is laid out does, it is the index after that.
        """
        found = self._models.get(model)
        if found is None or found.varies:
            return index
        if self.done(model):
            return None
        end = self._run_sequence.laid_out(model)
        while index < end and self._run_sequence.repeat(index, model) > 0:
            if not found.deterministic:
                if waiting and self._repeats_before(index) >= REPEATS:
                    return None
                return index
            if self.paused or not self.needs_no_trial(model, index):
                if waiting:
                    return None
                return index
            index += 1
        return index

    def _repeats_before(self, index: int) -> int:
        places = zip(self._run_sequence.sequences, self._run_sequence.local(index), strict=True)
        return sum(sequence.questions_and_repeats(local)[1] for sequence, local in places)

    def done(self, model: int) -> bool:
        """Return whether a model is known and has answered every question."""
        return (
            self.is_deterministic(model) and len(self._models[model].answers) == self._run_sequence.questions
        )
