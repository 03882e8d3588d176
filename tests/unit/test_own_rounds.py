"""Rounds of each model's own: laid out from its own outcomes, and read without bias."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from session_scripts import calls, coin, drive, make_spec

from adaptive_eval.build.assembly import build
from adaptive_eval.build.replay import replay_log
from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import GoalSpec, PriorSpec, ReferenceSpec, TaskSpec
from adaptive_eval.trial import TrialOutcome
from scorio.sequential.cells import Cells
from scorio.sequential.contrasts import score_block
from scorio.sequential.moments import Mark, ScorePrior, unit_scores
from scorio.sequential.outlook import BoardScores, OpenContrasts
from scorio.sequential.pairs import PairReader
from scorio.sequential.rounds import round_questions, round_share, round_times, trial_weights
from scorio.sequential.trial_sequence import TrialSequence

MEANS = (0.3, 0.45, 0.6, 0.62)


def test_times_follow_the_weight_and_add_up():
    rng = np.random.default_rng(1)
    for least in (1, 3):
        weight = rng.gamma(0.5, size=30)
        times = [round_times(weight, 240, least, start) for start in np.linspace(0, 1, 200, endpoint=False)]
        assert {int(one.sum()) for one in times} == {240}
        assert min(one.min() for one in times) == least
        assert all((one % least == 0).all() for one in times)
        share = np.mean(times, axis=0) / least
        busy = share > 1.001
        ratio = share[busy] / weight[busy]
        assert ratio.max() < 1.05 * ratio.min()  # the systematic rounding is right on average


def test_every_question_comes_first_and_the_rest_is_spread():
    order, times = np.array([3, 1, 0, 2]), np.array([1, 5, 3, 1])
    found = round_questions(order, times, 1)
    assert found[:4].tolist() == order.tolist()
    assert np.bincount(found).tolist() == [3, 5, 1, 1]
    assert np.flatnonzero(found == 0).max() < found.size - 1


def test_a_layout_depends_on_the_models_own_outcomes_alone():
    first = Session(make_spec(2, 20, max_passes=16, rounds="rounds"))
    drive(first, coin((0.3, 0.9)))
    second = Session(make_spec(2, 20, max_passes=16, rounds="rounds"))
    drive(second, coin((0.3, 0.1)))
    steps = range(min(first.board.complete[0], second.board.complete[0]))
    orders = [[one.board.run_sequence.at(step, 0) for step in steps] for one in (first, second)]
    assert orders[0] == orders[1]


def walked(categories, scores=(0.0, 1.0), groups=(1,), pairs=True):
    """Return cells, and the pair's blocks, of two models that answer along rounds in groups of steps."""
    sequence = TrialSequence(np.random.default_rng(5).permutation(12), own=7)
    cells = Cells(sequence, unit_scores(scores), 2)
    reader, blocks, step = PairReader(cells, [0], [1]), [], 0
    turn = 0
    while step < categories.shape[1]:
        ends = [sequence.laid_out(model) for model in (0, 1)]
        stop = int(min(step + groups[turn % len(groups)], *ends, categories.shape[1]))
        cells.absorb(np.array([0, 1]), categories[:, step:stop])
        blocks.append(reader.read(np.array([0]), stop))
        step, turn = stop, turn + 1
    return cells, blocks


def test_grouping_changes_no_bit():
    categories = np.random.default_rng(3).integers(-1, 3, (2, 12 * 17))
    alone = walked(categories, (0.0, 1.0, 3.0))[1]
    for groups in ((1000,), (7, 1, 30)):
        together = walked(categories, (0.0, 1.0, 3.0), groups)[1]
        for name in ("difference", "variance", "guarded", "questions"):
            values = [np.concatenate([getattr(one, name)[0] for one in found]) for found in (alone, together)]
            assert np.array_equal(*values)


def test_right_or_wrong_answers_vary_alike_in_either_order_of_categories():
    right = np.random.default_rng(5).random((2, 96)) < 0.6
    plain, turned = walked(right.astype(np.int64)), walked(1 - right, scores=(1.0, 0.0))
    for name in ("w", "u", "g", "r", "total", "square"):
        one, other = (getattr(cells.latest(), name) for cells in (plain[0], turned[0]))
        assert one == pytest.approx(other), name


