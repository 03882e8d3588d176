"""Loading a config: what a good one gives, its budgets, and files that are none."""

import copy
import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from config_texts import MINIMAL, WIDE, problems_of, with_changes

from adaptive_eval.build.assembly import build
from adaptive_eval.build.model_clients import prompt_bound
from adaptive_eval.build.session_spec import deadlines_of
from adaptive_eval.config import load_config, parse_config
from adaptive_eval.config.load_config import config_from_data, json_schema
from adaptive_eval.core.spec import BudgetSpec
from adaptive_eval.trial import Conversation, Message

# Loading a config: what a good one gives, and files that are none.


DATA = Path(__file__).parents[1] / "data"
FULL = (DATA / "full_config.yaml").read_text("utf-8")
TEXTS = json.loads((DATA / "config_changes.json").read_text("utf-8"))


def said(config, place):
    """Return what a config says at `models.0.name`, as it is in JSON."""
    for part in place.split("."):
        if isinstance(config, (list, tuple)):
            config = config[int(part)]
        else:
            config = config[part] if isinstance(config, Mapping) else getattr(config, part)
    return list(config) if isinstance(config, tuple) else config


def test_a_full_config_is_read(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "aime25.jsonl").touch()
    file = tmp_path / "run.yaml"
    file.write_text(FULL)
    config = load_config(file)
    assert {place: said(config, place) for place in TEXTS["read"]} == TEXTS["read"]
    assert Path(config.dataset_source(config.tasks[0])) == tmp_path / "data" / "aime25.jsonl"
    assert config.tasks[0].shuffle_seed(config.seed) == 1234
    assert (config.source, config.base_dir, config.text) == (str(file), tmp_path, FULL)


def test_a_minimal_config_has_the_documented_defaults():
    config = config_from_data(MINIMAL)
    assert {place: said(config, place) for place in TEXTS["defaults"]} == TEXTS["defaults"]
    assert config.models[0].sampling.as_sent() == {}


@pytest.mark.parametrize(
    ("wanted", "written"),
    [((1, 1), 1), ((1, "auto"), 1), (("auto", "auto"), 1), ((8, "auto"), 8), ((2, 6), 6)],
)
def test_the_most_answers_that_a_request_is_written_to_ask_for(wanted, written):
    data = copy.deepcopy(MINIMAL)
    for model, number in zip(data["models"], wanted, strict=True):
        model["samples_per_request"] = number
    config = config_from_data(data)
    assert config.samples_written == written
    assert config.trial_identity().get("samples_per_request", 1) == written
    assert [config.samples(model, 8) for model in config.models] == [
        8 if number == "auto" else number for number in wanted
    ]


def test_yaml_12_rules_hold():
    text = json.dumps(MINIMAL).replace('"demo"', "no").replace('"a"', "2024-01-01").replace('"b"', "012x")
    config = parse_config(text.replace('{"name": no', '{"seed": 012, "name": no'))
    assert (config.name, config.seed, config.models[0].name) == ("no", 12, "2024-01-01")


def test_aliases_that_multiply_are_refused():
    layers = "\n".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 12))
    merges = "\n".join(f"m{n}: &m{n} {{<<: [{', '.join([f'*m{n - 1}'] * 9)}]}}" for n in range(1, 12))
    for text in (f"l0: &l0 [x, x]\n{layers}\n", f"m0: &m0 {{x: y}}\n{merges}\n"):
        assert "aliases write this out to more than" in problems_of(text)[0].message


def test_merged_mappings_keep_lines_and_give_way_to_explicit_keys():
    problems = problems_of(
        FULL.replace("top_p: 0.95", "top_p: 95").replace("concurrency: auto", "concurrency: x")
    )
    assert [(problem.line, problem.path) for problem in problems] == [
        (11, "models[0].sampling.top_p"),
        (11, "models[1].sampling.top_p"),
        (11, "models[2].sampling.top_p"),
        (18, "models[1].concurrency"),
    ]


def test_an_absolute_path_of_a_dataset_is_kept(tmp_path):
    (tmp_path / "sums.jsonl").touch()
    config = parse_config(with_changes({"tasks.0.dataset": str(tmp_path / "sums.jsonl")}), base_dir="/")
    assert Path(config.dataset_source(config.tasks[0])) == tmp_path / "sums.jsonl"


def test_the_json_schema_describes_the_grammar():
    schema = json_schema()
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) == {"name", "models", "tasks"}
    definitions = schema["$defs"]
    assert {"schema", "weights", "thresholds", "pilot"} < set(definitions["RubricConfig"]["properties"])
    assert set(definitions["PriorConfig"]["properties"]) == {"from", "depth", "transfer"}
    assert {"type": "string"} in definitions["RunBudget"]["properties"]["tokens"]["anyOf"]
    json.dumps(schema)


# The ``budget`` sections of a run, a model and a task: what they take and what they need to be held.


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
    cold = {"models_0_sampling": {"temperature": 0, "max_tokens": 9}}
    assert [model.greedy for model in build(config(tmp_path, **cold)).spec.models] == [True, False, False]
