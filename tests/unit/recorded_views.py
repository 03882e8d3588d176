"""What all views say of results that are crossed: report, pages, terminal, lines, metrics, comparison."""

import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any

from course_facts import digest
from crossed_options import Case, Options, Refused, plain
from crossed_results import SHOWN, SHOWN_REFUSED, STARTED, TASKS, Made
from recorded_answers import ANSWERS, ANSWERS_REFUSED, answer_facts
from rich.console import Console

from adaptive_eval import __version__
from adaptive_eval.config import parse_config
from adaptive_eval.config.run_config import RunConfig
from adaptive_eval.views.blocks import to_text
from adaptive_eval.views.budgets import chance_words, hopeless_words, more_passes, raised_budgets
from adaptive_eval.views.comparison import comparison_data, comparison_html, comparison_markdown
from adaptive_eval.views.files import decisions_csv, models_csv, pairs_csv, questions_csv
from adaptive_eval.views.live_terminal import PlainLines
from adaptive_eval.views.metrics import RunMetrics
from adaptive_eval.views.promises import explain
from adaptive_eval.views.report_json import JsonLines, report_data, report_schema
from adaptive_eval.views.report_page import report_page
from adaptive_eval.views.run_changes import compare
from adaptive_eval.views.score_tables import paper_latex, paper_markdown
from adaptive_eval.views.summary import RunHeader, RunSummary, waiting_summary
from adaptive_eval.views.terminal import render_summary, run_display
from adaptive_eval.views.web_runs import RunRow, runs_page


def shown_facts(written: Case) -> list[str]:
    """Return what each view says of the results of a case."""
    case = {name: written.get(name, values[0]) for name, values in SHOWN.items()}
    made = Made(case, plain(case, SHOWN))
    summary, earlier = made.summary(), replace(made, salt=" before").summary()
    if made.before == "settings":
        changed = replace(earlier.results, confidence=0.8, rule="zscore", equivalence=0.07, stop=None)
        earlier = replace(earlier, results=changed)
    if made.before == "scale":
        earlier = replace(earlier, results=replace(earlier.results, scale=(0.0, 10.0)))
    return [fact_of(name, value) for name, value in views_of(made, summary, earlier)]


TABLES = (models_csv, pairs_csv, decisions_csv, questions_csv, paper_latex, paper_markdown)


def views_of(made: Made, summary: RunSummary, earlier: RunSummary) -> Iterator[tuple[str, Any]]:
    """Yield each view with what it shows."""
    if not made.name:
        yield "schema", report_schema()
        yield "waiting", waiting_summary(RunHeader("run-1", 7.5))
    data = report_data(summary)
    del data["meta"]
    yield "report", data
    page = report_page(summary)
    parts = {one.name: getattr(page, one.name) for one in fields(page) if one.name != "sections"}
    yield "page", parts | {section.id: section for section in page.sections}
    yield "markdown", to_text(report_page(summary, html=False)).splitlines()
    yield "tables", [table(summary).splitlines() for table in TABLES]
    yield "terminal", list(drawn(made, summary))
    looks = [replace(summary, decisions=summary.decisions[:2], times=summary.times[:2]), summary]
    if made.size == "narrow":
        looks = [replace(one, times=()) for one in looks]
    plain_lines, json_lines = PlainLines(0.0), JsonLines()
    yield "lines", [plain_lines.lines(one, place) for place, one in enumerate(looks)]
    yield "monitor", [json.loads(json_lines.line(one) or "0") for one in (*looks, looks[-1])]
    metrics = RunMetrics("run-1")
    metrics.update(STARTED, 154.0, summary.results, summary.endpoints, 0.25)
    samples = [sample for metric in metrics.collect() for sample in metric.samples]
    yield "metrics", [(one.name, *one.labels.values(), one.value) for one in samples]
    yield "comparison", list(compared(made, summary, earlier))
    yield "advice", list(advice(summary, earlier))


def compared(made: Made, summary: RunSummary, earlier: RunSummary) -> Iterator[Any]:
    """Yield a comparison of two runs: data, Markdown, and the texts of its page where names are cut."""
    changes = compare(earlier, summary)
    yield comparison_data(changes)
    yield comparison_markdown(changes).splitlines()
    if made.models == "eleven":
        yield re.findall(">([^<>]+)<", comparison_html(changes).partition("</style>")[2])


def advice(summary: RunSummary, earlier: RunSummary) -> Iterator[Any]:
    """Yield how pairs are explained, what would go on with the run, and a list of runs."""
    results = summary.results
    for one in results.pairs[:4]:
        yield explain(results, one.first, one.second if one.kind == "pair" else None)
    yield raised_budgets(results, summary.decisions, config())
    yield from (more_passes(results, config()), chance_words(results), hopeless_words(results))
    yield results.exit_code
    rows = [RunRow("run-1", summary), RunRow("run-2", None, "error 7"), RunRow("run-3", earlier)]
    yield runs_page(rows, "runs")


