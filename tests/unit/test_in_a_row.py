"""Questions asked several times in a row, and questions in groups."""

import json
from collections import Counter
from dataclasses import replace
from itertools import groupby, pairwise

import numpy as np
import pytest
from config_texts import plain
from hypothesis import given, settings
from hypothesis import strategies as st
from session_scripts import calls, coin, drive, make_spec

from adaptive_eval.build.assembly import build
from adaptive_eval.build.session_spec import MOST_SAMPLES, best_samples_per_prompt
from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import SessionSpec
from adaptive_eval.errors import DatasetError
from adaptive_eval.trial import TrialKey, TrialOutcome
from scorio.sequential.contrasts import contrast_variance
from scorio.sequential.evidence import GUARD, log_evidence
from scorio.sequential.trial_sequence import TrialSequence

# Questions asked several times in a row: the walk, and trials that are issued together.


MEANS = [0.85, 0.6, 0.6, 0.2]


@given(questions=st.integers(1, 300), samples_per_prompt=st.integers(1, 9), blocks=st.integers(1, 3))
@settings(max_examples=20)
def test_after_each_block_every_question_was_asked_equally_often(questions, samples_per_prompt, blocks):
    sequence = TrialSequence(range(questions), samples_per_prompt)
    times = 1 + blocks * samples_per_prompt
    steps = questions * times
    assert (np.bincount(sequence.question(0, steps), minlength=questions) == times).all()
    whole = sequence.complete(0, steps)
    assert all(whole[questions * (1 + block * samples_per_prompt) - 1] for block in range(1, blocks + 1))


def spec_of(samples_per_prompt=4, *, models=4, questions=20, **parts) -> SessionSpec:
    spec = make_spec(models, questions, **{"equivalence": 0.3, **parts})
    return replace(spec, samples_per_prompt=samples_per_prompt)


def runs_of(requests):
    """Return the lengths of the runs of one question in what a session asks for, by model."""
    found = {}
    for request in requests:
        found.setdefault(request.key.model, []).append(request)
    return [
        len(list(run)) for mine in found.values() for _, run in groupby(mine, key=lambda one: one.question)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["round-robin", "uniform", "top-two"])
@pytest.mark.parametrize("slots", [5, 16])
def test_a_run_of_one_question_is_issued_whole(policy, slots):
    goal = {"goal": "budget", "trials": 500} if policy == "top-two" else {}
    session = Session(spec_of(policy=policy, **goal))
    asked, flying, rng = [], [], np.random.default_rng(3)
    while session.stopped is None and len(asked) < 250:
        free = {f"m{n}": slots - session.states.in_flight[n] for n in range(4)}
        requests = session.ask(free)
        assert all(Counter(r.key.model for r in requests)[name] <= places for name, places in free.items())
        asked += [requests] if requests else []
        flying += requests
        rng.shuffle(flying)
        done, flying = flying[:3], flying[3:]
        session.tell([TrialOutcome(one.key, coin(MEANS)(one)) for one in done])
    later = []
    for requests in asked:
        later += runs_of([one for one in requests if one.repeat >= 2 or one.key.index >= 22])
    assert len(later) > 20
    assert sum(length == 4 for length in later) >= 0.9 * len(later)


@pytest.mark.parametrize("place", [1, 2, 3])
def test_a_run_that_a_kill_has_cut_at_the_end_of_what_is_laid_out_is_asked_to_its_end(place):
    """All that is laid out was asked, and one of the last answers had come."""
    spec = spec_of(3, models=2, questions=6, goal="budget", rounds="rounds", trials=500)

    def asked(session):
        found, free = [], {"m0": 400, "m1": 400}
        while new := session.ask(free):
            found += new
        return {one.key: one for one in found}

    session, made = Session(spec), Session(spec)
    before = asked(session)
    told = TrialKey("m0", session.board.run_sequence.laid_out(0) - place)
    made.replay([[TrialOutcome(told, 1)]])
    assert len(before) > 40
    assert asked(made) == {key: one for key, one in before.items() if key != told}


def test_fewer_slots_than_a_run_are_filled_when_nothing_is_in_flight():
    session = Session(spec_of(goal="budget", trials=200, models=1))
    drive(session, coin(MEANS), slots=3)
    assert session.stopped.reason == "budget"
    assert session.budget.completed == 200


def verdicts(session):
    return {models: verdict for models, verdict, *_ in calls(session)}


@pytest.mark.slow
@settings(max_examples=4)
@given(seed=st.integers(0, 2**32 - 1), slots=st.integers(1, 30))
def test_order_and_concurrency_turn_no_verdict_of_a_family(seed, slots):
    """Holm's levels fall with the calls of other pairs: the step of a call is not fixed, as alone."""
    spec = spec_of(family="holm")
    plain = drive(Session(spec), coin(MEANS), slots=4)
    shuffled = drive(Session(spec), coin(MEANS), slots=slots, rng=np.random.default_rng(seed))
    assert verdicts(shuffled) == verdicts(plain)
    assert shuffled.stopped.reason == "resolved"


