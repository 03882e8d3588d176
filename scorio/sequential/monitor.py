"""Results while outcomes arrive one by one: for a loop that is not adaptive-eval's."""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from scorio._arguments import credibility, one_of, whole
from scorio.sequential._recorded import Order, Range, ScoreScale, counted, sequence_of
from scorio.sequential.boards import Board
from scorio.sequential.cells import Cells
from scorio.sequential.comparison import ModelScore, ScoreCourse
from scorio.sequential.contrasts import Target
from scorio.sequential.moments import Mark
from scorio.sequential.rules import Anytime
from scorio.sequential.standings import Settings, Standings, standings
from scorio.sequential.trial_sequence import TrialSequence

ROOM = 2**15
"""Different numbers that a monitor has room for; the room is doubled where more come."""

Outcome: TypeAlias = "float | bool | None"
"""0 or 1, a category, or a number; None for a trial that stays without an answer."""


class _Intake:
    """What outcomes are worth: categories, or numbers in a range, each a category from its first time on."""

    def __init__(self, weights: ArrayLike | None, limits: Range, missing: float | None) -> None:
        if weights is not None and limits is not None:
            raise ValueError("range must be None with weights: categories have weights, scores a range")
        if limits is None:
            self.scale = ScoreScale.of_weights(weights)
        else:
            self.scale = replace(ScoreScale.of_range(limits), scores=np.zeros(ROOM))
        self._missing = missing
        self._known: dict[float, int] = {}

    def category(self, outcome: Outcome, cells: Cells) -> int:
        """Return the category of an outcome, or the mark of one that stays without an answer."""
        if outcome is None or self._marks_missing(outcome):
            return Mark.MISSING
        if self.scale.numbers:
            return self._of_number(outcome, cells)
        categories = range(self.scale.scores.size)
        if outcome not in categories:
            raise ValueError(
                f"outcome must be None or a category in 0..{categories[-1]}; got {outcome!r}. "
                "Scores that are numbers need range=(low, high)"
            )
        return int(outcome)

    def _marks_missing(self, outcome: Any) -> bool:
        if self._missing is None:
            return False
        both_nan = outcome != outcome and self._missing != self._missing
        return both_nan or outcome == self._missing

    def _of_number(self, outcome: Any, cells: Cells) -> int:
        low, high = self.scale.ends
        if isinstance(outcome, (Real, np.bool_)):
            number = float(outcome)
        else:
            number = low - 1.0
        if not low <= number <= high:
            nan = ""
            if number != number:
                nan = ". NaN that marks trials without an answer needs missing=np.nan"
            raise ValueError(
                f"outcome must be None or a number between {self.scale.limits}; got {outcome!r}{nan}"
            )
        if number not in self._known:
            self._known[number] = len(self._known)
            cells.scale.set_score(self._known[number], float(self.scale.unit(number)))
        return self._known[number]


class _Questions:
    """The questions that outcomes answer, and the order in which their trials count."""

    def __init__(self, questions: int | Sequence[Hashable], order: Order) -> None:
        ids = range(whole("questions", questions)) if isinstance(questions, (int, np.integer)) else questions
        self.ids = tuple(ids)
        self._index = {name: number for number, name in enumerate(self.ids)}
        if len(self._index) < len(self.ids) or not self.ids:
            raise ValueError("questions must be different ids, at least one")
        self.sequence = sequence_of(order, len(self.ids))

    def number(self, question: Hashable) -> int:
        """Return the number of a question."""
        if question not in self._index:
            raise ValueError(f"question must be one of the {len(self.ids)} given; got {question!r}")
        return self._index[question]

    def step(self, question: int, repeat: int) -> int:
        """Return the index in the trial sequence of a question's trial number `repeat`."""
        stop = (repeat + 1) * self.sequence.questions + self.sequence.questions
        return int(self.sequence.steps_of(question, stop)[repeat])


