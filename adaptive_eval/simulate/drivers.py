"""Two drivers of a simulated run: in lockstep, and trial by trial in virtual time.

In lockstep every model that is still needed makes one step, then the pairs are looked at, in blocks of steps
and without a request or an outcome as an object. Trials are counted as a session with one trial in flight
would issue them: up to the index after which the model is no longer needed.

In virtual time the session itself is asked and told with many trials in flight. An event heap holds them by
the time at which they will be answered. Nothing sleeps.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import isfinite, log

import numpy as np

from adaptive_eval.core.board import SessionAnswers, SessionContrasts
from adaptive_eval.core.foresight import too_noisy
from adaptive_eval.core.model_states import Completed
from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import SessionSpec
from adaptive_eval.errors import SessionError, UsageError
from adaptive_eval.simulate.coins import ENDLESS, RepeatedAnswers, ReplicateAnswers
from adaptive_eval.simulate.result import RunOutcome, scores_until
from adaptive_eval.stops import StopReason
from adaptive_eval.trial import Missing, TrialOutcome, TrialRequest
from scorio.arrays import Bools, Floats, Ints
from scorio.sequential.parts import Fold, Mark

SHORTEST, LONGEST, LARGEST = 128, 512, 40_000
"""Steps of a block; contrasts times steps of one that is longer. Blocks grow with the trial sequence: a block
costs about the same however long it is, and what lies beyond a decision is drawn in vain."""


def sequences_in_lockstep(spec: SessionSpec) -> bool:
    """Return whether a run is the same in lockstep: it goes by turns, and ends by its verdicts or passes.

    An end because references are too noisy comes up to a block later. In the search for the best k a model
    may make up to 16 steps more than it needs: measured, a run takes 0 to 1.3 % more trials.
    """
    unlimited = not any(budget.limited for budget in (spec.budget, *spec.own_budgets))
    unlimited &= not any(model.deterministic for model in spec.models)
    return unlimited and spec.goal.kind != "budget" and spec.allocation.models in ("round-robin", "uniform")


class _Watched(SessionContrasts):
    """A comparison that notes up to which step each model was needed."""

    def __init__(self, spec: SessionSpec, board: SessionAnswers) -> None:
        self.needed_until = np.zeros(len(spec.models), dtype=np.int64)
        super().__init__(spec, board)

    def interval(self, rows: slice | list[int] = slice(None)) -> tuple[Floats, Floats]:
        """Return empty intervals: no decision depends on them, and a simulation shows none."""
        return self.latest.difference[rows], self.latest.difference[rows]

    def note(self) -> None:
        """Note that the models of needed contrasts were needed so far."""
        position = self.fold.position
        for model in self._members() if position > 0 else ():
            self.needed_until[model] = max(self.needed_until[model], self.answers.steps_at(model, position))

    def _needed(self, fold: Fold) -> Bools:
        if hasattr(self, "fold"):
            self.note()
        return super()._needed(fold)


class _View(SessionAnswers):
    """A board as one of several runs sees it that take the same answers: with its own progress."""

    def __init__(self, spec: SessionSpec, board: SessionAnswers) -> None:
        super().__init__(spec, board)
        self.oldest = 0  # steps before it are no longer read
        self._told = np.zeros((len(spec.names), SHORTEST), dtype=np.int64)

    def take_turns(self, rows: Ints, start: int, stop: int) -> None:
        """Note where in the log of a session the next steps of models are that take turns."""
        if stop > self._told.shape[1]:
            self._told = np.pad(self._told, ((0, 0), (0, max(stop, self._told.shape[1]))))
        before = int(self._told.max())
        models = len(self.spec.models)
        if self.spec.allocation.models == "uniform":  # the others are asked as well
            turns = np.arange(start, stop) * models + rows[:, None]
        else:
            turns = before + np.arange(stop - start) * rows.size + np.arange(rows.size)[:, None]
        self._told[rows, start:stop] = turns + 1

    def forget(self, before: int) -> None:
        """Note what this run no longer needs; another may still need it."""
        self.oldest = before


class _LockstepRun:
    """One run in lockstep on a board that it may share."""

    def __init__(self, spec: SessionSpec, board: SessionAnswers, stream: ReplicateAnswers) -> None:
        self.spec = spec
        self.board = board
        self.stream = stream
        self.view = _View(spec, board)
        self.comparison = _Watched(spec, self.view)
        passes = spec.stopping.max_passes
        if passes is None:
            self.cap = None
        else:
            self.cap = passes * spec.questions
        self.exhausted = np.zeros(len(spec.models), dtype=bool)

    @property
    def start(self) -> int | None:
        """The step from which the run goes on, or None at its end."""
        comparison = self.comparison
        if not comparison.fold.needed.any() or comparison.hopeless or too_noisy(comparison):
            return None
        start = int(self.view.progress[np.array(self.comparison.members)].min())
        if start == self.cap:
            return None
        return start

    def advance(self, start: int) -> None:
        """Take the next block of answers, or drop a model that has no more."""
        comparison = self.comparison
        stream = self.stream
        view = self.view
        members = np.array(comparison.members)
        rows = members[view.progress[members] == start]
        ended = rows[stream.limit[rows] == start]
        if ended.size:
            comparison.note()
            comparison.lose(int(ended[0]))
            self.exhausted[ended[0]] = True
            return
        stop = _block_end(comparison, rows, start, stream.limit, self.cap)
        done = self.board.progress[rows]
        for begin in np.unique(done[done < stop]).tolist():
            later = rows[done == begin]
            _absorb(self.board, stream, later, begin, stop)
        view.take_turns(rows, start, stop)
        view.progress[rows] = stop
        comparison.advance()

    def outcome(self, *, scored: bool) -> RunOutcome:
        """Return what came of the run."""
        comparison = self.comparison
        comparison.note()
        needed = comparison.needed_until
        steps = int(needed.max())
        trials = needed.copy()
        if self.spec.allocation.models == "uniform":
            trials = np.minimum(np.full_like(trials, steps), self.stream.limit)
        if scored:
            scores = scores_until(self.spec, self.board, needed)
        else:
            scores = np.full(trials.size, np.nan)
        return RunOutcome(
            comparison.fold.verdict.astype(np.int8),
            comparison.fold.decided_at.copy(),
            trials,
            scores,
            steps,
            float(steps),
            _reason(comparison),
            self.exhausted,
            self.stream.limit.copy(),
        )


def run_together(
    specs: Sequence[SessionSpec], board: SessionAnswers, stream: ReplicateAnswers, *, scored: bool = True
) -> list[RunOutcome]:
    """Simulate one run by several specs that differ in their margin only: the answers are absorbed once.

    Without `scored`, the outcomes have no scores.
    """
    runs = [_LockstepRun(spec, board, stream) for spec in specs]
    active = {number: start for number, run in enumerate(runs) if (start := run.start) is not None}
    while active:
        behind = min(active, key=active.__getitem__)
        runs[behind].advance(active.pop(behind))
        start = runs[behind].start
        if start is not None:
            active[behind] = start
        board.forget(min((runs[number].view.oldest for number in active), default=0))
    return [run.outcome(scored=scored) for run in runs]


def _block_end(comparison: SessionContrasts, rows: Ints, start: int, limit: Ints, cap: int | None) -> int:
    """Return how far `rows` can advance at once, within all answers, the trial sequence and the cap."""
    ahead = comparison.answers.progress[comparison.members]
    longest = max(LONGEST, LARGEST // comparison.fold.verdict.size)
    stop = min(start + min(max(SHORTEST, start), longest), *limit[rows].tolist(), *ahead[ahead > start])
    if cap is not None:
        stop = min(stop, cap)
    if (review := comparison.contrasts.condition.review) is not None:
        stop = min(stop, start + review)
    laid_out = comparison.answers.run_sequence.laid_out
    return int(min(stop, *map(laid_out, rows.tolist())))


def _absorb(board: SessionAnswers, stream: ReplicateAnswers, rows: Ints, start: int, stop: int) -> None:
    block = stream.draw(rows, start, stop)
    copied = _copied(stream, rows, start, stop)
    for row, step in np.argwhere(copied > 0).tolist():
        board.doubt(int(rows[row]), start + step, int(copied[row, step]))
    task = board.run_sequence.task(start, stop)
    for index, cells in enumerate(board.cells):
        cells.absorb(rows, block[:, task == index])
    board.progress[rows] = stop


def _copied(stream: ReplicateAnswers, rows: Ints, start: int, stop: int) -> Ints:
    """Return the texts of answers that may be copies, 0 for others."""
    found = None
    if isinstance(stream, RepeatedAnswers):
        found = stream.copied(rows, start, stop)
    if found is None:
        return np.zeros((rows.size, 0), dtype=np.int64)
    return found


def _reason(comparison: SessionContrasts) -> StopReason:
    if comparison.fold.needed.any():
        if comparison.hopeless or too_noisy(comparison):
            return "partial"
        return "max_passes"
    return comparison.ending or "endpoints"


@dataclass(frozen=True)
class Latency:
    """Lognormal seconds from request to answer, which may depend on the outcome.

    Examples
    --------
    >>> import numpy as np
    >>> Latency(2.0, sigma=0.0, best_factor=0.5).draw(0, 1.0, np.random.default_rng(1))
    1.0
    """

    # median in seconds, of all models or of each, for an answer of the worst category
    median: float | tuple[float, ...] = 1.0
    sigma: float = 0.4  # standard deviation of the logarithm
    # an answer of the best category takes this many times as long; in between by its score
    best_factor: float = 1.0
    # answers that arrive within so many seconds are told together, as a store commits them in groups; 0
    # tells them one by one
    tick: float = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.median, tuple):
            medians = self.median
        else:
            medians = (self.median,)
        if not medians or not all(isfinite(median) and median > 0 for median in medians):
            raise UsageError(f"median latency must be positive seconds, got {self.median}")
        if not (isfinite(self.sigma) and self.sigma >= 0):
            raise UsageError(f"sigma of the latency must be a number from 0, got {self.sigma}")
        if not (isfinite(self.best_factor) and self.best_factor > 0):
            raise UsageError(f"best_factor of the latency must be positive, got {self.best_factor}")
        if not (isfinite(self.tick) and self.tick >= 0):
            raise UsageError(f"tick of the latency must be seconds from 0, got {self.tick}")

    def draw(self, model: int, score: float, rng: np.random.Generator) -> float:
        """Return the seconds that one answer of `model` with the given unit score takes."""
        if isinstance(self.median, tuple):
            median = self.median[model]
        else:
            median = self.median
        return float(rng.lognormal(log(median) + score * log(self.best_factor), self.sigma))


AHEAD = 256
"""Steps of a model's answers drawn at once."""
RAN_OUT = "its recorded trials ran out"
NO_ANSWER = "recorded without an answer"


