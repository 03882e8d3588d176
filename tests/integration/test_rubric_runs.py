"""Rubrics from the config to the stored category: pilots, given thresholds, own schemas, going on."""

import json

import pytest
from command_line import command, finished, mimic_config, run_config

from adaptive_eval.store.reader import RunReader
from scorio.categorical import Signals, get_schema

CONCISE = {"schema": "concision-high-conf", "pilot": 2}


def scores(run):
    with RunReader(run) as reader:
        return [record.score for record in reader.trials() if record.score is not None]


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
def piloted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("piloted")
    return finished(folder, mimic_config({"rubric": CONCISE}), code=0)


@pytest.mark.slow
def test_a_pilot_freezes_the_thresholds_and_all_are_judged_by_them(piloted):
    assert set(frozen(piloted)["arithmetic"]) == {"tau_high", "len_p33", "len_p66"}
    check_categories(piloted)
    assert len({score.category for score in scores(piloted)}) >= 5


def test_the_thresholds_are_quantiles_of_the_pilot_alone(piloted):
    from scorio.categorical import Thresholds

    pilot = scores(piloted / "pilot")
    assert len(pilot) == 2 * 2 * 40
    observed = Thresholds.observed(
        Signals.from_records([score.signals for score in pilot]), get_schema("concision-high-conf")
    )
    assert observed.to_dict() == frozen(piloted)["arithmetic"]


def test_what_the_pilot_was_answered_is_not_asked_again(piloted):
    def answers(run):
        with RunReader(run) as reader:
            return {
                record.request.key: (record.sent, record.completion.response_id, record.completion.latency)
                for record in reader.trials(missing=False)
            }

    paid, used = answers(piloted / "pilot"), answers(piloted)
    assert len(paid) == 160
    assert all(used[key] == answer for key, answer in paid.items())


@pytest.mark.slow
def test_the_pilot_is_part_of_the_runs_budget(tmp_path):
    config = mimic_config({"rubric": CONCISE}, goal="budget", budget={"trials": 200})
    out = finished(tmp_path, config, code=3)
    with RunReader(out) as reader, RunReader(out / "pilot") as pilot:
        assert (reader.count(), pilot.count()) == (200, 160)
        answers = {record.completion.response_id for record in [*reader.trials(), *pilot.trials()]}
        assert len(answers) == 200  # no more was ever asked
        assert len(list(reader.attempts())) == 200
    report = json.loads((out / "report.json").read_text())
    spent = {line["name"]: line["spent"] for line in report["budgets"]}
    assert spent["trials"] == 200
    with RunReader(out) as reader:
        tokens = sum(record.completion.usage.total_tokens for record in reader.trials())
    assert spent["tokens"] == tokens
    command("run", out, "-o", "budget.trials=240", "--display", "none", code=3)
    with RunReader(out) as reader:
        assert reader.count() == 240
        for model in ("sage", "novice"):  # none left out, none asked twice
            steps = sorted(record.request.key.index for record in reader.trials(model=model))
            assert steps == list(range(len(steps)))


def test_a_resumed_run_keeps_its_thresholds(piloted):
    before = frozen(piloted)
    command("run", piloted, "-o", "stopping.confidence=0.99", "--display", "none", code=0)
    assert frozen(piloted) == before
    check_categories(piloted)


@pytest.mark.slow
def test_a_pilot_that_was_cut_short_goes_on_without_asking_anything_twice(tmp_path):
    run_config(tmp_path, mimic_config({"rubric": CONCISE}, budget={"trials": 50}))
    out = finished(tmp_path, mimic_config({"rubric": CONCISE}, budget={"trials": 170}))
    with RunReader(out / "pilot") as reader:
        assert (reader.count(), len(list(reader.attempts()))) == (160, 160)
    assert len(frozen(out)["arithmetic"]) == 3
