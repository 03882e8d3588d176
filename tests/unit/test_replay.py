"""A stored run made again from its trials: forged results are named, and claims rest on the trials."""

import json
import shutil
import sqlite3
import time
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, fields, replace
from itertools import combinations

import pytest
import run_examples as runs
from session_scripts import make_spec

import adaptive_eval
from adaptive_eval import results_of
from adaptive_eval.build.replay import replay
from adaptive_eval.cli.samples import _answer_pairs
from adaptive_eval.core.results import from_json, to_json
from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import GoalSpec
from adaptive_eval.core.stored_spec import spec_from_json, spec_to_json
from adaptive_eval.errors import RunFileError
from adaptive_eval.store.codec import dump_json, load_json, pack
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import AttemptRecord, Rescored, ScoringRecord, SnapshotRecord, TrialRecord
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.trial import DISCARD_CAUSES, NO_ANSWER, Completion, Score, Usage
from adaptive_eval.views import reading
from adaptive_eval.views.reading import DISAGREE


def test_a_goal_of_several_parts_is_kept_whole():
    kinds = (
        GoalSpec("width", width=0.2), GoalSpec("ranking"), GoalSpec("threshold"), GoalSpec("top-k", k=2),
        GoalSpec("not-worse", model="m0", margin=0.1), GoalSpec("pairs", pairs=(("m0", "m1"),)),
        GoalSpec("all", goals=(GoalSpec("baseline", model="m1"),)),
    )  # fmt: skip
    spec = replace(make_spec(2, 30), goal=GoalSpec("all", goals=kinds), redrawn=frozenset(DISCARD_CAUSES))
    assert spec_from_json(spec_to_json(spec)) == spec


def test_a_session_is_written_alike_whatever_the_order_of_its_sets():
    for size in (2, 3, 4):
        for causes in combinations(sorted(DISCARD_CAUSES), size):
            told = json.loads(spec_to_json(replace(make_spec(2, 3), redrawn=frozenset(causes))))
            assert told["spec"]["redrawn"] == list(causes)


@pytest.fixture
def run(tmp_path):
    runs.make_run(tmp_path / "run", whole=True)
    return tmp_path / "run"


def _change(run, table, change):
    """Change the latest row of a table of packed JSON."""
    with sqlite3.connect(run / "run.db") as db:
        number, body = db.execute(f"SELECT id, body FROM {table} ORDER BY id DESC").fetchone()
        data = load_json(body)
        change(data)
        db.execute(f"UPDATE {table} SET body = ? WHERE id = ?", (pack(dump_json(data)), number))
    db.close()


def _exchange(data):
    """Exchange the best and the worst model, as a forger would who wants the other result."""
    swap = {"oak": "yew", "yew": "oak"}
    for line in data["results"]["models"]:
        line["model"] = swap.get(line["model"], line["model"])
    for pair in data["results"]["pairs"]:
        pair["first"], pair["second"] = (swap.get(name, name) for name in (pair["first"], pair["second"]))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"missing": 0.2},
        {"trials": 60},
        {"rounds": 4},
        {"one_by_one": True},
        {
            "coins": {"oak": 0.95, "elm": 0.6, "yew": 0.2},
            "one_by_one": True,
            "slots": 64,
            "order": -1,
            "confidence": 0.9,
        },
    ],
)
def test_an_honest_run_is_made_again_as_it_is_stored(tmp_path, options):
    runs.make_run(tmp_path / "run", whole=True, **options)
    with RunReader(tmp_path / "run") as reader:
        found, latest = replay(reader), reader.latest_snapshot()
    assert found.disagreements == ()
    if "rounds" not in options:
        assert found.results.models == from_json(latest.results).models
        assert found.results.pairs == from_json(latest.results).pairs


