"""The mistakes of a config: all of them at once, each with its place and its code.

``tests/data/bad_configs.txt`` holds bad configs, each with the places and codes of its mistakes.
``option_bounds.txt`` holds the bounds of every option.
``REWRITE=1 pytest tests/unit/test_config_mistakes.py`` writes both.
"""

import json
import os
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from config_texts import MINIMAL, WIDE, plain, problems_of, with_changes

from adaptive_eval.config.document import read_document
from adaptive_eval.config.load_config import parse_config
from adaptive_eval.options.section import Record, Section

FILE = Path(__file__).parents[1] / "data" / "bad_configs.txt"
BOUNDS = FILE.with_name("option_bounds.txt")
WORDS = ("gt", "ge", "lt", "le", "min_length", "max_length")


@dataclass
class Case:
    """A bad config: changes of one, settings given outside the file (a list), or a text (behind bars)."""

    source: list[str]
    expected: list[str] = field(default_factory=list)

    def problems(self):
        written = self.source[-1]
        if written.startswith("|"):
            return problems_of("\n".join(line[2:] for line in self.source if line.startswith("|")))
        given = json.loads(written)
        if isinstance(given, str):
            return problems_of(given)
        if isinstance(given, list):
            return problems_of(json.dumps(MINIMAL), overrides=given)
        base = WIDE if given.pop("base", "") == "wide" else MINIMAL
        return tuple(replace(one, line=None) for one in problems_of(with_changes(given, base)))


def cases(text):
    found = [Case([])]
    for line in text.splitlines():
        if line.startswith("  ["):
            found[-1].expected.append(line)
            continue
        if found[-1].expected or (found[-1].source and found[-1].source[-1].startswith(("{", "["))):
            found.append(Case([]))
        found[-1].source.append(line)
    return found


def head(problem):
    place = "" if problem.line is None else f"line {problem.line}: "
    return f"  [{problem.code}] {place}{problem.path}".rstrip()


CASES = cases(FILE.read_text("utf-8"))
if "REWRITE" in os.environ:
    lines = [line for case in CASES for line in (*case.source, *map(head, case.problems()))]
    FILE.write_text("\n".join(lines) + "\n", "utf-8")
    CASES = cases(FILE.read_text("utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.source[-1][:60])
def test_a_mistake_has_its_place_and_its_code(case):
    found = case.problems()
    assert [head(problem) for problem in found] == case.expected
    assert all(len(problem.message.split()) > 2 for problem in found)


@pytest.mark.parametrize("text", ["[" * 100_000, "{a: " * 30_000, "- " * 50_000, "[" * 50_000 + "]" * 50_000])
def test_deep_nesting_is_refused_before_it_is_parsed(text, monkeypatch):
    if "-" not in text:  # brackets take the parser many seconds
        monkeypatch.delattr("adaptive_eval.config.document.YAML")
    (problem,) = read_document(text).problems
    assert "nested too deeply" in problem.message


def test_a_text_too_long_for_a_config_is_refused_before_it_is_parsed():
    (problem,) = read_document("a: 1\n" * 100_000).problems
    assert "500,000 characters" in problem.message


def test_a_refused_score_says_why_the_scale_is_not_the_rubrics():
    stars = {"kind": "python", "function": "s:f", "range": [1, 10]}
    for scorers, why in (((stars, "exact"), True), (("exact", "exact"), False)):
        tasks = [{"name": f"t{n}", "dataset": "d", "scorer": scorer} for n, scorer in enumerate(scorers)]
        (problem,) = problems_of(with_changes({"goal": "threshold=5", "tasks": tasks}, MINIMAL))
        assert ("tasks with different ranges" in problem.message) == why


@pytest.mark.parametrize(
    ("changes", "meant"),
    [
        ({"models.0.sampling": {"temp": 1}}, "temperature"),
        ({"goals": "ranking"}, "goal"),
        ({"tasks.0.field": {"input": "x"}}, "fields"),
        ({"stopping": {"equiv": 0.1}}, "equivalence"),
    ],
)
def test_a_key_that_is_begun_or_of_another_number_is_understood(changes, meant):
    (problem,) = problems_of(with_changes(changes, MINIMAL))
    assert f"did you mean {meant!r}?" in problem.message


@pytest.mark.parametrize(
    ("changes", "meant"),
    [
        ({"goal": "best"}, "'top-k'"),
        ({"stopping": {"margin": 0.05}}, "'equivalence'"),
        (
            {"models": [{"name": "a", "endpoints": ["http://a/v1"], "sampling": {"top_k": 5}}]},
            "extra_body: {top_k",
        ),
    ],
)
def test_words_of_the_field_lead_to_what_a_config_calls_them(changes, meant):
    assert any(meant in problem.message for problem in problems_of(with_changes(changes, MINIMAL)))


def test_labels_of_several_tasks_come_from_one_file():
    def judging(*files):
        judge = {"kind": "judge", "endpoint": "http://j/v1", "model": "wise"}
        tasks = []
        for name, file in zip("tu", files, strict=True):
            tasks.append({"name": name, "dataset": "t.jsonl", "scorer": judge | {"labels": file}})
        return json.dumps(plain(tasks=tasks, budget={"trials": 9}))

    (problem,) = problems_of(judging("a.jsonl", "b.jsonl"))
    assert "one file holds the labels of all tasks" in problem.message
    assert parse_config(judging("a.jsonl", "a.jsonl")).tasks


def sections(of):
    """Yield the sections and records of a config below a class, not those of scorers made from them."""
    for one in of.__subclasses__():
        if one.__module__.startswith(("adaptive_eval.options.", "adaptive_eval.config.")):
            yield one
        yield from sections(one)


def test_the_bounds_of_every_option_are_those_of_the_file():
    """They are written nowhere else: the JSON schema shows those of plain numbers only."""
    lines = set()
    for section in {*sections(Section), *sections(Record)}:
        for name, option in section.__pydantic_fields__.items():
            given = [(word, getattr(part, word, None)) for part in option.metadata for word in WORDS]
            bounds = [f"{word} {bound}" for word, bound in given if bound is not None]
            if bounds:
                lines.add(f"{section.__name__}.{name}: {', '.join(bounds)}\n")
    written = "".join(sorted(lines))
    if "REWRITE" in os.environ:
        BOUNDS.write_text(written, "utf-8")
    assert BOUNDS.read_text("utf-8") == written
