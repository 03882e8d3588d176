"""Answers that may be copies: in the score as they are, as repeats only as far as both readings allow."""

import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import ModelSpec, ReferenceSpec, SessionSpec, StoppingSpec, TaskSpec
from adaptive_eval.simulate import GivenChances, RecordedAnswers, RecordedOutcomes, simulate
from adaptive_eval.simulate.analysis import analyze
from adaptive_eval.simulate.many_runs import Simulator
from adaptive_eval.simulate.recorded import _again
from adaptive_eval.trial import TrialOutcome, Usage
from scorio.sequential.copies import Copies

IDS = tuple(f"q{number}" for number in range(40))
PASSES = 8


def sure(rng, chance, first, key):
    """Answer right always in the same words, and wrong in other ones each time."""
    right = rng.random() < chance
    return right, "right" if right else None


def cached(rng, chance, first, key):
    """Give the first answer to a question again."""
    return first.setdefault(key, rng.random() < chance), "first"


def varied(rng, chance, first, key):
    return rng.random() < chance, None


def play(seed, kind, other=varied, *, lead=0.0, independent=False, margin=None):
    """Run the model a, which answers as `kind`, against b; return the verdict on the pair and the session."""
    rng, first, seen, fresh = random.Random(seed), {}, Counter(), iter(range(1, 10**6))
    stopping = StoppingSpec(max_passes=PASSES, equivalence=margin)
    models = ModelSpec("a"), ModelSpec("b")
    session = Session(
        SessionSpec(
            models, (TaskSpec("t", IDS),), stopping=stopping, seed=seed, independent_copies=independent
        )
    )
    while session.stopped is None:
        outcomes = []
        for request in session.ask(16):
            key = request.key.model, request.question
            chance = 0.6 + lead * (key[0] == "a")
            right, text = (kind if key[0] == "a" else other)(rng, chance, first, key)
            digest = 0 if text is not None else next(fresh)
            outcomes.append(TrialOutcome(request.key, int(right), Usage(), digest, seen[key, digest] > 0))
            seen[key, digest] += 1
        session.tell(outcomes)
    (pair,) = session.results().pairs
    return pair.verdict, session


@pytest.mark.slow
@pytest.mark.parametrize("kind", [sure, cached])
def test_equal_models_are_not_told_apart_by_how_one_of_them_words_its_answers(kind):
    """80 runs of equal models, seeds 0 to 79; 10 false winners or more would have a chance of 1 % at 5 %."""
    verdicts = Counter(play(seed, kind)[0] for seed in range(80))
    assert verdicts["better"] + verdicts["worse"] < 10


def test_the_word_of_the_user_makes_them_draws():
    """Two sure models, .9 and .6: as copies they are 40 draws each, as draws they are apart soon."""
    bounded, session = play(3, sure, sure, lead=0.2)
    free, freed = play(3, sure, sure, lead=0.2, independent=True)
    assert (bounded, free) == ("open", "better")
    assert freed.budget.completed < session.budget.completed
    score = session.results().models[0]
    assert (score.missing, score.copies) == (0, 0)


def test_a_cache_says_no_more_than_its_first_answers():
    """However often it is asked: the interval stays as wide, and no tie is called."""
    verdict, session = play(5, cached, cached, margin=0.1)
    (pair,) = session.results().pairs
    _, alone = play(5, cached, cached, margin=0.1, independent=True)
    (freed,) = alone.results().pairs
    assert verdict == "open"
    assert pair.difference_high - pair.difference_low > 0.3
    assert freed.difference_high - freed.difference_low < 0.2


