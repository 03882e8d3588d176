"""A first config: models that servers list, a benchmark or a file, a margin, and a budget by simulation."""

import asyncio
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from adaptive_eval.build.assembly import PreparedRun, build
from adaptive_eval.config import parse_config
from adaptive_eval.config.config_schema import json_schema
from adaptive_eval.config.document import read_document, write_document
from adaptive_eval.config.short_forms import PROVIDERS, benchmarks
from adaptive_eval.core.spec import GoalSpec, SessionSpec
from adaptive_eval.endpoints.apis import OpenAIChat
from adaptive_eval.errors import EndpointError, EndpointsUnusable, PermanentEndpointError, UsageError
from adaptive_eval.options.mistakes import did_you_mean
from adaptive_eval.simulate import BiasedCoins, simulate
from adaptive_eval.simulate.assumptions import means_apart
from adaptive_eval.tasks.questions import USUAL_COLUMNS
from adaptive_eval.tasks.sources import is_file_source, read_source

MARGINS = (0.1, 0.05, 0.03)
"""Margins that are offered, the largest first."""

USUAL = 0.05
"""The margin that is suggested where the questions and passes suffice for it."""

RUNS = 20
"""Simulated runs behind each margin: enough for a first budget, and done in seconds."""

_NUMBER = re.compile(r"(?:.*####)?\s*[-+$]?[\d,]*\.?\d+\s*%?", re.DOTALL)


LIMIT = 4096
"""Most tokens of an answer where nothing else is said: half of the context, where that is less."""


SCHEMA_LINE = "# yaml-language-server: $schema=adaptive-eval.schema.json\n\n"
"""The first line of a config that has its schema next to it, for editors."""

_CLOSER = "Models closer than equivalence count as tied: choose it as large as you can defend."
_WIDTH_WORDS = (
    "The score's interval is measured to this width. threshold=0.8 asks whether it is above or below 0.8."
)


@dataclass(frozen=True)
class Asked:
    """How all models of a new config are asked."""

    api_key_env: str | None = None  # the variable that holds the servers' key
    max_tokens: int | None = None  # most tokens of an answer; by default what the context allows
    temperature: float | None = 0.7  # None: it is not sent
    system: str | None = None  # a text, or a .txt or .md file