@pytest.mark.parametrize("lost", [0.0, 0.12])
def test_score_and_lost_share_are_the_weighted_means_of_those_of_rounds(lost):
    """With this seed every question keeps an answer in every round, and one loses two at once."""
    rng = np.random.default_rng(6)
    categories = (rng.random((2, 12 * 8)) < 0.5).astype(int)
    categories[rng.random(categories.shape) < lost] = -1
    cells, _ = walked(categories, groups=(1000,))
    rounds, asked, said = cells.rounds, cells.sequence.questions_of(np.array([0]), 0, 96)[0], categories[0]
    means, shares, weights = [], [], [1.0]
    for number, (a, b) in enumerate(((0, 24), (24, 48), (48, 96))):
        right, times = np.bincount(asked[a:b], said[a:b] == 1, 12), np.bincount(asked[a:b], minlength=12)
        answered = np.bincount(asked[a:b], said[a:b] >= 0, 12)
        assert answered.min() >= 1
        means.append(right / answered)
        shares.append(1.0 - answered / times)
        if number:
            begun = rounds.snapshots[number - 1]
            weights.append(float(begun.unit[0] / (begun.variance[0] / answered).sum()))
    score, share = (np.average(each, axis=0, weights=weights) for each in (means, shares))
    latest = cells.latest()
    assert rounds.score(0, 96, cells.categories) == pytest.approx(score.mean())
    assert score_block(latest, 12).difference[0, 0] == pytest.approx(score.mean())
    assert (latest.lost[0, 0], latest.lost_score[0, 0]) == pytest.approx((share.sum(), share @ score))
    assert cells.lost[0].tolist() == np.bincount(asked[said < 0], minlength=12).tolist()
    assert cells.counts[0, :, 1].tolist() == np.bincount(asked[said > 0], minlength=12).tolist()


@pytest.mark.parametrize("samples", [1, 2])
@pytest.mark.parametrize("scores", [(0.0, 1.0), (0.0, 0.3, 1.0)])
def test_weights_of_trials_give_the_score_at_every_step_whatever_is_lost(samples, scores):
    """Also where a question has its first answer in the round that is under way."""
    questions, steps, lines = 5, 130, np.array([0])
    worth, rng = np.array(scores), np.random.default_rng(6)
    cells = Cells(TrialSequence(range(questions), own=1, samples_per_prompt=samples), worth, 1)
    said = np.zeros(0, dtype=np.int64)
    for step in range(steps):
        (asked,) = cells.sequence.questions_of(lines, 0, step + 1)
        late = {0: 60, 1: 25}.get(int(asked[-1]), 0)  # from when on there are answers to a question
        lost = step < late or rng.random() < 0.2
        said = np.append(said, Mark.MISSING if lost else rng.integers(len(scores)))
        cells.absorb(lines, said[None, -1:])
        weights = trial_weights(asked, said, worth, questions, samples_per_prompt=samples)
        found = float(weights @ np.where(said >= 0, worth[said], 0.0))
        assert found == pytest.approx(float(cells.latest().mean[0, 0])), step
        assert weights.sum() == pytest.approx(float((said >= 0).any()))


@pytest.mark.slow
@pytest.mark.parametrize("dear", [1.0, 10.0])
def test_the_score_is_unbiased_at_the_end_of_a_round_where_pooled_means_are_not(dear):
    # 3,000 models, few hard questions; a bias of 0.002 would be seen (4 standard errors, false alarm 6e-5).
    # What a wrong answer costs more moves the layout towards questions that were answered right.
    chance = np.ones(15)
    chance[:3] = 0.15
    rng, models = np.random.default_rng(2), np.arange(3000)
    sequence = TrialSequence(rng.permutation(15), own=1)
    cells, step = Cells(sequence, unit_scores((0.0, 1.0)), models.size), 0
    while step < 15 * 8:
        stop = int(min(15 * 8, *(sequence.laid_out(model) for model in models.tolist())))
        questions = sequence.questions_of(models, step, stop)
        right = (rng.random(questions.shape) < chance[questions]).astype(np.int64)
        cells.absorb(models, right, np.where(right, 1.0, dear))
        step = stop
    score = score_block(cells.latest(), 15).difference[:, 0]
    error = score.std() / np.sqrt(models.size)
    assert abs(score.mean() - chance.mean()) < 4 * error
    assert error < 0.0005


