"""Questions asked several times in a row: the rules keep their promises on such a trial sequence too."""

from dataclasses import dataclass, replace

import pytest
from many_pairs import PairSetting, least, most

from adaptive_eval.core.spec import SessionSpec

pytestmark = pytest.mark.slow

ALPHA = 0.05


@dataclass(frozen=True)
class InARow(PairSetting):
    """Pairs whose questions are repeated `samples_per_prompt` times in a row after the first pass."""

    samples_per_prompt: int = 4

    def spec(self, **stopping: object) -> SessionSpec:
        return replace(super().spec(**stopping), samples_per_prompt=self.samples_per_prompt)


@pytest.mark.parametrize(
    "setting",
    [
        InARow(30, 57, 0.4),
        InARow(30, 57, 0.95, shape=0.5, samples_per_prompt=8),
        InARow(127, 13, 0.05, shape=0.5),
        InARow(500, 5, 0.6),
        InARow(30, 33, 0.3, samples_per_prompt=16),
    ],
    ids=str,
)
def test_equal_models_are_called_different_in_at_most_five_per_cent(setting):
    result = setting.decide(seed=21)
    assert result.wrong_calls.total == setting.pairs
    assert result.wrong_calls.count <= most(setting.pairs, ALPHA)


def test_models_a_margin_apart_are_called_tied_in_at_most_five_per_cent():
    setting = InARow(30, 81, 0.5, gap=0.1)
    result = setting.decide(seed=22, equivalence=0.1)
    assert result.wrong_ties.count <= most(setting.pairs, ALPHA)


def test_real_gaps_are_found_and_their_sign_is_right():
    result = InARow(30, 61, 0.4, gap=0.2).decide(seed=23)
    assert (result.verdict == 1).sum() >= least(400, 0.99)
    assert result.wrong.sum() <= most(400, 0.01)
