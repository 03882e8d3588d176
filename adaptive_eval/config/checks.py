"""Checks that concern several settings together; they read a config whose every value is right by itself."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from adaptive_eval.config.label_checks import label_mistakes
from adaptive_eval.config.model import ModelConfig
from adaptive_eval.config.run_config import RunConfig
from adaptive_eval.mimic.mimic_spec import like_problems
from adaptive_eval.options.decisions import conflicts
from adaptive_eval.options.limit_options import BudgetSpec, RateLimit
from adaptive_eval.options.mistakes import (
    Found,
    Place,
    did_you_mean,
    malformed,
    not_allowed,
    out_of_range,
    reserved,
    shown,
    twice,
    unheld,
    unknown_name,
    unusable_prompt,
)
from adaptive_eval.options.scorers import GradedScorerConfig
from adaptive_eval.options.section import IN_INSPECT, IN_LITELLM, INSPECT, MIMIC, PYTHON
from adaptive_eval.options.task_options import BINARY, RubricConfig, TaskConfig
from adaptive_eval.tasks.template import PromptTemplate, template_problem
from adaptive_eval.trial import CHECK

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", re.ASCII)
_FIELD_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_SET_BY_US = ("model", "messages", "prompt", "seed", "n", "echo", "stream", "stream_options")


def check_all(config: RunConfig) -> Found:
    """Yield the place and the words of every mistake that concerns several settings together."""
    for check in _CHECKS:
        yield from check(config)
    for place, model in enumerate(config.models):
        path: Place = ("models", place)
        for check_model in _OF_A_MODEL:
            yield from check_model(config, model, path)
    for place, task in enumerate(config.tasks):
        for check_task in (_prompt, _scorer, _rubrics, _solver, _answers):
            yield from check_task(config, task, ("tasks", place))


def _unique(names: Sequence[str], section: str) -> Found:
    for place, name in enumerate(names):
        if name in names[:place]:
            words = f"{shown(name)} is also the name of {section}[{names.index(name)}]"
            yield (section, place, "name"), twice(words)


def _unique_names(config: RunConfig) -> Found:
    yield from _unique([model.name for model in config.models], "models")
    yield from _unique([task.name for task in config.tasks], "tasks")


def _decisions(config: RunConfig) -> Found:
    models = [model.name for model in config.models]
    references = [name for one in config.references for name in one.models]
    weights = [task.rubric.category_weights for task in config.tasks]
    yield from conflicts(config, models, references, weights)
    kinds = {goal.kind for goal in config.goal.parts}
    comparing = ", ".join(sorted(kinds & {"ranking", "top-k", "baseline", "pairs"}))
    if comparing and len(models) == 1 and not config.references:
        yield ("models",), f"the goal {comparing} compares models and there is one; give two or more"
    limited = any(budget.limits() for budget in (config.budget, *config.own_budgets))
    if config.goal.kind == "budget" and not limited:
        words = "the goal budget spends a budget and there is none; give budget.trials, for example"
        yield ("goal",), words


def _references(config: RunConfig) -> Found:
    models = [model.name for model in config.models]
    seen: list[str] = []
    for place, section in enumerate(config.references):
        sources = [source for source in (section.run, section.file) if source is not None]
        if len(sources) > 1 or not (sources or section.series):
            yield ("references", place), "give run (an earlier run's directory) or file (recorded outcomes)"
        if bool(section.models) == bool(section.series) or (section.series and section.file):
            yield ("references", place), "give models (their names), or for a run a series: previous, earlier"
        for position, name in enumerate(section.models):
            path: Place = ("references", place, "models", position)
            if name in models:
                words = f"{shown(name)} is also a model of this config; a model is asked or a reference"
                yield path, twice(words)
            elif name in seen:
                yield path, twice(f"{shown(name)} appears twice")
            seen.append(name)
    if config.references and config.stopping.rule == "exact":
        yield ("stopping", "rule"), "exact reads single trials, which references do not have; use anytime"


def _servers(config: RunConfig) -> Found:
    used = {url: model for model in config.models for url in model.addresses}
    found = [model for model in config.models if model.discovery is not None]
    urls = [server.url for server in config.servers]
    for place, server in enumerate(config.servers):
        here: Place = ("servers", place)
        if server.url in urls[:place]:
            words = f"{shown(server.url)} is also the server of servers[{urls.index(server.url)}]"
            yield (*here, "url"), twice(words)
        elif server.url not in used and not found:
            words = f"no model has {shown(server.url)} among its endpoints{did_you_mean(server.url, used)}"
            yield (*here, "url"), unknown_name(words)
        for model in config.models:
            if server.url in model.addresses or model in found:
                yield from _room(model, server.rate_limit, (*here, "rate_limit"))


def _room(model: ModelConfig, limit: RateLimit | None, place: Place) -> Found:
    """Yield what keeps a limit of tokens from being held for `model`."""
    tokens = None
    if limit is not None:
        tokens = limit.tokens_per_minute
    longest = model.sampling.token_limit
    place = (*place, "tokens_per_minute")
    if tokens is None:
        return
    if longest is None:
        words = f"can only be held when the longest answer is known: give the model {shown(model.name)}"
        yield place, unheld(f"{words} max_tokens")
    elif longest >= tokens:
        words = f"{tokens} is less than one answer may take (max_tokens {longest}) with its question"
        yield place, out_of_range(words)


def _found_servers(config: RunConfig) -> Found:
    """Yield models that find the same servers and have other limits for each."""
    first: dict[str, int] = {}
    for place, model in enumerate(config.models):
        section = model.discovery
        if section is None:
            continue
        other = config.models[first.setdefault(section.source, place)].discovery
        if other is not None and other.each != section.each:
            words = f"models[{first[section.source]}] finds the same servers and has other limits for each"
            yield ("models", place, "endpoints", "each"), f"{words}; write the same for both"


def _likes(config: RunConfig) -> Found:
    if config.mimic is not None:
        models = config.mimic.models
    else:
        models = {}
    likes = {name: one.like for name, one in models.items()}
    for name, words in like_problems(likes):
        near = did_you_mean(likes[name] or "", models)
        yield ("mimic", "models", name, "like"), unknown_name(f"{words}{near}")


_CHECKS: tuple[Callable[[RunConfig], Found], ...] = (
    _unique_names,
    _decisions,
    _references,
    _servers,
    _found_servers,
    _likes,
    label_mistakes,
)


def _endpoints(config: RunConfig, model: ModelConfig, here: Place) -> Found:
    path = (*here, "endpoints")
    urls = model.addresses
    for position, url in enumerate(urls):
        if url in urls[:position]:
            yield (*path, position), twice(f"{shown(url)} appears twice")
    if model.function is not None:
        yield from _function(config, model, here)
    if not model.uses_mimic:
        return
    asked = {"api": model.api != "chat", "stream": model.stream, "batch": model.batch is not None}
    for key, otherwise in asked.items():
        if otherwise:
            yield (*here, key), "the mimic server answers whole chats only; leave it out"
    if len(urls) > 1:
        yield path, "mimic cannot be combined with other endpoints of a model"
    elif config.mimic is None:
        yield path, "there is no mimic section to say what the biased coins are; add one"
    elif model.model_id not in config.mimic.models:
        served = config.mimic.models
        near = did_you_mean(model.model_id, served)
        words = f"{shown(model.model_id)} is not in mimic.models ({', '.join(served)}){near}"
        yield path, unknown_name(words)


def _function(config: RunConfig, model: ModelConfig, here: Place) -> Found:
    """Yield what a model that is a function cannot have."""
    if len(model.addresses) > 1:
        yield (*here, "endpoints"), "a function cannot be combined with other endpoints of a model"
    if config.executor.kind == "ray":
        yield (*here, "endpoints"), "a function runs in this process; leave the executor out"
    by_id = model.function == IN_LITELLM
    said = "a function does not read it"
    if by_id:
        said = "LiteLLM does not read it here"
    for key in ("model", "api", "api_key_env", "headers", "send_seed", "stream", "batch"):
        if key in model.model_fields_set and not (by_id and key == "model"):
            yield (*here, key), f"is for servers; {said}"


def _requests(config: RunConfig, model: ModelConfig, here: Place) -> Found:
    sampling = model.sampling
    given = model.sampling.as_sent()
    if model.provider is not None:  # those of the file are written out by now
        yield (*here, "provider"), "is read from the file only; set endpoints and api_key_env instead"
    if {"max_tokens", "max_completion_tokens"} <= given.keys():
        yield (*here, "sampling"), "max_tokens and max_completion_tokens say the same thing; keep one"
    if sampling.top_logprobs and sampling.logprobs is not True:
        yield (*here, "sampling", "top_logprobs"), "needs logprobs: true next to it"
    yield from _foreign_parameters(model.api, given, (*here, "sampling"))
    for key in model.extra_body:
        if key in _SET_BY_US:
            words = "is set by the run itself and cannot be given here"
            yield (*here, "extra_body", key), reserved(words)
        elif key in given:
            yield (*here, "extra_body", key), "is also in sampling; keep one of the two"
    own_text = model.prompt is not None or model.system is not None
    if own_text and any(task.inspect is not None for task in config.tasks):
        yield here, "a task of Inspect brings its own prompts; leave prompt and system out"
    if "idle" in model.timeout.model_fields_set and not model.stream:
        yield (*here, "timeout", "idle"), "needs stream: true; an answer that arrives whole is silent"
    if model.api == "messages" and model.stream:
        yield (*here, "stream"), "answers of Anthropic's Messages API are read whole here; leave it out"
    if model.batch is not None and model.stream:
        yield (*here, "batch"), "answers of a batch do not stream; leave stream out"
    if model.batch is not None and model.discovery is not None:
        yield (*here, "batch"), "needs endpoints that are written here, not found"


def _headers(config: RunConfig, model: ModelConfig, here: Place) -> Found:
    for name, header in model.headers.items():
        path: Place = (*here, "headers", name)
        if not _HEADER_NAME.fullmatch(name):
            yield path, malformed(f"{shown(name)} cannot be the name of a header")
        elif name.lower() in ("content-type", "content-length", "host"):
            yield path, reserved("is set by the client and cannot be given here")
        if (header.value is None) == (header.env is None):
            yield path, malformed("write a text, or {env: NAME} with the name of a variable")
        elif header.value is not None and not (header.value.isprintable() and header.value.isascii()):
            yield path, malformed("a header's value must be printable ASCII")


_IN_CHATS_ONLY = ("logprobs", "top_logprobs")
_LACKS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "responses": (("stop", *_IN_CHATS_ONLY), "the Responses API"),
    "messages": (("reasoning_effort", *_IN_CHATS_ONLY), "Anthropic's Messages API"),
}
"""Parameters of chats that an API does not have."""


def _foreign_parameters(api: str, given: Mapping[str, Any], path: Place) -> Found:
    """Yield what the other of the two APIs would take, and servers of this one ignore or read otherwise."""
    logprobs = given.get("logprobs")
    lacks, named = _LACKS.get(api, ((), ""))
    for name in lacks:
        if name in given:
            yield (*path, name), f"belongs to api: chat; {named} does not have it"
    if api == "messages" and not given.keys() & {"max_tokens", "max_completion_tokens"}:
        yield path, "max_tokens is missing; Anthropic's Messages API needs it"
    if api != "completions":
        if isinstance(logprobs, int) and not isinstance(logprobs, bool):
            yield (*path, "logprobs"), f"{logprobs} is for api: completions; write true, and top_logprobs"
        return
    if "max_tokens" not in given:
        yield path, "max_tokens is missing; with api: completions servers end an answer after 16 tokens"
    if isinstance(logprobs, bool):
        yield (*path, "logprobs"), "with api: completions this is the number of alternatives, such as 0"
    for name in ("max_completion_tokens", "top_logprobs", "reasoning_effort"):
        if name in given:
            yield (*path, name), "belongs to api: chat; with api: completions servers ignore it"


def _samples(config: RunConfig, model: ModelConfig, here: Place) -> Found:
    """Yield why a model cannot be asked for several answers at once."""
    wanted = model.samples_per_request
    most = model.concurrency
    here = (*here, "samples_per_request")
    if wanted == 1:
        return
    if any(task.solver is not None or task.answers is not None for task in config.tasks):
        yield here, "a task with solver or answers makes requests of one answer each; leave it out"
    if model.api in _LACKS:
        yield here, f"{_LACKS[model.api][1]} gives one answer to a request; leave it out"
    if model.sampling.temperature == 0:
        yield here, "all answers of a request are the same at temperature 0; leave it out"
    if isinstance(wanted, int) and isinstance(most, int) and wanted > most:
        yield here, f"{wanted} is more than concurrency allows in flight ({most})"
    if all(task.shuffle_options for task in config.tasks):
        yield here, "saves nothing if options are shuffled: every trial has its own prompt"


def _limits(config: RunConfig, model: ModelConfig, here: Place) -> Found:
    yield from _room(model, model.rate_limit, (*here, "rate_limit"))
    if model.discovery is not None:
        each = model.discovery.each.rate_limit
        yield from _room(model, each, (*here, "endpoints", "each", "rate_limit"))
    limited = [*_limited("", config.budget)]
    for place, task in enumerate(config.tasks):
        limited += _limited(f"tasks[{place}].", task.budget)
    limited += _limited(f"models[{here[1]}].", model.budget)
    answers = [name for name in limited if not name.endswith("prompt_tokens")]
    if answers and model.sampling.token_limit is None:
        reason = f"{answers[0]} can only be held when the longest answer is known"
        yield (*here, "sampling"), unheld(f"max_tokens is missing; {reason}")
    dollars = [name for name in limited if name.endswith("usd")]
    if dollars and model.price is None:
        whose = "every price is known"
        if dollars[0].startswith("models"):
            whose = "the price is known"
        yield here, unheld(f"price is missing; {dollars[0]} can only be held when {whose}")


def _limited(owner: str, budget: BudgetSpec) -> Iterator[str]:
    """Yield the names of the limits that need the worst case of a trial."""
    for name in ("tokens", "prompt_tokens", "completion_tokens", "usd"):
        if name in budget.limits():
            yield f"{owner}budget.{name}"


_OF_A_MODEL: tuple[Callable[[RunConfig, ModelConfig, Place], Found], ...] = (
    _endpoints,
    _requests,
    _headers,
    _samples,
    _limits,
)


def _scorer(config: RunConfig, task: TaskConfig, here: Place) -> Found:
    """Check that code may be run; a judge or verifier has a server of its own, and dollars need prices."""
    parts = getattr(task.scorer, "parts", {})
    for name, part in parts.items():
        yield from _one_scorer(task, part, (*here, "scorer", "parts", name))
    if not parts:
        yield from _one_scorer(task, task.scorer, (*here, "scorer"))


def _one_scorer(task: TaskConfig, scorer: Any, path: Place) -> Found:
    if scorer.kind == "code" and not scorer.allow_execution:
        words = "runs programs that a model wrote: write {kind: code, allow_execution: true} to allow it"
        yield path, not_allowed(words)
    if scorer.kind not in ("judge", "verifier"):
        return
    if scorer.endpoint == IN_INSPECT:
        yield (*path, "endpoint"), f"{IN_INSPECT} is for models of tasks of Inspect; write a base URL"
    elif scorer.endpoint.startswith(PYTHON):
        words = "a judge or verifier is a model at a server; for a function use kind: python"
        yield (*path, "endpoint"), words
    elif scorer.endpoint == MIMIC:
        words = "biased coins cannot judge; write the base URL of a model's server"
        yield (*path, "endpoint"), words
    if scorer.kind == "judge" and scorer.against is not None and task.shuffle_options:
        yield (*path, "against"), "the stored answers saw other orders of options; leave shuffle_options out"
    if scorer.budget is not None and scorer.budget.usd is not None and scorer.price is None:
        words = "can only be held when the price is known; add price next to budget"
        yield (*path, "budget", "usd"), unheld(words)


def _prompt(config: RunConfig, task: TaskConfig, here: Place) -> Found:
    for name, column in task.fields.items():
        if not _FIELD_NAME.fullmatch(name):
            words = f"{shown(name)} cannot be a field: use letters, digits and _"
            yield (*here, "fields", name), malformed(words)
        if name != "choices" and isinstance(column, tuple):
            yield (*here, "fields", name), malformed("only choices can be a list of columns")
    if not isinstance(task.prompt, str):
        return
    template = PromptTemplate.parse(task.prompt)
    problem = template_problem([*template.fields, *task.images, *task.audio], task.fields)
    if problem is not None:
        yield (*here, "prompt"), unusable_prompt(problem)
    elif "choices" in task.fields and "choices" not in template.fields:
        yield (*here, "prompt"), unusable_prompt("the options are never shown: put {choices} into the prompt")
    others = task.solver is not None or task.scorer.has(*_WITH_FIELDS)
    used = (*template.fields, *task.images, *task.audio)
    for name, key in _MEDIA.items():
        if name in task.fields and name not in used and not others:
            words = f"is never sent: write {key}: {task.fields[name]} next to fields"
            yield (*here, "fields", name), words


_WITH_FIELDS = ("python", "judge", "verifier", "code", "inspect", "lm-eval")
"""Scorers that may read any field."""

_MEDIA = {"image": "images", "images": "images", "audio": "audio"}
"""Names under which a field is meant to be sent as an image or a sound, with the key that sends it."""


LOGGED_SIGNALS = frozenset(
    {
        *("has_box", "is_correct", "truncated", "score"),
        *("token_ratio", "repeated_pattern", "completion_bpt", "prompt_bpt"),
        *("latency", "prompt_tokens", "completion_tokens"),
    }
)
"""Signals that every attempt can have; some scorers add their own."""

_OF_SCORERS = {
    "verifier": frozenset(f"verifier_{part}{label}" for part in ("", "raw_") for label in "abc"),
    "judge": frozenset({"judgements", "order_decided"}),
}
"""Signals that only one kind of scorer records; one of kind python may record any."""

_ASKED_FOR = {
    "completion_bpt": ("sampling", "logprobs", "sampling: {logprobs: true}"),
    "prompt_bpt": ("extra_body", "prompt_logprobs", "extra_body: {prompt_logprobs: 0}"),
}
"""Signals that an endpoint gives only when the request asks for them: section, key, and how to write it."""


_ONE_ANSWER_SCORERS = ("choice_probability", "judge", "verifier", "inspect", "lm-eval")
"""Scorers that cannot score several answers of a trial together."""


def _solver(config: RunConfig, task: TaskConfig, here: Place) -> Found:
    """Yield why a task's solver is none, or one too many."""
    own = task.dataset.startswith(INSPECT)
    if task.solver is not None and own and task.solver.function is not None:
        yield (*here, "solver"), "a task of Inspect brings its own solver; give calls and prompt_tokens only"
    if task.solver is not None and not own and task.solver.function is None:
        yield (*here, "solver"), "function is missing: write python:FILE.py:FUNCTION"


