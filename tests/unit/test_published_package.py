"""Peace with the published package of the same name: its names, its records, and files of it among ours."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import adaptive_eval
import scorio
from scorio import categorical, rank, utils
from scorio._published import NAMES, foreign_files

RECORD = {
    "model": "m",
    "data_id": 6,
    "seed": 1261,
    "output": {"finish_reason": "length", "num_completion_tokens": 40},
    "tokens": {"completion_ppl": 1.5, "completion_logprob_list": [-4.0, None, -2.0, -1.0, 0.0]},
    "processed_results": {"is_correct": 0, "has_box": 1},
}


def test_the_version_is_that_of_adaptive_eval():
    assert scorio.__version__ == adaptive_eval.__version__


@pytest.mark.parametrize("module", NAMES)
def test_a_name_of_the_published_package_says_where_it_is(module):
    __import__(module)
    owner = scorio if module == "scorio" else getattr(scorio, module.partition(".")[2])
    for name in NAMES[module]:
        with pytest.raises(AttributeError, match=rf"{module}\.{name} is in the published package scorio"):
            getattr(owner, name)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        owner.nothing  # noqa: B018


def test_metrics_as_rankings_are_in_the_module_of_the_published_package_too():
    assert rank.eval_ranking.avg is rank.avg
    assert rank.eval_ranking.pass_at_k is rank.pass_at_k


def test_files_of_the_published_package_among_ours_are_noticed(tmp_path):
    assert foreign_files(tmp_path) is None
    (tmp_path / "rank").mkdir()
    (tmp_path / "rank" / "pairwise.py").touch()
    assert "pip uninstall scorio" in foreign_files(tmp_path)


def test_the_published_package_in_place_of_ours_ends_the_import_in_one_line(tmp_path):
    (tmp_path / "scorio").mkdir()
    (tmp_path / "scorio" / "__init__.py").write_text('__all__ = ["eval", "rank", "sinf"]\n')
    root = Path(adaptive_eval.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", "import adaptive_eval"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(root)])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "ImportError" in done.stderr.splitlines()[-1]
    assert "pip uninstall scorio" in done.stderr.splitlines()[-1]


def test_rank_scores_by_every_method():
    ranks = utils.rank_scores([95.0, 87.5, 87.5, 80.0, 75.0])
    assert ranks["competition"].tolist() == [1, 2, 2, 4, 5]
    assert ranks["competition_max"].tolist() == [1, 3, 3, 4, 5]
    assert ranks["avg"].tolist() == [1.0, 2.5, 2.5, 4.0, 5.0]
    assert set(ranks) == {"competition", "competition_max", "dense", "avg"}
    sigma = [1.0, 5.0, 0.1, 0.1, 0.1]
    by_z = utils.rank_scores([95.0, 87.5, 87.0, 80.0, 75.0], sigmas_in_id_order=sigma)
    by_overlap = utils.rank_scores(
        [95.0, 87.5, 87.0, 80.0, 75.0], sigmas_in_id_order=sigma, ci_tie_method="ci_overlap_adjacent"
    )
    assert by_z["dense_ci"].tolist() == [1, 1, 1, 2, 3]
    assert by_overlap["dense_ci"].tolist() == [1, 1, 1, 2, 3]
    assert by_z["competition_ci"].tolist() == [1, 1, 1, 4, 5]


def test_compare_rankings():
    golden = utils.compare_rankings([1, 2, 3, 4, 5], [1, 3, 2, 5, 4])
    assert golden["kendalltau"][0] == pytest.approx(0.6)
    assert golden["spearmanr"][0] == pytest.approx(0.8)
    assert golden["fraction_mismatched"] == 0.8
    assert golden["max_disp"] == 0.25
    assert utils.compare_rankings([1, 2, 3], [1, 2, 3], "kendall")[0] == 1.0


def test_records_of_completions_become_columns(tmp_path):
    (tmp_path / "below").mkdir()
    (tmp_path / "a.jsonl").write_text(
        json.dumps(RECORD) + "\n\n" + json.dumps({"model": "n", "data_id": 2}) + "\n"
    )
    with gzip.open(tmp_path / "below" / "b.jsonl.gz", "wt") as file:
        file.write(json.dumps({**RECORD, "output": None}) + "\n")
    columns = categorical.load_records(tmp_path, workers=1)
    assert columns["source_file"].tolist() == ["a.jsonl", "a.jsonl", "b.jsonl.gz"]
    assert columns["model"].tolist() == ["m", "n", "m"]
    assert columns["trial"].tolist()[0] == 1261.0
    assert columns["hit_max_len"].tolist() == [1.0, 0.0, 0.0]
    assert columns["logprob_min"].tolist()[0] == -4.0
    assert columns["logprob_iqr"].tolist()[0] == np.percentile([-4, -2, -1, 0], 75) + 2.5
    assert columns["tail64_avg_logprob"].tolist()[0] == -1.75
    assert np.isnan(columns["completion_perplexity"][1])
    assert np.isnan(columns["acemath_orm"]).all()


def test_bad_records(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text('{"model": "m"}\nno json\n[1]\n')
    with pytest.warns(UserWarning, match="2 lines are no JSON objects"):
        assert categorical.load_records(file)["model"].tolist() == ["m"]