def test_a_forecast_knows_that_rounds_take_the_noise_away_faster():
    # 12 pairs on questions that are mostly right or mostly wrong; with this seed 1.37 and 1.7.
    chance, models = np.random.default_rng(1).beta(0.2, 0.3, 30), np.arange(24)
    sequence = TrialSequence(np.arange(30), own=3)
    cells, step, rng = Cells(sequence, unit_scores((0.0, 1.0)), 24), 0, np.random.default_rng(4)
    reader, found = PairReader(cells, models[::2], models[1::2]), {}
    for stop in (60, 90, 120, 180, 240, 480, 960):
        questions = sequence.questions_of(models, step, stop)
        cells.absorb(models, (rng.random(questions.shape) < chance[questions]).astype(np.int64))
        found[stop], step = reader.read(np.arange(12), stop).variance[:, -1], stop
        if stop == 60:
            share = cells.variance_by_rounds()
    none, one = np.zeros(24), np.ones(24)
    unbet = none[:12] + np.nan
    rest = 60 * one[:12], none[:12], none[:12], unbet
    pairs = OpenContrasts.of_pairs(models[::2], models[1::2], found[60], *rest)
    for rounds, low, high in ((60.0, 0.9, 1.45), (np.inf, 1.45, 2.2)):
        scores = BoardScores(none, 60 * one, np.zeros((24, 24)), 0.5 * one, none, share, 30, rounds)
        then = pairs.future_variance(scores, np.array([960.0]))[:, 0]
        assert low < np.median(then / found[960]) < high


@pytest.mark.parametrize(
    ("stopping", "goal", "sizes", "chosen"),
    [
        ({}, GoalSpec(), (100, 101), ("t0",)),
        ({}, GoalSpec("width", width=0.1), (30, 30), ("t0", "t1")),
        ({"target": "population"}, GoalSpec(), (30,), ()),
        ({"rule": "exact"}, GoalSpec(), (30,), ()),
        ({"rule": "zscore"}, GoalSpec(), (30,), ()),
        ({}, GoalSpec("all", goals=(GoalSpec(), GoalSpec("threshold", value=0.5))), (30,), ()),
    ],
)
def test_auto_takes_rounds_where_their_promise_holds(stopping, goal, sizes, chosen):
    spec = make_spec(2, rounds="auto", **stopping)
    tasks = tuple(TaskSpec(f"t{n}", tuple(map(str, range(size)))) for n, size in enumerate(sizes))
    spec = replace(spec, tasks=tasks, goal=goal)
    assert spec.tasks_in_rounds == Session(spec).results().in_rounds == chosen
    assert replace(spec, spend="time").tasks_in_rounds == ()


@pytest.mark.parametrize(
    ("concurrency", "changes", "in_rounds"),
    [
        (12, {}, ()),
        (11, {}, ("t",)),
        ("auto", {}, ("t",)),
        (64, {"spend": "tokens"}, ("t",)),
        (64, {"allocation": {"questions": "rounds"}}, ("t",)),
    ],
)
def test_auto_takes_no_rounds_if_many_trials_are_in_flight(tmp_path, concurrency, changes, in_rounds):
    rows = [json.dumps({"id": f"q{number}", "input": "?", "target": "7"}) for number in range(20)]
    (tmp_path / "q.jsonl").write_text("\n".join(rows), "utf-8")
    asked = {"endpoints": ["http://a/v1"], "concurrency": concurrency, "sampling": {"max_tokens": 64}}
    task = {"name": "t", "dataset": "q.jsonl", "scorer": "numeric", "prompt": "{input}"}
    data = {"name": "demo", "models": [{"name": name, **asked} for name in "ab"], "tasks": [task], **changes}
    run = build(config_from_data(data, tmp_path))
    assert run.spec.tasks_in_rounds == in_rounds
    for model in data["models"]:
        model["concurrency"] = 64 if concurrency == 11 else 1
    begun = {"identity": json.dumps({"rounds": in_rounds})}
    continued = replace(run, config=config_from_data(data, tmp_path), continued=begun)
    assert continued.spec.tasks_in_rounds == in_rounds


def references(spec, known):
    counts = np.tile([4, 6], (30, 1))
    counts[known:] = 0
    return replace(spec, references=(ReferenceSpec("old", {"t": counts}),))


TWO_TASKS = (
    TaskSpec("t", tuple(f"q{n}" for n in range(24))),
    TaskSpec("u", tuple(f"q{n}" for n in range(12)), (0.0, -1.0, 2.0), weight=2.0),
)
LARGE = TaskSpec("u", tuple(f"q{n}" for n in range(120)))
CLUSTERS = (
    TaskSpec("t", tuple(f"q{n}" for n in range(30)), clusters=tuple(f"c{n // 3}" for n in range(30))),
)


