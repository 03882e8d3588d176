"""Answers that say nothing about the models: told at the first sign, and the end of a run if most are."""

from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
from scene import played
from scripted import ScriptedScoring

from adaptive_eval.engine.answer_watch import AnswerWatch
from adaptive_eval.engine.drift import uniform
from adaptive_eval.engine.independence import COPY
from adaptive_eval.engine.judge_watch import FALSE_ALARM, JudgeWatch
from adaptive_eval.engine.protocols import Unusable
from adaptive_eval.engine.watches import Watches
from adaptive_eval.scoring.rubric import Rubric, TaskScoring
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TrialRecord
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.trial import ANCHOR, ANCHOR_PARTS, Completion, Score, TrialKey, TrialRequest
from adaptive_eval.views.decision_sentences import describe
from scorio.sequential.parts import RepeatedScores

RIGHT, WRONG = Score(1, "x", reason="right (boxed)"), Score(0, "y", reason="wrong (boxed)")
NOTHING = TaskScoring(None, Rubric()).categorised(
    Score(0, None, {"is_correct": False}, "no answer found"), Completion("text", "stop")
)
FAILED = Score(None, None, reason="the scorer failed: KeyError: 'x' (own.py, line 2)")
EMPTY = Score(None, None, {"no_answer_empty": True}, "no answer")
FILTERED = Score(None, None, {"no_answer_content_filter": True}, "no answer: content_filter")
FILTERED_WRONG = Score(0, None, {"no_answer_content_filter": True}, "wrong")  # on: {content_filter: wrong}
COPIED = Score(None, None, {COPY: True}, "a copy")
BY_ORDER = Score(None, None, {"judgements": 2, "order_decided": 1}, "the judge m decided by the order")
TIED = Score(1, None, {"judgements": 2, "order_decided": 1, "against": "x"}, "judged")
LOST = Score(0, None, {"judgements": 2, "order_decided": 0, "against": "x"}, "judged")
VOTED = Score(1, None, {"judgements": 2, "order_decided": 0, "score": 1.0}, "judged")


def record(step: int, score: Score, finish: str = "stop", task: str = "t", models: str = "m") -> TrialRecord:
    request = TrialRequest(TrialKey(models[step % len(models)], step), task, f"q{step}", 0, step)
    missing = None if score.category is not None else f"unscored: {score.reason}"
    return TrialRecord(request, 1.0, Completion("" if score is EMPTY else "text", finish), score, missing)


def watched(*answers: tuple[int, Score, str], **options) -> AnswerWatch:
    watch, step = AnswerWatch(**options), 0
    for number, score, finish in answers:
        for _ in range(number):
            watch.take(record(step, score, finish).logged())
            step += 1
    return watch


