"""What a run watches in its answers: repeats that are copies, and models that change."""

import asyncio
import random
from collections import Counter
from dataclasses import replace
from itertools import count, product

import pytest

from adaptive_eval.engine import drift
from adaptive_eval.engine.drift import DriftWatch
from adaptive_eval.engine.independence import AuditedExecutor, IndependenceAudit, temperature_of
from adaptive_eval.errors import ScorerUnavailable, TransientEndpointError
from adaptive_eval.store.records import LoggedTrial
from adaptive_eval.trial import SAME_TEXT, Completion, Score, TrialKey, TrialRequest, Usage
from scorio.sequential.drift import DriftEvidence, rank_among

# The audit of repeated answers: copies are found, and what comes again by nature is not cried over.


QUESTIONS = [f"q{number}" for number in range(40)]
WORDS = [f"word{number}" for number in range(500)]


def essay(seed, words=150):
    """Return some 1,000 bytes that hardly two seeds share."""
    return " ".join(random.Random(seed).choices(WORDS, k=words))


def audited(
    answer, *, temperature=0.7, passes=4, response_id=lambda question, repeat: f"cmpl-{question}-{repeat}"
):
    """Return the kind of each answer and the warnings; `answer` gives the text from question and repeat."""
    audit = IndependenceAudit({"m": temperature})
    copies = []
    for repeat in range(passes):
        for question in QUESTIONS:
            answered = Completion(answer(question, repeat), "stop", response_id=response_id(question, repeat))
            copies.append(audit.observe("m", ("t", question), answered))
    return copies, audit.remarks()


def every_other(question, repeat):
    """Answer every other question with a copy."""
    return essay(question if QUESTIONS.index(question) % 2 else f"{question}/{repeat}")


def same_id(question, repeat):
    return f"chatcmpl-{question}-x"


def by_question(question, repeat):
    return essay(question)


def letter(question, repeat):
    return "B"


COPIES = {
    "a cache": (by_question, {}, 1.0),
    "hot": (by_question, {"temperature": 1.5}, 1.0),
    "half of it": (every_other, {}, 0.5),
    "one of two texts": (lambda question, repeat: essay(f"{question}/{repeat % 2}"), {}, 2 / 3),
    "short under one id": (letter, {"response_id": same_id}, 1.0),
    "at temperature 0 under one id": (letter, {"response_id": same_id, "temperature": 0.0}, 1.0),
}


def test_answers_of_an_earlier_session_are_known_by_their_ids():
    """A short text alone is no copy, but one under the id of an earlier answer with that text is."""
    audit = IndependenceAudit({"m": 0.7})
    earlier = Completion("B", "stop", response_id="chatcmpl-of-one-answer")
    digests = earlier.digest, earlier.response_digest
    stored = LoggedTrial(TrialKey("m", 0), "t", "q", 1, Usage(), "stop", "", False, 0.0, *digests, ())
    audit.take(stored._replace(earlier=True))
    audit.observe("m", ("t", "p"), replace(earlier, response_id="chatcmpl-elsewhere"))
    later = [replace(earlier, response_id=name) for name in ("chatcmpl-of-another", earlier.response_id)]
    assert [audit.observe("m", ("t", "q"), one) for one in later] == ["", "copy"]


@pytest.mark.parametrize("kind", COPIES)
def test_copies_and_what_may_be_one_are_found_at_once_and_told(monkeypatch, kind):
    monkeypatch.setattr("adaptive_eval.engine.independence.KEPT", len(QUESTIONS))
    answer, parts, share = COPIES[kind]
    found, (warning,) = audited(answer, **parts)
    surely = "one id" in kind
    assert found.count("copy" if surely else SAME_TEXT) == 120 * share
    assert found.count("") == len(found) - 120 * share
    assert not any(found[:40])
    assert warning.startswith(f"m: {120 * share:g} of 120 answers to a question asked again are")
    assert ("copies: independent" in warning) is not surely


