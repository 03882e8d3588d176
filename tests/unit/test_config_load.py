"""Configs: what a good one gives, what may be written in and beside it, and what of it a run may change."""

import copy
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from config_texts import MINIMAL, SECRET, WIDE, problems_of, with_changes
from hypothesis import given
from hypothesis import strategies as st

from adaptive_eval.build.assembly import build
from adaptive_eval.build.changed_settings import deciding_settings
from adaptive_eval.build.model_clients import prompt_bound
from adaptive_eval.build.server_discovery import read_addresses
from adaptive_eval.build.session_spec import as_configured, deadlines_of
from adaptive_eval.config import load_config, parse_config
from adaptive_eval.config.config_schema import json_schema
from adaptive_eval.config.document import read_document
from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.config.run_config import difference
from adaptive_eval.core.spec import BudgetSpec
from adaptive_eval.options.section import check_url, parse_count, parse_seconds
from adaptive_eval.trial import Conversation, Message
from scorio.categorical import get_schema, schema_names

# Loading a config: what a good one gives, and files that are none.


ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
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
    expected = [8 if number == "auto" else number for number in wanted]
    assert [config.samples(model, 8) for model in config.models] == expected


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
    wrong = FULL.replace("top_p: 0.95", "top_p: 95").replace("concurrency: auto", "concurrency: x")
    expected = [(11, f"models[{place}].sampling.top_p") for place in range(3)]
    expected.append((18, "models[1].concurrency"))
    assert [(problem.line, problem.path) for problem in problems_of(wrong)] == expected


def test_the_json_schema_describes_the_grammar():
    schema = json_schema()
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) == {"name", "models", "tasks"}
    definitions = schema["$defs"]
    assert {"schema", "weights", "thresholds", "thresholds_from"} < set(
        definitions["RubricConfig"]["properties"]
    )
    assert set(definitions["PriorConfig"]["properties"]) == {"from", "depth"}
    json.dumps(schema)


SCHEMA = json_schema()
CONFIGS = [*(ROOT / "configs").glob("*.yaml"), *(ROOT / "docs" / "examples").glob("*.yaml")]


def mistakes_by_the_schema(data, definition=None):
    """Return the keywords of the JSON schema that a config, or a section, fails."""
    part = SCHEMA if definition is None else {"$ref": f"#/$defs/{definition}", "$defs": SCHEMA["$defs"]}
    errors = jsonschema.Draft202012Validator(part).iter_errors(json.loads(json.dumps(data)))
    return {keyword for error in errors for keyword in error.schema_path}


@pytest.mark.parametrize("text", [FULL, *(path.read_text("utf-8") for path in CONFIGS)])
def test_the_json_schema_takes_what_is_read(text):
    assert not mistakes_by_the_schema(read_document(text).data)


@pytest.mark.parametrize("name", [name for name in SCHEMA["$defs"] if not name.endswith("Keys")])
def test_the_json_schema_refuses_an_unknown_key_in_every_section(name):
    """Keys that sections share stand in definitions of their own, which take further keys."""
    assert mistakes_by_the_schema({"no_such_key": 1}, name) & {"propertyNames", "additionalProperties"}
    assert not mistakes_by_the_schema({}, name) & {"propertyNames", "additionalProperties"}


@pytest.mark.parametrize("name", ["BudgetSpec", "RunBudget"])
def test_the_json_schema_judges_the_values_of_shared_keys(name):
    assert not mistakes_by_the_schema({"trials": "20k", "usd": 5}, name)
    assert "trials" in mistakes_by_the_schema({"trials": [20]}, name)


# The ``budget`` sections of a run, a model and a task: what they take and what they need to be held.


def config(folder, **sections):
    """Return a config of three models and two tasks; `model` and `task` change a budget of one."""
    (folder / "t.jsonl").write_text('{"id": "1", "input": "1+1", "target": "2"}\n', "utf-8")
    places = {"model": "models.0.budget", "task": "tasks.1.budget"}
    changes = {places.get(name, name).replace("_0_", ".0."): value for name, value in sections.items()}
    return parse_config(with_changes(changes, WIDE), base_dir=folder)


def test_every_budget_reaches_the_session(tmp_path):
    of_run = {"trials": "2k", "prompt_tokens": "1M", "wall_clock": "2h", "at_deadline": "cancel"}
    of_model = {"completion_tokens": 500, "usd": 2.5, "wall_clock": "90s"}
    of_task = {"tokens": "30k", "wall_clock": "1h"}
    built = build(config(tmp_path, budget=of_run, model=of_model, task=of_task))
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


