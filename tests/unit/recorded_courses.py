"""Courses of sessions from the first trial to the results, looks at tables, and labels, as they are recorded.

``python tests/unit/recorded_courses.py`` writes what is recorded again, and prints what has changed; with
names of kinds only these.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
from course_facts import (
    asked_fact,
    condensed,
    decision_fact,
    first_difference,
    moment,
    result_facts,
    shortened,
    text,
    together,
)
from crossed_options import (
    COURSES,
    LONGER,
    LONGER_REFUSED,
    MEANS,
    REFUSED,
    Case,
    Options,
    Refused,
    case_of,
    category,
    chance,
    covering,
    plain,
    spec_of,
)
from recorded_boards import OF_BOARDS
from recorded_claims import CLAIMS, CLAIMS_REFUSED, claim_facts
from recorded_comparisons import COMPARISONS
from recorded_configs import CONFIGS, CONFIGS_REFUSED, config_facts
from recorded_engines import ENGINES, ENGINES_REFUSED, engine_facts
from recorded_exports import EXPORTS, EXPORTS_REFUSED, export_facts
from recorded_graders import GRADERS, GRADERS_REFUSED, grader_facts
from recorded_imports import IMPORTS, IMPORTS_REFUSED, import_facts
from recorded_judges import JUDGES, JUDGES_REFUSED, judge_facts
from recorded_mimics import MIMICS, MIMICS_REFUSED, mimic_facts
from recorded_mistakes import MISTAKES, places_of_mistakes
from recorded_plans import PLANS, PLANS_REFUSED, RULES, RULES_REFUSED, plan_facts, rule_facts
from recorded_replies import REPLIES, REPLIES_REFUSED, reply_facts
from recorded_restarts import RESTARTS, RESTARTS_REFUSED, restart_facts
from recorded_runs import RUNS, RUNS_REFUSED, run_facts
from recorded_scores import SCORES, SCORES_REFUSED, score_facts
from recorded_statistics import STATISTICS
from recorded_structures import STRUCTURES, STRUCTURES_REFUSED, structure_facts
from recorded_tasks import TASKS, TASKS_REFUSED, task_facts
from recorded_views import VIEWS

from adaptive_eval.core.by_labels import label_look
from adaptive_eval.core.label_record import LabelRecord
from adaptive_eval.core.one_look import AnswerCounts, OneLook
from adaptive_eval.core.results import Decision
from adaptive_eval.core.session import LOOKED_AT, Session
from adaptive_eval.core.spec import BudgetSpec, SessionSpec, TaskSpec
from adaptive_eval.stops import StopReason
from adaptive_eval.trial import COPY_REASON, LAID_OUT, NOT_THERE, Missing, TrialOutcome, TrialRequest, Usage

MOST_TRIALS = 260
"""Trials after which a course is ended from outside."""
MOST_OF_LONGER = 800
"""The same of longer courses."""

OF_JUDGE = {"scope": "scorer", "owner": "judge of t", "used": {"requests": [99.0, 99.0]}}
OUTSIDE = ("interrupted", *LOOKED_AT)
OF_TIME = {"scope": "run", "owner": "", "used": {"wall_clock": [60.5, 60.0]}}
ENDED: Mapping[str, tuple[StopReason, Mapping[str, object], int]] = {
    "single": ("budget", OF_JUDGE, 150), "overdue": ("budget", OF_TIME, MOST_OF_LONGER),
}  # fmt: skip
"""Why a course is ended from outside, by how its answers come, and after so many trials."""


class Course:
    """A session on its way, with what was asked and told."""

    def __init__(
        self, case: Case, options: Options = COURSES, most: int = MOST_TRIALS, slots: int = 12
    ) -> None:
        self.most = most
        self.slots = slots
        self.case = {name: case.get(name, values[0]) for name, values in options.items()}
        self.name = plain(self.case, options)
        self.session = Session(spec_of(case, options))
        self.tasks = {task.name: task for task in self.session.spec.tasks}
        self.asked: list[TrialRequest] = []
        self.facts: list[str] = []
        self.log: list[TrialOutcome | Missing | Decision] = []
        self.flying: list[TrialRequest] = []
        self.held: dict[TrialRequest, int] = {}  # answers that hang, with the number of those told before
        self.failed: Counter = Counter()  # requests of trials that may have been billed and left no answer
        self.told = 0
        self.noted = 0  # decisions that were looked at for the log
        self.due = {"asked": 8, "seen": 40, "resumed": 75, "dropped": 100 if slots == 12 else 250}
        if self.case["budget"] == "of-models":  # that of the model is spent by then
            self.due["dropped"] = 190

    def run(self) -> list[str]:
        """Run it to its end; return what is recorded."""
        self.go()
        results = self.session.results()
        self.facts.append(asked_fact(self.asked))
        self.facts += map(decision_fact, self.session.decisions)
        self.facts.append(f"end {moment(results)}")
        return [*self.facts, *result_facts(results)]

    def go(self) -> None:
        """Run it to its end."""
        self.go_to_stop()
        self.tell_late()
        stopped = self.session.stopped
        if self.case["budget"] == "raised" and stopped is not None and stopped.reason == "budget":
            self.resume(replace(self.session.spec, budget=BudgetSpec(trials=420)))
            self.go_to_stop()
            self.tell_late()

    def go_to_stop(self) -> None:
        for turn in count():
            self.ask()
            self.note_stops()
            if self.session.stopped is not None:
                break
            assert self.flying, "it asks nothing, awaits nothing and does not stop"
            batch = self.ready(turn)
            self.tell(batch)
            self.meddle()
            self.look()

    def ask(self) -> None:
        free: int | dict[str, int] = self.slots - len(self.flying)
        if self.case["capacity"] == "of-each":
            flying = Counter(one.key.model for one in self.flying)
            free = {
                model.name: self.slots // 3 + place - flying[model.name]
                for place, model in enumerate(self.session.spec.models)
            }
        new = self.session.ask(free)
        self.asked += new
        self.flying += new
        if len(self.asked) >= self.due["asked"]:
            self.due["asked"] *= 3
            self.facts.append(asked_fact(self.asked))

    def ready(self, turn: int) -> list[TrialRequest]:
        """Return the trials whose answers come now."""
        delivery = self.case["delivery"]
        share, after = {"overdue": (0.04, 60), "hanging": (0.1, 150)}.get(delivery, (0.0, 0))
        for one in self.flying:
            may_hang = one.key.model != "m1" or delivery == "hanging"
            if may_hang and chance("hangs", self.name, one.key) < share and one not in self.held:
                self.held[one] = self.told
        late = [one for one, since in self.held.items() if self.told - since > after]
        ready = [one for one in self.flying if one not in self.held or one in late]
        if not ready:
            ready = list(self.flying)
        if delivery == "shuffled":
            ready.sort(key=lambda one: chance("turn", self.name, one.key, turn // 3))
        counts = {
            "single": 1 if turn < 60 else 9, "shuffled": 1 + turn % 7, "overdue": 4,
            "hanging": self.slots // 2,
        }  # fmt: skip
        if self.slots > 12:
            counts |= {"shuffled": 5 + 7 * (turn % 5), "overdue": self.slots // 2}
        return ready[: counts.get(delivery, len(ready))]

    def tell(self, batch: Sequence[TrialRequest]) -> None:
        outcomes = []
        for request in batch:
            if (
                self.case["failed"] == "none"
                or chance("fails", self.name, request.key) > 0.08
                or self.failed[request.key]
            ):
                outcomes.append(self.outcome(request))
                continue
            self.failed[request.key] += 1
            if chance("again", self.name, request.key) > 0.5:
                self.session.abandon(request.key, billed=True)
                self.flying.remove(request)
                self.held.pop(request, None)
                continue
            self.session.presume_billed(request.key)
            if self.session.may_repeat(request.key):
                outcomes.append(self.outcome(request))
            else:
                outcomes.append(Missing(request.key, "no room"))
        told = {one.key for one in outcomes}
        self.flying = [one for one in self.flying if one.key not in told]
        self.held = {one: since for one, since in self.held.items() if one.key not in told}
        self.session.tell(outcomes)
        self.log += outcomes
        self.told += len(outcomes)
        overdue = [one.key for one, since in self.held.items() if self.told - since > 12]
        if overdue and self.session.stopped is None:
            self.session.overdue(overdue)

    def outcome(self, request: TrialRequest) -> TrialOutcome | Missing:
        """Return the answer to a request, which follows from its key alone."""
        key, lost, noise = request.key, self.case["lost"], self.case["noise"]
        place = int(key.model[1:])
        fate = chance("fate", self.name, key)
        mean = MEANS[self.case["answers"]][len(self.session.spec.models)][place]
        trial: tuple = (key.model, key.index)
        same = noise.startswith("greedy") and chance("flip", self.name, trial) > 0.05
        if self.session.spec.models[place].deterministic:
            same = noise != "claim-fails" or key.index <= 30
        if same:
            trial = (key.model, request.task, request.question)
        usage = self.usage(request, trial)
        shares = {
            "some": 0.07, "of-one": 0.4 * (place == 1), "first": 0.9 * (key.index < 12 and place == 0),
            "steady": 0.25, "burst": 0.8 * (20 <= key.index < 40),
        }  # fmt: skip
        discarded: tuple = ()
        if lost in ("given-up", "redrawn") and fate < 0.12:
            discarded = (("timeout",), ("timeout", "timeout"), ("killed",), ("server",))[int(fate / 0.03)]
        if fate < shares.get(lost, 0.0) or (discarded and fate > 0.08):
            whole = self.case["delivery"] == "together" and self.case["failed"] == "none"  # as imports are
            never = self.case["rule"] == "fixed" and whole and fate < 0.5 * shares.get(lost, 0.0)
            return Missing(key, NOT_THERE if never else "timeout", Usage(20, 0), discarded)
        if lost == "copies" and fate < 0.15 and request.repeat:
            return Missing(key, COPY_REASON, usage)
        worth = category(
            self.tasks[request.task], mean, (key.model, request.task, request.question), (self.name, *trial)
        )
        again = lost in ("repeated", "vouched") and fate < 0.3 and request.repeat > 0
        digest_of_text = worth + 10 * (place if again else int(1e6 * chance("text", self.name, trial)))
        return TrialOutcome(key, worth, usage, digest_of_text, repeats=again, discarded=discarded)

    def usage(self, request: TrialRequest, trial: tuple) -> Usage:
        prompt, long = 20 + int(request.question[1:]) % 9, chance("long", self.name, trial)
        kind = self.case.get("usage")
        if kind == "beyond" and long > 0.9:  # more than the prompt and the limit allow
            return Usage(prompt + 25, int(80 * long), 4)
        if kind == "unreported" and long > 0.9:
            return Usage()
        return Usage(prompt, int(5 + 50 * long), 4)

    def meddle(self) -> None:
        """Do what comes from outside: a model that fails, a kill and another start, an end."""
        kind, session = self.case["dropped"], self.session
        running = session.stopped is None and not session.states.stopped
        if kind != "none" and self.told >= self.due["dropped"] and running:
            session.stop_model("m1", kind, spent=kind == "spent", unusable=kind == "unusable")
            self.case = {**self.case, "dropped": "none"}
            self.note_stops()
        resumed = self.case["resumed"]
        if resumed != "no" and self.told >= self.due["resumed"] and self.session.stopped is None:
            self.due["resumed"] = self.told + 100 if resumed == "often" else 10**6
            spec = self.session.spec
            self.resume(changed(spec) if resumed == "changed" else spec)
        reason, found, most = ENDED.get(self.case["delivery"], ("interrupted", {}, self.most))
        if self.told >= min(most, self.most):
            self.session.end(reason, "", found)
        self.note_stops()

    def resume(self, spec: SessionSpec) -> None:
        """Lose the answers that are in flight, and resume in a new Session."""
        self.session = again(self.session, self.log, self.failed, 7, spec)
        self.noted = len(self.session.decisions)
        self.flying, self.held = [], {}
        self.facts.append(f"resumed {moment(self.session.results())}")

    def note_stops(self) -> None:
        """Put what a replay does not find in the answers, such as outside stops, at its place in the log."""
        for one in self.session.decisions[self.noted :]:
            from_outside = any(one.evidence == why | {"is_goal": False} for _, why, _ in ENDED.values())
            if from_outside or one.kind in ("model_stopped", LAID_OUT) or one.verdict in OUTSIDE:
                self.log.append(one)
        self.noted = len(self.session.decisions)

    def look(self) -> None:
        if self.told >= self.due["seen"]:
            self.due["seen"] *= 3
            self.facts.append(f"after {self.told} {moment(self.session.results())}")

    def tell_late(self) -> None:
        """Tell the outcomes of all trials in flight, after the session has stopped."""
        outcomes = [self.outcome(one) for one in self.flying]
        self.session.tell(outcomes)
        self.log += outcomes
        self.flying = []


def longer_course(case: Case) -> Course:
    return Course(case, LONGER, MOST_OF_LONGER, slots=36)


def changed(spec: SessionSpec) -> SessionSpec:
    """Return the specification with what a user may change on the way."""
    stopping = spec.stopping
    margin, passes = stopping.equivalence, stopping.max_passes
    other = replace(
        stopping,
        confidence=0.8,
        equivalence=None if margin is None else 1.5 * margin,
        max_passes=None if passes is None else passes + 2,
    )
    return replace(spec, stopping=other)


def again(
    session: Session, log: Sequence, failed: Mapping, size: int, spec: SessionSpec | None = None
) -> Session:
    """Return another session to which the log of one was replayed, in batches of a size."""
    other = Session(spec or session.spec)

    def batches() -> Iterator[list]:
        part: list = []
        for one in log:
            if isinstance(one, Decision):
                if one.kind == LAID_OUT:
                    continue
                yield part
                part = []
                other.repeat(one)
                continue
            part.append(one)
            if len(part) == size:
                yield part
                part = []
        yield part

    other.replay(batches(), failed.items(), [one for one in log if getattr(one, "kind", "") == LAID_OUT])
    return other


# ---------------------------------------------------------------------------- one look at given tables

LOOKS: Options = {
    "goal": tuple(one for one in COURSES["goal"] if one != "budget"),
    "lost": ("none", "some", "of-one", "whole-questions", "of-all"),
    "scores": COURSES["scores"],
    "each": ("one", "several", "uneven"),
    "tasks": COURSES["tasks"],
    "target": COURSES["target"],
    "equivalence": ("near", "none", "wide"),
    "models": ("three", "two", "four"),
    "stored": ("none", "one", "two"),
    "family": ("holm", "pair"),
    "confidence": ("high", "low"),
    "size": ("small", "large"),
    "answers": ("apart", "near", "alike"),
    "groups": ("few", "many"),
}
"""The options of looks at tables of answers."""

LOOKS_REFUSED = [one for one in REFUSED if {one[0], one[2]} <= LOOKS.keys()]


def look_facts(case: Case) -> list[str]:
    """Return what one look at tables of answers says, and at a log of them, which lacks some."""
    spec = spec_of(case, LOOKS)
    answers = tables_of(case, spec)
    facts = []
    for name, table in (("", answers), ("all-asked ", answers.asked_of_all())):
        found = OneLook(spec, table).results()
        facts += [f"results {name}{moment(found)}", *condensed(result_facts(found))]
    if spec.goal.kind not in ("not-worse", "all"):
        facts += list(facts_of_log(case, spec))
    return facts


def facts_of_log(case: Case, spec: SessionSpec) -> Iterator[str]:
    """Yield what a session says whose answers are all told at once."""
    of = {name: case.get(name, values[0]) for name, values in LOOKS.items()}
    most = max(times_in(of, key) for key in questions_of(spec))
    fixed = replace(spec.stopping, rule="fixed", max_passes=most)
    session = Session(replace(spec, stopping=fixed, early_repeats=False))
    tasks = {task.name: task for task in spec.tasks}
    while requests := session.ask(MOST_OF_LONGER):
        outcomes: list[TrialOutcome | Missing] = []
        for request in requests:
            key, name = request.key, request.key.model
            place = spec.names.index(name), tasks[request.task], request.question
            found = answer_in(of, spec, *place, request.repeat)
            reason = "timeout" if found == LOST else NOT_THERE
            if found >= 0:
                outcomes.append(TrialOutcome(key, found, Usage(20, 5)))
            else:
                outcomes.append(Missing(key, reason, Usage(20, 0)))
        session.tell(outcomes)
    results = session.results()
    yield f"log {moment(results)}"
    known = condensed(result_facts(results))
    yield from (one for one in known if one.startswith(("models", "pairs", "task")))


def tables_of(case: Case, spec: SessionSpec) -> AnswerCounts:
    """Return the answers of all models to all questions."""
    of = {name: case.get(name, values[0]) for name, values in LOOKS.items()}
    shape = (len(spec.names), spec.questions)
    number, lost, total = np.zeros(shape, int), np.zeros(shape, int), np.zeros(shape)
    for row in range(len(spec.names)):
        for task, columns in zip(spec.tasks, spec.columns, strict=True):
            for place, question in enumerate(task.questions):
                cell = (row, columns.start + place)
                for turn in range(times_in(of, (spec.names[row], task.name, question))):
                    found = answer_in(of, spec, row, task, question, turn)
                    lost[cell] += found == LOST
                    number[cell] += found >= 0
                    total[cell] += task.unit_scores[found] if found >= 0 else 0.0
    return AnswerCounts(number, total, lost)


LOST, NEVER_ASKED = -1, -2


def questions_of(spec: SessionSpec) -> Iterator[tuple[str, str, str]]:
    for name in spec.names:
        yield from ((name, task.name, question) for task in spec.tasks for question in task.questions)


def times_in(of: Case, key: tuple[str, str, str]) -> int:
    """Return how many answers of a model to a question there are, lost ones with them."""
    return {"one": 1, "several": 5}.get(of["each"], 1 + int(6 * chance("times", key)))


def answer_in(of: Case, spec: SessionSpec, row: int, task: TaskSpec, question: str, turn: int) -> int:
    """Return the category of an answer; or that it is lost, or was never asked for."""
    key = (spec.names[row], task.name, question)
    if turn >= times_in(of, key):
        return NEVER_ASKED
    fate = chance("fate", key, turn)
    share = {"some": 0.1, "of-one": 0.4 * (row == 1)}.get(of["lost"], 0.0)
    share += of["lost"] == "of-all" and row == 0
    if fate < share or (of["lost"] == "whole-questions" and chance("whole", key) < 0.15):
        return LOST if fate < 0.8 else NEVER_ASKED
    means = (*MEANS[of["answers"]][len(spec.models)], 0.4, 0.8)
    return category(task, means[row], key, (key, turn))


# ---------------------------------------------------------------------------- labels

LABELS: Options = {
    "goal": ("ranking", "best", "baseline", "not-worse", "threshold", "width", "ranking-and-claims"),
    "lost": ("none", "some", "of-one", "given-up", "copies", "repeated"),
    "scores": COURSES["scores"],
    "chosen": ("third", "all", "two-calls", "few"),
    "labels": ("of-chosen", "blank", "none", "without-chances"),
    "judge": ("fair", "harsh", "blind"),
    "tasks": COURSES["tasks"],
    "target": COURSES["target"],
    "noise": ("drawn", "one-repeats", "greedy"),
    "equivalence": ("near", "none", "wide"),
    "models": ("three", "two", "four"),
    "progress": ("whole", "uneven"),
    "family": ("holm", "pair"),
    "confidence": ("high", "low"),
    "samples": ("one", "three"),
}
"""The options of runs that labels decide."""

LABELS_REFUSED = [one for one in REFUSED if {one[0], one[2]} <= LABELS.keys()]


def label_facts(case: Case) -> list[str]:
    """Return what labels of some answers decide."""
    of = {name: case.get(name, values[0]) for name, values in LABELS.items()}
    asked = {name: of[name] for name in of if name in COURSES} | {"goal": "budget", "passes": "endless"}
    course = Course(asked | {"budget": "trials"})
    course.go()
    spec = replace(spec_of({name: of[name] for name in of if name in COURSES}), budget=BudgetSpec(trials=400))
    found = again(Session(replace(spec, labels=record_of(of, course))), course.log, {}, 50)
    facts = [decision_fact(one) for one in found.decisions]
    results = found.results()
    assert results.judge_alone is not None
    known = [one for one in result_facts(results) if not one.startswith("budget")]
    facts += [f"results {moment(results)}", *condensed(known), f"alone {moment(results.judge_alone)}"]
    facts.append(asked_fact(found.ask(20)))
    facts.append(f"labels {text(together(judge_figures(found)))}")
    return facts


def judge_figures(session: Session) -> Iterator[float | None]:
    """Yield what labels say of the judge, and how many more would decide each pair."""
    spec = session.spec
    assert spec.labels is not None
    look = label_look(spec, session.board, spec.labels)
    for first in range(len(spec.models)):
        yield from look.biases([first])
        for second in range(first):
            yield from look.biases([first, second])
            yield look.share_for(first, second, 3.0)


def record_of(of: Case, course: Course) -> LabelRecord:
    """Return labels of a course's answers."""
    steps = max(course.session.states.issued)
    progress = {
        name: steps - 3 * place * (of["progress"] == "uneven")
        for place, name in enumerate(course.session.spec.names)
    }
    spans = ((0, 25), (27, steps)) if of["progress"] == "uneven" else ((0, steps),)
    share = {"third": 0.4, "all": 1.0, "two-calls": 0.3, "few": 0.08}[of["chosen"]]
    chosen = {}
    for start, end in spans:
        for step in range(start, end):
            own = 0.6 if of["chosen"] == "two-calls" and step >= 40 else share
            if chance("chosen", step) < own:
                chosen[step] = own
    labels = []
    told = {one.key: one for one in course.log if isinstance(one, TrialOutcome)}
    for request in course.asked:
        key, task = request.key, course.tasks[request.task]
        answer = told.get(key)
        chosen_here = key.index in chosen and key.index < progress[key.model]
        if answer is None or not chosen_here or of["labels"] == "none":
            continue
        score = task.weights[answer.category] if not task.numbers else task.weights.score(answer.category)
        doubt = chance("label", key)
        if doubt < {"fair": 0.1, "harsh": 0.3, "blind": 0.8}[of["judge"]]:
            ends = min(task.weights), max(task.weights)
            score = ends[1] if of["judge"] == "harsh" else ends[doubt * 100 % 2 > 1]
        if of["labels"] != "blank" or chance("blank", key) > 0.15:
            labels.append((key.model, key.index, float(score)))
    rows, with_chances = len(chosen) * len(progress), of["labels"] != "without-chances"
    return LabelRecord(
        "l.jsonl", rows, len(labels), with_chances, spans, progress,
        share, tuple(sorted(chosen.items())), tuple(sorted(labels)),
    )  # fmt: skip