def test_what_is_left_of_answers_with_equal_texts():
    """n_eff = n²/Σ m²; without copies nothing is taken."""
    copies = Copies(questions=3)
    questions, answered = np.array([0, 1, 0, 0, 1, 2, 0]), np.array([1, 0, 1, 1, 0, -1, 1])
    copies.doubt(4, 2, text=7)
    copies.doubt(4, 6, text=7)
    copies.absorb(4, questions, answered)
    noise, avg, repeats, trust = copies.left(4, 0, 7)
    assert repeats.tolist() == pytest.approx([0, 0, 0, 9 / 5 - 1, 9 / 5, 9 / 5, 16 / 10 - 1 + 1])
    assert avg[-1] == pytest.approx((10 / 16 + 1 / 2) / (1 / 4 + 1 / 2))
    assert trust[-1] == pytest.approx((16 / 10 + 2) / 6)
    assert noise[-1] == pytest.approx(avg[-1] * 4 / (4 - 6 / 4))


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("rule", ["anytime", "fixed", "exact", "zscore"])
def test_a_possible_copy_is_taken_under_every_rule_and_lost_where_single_trials_are_read(rule, independent):
    spec = SessionSpec(
        (ModelSpec("a"), ModelSpec("b")), (TaskSpec("t", IDS),), stopping=StoppingSpec(rule=rule)
    )
    session = Session(replace(spec, independent_copies=independent))
    requests = session.ask(8)
    session.tell([TrialOutcome(one.key, 1, answer=7, repeats=True) for one in requests])
    missing = sum(line.missing for line in session.results().models)
    assert missing == (0 if independent or rule in ("anytime", "fixed") else len(requests))


def test_a_look_may_come_before_the_first_answer_of_a_model_with_possible_copies():
    spec = SessionSpec((ModelSpec("a"), ModelSpec("b")), (TaskSpec("t", IDS[:2]),))
    session, seen, outcomes = Session(spec), set(), []
    for one in session.ask(40):
        if one.key.model == "a" and one.key.index:
            outcomes.append(TrialOutcome(one.key, 1, answer=5, repeats=one.question in seen))
            seen.add(one.question)
    session.tell(outcomes)
    assert (session.results().models[0].trials, outcomes[-1].repeats) == (0, True)


# ---------------------------------------------------------------------- stored answers

DEPTH = 20
"""Stored answers to each question."""


def texts_and_answers(seed, kind, chance=0.6):
    """Return answers to every question, shape (Q, DEPTH), and numbers that tell their texts apart."""
    rng = np.random.default_rng([seed, 1])
    answers = (rng.random((len(IDS), DEPTH)) < chance).astype(int)
    texts = np.arange(1, 1 + DEPTH) * np.ones((len(IDS), 1), dtype=int)
    if kind == "cached":
        answers[:], texts[:] = answers[:, :1], 1
    elif kind == "half":  # every second answer is the first one again
        answers[:, ::2], texts[:, ::2] = answers[:, :1], 1
    return answers, texts


def against_stored(seed, kind, *, gap=0.0, read=True, independent=False, passes=DEPTH):
    """Return the verdict on a live model and a stored one; without `read`, its texts are not known."""
    answers, texts = texts_and_answers(seed, kind, 0.6 + gap)
    counts = np.stack([DEPTH - answers.sum(axis=1), answers.sum(axis=1)], axis=1)
    sizes = np.array([np.square(np.unique(row, return_counts=True)[1]).sum() for row in texts])
    stored = ReferenceSpec("old", {"t": counts}, alike={"t": sizes - DEPTH} if read else {})
    spec = SessionSpec(
        (ModelSpec("a"),),
        (TaskSpec("t", IDS),),
        stopping=StoppingSpec(max_passes=passes),
        references=(stored,),
        independent_copies=independent,
    )
    chances = GivenChances(np.full((1, len(IDS)), 0.6))
    return int(simulate(spec, chances, 1, seed=seed, in_flight=1, workers=1).verdict[0, 0])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cached", "half"])
def test_an_equal_model_is_not_told_from_stored_copies(kind):
    """60 runs, seeds 0 to 59; 8 false winners or more would have a chance of 1 % at 5 %."""
    assert sum(against_stored(seed, kind) != 0 for seed in range(60)) < 8