class Monitor:
    """Compare models while their outcomes arrive, with an error rate that holds after every one.

    Ask :meth:`next` which question a model should answer, and hand its outcome to :meth:`update`. Outcomes
    may arrive in any order: a model's outcomes count along one shared random order of the questions, so that
    which of them arrive first decides nothing. :class:`ScoreMonitor` follows one model's own score.

    Parameters
    ----------
    models : sequence of str
        Names of at least two models.
    questions : int or sequence
        Number of questions M, or their ids.
    confidence, family, equivalence, target, clusters, order, weights
        As in :func:`scorio.sequential.board`.
    range : (float, float), optional
        The least and the greatest score that is possible, for outcomes that are numbers; by default outcomes
        are 0 and 1, or categories with `weights`.
    missing : float, optional
        Outcome that marks a trial that stays without an answer, such as NaN; None always does.

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
        range: Range = None,
        missing: float | None = None,
    ) -> None:
        self.names = tuple(map(str, models))
        if len(self.names) < 2 or len(set(self.names)) < len(self.names):
            raise ValueError(
                f"models must be at least two different names; got {list(models)}. "
                "ScoreMonitor follows one model"
            )
        self._intake, self._questions = _Intake(weights, range, missing), _Questions(questions, order)
        scale = self._intake.scale
        sequence = self._questions.sequence
        reading = counted(sequence.questions, "question")
        self._settings = Settings(self.names, scale, confidence, family, equivalence, reading)
        rule = Anytime(1.0 - credibility(confidence), scale.margin(equivalence))
        number = len(self.names)
        self._board = Board.of_pairs(
            sequence, number, rule, family, scale.scores, target, clusters, numbers=scale.numbers
        )
        self._counted = np.zeros((number, sequence.questions), dtype=np.int64)
        self._asked = [0] * number

    def next(self, model: str) -> Any:
        """Return the question that `model` should answer next; each call moves on by one."""
        row = self._row(model)
        self._asked[row] = _next_step(self._board, row, self._asked[row]) + 1
        return self._questions.ids[self._questions.sequence.at(self._asked[row] - 1)]

    def update(self, model: str, question: Hashable, outcome: Outcome) -> Standings:
        """Add one outcome and return the results.

        Parameters
        ----------
        model : str
            Name of the model.
        question : hashable
            Id (or number) of the question.
        outcome : int, bool, float or None
            0 or 1, a category with `weights`, or a number in `range`; None for a trial that stays without an
            answer.

        Raises
        ------
        ValueError
            If the model or question is unknown, or the outcome is no category or no number in the range.
        """
        row = self._row(model)
        number = self._questions.number(question)
        category = self._intake.category(outcome, self._board.answers.cells[0])
        step = self._questions.step(number, int(self._counted[row, number]))
        self._board.tell(row, step, category)
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
        return tuple(int((row[complete:] != Mark.NOT_YET).sum()) for complete, row in ends)

    def _row(self, model: str) -> int:
        one_of("model", model, self.names)
        return self.names.index(model)


def _next_step(board: Board, row: int, step: int) -> int:
    """Return the first step from `step` on whose outcome is not there yet."""
    while board.answers.category(row, step) is not None:
        step += 1
    return step


class ScoreMonitor:
    """Follow one model's mean score while its outcomes arrive, with an interval that holds after every one.

    Outcomes are a stream of trials in their order, of a population of questions, as when each request of
    users is judged; or trials of a given set of `questions`, of which :meth:`next` says which to ask.

    Parameters
    ----------
    questions : int or sequence, optional
        Number of questions M, or their ids; by default outcomes are a stream.
    against, confidence, target, order, weights
        As in :func:`scorio.sequential.score`. A stream has the target 'population' and its own order.
    range, missing
        As in :class:`Monitor`.
    name : str, optional
        Name of the model, for printing.

    Raises
    ------
    ValueError
        If an argument is malformed; the message names it and the value.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> monitor = ScoreMonitor(against=0.5)
    >>> while monitor.state.verdict == "open":
    ...     _ = monitor.update(rng.random() < 0.8)
    >>> monitor.state.verdict, monitor.state.trials
    ('above', 37)

    Numbers between 1 and 5, one of which is lost:

    >>> monitor = ScoreMonitor(range=(1, 5), missing=np.nan)
    >>> for stars in [4, 5, 3.5, np.nan, 4, 4, 5, 4.5, 3, 4, 4, 5]:
    ...     state = monitor.update(stars)
    >>> round(state.score, 3), state.reading
    (4.182, 'a stream of 12 trials in their order, of a population of questions')
    """

    def __init__(
        self,
        questions: int | Sequence[Hashable] | None = None,
        *,
        against: float | None = None,
        confidence: float = 0.95,
        target: Target = "benchmark",
        order: Order = 0,
        weights: ArrayLike | None = None,
        range: Range = None,
        missing: float | None = None,
        name: str | None = None,
    ) -> None:
        self._intake = _Intake(weights, range, missing)
        self._against = against
        self._confidence = confidence
        self._name, self._asked = name, 0
        if questions is None:
            self._questions = None
        else:
            self._questions = _Questions(questions, order)
        if self._questions is None:
            self._course = self._stream(1)
        else:
            sequence = self._questions.sequence
            self._course = ScoreCourse(sequence, self._intake.scale, target, against, confidence)
            self._counted = np.zeros(sequence.questions, dtype=np.int64)

    def _stream(self, trials: int) -> ScoreCourse:
        """Return the course of a stream of so many trials at most."""
        sequence = TrialSequence(np.arange(trials), early_repeats=False)
        return ScoreCourse(sequence, self._intake.scale, "population", self._against, self._confidence)

    def next(self) -> Any:
        """Return the question to ask next, of a stream its number; each call moves on by one."""
        self._asked = _next_step(self._course.board, 0, self._asked) + 1
        if self._questions is None:
            return self._asked - 1
        return self._questions.ids[self._questions.sequence.at(self._asked - 1)]

    def update(self, outcome: Outcome, question: Hashable = None) -> ModelScore:
        """Add one outcome and return the results.

        Parameters
        ----------
        outcome : int, bool, float or None
            As in :meth:`Monitor.update`.
        question : hashable, optional
            Id (or number) of the question; None for a stream.

        Raises
        ------
        ValueError
            If the question is unknown, or the outcome is no category or no number in the range.
        """
        if self._questions is None:
            if question is not None:
                raise ValueError(
                    f"question must be None without questions: a stream has none; got {question!r}"
                )
            self._make_room()
            step = self._course.board.answers.complete[0]
            category = self._category(outcome)
        else:
            number = self._questions.number(question)
            category = self._category(outcome)
            step = self._questions.step(number, int(self._counted[number]))
            self._counted[number] += 1
        self._course.board.answers.add(0, step, category)
        self._course.update()
        return self.state

    def _category(self, outcome: Outcome) -> int:
        return self._intake.category(outcome, self._course.board.answers.cells[0])

    def _make_room(self) -> None:
        """Read a stream again with twice the room if it is full."""
        answers = self._course.board.answers
        made = answers.complete[0]
        if made < answers.cells[0].sequence.questions:
            return
        self._intake.scale = replace(self._intake.scale, scores=answers.cells[0].scale.scores)
        self._course = self._stream(2 * made)
        self._course.board.answers.extend(answers.answers[:, :made].astype(np.int64))
        self._course.update()

    @property
    def state(self) -> ModelScore:
        """The present results."""
        trials = self._course.board.answers.complete[0]
        reading = f"a stream of {trials} trials in their order, of a population of questions"
        if self._questions is not None:
            reading = counted(len(self._questions.ids), "question")
        return self._course.score(self._name, reading)