@pytest.mark.parametrize("word", ["auto", "schedule", "rounds"])
@pytest.mark.parametrize("stored", ["schedule", "rounds"])
def test_a_stored_session_has_what_its_config_says_and_the_order_that_auto_has_meant(tmp_path, word, stored):
    written = config(
        tmp_path, allocation={"questions": word}, budget={"trials": 50}, task={"trials": 30},
        tasks_0_answers={"k": 3},
    )  # fmt: skip
    spec = build(config(tmp_path)).spec
    made = replace(spec, allocation=replace(spec.allocation, questions=stored))
    again = as_configured(written, made)
    assert again.allocation.questions == (stored if word == "auto" else word)
    assert (again.budget.trials, again.tasks[1].budget.trials) == (50, 30)
    assert [task.calls for task in again.tasks] == [3, 1]
    assert [task.questions for task in again.tasks] == [task.questions for task in spec.tasks]


def test_calls_of_tools_and_their_definitions_count_as_a_prompt():
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "9" * 500}}
    asked = [
        Message("user", "x"),
        Message.from_mapping({"role": "assistant", "content": None, "tool_calls": [call]}),
    ]
    plain = prompt_bound(asked[:1])
    assert prompt_bound(asked) >= plain + 500
    tool = {"type": "function", "function": {"name": "f", "description": "d" * 700}}
    assert prompt_bound(Conversation(asked[:1], {"tools": [tool]})) >= plain + 700
    assert prompt_bound([Message("user", "€" * 100)]) == 64 + 300 + 64
    assert prompt_bound([Message("user", "a")] * 3) == 64 + 3 * (1 + 64)


@pytest.mark.parametrize(
    ("goal", "stopping", "passes"),
    [("ranking", {}, 80), ("budget", {}, None), ("budget", {"max_passes": 9}, 9)],
)
def test_a_goal_that_spends_a_budget_ends_with_the_budget(tmp_path, goal, stopping, passes):
    built = build(config(tmp_path, goal=goal, stopping=stopping, budget={"trials": 500}))
    assert built.spec.stopping.max_passes == passes
    cold = {"models_0_sampling": {"temperature": 0, "max_tokens": 9}}
    assert [model.greedy for model in build(config(tmp_path, **cold)).spec.models] == [True, False, False]


# The wider grammar: what may be written in each place.


READ = json.loads((DATA / "read_texts.json").read_text("utf-8"))


@pytest.mark.parametrize("changes", TEXTS["written"])
def test_what_may_be_written(changes):
    parse_config(with_changes(changes, WIDE))


def test_models_that_find_the_same_servers_share_their_limits():
    """A server has one limit however it is found; each model has its `patience`."""
    found = {"discover": "file", "path": "servers.txt", "each": {"concurrency": 4}}
    changes = {"models.0.endpoints": {**found, "patience": 5}, "models.1.endpoints": found}
    one, two, _ = (model.discovery for model in parse_config(with_changes(changes, WIDE)).models)
    assert one.source == two.source
    assert one.patience != two.patience


# Counts and durations as people write them.


@pytest.mark.parametrize(("text", "value"), READ["counts"])
def test_counts(text, value):
    assert parse_count(text) == value


@pytest.mark.parametrize(("text", "seconds"), READ["durations"])
def test_durations(text, seconds):
    assert parse_seconds(text) == seconds


# The rubric section: every schema can be written.


OWN = {
    "name": "mine",
    "categories": [{"name": "bad", "when": "wrong"}, {"name": "good", "when": "otherwise"}],
    "weights": [0, 1],
}
VERIFIED = {name for name in schema_names() if {"verifier_a", "verifier_b"} & get_schema(name).signals}


def task_with(rubric):
    return parse_config(with_changes({"tasks.0.rubric": rubric}, WIDE)).tasks[0]


@pytest.mark.parametrize("name", sorted(set(schema_names()) - VERIFIED))
def test_every_schema_that_needs_no_verifier_can_be_named(name):
    rubric = {"schema": name, "thresholds_from": "runs/earlier"} if get_schema(name).threshold_rules else name
    section = task_with(rubric).rubric
    assert section.label == name
    assert len(section.category_weights) == len(get_schema(name).categories)


def test_an_own_schema_is_read_and_decides_the_weights():
    section = task_with({"schema": OWN}).rubric
    assert (section.label, section.category_weights) == ("mine", (0.0, 1.0))


def test_what_categories_are_is_part_of_the_scoring_but_not_what_they_are_worth():
    task = task_with({"schema": "format-aware", "weights": [0, 0, 1, 1, 2]})
    assert task.scoring_identity() == task_with("format-aware").scoring_identity()
    assert task.scoring_identity() != task_with("strict-compliance").scoring_identity()


# What is taken for no key, and that none is stored; ``test_config_mistakes`` has those that are refused.


