"""Peace with the published package of the same name: its names, records and files; and cheap imports."""

import ast
import gzip
import inspect
import itertools
import json
import math
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

import adaptive_eval
import scorio
from scorio import categorical, rank, sinf, utils
from scorio import eval as metrics
from scorio._names import NAMES, foreign_files, published_table

# Peace with the published package of the same name: its names, its records, and files of it among ours.


RECORD = {
    "model": "m",
    "data_id": 6,
    "seed": 1261,
    "output": {"finish_reason": "length", "num_completion_tokens": 40},
    "tokens": {"completion_ppl": 1.5, "completion_logprob_list": [-4.0, None, -2.0, -1.0, 0.0]},
    "processed_results": {"is_correct": 0, "has_box": 1},
}


SIGNATURES = (Path(__file__).parents[1] / "data" / "published_signatures.txt").read_text("utf-8").splitlines()


@pytest.mark.parametrize("written", SIGNATURES)
def test_signatures_are_those_of_the_published_package(written):
    name = written.partition("(")[0]
    module, _, function = name.rpartition(".")
    parameters = inspect.signature(getattr(import_module(module), function)).parameters.values()
    positional = [one for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
    shown = [one.name if one.default is one.empty else f"{one.name}={one.default!r}" for one in positional]
    assert f"{name}({', '.join(shown)})" == written
    others = [one.kind for one in parameters if one not in positional]
    assert set(others) <= {inspect.Parameter.KEYWORD_ONLY}


def test_every_metric_of_the_reference_is_there_and_no_other():
    profiles = {"tailpass", "tailpass_empirical", "TailPassProfile", "Estimate", "Interval"}
    named = {written.partition("(")[0] for written in SIGNATURES}
    assert {f"scorio.eval.{name}" for name in set(metrics.__all__) - profiles} == {
        name for name in named if name.startswith("scorio.eval.")
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


PUBLISHED = (Path(__file__).parents[1] / "data" / "published_names.txt").read_text("utf-8").split()


def test_the_docs_list_every_published_name_as_here_or_not():
    docs = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text("utf-8")
    assert published_table(PUBLISHED) in docs
    for full in PUBLISHED:
        module, _, name = full.rpartition(".")
        assert hasattr(import_module(module), name) == (name not in NAMES.get(module, ()))


@pytest.mark.parametrize("source", ["from scorio.rank import minimax", "import scorio.aggregate"])
def test_an_import_of_a_published_name_says_where_it_is(source):
    with pytest.raises(ImportError, match="is in the published package scorio"):
        exec(source)
    assert not hasattr(rank, "minimax")


def test_the_package_is_imported_from_a_zip(tmp_path):
    root = Path(scorio.__file__).parent
    with ZipFile(tmp_path / "scorio.zip", "w") as archive:
        for file in root.rglob("*"):
            if file.suffix in (".py", ".json", ".txt"):
                archive.write(file, Path("scorio", file.relative_to(root)))
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'scorio.zip')!r})\n"
        "from scorio import categorical, eval, rank, sequential, study, utils\n"
        "print('.zip' in rank.__file__, rank.avg([[1, 0], [1, 1]]), sequential.compare.__name__)"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert (done.stdout.split(maxsplit=1)[:1], done.stderr) == (["True"], "")


@pytest.mark.parametrize("module", ["eval", "sequential", "sequential.parts"])
def test_names_for_type_checkers_are_those_that_are_loaded(module):
    package = import_module(f"scorio.{module}")
    tree = ast.parse(Path(package.__file__).read_text("utf-8"))
    blocks = [node for node in tree.body if isinstance(node, ast.If) and "TYPE" in ast.unparse(node.test)]
    seen = {(node.module, name.name) for node in blocks[0].body for name in node.names}
    assert seen == {(home, name) for home, names in package._HOMES.items() for name in names}


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
    scores, sigma = [95.0, 87.5, 87.0, 80.0, 75.0], [1.0, 5.0, 0.1, 0.1, 0.1]
    by_z = utils.rank_scores(scores, sigmas_in_id_order=sigma)
    by_overlap = utils.rank_scores(scores, sigmas_in_id_order=sigma, ci_tie_method="ci_overlap_adjacent")
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


