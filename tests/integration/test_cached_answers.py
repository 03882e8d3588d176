"""A run against a server behind a cache says so: in its plain lines, its stored results and its reports."""

import json

from mimic_runs import command, mimic_config, run_config


def copies_of(model):
    """Return what a config needs for a mimic of these models, of which one repeats its answers."""
    models = {name: {"mean": 0.6, "cached": name == model} for name in ("sage", "novice")}
    return {"seed": 2, "tokens": {"completion_median": 150, "completion_sigma": 0.2}, "models": models}


def test_copies_are_told_in_every_view_of_the_cached_model_alone_and_counted_on_after_a_resume(tmp_path):
    config = mimic_config({"limit": 20}, mimic=copies_of("novice"), goal="budget", budget={"trials": 160})
    run, done = run_config(tmp_path, config, "--display", "plain")
    assert done.code == 3, done
    warnings = json.loads((run / "report.json").read_text())["warnings"]
    (before,) = (text for text in warnings if "asked again" in text)
    assert before.startswith("novice: ")
    (line,) = (line for line in done.out.splitlines() if "Z warning novice: " in line)
    assert "answers to a question asked again are copies" in line
    for name in ("report.md", "report.html"):
        assert "asked again are copies" in (run / name).read_text()
    command("run", run, "--display", "none", "-o", "budget.trials=163", code=3)
    warnings = json.loads((run / "report.json").read_text())["warnings"]
    (after,) = (text for text in warnings if "asked again" in text)
    pairs = [int(text.split(" of ")[1].split(" ")[0].replace(",", "")) for text in (before, after)]
    assert pairs[1] >= pairs[0] > 40