@dataclass(frozen=True)
class Listed:
    """A model at an address, or at a provider if none is given."""

    url: str
    model: str
    context: int | None = None  # tokens of prompt and answer together, where the server tells
    provider: str = ""

    @property
    def label(self) -> str:
        """A short name for reports."""
        return re.sub(r"[^A-Za-z0-9._-]+", "-", self.model.rsplit("/", 1)[-1]).strip("-.") or "model"

    def section(self, label: str, asked: Asked) -> dict[str, Any]:
        """Return the model's section of a config."""
        place = {"provider": self.provider} if self.provider else {"endpoints": [self.url]}
        section: dict[str, Any] = {"name": label, "model": self.model, **place}
        if asked.api_key_env is not None and not self.provider:  # whose variable is known
            section["api_key_env"] = asked.api_key_env
        if asked.system is not None:
            section["system"] = asked.system
        half = LIMIT
        if self.context is not None:
            half = max(1, self.context // 2)
        limit = min(LIMIT, half)
        # OpenAI's newer models take no max_tokens.
        named = "max_tokens"
        if self.provider == "openai":
            named = "max_completion_tokens"
        if asked.temperature is not None:
            sampling = {"temperature": asked.temperature}
        else:
            sampling = {}
        section["sampling"] = {**sampling, named: asked.max_tokens or limit}
        return {**section, "concurrency": 16}


def list_models(
    urls: Sequence[str],
    asked: Asked,
    wanted: Sequence[str],
    *,
    say: Callable[[str], None],
    ask_key: Callable[[], str] | None = None,
) -> tuple[list[Listed], Asked]:
    """Ask servers which models they list; return the models, and how they are asked.

    If a server wants a key and none is named, `ask_key` is asked for the variable that holds it. A single
    server that lists no models, or refuses to, is taken to serve those `wanted`.

    Raises
    ------
    EndpointsUnusable
        A server does not answer, or lists no model; all such servers are named.
    """
    answers = asyncio.run(_ask_all(urls, asked.api_key_env))
    found: list[Listed] = []
    problems: list[str] = []
    keyless = asked.api_key_env is None
    for url, answer in zip(urls, answers, strict=True):
        if not isinstance(answer, EndpointError):
            found += [Listed(url, model, context) for model, context in answer.items()]
            if not answer and wanted and len(urls) == 1:
                found += [Listed(url, model) for model in wanted]
            elif not answer:
                problems.append(f"{url} lists no models; name those that it serves: --model NAME")
            continue
        words = _said(url, answer, asked.api_key_env)
        if answer.cause == ("key",) and keyless and ask_key is not None:
            say(words)
            return list_models(urls, replace(asked, api_key_env=ask_key()), wanted, say=say)
        if isinstance(answer, PermanentEndpointError) and wanted and len(urls) == 1:
            say(f"{words}; --model is taken as it is written")
            found += [Listed(url, model) for model in wanted]
        else:
            problems.append(words)
    if problems:
        raise EndpointsUnusable("\n".join(problems))
    return found, asked


def _said(url: str, error: EndpointError, api_key_env: str | None) -> str:
    """Return a failure with the address, and what probably helps."""
    if url in str(error):
        words = str(error).rstrip(".")
    else:
        words = f"{url}: {error}".rstrip(".")
    if error.cause == ("key",) and api_key_env is None:
        return f"{words}; name the environment variable that holds the key: --api-key-env NAME"
    if error.cause == ("key",):
        return f"{words}; is the key in {api_key_env} the right one?"
    base = url.rstrip("/")
    if base.endswith("/v1"):
        return words
    return f"{words}; is it {base}/v1?"


async def _ask_all(
    urls: Sequence[str], api_key_env: str | None
) -> list[dict[str, int | None] | EndpointError]:
    """Ask all servers at once which models they list."""

    async def ask(url: str) -> dict[str, int | None] | EndpointError:
        endpoint = OpenAIChat(url, "", api_key_env=api_key_env, connect_timeout=5.0, total_timeout=30.0)
        try:
            return await endpoint.listed()
        except EndpointError as error:
            return error
        finally:
            await endpoint.aclose()

    return await asyncio.gather(*map(ask, urls))


def task_of(
    name: str,
    folder: Path,
    *,
    dataset: str | None = None,
    scorer: str | None = None,
    fields: Mapping[str, str] = MappingProxyType({}),
    choose: Callable[[str, list[str]], str] | None = None,
) -> dict[str, Any]:
    """Return a task for a config in `folder`: a benchmark's, or one guessed from a file's columns.

    `fields` names columns; `choose` is asked for one that is neither named nor known.

    Raises
    ------
    UsageError
        `name` is neither a benchmark nor a dataset, or its columns do not say what is asked.
    """
    if scorer is not None:
        added: dict[str, Any] = {"scorer": read_document(scorer).data}
    else:
        added = {}
    if name in benchmarks():
        own = {"dataset": dataset, "fields": dict(fields)}
        return {"benchmark": name, **{key: value for key, value in own.items() if value}, **added}
    if dataset is not None:
        raise UsageError(f"{name!r} is no ready benchmark; `adaptive-eval tasks` lists them")
    if is_file_source(name) and not (folder / Path(name).expanduser()).is_file():
        raise UsageError(
            f"{name!r} is neither a ready benchmark (`adaptive-eval tasks`) nor a file in {folder.resolve()}"
            f"{did_you_mean(name, benchmarks())}"
        )
    rows = [row.values for row in read_source(name, folder).rows[:200]]
    columns = dict.fromkeys(column for row in rows for column in row)
    found = _columns(name, list(columns), fields, choose)
    label = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(name).stem).strip("-.") or "task"
    targets = [row.get(found["target"]) for row in rows]
    guessed, prompt = _guess(targets, has_choices="choices" in found)
    task = {"name": label, "dataset": name, "fields": found, "prompt": prompt, "scorer": guessed, **added}
    if task["scorer"] == "numeric" and any("####" in str(target) for target in targets):
        task["target_pattern"] = r"####\s*(\S+)"
    return task


def _columns(
    file: str,
    columns: list[str],
    named: Mapping[str, str],
    choose: Callable[[str, list[str]], str] | None,
) -> dict[str, str]:
    """Return the column of each field of a file: as named, by a usual name, or as chosen."""
    for field, column in named.items():
        if column not in columns:
            turned = ""
            if field in columns:
                turned = f"; write --field {column}={field}"
            raise UsageError(f"{file} has no column {column!r} (there are: {', '.join(columns)}){turned}")
    found = dict(named)
    for field, known in USUAL_COLUMNS.items():
        there = [name for name in known if name in columns and name not in found.values()]
        if there:
            found.setdefault(field, there[0])
    for field in ("input", "target"):
        if field not in found and choose is not None:
            found[field] = choose(field, columns)
    if lacking := [field for field in ("input", "target") if field not in found]:
        given = " ".join(f"--field {field}=COLUMN" for field in lacking)
        near = next(filter(None, (did_you_mean(field, lacking) for field in named)), "")
        raise UsageError(
            f"{file}: no column is known to be the {' or the '.join(lacking)} (there are: "
            f"{', '.join(columns)}); name it: {given}{near}"
        )
    return found