def grades():
    """Columns of two models; both have a trial 0 of question 0 in file "a", and only one has question 1."""
    return {
        "source_file": np.array(["a", "a", "a", "b"], dtype=object),
        "model": np.array(["m", "n", "m", "n"], dtype=object),
        "problem": np.array([0, 0, 1, 0], dtype=object),
        "trial": np.array([0.0, 0.0, 0.0, 1.0]),
        "is_correct": np.array([1.0, 0.0, 0.0, 1.0]),
        "has_box": np.array([1.0, np.nan, 0.0, 0.0]),
        "prompt_perplexity": np.array([1.0, 2.0, 3.0, np.nan]),
    }


def test_grades_of_recorded_completions():
    columns = grades()
    medians = {"R1": 0.5, "R2": 0.5, "P_ppl": 2.0, "P2": 2.0}
    assert categorical.Thresholds.from_columns(columns).medians == medians
    found = categorical.evaluate_all(columns)
    assert set(found) == {
        "Confident & Correct",
        "Token Surprise vs. Correctness",
        "Format Compliance & Correctness",
        "Difficulty-Adjusted Correctness",
        "IO Ratio Profile",
    }
    # Grades of m: .7 (easy, solved) and .4 (hard, failed); of n: .4, and .7 without a signal.
    assert found["Difficulty-Adjusted Correctness"] == {
        "m": pytest.approx(scorio.eval.bayes([[1], [0]], [0.4, 0.7])),
        "n": pytest.approx(scorio.eval.bayes([[0, 1]], [0.4, 0.7])),
    }
    by_file = categorical.evaluate_schema(columns, "Difficulty-Adjusted Correctness", group_key="source_file")
    assert by_file["a"] == pytest.approx(scorio.eval.bayes([[1], [0]], [0.4, 0.7]))  # the first of two trials
    higher = categorical.evaluate_schema(columns, "Difficulty-Adjusted Correctness", {"P2": 2.5})
    assert higher["n"] == pytest.approx(scorio.eval.bayes([[0, 1]], [0.1, 0.7]))


def test_a_trial_that_is_missing_has_the_grade_0():
    columns = {name: values[[0, 1, 3, 2]] for name, values in grades().items()}
    found = categorical.evaluate_schema(columns, "Format Compliance & Correctness")
    assert found["n"] == pytest.approx(scorio.eval.bayes([[0, 1]], [0.0, 0.6]))


@pytest.mark.parametrize("n", range(6))
def test_rankings_permutations_and_subsets_have_one_number_each(n):
    permutations = [utils.lehmer_unhash(number, n) for number in range(math.factorial(n))]
    assert permutations == [list(order) for order in itertools.permutations(range(n))]
    assert [utils.lehmer_hash(order) for order in permutations] == list(range(math.factorial(n)))
    rankings = [utils.unhash_ranking(number, n) for number in range(utils.ordered_bell(n)[n])]
    assert [utils.ranking_hash(ranks) for ranks in rankings] == list(range(len(rankings)))
    assert len({tuple(ranks) for ranks in rankings}) == len(rankings)
    for k in range(n + 1):
        subsets = [list(subset) for subset in itertools.combinations(range(n), k)]
        assert [utils.comb_unrank_lex(number, n, k) for number in range(len(subsets))] == subsets
        assert [utils.comb_rank_lex(subset, n, k) for subset in subsets] == list(range(len(subsets)))


def test_numbers_of_rankings_as_the_published_package_has_them():
    rankings = [1, 2, 3], [1, 2, 2], [2, 1, 2], [1, 1, 3]
    assert [utils.ranking_hash(ranks) for ranks in rankings] == [0, 2, 5, 9]
    assert utils.blocks_from_rank_list([2.0, 1.0, 2.0 + 1e-13]) == [[1], [0, 2]]


def test_confidence_and_intervals_of_one_look():
    rho, z = sinf.ranking_confidence(0.6, 0.03, 0.55, 0.04)
    assert (rho, z) == (pytest.approx(0.8413447), pytest.approx(1.0))
    assert sinf.ranking_confidence(0.5, 0.0, 0.5, 0.0) == (0.5, math.inf)
    assert sinf.ranking_confidence(0.5, 0.0, 0.6, 0.0) == (1.0, math.inf)
    assert sinf.ci_from_mu_sigma(0.5, 0.1, 0.9) == pytest.approx((0.3355146, 0.6644854))
    assert sinf.ci_from_mu_sigma(0.9, 0.1, clip=(0.0, 1.0))[1] == 1.0
    assert sinf.should_stop(0.1, 0.9, max_half_width=0.1645)
    assert not sinf.should_stop(0.1, 0.9, max_half_width=0.1644)
    assert sinf.should_stop(0.1, 0.9, max_ci_width=0.329)


