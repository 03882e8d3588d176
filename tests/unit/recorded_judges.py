"""Judges of several tasks in one run, with anchors and budgets of their own: what they say, ask and spend."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from course_facts import digest, text, together
from crossed_options import Case, Options, Refused, chance
from recorded_configs import folder
from recorded_graders import Server

from adaptive_eval.build import grading_model
from adaptive_eval.build.anchors import Anchors, anchors_of, resume_anchors
from adaptive_eval.build.assembly import build
from adaptive_eval.build.grading import Grading, GradingBudget
from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.core.session import Session
from adaptive_eval.engine.judge_watch import JudgeWatch
from adaptive_eval.errors import ScorerUnavailable
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TrialRecord
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.trial import UNSCORED, Completion, TrialRequest, Usage

JUDGES: Options = {
    "kind": ("judge", "number", "pairwise", "checks"),
    "replies": ("plain", "noisy", "nonsense", "failing", "turning"),
    "tasks": ("two", "one-judged", "one"),
    "anchors": ("some", "usual", "all", "none"),
    "budget": ("none", "requests", "tokens", "usd"),
    "votes": ("one", "three"),
    "cut": ("judged", "zero", "missing"),
}
"""The options of judges; a judge that turns says the opposite from some request on."""
JUDGES_REFUSED: Refused = ()
JUDGE: Mapping[str, Any] = {
    "kind": "judge",
    "endpoint": "http://judge/v1",
    "model": "wise",
    "max_tokens": 200,
}
KINDS: Mapping[str, Mapping[str, Any]] = {
    "judge": {}, "number": {"range": [2, 10]}, "pairwise": {"compare": "pairwise"}, "checks": {},
}  # fmt: skip
BUDGETS: Mapping[str, Any] = {
    "requests": {"budget": {"requests": 70}}, "tokens": {"budget": {"tokens": "900k"}},
    "usd": {"budget": {"usd": 1.5}, "price": {"input": 1.0, "output": 2.0}},
}  # fmt: skip


OTHERWISE = {"correct": "wrong", "wrong": "correct", "first": "second", "second": "first", "tie": "first"}


class Turning(Server):
    """A server whose judge may change."""

    async def sample(self, messages: Any, **options: Any) -> list[Completion]:
        """Return one reply; from some request on it says the opposite."""
        (reply,) = await super().sample(messages, **options)
        if self.replies != "turning" or len(self.asked) < 45:
            return [reply]
        said = json.loads(reply.text[reply.text.index("{") : reply.text.rindex("}") + 1])
        verdict = said["verdict"]
        said["verdict"] = OTHERWISE[verdict] if verdict in OTHERWISE else 12 - verdict
        return [Completion(json.dumps(said), "stop", reply.usage)]


def config_of(case: Case) -> Any:
    """Return the config of a case."""
    tasks = []
    for place, (name, size) in enumerate((("long", 5), ("short", 3))):
        judge: dict[str, Any] = {**JUDGE, **KINDS[case["kind"]], **BUDGETS.get(case["budget"], {})}
        judge["votes"] = {"one": 1, "three": 3}[case["votes"]]
        if place:  # another judge, with another account
            judge |= {"criteria": "Words count.", "second_votes": 0.5}
            most = 200 if case["replies"] == "turning" else 44
            judge["budget"] = {"requests": most} if case["budget"] != "none" else None
        if case["anchors"] != "usual":
            judge["anchors"] = {"some": 4 - place, "all": 30, "none": 0}[case["anchors"]]
        scorer: Any = judge
        if case["kind"] == "checks":
            scorer = {"kind": "checks", "by": "mean", "parts": {"n": "numeric", "j": judge}}
            scorer["right_from"] = 0.4
        if place and case["tasks"] == "one-judged":
            scorer = "numeric"
        task = {"name": name, "dataset": f"{name}.jsonl", "limit": size, "scorer": scorer}
        if case["kind"] != "number" or scorer == "numeric":
            task["rubric"] = {"truncated": "zero" if case["cut"] == "zero" else "judged"}
        tasks.append(task)
    models = [{"name": name, "endpoints": ["http://one/v1"]} for name in "abc"]
    data = {
        "name": "demo", "seed": 2, "models": models, "tasks": tasks[: 1 if case["tasks"] == "one" else 2],
        "goal": "budget", "budget": {"trials": 130 if case["replies"] == "turning" else 66},
        "stopping": {"max_passes": 7}, "allocation": {"questions": "schedule"},
        "on": {"length": "missing"} if case["cut"] == "missing" else {},
    }  # fmt: skip
    return config_from_data(data, folder())


def judge_facts(written: Case) -> list[str]:
    """Return what judges say of the answers of a run, and what that takes."""
    case = {name: written.get(name, values[0]) for name, values in JUDGES.items()}
    server = Turning(case["replies"])
    at_once = patch.multiple("adaptive_eval.engine.retry", TICK=0.0, backoff=lambda failures: 0.0)
    stopped = patch.object(grading_model, "time", SimpleNamespace(monotonic=lambda: 0.0))
    with patch.object(grading_model, "OpenAIChat", server.made), at_once, stopped:
        return asyncio.run(_judged(case, server))


async def _judged(case: Case, server: Server) -> list[str]:
    built = build(config_of(case))
    anchors = anchors_of(built.tasks, built.scorers, [one.name for one in built.config.models])
    watch = JudgeWatch({task: one.number for task, one in anchors.items()})
    budget = GradingBudget(built.tasks, built.scorers)
    session = Session(built.spec)
    found: dict[str, list[TrialRecord]] = {task.name: [] for task in built.tasks}
    rooms = []
    async with Grading(built.tasks, built.scoring, anchors=anchors) as grading:
        while requests := session.ask(12):
            records = [await judged(case, grading, one) for one in requests]
            for record in records:
                found[record.request.task].append(record)
                watch.take(record.logged())
            session.tell([one.outcome for one in records])
            rooms.append(budget.room())
    facts = [f"{task} {' '.join(record_facts(records))}" for task, records in found.items()]
    again = resumed(built, [one for records in found.values() for one in records])
    assert [again[task].kept for task in anchors] == [one.kept for one in anchors.values()]
    for task, one in anchors.items():
        peak = watch._judges[task].evidence.peak
        facts.append(f"anchors {task} {one.number} {text(sorted(one.kept))} {text(peak)}")
    changes = [(one.model, one.trials, one.before, one.after) for one in watch.changes]
    facts.append(f"watched {text(watch.watched)} {text(changes)}")
    lines = [f"{one.owner}:{one.name}={text([one.spent, one.reserved, one.limit])}" for one in budget.lines()]
    facts.append(f"budget {' '.join(lines).replace(' of ', '-of-')} rooms={text(rooms)}")
    if budget.room() is not None:
        facts.append(f"spent {text(budget.spent())}")
    return [*facts, f"asked {len(server.asked)} {digest(server.asked)}"]


def resumed(built: Any, records: list[TrialRecord]) -> dict[str, Anchors]:
    """Return the anchors of a run that is continued from these trials."""
    again = anchors_of(built.tasks, built.scorers, [one.name for one in built.config.models])
    with TemporaryDirectory() as place:
        with RunWriter.create(Path(place, "run"), meta={"name": "run"}) as writer:
            writer.launch([one.request for one in records], 1e9)
            for one in records:
                writer.outcome(one)
        with RunReader(Path(place, "run")) as reader:
            resume_anchors(again, built.tasks[::-1], reader)  # in any order: the second judge has few
    return again


async def judged(case: Case, grading: Grading, request: TrialRequest) -> TrialRecord:
    """Return a trial with its answer as it is judged."""
    key = (request.key.model, request.question, request.repeat)
    said = ("", "It is 4.", "2", "12", "I hold that it is 8, as always.", "6")[int(6 * chance("said", key))]
    ended = "length" if chance("cut", key) < 0.15 else "stop"
    completion = Completion(said, ended, Usage(9, 5))
    try:
        score = await grading.score(request, completion)
    except ScorerUnavailable as error:
        return TrialRecord(request, 1e9, None, None, "unavailable", discarded=error.discarded)
    missing = f"{UNSCORED}{score.reason}" if score.category is None else None
    return TrialRecord(request, 1e9 + request.key.index, completion, score, missing)


def record_facts(records: list[TrialRecord]) -> Iterator[str]:
    """Yield how some answers count, and what is known of them."""
    scores = [one.score for one in records if one.score is not None]
    kinds = ["x" if one.category is None else str(min(one.category, 9)) for one in scores]
    yield "".join(kinds) or "none"
    words = [sorted(one.signals.items()) for one in scores]
    figures = [value for signals in words for _, value in signals if isinstance(value, float)]
    plain = [[(name, value) for name, value in one if not isinstance(value, float)] for one in words]
    yield digest([plain, [one.discarded for one in records], [one.discarded for one in scores]])
    yield text(together(figures))
