"""Stored answers under other scorers and rubrics: rescore, and samples to look at them."""

import json
from collections import Counter
from dataclasses import replace

import pytest
from command_line import command, finished, mimic_config, write_config

from adaptive_eval import EvaluationWarning, evaluate
from adaptive_eval.build.assembly import build, config_of_run
from adaptive_eval.config import load_config
from adaptive_eval.interop.found import ReadingOptions
from adaptive_eval.interop.recorded_files import read_recorded
from adaptive_eval.run import rescoring
from adaptive_eval.run.rescoring import rescore, stored_scoring
from adaptive_eval.run.rescoring_specs import RescoringSpec, read_scorer
from adaptive_eval.simulate.recorded import LOST
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TrialRecord
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.trial import Completion, Score

BINS = {"low": "below", "high": "at_least"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return finished(tmp_path_factory.mktemp("rescore"), mimic_config(budget={"trials": 300}))


def stored(run):
    with RunReader(run) as reader:
        return [(record.request.key, record.score, record.completion) for record in reader.trials()]


def rankings(*arguments):
    result = command("rescore", *arguments, "--json", code=0)
    return {entry["name"]: entry for entry in json.loads(result.out)}


def scores(ranking):
    return {model["model"]: model["score"] for model in ranking["models"]}


def test_copies_and_failures_are_no_answers_for_another_scorer_either(tmp_path):
    (tmp_path / "moody.py").write_text(
        "def ask(prompt, seed):\n"
        "    if seed % 9 == 0:\n"
        "        raise ConnectionError('no')\n"
        "    return str(seed)\n",
        encoding="utf-8",
    )
    mimics = {"sage": {"mean": 0.9}, "echo": {"mean": 0.5, "cached": True}}
    config = mimic_config(mimics=mimics, budget={"trials": 300})
    config["models"].append({"name": "moody", "endpoints": ["python:moody.py:ask"]})
    out = finished(tmp_path, {**config, "retry": {"attempts": 1, "requeue": 0}}, code=3)
    with RunReader(out) as reader:
        built = build(config_of_run(reader))
        before = stored_scoring(built, reader).results
        (again,) = rescore(built, reader, [RescoringSpec("again", scorer=read_scorer("numeric"))])
    assert (again.results.models, again.results.pairs) == (before.models, before.pairs)
    lines = {line.model: line for line in again.results.models}
    assert lines["echo"].copies == lines["echo"].missing > 0
    assert lines["moody"].missing > lines["moody"].copies == 0


@pytest.mark.slow
def test_discarded_draws_are_lost_to_another_scoring_too(tmp_path):
    asked = set()

    def slow(prompt):
        late = prompt not in asked and len(asked) % 4 == 0
        asked.add(prompt)
        if late:
            raise TimeoutError
        return str(len(asked))

    rows = [{"id": f"q{number}", "input": f"What? {number}", "target": "4"} for number in range(30)]
    models = {"slow": slow, "quick": lambda prompt: "4"}
    budget = {"trials": 60}
    with pytest.warns(EvaluationWarning):
        evaluate(models, rows, scorer="numeric", budget=budget, out=tmp_path / "run", progress=False)
    with RunReader(tmp_path / "run") as reader:
        built = build(config_of_run(reader))
        before = stored_scoring(built, reader).results
        (again,) = rescore(built, reader, [RescoringSpec("again", scorer=read_scorer("numeric"))])
        stored = sum(bool(record.discarded) for record in reader.trials())
    assert (again.results.models, again.results.pairs) == (before.models, before.pairs)
    assert sum(line.discarded_trials for line in before.models) == stored > 0
    table = read_recorded([tmp_path / "run"], ReadingOptions())
    assert (table.categories == LOST).sum() == stored, "analyze and references know it, too"


@pytest.mark.slow
def test_a_judgement_that_another_scorer_gives_up_is_a_discarded_draw(run, monkeypatch):
    made, given_up = rescoring.score_here, Counter()

    def after_nonsense(scorer, batches, **options):
        """Score as ever; the first judgement of each third answer to be read was nonsense."""
        for records, scores in made(scorer, batches, **options):
            for place in range(0, len(scores), 3):
                scores[place] = replace(scores[place], discarded=("server",))
                given_up[records[place].request.key.model] += 1
            yield records, scores

    monkeypatch.setattr(rescoring, "score_here", after_nonsense)
    with RunReader(run) as reader:
        built = build(config_of_run(reader))
        (again,) = rescore(built, reader, [RescoringSpec("again", scorer=read_scorer("numeric"))])
    assert {line.model: line.discarded_trials for line in again.results.models} == dict(given_up)
    assert len(given_up) == 2


def test_a_rubric_ranks_by_its_own_weights_without_touching_the_old_scoring(run):
    before = stored(run)
    found = rankings(run, "--rubric", "format-aware", "--rubric", "{schema: exact-match, weights: [0, 1, 5]}")
    assert set(found) == {"as run", "format-aware", "exact-match"}
    for model, score in scores(found["as run"]).items():
        # every answer of these mimics is boxed: right is worth 3, wrong 1 (format-aware) and 5, 1
        assert scores(found["format-aware"])[model] == pytest.approx(1 + 2 * score)
        assert scores(found["exact-match"])[model] == pytest.approx(1 + 4 * score)
    assert stored(run) == before


def test_thresholds_that_the_run_never_had_come_from_its_answers(run):
    assert command("rescore", run, "--rubric", "efficiency-adjusted", "--name", "lengths").code == 0
    with RunReader(run) as reader:
        body = next(scoring.body for scoring in reader.scorings() if scoring.name == "lengths")
    assert body["tasks"]["arithmetic"]["rubric"]["schema"] == "efficiency-adjusted"
    assert body["tasks"]["arithmetic"]["thresholds"].keys() == {"len_p33", "len_p66"}


def test_another_scorer_reads_the_stored_texts(run):
    found = rankings(run, "--scorer", "{kind: exact, extract: whole}", "--dry-run")
    assert set(scores(found["exact"]).values()) == {0.0}


def test_the_score_of_one_scorer_is_not_that_of_another(tmp_path):
    bins = [{"name": name, "when": {"signal": "score", side: 0.05}} for name, side in BINS.items()]
    schema = {"name": "bins", "categories": bins, "weights": [0, 1]}
    config = mimic_config(budget={"trials": 20})
    config["tasks"][0] |= {"scorer": "f1", "rubric": {"schema": schema}}
    out = finished(tmp_path, config)
    assert rankings(out, "--scorer", "f1", "--dry-run")["f1"]["kendall_tau_b"] == 1
    result = command("rescore", out, "--scorer", "exact", "--dry-run", code=2)
    assert "has what the rubric needs: no answer has the signal 'score'" in result.err


@pytest.mark.parametrize(
    ("scorer", "words"),
    [
        ("{kind: regex, pattern: 'ANSWER=(.+)'}", "no result was found in"),
        (
            "{kind: python, function: broken_scorer:judge}",
            "could not be scored and count as missing: the scorer",
        ),
    ],
)
def test_a_scorer_that_reads_nothing_or_fails_is_told(run, scorer, words):
    code = "def judge(answer, question):\n    raise KeyError('x')\n"
    (run.parent / "broken_scorer.py").write_text(code, encoding="utf-8")
    result = command("rescore", run, "--scorer", scorer, "--dry-run", code=0)
    assert "Warning: " in result.err
    assert words in result.err


def test_samples_filter_and_show_why(run):
    result = command("samples", run, "--model", "novice", "--category", 0, "--limit", 2, code=0)
    assert result.out.count("novice · arithmetic/") == 2
    assert "sage" not in result.out
    assert "category 0 (wrong)" in result.out
    assert "why        wrong (boxed)" in result.out
    assert "target" in result.out


def test_what_a_model_wrote_does_nothing_to_the_terminal(tmp_path):
    out, config = tmp_path / "run", load_config(write_config(tmp_path, mimic_config()))
    built = build(config)
    request = built.session().ask({"sage": 1, "novice": 0})[0]
    nasty = "\x1b[2J\u202egnp\x00 \ud800 \r\nsage · forged"
    with RunWriter.create(out, meta=built.meta()) as writer:
        writer.outcome(TrialRecord(request, 1.0, Completion(nasty, "stop"), Score(0, nasty, {}, nasty)))
    shown = command("samples", out, code=0)
    assert not {"\x1b", "\u202e", "\x00", "\r"} & set(shown.out)
    assert not any(line.startswith("sage · forged") for line in shown.out.splitlines())
    line = json.loads(command("samples", out, "--json").out)
    assert line["answer"] == nasty


def test_a_margin_in_points_is_no_margin_of_as_many_shares(tmp_path):
    points = {"schema": "binary", "weights": [0, 100]}
    config = mimic_config({"rubric": points}, budget={"trials": 300}, stopping={"equivalence": 8})
    out = finished(tmp_path, config)
    found = rankings(out, "--rubric", "binary", "--dry-run")
    assert [100 * score for score in scores(found["binary"]).values()] == pytest.approx(
        list(scores(found["as run"]).values())
    )
