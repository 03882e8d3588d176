"""The paper's figures and tables in one command, at a scale that takes seconds."""

import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from click.testing import CliRunner

from adaptive_eval.cli.paper import command
from scorio.study import paper


@pytest.mark.slow
def test_the_command_writes_a_page_with_all_its_figures(tmp_path):
    done = CliRunner().invoke(command, ["--out", str(tmp_path), "--scale", "0.001", "--jobs", "1"])
    assert done.output.strip() == str(tmp_path / "paper.md")
    text = (tmp_path / "paper.md").read_text()
    assert "{" not in text
    figures = sorted(path.name for path in tmp_path.glob("*.svg"))
    assert len(figures) == 11
    for name in figures:
        assert f"]({name})" in text
        ET.parse(tmp_path / name)
    for section in ("Figure 1", "Figure 2", "Figure 3", "Table 1", "Figures 5 and 9", "Figure 6", "Table 2"):
        assert section in text


@pytest.mark.slow
def test_a_page_of_recorded_outcomes(tmp_path, monkeypatch):
    outcomes = np.random.default_rng(1).random((6, 10, 12)) < np.linspace(0.2, 0.8, 6)[:, None, None]
    np.savez(tmp_path / "R.npz", mine=outcomes, pair=outcomes[:2].astype(int))
    paper.write_page(tmp_path / "page", 0.0001, jobs=1, data=tmp_path / "R.npz")
    text = (tmp_path / "page" / "paper.md").read_text()
    assert "mine: 6 models, 10 questions, 12 trials" in text
    assert "Table 1" not in text
    for figure in ("4-mine", "5-mine", "5-permuted-mine", "6-mine", "9-permuted-pair"):
        assert (tmp_path / "page" / f"figure-{figure}.svg").exists()
    assert not (tmp_path / "page" / "figure-6-pair.svg").exists()
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="the page needs matplotlib"):
        paper.write_page(tmp_path / "other")
    for wrong in ({"a": outcomes[0]}, {"a": outcomes * 2}, {"a": outcomes[:1]}, {"a": outcomes[:, :, :1]}):
        np.savez(tmp_path / "wrong.npz", **wrong)
        with pytest.raises(ValueError, match="data must have outcomes 0 and 1"):
            paper.read_outcomes(tmp_path / "wrong.npz")
    (tmp_path / "wrong.npz").write_text("no archive")
    with pytest.raises(ValueError, match=r"data must be an npz file of arrays; cannot read .*wrong\.npz"):
        paper.read_outcomes(tmp_path / "wrong.npz")
