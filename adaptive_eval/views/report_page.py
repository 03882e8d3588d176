"""The report of a run, section by section, for a page and as Markdown."""

from collections.abc import Iterator
from dataclasses import replace

from adaptive_eval.views.accounts import MOST_QUESTIONS, MOST_SUSPECT, suspect
from adaptive_eval.views.answer_list import samples_in_file
from adaptive_eval.views.blocks import (
    Bins,
    Block,
    Code,
    Heading,
    Items,
    PageSection,
    Para,
    Plots,
    Unfolding,
    Warn,
    WholePage,
    note,
)
from adaptive_eval.views.decision_sentences import describe
from adaptive_eval.views.numbers import count, duration, fixed, percent, short, usd
from adaptive_eval.views.plots import MOST_DECISIONS, MOST_TIES, course_plots, histogram
from adaptive_eval.views.promises import promises
from adaptive_eval.views.report_columns import counts
from adaptive_eval.views.report_tables import LABEL, MOST_OPEN, ReportTables, difficulty, drawn
from adaptive_eval.views.run_sentences import (
    ANSWERS_NOTE,
    BAYES_NOTE,
    TASKS_NOTE,
    caption_words,
    chances_words,
    course_words,
    differences_note,
    exact_sentences,
    methods_words,
    outlook_phrases,
    presumed_words,
    problem_words,
    rankings_note,
    ranks_note,
    saved_words,
    settings_words,
    suspects_note,
    uncounted_words,
)
from adaptive_eval.views.score_tables import paper_latex, paper_table
from adaptive_eval.views.summary import RunSummary
from adaptive_eval.views.tables import Table, markdown_table
from adaptive_eval.views.verdicts import is_single, pair_name, rank_column, saving, tie_words, tied_groups

_MOST_PROBLEMS = 50
_MOST_WARNINGS = 4  # warnings beyond which a page folds those of a kind that it has shown
_MANY = 12  # models beyond which a page shows further tables of them only when it is asked for
_SAVED = 0.95  # share of uniform allocation's trials below which a page says what is saved


def report_page(summary: RunSummary, samples: str = "", *, html: bool = True) -> WholePage:
    """Return the report of a run; `samples` is the address of its answers, if a server has them."""
    tables = ReportTables(summary, html)
    sections = [
        _ranking(tables),
        *_tasks(tables),
        *_pairs(tables),
        *_open(tables),
        *_course(tables),
        *_rankings(tables),
        _promises(tables),
        _answers(tables),
        _cost(tables),
        *_endpoints(tables),
        *_questions(tables),
        *_examples(tables, samples),
        *_decisions(tables),
        _paper(tables),
        _reproduce(tables),
    ]
    status = list(map(describe, summary.decisions[-1:]))
    if html:
        verdict = summary.headline_within(LABEL)
    else:
        verdict = summary.headline
    return WholePage(
        title=summary.name,
        window=f"{summary.name}: report",
        before="Report on the run ",
        verdict=verdict,
        status="".join(status),
        intro=list(_intro(summary, html=html)),
        tiles=list(_tiles(summary)),
        sections=sections,
    )


def _intro(summary: RunSummary, *, html: bool) -> Iterator[Block]:
    results = summary.results
    if html:
        yield from map(Para, exact_sentences(results))
    yield Para(settings_words(results))
    colour = "worse"
    if summary.state == "running":
        colour = "better"
    badge = None
    if summary.state != "stopped":
        badge = (summary.state, colour)
    yield Para(course_words(summary), badge)
    if html and summary.outlook:
        yield Para(f"Forecast (approximate): {'; '.join(outlook_phrases(summary.outlook))}.")
    yield from map(Para, chances_words(results))
    yield from map(Para, uncounted_words(summary))
    yield from _warnings(summary, html=html)
    truncated = sum(one.truncated for one in summary.whole_details.models)
    problems = problem_words(
        summary.state, results.models, summary.endpoints, truncated, summary.whole_details.cut_off
    )
    if html and problems:
        yield Items(problems[:_MOST_PROBLEMS], classes="problems")


