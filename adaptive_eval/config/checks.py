"""Checks that concern several settings together.

They read the plain data of a config and pass over whatever has the wrong type (the grammar reports that), so
that they find their mistakes in the same go as all others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from adaptive_eval.config.discovery_config import check_discovery
from adaptive_eval.config.previous import check_references
from adaptive_eval.config.rubric_checks import check_rubric, rubric_name
from adaptive_eval.config.run_config import RunConfig
from adaptive_eval.config.server_config import check_limits
from adaptive_eval.mimic.mimic_spec import like_problems
from adaptive_eval.options.decisions import conflicts
from adaptive_eval.options.mistakes import (
    Place,
    did_you_mean,
    malformed,
    not_allowed,
    reserved,
    shown,
    twice,
    unheld,
    unknown_name,
    unusable_prompt,
)
from adaptive_eval.options.rubric import BINARY
from adaptive_eval.options.section import IN_INSPECT, IN_LITELLM, MIMIC, PYTHON, by_kind
from adaptive_eval.tasks.template import PromptTemplate, template_problem

Found: TypeAlias = Iterator[tuple[Place, str]]

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", re.ASCII)
_FIELD_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_SET_BY_US = ("model", "messages", "prompt", "seed", "n", "echo", "stream", "stream_options")


def check_all(data: Any) -> Found:
    """Yield the place and the words of every mistake that concerns several settings together.

    Examples
    --------
    >>> list(check_all({"models": ({"name": "a"}, {"name": "a"})}))
    [(('models', 1, 'name'), "'a' is also the name of models[0]")]
    """
    config = _mapping(data)
    for check in _CHECKS:
        yield from check(config)


def check_decisions(config: RunConfig) -> Found:
    """Yield every mistake that concerns the goal together with other settings."""
    models = [model.name for model in config.models]
    references = [name for one in config.references for name in one.models]
    ranges = {(min(weights), max(weights)) for weights in _weights(config)}
    scores = ranges.pop() if len(ranges) == 1 else (0.0, 1.0)
    yield from conflicts(config, models, references, len(config.tasks), scores)
    kinds = {goal.kind for goal in config.goal.parts}
    comparing = ", ".join(sorted(kinds & {"ranking", "top-k", "baseline", "pairs"}))
    if comparing and len(models) + len(references) == 1:
        yield ("models",), f"the goal {comparing} compares models and there is one; give two or more"
    budgets = [config.budget, *(one.budget for one in config.models), *(one.budget for one in config.tasks)]
    if config.goal.kind == "budget" and not any(budget.limits() for budget in budgets):
        words = "the goal budget spends a budget and there is none; give budget.trials, for example"
        yield ("goal",), words


def _weights(config: RunConfig) -> list[tuple[float, ...]]:
    return [task.rubric.category_weights for task in config.tasks]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _items(config: Mapping[str, Any], section: str) -> list[tuple[int, Mapping[str, Any]]]:
    found = config.get(section)
    return [(place, _mapping(item)) for place, item in enumerate(found)] if isinstance(found, tuple) else []


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, tuple) else ()


def _names(config: Mapping[str, Any], section: str) -> list[str]:
    return [item["name"] for _, item in _items(config, section) if isinstance(item.get("name"), str)]


def _unique_names(config: Mapping[str, Any]) -> Found:
    for section in ("models", "tasks"):
        first: dict[str, int] = {}
        for place, item in _items(config, section):
            name = item.get("name")
            if not isinstance(name, str):
                continue
            if name in first:
                words = f"{shown(name)} is also the name of {section}[{first[name]}]"
                yield (section, place, "name"), twice(words)
            first.setdefault(name, place)


def _endpoints(config: Mapping[str, Any]) -> Found:
    mimic = _mapping(config.get("mimic"))
    for place, model in _items(config, "models"):
        path: Place = ("models", place, "endpoints")
        urls = _texts(model.get("endpoints"))
        for position, url in enumerate(urls):
            if url.rstrip("/") in [earlier.rstrip("/") for earlier in urls[:position]]:
                yield (*path, position), twice(f"{shown(url)} appears twice")
        if any(url.startswith(PYTHON) or url == IN_LITELLM for url in urls):
            yield from _function(config, model, urls, place)
        if MIMIC not in urls:
            continue
        if len(urls) > 1:
            yield path, "mimic cannot be combined with other endpoints of a model"
        else:
            yield from _coins(mimic, model.get("model", model.get("name")), path, path)


def _coins(mimic: Mapping[str, Any], model: Any, endpoint: Place, name: Place) -> Found:
    """Check that the mimic section has the biased coin that an endpoint asks for."""
    served = _mapping(mimic.get("models"))
    if not mimic:
        yield endpoint, "there is no mimic section to say what the biased coins are; add one"
    elif isinstance(model, str) and model not in served:
        known = ", ".join(served)
        words = f"{shown(model)} is not in mimic.models ({known}){did_you_mean(model, served)}"
        yield name, unknown_name(words)


def _function(
    config: Mapping[str, Any], model: Mapping[str, Any], urls: tuple[str, ...], place: int
) -> Found:
    """Yield what a model that is a function cannot have."""
    here: Place = ("models", place)
    if len(urls) > 1:
        yield (*here, "endpoints"), "a function cannot be combined with other endpoints of a model"
    if _mapping(config.get("executor")).get("kind") == "ray":
        yield (*here, "endpoints"), "a function runs in this process; leave the executor out"
    by_id = IN_LITELLM in urls
    for key in _OF_A_SERVER if by_id else ("model", *_OF_A_SERVER):
        if key in model:
            said = "LiteLLM does not read it here" if by_id else "a function does not read it"
            yield (*here, key), f"is for servers; {said}"


_OF_A_SERVER = ("api", "api_key_env", "headers", "send_seed", "stream", "batch")


def _requests(config: Mapping[str, Any]) -> Found:
    for place, model in _items(config, "models"):
        sampling = _mapping(model.get("sampling"))
        here: Place = ("models", place)
        if "provider" in model:  # those of the file are written out by now
            yield (*here, "provider"), "is read from the file only; set endpoints and api_key_env instead"
        if "max_tokens" in sampling and "max_completion_tokens" in sampling:
            yield (*here, "sampling"), "max_tokens and max_completion_tokens say the same thing; keep one"
        if sampling.get("top_logprobs") and sampling.get("logprobs") is not True:
            yield (*here, "sampling", "top_logprobs"), "needs logprobs: true next to it"
        yield from _of_the_api(model.get("api", "chat"), sampling, (*here, "sampling"))
        for key in _mapping(model.get("extra_body")):
            if key in _SET_BY_US:
                words = "is set by the run itself and cannot be given here"
                yield (*here, "extra_body", key), reserved(words)
            elif key in sampling:
                yield (*here, "extra_body", key), "is also in sampling; keep one of the two"
        timeout = _mapping(model.get("timeout"))
        if ("prompt" in model or "system" in model) and _asked_by_another_tool(config):
            yield here, "a task of Inspect brings its own prompts; leave prompt and system out"
        if "idle" in timeout and model.get("stream") is not True:
            yield (*here, "timeout", "idle"), "needs stream: true; an answer that arrives whole is silent"
        if model.get("api") == "messages" and model.get("stream") is True:
            yield (*here, "stream"), "answers of Anthropic's Messages API are read whole here; leave it out"
        yield from _batch(model, (*here, "batch"))
        yield from _headers(_mapping(model.get("headers")), (*here, "headers"))


def _asked_by_another_tool(config: Mapping[str, Any]) -> bool:
    return any(isinstance(task.get("inspect"), str) for _, task in _items(config, "tasks"))


def _batch(model: Mapping[str, Any], path: Place) -> Found:
    if model.get("batch") in (None, False):
        return
    if model.get("stream") is True:
        yield path, "answers of a batch do not stream; leave stream out"
    if not isinstance(model.get("endpoints"), tuple):
        yield path, "needs endpoints that are written here, not found"


def _of_the_api(api: Any, sampling: Mapping[str, Any], path: Place) -> Found:
    """Yield what the other of the two APIs would take, and servers of this one ignore or read otherwise."""
    logprobs = sampling.get("logprobs")
    lacks, named = _LACKS.get(api, ((), ""))
    for name in lacks:
        if name in sampling:
            yield (*path, name), f"belongs to api: chat; {named} does not have it"
    if api == "messages" and not sampling.keys() & {"max_tokens", "max_completion_tokens"}:
        yield path, "max_tokens is missing; Anthropic's Messages API needs it"
    if api != "completions":
        if isinstance(logprobs, int) and not isinstance(logprobs, bool):
            yield (*path, "logprobs"), f"{logprobs} is for api: completions; write true, and top_logprobs"
        return
    if "max_tokens" not in sampling:
        yield path, "max_tokens is missing; with api: completions servers end an answer after 16 tokens"
    if isinstance(logprobs, bool):
        yield (*path, "logprobs"), "with api: completions this is the number of alternatives, such as 0"
    for name in ("max_completion_tokens", "top_logprobs", "reasoning_effort"):
        if name in sampling:
            yield (*path, name), "belongs to api: chat; with api: completions servers ignore it"


_IN_CHATS_ONLY = ("logprobs", "top_logprobs")
_LACKS: Mapping[Any, tuple[tuple[str, ...], str]] = {
    "responses": (("stop", *_IN_CHATS_ONLY), "the Responses API"),
    "messages": (("reasoning_effort", *_IN_CHATS_ONLY), "Anthropic's Messages API"),
}
"""Parameters of chats that an API does not have."""


def _samples(config: Mapping[str, Any]) -> Found:
    """Yield why a model cannot be asked for several answers at once."""
    tasks = [task for _, task in _items(config, "tasks")]
    for place, model in _items(config, "models"):
        wanted, here = model.get("samples_per_request", 1), ("models", place, "samples_per_request")
        if wanted == 1:
            continue
        if any("solver" in task or "answers" in task for task in tasks):
            yield here, "a task with solver or answers makes requests of one answer each; leave it out"
        sampling, concurrency = _mapping(model.get("sampling")), model.get("concurrency")
        api = model.get("api")
        if api in _LACKS:
            yield here, f"{_LACKS[api][1]} gives one answer to a request; leave it out"
        if sampling.get("temperature") == 0:
            yield here, "all answers of a request are the same at temperature 0; leave it out"
        if isinstance(wanted, int) and isinstance(concurrency, int) and wanted > concurrency:
            yield here, f"{wanted} is more than concurrency allows in flight ({concurrency})"
        if tasks and all(task.get("shuffle_options") is True for task in tasks):
            yield here, "saves nothing where options are shuffled: every trial has its own prompt"


_ALONE = ("judge", "verifier", "inspect", "lm-eval")
"""Scorers that cannot score several answers of a trial together."""


def _answers(config: Mapping[str, Any]) -> Found:
    """Yield what does not go with several answers a trial."""
    for place, task in _items(config, "tasks"):
        if "answers" not in task:
            continue
        here = ("tasks", place, "answers")
        kind = _mapping(by_kind(task.get("scorer"))).get("kind")
        if "solver" in task:
            yield here, "a solver makes the calls of a trial itself; leave one of the two out"
        if kind in _ALONE:
            yield here, f"the scorer {kind} scores one answer at a time; leave answers out, or use another"
        if rubric_name(task.get("rubric")) != BINARY or task.get("track"):
            yield here, "several answers are right or wrong together; leave rubric and track out"


def _limits(config: Mapping[str, Any]) -> Found:
    models = dict(_items(config, "models"))
    yield from check_limits(models, dict(_items(config, "servers")))
    yield from check_discovery(models)


def _headers(headers: Mapping[str, Any], path: Place) -> Found:
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            yield (*path, name), malformed(f"{shown(name)} cannot be the name of a header")
        elif name.lower() in ("content-type", "content-length", "host"):
            yield (*path, name), reserved("is set by the client and cannot be given here")
        if isinstance(value, dict) and len({"value", "env"} & value.keys()) != 1:
            yield (*path, name), malformed("write a text, or {env: NAME} with the name of a variable")
        elif isinstance(value, str) and not (value.isprintable() and value.isascii()):
            yield (*path, name), malformed("a header's value must be printable ASCII")


def _budget(config: Mapping[str, Any]) -> Found:
    """Check that the worst case of a trial is known wherever a budget of tokens or dollars needs it."""
    shared = list(_limited("", config))
    for place, task in _items(config, "tasks"):
        shared += _limited(f"tasks[{place}].", task)
    for place, model in _items(config, "models"):
        limited = [*shared, *_limited(f"models[{place}].", model)]
        sampling = model.get("sampling", {})
        endless = isinstance(sampling, dict) and not {"max_tokens", "max_completion_tokens"} & sampling.keys()
        answers = [name for name in limited if not name.endswith("prompt_tokens")]
        if answers and endless:
            reason = f"{answers[0]} can only be held when the longest answer is known"
            yield ("models", place, "sampling"), unheld(f"max_tokens is missing; {reason}")
        dollars = [name for name in limited if name.endswith("usd")]
        if dollars and model.get("price") is None:
            whose = "the price is known" if dollars[0].startswith("models") else "every price is known"
            yield ("models", place), unheld(f"price is missing; {dollars[0]} can only be held when {whose}")


def _limited(owner: str, section: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the limits of a section's budget that need the worst case of a trial."""
    budget = _mapping(section.get("budget"))
    for name in ("tokens", "prompt_tokens", "completion_tokens", "usd"):
        if budget.get(name) is not None:
            yield f"{owner}budget.{name}"


