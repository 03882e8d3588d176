"""Loading a config: what a good one gives, and files that are none."""

import copy
import json
from pathlib import Path

import pytest
from config_texts import MINIMAL, problems_of, with_changes

from adaptive_eval.config import load_config, parse_config
from adaptive_eval.config.load_config import config_from_data, json_schema
from adaptive_eval.options.decisions import GoalSpec

FULL = (Path(__file__).parents[1] / "data" / "full_config.yaml").read_text("utf-8")


def test_seconds_may_have_a_unit():
    config = parse_config(
        with_changes({"models.0.stream": True, "models.0.timeout": {"total": "1h30m", "idle": 2.5}})
    )
    assert (config.models[0].timeout.total, config.models[0].timeout.idle) == (5400.0, 2.5)


def test_a_full_config_is_read(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "aime25.jsonl").touch()
    file = tmp_path / "run.yaml"
    file.write_text(FULL)
    config = load_config(file)
    first, second, coin = config.models
    assert first.model_id == "Qwen/Qwen3-4B-Thinking-2507"
    assert first.endpoints == ("http://gpu1:8000/v1",)
    assert first.sampling.as_sent() == {
        "temperature": 0.6,
        "top_p": 0.95,
        "max_tokens": 32768,
        "stop": ["</s>", "\n\n"],
    }
    assert first.sampling.token_limit == 32768
    assert (first.headers["X-Title"].value, first.headers["X-Team-Key"].env) == ("demo", "TEAM_KEY")
    assert (first.in_flight, second.in_flight) == (64, 16)
    assert second.extra_body == {"top_k": 20}
    assert second.model_id == "Qwen/Qwen3-8B"
    assert (coin.model_id, coin.uses_mimic, first.uses_mimic) == ("coin", True, False)
    task = config.task("aime25")
    assert Path(config.dataset_source(task)) == tmp_path / "data" / "aime25.jsonl"
    assert task.scorer.options()["tolerance"] == 0.001
    assert task.rubric.category_weights == (0.0, 1.0)
    assert task.shuffle_seed(config.seed) == 1234
    assert config.goal == GoalSpec()
    assert (config.stopping.rule, config.stopping.confidence) == ("zscore", 0.975)
    budget = config.budget
    assert (budget.trials, budget.tokens, budget.wall_clock) == (20_000, 50_000_000, 7200.0)
    assert config.retry.attempts == 3
    assert (config.source, config.base_dir, config.text) == (str(file), tmp_path, FULL)


def test_a_minimal_config_has_the_documented_defaults():
    config = config_from_data(MINIMAL)
    assert config.seed == 0
    model = config.model("a")
    assert (model.model_id, model.api, model.concurrency, model.timeout.total) == ("a", "chat", "auto", 600.0)
    assert model.sampling.as_sent() == {}
    assert (config.tasks[0].prompt, config.tasks[0].scorer.kind) == ("{input}", "numeric")
    stopping = config.stopping
    assert (stopping.rule, stopping.confidence, stopping.family) == ("anytime", 0.95, "holm")
    assert (stopping.equivalence, stopping.max_passes, stopping.target) == (None, None, "benchmark")
    assert (config.allocation.models, config.allocation.questions) == ("round-robin", "auto")
    assert (config.retry.attempts, config.retry.max_seconds, config.retry.requeue) == (6, 300.0, 1)
    assert config.mimic is None


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
    undocumented = [
        f"{name}.{field}"
        for name, definition in definitions.items()
        for field, about in definition.get("properties", {}).items()
        if "description" not in about and field != "kind"
    ]
    assert undocumented == []
    json.dumps(schema)
