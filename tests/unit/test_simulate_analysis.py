"""Two views of recorded outcomes: all at once, and as a sequential run would have used them."""

import json
from dataclasses import replace

import numpy as np
import pytest
import scipy
from run_examples import command, printed
from session_scripts import make_spec
from simulation_scripts import recorded_coins

from adaptive_eval.core.spec import GoalSpec
from adaptive_eval.errors import OutcomesError, UsageError
from adaptive_eval.simulate.analysis import analyze, one_look
from adaptive_eval.simulate.many_runs import Simulator
from adaptive_eval.simulate.recorded import LOST, NO_TRIAL, RecordedAnswers, RecordedOutcomes
from adaptive_eval.store.reader import RunReader
from scorio import eval as metrics
from scorio.sequential import paired_difference

WEIGHTS = (0.5, 3.0, -1.0)
"""The worst category is neither the first nor the best one the last."""


def graded(chances, lost=0.0, seed=5):
    """Return five graded answers of each model to ten questions of each of two tasks."""
    rng = np.random.default_rng(seed)
    shape = (len(chances), 20, 5)
    categories = np.where(rng.random(shape) < np.array(chances)[:, None, None], 1, rng.choice([0, 2], shape))
    categories[rng.random(shape) < lost] = LOST
    questions = [("a" if number < 10 else "b", f"q{number}") for number in range(20)]
    names = tuple(f"m{number}" for number in range(len(chances)))
    return RecordedOutcomes(names, tuple(questions), categories)


def spec_of(given):
    return replace(make_spec(len(given.models), 1), tasks=given.task_specs(WEIGHTS))


def test_each_task_counts_with_its_weight_and_each_category_with_its_own():
    given = graded((0.3, 0.5, 0.55, 0.9))
    found = analyze(given, spec_of(given), Simulator(2, 1, workers=1))
    for line in found.models:
        outcomes = np.split(given.categories[given.models.index(line.model)], [10])
        mu, sigma = np.transpose([metrics.bayes(one, WEIGHTS) for one in outcomes])
        assert (line.mu, line.sigma) == pytest.approx((mu.mean(), np.hypot(*sigma) / 2))
        assert line.score == pytest.approx(np.mean([np.take(WEIGHTS, one).mean() for one in outcomes]))
        assert (line.trials, line.fewest, line.most) == (100, 5, 5)
    holes, scores = given.categories.copy(), np.take(WEIGHTS, given.categories[0])
    holes[0, 3] = LOST
    unanswered = RecordedAnswers(RecordedOutcomes(given.models, given.questions, holes))
    expected = (np.delete(scores[:10], 3, axis=0).mean() + scores[10:].mean()) / 2
    assert unanswered.truth(spec_of(given))[0] == pytest.approx(expected)


def test_an_open_pair_takes_all_trials_of_both_though_one_has_fewer():
    whole = graded((0.0, 0.5, 0.55, 1.0))
    categories = whole.categories.copy()
    categories[1, :, 3:] = NO_TRIAL
    given = RecordedOutcomes(whole.models, whole.questions, categories)
    found = analyze(given, spec_of(given), Simulator(2, 1, workers=1))
    assert found.replay.verdict.tolist() == [-1, -1, -1, 0, -1, -1]
    used = {line.model: line.used for line in found.models}
    assert (used["m1"], used["m2"]) == (60, 100)
    assert max(used["m0"], used["m3"]) < 100


def test_one_look_counts_all_pairs_and_the_worst_of_what_is_lost():
    seen = set()
    for means in ((0.3, 0.45, 0.55, 0.6), (0.2, 0.35, 0.5, 0.65)):
        given = graded(means)
        pairs = sorted(one_look(given, spec_of(given)).pairs, key=lambda pair: pair.p_value)
        shown = [pair.p_value <= 0.05 / (6 - rank) for rank, pair in enumerate(pairs)]
        assert [pair.verdict != "open" for pair in pairs] == [all(shown[: rank + 1]) for rank in range(6)]
        seen |= {(pair.verdict != "open", 0.05 / 6 < pair.p_value <= 0.05) for pair in pairs}
    assert {(True, True), (False, True)} <= seen  # by a level that has risen, and not even by that
    holes = graded((0.2, 0.95), lost=0.1)
    (pair,) = one_look(holes, spec_of(holes)).pairs
    first, second = holes.categories
    filled = np.where(first == LOST, 1, first), np.where(second == LOST, 2, second)
    assert pair.p_value == pytest.approx(paired_difference(*filled, weights=WEIGHTS).p_value)
    answered = np.ma.masked_array(np.take(WEIGHTS, holes.categories), holes.categories == LOST)
    shown = answered.mean(axis=2).mean(axis=1)
    assert pair.difference == pytest.approx(shown[0] - shown[1])
    assert (pair.test, pair.verdict) == ("paired t", "worse")
    assert pair.difference_low < pair.difference < pair.difference_high < 0.0
    both = graded((0.5, 0.5), lost=0.6)
    assert one_look(both, spec_of(both)).pairs[0].p_value == 1.0


