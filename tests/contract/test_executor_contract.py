"""What every executor promises, here or elsewhere; and what those with workers promise when workers die."""

import asyncio
import pickle
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from desk_workers import PATIENCE, Desks, at_desks, built_at, in_process, mimic_spec, trial
from mimic_client import set_faults, stats

from adaptive_eval.build.assembly import PreparedRun, continue_run
from adaptive_eval.build.model_clients import endpoint_at
from adaptive_eval.build.workplace import setup_of
from adaptive_eval.core.results import Results
from adaptive_eval.engine.protocols import Executor
from adaptive_eval.errors import (
    EndpointError,
    PermanentEndpointError,
    ScorerUnavailable,
    TransientEndpointError,
    UsageError,
    WorkersLost,
)
from adaptive_eval.executors.remote import RemoteExecutor, Workers
from adaptive_eval.executors.worker import Answered, Job, JobScore, Worker
from adaptive_eval.mimic.process import MimicProcess
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.trial import Completion, Score, TrialKey, TrialRequest

Opened = Callable[[PreparedRun], AbstractAsyncContextManager[Executor]]


@pytest.fixture(scope="module")
def mimic() -> Iterator[MimicProcess]:
    with MimicProcess(mimic_spec()) as server:
        yield server


@pytest.fixture(params=["in-process", "desks", pytest.param("ray", marks=pytest.mark.ray)])
def opened(request: pytest.FixtureRequest) -> Opened:
    """Return what opens an executor for a run."""
    if request.param == "ray":
        return request.getfixturevalue("on_ray")
    return in_process if request.param == "in-process" else at_desks


def used(built: PreparedRun, open_: Opened, use: Callable[[Any, Executor], Any]) -> Any:
    """Return what `use` of a run's first server and an executor comes to, or the error."""

    async def main() -> Any:
        model = built.config.models[0]
        async with endpoint_at(model, model.addresses[0]) as server, open_(built) as executor:
            try:
                return await use(server, executor)
            except EndpointError as error:
                return error

    return asyncio.run(main())


def asked(built: PreparedRun, numbers: range, open_: Opened) -> list[tuple[str, Any]]:
    """Return text and score of the answers to some trials, as an executor gives them."""

    async def use(server: Any, executor: Executor) -> list[tuple[str, Any]]:
        async def one(number: int) -> tuple[str, Any]:
            request = trial(built, number)
            messages = built.tasks[0].render(built.tasks[0].by_id[request.question])
            (answer,) = await executor.attempt(server, messages, [request])
            score = await executor.score(request, answer)
            signals = {name: value for name, value in score.signals.items() if name != "latency"}
            return answer.text, replace(score, signals=signals)

        return await asyncio.gather(*map(one, numbers))

    return used(built, open_, use)


def first(built: PreparedRun) -> tuple[Any, list[TrialRequest]]:
    """Return what the first trial asks, as an attempt takes it."""
    return built.tasks[0].render(built.tasks[0].questions[0]), [trial(built, 0)]


def attempt(built: PreparedRun, open_: Opened, n: int = 1) -> Any:
    """Return what one attempt comes to: `n` answers, or the error."""
    messages, (one,) = first(built)
    requests = [replace(one, key=replace(one.key, index=i), seed=one.seed + i) for i in range(n)]
    return used(built, open_, lambda server, executor: executor.attempt(server, messages, requests))


def test_answers_and_scores_are_those_of_this_process(mimic, opened):
    built = built_at(mimic.base_url)
    found = asked(built, range(40), opened)
    assert found == asked(built, range(40), in_process)
    assert len({score.category for _, score in found}) == 2


def test_several_answers_come_in_order(mimic, opened):
    built = built_at(mimic.base_url)
    texts = [answer.text for answer in attempt(built, opened, n=4)]
    assert texts == [answer.text for answer in attempt(built, in_process, n=4)]
    assert len(texts) == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ({"kind": "status", "status": 429, "retry_after": 7}, TransientEndpointError),
        ({"kind": "status", "status": 500}, TransientEndpointError),
        ({"kind": "status", "status": 404}, PermanentEndpointError),
        ({"kind": "drop"}, TransientEndpointError),
    ],
    ids=["429", "500", "404", "dropped"],
)
def test_errors_cross_the_border_whole(opened, fault, kind):
    with MimicProcess(mimic_spec()) as server:
        set_faults(server, fault)
        built = built_at(server.base_url)
        here, there = (attempt(built, how) for how in (in_process, opened))
    assert type(there) is type(here) is kind
    assert (str(there), vars(there), there.billed) == (str(here), vars(here), here.billed)