def test_stored_copies_decide_no_more_than_they_know():
    """A cache's answers to a question are one draw; the user's word, or other texts, make them many."""
    one = {"seed": 3, "kind": "cached", "gap": 0.25}
    found = against_stored(**one), against_stored(**one, independent=True), against_stored(**one, read=False)
    assert found == (0, -1, -1)
    assert against_stored(3, "varied", gap=0.25) == against_stored(3, "varied", gap=0.25, read=False) == -1


def test_what_is_left_of_stored_answers():
    copies, one = Copies(questions=3), Copies(questions=3)
    for step in (2, 3):
        one.doubt(0, step, text=7)
    one.absorb(0, np.array([0, 1, 0, 0, 1]), np.ones(5, dtype=int))
    copies.load(4, np.array([3, 2, 0]), np.array([6, 0, 0]))
    assert copies.left(4, 0, 1).ravel() == pytest.approx(one.left(0, 4, 5).ravel())
    assert copies.left(5, 0, 1).ravel().tolist() == [1.0, 1.0, np.inf, 1.0]


def recorded(seed, *kinds, chances=(0.6, 0.6)):
    drawn = [
        texts_and_answers(2 * seed + row, *one) for row, one in enumerate(zip(kinds, chances, strict=True))
    ]
    categories, texts = (np.stack(part) for part in zip(*drawn, strict=True))
    models, questions = tuple("ab"), tuple(("t", one) for one in IDS)
    return RecordedOutcomes(
        models, questions, categories, texts=texts * (np.array(kinds) != "varied")[:, None, None]
    )


def spec_of(given, **parts):
    return SessionSpec(tuple(map(ModelSpec, given.models)), given.task_specs(), **parts)


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [("cached", "varied"), ("cached", "cached")])
def test_equal_models_are_not_told_apart_in_a_replay(kinds):
    """60 tables, seeds 0 to 59, in the order of the table."""
    wrong = 0
    for seed in range(60):
        given = recorded(seed, *kinds)
        wrong += int(analyze(given, spec_of(given), Simulator(1, seed, workers=1)).replay.verdict[0] != 0)
    assert wrong < 8


@pytest.mark.slow
@pytest.mark.parametrize("in_flight", [1, 8])
def test_a_replay_in_any_order_reads_what_may_be_copies_as_a_run_does(in_flight):
    given = recorded(1, "cached", "cached", chances=(0.7, 0.55))

    def share(given, **parts):
        answers = RecordedAnswers(given)
        found = simulate(spec_of(given, **parts), answers, 6, seed=2, in_flight=in_flight, workers=1)
        return found.share("decided")

    assert share(given) == 0.0
    assert share(given, independent_copies=True) == share(replace(given, texts=None)) == 1.0
    zscore = StoppingSpec(rule="zscore", max_passes=DEPTH)
    assert share(given, stopping=zscore) == 0.0, "single answers are read, and copies are lost"


def test_the_first_of_equal_texts_is_no_copy_in_whatever_order():
    texts = np.array([[[7, 0, 7, 3, 7, 3, 0]]])
    assert _again(texts).tolist() == [[[0, 0, 7, 0, 7, 3, 0]]]
    given = RecordedOutcomes(("a",), (("t", "q"),), np.ones((1, 1, 7), dtype=int), texts=texts)
    assert given.equal.tolist() == [[3 * 2 + 2 * 1]]
    both = replace(
        given,
        models=("a", "b"),
        categories=np.ones((2, 1, 7), dtype=int),
        texts=np.stack([texts[0], 0 * texts[0]]),
    )
    assert [both.only([name]).equal.tolist() for name in "ba"] == [[[0]], [[8]]]
    assert given.only(["a"]).equal.tolist() == given.asked_of_all().equal.tolist() == [[8]]