def run_events(
    session: Session,
    stream: ReplicateAnswers,
    in_flight: int,
    latency: Latency | None,
    rng: np.random.Generator,
) -> RunOutcome:
    """Simulate one run."""
    run = _VirtualRun(session, stream, latency, rng)
    while session.stopped is None:
        run.stop_exhausted()
        run.launch(in_flight)
        if run.arrivals:
            run.complete()
        elif session.stopped is None:
            run.finish_without_answers()
    time = run.now
    while run.arrivals:
        run.complete()
    board = session.board
    fold = session.comparison.fold
    steps = np.array(board.complete[: run.models], dtype=np.int64)
    board.absorb()
    reason = "interrupted"
    if session.stopped is not None:
        reason = session.stopped.reason
    return RunOutcome(
        fold.verdict.astype(np.int8),
        fold.decided_at.copy(),
        run.trials,
        scores_until(session.spec, board, steps),
        _steps(session),
        time,
        reason,
        run.exhausted,
        stream.limit.copy(),
    )


def _steps(session: Session) -> int:
    """Return the step at which the run ended: that of its last call, or how far an open contrast was read."""
    fold = session.comparison.fold
    last = int(max(fold.decided_at.max(), fold.enough_at.max()))
    if session.stopped is not None and session.stopped.reason == "resolved":
        return last
    return max(last, int(fold.progress[fold.undecided].max(initial=0)))