def test_an_answer_from_elsewhere_is_scored(mimic, opened):
    built = built_at(mimic.base_url)
    target = built.tasks[0].questions[0].target

    async def use(_: Any, executor: Executor) -> list[int | None]:
        answers = [Completion(f"\\boxed{{{text}}}", "stop") for text in (target, "no number")]
        return [(await executor.score(trial(built, 0), answer)).category for answer in answers]

    assert used(built, opened, use) == [1, 0]


HANG = {"kind": "hang", "after": 0.0}


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.005)


def test_an_attempt_can_be_broken_off(opened):
    """Nothing is left of it, and the next one is answered."""
    with MimicProcess(mimic_spec()) as server:
        built = built_at(server.base_url)

        async def use(endpoint: Any, work: Any) -> Any:
            set_faults(server, HANG)
            out = asyncio.create_task(work.attempt(endpoint, *first(built)))
            await until(lambda: stats(server)["faults"].get("hang"))
            out.cancel()
            with pytest.raises(asyncio.CancelledError):
                await out
            set_faults(server)
            assert not sum(getattr(work, "workers", {}).values())
            return await work.attempt(endpoint, *first(built))

        (answer,) = used(built, opened, use)
        assert answer.text


# Workers that die: told to, at a known moment. Those of Ray are killed in test_ray_runs.py.


def test_what_a_dead_worker_had_in_hand_fails_as_its_own_and_another_is_started():
    with MimicProcess(mimic_spec()) as server:
        built = built_at(server.base_url)
        desks = Desks(built)

        async def use(endpoint: Any, executor: Any) -> Any:
            set_faults(server, HANG)
            out = asyncio.create_task(executor.attempt(endpoint, *first(built)))
            await until(lambda: sum(executor.workers.values()))
            desks.started[0].die()
            with pytest.raises(TransientEndpointError, match="has died") as caught:
                await out
            assert (caught.value.kind, caught.value.billed) == ("worker", True)
            set_faults(server)
            return await executor.attempt(endpoint, *first(built))

        (answer,) = used(built, lambda _: desks.executor(size=1), use)
        assert answer.text
    assert len(desks.started) == 2
    assert [remark for remark in desks.remarks if "has died: it was told to" in remark]


def test_an_answer_outlives_the_worker_that_was_to_score_it(mimic, monkeypatch):
    built = built_at(mimic.base_url)
    desks = Desks(built)
    messages, (request,) = first(built)

    async def never(*_: object) -> None:
        await asyncio.Event().wait()

    async def use(endpoint: Any, executor: Executor) -> int | None:
        monkeypatch.setattr(desks.started[0]._worker._executor._scoring, "score", never)
        (answer,) = await executor.attempt(endpoint, messages, [request])
        desks.started[0].die()
        with pytest.raises(ScorerUnavailable, match="has died"):
            await executor.score(request, answer)
        return (await executor.score(request, answer)).category

    assert used(built, lambda _: desks.executor(size=1), use) in (0, 1)
    assert len(desks.started) == 2


def test_a_worker_has_no_more_in_hand_than_it_may(mimic):
    built = built_at(mimic.base_url)
    desks = Desks(built)
    found = asked(built, range(40), lambda _: desks.executor(size=2, most=3))
    assert len(found) == 40
    assert all(1 <= desk.most <= 3 for desk in desks.started)


def test_a_bug_is_not_taken_for_a_failure(mimic, monkeypatch):
    built = built_at(mimic.base_url)
    desks = Desks(built)

    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("adaptive_eval.build.grading.Grading.score", broken)
    with pytest.raises(RuntimeError, match="ZeroDivisionError: a bug"):
        asked(built, range(1), lambda _: desks.executor())


def test_what_is_sent_to_workers_holds_no_secret(mimic, monkeypatch):
    """They take keys from their own environment, and say so where one is not set there."""
    monkeypatch.setenv("LAB_KEY", "sk-very-secret-1")
    monkeypatch.setenv("LAB_TEAM", "team-secret-2")
    keys = {"api_key_env": "LAB_KEY", "headers": {"X-Team": {"env": "LAB_TEAM"}}}
    built = built_at(mimic.base_url, keys)
    sent = pickle.dumps(setup_of(built))
    assert b"LAB_KEY" in sent
    assert b"secret" not in sent
    monkeypatch.delenv("LAB_KEY")
    with pytest.raises(UsageError, match="LAB_KEY is not set"):
        asked(built, range(0), at_desks)


class Told:
    """A worker that answers the first two requests of a job, the second with nothing, and scores 1."""

    name = "told"

    def __init__(self) -> None:
        self.events = asyncio.Queue[Any]()

    def submit(self, jobs: Any) -> None:
        for job in jobs:
            if job.answer is None:
                self.events.put_nowait([Answered(job.number, (ANSWER, None))])
            self.events.put_nowait([JobScore(job.number, 0, Score(1 if job.answer is None else 0))])

    async def collect(self) -> Any:
        return await self.events.get()

    async def stop(self) -> None:
        pass