def _answers(config: RunConfig, task: TaskConfig, here: Place) -> Found:
    """Yield what does not go with several answers a trial."""
    if task.answers is None:
        return
    here = (*here, "answers")
    if task.solver is not None:
        yield here, "a solver makes the calls of a trial itself; leave one of the two out"
    if task.scorer.has(*_ONE_ANSWER_SCORERS):
        words = f"the scorer {task.scorer.kind} scores one answer at a time"
        yield here, f"{words}; leave answers out, or use another scorer"
    if task.rubric.schema_definition is not None or task.track:
        yield here, "several answers are right or wrong together; leave rubric and track out"


def _probabilities(config: RunConfig, task: TaskConfig, here: Place) -> Found:
    """Check that models are asked for what the scorer choice_probability reads."""
    for model in config.models if task.scorer.has("choice_probability") else ():
        sent = model.sampling.as_sent()
        if model.api == "completions":
            number = sent.get("logprobs")
        else:
            number = sent.get("top_logprobs")
        if sent.get("temperature") != 0 or not number or number < 2:
            words = "sampling: {max_tokens: 1, temperature: 0, logprobs: true, top_logprobs: 20}"
            yield (
                (*here, "scorer"),
                f"give the model {shown(model.name)} {words}, so that one token has the letters",
            )


