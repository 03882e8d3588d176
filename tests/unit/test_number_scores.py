"""Scores that are numbers: counted as they are, within a range, from a scorer or a file to the report."""

import json
import math
import re

import numpy as np
import pytest
from run_examples import command, printed
from session_scripts import make_spec

from adaptive_eval.config import load_config
from adaptive_eval.core.session import Session
from adaptive_eval.engine.drift import DriftWatch
from adaptive_eval.errors import ConfigError, OutcomesError, SessionError, UsageError
from adaptive_eval.options.scorers import ChoiceProbabilityScorerConfig
from adaptive_eval.run.rescoring_specs import read_scorer
from adaptive_eval.scoring.choice import ChoiceProbabilityScorer
from adaptive_eval.scoring.rubric import Rubric
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TrialRecord
from adaptive_eval.trial import (
    STEPS,
    Completion,
    Question,
    Score,
    ScoreRange,
    TrialKey,
    TrialOutcome,
    TrialRequest,
)
from adaptive_eval.views.accounts import ModelAccount, QuestionAccount
from adaptive_eval.views.trials import examples, no_target, outcome
from scorio.sequential.cells import Cells
from scorio.sequential.flips import flip_limit
from scorio.sequential.moments import Mark
from scorio.sequential.trial_sequence import TrialSequence

STARS = (1.0, 10.0)
GOOD, POOR = (2 * 7.5 + 7) / 3, (2 * 7 + 6.9) / 3  # every third question is worth the less