def test_one_look_weighs_tasks_as_the_score_does():
    """The better model by the score has fewer right answers: it is better in the small task."""
    right = np.zeros((2, 110, 1), dtype=int)
    right[0, :10] = right[1, 10:20] = right[:, 20:50] = 1
    questions = tuple(("few" if n < 10 else "many", f"q{n}") for n in range(110))
    given = RecordedOutcomes(("m0", "m1"), questions, right)
    spec = replace(make_spec(2, 1), tasks=given.task_specs())
    found = one_look(given, spec)
    (pair,) = found.pairs
    assert (pair.difference, pair.verdict) == (pytest.approx(0.45), "better")
    assert [task.scores[0].score for task in found.tasks] == [1.0, 0.3]
    pooled = replace(spec, overall="pooled")
    assert one_look(given, pooled).pairs[0].test == "McNemar"
    alone = one_look(given, replace(pooled, goal=GoalSpec("threshold", value=0.5)))
    assert [pair.verdict for pair in alone.pairs] == ["worse", "worse"]


def test_the_replay_in_recorded_order_depends_on_the_order():
    recorded = recorded_coins((0.5, 0.5), questions=12, trials=20, seed=1)
    best_first = -np.sort(-recorded.categories[1:], axis=2)
    turned = type(recorded)(
        recorded.models, recorded.questions, np.concatenate([recorded.categories[:1], best_first])
    )
    spec = make_spec(2, 12)
    plain = analyze(recorded, spec, Simulator(2, 1, workers=1))
    biased = analyze(turned, spec, Simulator(2, 1, workers=1))
    assert plain.replay.verdict.tolist() != biased.replay.verdict.tolist()
    assert np.array_equal(plain.shuffled.truth, biased.shuffled.truth)


def test_a_cell_without_trials_is_refused_and_can_be_left_out():
    recorded = recorded_coins((0.4, 0.6), questions=6, trials=4)
    categories = recorded.categories.copy()
    categories[1, 2], categories[1, 3, 3] = -1, -1
    holed = type(recorded)(recorded.models, recorded.questions, categories)
    with pytest.raises(UsageError, match="no recorded trial of question 'q2'"):
        analyze(holed, make_spec(2, 6), Simulator(2, 1, workers=1))
    filled = holed.asked_of_all()
    assert (filled.questions, filled.lost) == (holed.questions, 3)
    assert filled.categories[1, 2].tolist() == [LOST] * 3 + [-1]
    of_others = (*recorded.questions, ("u", "q0"))
    alone = np.concatenate([recorded.categories, categories[:, 2:3]], axis=1)
    assert type(recorded)(recorded.models, of_others, alone).asked_of_all().questions == recorded.questions
    empty = type(recorded)(recorded.models, recorded.questions[:1], categories[:, 2:3])
    with pytest.raises(UsageError, match="no question that all models have answered"):
        empty.asked_of_all()


def test_equal_models_are_not_told_apart_by_wrong_answers_that_are_absent():
    recorded = recorded_coins((0.7, 0.7), questions=300, trials=1)
    categories = recorded.categories.copy()
    categories[0, (categories[0, :, 0] == 0) & (np.arange(300) % 5 > 0)] = -1
    given = type(recorded)(recorded.models, recorded.questions, categories).asked_of_all()
    spec = replace(make_spec(2, 300), early_repeats=False)
    found = analyze(given, spec, Simulator(20, 1, workers=1))
    assert found.models[0].score > 0.9
    assert found.replay.verdict.tolist() == [0]
    assert found.shuffled.share("decided") == 0.0
    (pair,) = one_look(given, spec).pairs
    assert pair.verdict == "open"
    assert pair.difference_low < 0.0 < pair.difference_high
    shown = {line.model: line.score for line in found.models}
    assert pair.difference == pytest.approx(shown[pair.first] - shown[pair.second])


