"""Assumptions of ``adaptive-eval plan``: scores, tokens, prices, times, sizes, each from its best source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import exp, inf
from pathlib import Path
from statistics import fmean
from typing import Any, TypeAlias

import numpy as np

from adaptive_eval.build.assembly import PreparedRun
from adaptive_eval.cli.options import named_mean
from adaptive_eval.config.model import ModelConfig
from adaptive_eval.config.run_config import RunConfig
from adaptive_eval.core.spec import ModelSpec, SessionSpec
from adaptive_eval.interop.recorded_files import copies_words, read_recorded
from adaptive_eval.interop.run_tables import run_columns
from adaptive_eval.mimic.mimic_spec import ModelOptions
from adaptive_eval.options.limit_options import ServerConfig
from adaptive_eval.run.disk import alternatives
from adaptive_eval.simulate.assumptions import assumed_answers, means_for, sole_kind
from adaptive_eval.simulate.coins import AnswerSource, BiasedCoins
from adaptive_eval.simulate.plan_forecast import Assumptions, Workload
from adaptive_eval.simulate.recorded import RecordedOutcomes
from adaptive_eval.store.cells import OutcomeColumns
from adaptive_eval.store.run_files import in_words, stored_bytes, trial_bytes
from adaptive_eval.trial import estimated_tokens
from adaptive_eval.views.sentences import repeat_notices

UNIT_MARGIN = 0.05
"""The margin that others are counted in where the config has none, as a share of the range of scores."""


Usage: TypeAlias = Mapping[str, float]
"""Mean prompt and completion tokens of a trial, and its latency in seconds; without what is unknown."""


def assume(built: PreparedRun, options: Mapping[str, Any]) -> Assumptions:
    """Gather the assumptions: what is stated, else a previous run, else the config's mimic server."""
    config = built.config
    spec = built.spec
    previous = options["previous"]
    mimic, coins = config.mimic, _coins(built)
    recorded, columns = _previous(previous)
    measured_bytes = None
    if columns is not None:
        measured_bytes = stored_bytes(previous) / len(columns)
    lengths, place = columns, str(previous)
    if columns is None and config.prior is not None:
        place = config.prior.from_
        folder = config.base_dir / Path(place).expanduser()
        lengths = run_columns(folder) if folder.is_dir() else None  # a file has no lengths
    spread = options["spread"]
    correlation = options["correlation"]
    if spread is None:
        spread = next((coin.spread for coin in coins.values()), 8.0)
    if correlation is None:
        correlation = 0.0
        if mimic is not None and coins:
            correlation = mimic.correlation
    means, sources = _scores(built, options["stated"], recorded, coins)
    if recorded is not None:
        asked = [model.name for model in spec.models]
        scored = [name for name in asked if name in recorded.models and name not in means]
        if scored:
            sources += [f"score of {', '.join(scored)}: from {previous}"]
        if recorded.copies:
            sources += [copies_words(recorded.copies)]
    if not means and recorded is None:
        means, words = _unknown_scores(built)
        sources.append(words)
    answers = assumed_answers(
        spec, means, recorded, seed=options["seed"], concentration=spread, correlation=correlation
    )
    names = {"prompt": "prompt_tokens", "completion": "answer_tokens", "latency": "latency"}
    given = {name: options[of] for name, of in names.items() if options[of] is not None}
    workload, usages, prompt = [], [], _prompt_estimate(built)
    for model, one in zip(config.models, spec.models, strict=True):
        known = {**_of_mimic(built, coins.get(model.name)), **_measured(lengths, model.name), **given}
        usage = {"prompt": prompt, **known}
        usages.append(usage)
        workload.append(_workload(model, one, usage, measured_bytes))
    sources += _about_tokens(built, given, lengths, place, coins)
    if recorded is None and any(task.numbers for task in spec.tasks):
        sources.append(
            "spread of scores: unknown, so each is taken to be the lowest or highest of its range; scores "
            "between them take fewer trials"
        )
    sources += repeat_notices(spec)
    if spec.by_cost:
        sources.append("costs of single questions: unknown before the run, so planned as with spend: trials")
    sources += _about_disk(workload, measured_bytes, previous)
    return Assumptions(
        answers,
        workload,
        _equal(built, answers, spread, correlation),
        tuple(sources),
        tuple(_of_servers(config, workload, usages)),
    )


