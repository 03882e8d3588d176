"""Assumptions of ``adaptive-eval plan``: scores, tokens, prices, times, sizes, each from its best source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from ipaddress import ip_address
from math import exp
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from adaptive_eval.build.assembly import Built
from adaptive_eval.cli.options import named_mean
from adaptive_eval.config.model import ModelConfig
from adaptive_eval.core.spec import ModelSpec
from adaptive_eval.interop.recorded_files import copies_words, read_recorded
from adaptive_eval.interop.run_tables import run_columns
from adaptive_eval.mimic.mimic_spec import ModelOptions
from adaptive_eval.options.section import IN_INSPECT
from adaptive_eval.run.disk import alternatives
from adaptive_eval.simulate.assumptions import means_for, sole_kind
from adaptive_eval.simulate.drivers import Latency
from adaptive_eval.simulate.plan_forecast import Pace, Workload
from adaptive_eval.simulate.recorded import RecordedOutcomes
from adaptive_eval.store.cells import OutcomeColumns
from adaptive_eval.store.run_files import in_words, stored_bytes, trial_bytes
from adaptive_eval.trial import estimated_tokens
from adaptive_eval.views.sentences import repeat_notices

GAPS = (1.0, 1.5, 2.0, 3.0, 5.0, 0.5, 0.0)
"""Gaps that are compared, in margins: the margin first, none last."""

BATCH_SIZE = 500
"""Requests of a batch where the config has none."""

UNIT_MARGIN = 0.05
"""The margin that gaps are counted in where the config has none."""


@dataclass(frozen=True)
class Assumptions:
    """The assumptions about a run."""

    means: Mapping[str, float]
    recorded: RecordedOutcomes | None
    concentration: float
    correlation: float
    workload: tuple[Workload, ...]
    sources: tuple[str, ...]
    gaps: Mapping[float, tuple[float, ...]]  # means by what they are apart
    pace: Pace | None  # where all servers are the user's own, and the time of an answer is known


@dataclass(frozen=True)
class MeanUsage:
    """Mean tokens and time of a trial of a model; None where unknown."""

    prompt: float | None = None
    completion: float | None = None
    latency: float | None = None

    def or_else(self, other: MeanUsage) -> MeanUsage:
        """Fill unknown figures from another source."""
        own = {name: value for name, value in asdict(self).items() if value is not None}
        return replace(other, **own)


def assume(built: Built, options: Mapping[str, Any]) -> Assumptions:
    """Gather the assumptions: what is stated, else a previous run, else the config's mimic server."""
    config, names = built.config, [model.name for model in built.spec.models]
    mimic, previous = config.mimic, options["previous"]
    given = MeanUsage(options["prompt_tokens"], options["answer_tokens"], options["latency"])
    coins = {
        model.name: mimic.models[model.model_id]
        for model in config.models
        if model.uses_mimic and mimic is not None
    }
    means = dict(named_mean("--assume", text) for text in options["stated"])
    recorded, columns = _previous(previous)
    measured_bytes = None if columns is None or previous is None else stored_bytes(previous) / len(columns)
    lengths, place = columns, str(previous)
    if columns is None and config.prior is not None:
        place = config.prior.from_
        folder = config.base_dir / Path(place).expanduser()
        lengths = run_columns(folder) if folder.is_dir() else None  # a file has no lengths
    sources = [f"score of {', '.join(means)}: as stated"] if means else []
    if recorded is not None:
        scored = [name for name in names if name in recorded.models and name not in means]
        sources += [f"score of {', '.join(scored)}: from {previous}"] if scored else []
        sources += [copies_words(recorded.copies)] if recorded.copies else []
    else:
        drawn = {name: _mean(coin) for name, coin in coins.items() if name not in means}
        sources += [f"score of {', '.join(drawn)}: the config's mimic"] if drawn else []
        means = {**drawn, **means}
    gaps: dict[float, tuple[float, ...]] = {}
    if not means and recorded is None:
        margin, kind = _unit_margin(built), sole_kind(built.spec)
        means = dict(zip(names, means_for(built.spec, 2.0 * margin), strict=True))
        if kind == "width":
            taken = "0.5 is assumed, where an interval is widest"
        else:
            shares = [round(share * margin, 6) for share in GAPS]
            gaps = {gap: means_for(built.spec, gap) for gap in shares}
            who = {
                "threshold": "all are taken to be {} from the threshold",
                "baseline": "all are taken to be {} from the baseline",
            }.get(kind, "neighbours are taken to be {} apart around 0.5")
            taken = who.format(f"{2.0 * margin:g}") + ", and other gaps are compared first"
        sources.append(f"score of all models: unknown, so {taken}; state your own with --assume NAME=MEAN")
    workload, seconds = [], []
    for model, spec in zip(config.models, built.spec.models, strict=True):
        usage = given.or_else(_measured(lengths, model.name)).or_else(_of_mimic(built, coins.get(model.name)))
        usage = usage.or_else(MeanUsage(prompt=_prompt_estimate(built)))
        longest = usage.or_else(MeanUsage(completion=_token_limit(spec)))
        work = _workload(model, spec, longest, measured_bytes)
        empty = _usd(spec, usage.or_else(MeanUsage(completion=0.0)))
        workload.append(replace(work, least_usd=empty))
        seconds.append(usage.latency)
    sources += _about_tokens(built, given, lengths, place, coins)
    if recorded is None and any(task.numbers for task in built.spec.tasks):
        sources.append(
            "spread of scores: unknown, so each is taken to be the lowest or highest of its range; scores "
            "between them take fewer trials"
        )
    sources += repeat_notices(built.spec)
    if built.spec.by_cost:
        sources.append("costs of single questions: unknown before the run, so planned as with spend: trials")
    sources += _about_disk(workload, measured_bytes, previous)
    spread, correlation = options["spread"], options["correlation"]
    if spread is None:
        spread = next((coin.spread for coin in coins.values()), 8.0)
    if correlation is None:
        correlation = mimic.correlation if mimic is not None and coins else 0.0
    pace = _pace(built, seconds)
    return Assumptions(means, recorded, spread, correlation, tuple(workload), tuple(sources), gaps, pace)


