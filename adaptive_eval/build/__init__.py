"""From a config to the parts of a run: models, scorers, rubrics, previous runs."""
