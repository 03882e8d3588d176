"""The paper's figures and tables in one command, at a scale that takes seconds."""

import xml.etree.ElementTree as ET

import pytest

from scorio.study import paper


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
