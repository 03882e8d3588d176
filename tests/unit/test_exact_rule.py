"""The rule ``exact`` against its definition, summed pass by pass with plain Python numbers."""

from math import exp, log

import numpy as np
import pytest

from scorio.sequential.cells import DROPPED, KNOWN, MISSING, Cells, unit_scores
from scorio.sequential.exact import ExactReader, log_exact_evidence
from scorio.sequential.trial_sequence import TrialSequence

RATES = [0.6 * 1.5**-j for j in range(14)]


def evidence(total, spread):
    """Return the log e-value as it is written in the module."""
    terms = [
        exp(sign * rate * total - (-log(1 - rate) - rate) * spread) for rate in RATES for sign in (1, -1)
    ]
    return log(sum(terms) / len(terms))


@pytest.mark.parametrize("total", [0.0, 3.0, -5.0, 5.0, 20.0, -60.0])
@pytest.mark.parametrize("spread", [0.0, 5.0, 30.0])
def test_the_evidence_is_the_mean_over_rates_and_signs(total, spread):
    assert float(log_exact_evidence(total, spread)) == pytest.approx(evidence(total, spread), abs=1e-12)


@pytest.mark.parametrize("weights", [[0, 1], [0, 0.25, 1]])
@pytest.mark.parametrize("missing", [(), ((0, 12), (1, 33)), ((1, 0), (1, 30))])
@pytest.mark.parametrize("mark", [MISSING, KNOWN, DROPPED])
def test_passes_are_summed_as_defined(weights, missing, mark):
    rng, questions, passes = np.random.default_rng(7), 10, 6
    sequence = TrialSequence(np.arange(questions))
    steps = int(np.flatnonzero(sequence.complete(0, 200))[passes - 1]) + 1
    said = rng.integers(0, len(weights), (2, steps))
    for model, step in missing:
        said[model, step] = mark
    cells = Cells(sequence, unit_scores(weights), 2)
    cells.absorb(np.array([0, 1]), said)
    reader = ExactReader(cells, [0], [1])
    found = np.concatenate(
        [reader.read(np.array([0]), at, min(at + 17, steps))[0][0] for at in range(0, steps, 17)]
    )

    asked, repeat = sequence.question(0, steps).tolist(), sequence.repeats(0, steps).tolist()
    total = spread = 0.0
    past: dict[int, list[float]] = {question: [] for question in range(questions)}
    for number in range(passes):
        at = [step for step in range(steps) if repeat[step] == number]
        whole = all(said[model, step] >= 0 for step in at for model in (0, 1))
        for step in at:
            before = past[asked[step]]
            expected = sum(before) / len(before) if before else 0.0
            half = 0.5 * (weights[max(said[0, step], 0)] - weights[max(said[1, step], 0)])
            if whole:
                total, spread = total + half, spread + (half - expected) ** 2
            before.append(half if whole else expected)
        end = max(at)
        assert found[end] == pytest.approx(evidence(total, spread), abs=1e-12)
    assert np.isfinite(found).sum() == passes
