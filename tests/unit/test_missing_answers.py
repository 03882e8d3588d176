"""Answers that are lost, or never come: no verdict that they could turn, and no NaN; and what trials tell."""

import json
from dataclasses import replace

import numpy as np
import pytest
from session_scripts import coin, drive, make_spec

from adaptive_eval.core.discarded import open_for_good
from adaptive_eval.core.results import from_json, to_json
from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import TaskSpec
from adaptive_eval.errors import Coded
from adaptive_eval.trial import COPY_REASON, Missing, TrialOutcome, Usage
from scorio.sequential import Board
from scorio.sequential.cells import Cells
from scorio.sequential.contrasts import Contrasts, joined
from scorio.sequential.evidence import GUARD, confidence_radius, log_tie_evidence
from scorio.sequential.flips import flip_limit
from scorio.sequential.moments import ENOUGH_NOISE, Mark, fit_prior, unit_scores
from scorio.sequential.outlook import noise_of
from scorio.sequential.pairs import PairReader, ScoreReader
from scorio.sequential.rules import Anytime, ZScore
from scorio.sequential.trial_sequence import TrialSequence

# Answers that are lost because they are wrong: no verdict is called that they could turn.


def finished(means, shy):
    """Run models of these means; the `shy` one gives no answer where it would be wrong."""
    session, answer = Session(make_spec(len(means), 60, equivalence=0.05)), coin(means)
    drive(session, answer, slots=3, missing=lambda one: one.key.model == shy and not answer(one))
    return session.results(), session.stopped


def test_losses_that_could_turn_a_verdict_leave_its_pair_open_and_end_the_run():
    results, stopped = finished((0.7, 0.8, 0.05), "m0")
    assert stopped.reason == "lost"
    assert stopped.evidence["lost"].keys() == {"m0"}
    verdicts = {(pair.first, pair.second): pair.verdict for pair in results.pairs}
    assert verdicts["m0", "m1"] == "open"
    assert verdicts["m0", "m2"] == verdicts["m1", "m2"] == "better"
    shy = results.models[0]
    assert shy.score_low <= shy.score_if_missing_wrong < shy.score_if_missing_right <= shy.score_high, (
        "its interval holds what its lost answers allow"
    )


@pytest.mark.parametrize("limit", [{"trials": 6000}, {"max_passes": 30}], ids=["budget", "passes"])
@pytest.mark.parametrize("why", ["scripted", COPY_REASON])
@pytest.mark.parametrize(
    ("lost", "reason"),
    [
        (lambda index: index < 32, "resolved"),  # 32 of the first answers, and none later
        (lambda index: 20 <= index < 52, "resolved"),  # those that come last when it is first looked at
        (lambda index: index % 2 == 0, "lost"),
    ],
)
def test_a_run_ends_for_lost_answers_only_if_they_are_lost_all_along(lost, reason, why, limit):
    session = Session(make_spec(2, 100, equivalence=0.1, **limit))
    answer = coin((0.95, 0.9))
    lost_of = {"missing": lambda one: one.key.model == "m0" and lost(one.key.index), "why": why}
    drive(session, answer, slots=16, **lost_of)
    assert session.stopped.reason == reason
    assert session.budget.completed < 6000


def test_a_burst_of_losses_is_foreseen_over_all_passes_that_are_left():
    """99 of the first 100 answers: diluted 57 times by 60 passes, and 16 times by one or two."""
    session = Session(make_spec(2, 100, equivalence=0.1, max_passes=60))
    burst = {"missing": lambda one: one.key.model == "m0" and one.key.index < 99}
    drive(session, coin((0.95, 0.9)), slots=16, most=600, **burst)
    assert session.stopped is None


