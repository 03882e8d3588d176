"""What the terminal shows: everything that matters at every size, and nothing that acts on it."""

from __future__ import annotations

import io
import re

import pytest
import standings_examples as examples
from rich.cells import cell_len
from rich.console import Console, ConsoleDimensions
from standings_examples import view_of

from adaptive_eval.views.live import make_console
from adaptive_eval.views.terminal import COMPACT_HEIGHT, render_summary, run_display

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


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("moment", examples.MOMENTS)
@pytest.mark.parametrize("bayes", [False, True])
def test_every_moment_fits_every_terminal(moment, width, height, bayes):
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
    heads = [
        row
        for row in text_of(view_of(moment), width, 40).splitlines()
        if row.lstrip().startswith(("rank", "verdict", "open "))
    ]
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
        assert "\x1b" not in plain
        assert "\x07" not in plain
        assert "\u202e" not in plain
        assert "[red]markup[/red]" in plain
        assert "user\\u202egnp.exe" in plain
        assert "line␊break" in plain


def test_colour_repeats_words_only():
    with_colour = printed(run_display(view_of("midrun", failing=True)))
    without = printed(run_display(view_of("midrun", failing=True)), no_color=True)
    assert SGR.sub("", with_colour) == SGR.sub("", without)
    assert with_colour != without


def test_colours_are_legible_on_light_and_dark_terminals():
    allowed = {
        "0",
        "1",
        "31",
        "32",
        "35",
    }  # reset, bold, red, green, magenta: never black, white, yellow, grey
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
        "10 of 10 pairs resolved after 5,650 trials.",
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