def _pace(built: Built, seconds: Sequence[float | None]) -> Pace | None:
    """Return how fast answers come where sparing time is an offer: all servers are the user's own."""
    config, known = built.config, [mean for mean in seconds if mean]
    own = all(map(_own, config.models))
    if not own or len(known) < len(seconds) or config.allocation.models != "round-robin":
        return None
    median = exp(-0.5 * Latency.sigma**2)
    latency = Latency(tuple(mean * median for mean in known))
    return Pace(sum(model.in_flight for model in config.models), latency)


def _own(model: ModelConfig) -> bool:
    """Return whether asking the model costs nothing but time: a price of 0, or servers of this network."""
    price = model.price
    free = price is not None and not price.cost(1, 1)
    hosts = [urlsplit(address).hostname for address in model.addresses]
    return free or model.uses_mimic or all(host is not None and _is_near(host) for host in hosts)


def _is_near(host: str) -> bool:
    try:
        return ip_address(host).is_private
    except ValueError:
        return "." not in host  # localhost, or a machine of this network


def _unit_margin(built: Built) -> float:
    """Return the margin, or its substitute, as a share of the range of scores."""
    equivalence = built.spec.stopping.equivalence
    return UNIT_MARGIN if equivalence is None else equivalence / built.spec.scale[1]


def _previous(path: Path | None) -> tuple[RecordedOutcomes | None, OutcomeColumns | None]:
    if path is None:
        return None, None
    return read_recorded([path]), run_columns(path) if path.is_dir() else None


def _mean(coin: ModelOptions) -> float:
    if coin.accuracies is not None:
        return float(np.mean(coin.accuracies))
    assert coin.mean is not None  # the config's checks ask for one of the two
    return coin.mean


def _measured(columns: OutcomeColumns | None, name: str) -> MeanUsage:
    """Return the means of a previous run."""
    if columns is None or name not in columns.models:
        return MeanUsage()
    here = (columns.model == columns.models.index(name)) & (columns.category >= 0)
    if not here.any():
        return MeanUsage()
    return MeanUsage(
        float(columns.prompt_tokens[here].mean()),
        float(columns.completion_tokens[here].mean()),
        float(columns.latency[here].mean()),
    )