def _references(config: Mapping[str, Any]) -> Found:
    yield from check_references(config, _names(config, "models"))


def _tasks(config: Mapping[str, Any]) -> Found:
    for place, task in _items(config, "tasks"):
        path: Place = ("tasks", place)
        yield from _prompt(task, path)
        yield from _code_scorer(task, (*path, "scorer"))
        yield from _model_graded_scorer(task, (*path, "scorer"))
        models = [model for _, model in _items(config, "models")]
        yield from check_rubric(task, models, (*path, "rubric"))
        yield from _tracked(task, models, (*path, "track"))


def _tracked(task: Mapping[str, Any], models: list[Mapping[str, Any]], path: Place) -> Found:
    """Check the names of the tracked rubrics: each is unique."""
    tracked = task.get("track")
    names = [rubric_name(task.get("rubric"))]
    for place, rubric in enumerate(tracked if isinstance(tracked, tuple) else ()):
        yield from check_rubric({**task, "rubric": rubric}, models, (*path, place), steers=False)
        name = rubric_name(rubric)
        if name is not None and name in names:
            yield (*path, place), twice(f"{shown(name)} appears twice; give your own schema another name")
        names.append(name)


def _code_scorer(task: Mapping[str, Any], path: Place) -> Found:
    scorer = task.get("scorer")
    kind = scorer if isinstance(scorer, str) else _mapping(scorer).get("kind")
    if kind == "code" and _mapping(scorer).get("allow_execution") is not True:
        words = "runs programs that a model wrote: write {kind: code, allow_execution: true} to allow it"
        yield path, not_allowed(words)


