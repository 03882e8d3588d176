"""Every schema is a partition of all attempts, whatever the signals and thresholds."""

import itertools

import numpy as np
import pytest

from scorio.categorical import Signals, Thresholds, get_schema, schema_names
from scorio.categorical.conditions import Scope

EACH_SCHEMA = pytest.mark.parametrize("name", schema_names())

# Every side of every cut: 0.5 and 0.6 are the tables' constants, thresholds lie on the other grids.
GRID = {
    "has_box": [0, 1], "is_correct": [0, 0.49, 0.5, 1], "token_ratio": [0.0, 0.2, 0.3, 0.4, 0.5],
    "repeated_pattern": [0, 1], "prompt_bpt": [0.0, 2.0, 3.0],
    "completion_bpt": [0.0, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0], "verifier_a": [0.0, 0.59, 0.6, 1.0],
    "verifier_b": [0.0, 0.3, 0.5, 1.0], "verifier_c": [0.0, 0.3, 0.49, 0.5, 1.0],
}  # fmt: skip
CUTS = ("tau_high", "tau_low_wrong", "corr_p33", "corr_p66")


def every_attempt(names):
    values = np.array(list(itertools.product(*(GRID[name] for name in names)))).T
    return Signals(**dict(zip(names, values, strict=True)))


def orders_of_thresholds(schema):
    """Yield thresholds of `schema` in every order that it accepts."""
    used = {rule.name for rule in schema.threshold_rules}
    seen = set()
    for places in itertools.product([1.0, 2.0, 3.0], repeat=len(CUTS)):
        for lower, upper in ((0.2, 0.4), (0.3, 0.3), (0.4, 0.2)):
            values = dict(zip(CUTS, places, strict=True))
            values |= {"tau_prompt": 2.0, "len_p33": lower, "len_p66": upper}
            thresholds = Thresholds({name: value for name, value in values.items() if name in used})
            swapped = any(
                {low, high} <= used and values[low] > values[high]
                for low, high in (("len_p33", "len_p66"), ("corr_p33", "corr_p66"))
            )
            if swapped:
                with pytest.raises(ValueError, match="must not exceed"):
                    thresholds.require(schema)
            elif thresholds not in seen:
                thresholds.require(schema)
                seen.add(thresholds)
                yield thresholds


@EACH_SCHEMA
def test_every_possible_attempt_has_exactly_one_category(name):
    schema = get_schema(name)
    signals = every_attempt(sorted(schema.signals | schema.optional_signals))
    seen = set()
    for thresholds in orders_of_thresholds(schema):
        assigned = schema.assign(signals, thresholds)
        seen |= set(assigned.tolist())
        scope = Scope(signals, thresholds)
        truths = [category.condition.truth(scope) for category in schema.categories]
        holds = np.array([np.broadcast_to(truth.holds, signals.shape) for truth in truths])
        assert all(np.all(truth.holds ^ truth.fails) for truth in truths)
        # Apart from invalid output exactly one condition holds, so that the order of categories is free.
        valid = ~holds[0]
        assert (holds[1:, valid].sum(axis=0) == 1).all()
        assert np.array_equal(assigned == 0, holds[0])
        assert np.array_equal(assigned[valid], holds[:, valid].argmax(axis=0))
    assert seen == set(range(len(schema.categories)))
