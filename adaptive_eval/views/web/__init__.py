"""The live page: a run's report, rendered again while the run goes on, and the page of each trial."""