def _warnings(summary: RunSummary, *, html: bool) -> Iterator[Block]:
    """Yield the warnings; a page shows the first of each kind, and the others when they are asked for."""
    first, others = summary.warnings_by_kind
    if not html or len(first) + len(others) <= _MOST_WARNINGS:
        yield from map(Warn, summary.warnings)
        return
    yield from map(Warn, first)
    if others:
        words = count(len(others), "more warning of these kinds", "more warnings of these kinds")
        yield Unfolding("more-warnings", words, list(map(Warn, others)))


def _tiles(summary: RunSummary) -> Iterator[tuple[str, str]]:
    """Yield the few figures at the top of a page with their words."""
    results, tally = summary.results, counts(summary)
    kinds = {pair.kind for pair in results.pairs}
    if kinds - {"width"}:
        yield str(tally["separated"]), "separated"
        yield str(tally["tied"]), "tied"
    if "width" in kinds:
        yield str(tally["measured"]), "measured"
    if kinds:
        yield str(len(summary.open_pairs)), "not resolved"
    yield short(results.trials), "trials"
    yield short(results.tokens), "tokens"
    if results.usd is not None:
        graded = any(line.scope == "scorer" for line in results.budgets)
        yield usd(results.usd), "cost of the models" if graded else "cost"
    yield duration(summary.elapsed), "running time"
    if summary.state == "running" and summary.rates.trials is not None:
        yield fixed(summary.rates.trials, 1), "trials/s"
    saved = saving(results)
    if saved and saved[0] < _SAVED * saved[1] and len(results.models) > 2:
        yield percent(1 - saved[0] / saved[1]), "fewer trials than uniform"


def _ranking(tables: ReportTables) -> PageSection:
    results = tables.summary.results
    title = "Models"
    if rank_column(results).ranked:
        title = "Ranking"
    groups = tied_groups(results)
    blocks: list[Block] = [tables.ranking()]
    for group in groups[:MOST_TIES]:
        named = list(map(tables.names.__getitem__, group)) if tables.html else group
        blocks.append(Para(f"{' and '.join(named)}: {tie_words(results.equivalence)}."))
    if len(groups) > MOST_TIES:
        more = count(len(groups) - MOST_TIES, "further group is", "further groups are")
        blocks.append(Para(f"{more} tied: see report.json."))
    words = ranks_note(results)
    if any(line.bayes_mu is not None for line in results.models):
        words += f" {BAYES_NOTE}"
    blocks.append(note(words))
    if results.prior is not None:
        blocks.append(note(f"Bayes@N starts from previous runs; no verdict does: {results.prior}."))
    return PageSection("ranking", title, blocks)


def _tasks(tables: ReportTables) -> Iterator[PageSection]:
    if tables.summary.results.tasks:
        table = tables.tasks()
        shown = _of_all_models(tables, "tasks-by-model", table.caption, table)
        yield PageSection("tasks", "Tasks", [shown, note(TASKS_NOTE)])


def _pairs(tables: ReportTables) -> Iterator[PageSection]:
    results = tables.summary.results
    if not results.pairs:
        return
    kinds = {pair.kind for pair in results.pairs}
    title = "Pairs, and models by themselves"
    if kinds == {"pair"}:
        title = "Pairs"
    if is_single(results):
        title = "Models against the goal"
    blocks: list[Block] = [tables.contrasts()]
    if tables.pairs.words:
        blocks.append(note(tables.pairs.words))
    matrix = None
    if tables.html:
        matrix = tables.matrix()
    if matrix is not None:
        legend = "▲: the model of the row is ahead of that of the column; ▼: behind; =: "
        legend += f"{tie_words(results.equivalence)}; ?: not resolved"
        if any(pair.verdict == "open" and not pair.needed for pair in results.pairs):
            legend += "; –: not needed"
        if len(results.pairs) > _FOLDED:
            blocks = [Unfolding("all-pairs", "The pairs as a table", blocks)]
        blocks = [matrix, note(f"{legend}."), *blocks]
    yield PageSection("pairs", title, [*blocks, note(differences_note(results))])


_FIRST_OPEN = 8
"""Open pairs that a page shows at once."""

_FOLDED = 15  # pairs beyond which a page shows their matrix, and their table only when it is asked for