LIMITS = {
    "none": {}, "passes": {"max_passes": 70}, "few passes": {"max_passes": 9}, "trials": {"trials": 9_000},
    "tokens": {"tokens": 200_000}, "passes and trials": {"max_passes": 70, "trials": 6_000},
    "passes and tokens": {"max_passes": 110, "tokens": 150_000},
    "trials and tokens": {"trials": 4_000, "tokens": 400_000},
}  # fmt: skip


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize(
    "means", [(0.9, 0.6, 0.55), (0.9, 0.6, 0.55, 0.0)], ids=["all are asked", "one is not"]
)
def test_what_lost_answers_will_weigh_is_foreseen_by_every_limit_and_by_when_they_were_lost(limits, means):
    """Of m0 the first answers are lost, of m1 every fifth, and of the others none."""
    size, limit = 20, LIMITS[limits]
    spec = make_spec(len(means), size, max_tokens=30, prompt_bounds=(30,) * size, **limit)
    session, answer, foreseen = Session(spec), coin(means), []
    session.comparison.undecidable = lambda left, growth: foreseen.append((left, growth)) or left < 0.0

    def gone(name, index):
        return (name == "m0" and index < 7) or (name == "m1" and index % 5 == 0)

    asked = 0
    while asked < 130:
        outcomes = []
        for one in session.ask(6):
            asked += 1
            if asked % 9 == 0:
                session.presume_billed(one.key)
            if gone(one.key.model, one.key.index):
                outcomes.append(Missing(one.key, "timeout", Usage(20, 5)))
            else:
                outcomes.append(TrialOutcome(one.key, answer(one), Usage(20, 10)))
        session.tell(outcomes)
        if asked > 60 and "m3" in spec.names:
            session.stop_model("m3", "it refuses")
    session.results()
    comparison, board, account = session.comparison, session.board, session.budget.run
    assert len(comparison.members) == 3
    open_for_good(comparison, account)
    left, growth = foreseen[-1]
    further = limit.get("trials", np.inf) - account.trials
    used = account.spent.prompt + account.spent.completion
    further = min(further, (limit.get("tokens", np.inf) - used) * account.trials / used) / 3
    slack = board.scores().slack[:, 0]
    still = []
    for name, steps in zip(spec.names, board.progress, strict=True):
        parts = np.array_split([gone(name, index) for index in range(steps)], 4)
        share = np.concatenate(parts).mean()
        still.append(min(map(np.mean, parts)) / share if share else 0.0)
    assert still[0] == still[2] == 0.0 < still[1]
    for row, (first, second) in enumerate(
        zip(comparison.contrasts.first, comparison.contrasts.second, strict=True)
    ):
        steps = comparison.fold.progress[row]
        times = min(1.0 + further / steps, limit.get("max_passes", 1000) * size / steps)
        assert growth[row] == pytest.approx(max(times, 16.0))
        both = slack[first] + slack[second]
        goes_on = (slack[first] * still[first] + slack[second] * still[second]) / both if both else 1.0
        expected = comparison.latest.slack[row] * (goes_on + (1.0 - goes_on) / growth[row])
        assert left[row] == pytest.approx(expected)


def test_a_width_that_lost_answers_alone_fill_ends_the_run():
    session = Session(make_spec(1, 30, goal="width", width=0.16, max_passes=60))
    drive(session, coin((0.7,)), missing=lambda request: request.key.index % 10 == 0)
    assert session.stopped.reason == "lost"


def test_a_width_is_reached_with_all_that_lost_answers_allow():
    session, progress = Session(make_spec(1, 60, goal="width", width=0.25, max_passes=60)), []
    while session.stopped is None:
        drive(session, coin((0.6,)), slots=1, most=5, missing=lambda request: request.key.index % 20 == 0)
        progress.append(session.results().pairs[0].tie_margin)
    assert session.stopped.reason == "resolved"
    assert 0.5 < max(progress[:-1]) < progress[-1] == 1.0, "lost answers stand in its way to the end"
    (line,) = session.results().models
    assert (
        0.1
        < line.score_if_missing_right - line.score_if_missing_wrong + 0.1
        < line.score_high - line.score_low
        <= 0.25
    )


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.02, 0.05, 0.1, 0.2])
@pytest.mark.parametrize("margin", [0.05, 0.1, 0.15])
def test_a_run_without_a_budget_ends_whatever_share_of_its_answers_is_lost(share, margin):
    session, draw = Session(make_spec(2, 30, equivalence=margin)), np.random.default_rng(7)
    lost = {"missing": lambda _: draw.random() < share}
    drive(session, lambda _: int(draw.random() < 0.7), slots=20, most=30_000, **lost)
    assert session.stopped is not None
    assert session.stopped.reason in ("lost", "resolved")


