"""Claims on a run's results: which way round a pair stands, both ends of an interval, several at once."""

from dataclasses import replace

import pytest
import run_examples as runs
from click.testing import CliRunner
from session_scripts import coin, drive, make_spec

from adaptive_eval.cli.main import cli
from adaptive_eval.core.session import Session
from adaptive_eval.run.claims import at_least, not_worse


@pytest.fixture(scope="module")
def results():
    found = drive(Session(make_spec(2, 60, equivalence=0.05)), coin([0.5, 0.75])).results()
    (pair,) = found.pairs
    pair = replace(pair, difference=-0.2, low=-0.3, high=-0.1)
    lines = [
        replace(line, low=low, high=low + 0.2) for line, low in zip(found.models, (0.4, 0.6), strict=True)
    ]
    return replace(found, pairs=(pair,), models=tuple(lines))


@pytest.mark.parametrize(
    ("model", "than", "margin", "holds"),
    [
        ("m1", "m0", 0.0, True),
        ("m0", "m1", 0.0, False),
        ("m0", "m1", 0.05, False),
        ("m0", "m1", 0.2, None),
        ("m0", "m1", 0.3, True),
    ],
)
def test_a_pair_is_read_the_way_round_that_is_asked(results, model, than, margin, holds):
    assert not_worse(results, model, than, margin).holds is holds
    assert not_worse(replace(results, scale=(1.0, 10.0)), "m0", "m1", 2.0).holds


@pytest.mark.parametrize(("value", "holds"), [(0.4, True), (0.5, None), (0.6, None), (0.61, False)])
def test_a_score_holds_where_all_of_its_interval_does(results, value, holds):
    assert at_least(results, "m0", value).holds is holds


def test_a_verdict_against_a_number_bounds_the_score():
    """The bet calls earlier than the interval of the score would."""
    spec = make_spec(1, 60, goal="threshold", value=0.5, max_passes=4)
    session = drive(Session(spec), coin([0.7]))
    (line,), (pair,) = session.results().models, session.results().pairs
    assert (pair.verdict, line.low) == ("better", 0.5)
    assert at_least(session.results(), "m0", 0.5).holds


@pytest.mark.parametrize(
    ("claims", "code"),
    [
        (["oak:0.3"], 0),
        (["oak:0.3", "yew:0.99"], 5),
        (["yew:0.99", "oak:0.3"], 5),
        (["oak:0.3", "close"], 3),
        (["close", "yew:0.99"], 5),
    ],
)
def test_of_several_claims_the_worst_gives_the_exit_code(tmp_path, claims, code):
    session = runs.make_run(tmp_path / "run")
    score = next(line.score for line in session.results().models if line.model == "elm")
    texts = [f"elm:{score}" if claim == "close" else claim for claim in claims]
    arguments = [part for text in texts for part in ("--at-least", text)]
    done = CliRunner().invoke(cli, ["check", str(tmp_path / "run"), *arguments], standalone_mode=False)
    assert done.return_value == code, done.output
