"""Answers of every form, scored by scorers of crossed options: category, what was found, and why."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from typing import Any
from unittest.mock import patch

from course_facts import digest, text, together
from crossed_options import Case, Options, Refused, chance

from adaptive_eval.scoring.overlap import _in_worker, _Words
from adaptive_eval.scoring.registry import build_scorer
from adaptive_eval.scoring.rubric import Rubric, TaskScoring
from adaptive_eval.scoring.scorer import NOT_FOUND
from adaptive_eval.trial import Completion, Question, Score, ScoreRange, Usage
from scorio.categorical import get_schema

SCORES: Options = {
    "kind": ("numeric", "exact", "choice", "contains", "regex", "math", "f1", "rouge"),
    "extract": ("auto", "boxed", "stated", "rest"),
    "own": ("first", "second", "third"),
    "ended": ("stop", "mixed", "filter"),
    "truncated": ("zero", "judged"),
    "rubric": ("right", "form", "range", "missing"),
    "marker": ("none", "word", "tag"),
    "reasoning": ("stripped", "kept"),
    "case": ("ignored", "kept"),
}
"""The options of scorers that read a text."""
SCORES_REFUSED: Refused = (
    ("kind", "choice contains regex f1 rouge", "extract", "boxed stated rest"),
    ("kind", "numeric choice math f1 rouge", "case", "kept"),
    ("kind", "exact contains math", "own", "second third"),
    ("kind", "numeric exact choice contains regex math", "rubric", "range"),
    ("rubric", "range", "own", "second third"),
    ("rubric", "range", "extract", "boxed stated rest"),
    ("rubric", "range", "case", "kept"),
)

FRAMES = (
    "{}",
    "  {}.\n",
    "The answer is {}.",
    "The answer is 7, no: the answer is {} because 8 is not",
    r"So it is $\boxed{{{}}}$.",
    r"First \boxed{{9}}, then \boxed{{{}}}, and 8 are left",
    "**Final Answer**\n\n{}",
    "#### {}",
    "<think>It is {}</think>I think 12",
    "<think>Is it 12? No.</think>\n\nIt is {}",
    "<think>It is {}",
    "ANSWER: 11, but ANSWER: {}",
    "<answer>{}</answer> as 13 is not",
    "Not 7 but {}",
    "So x = {} = 3",
    "It is 5 or {}",
    "{}\n\nI am sure of it, all 3 times",
    "The correct option is {}, I choose it",
)  # fmt: skip
"""What is said around a result."""

NUMBERS = {
    "50": ("50", "50.0", "+50", "5e1", r"5 \times 10^1", "$50", "50 km", "50 km/h", "fifty", "50 %"),
    "50%": ("50%", "50 percent", r"50\%", "0.5", "1/2", r"\frac{1}{2}", "0.50 %", "½", "5,000%", "50.4%"),
    "-20%": ("-20%", "-0.2", "-20.1 %", "-2000%", "20%", "-20", "-0.2 %", "\u22120.198", "-20.4"),
    "0.5": ("0.5", ".5", "1/2", r"\dfrac12", "50%", "0,5", "2/4", "0.5%"),
    "1234.5": ("1,234.5", "1234.5", "1 234.5", "$1,234.50", "1.2345e3", "1'234.5", "1,234,5", "1234.49"),
    "-3": ("-3", "\u22123", "minus 3", "negative 3", "(-3)", "-3.0 °C", "- 3", "3", r"-\frac{6}{2}", "-3.02"),
    "2.5": ("5/2", "2 1/2", "2½", r"2\frac{1}{2}", "2.5 million", "2.51", "about 2.5", "2.5 or 3", "2^2"),
    "5": ("5, 6", "5-6", "5 ± 1", r"\pm 5", "between 5 and 6", "x = 5 or x = -5", "5 and 5", "5 cm^2", "5.2"),
}
"""Results by their target: some are it."""
WORDS = {
    "Paris": ("Paris", "paris", "PARIS", "“Paris”", "Paris, France", "Pariser", "is Paris", r"\text{Paris}"),
    "New York": ("New York", "new\u00a0york", "New  York", "NewYork", "**New York**", "York New", "new-york"),
    "Straße": ("Straße", "STRASSE", "strasse", "`Straße`", "Strasse 3", "Stra\u00dfe!", ""),
    "東京": ("東京", "東京都", "東 京", "(東京)", "東京 。", "京"),
    "1200": ("1200", "1,200", "1200.0", "12000", "1200 km", "$1200$"),
    "x^2 + 1": ("x^2 + 1", "x^2+1", "X^2 + 1", "1 + x^2", r"\(x^2 + 1\)", "x^2 + 10", "x^2 + 1 or x"),
}
COLOURS = ("red", "blue", "dark blue", "A4 paper")
CHOSEN = {
    "A": ("A", "a", "(A)", "red", "A or B", "a guess", "A4 paper", "not A", "A: red", "2"),
    "B": ("B", "(b)", "b)", "B. blue", "**B**", "blue", "Blue.", "B and C", r"\text{B}", "option B"),
    "C": ("dark blue", "C. dark", "neither A nor C", "C, not B", "C is right", "I ruled out A and C", "[C]"),
    "D": ("D) A4 paper", "A4", "D", "E", "all of them", "D/A", "the letter D", "A is wrong", "4"),
}
RESULTS = {"numeric": NUMBERS, "choice": CHOSEN}
OWN: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "numeric": ({}, {"tolerance": 0.5}, {"relative_tolerance": 0.01}),
    "choice": ({}, {"letters": "ABCDE"}, {"index_from": 1}),
    "regex": ({}, {"pattern": r"is (?:\w+ )?(\S+)"}, {"pattern": r"\w+"}),
    "f1": ({}, {"right_from": 0.9}, {"right_from": 0.2}),
    "rouge": ({}, {"right_from": 0.9, "measure": "rouge1"}, {"measure": "rouge2"}),
}
ENDED = {"stop": ("stop", "stop"), "mixed": ("length", "stop"), "filter": ("content_filter", "stop")}
"""Why an answer ended, in every other frame."""
SHARE = 0.45
"""Share of all results in all frames that a case has; each is compared with its own target or another."""


def score_facts(written: Case) -> list[str]:
    """Return how answers count, what was found in them, and why."""
    case = {name: written.get(name, values[0]) for name, values in SCORES.items()}
    kind, own = case["kind"], SCORES["own"].index(case["own"])
    options: dict[str, Any] = {"strip_reasoning": case["reasoning"] == "stripped"}
    if kind in OWN:
        options |= OWN[kind][own]
    if case["extract"] != "auto":
        last = {"numeric": "last-number"}.get(kind, "whole")
        options["extract"] = {"rest": last}.get(case["extract"], case["extract"])
    marker = {"none": None, "word": "ANSWER:", "tag": "<answer>"}[case["marker"]]
    if marker is not None:
        options["marker"] = marker
    if case["case"] == "kept":
        options["ignore_case"] = False
    if case["rubric"] == "range":
        options["range"] = (0.0, 1.0)
    scoring = TaskScoring(build_scorer(kind, options), rubric_of(case), missing_of(case))
    facts = []
    results = RESULTS.get(kind, WORDS)
    with compared_here() as asked:
        for place, (target, forms) in enumerate(results.items()):
            found = []
            for form in forms:
                for number, frame in enumerate(FRAMES):
                    luck = chance("frame", kind, *case.values(), form, number)
                    if luck > SHARE:
                        continue
                    other = list(results)[int(luck * 1000) % len(results)]
                    compared = target if luck < 0.7 * SHARE else other
                    choices = COLOURS if kind == "choice" and own == 0 else ()
                    if own == 2 and kind == "choice":
                        compared = str("ABCD".index(compared) + 1)
                    said = frame.format(form)
                    if marker is not None and chance("marked", form, number) < 0.5:
                        said = f"It is 6. {marker}{said}"
                    ended = ENDED[case["ended"]][number % 2]
                    answer = Completion(said, ended, Usage(9, 5 + number), latency=0.5)
                    question = Question("t", "q", compared, choices=choices)
                    found.append((frame, form, compared, scoring.score(answer, question)))
            facts.append(f"{place} {counted([one[-1] for one in found])}")
    return [*facts, f"compared elsewhere {len(asked)} {digest(asked)}"]


def rubric_of(case: Case) -> Rubric:
    schema = get_schema("format-aware") if case["rubric"] == "form" else None
    scores = ScoreRange((0.0, 1.0)) if case["rubric"] == "range" else None
    return Rubric(schema, truncated=case["truncated"], range=scores)


def missing_of(case: Case) -> tuple[str, ...]:
    return ("empty",) if case["rubric"] == "missing" else ()


@contextmanager
def compared_here() -> Iterator[list[object]]:
    """Compare here what other processes would; math-verify and rouge-score are not asked."""
    asked: list[object] = []

    def here(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        asked.append((function.__name__, *arguments[: 1 + (function.__name__ == "is_equal")], options))
        if function.__name__ == "is_equal":
            return arguments[0] in arguments[1]
        return function(*arguments)

    with ExitStack() as stack:
        for place in ("math", "overlap", "structured"):
            stack.enter_context(patch(f"adaptive_eval.scoring.{place}.in_worker", here))
        stack.enter_context(patch("adaptive_eval.scoring.overlap.overlap", overlap))
        _in_worker.cache_clear()
        yield asked


def overlap(measure: str, target: str, answer: str) -> float:
    """Return the F-measure of words, or of pairs of words."""
    wanted, found = map(_Words().tokenize, (target, answer))
    if measure == "rouge2":
        wanted, found = (list(pairwise(words)) for words in (wanted, found))
    both = (Counter(wanted) & Counter(found)).total()
    return 2 * both / max(len(wanted) + len(found), 1)


SEVERAL = "several different"


def letter(score: Score) -> str:
    """Return what became of an answer: its category, or why it has none or nothing was found in it."""
    if score.category is None:
        return "x"
    lost = {NOT_FOUND: "-", "truncated": "t", "undecided": "u"}
    for words, one in lost.items():
        if score.reason.startswith(words):
            return one.upper() if SEVERAL in score.reason else one
    return str(score.category) if score.category < 10 else "n"


def counted(scores: Sequence[Score]) -> str:
    """Return what became of answers, a letter each, and a digest of what was found and of all signals."""
    found, figures = [], []
    for one in scores:
        words = {}
        for name, value in one.signals.items():
            if isinstance(value, float):
                figures.append(value)
            else:
                words[name] = value
        reason = one.reason.partition("(several")[0].partition(": several")[0]
        found.append((one.category, one.extracted, reason, sorted(words.items())))
    return f"{''.join(map(letter, scores))} {digest(found)} {text(together(figures))}"