def test_a_warning_keeps_its_code_in_the_run_file():
    warnings = (Coded("warning/copies", "alike"), "a warning of an earlier version")
    data = json.loads(json.dumps(to_json(replace(finished((0.7, 0.4), None)[0], warnings=warnings))))
    assert [getattr(text, "code", None) for text in from_json(data).warnings] == ["warning/copies", None]
    del data["warning_codes"]
    assert from_json(data).warnings == warnings


# A model without one scored answer on a task leaves the others to be decided; no NaN decides.


@pytest.mark.parametrize("size", [5, 20])
def test_the_healthy_models_are_decided(size):
    tasks = tuple(TaskSpec(name, tuple(f"{name}{one}" for one in range(size))) for name in "ab")
    spec = replace(make_spec(3, equivalence=0.2, max_passes=40, rounds="rounds"), tasks=tasks)
    with np.errstate(all="raise", under="ignore"):
        lost = {"missing": lambda request: (request.key.model, request.task) == ("m2", "b")}
        session = drive(Session(spec), coin((0.9, 0.2, 0.5)), **lost)
    (pair,) = (one for one in session.results().pairs if {one.first, one.second} == {"m0", "m1"})
    assert session.stopped is not None
    assert pair.verdict == ("better" if size == 20 else pair.verdict)


def test_without_any_answer_the_moments_are_those_of_a_category_drawn_at_random():
    none = np.zeros((1, 4))
    with np.errstate(all="raise"):
        prior = fit_prior(none, none, none, 0.5, 0.4)
    assert (prior.m1.item(), prior.m2.item()) == (0.5, 0.4)


# Pairs that lack some answers: the noise in the trials that both models have, and ties.


ONE = np.arange(1)


def cells_of(*answers, questions=30):
    """Return cells of models with these answers along a sequence."""
    sequence = TrialSequence(np.random.default_rng(3).permutation(questions))
    cells = Cells(sequence, np.array([0.0, 1.0]), len(answers))
    cells.absorb(np.arange(len(answers)), np.array(answers))
    return cells


def with_holes(rng, steps, share):
    said = rng.integers(2, size=steps)
    return np.where(rng.random(steps) < share, Mark.MISSING, said)


@pytest.mark.parametrize("rounds", [None, 1])
@pytest.mark.parametrize("steps", [20, 60, 200])
def test_every_question_weighs_the_same_and_lost_answers_may_be_anything(steps, rounds):
    """The slack is what the worst and the best of all lost answers make of the difference, by hand."""
    rng, questions = np.random.default_rng(5), 30
    sequence = TrialSequence(rng.permutation(questions), own=rounds)
    cells = Cells(sequence, np.array([0.0, 1.0]), 2)
    said = np.stack([with_holes(rng, steps, share) for share in (0.4, 0.1)])
    for start in range(0, steps, 10):  # each model's round follows from its own answers
        cells.absorb(np.arange(2), said[:, start : start + 10])
    block = PairReader(cells, [0], [1]).read(ONE, steps)
    low, high = [], []
    asked = sequence.questions_of(np.arange(2), 0, steps)
    for model in range(2):
        ends = []
        for worth in (0, 1):
            filled = np.where(said[model] == Mark.MISSING, worth, said[model])
            again = Cells(TrialSequence(sequence.order), np.array([0.0, 1.0]), 1)
            again.absorb(ONE, filled[None])
            means = [filled[asked[model] == q].mean() for q in np.unique(asked[model])]
            ends.append(np.mean(means))
        low.append(ends[0])
        high.append(ends[1])
    d, slack = block.difference[0, -1], block.slack[0, -1]
    expected = max(d - (low[0] - high[1]), high[0] - low[1] - d)
    assert slack == pytest.approx(expected, rel=1e-9 if steps < 60 or rounds is None else 0.3)
    known = [said[0][(asked[0] == q) & (said[0] != Mark.MISSING)] for q in np.unique(asked[0])]
    mine = np.mean([one.mean() for one in known if one.size])
    other = [said[1][(asked[1] == q) & (said[1] != Mark.MISSING)] for q in np.unique(asked[1])]
    if rounds is None:
        assert d == pytest.approx(mine - np.mean([one.mean() for one in other if one.size]))


