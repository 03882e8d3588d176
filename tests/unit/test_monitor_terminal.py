"""What a terminal shows of a run: at every size, as it goes, with its forecast, and without its reader."""

import asyncio
import io
import json
import os
import re
import sys
from dataclasses import replace
from functools import partial

import pytest
import run_examples as runs
import standings_examples as examples
from rich.cells import cell_len
from rich.console import Console, ConsoleDimensions
from standings_examples import MORE, view_of

from adaptive_eval.cli.run_terminal import ForgivingStream, Terminal
from adaptive_eval.engine.events import Decided, Draining, Progress
from adaptive_eval.views.live_terminal import LiveView, choose_display, make_console
from adaptive_eval.views.report_json import JsonLines
from adaptive_eval.views.run_sentences import outlook_phrases, progress_words
from adaptive_eval.views.summary import outlook
from adaptive_eval.views.terminal import COMPACT_HEIGHT, render_summary, run_display

# What the terminal shows: everything that matters at every size, and nothing that acts on it.


SIZES = [
    (12, 4), (20, 1), (40, 10), (60, 16), (80, 24), (100, 30), (120, 40), (150, 24), (200, 60), (300, 100),
]  # fmt: skip
SGR = re.compile(r"\x1b\[[0-9;]*m")


def printed(renderable, *, width=80, height=24, **console):
    out = io.StringIO()
    options = {"force_terminal": True, "color_system": "truecolor"} | console
    Console(file=out, width=width, height=height, highlight=False, **options).print(renderable)
    return out.getvalue()


def text_of(view, width, height, **options):
    return printed(run_display(view, **options), width=width, height=height + 1, color_system=None)


@pytest.mark.parametrize("moment", examples.MOMENTS)
@pytest.mark.parametrize("bayes", [False, True])
def test_every_moment_fits_every_terminal(moment, bayes):
    for width, height in SIZES:
        lines = text_of(view_of(moment, failing=True), width, height, bayes=bayes).splitlines()
        assert 0 < len(lines) <= height
        assert max(map(cell_len, lines)) <= width


def test_eighty_by_twenty_four_answers_the_questions_in_order():
    text = text_of(view_of("midrun", failing=True), 80, 23)
    order = [
        "aime-shootout  running",  # which run
        "First place is not resolved between oak, elm and ash",  # who is ahead
        "oak    0.860",
        "oak − ash",  # what is open
        "7 separated  0 tied  3 open",
        "trials    728",  # what it costs
        "elm rate_limit 12, timeout 3",  # what is broken
        "ash: 2 trials have no answer",
        "ash is ahead of fir",
    ]
    places = [text.index(words) for words in order]
    assert places == sorted(places)
    for model in examples.QUICKSTART:
        assert re.search(rf"^ *[\d–]+  {model} ", text, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("width", [60, 72, 80, 100, 120, 200])
@pytest.mark.parametrize("moment", ["midrun", "twenty_models", "against_a_number", "to_a_width", "all_none"])
def test_columns_are_dropped_rather_than_cut(moment, width):
    rows = text_of(view_of(moment), width, 40).splitlines()
    heads = [row for row in rows if row.lstrip().startswith(("rank", "verdict", "open "))]
    assert heads
    assert not any("…" in head for head in heads)


def test_a_stopped_run_says_unresolved_and_forecasts_nothing():
    text = text_of(view_of("out_of_budget"), 120, 40)
    assert "stopped: budget" in text
    assert text.count("unresolved") == 3
    assert "lasts at" not in text
    assert "trials/s" not in text


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (200, 60)])
def test_hostile_names_are_inert(width, height):
    for renderable in (
        run_display(view_of("hostile")),
        render_summary(view_of("hostile"), "runs/\x1b[2Jx/report.md"),
    ):
        out = printed(renderable, width=width, height=height)
        plain = SGR.sub("", out)
        assert not {"\x1b", "\x07", "\u202e"} & set(plain)
        for name in ("[red]markup[/red]", "user\\u202egnp.exe", "line␊break"):
            assert name in plain


def test_colour_repeats_words_only():
    with_colour = printed(run_display(view_of("midrun", failing=True)))
    without = printed(run_display(view_of("midrun", failing=True)), no_color=True)
    assert SGR.sub("", with_colour) == SGR.sub("", without)
    assert with_colour != without


def test_colours_are_legible_on_light_and_dark_terminals():
    # reset, bold, red, green, magenta: never black, white, yellow, grey
    allowed = {"0", "1", "31", "32", "35"}
    for moment in examples.MOMENTS:
        out = printed(run_display(view_of(moment, failing=True)), width=200, height=60)
        codes = {code for found in SGR.findall(out) for code in found[2:-1].split(";") if code}
        assert codes <= allowed