def test_equal_texts_of_a_table_are_draws_by_the_word_of_the_user(tmp_path):
    rng = np.random.default_rng(4)
    rows = []
    for question, repeat in np.ndindex(30, 12):
        for model, chance in (("sure", 0.8), ("varied", 0.55)):
            right = bool(rng.random() < chance)
            text = f"{question} " * 400 + (str(right) if model == "sure" else f"{right} {repeat}")
            rows.append({"model": model, "question": str(question), "score": int(right), "text": text})
    path = tmp_path / "texts.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    bounded, independent = (
        analysis_of(path, "--sequential", "-o", f"on.copies={word}") for word in ("bounded", "independent")
    )
    assert independent["in_one_order"]["winners"] == 1
    assert bounded["in_one_order"]["trials"] > 2 * independent["in_one_order"]["trials"]
    assert analysis_of(path, "--sequential")["in_one_order"] == bounded["in_one_order"]
    said = [
        command("analyze", path, "--replicates", 2, "--workers", 1, *options).output
        for options in ((), ("-o", "on.copies=independent"), ("-o", "on={copies: independent}"))
    ]
    assert ["copies from a cache" in text for text in said] == [True, False, False]
    write = "analyze", path, "--sequential", "--write", tmp_path / "run", "-o", "on.copies=independent"
    assert "copies from a cache" not in printed(*write)
    (pair,) = RunReader(tmp_path / "run").latest_snapshot().results["pairs"]
    assert pair["verdict"] == "better"


# The usual public form of results: nothing is repeated, and all of it is read.


@pytest.fixture
def table(tmp_path):
    outcomes = recorded_coins((0.3, 0.5, 0.55, 0.8), questions=400, trials=1, seed=2)
    path = tmp_path / "once.npz"
    np.savez(path, R=outcomes.categories, models=outcomes.models)
    return path


def test_is_read_to_the_end_and_decides_what_an_import_decides(table, tmp_path):
    analysed = analysis_of(table)
    printed("analyze", table, "--write", tmp_path / "run", "--sequential", "--json")
    results = RunReader(tmp_path / "run").latest_snapshot().results
    decided = [pair["verdict"] for pair in results["pairs"]]
    ordered = analysed["in_one_order"]
    assert ordered["winners"] == sum(verdict in ("better", "worse") for verdict in decided) == 5
    assert results["trials"] == 1600


def test_where_n_was_fixed_the_verdict_is_that_of_one_look(table):
    analysed = analysis_of(table)
    pairs, outcomes = analysed["fixed"], np.load(table)["R"][:, :, 0]
    sequential = analysis_of(table, "--sequential")
    assert (analysed["verdict"], sequential["verdict"]) == ("fixed", "anytime")
    assert sequential["in_one_order"] == analysed["in_one_order"]
    names = np.load(table)["models"].tolist()
    for pair in pairs:
        one, other = (outcomes[names.index(pair[name])] for name in ("first", "second"))
        for_one, for_other = int((one > other).sum()), int((other > one).sum())
        test = scipy.stats.binomtest(for_one, for_one + for_other)
        assert pair["p_value"] == pytest.approx(test.pvalue)
        assert pair["difference"] == pytest.approx(one.mean() - other.mean())
    ordered = sorted(pair["p_value"] for pair in pairs)
    shown = [p <= 0.05 / (6 - rank) for rank, p in enumerate(ordered)]
    holm = shown.index(False) if False in shown else 6
    assert sum(pair["winner"] is not None for pair in pairs) == holm >= 5


def test_one_look_at_possible_copies_is_that_of_the_run_it_is_written_as(tmp_path):
    rng, path, rows = np.random.default_rng(4), tmp_path / "long.jsonl", []
    for model, chance in (("a", 0.8), ("b", 0.4)):
        for number in range(40):
            category, text = int(rng.random() < chance), f"{model} {number} " * 200
            row = {"model": model, "question": f"q{number}", "category": category, "text": text}
            rows += [row | {"repeat": repeat} for repeat in range(5)]
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    (shown,) = analysis_of(path, "--fixed")["fixed"]
    printed("analyze", path, "--fixed", "--write", tmp_path / "run", "--json")
    results = RunReader(tmp_path / "run").latest_snapshot().results
    (pair,) = results["pairs"]
    assert {name: pair[name] for name in ("test", "difference", "p_value", "verdict")} == {
        name: shown[name] for name in ("test", "difference", "p_value", "verdict")
    }
    assert (results["models"][0]["missing"], shown["test"]) == (0, "paired t")
    assert 1e-4 < shown["p_value"] < 0.05, "each question is one draw of either model"