def _guess(targets: Iterable[Any], *, has_choices: bool) -> tuple[str | dict[str, Any], str]:
    """Return the scorer that the right answers suggest, and a prompt for it."""
    texts = [str(target).strip() for target in targets]
    numbers = all(map(_NUMBER.fullmatch, texts))
    if has_choices:
        ask = "{input}\n\n{choices}\n\nFinish with a line of the form: The answer is X."
        if not numbers:
            return "choice", ask
        first = min((int(text) for text in texts), default=0)
        return {"kind": "choice", "index_from": min(first, 1)}, ask
    ask = "{input}\n\nReason step by step, and put the final answer within \\boxed{}."
    return ("numeric" if numbers else "exact"), ask


def _task_entry(task: Mapping[str, Any]) -> Any:
    """Return a task as the config has it: a ready benchmark without other keys by its name."""
    if [*task] == ["benchmark"]:
        return task["benchmark"]
    return dict(task)


def config_text(
    name: str,
    models: Sequence[Listed],
    tasks: Sequence[Mapping[str, Any]],
    *,
    margin: float,
    trials: int | None,
    about_trials: str = "",
    asked: Asked,
) -> str:
    """Return the text of a config, with a comment if a user will want to change something."""
    labels: list[str] = []
    for one in models:
        taken = sum(label == one.label or label.startswith(f"{one.label}.") for label in labels)
        if taken:
            labels.append(f"{one.label}.{taken + 1}")
        else:
            labels.append(one.label)
    listed = [one.section(label, asked) for label, one in zip(labels, models, strict=True)]
    goal = f"width={2 * margin:g}"
    about_goal = _WIDTH_WORDS
    stopping, about_stopping = {"confidence": 0.95}, ""
    if len(models) > 1:
        goal, about_goal = "ranking", ""
        stopping, about_stopping = {**stopping, "equivalence": margin}, _CLOSER
    sections: list[tuple[str, dict[str, Any]]] = [
        ("", {"name": name, "seed": 1}),
        ("The name is the label in reports; sampling is sent exactly as written.", {"models": listed}),
        (
            "`adaptive-eval tasks NAME` shows the task of a ready benchmark; any key can be added.",
            {"tasks": list(map(_task_entry, tasks))},
        ),
        (about_goal, {"goal": goal}),
        (about_stopping, {"stopping": stopping}),
    ]
    scarce = "What to save: trials, tokens, usd, or time (time: idle slots of your own servers ask ahead)."
    sections.append((scarce, {"spend": "trials"}))
    if trials is not None:
        sections.append((about_trials, {"budget": {"trials": trials}}))
    written = []
    for comment, section in sections:
        heading = f"# {comment}\n" if comment else ""
        written.append(f"{heading}{write_document(section)}")
    return "\n".join(written)


def write_one_line(
    models: Sequence[str],
    tasks: Sequence[str],
    margin: float | None,
    folder: Path,
    *,
    asked: Asked,
    scorer: str | None,
    fields: Mapping[str, str],
) -> tuple[Path, bool]:
    """Write the config of models (``URL#NAME`` or ``PROVIDER/MODEL``) and tasks.

    Return its file, and whether it is new.

    A config of the same name with the same text is used as it is; with another text the name gets a number.

    Raises
    ------
    UsageError
        A model has no name, or a task is unknown.
    """
    listed = named_models(models, asked)
    read = [task_of(task, folder, scorer=scorer, fields=fields) for task in tasks]
    name = "-".join(str(task.get("benchmark", task.get("name"))) for task in read)
    used = USUAL if margin is None else margin
    for number in count(1):
        label = name if number == 1 else f"{name}-{number}"
        text = config_text(label, listed, read, margin=used, trials=None, asked=asked)
        file = folder / f"{label}.yaml"
        new = not file.exists()
        if new or file.read_text("utf-8") == text:
            break
    check(text, folder)
    file.write_text(text, "utf-8")
    return file, new


def named_models(models: Sequence[str], asked: Asked) -> list[Listed]:
    """Return models named as ``URL#NAME`` or ``PROVIDER/MODEL``, with the contexts that servers tell.

    Raises
    ------
    UsageError
        A model is named in neither form, or a key's variable is named that no model needs.
    """
    listed = list(map(_model, models))
    if asked.api_key_env is not None and not any(one.url for one in listed):
        raise UsageError(
            f"--api-key-env is for models at a URL; the key of {listed[0].provider} has its own variable: "
            "write --model URL#NAME for another one"
        )
    return _with_contexts(listed, asked.api_key_env)


