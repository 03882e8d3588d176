"""What a report says follows from the run file alone, and agrees with what the session knew."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import run_examples as runs
import standings_examples as examples
from run_examples import read_summary

from adaptive_eval.errors import RunFileError
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.views.accounts import QuestionAccount, several_answers, suspect
from adaptive_eval.views.sentences import promises
from adaptive_eval.views.verdicts import family_words


def test_pass_at_k_weighs_tasks_and_not_their_numbers_of_questions():
    rights = (*[("a", 3)] * 3, ("b", 0))
    asked = [QuestionAccount(task, "q", 3, 0.5, 0.0, ((3, right),)) for task, right in rights]
    tasks = [SimpleNamespace(task=name, weight=0.5) for name in "ab"]
    results = SimpleNamespace(models=[SimpleNamespace(model="m")], tasks=tasks)
    ((_, _, found),) = several_answers(asked, results)
    assert found[0] == pytest.approx((0.5, 0.5))
    assert found[1:] == [None] * 3
    odd = QuestionAccount("t", "q", 4, 0.5, 0.0, ((2, 0), (2, 2)))  # the stronger model is wrong
    assert suspect([odd]) == [(odd, "weak models right, strong ones wrong")]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return (summary, session) of a run that reached its goal, with missing and cut-off answers."""
    directory = tmp_path_factory.mktemp("finished") / "forest"
    session = runs.make_run(directory, missing=0.03, truncated=0.05)
    return read_summary(directory), session


def test_the_report_agrees_with_the_session(finished):
    summary, session = finished
    known = session.results()
    assert {line.model: line for line in summary.results.models} == {
        line.model: line for line in known.models
    }
    assert summary.results.stop == known.stop
    assert summary.results.stop.reason == "resolved"
    assert list(summary.decisions) == session.decisions
    assert summary.headline.startswith("oak is ahead of all others")
    assert summary.headline.endswith(f"after {known.trials:,} trials.")


def test_missing_answers_are_counted_by_model(finished):
    summary, _ = finished
    for line, account in zip(summary.results.models, summary.details.models, strict=True):
        assert account.model == line.model
        assert sum(account.missing.values()) == line.missing
        assert account.errors == ({"timeout": line.missing} if line.missing else {})
        assert sum(account.categories) == line.trials
    assert sum(line.missing for line in summary.results.models) > 0


def test_a_decided_pair_keeps_the_threshold_it_had_to_reach(finished):
    summary, session = finished
    called = {
        frozenset(decision.models): decision.evidence["threshold"]
        for decision in session.decisions
        if decision.kind == "pair"
    }
    assert len(set(called.values())) > 1, "Holm lowers the threshold from call to call"
    for pair in summary.results.pairs:
        assert pair.threshold == called[frozenset((pair.first, pair.second))]
        assert pair.verdict == "tie" or pair.evidence >= pair.threshold


def test_a_killed_run_says_what_was_stored_and_not_counted(tmp_path):
    summary = runs.summary_of(tmp_path / "forest", rounds=4)
    assert summary.results.stop is None
    assert (summary.details.stored, summary.results.trials, summary.uncounted) == (64, 48, 16)


def test_there_is_nothing_to_report_before_the_first_snapshot(tmp_path):
    RunWriter.create(tmp_path / "new", meta={}).close()
    with pytest.raises(RunFileError, match="no results to report yet"):
        read_summary(tmp_path / "new")


def test_a_report_says_how_steady_its_judge_is():
    run, counts = examples.finished(), {"changed": 3, "same": 57, "by_order": 1, "in_either_order": 9}
    said = " ".join(promises(run, judged=counts).limits)
    assert "changed its verdict on 3 of 60 (5.0 %, 95 % interval 1.0 to 13.9 %)" in said
    assert "decided 1 of 10 (10.0 %" in said
    assert "votes count for neither" in said
    said = " ".join(promises(run, judged={"tied_by_order": 1, "in_either_order": 9}).limits)
    assert "decided 1 of 10 (10.0 %" in said
    assert "votes count as ties" in said
    assert "judge" not in " ".join(promises(run).limits)