def test_a_terminal_without_unicode_gets_ascii():
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    for moment in ("midrun", "hostile", "finished"):
        console = make_console(stream)
        console.size = ConsoleDimensions(200, 60)
        console.print(run_display(view_of(moment)))
        console.print(render_summary(view_of(moment), "runs/x/report.md"))
    stream.flush()
    text = raw.getvalue().decode("ascii")
    assert "|" in text
    assert "#" in text
    assert "ties within ~0.05" in text


def test_the_compact_view_leaves_the_terminal_to_others():
    out = printed(run_display(view_of("twenty_models"), compact=True), width=100, height=60)
    assert len(out.splitlines()) <= COMPACT_HEIGHT
    assert "First place" in out
    assert "Budget" in out


def test_the_summary_tells_verdict_reason_saving_and_report():
    out = printed(render_summary(view_of("finished"), "runs/aime-shootout/report.md"), color_system=None)
    flat = " ".join(out.split())
    for words in (
        "oak is ahead of all others; elm and ash are tied within ±0.05; ",
        "10 of 10 pairs resolved after 5,650 trials on these questions.",
        "Stopped (resolved): goal reached: 10 pairs decided, 1 of them tied.",
        "2–3 elm 0.720",
        "9 separated 1 tied 0 open elm = ash tied within ±0.05",
        "52 % fewer",
        "Report runs/aime-shootout/report.md",
    ):
        assert words in flat


@pytest.mark.slow
@pytest.mark.parametrize("moment", examples.MOMENTS)
@pytest.mark.parametrize("width", [20, 40, 80, 120, 200])
def test_the_summary_fits_its_width(moment, width):
    out = printed(render_summary(view_of(moment), "report.md", bayes=True), width=width, color_system=None)
    assert max(map(cell_len, out.splitlines())) <= width


# Showing a run as it goes: when it draws, what it says, and on which terminal.


HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"


Clock = partial(runs.Clock, 1_000.0)


def terminal(**options):
    return Console(file=io.StringIO(), width=80, height=24, force_terminal=True, highlight=False, **options)


def piped():
    return Console(file=io.StringIO(), width=80, highlight=False)


def plain_lines(console):
    return console.file.getvalue().splitlines()


def test_drawing_is_throttled():
    clock, console = Clock(), terminal()
    with LiveView("full", console=console, clock=clock, refresh=0.25) as live:
        draws = []
        for i in range(101):
            clock.now = 1_000.0 + i / 100
            before = len(console.file.getvalue())
            live.update(view_of("midrun", float(i)))
            draws.append(len(console.file.getvalue()) > before)
    assert sum(draws) == 5
    assert draws[0]


def test_a_warning_whose_figures_move_is_said_once():
    clock, console = Clock(), piped()
    with LiveView("plain", console=console, clock=clock) as live:
        for number in range(5):
            clock.now += 1.0
            warnings = (f"oak: {number} of 1,{number}00 answers are alike",)
            live.update(view_of(replace(examples.midrun(), warnings=warnings), 10.0))
    assert [line for line in plain_lines(console) if " warning " in line] == [
        "2025-06-15T15:06:50Z warning oak: 0 of 1,000 answers are alike"
    ]


def test_an_error_inside_still_gives_the_cursor_back():
    console = terminal()
    live = LiveView("full", console=console, clock=Clock())
    with pytest.raises(RuntimeError, match="broken"), live:  # noqa: PT012
        live.update(view_of("midrun", 10.0))
        raise RuntimeError("broken")
    out = console.file.getvalue()
    assert out.rindex(SHOW_CURSOR) > out.rindex(HIDE_CURSOR)


def test_plain_says_each_thing_once():
    clock, console = Clock(), piped()
    with LiveView(None, console=console, clock=clock) as live:
        assert live.display == "plain"
        for elapsed in range(60):
            clock.now = 1_000.0 + elapsed
            live.update(view_of("midrun", float(elapsed)))
        clock.now += 1
        live.update(view_of("finished", 60.0))
        clock.now += 1
        live.update(view_of("finished", 60.0))
    lines = plain_lines(console)
    keywords = [line.split()[1] for line in lines]
    assert keywords.count("start") == keywords.count("end") == keywords.count("warning") == 1
    assert keywords.count("progress") == 5
    decisions = [line for line in lines if " decision " in line]
    assert len(decisions) == len(examples.decisions_of(examples.finished()))
    assert all(re.match(r"^2025-06-15T15:\d\d:\d\dZ ", line) for line in lines)
    assert lines[0].startswith(
        "2025-06-15T15:06:40Z start aime-shootout: goal rank all models; rule anytime, 95 %"
    )
    assert "oak is ahead of all others" in lines[-1]