_OTHERWISE = {
    "changes": {
        "model": "elm", "server": "", "trials": 40, "at": runs.STARTED + 9.0, "before": 0.9, "after": 0.2,
        "false_alarm": 0.05,
    },
    "budgets": {
        "name": "wall_clock", "spent": 90.0, "reserved": 0.0, "limit": 600.0, "scope": "model",
        "owner": "elm", "presumed": 0.0,
    },
    "warnings": "elm: its server was away twice",
}  # fmt: skip
"""What watches, deadlines and servers have added to the results of a session, by field."""


@pytest.mark.parametrize(
    "options", [{}, {"missing": 0.2}, {"trials": 60}, {"coins": {"oak": 0.9, "yew": 0.9}}]
)
def test_a_replay_shows_all_that_the_run_has_shown(tmp_path, options):
    """Also what does not follow from outcomes, and that once."""
    run = tmp_path / "run"
    runs.make_run(run, whole=True, **options)

    def add(data):
        for field, one in _OTHERWISE.items():
            data["results"][field] = [one, *data["results"].get(field, ())]

    _change(run, "snapshots", add)
    with RunReader(run) as reader:
        found, stored = replay(reader), from_json(reader.latest_snapshot().results)
    assert found.disagreements == ()
    for field in fields(stored):
        shown, told = getattr(found.results, field.name), getattr(stored, field.name)
        if field.name == "budgets":  # in another order
            shown, told = (sorted(lines, key=repr) for lines in (shown, told))
        if field.name == "warnings":  # one of lost answers is of the trials
            assert len({*shown}) == len(shown)
            shown = shown[: len(told)]
        assert shown == told, field.name


@pytest.mark.parametrize(
    ("reason", "evidence"),
    [
        ("interrupted", {}),
        ("budget", {"scope": "run", "owner": "", "used": {"wall_clock": [61.0, 60.0]}}),
        ("endpoints", {"refused": {"m0": []}, "models": {"m0": "HTTP 401"}}),
        ("unusable", {"cause": "models", "models": {"m0": "its answers are empty"}}),
    ],
)
def test_a_run_that_was_ended_from_outside_is_ended_so_by_a_replay(tmp_path, reason, evidence):
    session = Session(make_spec(3, 30, equivalence=0.1))
    described = {"name": "cut", "started_at": repr(runs.STARTED), "config": runs.CONFIG, "seed": "5"}
    answers = runs.Coins({"m0": 0.9, "m1": 0.6, "m2": 0.5})
    runs.store_run(tmp_path / "run", described, session, answers.answer, rounds=4)
    at = runs.STARTED + 99.0
    with RunWriter.open(tmp_path / "run") as writer:
        for decision in session.end(reason, evidence=evidence):
            writer.decision(at, decision.trials, asdict(decision))
        results = session.results()
        writer.snapshot(SnapshotRecord(at, 99.0, results.trials, to_json(results)))
    with RunReader(tmp_path / "run") as reader:
        made = replay(reader)
    assert [one for one in made.disagreements if "description" not in one] == []
    assert made.results.stop == results.stop
    assert made.results.stop.reason == reason
    assert made.decisions[-1] == session.decisions[-1]


def test_answers_that_are_none_are_counted_over_all_tasks_and_reasons(tmp_path):
    spec = make_spec(2, 8, goal="budget", trials=70)
    session = Session(replace(spec, tasks=(*spec.tasks, replace(spec.tasks[0], name="u"))))
    given = Counter()

    def answer(request, at, *, after_stop=False):
        place = request.key.index % 5
        signals = {f"{NO_ANSWER}empty": True} if place == 1 else {}
        signals |= {f"{NO_ANSWER}refusal": True} if place == 3 and request.key.model == "m1" else {}
        given[request.key.model] += len(signals)
        completion = Completion("", "stop", Usage(9, 1))
        return TrialRecord(request, at, completion, Score(0, "", signals), after_stop=after_stop)

    described = {"name": "two", "started_at": repr(runs.STARTED), "config": runs.CONFIG, "seed": "5"}
    runs.store_run(tmp_path / "run", described, session, answer)
    with RunReader(tmp_path / "run") as reader:
        assert len({task for _, task in reader.signals_named(NO_ANSWER)}) == 2
        made = replay(reader).results
    assert {line.model: line.no_answer_trials for line in made.models} == given
    assert given["m1"] > given["m0"] > 5


