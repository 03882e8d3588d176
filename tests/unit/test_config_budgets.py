"""The ``budget`` sections of a run, a model and a task: what they take and what they need to be held."""

import pytest
from config_texts import WIDE, with_changes

from adaptive_eval.build.assembly import build
from adaptive_eval.build.model_clients import prompt_bound
from adaptive_eval.build.session_spec import deadlines_of
from adaptive_eval.config import parse_config
from adaptive_eval.core.spec import BudgetSpec
from adaptive_eval.trial import Conversation, Message


def config(folder, **sections):
    """Return a config of three models and two tasks; `model` and `task` change a budget of one."""
    (folder / "t.jsonl").write_text('{"id": "1", "input": "1+1", "target": "2"}\n', "utf-8")
    places = {"model": "models.0.budget", "task": "tasks.1.budget"}
    changes = {places.get(name, name).replace("_0_", ".0."): value for name, value in sections.items()}
    return parse_config(with_changes(changes, WIDE), base_dir=folder)


def test_every_budget_reaches_the_session(tmp_path):
    built = build(
        config(
            tmp_path,
            budget={"trials": "2k", "prompt_tokens": "1M", "wall_clock": "2h", "at_deadline": "cancel"},
            model={"completion_tokens": 500, "usd": 2.5, "wall_clock": "90s"},
            task={"tokens": "30k", "wall_clock": "1h"},
        )
    )
    spec, times = built.spec, deadlines_of(built.config)
    assert (times.models, times.tasks) == ({"a": 90.0}, {"t": 3600.0})
    none = BudgetSpec()
    assert spec.budget.limits() == {"trials": 2000, "prompt_tokens": 1_000_000, "wall_clock": 7200.0}
    own = BudgetSpec(completion_tokens=500, usd=2.5, wall_clock=90.0)
    assert [model.budget for model in spec.models] == [own, none, none]
    assert [task.budget for task in spec.tasks] == [none, BudgetSpec(tokens=30_000, wall_clock=3600.0)]


@pytest.mark.parametrize(
    ("sections", "calls", "prompt", "varies"),
    [
        ({"tasks_0_answers": {"k": 3}}, 3, None, False),
        ({"tasks_0_solver": {"function": "python:f.py:f", "calls": 4, "prompt_tokens": 500}}, 4, 500, True),
    ],
)
def test_a_budget_reserves_all_calls_of_a_trial(tmp_path, sections, calls, prompt, varies):
    (tmp_path / "f.py").write_text("async def f(model, messages): ...")
    several, plain = build(config(tmp_path, budget={"tokens": "1M"}, **sections)).spec.tasks
    assert (several.calls, plain.calls) == (calls, 1)
    assert several.prompt_bounds == (prompt or calls * plain.prompt_bounds[0],)
    assert several.prompt_varies == varies


def test_calls_of_tools_and_their_definitions_count_as_a_prompt():
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "9" * 500}}
    asked = [Message("user", "x"), Message.of({"role": "assistant", "content": None, "tool_calls": [call]})]
    plain = prompt_bound(asked[:1])
    assert prompt_bound(asked) >= plain + 500
    tool = {"type": "function", "function": {"name": "f", "description": "d" * 700}}
    assert prompt_bound(Conversation(asked[:1], {"tools": [tool]})) >= plain + 700
    assert prompt_bound([Message("user", "€" * 100)]) >= 300


@pytest.mark.parametrize(
    ("goal", "stopping", "passes"),
    [("ranking", {}, 80), ("budget", {}, None), ("budget", {"max_passes": 9}, 9)],
)
def test_a_goal_that_spends_a_budget_ends_with_the_budget(tmp_path, goal, stopping, passes):
    built = build(config(tmp_path, goal=goal, stopping=stopping, budget={"trials": 500}))
    assert built.spec.stopping.max_passes == passes