@pytest.mark.parametrize(("means", "undecided"), [((0.5, 0.5), 1), ((0.5,), 0)])
def test_nothing_is_saved_where_nothing_was_decided_or_compared(tmp_path, means, undecided):
    path, trials = tmp_path / "equal.npz", 200 * len(means)
    np.savez(path, R=recorded_coins(means, questions=200, trials=1, seed=3).categories)
    analysed = analysis_of(path)
    ordered = analysed["in_one_order"]
    assert (ordered["undecided"], ordered["winners"], ordered["trials"]) == (undecided, 0, trials)
    assert analysed["shuffled"]["saved"] == 0.0


class TestWhatIsNoEvidence:
    """Two equal models, 60 questions of 10 trials: what calls them different is the file."""

    def verdicts(self, path):
        """Return the winners that `analyze` finds at any look and at one look, and those of a run of it."""
        analysed = analysis_of(path)
        run = path.with_suffix("")
        printed("analyze", path, "--write", run, "--json")
        pairs = RunReader(run).latest_snapshot().results["pairs"]
        one_look = [pair["winner"] for pair in analysed["fixed"] if pair["winner"] is not None]
        return analysed["in_one_order"]["winners"], len(one_look), [pair["verdict"] for pair in pairs]

    @pytest.mark.parametrize("ending", ["npz", "csv"])
    def test_a_file_sorted_by_its_outcomes(self, tmp_path, ending):
        half_of_each = np.tile(np.arange(10) < 5, (60, 1))
        half_of_them = np.repeat(np.arange(60) < 30, 10).reshape(60, 10)
        path = tmp_path / f"sorted.{ending}"
        outcomes = np.stack([half_of_each, half_of_them]).astype(int)
        if ending == "npz":
            np.savez(path, R=outcomes)
        else:
            write_table(path, outcomes)
        assert self.verdicts(path) == (0, 0, ["open"])

    @pytest.mark.slow
    def test_rows_that_are_there_many_times(self, tmp_path):
        rng = np.random.default_rng(2)
        rows = [f"m{model},q{question},{rng.integers(2)}" for model in range(2) for question in range(60)]
        varied = ["m0,q0,0", "m0,q0,1"]  # a question whose trials differ
        path = tmp_path / "twenty_times.csv"
        path.write_text("\n".join(["model,question,score", *(rows + varied) * 20]), encoding="utf-8")
        assert isinstance(command("analyze", path).exception, OutcomesError)
        for told in (rows * 2 + rows[:40], (rows[:4] + rows[60:64]) * 2):  # some thrice; too few to tell
            path.write_text("\n".join(["model,question,score", *told]), encoding="utf-8")
            printed("analyze", path, "--replicates", 2)
        numbered = [f"{row},{number // len(rows)}" for number, row in enumerate(rows * 20)]
        path.write_text("\n".join(["model,question,score,trial", *numbered]), encoding="utf-8")
        printed("analyze", path, "--replicates", 2)
        written = [
            {"model": f"m{m}", "question": f"q{q}", "score": 1, "text": f"answer {trial} of {m} to {q}"}
            for m in range(2)
            for q in range(30)
            for trial in range(3)
        ]
        path = tmp_path / "other_texts.jsonl"
        path.write_text("".join(f"{json.dumps(row)}\n" for row in written), encoding="utf-8")
        printed("analyze", path, "--replicates", 2)

    def test_wrong_answers_that_are_lost(self, tmp_path):
        rng = np.random.default_rng(1)
        outcomes = rng.integers(0, 2, (2, 60, 10))
        lost = (rng.random((60, 10)) < 0.6) & (outcomes[0] == 0)
        outcomes[0][lost] = -1
        path = tmp_path / "lost.csv"
        write_table(path, outcomes)
        assert self.verdicts(path) == (0, 0, ["open"])
        outcomes[0] = -1
        write_table(path, outcomes)
        done = command("analyze", path)
        assert "note: m0 is left out: none of its trials has an answer\n" in done.stderr
        assert done.stdout.startswith("1 model, 60 questions, 600 trials\n\nm1 scores ")


def write_table(path, outcomes):
    """Write a row a trial; a lost one has no score."""
    lines = ["model,question,trial,score"]
    for (model, question, trial), score in np.ndenumerate(outcomes):
        lines.append(f"m{model},q{question},{trial},{score if score >= 0 else ''}")
    path.write_text("\n".join(lines), encoding="utf-8")


def analysis_of(path, *options):
    return json.loads(printed("analyze", path, "--json", "--replicates", 2, "--workers", 1, *options))
