"""What views say of stored answers whose kinds are crossed: accounts, examples, lists, pages of trials."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import run_examples as runs
from crossed_options import Case, Options, Refused, category, chance, plain, spec_of

from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import BudgetSpec, GoalSpec, SessionSpec
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import AttemptRecord, TrialRecord
from adaptive_eval.trial import (
    AGAINST,
    CHECK,
    COPY_REASON,
    NO_ANSWER,
    UNSCORED,
    Completion,
    Score,
    TrialRequest,
    Usage,
)
from adaptive_eval.views.answer_list import Wanted, key_named, part_of, samples_in_file, samples_page
from adaptive_eval.views.details import Details, settings
from adaptive_eval.views.reading import summarise
from adaptive_eval.views.report_json import report_data
from adaptive_eval.views.trial_page import trial_page
from adaptive_eval.views.trials import others_on, sample_data, sample_lines

ANSWERS: Options = {
    "scores": ("right", "uneven", "numbers", "mixed"),
    "lost": ("some", "unscored", "copies", "cut-off", "discarded"),
    "said": ("short", "empty", "thought", "tools", "long"),
    "signals": ("few", "checks", "against", "judged"),
    "sent": ("messages", "prompt", "several"),
    "tasks": ("two", "one", "weighed"),
    "models": ("three", "one"),
    "target": ("benchmark", "population"),
    "known": ("yes", "no"),
    "ended": ("late", "in-time", "killed"),
}
"""The options of stored answers."""
ANSWERS_REFUSED: Refused = (("scores", "mixed", "tasks", "one"),)


QUERIES: Sequence[Mapping[str, str]] = (
    {}, {"kind": "right"}, {"kind": "wrong", "model": "1"}, {"kind": "missing"}, {"kind": "cut"},
    {"kind": "discarded", "task": "0"}, {"beaten": "1", "model": "0"}, {"text": "What is Q4"},
    {"text": "answer 7", "task": "1"}, {"text": "think 1"}, {"model": "9", "kind": "none"},
)  # fmt: skip
"""What a reader asks a list for."""


def answer_facts(written: Case) -> Iterator[tuple[str, Any]]:
    """Yield what each view says of the answers of a run."""
    case = {name: written.get(name, values[0]) for name, values in ANSWERS.items()}
    with TemporaryDirectory() as place:
        made = StoredAnswers(case, Path(place) / "run-1")
        with RunReader(made.run) as reader:
            yield from made.views(reader)


class StoredAnswers:
    """A run whose answers are of the kinds of a case."""

    def __init__(self, case: Mapping[str, Any], run: Path) -> None:
        self.case, self.run = case, run
        self.name = plain(case, ANSWERS)
        asked = {name: case[name] for name in ("scores", "tasks", "target") if name in case}
        spec = spec_of({**asked, "questions": "schedule", "equivalence": "none"})
        if case["models"] == "one":
            spec = replace(spec, models=spec.models[:1])
        trials = 150 if case["said"] == "short" else 80
        self.spec: SessionSpec = replace(
            spec, goal=GoalSpec("budget"), budget=BudgetSpec(trials=trials), references=(), prior=None
        )
        self.tasks = {task.name: task for task in self.spec.tasks}
        self.session = Session(self.spec)
        meta = {"name": "run-1", "started_at": repr(runs.STARTED), "seed": "7", "base_dir": "/home/someone"}
        meta |= {"source": "/home/someone/run.yaml", "versions": '{"adaptive-eval": "1.0"}', "changes": "[]"}
        meta |= {"config": "a: 1\nb: 2\n", "note": "x" * 201, "short": "x" * 200}
        runs.store_run(
            run, meta, self.session, self.answer, slots=15, one_by_one=case["ended"] == "late",
            rounds=4 if case["ended"] == "killed" else None,
        )  # fmt: skip

    def part(self, *key: object) -> float:
        """Return a number from 0 to 1."""
        return chance("answers", self.name, *key)

    def answer(self, request: TrialRequest, at: float, *, after_stop: bool = False) -> TrialRecord:
        """Return a trial: its fate follows from its key."""
        key, lost = request.key, self.case["lost"]
        fate, sent = self.part("fate", key), self.sent(request)
        told: dict[str, Any] = {"after_stop": after_stop, "sent": sent}
        gone = {"some": 0.12 + (key.model == "m2")}.get(lost, 0.0)
        if lost == "discarded" and fate < 0.2:
            told["discarded"] = (("timeout",), ("timeout", "timeout"), ("killed",), ("server",))[
                int(fate / 0.05)
            ]
            gone = 0.02
        if fate < gone:
            return TrialRecord(
                request, at, None, None, ("timeout", "HTTP 500: gone")[int(20 * fate) % 2], **told
            )
        score, reason = self.score(request), None
        completion = self.said(request, score)
        if (lost == "unscored" and fate < 0.15) or (lost == "copies" and request.repeat and fate < 0.3):
            reason = COPY_REASON if lost == "copies" else f"{UNSCORED}no number"
            score = replace(score, category=None, reason="no number")
        return TrialRecord(request, at, completion, score, reason, **told)

    def sent(self, request: TrialRequest) -> dict[str, Any]:
        """Return the body of a request."""
        words = f"What is {request.question}?"
        asked = {"role": "user", "content": words}
        system = {"role": "system", "content": "Be 7 times brief."}
        parts = [{"type": "text", "text": words}, {"type": "image_url", "image_url": {"url": "x"}}]
        messages = {
            "messages": [asked],
            "several": [system, asked, {"role": "assistant-7", "content": "1"}, {**asked, "content": parts}],
        }.get(self.case["sent"])
        settings = {"temperature": 0.7, "max_tokens": 64}
        return {**settings, "prompt": words} if messages is None else {**settings, "messages": messages}

    def said(self, request: TrialRequest, score: Score) -> Completion:
        """Return an answer."""
        key, kind = request.key, self.case["said"]
        cut, long = self.part("cut", key), int(40 * self.part("long", key))
        words = f"The answer {long} is {score.extracted}"
        more: dict[str, Any] = {}
        if kind == "long":
            words += " very" * (60 * long)
        if kind == "empty" and cut < 0.4:
            words = ""
        if kind == "thought":
            more = {"reasoning": f"I think {long}", "reasoning_tokens": long}
        call = {"id": "c1", "name": "add", "arguments": f'{{"a": {long}}}'}
        if kind == "tools" and long % 3:
            words = words if cut < 0.5 else ""
            more = {"tool_calls": (call,) * (1 + long % 2)}
        if kind == "tools" and not long % 3:
            made = {"messages": [{"role": "user", "content": f"Step {long}"}], "text": "5"}
            made |= {"finish_reason": "stop", "tokens": [7, long]}
            more = {"calls": (made, {**made, "tool_calls": [call]})}
        end = "length" if score.signals.get("truncated") else "stop"
        return Completion(words, end, Usage(100 + long, 40 + long, 3), latency=0.5 + cut, **more)

    def score(self, request: TrialRequest) -> Score:
        """Return what an answer is worth."""
        key, task = request.key, self.tasks[request.task]
        mean = (0.95, 0.5, 0.2)[int(key.model[1:])]
        worth = category(task, mean, (key.model, request.task, request.question), (self.name, key))
        draw, kind = self.part("draw", key), self.case["signals"]
        best = max(range(len(task.weights)), key=task.weights.__getitem__) if not task.numbers else -1
        signals: dict[str, Any] = {"is_correct": worth == best}
        if task.numbers:
            signals = {"score": task.weights.score(worth), "length": 12.25 * draw}
        elif len(task.weights) > 2:
            signals = {"is_correct": worth == best, "has_box": True} if draw < 0.5 else {"has_box": False}
        if self.case["lost"] == "cut-off" and draw < 0.25:
            signals["truncated"] = True
            worth = worth if draw < 0.05 else 0
        if self.case["said"] == "empty" and self.part("cut", key) < 0.4:
            signals[f"{NO_ANSWER}{'empty' if draw < 0.5 else 'refusal'}"] = True
        if kind == "checks":
            signals |= {f"{CHECK}right": worth == best, f"{CHECK}style": draw}
        if kind == "against":
            signals[AGAINST] = f"stored answer {int(9 * draw)}"
        if kind == "judged":
            signals["judged_changed" if draw < 0.1 else "judged_same"] = True
            signals.setdefault("score", draw)
        extracted = None if draw > 0.9 else f"{int(99 * draw)}"
        return Score(worth, extracted, signals, f"reason {int(9 * draw)}" if draw < 0.7 else "")

    def target(self, record: TrialRecord) -> str | None:
        """Return the expected answer."""
        if self.case["known"] == "no" or record.request.question.endswith("3"):
            return None
        return f"target {record.request.question}"

    # ------------------------------------------------------------------ what is shown

    def views(self, reader: RunReader) -> Iterator[tuple[str, Any]]:
        """Yield each view with what it shows."""
        summary = summarise(reader, examples_with=self.target)
        known: Details = summary.whole_details
        data = report_data(summary)
        found = {key: data[key] for key in ("counts", "models", "questions", "promises", "run")}
        found |= {"stored": known.stored, "judged": known.judged, "settings": settings(known.meta)}
        shown = samples_in_file(known.examples, summary.labels(20), known.stored)
        yield "details", found | {"examples": shown}
        names = [line.model for line in summary.results.models]
        numbers = {name: place for place, name in enumerate(names)}
        records = list(reader.trials())
        yield "samples", list(map(self.sample, records[:60:2] + records[60::7]))
        yield "lists", list(self.lists(reader, names, numbers))
        failed = AttemptRecord(
            records[0].request.key, 1, "http://localhost:9/v1", 7.5, 0.25, 503, "server", "gone 7"
        )
        pages = [
            trial_page(one, others_on(reader, one, names), [failed][place % 2 :], numbers, self.target(one))
            for place, one in enumerate(records[3:40:6])
        ]
        yield "pages", pages

    def sample(self, record: TrialRecord) -> tuple[dict[str, Any], list[str]]:
        """Return a trial as data, and as a terminal shows it."""
        categories, target = ("low-0", "high-1"), self.target(record)
        lines = sample_lines(record, categories, target, full=record.request.key.index % 3 == 0)
        return sample_data(record, categories, target), list(lines)

    def lists(self, reader: RunReader, names: list[str], numbers: Mapping[str, int]) -> Iterator[Any]:
        """Yield the pages of lists of answers."""
        tasks = list(self.tasks)
        for query in QUERIES:
            wanted = Wanted.asked(query)
            filters = wanted.filters(names, tasks, 1)
            part = part_of(reader, wanted, filters, None, back=False)
            yield samples_page(wanted, part, names, tasks, numbers, self.target)
            if part.after is not None:
                beyond = key_named(f"{numbers[part.after.model]}-{part.after.index}", names)
                for back in (False, True):
                    other = part_of(reader, wanted, filters, beyond, back=back)
                    keys = [one.request.key for one in other.records]
                    yield keys, other.before, other.after, other.looked_at