def _of_mimic(built: Built, coin: ModelOptions | None) -> MeanUsage:
    mimic = built.config.mimic
    if coin is None or mimic is None:
        return MeanUsage()
    latency, tokens = coin.latency or mimic.latency, coin.tokens or mimic.tokens
    right = _mean(coin)
    factor = 1.0 + right * (latency.correct_factor - 1.0)
    return MeanUsage(
        completion=tokens.completion_median * exp(0.5 * tokens.completion_sigma**2),
        latency=latency.median * exp(0.5 * latency.sigma**2) * factor,
    )


def _prompt_estimate(built: Built) -> float:
    """Return the mean tokens of a prompt by its length."""
    asked = (task.render(question) for task in built.tasks for question in task.questions)
    return float(np.mean([estimated_tokens(messages) for messages in asked]))


def _token_limit(spec: ModelSpec) -> float | None:
    return None if spec.max_tokens is None else float(spec.max_tokens)


def _workload(
    model: ModelConfig, spec: ModelSpec, usage: MeanUsage, measured_bytes: float | None
) -> Workload:
    usd = _usd(spec, usage)
    latency = usage.latency if model.batch is None else None  # which says nothing about a batch
    seconds = None if latency is None else latency / model.in_flight
    if seconds is not None and model.rate_limit is not None:
        if model.rate_limit.requests_per_minute is not None:
            seconds = max(seconds, 60.0 / model.rate_limit.requests_per_minute)
        tokens = (usage.prompt or 0.0) + (usage.completion or 0.0)
        if model.rate_limit.tokens_per_minute is not None:
            seconds = max(seconds, 60.0 * tokens / model.rate_limit.tokens_per_minute)
    size = measured_bytes
    if size is None and usage.completion is not None:
        size = trial_bytes(usage.completion, alternatives(model.sampling))
    live_usd = usd
    if usd is not None and model.batch is not None:
        live_usd = 2 * usd  # the price is a batch's
    return Workload(usage.prompt, usage.completion, usd, seconds, size, live_usd, _batch_size(model))


def _usd(spec: ModelSpec, usage: MeanUsage) -> float | None:
    if spec.price is None or usage.prompt is None or usage.completion is None:
        return None
    return spec.price.cost(1, 0) * usage.prompt + spec.price.cost(0, 1) * usage.completion


def _batch_size(model: ModelConfig) -> int | None:
    """Return how many requests of the model wait in batches; None where it is not asked over the network."""
    if model.uses_mimic or model.function is not None or IN_INSPECT in model.addresses:
        return None
    return BATCH_SIZE if model.batch is None or model.concurrency == "auto" else model.concurrency


def _about_disk(
    workload: Sequence[Workload], measured_bytes: float | None, previous: Path | None
) -> list[str]:
    """Say how large a stored trial is taken to be, and by what."""
    sizes = [work.disk_bytes for work in workload if work.disk_bytes is not None]
    if len(sizes) < len(workload):
        return []
    basis = "by its answer's tokens, compressed" if measured_bytes is None else f"as in {previous}"
    return [f"bytes of a trial on the disk: about {in_words(float(np.mean(sizes)))}, {basis}"]


def _about_tokens(
    built: Built,
    given: MeanUsage,
    columns: OutcomeColumns | None,
    place: str,
    coins: Mapping[str, ModelOptions],
) -> list[str]:
    """Name the sources of tokens and times, and missing ones; equal models share a line."""
    measured = set(columns.models) if columns is not None else set()
    said: dict[str, list[str]] = {}
    for model in built.spec.models:
        if model.name in measured and given.completion is None:
            said.setdefault(f"tokens of an answer: the mean in {place}", []).append(model.name)
        if model.name in measured or model.name in coins:
            continue
        if given.completion is None:
            most = model.max_tokens
            what = (
                "unknown; give --answer-tokens" if most is None else f"the limit of {most:,}, an upper bound"
            )
            said.setdefault(f"tokens of an answer: {what}", []).append(model.name)
        if given.latency is None:
            what = "seconds of an answer: unknown; give --latency for the hours"
            said.setdefault(what, []).append(model.name)
    every = len(built.spec.models)
    return [
        words if len(names) == every else f"{words} ({', '.join(names)})" for words, names in said.items()
    ]