ANSWER = Completion("4", "stop")
TRIALS = [TrialRequest(TrialKey("m", number), "t", "q", number, 7 + number) for number in range(3)]


def test_answers_that_did_not_come_leave_no_job_and_another_answer_is_scored_by_itself():
    """With no patience at all: a worker that has started ends the wait for one."""

    async def start(_: int) -> Any:
        return Told()

    async def main() -> None:
        workers = Workers(start, 1, 64, 0.0)
        async with RemoteExecutor(workers, scored={"t"}, scoring=None, remark=print) as executor:
            server = SimpleNamespace(url="")
            assert await executor.attempt(server, (), TRIALS) == (ANSWER, None)
            assert (await executor.score(TRIALS[0], Completion("5", "stop"))).category == 0
            await executor.attempt(server, (), TRIALS)
            assert (await executor.score(TRIALS[0], ANSWER)).category == 1
            assert executor.workers == {"told": 0}

    asyncio.run(main())


def test_a_worker_scores_each_answer_as_that_to_its_own_trial():
    async def attempt(*_: Any) -> Any:
        return None, ANSWER

    async def score(request: TrialRequest, _: Completion) -> Score:
        return Score(request.key.index)

    async def main() -> list[Any]:
        worker = Worker(SimpleNamespace(models=(), tasks=[SimpleNamespace(name="t")], pace=0.0))
        worker._executor = SimpleNamespace(attempt=attempt, score=score)
        worker._endpoint = lambda *_: None
        await worker.submit([Job(1, "", (), TRIALS, None)])
        found = list(await worker.collect())
        while len(found) < 2:
            found += await worker.collect()
        return found

    assert asyncio.run(main()) == [Answered(1, (None, ANSWER)), JobScore(1, 1, Score(1))]


# Whole runs


def reached(built: PreparedRun, folder: Path, open_: Opened) -> Results:
    """Run to the end with an executor, check the books, and return the results."""

    async def main() -> Results:
        session, endpoints = built.session(), built.endpoints(None)
        async with open_(built) as executor, AsyncExitStack() as connections:
            for endpoint in chain.from_iterable(endpoints.values()):
                await connections.enter_async_context(endpoint)
            create = partial(RunWriter.create, folder, meta=built.meta())
            with continue_run(built, folder) if built.continued else create() as writer:
                with writer.reader() as reader:
                    session.replay(reader.log(), reader.unanswered())
                await built.runner(session, writer, endpoints, executor=executor).run()
        return session.results()

    results = asyncio.run(main())
    with RunReader(folder) as reader:
        keys = Counter(record.request.key for record in reader.trials())
        good = Counter(one.key for one in reader.attempts() if one.error is None)
        assert all(record.missing is None for record in reader.trials())
    assert set(keys.values()) == {1}
    assert good == keys or built.continued
    return results


def decided(results: Results) -> Any:
    return [(pair.first, pair.second, pair.verdict, pair.decided_at) for pair in results.pairs]


def test_the_same_decisions_whoever_does_the_work(tmp_path, mimic, opened):
    built = built_at(mimic.base_url)
    there = reached(built, tmp_path / "there", opened)
    assert decided(there) == decided(reached(built, tmp_path / "here", in_process))


def test_workers_that_die_all_the_time_decide_nothing(tmp_path, mimic):
    built = built_at(mimic.base_url, retry={"attempts": 50, "requeue": 50})
    desks = Desks(built, lifetime=10)
    there = reached(built, tmp_path / "there", lambda _: desks.executor())
    assert len(desks.started) >= 4
    assert decided(there) == decided(reached(built, tmp_path / "here", in_process))
    with RunReader(tmp_path / "there") as reader:
        assert "worker" in {one.error for one in reader.attempts()}


def test_a_run_without_workers_ends_and_is_resumed(tmp_path, mimic):
    """With the first two every worker is gone; another sitting, here in one process, goes on."""
    built = built_at(mimic.base_url)
    desks = Desks(built, refuse_after=2, lifetime=20)
    with pytest.raises(WorkersLost, match="no worker is left"):
        reached(built, tmp_path / "there", lambda _: desks.executor())
    with RunReader(tmp_path / "there") as reader:
        assert 0 < reader.count() < 200
        built = replace(built, continued=reader.meta())

    there = reached(built, tmp_path / "there", in_process)
    assert decided(there) == decided(reached(replace(built, continued=None), tmp_path / "here", in_process))