def _rubrics(config: RunConfig, task: TaskConfig, here: Place) -> Found:
    """Check a task's rubric and the tracked ones, whose names are unique."""
    yield from _probabilities(config, task, here)
    yield from _rubric(config, task, task.rubric, (*here, "rubric"), steers=True)
    names = [task.rubric.label]
    for place, rubric in enumerate(task.track):
        path: Place = (*here, "track", place)
        yield from _rubric(config, task, rubric, path, steers=False)
        if rubric.label in names:
            words = f"{shown(rubric.label)} appears twice; give your own schema another name"
            yield path, twice(words)
        names.append(rubric.label)


def _numbers(task: TaskConfig, rubric: RubricConfig, scores: tuple[float, float], path: Place) -> Found:
    """Check a rubric whose scores are numbers: by a range of its own, or by the scorer's."""
    here = (*path, "range")
    if rubric is task.rubric and scores == getattr(task.scorer, "range", None):
        here = (*path[:-1], "scorer", "range")
    if not isinstance(task.scorer, GradedScorerConfig):
        kind = task.scorer.kind
        yield here, f"the scorer {kind} gives no numbers; leave range out, or use another scorer"
    elif scores != task.scorer.range and (rubric is task.rubric or task.scorer.range):
        yield here, "write it as the range of the scorer"
    if task.answers is not None:
        yield here, "answers that are scored together are right or wrong; leave range or answers out"
    if rubric.weights is not None or rubric.schema_name != BINARY:
        yield here, "scores that are numbers have no categories; leave range out, or the rubric"


