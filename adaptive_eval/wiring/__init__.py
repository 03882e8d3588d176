"""From a config to the parts of a run: lanes, servers that are looked for, scorers at work, rubrics."""
