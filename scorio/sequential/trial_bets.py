"""Bets on single trials, each on by how much its score exceeds a number, and what is predicted beyond it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from scorio.arrays import Bools, Floats, Ints
from scorio.sequential.evidence import MIN_TRIALS

MOST: Final = 0.99
"""No bet risks more than this share of its stake."""
LEAST_LEFT: Final = 0.05
"""Share of the variance θ₀(1 − θ₀) that no prediction takes away."""

Predict = Callable[[float], Floats]
"""From a number to by how much each question is predicted to exceed it, with a weighted mean of 0."""


def worst_lead(values: Floats, sizes: Floats) -> Floats:
    """Return by how much the worst score, 0 or 1, exceeds the number of a contrast, for each of its bets."""
    return np.where(sizes > 0.0, -values[:, None], 1.0 - values[:, None])


class TrialBets:
    """Running bets on the trials of models, each against a number.

    Parameters
    ----------
    values : ndarray of float, shape (P,)
        The number θ₀ of each contrast.
    sizes : ndarray of float, shape (P, sizes)
        The differences that are bet on.
    weight : ndarray of float, shape (questions,)
        What a trial of each question weighs.
    learns : bool
        Whether the variance is learned from earlier trials.
    predict : callable, optional
        What is predicted of the questions; by default nothing.

    Attributes
    ----------
    won : ndarray of float, shape (P, sizes)
        Log winnings of each bet.
    """

    def __init__(
        self, values: Floats, sizes: Floats, weight: Floats, *, learns: bool, predict: Predict | None = None
    ) -> None:
        self.won = np.zeros_like(sizes)
        self._values = values
        self._sizes = sizes
        self._weight = weight
        self._learns = learns
        numbers, self._place = np.unique(values, return_inverse=True)
        self._predicted = np.zeros((numbers.size, weight.size))
        if predict is not None:
            for row, number in enumerate(numbers.tolist()):
                self._predicted[row] = predict(number)
        explained = (weight * self._predicted**2).mean(axis=1)[self._place]
        largest = values * (1.0 - values)
        self._variance = np.maximum(largest - explained, LEAST_LEFT * largest)
        fall = (weight * (self._predicted + numbers[:, None])).max(axis=1)
        rise = (weight * (1.0 - self._predicted - numbers[:, None])).max(axis=1)
        self._least = -MOST / rise[self._place]
        self._most = MOST / fall[self._place]
        self._squares = np.zeros(values.size)
        self._counted = np.zeros(values.size)

    def read(self, rows: Ints, lead: Floats, lost: Bools, question: Ints, counted: Bools) -> Floats:
        """Take trials, and return the log winnings of each bet after each, shape (p, steps, sizes).

        Parameters
        ----------
        rows : ndarray of int, shape (p,)
            The contrasts.
        lead : ndarray of float, shape (p, steps)
            By how much scores exceed the number.
        lost : ndarray of bool, shape (p, steps)
            Trials that count against each bet as much as any score could.
        question : ndarray of int, shape (steps,)
            The question of each trial.
        counted : ndarray of bool, shape (steps,)
            Trials that are bet on.
        """
        weight = self._weight[question]
        predicted = self._predicted[self._place[rows, None], question]
        beyond = np.where(counted, weight * (lead - predicted), 0.0)
        bets = self._bets(rows, beyond, counted)
        risk = beyond[:, :, None]
        lost = lost & counted
        if lost.any():
            worst = worst_lead(self._values[rows], self._sizes[rows])[:, None] - predicted[:, :, None]
            risk = np.where(lost[:, :, None], weight[:, None] * worst, risk)
        won = np.concatenate([self.won[rows, None], np.log1p(bets * risk)], axis=1)
        won = np.cumsum(won, axis=1)[:, 1:]
        self.won[rows] = won[:, -1]
        return won

    def _bets(self, rows: Ints, beyond: Floats, counted: Bools) -> Floats:
        """Return λ for each difference at each step, from what earlier steps have shown of the variance."""
        variance = self._variance[rows, None]
        if self._learns:
            known = np.concatenate([self._squares[rows, None], beyond**2], axis=1).cumsum(axis=1)
            number = self._counted[rows, None] + np.concatenate([[0], np.cumsum(counted)])
            self._squares[rows], self._counted[rows] = known[:, -1], number[:, -1]
            # Until calls may come, the largest variance counts for more than what was seen.
            variance = (MIN_TRIALS * variance + known[:, :-1]) / (MIN_TRIALS + number[:, :-1])
        least, most = self._least[rows, None, None], self._most[rows, None, None]
        return np.asarray(np.clip(self._sizes[rows, None] / variance[:, :, None], least, most))