def _open(tables: ReportTables) -> Iterator[PageSection]:
    still_open = len(tables.summary.open_pairs)
    if not tables.html or not still_open:
        return
    table = tables.open_contrasts()
    blocks: list[Block] = [replace(table, rows=table.rows[:_FIRST_OPEN])]
    if further := table.rows[_FIRST_OPEN:]:
        words = count(len(further), "more open pair", "more open pairs")
        blocks.append(Unfolding("more-open", words, [replace(table, rows=further)]))
    if still_open > MOST_OPEN:
        blocks.append(note(f"{still_open - MOST_OPEN:,} more are open, further from a verdict."))
    words = (
        "Evidence is the log e-value as a share of the value that calls a winner; tie or width, how close "
        "the interval is to a tie or to the width wanted."
    )
    yield PageSection("open", "What is open", [*blocks, note(words)])


def _course(tables: ReportTables) -> Iterator[PageSection]:
    if tables.html:
        plots = course_plots(tables.summary)
    else:
        plots = []
    if plots:
        names = dict(tables.names)
        for pair in tables.summary.results.pairs:
            names[pair_name(pair)] = pair_name(pair, tables.short_names)
        yield PageSection("course", "Course", [Plots([drawn(plot, names) for plot in plots])])


def _rankings(tables: ReportTables) -> Iterator[PageSection]:
    rankings = tables.summary.whole_details.rankings
    if rankings:
        from adaptive_eval.views.label_sentences import report_by_labels  # most runs have none

        words = note(rankings_note(rankings, tables.summary.results))
        verdicts = list(map(Para, report_by_labels(rankings)))
        yield PageSection("rankings", "Ranks by rubric or check", [tables.rankings(), words, *verdicts])


def _promises(tables: ReportTables) -> PageSection:
    known = tables.summary.whole_details
    found = promises(tables.summary.results, known.target, known.together, known.judged, known.cut_off)
    holds: Block = Para("Nothing that holds under repeated looks.")
    if found.holds:
        holds = Items(found.holds, has_code=True)
    blocks = [holds, Heading("And what they do not"), Items(found.limits, has_code=True)]
    return PageSection("promises", "What these figures promise", blocks, short="What this promises")


def _answers(tables: ReportTables) -> PageSection:
    known = tables.summary.whole_details.models
    missing = sum(sum(one.missing.values()) for one in known)
    truncated = sum(one.truncated for one in known)
    words = f"{count(missing, 'trial')} without an answer and {count(truncated, 'answer')} cut off, by model"
    blocks: list[Block] = [_of_all_models(tables, "answers-by-model", words, tables.answers())]
    if tables.long_reasons:
        blocks += [Heading("Why answers are missing", "missing-reasons"), Items(tables.long_reasons)]
    return PageSection("answers", "Missing and cut-off answers", [*blocks, note(ANSWERS_NOTE)])


def _of_all_models(tables: ReportTables, id: str, words: str, table: Table) -> Block:
    """Return a table with a row for each model; a page of many models shows it when it is asked for."""
    if tables.html and len(tables.summary.results.models) > _MANY:
        return Unfolding(id, words, [table])
    return table


def _cost(tables: ReportTables) -> PageSection:
    results = tables.summary.results
    table = tables.cost()
    blocks = [_of_all_models(tables, "cost-by-model", table.caption, table)]
    budgets = tables.budgets()
    if budgets is not None:
        blocks += [Heading("Budgets", "budgets"), budgets, *map(note, presumed_words(results.budgets))]
    return PageSection("cost", "Cost", [*blocks, *map(Para, saved_words(results))])


def _endpoints(tables: ReportTables) -> Iterator[PageSection]:
    if tables.html and tables.summary.state == "running" and tables.summary.endpoints:
        yield PageSection("endpoints", "Endpoints", [tables.endpoints()])