def test_a_model_that_the_goal_does_not_name_needs_no_trial_whenever_one_looks(tmp_path):
    """It is said before the first trial, and a replay says it later."""
    rows = [{"id": f"q{number}", "input": f"{number}", "target": "0"} for number in range(20)]
    models = {"oak": lambda prompt: prompt[-1], "elm": lambda prompt: "0", "yew": lambda prompt: "1"}
    goal, budget = {"kind": "pairs", "pairs": [["oak", "elm"]]}, {"trials": 20}
    adaptive_eval.evaluate(models, rows, goal, scorer="exact", budget=budget, out=tmp_path / "run")
    with RunReader(tmp_path / "run") as reader:
        (retired,) = (one.body for one in reader.decisions() if one.body["kind"] == "retired")
        assert (retired["models"], retired["step"]) == (["yew"], 0)
        assert replay(reader).disagreements == ()


def test_claims_rest_on_the_trials_where_the_stored_results_are_exchanged(run):
    claims = ("--at-least", "oak:0.3", "--at-least", "yew:0.9")
    before = runs.printed("check", run, *claims, code=5)
    _change(run, "snapshots", _exchange)
    assert runs.printed("check", run, *claims, code=5) == before
    assert "oak" in runs.command("validate", run, code=1).stdout


def _said_of_stored_results(run, out):
    """Return, by command, whether it says that the stored results are not those of the trials."""
    said = {}
    for name, *command in (
        ("validate", run),
        ("check", run, "--at-least", "oak:0.3"),
        ("check", run, "--each-question", "1 of 1"),
        ("report", run, "--output", out),
        ("export", run, "--format", "csv"),
        ("export", run, "--format", "markdown"),
        ("export", run, "--format", "lm-eval", "--out", out / "samples"),
    ):
        done = runs.command(name, *command)
        assert done.exception is None, done.exception
        shown = (out / "report.md").read_text() if name == "report" else done.output
        said[name, *command[1:3]] = DISAGREE in " ".join(shown.split())
    return said


def test_every_command_that_claims_something_says_that_stored_results_disagree(tmp_path):
    run = tmp_path / "run"
    runs.make_run(run, whole=True)
    assert not any(_said_of_stored_results(run, tmp_path / "honest").values())
    honest = runs.printed("export", run, "--format", "csv")
    _change(run, "snapshots", _exchange)
    assert all(_said_of_stored_results(run, tmp_path / "forged").values())
    assert runs.command("export", run, "--format", "csv").stdout == honest


def test_every_forged_figure_of_a_snapshot_is_named(run):
    with RunReader(run) as reader:
        results = from_json(reader.latest_snapshot().results)
    for field in ("score", "score_low", "score_high", "trials", "rank", "bayes_mu", "questions"):

        def change(data, field=field):
            data["results"]["models"][0][field] += 1

        runs.make_run(run, whole=True)
        _change(run, "snapshots", change)
        with RunReader(run) as reader:
            assert any(field in words for words in replay(reader).disagreements), field
    assert results_of(run).models == results.models


