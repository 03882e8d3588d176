"""Judges and verifiers of crossed options, asked in this process: what they ask, say and spend."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any
from unittest.mock import patch

from course_facts import digest, text, together
from crossed_options import Case, Options, Refused, chance

from adaptive_eval.build import grading_model
from adaptive_eval.build.grading import grading_model_of
from adaptive_eval.errors import ScorerUnavailable, TransientEndpointError
from adaptive_eval.scoring.model_graded import Bill, grader_of
from adaptive_eval.scoring.registry import build_scorer
from adaptive_eval.scoring.rubric import Rubric, TaskScoring
from adaptive_eval.trial import Completion, Message, Question, ScoreRange, Usage
from scorio.categorical import get_schema

GRADERS: Options = {
    "kind": ("judge", "number", "pairwise", "against", "verifier"),
    "votes": ("one", "three", "five"),
    "replies": ("plain", "noisy", "nonsense", "failing"),
    "budget": ("none", "requests", "tokens", "usd"),
    "second": ("none", "each"),
    "options": ("usual", "strict", "bare"),
    "reasoning": ("stripped", "shown", "kept"),
    "criteria": ("none", "some"),
    "whole": ("alone", "first-check", "one-of-all", "cut-off"),
    "rubric": ("none", "judged", "form"),
}
"""The options of judges and verifiers; a verifier has no votes."""
GRADERS_REFUSED: Refused = (
    ("kind", "verifier", "votes", "three five"),
    ("kind", "verifier", "second", "each"),
    ("kind", "number against", "rubric", "form"),
    ("kind", "number against", "whole", "first-check one-of-all"),
)
KINDS: Mapping[str, Mapping[str, Any]] = {
    "judge": {}, "number": {"range": (1, 10)}, "pairwise": {"compare": "pairwise"}, "verifier": {},
    "against": {"against": "old#m0"},
}  # fmt: skip
BUDGETS: Mapping[str, Any] = {"requests": {"requests": 14}, "tokens": {"tokens": 60_000}, "usd": {"usd": 0.3}}


class Server:
    """Answers in the place of a server, by what it is asked and at which seed."""

    def __init__(self, replies: str) -> None:
        self.replies = replies
        self.asked: list[object] = []
        self.failed: set[object] = set()

    def made(self, *arguments: object, **options: object) -> "Server":
        """Return it in the place of a client."""
        self.asked.append([*map(str, arguments[1:]), sorted(options.items(), key=str)])
        return self

    async def sample(
        self, messages: Sequence[Message], *, seed: int | None, n: int, parameters: Mapping[str, Any]
    ) -> list[Completion]:
        """Return one reply."""
        prompt = "\n".join(f"{one.role}: {one.content}" for one in messages)
        self.asked.append((digest([prompt]), seed, n, json.dumps(parameters, sort_keys=True)))
        drawn = seed if parameters.get("temperature") else None
        key = (digest([prompt]), drawn)
        luck = chance("luck", self.replies, key)
        if self.replies == "failing" and luck < 0.3 and key not in self.failed:
            self.failed.add(key)
            if luck < 0.2:  # lost whenever it comes, which a status is by its time
                raise TransientEndpointError("cut", kind="dropped")
            raise TransientEndpointError("busy", kind="server", status=429)
        usage = Usage(20 + len(prompt) // 4, 30)
        if "logprobs" in parameters:
            weights = [chance("letter", key, letter) for letter in "ABC"]
            found = [(letter, -3.0 * weight) for letter, weight in zip("ABC", weights, strict=True)]
            logprobs = [
                {
                    "token": "A",
                    "top_logprobs": [{"token": a, "logprob": b} for a, b in found[: 2 + (luck > 0.3)]],
                }
            ]
            return [Completion("A", "stop", usage, logprobs={"content": logprobs})]
        if self.replies == "nonsense" and luck < 0.35:
            return [Completion("I would say so.", "length" if luck < 0.2 else "stop", usage)]
        form = parameters["response_format"]["json_schema"]["schema"]["properties"]["verdict"]
        worth = chance("verdict", key[0], key[1] if self.replies == "noisy" else None)
        if "enum" in form:
            verdict: object = form["enum"][int(worth * len(form["enum"]))]
        else:
            verdict = form["minimum"] + round(worth * (form["maximum"] - form["minimum"]), 1)
        said = json.dumps({"reason": "because", "verdict": verdict})
        return [Completion(f"Here: {said}." if luck > 0.8 else said, "stop", usage)]

    async def aclose(self) -> None:
        """Close nothing."""


ANSWERS = (
    "It is 4.",
    "<think>2 + 2</think>It is 5.",
    "",
    "Four, as \\boxed{4}.",
    "x" * 40_000,
    "5",
    "four",
    "It is 4",
)


def grader_facts(written: Case) -> list[str]:
    """Return what a judge or verifier asks, says of some answers, and spends."""
    case = {name: written.get(name, values[0]) for name, values in GRADERS.items()}
    server = Server(case["replies"])
    options: dict[str, Any] = {
        "endpoint": "http://judge/v1",
        "model": "wise",
        "concurrency": 1,
        **KINDS[case["kind"]],
    }
    if case["kind"] != "verifier":
        options |= {"votes": {"one": 1, "three": 3, "five": 5}[case["votes"]], "max_tokens": 200}
        options |= {"second_votes": float(case["second"] == "each")}
        if case["options"] == "strict" and case["kind"] in ("judge", "pairwise"):
            options["right_from"] = 0.8
        if case["criteria"] == "some":
            options["criteria"] = "Words count."
    else:
        options |= {
            "strict": {"is_correct": "numeric", "temperature": 2.5},
            "bare": {"content_free": ()},
        }.get(case["options"], {})
        if case["criteria"] == "some":
            options["prompt"] = "{question} {target} {answer}: A, B or C?"
    if case["options"] == "bare":
        options["extra_body"] = {"top_k": 1, "temperature": 0.4}
    if case["budget"] != "none":
        options |= {"budget": BUDGETS[case["budget"]], "price": {"input": 1.0, "output": 2.0}}
    options |= {"shown": {"with_reasoning": True}, "kept": {"strip_reasoning": False}}.get(
        case["reasoning"], {}
    )
    at_once = patch.multiple("adaptive_eval.engine.retry", TICK=0.0, backoff=lambda failures: 0.0)
    with patch.object(grading_model, "OpenAIChat", server.made), at_once:
        kind = "verifier" if case["kind"] == "verifier" else "judge"
        scorer: Any = build_scorer(kind, options)
        if case["whole"] in ("first-check", "one-of-all"):
            parts = {"model": {"kind": kind, **scorer.options()}, "number": {"kind": "numeric"}}
            if case["whole"] == "one-of-all":
                parts = dict(reversed(parts.items()))
            scorer = build_scorer(
                "checks", {"parts": parts, "by": "any" if case["votes"] == "one" else "all"}
            )
        return asyncio.run(_graded(scorer, server, case))


def rubric_of(case: Mapping[str, str], scorer: Any) -> Rubric:
    schema = get_schema("format-aware") if case["rubric"] == "form" else None
    scores = None if scorer.numbers is None else ScoreRange(scorer.numbers)
    return Rubric(schema, truncated="judged" if case["rubric"] == "judged" else "zero", range=scores)


async def _graded(scorer: Any, server: Server, case: Mapping[str, str]) -> list[str]:
    grader = grader_of(scorer)
    assert grader is not None
    client = grading_model_of(grader)
    scoring = TaskScoring(scorer, rubric_of(case, scorer))
    facts = []
    for place, answer in enumerate(ANSWERS):
        target, choices = ("4", ()) if place % 3 else ("", ("red", "blue"))
        question = Question("t", f"q{place}", target, {"input": "2 + 2?"}, choices)
        cut = place == 5 or (case["whole"] == "cut-off" and place % 2)
        completion = Completion(answer, "length" if cut else "stop", Usage(9, 9), reasoning="so" * place)
        before = len(server.asked)
        try:
            score = await scorer.grade(completion, question)
            if case["rubric"] != "none":
                score = scoring.categorised(score, completion)
        except ScorerUnavailable as error:
            facts.append(f"{place} unavailable {error.discarded}")
            continue
        signals = {name: score.signals[name] for name in sorted(score.signals)}
        figures = [one for one in signals.values() if isinstance(one, float)]
        words = {name: one for name, one in signals.items() if not isinstance(one, float)}
        said = f"category={score.category} {digest([words, score.discarded, server.asked[before:]])}"
        facts.append(f"{place} {said} asked={len(server.asked) - before} figures={text(together(figures))}")
    spent = " ".join(
        f"{line.name}={text([line.spent, line.reserved, line.limit, line.presumed])}"
        for line in client.lines("x")
    )
    question = Question("t", "q", "4", {"input": "2 + 2?"})
    longest = client.longest_prompt([question])
    facts.append(f"account {spent} room={client.room(longest)} longest={longest} spare={client.spare}")
    client.resume(Bill(5, 1000, 200), 2, [question])
    facts.append(f"resumed {text([line.spent for line in client.lines()])} room={client.room(longest)}")
    return facts
