"""Whole courses are those that are recorded: all options that decide, crossed in pairs.

``tests/data/recorded_courses.txt`` holds the cases, each with what was asked, decided and shown, and
``recorded_statistics.txt`` those of functions of ``scorio``, each with what it says, ``recorded_views.txt``
what each view shows, ``recorded_imports.txt`` what is made of other tools' logs, ``recorded_configs.txt``
what configs, datasets and plans lead to. No change touches them but one that is to change decisions or
figures: see CONTRIBUTING.
"""

from itertools import combinations

import pytest
import recorded_courses as courses
from crossed_options import pairs_of

RECORDED = courses.recorded()


@pytest.mark.parametrize(("kind", "written"), RECORDED, ids=lambda one: one.replace(" ", "-"))
def test_a_course_is_the_recorded_one(kind, written):
    facts_of = courses.KINDS[kind][2]
    found = facts_of(courses.case_of(written))
    assert not courses.first_difference(RECORDED[kind, written], found)


@pytest.mark.parametrize("kind", courses.KINDS)
def test_each_two_values_of_options_meet(kind):
    options, refused, _ = courses.KINDS[kind]
    met = {frozenset([(first, values[0]) for first, values in options.items()])}
    for of, written in RECORDED:
        if of == kind:
            case = {name: values[0] for name, values in options.items()} | courses.case_of(written)
            met |= set(map(frozenset, combinations(case.items(), 2)))
    never = pairs_of(refused)
    for first, second in combinations(options, 2):
        for one in options[first]:
            for other in options[second]:
                pair = frozenset({(first, one), (second, other)})
                assert (pair in met) != (pair in never), pair
