"""Verdicts by labels, with every option crossed, against products over single answers in plain Python.

Several tasks and weights, grades, answers that are lost, copied, dropped, filled in, or without the label
that they were chosen for; two calls with chances of their own; claims; questions as a sample, and clusters.
"""

from collections import Counter
from dataclasses import replace
from math import exp, log
from types import SimpleNamespace

import numpy as np
import pytest
from session_scripts import make_spec

from adaptive_eval.core.by_labels import label_look, results_by_labels
from adaptive_eval.core.label_record import LabelRecord
from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import GoalSpec, ModelSpec, SessionSpec, StoppingSpec, TaskSpec
from adaptive_eval.errors import UsageError
from adaptive_eval.run.label_choice import LabelChoices
from adaptive_eval.run.label_files import KnownAnswer, LabelFile
from adaptive_eval.run.labelled import _noise
from adaptive_eval.store.cells import OutcomeColumns
from adaptive_eval.trial import COPY_REASON, Missing, ScoreRange, TrialKey, TrialOutcome, Usage
from scorio.sequential.clusters import RATES

NAMES, ENDS, STEPS = ("a", "b", "same"), (-1.0, 3.0), 56
IN_A_ROW = (5, 4)
"""Sizes of the tasks whose questions are asked twice in a row."""
CASES = {
    "one task": ((10,), "ranking", "benchmark", False),
    "several answers a request": (IN_A_ROW, "ranking", "benchmark", False),
    "several tasks": ((13, 4), "ranking", "benchmark", False),
    "claims": ((6, 9), "not-worse", "benchmark", False),
    "claims that a lower score keeps": ((16, 3), "not-worse", "benchmark", False),
    "thresholds": ((9, 5), "threshold", "benchmark", False),
    "a sample": ((8, 12), "ranking", "population", False),
    "clusters": ((14, 7), "ranking", "population", True),
}


def made(sizes, goal, target, clustered):
    """Return a session that was told answers of three models, and its labels."""
    rng, tasks = np.random.default_rng(len(sizes) + sum(sizes)), []
    for number, size in enumerate(sizes):
        groups = tuple(f"g{question // 4}" for question in range(size)) if clustered else None
        weights = (-1.0, 3.0) if number else (-1.0, 3.0, 1.0)
        names = tuple(f"q{question}" for question in range(size))
        tasks.append(TaskSpec(f"t{number}", names, weights, clusters=groups, weight=1.0 + 2.0 * number))
    asked = {"not-worse": {"model": "b", "margin": 0.6}, "threshold": {"value": 0.4}}.get(goal, {})
    models = ModelSpec("a"), ModelSpec("b"), ModelSpec("same", deterministic=True)
    stopping = StoppingSpec(
        confidence=0.8 if target == "population" else 1.0 - 1e-9, target=target, max_passes=9
    )
    in_a_row = {"samples_per_prompt": 2} if sizes == IN_A_ROW else {}
    goal = GoalSpec(goal, **asked)
    spec = SessionSpec(models, tuple(tasks), goal=goal, stopping=stopping, seed=2, **in_a_row)
    session, seen, log_, judged = Session(spec), Counter(), {}, {}
    while len(log_) < 2.5 * STEPS and session.stopped is None:
        outcomes = []
        for request in session.ask(3):
            key, task = request.key, int(request.task[1:])
            category, fate = int(rng.integers(len(tasks[task].weights))), rng.random()
            if key.model == "same":
                category, fate = int(request.question[1:]) % 2, 1.0
            text = key.model, request.task, request.question, category
            copied = key.model == "a" and seen[text] > 0 and category == 1
            outcome = TrialOutcome(key, category, Usage(), 1 + category, copied)
            if fate < 0.08:
                outcome = Missing(key, "timeout" if fate < 0.05 else COPY_REASON)
            seen[text] += fate >= 0.08
            score = float(tasks[task].unit_scores[category]) if fate >= 0.08 else np.nan
            log_[key.model, key.index] = task, int(request.question[1:]), copied and fate >= 0.08
            judged[key.model, key.index] = score, 0.05 <= fate < 0.08
            outcomes.append(outcome)
        session.tell(outcomes)
    last = min(STEPS, *session.board.complete)
    spans = (0, 14), (18, last)
    pool = [step for begin, end in spans for step in range(begin, end)]
    chosen = {step: 0.3 if step < 20 else 0.5 for step in pool if rng.random() < 0.5}
    labels = []
    for name, step in sorted(log_):
        if step in chosen and rng.random() < 0.8:
            labels.append((name, step, float(rng.choice([-1.0, 0.0, 3.0]))))
    record = LabelRecord(
        "l", 99, len(labels), True, spans, {"a": last, "b": last - 3, "same": last},
        0.4, tuple(sorted(chosen.items())), tuple(labels),
    )  # fmt: skip
    return session, record, log_, judged


