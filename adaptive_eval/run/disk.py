"""Checks before the first request that the disk has room for a run."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from adaptive_eval.build.assembly import PreparedRun
from adaptive_eval.core.results import Results
from adaptive_eval.core.spec import ModelSpec, SessionSpec
from adaptive_eval.errors import Coded, RunDiskFull
from adaptive_eval.options.request_options import SamplingConfig
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.run_files import (
    RUN_FILE,
    free_bytes,
    in_words,
    require_writable,
    stored_bytes,
    trial_bytes,
)
from adaptive_eval.views.reading import stored_results

RESERVE = 100_000_000
"""Bytes that have to be free: the write-ahead log alone may take most of them."""


@dataclass(frozen=True)
class Need:
    """The most that the rest of a run can take on the disk, if that is bounded."""

    trials: float
    per_trial: float
    basis: str

    @property
    def total(self) -> float:
        """Bytes of all of them."""
        return self.trials * self.per_trial


def room_warning(built: PreparedRun, directory: Path) -> str | None:
    """Return a warning if the rest of a run may not fit on its disk; refuse if almost nothing does."""
    require_writable(directory)
    free = free_bytes(directory)
    if free < RESERVE:
        raise RunDiskFull(
            f"{directory}: only {in_words(free)} are free on its disk; {in_words(RESERVE)} are the least to "
            "begin with. Free some space, put the run elsewhere, or start without this check: --no-disk-check"
        )
    need = forecast(built, directory)
    if need is None or need.total <= free:
        return None
    return Coded(
        "warning/disk",
        f"{directory} may need up to about {in_words(need.total)} more: {need.trials:,.0f} trials of "
        f"about {in_words(need.per_trial)} ({need.basis}). Only {in_words(free)} are free. A full disk "
        "ends the run, and `adaptive-eval run` continues where there is room",
    )


def forecast(built: PreparedRun, directory: Path) -> Need | None:
    """Return the bytes that the rest of the run in `directory` needs; None if nothing bounds it."""
    if not (directory / RUN_FILE).exists():
        return _before_the_start(built)
    with RunReader(directory) as reader:
        stored = reader.count()
        results = stored_results(reader)
        built = replace(built, continued=reader.meta())  # with what it takes from previous runs
    if not stored or results is None:
        return _before_the_start(built)
    if results.stop is not None and results.stop.reason == "resolved":
        return None
    left = min(_left(built.spec, results, stored), default=None)
    if left is None:
        return None
    return Need(left, stored_bytes(directory) / stored, "as stored so far")


def alternatives(sampling: SamplingConfig) -> int:
    """Return how many log-probabilities come with each token, its own included; 0 for none."""
    wanted = sampling.logprobs
    if wanted is None or wanted is False:
        return 0
    kept = wanted
    if wanted is True:
        kept = sampling.top_logprobs or 0
    return 1 + kept


def _before_the_start(built: PreparedRun) -> Need | None:
    """Assume that every answer has the most tokens; a budget of tokens then allows fewer of them."""
    spec = built.spec
    if any(model.max_tokens is None for model in spec.models):
        return None
    trials = min(_trials_within(spec), default=None)
    sizes = [
        trial_bytes(model.max_tokens or 0, alternatives(config.sampling))
        for config, model in zip(built.config.models, spec.models, strict=True)
    ]
    if trials is None:
        return None
    return Need(trials, fmean(sizes), "by max_tokens, compressed")


def _trials_within(spec: SessionSpec) -> Iterator[float]:
    """Yield the trials that each limit allows, with answers of ``max_tokens``."""
    budget = spec.budget
    if budget.trials is not None:
        yield float(budget.trials)
    longest = fmean(model.max_tokens or 0 for model in spec.models)
    for tokens in (budget.tokens, budget.completion_tokens):
        if tokens is not None:
            yield tokens / longest
    dearest = list(map(_price, spec.models))
    if budget.usd is not None and all(dearest):
        yield budget.usd / fmean(dearest)
    if spec.stopping.max_passes is not None:
        yield float(spec.stopping.max_passes * spec.questions * len(spec.models))


def _price(model: ModelSpec) -> float:
    if model.price is None:
        return 0.0
    return model.price.cost(0, model.max_tokens or 0)


def _left(spec: SessionSpec, results: Results, stored: int) -> Iterator[float]:
    """Yield the trials that each limit leaves, at the mean cost of stored ones."""
    for line in results.budgets:
        limit = None
        if line.scope == "run":
            limit = getattr(spec.budget, line.name, None)
        if limit is not None and line.spent > 0.0:
            yield max(0.0, limit / line.spent - 1.0) * stored
    if spec.stopping.max_passes is not None:
        yield max(0.0, float(spec.stopping.max_passes * spec.questions * len(spec.models) - stored))
