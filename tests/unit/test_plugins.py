"""Rules and policies of packages: what they hand back is checked before it decides anything."""

from importlib.metadata import EntryPoint

import numpy as np
import pytest
from session_scripts import calls, coin, drive, make_spec

from adaptive_eval.core import plugins
from adaptive_eval.core.session import Session
from adaptive_eval.errors import SessionError, UsageError
from adaptive_eval.options import decisions
from adaptive_eval.views.sentences import explain, promises
from scorio.sequential.rules import Anytime


class Own(Anytime):
    """A rule whose statistic and ties a test can spoil."""

    promise = "as anytime."
    spoil_statistic = staticmethod(lambda found: found)
    spoil_tie = staticmethod(lambda found: found)

    def statistic(self, block, complete):
        return self.spoil_statistic(super().statistic(block, complete))

    def tied(self, block):
        return self.spoil_tie(super().tied(block))


class OwnThreshold(Own):
    fixed_threshold = 4.0


class Idle:
    def choose(self, view, free):
        return iter(())


class Elsewhere:
    def choose(self, view, free):
        return iter([7])


@pytest.fixture
def offer(monkeypatch):
    """Return a function that lets a package offer names of this module."""

    def add(group, **names):
        points = [EntryPoint(name, f"{__name__}:{target}", group) for name, target in names.items()]
        for module in (plugins, decisions):
            monkeypatch.setattr(module, "entry_points", lambda group: [p for p in points if p.group == group])

    return add


def run(**parts):
    settings = {"equivalence": 0.15, "max_passes": 60} | parts
    return drive(Session(make_spec(3, 30, **settings)), coin((0.9, 0.5, 0.45)))


def test_a_packages_rule_decides_like_ours(offer):
    offer(decisions.RULE_GROUP, own="Own")
    session = run(rule="own")
    assert [call[:3] for call in calls(session)] == [call[:3] for call in calls(run())]
    assert "says of itself: as anytime." in explain(session.results(), "m0", "m1")
    assert session.forecast() is None


@pytest.mark.parametrize(
    ("name", "words", "spoil"),
    [
        ("statistic", "return a number for each of", lambda found: found * np.nan),
        ("statistic", "return a number for each of", lambda found: found[:, :0]),
        ("statistic", "return a number for each of", lambda found: np.where(found > 0, np.nan, found)),
        ("tie", "say of each of", lambda found: found[:1, :1]),
        ("tie", "say of each of", lambda found: found.astype(float)),
    ],
)
def test_no_verdict_comes_from_what_is_no_number_or_truth_value(offer, monkeypatch, name, words, spoil):
    offer(decisions.RULE_GROUP, own="Own")
    monkeypatch.setattr(Own, f"spoil_{name}", staticmethod(spoil))
    with pytest.raises(SessionError, match=f"rule 'own' must {words}"):
        run(rule="own")


def test_a_rule_with_a_threshold_of_its_own_claims_no_family(offer):
    offer(decisions.RULE_GROUP, own="OwnThreshold")
    results = run(rule="own").results()
    said = promises(results)
    assert not any("All pairs together" in text for text in said.holds)
    assert "the family does not apply" in said.limits[0]
    assert results.pairs[0].threshold == 4.0


def test_what_is_no_rule_is_refused(offer):
    offer(decisions.RULE_GROUP, own="dict_of_nothing")
    with pytest.raises(UsageError, match="rule 'own' of an unnamed package lacks promise, warning, level"):
        run(rule="own")


def dict_of_nothing(alpha, equivalence):
    return {}


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("Elsewhere", SessionError, "policy 'own' chose model 7, which has no free slot"),
        ("Idle", SessionError, "policy 'own' asks for nothing although nothing is in flight"),
        ("NoSuchPolicy", UsageError, "cannot be loaded"),
    ],
)
def test_what_no_policy_does_is_refused(offer, name, error, words):
    offer(decisions.POLICY_GROUP, own=name)
    with pytest.raises(error, match=words):
        run(policy="own")