# ---------------------------------------------------------------------------- what is recorded

FOLDER = Path(__file__).parents[1] / "data"
OF_COURSES: Mapping[str, tuple[Options, Refused, Callable[[Case], list[str]]]] = {
    "courses": (COURSES, REFUSED, lambda case: shortened(Course(case).run())),
    "longer": (LONGER, LONGER_REFUSED, lambda case: condensed(longer_course(case).run())),
    "looks": (LOOKS, LOOKS_REFUSED, look_facts),
    "labels": (LABELS, LABELS_REFUSED, label_facts),
    "graders": (GRADERS, GRADERS_REFUSED, grader_facts),
    "runs": (RUNS, RUNS_REFUSED, run_facts),
    "scores": (SCORES, SCORES_REFUSED, score_facts),
    "structures": (STRUCTURES, STRUCTURES_REFUSED, structure_facts),
    "engines": (ENGINES, ENGINES_REFUSED, engine_facts),
    "replies": (REPLIES, REPLIES_REFUSED, reply_facts),
    "mimics": (MIMICS, MIMICS_REFUSED, mimic_facts),
    "claims": (CLAIMS, CLAIMS_REFUSED, claim_facts),
    "judges": (JUDGES, JUDGES_REFUSED, judge_facts),
}
"""What is crossed: options, what is refused, and what a case leads to."""
OF_CONFIGS: Mapping[str, tuple[Options, Refused, Callable[[Case], list[str]]]] = {
    "configs": (CONFIGS, CONFIGS_REFUSED, config_facts),
    "mistakes": (MISTAKES, (), places_of_mistakes),
    "tasks": (TASKS, TASKS_REFUSED, task_facts),
    "plans": (PLANS, PLANS_REFUSED, plan_facts),
    "rules": (RULES, RULES_REFUSED, rule_facts),
}
OF_LOGS: Mapping[str, tuple[Options, Refused, Callable[[Case], list[str]]]] = {
    "imports": (IMPORTS, IMPORTS_REFUSED, import_facts),
    "exports": (EXPORTS, EXPORTS_REFUSED, export_facts),
    "restarts": (RESTARTS, RESTARTS_REFUSED, restart_facts),
}
FILES = {
    "recorded_courses.txt": OF_COURSES,
    "recorded_statistics.txt": {**STATISTICS, **COMPARISONS, **OF_BOARDS},
    "recorded_views.txt": VIEWS,
    "recorded_imports.txt": OF_LOGS,
    "recorded_configs.txt": OF_CONFIGS,
}
KINDS = {**OF_COURSES, **STATISTICS, **COMPARISONS, **OF_BOARDS, **VIEWS, **OF_LOGS, **OF_CONFIGS}


