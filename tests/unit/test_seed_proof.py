"""Servers honour seeds if two answers to one seed are equal and two seeds differ, beyond chance."""

import asyncio
import random

import pytest

from adaptive_eval.engine.health import SEVERAL
from adaptive_eval.engine.independence import LONG
from adaptive_eval.engine.seed_proof import TESTS, Repeat, SeedProof, Trio, chance_of_pairs

LENGTHY = "x" * LONG


def holds(answer, servers=("s",), *, repeats: bool = False, proof: SeedProof | None = None):
    """Return whether it holds, and the number of requests; `answer`: of a seed's number at a server."""
    asked, proof = [], proof or SeedProof()

    async def ask(number, avoid):
        server = next((one for one in servers if one not in avoid), servers[0])
        asked.append(number)
        said = answer(number, server)
        return None if said is None else Repeat(said, server)

    first = Repeat(answer(0, servers[0]), servers[0])
    return asyncio.run(proof.holds(first, servers, ask, repeats=repeats)), len(asked)


def test_of_long_answers_two_requests_show_it():
    assert holds(lambda number, server: f"{LENGTHY} {number}") == (True, 2)


def test_short_answers_are_asked_until_chance_is_no_reason():
    assert holds(lambda number, server: f"{number}") == (True, 7)


@pytest.mark.parametrize("repeats", [False, True])
def test_two_answers_to_one_seed_that_differ_refute_it(repeats):
    count = iter(range(100))
    assert holds(lambda number, server: f"{LENGTHY} {next(count)}", repeats=repeats) == (False, 1)


def test_answers_that_never_differ_show_it_of_a_model_that_repeats_itself_alone():
    assert holds(lambda number, server: LENGTHY)[0] is False
    assert holds(lambda number, server: "yes", repeats=True) == (True, 5)


def test_every_server_is_asked():
    servers = ("s", "t", "u")
    assert holds(lambda number, server: f"{LENGTHY} {number}", servers)[0] is True
    odd = {"s": 0, "t": 0, "u": 1}
    assert holds(lambda number, server: f"{LENGTHY} {number} {odd[server]}", servers)[0] is False


def test_a_request_that_fails_shows_nothing_and_a_test_is_made_again():
    proof = SeedProof()
    assert holds(lambda number, server: "yes" if number == 0 else None, proof=proof)[0] is False
    assert holds(lambda number, server: f"{LENGTHY} {number}", proof=proof)[0] is True
    assert holds(lambda number, server: f"{LENGTHY} {number}", proof=proof) == (True, 0)


def compared(answer, *, repeats=False, proof=None, questions=SEVERAL, others=("t", "u")):
    """Return the proven servers and the questions; `answer`: of a server to a question and a seed."""
    asked, proof = [], proof or SeedProof()

    async def ask(question):
        server = others[question % len(others)]
        asked.append(question)
        again = [answer(server, question, seed) for seed in (0, 1)]
        repeated = [None if said is None else Repeat(said, server) for said in again]
        return Trio(answer("s", question, 0), *repeated)

    asyncio.run(proof.compare("s", others, questions, ask, repeats=repeats))
    return proof.proven, len(asked)


def test_a_server_that_hangs_is_compared_by_what_it_has_answered():
    """Long or short: on four questions the answer under another seed is the odd one."""
    every = {"s", "t", "u"}
    assert compared(lambda server, question, seed: f"{question} {seed}") == (every, 4)
    some = lambda server, question, seed: f"{question} {seed * (question % 2)}"  # noqa: E731
    assert compared(some) == (every, 8)
    assert compared(some, questions=7) == (set(), 7)
    assert compared(lambda server, question, seed: "yes") == (set(), 8)
    assert compared(lambda server, question, seed: "yes", repeats=True) == (every, 4)
    assert compared(lambda server, question, seed: None if seed else "yes", repeats=True) == (set(), 4)
    assert compared(lambda server, question, seed: f"{seed}", questions=1, repeats=True) == (set(), 1)


def test_one_answer_that_another_server_does_not_repeat_refutes_it():
    proof = SeedProof()
    odd = lambda server, question, seed: f"{question} {seed} {server == 'u'}"  # noqa: E731
    assert compared(odd, proof=proof) == (set(), 4)
    assert proof.refuted
    assert compared(lambda server, question, seed: f"{seed}", proof=proof) == (set(), 0)


def test_comparisons_are_few_and_leave_the_other_tests():
    proof = SeedProof()
    asked = [compared(lambda server, question, seed: "yes", proof=proof)[1] for _ in range(TESTS + 1)]
    assert asked == [SEVERAL] * TESTS + [0]
    assert holds(lambda number, server: f"{LENGTHY} {number}", proof=proof)[0] is True


@pytest.mark.parametrize("right", [0.5, 0.8])
def test_answers_without_seeds_are_seldom_taken_for_the_same_draws(right):
    """Seed 1; 1,000 comparisons. Three answers to each question are alike, so the chance is 3^-4 at most."""
    draw = random.Random(1)
    passed = [compared(lambda *asked: str(draw.random() < right))[0] for _ in range(1000)]
    assert sum(map(bool, passed)) <= 0.02 * 1000


@pytest.mark.parametrize("right", [0.5, 0.8])
def test_coins_without_seeds_pass_in_few_tests(right):
    """Seed 1; 400 tests; at most 2 % by the level, 4 % allowed (three standard errors)."""
    draw = random.Random(1)
    passed = sum(holds(lambda number, server: str(draw.random() < right))[0] for _ in range(400))
    assert passed <= 16


def test_the_chance_is_that_of_random_pairs():
    assert chance_of_pairs([("a", "a"), ("b", "b")]) == pytest.approx(1 / 3)
    assert chance_of_pairs([("a", "a"), ("a", "a"), ("b", "b")]) == pytest.approx(3 / 15)