def _of_servers(
    config: RunConfig, workload: Sequence[Workload], usages: Sequence[Usage]
) -> Iterator[tuple[float, ...]]:
    """Yield the seconds that a trial of each model takes of servers, by each of their limits.

    Models that have no other servers than those of one model, or of two, share what these allow together.
    """
    latency = [usage.get("latency", 0.0) for usage in usages]
    tokens = [work.tokens or 0.0 for work in workload]
    taken = {
        "concurrency": np.array(latency),
        "requests_per_minute": np.full(len(usages), 60.0),
        "tokens_per_minute": 60.0 * np.array(tokens),
    }
    known = {server.url: server for server in config.servers}
    pools = {frozenset(model.addresses) for model in config.models if model.addresses}
    for pool in {one | other for one in pools for other in pools if one & other}:
        inside = [bool(model.addresses) and pool.issuperset(model.addresses) for model in config.models]
        for name, seconds in taken.items():
            room = sum(_room(known.get(url), name) for url in pool)
            if room < inf:
                yield tuple(np.where(inside, seconds / room, 0.0).tolist())


def _room(server: ServerConfig | None, name: str) -> float:
    """Return what a server allows of something; without a limit it takes as much as is sent."""
    limits: Any = server
    if server is not None and name != "concurrency":
        limits = server.rate_limit
    amount = getattr(limits, name, None)
    if amount is None or amount == "auto":
        return inf
    return float(amount)


def _coins(built: PreparedRun) -> dict[str, ModelOptions]:
    """Return the coins of the models that the config's mimic server serves."""
    mimic = built.config.mimic
    if mimic is None:
        return {}
    served = [model for model in built.config.models if model.uses_mimic]
    return {model.name: mimic.models[model.model_id] for model in served}


def _scores(
    built: PreparedRun,
    stated: Sequence[str],
    recorded: RecordedOutcomes | None,
    coins: Mapping[str, ModelOptions],
) -> tuple[dict[str, float], list[str]]:
    """Return the mean scores that are stated, or without earlier outcomes those of coins, and who says so."""
    means = dict(named_mean("--assume", text) for text in stated)
    if means:
        sources = [f"score of {', '.join(means)}: as stated"]
    else:
        sources = []
    if recorded is not None:
        return means, sources
    drawn = {name: _mean(coin) for name, coin in coins.items() if name not in means}
    if drawn:
        sources += [f"score of {', '.join(drawn)}: the config's mimic"]
    return {**drawn, **means}, sources


def _unknown_scores(built: PreparedRun) -> tuple[dict[str, float], str]:
    """Return means of models of which nothing is known, and words that say them."""
    spec = built.spec
    kind = sole_kind(built.spec)
    margin = unit_margin(spec) or UNIT_MARGIN
    taken = "0.5 is assumed, where an interval is widest"
    assumed = 0.0
    if kind != "not-worse":
        assumed = 2.0 * margin
    if kind != "width":
        who = {
            "threshold": "all are taken to be {:g} from the threshold",
            "baseline": "all are taken to be {:g} from the baseline",
            "not-worse": "all are taken to be as good as the baseline",
        }.get(kind, "neighbours are taken to be {:g} apart around 0.5")
        taken = who.format(assumed)
    words = f"score of all models: unknown, so {taken}; state your own with --assume NAME=MEAN"
    names = [model.name for model in spec.models]
    return dict(zip(names, means_for(spec, assumed), strict=True)), words


def unit_margin(spec: SessionSpec) -> float | None:
    """Return the margin of the goal not-worse, if it is the only one, else of ties, in unit scores."""
    if sole_kind(spec) == "not-worse":
        return spec.claim_margin(spec.goal.parts[0])
    return spec.margin


def _equal(
    built: PreparedRun, answers: AnswerSource, spread: float, correlation: float
) -> AnswerSource | None:
    """Return coins of the worst case for errors; none if the goal measures scores.

    They are equally good, as a reference that is the baseline too; or with the goal not-worse, worse than the
    baseline by the margin.
    """
    spec = built.spec
    kind = sole_kind(built.spec)
    if kind == "width":
        return None
    origin, unit = spec.scale
    level = float((answers.truth(spec).mean() - origin) / unit)
    means = (level,) * len(spec.models)
    of_reference = kind == "baseline" and spec.goal.parts[0].model in spec.names[len(means) :]
    if kind == "threshold" or of_reference:
        means = means_for(spec, 0.0)
    elif kind == "not-worse":
        means = means_for(spec, unit_margin(spec) or UNIT_MARGIN)
    return BiasedCoins(means, spread, correlation)


def _previous(path: Path | None) -> tuple[RecordedOutcomes | None, OutcomeColumns | None]:
    if path is None:
        return None, None
    return read_recorded([path]), run_columns(path) if path.is_dir() else None