def _questions(tables: ReportTables) -> Iterator[PageSection]:
    questions = tables.summary.whole_details.questions
    if not questions:
        return
    right = [one.correct for one in questions]
    asked = count(len(questions), "question")
    words = f"{asked} asked; {right.count(1.0):,} answered right by every model in every trial"
    blocks: list[Block] = [Para(f"{words}, {right.count(0.0):,} by none.")]
    if tables.html:
        blocks.append(Bins(histogram(right)))
        blocks.append(note(_BINS_NOTE))
    if len(tables.summary.results.models) > 1:
        blocks += [Heading("Where models differ most"), tables.apart(), note(_APART_NOTE)]
    several = tables.several()
    if several is not None:
        shown = _of_all_models(tables, "several-by-model", several.caption, several)
        blocks += [Heading("Several answers", "several"), shown, note(_SEVERAL_NOTE)]
    suspects = suspect(questions)
    if suspects:
        found = tables.suspects(MOST_SUSPECT)
        blocks += [Heading("Suspect questions", "suspects"), found, note(suspects_note(suspects))]
    blocks += [Heading("Hardest"), tables.hardest()]
    if tables.html:
        listed: list[Block] = [difficulty("All questions", questions[:MOST_QUESTIONS])]
        if len(questions) > MOST_QUESTIONS:
            every = f"The first {MOST_QUESTIONS:,} of {len(questions):,}; all are in report/questions.csv."
            listed.append(note(every))
        blocks.append(Unfolding("all-questions", "All questions", listed))
    yield PageSection("questions", "Questions", blocks)


_BINS_NOTE = "Questions by fraction correct, the mean over models: left the hard ones, right the easy ones."
_APART_NOTE = (
    "Right answers of counted trials, by the models' places on the leaderboard. Spread: standard deviation "
    "over models of (k + 1)/(n + 2), so that a question asked once does not look like one on which models "
    "differ."
)
_SEVERAL_NOTE = (
    "Estimates from all counted answers of a run whose end its results decided: no verdict is about them, "
    "and the error rate does not cover them. pass@k: one of k answers is right. pass^k: all are. To rank by "
    "one of them, or by the majority of k answers, set answers of the task."
)


def _examples(tables: ReportTables, samples: str) -> Iterator[PageSection]:
    found, title = tables.summary.whole_details.examples, "Answers one by one"
    if samples:
        links = [(samples, "Look through all answers")]
        yield PageSection("examples", title, [Para("By model, task, result or text:", links=links)])
    elif tables.html and found is not None and found.models:
        blocks = samples_in_file(found, tables.names, tables.summary.whole_details.stored)
        yield PageSection("examples", title, blocks)


def _decisions(tables: ReportTables) -> Iterator[PageSection]:
    decisions = tables.summary.decisions
    if not decisions:
        return
    latest, *earlier = tables.decisions()
    blocks: list[Block] = [latest]
    if earlier:
        blocks.append(Unfolding("earlier-decisions", "Earlier decisions", earlier))
    if len(decisions) > MOST_DECISIONS:
        every = count(len(decisions), "decision")
        blocks.append(note(f"The last {MOST_DECISIONS} of {every}; all are in report.json."))
    yield PageSection("decisions", "Decisions", blocks)


def _paper(tables: ReportTables) -> PageSection:
    summary = tables.summary
    blocks: list[Block] = [Para(methods_words(summary))]
    table = paper_table(summary)
    latex = paper_latex(summary)
    caption = caption_words(summary.results)
    if tables.html:
        markdown = f"{markdown_table(table)}\n\n{caption}"
        blocks += [
            Para("The table as LaTeX (package booktabs) and as Markdown; a click selects all of it."),
            Unfolding("latex", "LaTeX", [Code("Table of scores as LaTeX", latex, "latex", "copy")]),
            Unfolding("markdown", "Markdown", [Code("Table of scores as Markdown", markdown, "", "copy")]),
        ]
    else:
        blocks += [table, Para(caption), Para("The same as LaTeX:"), Code("", latex, "latex")]
    return PageSection("paper", "For a paper", blocks)


def _reproduce(tables: ReportTables) -> PageSection:
    blocks: list[Block] = [tables.settings()]
    config = tables.summary.whole_details.meta.get("config")
    if config is not None:
        code = Code("The config", config, "yaml")
        if tables.html:
            blocks += [Unfolding("config", "The config", [code])]
        else:
            blocks += [Heading("The config"), code]
    words = (
        "report.json in this folder holds the same, with every digit and the longer settings; the folder "
        "report has the tables as CSV."
    )
    return PageSection("reproduce", "To reproduce", [*blocks, note(words)])
