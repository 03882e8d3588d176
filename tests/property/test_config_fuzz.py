"""Whatever is in a config file: a RunConfig, or a ConfigError in plain words. Never anything else."""

import copy
import json
import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from adaptive_eval.config import RunConfig, parse_config
from adaptive_eval.config.document import read_document, write_document
from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.errors import ConfigError

GOOD = json.loads((Path(__file__).parents[1] / "data" / "fuzzed_config.json").read_text("utf-8"))

JARGON = re.compile(
    r"Input should|pydantic|[Tt]uple|\bdict\b|[Vv]alue error|validation|NoneType|extra_forbidden|\bloc\b"
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 10**6),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(
        ["auto", "mimic", "http://x/v1", "ranking", "top-k", "binary", "a", "2k", "{input}", "sk-abcdefgh"]
    ),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abcikndmoel_", max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(data, path=()):
    yield path
    children = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, child in children:
        yield from places(child, (*path, key))


PLACES = [path for path in places(GOOD) if path]


def put(data, path, value):
    for part in path[:-1]:
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return
    try:
        data[path[-1]] = value
    except (IndexError, TypeError):
        return


def outcome(text):
    try:
        result = parse_config(text)
    except ConfigError as error:
        result = error
    problems = result.problems if isinstance(result, ConfigError) else ()
    assert isinstance(result, RunConfig) or problems
    for problem in problems:
        assert problem.message
        assert not JARGON.search(problem.message), problem
        assert len(str(problem)) < 1000
    return result


@given(st.lists(st.tuples(st.sampled_from(PLACES), VALUES), min_size=1, max_size=4))
def test_any_value_anywhere_gives_a_config_or_plain_words(changes):
    data = copy.deepcopy(GOOD)
    for path, value in changes:
        put(data, path, value)
    result = outcome(write_document(data))
    if isinstance(result, RunConfig):
        assert parse_config(result.text).hash() == result.hash()


@given(st.sampled_from(["of", "system", "temperature", "extra_body", "x"]), VALUES)
def test_any_grid_of_variants_gives_a_config_or_plain_words(key, value):
    grid = {"of": "b", "top_p": [0.5, 0.9], key: value}
    outcome(write_document({**GOOD, "models": [*GOOD["models"], {"variants": grid}]}))


@given(st.sampled_from(PLACES), st.text("abcdefgh", min_size=1, max_size=6))
def test_an_unknown_key_anywhere_is_refused_by_name(path, key):
    data = copy.deepcopy(GOOD)
    target = data
    for part in path:
        target = target[part]
    free_form = (
        "extra_body" in path or "headers" in path or path[-1] == "fields" or path[-2:] == ("mimic", "models")
    )
    if not isinstance(target, dict) or free_form:
        return
    target[f"x_{key}"] = 1
    error = outcome(write_document(data))
    assert isinstance(error, ConfigError)
    assert [f"x_{key}: unknown key" in str(problem) for problem in error.problems] == [True]


@given(st.sampled_from(PLACES))
def test_a_removed_setting_gives_its_default_or_is_missed(path):
    data = copy.deepcopy(GOOD)
    target = data
    for part in path[:-1]:
        target = target[part]
    del target[path[-1]]
    outcome(write_document(data))


@given(st.text(max_size=200) | st.text("ab:-[]{}&*!|>'\"#%@,? \n\t", max_size=60))
def test_any_text_is_read_or_refused(text):
    outcome(text)


DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=4).map(tuple) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=6), DATA, min_size=1, max_size=4))
def test_what_is_written_is_read_back(data):
    document = read_document(write_document(data))
    assert document.problems == ()
    assert document.data == data


@given(st.integers(0, 6))
def test_data_and_text_give_the_same_config(seed):
    data = {**GOOD, "seed": seed}
    assert config_from_data(data).hash() == parse_config(write_document(data)).hash()
