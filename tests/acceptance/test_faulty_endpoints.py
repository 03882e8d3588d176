"""Endpoints that misbehave: failures are counted, none is scored, and the rest goes on."""

from collections.abc import Iterator

import pytest
from command_line import (
    Reached,
    in_process,
    mimic_spec,
    quickstart,
    ran,
    report,
    served,
    set_faults,
    trials,
    write_config,
)

from adaptive_eval.mimic.process import MimicProcess
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import CANCELLED, SEED_TEST, WITHDRAWN

KINDS = {
    "status": {"rate_limit", "server"},
    "drop": {"dropped"},
    "malformed": {"malformed"},
    "cut_off": {"aborted"},
}
"""Faults of the mimic, and what they are called in the run file."""


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adaptive_eval.engine.retry.TICK", 0.05)
    monkeypatch.setattr("adaptive_eval.engine.retry.backoff", lambda failures: 0.05 * failures)


@pytest.fixture
def mimic() -> Iterator[MimicProcess]:
    with MimicProcess(mimic_spec()) as process:
        yield process


@pytest.mark.slow
def test_a_run_through_every_kind_of_failure_reaches_the_same_end(tmp_path, mimic, undisturbed):
    config = write_config(tmp_path, quickstart(base_url=mimic.base_url))
    rough = tmp_path / "rough"
    set_faults(
        mimic,
        {"kind": "status", "status": 429, "retry_after": 0.1, "probability": 0.06},
        {"kind": "status", "status": 500, "probability": 0.06},
        {"kind": "drop", "probability": 0.06},
        {"kind": "malformed", "probability": 0.06},
        {"kind": "cut_off", "probability": 0.06},
    )
    in_process("run", config, "--out", rough, "--display", "none", cwd=tmp_path, code=0)
    assert Reached.by(rough) == undisturbed

    stored = trials(rough)
    assert all(record.score is not None and record.completion is not None for record in stored)
    with RunReader(rough) as reader:
        # Trials that waited when the run ended were withdrawn: no failure of the server.
        ended = (None, CANCELLED, WITHDRAWN, SEED_TEST)
        tests = sum(attempt.error == SEED_TEST for attempt in reader.attempts())
        failures = [attempt for attempt in reader.attempts() if attempt.error not in ended]
        assert sum(attempt.error is None for attempt in reader.attempts()) == len(stored)
    assert {attempt.error for attempt in failures} == set().union(*KINDS.values())
    struck = served(mimic)["faults"]
    for kind, names in KINDS.items():
        told = sum(attempt.error in names for attempt in failures)
        assert struck[kind] - tests <= told <= struck[kind]  # a fault may strike a test of seeds
    reported = [model["errors"] for model in report(rough)["models"]]
    assert sum(sum(errors.values()) for errors in reported) == len(failures)


def test_what_fails_for_good_is_missing_and_never_scored(tmp_path, mimic):
    """A sixth of one model's answers never come; the others decide, and the report says what is missing.

    More of them, and chance would now and then lose eight in a row, for which a model is stopped.
    """
    set_faults(mimic, {"kind": "malformed", "probability": 0.4}, model="guesser")
    data = quickstart(base_url=mimic.base_url)
    data["retry"] = {"attempts": 1, "requeue": 1}
    ran(write_config(tmp_path, data))
    lost = [record for record in trials(tmp_path / "run") if record.missing is not None]
    assert {record.request.key.model for record in lost} == {"guesser"}
    guesser = next(model for model in report(tmp_path / "run")["models"] if model["model"] == "guesser")
    assert guesser["missing"] == len(lost) > 0
    assert sum(guesser["categories"]) == sum(
        record.request.key.model == "guesser" and record.missing is None
        for record in trials(tmp_path / "run")
    )
    assert guesser["score_if_missing_wrong"] < guesser["score"] < guesser["score_if_missing_right"]


@pytest.mark.slow
def test_one_model_refused_from_the_start(tmp_path, mimic):
    """It lists its models, and then refuses: nothing more is spent unless it may be missing."""
    set_faults(mimic, {"kind": "status", "status": 404}, model="novice")
    config = write_config(tmp_path, quickstart(base_url=mimic.base_url))
    done = in_process("run", config, "--out", "run", cwd=tmp_path, code=4)
    assert "404" in done.out
    assert done.out.splitlines()[-1].endswith("run run -o 'models[novice].endpoints=[URL]'")
    assert all(model["requests"] <= 8 for model in served(mimic)["models"].values())
    done = in_process("run", "run", "--allow-missing", cwd=tmp_path, code=3)
    found = report(tmp_path / "run")
    assert found["run"]["stop"]["reason"] == "partial"
    for pair in found["pairs"]:
        assert (pair["verdict"] == "open") == ("novice" in (pair["first"], pair["second"]))
    novice = next(model for model in found["models"] if model["model"] == "novice")
    assert (novice["state"], novice["missing"], "404" in novice["note"]) == ("stopped", 0, True)
    assert "404" in done.out
    assert served(mimic)["models"]["novice"]["requests"] <= 2 * 8
    assert done.out.splitlines()[-1].endswith(": adaptive-eval run run")
    set_faults(mimic, model="novice")
    assert in_process("run", "run", cwd=tmp_path).code == 0
    assert report(tmp_path / "run")["counts"]["open"] == 0


def test_all_models_refused(tmp_path, mimic):
    set_faults(mimic, {"kind": "status", "status": 401})
    config = write_config(tmp_path, quickstart(base_url=mimic.base_url))
    in_process("run", config, "--out", "run", cwd=tmp_path, code=4)
    assert report(tmp_path / "run")["run"]["stop"]["reason"] == "endpoints"
    assert trials(tmp_path / "run") == []
    set_faults(mimic)
    assert in_process("run", "run", "-o", "budget.trials=20", cwd=tmp_path).code == 3
    assert len(trials(tmp_path / "run")) == 20
