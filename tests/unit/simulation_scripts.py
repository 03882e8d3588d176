"""Specs and answers for simulations, and the session's own way to run them."""

from dataclasses import replace

import numpy as np
from session_scripts import make_spec

from adaptive_eval.core.board import SessionAnswers
from adaptive_eval.core.session import Session
from adaptive_eval.simulate.drivers import run_events, run_together
from adaptive_eval.simulate.recorded import RecordedOutcomes


def bounded_spec(models=3, questions=30, **parts):
    """Return a spec of m0, m1, … whose runs end."""
    return make_spec(models, questions, **{"equivalence": 0.1, "max_passes": 15, **parts})


def both_ways(spec, answers, seed, in_flight=1, latency=None):
    """Return one replicate in lockstep and as an asked and told session, on the same answers."""
    of_schedule, of_answers = np.random.SeedSequence(seed).spawn(2)
    spec = replace(spec, seed=int(of_schedule.generate_state(1)[0]))
    board = SessionAnswers(spec)
    (fast,) = run_together([spec], board, answers.begin(spec, board.run_sequence, again(of_answers)))
    session = Session(spec)
    stream = answers.begin(spec, session.board.run_sequence, again(of_answers))
    slow = run_events(session, stream, in_flight, latency, np.random.default_rng(seed))
    return fast, slow


def again(seed):
    """Return a fresh copy of a seed sequence, which counts its children."""
    return np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key)


def recorded_coins(means, questions=20, trials=6, seed=0, shortest=None):
    """Return recorded outcomes of coins; with `shortest`, cells have that many trials or more."""
    rng = np.random.default_rng(seed)
    chances = np.array(means)[:, None, None]
    categories = (rng.random((len(means), questions, trials)) < chances).astype(np.int16)
    if shortest is not None:
        counts = rng.integers(shortest, trials + 1, (len(means), questions, 1))
        categories[np.arange(trials) >= counts] = -1
    names = tuple(f"m{number}" for number in range(len(means)))
    return RecordedOutcomes(names, tuple(("t", f"q{number}") for number in range(questions)), categories)
