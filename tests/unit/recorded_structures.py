"""Answers that are JSON, calls of tools or log-probabilities, by scorers of all options."""

import json
from itertools import product
from typing import Any

from course_facts import digest
from crossed_options import Case, Options, Refused
from recorded_scores import compared_here, counted, rubric_of

from adaptive_eval.scoring.registry import build_scorer
from adaptive_eval.scoring.rubric import TaskScoring
from adaptive_eval.trial import Completion, Question, Usage

STRUCTURES: Options = {
    "kind": ("calls", "json", "letters", "checks"),
    "part": ("first", "second", "third", "fourth", "fifth", "sixth"),
    "ended": ("stop", "cut"),
    "truncated": ("judged", "zero"),
    "rubric": ("right", "form"),
}
"""The options of scorers that read no running text; a part is one of the options of its kind."""
STRUCTURES_REFUSED: Refused = (
    ("kind", "letters", "part", "fifth sixth"),
    ("kind", "checks", "part", "sixth"),
    ("kind", "letters", "rubric", "form"),
    ("rubric", "form", "kind", "calls"),
    ("ended", "cut", "truncated", "zero"),
)


def call(name: str, arguments: object, number: int = 0) -> dict[str, Any]:
    given = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": f"c{number}", "name": name, "arguments": given}


OSLO, ROME = {"city": "Oslo"}, {"city": "Rome"}
DEEP = {"city": "Oslo", "when": {"day": 1, "hours": [1, 2.0]}}
CALLED = {
    "none": (),
    "one": (("weather", OSLO),),
    "another name": (("forecast", OSLO),),
    "more": (("weather", {**OSLO, "days": 1}),),
    "less": (("weather", {}),),
    "as text": (("weather", '{"city":  "Oslo"}'),),
    "no JSON": (("weather", "Oslo"),),
    "empty text": (("weather", ""),),
    "number": (("weather", {"city": 1}),),
    "true": (("weather", {"city": True}),),
    "both": (("weather", OSLO), ("weather", ROME)),
    "back": (("weather", ROME), ("weather", OSLO)),
    "twice": (("weather", OSLO), ("weather", OSLO)),
    "twice and another": (("weather", OSLO), ("weather", OSLO), ("weather", ROME)),
    "another between": (("weather", OSLO), ("weather", ROME), ("weather", OSLO)),
    "three": (("weather", ROME), ("now", {}), ("weather", OSLO)),
    "apart": (("weather", OSLO), ("now", {}), ("weather", ROME)),
    "both and more": (("weather", {**OSLO, "days": 2}), ("weather", {**ROME, "days": 3})),
    "deep": (("weather", DEEP),),
    "deep in another order": (("weather", {"when": {"hours": [1.0, 2], "day": 1}, "city": "Oslo"}),),
    "deep and more": (("weather", {**DEEP, "when": {"day": 1, "hours": [1, 2], "zone": 0}}),),
    "deep list": (("weather", {**DEEP, "when": {"day": 1, "hours": [2, 1]}}),),
    "deep part": (("weather", {"city": "Oslo", "when": {"day": 1}}),),
}
"""Calls by name: each set is the target, and the answer, of each other."""
READ = {
    "city": ('{"city": "Paris", "n": 2}', '{"city": " paris ", "n": "2"}', '{"city": null}', '{"n": 2.0}'),
    "in prose": (
        'Here: {"city": "Rome"}, no: {"city": "Paris"} as in [1].', 'See [1], {"n": 3}', "no JSON {at all}",
        '```json\n{"city": "Paris"}\n```\nor {"city": "Rome"}', '```\nnot it\n```\n{"city": "Paris"}',
        '{"city": "Paris"', "", '<think>{"city": "Rome"}</think>{"city": "Paris", "n": [1, {"n": 2}]}',
    ),
    "deep": ('{"a": [{"b": 2}, {"b": "2 km"}]}', '{"a.1.b": 2}', '{"a": {"1": {"b": 2}}}', '{"a": [2]}'),
    "lists": ("[1, 2]", "[2, 1]", "[1, 2.0]", "[true, 2]", "[[1, 2]]", '{"n": [1, 2]}', "[1, 2, 3]", "[]"),
    "values": ('{"n": true}', '{"n": "true"}', '{"n": 1}', '{"n": "2,000"}', '{"n": 2e3}', '{"n": ""}'),
}  # fmt: skip
TARGETS = ("2", "Paris", "true", "2000", "[1, 2]", '{"city": "Paris", "n": 2}', '{"n": 2, "city": "Paris"}')
OF_CALLS = [
    {"arguments": arguments, "calls": calls, "ordered": ordered}
    for arguments, calls, ordered in product(
        ("equal", "subset", "ignore"), ("equal", "subset"), (True, False)
    )
]
SCHEMA = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
OF_JSON: tuple[dict[str, Any], ...] = (
    {"field": "n"}, {"field": "a.1.b"}, {}, {"schema": SCHEMA}, {"schema": SCHEMA, "field": "n"},
    {"field": "city", "strip_reasoning": False},
)  # fmt: skip
OF_LETTERS: tuple[dict[str, Any], ...] = (
    {}, {"by": "likeliest"}, {"right_from": 0.6}, {"letters": "AB", "index_from": 0},
)  # fmt: skip
TOKENS = (
    {" A": -0.5, "B": -1.5}, {"B": -0.1, "A": -3.0, "C": -4.0}, {"The": -0.01, "A": -2.4}, {"a": -0.1}, {},
    {"(A": -0.7, "**B": -0.8, "▁C": -2.0}, {"A": 0.0001, "\nB": -9.0}, {"The": -0.1, "A": -2.2},
    {"A": -1.0, " A": -1.0}, {"A": -0.6931471805599453, "B": -0.6931471805599453},
)  # fmt: skip
OF_CHECKS: tuple[dict[str, Any], ...] = (
    {"by": "all"}, {"by": "any"}, {"by": "mean", "weights": {"city": 3, "json": 1, "words": 1}},
    {"by": "mean", "right_from": 0.7}, {"by": "mean", "range": (0.0, 1.0)},
)  # fmt: skip
PARTS: dict[str, Any] = {
    "city": {"kind": "contains", "ignore_case": False}, "json": {"kind": "json", "field": "city"},
    "words": {"kind": "f1", "right_from": 0.2},
}  # fmt: skip


