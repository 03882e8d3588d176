"""Loading a config: what a good one gives, and files that are none."""

import copy
import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from config_texts import MINIMAL, problems_of, with_changes

from adaptive_eval.config import load_config, parse_config
from adaptive_eval.config.load_config import config_from_data, json_schema

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


def test_seconds_may_have_a_unit():
    timeout = {"models.0.stream": True, "models.0.timeout": {"total": "1h30m", "idle": 2.5}}
    assert parse_config(with_changes(timeout)).models[0].timeout.total == 5400.0


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
    undocumented = [
        f"{name}.{field}"
        for name, definition in definitions.items()
        for field, about in definition.get("properties", {}).items()
        if "description" not in about and field != "kind"
    ]
    assert undocumented == []
    json.dumps(schema)
