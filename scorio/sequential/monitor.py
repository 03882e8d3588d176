"""A comparison that takes outcomes one by one: for a loop that is not adaptive-eval's."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from scorio._arguments import credibility, one_of, whole
from scorio.sequential._recorded import Order, Scale, counted, sequence_of
from scorio.sequential.boards import Board
from scorio.sequential.contrasts import Target
from scorio.sequential.moments import MISSING, NOT_YET
from scorio.sequential.rules import Anytime
from scorio.sequential.standings import Settings, Standings, standings


class Monitor:
    """Compare models while their outcomes arrive, with an error rate that holds after every one.

    Ask :meth:`next` which question a model should answer, and hand its outcome to :meth:`update`. Outcomes
    may arrive in any order: a model's outcomes count along one shared random order of the questions, so that
    which of them arrive first decides nothing.

    Parameters
    ----------
    models : sequence of str
        Names of at least two models.
    questions : int or sequence
        Number of questions M, or their ids.
    confidence, family, equivalence, target, clusters, order, weights
        As in :func:`scorio.sequential.board`.

    Raises
    ------
    ValueError
        If an argument is malformed; the message names it and the value.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> monitor, chance = Monitor(["new", "old"], questions=100), {"new": 0.9, "old": 0.5}
    >>> while not monitor.state.done:
    ...     for model in monitor.state.active:
    ...         question = monitor.next(model)
    ...         _ = monitor.update(model, question, rng.random() < chance[model])
    >>> monitor.state.verdicts, monitor.state.trials
    ({'new > old': 32}, (32, 32))
    """

    def __init__(
        self,
        models: Sequence[str],
        questions: int | Sequence[Hashable],
        *,
        confidence: float = 0.95,
        family: str = "holm",
        equivalence: float | None = None,
        target: Target = "benchmark",
        clusters: ArrayLike | None = None,
        order: Order = 0,
        weights: ArrayLike | None = None,
    ) -> None:
        self.names = tuple(str(name) for name in models)
        if len(self.names) < 2 or len(set(self.names)) < len(self.names):
            raise ValueError(f"models must be at least two different names; got {list(models)}")
        ids = range(whole("questions", questions)) if isinstance(questions, (int, np.integer)) else questions
        self._ids = tuple(ids)
        self._index = {name: number for number, name in enumerate(self._ids)}
        if len(self._index) < len(self._ids) or not self._ids:
            raise ValueError("questions must be different ids, at least one")
        scale = Scale.of_weights(weights)
        self._categories = scale.scores.size
        reading = counted(len(self._ids), "question")
        self._settings = Settings(self.names, scale, confidence, family, equivalence, reading)
        self._sequence = sequence_of(order, len(self._ids))
        rule = Anytime(1.0 - credibility(confidence), scale.margin(equivalence))
        number = len(self.names)
        self._board = Board.of_pairs(self._sequence, number, rule, family, scale.scores, target, clusters)
        self._counted = np.zeros((len(self.names), len(self._ids)), dtype=np.int64)
        self._asked = [0] * len(self.names)

    def next(self, model: str) -> Any:
        """Return the question that `model` should answer next; each call moves on by one."""
        row = self._row(model)
        while self._board.answers.category(row, self._asked[row]) is not None:
            self._asked[row] += 1
        step = self._asked[row]
        self._asked[row] += 1
        return self._ids[self._sequence.at(step)]

    def update(self, model: str, question: Hashable, outcome: int | bool | None) -> Standings:
        """Add one outcome and return the results.

        Parameters
        ----------
        model : str
            Name of the model.
        question : hashable
            Id (or number) of the question.
        outcome : int, bool or None
            0 or 1, or a category with `weights`; None for a trial that stays without an answer.

        Raises
        ------
        ValueError
            If the model or question is unknown or the outcome is no category.
        """
        row = self._row(model)
        if question not in self._index:
            raise ValueError(f"question must be one of the {len(self._ids)} given; got {question!r}")
        if outcome is not None and outcome not in range(self._categories):
            raise ValueError(
                f"outcome must be None or a category in 0..{self._categories - 1}; got {outcome!r}"
            )
        category = MISSING if outcome is None else int(outcome)
        number = self._index[question]
        self._board.tell(row, self._step(number, int(self._counted[row, number])), category)
        self._counted[row, number] += 1
        return self.state

    @property
    def state(self) -> Standings:
        """The present results."""
        return standings(self._board, self._settings)

    @property
    def waiting(self) -> tuple[int, ...]:
        """Outcomes of each model that came before their turn and count once the gap is closed."""
        answers = self._board.answers
        ends = zip(answers.complete, answers.answers, strict=True)
        return tuple(int((row[complete:] != NOT_YET).sum()) for complete, row in ends)

    def _row(self, model: str) -> int:
        one_of("model", model, self.names)
        return self.names.index(model)

    def _step(self, question: int, repeat: int) -> int:
        """Return the index in the trial sequence of a question's trial number `repeat`."""
        stop = (repeat + 1) * self._sequence.questions + self._sequence.questions
        return int(self._sequence.steps_of(question, stop)[repeat])