def test_trials_of_a_question_have_neighbouring_seeds_and_no_two_the_same():
    session = Session(spec_of(goal="budget", trials=1200, models=2, equivalence=None))
    seeds = {}

    def answer(request):
        seeds[request.key.model, request.question, request.repeat] = request.seed
        return 1

    drive(session, answer, slots=16)
    assert len(seeds) == 1200 == len(set(seeds.values()))
    for (model, question, repeat), seed in seeds.items():
        assert 0 <= seed < 2**31
        assert seed == seeds[model, question, 0] + repeat


def test_exact_reads_every_pass_of_samples_per_prompt_of():
    """Passes that are complete together count like passes one after the other."""
    decided = {}
    for samples_per_prompt in (1, 4):
        spec = spec_of(samples_per_prompt, models=2, rule="exact", equivalence=None, max_passes=81)
        (call,) = calls(drive(Session(spec), coin(MEANS[:2], seed=1), slots=4))
        decided[samples_per_prompt] = call[2]
    assert decided[4] % (4 * 20) == 20
    assert decided[4] < 2 * decided[1]


@pytest.mark.parametrize("questions", [15, 16])
def test_rounds_ask_every_question_in_whole_runs(questions):
    """A round is as long as everything before it, and a multiple of the runs."""
    spec = spec_of(2, models=1, questions=questions, rounds="rounds", goal="budget", trials=13 * questions)
    session = drive(Session(spec), coin([0.6], spread=0.3), slots=4)
    sequence = session.board.cells[0].sequence
    whole = int(sequence.laid_out(0)) - 2 * questions  # without the first pass of the next round
    begins = [*session.board.cells[0].rounds.begins, whole]
    for begin, end in pairwise(begins[: begins.index(begins[-1]) + 1]):
        asked = sequence.questions_of(np.zeros(1, dtype=int), begin, end)[0]
        assert (np.bincount(asked, minlength=questions) % 2 == 0).all()
        assert begin <= end - begin < begin + 2 * questions


def test_repeats_in_a_row_are_worth_a_part_of_one_in_a_score_too():
    """They are of few questions, and say little of the noise of the others."""
    spec = spec_of(models=1, goal="width", width=0.2, equivalence=None)
    session = drive(Session(spec), coin([0.6], spread=0.3), most=70)
    path, one = session.board.cells[0].latest(), np.ones((1, 1))
    seen = path.seen
    square = path.square - path.total**2 / seen
    noise = path.w, path.u, path.g, path.r / 4
    expected = contrast_variance(square, GUARD * one, seen, 20, noise, "benchmark")
    session.results()
    assert session.comparison.latest.variance == pytest.approx(expected[0])
    assert session.board.scores().variance == pytest.approx(expected)


# ``samples_per_request: auto``: what it is follows from prompts and answers, and stays for a whole run.


LENGTHS = st.floats(1.0, 100_000.0)


@given(prompt=LENGTHS, answer=LENGTHS, factor=st.floats(1.0, 50.0))
def test_longer_prompts_ask_for_more_and_longer_answers_for_less(prompt, answer, factor):
    best = best_samples_per_prompt(prompt, answer)
    assert 1 <= best <= MOST_SAMPLES
    assert best_samples_per_prompt(factor * prompt, answer) >= best
    assert best_samples_per_prompt(prompt, factor * answer) <= best


@given(prompt=LENGTHS, answer=LENGTHS)
def test_only_the_ratio_counts(prompt, answer):
    assert best_samples_per_prompt(prompt, answer) == best_samples_per_prompt(2.0 * prompt, 2.0 * answer)


