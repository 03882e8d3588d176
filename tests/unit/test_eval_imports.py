"""``import scorio`` is cheap, and each of its packages comes on its own."""

import subprocess
import sys
from importlib import import_module

import pytest

import scorio


def fresh(code: str) -> str:
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return run.stdout.strip()


@pytest.mark.parametrize(
    "statement", ["import scorio", "from scorio import eval", "import scorio; scorio.eval.bayes([[0, 1]])"]
)
def test_nothing_else_is_loaded(statement):
    loaded = fresh(f"{statement}\nimport sys; print(*sys.modules)").split()
    assert not {"scipy", "scorio.rank", "scorio.study", "scorio.categorical", "scorio.sequential"} & set(
        loaded
    )


def test_a_run_loads_no_page_of_its_report():
    loaded = fresh("import adaptive_eval.run.execution\nimport sys; print(*sys.modules)").split()
    assert not {"adaptive_eval.views.page", "adaptive_eval.views.plots"} & set(loaded)


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
    assert int(own) <= 190
    assert unused == ["False", "False"]


def test_a_session_starts_without_scipy_the_metrics_and_the_faces_for_arrays():
    loaded = fresh("import adaptive_eval.core.session, sys; print(*sys.modules)").split()
    unused = {"scipy", "scorio.eval", "scorio.sequential.comparison", "scorio.sequential.planning"}
    assert not unused & set(loaded)


def test_no_metric_needs_scipy():
    code = (
        "from scorio import eval; R = [[0, 1, 1], [1, 1, 1]]\n"
        "eval.bayes_ci(R); eval.mg_pass_at_k_ci(R, 3); eval.geom_at_k_ci(R, 3); eval.maj_at_k(R, 3)\n"
        "import sys; print('scipy' in sys.modules)"
    )
    assert fresh(code) == "False"


def test_packages_are_found_by_name():
    assert scorio.eval.__name__ == "scorio.eval"
    assert {"categorical", "eval", "rank", "sequential", "study"} <= set(dir(scorio))
    with pytest.raises(AttributeError, match="no attribute 'metrics'"):
        _ = scorio.metrics


@pytest.mark.parametrize("module", ["categorical", "eval", "rank", "sequential", "sequential.parts", "study"])
def test_every_name_of_a_stub_is_found(module):
    package = import_module(f"scorio.{module}")
    assert package.__all__
    for name in package.__all__:
        assert getattr(package, name) is not None
    assert set(package.__all__) <= set(dir(package))
