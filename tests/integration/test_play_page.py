"""The page to play with, in Chromium: its rule is the Python rule. Pages of the site that is built, too."""

from pathlib import Path

import numpy as np
import pytest
from chromium import hosted, objections

from scorio.sequential.boards import Board
from scorio.sequential.evidence import confidence_radius
from scorio.sequential.rules import Anytime
from scorio.sequential.trial_sequence import TrialSequence

FOLDER = Path(__file__).parents[2] / "docs" / "play"
SITE = Path(__file__).parents[2] / "build" / "site"
RUN_RULE = """async ({ questions, alpha, margin, a, b }) => {
  const { Comparison, positions, radius } = await import("./rule.js");
  const pair = new Comparison({ questions, alpha, margin }), order = positions(questions), asked = [];
  const rows = a.map((answer, step) => {
    asked.push(order.next().value);
    const { difference, logE, guarded } = pair.add(asked.at(-1), answer, b[step]);
    return [difference, logE, radius(guarded, alpha, margin)];
  });
  return { asked, rows, verdict: pair.verdict ?? "open", at: pair.at };
}"""


@pytest.fixture(scope="module")
def page(browser):
    with hosted(FOLDER) as address:
        tab = browser.new_page(viewport={"width": 390, "height": 900})
        tab.goto(f"{address}index.html")
        yield tab


def by_python(questions, steps, margin, score_a, score_b, spread):
    """Return answers to these questions, and what the Python rule makes of them."""
    rng, sequence = np.random.default_rng(5), TrialSequence(np.arange(questions))
    asked = sequence.question(0, steps)
    chance = [
        rng.beta(p * spread, (1 - p) * spread, questions) if 0 < p < 1 else np.full(questions, p)
        for p in (score_a, score_b)
    ]
    answers = np.stack([rng.random(steps) < one[asked] for one in chance]).astype(int)
    board = Board.of_pairs(sequence, 2, Anytime(0.05, margin))
    board.answers.extend(answers)
    board.answers.absorb()
    course = board.courses.read(np.arange(1), 0, steps)
    won = course.statistic[0] >= np.log(20.0)
    called = np.flatnonzero(won | (course.tie[0] >= np.log(20.0)))
    verdict, at = "open", None
    if called.size:
        at = int(called[0]) + 1
        winner = "first" if course.difference[0, at - 1] > 0 else "second"
        verdict = winner if won[at - 1] else "tie"
    rows = np.stack(
        [
            course.difference[0],
            course.statistic[0],
            confidence_radius(course.guarded, 0.05, margin)[0],
        ],
        axis=1,
    )
    return answers, asked, rows, verdict, at


@pytest.mark.parametrize(
    ("case", "verdict"),
    [
        ((30, 600, None, 0.7, 0.5, 1), "first"),
        ((30, 900, 0.05, 0.7, 0.7, 1), "tie"),
        ((40, 400, 0.1, 1, 1, 1), "tie"),
        ((150, 700, 0.03, 0.9, 0.9, 0.3), "second"),
        ((200, 300, None, 0, 1, 1), "second"),
        ((300, 900, 0.08, 0.95, 0.95, 50), "tie"),
        ((150, 200, 0.03, 0.9, 0.9, 3), "open"),
    ],
    ids=str,
)
def test_its_rule_is_the_python_rule(page, case, verdict):
    answers, asked, rows, *called = by_python(*case)
    a, b = answers.tolist()
    wish = {"questions": case[0], "alpha": 0.05, "margin": case[2], "a": a, "b": b}
    found = page.evaluate(RUN_RULE, wish)
    assert found["asked"] == asked.tolist()
    np.testing.assert_allclose(found["rows"][9:], rows[9:], rtol=0, atol=1e-8)
    assert [found["verdict"], found["at"]] == called
    assert called[0] == verdict


def test_equal_models_are_called_different_by_the_usual_rule_and_hardly_by_ours(page):
    # The page draws from fixed seeds, so that these shares are always the same.
    page.click("#repeat")
    page.wait_for_selector("#counts tr")
    ours, usual = (
        [float(cell) for cell in row.split("\t")[1:3]] for row in page.inner_text("#counts").split("\n")
    )
    assert sum(ours) <= 5.0
    assert sum(usual) >= 30.0


def test_it_fits_screens_and_is_accessible(page):
    assert objections(page) == []


def test_what_is_wished_is_drawn(page):
    page.fill("[name=a]", "1")
    page.fill("[name=b]", "0")
    assert "Our rule: “A is better”" in page.inner_text("#said")
    page.fill("#shown", "9")
    assert "Our rule: no verdict" in page.inner_text("#said")


@pytest.mark.slow
@pytest.mark.skipif(not (SITE / "index.html").exists(), reason="no documentation site here: ./scripts/site")
@pytest.mark.parametrize("name", ["index", "getting-started", "cli-reference"])
def test_pages_of_the_site_fit_screens_and_are_accessible(browser, name):
    with hosted(SITE) as address:
        page = browser.new_page(reduced_motion="reduce")
        page.goto(f"{address}{name}.html")
        assert "\\|" not in page.inner_text("main")
        assert objections(page) == []