def test_the_best_of_several_at_one_look():
    mu, sigma = [0.50, 0.80, 0.76, 0.70], [0.1, 0.02, 0.01, 0.03]
    # Half widths at .9 of models 1, 2, 3: .033, .016, .049.
    assert sinf.should_stop_top1(mu, sigma, 0.9) == {"stop": False, "leader": 1, "ambiguous": [2]}
    assert sinf.suggest_next_allocation(mu, sigma, 0.9) == (1, 2)
    assert sinf.should_stop_top1(mu, sigma, 0.96, "zscore")["stop"]
    assert sinf.should_stop_top1(mu, sigma, 0.97, "zscore")["ambiguous"] == [2]
    assert sinf.should_stop_top1([0.5, 0.5], [0.0, 0.0], method="zscore")["ambiguous"] == [1]
    # z of the best against model 0: 2.94, 2: 1.79, 3: 2.77.
    assert sinf.suggest_next_allocation(mu, sigma, method="zscore") == (1, 2)
    assert sinf.should_stop_top1([0.3], [0.1]) == {"stop": True, "leader": 0, "ambiguous": []}


# ``import scorio`` is cheap, and each of its packages comes on its own.


def fresh(code: str) -> str:
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return run.stdout.strip()


METRICS = (
    "from scorio import eval; R = [[0, 1, 1], [1, 1, 1]]\n"
    "eval.bayes_ci(R); eval.mg_pass_at_k_ci(R, 3); eval.geom_at_k_ci(R, 3); eval.maj_at_k(R, 3)"
)
HEAVY = "scipy scorio.rank scorio.study scorio.categorical scorio.sequential"
FITS = (  # L-BFGS's small solves wait for a second thread of SciPy's BLAS
    "from scorio import rank; R = [[1, 0, 1, 1], [0, 1, 0, 1], [1, 0, 0, 0]]\n"
    "rank.bradley_terry_map(R); rank.bradley_terry_davidson_map(R); rank.rao_kupper_map(R)\n"
    "rank.rasch_map(R); rank.rasch_3pl_map(R); rank.pagerank(R)"
)
UNUSED = {
    FITS: "scipy.optimize",
    "import scorio": HEAVY,
    "from scorio import eval": HEAVY,
    METRICS: HEAVY,
    "import adaptive_eval.run.execution": "adaptive_eval.views.page adaptive_eval.views.plots",
    "import adaptive_eval.core.session": "scipy scorio.eval scorio.sequential.comparison "
    "scorio.sequential.planning",
}


@pytest.mark.parametrize(("code", "unused"), UNUSED.items())
def test_nothing_is_loaded_that_is_not_used(code, unused):
    loaded = fresh(f"{code}\nimport sys; print(*sys.modules)").split()
    assert not set(unused.split()) & set(loaded)


def test_a_run_of_two_functions_loads_what_it_uses() -> None:
    code = (
        "import adaptive_eval, sys; from pathlib import Path; from tempfile import TemporaryDirectory\n"
        "rows = [{'id': str(n), 'input': 'x', 'target': str(n)} for n in range(10)]\n"
        "with TemporaryDirectory() as folder:\n"
        "    models = {'a': lambda prompt: '1', 'b': lambda prompt: '2'}\n"
        "    adaptive_eval.evaluate(models, rows, out=Path(folder, 'run'), budget={'trials': 60})\n"
        "own = [name for name in sys.modules if name.partition('.')[0] in ('adaptive_eval', 'scorio')]\n"
        "print(len(own), 'scorio.categorical' in own, 'adaptive_eval.interop.lm_eval_task' in own)"
    )
    own, *unused = fresh(code).split()
    assert int(own) <= 226
    assert unused == ["False", "False"]


@pytest.mark.parametrize("module", ["categorical", "eval", "rank", "sequential", "sequential.parts", "study"])
def test_every_public_name_is_found(module):
    assert module.partition(".")[0] in dir(scorio)
    package = import_module(f"scorio.{module}")
    assert package.__all__
    for name in package.__all__:
        assert getattr(package, name) is not None
    assert set(package.__all__) <= set(dir(package))