def test_the_word_of_the_user_silences_what_may_be_a_copy():
    audit = IndependenceAudit({"m": 0.7}, independent=True)
    for repeat in range(9):
        for question in QUESTIONS:
            kind = audit.observe("m", ("t", question), Completion(by_question(question, repeat), "stop"))
    assert kind == SAME_TEXT, "it is stored, so that the word can be taken back"
    assert not any("too long for a coincidence" in words for words in audit.remarks())
    assert audit.pointless("m") is None


NATURAL = {
    "essays": lambda question, repeat: essay(f"{question}/{repeat}"),
    "letters": letter,
    "nothing": lambda question, repeat: "",
    "boxes": lambda question, repeat: f"\\boxed{{{QUESTIONS.index(question)}}}.",
    "refusals": lambda question, repeat: "I'm sorry, but I cannot help with that. " * 8,
    "the same page for all": lambda question, repeat: essay("one"),
    "a template": lambda question, repeat: f'{essay("head")} {{"answer": "{question}"}} {essay("tail")}',
    "explanations": lambda question, repeat: essay(question, words=60),
}


@pytest.mark.parametrize("kind", NATURAL)
def test_what_comes_again_by_nature_counts(kind):
    for ids, temperature in (("cmpl-of-this-server", 0.7), ("{}", 1.5), ("", 0.7)):
        options = {"response_id": lambda question, repeat, ids=ids: ids.format(question)}
        copies, warnings = audited(NATURAL[kind], temperature=temperature, **options)
        assert not any(copies)
        assert all("They count" in warning for warning in warnings)


def test_equal_answers_at_temperature_0_are_no_copies():
    assert audited(by_question, temperature=0.0) == ([""] * 160, ())


def test_short_answers_that_never_vary_are_told_of_and_one_that_differs_ends_that():
    _, (warning,) = audited(letter)
    assert warning.startswith("m: all 120 answers to a question asked again are the same text")
    assert "deterministic: true" in warning
    varied = audited(lambda question, repeat: "C" if (question, repeat) == ("q7", 2) else "B")
    assert varied == ([""] * 160, ())


def test_a_model_of_nothing_but_copies_is_asked_no_more():
    audit = IndependenceAudit({"m": 0.7})

    def ask(answer, passes):
        for repeat in range(passes):
            for question in QUESTIONS:
                audit.observe("m", ("t", question), Completion(answer(question, repeat), "stop"))

    ask(by_question, 8)
    assert audit.pointless("m") is None
    ask(by_question, 1)
    assert "the last 320 answers" in audit.pointless("m")
    ask(lambda question, repeat: essay(f"{question} once more"), 1)
    assert audit.pointless("m") is None


def test_equal_short_answers_between_copies_do_not_make_a_copying_proxy_worth_its_money():
    """They say nothing new: the same text as before. Another text does."""
    audit = IndependenceAudit({"m": 0.7})
    short = Completion("4", "stop", response_id="own response id")

    def ask(times):
        for _ in range(times):
            for name in ("q1", "q2"):
                stored = Completion(f"{name}: 4", "stop", response_id=f"{name} of the cache")
                audit.observe("m", ("t", name), stored)
            audit.observe("m", ("t", "q3"), replace(short, response_id=f"id {next(numbers)}"))

    numbers = count()
    ask(149)
    assert audit.pointless("m") is None
    ask(2)
    assert "the last 300 answers" in audit.pointless("m")
    audit.observe("m", ("t", "q3"), replace(short, text="5"))
    assert audit.pointless("m") is None


def test_answers_of_one_question_after_the_other_are_told_from_its_template():
    """As with several answers of one request: the latest answer is to the same question."""
    audit = IndependenceAudit({"m": 0.7})
    text = f"{essay('head')} B {essay('tail')}"
    asked = [("t", question) for question in QUESTIONS for _ in range(8)]
    assert not any(audit.observe("m", question, Completion(text, "stop")) for question in asked)


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"temperature": 0.8}, 0.8), ({"temperature": 1}, 1.0), ({}, 0.6), ({"temperature": None}, 0.6),
        ({"temperature": 0}, 0.0), ({"temperature": 0.0}, 0.0), ({"temperature": 1.0, "top_k": 1}, 0.0),
        ({"temperature": 1.0, "top_k": 20}, 1.0),
    ],
)  # fmt: skip
def test_the_temperature_of_a_model(parameters, expected):
    assert temperature_of(parameters) == expected