def _model_graded_scorer(task: Mapping[str, Any], path: Place) -> Found:
    """Check a judge or verifier: it has a server of its own, and dollars need prices."""
    scorer = _mapping(task.get("scorer"))
    if scorer.get("kind") not in ("judge", "verifier"):
        return
    if scorer.get("endpoint") == IN_INSPECT:
        yield (*path, "endpoint"), f"{IN_INSPECT} is for models of tasks of Inspect; write a base URL"
    elif str(scorer.get("endpoint")).startswith(PYTHON):
        words = "a judge or verifier is a model at a server; for a function use kind: python"
        yield (*path, "endpoint"), words
    elif scorer.get("endpoint") == MIMIC:
        words = "biased coins cannot judge; write the base URL of a model's server"
        yield (*path, "endpoint"), words
    if _mapping(scorer.get("budget")).get("usd") is not None and scorer.get("price") is None:
        words = "can only be held when the price is known; add price next to budget"
        yield (*path, "budget", "usd"), unheld(words)


def _prompt(task: Mapping[str, Any], path: Place) -> Found:
    fields = _mapping(task.get("fields"))
    for name, column in fields.items():
        if not _FIELD_NAME.fullmatch(name):
            words = f"{shown(name)} cannot be a field: use letters, digits and _"
            yield (*path, "fields", name), malformed(words)
        if name != "choices" and isinstance(column, tuple):
            yield (*path, "fields", name), malformed("only choices can be a list of columns")
    prompt = task.get("prompt", "{input}")
    if not isinstance(prompt, str) or not prompt:
        return
    template = PromptTemplate.parse(prompt)
    media = [name for key in ("images", "audio") for name in _named(task.get(key))]
    problem = template_problem([*template.fields, *media], fields)
    if problem is not None:
        yield (*path, "prompt"), unusable_prompt(problem)
    elif "choices" in fields and "choices" not in template.fields:
        yield (*path, "prompt"), unusable_prompt("the options are never shown: put {choices} into the prompt")


def _named(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else _texts(value)


def _mimic_models(config: Mapping[str, Any]) -> Found:
    models = _mapping(_mapping(config.get("mimic")).get("models"))
    likes = {name: like for name, one in models.items() if isinstance(like := _mapping(one).get("like"), str)}
    for name, words in like_problems({**dict.fromkeys(models), **likes}):
        yield ("mimic", "models", name, "like"), unknown_name(f"{words}{did_you_mean(likes[name], models)}")


_CHECKS: tuple[Callable[[Mapping[str, Any]], Found], ...] = (
    _unique_names,
    _endpoints,
    _requests,
    _samples,
    _answers,
    _limits,
    _budget,
    _references,
    _tasks,
    _mimic_models,
)
