"""The board: a session's answers, with references, and what repeated answers need no trial for."""

from collections.abc import Iterable, Sequence
from math import inf, log
from typing import Any, Literal

import numpy as np

from adaptive_eval.core.determinism import Determinism
from adaptive_eval.core.goals import BestK, Goal, claimed_margin, make_goal
from adaptive_eval.core.references import PreviousTrials, check_references, load_references
from adaptive_eval.core.results import Decision
from adaptive_eval.core.spec import SessionSpec
from adaptive_eval.core.spec_checks import check_spec, decidable_contrasts
from adaptive_eval.errors import SessionError
from adaptive_eval.trial import TrialKey
from scorio.arrays import Floats, Ints
from scorio.sequential import Board, parts
from scorio.sequential.parts import Answers, Cells, Mark, RunSequence, VerdictCode


def _cells(spec: SessionSpec, run_sequence: RunSequence) -> list[Cells]:
    """Return the cells of each task, with the answers of references in them."""
    cells = []
    for sequence, task in zip(run_sequence.sequences, spec.tasks, strict=True):
        moments = Cells(
            sequence,
            task.unit_scores,
            len(spec.names),
            repeat_weight=1.0 / spec.samples_per_prompt,
            greedy=spec.greedy,
            level=spec.flip_level,
            moments=task.numbers,
        )
        cells.append(moments)
    load_references(spec, cells)
    return cells


