"""The noise of a model some of whose answers may be copies of earlier ones.

An answer that is the same text as an earlier one is a cache's, then it says nothing new, or a sure model's,
then it is an ordinary draw. The mean of the answers is unbiased under both readings. Under the first, the
mean of n answers of which groups of m_j are copies of one another has the variance v Σ m_j²/n², as if only
n_eff = n²/Σ m_j² had been drawn. The sums of these are kept along a model's path, for a second reading of its
noise.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from scorio.arrays import Bools, Floats, Integers, Ints, floats
from scorio.sequential.evidence import ROUNDING
from scorio.sequential.moments import PathBlock


class _Terms(NamedTuple):
    """Sums over questions, of each of which n answers are as good as n_eff = n²/Σ m² draws."""

    seen: float = 0.0
    trials: float = 0.0  # n
    inverse: float = 0.0  # 1/n
    inverse_left: float = 0.0  # 1/n_eff
    trials_left: float = 0.0  # n_eff
    shared: float = 0.0  # Σ m²/n − 1


class _Left(NamedTuple):
    """A model's figures without its copies: the factors of w and u, R, and the factor of G."""

    noise: float = 1.0
    avg_noise: float = 1.0
    repeats: float = np.inf
    trust: float = 1.0


class _OfModel:
    """A model's answers to each question, and the factors by which copies change its figures step by step."""

    def __init__(self, questions: int) -> None:
        self.texts: dict[int, int] = {}  # of steps whose answer may be a copy, not absorbed yet
        self.left = np.zeros((len(_Left._fields), 64))
        self.steps = 0
        self._groups: dict[tuple[int, int], int] = {}  # sizes, by question and text
        self._n = np.zeros(questions)
        self._excess = np.zeros(questions)  # Σ m² − n
        self._sums = np.array(_Terms())

    def load(self, answers: Floats, pairs: Floats) -> None:
        """Take in all answers to each question at once, and how many ordered pairs of them are equal."""
        self._n[:], self._excess[:] = answers, pairs
        self._sums[:] = sum(map(self._terms, range(answers.size)))
        self.left[:, 0] = self._now()

    def note(self, question: int, *, answered: bool) -> None:
        """Take in a step, with an answer to a question or without."""
        text = self.texts.pop(self.steps, None)
        if answered:
            self._sums -= self._terms(question)
            self._n[question] += 1.0
            if text is not None:
                size = self._groups.get((question, text), 1)
                self._groups[question, text] = size + 1
                self._excess[question] += 2.0 * size
            self._sums += self._terms(question)
        if self.steps == self.left.shape[1]:
            self.left = np.pad(self.left, ((0, 0), (0, self.steps)))
        self.left[:, self.steps] = self._now()
        self.steps += 1

    def _terms(self, question: int) -> Floats:
        n = float(self._n[question])
        excess = float(self._excess[question])
        if n == 0.0:
            return np.array(_Terms())
        inverse = (n + excess) / n**2
        return np.array(_Terms(1.0, n, 1.0 / n, inverse, 1.0 / inverse, excess / n))

    def _now(self) -> _Left:
        sums = _Terms(*self._sums.tolist())
        repeats = sums.trials - sums.seen
        if repeats == 0.0:
            return _Left(repeats=0.0)
        # Copies make the answers to a question look more alike than draws are.
        alike = max(repeats - sums.shared, ROUNDING) / repeats
        wider = sums.inverse_left / sums.inverse
        repeats_left = max(sums.trials_left - sums.seen, 0.0)
        return _Left(wider / alike, wider, repeats_left, sums.trials_left / sums.trials)


@dataclass(slots=True)
class Copies:
    """What copies leave of the answers of the models that may have any.

    Examples
    --------
    Of four answers to a question three are one text: 16/10 answers are left, so .6 repeats.

    >>> copies = Copies(questions=2)
    >>> for step in (2, 3):
    ...     copies.doubt(0, step, text=5)
    >>> copies.absorb(0, np.zeros(4, dtype=int), np.ones(4, dtype=int))
    >>> copies.left(0, 3, 4)[2].round(3).tolist()
    [0.6]
    """

    questions: int
    marked: Bools | None = None  # steps whose answer may be a copy, by model; None while there is none
    _models: dict[int, _OfModel] = field(default_factory=dict)

    def mark(self, model: int, step: int, shape: tuple[int, ...]) -> None:
        """Mark a step of a model, among so many models and steps."""
        if self.marked is None:
            self.marked = np.zeros(shape, dtype=np.bool_)
        self.marked[model, step] = True

    def reserve(self, steps: int) -> None:
        """Have room for marks of so many steps."""
        if self.marked is not None:
            self.marked = np.pad(self.marked, ((0, 0), (0, steps - self.marked.shape[1])))

    def doubt(self, model: int, step: int, text: int) -> None:
        """Note that the answer of a model at a step may be a copy: an earlier one has the same text."""
        if model not in self._models:
            self._models[model] = _OfModel(self.questions)
        self._models[model].texts[step] = text

    def load(self, model: int, answers: ArrayLike, pairs: ArrayLike) -> None:
        """Take in all answers of a model that gets no further ones.

        Parameters
        ----------
        model : int
            The model.
        answers : array_like, shape (M,)
            Its answers to each question.
        pairs : array_like, shape (M,)
            Σ m² − n of each: ordered pairs of answers that may be copies of one another.
        """
        self._models[model] = _OfModel(self.questions)
        self._models[model].load(floats(answers), floats(pairs))

    @property
    def models(self) -> list[int]:
        """The models with answers that may be copies."""
        return list(self._models)

    def absorbed(self, model: int) -> int:
        """Return how many steps of a model were absorbed."""
        return self._models[model].steps

    def absorb(self, model: int, questions: Ints, categories: Integers) -> None:
        """Take in a model's next steps: the question of each, and the category, below 0 without an answer."""
        for question, category in zip(questions.tolist(), categories.tolist(), strict=True):
            self._models[model].note(question, answered=category >= 0)

    def left(self, model: int, start: int, stop: int) -> Floats:
        """Return what copies change in a model's figures after each step ``start .. stop-1``.

        The four rows are factors of w and of u, the largest R, and a factor of G. A model whose answers were
        loaded at once, or that has no copies, has one column.
        """
        if model not in self._models:
            return np.array(_Left())[:, None]
        return self._models[model].left[:, start:stop]

    def reading(self, path: PathBlock, models: Integers, steps: list[slice]) -> PathBlock:
        """Return a path of some models, over these steps of each, read as if what may be a copy were one."""
        factors = np.ones((3, *path.w.shape))
        repeats = path.r.copy()
        for row, (model, span) in enumerate(zip(models.tolist(), steps, strict=True)):
            left = self.left(model, span.start, span.stop)
            factors[:, row] = left[[0, 1, 3]]
            repeats[row] = np.minimum(left[2], path.r[row])
        noise, avg_noise, trust = factors
        return replace(path, w=path.w * noise, u=path.u * avg_noise, g=path.g * trust, r=repeats)
