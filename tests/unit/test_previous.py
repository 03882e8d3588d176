"""What a run takes from earlier runs and files; what it refuses is in ``tests/data/refusals.txt``."""

import json
from dataclasses import replace

import numpy as np
import pytest
from config_texts import plain
from run_examples import STARTED, Coins

from adaptive_eval.build.assembly import build
from adaptive_eval.build.previous_trials import _judging
from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.core.references import reference_warnings
from adaptive_eval.errors import OutcomesError
from adaptive_eval.interop.found import ReadingOptions
from adaptive_eval.interop.import_run import import_logs
from adaptive_eval.interop.recorded_files import open_logs
from adaptive_eval.run.rescoring import rescore, stored_scoring
from adaptive_eval.run.rescoring_specs import RescoringSpec, read_rubric, read_scorer
from adaptive_eval.scoring.rubric import attempt_signals
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.trial import COPY_REASON, SAME_TEXT, TrialKey, TrialRequest

QUESTIONS = 12
TASK = {"name": "t", "dataset": "t.jsonl", "scorer": "exact"}
BOTH = (TASK, {**TASK, "name": "u", "dataset": "u.jsonl"})
IDS = tuple(f"n{number}" for number in range(QUESTIONS))
SERIES = {
    "step-2000 step-10000 step-900 step-3000 step-1000 other": {
        "step-3500": "step-3000", "step-3000": "step-2000", "step-1000": "step-900", "new": "other"
    },
    "v1.10 v1.9.2 v1.9 v1.8 step-2000": {"v1.10": "v1.9.2", "v1.9.1": "v1.9", "v1.9": "v1.8", "v2": "v1.10"},
}  # fmt: skip
"""Runs of a series, and the run before each."""
REFERENCE = [{"run": "first", "models": ["a"]}]


def datasets(folder):
    """Write the datasets of the tasks, and return their folder."""
    rows = [{"id": one, "input": f"{n} + 1?", "target": str(n + 1)} for n, one in enumerate(IDS)]
    for name in ("t", "u"):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture
def folder(tmp_path):
    return datasets(tmp_path)


def built(folder, *models, tasks=(TASK,), seed=3, **parts):
    return build(config_from_data(plain(*models, seed=seed, tasks=list(tasks), **parts), base_dir=folder))


def stored_run(folder, name, chances, *, steps=40, gaps=(), copies=(), alike=(), missing=0.0, **parts):
    """Write a run whose models have walked `steps` steps; return its trials by model and step."""
    allocation = {"questions": "schedule"}
    run = built(folder, *chances, goal={"kind": "width", "width": 0.1}, allocation=allocation, **parts)
    session, answers, found = run.session(), Coins(chances, missing=missing), {}
    run_sequence = session.board.run_sequence
    with RunWriter.create(folder / name, meta=run.meta(), durability="normal") as writer:
        for step in range(steps):
            for model in chances:
                if (model, step) in gaps:
                    continue
                task, question = run_sequence.at(step)
                names = run.spec.tasks[task]
                asked = names.name, names.questions[question], run_sequence.repeat(step), step
                request = TrialRequest(TrialKey(model, step), *asked)
                record = answers.answer(request, STARTED + step, after_stop=False)
                if (model, step) in copies:
                    record = replace(record, completion=None, score=None, missing=COPY_REASON)
                if record.score is not None:
                    signals = {**record.score.signals, **attempt_signals(record.completion)}
                    if (model, step) in alike:
                        signals[SAME_TEXT] = True
                    record = replace(record, score=replace(record.score, signals=signals))
                writer.launch([request], STARTED)
                writer.outcome(record)
                found[model, step] = record
        writer.commit()
    return found


def expected_counts(trials, model, *, before=10**9, depth=10**9):
    counts = np.zeros((QUESTIONS, 2), dtype=int)
    for (name, step), record in sorted(trials.items(), key=lambda item: item[0][1]):
        question = int(record.request.question[1:])
        if name == model and step < before and record.score is not None and counts[question].sum() < depth:
            counts[question, record.score.category] += 1
    return counts


