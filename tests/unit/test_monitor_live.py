"""Showing a run as it goes: when it draws, what it says, and on which terminal."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from functools import partial

import pytest
import run_examples as runs
import standings_examples as examples
from rich.console import Console

from adaptive_eval.views.live import LiveView, choose_display, make_console

HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"


Clock = partial(runs.Clock, 1_000.0)


def view_of(results, elapsed=10.0):
    return examples.view_of(results, elapsed)


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
            live.update(view_of(examples.midrun(), float(i)))
            draws.append(len(console.file.getvalue()) > before)
    assert sum(draws) == 5
    assert draws[0]


def test_a_warning_whose_figures_move_is_said_once():
    clock, console = Clock(), piped()
    with LiveView("plain", console=console, clock=clock) as live:
        for number in range(5):
            clock.now += 1.0
            results = replace(
                examples.midrun(), warnings=(f"oak: {number} of 1,{number}00 answers are alike",)
            )
            live.update(view_of(results))
    assert [line for line in plain_lines(console) if " warning " in line] == [
        "2025-06-15T15:06:50Z warning oak: 0 of 1,000 answers are alike"
    ]


def fail_while_shown(console):
    with LiveView("full", console=console, clock=Clock()) as live:
        live.update(view_of(examples.midrun()))
        raise RuntimeError("broken")


def test_an_error_inside_still_gives_the_cursor_back():
    console = terminal()
    with pytest.raises(RuntimeError, match="broken"):
        fail_while_shown(console)
    out = console.file.getvalue()
    assert out.rindex(SHOW_CURSOR) > out.rindex(HIDE_CURSOR)


def test_plain_says_each_thing_once():
    clock, console = Clock(), piped()
    with LiveView(None, console=console, clock=clock) as live:
        assert live.display == "plain"
        for elapsed in range(60):
            clock.now = 1_000.0 + elapsed
            live.update(view_of(examples.midrun(), float(elapsed)))
        clock.now += 1
        live.update(view_of(examples.finished(), 60.0))
        clock.now += 1
        live.update(view_of(examples.finished(), 60.0))
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
        live.update(view_of(examples.no_trials(), 1.0))
        clock.now += 10.0
        live.update(view_of(examples.midrun(), 11.0))
    progress = [line for line in plain_lines(console) if " progress " in line]
    assert len(progress) == 1
    for words in ("728 trials", "7 of 10 pairs resolved", "66.2 trials/s", "highest score oak 0.860"):
        assert words in progress[0]


def test_the_display_follows_the_terminal(monkeypatch):
    monkeypatch.delenv("TERM", raising=False)
    assert choose_display(None, terminal()) == "full"
    assert choose_display("compact", terminal()) == "compact"
    assert choose_display("plain", terminal()) == "plain"
    assert choose_display("none", piped()) == "none"
    assert choose_display(None, piped()) == "plain"
    assert choose_display("full", piped()) == "plain"
    with pytest.raises(ValueError, match="display is 'fancy': choose one of full, compact, plain, none"):
        choose_display("fancy", terminal())
    monkeypatch.setenv("TERM", "dumb")
    assert choose_display(None, terminal()) == "plain"


def test_a_stream_that_lacks_a_character_does_not_stop_the_run():
    raw = io.BytesIO()
    console = make_console(io.TextIOWrapper(raw, encoding="ascii"))
    with LiveView("plain", console=console, clock=Clock()) as live:
        live.update(view_of(examples.hostile()))
    console.print("±")
    console.file.flush()
    assert b"start aime-shootout" in raw.getvalue()