def built(folder, question, *, wanted=("auto", "auto"), tokens=64, extra=None, **changes):
    """Return a run over twenty questions of this text."""
    rows = [{"id": f"q{number}", "input": f"{number} {question}", "target": "7"} for number in range(20)]
    (folder / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    alike, models = {"sampling": {"max_tokens": tokens}, "extra_body": extra or {}}, []
    for name, number in zip("ab", wanted, strict=True):
        own = {"name": name, "endpoints": [f"http://{name}/v1"], "samples_per_request": number}
        models.append(own | alike)
    task = {"name": "t", "dataset": "q.jsonl", "scorer": "numeric", "prompt": "{input}"}
    return build(config_from_data({"name": "demo", "models": models, "tasks": [task], **changes}, folder))


SHORT, LONG = "What is 3 + 4?", "Read this. " * 400


@pytest.mark.parametrize(
    ("question", "tokens", "wanted", "samples_per_prompt"),
    [
        (SHORT, 4096, ("auto", "auto"), 1),
        (LONG, 64, ("auto", "auto"), 8),
        (LONG, 64, ("auto", 1), 8),
        (LONG, 32_000, ("auto", "auto"), 1),
        (SHORT, 4096, ("auto", 3), 3),
        (LONG, 64, (1, 1), 1),
    ],
)
def test_it_follows_the_run(tmp_path, question, tokens, wanted, samples_per_prompt):
    run = built(tmp_path, question, tokens=tokens, wanted=wanted)
    assert run.samples_per_prompt == samples_per_prompt
    assert run.spec.samples_per_prompt == samples_per_prompt
    assert run.identity.get("samples_per_request", 1) == samples_per_prompt


def test_answers_at_temperature_0_would_agree_with_each_other(tmp_path):
    run = built(tmp_path, LONG, extra={"temperature": 0})
    assert (run.samples_per_prompt, run.spec.greedy) == (1, (0, 1))


def test_what_may_change_between_two_sittings_does_not_change_it(tmp_path):
    one = built(tmp_path, LONG)
    changes = {"stopping": {"max_passes": 5}, "budget": {"trials": 100}}
    other = built(tmp_path, LONG, servers=[{"url": "http://a/v1", "concurrency": 2}], **changes)
    assert one.samples_per_prompt == other.samples_per_prompt == 8
    assert one.identity == other.identity


# Questions in groups: a config names the groups, and only where questions are a sample do they count.


ROWS = [{"id": f"q{n}", "q": f"{n} + 1?", "a": str(n + 1), "passage": n // 3} for n in range(12)]
FIELDS = {"input": "q", "target": "a", "cluster": "passage"}


def grouped(folder, target="population", fields=FIELDS, rows=ROWS):
    (folder / "d.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    task = {"dataset": "d.jsonl", "scorer": "numeric", "fields": fields}
    return build(config_from_data(plain(task=task, stopping={"target": target}), folder))


def test_a_column_names_the_clusters(tmp_path):
    assert grouped(tmp_path).spec.tasks[0].clusters == tuple(str(n // 3) for n in range(12))


def test_for_these_very_questions_there_are_none(tmp_path):
    assert grouped(tmp_path, target="benchmark").spec.tasks[0].clusters is None
    assert grouped(tmp_path, fields={"input": "q", "target": "a"}).spec.tasks[0].clusters is None


def test_a_question_without_its_cluster_is_a_mistake(tmp_path):
    rows = [*ROWS[:3], {key: ROWS[3][key] for key in ("id", "q", "a")}, *ROWS[4:]]
    with pytest.raises(DatasetError, match="line 4: the field 'passage' is missing"):
        grouped(tmp_path, rows=rows)


@pytest.mark.parametrize("groups", [1, 2, 6, 30])
def test_any_number_of_groups_gives_an_interval_and_groups_of_one_the_plain_one(groups):
    def answer(request):
        question = int(request.question[1:])
        chance = 0.5 + 0.1 * (request.key.model == "m0" and question % groups != 0)
        return int(
            np.random.default_rng([question, request.key.index, ord(request.key.model[1])]).random() < chance
        )

    def width(clusters):
        spec = make_spec(2, 30, target="population", goal="budget", trials=240)
        spec = replace(spec, tasks=(replace(spec.tasks[0], clusters=clusters),))
        (pair,) = drive(Session(spec), answer).results().pairs
        return pair.difference_high - pair.difference_low

    grouped = width(tuple(str(n % groups) for n in range(30)))
    assert np.isfinite(grouped)
    if groups == 30:
        assert grouped == pytest.approx(width(None), rel=0.1)


def test_a_score_too_is_as_uncertain_as_its_groups_differ():
    """Read step by step, for a width, and all at once, for the tables: the spread of groups by hand."""

    def answer(request):
        group = int(request.question[1:]) // 5
        return int(np.random.default_rng([group, request.key.index]).random() < 0.2 + 0.6 * (group % 2))

    spec = make_spec(1, 30, target="population", goal="width", width=0.01, trials=75)
    spec = replace(spec, tasks=(replace(spec.tasks[0], clusters=tuple(str(n // 5) for n in range(30))),))
    session = drive(Session(spec), answer)
    counts = session.board.cells[0].counts[0]
    means = counts[:, 1] / counts.sum(axis=1)
    sums = (means - means.mean()).reshape(6, 5).sum(axis=1)
    expected = (sums**2).sum() / 30**2 + GUARD / 6**2
    assert session.board.task_scores(0).variance[0, 0] == pytest.approx(expected)
    assert session.comparison.latest.guarded[0] == pytest.approx(expected)


@pytest.mark.parametrize(("means", "verdict"), [([0.8, 0.6], "better"), ([0.6, 0.8], "worse")])
def test_a_winner_by_bets_on_groups_has_an_interval_that_ends_at_0(means, verdict):
    """The bets call it long before the normal approximation would exclude 0."""
    spec = make_spec(2, 60, target="population", max_passes=6, seed=0)
    spec = replace(spec, tasks=(replace(spec.tasks[0], clusters=tuple(str(n % 30) for n in range(60))),))
    session = drive(Session(spec), coin(means), slots=4)
    (pair,) = session.results().pairs
    latest = session.comparison.latest
    end = pair.difference_low if verdict == "better" else pair.difference_high
    assert (pair.verdict, end) == (verdict, 0.0)
    assert log_evidence(latest.difference, latest.variance)[0] < 2.0
