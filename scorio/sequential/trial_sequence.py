"""The trial sequence: one order of the questions, shared by all models.

Index ``t`` (also called step) asks every model the same question, so two models can be compared at equal
progress under any allocation policy. The first pass asks new questions
first, with a few early *calibration repeats*, so that the variance between two trials of one question is
known before the pass ends; further passes repeat the same permutation.

If several answers are asked for in one request, the passes after the first are laid out in blocks: each
question a few times in a row, so that the answers of one request are next to each other.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from scorio.arrays import Bools, Integers, Ints

REPEAT_EVERY = 16
"""New questions per calibration repeat."""
MAX_REPEATS = 128
"""Calibration repeats at most."""


def first_pass(questions: int) -> Ints:
    """Positions of the first pass: every question once, with calibration repeats in between.

    From ``questions / 8`` on, each 16 new questions are followed by one second trial of the earliest
    question that had only one, at most 128 times.

    Parameters
    ----------
    questions : int
        Number of questions M, at least 1.

    Returns
    -------
    ndarray of int64
        Positions in the permutation; length M plus the number of repeats.

    Examples
    --------
    >>> first_pass(20).tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 16, 17, 18, 19]
    """
    if questions < 1:
        raise ValueError(f"questions must be at least 1, got {questions}")
    start = max(REPEAT_EVERY, REPEAT_EVERY * -(-questions // (8 * REPEAT_EVERY)))
    after = np.arange(start, questions, REPEAT_EVERY)[:MAX_REPEATS]
    return np.insert(np.arange(questions, dtype=np.int64), after, np.arange(after.size))


class TrialSequence:
    """The endless sequence of questions of one task.

    Parameters
    ----------
    order : sequence of int
        A permutation of ``range(M)``: the question at each position.
    samples_per_prompt : int
        How many times a question is asked in a row after the first pass.
    own : int, optional
        Seed of the rounds of a sequence that models share for the first ``1 + samples_per_prompt`` passes
        only: after them each follows its own questions, as :meth:`extend_own` lays them out.
    early_repeats : bool
        Whether the first pass has calibration repeats.

    Attributes
    ----------
    order : ndarray of int64, shape (M,)
        The permutation.
    questions : int
        M.
    own_rounds : bool
        Whether models follow questions of their own after the first passes.
    shared : int
        Steps that all models share; :data:`sys.maxsize` for all.

    Raises
    ------
    ValueError
        If `order` is no permutation.

    Examples
    --------
    >>> sequence = TrialSequence([2, 0, 1])
    >>> sequence.question(0, 7).tolist()
    [2, 0, 1, 2, 0, 1, 2]
    >>> sequence.seen(4)
    3
    >>> TrialSequence([2, 0, 1], samples_per_prompt=3).question(0, 14).tolist()
    [2, 0, 1, 2, 2, 2, 0, 0, 0, 1, 1, 1, 2, 2]
    """

    def __init__(
        self,
        order: Sequence[int] | Integers,
        samples_per_prompt: int = 1,
        own: int | None = None,
        *,
        early_repeats: bool = True,
    ) -> None:
        if samples_per_prompt < 1:
            raise ValueError(f"samples_per_prompt must be at least 1, got {samples_per_prompt}")
        self.samples_per_prompt = samples_per_prompt
        self.early_repeats = early_repeats
        self.order = np.asarray(order, dtype=np.int64)
        self.questions = self.order.size
        if self.questions == 0 or not np.array_equal(np.sort(self.order), np.arange(self.questions)):
            raise ValueError(f"order must be a permutation of 0..M-1, got {self.order.tolist()[:10]}…")
        self.seed = own
        self.own_rounds = own is not None
        if self.own_rounds:
            self.shared = (1 + samples_per_prompt) * self.questions
        else:
            self.shared = sys.maxsize
        self._pass = np.repeat(self.order, samples_per_prompt)  # how every round begins
        self._own: dict[int, tuple[NDArray[np.int32], NDArray[np.int32]]] = {}
        self._kept: dict[int, dict[int, int]] = {}  # own steps of models, with the questions of a stored run
        self._question = np.empty(0, dtype=np.int32)
        self._previous = np.empty(0, dtype=np.int64)
        self._repeat = np.empty(0, dtype=np.int32)
        self._seen = np.zeros(1, dtype=np.int64)
        self._last = np.full(self.questions, -1, dtype=np.int64)
        self._repeats = 0
        self._passes = 0

    def __len__(self) -> int:
        """Return how many steps have been laid out so far."""
        return self._question.size

    def extend(self, positions: Integers) -> None:
        """Lay out further steps, given as positions in the permutation."""
        asked = self.order[positions]
        steps = len(self) + np.arange(asked.size)
        by_question = np.argsort(asked, kind="stable")
        before, after = by_question[:-1], by_question[1:]
        again = asked[before] == asked[after]
        previous = self._last[asked]
        previous[after[again]] = steps[before[again]]
        self._last[asked] = steps
        repeat = _times_before(asked, np.bincount(self._question, minlength=self.questions))
        self._question = np.concatenate([self._question, asked.astype(np.int32)])
        self._previous = np.concatenate([self._previous, previous])
        self._repeat = np.concatenate([self._repeat, repeat])
        self._seen = np.concatenate([self._seen, self._seen[-1] + np.cumsum(repeat == 0)])

    def ensure(self, steps: int) -> None:
        """Lay out at least `steps` steps, in whole passes and geometrically growing pieces."""
        if len(self) >= steps:
            return
        steps = max(steps, len(self) + len(self) // 2)
        while len(self) < steps:
            if self._passes == 0:
                if self.early_repeats:
                    positions = first_pass(self.questions)
                else:
                    positions = np.arange(self.questions)
                self._repeats = positions.size - self.questions
            else:
                positions = self._next_passes(steps - len(self))
            self.extend(positions)
            self._passes += 1

    def _next_passes(self, steps: int) -> Ints:
        """Return the positions of so many passes, or blocks of passes, as have at least `steps` steps."""
        block = np.repeat(np.arange(self.questions, dtype=np.int64), self.samples_per_prompt)
        blocks = max(1, steps // block.size)
        positions = np.tile(block, blocks)
        if self._passes == 1 and self._repeats:
            # The calibration repeats of the first pass have asked these questions once more already.
            early = np.arange(self._repeats) * self.samples_per_prompt
            positions = np.delete(positions, early)
        self._passes += blocks - 1
        return positions

    def extend_own(self, model: int, questions: Integers) -> None:
        """Lay out the rest of a model's round, and the first pass of the next one.

        Parameters
        ----------
        model : int
            The model.
        questions : ndarray of int
            Those of the whole round; its first pass, in the order of the permutation, is laid out already.
        """
        self._own_of(model)
        self._append(model, np.concatenate([questions[self._pass.size :], self._pass]))

    def _own_of(self, model: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return a model's own questions, and how often each was asked before; at first one pass."""
        if model not in self._own:
            self._own[model] = (np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int32))
            self._append(model, self._pass)
        return self._own[model]

    def _append(self, model: int, questions: Integers) -> None:
        before, repeats = self._own[model]
        kept = self._kept.get(model, {})
        if kept:
            laid_out = enumerate(questions.tolist(), start=before.size)
            questions = np.array([kept.get(step, question) for step, question in laid_out])
        earlier = 1 + self.samples_per_prompt + np.bincount(before, minlength=self.questions)
        repeat = _times_before(questions, earlier)
        self._own[model] = (
            np.concatenate([before, questions.astype(np.int32)]),
            np.concatenate([repeats, repeat]),
        )

    def keep(self, model: int, step: int, question: int) -> None:
        """Ask a model `question` at `step`, as a stored run did, however its rounds are laid out now."""
        if step >= self.shared:
            self._kept.setdefault(model, {})[step - self.shared] = question

    def laid_out(self, model: int) -> float:
        """Return how many steps of a model can be asked by now."""
        if not self.own_rounds:
            return float("inf")
        return self.shared + self._own_of(model)[0].size

    def questions_of(self, models: Integers, start: int, stop: int) -> NDArray[np.int32]:
        """Return the questions that models are asked at steps ``start .. stop-1``, shape (I, steps)."""
        return self._of(models, start, stop, 0)

    def repeats_of(self, models: Integers, start: int, stop: int) -> NDArray[np.int32]:
        """Return for each step of models how often its question was asked before, shape (I, steps)."""
        return self._of(models, start, stop, 1)

    def _of(self, models: Integers, start: int, stop: int, part: int) -> NDArray[np.int32]:
        end = min(stop, self.shared)
        of_all = (self.question, self.repeats)[part](min(start, end), end)
        common = np.broadcast_to(of_all, (models.size, of_all.size))
        if stop <= self.shared:
            return common
        columns = slice(max(start - self.shared, 0), stop - self.shared)
        own = [self._own_of(model)[part][columns] for model in models.tolist()]
        return np.concatenate([common, np.stack(own)], axis=1)

    def question(self, start: int, stop: int) -> NDArray[np.int32]:
        """Return the questions asked at steps ``start .. stop-1``."""
        self.ensure(stop)
        return self._question[start:stop]

    def previous(self, start: int, stop: int) -> Ints:
        """Return for each step the step at which its question was asked before; -1 for a new question."""
        self.ensure(stop)
        return self._previous[start:stop]

    def at(self, step: int, model: int = 0) -> int:
        """Return the question that a model is asked at `step`."""
        if step >= self.shared:
            return int(self._own_of(model)[0][step - self.shared])
        self.ensure(step + 1)
        return int(self._question[step])

    def repeat(self, step: int, model: int = 0) -> int:
        """Return how often a model's question of `step` was asked before it."""
        if step >= self.shared:
            return int(self._own_of(model)[1][step - self.shared])
        self.ensure(step + 1)
        return int(self._repeat[step])

    def repeats(self, start: int, stop: int) -> NDArray[np.int32]:
        """Return for each step how often its question was asked before."""
        self.ensure(stop)
        return self._repeat[start:stop]

    def seen(self, steps: int) -> int:
        """Return the number of different questions among the first `steps` steps."""
        self.ensure(steps)
        return int(self._seen[steps])

    def asked_by(self, start: int, stop: int) -> Ints:
        """Return the number of different questions up to each of the steps ``start .. stop-1``."""
        self.ensure(stop)
        return self._seen[start + 1 : stop + 1]

    def questions_and_repeats(self, steps: int) -> tuple[int, int]:
        """Return the number of different questions among the first `steps` steps, and of repeats."""
        seen = self.seen(min(steps, self.shared))
        return seen, steps - seen

    def complete(self, start: int, stop: int) -> Bools:
        """Return for each step whether, with it, all questions have been asked equally often."""
        self.ensure(max(stop, self.questions))
        first_end = self.questions + self._repeats
        if start // self.questions == stop // self.questions and not start < first_end <= stop:
            return np.zeros(stop - start, dtype=np.bool_)
        steps = np.arange(start + 1, stop + 1)
        if self._repeats == 0:
            least = self.questions
        else:
            least = self.questions + 1
        of_blocks = (steps - self.questions) % (self.questions * self.samples_per_prompt) == 0
        ends_first = (steps == first_end) & (self._repeats < self.questions)
        return np.asarray((of_blocks & (steps >= least)) | ends_first)

    def steps_of(self, question: int, stop: int) -> Ints:
        """Return the steps before `stop` that ask `question`."""
        self.ensure(stop)
        return np.flatnonzero(self._question[:stop] == question)


