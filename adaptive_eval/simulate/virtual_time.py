"""The faithful way: the session itself, asked and told in virtual time with many trials in flight.

An event heap holds the trials in flight by the time at which they will be answered. Nothing sleeps.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from math import isfinite, log

import numpy as np

from adaptive_eval.core.goals import OPEN
from adaptive_eval.core.session import Session
from adaptive_eval.errors import SessionError, UsageError
from adaptive_eval.simulate.coins import ENDLESS, Stream
from adaptive_eval.simulate.result import RunOutcome, scores_until
from adaptive_eval.trial import TrialKey, TrialOutcome, TrialRequest


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
        medians = self.median if isinstance(self.median, tuple) else (self.median,)
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
        median = self.median[model] if isinstance(self.median, tuple) else self.median
        return float(rng.lognormal(log(median) + score * log(self.best_factor), self.sigma))


AHEAD = 256
"""Steps of a model's answers drawn at once."""
RAN_OUT = "its recorded trials ran out"


def run_events(
    session: Session,
    stream: Stream,
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
            run.wind_up()
    time = run.now
    while run.arrivals:
        run.complete()
    board, fold = session.board, session.comparison.fold
    steps = np.array(board.complete[: run.models], dtype=np.int64)
    board.absorb()
    return RunOutcome(
        fold.verdict.astype(np.int8),
        fold.decided_at.copy(),
        run.trials,
        scores_until(session.spec, board, steps),
        _steps(session),
        time,
        session.stopped.reason if session.stopped is not None else "interrupted",
        run.exhausted,
    )


def _steps(session: Session) -> int:
    """Return the step at which the run ended: that of its last call, or how far an open contrast was read."""
    fold = session.comparison.fold
    last = int(max(fold.decided_at.max(), fold.enough_at.max()))
    if session.stopped is not None and session.stopped.reason == "resolved":
        return last
    return max(last, int(fold.progress[fold.verdict == OPEN].max(initial=0)))


class _VirtualRun:
    """A session, its trials in flight and the virtual clock."""

    def __init__(
        self,
        session: Session,
        stream: Stream,
        latency: Latency | None,
        rng: np.random.Generator,
    ) -> None:
        self.session, self.stream, self.latency, self.rng = session, stream, latency, rng
        spec = session.spec
        self.models = len(spec.models)
        self.now = 0.0
        self.arrivals: list[tuple[float, int, TrialOutcome]] = []
        self.trials = np.zeros(self.models, dtype=np.int64)
        self.exhausted = np.zeros(self.models, dtype=bool)
        self._launched = 0
        self._index = {name: model for model, name in enumerate(spec.names)}
        self._answers: list[list[int]] = [[] for _ in spec.models]
        self._scores = {
            task.name: cells.scores.tolist()
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
        """Return the free slots; by model where one is about to run out of answers."""
        issued, limit = self.session.states.issued, self.stream.limit.tolist()
        if all(end - start >= free for start, end in zip(issued, limit, strict=True)):
            return free
        names = self.session.spec.names
        room = [model for model in range(self.models) if issued[model] < limit[model]]
        if self.session.comparison.goal.stops:
            room = [model for model in room if not self.session.states.retired[model]]
        room.sort(key=lambda model: (issued[model], model))
        share = max(free // max(len(room), 1), 1)
        return {names[model]: min(share, limit[model] - issued[model]) for model in room[:free]}

    def _send(self, request: TrialRequest) -> None:
        model = self._index[request.key.model]
        category = self._answer(model, request.key.index)
        seconds = 1.0
        if self.latency is not None:
            seconds = self.latency.draw(model, self._scores[request.task][category], self.rng)
        outcome = TrialOutcome(TrialKey(request.key.model, request.key.index), category)
        heappush(self.arrivals, (self.now + seconds, self._launched, outcome))
        self._launched += 1
        self.trials[model] += 1

    def _answer(self, model: int, index: int) -> int:
        known = self._answers[model]
        if index >= len(known):
            start = len(known)
            laid_out = self.session.board.run_sequence.laid_out(model)
            stop = int(min(start + AHEAD, self.stream.limit[model], laid_out))
            known.extend(self.stream.take(np.array([model]), start, stop)[0].tolist())
        return known[index]

    # ------------------------------------------------------------------ completing

    def complete(self) -> None:
        """Complete the next trials and tell their outcomes."""
        first = self.arrivals[0][0]
        tick = 0.0 if self.latency is None else self.latency.tick
        batch: list[TrialOutcome] = []
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
        comparison, states = self.session.comparison, self.session.states
        done = np.array(self.session.board.complete[: self.models]) >= limit
        for model in np.flatnonzero(done & (comparison.reached >= limit)).tolist():
            if self.session.stopped is None and not states.retired[model] and model not in states.stopped:
                self.exhausted[model] = True
                self.session.stop_model(self.session.spec.names[model], RAN_OUT)

    def wind_up(self) -> None:
        """Continue where nothing is in flight and nothing is issued: answers have run out."""
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