class SessionAnswers(Answers):
    """Answers of all models along the trial sequence.

    Boards of specs that differ in their margins only may share the cells of one of them: `shared`.
    """

    def __init__(self, spec: SessionSpec, shared: Answers | None = None) -> None:
        check_spec(spec)
        check_references(spec)
        self.spec = spec
        if shared is None:
            sizes = [len(task.questions) for task in spec.tasks]
            each = spec.samples_per_prompt
            early_repeats = spec.early_repeats and not spec.greedy
            run_sequence = RunSequence(sizes, spec.seed, each, spec.own_rounds, early_repeats=early_repeats)
            cells: Sequence[Cells] = _cells(spec, run_sequence)
        else:
            run_sequence, cells = shared.run_sequence, shared.cells
        clusters = [task.clusters for task in spec.tasks]
        guard = -log(1.0 - spec.stopping.confidence)
        asked = len(spec.models)
        target = spec.stopping.target
        super().__init__(run_sequence, cells, asked, spec.task_weights, target, clusters, guard)
        if spec.by_cost:
            self.costs = np.zeros(self.answers.shape)
        self.previous = PreviousTrials(spec)
        self.determinism = Determinism(spec, run_sequence)
        self.filled = [0] * len(spec.names)
        """Steps of each model that needed no trial, because it repeats its answers."""
        self._exact_from = [0] * len(spec.names)
        self._models = {model.name: number for number, model in enumerate(spec.models)}

    def model(self, name: str) -> int:
        """Return the number of a model that is asked."""
        model = self._models.get(name)
        if model is not None:
            return model
        names = self.spec.names
        if name in names:
            raise SessionError(f"{name!r} is a reference: its trials are all in, and it is asked nothing")
        raise SessionError(f"unknown model {name!r}; this session has {', '.join(names)}")

    def fill(self) -> None:
        """Complete what needs no trial: indices that ask again a model that repeats its answers."""
        for model in self.determinism.claimed:
            others = max(*self.complete[: len(self.spec.models)], self.furthest[model] - 1)
            while True:
                turn = self.determinism.review(model, self.complete[model])
                if turn is not None:
                    self.turn(model, turn)
                    # It is read as exact from one more index of every task on.
                    self._exact_from[model] = self.run_sequence.one_of_each(turn)
                    continue
                index = self.complete[model]
                furthest = max(others, self._exact_from[model])
                if index >= min(furthest, self.run_sequence.laid_out(model)):
                    break
                if self.determinism.paused or not self.fill_next(model):
                    break

    def fill_next(self, model: int) -> bool:
        """Complete a model's next index, also while a log is replayed; return False if it needs a trial."""
        index = self.complete[model]
        determinism = self.determinism
        if index >= self.run_sequence.laid_out(model) or not determinism.needs_no_trial(model, index):
            return False
        self.filled[model] += 1
        self.add(model, index, Mark.FILLED_IN, told=False)
        return True

    def absorb(self, horizon: int | None = None) -> bool:
        """Move complete prefixes into the cells: all, or what was told up to a position of the log."""
        found = False
        while True:
            self.fill()
            if not super().absorb(horizon):
                return found
            found = True

    def keep_questions(self, asked: Iterable[tuple[TrialKey, str, str]]) -> None:
        """Give trials the task and question that they had, for a log that is scored otherwise than it was.

        Rounds follow from scores: otherwise a replay would take answers for those to other questions.
        """
        if not any(self.spec.own_rounds):
            return
        places = {
            (task.name, question): place
            for task in self.spec.tasks
            for place, question in enumerate(task.questions)
        }
        for key, task, question in asked:
            self.run_sequence.keep(self.model(key.model), key.index, places[task, question])

    def require_asked(self, trials: Iterable[tuple[TrialKey, str, str]]) -> None:
        """Raise SessionError unless each trial of a log that was replayed is of its index's question."""
        for key, task, question in trials:
            number, place = self.run_sequence.at(key.index, self.model(key.model))
            wanted = self.spec.tasks[number]
            asked = wanted.name, wanted.questions[place]
            if asked != (task, question):
                words = " of task ".join(map(repr, reversed(asked)))
                raise SessionError(f"trial {key.index} of {key.model!r} is not of question {words}")

    def posterior(self) -> tuple[Floats, Floats]:
        """Return Bayes@N μ and σ of every model (uniform prior and R0, all questions), in unit scores.

        Questions not asked yet keep their prior; see section 2 of the statistics for the ragged form.
        Not numbers if scores have no categories.
        """
        mu, variance = np.zeros((2, len(self.spec.names)))
        if any(task.numbers for task in self.spec.tasks):
            return mu + np.nan, variance + np.nan
        for task, (weight, cells) in enumerate(zip(self.spec.task_weights, self.cells, strict=True)):
            nu = self.previous.with_prior(cells.counts, task) + 1.0
            total = nu.sum(axis=2)
            a = nu @ cells.scale.scores / total
            b = nu @ cells.scale.scores**2 / total
            questions = cells.sequence.questions
            mu += weight * a.mean(axis=1)
            variance += weight**2 * ((b - a * a) / (total + 1.0)).sum(axis=1) / questions**2
        return mu, np.sqrt(variance)

    def seen(self) -> Ints:
        """Return the number of questions each model has answered at least once."""
        return np.asarray(sum(cells.latest().seen[:, 0] for cells in self.cells), dtype=np.int64)

    def new_repeats(self, model: int) -> float:
        """Return of a model's repeated answers as many as say something new if what may be a copy is one."""
        return sum(float(cells.latest_without_copies().r[model, 0]) for cells in self.cells)

    def missing(self, model: int) -> int:
        """Return the missing trials within a model's absorbed prefix."""
        return sum(int(cells.missing[model]) for cells in self.cells)

    def trial_counts(self) -> Ints:
        """Return the counted trials per model; of a reference, all its trials."""
        models = range(len(self.spec.names))
        missing = np.array([self.missing(model) + self.filled[model] for model in models])
        trials = self.progress - missing
        for row in range(len(self.spec.models), len(self.spec.names)):
            trials[row] = sum(int(cells.counts[row].sum()) for cells in self.cells)
        return np.asarray(trials)


_CLAIMS = ("not_worse", "not_better")
"""What a model is found to be, by more than the margin, where it is good enough and where the other is."""
_FAILED = ("worse", "better")
"""What the first model, and the second, is found to be by more than the margin where a claim fails."""