@pytest.mark.parametrize(
    ("answers", "codes", "cause"),
    [
        ([(10, RIGHT, "stop"), (10, WRONG, "stop")], [], None),
        ([(1, FAILED, "stop")], ["warning/scorer-failed"], None),
        ([(7, FAILED, "stop")], ["warning/scorer-failed"], None),
        ([(8, FAILED, "stop")], ["warning/scorer-failed"], "scorer"),
        ([(4, RIGHT, "stop"), (4, WRONG, "stop"), (8, FAILED, "stop")], ["warning/scorer-failed"], None),
        ([(30, COPIED, "stop")], [], None),
        ([(19, WRONG, "stop")], [], None),
        ([(20, WRONG, "stop")], ["warning/all-alike"], None),
        ([(19, WRONG, "stop"), (2, FAILED, "stop")], ["warning/scorer-failed"], None),
        ([(20, RIGHT, "stop")], ["warning/all-alike"], None),
        ([(9, NOTHING, "stop")], [], None),
        ([(10, NOTHING, "stop")], [], "nothing_found"),
        ([(20, NOTHING, "stop")], ["warning/nothing-found"], "nothing_found"),
        ([(11, NOTHING, "stop"), (9, RIGHT, "stop")], ["warning/nothing-found"], "nothing_found"),
        ([(10, RIGHT, "stop"), (10, NOTHING, "stop")], [], None),
        ([(1, FILTERED, "content_filter")], ["warning/content-filter"], None),
        ([(19, RIGHT, "stop"), (1, FILTERED_WRONG, "content_filter")], [], None),
        ([(9, NOTHING, "stop"), (9, NOTHING, "length")], [], None),
        ([(18, RIGHT, "stop"), (1, WRONG, "stop"), (1, WRONG, "length")], [], None),
        ([(18, RIGHT, "stop"), (2, WRONG, "length")], ["warning/cut-off"], None),
        ([(10, RIGHT, "stop"), (10, WRONG, "length")], ["warning/cut-off"], None),
        ([(9, RIGHT, "stop"), (11, WRONG, "length")], ["warning/cut-off"], None),
        ([(20, WRONG, "length")], ["warning/cut-off"], None),
        ([(20, WRONG, "model_length")], ["warning/cut-off"], None),
        ([(19, WRONG, "length")], [], None),
        ([(10, EMPTY, "stop")], ["warning/no-answers"], None),
        ([(1, VOTED, "stop"), (1, BY_ORDER, "stop")], ["warning/scorer-failed", "warning/judge-order"], None),
        ([(10, TIED, "stop"), (10, LOST, "stop")], [], None),  # stored answers are often as good
        ([(11, TIED, "stop"), (9, LOST, "stop")], ["warning/judge-order"], None),
    ],
)
def test_what_is_wrong_with_answers_is_said_and_ends_the_run_where_it_is_most(answers, codes, cause):
    watch = watched(*answers)
    assert [remark.code for remark in watch.remarks()] == codes
    verdict = watch.verdict()
    assert (None if verdict is None else verdict.evidence["cause"]) == cause


def test_cut_off_answers_are_left_alone_where_the_user_says_how_they_count():
    watch = watched((30, WRONG, "length"), may_be_cut={"t"})
    assert watch.refusal("m") is None
    assert not list(watch.remarks())


def test_a_model_most_of_whose_answers_are_cut_off_is_stopped_alone_once():
    watch = AnswerWatch(asked={"m", "o"})
    stopped = []
    for step in range(60):
        finish = "length" if step % 2 == 0 else "stop"  # of the model m
        for news in watch.take(record(step, RIGHT, finish, models="mo").logged()):
            stopped += [(step, news.model)] if isinstance(news, Unusable) else []
    assert stopped == [(18, "m")], "at its tenth answer, on which bets may call a pair"
    assert watch.verdict() is None


def test_a_solver_that_uses_up_its_calls_is_told_about_calls():
    signals = {"no_answer_calls": True}
    watch = AnswerWatch()
    for step in range(20):
        trial = record(step, Score(0, None, signals, "truncated"), "calls")
        watch.take(trial.logged())
    told = " ".join([watch.refusal("m"), *watch.remarks()])
    assert "calls" in told
    assert "max_tokens" not in told


def test_nothing_found_ends_a_run_when_every_model_has_given_enough_answers():
    def first_verdict(scores, models="mo", left=(), **options):
        watch = AnswerWatch(asked=set(models), **options)
        for model in left:
            watch.leave(model)
        for step, score in enumerate(scores):
            watch.take(record(step, score, models=models).logged())
            if watch.verdict() is not None:
                return step, watch.verdict().evidence
        return None

    step, evidence = first_verdict([NOTHING] * 60)
    assert (step, evidence["cause"], evidence["examples"]) == (19, "nothing_found", ["text"] * 3)
    assert first_verdict([NOTHING] * 60, nothing_is_wrong=True) is None
    assert first_verdict([NOTHING, RIGHT] * 40) is None, "one of the models answers in the form"
    assert first_verdict([NOTHING, RIGHT] * 40, left="o")[0] == 18, "it is asked no more"
    assert first_verdict([NOTHING] * 60, "m")[0] == 9


def test_a_scorer_that_fails_on_the_answers_of_one_model_stops_that_model():
    watch, stopped = AnswerWatch(asked={"m", "o"}), []
    for step in range(40):
        score = FAILED if step % 2 == 0 else RIGHT
        stopped += [
            news
            for news in watch.take(record(step, score, models="mo").logged())
            if isinstance(news, Unusable)
        ]
        assert watch.verdict() is None
    (news,) = stopped
    assert news.model == "m"
    assert "own.py, line 2" in news.reason