def _rubric(config: RunConfig, task: TaskConfig, rubric: RubricConfig, path: Place, *, steers: bool) -> Found:
    if rubric.weights is not None and len(set(rubric.weights)) == 1:
        words = f"all weights are {rubric.weights[0]}: no answer would be better than another"
        yield (*path, "weights"), words
    if rubric.range is not None:
        yield from _numbers(task, rubric, rubric.range, path)
    yield from _thresholds(rubric, path, steers=steers)
    schema = rubric.schema_definition
    given = getattr(task.scorer, "range", None)
    needed = {"is_correct"} if schema is None else schema.signals
    if given is not None and rubric.range is None and "is_correct" in needed:
        words = "needs right or wrong, and the scorer's range makes scores numbers; leave one of both out"
        yield (*path, "schema"), f"{rubric.label} {words}"
    for signal in sorted(needed) if schema is not None else ():
        for words in _signal(signal, config, task):
            yield (*path, "schema"), f"{rubric.label} {words}"


def _thresholds(rubric: RubricConfig, path: Place, *, steers: bool) -> Found:
    schema, label = rubric.schema_definition, rubric.label
    ruled, known = [], []
    if schema is not None:
        ruled = [rule.name for rule in schema.threshold_rules]
        known = [*ruled, *schema.given_thresholds]
    for name in rubric.thresholds:
        if name not in known:
            has = "it has none"
            if known:
                has = f"it has {', '.join(known)}"
            yield (*path, "thresholds", name), unknown_name(f"{label} has no threshold {shown(name)}; {has}")
    open_ones = [name for name in ruled if name not in rubric.thresholds]
    place = (*path, "thresholds_from")
    if not steers:
        if rubric.thresholds_from is not None:
            yield place, "is for the rubric that steers; a tracked one takes the run's own answers"
    elif rubric.thresholds_from is not None and not open_ones:
        why = "all of them are given" if ruled else f"{label} has none"
        yield place, f"finds thresholds, and {why}; leave it out"
    elif rubric.thresholds_from is None and open_ones:
        yield (
            (*path, "schema"),
            f"{label} cuts at {', '.join(open_ones)}, which have no value: give thresholds: "
            f"{{{open_ones[0]}: …}}, or thresholds_from: RUN, an earlier run with the rubric binary",
        )


def _signal(signal: str, config: RunConfig, task: TaskConfig) -> Iterator[str]:
    """Yield why a signal that a rubric needs is not recorded."""
    if signal in _ASKED_FOR:
        section, key, example = _ASKED_FOR[signal]
        for model in config.models:
            if section == "sampling":
                asked = model.sampling.as_sent()
            else:
                asked = model.extra_body
            if asked.get(key) is None or asked.get(key) is False:
                words = f"needs {signal}, from log-probabilities: give the model {shown(model.name)}"
                yield f"{words} {example}"
        return
    recorded = {*LOGGED_SIGNALS, *(f"{CHECK}{name}" for name in getattr(task.scorer, "parts", ()))}
    for kind, signals in _OF_SCORERS.items():
        if task.scorer.has(kind):
            recorded |= signals
    if not task.scorer.has("python") and signal not in recorded:
        known = ", ".join(sorted(LOGGED_SIGNALS))
        yield f"needs the signal {shown(signal)}, which nothing records; there are {known}"