def test_the_stored_text_of_a_good_config_has_no_key(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", f"sk-{SECRET}")
    (tmp_path / "t.jsonl").touch()
    file = tmp_path / "c.yaml"
    text = with_changes({"models.0.api_key_env": "MY_KEY"}, WIDE)
    file.write_text(f"# mask-detection-benchmark, see https://example.org/?q=token\n{text}")
    loaded = load_config(file, ["seed=5"])
    assert SECRET not in loaded.text + repr(loaded) + loaded.hash() + str(loaded.trial_identity())


# Settings given beside the file, and the text that is stored with them.


TEXT = (DATA / "overridden.yaml").read_text("utf-8")


@pytest.mark.parametrize(("override", "place", "value"), TEXTS["overrides"])
def test_an_override_changes_one_setting_and_goes_into_the_stored_text(override, place, value):
    config = parse_config(TEXT, overrides=[override])
    again = parse_config(config.text)
    assert again.hash() == config.hash()
    assert said(again, place) == said(config, place) == value


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ([], (0, None, [0.6, 0.6])),
        (["seed=1", "budget.trials=5", "seed=2", "budget.trials=6"], (2, 6, [0.6, 0.6])),
        (["models[b].sampling.temperature=1"], (0, None, [0.6, 1.0])),  # of a section that models share
    ],
)
def test_later_overrides_win_and_change_what_they_name_only(overrides, expected):
    config = parse_config(TEXT, overrides=overrides)
    again = parse_config(config.text)
    for one in (config, again):
        found = one.seed, one.budget.trials, [model.sampling.temperature for model in one.models]
        assert found == expected
    assert again.hash() == config.hash()
    assert overrides or config.text == TEXT


# What a trial of a run is, what may change between two sittings, and how a difference is told.


BASE = TEXTS["base"]


def changed(place, value):
    return parse_config(with_changes({place: value}, BASE))


def told(config):
    return difference(config_from_data(BASE).trial_identity(), config.trial_identity())


@pytest.mark.parametrize(("place", "value", "words"), TEXTS["identity"])
def test_only_a_change_of_what_a_trial_is_is_told(place, value, words):
    assert told(changed(place, value)) == words


@pytest.mark.parametrize(
    ("place", "value", "setting"),
    [
        ("on", {"discarded": ["killed"]}, "on.discarded"),
        ("on", {"copies": "independent"}, "on.copies"),
        ("stopping", {"confidence": 0.9}, "stopping.confidence"),
        ("goal", {"kind": "top-k", "k": 1}, "goal"),
        ("models.0.deterministic", True, "models[a].deterministic"),
        ("tasks.0.weight", 3.0, "tasks[t].weight"),
    ],
)
def test_a_change_of_what_verdicts_depend_on_is_told(place, value, setting):
    before, now = deciding_settings(config_from_data(BASE)), deciding_settings(changed(place, value))
    assert [name for name in now if before[name] != now[name]] == [setting]


def test_models_and_tasks_that_come_or_go_are_told():
    more = copy.deepcopy(BASE)
    more["models"].append({"name": "c", "endpoints": ["http://c/v1"]})
    more["tasks"].append({"name": "u", "dataset": "u.jsonl", "scorer": "exact"})
    before = config_from_data(BASE).trial_identity()
    now = config_from_data(more).trial_identity()
    assert difference(before, now) == ["task 'u' is new", "model 'c' is new"]
    assert difference(now, before) == ["task 'u' is gone", "model 'c' is gone"]
    renamed = {**BASE, "models": [{**BASE["models"][0], "name": "z"}, BASE["models"][1]]}
    other = config_from_data(renamed).trial_identity()
    assert difference(before, other) == ["model 'a' is gone", "model 'z' is new"]


def test_the_dataset_is_part_of_it_once_it_is_loaded():
    before, now = config_from_data(BASE).trial_identity(), config_from_data(BASE).trial_identity()
    before["tasks"]["t"]["dataset"], now["tasks"]["t"]["dataset"] = "abc", "def"
    changed = ["task 't': the questions or right answers of its dataset have changed"]
    assert difference(before, now) == changed
    now["tasks"]["t"]["system"] = "Be brief."
    assert difference(before, now) == ["task 't': system was 'Think.' and is now 'Be brief.'"]


def test_the_hash_is_over_every_setting_and_nothing_else():
    base = config_from_data(BASE).hash()
    assert config_from_data(dict(reversed(BASE.items()))).hash() == base
    assert changed("goal", {"kind": "ranking"}).hash() == base
    assert changed("tasks.0.scorer", {"kind": "numeric", "tolerance": 0.0}).hash() == base
    others = [
        changed("name", "x"),
        changed("models.0.concurrency", 3),
        changed("stopping", {"equivalence": 0.1}),
        changed("mimic.latency", {"median": 1}),
    ]
    assert len({base, *(config.hash() for config in others)}) == 5


# Addresses as people and jobs write them.


@pytest.mark.parametrize(("line", "url"), READ["servers"])
def test_what_a_line_may_hold(line, url):
    assert read_addresses(line) == (url,)


@given(st.text())
def test_any_text_is_a_list_of_addresses_or_is_refused(text):
    try:
        found = read_addresses(text)
    except ValueError:
        return
    assert len(set(found)) == len(found)
    assert all(check_url(url) == url for url in found)
