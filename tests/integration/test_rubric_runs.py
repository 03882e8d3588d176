"""Rubrics from the config to the stored category: thresholds, own schemas, several over one run."""

import json

import pytest
from command_line import command, finished, mimic_config, report, run_config, trials

from adaptive_eval.store.reader import RunReader
from scorio.categorical import Signals, Thresholds, get_schema


def scores(run):
    return [record.score for record in trials(run) if record.score is not None]


def frozen(run):
    with RunReader(run) as reader:
        return json.loads(reader.meta()["thresholds"])


def check_categories(run):
    """Check that all answers have the categories that follow from the frozen thresholds."""
    values = {name: entry["value"] for name, entry in frozen(run)["arithmetic"].items()}
    signals = Signals.from_records([score.signals for score in scores(run)])
    expected = get_schema("concision-high-conf").assign(signals, values).tolist()
    assert [score.category for score in scores(run)] == expected


@pytest.fixture(scope="module")
def earlier(tmp_path_factory):
    """Return a finished run whose answers give the thresholds of the next one."""
    settings = mimic_config(goal="budget", budget={"trials": 160})
    return finished(tmp_path_factory.mktemp("earlier"), settings, code=0)


@pytest.fixture(scope="module")
def concise(tmp_path_factory, earlier):
    rubric = {"schema": "concision-high-conf", "thresholds_from": str(earlier)}
    return finished(tmp_path_factory.mktemp("concise"), mimic_config({"rubric": rubric}), code=0)


def test_thresholds_are_quantiles_of_the_earlier_answers_alone(earlier, concise):
    assert set(frozen(concise)["arithmetic"]) == {"tau_high", "len_p33", "len_p66"}
    check_categories(concise)
    assert len({score.category for score in scores(concise)}) >= 5
    signals = Signals.from_records([score.signals for score in scores(earlier)])
    observed = Thresholds.observed(signals, get_schema("concision-high-conf"))
    assert observed.to_dict() == frozen(concise)["arithmetic"]


def test_a_resumed_run_keeps_its_thresholds(concise):
    before = frozen(concise)
    command("run", concise, "-o", "stopping.confidence=0.99", "--display", "none", code=0)
    assert frozen(concise) == before
    check_categories(concise)


# Several rubrics over one run: one steers, all rank; their ranks in every form of the report.


TRACKED = [
    "exact-match",
    {"schema": "concision-high-conf"},
    {"schema": "strict-compliance", "weights": [0, 0, 1]},
]
MODELS = {"sage": {"mean": 0.9}, "scholar": {"mean": 0.6}, "novice": {"mean": 0.3}}


def config_of(track=TRACKED, **task):
    settings = {"rubric": "format-aware", "track": track, "limit": 10, **task}
    return mimic_config(settings, MODELS, goal="budget", budget={"trials": 90})


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return finished(tmp_path_factory.mktemp("tracked"), config_of(), code=0)


def rankings(run):
    return report(run)["rankings"]


def test_the_report_ranks_by_every_rubric_and_the_run_was_decided_by_one(run):
    found = {one["name"]: one for one in rankings(run)}
    assert list(found) == ["as run", "exact-match", "concision-high-conf", "strict-compliance"]
    assert {one["trials"] for one in found.values()} == {90}
    for one in found.values():
        assert [model["model"] for model in one["models"]] == ["sage", "scholar", "novice"]
    assert found["exact-match"]["kendall_tau_b"] == 1.0
    with RunReader(run) as reader:
        steering = {record.score.category for record in reader.trials()}
        assert max(steering) == 4  # of format-aware
        assert [record.name for record in reader.scorings()] == list(found)[1:]
        assert len(list(reader.rescored(0))) == 90
    again = command("rescore", run, "--rubric", "exact-match", "--dry-run", "--json")
    (_, exact) = json.loads(again.out)
    scores = [[model["score"] for model in one["models"]] for one in (exact, found["exact-match"])]
    assert scores[0] == scores[1]
    assert found["as run"]["models"][0]["score"] > 1.0 >= scores[0][0]
    text, page = (run / "report.md").read_text(), (run / "report.html").read_text()
    assert "## Ranks by rubric or check" in text
    assert "Kendall τ" in text
    assert '<h2 id="rankings"><bdi>Ranks by rubric or check</bdi></h2>' in page


@pytest.mark.slow
def test_a_run_that_goes_on_ranks_again_and_one_that_does_not_stores_nothing_new(tmp_path):
    out, _ = run_config(tmp_path, config_of(track=["exact-match"]))
    assert command("run", out, "--display", "none").code == 0
    with RunReader(out) as reader:
        assert len(reader.scorings()) == 1
    command("run", out, "-o", "budget.trials=120", "--display", "none", code=0)
    assert {one["trials"] for one in rankings(out)} == {120}
    with RunReader(out) as reader:
        assert len(reader.scorings()) == 2


def test_a_rubric_that_cannot_rank_costs_only_itself(tmp_path):
    """Such as one whose signal the endpoint was to give and did not; here no scorer records it."""
    own = {"name": "odd", "categories": [{"name": "no", "when": {"signal": "score", "below": 0.5}}]}
    own["categories"].append({"name": "yes", "when": "otherwise"})
    out, result = run_config(tmp_path, config_of(track=["exact-match", {"schema": own}]))
    assert result.code == 0, result
    assert "The rubric odd ranks nothing" in result.err
    assert [one["name"] for one in rankings(out)] == ["as run", "exact-match"]
