"""Ties: over what their error rate holds, and under which edition of the formulas a run ends."""

from dataclasses import replace

import numpy as np
import pytest
from session_scripts import calls, coin, drive, make_spec

from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import ReferenceSpec

EQUAL = coin((0.5,) * 4)


def run(spec, answer=EQUAL, **options):
    """Return a session that was driven to its end, and what it was told."""
    log = []
    return drive(Session(spec), answer, slots=4, log=log, **options), log


def steps(session, *verdicts):
    """Return at which step each pair was called, by any or by these verdicts."""
    return {call[0]: call[2] for call in calls(session) if not verdicts or call[1] in verdicts}


def test_ties_of_a_family_take_more_evidence():
    found = {}
    for ties in ("pair", "family"):
        session, _ = run(make_spec(4, equivalence=0.15, ties=ties))
        assert session.results().ties == ties
        found[ties] = steps(session, "tie")
    assert found["pair"].keys() == found["family"].keys() != set()
    assert all(found["family"][models] >= step for models, step in found["pair"].items())
    assert min(found["family"].values()) > min(found["pair"].values())


def test_ties_of_a_family_are_read_with_the_variance_of_their_level():
    """Of six pairs, each is called at 5 %/6: in a first pass the variance at the margin is larger there."""
    read = [
        run(make_spec(4, 200, equivalence=0.1, goal="budget", trials=240, ties=ties), coin((0.9,) * 4))[0]
        for ties in ("pair", "family")
    ]
    alone, together = (session.comparison.at_margin for session in read)
    assert (together >= alone).all()
    assert (together > 1.01 * alone).any()


def test_a_run_of_the_first_edition_resumes_to_its_own_ties():
    """Replayed, its answers lead to the decisions that it had; in the second edition ties fall earlier."""
    first = make_spec(3, equivalence=0.15, edition=1)
    whole, log = run(first)
    cut, part = run(first, most=sum(map(len, log)) // 2)
    resumed = Session(first)
    resumed.replay(part)
    assert calls(resumed) == calls(cut)
    drive(resumed, EQUAL, slots=4)
    assert calls(resumed) == calls(whole)
    second, _ = run(replace(first, stopping=replace(first.stopping, edition=2)))
    assert all(steps(second)[models] <= step for models, step in steps(whole).items())
    assert steps(second) != steps(whole)


def test_answers_beyond_an_earlier_tie_are_counted_and_harm_nothing():
    """A run of the first edition, replayed under the second: all its answers stay, its ties fall earlier."""
    whole, log = run(make_spec(3, equivalence=0.15, edition=1))
    again = Session(make_spec(3, equivalence=0.15))
    again.replay(log)
    assert again.stopped is not None
    assert again.results().trials == whole.results().trials
    assert steps(again).keys() == steps(whole).keys()


@pytest.mark.parametrize(("models", "stored", "seed"), [(2, (), 1), (1, (15, 15), 0)])
def test_a_run_of_the_third_edition_ties_earlier_in_rounds(models, stored, seed):
    """Its variance at the margin is the one estimated; the fourth edition's is larger."""
    spec = make_spec(models, equivalence=0.1, rounds="rounds")
    if stored:
        spec = replace(spec, references=(ReferenceSpec("old", {"t": np.tile(stored, (30, 1))}),))
    answer = coin((0.5, 0.5), seed=seed)
    third, fourth = (in_edition(edition, spec, answer) for edition in (3, 4))
    assert third.keys() == fourth.keys() != set()
    assert all(third[models] < step for models, step in fourth.items())


def in_edition(edition, spec, answer=EQUAL):
    """Return the steps of the ties that a run has in an edition, and has again when it is replayed."""
    spec = replace(spec, stopping=replace(spec.stopping, edition=edition))
    whole, log = run(spec, answer)
    again = Session(spec)
    again.replay(log)
    assert calls(again) == calls(whole)
    return steps(whole, "tie")


def test_a_run_of_the_fourth_edition_ties_later_where_answers_hardly_vary():
    """The fifth takes both models' repeats together, the sixth as they are; 3 % of the trials slip."""
    first = np.arange(800) % 2 == 0
    solved = (first, np.where(np.arange(800) % 14 < 2, ~first, first))

    def answer(request):
        model, question = int(request.key.model[1:]), int(request.question[1:])
        slip = np.random.default_rng((2, model, request.key.index)).random() < 0.03
        return int(solved[model][question] != slip)

    fourth, fifth, sixth = (
        in_edition(edition, make_spec(2, 800, equivalence=0.04), answer)["m0", "m1"] for edition in (4, 5, 6)
    )
    assert sixth < fifth < 0.97 * fourth


def test_ties_of_a_family_take_a_larger_variance_at_the_margin():
    """A likelihood ratio of estimated spreads errs too often at small levels: 28 pairs of equal models."""
    pair, family = (
        run(make_spec(8, 60, equivalence=0.05, max_passes=1, ties=ties), coin([0.9] * 8))[0].comparison
        for ties in ("pair", "family")
    )
    assert (family.at_margin > 1.02 * pair.at_margin).all()


def test_a_top_set_has_the_level_of_the_pairs_across_its_cut():
    """With 6 models and a set of 2: 8 pairs of 15, however many are called."""
    spec = make_spec(6, goal="top-k", k=2, max_passes=40, family="top-set")
    session, _ = run(spec, coin([0.1 + 0.15 * model for model in range(6)]))
    won = [one for one in session.decisions if one.kind == "pair"]
    assert len(won) >= 4
    assert [one.evidence["threshold"] for one in won] == pytest.approx([np.log(8 / 0.05)] * len(won))
    assert session.stopped.reason == "resolved"
