"""Cell moments: what each model's trials say about its score and about the noise of that score.

A *cell* is a (model, question) pair; its sufficient statistics are the category counts. :class:`Cells`
absorbs trials along the shared trial sequence and keeps, per model and step, the quantities that decide
pairs: the question's running mean before and after the step, and the within-question noise ``w`` (empirical
Bayes), ``u`` (uniform prior), ``G`` and ``R``. All are running sums, so a trial costs O(1), and blocks of
trials are absorbed with a fixed number of array operations.
"""

import numpy as np
from numpy.typing import ArrayLike

from scorio.arrays import Bools, Floats, Integers, Ints
from scorio.sequential.copies import Copies
from scorio.sequential.flips import Flips
from scorio.sequential.moments import (
    CategoryScale,
    FittedPriors,
    Mark,
    PathBlock,
    PathBuffer,
)
from scorio.sequential.rounds import Rounds, round_share
from scorio.sequential.trial_sequence import TrialSequence


class Cells:
    """Cell moments of all models on one task.

    Parameters
    ----------
    sequence : TrialSequence
        The task's trial sequence.
    scores : ndarray of float, shape (C + 1,)
        Score of each category in [0, 1], see :func:`unit_scores`.
    models : int
        Number of models L.
    repeat_weight : float
        What a repeated answer is worth as one: less if few questions are asked many times in a row.
    greedy : array_like of int
        Models asked at temperature 0: what their repeats leave possible is their noise, at least.
    level : float
        Chance that such a limit is too low at some time, for each of them.
    moments : bool
        Whether scores are numbers, so that the counts are those of :func:`shares`.

    Attributes
    ----------
    scale : CategoryScale
        What the categories are worth.
    counts : ndarray, shape (L, M, C + 1) or (L, M, 3)
        Category counts of every cell.
    progress : ndarray of int64, shape (L,)
        Steps of the sequence absorbed per model.
    categories : ndarray of int, the smallest that holds all, shape (L, capacity)
        The category at each absorbed step; :attr:`Mark.MISSING` if there was no answer.
    exact : ndarray of bool, shape (L,)
        Models whose answers have no noise from here on: w = u = 0, G = R = ∞.
    missing : ndarray of int64, shape (L,)
        Steps without an answer.

    Notes
    -----
    With A, m1, m2 the empirical-Bayes prior of a model (fitted to the moments of its question means and the
    pooled within-question variance), a = (A m1 + Σx)/(n + A), b = (A m2 + Σx²)/(n + A) and
    v = (b − a²)(n + A)/(n + A + 1) is the one-trial variance of a cell; w = mean v/n, G = Σ n v and
    R = Σ (n − 1). The prior is fitted again at every M-th step, whenever the number of questions with
    a second trial has doubled, and, before the first second trial, at steps that are powers of two.

    Sums are accumulated step by step, so that how trials are grouped into calls changes no bit of them.
    """

    def __init__(
        self,
        sequence: TrialSequence,
        scores: Floats,
        models: int,
        *,
        repeat_weight: float = 1.0,
        greedy: ArrayLike = (),
        level: float = 1.0,
        moments: bool = False,
    ) -> None:
        self.sequence = sequence
        self.scale = CategoryScale(scores, moments=moments)
        self.repeat_weight = repeat_weight
        shape = (models, sequence.questions, self.scale.levels.size)
        self.counts = np.zeros(shape, dtype=self.scale.shares.dtype)
        self.progress = np.zeros(models, dtype=np.int64)
        smallest = np.min_scalar_type(-1 - scores.size)
        self.categories = np.full((models, 64), Mark.MISSING, dtype=smallest)
        self._copies = Copies(sequence.questions)
        self.missing = np.zeros(models, dtype=np.int64)
        self._fit = FittedPriors(models, self.scale)
        self._sums = np.zeros((9, models))  # Σv/n, Σu, G, R, seen, Σȳ, Σȳ², and of lost trials
        self.lost = np.zeros((models, sequence.questions), dtype=np.int32)
        self._paid = np.zeros((2, models, sequence.questions))  # trials of known cost, and their cost
        self.exact = np.zeros(models, dtype=bool)
        flip_scores = None
        if moments:
            flip_scores = scores
        self._flips = Flips(models, sequence.questions, greedy, level, flip_scores)
        self._path = PathBuffer(models)
        self.rounds: Rounds | None = None
        if sequence.own_rounds:
            self.rounds = Rounds(sequence, self.scale, models)

    @property
    def models(self) -> int:
        """Number of models L."""
        return len(self.counts)

    @property
    def copied(self) -> Bools | None:
        """Steps whose answer may be a copy, shape (L, capacity); None while there is none (:meth:`doubt`)."""
        return self._copies.marked

    @property
    def asked(self) -> Ints:
        """Number of different questions that each model was asked so far, shape (L, 1)."""
        steps = self.progress.tolist()
        live = np.array(
            [[self.sequence.questions_and_repeats(number)[0]] for number in steps], dtype=np.int64
        )
        stored = (self.counts.any(axis=2) | (self.lost > 0)).sum(axis=1, keepdims=True)
        return np.asarray(np.maximum(live, stored))

    # ------------------------------------------------------------------ absorbing trials

    def absorb(self, models: Integers, categories: Integers, costs: Floats | None = None) -> None:
        """Absorb the next trials of some models at the same index.

        Parameters
        ----------
        models : ndarray of int, shape (I,)
            Models, each at most once, with equal :attr:`progress`.
        categories : ndarray of int, shape (I, K)
            Their categories at the next K steps; :attr:`Mark.MISSING` for a trial without an answer.
        costs : ndarray of float, shape (I, K), optional
            What these trials cost; 0 if it is not known.

        Raises
        ------
        ValueError
            If a category is out of range or the models are at different steps.
        """
        if categories.size == 0:
            return
        if categories.min() < Mark.DROPPED or categories.max() >= self.scale.scores.size:
            raise ValueError(f"categories must lie in -1..{self.scale.scores.size - 1}, got {categories}")
        start = int(self.progress[models[0]])
        if (self.progress[models] != start).any():
            raise ValueError("models absorbed together must be at the same step")
        stop = start + categories.shape[1]
        self._reserve(stop)
        self.categories[models, start:stop] = categories
        missing = (categories == Mark.MISSING) | (categories == Mark.DROPPED)
        self.missing[models] += missing.sum(axis=1)
        for begin, end in self.pieces(start, stop):
            part = categories[:, begin - start : end - start]
            if costs is not None:
                self._pay(models, begin, costs[:, begin - start : end - start])
            if self.rounds is None or end <= self.rounds.first:
                self._absorb_shared(models, begin, part)
            else:
                self._absorb_rounds(models, begin, part)
            if self.rounds is not None:
                self.rounds.reach(models, end, self.counts[models], self.lost[models], self.cost)
        self.progress[models] = stop
        if self.copied is not None:
            self._absorb_copies(models, stop)

    def doubt(self, model: int, step: int, text: int = 0) -> None:
        """Note, before a step is absorbed, that its answer may be a copy of one with the same `text`."""
        self._reserve(step + 1)
        self._copies.mark(model, step, self.categories.shape)
        self._copies.doubt(model, step, text)

    def _absorb_copies(self, models: Integers, stop: int) -> None:
        """Follow the models some of whose answers may be copies, from their first step on."""
        for model in set(models.tolist()) & set(self._copies.models):
            start = self._copies.absorbed(model)
            row = np.array([model])
            questions = self.sequence.questions_of(row, start, stop)[0]
            self._copies.absorb(model, questions, self.categories[model, start:stop])

    @property
    def doubtful(self) -> bool:
        """Whether any answer may be a copy."""
        return bool(self._copies.models)

    def without_copies(self, path: PathBlock, models: Integers, start: int, stop: int) -> PathBlock:
        """Return :meth:`path` of some models as if answers that may be copies were some."""
        read = self._copies.reading(path, models, [slice(start, stop)] * len(models))
        return self._flips.trusted(read, models)

    def left_of(self, references: Integers) -> Floats:
        """Return :meth:`scorio.sequential.copies.Copies.left` of models that were loaded, shape (4, I)."""
        return np.concatenate([self._copies.left(model, 0, 1) for model in references.tolist()], axis=1)

    def _pay(self, models: Integers, start: int, costs: Floats) -> None:
        at = models[:, None], self.sequence.questions_of(models, start, start + costs.shape[1])
        np.add.at(self._paid[0], at, costs > 0.0)
        np.add.at(self._paid[1], at, costs)

    def cost(self, models: Integers) -> Floats:
        """Return the mean cost of a trial of each question, shape (I, M); 1 for models without any cost.

        One more trial, at the mean of all questions, stands for what is not known.
        """
        trials, paid = self._paid[:, models]
        each = paid / np.maximum(trials, 1.0)
        known = (trials > 0.0).sum(axis=1, keepdims=True)
        mean = each.sum(axis=1, keepdims=True) / np.maximum(known, 1)
        return np.where(mean > 0.0, (paid + mean) / (trials + 1.0), 1.0)

    def pieces(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Cut steps where they cannot be taken at once: where a model's own rounds begin or are laid out."""
        if self.rounds is None:
            return [(start, stop)]
        return self.rounds.pieces(start, stop)

    def _absorb_shared(self, models: Integers, start: int, categories: Integers) -> None:
        """Absorb steps that ask all models the same."""
        stop = start + categories.shape[1]
        previous = self.sequence.previous(start, stop)
        step = start
        while step < stop:
            again = (previous[step - start :] >= step).nonzero()[0]
            end = stop
            if again.size:
                end = step + int(again[0])
            step += self._absorb_distinct(models, step, categories[:, step - start : end - start])

    def _absorb_rounds(self, models: Integers, start: int, categories: Integers) -> None:
        """Absorb steps of one round, in which each model has its own questions."""
        assert self.rounds is not None
        stop = start + categories.shape[1]
        sums = self.rounds.absorb(models, start, categories)
        questions = self.sequence.questions_of(models, start, stop)
        row, column = np.nonzero(categories >= 0)
        at = (models[row], questions[row, column])
        np.add.at(self.counts, at, self.scale.shares[categories[row, column]])
        row, column = np.nonzero(categories == Mark.MISSING)
        np.add.at(self.lost, (models[row], questions[row, column]), 1)
        seen = np.maximum(sums[4], 1.0)
        self._sums[:, models] = sums[:, :, -1]
        self._sums[:2, models] *= seen[:, -1]
        self._mark_exact(models, sums)
        self._path.keep(models, start, sums)

    def _absorb_distinct(self, models: Integers, start: int, categories: Integers) -> int:
        """Absorb steps that ask different questions, up to the next refit; return how many."""
        # No question occurs twice here, so every step finds its question as it was before the block, and all
        # steps are computed at once.
        stop = start + categories.shape[1]
        questions = self.sequence.question(start, stop)
        rows = models[:, None]
        counts = self.counts[rows, questions]
        n0 = np.rint(counts.sum(axis=2)).astype(np.int64)
        present = categories >= 0
        repeated = self._fit.repeated[rows] + (present & (n0 == 1)).cumsum(axis=1)
        length, refit = self._fit.until(models, start, repeated, self.sequence.questions)
        if length < categories.shape[1]:
            questions = questions[:length]
            categories = categories[:, :length]
            present = present[:, :length]
            counts = counts[:, :length]
            n0 = n0[:, :length]
            repeated = repeated[:, :length]
        self._fit.repeated[models] = repeated[:, -1]
        # Before and after the step, stacked: few calls on small arrays are what a live run pays for.
        n = np.empty((2, *n0.shape), dtype=np.int64)
        n[0], n[1] = n0, n0 + present
        if self.scale.zero_one:
            sx = sxx = np.empty(n.shape)
            sx[0], sx[1] = counts[:, :, 1], counts[:, :, 1] + (categories == 1)
        else:
            sx = np.empty(n.shape)
            sxx = np.empty(n.shape)
            sx[0], sxx[0] = counts @ self.scale.levels, counts @ self.scale.levels**2
            gain = self.scale.worth[categories]
            sx[1], sxx[1] = sx[0] + gain, sxx[0] + gain**2
        many = np.maximum(n, 1)
        y = sx / many
        v = self._fit.prior[rows].variance(n, sx, sxx)
        fresh = n0 == 0
        terms = np.empty((5, *n.shape))
        terms[0], terms[1], terms[2] = v / many, self.scale.avg_variance(n, sx, sxx), n * v
        terms[3], terms[4] = y, y * y
        terms[0, 0][fresh] = 0.0
        gained = terms[:, 1] - terms[:, 0]
        deltas = np.zeros((9, models.size, length + 1))
        deltas[:, :, 0] = self._sums[:, models]
        deltas[:3, :, 1:], deltas[5:7, :, 1:] = gained[:3], gained[3:]
        deltas[3, :, 1:], deltas[4, :, 1:] = ~fresh, fresh
        answered = present.all()
        if not answered:
            deltas[:, :, 1:][:, ~present] = 0.0
        if not answered or self.lost[models].any():
            deltas[7:, :, 1:] = self._lost_shares(rows, questions, categories == Mark.MISSING, n, y)
        path = deltas.cumsum(axis=2)[:, :, 1:]
        self._sums[:, models] = path[:, :, -1]
        self.counts[rows, questions] = counts + self.scale.shares[categories]
        if refit.size:
            self._refit(refit, self._seen_questions(start + length))
            path[:, :, -1] = self._sums[:, models]
        seen = np.maximum(path[4], 1.0)
        limits = self._flips.absorb(models, questions, categories, n[0], seen)
        means = np.where(n > 0, y, np.nan)
        values = np.concatenate([means, path[:2] / seen, path[2:]])
        self._flips.apply(models, values[2:], limits)
        self._mark_exact(models, values[2:])
        self._path.keep(models, start, values)
        return length

    def _lost_shares(
        self, rows: Integers, questions: Integers, lost: Bools, n: Integers, y: Floats
    ) -> Floats:
        """Return the changes of the sums of lost shares, and of these times the question means."""
        before = self.lost[rows, questions]
        number = np.stack([before, before + lost])
        self.lost[rows, questions] = number[1]
        share = np.where(n > 0, number / np.maximum(n + number, 1), 0.0)
        return np.stack([share[1] - share[0], (share * y)[1] - (share * y)[0]])

    def _mark_exact(self, models: Integers, sums: Floats) -> None:
        """Take the noise out of rows (w, u, G, R, …) of models whose answers have none."""
        without = self.exact[models]
        if without.any():
            sums[:2, without], sums[2:4, without] = 0.0, np.inf
            sums[7:, without] = 0.0  # a repeat that is lost would have been the same

    def _seen_questions(self, steps: int) -> Integers | slice:
        """Return the questions among the first `steps` steps."""
        seen = self.sequence.seen(steps)
        if seen == self.sequence.questions:
            return slice(None)
        return self.sequence.order[:seen]

    def _refit(self, models: Integers, questions: Integers | slice) -> None:
        """Fit the priors of models again and recompute their sums, which also clears rounding.

        Only `questions` can have trials. They follow from the step alone, so that it changes no bit of a
        model's sums which others are fitted with it.
        """
        counts = self.counts[models][:, questions]
        answered = counts.any(axis=(1, 2))
        if not answered.all():
            models = models[answered]
            counts = counts[answered]
        n, sx, sxx = self.scale.sums(counts)
        prior = self.scale.prior(n, sx, sxx)
        self._fit.prior[models] = prior
        v = prior[:, None].variance(n, sx, sxx)
        asked = n > 0
        many = np.maximum(n, 1)
        y = sx / many
        noise = np.where(asked, v / many, 0.0), self.scale.avg_variance(n, sx, sxx), n * v
        terms = (*noise, n - asked, asked, y, y**2)
        self._sums[:7, models] = [term.sum(axis=1) for term in terms]

    # ------------------------------------------------------------------ models that are not asked

    def load(
        self, model: int, counts: Integers, lost: Integers | None = None, pairs: Integers | None = None
    ) -> None:
        """Take in all trials of a reference at once.

        Parameters
        ----------
        model : int
            The model; it must not have absorbed any trial.
        counts : ndarray, shape (M, C + 1) or (M, 3)
            Its category counts of every question; a question without trials was not asked.
        lost : ndarray, shape (M,), optional
            Its trials of every question that have no answer.
        pairs : ndarray, shape (M,), optional
            Of its answers to every question, the ordered pairs that may be copies of one another.
        """
        self.counts[model] = counts
        if pairs is not None and pairs.any():
            self._copies.load(model, self.counts[model].sum(axis=1), pairs)
        self._refit(np.array([model]), slice(None))
        if lost is not None:
            self.lost[model] = lost
            share = self.lost_share(model)
            score = self.noise(model)[0]
            self._sums[7:, model] = share.sum(), (share * score).sum()

    def lost_share(self, model: int) -> Floats:
        """Return the share of a model's trials of each question without an answer; 0 if none has one."""
        n = self.counts[model].sum(axis=1)
        lost = self.lost[model]
        return np.where(n > 0, lost / np.maximum(n + lost, 1), 0.0)

    def only_lost(self, model: int) -> Bools:
        """Return the questions of which all trials of a model have no answer."""
        return np.asarray((self.counts[model].sum(axis=1) == 0) & (self.lost[model] > 0))

    def noise(self, model: int) -> tuple[Floats, Floats, Floats]:
        """Return mean score ȳ, v/n and u of each question for one model, each 0 if it has no trial."""
        n, sx, sxx = self.scale.sums(self.counts[model])
        v = self._fit.prior[[model]].variance(n, sx, sxx)
        asked = n > 0
        many = np.maximum(n, 1)
        return sx / many, np.where(asked, v / many, 0.0), self.scale.avg_variance(n, sx, sxx)

    def mean_noise(self) -> Floats:
        """Return each model's one-trial variance, the mean over the questions asked; 0 without noise."""
        n, sx, sxx = self.scale.sums(self.counts)
        asked = n > 0
        v = np.where(asked, self._fit.prior[:, None].variance(n, sx, sxx), 0.0)
        return np.where(self.exact, 0.0, v.sum(axis=1) / np.maximum(asked.sum(axis=1), 1))

    def variance_by_rounds(self) -> Floats:
        """Return each model's variance by a round over that by passes of as many trials; 1 without rounds."""
        if self.rounds is None:
            return np.ones(self.models)
        asked = self.counts.any(axis=(1, 2))
        share = np.ones(self.models)
        if asked.any():
            sums = self.scale.sums(self.counts[asked])
            share[asked] = round_share(self.scale.prior(*sums))
        root = np.sqrt(self.cost(np.arange(self.models)))
        return np.asarray(share * root.mean(axis=1) * (1.0 / root).mean(axis=1))

    # ------------------------------------------------------------------ reading paths

    def path(self, models: Integers, start: int, stop: int) -> PathBlock:
        """Return the per-step quantities of `models` at steps ``start .. stop-1``.

        The steps must have been absorbed and not yet forgotten (:meth:`forget`).
        """
        part = np.ascontiguousarray(self._path.part(start, stop))
        return PathBlock(*part.take(models, axis=1))

    def path_of_some(self, models: Integers, start: int, stop: int, only: Bools) -> PathBlock:
        """Return :meth:`path` within a round, of some questions of each model, shape (models, M)."""
        assert self.rounds is not None
        path = self._path.part(start, stop)[:, models].copy()
        known = self.rounds.begun(start).answered(models)
        for row in np.flatnonzero((known != only).any(axis=1)).tolist():
            model = int(models[row])
            path[2:, row] = self.rounds.restricted(model, start, stop, self.categories, only[row])
        self._mark_exact(models, path[2:])
        return PathBlock(*path)

    def latest(self) -> PathBlock:
        """Return every model's quantities after its last step, as blocks of one step.

        `before` and `after` speak of a single step and are empty here.
        """
        sums = self._sums[:, :, None].copy()
        self._mark_exact(np.arange(self.models), sums)
        seen = np.maximum(sums[4], 1.0)
        sums[:2] /= seen
        self._flips.apply(np.arange(self.models), sums, self._flips.noise[:, None])
        none = np.zeros((self.models, 0))
        return PathBlock(none, none, *sums)

    def latest_without_copies(self) -> PathBlock:
        """Return :meth:`latest` as if answers that may be copies were some."""
        last = [slice(steps - 1, steps) for steps in np.maximum(self.progress, 1).tolist()]
        models = np.arange(self.models)
        return self._flips.trusted(self._copies.reading(self.latest(), models, last), models)

    def forget(self, before: int) -> None:
        """Allow the per-step quantities before step `before` to be dropped; counts and categories stay."""
        self._path.forget(before)

    def _reserve(self, stop: int) -> None:
        if stop > self.categories.shape[1]:
            grown = np.full((self.models, stop + stop // 2), Mark.MISSING, dtype=self.categories.dtype)
            grown[:, : self.categories.shape[1]] = self.categories
            self.categories = grown
            self._copies.reserve(grown.shape[1])
        self._path.reserve(stop)