class TestReferences:
    def test_takes_nothing_beyond_a_gap_and_no_trial_without_an_answer(self, folder):
        trials = stored_run(folder, "first", {"a": 0.8}, gaps={("a", 30)}, missing=0.2)
        run = built(folder, "new", references=REFERENCE)
        (reference,) = run.spec.references
        assert np.array_equal(reference.counts["t"], expected_counts(trials, "a", before=30))
        lost = sum(record.score is None for (_, step), record in trials.items() if step < 30)
        (again,) = replace(run, continued=run.meta()).spec.references
        assert reference.lost["t"].sum() == again.lost["t"].sum() == lost > 0
        assert any(
            f": {lost}; each counts as anything" in words for words in run.session().results().warnings
        )

    def test_takes_every_trial_of_the_named_models_but_for_copies(self, folder):
        trials = stored_run(folder, "first", {"a": 0.8, "b": 0.3}, copies={("b", 20), ("b", 33)})
        taken = [{"run": "first", "models": ["a", "b"]}]
        for reference in built(folder, "new", references=taken).spec.references:
            assert reference.source == "from first"
            assert np.array_equal(reference.counts["t"], expected_counts(trials, reference.name))
            assert reference.lost["t"].sum() == 0

    @pytest.mark.parametrize("word", ["bounded", "independent"])
    def test_takes_answers_that_may_be_copies_for_as_many_draws_as_they_are_at_least(self, folder, word):
        """A coin that is always right gives one text, of which the run says twice that it came again."""
        at = [("a", step) for step in (30, 35)]
        trials = stored_run(folder, "first", {"a": 1.0}, alike=at, on={"copies": word})
        run = built(folder, "new", references=REFERENCE)
        (reference,) = run.spec.references
        asked = {trials[key].request.question for key in at}
        number = expected_counts(trials, "a")[:, 1]
        pairs = [
            n * (n - 1) * (one in asked and word == "bounded") for one, n in zip(IDS, number, strict=True)
        ]
        assert reference.alike["t"].tolist() == pairs
        told = [words for words in reference_warnings(run.spec) if "text of another" in words]
        assert len(told) == (word == "bounded")
        assert np.array_equal(reference.counts["t"], expected_counts(trials, "a"))

    def test_takes_possible_copies_of_each_task_for_its_own(self, folder):
        at, tasks = [("a", 30), ("a", 35), ("a", 36)], (TASK, {**TASK, "name": "u"})
        trials = stored_run(folder, "first", {"a": 1.0}, alike=at, tasks=tasks)
        (reference,) = built(folder, "new", references=REFERENCE, tasks=tasks).spec.references
        asked = {(trials[key].request.task, trials[key].request.question) for key in at}
        for task, pairs in reference.alike.items():
            assert {IDS[place] for place in np.flatnonzero(pairs)} == {one for of, one in asked if of == task}
        assert {of for of, _ in asked} == {"t", "u"}

    def test_takes_equal_texts_of_a_file_for_one_draw_if_they_are_long(self, folder):
        rows = []
        for question in IDS:
            texts = [f"{question} " * 400] * 3 + [f"{question} {number}" * 400 for number in range(2)]
            texts = ["no"] * 5 if question == "n3" else texts
            rows += [{"model": "a", "question": question, "category": 1, "text": text} for text in texts]
        lines = [json.dumps({**row, "repeat": number}) for number, row in enumerate(rows)]
        (folder / "old.jsonl").write_text("\n".join(lines), "utf-8")
        (reference,) = built(
            folder, "new", references=[{"file": "old.jsonl", "models": ["a"]}]
        ).spec.references
        assert set(reference.alike["t"][1:].tolist()) == {6, 0}
        assert reference.alike["t"][3] == 0
        assert reference.counts["t"].tolist() == [[0, 5]] * QUESTIONS

    def test_a_trial_that_a_file_never_had_is_not_lost(self, folder):
        rows = [f"a,n{number},{number % 2}," for number in range(QUESTIONS)]
        rows += ["a,n3,1,", "a,n4,,timeout"]
        (folder / "old.csv").write_text("\n".join(["model,question,category,missing", *rows]), "utf-8")
        (reference,) = built(folder, "new", references=[{"file": "old.csv", "models": ["a"]}]).spec.references
        assert (reference.counts["t"].sum(), reference.lost["t"].tolist()) == (13, [0] * 4 + [1] + [0] * 7)

    def test_a_series_takes_what_asked_the_same_of_the_run_that_was_started_last(self, folder):
        other = {**TASK, "prompt": "{input}!"}
        begun = {"r0": ("a", TASK), "r1": ("b", TASK), "r2": ("a", TASK), "r3": ("c", other)}
        for name, (model, task) in begun.items():
            stored_run(folder, name, {model: 0.5}, tasks=(task,))
        found = {}
        for series, own in (("previous", "new"), ("earlier", "new"), ("previous", "a")):
            run = built(folder, own, references=[{"run": "r*", "series": series}])
            found[series, own] = [one.name for one in run.spec.references]
        assert found == {("previous", "new"): ["a"], ("earlier", "new"): ["a", "b"], ("previous", "a"): ["b"]}

    @pytest.mark.parametrize(("begun", "before"), SERIES.items())
    def test_a_series_is_ordered_by_step_or_version_and_not_by_start(self, folder, begun, before):
        for name in begun.split():
            stored_run(folder, name, {f"m{name}": 0.5})
        found = {}
        for own in before:
            run = built(folder, "x", name=own, references=[{"run": "*", "series": "previous"}])
            (found[own],) = (one.name.removeprefix("m") for one in run.spec.references)
        assert found == before

    def test_the_word_previous_takes_only_what_is_named_as_the_run_with_a_lower_number(self, folder):
        """Whatever else lies in the folder, of the same questions and scoring."""
        (folder / "runs").mkdir()
        shoot = {"w": 0.5, "x": 0.5, "y": 0.5, "z": 0.5}
        stored_run(folder, "runs/shootout", shoot)
        stored_run(folder, "runs/step-3000", {"later": 0.5})
        goal = {"kind": "width", "width": 0.1}
        for word, own, taken in (
            ("previous", "step-1000", []),
            ("previous", "shootout", []),
            ("previous", "step-4000", ["later"]),
            ("earlier", "step-3000", []),
        ):
            run = built(folder, "new", name=own, references=word, goal=goal)
            assert [one.name for one in run.spec.references] == taken, (word, own)
            assert bool(taken) != any("first of its series" in words for words in run.notices)
        stored_run(folder, "runs/step-500", {"before": 0.5})
        stored_run(folder, "runs/step-200", {"first": 0.5})
        for word, taken in (("previous", ["before"]), ("earlier", ["before", "first"])):
            run = built(folder, "new", name="step-1000", references=word, goal=goal)
            assert [one.name for one in run.spec.references] == taken
        named = [{"run": "runs/shoot*", "series": "previous"}]
        run = built(folder, "new", name="step-1000", references=named, goal=goal)
        assert {one.name for one in run.spec.references} == set(shoot), "the pattern is the user's"

    def test_the_first_of_a_series_has_no_reference_when_it_continues_either(self, folder):
        series = {"references": [{"run": "r*", "series": "earlier"}], "goal": "width=0.1 and ranking"}
        first = built(folder, "new", **series)
        assert first.spec.references == ()
        stored_run(folder, "r1", {"a": 0.5})
        assert replace(built(folder, "new", **series), continued=first.meta()).spec.references == ()

    def test_a_run_of_other_questions_is_refused_with_what_it_asked(self, folder):
        stored_run(folder, "first", {"a": 0.8}, tasks=({**TASK, "limit": 7, "prompt": "{input}!"},))
        with pytest.raises(OutcomesError, match="asked other questions as task 't'") as refused:
            _ = built(folder, "new", references=REFERENCE).spec
        there = json.loads(str(refused.value).partition("(there: ")[2].removesuffix(")"))
        assert (there["limit"], there["prompt"]) == (7, "{input}!")
        assert "dataset" not in there

    def test_a_scorer_whose_file_has_changed_is_another_scorer_where_the_run_says_which(self, folder):
        file = folder / "marks.py"
        file.write_text("def right(answer, question):\n    return True\n")
        tasks = ({**TASK, "scorer": {"kind": "python", "function": "marks:right"}},)
        stored_run(folder, "first", {"a": 0.8}, tasks=tasks)
        assert built(folder, "new", references=REFERENCE, tasks=tasks).spec.references
        file.write_text("def right(answer, question):\n    return False\n")
        with pytest.raises(OutcomesError, match=r"marks\.py has changed"):
            _ = built(folder, "new", references=REFERENCE, tasks=tasks).spec

    def test_stored_answers_that_have_changed_are_another_scoring(self):
        stored = {"scorer": {}, "rubric": {}, "missing": [], "against": "0"}
        assert _judging(stored, stored) != _judging({**stored, "against": "1"}, stored)
        assert _judging(stored, {"scorer": {}}) == _judging({"scorer": {}, "rubric": {}}, stored)
        assert _judging(stored, stored) != _judging({**stored, "answers": {"k": 2}}, stored)

    def task(self, **rubric):
        return ({**TASK, "rubric": {"schema": "efficiency-adjusted", **rubric}},)

    def test_takes_the_same_thresholds_wherever_they_come_from(self, folder):
        given = self.task(thresholds={"len_p33": 0.1, "len_p66": 0.3})
        stored_run(folder, "first", {"a": 0.8}, tasks=given)
        for tasks in (given, self.task(thresholds_from="first")):
            assert built(folder, "new", references=REFERENCE, tasks=tasks).spec.references
        other = self.task(thresholds={"len_p33": 0.2, "len_p66": 0.3})
        with pytest.raises(OutcomesError, match="has other thresholds"):
            print(built(folder, "new", references=REFERENCE, tasks=other).spec)