class SessionContrasts(Board):
    """All contrasts of a session, or those of another goal about its models."""

    answers: SessionAnswers
    contrasts: Goal

    def __init__(
        self,
        spec: SessionSpec,
        board: SessionAnswers,
        goal: Goal | None = None,
        levels: parts.Levels | None = None,
    ) -> None:
        own = goal is None
        if goal is None:
            goal = make_goal(spec)
        rule = spec.rule()
        needed = goal.condition.needed
        review = goal.condition.review
        if levels is None:
            levels = spec.levels(rule, goal.hypotheses, goal.claims)
        super().__init__(board, goal, rule, levels, spec.margin, needed=needed, review=review)
        everything = np.ones(goal.first.size, dtype=bool)
        if own:
            self.decidable = decidable_contrasts(spec)
        else:
            self.decidable = everything
        self._asked = set(range(len(spec.models)))
        self.retired: list[Decision] = []
        """Models that no needed contrast had any more, each as it was known at that moment of the log."""

    @property
    def spec(self) -> SessionSpec:
        """The session's specification."""
        return self.answers.spec

    def _note_needed(self) -> None:
        super()._note_needed()
        before, self._asked = self._asked, set(self.members)
        self.retired += map(self._retirement, sorted(before - self._asked))

    def _retirement(self, model: int) -> Decision:
        """Return the decision that a model needs no more trials, by what is known at this moment."""
        spec, goal = self.spec, self.contrasts
        names = spec.names
        evidence: dict[str, Any] = {"separated": [], "tied": [], "lost": []}
        last, fold = 0, self.fold
        rows = np.flatnonzero((goal.first == model) | (goal.second == model)).tolist()
        for row in rows:
            last = max(last, int(fold.decided_at[row]))
            if goal.single[row]:
                continue
            is_first = bool(goal.first[row] == model)
            if is_first:
                second = goal.second[row]
            else:
                second = goal.first[row]
            other = names[int(second)]
            if self.lost[row]:
                last = max(last, int(fold.progress[row]))
                evidence["lost"].append(other)
            elif goal.claimed[row] and not fold.undecided[row]:
                found = _FAILED
                if fold.verdict[row] == VerdictCode.BETTER:
                    found = _CLAIMS
                if is_first:
                    role = found[0]
                else:
                    role = found[1]
                evidence.setdefault(role, []).append(other)
                evidence["within"] = claimed_margin(spec, goal, row)
            elif not fold.undecided[row]:
                called = "separated"
                if fold.verdict[row] == VerdictCode.TIE:
                    called = "tied"
                evidence[called].append(other)
            else:
                kinds = _CLAIMS
                if not is_first:
                    kinds = _CLAIMS[::-1]
                for side, kind in enumerate(kinds):
                    if fold.enough_at[side, row] >= 0:
                        last = max(last, int(fold.enough_at[side, row]))
                        evidence.setdefault(kind, []).append(other)
                        evidence["within"] = spec.stopping.equivalence
        step = last
        if rows and not last:  # one that the goal does not name was needed at no time
            step = self.reached
        if self.answers.determinism.done(model):
            evidence |= {"exact": True, "questions": spec.questions}
        return Decision("retired", (names[model],), "retired", step, 0, evidence=evidence)

    def _members(self) -> list[int]:
        if not self.contrasts.stops:
            return [model for model in range(len(self.spec.models)) if model not in self._gone]
        return super()._members()

    @property
    def most_evidence(self) -> float:
        """The log e-value of the strictest level that is read, beyond which evidence is not guarded."""
        if self.rule.fixed_threshold is None:
            return self.fold.levels.guard
        return inf

    @property
    def hopeless(self) -> bool:
        """Whether each question was asked and nothing that is needed could be decided by any answers."""
        needed = self.fold.needed
        if not needed.any() or self.decidable[needed].any():
            return False
        return bool(self.fold.progress[needed].min() >= self.spec.questions)

    @property
    def met(self) -> tuple[str, ...]:
        """The parts of the goal that are reached; empty while none is."""
        return self.contrasts.condition.met(self.states)

    @property
    def ending(self) -> Literal["resolved", "partial"] | None:
        """Whether the goal is reached, or a part of what it asks; None while nothing is known."""
        if self.met:
            return "resolved"
        is_something_known = not self.fold.undecided.all() or (self.fold.enough_at >= 0).any()
        if is_something_known:
            return "partial"
        return None

    @property
    def good_enough(self) -> list[int]:
        """The models of the best sets that are known within the margin only: no other is better by more."""
        condition = self.contrasts.condition
        parts_ = getattr(condition, "parts", (condition,))
        sets = [part.good_enough(self.states) for part in parts_ if isinstance(part, BestK)]
        return sorted({model for chosen in sets for model in chosen})