def test_a_verdict_that_is_forged_left_out_or_added_is_named(run):
    with sqlite3.connect(run / "run.db") as db:
        rows = db.execute("SELECT id, at, trials, body FROM decisions").fetchall()
    db.close()
    pairs = [(number, load_json(body)) for number, *_, body in rows if load_json(body)["kind"] == "pair"]
    number, body = pairs[0]
    forged = {**body, "verdict": "worse"}
    for query, values in (
        ("UPDATE decisions SET body = ? WHERE id = ?", (json.dumps(forged), number)),
        ("UPDATE decisions SET body = ? WHERE id = ?", (json.dumps({**body, "step": 3}), number)),
        ("DELETE FROM decisions WHERE id = ?", (number,)),
    ):
        runs.make_run(run, whole=True)
        with sqlite3.connect(run / "run.db") as db:
            db.execute(query, values)
        db.close()
        assert runs.command("validate", run).return_value == 1


def test_a_trial_that_is_taken_away_changes_the_results(run):
    with sqlite3.connect(run / "run.db") as db:
        (last,) = db.execute("SELECT max(id) FROM outcomes").fetchone()
        db.execute("DELETE FROM answers WHERE outcome = ?", (last,))
        db.execute("DELETE FROM outcomes WHERE id = ?", (last,))
    db.close()
    assert runs.command("validate", run).return_value == 1


def test_what_may_have_been_billed_without_an_answer_counts_in_a_replay(run):
    with RunReader(run) as reader:
        (first,) = reader.trials(limit=1)
        before = replay(reader).results.warnings
    with RunWriter.open(run) as writer:
        address = "http://127.0.0.1:9/v1"
        writer.attempt(AttemptRecord(first.request.key, 2, address, runs.STARTED, 1.0, None, "timeout"))
        writer.commit()
    with RunReader(run) as reader:
        after = replay(reader).results.warnings
    assert len(after) == len(before) + 1
    assert any("may have been billed" in words for words in after)


def _shown(run, out):
    """Return what the report says, and a table for a paper."""
    runs.command("report", run, "--output", out)
    table = runs.printed("export", run, "--format", "markdown")
    return json.loads((out / "report.json").read_text()), table, (out / "report.md").read_text()


def _verdicts(report):
    made = [(one["kind"], *one["models"], one["verdict"]) for one in report["decisions"]]
    return sorted(one for one in made if one[0] == "pair")


def _forge_verdict(run):
    with sqlite3.connect(run / "run.db") as db:
        rows = db.execute("SELECT id, body FROM decisions").fetchall()
        bodies = [(number, load_json(body)) for number, body in rows]
        number, body = next(one for one in bodies if one[1]["kind"] == "pair")
        forged = json.dumps({**body, "verdict": "worse"})
        db.execute("UPDATE decisions SET body = ? WHERE id = ?", (forged, number))
    db.close()


@pytest.mark.parametrize("forge", [lambda run: _change(run, "snapshots", _exchange), _forge_verdict])
def test_reports_and_exports_show_what_the_trials_lead_to(run, tmp_path, forge):
    before, paper, _ = _shown(run, tmp_path / "honest")
    forge(run)
    after, forged_paper, words = _shown(run, tmp_path / "forged")
    for part in ("models", "pairs"):
        assert after[part] == before[part], part
    assert _verdicts(after) == _verdicts(before)
    assert forged_paper == paper
    assert "not those that the trials lead to" in words
    assert len(after["warnings"]) == len(before["warnings"]) + 1


def test_a_report_of_too_many_trials_says_that_it_is_not_replayed(run, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "MOST_REPLAYED", 100)
    before, *_ = _shown(run, tmp_path / "honest")
    assert "not replayed" in str(before["warnings"])


def _add_decision(run, body, trials=None):
    with sqlite3.connect(run / "run.db") as db:
        number, at, last = db.execute("SELECT max(id) + 1, max(at), max(trials) FROM decisions").fetchone()
        trials = trials or last
        db.execute("INSERT INTO decisions VALUES (?, ?, ?, ?)", (number, at, trials, pack(dump_json(body))))
    db.close()