def test_a_prior_takes_the_first_trials_of_each_question(folder):
    trials = stored_run(folder, "first", {"a": 0.8, "old": 0.3})
    prior = built(folder, "a", "b", prior={"from": "first", "depth": 2}).spec.prior
    assert set(prior.counts) == {"a"}
    assert np.array_equal(prior.counts["a"]["t"], expected_counts(trials, "a", depth=2))
    assert prior.source == "2 previous trials a question of a, from first; none of b"


class TestFiles:
    def test_a_matrix_a_model_with_names(self, folder):
        outcomes = np.random.default_rng(1).integers(0, 2, (2, QUESTIONS, 3))
        outcomes[1, :, 2] = -1
        order = np.random.default_rng(2).permutation(QUESTIONS)
        np.savez(folder / "old.npz", R=outcomes[:, order], models=["a", "b"], questions=np.array(IDS)[order])
        prior = built(folder, "a", "b", prior={"from": "old.npz", "depth": 2}).spec.prior
        for model, name in enumerate("ab"):
            right = outcomes[model, :, :2].sum(axis=1)
            assert np.array_equal(prior.counts[name]["t"], np.stack([2 - right, right], axis=1))

    def test_counts_in_place_of_trials(self, folder):
        counts = np.random.default_rng(1).integers(0, 5, (1, QUESTIONS, 2))
        np.savez(folder / "old.npz", counts=counts, models=["a"], questions=IDS)
        references = [{"file": "old.npz", "models": ["a"]}]
        (reference,) = built(folder, "new", references=references).spec.references
        assert np.array_equal(reference.counts["t"], counts[0])
        prior = built(folder, "a", "b", prior={"from": "old.npz", "depth": 2}).spec.prior
        assert np.array_equal(prior.counts["a"]["t"].sum(axis=1), np.minimum(counts[0].sum(axis=1), 2))
        assert (prior.counts["a"]["t"] <= counts[0]).all()
        np.savez(folder / "old.npz", R=np.full((1, QUESTIONS, 1), 2), models=["a"], questions=IDS)
        with pytest.raises(OutcomesError, match=r"category 2 .* categories 0\.\.1"):
            print(built(folder, "new", references=references).spec)

    def test_an_imported_run_is_known_by_the_ids_of_its_questions(self, folder):
        outcomes = np.random.default_rng(2).integers(0, 2, (2, QUESTIONS, 3))
        order = [*range(5, QUESTIONS), *range(5)]
        names = [IDS[place] for place in order]
        np.savez(folder / "old.npz", R=outcomes[:, order], models=["a", "b"], questions=names)
        import_logs(open_logs([folder / "old.npz"], ReadingOptions(task="t")), folder / "imported")
        references = [{"run": "imported", "models": ["b"]}]
        (reference,) = built(folder, "new", references=references).spec.references
        assert reference.counts["t"][:, 1].tolist() == outcomes[1].sum(axis=1).tolist()
        prior = built(folder, "a", "c", prior={"from": "imported", "depth": 3}).spec.prior
        assert prior.counts["a"]["t"][:, 1].tolist() == outcomes[0].sum(axis=1).tolist()
        assert "from imported" in prior.source