def test_what_is_predicted_of_questions_serves_while_each_that_was_asked_has_an_answer():
    questions, steps, lost = 30, 90, 12
    right = np.arange(questions) % 2
    order = np.random.default_rng(3).permutation(questions)  # as that of the cells
    said = np.tile(right[order], 3)
    said[lost] = Mark.MISSING  # until its second turn
    lead = (right - 0.5)[None]
    plain, predicted = (
        ScoreReader(cells_of(said), ONE, np.array([0.4]), one).read(ONE, steps) for one in (None, lead)
    )
    lacks = slice(lost, lost + questions)
    for name in ("variance", "difference"):
        without, by_lead = getattr(plain, name)[0], getattr(predicted, name)[0]
        assert np.array_equal(by_lead[lacks], without[lacks])
    assert (predicted.variance < plain.variance)[0, 2 * questions :].all()


@pytest.mark.parametrize("rounds", [None, 1])
def test_a_question_without_any_answer_may_be_anything_and_is_in_no_cluster(rounds):
    questions, steps, silent = 30, 180, 4
    rng, clusters = np.random.default_rng(6), np.arange(questions) % 7
    right = rng.integers(2, size=(2, questions))
    sequence = TrialSequence(rng.permutation(questions), own=rounds)
    cells = Cells(sequence, np.array([0.0, 1.0]), 2)
    for start in range(0, steps, 10):
        asked = sequence.questions_of(np.arange(2), start, start + 10)
        said = np.take_along_axis(right, np.broadcast_to(asked, (2, 10)), axis=1)
        said[0, asked[0] == silent] = Mark.MISSING
        cells.absorb(np.arange(2), said)
    block = PairReader(cells, [0], [1], target="population", clusters=clusters).read(ONE, steps)
    known = np.arange(questions) != silent
    own, other, left = right[0, known].sum(), right[1].mean(), questions - 1
    gap = own / left - other
    slack = max(own / left - own / questions, (own + 1) / questions - own / left)
    sums = np.bincount(clusters[known], (right[0] - right[1])[known])
    sizes = np.bincount(clusters[known])
    variance = ((sums**2).sum() + GUARD * ((sizes**2).sum() / left) ** 2) / left**2
    found = (block.difference[0, -1], block.slack[0, -1], block.variance[0, -1])
    assert found == pytest.approx((gap, slack, variance))


def test_a_tie_is_no_less_in_reach_where_a_few_answers_are_lost():
    session, answer = Session(make_spec(2, 60, equivalence=0.15)), coin((0.6, 0.6))
    drive(session, answer, slots=4, missing=lambda request: request.key.index in (5, 20, 40, 55, 70))
    assert (session.stopped.reason, session.results().pairs[0].verdict) == ("resolved", "tie")


@pytest.mark.parametrize("size", [0.0, 0.05, 0.08, 0.2])
@pytest.mark.parametrize("slack", [0.0, 0.02, 0.06, 0.15])
def test_a_pair_is_given_up_where_16_times_the_trials_would_not_decide_it(size, slack):
    board = Board.of_pairs(TrialSequence(range(20)), 2, Anytime(0.05, 0.2))
    latest, noise = board.latest, float(confidence_radius(1e-4, 0.05, 0.2))
    latest.difference[:], latest.slack[:], latest.guarded[:] = -size, slack, 1e-4
    room = max(size, 0.1 - size) - slack  # until a winner may be called, or a tie
    assert board.undecidable(latest.slack, 16.0).tolist() == [slack >= noise and room <= noise / 4]


