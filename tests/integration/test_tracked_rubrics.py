"""Several rubrics over one run: one steers, all rank; their ranks in every form of the report."""

import json

import pytest
from command_line import command, finished, mimic_config, run_config

from adaptive_eval.store.reader import RunReader

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
    return finished(tmp_path_factory.mktemp("tracked"), config_of(), code=3)


def rankings(run):
    return json.loads((run / "report.json").read_text())["rankings"]


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


def test_scores_are_those_of_each_rubric(run):
    found = {
        one["name"]: {model["model"]: model["score"] for model in one["models"]} for one in rankings(run)
    }
    again = command("rescore", run, "--rubric", "exact-match", "--dry-run", "--json")
    (_, exact) = json.loads(again.out)
    assert found["exact-match"] == {model["model"]: model["score"] for model in exact["models"]}
    assert found["as run"]["sage"] > 1.0 >= found["exact-match"]["sage"]


def test_markdown_and_html_show_the_same_table(run):
    text, page = (run / "report.md").read_text(), (run / "report.html").read_text()
    assert "## Ranks by rubric" in text
    assert "Kendall τ" in text
    assert '<h2 id="rankings">Ranks by rubric</h2>' in page


@pytest.mark.slow
def test_a_run_that_goes_on_ranks_again_and_one_that_does_not_stores_nothing_new(tmp_path):
    out, _ = run_config(tmp_path, config_of(track=["exact-match"]))
    assert command("run", out, "--display", "none").code == 3
    with RunReader(out) as reader:
        assert len(reader.scorings()) == 1
    command("run", out, "-o", "budget.trials=120", "--display", "none", code=3)
    assert {one["trials"] for one in rankings(out)} == {120}
    with RunReader(out) as reader:
        assert len(reader.scorings()) == 2


def test_a_rubric_that_cannot_rank_costs_only_itself(tmp_path):
    """Such as one whose signal the endpoint was to give and did not; here no scorer records it."""
    own = {"name": "odd", "categories": [{"name": "no", "when": {"signal": "score", "below": 0.5}}]}
    own["categories"].append({"name": "yes", "when": "otherwise"})
    out, result = run_config(tmp_path, config_of(track=["exact-match", {"schema": own}]))
    assert result.code == 3, result
    assert "The rubric odd ranks nothing" in result.err
    assert [one["name"] for one in rankings(out)] == ["as run", "exact-match"]