def test_what_was_taken_stays_without_its_run_unless_the_config_asks_for_something_else(folder):
    stored_run(folder, "first", {"a": 0.8, "b": 0.5})
    taken = {"references": REFERENCE, "prior": {"from": "first", "depth": 2}}
    run, other = built(folder, "b", **taken), [{"run": "first", "models": ["b"]}]
    meta, before = run.meta(), run.spec.references[0].counts["t"]
    continued = replace(built(folder, "new", references=other), continued=meta)
    assert [reference.name for reference in continued.spec.references] == ["b"]
    (folder / "first").rename(folder / "elsewhere")
    continued = replace(built(folder, "b", **taken), continued=meta)
    counts = continued.spec.references[0].counts["t"]
    assert (counts.tolist(), counts.dtype, counts.sum()) == (before.tolist(), np.int64, 40)
    assert continued.spec.prior.source == run.spec.prior.source
    assert continued.meta()["previous"] == meta["previous"]


class TestRescoring:
    def test_a_task_is_ranked_by_its_own_rubric_and_among_the_asked_models_alone(self, folder):
        stored_run(folder, "old", {"a": 0.8, "b": 0.5, "c": 0.1}, steps=60, tasks=BOTH)
        stored_run(folder, "now", {"a": 0.9, "b": 0.3}, steps=60, tasks=BOTH)
        earlier = {"references": [{"run": "old", "models": ["c"]}], "prior": {"from": "old"}}
        run = built(folder, "a", "b", tasks=BOTH, **earlier)
        categories = [{"name": name, "when": name} for name in ("correct", "wrong")]
        flipped = {"name": "flipped", "categories": categories, "weights": [4, 0]}
        with RunReader(folder / "now") as reader:
            before = stored_scoring(run, reader).results
            spec = RescoringSpec("x", read_rubric(json.dumps({"schema": flipped})))
            (after,) = (one.results for one in rescore(run, reader, [spec], "t"))
        assert [line.model for line in after.models] == ["a", "b"]
        assert after.prior is before.prior is None
        for factor, task, again in zip((4, 1), before.tasks, after.tasks, strict=True):
            expected = [pytest.approx(factor * line.score) for line in task.scores]
            assert [line.score for line in again.scores] == expected

    def test_another_scorer_has_thresholds_of_its_own(self, folder):
        rubric = {"schema": "efficiency-adjusted", "thresholds": {"len_p33": 0.1, "len_p66": 0.3}}
        stored_run(folder, "first", {"a": 0.8}, tasks=({**TASK, "rubric": rubric},))
        taken = {"schema": "efficiency-adjusted", "thresholds_from": "first"}
        tasks = ({**TASK, "rubric": taken},)
        stored_run(folder, "now", {"a": 0.8, "b": 0.5}, tasks=tasks)
        spec = RescoringSpec("again", read_rubric("efficiency-adjusted"), scorer=read_scorer("exact"))
        with RunReader(folder / "now") as reader:
            both = [RescoringSpec("frozen", read_rubric("efficiency-adjusted")), spec]
            frozen, found = rescore(built(folder, "a", "b", tasks=tasks), reader, both)
        assert found.body["tasks"]["t"]["thresholds"] != rubric["thresholds"]
        assert frozen.body["tasks"]["t"]["thresholds"] == rubric["thresholds"]