@pytest.mark.parametrize("size", [0.0, 0.05, 0.08, 0.2])
@pytest.mark.parametrize("slack", [0.0, 0.02, 0.06, 0.15])
def test_a_claim_is_given_up_by_its_distance_from_its_margin(size, slack):
    margin = 0.1
    claims = replace(Contrasts.pairs(2), claim=np.array([margin]))
    board = Board.of_pairs(TrialSequence(range(20)), 2, Anytime(0.05), contrasts=claims)
    latest, noise = board.latest, float(confidence_radius(1e-4, 0.05))
    latest.difference[:], latest.slack[:], latest.guarded[:] = -size, slack, 1e-4
    room = abs(margin - size) - slack
    assert board.undecidable(latest.slack, 16.0).tolist() == [slack >= noise and room <= noise / 4]


def test_no_call_that_lost_answers_could_turn():
    """Of one model half of the answers are lost: whatever it said, it may be as good as the other."""
    answers = np.ones((2, 300), dtype=np.int64)
    answers[1] = 0
    cells = cells_of(*answers, questions=300)
    whole = PairReader(cells, [0], [1], equivalence=0.05).read(ONE, 300)
    answers[1, ::2] = Mark.MISSING
    holes = PairReader(cells_of(*answers, questions=300), [0], [1], equivalence=0.05).read(ONE, 300)
    rule = Anytime(0.05, 0.05)
    complete = np.zeros(300, dtype=bool)
    assert rule.statistic(whole, complete).max() > rule.statistic(holes, complete).max() > np.log(20.0)
    answers[0] = np.where(np.arange(300) % 4 == 0, 1, 0)
    close = PairReader(cells_of(*answers, questions=300), [0], [1], equivalence=0.05).read(ONE, 300)
    assert close.difference[0, -1] == pytest.approx(0.25, abs=0.01)
    assert rule.statistic(close, complete).max() < 0.0
    assert ZScore(1.645).statistic(close, ~complete)[0, -1] == 0.0
    near = whole._replace(difference=0.0 * whole.difference, slack=whole.slack + 0.1)
    expected = log_tie_evidence(0.1, whole.margin[0, -1], 0.05)
    assert rule.tie_evidence(near)[0, -1] == pytest.approx(expected)


def test_pairs_are_the_same_alone_and_together():
    """Also where a model repeats its answers from some step on, and where one has no holes."""
    rng, steps = np.random.default_rng(7), 200
    said = np.stack([with_holes(rng, steps, share) for share in (0.3, 0.0, 0.1, 0.5)])
    said[2, 60:] = Mark.FILLED_IN
    cells = cells_of(*said)
    sides = np.array([0, 0, 1, 1, 2]), np.array([1, 2, 2, 3, 3])
    together = PairReader(cells, *sides, equivalence=0.1).read(np.arange(5), steps)
    for row in range(5):
        reader = PairReader(cells, sides[0][[row]], sides[1][[row]], equivalence=0.1)
        alone = joined([reader.read(ONE, stop) for stop in (70, 71, steps)], axis=1)
        for name in ("difference", "variance", "guarded", "margin", "avg_variance", "questions", "slack"):
            assert np.array_equal(getattr(alone, name), getattr(together.take(np.array([row])), name))


def test_a_step_that_needs_no_trial_counts_as_the_answer_that_is_known():
    rng, steps = np.random.default_rng(8), 200
    asked = TrialSequence(np.random.default_rng(3).permutation(30)).question(0, steps)
    same = rng.integers(2, size=30)[asked]
    known = np.where(np.arange(steps) < 60, same, Mark.FILLED_IN)
    holes = with_holes(rng, steps, 0.4)
    told, filled = (
        PairReader(cells_of(holes, other), [0], [1], equivalence=0.1).read(ONE, steps)
        for other in (same, known)
    )
    assert filled.difference == pytest.approx(told.difference)
    assert np.array_equal(filled.questions, told.questions)