def test_a_model_that_a_later_session_asked_again_is_not_stopped_by_a_replay(run):
    """Its server was back: the earlier stop is on record, and holds no more."""
    stopped = {"kind": "model_stopped", "models": ["elm"], "verdict": "endpoints"}
    _add_decision(run, stopped | _FORGED, trials=_FORGED["trials"])
    with RunReader(run) as reader:
        made = replay(reader)
        stored = reader.latest_snapshot().results
    assert made.disagreements == ()
    assert {line.model: line.state for line in made.results.models}["elm"] == "retired"
    assert made.results.trials == stored["trials"]


_FORGED = {"step": 3, "trials": 9, "text": "", "evidence": {}}


@pytest.mark.parametrize(
    ("forge", "words"),
    [
        ({"kind": "stop", "models": [], "verdict": "resolved"} | _FORGED, "stop resolved"),
        ({"kind": "retired", "models": ["oak"], "verdict": "retired"} | _FORGED, "retired of oak"),
        ({"kind": "model_stopped", "models": ["nobody"], "verdict": "endpoints"} | _FORGED, "nobody"),
        ({"kind": "nonsense", "models": [], "verdict": ""} | _FORGED, "damaged"),
        ({"kind": "stop", "models": [], "verdict": "resolved"} | _FORGED | {"step": "x"}, "damaged"),
        ("DELETE FROM attempts", "attempt"),
        ("UPDATE launches SET seed = seed + 1 WHERE id = 4", "launch"),
        ("UPDATE launches SET model = 'oak' WHERE id = 4", "no integer in model"),
        ("UPDATE launches SET model = 99 WHERE id = 4", "row of models that is not there"),
        ("DELETE FROM attempts WHERE id = 3", "attempts has"),
        ("UPDATE meta SET value = '{}' WHERE key = 'name'", "checksum"),
        ("INSERT INTO meta VALUES ('more', '1')", "checksum"),
        ("DROP INDEX attempts_failed", "attempts_failed is missing"),
        ("UPDATE launches SET id = -1 WHERE id = 4", "launches begins with row -1"),
        ("UPDATE models SET name = 'fir' WHERE name = 'oak'", "damaged"),
        ("UPDATE answers SET outcome = 9000 WHERE outcome = 0", "damaged"),
    ],
    ids=range(16),
)
def test_every_forged_row_is_named_and_no_view_ends_in_a_traceback(tmp_path, forge, words):
    run = tmp_path / "run"
    runs.make_run(run, meta={"name": "forged"})
    if isinstance(forge, dict):
        _add_decision(run, forge)
    else:
        with sqlite3.connect(run / "run.db") as db:
            db.execute(forge)
        db.close()
    assert words in runs.command("validate", run, code=1).stdout
    for command in ("report", run, "--output", tmp_path / "out"), ("monitor", run, "--once"):
        error = runs.command(*command).exception
        assert error is None or isinstance(error, RunFileError), error
    with RunReader(run) as reader, suppress(RunFileError):
        list(_answer_pairs(reader, ("oak", "yew"), None, None, 5))


def test_a_run_that_has_ended_is_watched_as_its_trials_lead_to_it(run):
    honest = runs.printed("monitor", run, "--once", "--json")
    _change(run, "snapshots", _exchange)
    seen = json.loads(runs.printed("monitor", run, "--once", "--json"))
    assert seen["verdict"] == json.loads(honest)["verdict"]


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stored") / "run"
    runs.make_run(folder, missing=0.1, trials=200, whole=True)
    return folder


