"""Claims on other scales, among many claims, of references, of imported results, and of several goals."""

import json
from dataclasses import asdict, replace
from types import SimpleNamespace

import numpy as np
import pytest
import run_examples as runs
from session_scripts import counts_of, make_spec

from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import GoalSpec, ReferenceSpec
from adaptive_eval.run.claims import AtLeast, NotWorse, _claims_of, _margin, _of_imported, check
from adaptive_eval.store.records import TrialRecord
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.trial import Completion, Score, Usage

CHANCES = {"good": 0.9, "poor": 0.45, "fair": 0.85}


def stored(folder, weights=(0.0, 1.0), rounds="schedule", chances=CHANCES, unusable="", **parts):
    """Store a run of right or wrong answers that are worth these weights; return its place.

    The answers of an `unusable` model are found at the end to say nothing about it; "all" is all models.
    """
    spec = make_spec(list(chances), 20, weights=weights, max_passes=8, rounds=rounds, goal="budget", **parts)

    def answer(request, at, *, after_stop=False):
        key = request.key
        rng = np.random.default_rng([*key.model.encode(), key.index])
        right = int(rng.random() < chances[key.model])
        score = Score(right, str(right), {"is_correct": bool(right)})
        return TrialRecord(request, at, Completion("4", "stop", Usage(9, 5)), score, after_stop=after_stop)

    meta = {"name": "claims", "seed": "5", "started_at": repr(runs.STARTED), "config": "{}"}
    session = Session(spec)
    runs.store_run(folder, meta, session, answer, rounds=9 if unusable else None)
    if unusable:
        if unusable == "all":
            made = session.end("unusable", "no answer can be used")
        else:
            made = session.stop_model(unusable, "", unusable=True)
        with RunWriter.open(folder) as writer:
            for decision in made:
                writer.decision(runs.STARTED + 99.0, decision.trials, asdict(decision))
            runs._snapshot(writer, session, runs.STARTED + 99.0)
            writer.commit()
    return folder


@pytest.mark.parametrize(("unusable", "holds"), [("good", [None, True]), ("all", [None, None])])
def test_answers_that_say_nothing_about_a_model_decide_no_claim(tmp_path, unusable, holds):
    claims = [AtLeast("good", 0.3), NotWorse("fair", "poor", 0.2)]
    assert [one.holds for one in check(stored(tmp_path / "usable"), claims)] == [True, True]
    assert [one.holds for one in check(stored(tmp_path / "run", unusable=unusable), claims)] == holds


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return stored(tmp_path_factory.mktemp("claims") / "run")


@pytest.fixture(scope="module")
def scaled(tmp_path_factory):
    return stored(tmp_path_factory.mktemp("claims") / "scaled", weights=(-1.0, 3.0))


def test_claims_on_another_scale_are_those_on_the_first_in_its_units(run, scaled):
    values, pairs = (0.2, 0.4, 0.55, 0.7, 0.99), [("poor", "good"), ("good", "poor"), ("fair", "good")]
    asked = [AtLeast(name, value) for name in CHANCES for value in values]
    asked += [NotWorse(*both, margin) for both in pairs for margin in (0.05, 0.2, 0.45, 0.9)]
    moved = []
    for one in asked:
        is_score = isinstance(one, AtLeast)
        moved.append(
            AtLeast(one.model, 4.0 * one.value - 1.0)
            if is_score
            else NotWorse(one.model, one.than, 4.0 * one.margin)
        )
    found = [claim.holds for claim in check(run, asked)]
    assert found == [claim.holds for claim in check(scaled, moved)]
    assert {True, False, None} <= set(found)


@pytest.mark.parametrize("others", ["scores", "pairs"])
def test_a_claim_needs_more_evidence_among_more_claims_of_either_kind(run, others):
    values = (0.72, 0.76, 0.79)
    more = [AtLeast("poor", 0.1 + number / 80) for number in range(40)]
    if others == "pairs":
        more = [NotWorse("poor", "good", 0.1 + number / 80) for number in range(40)]
    alone = [check(run, [AtLeast("good", value)])[0].holds for value in values]
    among = [check(run, [AtLeast("good", value), *more])[0].holds for value in values]
    assert alone.count(True) > among.count(True)
    assert False not in among