def _model(text: str) -> Listed:
    """Read a model as the command line names it.

    Examples
    --------
    >>> _model("http://gpu1:8000/v1#qwen3-4b").model, _model("openrouter/qwen/qwen3-8b").model
    ('qwen3-4b', 'qwen/qwen3-8b')
    """
    url, mark, name = text.rpartition("#")
    if mark and url and name:
        return Listed(url, name)
    if "://" in text:
        raise UsageError(f"--model {text!r} names no model; write {text.rstrip('#')}#NAME")
    provider, _, model = text.partition("/")
    if provider in PROVIDERS and model:
        return Listed("", model, provider=provider)
    raise UsageError(
        f"--model {text!r} is neither URL#NAME, such as http://gpu1:8000/v1#qwen3-4b, nor PROVIDER/MODEL, "
        f"such as openai/gpt-5-mini (providers: {', '.join(PROVIDERS)})"
    )


def _with_contexts(models: Sequence[Listed], api_key_env: str | None) -> list[Listed]:
    """Return models with the length of their contexts, as far as their servers tell it."""
    urls = list(dict.fromkeys(one.url for one in models if one.url))
    answers = dict(zip(urls, asyncio.run(_ask_all(urls, api_key_env)), strict=True))
    found = []
    for one in models:
        answer = answers.get(one.url)
        known = answer.get(one.model) if isinstance(answer, dict) else None  # the run says why it is not
        found.append(replace(one, context=known))
    return found


@dataclass(frozen=True)
class Offer:
    """A margin, and what the goal probably takes with it: an approximation from :data:`RUNS` runs."""

    margin: float
    typical: int  # trials that half of the runs need
    trials: int  # trials that 9 of 10 of them need
    resolved: int  # runs that reach the goal within the passes

    @property
    def enough(self) -> bool:
        """Whether the passes suffice in 9 of 10 runs."""
        return self.resolved >= 0.9 * RUNS

    @property
    def words(self) -> str:
        """What the trials are, for the config."""
        runs = f"{RUNS} simulated runs, close to the worst case,"
        if self.enough:
            return f"About what 9 of 10 of {runs} needed."
        return f"All passes; {self.resolved} of {runs} were resolved by then. A larger margin needs fewer."


def offers(spec: SessionSpec, margins: Iterable[float]) -> list[Offer]:
    """Simulate each margin close to the worst case: neighbours one margin apart, or one score of 0.5.

    Smaller margins that the passes would not suffice for are left out: trials grow with the inverse square of
    the margin.

    Examples
    --------
    >>> from adaptive_eval.core.spec import ModelSpec, StoppingSpec, TaskSpec
    >>> task = TaskSpec("t", tuple(f"q{number}" for number in range(100)))
    >>> spec = SessionSpec((ModelSpec("a"), ModelSpec("b")), (task,), stopping=StoppingSpec(max_passes=9))
    >>> [[(offer.margin, offer.enough) for offer in offers(spec, some)] for some in ([0.3, 0.02], [0.02])]
    [[(0.3, True)], [(0.02, False)]]
    """
    found: list[Offer] = []
    most = (spec.stopping.max_passes or math.inf) * spec.questions * len(spec.models)
    for margin in margins:
        if found and found[-1].trials * (found[-1].margin / margin) ** 2 > most:
            break
        if len(spec.models) == 1:
            one = replace(spec, goal=GoalSpec("width", width=2 * margin))
        else:
            one = replace(spec, stopping=replace(spec.stopping, equivalence=margin))
        answers = BiasedCoins(means_apart(len(spec.models), margin / spec.scale[1]))
        runs = simulate(one, answers, RUNS, seed=1, in_flight=1, workers=1)
        typical, nearly = (_rounded_up(float(np.quantile(runs.total, share))) for share in (0.5, 0.9))
        found.append(Offer(margin, typical, nearly, runs.reasons.get("resolved", 0)))
    return found


def suggested(offered: Sequence[Offer], trials: int | None = None) -> Offer:
    """Return the smallest margin that `trials` suffice for; without them, the usual or the next larger one.

    If none does, the largest is returned.

    Examples
    --------
    >>> offered = [Offer(0.1, 500, 900, 20), Offer(0.05, 2000, 4000, 20), Offer(0.03, 9000, 9000, 3)]
    >>> suggested(offered).margin, suggested(offered, 4000).margin, suggested(offered, 100).margin
    (0.05, 0.05, 0.1)
    """
    enough = [offer for offer in offered if offer.enough]
    if trials is None:
        fit = [offer for offer in enough if offer.margin >= USUAL]
    else:
        fit = [offer for offer in enough if offer.trials <= trials]
    return min(fit, key=lambda offer: offer.margin, default=offered[0])


def _rounded_up(trials: float) -> int:
    """Return two significant digits, rounded up."""
    digits = 10 ** max(0, math.floor(math.log10(trials)) - 1)
    return int(math.ceil(trials / digits) * digits)


def check(text: str, folder: Path) -> PreparedRun:
    """Return the run of a config, checked as `validate` does, without asking the servers."""
    return build(parse_config(text, "the new config", folder))


def schema_text() -> str:
    """Return the JSON schema that the config names for editors."""
    return json.dumps(json_schema(), indent=1) + "\n"