@pytest.mark.parametrize(
    "forged",
    [
        "UPDATE attempts SET step = 9000 WHERE id = (SELECT min(id) FROM attempts WHERE error IS NOT NULL)",
        "UPDATE attempts SET attempt = 0 WHERE id = 3",
        "UPDATE attempts SET attempt = 2 WHERE id = 3",
        "INSERT INTO attempts SELECT (SELECT max(id) + 1 FROM attempts), model, step, attempt, endpoint, "
        "started_at, latency, status, error, message FROM attempts WHERE id = 3",
        "INSERT INTO decisions SELECT (SELECT max(id) + 1 FROM decisions), at, trials, body FROM decisions "
        "WHERE id = 0",
        "UPDATE attempts SET status = 500 WHERE id = (SELECT min(id) FROM attempts WHERE error IS NULL)",
        "UPDATE bodies SET digest = x'00112233445566778899aabbccddeeff'",
        "UPDATE decisions SET trials = trials + 1 WHERE id = 0",
        "DELETE FROM decisions WHERE id = (SELECT max(id) FROM decisions)",
        "UPDATE snapshots SET trials = trials + 1 WHERE id = 3",
        "UPDATE snapshots SET elapsed = elapsed + 1e6 WHERE id = 2",
        "DELETE FROM snapshots",
        "DELETE FROM tallied",
        "UPDATE tallied SET upto = 17",
        "UPDATE tallied SET upto = -3",
        "UPDATE tallied SET upto = 1000000",
        "INSERT INTO tallies SELECT 0, 0, 1, '', 5, 0",
        "UPDATE outcomes SET after_stop = -1 WHERE id = 4",
        "UPDATE bodies SET body = '{\"messages\":3}' WHERE id = 0",
        "UPDATE snapshots SET id = 99 WHERE id = (SELECT max(id) FROM snapshots)",
        "UPDATE snapshots SET id = 1000 WHERE id = 0",
    ],
)
def test_what_no_log_of_a_run_says_is_named(stored, tmp_path, forged):
    shutil.copytree(stored, tmp_path / "run")
    with sqlite3.connect(tmp_path / "run" / "run.db") as db:
        assert db.execute(forged).rowcount
    db.close()
    runs.reseal(tmp_path / "run")
    with RunReader(stored) as honest, RunReader(tmp_path / "run") as reader:
        assert not honest.damage()
        assert replay(honest).disagreements == ()
        assert reader.damage() or replay(reader).disagreements


@pytest.fixture(scope="module")
def described(tmp_path_factory):
    """Return a run that was started from a config, and the replay of which is what it holds."""
    folder = tmp_path_factory.mktemp("described") / "run"
    rows = [{"id": f"q{number}", "input": f"question {number}", "target": "yes"} for number in range(12)]
    models = {"good": lambda _: "yes", "bad": lambda prompt: f"no, {prompt}"}
    adaptive_eval.evaluate(models, rows, out=folder, budget={"trials": 40}, concurrency=1)
    with RunReader(folder) as reader:
        assert replay(reader).disagreements == ()
    return folder


def _edit(run, key, change):
    """Change an entry of the description, and its checksum with it."""
    with RunReader(run) as reader:
        text = reader.meta()[key]
    with sqlite3.connect(run / "run.db") as db:
        changed = change(text)
        assert changed != text
        db.execute("UPDATE meta SET value = ? WHERE key = ?", (pack(changed), key))
    db.close()
    runs.reseal(run)


def _another(*path, to):
    def change(text):
        data = json.loads(text)
        place = data
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = to
        return json.dumps(data)

    return change


_CHANGED = {"at": runs.STARTED, "trials": 9, "setting": "stopping.confidence", "before": 0.9, "now": 0.8}


