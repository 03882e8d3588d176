"""Servers honour seeds if two answers to one seed are equal and two seeds differ, beyond chance."""

import asyncio
import random

import pytest

from adaptive_eval.engine.seed_proof import LONG, Repeat, SeedProof, chance_of_pairs

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


@pytest.mark.parametrize("right", [0.5, 0.8])
def test_coins_without_seeds_pass_in_few_tests(right):
    """Seed 1; 400 tests; at most 2 % by the level, 4 % allowed (three standard errors)."""
    draw = random.Random(1)
    passed = sum(holds(lambda number, server: str(draw.random() < right))[0] for _ in range(400))
    assert passed <= 16


def test_the_chance_is_that_of_random_pairs():
    assert chance_of_pairs([("a", "a"), ("b", "b")]) == pytest.approx(1 / 3)
    assert chance_of_pairs([("a", "a"), ("a", "a"), ("b", "b")]) == pytest.approx(3 / 15)