# What a trial tells of its model: priors of models, and limits of noise, one by one and together.


FIELDS = ("before", "after", "w", "u", "g", "r", "seen", "total", "square", "lost", "lost_score")


def outcomes(models, questions, steps, missing, seed):
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, 3, (models, steps))
    drawn[rng.random((models, steps)) < missing] = Mark.MISSING
    return TrialSequence(rng.permutation(questions)), drawn


def test_a_model_without_any_answer_keeps_its_prior():
    sequence, drawn = outcomes(3, 10, 40, 0.0, seed=1)
    drawn[1] = Mark.MISSING
    cells = Cells(sequence, unit_scores([0.0, 1.0, 2.0]), 3)
    cells.absorb(np.arange(3), drawn)
    latest = cells.latest()
    assert latest.seen[:, 0].tolist() == [10.0, 0.0, 10.0]
    assert np.all(np.isfinite([getattr(latest, field)[:, 0] for field in FIELDS[2:]]))


def test_priors_of_several_models_are_those_of_each():
    rng = np.random.default_rng(5)
    n = rng.integers(0, 6, (4, 30))
    sx = rng.binomial(n, 0.4).astype(float)
    together = fit_prior(n, sx, sx, 0.5, 0.5)
    for model in range(4):
        asked = n[model] > 0
        alone = fit_prior(n[model, asked], sx[model, asked], sx[model, asked], 0.5, 0.5)
        assert together.strength[model] == pytest.approx(alone.strength)
        assert together.m1[model] == pytest.approx(alone.m1)
        assert together.m2[model] == pytest.approx(alone.m2)


@pytest.mark.parametrize("numbers", [False, True])
def test_the_noise_at_temperature_0_is_at_least_what_repeats_leave_possible(numbers):
    """Every second answer to a question is compared with the last one before it."""
    sequence, (drawn,) = outcomes(1, 20, 200, 0.2, seed=2)
    asked, scores = sequence.question(0, 200), unit_scores([0.0, 1.0, 4.0])
    drawn = np.where((np.arange(200) % 9 > 0) & (drawn >= 0), asked % 3, drawn)
    plain, greedy = (
        Cells(sequence, scores, 1, greedy=models, level=0.01, moments=numbers) for models in ([], [0])
    )
    for cells in (plain, greedy):
        cells.absorb(np.array([0]), drawn[None])
    told = {question: drawn[(asked == question) & (drawn >= 0)].tolist() for question in range(20)}
    pairs = [both for one in told.values() for both in zip(one[::2], one[1::2], strict=False)]
    apart = [(scores[a] - scores[b]) ** 2 if numbers else float(a != b) for a, b in pairs]
    share = np.mean([1.0 / len(one) for one in told.values()])
    limit = 0.5 * flip_limit(len(pairs), sum(apart), 0.01) * share
    assert greedy.latest().w[0, 0] == pytest.approx(max(limit, plain.latest().w[0, 0]))
    assert limit > plain.latest().w[0, 0]


def test_the_noise_at_temperature_0_needs_no_more_trials_to_be_trusted():
    """And what a forecast takes for the variance of one answer stays one that scores in [0, 1] can have."""
    sequence = TrialSequence(np.arange(20), early_repeats=False)
    scores = np.array([0.0, 1.0])
    plain, greedy = (Cells(sequence, scores, 1, greedy=models, level=0.01) for models in ([], [0]))
    for cells in (plain, greedy):
        cells.absorb(np.array([0]), np.ones((1, 40), dtype=np.int64))
    assert plain.latest().g[0, 0] < ENOUGH_NOISE == greedy.latest().g[0, 0]
    assert noise_of(greedy)[0] < 0.25