def base(**parts):
    settings = {"equivalence": 0.15, "max_passes": 24, "rounds": "rounds"} | parts
    return make_spec(4, 30, **settings)


SETTINGS = {
    "plain": base(),
    "several tasks": replace(base(), tasks=TWO_TASKS),
    "several answers a request": replace(base(), samples_per_prompt=3),
    "reference": references(base(), 30),
    "reference with gaps": references(base(), 21),
    "population and clusters": replace(base(target="population", max_passes=8), tasks=CLUSTERS),
    "best": base(goal="top-k"),
    "width": base(goal="width", width=0.15),
    "earlier trials": replace(base(), prior=PriorSpec({"m0": {"t": np.tile([2, 3], (30, 1))}}, "before")),
    "baseline": base(goal="baseline", model="m2"),
    "some pairs, each by itself": base(goal="pairs", pairs=(("m0", "m1"), ("m2", "m3")), family="pair"),
    "two goals": base(goal="all", goals=(GoalSpec("top-k", k=2), GoalSpec("width", width=0.2))),
    "ties together": base(ties="family"),
    "graded": base(weights=(0.0, 1.0, 3.0)),
    "a small and a large task": replace(
        base(equivalence=0.1, max_passes=8, rounds="auto"), tasks=(TWO_TASKS[0], LARGE)
    ),
    "repeats its answers": base(deterministic=("m1",)),
    "all repeat their answers": base(deterministic=("m0", "m1", "m2", "m3")),
}


def two_coins(request):
    """Return how many of two coins are right."""
    return sum(coin(MEANS, seed=seed)(request) for seed in (0, 1))


def repeating(request):
    """Return answers that are the same whenever a model is asked a question."""
    model = int(request.key.model[1:])
    return int(np.random.default_rng([model, int(request.question[1:])]).random() < MEANS[model])


def one_repeating(request):
    """Return the answers of coins, but those of one model are always the same."""
    return repeating(request) if request.key.model == "m1" else coin(MEANS)(request)


ANSWERS = {"graded": two_coins, "repeats its answers": one_repeating, "all repeat their answers": repeating}


def lost(request):
    """Say whether a trial gets no answer: some of one model, and all of one of its questions."""
    of_model = request.key.model == "m1"
    return of_model and (request.question == "q3" or request.key.index % 11 == 0)


ENDED_BY_OTHERS = ("best", "two goals")
"""Settings in which calls of other pairs end the need for a pair: it may be called later, or not."""


def same_calls(found, expected, name):
    if name not in ENDED_BY_OTHERS:
        assert sorted(calls(found)) == sorted(calls(expected))
        return
    mine, theirs = ({models: verdict for models, verdict, *_ in calls(one)} for one in (found, expected))
    assert {models: mine[models] for models in mine.keys() & theirs.keys()}.items() <= theirs.items()
    assert found.stopped.reason == expected.stopped.reason


