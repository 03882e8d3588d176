"""Running replicates: seeds, processes, progress, costs of concurrency, and what is refused."""

import numpy as np
import pytest
from session_scripts import make_spec
from simulation_scripts import bounded_spec, recorded_coins

from adaptive_eval.core.spec import ReferenceSpec, SessionSpec
from adaptive_eval.errors import UsageError
from adaptive_eval.simulate import BiasedCoins, GivenChances, Latency, RecordedAnswers, simulate
from adaptive_eval.simulate.many_runs import simulate_fixed

COINS = BiasedCoins((0.85, 0.55, 0.3))


def same(a, b):
    return np.array_equal(a.verdict, b.verdict) and np.array_equal(a.trials, b.trials)


class TestReplicates:
    def test_do_not_depend_on_the_number_of_processes(self):
        one = simulate(bounded_spec(), COINS, 9, seed=4, in_flight=1, workers=1)
        two = simulate(bounded_spec(), COINS, 9, seed=4, in_flight=1, workers=2)
        assert same(one, two)
        assert np.array_equal(one.score, two.score)


class TestWhatIsSpent:
    def test_uniform_total_is_what_the_uniform_policy_takes(self):
        adaptive = simulate(bounded_spec(), COINS, 6, seed=3, in_flight=1, workers=1)
        uniform = simulate(bounded_spec(policy="uniform"), COINS, 6, seed=3, in_flight=1, workers=1)
        assert np.array_equal(adaptive.verdict, uniform.verdict)
        assert np.array_equal(adaptive.uniform_total, uniform.total)
        assert np.all(adaptive.total <= uniform.total)

    def test_concurrency_costs_trials_and_saves_time(self):
        latency = Latency(1.0, 0.3)
        slow = simulate(bounded_spec(), COINS, 4, 3, 2, latency, workers=1)
        fast = simulate(bounded_spec(), COINS, 4, 3, 60, latency, workers=1)
        assert np.array_equal(slow.verdict, fast.verdict)
        assert np.all(fast.time < slow.time / 4)
        assert np.all(fast.total >= slow.total)


class TestRecorded:
    def test_a_run_ends_where_the_trials_end(self):
        recorded = recorded_coins((0.5, 0.5), questions=12, trials=4)
        spec = make_spec(2, 12)
        result = simulate(spec, RecordedAnswers(recorded), 5, 1, in_flight=1, workers=1)
        assert set(result.reasons) <= {"partial", "endpoints", "resolved"}
        assert result.exhausted.any(axis=1).all()
        assert result.total.max() <= recorded.trials


class TestReferences:
    def test_a_finished_model_is_compared_and_asked_nothing(self):
        right = np.full(30, 18)
        reference = ReferenceSpec("old", {"t": np.stack([20 - right, right], axis=1)})
        plain = bounded_spec(1, 30, goal="ranking")
        spec = SessionSpec(plain.models, plain.tasks, stopping=plain.stopping, references=(reference,))
        result = simulate(spec, GivenChances(np.full((1, 30), 0.2)), 4, 1, in_flight=1, workers=1)
        assert result.pairs == (("m0", "old"),)
        assert result.gap == pytest.approx([-0.7])
        assert result.verdict.tolist() == [[-1]] * 4
        assert result.models == ("m0",)


class TestFixed:
    def test_takes_every_trial_and_looks_once(self):
        result = simulate_fixed(bounded_spec(), COINS, 7, replicates=4, seed=1, workers=1)
        assert result.total.tolist() == [3 * 30 * 7] * 4
        assert np.array_equal(result.verdict, np.ones((4, 3)))


class TestRefusals:
    def test_errors_of_a_process_reach_the_caller(self):
        with pytest.raises(UsageError, match="answers are given for 2 models, the run has 3"):
            simulate(bounded_spec(), BiasedCoins((0.5, 0.6)), 2, 1, workers=2)
