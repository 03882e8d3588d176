"""What answers foresee of pairs: estimates once the trials in flight are complete, and what noise leaves."""

from __future__ import annotations

import numpy as np

from scorio.arrays import Floats, Ints, product
from scorio.sequential.answers import Answers
from scorio.sequential.cells import Cells
from scorio.sequential.contrasts import TRUST, contrast_variance
from scorio.sequential.evidence import FLOOR

_NONE = np.zeros(0, dtype=np.int64)


class Foresight:
    """Estimates of pairs of models when the trials issued so far are complete."""

    def __init__(self, answers: Answers, guard: float) -> None:
        self._answers, self._guard = answers, guard
        self.available = answers.target == "benchmark"
        """Whether it knows this kind of estimate."""

    def read(self, first: Ints, second: Ints, reach: Ints) -> tuple[Floats, Floats, Floats, Floats]:
        """Return differences and their variances, as far as answers are known and at the end.

        The variance is that between questions in a first pass, and that of the noise after it.

        Parameters
        ----------
        first, second : ndarray of int, shape (p,)
            The models of each pair.
        reach : ndarray of int, shape (p,)
            Trials issued of both.

        Returns
        -------
        difference, variance, at_reach : ndarray of float, shape (p,)
            In unit scores, and its square now and when the trials issued are complete.
        answers : ndarray of float, shape (p,)
            Answers of the model that has fewer.
        """
        difference, variance, at_reach = np.zeros((3, reach.size))
        answers = np.zeros(reach.size)
        for task, weight in enumerate(self._answers.weights):
            mean, now, share, fewer = self._task(task, first, second, reach)
            difference += weight * mean
            variance += weight**2 * now
            at_reach += weight**2 * now * share
            answers += fewer
        return difference, np.maximum(variance, FLOOR), np.maximum(at_reach, FLOOR), answers

    def least_share(self, now: int, steps: Ints) -> Floats:
        """Return the least share of a variance that may be left after so many steps more.

        It shrinks in proportion to the trials, as the rest of a first pass does, and with the part of the
        spread between questions that repeats replace.
        """
        share = now / (now + steps)
        run_sequence = self._answers.run_sequence
        for column, step in enumerate(steps.tolist()):
            local = run_sequence.local(now), run_sequence.local(now + step)
            for cells, before, after in zip(self._answers.cells, *local, strict=True):
                (seen, repeats), (seen_then, repeats_then) = map(
                    cells.sequence.questions_and_repeats, (before, after)
                )
                rest = cells.sequence.questions - seen
                left = 1.0
                if rest:
                    left = (cells.sequence.questions - seen_then) / rest
                share[column] *= max(left, 0.01) * ((TRUST + repeats) / (TRUST + repeats_then)) ** 2
        return share

    def without_noise(self, live: int, stored: int) -> tuple[float, float] | None:
        """Return the variance of a difference from stored results once its model has no noise any more.

        Also that of the noise that it has now; None while the model lacks a question of the stored results.
        """
        variance = 0.0
        moving = 0.0
        target = self._answers.target
        for weight, cells in zip(self._answers.weights, self._answers.cells, strict=True):
            asked = cells.counts[live].any(axis=1)
            there = cells.counts[stored].any(axis=1)
            if (there & ~asked).any():
                return None
            (score, noise, _) = cells.noise(live)
            (other, held, shown) = cells.noise(stored)
            latest = cells.latest()
            questions = np.array(there.sum(), dtype=np.float64)
            wider, avg_wider, left, share_left = cells.left_of(np.array([stored]))[:, 0]
            square = np.maximum(((score - other)[there] ** 2).sum() - noise[there].sum(), 0.0)
            remaining = (
                wider * held[there].sum() / questions,
                avg_wider * shown[there].sum() / questions,
                latest.g[stored, 0] * share_left,
                np.minimum(latest.r[stored, 0], left),
            )
            exact = cells.scale.binary and not latest.r[stored, 0]
            guard = 0.0 if exact else self._guard
            least = contrast_variance(square, guard, questions, len(there), remaining, target)
            variance += weight**2 * float(least)
            moving += weight**2 * float(noise[there].sum() / questions**2)
        return variance, moving

    def _task(self, task: int, first: Ints, second: Ints, reach: Ints) -> tuple[Floats, ...]:
        """Return difference, variance, its share that will be left, and the fewer answers, on one task."""
        answers = self._answers
        cells = self._answers.cells[task]
        total = cells.sequence.questions
        trials, score, square = self._by_question(task, cells)
        seen = (trials > 0).astype(np.float64)
        many = np.maximum(trials, 1.0)
        answered = np.maximum(trials.sum(axis=1), 1.0)
        mean = score / many
        spread = square.sum(axis=1) / answered - (score.sum(axis=1) / answered) ** 2
        repeats = np.maximum(answered - seen.sum(axis=1), 0.0)
        # The variance between answers to one question; without repeats, that between all answers.
        within = ((square - score * mean).sum(axis=1) + 2.0 * spread) / (repeats + 2.0)
        noises = seen * within[:, None] / many
        of_mean, of_square, of_noise = (product(value, seen.T) for value in (mean, mean**2, noises))
        both = np.maximum(product(seen, seen.T)[first, second], 1.0)
        of_both = product(mean, mean.T)[first, second]
        gap = of_square[first, second] + of_square[second, first] - 2.0 * of_both
        noise = of_noise[first, second] + of_noise[second, first]
        answered[len(answers.furthest) :] = np.inf  # of references nothing is awaited
        issued = np.maximum(reach * (total / answers.run_sequence.questions), 1.0)
        repeating = issued >= total
        fewer = np.minimum(answered[first], answered[second])
        trials_known = np.where(repeating, fewer, both)
        variance = np.where(repeating, noise, gap + self._guard) / both**2
        mean_difference = (of_mean[first, second] - of_mean[second, first]) / both
        return mean_difference, variance, np.minimum(trials_known / issued, 1.0), fewer

    def _by_question(self, task: int, cells: Cells) -> tuple[Floats, Floats, Floats]:
        """Return the answers of each model to each question: their number, Σx and Σx²; shape (L, M) each."""
        answers = self._answers
        counts = cells.counts.astype(np.float64)
        places, categories = [_NONE], [_NONE]
        for model, stop in enumerate(answers.furthest):
            start = int(answers.progress[model])
            if stop <= start:
                continue
            ahead = answers.answers[model, start:stop]
            here = ahead[answers.run_sequence.task(start, stop) == task]
            local = answers.run_sequence.local(start)[task]
            asked = cells.sequence.questions_of(np.array([model]), local, local + here.size)[0]
            places.append(model * counts.shape[1] + asked)
            categories.append(here)
        place = np.concatenate(places)
        category = np.concatenate(categories)
        known = category >= 0
        np.add.at(counts.reshape(-1, counts.shape[2]), place[known], cells.scale.shares[category[known]])
        return counts.sum(axis=2), counts @ cells.scale.levels, counts @ cells.scale.levels**2