@pytest.mark.slow
@pytest.mark.parametrize(("name", "missing"), [("plain", None), *((name, lost) for name in SETTINGS)])
def test_decisions_depend_on_outcomes_alone_and_survive_a_kill(name, missing):
    spec, answer, log = SETTINGS[name], ANSWERS.get(name, coin(MEANS)), []
    spec = replace(spec, stopping=replace(spec.stopping, family="pair", ties="pair"))
    plain = drive(Session(spec), answer, slots=5, missing=missing, log=log)
    assert plain.stopped.reason in ("resolved", "max_passes", "lost")
    assert plain.comparison.fold.progress.max() > plain.board.cells[0].rounds.first or name == "best"
    rng, slots = np.random.default_rng(1), 512 if len(name) % 2 else 17
    shuffled = drive(Session(spec), answer, slots=slots, rng=rng, missing=missing)
    same_calls(shuffled, plain, name)
    again = Session(spec)
    again.replay(log[: len(log) // 2 + 1])
    drive(again, answer, slots=5, missing=missing)
    assert sorted(calls(again)) == sorted(calls(plain))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("questions", "passes", "life"), [("rounds", 40, 300), ("rounds", 3, 60), ("schedule", 2, 60)]
)
def test_what_is_in_flight_at_a_kill_is_asked_again(questions, passes, life):
    """Also at the end of what is laid out, and at the cap: such trials count as issued already."""
    spec = make_spec(4, 20, equivalence=0.15, max_passes=passes, rounds=questions, family="pair")
    answer, rng = coin(MEANS), np.random.default_rng(2)
    plain = drive(Session(spec), answer)
    for _ in range(3):
        log, session = [], Session(spec)
        while session.stopped is None:
            session = Session(spec)
            session.replay(log)
            drive(session, answer, rng=rng, most=int(rng.integers(5, life)), log=log)
        assert sorted(calls(session)) == sorted(calls(plain))
        assert session.stopped.reason == plain.stopped.reason
        assert not any(session.states.gaps)


@pytest.mark.parametrize(("withheld", "most"), [(0, 180), (100, 300), (190, 540)])
def test_with_an_answer_outstanding_a_model_is_asked_the_next_round_s_first_pass_too(withheld, most):
    """60 questions: rounds begin at 120 and 240, and are laid out at 90 and 180 answers in a row."""
    session, answer = Session(make_spec(1, 60, rounds="rounds", goal="budget", trials=10_000)), coin([0.5])
    while requests := session.ask(50):
        there = [one for one in requests if one.key.index != withheld]
        session.tell([TrialOutcome(one.key, answer(one)) for one in there])
    assert session.states.issued[0] == most
    run_sequence = session.board.run_sequence
    asked = [run_sequence.at(step, 0)[1] for step in range(most - 60, most)]
    assert asked == [run_sequence.at(step, 0)[1] for step in range(120, 180)]


def test_the_bill_of_a_lost_trial_counts_where_its_round_follows_from_answers_not_read_yet():
    spec = make_spec(2, 6, equivalence=0.15, max_passes=40, rounds="rounds")
    first, log = Session(spec), []
    shares = {"m0": 12, "m1": 4}  # the first model has answered two passes, the other waits
    asked = [request for _ in range(20) for request in first.ask({"m0": 1, "m1": 1})]
    mine = [request for request in asked if request.key.index < shares[request.key.model]]
    for part in (lambda r: r.key.index < 4, lambda r: r.key.index >= 4):
        log.append([TrialOutcome(request.key, 1) for request in mine if part(request)])
        first.tell(log[-1])
    first.results()
    lost = first.ask({"m0": 1, "m1": 0})
    assert [request.key.index for request in lost] == [18]  # 12 to 17 are the first pass of every round
    again = Session(spec)
    again.replay(log, [(request.key, 1) for request in lost])
    asked = [request for _ in range(20) for request in again.ask({"m0": 1, "m1": 1})]
    assert lost[0] in asked


@pytest.mark.parametrize("setting", ["tasks[t].rubric.weights", "on.discarded"])
def test_stored_answers_stay_with_their_questions_where_a_change_counts_them_otherwise(setting):
    spec = make_spec(2, 12, weights=(0.0, 1.0, 3.0), max_passes=8, rounds="rounds")
    first, asked, log = Session(spec), [], []
    while first.stopped is None:
        batch = []
        for request in first.ask(8):
            asked.append(request)
            discarded = ("timeout",) if request.key.index % 3 else ()
            batch.append(TrialOutcome(request.key, two_coins(request), discarded=discarded))
        first.tell(batch)
        log.append(batch)
    again = Session(replace(spec, redrawn=frozenset({"timeout"})))
    if "weights" in setting:
        again = Session(replace(spec, tasks=(replace(spec.tasks[0], weights=(0.0, 3.0, 1.0)),)))
    records = [SimpleNamespace(request=one) for one in asked]
    reader = SimpleNamespace(trials=lambda: records, unanswered=list, decisions=list)
    replay_log(again, reader, [SimpleNamespace(setting=setting)], log)
    place = again.board.run_sequence.at
    kept = [place(one.key.index, int(one.key.model[1:]))[1] for one in asked]
    assert [f"q{question}" for question in kept] == [one.question for one in asked]


def test_what_rounds_leave_of_the_noise_of_a_model_depends_on_its_own_scores_alone():
    m1, m2, strength = np.array([0.3, 0.5, 0.9]), np.array([0.2, 0.3, 0.85]), np.array([0.4, 2.0, 9.0])
    together = round_share(ScorePrior(m1, m2, strength))
    alone = [round_share(ScorePrior(m1[[n]], m2[[n]], strength[[n]]))[0] for n in range(3)]
    assert together == pytest.approx(alone, rel=1e-12)
    assert len(set(alone)) == 3
