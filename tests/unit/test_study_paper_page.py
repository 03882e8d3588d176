"""The paper's figures and tables in one command, at a scale that takes seconds."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from scorio.study import paper
from scorio.study._svg import line_chart


@pytest.mark.slow
def test_the_command_writes_a_page_with_all_its_figures(tmp_path, capsys):
    assert paper.main(["--out", str(tmp_path), "--scale", "0.001", "--jobs", "1"]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "paper.md")
    text = (tmp_path / "paper.md").read_text()
    figures = sorted(path.name for path in tmp_path.glob("*.svg"))
    assert len(figures) == 9
    for name in figures:
        assert f"]({name})" in text
        ET.parse(tmp_path / name)
    for section in ("Figure 1", "Figure 2", "Figure 3", "Table 1", "Figures 5 and 9", "Figure 6", "Table 2"):
        assert section in text


def test_a_line_chart_leaves_nan_out_and_escapes_names():
    lines = {"a < b": ([1, 2, 3], [0.1, np.nan, 0.3]), "c": ([1, 3], [0.2, 0.2])}
    root = ET.fromstring(line_chart("T", "x", "y", lines, levels=[0.25]))
    points = [element.get("points").split() for element in root.iter("{http://www.w3.org/2000/svg}polyline")]
    assert [len(one) for one in points] == [2, 2]
    assert "a < b" in [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    first, last = (float(point.split(",")[1]) for point in points[0])
    assert first > last  # larger values are higher up
