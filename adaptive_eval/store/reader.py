"""Read-only access to a run file, while it is written or after."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache, partial
from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from adaptive_eval.errors import RunDamaged
from adaptive_eval.store import queries
from adaptive_eval.store.codec import Packed, load_json, moment, unpack, unpack_optional
from adaptive_eval.store.file_errors import decoding
from adaptive_eval.store.integrity import (
    Damage,
    Description,
    RunContents,
    find_damage,
    require_undamaged,
    wrong_entry,
)
from adaptive_eval.store.queries import largest_id
from adaptive_eval.store.records import (
    AttemptRecord,
    DecisionRecord,
    EndpointHealth,
    LoggedTrial,
    Rescored,
    ScoringRecord,
    SnapshotRecord,
    TrialRecord,
)
from adaptive_eval.store.run_files import CHECKSUM, RunFiles, open_for_reading
from adaptive_eval.store.trial_rows import (
    TrialDecoder,
    attempt_of,
    causes_in,
    id_of,
    ids_of,
    names_in,
    question_ids,
    usage_of,
)
from adaptive_eval.trial import CHECK, Missing, TrialKey, TrialOutcome, TrialRequest

if TYPE_CHECKING:  # numpy takes longer to import than all else here, and few readers need it
    import numpy as np
    import numpy.typing as npt

    from adaptive_eval.store.cells import Names, OutcomeCells, OutcomeColumns


Made = TypeVar("Made")


class RunReader:
    """Reads one run file; any number of readers may, in any process, without delaying its writer.

    Every method sees what was committed when it was called (an iterator: when it was first asked). Long
    results are read in batches, so that no reader holds back the merging of the write-ahead log. One reader
    may be shared by threads.

    Parameters
    ----------
    directory : path
        The run's directory. It may be read-only or left by a crash: its bytes stay as they are.

    Raises
    ------
    RunNotFound
        If there is no run.
    RunOfOtherVersion
        If another version of this package wrote it.
    RunFileError
        If it cannot be read, is damaged, or is no run file.

    Examples
    --------
    >>> import tempfile
    >>> from adaptive_eval.store.writer import RunWriter
    >>> with tempfile.TemporaryDirectory() as runs:
    ...     RunWriter.create(Path(runs, "first"), meta={"name": "first"}).close()
    ...     with RunReader(Path(runs, "first")) as reader:
    ...         reader.meta(), reader.count(), list(reader.trials())
    ({'name': 'first'}, 0, [])
    """

    def __init__(self, directory: Path | str) -> None:
        self._files = RunFiles(Path(directory))
        self._db = open_for_reading(self._files)
        # of a large board a snapshot takes tenths of a second to decode, and the latest is read several times
        self._snapshot = lru_cache(maxsize=2)(_snapshot)
        self._interned: dict[str, tuple[Any, ...]] = {}

    @property
    def directory(self) -> Path:
        """The run's directory."""
        return self._files.directory

    def close(self) -> None:
        """Close the file; closing twice is harmless."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def contents(self) -> RunContents:
        """Return the readable rows of a damaged file."""
        return RunContents(self._db, self._files.database)

    def damage(self) -> Damage:
        """Check the file: its structure by SQLite, and the checksum of every trial.

        Raises
        ------
        RunDamaged
            It is too damaged to be read at all.
        """
        return find_damage(self._db, self._files.database)

    def require_undamaged(self, *, whole: bool = False) -> None:
        """Raise RunDamaged if the file is damaged; a run that is being written is not checked.

        With `whole`, every answer is decoded too: for callers that decide by trials and read no answer.
        """
        if not self._files.unmerged():
            require_undamaged(self._db, self._files.database, whole=whole)

    def meta(self) -> dict[str, str]:
        """Return the run's description."""
        rows = self._rows("SELECT key, value FROM meta")
        entries = self._made(lambda key, value: (unpack(key), unpack(value)), rows)
        described = {key: value for key, value in entries if key != CHECKSUM}
        for key, value in described.items():
            wrong = wrong_entry(key, value)
            if wrong is not None:
                raise RunDamaged(
                    f"{self._files.directory}: {key!r} in the run's description is damaged: {wrong}. "
                    "Restore run.db from a copy, or start a new run"
                )
        return Description(self._files.directory, described)

    def contradictions(self, *, imported: bool) -> Iterator[str]:
        """Yield what the tables of a run, made here or imported, say of each other that cannot be true."""
        from adaptive_eval.store.contradictions import contradictions

        with self._reading():
            yield from contradictions(self._db, imported=imported)

    def count(self) -> int:
        """Return how many trials have an outcome, missing and after-stop ones included. Takes no time."""
        return self._newest("outcomes") + 1

    def log(self) -> Iterator[list[TrialOutcome | Missing]]:
        """Yield the outcomes in the order in which they were committed, for replay.

        Yields
        ------
        list of TrialOutcome or Missing
            Never empty; all of them before a stop, or all after it. A session that continues after a stop
            counts what came after it as well.
        """
        for trials in self.logged():
            yield [trial.outcome for trial in trials]

    def logged(self) -> Iterator[list[LoggedTrial]]:
        """Yield the trials in the order in which they were committed, in the batches of :meth:`log`."""
        parameters = {"end": self._newest("outcomes"), "batch": _OUTCOMES_AT_ONCE}
        models, questions = self._asked()
        signal_sets = self._signal_sets()

        def trial(_: int, model: int, step: int, question: int, *told: Any) -> LoggedTrial:
            category, prompt, completion, cached, finish, missing, late, finished_at, *rest = told
            answer, response, discarded, signals = rest
            task, name = questions[question]
            if signals is not None:
                signal_names = signal_sets[signals]
            else:
                signal_names = ()
            return LoggedTrial(
                key=TrialKey(models[model], step),
                task=task,
                question=name,
                category=category,
                usage=usage_of(prompt, completion, cached),
                finish_reason=unpack_optional(finish) or "",
                missing=unpack_optional(missing) or "",
                after_stop=bool(late),
                finished_at=moment(finished_at),
                answer=answer,
                response=response,
                signals=signal_names,
                discarded=causes_in(unpack_optional(discarded)),
                earlier=True,
            )

        for found in self._batches(queries.LOG, parameters, trial):
            for _, told in groupby(found, attrgetter("after_stop")):
                yield list(told)

    def outcomes(self) -> OutcomeColumns:
        """Return all outcomes as NumPy columns, in commit order; 500,000 take under a second."""
        from adaptive_eval.store.cells import read_columns

        with self._reading():
            return read_columns(self._db, self._asked)

    def cells(self, since: int = 0) -> OutcomeCells:
        """Return the outcomes from number `since` on, counted by model and question.

        `since` is the `end` of an earlier call, to count only what is new. From the start it takes as long
        for a million outcomes as for 50,000: the writer has counted the others.
        """
        from adaptive_eval.store.cells import read_cells

        with self._reading():
            return read_cells(self._db, since, self._asked)

    def in_sequence(self, model: str, end: int, since: int = 0) -> npt.NDArray[np.int64]:
        """Return step, question and category (-1 for a missing trial) of a model's trials, in order of steps.

        Parameters
        ----------
        model : str
            Its name.
        end : int
            Only of the outcomes before this number in the log, such as the `end` of :meth:`cells`.
        since : int
            The first step wanted.

        Returns
        -------
        int64 array, shape (n, 3)
            The question as its number among those of :meth:`cells`.
        """
        from adaptive_eval.store.cells import read_in_sequence

        number = id_of(self._names("models"), model)
        with self._reading():
            return read_in_sequence(self._db, number, since, end)

    def latencies(self, most: int) -> dict[str, npt.NDArray[np.float64]]:
        """Return the seconds that scored answers took, by model, from about `most` trials of all the run."""
        from adaptive_eval.store.cells import read_latencies

        every = max(1, -(-self.count() // most))
        with self._reading():
            found = read_latencies(self._db, every)
        return {name: found[number] for number, name in enumerate(self._names("models")) if number in found}

    def trials(
        self,
        *,
        model: str | Collection[str] | None = None,
        task: str | None = None,
        question: str | None = None,
        step: int | None = None,
        category: int | None = None,
        missing: bool | None = None,
        discarded: bool | None = None,
        after_stop: bool | None = None,
        lowest: int | None = None,
        below: int | None = None,
        truncated: bool | None = None,
        beaten: str | None = None,
        newest_first: bool = False,
        beyond: TrialKey | None = None,
        limit: int | None = None,
    ) -> Iterator[TrialRecord]:
        """Yield whole trials with their answers, in commit order.

        Parameters
        ----------
        model : str or collection of str, optional
            Only trials of this model, or of these.
        task, question : str, optional
            Only trials of this task, question id.
        step, category : int, optional
            Only trials with this step, this category.
        missing, discarded, after_stop : bool, optional
            Only trials that are, or are not, missing, with draws that were given up, or after the stop.
        lowest, below : int, optional
            Only trials whose category is at least, or less than this.
        truncated : bool, optional
            Only answers that are, or are not, cut off at the token limit.
        beaten : str, optional
            Only if this model's trial of the same question and repeat has a category below `lowest`.
        newest_first : bool
            In reverse order.
        beyond : TrialKey, optional
            Only what comes after this trial in that order, to continue after a previous call. No trial
            comes after one that is not stored.
        limit : int, optional
            At most so many.

        Yields
        ------
        TrialRecord
            As it was given to the writer, with `charged` filled in.
        """
        end = self._newest("outcomes")
        models, questions = self._asked()
        decode = TrialDecoder(models, questions, self._names("signal_sets"))
        batch = _TRIALS_AT_ONCE  # with log-probabilities one trial can take megabytes
        if limit is not None:
            batch = min(limit, batch)
        other = None
        if beaten is not None:
            other = id_of(models, beaten)
        parameters = {
            "models": ids_of(models, model),
            "questions": question_ids(questions, task, question),
            "step": step,
            "category": category,
            "missing": missing,
            "discarded": discarded,
            "after_stop": after_stop,
            "lowest": lowest,
            "below": below,
            "truncated": truncated,
            "beaten": other,
            "end": end,
            "batch": batch,
        }
        left = end + 1 if limit is None else limit
        if left < 1:
            return
        first = end + 1 if newest_first else -1
        if beyond is not None:
            place = self._place(models, beyond)
            if place is None:
                return
            first = place
        elif isinstance(model, str) and step is not None:  # one trial: no need to look through all of them
            place = self._place(models, TrialKey(model, step))
            if place is None:
                return
            first, parameters["end"], newest_first = place - 1, min(place, end), False
        query = queries.TRIALS_NEWEST_FIRST if newest_first else queries.TRIALS
        for records in self._batches(query, parameters, decode, first):
            yield from records[:left]
            left -= len(records)
            if left <= 0:
                return

    def tasks(self) -> tuple[str, ...]:
        """Return the names of the tasks of which there are questions."""
        return self._names("tasks")

    def _place(self, models: Sequence[str], key: TrialKey) -> int | None:
        """Return the number of a trial in the log, None for one that is not stored."""
        found = self._rows(queries.PLACE, {"model": id_of(models, key.model), "step": key.index})
        if found:
            return int(found[0][0])
        return None

    def attempts(self, *, model: str | None = None, step: int | None = None) -> Iterator[AttemptRecord]:
        """Yield the attempts in commit order.

        Parameters
        ----------
        model : str, optional
            Only attempts for this model.
        step : int, optional
            Only attempts for this step.
        """
        end = self._newest("attempts")
        models = self._names("models")
        endpoints = self._names("endpoints")
        parameters = {"model": id_of(models, model), "step": step, "end": end}
        decode = partial(attempt_of, models, endpoints)
        yield from chain.from_iterable(self._batches(queries.ATTEMPTS, parameters, decode))

    def error_counts(self) -> dict[str, dict[str, int]]:
        """Return how many attempts failed, by model and kind of failure; models without any are left out."""
        counts: dict[str, dict[str, int]] = {}
        rows = self._rows(queries.ERROR_COUNTS)
        models = self._names("models")
        with self._reading():
            for model, error, count in rows:
                counts.setdefault(models[model], {})[unpack(error)] = count
        return counts

    def signals_named(self, prefix: str) -> dict[tuple[str, str], tuple[int, Counter[str]]]:
        """Return how many answers each model gave to each task, and how many have each signal of a prefix."""
        rows = self._rows(queries.ANSWERS_BY_SIGNALS)
        models = self._names("models")
        tasks = self._names("tasks")
        sets = self._signal_sets()
        counts: dict[tuple[str, str], tuple[int, Counter[str]]] = {}
        with self._reading():
            for model, task, signal_set, count in rows:
                key = models[model], tasks[task]
                answers, found = counts.get(key, (0, Counter()))
                for name in sets[signal_set]:
                    if name.startswith(prefix):
                        found[name.removeprefix(prefix)] += count
                counts[key] = answers + count, found
        return counts

    def checks(self) -> list[str]:
        """Return the names of the signals of the scorer ``checks`` that any answer has."""
        found = (signals for _, signals in self.signals_named(CHECK).values())
        return list(dict.fromkeys(f"{CHECK}{name}" for names in found for name in names))

    def decisions(self, since: int = 0) -> list[DecisionRecord]:
        """Return every decision in commit order, without the first `since`."""
        query = "SELECT at, trials, body FROM decisions ORDER BY id LIMIT -1 OFFSET :since"
        rows = self._rows(query, {"since": since})
        return self._made(lambda at, trials, body: DecisionRecord(moment(at), trials, load_json(body)), rows)

    def snapshots(self, since: float | None = None, most: int | None = None) -> Iterator[SnapshotRecord]:
        """Yield the snapshots that are kept, oldest first: all recent ones, older ones ever more sparsely.

        Parameters
        ----------
        since : float, optional
            Only those taken after this Unix time.
        most : int, optional
            At most about so many, spread evenly over the square root of the trials, since intervals narrow
            with it; the first and the latest among them.
        """
        chosen = None
        if most is not None:
            query = "SELECT id, trials FROM snapshots WHERE :since IS NULL OR at > :since ORDER BY id"
            chosen = json.dumps(spread(self._rows(query, {"since": since}), most))
        parameters = {"since": since, "chosen": chosen, "end": self._newest("snapshots")}
        yield from chain.from_iterable(self._batches(queries.SNAPSHOTS, parameters, self._snapshot))

    def running_time(self) -> float:
        """Return the seconds of running time of all sessions.

        It is that of the latest snapshot and, if the process was killed soon after that, the time up to
        the last trial launched, attempted or finished.
        """
        ((at, elapsed, event),) = self._rows(queries.RUNNING_TIME) or [(0.0, 0.0, None)]
        since = 0.0
        if event is not None:
            since = event - at
        if 0.0 < since <= _BETWEEN_SNAPSHOTS:
            return float(elapsed + since)
        return float(elapsed)

    def latest_snapshot(self) -> SnapshotRecord | None:
        """Return the latest snapshot, or None if there is none."""
        found = self._made(self._snapshot, self._rows("SELECT * FROM snapshots ORDER BY id DESC LIMIT 1"))
        if found:
            return found[0]
        return None

    def scorings(self) -> list[ScoringRecord]:
        """Return the scorings made after the run, oldest first; a scoring's place is its id."""
        rows = self._rows("SELECT name, at, body FROM scorings ORDER BY id")
        return self._made(
            lambda name, at, body: ScoringRecord(unpack(name), moment(at), load_json(body)), rows
        )

    def rescored(self, scoring: int) -> Iterator[Rescored]:
        """Yield the scores of the scoring of this id, in commit order."""

        def score(outcome: int, category: int | None, extracted: Packed | None, reason: Packed) -> Rescored:
            return Rescored(outcome, category, unpack_optional(extracted), unpack(reason))

        yield from self._made(score, self._rows(queries.RESCORED, {"scoring": scoring}))

    def launched(self) -> list[TrialRequest]:
        """Return the trials that were launched and have no outcome, in the order of their first launch.

        After a crash these are the ones whose answers were lost in flight. It looks through all launches.
        """
        rows = self._rows(queries.LAUNCHED)
        models, questions = self._asked()

        def request(model: int, step: int, question: int, repeat: int, seed: int) -> TrialRequest:
            return TrialRequest(TrialKey(models[model], step), *questions[question], repeat, seed)

        return self._made(request, dict.fromkeys(rows))

    def unanswered(self) -> list[tuple[TrialKey, int]]:
        """Return the trials with requests that may have been billed and have left nothing, and how many."""
        ((total,),) = self._rows(queries.UNANSWERED)
        if total:
            rows = self._rows(queries.UNANSWERED_BY_TRIAL)
        else:
            rows = []
        models = self._names("models")
        return self._made(lambda model, step, times: (TrialKey(models[model], step), times), rows)

    def unfinished(self) -> dict[TrialKey, list[AttemptRecord]]:
        """Return the failed attempts of trials without an outcome, and that a killed process has left them.

        An attempt of kind :data:`~adaptive_eval.store.records.KILLED` stands for a launch without an end; its
        server is not known.
        """
        rows = self._rows(queries.UNFINISHED)
        models = self._names("models")
        endpoints: dict[int | None, str] = {None: ""}
        endpoints.update(enumerate(self._names("endpoints")))
        found: dict[TrialKey, list[AttemptRecord]] = {}
        for record in self._made(partial(attempt_of, models, endpoints), rows):
            found.setdefault(record.key, []).append(record)
        return found

    def fastest_answers(self) -> dict[str, float]:
        """Return the seconds of the fastest answer of each server."""
        rows = self._rows(queries.FASTEST)
        endpoints = self._names("endpoints")
        return {endpoints[number]: seconds for number, seconds in rows}

    def lost_launches(self) -> dict[str, int]:
        """Return how many launches of each task a killed process has left without an end."""
        rows = self._rows(queries.LOST_LAUNCHES)
        tasks = self._names("tasks")
        return {tasks[task]: launches for task, launches in rows}

    def _reading(self) -> AbstractContextManager[None]:
        return decoding(self._files.database)

    def _rows(self, query: str, parameters: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        with self._reading():
            return self._db.execute(query, parameters or {}).fetchall()

    def _made(self, make: Callable[..., Made], rows: Iterable[tuple[Any, ...]]) -> list[Made]:
        """Return what is made of each row; names are read after the rows, which may be of new ones."""
        with self._reading():
            return [make(*row) for row in rows]

    def _batches(
        self, query: str, parameters: Mapping[str, Any], make: Callable[..., Made], first: int = -1
    ) -> Iterator[list[Made]]:
        """Yield the rows of `query` a batch at a time, each from ``:last`` on, the id its rows begin with."""
        last = first
        while rows := self._rows(query, {**parameters, "last": last}):
            yield self._made(make, rows)
            last = rows[-1][0]

    def _newest(self, table: str) -> int:
        with self._reading():
            return largest_id(self._db, table)

    def _names(self, table: str) -> tuple[str, ...]:
        """Return the names of a table; ids count from 0, so they are places in it."""
        return self._all_of(table, f"SELECT name FROM {table} ORDER BY id LIMIT -1 OFFSET :known", unpack)  # noqa: S608

    def _signal_sets(self) -> list[tuple[str, ...]]:
        """Return the names of the signals of each set."""
        return self._made(names_in, [(names,) for names in self._names("signal_sets")])

    def _asked(self) -> Names:
        """Return the names of the models, and task and id of the questions."""

        def question(task: Packed, name: Packed) -> tuple[str, str]:
            return unpack(task), unpack(name)

        return self._names("models"), self._all_of("questions", queries.QUESTIONS, question)

    def _all_of(self, table: str, query: str, make: Callable[..., Made]) -> tuple[Made, ...]:
        """Return what is made of a table that only grows; rows that are known are not read again."""
        known = self._interned.get(table, ())
        new = self._made(make, self._rows(query, {"known": len(known)}))
        if new:
            known = self._interned[table] = (*known, *new)
        return known


_TRIALS_AT_ONCE, _OUTCOMES_AT_ONCE = 64, 4096

_BETWEEN_SNAPSHOTS = 60.0
"""Most seconds between two snapshots of a session; after more, it is another session's event."""


def _snapshot(_: int, at: float, elapsed: float, trials: int, packed: Packed) -> SnapshotRecord:
    for stored in (elapsed, trials):
        if not isinstance(stored, int | float):
            raise TypeError(f"{stored!r:.40} is no number")
    body = load_json(packed)
    endpoints = tuple(EndpointHealth(**health) for health in body["endpoints"])
    for one in endpoints:
        if not isinstance(one.errors, dict) or not all(isinstance(n, int) for n in one.errors.values()):
            raise ValueError("the errors of an endpoint are no counts")
    return SnapshotRecord(moment(at), elapsed, trials, body["results"], endpoints)


def spread(snapshots: Sequence[tuple[int, int]], most: int) -> list[int]:
    """Return which of these snapshots to look at if about `most` are enough.

    They are spread evenly over the square root of the trials, in which a run's intervals narrow; of several
    with the same trials the latest counts.

    Examples
    --------
    >>> spread([(number, 10 * number) for number in range(101)], 5)
    [0, 6, 25, 56, 100]
    """
    if len(snapshots) <= most:
        return [number for number, _ in snapshots]
    first = math.sqrt(snapshots[0][1])
    last = math.sqrt(snapshots[-1][1])
    width = (last - first) / (most - 1) or 1.0
    nearest: dict[int, tuple[float, int]] = {}
    for number, trials in snapshots:
        place = (math.sqrt(trials) - first) / width
        slot = round(place)
        distance = abs(place - slot)
        if slot not in nearest or distance <= nearest[slot][0]:
            nearest[slot] = (distance, number)
    return sorted({snapshots[0][0], snapshots[-1][0], *(number for _, number in nearest.values())})