@pytest.mark.parametrize("shared", [None, 69], ids=["passes", "rounds"])
def test_they_are_counted_bit_for_bit_as_categories_of_the_same_scores_are(shared):
    rng, each = np.random.default_rng(2), 200
    drawn = rng.integers(0, 3, (4, each))
    drawn[rng.random(drawn.shape) < 0.1] = Mark.MISSING
    graded = Cells(sequence_of(shared), np.array([0.0, 0.5, 1.0]), 4)
    numbers = Cells(sequence_of(shared), np.arange(STEPS + 1) / STEPS, 4, moments=True)
    graded.absorb(np.arange(4), drawn)
    numbers.absorb(np.arange(4), np.where(drawn < 0, drawn, drawn * STEPS // 2))
    for name in ("total", "square", "w", "u", "g", "r", "lost_score"):
        one, other = (getattr(cells.latest(), name) for cells in (graded, numbers))
        assert np.array_equal(one, other), name


def sequence_of(shared):
    if shared is None:
        return TrialSequence(range(23))
    from scorio.sequential.parts import RunSequence

    return RunSequence([23], 0, 1, (True,)).sequences[0]


def test_no_step_lies_above_the_highest_number():
    session = Session(make_spec(2, 3, weights=ScoreRange(STARS)))
    (first, *_) = session.ask(2)
    with pytest.raises(SessionError, match=rf"categories 0\.\.{STEPS}$"):
        session.tell([TrialOutcome(first.key, STEPS + 1)])
    session.tell([TrialOutcome(first.key, STEPS)])
    assert {line.score for line in session.results().models if line.trials} == {STARS[1]}


def test_sums_of_any_scores_and_of_their_squares_are_kept():
    steps = np.random.default_rng(0).integers(0, STEPS + 1, 300)
    cells = Cells(TrialSequence(range(3)), np.arange(STEPS + 1) / STEPS, 1, moments=True)
    cells.absorb(np.array([0]), steps[None])
    score = steps / STEPS
    sums = [table.sum() for table in cells.scale.sums(cells.counts)]
    assert sums[0] == 300
    assert sums[1:] == pytest.approx([score.sum(), (score**2).sum()], abs=1e-6)


CODE = """
WORTH = {"good": ("7.5", "7"), "poor": ("7", "6.9"), "over": ("7", "11"), "new": ("9", "9")}

def stars(answer, question):
    return float(answer)

def _model(name):
    return lambda prompt: WORTH[name][int(prompt.rstrip("?")) % 3 == 0]

good, poor, over, new = map(_model, WORTH)
"""


def begun(folder, name, models, task, **parts):
    """Write a config of these models and one task, and run it; return its report, if it has one."""
    data = {"name": name, "models": models, "tasks": [{"name": "t", **task}], **parts}
    (folder / f"{name}.yaml").write_text(json.dumps(data), encoding="utf-8")
    command("run", folder / f"{name}.yaml", "--out", folder / name)
    report = folder / name / "report.json"
    return json.loads(report.read_text(encoding="utf-8")) if report.exists() else None


def config(folder, name, models, scorer=None, **parts):
    """Run a config of models whose answers are numbers of stars."""
    functions = [
        {"name": one, "endpoints": [f"python:answers.py:{one}"], "deterministic": True} for one in models
    ]
    stars = {"kind": "python", "function": "answers:stars", "range": [1, 10]}
    task = {"dataset": "rows.jsonl", "scorer": scorer or stars}
    return folder / name, begun(folder, name, functions, task, **{"budget": {"trials": 120}, **parts})


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of two models whose answers are worth 7 to 7.5 stars, and of one that is worth 11 at times."""
    folder = tmp_path_factory.mktemp("stars")
    (folder / "answers.py").write_text(CODE, encoding="utf-8")
    rows = [{"id": f"q{n}", "input": f"{n}?", "target": "7.5"} for n in range(30)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return config(folder, "run", ("good", "poor", "over"), stopping={"equivalence": 0.1})[0]


def test_a_score_outside_the_range_is_a_failure_of_the_scorer(finished):
    with RunReader(finished) as reader:
        over = list(reader.trials(model="over"))
    scored = {record.score.signals["score"] for record in over if record.missing is None}
    assert scored == {7.0}  # never clipped
    assert any("11 is not a score from 1 to 10" in (record.missing or "") for record in over)


STARRED = "{kind: python, function: 'answers:stars', range: [%s]}"
VERIFIER = "{kind: verifier, endpoint: 'http://h/v1', model: m, is_correct: %s}"


def rescored(directory, *arguments):
    (told,) = json.loads(printed("rescore", directory, *arguments, "--dry-run", "--json"))[1:]
    return {line["model"]: line["score"] for line in told["models"]}


@pytest.mark.slow
def test_rescoring_takes_numbers_or_rights_as_the_scorer_says(finished):
    scores = rescored(finished, "--scorer", "exact")
    assert (scores["good"], scores["poor"]) == pytest.approx((2 / 3, 0), abs=1e-2)
    binary, _ = config(finished.parent, "rights", ("good", "poor"), "exact", goal="budget")
    scores = rescored(binary, "--scorer", STARRED % "1, 10")
    assert (scores["good"], scores["poor"]) == pytest.approx((GOOD, POOR), abs=1e-3)
    told = command("rescore", binary, "--scorer", STARRED % "1, 10", "--dry-run")
    assert "the same category" not in told.output, "numbers that differ are not all alike"


def test_numbers_say_not_what_is_right(finished):
    found = command("rescore", finished, "--rubric", "binary", "--dry-run")
    assert "is_correct is missing" in str(found.exception)
    text = (finished.parent / "run.yaml").read_text(encoding="utf-8")
    for track, key in (("binary", "schema"), ({"range": [0, 10]}, "range")):
        data = json.loads(text)
        data["tasks"][0]["track"] = [track]
        (finished.parent / "tracked.yaml").write_text(json.dumps(data), encoding="utf-8")
        with pytest.raises(ConfigError, match=rf"track\[0\]\.{key}"):
            load_config(finished.parent / "tracked.yaml")


def test_scores_that_a_narrower_range_loses_are_told_in_the_report(finished):
    narrow = "{kind: python, function: answers:stars, range: [1, 7]}"
    said = printed("rescore", finished, "--scorer", narrow, "--name", "narrow")
    ranking = json.loads(printed("rescore", finished, "--scorer", narrow, "--dry-run", "--json"))[1]
    lost = sum(line["missing"] for line in ranking["models"])
    printed("report", finished)
    for words in (said, (finished / "report.md").read_text(encoding="utf-8")):
        assert re.search(r"narrow: \d+ answers .*count(ed)? as missing", words)
    assert lost > 0
    assert "undamaged" in printed("validate", finished)


def test_a_least_chance_makes_chances_right_or_wrong():
    assert ChoiceProbabilityScorerConfig().range == (0.0, 1.0)
    section = ChoiceProbabilityScorerConfig(right_from=0.7)
    assert section.range is None
    assert read_scorer(VERIFIER % "{kind: choice_probability, right_from: 0.7}").is_correct == section


def test_a_change_is_told_in_the_unit_of_the_scores_and_numbers_are_ranked_in_parts():
    rng, watch = np.random.default_rng(3), DriftWatch({"stars": ScoreRange(STARS)})
    for step, jitter in enumerate(rng.integers(0, 700, 4000).tolist()):
        category = jitter + (16_800 if step < 3000 else 8_400)
        watch.add(TrialKey("m", step), ("stars", str(step % 5)), category, at=0.0, server="")
        if not watch.remarks():
            seen = watch._models["m"].whole.seen
    (change,) = watch.changes
    assert (change.before, change.after) == pytest.approx((7.1, 4.1), abs=0.1)
    assert max(map(len, seen.values())) < 10


def test_answers_are_shown_by_the_number_that_counts(finished):
    with RunReader(finished) as reader:
        differing = QuestionAccount("t", "q1", 2, 0.5, 0.5)
        models = [ModelAccount(name, (), 0, {}, {}, None, None) for name in ("good", "poor")]
        shown = examples(reader, models, [differing], no_target)
    assert [one.kind for one in shown.apart[0].answers] == ["score 7.5", "score 7"]
    request = TrialRequest(TrialKey("m", 0), "t", "q0", 0, 0)
    cut = Score(0, None, {"score": 7.5, "truncated": True})
    record = TrialRecord(request, 0.0, Completion("7.5", "length"), cut)
    assert outcome(record) == ("plain", "lowest score, truncated")


def test_a_stored_run_of_numbers_is_a_reference(finished):
    folder = finished.parent
    stored = [{"run": str(finished), "models": ["good"]}]
    goal = {"kind": "baseline", "model": "good"}
    _, report = config(folder, "later", ("new",), references=stored, goal=goal)
    (pair,) = report["pairs"]
    assert (pair["first"], pair["second"]) == ("good", "new")
    assert pair["difference"] == pytest.approx(GOOD - 9, abs=1e-4)


def test_the_published_score_of_alpaca_eval_comes_out_of_a_file_of_its_form(tmp_path):
    rng = np.random.default_rng(4)
    shares = {"null": rng.beta(3, 1, 60), "other": rng.beta(1, 3, 60)}
    for name, values in shares.items():
        place = tmp_path / "results" / name / "weighted" / "annotations.json"
        place.parent.mkdir(parents=True)
        rows = [
            {"instruction": f"i{n}", "output_2": "…", "generator_2": "x", "preference": 1 + value}
            for n, value in enumerate(values)
        ]
        place.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    arguments = ("analyze", tmp_path, "--range", "0,1", "--fixed", "--replicates", 1, "--json")
    told = json.loads(printed(*arguments))
    for line in told["models"]:
        assert line["score"] == pytest.approx(shares[line["model"]].mean(), abs=1 / STEPS)
    (pair,) = told["fixed"]
    assert pair["winner"] == "null"
    assert pair["difference"] == pytest.approx((shares["null"] - shares["other"]).mean(), abs=1e-4)


def test_a_category_is_no_score_of_a_range_and_a_run_of_numbers_keeps_its_range(tmp_path):
    rows = "".join(f"{model},q{n},1,.{7 - place}\n" for place, model in enumerate("ab") for n in range(12))
    table, stored, span = tmp_path / "outcomes.csv", tmp_path / "stored", ("--range", "0,1")
    table.write_text(f"model,question,correct,score\n{rows}", encoding="utf-8")
    printed("analyze", table, *span, "--write", stored)
    for place in (table, stored):
        told = json.loads(printed("analyze", place, *span, "--replicates", 1, "--json"))
        assert [line["score"] for line in told["models"]] == pytest.approx([0.7, 0.6], abs=1e-4)
    for other in (("--range", "0,5"), ("--weights", "0,1")):
        assert isinstance(command("analyze", stored, *other).exception, UsageError)
    table.write_text(f"model,question,correct,extra\n{rows}", encoding="utf-8")
    found = command("analyze", table, *span)
    assert isinstance(found.exception, OutcomesError)
    assert "--metric score" in str(found.exception)


def test_scores_of_a_file_are_a_reference_of_numbers_and_categories_are_not(finished):
    folder = finished.parent
    for column in ("score", "correct"):
        rows = "".join(f"old,q{n},1\n" for n in range(30))
        (folder / f"old_{column}.csv").write_text(f"model,question,{column}\n{rows}", encoding="utf-8")
    stored = [{"file": "old_score.csv", "models": ["old"]}]
    goal = {"kind": "baseline", "model": "old"}
    _, report = config(folder, "against", ("good",), references=stored, goal=goal)
    assert abs(report["pairs"][0]["difference"]) == pytest.approx(GOOD - 1, abs=0.2)  # not all questions
    stored = [stored[0] | {"file": "old_correct.csv"}]
    assert config(folder, "refused", ("good",), references=stored, goal=goal)[1] is None


def test_a_rubric_takes_the_number_and_a_truncated_answer_gets_the_lowest():
    rubric = Rubric(range=ScoreRange(STARS))
    assert rubric.assign([{"score": 5.5}, {"score": 10, "truncated": True}]) == [STEPS // 2, 0]


LOGPROBS = {"max_tokens": 1, "temperature": 0, "logprobs": True, "top_logprobs": 20}


def choices(folder, scorer):
    """Run multiple choice on simulated models; return the lines of the report by model."""
    rows = [
        {"id": f"q{n}", "input": f"{n} + {n}?", "choices": [f"{2 * n + k}" for k in (1, 0, 2)], "target": "B"}
        for n in range(40)
    ]
    (folder / "mc.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    task = {"dataset": "mc.jsonl", "prompt": "{input}\n{choices}\nThe letter:", "scorer": scorer}
    means = {"large": {"mean": 0.8}, "small": {"mean": 0.3}}
    models = [{"name": one, "endpoints": ["mimic"], "sampling": LOGPROBS} for one in means]
    limits = {"goal": "budget", "budget": {"trials": 96}}
    report = begun(folder, "mc", models, task, mimic={"models": means}, **limits)
    return {line["model"]: line for line in report["models"]}


def test_the_chance_of_the_right_letter_is_the_score_without_noise_of_sampling(tmp_path):
    lines = choices(tmp_path, "choice_probability")
    # one pass gives each model's mean accuracy itself; coins would be off by .07 (one standard error)
    assert lines["large"]["score"] == pytest.approx(0.8, abs=0.002)
    assert lines["small"]["score"] == pytest.approx(0.3, abs=0.002)
    assert all(line["bayes_mu"] is None for line in lines.values())


def test_the_likeliest_letter_counts_as_lm_eval_has_it(tmp_path):
    lines = choices(tmp_path, {"kind": "choice_probability", "by": "likeliest"})
    assert all(abs(line["score"] * 40 - round(line["score"] * 40)) < 1e-6 for line in lines.values())
    assert lines["large"]["bayes_mu"] is not None


@pytest.mark.parametrize("by", ["chance", "likeliest"])
def test_the_likeliest_letter_is_right_below_one_half(by):
    """Chances are those among the letters: half of the tokens are others."""
    likely = [{"token": t, "logprob": math.log(p)} for t, p in (("**B", 0.2), ("A", 0.175), ("C", 0.125))]
    answer = Completion("B", "length", logprobs={"content": [{"top_logprobs": likely}]})
    score = ChoiceProbabilityScorer(by=by).score(answer, Question("t", "q", "B"))
    assert score.signals["score"] == pytest.approx(0.4)
    assert score.signals.get("is_correct") is (True if by == "likeliest" else None)
    assert not score.signals["repeated_pattern"]


def test_a_rounded_log_probability_above_zero_is_a_chance_of_one():
    likely = [{"token": "B", "logprob": 0.4}, {"token": "A", "logprob": -math.log(4.0)}]
    answer = Completion("B", "length", logprobs={"content": [{"top_logprobs": likely}]})
    score = ChoiceProbabilityScorer().score(answer, Question("t", "q", "B"))
    assert score.signals["score"] == pytest.approx(0.8)


def test_at_temperature_0_small_shifts_of_a_number_are_small_noise():
    rng, steps = np.random.default_rng(1), np.arange(STEPS + 1) / STEPS
    level = 0.0025

    def noise(size):
        cells = Cells(TrialSequence(range(40)), steps, 1, greedy=[0], level=level, moments=True)
        base = np.tile(rng.integers(5000, 20000, 40), 10)
        shift = rng.integers(-size, size + 1, base.size)
        cells.absorb(np.array([0]), (base + shift)[None])
        return float(cells.latest().w[0, 0])

    still, batches, flips = noise(0), noise(250), noise(5000)
    assert still <= batches <= 1.5 * still  # a shift of .01 is a flip of .0001
    assert flips > 1.2 * still
    assert flip_limit(200, 0.2, level) >= flip_limit(200, 0, level)
