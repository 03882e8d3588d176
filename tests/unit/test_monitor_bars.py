"""Bars, labels, aligned columns and the sharing of height."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from adaptive_eval.views.bars import common_axis, interval_bar, progress_bar
from adaptive_eval.views.labels import cut, distinct_labels
from adaptive_eval.views.lines import to_ascii
from adaptive_eval.views.terminal import Block, fit

scores = st.floats(-1e4, 1e4)


@given(st.lists(scores, min_size=1, max_size=8))
def test_an_axis_holds_all_values_and_has_length(values):
    axis = common_axis(values)
    slack = 1e-8 * max(1.0, *map(abs, values))
    assert axis.low < axis.high
    assert axis.low - slack <= min(values) <= max(values) <= axis.high + slack


@given(scores, st.floats(0, 10), st.floats(0, 10), st.integers(3, 60))
def test_a_bar_is_exactly_so_wide_and_in_order(point, below, above, width):
    low, high = point - below, point + above
    bar = interval_bar(common_axis([low, high, 0.0, 1.0]), low, point, high, width)
    assert len(bar) == width
    assert bar.count("●") == 1
    marks = bar.strip()
    assert set(marks) <= set("├─●┤")
    assert bar.find("├") <= bar.index("●")
    assert "┤" not in bar or bar.index("┤") >= bar.index("●")


def test_values_that_are_not_numbers_are_left_out():
    assert common_axis([None, float("nan"), float("inf")]) is None
    axis = common_axis([0.0, 1.0])
    assert interval_bar(axis, 0.1, float("nan"), 0.3, 9) == " " * 9
    assert interval_bar(axis, float("-inf"), 0.5, float("inf"), 9) == "    ●    "


@given(st.floats(), st.integers(1, 40))
def test_progress_is_full_only_when_it_is(fraction, width):
    bar = progress_bar(fraction, width)
    assert len(bar) == width
    assert bar == bar.strip("·") + "·" * bar.count("·")
    if fraction >= 1:
        assert "·" not in bar
    elif fraction < 0.999_999:
        assert "·" in bar


@given(st.sets(st.text(max_size=40), max_size=24), st.integers(4, 30))
def test_labels_are_distinct_and_fit(names, width):
    labels = distinct_labels(names, width)
    assert set(labels) == names
    assert len(set(labels.values())) == len(names)
    for label in labels.values():
        assert cell_len(label) <= width
        assert label.isprintable()


@given(st.text(), st.integers(0, 20))
def test_cutting_never_exceeds_the_width(text, width):
    assert cell_len(cut(text, width)) <= width


@given(st.text(max_size=30))
def test_ascii_lines_are_ascii_and_as_long(text):
    shown = to_ascii(Text(text)).plain
    assert shown.isascii()
    assert len(shown) == len(Text(text).plain)


block_steps = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 12)), min_size=1, max_size=3)


@given(
    st.lists(st.tuples(block_steps, st.booleans()), max_size=6),
    st.integers(0, 30),
    st.none() | st.integers(0, 9),
)
def test_blocks_never_exceed_the_height_and_keep_their_order(described, height, spacing):
    blocks = [
        Block(lambda h, i=i: [Text(str(i))] * h, steps, elastic)
        for i, (steps, elastic) in enumerate(described)
    ]
    lines = [text.plain for text in fit(blocks, height, spacing=spacing)]
    assert len(lines) <= height
    shown = [int(text) for text in lines if text]
    assert shown == sorted(shown)
    assert lines[:1] != [""]
    assert lines[-1:] != [""]


def test_a_rigid_block_is_drawn_whole_or_not_at_all():
    blocks = [
        Block(lambda h: [Text("a")] * h, [(1, 2)]),
        Block(lambda h: [Text("b")] * h, [(2, 5)], elastic=False),
    ]
    assert [text.plain for text in fit(blocks, 6)] == ["a", "a"]
    assert len(fit(blocks, 7)) == 7
