"""Prompts and settings of one model are compared like models."""

from typing import Any

import pytest
from command_line import in_process, mimic_config, report, trials, write_config

from adaptive_eval.build.assembly import build
from adaptive_eval.config.load_config import config_from_data


def config(**variants: Any) -> dict[str, Any]:
    """Return a config of one mimic and a grid of its variants."""
    made = mimic_config({"prompt": "{input}"}, {"qwen": {"mean": 0.7}}, name="prompts", budget={"trials": 60})
    made["models"].append({"variants": {"of": "qwen", **variants}})
    return made


@pytest.mark.slow
def test_prompts_of_files_are_asked_and_stay_with_the_run(tmp_path):
    (tmp_path / "plain.txt").write_text("{input} Answer plainly.\n", "utf-8")
    (tmp_path / "strict.md").write_text("Be strict. {input}\n", "utf-8")
    path = write_config(tmp_path, config(prompt=["plain.txt", "strict.md"], system="You are brief."))
    assert in_process("run", path, "--out", "run", cwd=tmp_path).code == 3
    names = {line["model"] for line in report(tmp_path / "run")["models"]}
    assert names == {"qwen", "qwen:plain:You-are-brief", "qwen:strict:You-are-brief"}
    shown = in_process("samples", "run", "--model", "qwen:strict:You-are-brief", "--limit", "1", cwd=tmp_path)
    assert "You are brief." in shown.out
    assert "Be strict. " in shown.out
    plain = in_process("samples", "run", "--model", "qwen", "--limit", "1", "--full", cwd=tmp_path)
    assert "brief" not in plain.out
    before = trials(tmp_path / "run")
    (tmp_path / "strict.md").unlink()
    assert in_process("run", "run", "-o", "budget.trials=90", cwd=tmp_path).code == 3, "the run has the text"
    assert trials(tmp_path / "run")[: len(before)] == before
    changed = in_process("run", "run", "-o", "models[1].system=Be long.", cwd=tmp_path)
    assert (changed.code, "run/mismatch" in changed.err) == (2, True)


def test_a_trial_is_reserved_with_the_longest_prompt_that_a_variant_sends():
    bounds = [
        build(config_from_data(config(system=words))).spec.tasks[0].prompt_bounds
        for words in (["long " * 900, "Be brief."], ["Be brief."])
    ]
    assert min(bounds[0]) > 900 > max(bounds[1])


def test_a_grid_has_every_combination():
    made = config_from_data(config(sampling={"temperature": [0, 0.7]}, reasoning_effort=["low", "high"]))
    found = {
        model.name: (model.sampling.temperature, model.sampling.reasoning_effort) for model in made.models
    }
    assert found == {
        "qwen": (0.7, None),
        "qwen:temperature-0:reasoning_effort-low": (0, "low"),
        "qwen:temperature-0:reasoning_effort-high": (0, "high"),
        "qwen:temperature-0.7:reasoning_effort-low": (0.7, "low"),
        "qwen:temperature-0.7:reasoning_effort-high": (0.7, "high"),
    }
    assert {model.model_id for model in made.models} == {"qwen"}


def test_a_prompt_names_fields_of_the_task(tmp_path):
    path = write_config(tmp_path, config(prompt="{input} {hint}"))
    done = in_process("validate", path, "--offline", cwd=tmp_path, code=2)
    assert "hint" in done.err
