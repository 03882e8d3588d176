"""What must not matter does not: names, order of models and categories, scale, batches, outcomes told twice.

Some of the recorded courses are replayed in another dress; nothing is recorded of that.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import isclose
from typing import Any

import pytest
import recorded_courses as courses
from crossed_options import case_of

from adaptive_eval.core.one_look import OneLook
from adaptive_eval.core.results import Decision, PairResult, from_json, to_json
from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import GoalSpec, SessionSpec
from adaptive_eval.trial import LAID_OUT, Missing, ScoreRange, TrialKey, TrialOutcome

KNOWN = list(courses.recorded())
TAKEN = [one for one in KNOWN if one[0] == "courses"][::9] + [one for one in KNOWN if one[0] == "longer"][::6]
UNIT, ORIGIN = 4.0, 3.0
"""The other scale: a power of two, so that no digit changes."""


class Dress:
    """Other names, another order and another scale for a course."""

    def __init__(self, course: courses.Course) -> None:
        self.course = course
        spec = course.session.spec
        self.names = {name: f"{'zyxwvu'[place]} {name}" for place, name in enumerate(spec.names)}
        self.tasks = {task.name: f"{'cba'[place]}/" for place, task in enumerate(spec.tasks)}
        self.scaled = len(spec.ranges) == 1  # otherwise the overall scale is that of unit scores
        self.turned = not any(task.numbers for task in spec.tasks)
        self.last = {task.name: len(task.weights) - 1 for task in spec.tasks}
        self.task_of = {request.key: request.task for request in course.asked}

    def spec(self) -> SessionSpec:
        """Return the specification in the other dress."""
        spec = self.course.session.spec
        tasks = []
        for task in spec.tasks:
            weights = self.weights(task.weights)
            if task.numbers:
                weights = ScoreRange(weights)
            questions = tuple(f"{999 - place} ?" for place in range(len(task.questions)))
            clusters = task.clusters and tuple(f"of {name}" for name in task.clusters)
            name = self.tasks[task.name]
            tasks.append(replace(task, name=name, weights=weights, questions=questions, clusters=clusters))
        references = []
        for one in spec.references:
            tables = {"counts": self.tables(one.counts), "lost": self.renamed(one.lost)}
            references.append(
                replace(one, name=self.names[one.name], alike=self.renamed(one.alike), **tables)
            )
        prior = spec.prior
        if prior is not None:
            counts = {self.names[name]: self.tables(tables) for name, tables in prior.counts.items()}
            prior = replace(prior, counts=counts)
        margin = spec.stopping.equivalence
        return replace(
            spec,
            models=tuple(replace(one, name=self.names[one.name]) for one in reversed(spec.models)),
            tasks=tuple(tasks),
            goal=self.goal(spec.goal),
            stopping=replace(spec.stopping, equivalence=margin and self.unit * margin),
            references=tuple(reversed(references)),
            prior=prior,
        )

    @property
    def unit(self) -> float:
        return UNIT if self.scaled else 1.0

    @property
    def origin(self) -> float:
        return ORIGIN if self.scaled else 0.0

    def weights(self, weights: tuple[float, ...]) -> tuple[float, ...]:
        found = tuple(ORIGIN + UNIT * weight for weight in weights)
        return found[::-1] if self.turned else found

    def renamed(self, tables: Mapping[str, Any]) -> dict[str, Any]:
        return {self.tasks[name]: table for name, table in tables.items()}

    def tables(self, tables: Mapping[str, Any]) -> dict[str, Any]:
        if self.turned:
            tables = {name: table[:, ::-1].copy() for name, table in tables.items()}
        return self.renamed(tables)

    def goal(self, goal: GoalSpec) -> GoalSpec:
        return replace(
            goal,
            model=self.names.get(goal.model, goal.model),
            pairs=tuple((self.names[one], self.names[other]) for one, other in goal.pairs),
            value=self.origin + self.unit * goal.value,
            width=self.unit * goal.width,
            margin=goal.margin and self.unit * goal.margin,
            goals=tuple(map(self.goal, goal.goals)),
        )

    def log(self) -> Iterator[TrialOutcome | Missing | Decision]:
        """Yield the log in the other dress, every second outcome twice."""
        for place, one in enumerate(self.course.log):
            if isinstance(one, Decision):
                yield self.decision(one)
                continue
            key = TrialKey(self.names[one.key.model], one.key.index)
            told = replace(one, key=key)
            if isinstance(told, TrialOutcome):
                task = self.task_of[one.key]
                told = replace(told, category=self.category(task, told.category))
            yield told
            if place % 2:
                yield told

    def category(self, task: str, category: int) -> int:
        return self.last[task] - category if self.turned else category

    def decision(self, one: Decision) -> Decision:
        models = tuple(self.names[name] for name in one.models)
        evidence = dict(one.evidence)
        if one.kind == LAID_OUT:
            awaited = []
            for index, category in evidence["awaited"]:
                task = self.task_of[TrialKey(one.models[0], index)]
                awaited.append([index, self.category(task, category)])
            evidence["awaited"] = awaited
        return replace(one, models=models, evidence=evidence)


FLIPPED = {"better": "worse", "worse": "better"}


class Seen:
    """What a session shows and has decided, in unit scores, by the models' first names and in one order."""

    def __init__(self, session: Session, names: Mapping[str, str]) -> None:
        self.first_names = {name: first for first, name in names.items()}
        self.origin, self.unit = session.spec.scale
        self.found: dict[str, list[object]] = {}
        results = session.results()
        assert to_json(from_json(to_json(results))) == to_json(results)
        for line in results.models:
            scores = (
                line.score, line.score_low, line.score_high, line.bayes_mu, line.score_if_missing_wrong,
                line.score_if_missing_right,
            )  # fmt: skip
            counts = (
                line.trials, line.missing, line.questions, line.rank, line.rank_low, line.rank_high,
                line.copies, line.discarded_trials, line.redrawn_trials, line.prompt_tokens,
                line.completion_tokens, line.usd,
            )  # fmt: skip
            self.note("model", (line.model,), *map(self.score, scores), *counts, line.state)
        for pair in results.pairs:
            self.pair(pair)
        for place, task in enumerate(results.tasks):
            self.note(f"task {place}", (), task.questions, task.weight)
            for line in task.scores if len(session.spec.ranges) == 1 else ():
                scores = line.score, line.score_low, line.score_high
                self.note(f"task {place}", (line.model,), *map(self.score, scores))
        for one in session.decisions:
            if one.kind == "pair":
                self.call(one)
        self.found["end"] = [session.stopped and session.stopped.reason]

    def note(self, kind: str, models: tuple[str, ...], *figures: object) -> None:
        who = sorted(self.first_names[name] for name in models if name in self.first_names)
        self.found.setdefault(" ".join([kind, *who]), []).extend(figures)

    def score(self, score: float | None) -> float | None:
        return None if score is None else (score - self.origin) / self.unit

    def ends(self, first: str, second: str, kind: str, verdict: str, *ends: float | None) -> list[object]:
        """Return a verdict with a difference and its ends, as seen from the first model by name."""
        if kind == "width":
            return [verdict, *map(self.score, ends)]
        units = [None if end is None else end / self.unit for end in ends]
        names = [self.first_names.get(name, "~") for name in (first, second)]
        if kind != "pair" or names == sorted(names):
            return [verdict, *units]
        middle, low, high = [None if end is None else -end for end in units]
        return [FLIPPED.get(verdict, verdict), middle, high, low]

    def pair(self, pair: PairResult) -> None:
        both = pair.first, pair.second
        ends = pair.difference, pair.difference_low, pair.difference_high
        margin = None if pair.margin is None else pair.margin / self.unit
        self.note(
            pair.kind, both, *self.ends(*both, pair.kind, pair.verdict, *ends), pair.evidence, pair.threshold,
            pair.tie_margin, pair.trials_each, pair.questions, pair.decided_at, pair.exact, pair.needed,
            pair.p_value, pair.test, pair.evidence_beyond, margin,
        )  # fmt: skip

    def call(self, one: Decision) -> None:
        evidence = one.evidence
        kind = evidence["kind"]
        assert evidence["questions"] > 0
        both = (*one.models, "")[:2]
        ends = (evidence[name] for name in ("difference", "low", "high"))
        shown = "pair" if kind == "width" else kind
        self.note(
            f"call {kind}", both, *self.ends(*both, shown, one.verdict, *ends)[:2], one.step, one.trials,
            evidence["statistic"], evidence["threshold"],
        )  # fmt: skip


