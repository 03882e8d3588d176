"""A course that is interrupted, with answers in flight, is made again as it was and ends as it would have.

Some of the recorded courses are cut at several places; nothing is recorded of that.
"""

from collections import Counter

import pytest
import recorded_courses as courses
from crossed_options import case_of
from test_course_relations import Seen, difference

from adaptive_eval.core.budget import PICODOLLARS

CASES = [case_of(written) for kind, written in courses.recorded() if kind == "courses"]
LOOKED_AT = (9, 34, 61, 103, 160)
"""Numbers of told answers after which a course is held against one that is made from its log."""
CUT = tuple(range(7, 300, 7))
"""Numbers of outcomes after which a course is interrupted; answers in flight are lost."""
ALONE = {
    "family": "pair", "ties": "pair", "budget": "none", "dropped": "none", "resumed": "no", "failed": "none",
    "delivery": "shuffled",
}  # fmt: skip
"""Settings under which a pair is decided by its own answers alone, and the run ends no earlier."""


def written(case):
    every = {name: case.get(name, values[0]) for name, values in courses.COURSES.items()}
    return courses.plain(every, courses.COURSES).replace(" ", "-")


class Cut(courses.Course):
    """A course with which something is done at some places, while answers are in flight."""

    def __init__(self, case, places, do):
        super().__init__(case)
        self.do = do
        self.places = list(places)

    def ready(self, turn):
        if self.places and self.told >= self.places[0]:
            del self.places[0]
            self.do(self)
        return super().ready(turn)


def compare(course):
    """Hold the session that is made from the log of a course against its own."""
    session = course.session
    lost = course.failed + Counter({one.key: 1 + one.key.index % 3 for one in course.flying})
    made = courses.again(session, course.log, lost, 7)
    names = {name: name for name in session.spec.names}
    assert not difference(Seen(session, names).found, Seen(made, names).found)
    for one in (session, made):
        told = Counter(each.key.model for each in course.log if hasattr(each, "key"))
        for place, name in enumerate(session.spec.names[: len(session.spec.models)]):
            states = one.states
            begun = told[name] + states.in_flight[place] + len(states.gaps[place]) + states.skipped[place]
            assert states.issued[place] == begun, name
    compare_budgets(session, made, presumed(course, lost))
    compare_requests(course, made)


def presumed(course, lost):
    """Return by owner and quantity what requests without an answer count, each as often as it was made."""
    live, found = course.session.budget, Counter()
    spec, asked = live.spec, {one.key: one for one in course.asked}
    for key, times in lost.items():
        model, task = spec.names.index(key.model), list(course.tasks).index(asked[key].task)
        worst = live.worst_case(model, task, spec.tasks[task].questions.index(asked[key].question))
        prompt, completion, usd = worst.prompt, worst.completion, worst.usd
        if spec.usage_on_failure != "presume":
            prompt *= spec.usage_on_failure == "prompt-only"
            completion, usd = 0, spec.models[model].price.most(prompt, 0)
        amounts = {"prompt_tokens": prompt, "completion_tokens": completion, "usd": usd / PICODOLLARS}
        for owner in ("", key.model, asked[key].task):
            for name, amount in {**amounts, "tokens": prompt + completion}.items():
                found[owner, name] += times * amount
    return found


def compare_budgets(session, made, lost):
    """What was in flight counts as billed, as all that failed does, up to what a budget has room for."""
    lines = list(zip(session.budget.lines(), made.budget.lines(), strict=True))
    for line, other in lines:
        assert (line.name, line.owner, line.limit, 0.0) == (
            other.name, other.owner, other.limit, other.reserved,
        )  # fmt: skip
        assert other.spent - other.presumed == pytest.approx(line.spent - line.presumed)
        whole = [
            one.limit is None or one.spent - one.presumed + lost[one.owner, one.name] <= one.limit
            for one, _ in lines
            if one.owner == other.owner
        ]
        if all(whole):
            assert other.presumed == pytest.approx(lost[other.owner, other.name]), other
        else:
            assert other.limit is None or other.spent <= other.limit


def compare_requests(course, made):
    """No answer is asked for twice; each trial again as it was, those first that others have overtaken."""
    told = {one.key for one in course.log if hasattr(one, "key")}
    known = {one.key: one for one in course.asked}
    new = made.ask(10 * course.slots)
    assert not {one.key for one in new} & told
    assert all(known.get(one.key, one) == one for one in new)
    overtaken = {
        key
        for key in known.keys() - told
        if max((one.index for one in told if one.model == key.model), default=-1) > key.index
        and made.board.model(key.model) not in made.states.stopped
    }
    if not made.board.determinism.claimed and made.stopped is None and not course.session.spec.budget.limited:
        assert {one.key for one in new[: len(overtaken)]} == overtaken


def ends(course):
    """Return the calls of a course by pair, without their places in the log, and how it has ended."""
    session = course.session
    pairs = [one for one in session.decisions if one.kind == "pair"]
    calls = {(*one.models, one.evidence["kind"]): (one.verdict, one.step, one.evidence) for one in pairs}
    reason, trials = session.stopped.reason, 0
    if reason == "max_passes" and not session.board.determinism.claimed:
        trials = session.budget.completed
    return calls, (reason, trials)


@pytest.mark.parametrize("case", CASES[::7], ids=written)
def test_what_is_made_from_the_log_is_what_was_there(case):
    course = Cut(case, LOOKED_AT, compare)
    course.go()
    assert len(course.places) < len(LOOKED_AT)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES[19:100:12], ids=written)
def test_a_course_ends_as_it_would_have_without_interruptions(case):
    case = {**case, **ALONE, "passes": "six" if case.get("questions") == "rounds" else "three"}
    whole, cut = Cut(case, (), compare), Cut(case, CUT, lambda course: course.resume(course.session.spec))
    whole.go()
    cut.go()
    assert len(cut.places) < len(CUT)
    (expected, why), (found, reason) = ends(whole), ends(cut)
    if why[0] == "interrupted":  # the course was not to be longer: some calls are made by one of the two
        both = expected.keys() & found.keys()
        expected, found = ({pair: calls[pair] for pair in both} for calls in (expected, found))
    assert (found, reason) == (expected, why)
