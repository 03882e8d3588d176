"""Earlier trials in a session: in Bayes@N and the early ranking, and in no decision."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from session_scripts import coin, drive, make_spec

from adaptive_eval.core.results import from_json, to_json
from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import PriorSpec, ReferenceSpec
from scorio.eval import bayes

SOURCE = "2 earlier trials a question from runs/previous"


def table(chance, questions=30, trials=2, seed=0):
    right = np.random.default_rng(seed).binomial(trials, chance, questions)
    return np.stack([trials - right, right], axis=1)


def prior(*chances, transfer=False, **parts):
    """Prior of models m0, m1, …; None for one without earlier trials."""
    tables = {
        f"m{model}": {"t": table(chance, seed=model, **parts)}
        for model, chance in enumerate(chances)
        if chance is not None
    }
    return PriorSpec(tables, SOURCE, tables if transfer else None)


def line_of(session, model):
    return {line.model: line for line in session.results().models}[model]


class TestDecisions:
    @settings(max_examples=15)
    @given(
        chances=st.tuples(*[st.one_of(st.none(), st.floats(0.0, 1.0)) for _ in range(3)]),
        trials=st.integers(1, 50),
        policy=st.sampled_from(["round-robin", "uniform"]),
        rule=st.sampled_from(["anytime", "zscore"]),
    )
    def test_a_prior_enters_none(self, chances, trials, policy, rule):
        spec = make_spec(3, 30, max_passes=3, policy=policy, rule=rule)
        answer = coin([0.9, 0.6, 0.2])
        without = drive(Session(spec), answer)
        with_prior = replace(spec, prior=prior(*chances, trials=trials, transfer=True))
        session = drive(Session(with_prior), answer)
        assert session.decisions == without.decisions
        assert session.states.issued == without.states.issued

    def test_nor_any_figure_but_bayes_and_the_early_ranking(self):
        spec = make_spec(2, 30, max_passes=2)
        without = drive(Session(spec), coin([0.6, 0.5])).results()
        session = drive(Session(replace(spec, prior=prior(0.9, 0.1, transfer=True))), coin([0.6, 0.5]))
        found = session.results()
        assert found.pairs == without.pairs
        for line, other in zip(found.models, without.models, strict=True):
            assert line.mu != other.mu
            plain = replace(line, mu=other.mu, sigma=other.sigma)
            assert replace(plain, transfer_mu=None, transfer_sigma=None, early_rank=None) == other


class TestBayes:
    def test_starts_from_the_earlier_trials(self):
        spec = replace(make_spec(2, 30, max_passes=2), prior=prior(0.8, None))
        session = drive(Session(spec), coin([0.6, 0.5]))
        counts = session.board.cells[0].counts
        mu, sigma = bayes(None, counts=counts[0], prior_counts=spec.prior.counts["m0"]["t"])
        assert line_of(session, "m0").mu == pytest.approx(mu)
        assert line_of(session, "m0").sigma == pytest.approx(sigma)
        assert line_of(session, "m1").mu == pytest.approx(bayes(None, counts=counts[1])[0])

    def test_says_what_is_in_it_also_after_a_trip_through_the_run_file(self):
        results = Session(replace(make_spec(2, 30), prior=prior(0.8, 0.2, transfer=True))).results()
        assert results.prior == SOURCE
        assert from_json(json.loads(json.dumps(to_json(results)))) == results
        assert Session(make_spec(2, 30)).results().prior is None


class TestEarlyRanking:
    def test_before_the_first_trial_it_is_that_of_the_earlier_results(self):
        session = Session(replace(make_spec(3, 30), prior=prior(0.1, 0.9, 0.5, transfer=True, trials=20)))
        lines = session.results().models
        assert [line.early_rank for line in lines] == [3, 1, 2]
        assert lines[1].transfer_mu == pytest.approx(
            session.spec.prior.counts["m1"]["t"][:, 1].mean() / 20, abs=1e-4
        )
        assert lines[1].score is None

    def test_references_take_their_place_with_their_own_score(self):
        spec = replace(
            make_spec(1, 30),
            prior=prior(0.5, transfer=True),
            references=(ReferenceSpec("old", {"t": table(0.9, trials=20)}),),
        )
        session = Session(spec)
        assert line_of(session, "old").early_rank == 1
        assert line_of(session, "old").transfer_mu == line_of(session, "old").score

    def test_there_is_none_unless_asked_for(self):
        lines = Session(replace(make_spec(2, 30), prior=prior(0.8, 0.2))).results().models
        assert {(line.early_rank, line.transfer_mu, line.transfer_sigma) for line in lines} == {
            (None, None, None)
        }