def difference(expected: Mapping[str, list[object]], found: Mapping[str, list[object]]) -> str:
    """Return the first thing that is seen otherwise; "" if there is none."""
    for key in {**expected, **found}:
        one, other = expected.get(key, []), found.get(key, [])
        same = len(one) == len(other) and all(map(alike, one, other))
        if not same:
            return f"{key}\n{one}\n{other}"
    return ""


def alike(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return one == other


@pytest.mark.parametrize(("kind", "written"), TAKEN, ids=lambda one: one.replace(" ", "-"))
def test_what_must_not_matter_does_not(kind, written):
    case = case_of(written)
    make: Callable[..., courses.Course] = courses.Course if kind == "courses" else courses.longer_course
    course = make(case)
    course.go()
    names = {name: name for name in course.session.spec.names}
    live = Seen(course.session, names).found
    singly = courses.again(course.session, course.log, course.failed, 1)
    others = {"told one by one": Seen(singly, names).found}
    dress = Dress(course)
    failed = {TrialKey(dress.names[key.model], key.index): times for key, times in course.failed.items()}
    dressed = courses.again(course.session, list(dress.log()), failed, 50, dress.spec())
    others["in another dress"] = Seen(dressed, dress.names).found
    for how, other in others.items():
        if other["end"] == [None]:  # a budget that is spent, or a cap that is reached, is found when asking
            other["end"] = live["end"]
        assert not difference(live, other), how


LOOKS = [case_of(written) for kind, written in KNOWN if kind == "looks"]
SINGLE = [one for one in LOOKS if one.get("scores") != "mixed" and one.get("stored", "none") == "none"]


@pytest.mark.parametrize("case", SINGLE, ids=lambda one: "-".join(map("=".join, one.items())))
def test_a_task_that_is_split_into_pooled_ones_is_the_same_task(case):
    """Where a model lacks all answers to a question, the score alone is another: each part has its own."""
    spec = courses.spec_of({**case, "tasks": "one"}, courses.LOOKS)
    answers = courses.tables_of({**case, "tasks": "one"}, spec)
    (task,) = spec.tasks
    parts = []
    for name, taken in (("t", slice(0, 5)), ("u", slice(5, 6)), ("v", slice(6, None))):
        clusters = task.clusters and task.clusters[taken]
        bounds = task.prompt_bounds and task.prompt_bounds[taken]
        questions = task.questions[taken]
        parts.append(replace(task, name=name, questions=questions, clusters=clusters, prompt_bounds=bounds))
    split = replace(spec, tasks=tuple(parts), overall="pooled")
    whole, found = OneLook(spec, answers).results(), OneLook(split, answers).results()
    assert whole.stop == found.stop
    whole_rows = (answers.number > 0).all()
    for one, other in zip((*whole.models, *whole.pairs), (*found.models, *found.pairs), strict=True):
        for name in one.__slots__:
            if whole_rows or name not in ("score", "difference"):
                assert alike(getattr(one, name), getattr(other, name)), (one, name)