def _mean(coin: ModelOptions) -> float:
    if coin.accuracies is None:
        return coin.average
    return fmean(coin.accuracies)


def _measured(columns: OutcomeColumns | None, name: str) -> Usage:
    """Return the means of a previous run."""
    if columns is None or name not in columns.models:
        return {}
    here = (columns.model == columns.models.index(name)) & (columns.category >= 0)
    of = {
        "prompt": columns.prompt_tokens,
        "completion": columns.completion_tokens,
        "latency": columns.latency,
    }
    return {kind: float(values[here].mean()) for kind, values in of.items() if here.any()}


def _of_mimic(built: PreparedRun, coin: ModelOptions | None) -> Usage:
    mimic = built.config.mimic
    if coin is None or mimic is None:
        return {}
    latency = coin.latency or mimic.latency
    tokens = coin.tokens or mimic.tokens
    factor = 1.0 + _mean(coin) * (latency.correct_factor - 1.0)
    return {
        "completion": tokens.completion_median * exp(0.5 * tokens.completion_sigma**2),
        "latency": latency.median * exp(0.5 * latency.sigma**2) * factor,
    }


def _prompt_estimate(built: PreparedRun) -> float:
    """Return the mean tokens of a prompt by its length."""
    asked = (task.render(question) for task in built.tasks for question in task.questions)
    return float(np.mean(list(map(estimated_tokens, asked))))


def _workload(model: ModelConfig, spec: ModelSpec, usage: Usage, measured_bytes: float | None) -> Workload:
    """Return what a trial takes; an answer of unknown length is as long as it may be."""
    prompt = usage["prompt"]
    answer = usage.get("completion")
    limit = spec.max_tokens
    tokens = answer
    if answer is None:
        tokens = 0.0
    least_usd = _usd(spec, prompt, tokens)
    if answer is None and limit is not None:
        answer = float(limit)
    usd = _usd(spec, prompt, answer)
    # a batch's latency says nothing about when its answers come
    latency = None
    if model.batch is None:
        latency = usage.get("latency")
    seconds = None
    if latency is not None:
        seconds = latency / model.in_flight
    rate = model.rate_limit
    if seconds is not None and rate is not None:
        if rate.requests_per_minute is not None:
            seconds = max(seconds, 60.0 / rate.requests_per_minute)
        if rate.tokens_per_minute is not None:
            seconds = max(seconds, 60.0 * (prompt + (answer or 0.0)) / rate.tokens_per_minute)
    size = measured_bytes
    if size is None and answer is not None:
        size = trial_bytes(answer, alternatives(model.sampling))
    return Workload(prompt, answer, usd, seconds, size, least_usd)


def _usd(spec: ModelSpec, prompt: float, answer: float | None) -> float | None:
    if spec.price is None or answer is None:
        return None
    return spec.price.cost(1, 0) * prompt + spec.price.cost(0, 1) * answer


def _about_disk(
    workload: Sequence[Workload], measured_bytes: float | None, previous: Path | None
) -> list[str]:
    """Say how large a stored trial is taken to be, and by what."""
    sizes = [work.disk_bytes for work in workload if work.disk_bytes is not None]
    if len(sizes) < len(workload):
        return []
    basis = "by its answer's tokens, compressed"
    if measured_bytes is not None:
        basis = f"as in {previous}"
    return [f"bytes of a trial on the disk: about {in_words(float(np.mean(sizes)))}, {basis}"]


def _about_tokens(
    built: PreparedRun,
    given: Usage,
    columns: OutcomeColumns | None,
    place: str,
    coins: Mapping[str, ModelOptions],
) -> list[str]:
    """Name the sources of tokens and times, and missing ones; equal models share a line."""
    if columns is not None:
        measured = set(columns.models)
    else:
        measured = set()
    said: dict[str, list[str]] = {}
    for model in built.spec.models:
        if model.name in measured and "completion" not in given:
            said.setdefault(f"tokens of an answer: the mean in {place}", []).append(model.name)
        if model.name in measured or model.name in coins:
            continue
        if "completion" not in given:
            most = model.max_tokens
            what = "unknown; give --answer-tokens"
            if most is not None:
                what = f"the limit of {most:,}, an upper bound"
            said.setdefault(f"tokens of an answer: {what}", []).append(model.name)
        if "latency" not in given:
            what = "seconds of an answer: unknown; give --latency for the hours"
            said.setdefault(what, []).append(model.name)
    lines = []
    for words, names in said.items():
        of_all = len(names) == len(built.spec.models)
        if of_all:
            lines.append(words)
        else:
            lines.append(f"{words} ({', '.join(names)})")
    return lines
