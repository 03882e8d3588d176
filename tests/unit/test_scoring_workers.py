"""Processes that score: what happens to an answer when they die, and where user functions are found."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from adaptive_eval.build.assembly import make_importable
from adaptive_eval.errors import ScorerUnavailable, UsageError
from adaptive_eval.scoring.registry import build_scorer
from adaptive_eval.scoring.scorer import Undecided
from adaptive_eval.scoring.workers import in_worker
from adaptive_eval.trial import Completion, Question

pebble = pytest.importorskip("pebble")
PROPERTY = str(Path(__file__).parents[1] / "property")


@pytest.fixture(autouse=True)
def path(monkeypatch):
    """Leave the process's own search path as it was; own_scorer is on it."""
    monkeypatch.setattr(sys, "path", [PROPERTY, *sys.path])


def judged(function, answer="x", limit=60.0, **fields):
    scorer = build_scorer("python", {"function": function, "time_limit": limit})
    question = Question("t", "q", "x", fields=fields)
    assert scorer.check_target(question) is None
    found = scorer.score(Completion(answer, "stop"), question)
    return found.category, found.reason


def kill_all_workers():
    for process in multiprocessing.active_children():
        if process.name == pebble.pool.process.WORKERS_NAME:
            os.kill(process.pid, signal.SIGKILL)
            process.join()


def test_workers_that_are_killed_while_they_wait_cost_no_answer():
    assert in_worker(divmod, 7, 2) == (3, 1)
    kill_all_workers()
    assert [in_worker(divmod, 7, 2) for _ in range(3)] == [(3, 1)] * 3


def test_a_comparison_is_bounded_in_cpu_time_and_not_by_a_busy_machine():
    assert in_worker(time.sleep, 0.6, limit=0.5) is None
    with pytest.raises(Undecided, match=r"took longer than 0\.2 s"):
        in_worker(pow, 9, 9**9, limit=0.2)


def test_a_worker_that_is_killed_over_an_answer_once_costs_no_answer(tmp_path):
    assert judged("own_scorer:killed_once", mark=str(tmp_path / "mark")) == (1, "right")


@pytest.mark.slow
def test_workers_that_cannot_start_leave_the_answer_unscored_until_they_can(tmp_path):
    sys.path.insert(0, str(tmp_path))
    with pytest.raises(ScorerUnavailable, match="do not start"):
        in_worker(divmod, 7, 2, imports="a_module_of_later")
    (tmp_path / "a_module_of_later.py").touch()
    assert in_worker(divmod, 7, 2, imports="a_module_of_later") == (3, 1)


@pytest.mark.slow
def test_where_no_process_can_be_started_a_function_is_refused_before_the_run(tmp_path, monkeypatch):
    sys.path.insert(0, str(tmp_path))  # a home that has no processes yet
    monkeypatch.setattr("adaptive_eval.scoring.workers._begin", divmod)  # which takes no such arguments
    scorer = build_scorer("python", {"function": "own_scorer:plain"})
    with pytest.raises(UsageError, match=r"the scorer python: the processes .* do not start"):
        scorer.check_target(Question("t", "q", "x"))


@pytest.mark.parametrize("depth", [900, *range(970, 1001)])
def test_an_answer_that_is_nested_as_deeply_as_can_be_read_is_judged_and_breaks_nothing(depth):
    """There is a depth that can be read, and no longer be sent."""
    pytest.importorskip("jsonschema")
    scorer = build_scorer("json", {"schema": {"type": "array"}})
    answer = "```json\n" + "[" * depth + "]" * depth + "\n```"
    with ThreadPoolExecutor(1) as thread:  # as in a run: there is more room for calls than here
        found = thread.submit(scorer.score, Completion(answer, "stop"), Question("t", "q", "x")).result()
    assert found.category in (0, 1)
    assert scorer.score(Completion("[1]", "stop"), Question("t", "q", "x")).category == 1


@pytest.mark.slow
def test_a_machine_that_slept_over_an_answer_costs_no_answer(tmp_path, monkeypatch):
    """The clock that pebble times by goes on in sleep."""
    hanging, again = tmp_path / "hanging", tmp_path / "again"

    class Clock:
        slept = 0.0
        sleep = staticmethod(time.sleep)

        def time(self):
            if hanging.exists() and not again.exists():
                self.slept += 3600.0
            return time.time() + self.slept

    monkeypatch.setattr(pebble.pool.process, "time", Clock())
    found = judged("own_scorer:hanging_once", limit=600.0, hanging=str(hanging), again=str(again))
    assert found == (1, "right")


def test_a_function_sees_the_environment_and_the_folder_of_its_caller(tmp_path, monkeypatch):
    in_worker(divmod, 1, 1)  # the server that forks the processes is up
    monkeypatch.setenv("OWN_SCORER_KEY", "set later")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "key.txt").write_text("Paris", encoding="utf-8")
    assert judged("own_scorer:by_environment", "set later") == (1, "right")
    assert judged("own_scorer:by_file", "Paris") == (1, "right")


def test_a_function_that_was_edited_is_the_new_one_to_the_next_run(tmp_path):
    make_importable(tmp_path)
    module = tmp_path / "edited_scorer.py"
    module.write_text("def judge(answer, question):\n    return False\n", encoding="utf-8")
    assert judged("edited_scorer:judge") == (0, "wrong")
    module.write_text("def judge(answer, question):\n    return 1.0\n", encoding="utf-8")
    assert judged("edited_scorer:judge") == (1, "right")


def test_scorers_made_beside_two_configs_each_keep_their_function(tmp_path):
    """As of two runs that are built and then driven, or driven at the same time."""
    scorers = []
    for folder, right in (("one", True), ("two", False)):
        (tmp_path / folder).mkdir()
        code = f"def judge(answer, question):\n    return {right}\n"
        (tmp_path / folder / "scorer_of_one_name.py").write_text(code, encoding="utf-8")
        make_importable(tmp_path / folder)
        scorers.append(build_scorer("python", {"function": "scorer_of_one_name:judge"}))
    question = Question("t", "q", "x")
    found = [scorer.score(Completion("x", "stop"), question).category for scorer in [*scorers, scorers[0]]]
    assert found == [1, 0, 1]


@pytest.mark.slow
def test_a_script_that_does_not_guard_itself_is_not_run_again_by_workers(tmp_path):
    pytest.importorskip("math_verify")
    script = tmp_path / "unguarded.py"
    script.write_text(
        "import adaptive_eval\n"
        "print('begun', flush=True)\n"
        "rows = [{'input': f'{n}?', 'target': r'\\sqrt{8}'} for n in range(5)]\n"
        "models = {'one': lambda _: r'\\boxed{2\\sqrt{2}}', 'two': lambda _: r'\\boxed{\\sqrt{3}}'}\n"
        "found = adaptive_eval.evaluate(models, rows, scorer='math', budget={'trials': 20})\n"
        "print([line.score for line in found.results.models])\n",
        encoding="utf-8",
    )
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["begun", "[1.0, 0.0]"]