class _VirtualRun:
    """A session, its trials in flight and the virtual clock."""

    def __init__(
        self, session: Session, stream: ReplicateAnswers, latency: Latency | None, rng: np.random.Generator
    ) -> None:
        self.session = session
        self.stream = stream
        self.latency = latency
        self.rng = rng
        spec = session.spec
        self.models = len(spec.models)
        self.now = 0.0
        self.arrivals: list[tuple[float, int, Completed]] = []
        self.trials = np.zeros(self.models, dtype=np.int64)
        self.exhausted = np.zeros(self.models, dtype=bool)
        self._launched = 0
        self._index = {name: model for model, name in enumerate(spec.names)}
        self._answers: list[list[int]] = [[] for _ in spec.models]
        self._copied: dict[tuple[int, int], int] = {}  # texts of possible copies, by model and index
        self._scores = {
            task.name: cells.scale.scores.tolist()
            for task, cells in zip(spec.tasks, session.board.cells, strict=True)
        }

    # ------------------------------------------------------------------ launching

    def launch(self, in_flight: int) -> None:
        """Ask the session for trials until every slot is taken or it issues none."""
        while self.session.stopped is None and len(self.arrivals) < in_flight:
            capacity = self._capacity(in_flight - len(self.arrivals))
            if not capacity:
                return
            requests = self.session.ask(capacity)
            for request in requests:
                self._send(request)
            if not requests or isinstance(capacity, int):
                return

    def _capacity(self, free: int) -> int | dict[str, int]:
        """Return the free slots; by model if one is about to run out of answers."""
        issued = self.session.states.issued
        limit = self.stream.limit.tolist()
        if all(end - start >= free for start, end in zip(issued, limit, strict=True)):
            return free
        names = self.session.spec.names
        done = self.session.board.determinism.done
        room = [model for model in range(self.models) if issued[model] < limit[model] and not done(model)]
        if self.session.comparison.contrasts.stops:
            room = [model for model in room if not self.session.states.retired[model]]
        room.sort(key=lambda model: (issued[model], model))
        share = max(free // max(len(room), 1), 1)
        return {names[model]: min(share, limit[model] - issued[model]) for model in room[:free]}

    def _send(self, request: TrialRequest) -> None:
        model = self._index[request.key.model]
        category = self._answer(model, request.key.index)
        lost = category == Mark.MISSING
        seconds = 1.0
        if self.latency is not None:
            score = 0.0
            if not lost:
                score = self._scores[request.task][category]
            seconds = self.latency.draw(model, score, self.rng)
        text = self._copied.get((model, request.key.index))
        answered = TrialOutcome(request.key, category, answer=text, repeats=text is not None)
        outcome = Missing(request.key, NO_ANSWER) if lost else answered
        heappush(self.arrivals, (self.now + seconds, self._launched, outcome))
        self._launched += 1
        self.trials[model] += 1

    def _answer(self, model: int, index: int) -> int:
        known = self._answers[model]
        if index >= len(known):
            start = len(known)
            laid_out = self.session.board.run_sequence.laid_out(model)
            stop = int(min(start + AHEAD, self.stream.limit[model], laid_out))
            row = np.array([model])
            known.extend(self.stream.draw(row, start, stop)[0].tolist())
            for _, step in np.argwhere(copied := _copied(self.stream, row, start, stop)).tolist():
                self._copied[model, start + step] = int(copied[0, step])
        return known[index]

    # ------------------------------------------------------------------ completing

    def complete(self) -> None:
        """Complete the next trials and tell their outcomes."""
        first = self.arrivals[0][0]
        tick = 0.0
        if self.latency is not None:
            tick = self.latency.tick
        batch: list[Completed] = []
        while self.arrivals and self.arrivals[0][0] <= first + tick:
            self.now, _, outcome = heappop(self.arrivals)
            batch.append(outcome)
        self.session.tell(batch)

    # ------------------------------------------------------------------ recorded answers that run out

    def stop_exhausted(self) -> None:
        """Drop needed models without further answers once all others have as many trials."""
        limit = self.stream.limit
        if limit.min() == ENDLESS:
            return
        comparison = self.session.comparison
        states = self.session.states
        done = np.array(self.session.board.complete[: self.models]) >= limit
        for model in np.flatnonzero(done & (comparison.reached >= limit)).tolist():
            if self.session.stopped is None and not states.retired[model] and model not in states.stopped:
                self.exhausted[model] = True
                self.session.stop_model(self.session.spec.names[model], RAN_OUT)

    def finish_without_answers(self) -> None:
        """Continue if nothing is in flight and nothing is issued: answers have run out."""
        before = int(self.exhausted.sum())
        self.session.ask({})  # reads what waits unread
        self.stop_exhausted()
        if self.session.stopped is not None or int(self.exhausted.sum()) > before:
            return
        self.launch(1)  # what was read may have brought a model back
        if self.arrivals or self.session.stopped is not None:
            return
        if self._capacity(1):
            raise SessionError("nothing is in flight, nothing is asked for, and the session has not stopped")
        self.session.end("max_passes", RAN_OUT)