@pytest.mark.parametrize(
    "failure",
    [
        ScorerUnavailable("the judge wise did not answer", kind="judge"),
        TransientEndpointError("the answer cannot be scored", kind="malformed"),
    ],
)
def test_an_answer_that_waits_for_its_scorer_is_no_copy_of_itself(failure):
    """Nor is one that is asked for again, with its seed, because it lacked something."""

    class Executor:
        def __init__(self):
            self.asked = 0

        async def score(self, request, completion):
            self.asked += 1
            if self.asked % 3:
                raise failure
            return Score(1, completion.text)

    async def main():
        for step, (task, question) in enumerate(product("tu", QUESTIONS)):
            request = TrialRequest(TrialKey("m", step), task, question, 0, seed=step)
            completion = Completion(essay(question), "stop", response_id=f"chatcmpl-{question}-{step}")
            for _ in range(2):
                with pytest.raises(type(failure)):
                    await executor.score(request, completion)
            assert (await executor.score(request, completion)).category == 1

    audit = IndependenceAudit({"m": 0.7})
    executor = AuditedExecutor(Executor(), audit)
    asyncio.run(main())
    assert audit.remarks() == ()


# The evidence that a model changes: false alarms as promised, changes found, and per server.


def found_at(rng, questions, passes, mean, later=None, change=None, limit=20.0):
    """Return after how many outcomes the evidence reaches `limit`; None where it does not."""
    evidence, seen, n = DriftEvidence(), [{} for _ in range(questions)], 0
    shares = [min(1.0, max(0.0, rng.gauss(mean, 0.2))) for _ in range(questions)]
    for _ in range(passes):
        for question in range(questions):
            share = shares[question] if change is None or n < change else shares[question] + later
            value = float(rng.random() < share)
            evidence.add(rank_among(value, seen[question], rng.random()), value=value)
            seen[question][value] = seen[question].get(value, 0) + 1
            n += 1
            if evidence.peak >= limit:
                return n
    return None


@pytest.mark.slow
@pytest.mark.parametrize(("questions", "passes", "mean"), [(40, 10, 0.5), (10, 40, 0.9), (200, 2, 0.3)])
def test_false_alarms_are_as_rare_as_promised(questions, passes, mean):
    """At the limit 20: 5 % at most. 400 runs, seed 11; 33 alarms or more would have a chance of 0.3 %."""
    rng = random.Random(11)
    alarms = sum(found_at(rng, questions, passes, mean) is not None for _ in range(400))
    assert alarms < 33


def test_ranks_in_the_middle_win_nothing_and_lose_nothing():
    evidence = DriftEvidence()
    for _ in range(60):
        evidence.add(0.5, value=1.0)
    assert evidence.peak == pytest.approx(1.0)


def test_a_fall_is_found_soon():
    rng = random.Random(12)
    delays = [found_at(rng, 50, 40, 0.8, -0.4, 500, limit=2000.0) for _ in range(50)]
    assert all(delay is not None and delay > 500 for delay in delays)
    assert sorted(delays)[25] < 800


def watched(watch, rng, share, trials, servers=("",), questions=50, order=None, lost=lambda step: False):
    """Feed a watch with trials of the model m, whose share of right answers depends on step and server."""
    for step in order or range(trials):
        server = servers[step % len(servers)]
        right = None if lost(step) else int(rng.random() < share(step, server))
        watch.add(TrialKey("m", step), ("t", str(step % questions)), right, at=float(step), server=server)


def test_one_server_of_a_pool_that_changes_is_named():
    watch, rng = DriftWatch(), random.Random(13)
    servers = ("http://gpu1", "http://gpu2", "http://gpu3")
    watched(watch, rng, lambda step, at: 0.2 if at == "http://gpu2" and step > 1500 else 0.9, 4500, servers)
    assert any(words.startswith("m at http://gpu2: ") for words in watch.remarks())
    assert not any("gpu1" in words or "gpu3" in words for words in watch.remarks())