class PlainLabels:
    """What labels say, summed again over the steps of some models for each figure."""

    def __init__(self, session, record, log_, judged, clustered):
        self.spec, self.record, self.log, self.judged = session.spec, record, log_, judged
        self.labels = {(name, step): (score + 1.0) / 4.0 for name, step, score in record.labels}
        self.chosen, self.clustered = dict(record.chosen), clustered
        self.dropped = {key for key, (_, dropped) in judged.items() if dropped}

    def read_until(self):
        """Return up to which step answers are read: if asked in a row, when all were asked as often."""
        asked, ends = Counter(), [0]
        last = self.record.spans[-1][1]
        for step in range(last):
            asked[self.log["a", step][:2]] += 1
            if len(asked) == self.spec.questions and len(set(asked.values())) == 1:
                ends.append(step + 1)
        return last if self.spec.samples_per_prompt == 1 else max(ends[-1], self.spec.questions)

    def steps(self, names, task=None):
        for begin, end in self.record.spans:
            for step in range(begin, min(end, self.read_until())):
                there = all(step < self.record.progress[one] and (one, step) in self.log for one in names)
                if there and task in (None, self.log[names[0], step][0]):
                    yield step

    def of(self, name, step):
        """Return judge and label of an answer; a labelled one that the judge could not score is a half."""
        judge, label = self.judged[name, step][0], self.labels.get((name, step), np.nan)
        if (name, step) in self.dropped:
            return np.nan, np.nan
        return (0.5 if np.isnan(judge) and not np.isnan(label) else judge), label

    def ranges(self, names, task=None):
        """Return of each step its ends, its weight, whether it may be a copy, its question and cluster."""
        products = squares = 0.0
        found, each = [], np.array(self.spec.task_weights) / [len(one.questions) for one in self.spec.tasks]
        for step in self.steps(names, task):
            both = [self.of(name, step) for name in names]
            rho, ends = min(max(products / (squares + 1.0), 0.0), 1.0), []
            pi = self.chosen.get(step, self.record.chance)
            for judge, label in both:
                filled = [label if label == label else worth for worth in (0.0, 1.0)]
                parts = [rho * judge + (step in self.chosen) * (one - rho * judge) / pi for one in filled]
                ends.append((0.0, 1.0) if judge != judge else tuple(parts))
            x, y = (row[0] - (row[1] if len(row) > 1 else 0.0) for row in zip(*both, strict=True))
            if step in self.chosen and x + y == x + y:
                products, squares = products + x * y, squares + x * x
            (low, high), *other = ends
            if other:
                low, high = low - other[0][1], high - other[0][0]
            of, question, _ = self.log[names[0], step]
            home = (of, question)
            if self.clustered:
                home = (question // 4,)  # a name stands for one cluster in all tasks
            copied = any(self.log[name, step][2] for name in names)
            found.append((low, high, each[of] / each.max(), copied, (of, question), home, pi))
        return found

    def log_e(self, names, against=0.0, side=0):
        rows, total = self.ranges(names), []
        bound = len(names) / min(row[-1] for row in rows)
        for rate in (RATES if side == 0 else RATES[RATES * side > 0]) / bound:
            if self.spec.stopping.target == "population":
                total.append(self.by_group(rows, rate, against))
                continue
            won = 1.0
            for low, high, stake, copied, *_ in rows:
                factor = 1.0 + rate * stake * ((low if rate > 0 else high) - against)
                won *= min(factor, 1.0) if copied else factor
            total.append(won)
        return log(np.mean(total))

    def by_group(self, rows, rate, against):
        means, homes = {}, {}
        for low, high, stake, _, question, home, _ in rows:
            means.setdefault(question, []).append(stake * ((low if rate > 0 else high) - against))
            homes.setdefault(home, set()).add(question)
        largest = max(map(len, homes.values()))
        sums = [sum(np.mean(means[one]) for one in inside) / largest for inside in homes.values()]
        return np.prod([1.0 + rate * one for one in sums])

    def mean(self, names):
        parts = []
        for task, weight in enumerate(self.spec.task_weights):
            rows = self.ranges(names, task)
            parts.append(weight * np.mean([(low + high) / 2.0 for low, high, *_ in rows]))
        return sum(parts)


@pytest.fixture(scope="module", params=CASES)
def read(request):
    sizes, goal, target, clustered = CASES[request.param]
    session, record, log_, judged = made(sizes, goal, target, clustered)
    alone = session.results()
    plain = PlainLabels(session, record, log_, judged, clustered)
    spec = replace(session.spec, stopping=replace(session.spec.stopping, confidence=0.6))
    look = label_look(spec, session.board, record)
    return spec, results_by_labels(spec, session.board, record, alone), look, plain


def is_at_level(spec, log_e):
    return log_e == pytest.approx(-log(1.0 - spec.stopping.confidence), abs=0.05)


def test_every_bet_is_the_product_of_its_answers_whatever_it_is_against(read):
    _, _, look, plain = read
    for rows in ([0], [1], [2], [0, 1], [2, 1]):
        names, bets = [NAMES[row] for row in rows], look.bets(rows)
        for against in (0.2, 0.7) if len(rows) == 1 else (-0.4, 0.0, 0.3):
            for side in (0, 1, -1):
                assert bets.last(against, side) == pytest.approx(plain.log_e(names, against, side)), names


def test_every_pair_and_claim_is_decided_by_bets_on_corrected_scores(read):
    _, results, _, plain = read
    assert len(results.pairs) >= 2
    for pair in results.pairs:
        names, against, side = [pair.first, pair.second], 0.0, 0
        if pair.kind == "threshold":
            names, against = [pair.first], (0.4 + 1.0) / 4.0
        mean = plain.mean(names)
        if pair.kind == "not-worse":
            against = -0.6 / 4.0
            side = 1 if mean > against else -1
        expected = max(plain.log_e(names, against, side), 0.0)
        assert pair.evidence == pytest.approx(expected, abs=1e-9), pair
        low, high = pair.difference_low / 4.0, pair.difference_high / 4.0
        shift = against if pair.kind == "threshold" else 0.0
        assert pair.difference / 4.0 + shift == pytest.approx(np.clip(mean, low + shift, high + shift))


def test_scores_of_tasks_are_their_own_and_add_up_as_they_weigh(read):
    spec, results, _, plain = read
    for line in results.models:
        assert (line.score + 1.0) / 4.0 == pytest.approx(np.clip(plain.mean([line.model]), 0.0, 1.0))
        low, high = ((end + 1.0) / 4.0 for end in (line.score_low, line.score_high))
        assert low == 0.0 or is_at_level(spec, plain.log_e([line.model], low))
        assert high == 1.0 or is_at_level(spec, plain.log_e([line.model], high))
    for number, task in enumerate(results.tasks):
        for line in task.scores:
            rows = plain.ranges([line.model], number)
            mean = np.clip(np.mean([(row[0] + row[1]) / 2.0 for row in rows]), 0.0, 1.0)
            assert (line.score + 1.0) / 4.0 == pytest.approx(mean)


def test_the_bias_of_a_judge_is_its_mean_gap_to_labels(read):
    spec, _, look, plain = read
    for rows in ([0], [1], [0, 1], [2, 1]):
        names, gaps = [NAMES[row] for row in rows], []
        for step in plain.steps(names):
            each = [judge - label for judge, label in (plain.of(name, step) for name in names)]
            gaps.append(each[0] - (each[1] if len(each) > 1 else 0.0))
        gaps = np.array([gap for gap in gaps if gap == gap])
        number, bias, low, high = look.biases(rows)
        assert (number, bias) == (gaps.size, pytest.approx(gaps.mean()))
        for end, most in ((low, -len(rows)), (high, len(rows))):
            won = np.mean([np.prod(1.0 + rate / (2 * len(rows)) * (gaps - end)) for rate in RATES])
            assert end == most or won >= exp(-0.05) / (1.0 - spec.stopping.confidence)
        assert low <= bias <= high


@pytest.mark.parametrize("in_a_row", [1, 2])
def test_of_rounds_the_steps_that_ask_every_question_can_be_chosen(in_a_row):
    spec = make_spec(2, 6, rounds="rounds", goal="budget", trials=300)
    spec = replace(spec, samples_per_prompt=in_a_row)
    session, asked, rng = Session(spec), [], np.random.default_rng(1)
    while session.stopped is None:
        requests = session.ask(4)
        asked += requests
        session.tell([TrialOutcome(one.key, int(rng.integers(2))) for one in requests])
    places = [(int(one.key.model[1:]), one.key.index, int(one.question[1:])) for one in asked]
    model, step, question = np.array(places).T
    questions = tuple(("t", f"q{number}") for number in range(6))
    begins = [begin for begin in session.board.cells[0].rounds.begins if begin < step.max()]
    there = (model == 0) | (step < begins[0])  # a model that is behind takes no answer of others away
    stored = [part[there] for part in (model, step, question)]
    columns = OutcomeColumns(("m0", "m1"), questions, *stored, *[np.zeros(0)] * 8)
    expected = [*range(begins[0])]
    for begin in begins:
        expected += range(begin, begin + 6 * in_a_row)
    found = LabelChoices(spec, columns, b"").pool(int(there.sum())).tolist()
    assert found == [one for one in expected if one <= step.max()]
    assert len(begins) > 1


@pytest.mark.parametrize("read", ["a sample"], indirect=True)
def test_a_pair_needs_more_labels_only_above_the_evidence_it_has(read):
    """A question of a sample is bet on once, so that its labels promise no more than they gave until now."""
    _, _, look, _ = read
    evidence = look.bets([0, 2]).last()
    have = look.judged.shared_by([0, 2])[1].chosen.mean()
    assert evidence > 0.2
    assert look.share_for(0, 2, 0.99 * evidence) == pytest.approx(have)
    assert have < look.share_for(0, 2, 1.05 * evidence) < 0.8


@pytest.mark.parametrize("read", ["one task"], indirect=True)
def test_few_labels_are_foreseen_from_as_few(read):
    _, _, look, _ = read
    many = {name: np.tile(values, 12) for name, values in vars(look.judged).items()}
    first = np.flatnonzero(many["chosen"] & ~np.isnan(many["label"][:2]).any(axis=0))[:2]
    many["chosen"][:] = False
    many["chosen"][first] = True
    many["label"][:, ~many["chosen"]] = np.nan
    few = replace(look, judged=replace(look.judged, **many))
    steps, _ = few.judged.shared_by([0, 1])
    assert few.share_for(0, 1, -1.0) == pytest.approx(2 / steps.size)
    assert steps.size > 200


@pytest.mark.parametrize("rows", [("", 3.0), (3.0, ""), ("", 3.0, ""), (3.0, 3.0), ("", "")])
def test_of_rows_about_one_answer_the_one_that_is_filled_in_counts(tmp_path, rows):
    key, file = TrialKey("a", 4), tmp_path / "labels.csv"
    file.write_text("id,score,pi\n" + "".join(f"x,{score},0.5\n" for score in rows), "utf-8")
    read = LabelFile({"x": key}, {key: KnownAnswer("t", "q", 0.5)}, {"t": (0.0, 5.0)}).read
    (label,) = read(file)
    assert (label.key, label.score, label.chance) == (key, 3.0 if 3.0 in rows else None, 0.5)
    file.write_text(file.read_text("utf-8") + "x,4.0,0.5\n", "utf-8")
    if 3.0 in rows:
        with pytest.raises(UsageError, match=f"line {len(rows) + 2}: this answer has another score on line"):
            read(file)
    else:
        assert [one.score for one in read(file)] == [4.0]


def test_the_noise_of_labels_is_told_in_the_scores_of_each_task():
    spec = SessionSpec(
        (ModelSpec("a"), ModelSpec("b")),
        (
            TaskSpec("essays", ("q1", "q2"), ScoreRange((1.0, 10.0))),
            TaskSpec("sums", ("s1", "s2"), (-1.0, 3.0)),
        ),
    )
    judge = np.array([[0.1, 0.3, 0.0, 1.0], [0.5, 0.9, 0.0, 1.0]])
    label = np.array([[0.1, 0.3, 0.0, 1.0], [0.5, 0.9, 0.25, 0.75]])
    judged = SimpleNamespace(judge=judge, label=label, task=np.tile([0, 0, 1, 1], (2, 1)))
    found = _noise(SimpleNamespace(judged=judged, spec=spec))
    assert [one.task for one in found] == ["essays"] * 4 + ["sums"] * 2
    assert [one.judge for one in found] == pytest.approx([1.9, 3.7, 5.5, 9.1, -1.0, 3.0])
    assert [one.labels for one in found] == [1, 1, 1, 1, 2, 2]
    assert [one.noise for one in found] == pytest.approx([0.0] * 4 + [0.125 * 4] * 2)