@pytest.mark.parametrize(
    ("key", "change", "words"),
    [
        ("config", lambda text: text.replace("trials: 40", "trials: 41"), "config_hash: stored"),
        ("config", lambda text: text.replace("models:", "modells:"), "config: the one"),
        ("config_hash", lambda text: text[::-1], "config_hash: stored"),
        ("name", lambda text: f"{text}x", "name: stored"),
        ("seed", lambda text: f"1{text}", "seed: stored"),
        ("worth", _another("task", "share", to=0.5), "worth.task.share: stored 0.5, the config says 1.0"),
        ("scoring", _another("task", "rubric", "truncated", to="x"), "scoring.task.rubric.truncated"),
        ("identity", _another("models", "bad", "send_seed", to="x"), "identity.models.bad.send_seed"),
        ("session", _another("spec", "models", 0, "deterministic", to=True), "spec.models.0.deterministic"),
        ("session", _another("spec", "tasks", 0, "weight", to=2.0), "spec.tasks.0.weight: stored 2.0"),
        ("session", _another("spec", "early_repeats", to=False), "spec.early_repeats"),
        ("changes", lambda _: json.dumps([_CHANGED]), "changes.stopping.confidence: stored 0.8"),
    ],
)
def test_a_description_that_its_config_does_not_lead_to_is_named(described, tmp_path, key, change, words):
    run = tmp_path / "run"
    shutil.copytree(described, run)
    _edit(run, key, change)
    assert words in runs.command("validate", run, code=1).stdout


@pytest.mark.parametrize("lacking", ["config", "worth", "thresholds", "config_hash, scoring"])
def test_a_description_that_lacks_an_entry_is_named_though_its_checksum_fits(described, tmp_path, lacking):
    run = tmp_path / "run"
    shutil.copytree(described, run)
    with sqlite3.connect(run / "run.db") as db:
        for key in lacking.split(", "):
            assert db.execute("DELETE FROM meta WHERE key = ?", (key,)).rowcount
    db.close()
    runs.reseal(run)
    assert f"lacks {lacking}" in runs.command("validate", run, code=1).stdout