def test_in_rounds_the_steps_that_all_models_share_decide_about_a_score(tmp_path):
    """The further steps ask some questions more often than others."""
    place = stored(tmp_path / "run", rounds="rounds", trials=400)
    words = check(place, [AtLeast("good", 0.9)])[0]
    assert words.holds is None
    assert "after 40 trials each on 20 questions" in words.text


def test_the_claims_of_a_goal_are_about_all_that_it_can_compare():
    spec = make_spec(["a", "b"], 30, goal="not-worse", model="b", margin=0.1)
    stored_ = ReferenceSpec("old", {"t": counts_of(0.5)})
    with_reference = replace(spec, references=(stored_,))
    assert _claims_of(with_reference) == [NotWorse("a", "b", 0.1), NotWorse("old", "b", 0.1)]
    against = replace(with_reference, goal=GoalSpec("not-worse", model="old", margin=0.1))
    assert _claims_of(against) == [NotWorse("a", "old", 0.1), NotWorse("b", "old", 0.1)]


def test_a_claim_without_a_margin_has_that_of_the_goal_about_the_same_model():
    goals = tuple(
        GoalSpec("not-worse", model=name, margin=margin) for name, margin in (("a", 0.1), ("b", 0.2))
    )
    spec = make_spec(["a", "b", "c"], 30, goal="all", goals=goals, equivalence=0.3)
    assert [_margin(spec, name) for name in ("a", "b", "c")] == [0.1, 0.2, 0.3]


def imported(first, second, low, high, **score):
    pair = SimpleNamespace(first=first, second=second, difference_low=low, difference_high=high)
    line = SimpleNamespace(model=first, **score)
    return SimpleNamespace(rule="fixed", confidence=0.95, pairs=[pair], models=[line])


@pytest.mark.parametrize(
    ("model", "than", "margin", "low", "high", "holds"),
    [
        ("a", "b", 0.05, -0.02, 0.1, True),
        ("a", "b", 0.05, -0.1, 0.1, None),
        ("a", "b", 0.05, -0.2, -0.1, False),
        ("b", "a", 0.05, -0.02, 0.1, None),
        ("b", "a", 0.15, -0.02, 0.1, True),
        ("b", "a", 0.05, 0.06, 0.1, False),
        ("a", "b", 0.05, 0.06, 0.1, True),
    ],
)
def test_an_interval_that_is_stored_decides_either_way_around(model, than, margin, low, high, holds):
    found = _of_imported(imported("a", "b", low, high), NotWorse(model, than, margin))
    assert found.holds is holds


@pytest.mark.parametrize(("value", "holds"), [(0.3, True), (0.4, True), (0.5, None), (0.61, False)])
def test_the_interval_of_a_score_that_is_stored_decides(value, holds):
    results = imported("a", "b", 0.0, 0.0, score_low=0.4, score_high=0.6)
    assert _of_imported(results, AtLeast("a", value)).holds is holds


def analysed_at(table, confidence):
    """Return the lower end of a model's score at a confidence."""
    options = ("-o", f"stopping.confidence={confidence!r}", "--json")
    lines = json.loads(runs.printed("analyze", table, *options))["models"]
    return next(line["score_low"] for line in lines if line["model"] == "a")


def test_many_claims_on_imported_results_share_the_level(tmp_path):
    rng, rows = np.random.default_rng(1), ["model,question,correct"]
    for name, chance in (("a", 0.75), ("b", 0.5)):
        rows += [f"{name},q{number},{int(rng.random() < chance)}" for number in range(100)]
    (tmp_path / "table.csv").write_text("\n".join(rows), "utf-8")
    runs.printed("analyze", tmp_path / "table.csv", "--write", tmp_path / "run")
    for number in (1, 2, 3):  # one end of an interval at 1 - 2α/n errs in α/n; two have room in one
        end = analysed_at(tmp_path / "table.csv", 1.0 - 2.0 * 0.05 / max(number, 2))
        others = np.linspace(0.4, 0.5, number - 1).tolist()
        for value, holds in ((end - 0.001, True), (end + 0.001, None)):
            asked = [AtLeast("a", one) for one in (*others, value)]
            assert check(tmp_path / "run", asked)[-1].holds is holds
