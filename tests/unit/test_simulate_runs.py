"""Simulated runs: their answers, results, files."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom
from session_scripts import make_spec
from simulation_scripts import again, bounded_spec, recorded_coins

from adaptive_eval.core.determinism import REPEATS
from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import ReferenceSpec, SessionSpec, TaskSpec
from adaptive_eval.errors import OutcomesError, UsageError
from adaptive_eval.interop.recorded_files import read_recorded
from adaptive_eval.simulate import (
    BiasedCoins,
    GivenChances,
    Latency,
    Rate,
    RecordedAnswers,
    SimulationResult,
    simulate,
)
from adaptive_eval.simulate.coins import asked
from adaptive_eval.simulate.recorded import LOST, RecordedOutcomes
from scorio.eval import bayes
from scorio.sequential.trial_sequence import RunSequence

# Running replicates: seeds, processes, progress, costs of concurrency, and what is refused.


COINS = BiasedCoins((0.85, 0.55, 0.3))


def uneven_answers():
    """Return recorded answers of which the worst model has few."""
    recorded = recorded_coins((0.85, 0.55, 0.1), questions=30, trials=40)
    categories = recorded.categories.copy()
    categories[2, :, 2:] = -1
    return RecordedAnswers(replace(recorded, categories=categories))


@pytest.mark.parametrize("answers", [COINS, uneven_answers()], ids=["coins", "uneven"])
def test_uniform_total_is_what_the_uniform_policy_takes(answers):
    adaptive = simulate(bounded_spec(), answers, 6, seed=3, in_flight=1, workers=1)
    uniform = simulate(bounded_spec(policy="uniform"), answers, 6, seed=3, in_flight=1, workers=1)
    assert np.array_equal(adaptive.verdict, uniform.verdict)
    assert np.array_equal(adaptive.uniform_total, uniform.total)
    assert np.all(adaptive.total <= uniform.total)


def test_concurrency_costs_trials_and_saves_time():
    latency = Latency(1.0, 0.3)
    slow = simulate(bounded_spec(), COINS, 4, 3, 2, latency, workers=1)
    fast = simulate(bounded_spec(), COINS, 4, 3, 60, latency, workers=1)
    assert np.array_equal(slow.verdict, fast.verdict)
    assert np.all(fast.time < slow.time / 4)
    assert np.all(fast.total >= slow.total)


def test_no_more_requests_are_out_than_allowed(monkeypatch):
    out, most = [0], []
    ask, tell = Session.ask, Session.tell

    def asked(self, capacity):
        requests = ask(self, capacity)
        out[0] += len(requests)
        most.append(out[0])
        return requests

    def told(self, outcomes):
        out[0] -= len(outcomes)
        return tell(self, outcomes)

    monkeypatch.setattr(Session, "ask", asked)
    monkeypatch.setattr(Session, "tell", told)
    simulate(bounded_spec(), COINS, 1, 3, 7, Latency(1.0, 0.3), workers=1)
    assert max(most) == 7


def test_a_finished_model_is_compared_and_asked_nothing():
    right = np.full(30, 18)
    reference = ReferenceSpec("old", {"t": np.stack([20 - right, right], axis=1)})
    plain = bounded_spec(1, 30, goal="ranking")
    spec = SessionSpec(plain.models, plain.tasks, stopping=plain.stopping, references=(reference,))
    result = simulate(spec, GivenChances(np.full((1, 30), 0.2)), 4, 1, in_flight=1, workers=1)
    assert result.pairs == (("m0", "old"),)
    assert result.gap == pytest.approx([-0.7])
    assert result.verdict.tolist() == [[-1]] * 4
    assert result.models == ("m0",)


GOALS = {"ranking": {}, "threshold": {"value": 0.55}, "width": {"width": 0.2}}
"""Values and widths as parts of the scale."""
SETTLED = (np.random.default_rng(2).random((3, 32)) < np.array([[0.9], [0.6], [0.25]])).astype(float)
"""Chances of models of which each answer is known, on 12 and 20 questions."""


def weighted(weights, goal, **parts):
    """Return a spec of two tasks, of which the first weighs three times as much."""
    (low, high), value = weights, GOALS[goal].get("value")
    scaled = {name: one * (high - low) for name, one in (GOALS[goal] | parts).items()}
    if value is not None:
        scaled["value"] += low
    spec = make_spec(3, 1, goal=goal, max_passes=3, family="pair", **scaled)
    sizes, names = (12, 20), [f"q{number}" for number in range(20)]
    tasks = (TaskSpec(f"t{size}", tuple(names[:size]), weights) for size in sizes)
    return replace(spec, tasks=tuple(replace(task, weight=w) for task, w in zip(tasks, (3, 1), strict=True)))


def once_recorded(chances):
    """Return one trial of each question by models of these chances, all but one lost answer of the first."""
    names = [f"q{number}" for number in range(20)]
    questions = tuple((f"t{size}", name) for size in (12, 20) for name in names[:size])
    categories = np.repeat(chances.astype(int)[:, :, None], 2, axis=2)
    categories[:, :, 1] = -1
    categories[0, 5] = LOST, chances[0, 5]
    return RecordedOutcomes(("m0", "m1", "m2"), questions, categories)


REPEATED = {
    "coins": (BiasedCoins((0.5,) * 3), (-1.0, 3.0)),
    "given": (GivenChances(np.full((3, 32), 0.3)), (0.0, 1.0)),
    "graded": (GivenChances(np.full((3, 32, 3), 1 / 3)), (-1.0, 1.0, 3.0)),
    "recorded": (RecordedAnswers(once_recorded(SETTLED)), (0.0, 1.0)),
}


@pytest.mark.parametrize("kind", REPEATED)
def test_models_that_repeat_their_answers_are_judged_by_what_these_score(kind):
    answers, weights = REPEATED[kind]
    spec = make_spec(3, 1, max_passes=3)
    models = tuple(replace(model, deterministic=True) for model in spec.models)
    tasks = tuple(replace(task, weights=weights) for task in weighted((0.0, 1.0), "ranking").tasks)
    spec = replace(spec, models=models, tasks=tasks)
    result = simulate(spec, answers, 4, seed=1, in_flight=8, workers=1)
    assert (set(result.reason), result.family_wise.count) == ({"resolved"}, 0)
    assert result.trials.max() <= 32 + REPEATS + 1
    gap = result.gap if result.drawn_gap is None else result.drawn_gap
    shown = result.score[:, [0, 0, 1]] - result.score[:, [1, 2, 2]]
    assert shown == pytest.approx(np.broadcast_to(gap, shown.shape))


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("in_flight", [1, 8], ids=["lockstep", "session"])
def test_it_is_in_the_units_of_the_score_to_which_tasks_add_as_they_weigh(goal, in_flight):
    def simulated(weights):
        spec, answers = weighted(weights, goal), GivenChances(SETTLED)
        return simulate(spec, answers, 1, seed=1, in_flight=in_flight, workers=1)

    plain, scaled = simulated((0.0, 1.0)), simulated((-1.0, 3.0))
    of_tasks = np.split(SETTLED, [12], axis=1)
    truth = 0.75 * of_tasks[0].mean(axis=1) + 0.25 * of_tasks[1].mean(axis=1)
    others = {"ranking": truth[[1, 2, 2]], "threshold": 0.55, "width": np.nan}[goal]
    gap = truth[[0, 0, 1] if goal == "ranking" else [0, 1, 2]] - others
    assert (scaled.truth, scaled.gap) == (
        pytest.approx(4 * truth - 1),
        pytest.approx(4 * gap, nan_ok=True),
    )
    assert np.array_equal(scaled.verdict, plain.verdict)
    assert scaled.score == pytest.approx(4 * plain.score - 1)
    if in_flight is not None:
        whole = plain.trials[0] == 3 * 32
        assert plain.score[0, whole] == pytest.approx(truth[whole])
        return
    found = [[bayes(np.tile(one[:, None], 3)) for one in of_task.astype(int)] for of_task in of_tasks]
    mu, sigma = np.transpose(found, (2, 1, 0))
    mu, sigma = mu @ [0.75, 0.25], np.linalg.norm(sigma * [0.75, 0.25], axis=1)
    assert plain.score[0] == pytest.approx(mu)
    first, second = ([0, 0, 1], [1, 2, 2]) if goal == "ranking" else ([0, 1, 2], None)
    difference = mu[first] - (0.55 if second is None else mu[second])
    spread = sigma[first] if second is None else np.hypot(sigma[first], sigma[second])
    called = np.where(np.abs(difference) >= 1.645 * spread, np.sign(difference), 0)
    assert plain.verdict[0].tolist() == (called * (goal != "width")).tolist()


# Sources of simulated answers: what they draw, what they say is true, when they run out.


SEED = np.random.SeedSequence(11)


def begin(answers, spec, seed=SEED):
    run_sequence = RunSequence([len(task.questions) for task in spec.tasks], spec.seed)
    return answers.begin(spec, run_sequence, again(seed)), run_sequence


def test_answers_have_the_stated_means():
    spec = make_spec(3, 50)
    stream, _ = begin(BiasedCoins((0.1, 0.5, 0.95)), spec)
    outcomes = stream.draw(np.arange(3), 0, 50 * 400)
    # The mean over complete passes varies by trials alone: at most √(0.25/20000) = 0.0035.
    assert outcomes.mean(axis=1) == pytest.approx([0.1, 0.5, 0.95], abs=5 * 0.0035)


def test_a_right_answer_is_the_best_category_of_the_rubric_wherever_it_stands():
    spec = make_spec(2, 20, weights=(0.5, 2.0, -1.0))
    stream, _ = begin(BiasedCoins((1.0, 0.0)), spec)
    outcomes = stream.draw(np.arange(2), 0, 60)
    assert set(outcomes[0].tolist()) == {1}
    assert set(outcomes[1].tolist()) == {2}


def test_pieces_and_other_models_change_no_answer():
    spec = make_spec(3, 30)
    whole, _ = begin(BiasedCoins((0.3, 0.5, 0.7)), spec)
    pieces, _ = begin(BiasedCoins((0.3, 0.5, 0.7)), spec)
    expected = whole.draw(np.arange(3), 0, 100)
    first = pieces.draw(np.array([1]), 0, 40)
    others = pieces.draw(np.array([2, 0]), 0, 100)
    second = pieces.draw(np.array([1]), 40, 100)
    assert np.array_equal(np.concatenate([first, second], axis=1)[0], expected[1])
    assert np.array_equal(others, expected[[2, 0]])


def test_every_category_comes_up_as_often_as_it_should():
    chances = np.tile([0.2, 0.5, 0.3], (1, 10, 1))
    spec = make_spec(1, 10, weights=(0.0, 1.0, 4.0))
    stream, _ = begin(GivenChances(chances), spec)
    outcomes = stream.draw(np.array([0]), 0, 30_000)[0]
    shares = np.bincount(outcomes, minlength=3) / outcomes.size
    assert shares == pytest.approx([0.2, 0.5, 0.3], abs=5 * 0.003)
    assert GivenChances(chances).truth(spec) == pytest.approx([0.5 + 1.2])


def test_replays_every_trial_once_and_then_runs_out():
    recorded = recorded_coins((0.3, 0.6), questions=7, trials=5)
    spec = make_spec(2, 7)
    stream, run_sequence = begin(RecordedAnswers(recorded), spec)
    assert stream.limit.tolist() == [35, 35]
    outcomes = stream.draw(np.arange(2), 0, 35)
    (questions,), _ = asked(run_sequence, np.array([0]), 0, 35)
    for model in range(2):
        for question in range(7):
            replayed = sorted(outcomes[model, questions == question].tolist())
            assert replayed == sorted(recorded.categories[model, question].tolist())


def test_shuffles_within_cells_and_keeps_missing_trials_last():
    recorded = recorded_coins((0.5,), questions=30, trials=8, shortest=3)
    spec = make_spec(1, 30)
    orders = set()
    for child in SEED.spawn(5):
        stream, _ = begin(RecordedAnswers(recorded), spec, child)
        walked = int(stream.limit[0])
        orders.add(tuple(stream.draw(np.array([0]), 0, min(walked, 60))[0].tolist()))
    assert len(orders) == 5


# What counts as wrong, and how rates, costs and tables are made of verdicts.


def make_result(verdict, gap, **parts):
    verdict = np.array(verdict, dtype=np.int8)
    runs, pairs = verdict.shape
    values = {
        "models": ("a", "b"),
        "pairs": tuple((f"x{number}", f"y{number}") for number in range(pairs)),
        "truth": np.array([0.5, 0.4]),
        "gap": np.array(gap, dtype=float),
        "margin": None,
        "verdict": verdict,
        "decided_at": np.where(verdict == 0, -1, 30),
        "trials": np.full((runs, 2), 40),
        "score": np.full((runs, 2), 0.5),
        "steps": np.full(runs, 40),
        "time": np.full(runs, 40.0),
        "reason": ("resolved",) * runs,
        "exhausted": np.zeros((runs, 2), dtype=bool),
        "limit": np.full((runs, 2), 1000),
        "one_by_one": True,
        **parts,
    }
    return SimulationResult(**values)


def test_a_winner_against_the_truth_is_wrong_and_a_tie_from_the_margin_on():
    result = make_result([[1, -1, 1, -1]], gap=[0.1, 0.1, -0.1, -0.1])
    assert result.wrong.tolist() == [[False, True, True, False]]
    result = make_result([[2, 2, 2, 0]], gap=[0.05, 0.049, -0.3, 0.3], margin=0.05)
    assert result.wrong_tie.tolist() == [[True, False, True, False]]
    assert result.wrong_ties == Rate(2, 3)
    result = make_result([[1, 1, 0], [-1, 1, 0], [-1, -1, 0]], gap=[0.0, 0.1, 0.1])
    assert result.family_wise == Rate(3, 3)
    assert result.wrong_calls == Rate(4, 9)


def test_interval_covers_the_share_and_needs_no_events():
    assert Rate(0, 60).interval() == pytest.approx((0.0, 0.0596), abs=1e-4)
    low, high = Rate(5, 50).interval()
    assert low < 0.1 < high
    assert Rate(0, 0).interval() == (0.0, 1.0)
    assert np.isnan(Rate(0, 0).share)


def test_interval_covers_at_least_as_often_as_it_says():
    for p in (0.01, 0.05, 0.3):
        covered = 0.0
        for count in range(101):
            low, high = Rate(count, 100).interval(0.9)
            covered += binom.pmf(count, 100, p) * (low <= p <= high)
        assert covered >= 0.9


def test_uniform_walks_everyone_to_the_stop():
    result = make_result([[1], [0]], gap=[0.1], steps=np.array([40, 7]), limit=np.array([[40, 31], [9, 9]]))
    assert result.uniform_total.tolist() == [71, 14]
    in_flight = make_result([[1]], gap=[0.1], one_by_one=False)
    with pytest.raises(ValueError, match="must be simulated by itself"):
        _ = in_flight.uniform_total


def test_tables_are_plain_columns_of_equal_length():
    result = make_result([[1, 2], [0, 1]], gap=[0.1, 0.0], margin=0.05)
    for table, rows in (("replicates", 2), ("pairs", 2), ("models", 2)):
        columns = result.to_columns(table)
        assert {len(column) for column in columns.values()} == {rows}
        assert all(type(value) in (int, float, str) for column in columns.values() for value in column)
        assert result.to_rows(table)[0] == {name: column[0] for name, column in columns.items()}
    assert result.to_columns("replicates")["wrong_winners"] == [0, 1]
    pairs = result.to_columns("pairs")
    assert pairs["tie"] == [0.0, 0.5]
    ended = np.sum([pairs[name] for name in ("better", "worse", "tie", "open")], axis=0)
    assert ended == pytest.approx(np.ones(2))
    assert result.reasons == {"resolved": 2}


# Recorded outcomes from files: every format, and one clear message for what is none.


def test_csv_with_tasks_trial_numbers_and_words(tmp_path):
    text = "model,task,question,trial,correct\na,t,q,5,true\na,t,q,2,False\na,s,q,0,1\n"
    (tmp_path / "x.csv").write_text(text, encoding="utf-8")
    recorded = read_recorded([tmp_path / "x.csv"])
    assert recorded.questions == (("t", "q"), ("s", "q"))
    assert recorded.categories.tolist() == [[[0, 1], [1, -1]]]


def test_npz_moves_missing_trials_to_the_end(tmp_path):
    outcomes = np.array([[[-1, 1, 0]], [[1, -1, -1]]], dtype=np.int8)
    np.savez(tmp_path / "x.npz", R=outcomes, models=["a", "b"], questions=["q"])
    recorded = read_recorded([tmp_path / "x.npz"])
    assert recorded.categories.tolist() == [[[1, 0, -1]], [[1, -1, -1]]]
    assert recorded.models == ("a", "b")


@pytest.mark.parametrize(
    ("words", "arrays"),
    [
        ("u must hold whole numbers", {"t": np.ones((1, 1, 1), int), "u": np.ones((1, 1, 1))}),
        ("R must hold categories", {"R": np.full((1, 2, 1), 32768)}),
        ("counts must hold whole numbers", {"counts": np.full((1, 1, 1), -1)}),
        ("counts must hold whole numbers", {"counts": np.ones((1, 1, 1))}),
        ("models has 2 names, R has 1 models", {"R": np.ones((1, 2, 1), int), "models": ["a", "b"]}),
        ("questions has 1 names, R has 2 questions", {"R": np.ones((1, 2, 1), int), "questions": ["a"]}),
        ("models: 'a' appears twice", {"R": np.ones((3, 1, 1), int), "models": ["a", "b", " a"]}),
        ("there is no array R", {"S": np.ones((1, 1), int)}),
    ],
)
def test_what_is_wrong_with_an_archive_is_said_of_its_array(tmp_path, words, arrays):
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(OutcomesError) as refused:
        read_recorded([tmp_path / "x.npz"])
    assert str(refused.value).startswith(f"{tmp_path / 'x.npz'}: {words}")


def test_what_is_wrong_with_many_rows_alike_is_said_once(tmp_path):
    alike = [{"model": "a", "question": "q", "category": "x"}] * 30
    apart = [{"model": "a", "question": "q", "category": f"x{number}"} for number in range(30)]
    rows = map(json.dumps, [*alike, {"model": "a", "category": 1}, *apart])
    (tmp_path / "x.jsonl").write_text("\n".join(rows), encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        read_recorded([tmp_path / "x.jsonl"])
    _, first, second, *others, last = str(caught.value).split("\n")
    assert first.startswith("  line 1: category: 'x' is not a category")
    assert first.endswith("; and 29 more like it")
    assert second.startswith("  line 31: there is no question")
    assert "more" not in second
    assert (len(others), "… and 22 more" in last) == (8, True)


@pytest.mark.slow
def test_a_script_that_its_processes_import_again_is_told_so(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nfrom adaptive_eval.simulate import BiasedCoins, simulate\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\nfrom simulation_scripts import bounded_spec\n"
        "simulate(bounded_spec(2), BiasedCoins((0.8, 0.4)), 4, seed=1, workers=2)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    raised = "adaptive_eval.errors.UsageError: "
    said = [line for line in done.stderr.splitlines() if line.startswith(raised)]  # Python may warn after it
    assert (done.returncode, len(said[-1:])) == (1, 1)
    assert all(words in said[-1] for words in ("__main__", "workers=1"))
