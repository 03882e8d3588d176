"""What is recorded of imports and exports, against the definition of a score."""

from statistics import fmean

import pytest
import recorded_courses as courses
from crossed_options import Case
from recorded_exports import EXPORTS
from recorded_imports import IMPORTS
from recorded_logs import WEIGHTS, Answer, answers_of, named_by

RECORDED = courses.recorded()


def cases(kind, options):
    """Return each case of a kind with its facts."""
    found = []
    for (of, written), facts in RECORDED.items():
        if of == kind:
            usual = {name: values[0] for name, values in options.items()}
            found.append(pytest.param(usual | courses.case_of(written), facts, id=written.replace(" ", "-")))
    return found


def scores_in(facts, name):
    """Return the scores in each fact of a name."""
    found = []
    for fact in facts:
        if fact.startswith(f"{name} "):
            parts = dict(part.split("=") for part in fact.split()[1:])
            found.append({key: float(value) for key, value in parts.items() if key not in COUNTS})
    return found


COUNTS = ("logs", "trials", "missing", "copies", "absent")


def worth_of(case: Case, one: Answer) -> float | None:
    """Return what an answer is worth as the options of a case say."""
    if one.worth is None:
        return None
    if case["scored"] == "again":
        return float(f" {one.target}." in one.text)
    if case["tool"] == "evalscope":
        return one.other
    if case["scores"] == "categories":
        return WEIGHTS[int(one.worth)]
    return float(one.worth >= 0.5) if case["scored"] == "right-from" else one.worth


@pytest.mark.parametrize(("case", "facts"), cases("imports", IMPORTS))
def test_an_imported_score_is_the_mean_of_the_answers(case, facts):
    cells: dict[str, dict[str, dict[int, list[float]]]] = {}
    for one in answers_of(case):
        worth = worth_of(case, one)
        if worth is not None:
            name = named_by(case, one.model)
            if case["named"] == "renamed" and one.model == "ash":
                name = "yew"
            place = one.place
            task = one.task
            if case["named"] == "one-task":
                task, place = "all", place + 100 * (one.task == "roots")
            cells.setdefault(name, {}).setdefault(task, {}).setdefault(place, []).append(worth)
    expected = {}
    for name, of_model in cells.items():
        means = [fmean(map(fmean, of_task.values())) for of_task in of_model.values()]
        expected[name] = fmean(means)
    for found in scores_in(facts, "written"):
        assert found == pytest.approx(expected, abs=2e-4), "scores that are numbers are kept in steps"


@pytest.mark.parametrize(("case", "facts"), cases("exports", EXPORTS))
def test_exported_weights_sum_to_the_score(case, facts):
    (scores,) = scores_in(facts, "scores")
    for weighed in scores_in(facts, "weighed"):
        assert weighed == pytest.approx(scores, abs=1e-8)