def structure_facts(written: Case) -> list[str]:
    """Return how answers count."""
    case = {name: written.get(name, values[0]) for name, values in STRUCTURES.items()}
    part = STRUCTURES["part"].index(case["part"])
    with compared_here() as asked:
        facts = list(FACTS[case["kind"]](case, part))
    return [*facts, f"compared elsewhere {len(asked)} {digest(asked)}"]


def scoring_of(case: Case, kind: str, options: dict[str, Any]) -> TaskScoring:
    scorer: Any = build_scorer(kind, options)
    return TaskScoring(scorer, rubric_of({**case, "rubric": "range"} if scorer.numbers else case))


def of_calls(case: Case, part: int) -> Any:
    ended = "length" if case["ended"] == "cut" else "tool_calls"
    for options in OF_CALLS[2 * part : 2 * part + 2]:
        scoring = scoring_of(case, "tool_calls", options)
        found = []
        for calls in CALLED.values():
            target = json.dumps([{"name": name, "arguments": given} for name, given in calls])
            question = Question("t", "q", target)
            assert scoring.scorer.check_target(question) is None
            for made in CALLED.values():
                given = tuple(call(*one, number) for number, one in enumerate(made))
                answer = Completion("", ended, Usage(9, 9), tool_calls=given)
                found.append(scoring.score(answer, question))
        for place in range(0, len(found), 3 * len(CALLED)):
            yield f"{'-'.join(map(str, options.values()))} {counted(found[place : place + 3 * len(CALLED)])}"


def of_json(case: Case, part: int) -> Any:
    ended = "length" if case["ended"] == "cut" else "stop"
    scoring = scoring_of(case, "json", OF_JSON[part])
    for place, texts in READ.items():
        found = []
        for target, text in product(TARGETS, texts):
            question = Question("t", "q", target)
            if scoring.scorer.check_target(question) is None:
                found.append(scoring.score(Completion(text, ended, Usage(9, 9)), question))
        yield f"{place.replace(' ', '-')} {counted(found)}"


def of_letters(case: Case, part: int) -> Any:
    ended = "length" if case["ended"] == "cut" else "stop"
    scoring = scoring_of(case, "choice_probability", OF_LETTERS[part])
    for target in "ABC01":
        question = Question("t", "q", target, choices=() if part == 3 else ("red", "blue", "green"))
        if scoring.scorer.check_target(question) is not None:
            continue
        found = []
        for tokens in TOKENS:
            listed = [{"token": token, "logprob": chance} for token, chance in tokens.items()]
            for logprobs in ({"content": [{"top_logprobs": listed}]}, {"top_logprobs": [tokens]}):
                answer = Completion(next(iter(tokens), ""), ended, Usage(9, 1), logprobs=logprobs)
                found.append(scoring.score(answer, question))
        yield f"{target} {counted(found)}"


def of_checks(case: Case, part: int) -> Any:
    ended = "length" if case["ended"] == "cut" else "stop"
    parts = PARTS if part != 4 else {"words": {"kind": "f1", "range": (-1.0, 3.0)}}
    scoring = scoring_of(case, "checks", {"parts": parts, **OF_CHECKS[part]})
    for target in ("Paris", "paris", "2"):
        question = Question("t", "q", target)
        found = [
            scoring.score(Completion(text, ended, Usage(9, 9)), question)
            for texts in READ.values()
            for text in texts
        ]
        yield f"{target} {counted(found)}"


FACTS = {"calls": of_calls, "json": of_json, "letters": of_letters, "checks": of_checks}