def test_the_third_server_is_told_at_a_limit_of_its_own():
    """2/.001 · 3 · 4 for its evidence, which is that of its outcomes alone."""
    watch, rng, evidence, seen = DriftWatch(), random.Random(21), DriftEvidence(), {}
    servers, told = ("http://gpu1", "http://gpu2", "http://gpu3"), []
    for step in range(6000):
        question, server = str(step % 50), servers[step % 3]
        right = int(rng.random() < (0.35 if step > 1500 and server == servers[2] else 0.7))
        if server == servers[2]:
            earlier = seen.setdefault(question, Counter())
            evidence.add_among(right, earlier, drift.uniform("m", step), value=right)
            earlier[right] += 1
        watch.add(TrialKey("m", step), ("t", question), right, at=0.0, server=server)
        told = [words for words in watch.remarks() if words.startswith("m at http://gpu3: ")]
        assert bool(told) == (evidence.peak >= 2_000 * 3 * 4)
        if told:
            break
    assert told


def test_a_server_that_was_alone_is_compared_with_what_it_answered_then():
    """It changes at the moment at which another joins."""
    watch, rng = DriftWatch(), random.Random(15)
    watched(watch, rng, lambda step, at: 0.9, 2000, ("http://gpu1",))
    servers = ("http://gpu1", "http://gpu2")
    watched(
        watch, rng, lambda step, at: 0.3 if at == "http://gpu1" else 0.9, 0, servers, order=range(2000, 4000)
    )
    assert any(words.startswith("m at http://gpu1: ") for words in watch.remarks())
    assert not any("gpu2" in words for words in watch.remarks())


def test_slower_right_answers_are_no_change():
    """Outcomes count in the order of the sequence: those that come late are waited for."""
    late, early = DriftWatch(), DriftWatch()
    rights = [int(random.Random(step).random() < 0.5) for step in range(3000)]
    order = sorted(range(3000), key=lambda step: step + 400 * rights[step])
    for watch, steps in ((late, order), (early, range(3000))):
        for step in steps:
            watch.add(TrialKey("m", step), ("t", str(step % 30)), rights[step], at=0.0, server="")
    assert late.remarks() == early.remarks() == []


def test_missing_trials_hold_up_nothing():
    watch, rng = DriftWatch(), random.Random(14)
    watched(watch, rng, lambda step, at: 0.9 if step < 1000 else 0.3, 2000, lost=lambda step: step % 7 == 0)
    assert len(watch.remarks()) == 1
    assert watch.changes[0].at == pytest.approx(1000, abs=20)


def test_missing_trials_are_no_change():
    watch, rng = DriftWatch(), random.Random(16)
    watched(watch, rng, lambda step, at: 0.9, 3000, lost=lambda step: step > 1500 and rng.random() < 0.6)
    assert list(watch.remarks()) == []


def test_a_lost_outcome_is_not_waited_for_without_end(monkeypatch):
    monkeypatch.setattr("adaptive_eval.engine.drift.KEPT", 500)
    watch, rng = DriftWatch(), random.Random(17)
    watched(watch, rng, lambda step, at: 0.9 if step < 1500 else 0.3, 0, order=range(1, 3000))
    assert len(watch.remarks()) == 1


def test_a_change_is_said_once_where_the_servers_of_earlier_trials_are_unknown():
    """As in a resumed run: nearly all outcomes of the model are of its only server."""
    watch, rng = DriftWatch(), random.Random(18)
    watched(watch, rng, lambda step, at: 0.9, 50)
    steps = range(50, 4000)
    watched(watch, rng, lambda step, at: 0.9 if step < 2000 else 0.2, 0, ("http://gpu1",), order=steps)
    (words,) = watch.remarks()
    assert words.startswith("m: ")


def test_all_alarms_about_a_model_share_the_chance_that_is_promised():
    of_servers = sum(1.0 / drift._limit_of(place) for place in range(1, 10_000))
    assert 1.0 / drift._LIMIT + of_servers == pytest.approx(drift.FALSE_ALARM, rel=1e-3)
