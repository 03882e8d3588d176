"""Two versions of a program that answers questions, compared in a test."""

import pytest

import adaptive_eval


def production(prompt: str) -> str:  # the program that is in use; it may ask a model
    return str(sum(int(word) for word in prompt.split() if word.isdigit()))


def candidate(prompt: str) -> str:  # the one that shall replace it
    first, _, second = prompt.partition(" plus ")
    return str(int(first) + int(second))


@pytest.fixture(scope="session")
def comparison() -> adaptive_eval.Evaluation:
    rows = [{"id": f"q{n}", "input": f"{n} plus {n + 3}", "target": str(2 * n + 3)} for n in range(40)]
    models = {"candidate": candidate, "production": production}
    goal = {"kind": "not-worse", "model": "production", "margin": 0.05}
    return adaptive_eval.evaluate(models, rows, goal, scorer="numeric", deterministic=list(models))


def test_the_candidate_is_not_worse(comparison: adaptive_eval.Evaluation) -> None:
    adaptive_eval.assert_not_worse(comparison, "candidate", than="production")


def test_the_candidate_is_good_enough(comparison: adaptive_eval.Evaluation) -> None:
    adaptive_eval.assert_at_least(comparison, "candidate", 0.8)
