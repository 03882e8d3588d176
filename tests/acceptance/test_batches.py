"""Runs in batches of OpenAI and Anthropic: decided as live, and nothing delivered is asked again."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from answering_server import two_models
from batch_mimic import BatchMimic
from command_line import (
    Reached,
    Running,
    answered_seeds,
    hold_back,
    in_process,
    mimic_spec,
    quickstart,
    ran,
    set_faults,
    started,
    trials,
    write_config,
)

from adaptive_eval.build.model_clients import model_clients_of
from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.endpoints.batch_interfaces import AnthropicBatches, OpenAIBatches
from adaptive_eval.endpoints.batches import Batch, Batches, BatchInterface, BatchOptions
from adaptive_eval.engine.limits import BatchRounds
from adaptive_eval.errors import TransientEndpointError
from adaptive_eval.mimic.mimic_spec import FaultSpec, LatencySpec
from adaptive_eval.mimic.process import MimicProcess
from adaptive_eval.options.request_options import BatchConfig
from adaptive_eval.store.records import TrialRecord

SLOW = LatencySpec(median=0.2, sigma=0.3)
MODELS = ("sage", "novice", "guesser")
BATCH = {"concurrency": 64, "batch": {"gather": 0.05, "poll": 0.05}}
SLOWLY = ["chat", pytest.param("messages", marks=pytest.mark.slow)]
PATHS = {"chat": "batches", "messages": "messages/batches"}


def batches(mimic: MimicProcess, api: str) -> list[dict[str, Any]]:
    return httpx.get(f"{mimic.url}/v1/{PATHS[api]}", params={"limit": 100}).json()["data"]


def status(batch: dict[str, Any]) -> str:
    return str(batch.get("status", batch.get("processing_status")))


def until_asked(running: Running, mimic: MimicProcess, api: str) -> dict[str, Any]:
    """Wait for a batch that is under way."""
    while True:
        for batch in batches(mimic, api):
            if status(batch) == "in_progress":
                return batch
        assert running.for_a_moment(), "it ended without a batch"


def config_of(folder: Path, mimic: MimicProcess, **more: Any) -> Path:
    data = quickstart(base_url=mimic.base_url)
    data["models"] = [{**model, **more} for model in data["models"] if model["name"] in MODELS]
    return write_config(folder, data)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Reached]:
    """Return what the same run decides without faults: live, and for lack of a seed there, in batches."""
    reached = {}
    for api, more in (("chat", {}), ("messages", BATCH)):
        folder = tmp_path_factory.mktemp(api)
        with BatchMimic(mimic_spec(models=MODELS)) as mimic:
            path = config_of(folder, mimic, api=api, **more)
            ran(path)
        reached[api] = Reached.by(folder / "run")
    return reached


@pytest.mark.slow
@pytest.mark.parametrize("api", SLOWLY)
def test_it_decides_as_a_live_run(tmp_path, undisturbed, api, monkeypatch):
    monkeypatch.setattr(OpenAIBatches, "most_bytes", 4000)  # so that a round is split
    faults = (FaultSpec(kind="status", status=500, probability=0.1),)
    with BatchMimic(mimic_spec(models=MODELS, faults=faults)) as mimic:
        config = config_of(tmp_path, mimic, api=api, **BATCH)
        ran(config)
        sent = batches(mimic, api)
        files = [
            httpx.get(f"{mimic.url}/v1/files/{one['input_file_id']}/content").content
            for one in sent
            if api == "chat"
        ]
        assert set(answered_seeds(mimic).values()) == {1}
    assert Reached.by(tmp_path / "run") == undisturbed[api]
    assert all(len(file) <= 4000 for file in files)
    assert {status(batch) for batch in sent} <= {"completed", "ended"}


@pytest.mark.parametrize(("goal", "slots"), [("ranking", 100), ("budget", 5000)])
def test_without_a_concurrency_a_round_follows_the_forecast_or_has_all_that_is_asked(tmp_path, goal, slots):
    data = two_models(tmp_path, "http://127.0.0.1:9/v1", goal=goal)
    data["models"] = [{**one, "batch": True, "concurrency": "auto"} for one in data["models"]]
    config = config_from_data(data, tmp_path)
    clients = model_clients_of(config, {"good": (), "bad": ()}, config.retry)
    assert {type(one.limit): one.limit.slots for one in clients.values()} == {BatchRounds: slots}
    clients["good"].limit.expect(trials=9.0, models=4)
    assert clients["good"].limit.slots == 20  # at least, as a batch takes hours


@pytest.mark.slow
@pytest.mark.parametrize(("harm", "api"), [("killed", "chat"), ("killed while it sent", "messages")])
def test_a_killed_run_picks_its_batches_up(tmp_path, undisturbed, harm, api):
    with BatchMimic(mimic_spec(latency=SLOW, models=MODELS)) as mimic:
        config = config_of(tmp_path, mimic, api=api, **BATCH)
        command = ("run", config, "--out", "run", "--display", "none")
        with started(*command, cwd=tmp_path) as running:
            until_asked(running, mimic, api)
            running.process.kill()
            running.process.wait()
        if harm == "killed while it sent":  # which leaves notes without a batch
            notes = tmp_path / "run" / "batches.jsonl"
            kept = [
                line
                for line in notes.read_text("utf-8").splitlines()
                if "batch" not in json.loads(line) or "guesser" in line
            ]
            notes.write_text("\n".join([*kept, '{"label": "cut o']), "utf-8")
        in_process(*command, cwd=tmp_path, code=0)
        assert set(answered_seeds(mimic).values()) == {1}
    assert Reached.by(tmp_path / "run") == undisturbed[api]


def spend(folder: Path, mimic: MimicProcess, api: str, **budget: int) -> list[TrialRecord]:
    """Spend a budget in batches, and return the trials."""
    data = two_models(folder, mimic.base_url, goal="budget", budget=budget)
    data["on"] = {"length": "wrong"}  # their answers are cut off, and only what is paid counts here
    data["models"] = [{**one, "name": name, "api": api, **BATCH}
                      for one, name in zip(data["models"], MODELS, strict=False)]  # fmt: skip
    ran(write_config(folder, data), code=0)
    return trials(folder / "run")


@pytest.mark.parametrize(
    ("harm", "api"),
    [
        ("cancel", "messages"),
        ("expire", "chat"),
        pytest.param("cancel", "chat", marks=pytest.mark.slow),
        pytest.param("expire", "messages", marks=pytest.mark.slow),
    ],
)
def test_what_a_batch_delivered_before_it_ended_is_not_asked_again(tmp_path, harm, api, monkeypatch):
    interface: type[BatchInterface] = OpenAIBatches if api == "chat" else AnthropicBatches
    look = interface.look
    harmed: list[str] = []
    with BatchMimic(mimic_spec(models=MODELS)) as mimic:
        hold_back(mimic, 8)

        async def disturbed(sent: Any, batch: Batch) -> Batch:
            if not harmed and len(answered_seeds(mimic)) >= 8:
                set_faults(mimic)
                harmed.extend(one["id"] for one in batches(mimic, api) if status(one) == "in_progress")
                for name in harmed:
                    httpx.post(f"{mimic.url}/v1/{PATHS[api]}/{name}/{harm}").raise_for_status()
            return await look(sent, batch)

        monkeypatch.setattr(interface, "look", disturbed)
        records = spend(tmp_path, mimic, api, trials=40)
        assert set(answered_seeds(mimic).values()) == {1}
        ended = {one.get("rest", status(one)) for one in batches(mimic, api)}
    assert len(ended) == 2
    assert sum(record.score is not None for record in records) == 40


@pytest.mark.parametrize("api", SLOWLY)
def test_a_budget_that_ends_within_a_batch_holds(tmp_path, api):
    limit = 64 * 10 - 1  # the worst case of nine answers; all of a pass would be forty
    with BatchMimic(mimic_spec(models=MODELS)) as mimic:
        records = spend(tmp_path, mimic, api, completion_tokens=limit)
        assert sum(answered_seeds(mimic).values()) == len(records)
        sizes = [one["request_counts"] for one in batches(mimic, api) if api == "messages"]
    assert len(records) > 9
    assert limit - 64 < sum(record.usage.completion_tokens for record in records) <= limit
    assert all(sum(counts.values()) <= 9 for counts in sizes)


def test_a_server_without_batches_is_named(tmp_path):
    with BatchMimic(mimic_spec(models=MODELS)) as mimic:
        data = two_models(tmp_path, f"{mimic.url}/nothing/v1", goal="budget", budget={"trials": 4})
        for model in data["models"]:
            model |= {"concurrency": 4, "batch": True}
        done = ran(write_config(tmp_path, data), code=4)
    assert "404" in done.said


class Noting(BatchInterface):
    """Keeps what is sent, and answers each request with itself."""

    most, most_bytes = 3, 1000

    def __init__(self) -> None:
        self.options = BatchOptions("run", BatchConfig(gather=0.0, poll=0.001))
        self.sent: list[dict[str, Any]] = []
        self.earlier: list[dict[str, Any]] = []  # batches of an earlier session
        self.busy: Iterator[bool] = iter(())  # whether the next looks at a batch fail

    def line(self, name: str, path: str, body: Any) -> Any:
        return body

    async def send(self, lines: Any) -> Batch:
        self.sent.append(dict(lines))
        return Batch(str(len(self.sent) - 1), "begun", True)

    async def own(self) -> list[Batch]:
        return [Batch(str(number), "of before", False) for number in range(len(self.earlier))]

    async def look(self, batch: Batch) -> Batch:
        self._fail()
        return Batch(batch.name, "ended", False)

    async def asked(self, batch: Batch) -> list[str]:
        return []

    def _fail(self) -> None:
        if next(self.busy, False):
            raise TransientEndpointError("busy", kind="server")

    async def answers(self, batch: Batch) -> dict[str, Any]:
        self._fail()
        return (self.earlier if batch.status == "of before" else self.sent)[int(batch.name)]


@pytest.mark.parametrize(
    ("lengths", "sizes"),
    [([1] * 7, [3, 3, 1]), ([400] * 3, [2, 1]), ([10, 2000, 10], [1, 1, 1]), ([960, 10, 10], [1, 2])],
)
def test_a_batch_has_no_more_requests_or_bytes_than_the_provider_takes(lengths, sizes):
    async def ask() -> list[Any]:
        batches = Batches(noting)
        asked = [
            batches.post("/chat", {"n": n, "text": "é" * (length // 6)}, n)
            for n, length in enumerate(lengths)
        ]
        answers = await asyncio.gather(*asked)
        await batches.aclose()
        return [answer["n"] for answer, _ in answers]

    noting = Noting()
    assert asyncio.run(ask()) == [*range(len(lengths))]
    assert [len(lines) for lines in noting.sent] == sizes


def test_what_was_in_a_batch_is_not_sent_again_and_what_nobody_waits_for_not_at_all():
    async def main() -> None:
        first, later = Noting(), Noting()
        batches = Batches(first)
        kept = asyncio.create_task(batches.post("/chat", {"n": 1}, 7))
        gone = asyncio.create_task(batches.post("/chat", {"n": 2}, 8))
        await asyncio.sleep(0)
        gone.cancel()
        first.busy = iter((True, False, True))  # a batch is paid for: no look that fails ends it
        assert await kept == ({"n": 1}, {})
        assert [len(lines) for lines in first.sent] == [1]
        later.earlier = [*first.sent, dict.fromkeys(first.sent[0], "of an older batch")]
        batches = Batches(later)
        assert await batches.post("/chat", {"n": 1}, 7) == ({"n": 1}, {})
        assert later.sent == []
        assert await batches.post("/chat", {"n": 1}, 7) == ({"n": 1}, {})  # asked again, it is a new request
        assert [len(lines) for lines in later.sent] == [1]
        async with asyncio.timeout(10):
            await asyncio.gather(*(batches.post("/chat", {"n": 3}, seed) for seed in (None, None, 7)))
            await asyncio.gather(*(batches.post("/chat", {"n": 3}, seed) for seed in (8, 9)))
        # Equal requests without a seed are two, and so are those whose seeds the body does not hold.
        assert [len(lines) for lines in later.sent] == [1, 3, 2]

    asyncio.run(main())
