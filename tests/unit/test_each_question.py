"""Claims about every question of a run."""

import warnings
from itertools import product

import numpy as np
import pytest
from command_line import in_process

import adaptive_eval
from adaptive_eval.errors import RunFileError, UsageError
from adaptive_eval.interop.found import ReadingOptions
from adaptive_eval.interop.import_run import import_logs
from adaptive_eval.interop.recorded_files import open_logs
from adaptive_eval.run.claims import AtLeast, check
from adaptive_eval.run.each_question import LOST, QuestionClaim, _by_confidence, each_question, peak_evidence
from adaptive_eval.stops import ENDED_FIRST, FAILED, REACHED
from adaptive_eval.store.records import TrialRecord
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.trial import COPY_REASON, NOT_THERE, Completion, Score, TrialKey, TrialRequest

ROWS = [{"id": f"q{number}", "input": f"question {number}", "target": "yes"} for number in range(12)]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return a run in which good is always right and bad is wrong on q3 in half of its answers."""
    number = iter(range(10**6))

    def good(prompt):
        return "yes"

    def bad(prompt):
        return f"no {next(number)}" if prompt == "question 3" and next(number) % 4 < 2 else "yes"

    folder = tmp_path_factory.mktemp("each") / "run"
    asked = {"stopping": {"max_passes": 12}, "budget": {"trials": 2 * 12 * 12}, "concurrency": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", adaptive_eval.EvaluationWarning)  # that answers repeat
        adaptive_eval.evaluate({"good": good, "bad": bad}, ROWS, "budget", out=folder, **asked)
    return folder


@pytest.mark.parametrize(
    ("model", "rule", "code"),
    [("bad", "8 of 10", FAILED), ("bad", "1 of 2", REACHED), ("bad", "8 of 500", ENDED_FIRST)],
)
def test_a_rule_holds_fails_or_is_undecided(run, model, rule, code):
    done = in_process("check", str(run), "--each-question", rule, "--model", model, cwd=run.parent)
    assert done.code == code
    assert "plain counts" in done.out
    assert ("1 fail: q3" in done.out) is (code == FAILED)


def test_every_model_has_a_claim_and_the_assertion_lists_the_question(run):
    claims = each_question(run, "8 of 10")
    assert len(claims) == 2
    with pytest.raises(AssertionError, match=r"bad: 11 of 12 questions .* 1 fail: q3"):
        adaptive_eval.assert_each_question(run, "8 of 10", "bad")


def test_it_says_that_a_confidence_was_asked(run):
    done = in_process("check", str(run), "--each-question", "8 of 10", "--confidence", "0.95", cwd=run.parent)
    assert done.code == ENDED_FIRST
    assert "share of right answers above 0.8 (at 95 %, at every look)" in done.out


@pytest.mark.parametrize(
    ("weights", "right"), [((0.0, 1.0, 0.5), 1), ((3.0, 1.0, 2.0), 0), ((0.0, 0.5, 1.0), 2)]
)
def test_an_answer_is_right_whose_category_is_worth_most(tmp_path, weights, right):
    rows = [
        "model,question,trial,category",
        *(f"m,q{kind},{trial},{kind}" for kind in range(3) for trial in (0, 1)),
    ]
    (tmp_path / "rows.csv").write_text("\n".join(rows))
    import_logs(open_logs([tmp_path / "rows.csv"], ReadingOptions()), tmp_path / "run", weights=weights)
    (claim,) = each_question(tmp_path / "run", "2 of 2")
    others = ", ".join(f"q{kind} 0/2" for kind in range(3) if kind != right)
    assert (claim.holds, "1 of 3 questions" in claim.text, others in claim.text) == (False, True, True)


@pytest.mark.parametrize("rule", ["ten", "11 of 10", "0 of 3", "8/10"])
def test_a_rule_that_cannot_be_read_is_refused(rule):
    with pytest.raises(UsageError, match="RIGHT of ANSWERS"):
        QuestionClaim.parse(rule)


def test_what_does_not_go_together_is_refused(run):
    for options in (("--model", "bad"), ("--each-question", "10 of 10", "--confidence", "0.9")):
        assert in_process("check", str(run), *options, cwd=run.parent).code == 2
    with pytest.raises(UsageError, match="nobody"):
        each_question(run, "8 of 10", "nobody")


def test_a_run_without_answers_is_told(tmp_path):
    RunWriter.create(tmp_path / "run", meta={"name": "r", "config": TWO, "source": "c.yaml"}).close()
    with pytest.raises(RunFileError, match="has no answers yet"):
        each_question(tmp_path / "run", "1 of 1")


@pytest.mark.parametrize(
    ("rule", "holds"), [("1 of 1", None), ("1 of 2", True), ("2 of 2", None), ("1 of 3", None)]
)
def test_a_lost_answer_may_have_been_right_or_wrong(run_with_a_late_answer, rule, holds):
    (claim,) = each_question(run_with_a_late_answer, rule)
    assert claim.holds is holds
    assert ("q3 0/1 (1 lost)" in claim.text) is (rule == "1 of 1")


def test_a_check_tells_discarded_draws_why_and_what_they_could_change(run_with_a_late_answer):
    (claim,) = check(run_with_a_late_answer, [AtLeast("slow", 0.1)])
    assert claim.holds is True
    assert "slow: 1 trial was answered by a later draw (1 took longer than the timeout)" in claim.text
    assert "can move the score by up to 0.0" in claim.text


@pytest.fixture(scope="module")
def run_with_a_late_answer(tmp_path_factory):
    """Return a run of a model that is always right, and gives up its first draw on q3."""
    late = ["question 3"]

    def slow(prompt):
        if prompt in late:
            late.remove(prompt)
            raise TimeoutError
        return "yes"

    folder = tmp_path_factory.mktemp("late") / "run"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", adaptive_eval.EvaluationWarning)
        asked = {"stopping": {"max_passes": 2}, "budget": {"trials": 24}, "concurrency": 1}
        adaptive_eval.evaluate({"slow": slow}, ROWS, "budget", out=folder, **asked)
    return folder


@pytest.mark.parametrize(
    ("why", "holds", "counts"),
    [(COPY_REASON, True, "3/3"), (NOT_THERE, True, "3/3"), ("it timed out", None, "1/3 (2 lost)")],
)
@pytest.mark.parametrize("model", [None, "m"])
def test_only_what_was_drawn_is_among_the_first_answers(tmp_path, why, holds, counts, model):
    with RunWriter.create(tmp_path / "run", meta={"name": "r", "config": TWO, "source": "c.yaml"}) as writer:
        for step, name in product(range(5), "mn"):
            request = TrialRequest(TrialKey(name, step), "t", "q1", step, step)
            gone = why if name == "m" and step in (1, 2) else None
            score = Score(1 if gone is None else None, "x")
            writer.outcome(TrialRecord(request, 1.7e9, Completion("x", "stop"), score, gone))
    claims = each_question(tmp_path / "run", "3 of 3", model)
    assert [claim.holds for claim in claims] == [holds, True][: len(claims)]
    assert len(claims) == (2 if model is None else 1)
    (failing, *_) = each_question(tmp_path / "run", "4 of 4", model)
    assert failing.holds is None
    assert (f"q1 {counts}" if holds else "q1 2/4 (2 lost)") in failing.text
    assert (f"q1 {counts}" in claims[0].text) is (holds is None)


TWO = """
name: r
models:
- {name: m, endpoints: ["http://x/v1"]}
- {name: n, endpoints: ["http://x/v1"]}
tasks:
- {name: t, dataset: d.jsonl, scorer: exact}
"""


@pytest.mark.parametrize(("side", "worst"), [(0, 0), (1, 1)])
def test_a_lost_answer_is_no_evidence_for_either_side(side, worst):
    answers = [1, 1, 0, LOST, 1]
    taken = [worst if answer == LOST else answer for answer in answers]
    assert peak_evidence(answers, 0.6)[side] == peak_evidence(taken, 0.6)[side]


def test_a_possible_copy_counts_on_the_side_that_it_speaks_against():
    copied = [False, True, *[False] * 9, True]
    found = [peak_evidence([1 - side] * 2 + [side] * 10, 0.6, copied)[1 - side] for side in (1, 0)]
    assert found == [peak_evidence([1 - side] * 2 + [side] * 9, 0.6)[1 - side] for side in (1, 0)]
    assert min(found) > 0.5


def test_a_cache_shows_no_share_of_right_answers(tmp_path):
    asked = {"stopping": {"max_passes": 40}, "budget": {"trials": 960}, "concurrency": 1}
    number = iter(range(10**6))
    models = {"cached": long_yes, "varied": lambda prompt: f"{next(number)} {long_yes(prompt)}"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", adaptive_eval.EvaluationWarning)
        adaptive_eval.evaluate(models, ROWS, "budget", scorer="contains", out=tmp_path / "run", **asked)
    claims = each_question(tmp_path / "run", "8 of 10", confidence=0.95)
    assert [claim.holds for claim in claims] == [None, True]


def long_yes(prompt):
    """Return one long text for each question."""
    number = int(prompt.removeprefix("question "))
    return f"{' '.join(str(number + digit * 7919) for digit in range(300))}: yes"


def test_failing_questions_share_the_level_by_holm_and_holding_ones_do_not():
    held = [[1] * 40] * 20
    assert by_confidence(held) == [True] * 20
    alone, many = [[0] * 4], [[0] * 4, *held]
    assert by_confidence(alone)[0] is False
    assert by_confidence(many)[0] is None


def by_confidence(answers):
    copied = [[False] * len(given) for given in answers]
    return _by_confidence(answers, copied, QuestionClaim(8, 10), 0.05)


def test_evidence_is_the_mean_likelihood_of_a_side_over_that_of_the_share():
    answers = np.array([1, 0, 1, 1, 1, 0, *[1] * 9])
    right = np.concatenate([[0], answers.cumsum()])[:, None]
    wrong = np.arange(16)[:, None] - right
    chances = (np.arange(100_000) + 0.5) / 100_000
    for side, of_side in enumerate((chances > 0.6, chances < 0.6)):
        at = chances[of_side]
        ratio = (at / 0.6) ** right * ((1.0 - at) / 0.4) ** wrong
        expected = np.log(ratio.mean(axis=1)).max()
        assert peak_evidence(answers, 0.6)[side] == pytest.approx(expected, abs=1e-4)


def test_at_the_share_itself_either_side_is_called_in_at_most_five_per_cent():
    """2,000 questions with a chance of .8 each, a look after every of 100 answers; seed 3."""
    rng = np.random.default_rng(3)
    peaks = np.array([peak_evidence(rng.random(100) < 0.8, 0.8) for _ in range(2000)])
    assert ((peaks >= np.log(20.0)).mean(axis=0) <= 0.05).all()


def test_questions_that_were_not_asked_yet_are_undecided(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", adaptive_eval.EvaluationWarning)
        adaptive_eval.evaluate(
            {"good": lambda _: "yes"}, ROWS, "budget", out=tmp_path / "run", budget={"trials": 7}
        )
    (claim,) = each_question(tmp_path / "run", "1 of 1")
    assert claim.holds is None
    assert "of 12 questions" in claim.text