def test_what_a_stopped_models_note_says_is_no_second_warning():
    run = examples.finished()
    models = (replace(run.models[0], state="stopped", note="no text. It is not ranked"), *run.models[1:])
    name = models[0].model
    view = examples.view_of(replace(run, models=models, warnings=(f"{name}: no text.", "another")))
    assert view.warnings == ("another", f"{name}: no text. It is not ranked")


def test_a_report_says_how_cut_off_answers_count():
    run = examples.finished()
    for how, words in (("zero", "have the lowest score"), ("judged", "are judged as they are")):
        said = [one for one in promises(run, cut_off={how: ["t"]}).limits if "token limit" in one]
        assert [one.split("limit ")[1].split(" (")[0] for one in said] == [words]
    said = " ".join(promises(run, cut_off={"zero": ["a"], "judged": ["b", "c"]}).limits)
    assert "to a have the lowest score" in said
    assert "to b, c are judged" in said


@pytest.mark.parametrize("rule", ["anytime", "exact"])
@pytest.mark.parametrize("family", ["holm", "pair"])
def test_every_rule_and_family_says_what_it_promises(rule, family):
    said = promises(replace(examples.finished(), rule=rule, family=family))
    assert said.holds[0].startswith(f"Rule `{rule}` at 95 %: ")
    assert any("rank intervals" in text for text in said.holds) == (family == "holm")
    assert any("smaller than 0.05" in text for text in said.holds)
    assert any("Bayes@N" in text for text in said.limits)


def test_the_family_of_a_set_of_the_best_promises_the_set():
    said = promises(replace(examples.finished(), family="top-set", top_k=2))
    assert any(text.startswith("The set of the best 2: ") for text in said.holds)
    assert not any("Each pair by itself: the error rate" in text for text in said.holds)
    assert "top-set" not in family_words("top-set")


def test_zscore_promises_nothing_under_peeking():
    said = promises(replace(examples.finished(), rule="zscore", family="pair"))
    assert said.holds == ()
    assert "45–57 % of runs" in said.limits[0]


@pytest.mark.parametrize(
    "options", [{"one_by_one": True}, {"rounds": 12}, {"rounds": 12, "held": ("elm", 3)}]
)
def test_a_question_counts_the_trials_that_are_in_the_scores(tmp_path, options):
    """Answers after the stop among them; without those after a gap, and those after the last snapshot."""
    session = runs.make_run(tmp_path / "forest", missing=0.03, **options)
    assert "rounds" in options or sum(line.after_stop for line in session.results().models) > 0
    summary = read_summary(tmp_path / "forest")
    assert (summary.uncounted > 0) == ("rounds" in options)
    assert summary.details.questions is not None
    for place, line in enumerate(summary.results.models):
        tallies = [one.by_model[place] for one in summary.details.questions]
        assert sum(trials for trials, _ in tallies) == line.trials
        asked = [correct / trials for trials, correct in tallies if trials]
        assert sum(asked) / len(asked) == pytest.approx(line.score)


def test_the_target_is_what_the_config_says(tmp_path):
    here = runs.summary_of(tmp_path / "a", rounds=2)
    drawn = runs.summary_of(tmp_path / "b", rounds=2, meta={"config": "stopping: {target: population}"})
    unknown = runs.summary_of(tmp_path / "c", rounds=2, meta={"config": "not: [yaml"})
    assert tuple(one.details.target for one in (here, drawn, unknown)) == ("benchmark", "population", None)
    limits = [promises(one.results, one.details.target).limits for one in (here, drawn, unknown)]
    assert any("the questions from which these 30 questions were drawn" in one for one in limits[1])
    assert any("unless the config sets `target: population`" in one for one in limits[2])
    assert not any("target: population" in one for one in limits[0])


def test_a_report_reads_no_answers(tmp_path, monkeypatch):
    runs.make_run(tmp_path / "forest", missing=0.03, truncated=0.05)
    monkeypatch.setattr(RunReader, "trials", None)
    assert sum(account.truncated for account in read_summary(tmp_path / "forest").details.models) > 0