def test_a_run_that_was_made_here_passes_for_no_imported_one(described, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(described, run)
    told = {"sources": [], "notes": [], "weights": {"task": [0.0, 1.0]}, "rule": "bayes", "ranges": []}
    with sqlite3.connect(run / "run.db") as db:
        db.execute("INSERT INTO meta (key, value) VALUES ('imported', ?)", (json.dumps(told),))
    db.close()
    runs.reseal(run)
    said = runs.command("validate", run, code=1).stdout
    assert "imported, and holds config, source" in said
    assert "requests are in the log of a run that was imported" in said


def test_a_run_of_another_version_may_have_been_started_with_other_settings(described, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(described, run)
    _edit(run, "versions", _another("adaptive-eval", to="0.0.1"))
    _edit(run, "config_hash", lambda text: text[::-1])
    assert "undamaged" in runs.printed("validate", run)


def _say_other(data):
    data["text"] = "the other way round"


def _answer_elsewhere(data):
    data["endpoints"][0]["endpoint"] = "http://elsewhere/v1"


@pytest.mark.parametrize(
    ("table", "change", "words"),
    [
        ("decisions", _say_other, "no decision says so"),
        ("snapshots", _answer_elsewhere, "http://elsewhere/v1"),
    ],
)
def test_a_stop_and_servers_are_those_that_another_table_names(described, tmp_path, table, change, words):
    run = tmp_path / "run"
    shutil.copytree(described, run)
    _change(run, table, change)
    assert words in runs.command("validate", run, code=1).stdout


def test_an_answer_took_the_time_that_its_signals_say_unless_they_are_a_scorers_own(described, tmp_path):
    for which, words, code in (("id = 3", "1 answers took another time", 1), ("id >= 0", "undamaged", 0)):
        run = tmp_path / which
        shutil.copytree(described, run)
        with sqlite3.connect(run / "run.db") as db:
            db.execute(f"UPDATE outcomes SET latency = latency + 1.0 WHERE {which}")
        db.close()
        runs.reseal(run)
        assert words in runs.command("validate", run, code=code).stdout


_SCORED = {"scorer": {}, "rubric": {}, "categories": ["wrong", "right"], "weights": [0.0, 1.0]}


@pytest.mark.parametrize(
    ("tasks", "model", "words"),
    [
        ({"task": _SCORED}, "good", "undamaged"),
        ({"other": _SCORED}, "good", "scoring 'strict' is of 'other'"),
        ({"task": _SCORED | {"weights": ["x"]}}, "good", "damaged (scoring 'strict': tasks: task: weights"),
        ({}, "nobody", "scoring 'strict' is of 'nobody'"),
    ],
)
def test_a_scoring_is_of_the_tasks_and_models_of_its_run(described, tmp_path, tasks, model, words):
    run = tmp_path / "run"
    shutil.copytree(described, run)
    with RunReader(run) as reader:
        results = json.loads(json.dumps(reader.latest_snapshot().results))
    for line in results["models"]:
        if line["model"] == "good":
            line["model"] = model
    with RunReader(run) as reader:
        rows = [Rescored(place, one.score.category, None, "") for place, one in enumerate(reader.trials())]
    with RunWriter.open(run) as writer:
        body = {"tasks": tasks, "results": results}
        writer.scoring(ScoringRecord("strict", time.time(), body), rows if tasks else ())
    assert words in runs.command("validate", run).stdout


@pytest.mark.parametrize(
    ("forge", "words"),
    [
        ("UPDATE rescored SET category = 2 WHERE outcome = 0", "is stored as"),
        ("UPDATE rescored SET category = 9 WHERE outcome = 3", "its scores are none of its categories"),
        ("DELETE FROM rescored WHERE outcome = 3", "is stored as"),
        ("DELETE FROM rescored", "is stored as"),
        (("tasks", {}), "its scores are none of its categories"),
        (("results", "models", 0, "score", 0.5), "score is stored as 0.5"),
    ],
)
def test_the_results_of_a_scoring_are_those_of_its_scores(described, tmp_path, forge, words):
    run = tmp_path / "run"
    shutil.copytree(described, run)
    runs.printed("rescore", run, "--rubric", "strict-compliance")
    assert "undamaged" in runs.printed("validate", run)
    if isinstance(forge, tuple):
        *path, value = forge
        forged = _another(*path, to=value)
        _change(run, "scorings", lambda data: data.update(json.loads(forged(json.dumps(data)))))
    else:
        with sqlite3.connect(run / "run.db") as db:
            assert db.execute(forge).rowcount
        db.close()
    runs.reseal(run)
    said = runs.command("validate", run, code=1).stdout
    assert "scoring 'strict-compliance': " in said
    assert words in said


@pytest.mark.parametrize("again", [False, True], ids=["before", "before and after"])
def test_a_scoring_is_held_against_the_settings_that_it_was_made_with(tmp_path, again):
    """The rule may be changed after it: its results are those of the old one."""
    rows = [{"id": f"q{number}", "input": f"question {number}", "target": "yes"} for number in range(12)]
    models = {"good": lambda _: "yes", "bad": lambda prompt: f"no, {prompt}"}
    run, options = tmp_path / "run", {"concurrency": 1, "budget": {"trials": 40}}
    adaptive_eval.evaluate(models, rows, out=run, **options)
    runs.printed("rescore", run, "--rubric", "strict-compliance")
    with pytest.warns(adaptive_eval.EvaluationWarning, match="confidence was changed"):
        adaptive_eval.evaluate(models, rows, out=run, **options, stopping={"confidence": 0.8})
    if again:
        runs.printed("rescore", run, "--rubric", "strict-compliance", "--name", "later")
    assert "undamaged" in runs.printed("validate", run)


def test_a_scoring_by_a_judge_is_not_made_again_since_its_rows_do_not_say_what_was_lost(described, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(described, run)
    runs.printed("rescore", run, "--rubric", "strict-compliance")
    _change(run, "scorings", lambda data: data["results"]["models"][0].update(score=0.5))
    runs.reseal(run)
    assert "score is stored as 0.5" in runs.command("validate", run, code=1).stdout
    _change(run, "scorings", lambda data: data["tasks"]["task"].update(scorer={"kind": "judge"}))
    runs.reseal(run)
    assert "undamaged" in runs.printed("validate", run)
