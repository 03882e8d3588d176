"""Sources that say which servers are there: files and commands, read repeatedly during a run."""