def test_a_model_that_answers_nothing_is_ranked_where_the_user_says_so():
    for ranked in (False, True):
        assert (watched((20, EMPTY, "stop"), ranked=ranked).refusal("m") is None) is ranked
    assert watched((9, EMPTY, "stop")).refusal("m") is None
    assert watched((10, EMPTY, "stop")).refusal("m") is not None
    assert watched((2, RIGHT, "stop"), (20, EMPTY, "stop")).refusal("m") is None


def test_each_remark_is_news_once():
    watch = AnswerWatch()
    assert len(watch.take(record(0, FAILED).logged())) == 1
    assert not watch.take(record(1, FAILED).logged())
    watches = Watches()
    for step in range(20):
        watches.take(record(step, RIGHT).logged()._replace(earlier=True))
    assert [remark.code for remark in watches.answers.remarks()] == ["warning/all-alike"]
    assert played(1, watches=watches).remarks == [], "of an earlier session"


def resumed(folder, answers, models="m", **options) -> AnswerWatch:
    watch = AnswerWatch(**options)
    with RunWriter.create(folder, meta={}) as writer:
        for step, (score, finish) in enumerate(answers):
            writer.outcome(record(step, score, finish, models=models))
        writer.commit()
        with RunReader(folder) as reader:
            for trial in chain.from_iterable(reader.logged()):
                watch.take(trial)
    return watch


def test_a_resumed_run_knows_of_stored_answers_that_were_cut_off(tmp_path):
    answers = [(WRONG, "length")] * 20
    assert "20 of its 20 answers" in resumed(tmp_path / "run", answers).refusal("m")
    assert resumed(tmp_path / "meant", answers, may_be_cut={"t"}).refusal("m") is None


@pytest.mark.parametrize(
    ("scores", "codes"),
    [
        ([NOTHING] * 20, ["warning/nothing-found"]),
        ([NOTHING] * 11 + [RIGHT] * 9, ["warning/nothing-found"]),
        ([RIGHT] * 20, ["warning/all-alike"]),
        ([RIGHT] * 19 + [WRONG], []),
        ([RIGHT] * 19, []),
        # its failures are left out: it may have been mended
        ([FAILED] * 30, []),
        ([FAILED] * 30 + [RIGHT] * 20, ["warning/all-alike"]),
        ([FAILED] * 30 + [NOTHING] * 20, ["warning/nothing-found"]),
        ([FAILED] * 30 + [NOTHING] * 15, []),
    ],
)
def test_a_resumed_run_knows_what_its_scorer_found(tmp_path, scores, codes):
    watch = resumed(tmp_path / "run", [(score, "stop") for score in scores], "mno")
    assert [remark.code for remark in watch.remarks()] == codes
    if FAILED in scores:
        (news,) = watch.take(record(99, FAILED, models="mno").logged())
        answers = 1 + len(scores) - scores.count(FAILED)
        assert f"1 of {answers} answers could not be scored" in news
        for step in range(100, 103):
            watch.take(record(step, FAILED, models="mno").logged())
        assert watch.verdict() is None


def failing(fails):
    """Return a scorer that fails, on every answer or on some."""
    return ScriptedScoring(lambda key, time: FAILED if fails(key.index) else RIGHT)


def test_a_scorer_that_always_fails_ends_the_run_and_is_told_at_once():
    scene = played(100, scoring=failing(lambda step: True), outage=50)
    assert scene.verdict.reason == "unusable"
    assert "KeyError: 'x' (own.py, line 2)" in describe(scene.verdict)
    assert len(scene.outcomes) < 20
    assert [text.code for text in scene.remarks] == ["warning/scorer-failed"]
    assert all(outcome.key.model == "a" for outcome in scene.missing())


def test_a_model_whose_answers_are_none_is_stopped_alone():
    of_one = ScriptedScoring(lambda key, time: EMPTY if key.model == "a" else RIGHT)
    scene = played({"a": 60, "b": 30}, scoring=of_one, outage=50)
    assert [*scene.controller.stopped_models] == ["a"]
    assert "is not ranked" in scene.controller.stopped_models["a"]