def test_plain_progress_tells_trials_pairs_rate_and_leader():
    clock, console = Clock(), piped()
    with LiveView("plain", console=console, clock=clock, progress_every=10.0) as live:
        live.update(view_of("no_trials", 1.0))
        clock.now += 10.0
        live.update(view_of("midrun", 11.0))
        live.update(view_of("finished", 11.0))  # too early to be drawn before the end
    assert " end " in plain_lines(console)[-1]
    progress = [line for line in plain_lines(console) if " progress " in line]
    assert len(progress) == 1
    for words in ("728 trials", "7 of 10 pairs resolved", "66.2 trials/s", "highest score oak 0.860"):
        assert words in progress[0]
    view = view_of("midrun", 11.0)
    models = [replace(line, score=None) for line in view.results.models]
    unscored = replace(view, results=replace(view.results, models=tuple(models)))
    assert "highest score" not in progress_words(unscored)


@pytest.mark.parametrize(("rows", "shown"), [(6, 5), (5, 5), (4, 3)])
def test_a_board_that_fits_is_shown_whole_and_another_says_how_many_more_there_are(rows, shown):
    view = view_of("midrun", 11.0)
    text = "\n".join(examples.board_lines(view, 100, rows))
    names = [line.model for line in view.results.models]
    assert len(names) == 5
    assert [name for name in names if name in text] == names[:shown]


def test_the_display_follows_the_terminal(monkeypatch):
    monkeypatch.delenv("TERM", raising=False)
    for asked, shown in ((None, "full"), ("compact", "compact"), ("plain", "plain")):
        assert choose_display(asked, terminal()) == shown
    for asked, shown in (("none", "none"), (None, "plain"), ("full", "plain")):
        assert choose_display(asked, piped()) == shown
    with pytest.raises(ValueError, match="display is 'fancy': choose one of full, compact, plain, none"):
        choose_display("fancy", terminal())
    monkeypatch.setenv("TERM", "dumb")
    assert choose_display(None, terminal()) == "plain"


# The forecast in the terminal views: what it says, how little room it takes, and when it is silent.


WORDS = "91 % goal reached in budget · 1,056 more trials (594–4,362)"


def view_with(forecast, **options):
    return view_of(replace(examples.midrun(), forecast=forecast), **options)


@pytest.mark.parametrize(("width", "height"), [(80, 23), (100, 30), (200, 60), (80, 16)])
def test_one_line_says_how_sure_and_how_much(width, height):
    lines = examples.drawn(view_with(MORE), width, height)
    assert any(f"Forecast (approx.) {WORDS}" in line for line in lines)
    assert len(lines) <= height
    if height == 23:
        text = "\n".join(lines)
        assert text.index("open ") < text.index("Forecast") < text.index("trials    728")


def test_time_is_the_median_at_the_present_rate():
    before = examples.snapshot_of(replace(examples.midrun(), trials=728 - 40), 144.0)  # 40 trials in 10 s
    view = view_with(MORE, previous=before)
    assert view.outlook.seconds.median == pytest.approx(1_056 / 4)
    assert "4 min 24 s (2 min 28 s–18 min 10 s)" in outlook_phrases(view.outlook)
    line = json.loads(JsonLines().line(view))
    assert line["results"]["forecast"]["trials"] == {"low": 594, "median": 1_056, "high": 4_362}
    assert line["forecast_seconds"]["median"] == pytest.approx(264.0)


def test_without_a_forecast_nothing_is_said():
    view = view_with(None)
    assert view.outlook is None
    assert "Forecast" not in "\n".join(examples.drawn(view, 200, 60))
    assert json.loads(JsonLines().line(view))["forecast_seconds"] is None
    assert outlook(examples.finished(), 10.0) is None


# A run's terminal whose reader leaves.


def test_a_reader_that_leaves_while_the_summary_is_written_is_no_error(monkeypatch):
    reader, writer = os.pipe()
    stopped = []

    async def run() -> None:
        with Terminal("none").stoppable(lambda: stopped.append(True)):
            pass

    with os.fdopen(writer, "w") as stream:
        monkeypatch.setattr(sys, "stdout", ForgivingStream(stream))
        asyncio.run(run())
        os.close(reader)
        print("the summary")
        sys.stdout.flush()
        monkeypatch.undo()
    assert not stopped


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("interrupted", "Stopping after 2 answers in flight; Ctrl-C again cancels them.\n"),
        ("budget", "A budget has ended; waiting for 2 answers. Ctrl-C cancels them.\n"),
        ("resolved", ""),
    ],
)
def test_a_run_says_that_it_waits_for_answers_in_flight(reason, text, capsys):
    with Terminal("none").watch("run", None, []) as observer:
        observer(Draining(reason, 2))
        observer(Draining(reason, 0))
    assert capsys.readouterr().err == text


def test_decisions_of_earlier_sessions_keep_their_times(capsys):
    first, *others = examples.decisions_of(examples.finished())
    with Terminal("plain").watch("run", None, [Decided(60.0, (first,))]) as observer:
        observer(Decided(120.0, tuple(others)))
        observer(Progress(180.0, 20.0, examples.finished(), ()))
    lines = capsys.readouterr().out.splitlines()
    times = [line.split()[0] for line in lines if " decision " in line]
    assert times == ["1970-01-01T00:01:00Z", *["1970-01-01T00:02:00Z"] * len(others)]