def recorded() -> dict[tuple[str, str], list[str]]:
    """Return the facts of the files by kind and case."""
    found: dict[tuple[str, str], list[str]] = {}
    kind, facts = "", list[str]()
    written = [(FOLDER / name).read_text("utf-8") for name in FILES if (FOLDER / name).exists()]
    for line in "\n".join(written).splitlines():
        if line.startswith("# "):
            kind = line.split()[1]
        elif line.startswith("  "):
            facts.append(line[2:])
        elif line:
            facts = found[kind, line] = []
    return found


MOST_SHOWN = 12
"""Cases whose first difference is printed."""


def write(only: Sequence[str] = ()) -> None:
    """Write all cases and their facts again, or those of some kinds, and print what has changed."""
    old = recorded()
    changed, new, kept = 0, 0, set()
    for file, kinds in FILES.items():
        lines = []
        for kind, (options, refused, facts_of) in kinds.items():
            known = [case_of(written) for of, written in old if of == kind]
            if {} not in known:
                known.insert(0, {})
            lines.append(
                f"# {kind} of " + " x ".join(f"{name} {len(values)}" for name, values in options.items())
            )
            for case in covering(options, refused, known, kind):
                written = f"case {plain(case, options)}".strip()
                before = old.get((kind, written))
                if before is not None and only and kind not in only:
                    facts = before
                else:
                    facts = facts_of(case)
                kept.add((kind, written))
                new += before is None
                if before is not None:
                    difference = first_difference(before, facts)
                    changed += bool(difference)
                    if difference and changed <= MOST_SHOWN:
                        print(f"{kind}: {written}\n{difference}")
                    if not difference:
                        facts = before  # so that no last digit makes a difference
                lines += [written, *(f"  {one}" for one in facts)]
        (FOLDER / file).write_text("\n".join(lines) + "\n", "utf-8")
    print(f"{len(kept)} cases: {new} are new, {changed} have other facts, {len(old.keys() - kept)} went")


if __name__ == "__main__":
    write(sys.argv[1:])