def test_copies_are_answers_and_no_outage():
    scene = played(30, scoring=ScriptedScoring(lambda key, time: COPIED), outage=3)
    assert scene.verdict.reason == "resolved"
    assert len(scene.missing()) == 30


def test_a_scorer_that_fails_now_and_then_costs_those_answers_only():
    scene = played(40, scoring=failing(lambda step: step % 4 == 0))
    assert scene.verdict.reason == "resolved"
    assert {outcome.key.index for outcome in scene.missing()} == set(range(0, 40, 4))


@pytest.mark.parametrize(
    ("signals", "votes"),
    [
        ({"judgements": 6, "order_decided": 2}, (3, 2)),
        ({"judgements": 2, "order_decided": 0}, (1, 0)),
        ({"judgements": 2}, (0, 0)),
        ({}, (0, 0)),
    ],
)
def test_two_judgements_of_a_pair_in_either_order_are_one_vote(signals, votes):
    told = record(0, Score(1, None, signals)).logged()
    assert (told.votes, told.by_order) == votes


# A judge that is shown the same answers again in each pass


def judged(watch: JudgeWatch, step: int, anchor: int, score: float, task: str = "t") -> list[str]:
    """Have an answer judged again at a step; return the codes of what is told then."""
    signals = {f"{ANCHOR}{anchor}_{round(ANCHOR_PARTS * score)}": True}
    told = replace(record(step, Score(1, "x", signals), task=task), finished_at=60.0 * step).logged()
    return [remark.code for remark in watch.take(told)]


@pytest.mark.parametrize(
    ("lost", "trials", "until", "after"),
    [
        ((), 48, 47, 0.35),
        ((19,), 40, 51, (4.2 + 2.8) / 16),  # one answer is a pass behind: the pass that has both comes after
    ],
)
def test_a_judge_that_changes_is_told_once_with_its_scores_before_and_after(lost, trials, until, after):
    """Six passes over eight answers with a mean of 0.55, further ones with a mean of 0.35."""
    watch, told = JudgeWatch({"t": 8, "u": 8}), {}
    steps = [step for step in range(8 * 12) if step not in lost]
    for step in steps:
        score = (0.2 if step < 48 else 0.0) + step % 8 / 10
        if said := judged(watch, step, step % 8, score):
            told[step] = said
        assert not judged(watch, step, step % 8, step % 8 / 10, task="u")
        assert not judged(watch, step, 0, 0.0, task="v")
    (at,) = told
    assert told[at] == ["warning/judge-changed"]
    (change,) = watch.changes
    assert (change.model, change.before) == ("judge of t", pytest.approx(0.55))
    assert change.after == pytest.approx(after)
    assert 48 <= at < 48 + 32
    assert (change.trials, change.at) == (trials, 60.0 * until)
    assert watch.watched == {"u": len(steps) - 8}
    assert [remark.code for remark in watch.remarks()] == ["warning/judge-changed"]
    assert watch.verdict() is None


def test_judges_share_the_chance_of_a_false_alarm():
    """Evidence of a change that comes slowly is told once it is beyond the chance for one of all judges."""
    told, rng, evidence = {}, np.random.default_rng(2), RepeatedScores()
    watches = {judges: JudgeWatch({f"t{number}": 6 for number in range(judges)}) for judges in (1, 2, 5)}
    for turn in range(60):
        scores = np.where(rng.random(6) < (0.5 if turn < 10 else 0.1), 60, 40).tolist()
        for judges, watch in watches.items():
            for anchor, score in enumerate(scores):
                if judged(watch, 6 * turn + anchor, anchor, score / 100, "t0"):
                    told[judges] = turn
        evidence.add(dict(enumerate(scores)), uniform("judge m", 6 * turn + 5))
        found = {judges for judges in watches if evidence.peak >= judges / FALSE_ALARM}
        assert told.keys() == found
    assert told[1] < told[2] < told[5]


def test_a_judge_is_watched_once_it_has_judged_an_answer_again():
    watch = JudgeWatch({"t": 3})
    for step in range(3):
        judged(watch, step, step, 1.0)
        assert watch.watched == {}
    for step in range(3, 6):
        judged(watch, step, step % 3, 1.0)
        assert watch.watched == {"t": step - 2}