def drawn(made: Made, summary: RunSummary) -> Iterator[list[str]]:
    """Yield what a terminal shows, in one of a few sizes."""
    width, height = {"wide": (140, 50), "narrow": (70, 18)}[made.size]
    for view in (
        run_display(summary, compact=made.part("compact") < 0.3, bayes=made.part("bayes") < 0.5),
        render_summary(summary, None),
    ):
        console = Console(file=io.StringIO(), width=width, height=height)
        console.print(view)
        yield console.file.getvalue().splitlines()


@cache
def config() -> RunConfig:
    """Return a config with the tasks of all cases."""
    models = [
        {"name": name, "endpoints": ["http://localhost:9/v1"]}
        for number in ("five", "eleven")
        for name in Made({"models": number}, "").names
    ]
    judge = {"kind": "judge", "endpoint": "http://localhost:9/v1", "model": "judge-1"}
    scorers = ({"kind": "checks", "parts": {"right": "numeric", "style": judge}}, "numeric", "numeric")
    tasks = [
        {"name": name, "dataset": "none.jsonl", "scorer": scorer}
        for name, scorer in zip(TASKS, scorers, strict=True)
    ]
    return parse_config(json.dumps({"name": "run", "models": models, "tasks": tasks}), "run.yaml")


_WORDS = (
    "ahead above all any baseline before behind below best better called changed closest decided ended "
    "every exact failed fewer first good held highest interrupted is it are judge lost lower measured "
    "missing more needed no none not now of open passes per placed presumed reached refused resolved "
    "retired reversed right running separated spent stopped them tied waits worse wrong ▲ ▼ = ? ≥ − – ± "
)
_VERDICTS = frozenset(_WORDS.split())
"""Words of a sentence that its facts rest on; others may change."""
_WHOLE = ("badge", "badges", "classes", "id", "ids", "kind", "key", "link", "links")
"""Fields whose text is code."""
_DERIVED = ("boxes", "lines", "ends", "height", "top", "rule", "ticks", "ticks_across", "ticks_up")
"""Properties of drawings."""


_LONG = re.compile(r"-?\d+\.\d{8,}(e-?\d+)?")
"""Figures whose last digits another version of Python may have otherwise."""


@cache
def said(words: str) -> tuple[str, ...]:
    """Return the figures and names of a text, which all have digits, and its words of verdicts."""
    if "." in words:
        words = _LONG.sub(lambda one: f"{float(one[0]):.7g}", words)
    words = words.replace(__version__, "version")
    if " " not in words:
        return (words,)
    found = (one.strip(".,;:()|`\\") for one in words.split())
    return tuple(one for one in found if is_fact(one))


def is_fact(word: str) -> bool:
    """Return whether facts rest on a word: a figure, a name, a setting, a word of verdicts, a drawing."""
    return word.lower() in _VERDICTS or any(one.isdigit() or one in "━├●┤·*=[]" for one in word)


@cache
def shown_fields(kind: type) -> list[str]:
    """Return the names of what is shown of a record."""
    derived = [name for name in _DERIVED if isinstance(getattr(kind, name, None), property)]
    return [*(one.name for one in fields(kind)), *derived]


def collect(value: Any, found: list[object], key: str = "") -> None:
    """Add all that is shown of a value: words, whole numbers and figures."""
    if isinstance(value, str):
        found += (value,) if key in _WHOLE else said(value)
    elif isinstance(value, float):
        found.append(f"{value:.7g}")
    elif isinstance(value, int) or value is None:
        found.append(value)
    elif isinstance(value, Mapping):
        for name, one in value.items():
            found.append(name)
            collect(one, found, str(name))
    elif is_dataclass(value):
        for name in shown_fields(type(value)):
            collect(getattr(value, name), found, name)
    elif not callable(value):
        listed = list(value)
        found.append(len(listed))
        for one in listed:
            collect(one, found, key)


def fact_of(name: str, value: Any) -> str:
    """Return a view as a digest of each section, of what it shows in words, numbers and figures."""
    sections: dict[str, list[object]] = {}
    for section, held in value.items() if isinstance(value, Mapping) else [("", value)]:
        is_whole = isinstance(held, str | int | float) or held is None
        collect(held, sections.setdefault("" if is_whole else str(section), []), str(section))
    shown = (f"{section}{digest(words)[:6]}" for section, words in sections.items() if words not in _EMPTY)
    return " ".join([name, *shown])


_EMPTY: Sequence[list[object]] = ([], [0], [None])


VIEWS: Mapping[str, tuple[Options, Refused, Callable[[Case], list[str]]]] = {
    "views": (SHOWN, SHOWN_REFUSED, shown_facts),
    "answers": (ANSWERS, ANSWERS_REFUSED, lambda case: [fact_of(*one) for one in answer_facts(case)]),
}
"""What is crossed: options, what is refused, and what a case leads to."""