def _times_before(questions: Integers, earlier: Ints) -> NDArray[np.int32]:
    """Return how often each step's question was asked before it, after `earlier` times of each."""
    by_question = np.argsort(questions, kind="stable")
    times = np.bincount(questions, minlength=earlier.size)
    turn = np.arange(questions.size) - np.repeat(np.cumsum(times) - times, times)
    repeat = np.empty(questions.size, dtype=np.int32)
    repeat[by_question] = turn + np.repeat(earlier, times)
    return repeat


class RunSequence:
    """The trial sequence of a run: those of its tasks, interleaved in proportion to their sizes.

    Parameters
    ----------
    sizes : sequence of int
        Questions of each task.
    seed : int or None
        Seed of the permutations; None keeps the questions in their given order.
    samples_per_prompt : int
        How many times each task asks a question in a row after the first pass.
    own : sequence of bool, optional
        For which tasks models follow questions of their own after the first passes; for none by default.
    early_repeats : bool
        Whether first passes have calibration repeats.

    Examples
    --------
    >>> run_sequence = RunSequence([4, 2], seed=None)
    >>> run_sequence.task(0, 6).tolist()
    [0, 1, 0, 0, 1, 0]
    >>> run_sequence.at(4)
    (1, 1)
    """

    def __init__(
        self,
        sizes: Sequence[int],
        seed: int | None,
        samples_per_prompt: int = 1,
        own: Sequence[bool] | None = None,
        *,
        early_repeats: bool = True,
    ) -> None:
        if not sizes:
            raise ValueError("sizes must name at least one task")
        own_seed = (seed or 0) % 2**63
        generators = np.random.SeedSequence(seed or 0).spawn(len(sizes))
        sequences = []
        for size, generator, rounds in zip(sizes, generators, own or [False] * len(sizes), strict=True):
            if seed is None:
                order = np.arange(size)
            else:
                order = np.random.default_rng(generator).permutation(size)
            rounds_seed = own_seed if rounds else None
            sequences.append(
                TrialSequence(order, samples_per_prompt, rounds_seed, early_repeats=early_repeats)
            )
        self.sequences = tuple(sequences)
        self.sizes = tuple(map(int, sizes))
        self._task = np.empty(0, dtype=np.int16)
        self._local = np.empty(0, dtype=np.int64)
        self._rounds = 0

    @classmethod
    def of_task(cls, sequence: TrialSequence) -> RunSequence:
        """Return the trial sequence of a run of one task that follows `sequence`."""
        made = cls([sequence.questions], seed=None)
        made.sequences = (sequence,)
        return made

    @property
    def questions(self) -> int:
        """Questions of all tasks together."""
        return sum(self.sizes)

    def _ensure(self, steps: int) -> None:
        if len(self.sequences) == 1:
            self.sequences[0].ensure(steps)
            return
        while self._task.size < steps:
            width = 1
            if self._rounds != 0:
                width = self.sequences[0].samples_per_prompt
            tasks = np.repeat(np.arange(len(self.sizes)), self.sizes)
            fraction = np.concatenate([(np.arange(size) + 0.5) / size for size in self.sizes])
            local = np.concatenate([np.arange(size) * width + self._rounds * size for size in self.sizes])
            order = np.lexsort((tasks, fraction))
            self._task = np.concatenate([self._task, np.repeat(tasks[order], width).astype(np.int16)])
            steps_of_each = local[order][:, None] + np.arange(width)
            self._local = np.concatenate([self._local, steps_of_each.ravel()])
            self._rounds += width

    def task(self, start: int, stop: int) -> NDArray[np.int16]:
        """Return the task index of each step ``start .. stop-1``."""
        if len(self.sequences) == 1:
            return np.zeros(stop - start, dtype=np.int16)
        self._ensure(stop)
        return self._task[start:stop]

    def complete(self, start: int, stop: int) -> Bools:
        """Return for each step whether, with it, all questions of all tasks have been asked equally often.

        With several tasks the end of the first pass counts only if no task has calibration repeats.
        """
        if len(self.sequences) == 1:
            return self.sequences[0].complete(start, stop)
        first = self.sequences[0]
        steps = np.arange(start + 1, stop + 1)
        repeats = first.early_repeats and any(first_pass(size).size > size for size in self.sizes)
        if repeats:
            least = self.questions + 1
        else:
            least = self.questions
        of_blocks = (steps - self.questions) % (self.questions * first.samples_per_prompt) == 0
        return np.asarray(of_blocks & (steps >= least))

    def local(self, step: int) -> tuple[int, ...]:
        """Return how many of the first `step` steps belong to each task."""
        if len(self.sequences) == 1:
            return (step,)
        self._ensure(step)
        return tuple(np.bincount(self._task[:step], minlength=len(self.sizes)).tolist())

    def one_of_each(self, start: int) -> int:
        """Return the first step by which each task has had a step from `start` on."""
        stop = start + 1
        while any(begin == end for _, begin, end in self.spans(start, stop)):
            stop += 1
        return stop

    def spans(self, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """Yield each task with the steps of its own sequence that ``start .. stop-1`` are."""
        ends = zip(self.local(start), self.local(stop), strict=True)
        for task, (begin, end) in enumerate(ends):
            yield task, begin, end

    @property
    def shared(self) -> int:
        """Steps that all models share."""
        passes = min(one.shared // one.questions for one in self.sequences)
        return passes * self.questions

    @property
    def endless(self) -> bool:
        """Whether every step can be asked by now."""
        return not any(one.own_rounds for one in self.sequences)

    def laid_out(self, model: int) -> float:
        """Return how many steps of a model can be asked by now."""
        if len(self.sequences) == 1:
            return self.sequences[0].laid_out(model)
        # Every task's rounds begin and end with a pass, and the passes of all tasks lie side by side.
        passes = min(one.laid_out(model) / one.questions for one in self.sequences)
        if passes == float("inf"):
            return passes
        return int(passes) * self.questions

    def at(self, step: int, model: int = 0) -> tuple[int, int]:
        """Return (task index, question index within the task) of a model's step."""
        task, local = self._place(step)
        return task, self.sequences[task].at(local, model)

    def keep(self, model: int, step: int, question: int) -> None:
        """Ask a model a question of the task of `step` there, as a stored run did."""
        task, local = self._place(step)
        self.sequences[task].keep(model, local, question)

    def repeat(self, step: int, model: int = 0) -> int:
        """Return how often a model's question of `step` was asked before."""
        task, local = self._place(step)
        return self.sequences[task].repeat(local, model)

    def _place(self, step: int) -> tuple[int, int]:
        """Return the task of a step, and which step of the task's own sequence it is."""
        if len(self.sequences) == 1:
            return 0, step
        self._ensure(step + 1)
        return int(self._task[step]), int(self._local[step])
