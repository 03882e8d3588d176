"""A first config: models that servers list, a benchmark or a file, a margin, and a budget by simulation."""

import asyncio
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from adaptive_eval.build.assembly import Built, build
from adaptive_eval.config import parse_config
from adaptive_eval.config.document import write_document
from adaptive_eval.config.load_config import json_schema
from adaptive_eval.config.short_forms import benchmarks
from adaptive_eval.core.spec import SessionSpec
from adaptive_eval.endpoints.apis import OpenAIChat
from adaptive_eval.errors import EndpointError, EndpointsUnusable, UsageError
from adaptive_eval.simulate import BiasedCoins, simulate
from adaptive_eval.simulate.assumptions import means_apart
from adaptive_eval.tasks.sources import is_file_source, read_source

MARGINS = (0.1, 0.05, 0.03)
"""Margins that are offered, the largest first."""

USUAL = 0.05
"""The margin that is suggested where the questions and passes suffice for it."""

RUNS = 20
"""Simulated runs behind each margin: enough for a first budget, and done in seconds."""

INPUTS = ("question", "problem", "input", "prompt", "text")
TARGETS = ("answer", "target", "solution", "label", "expected")
CHOICES = ("choices", "options")
"""Columns that are probably the question, the right answer and the options, the likeliest first."""

_NUMBER = re.compile(r"(?:.*####)?\s*[-+$]?[\d,]*\.?\d+\s*%?", re.DOTALL)


@dataclass(frozen=True)
class Listed:
    """A model that a server lists."""

    url: str
    model: str

    @property
    def label(self) -> str:
        """A short name for reports."""
        return re.sub(r"[^A-Za-z0-9._-]+", "-", self.model.rsplit("/", 1)[-1]).strip("-.") or "model"


def list_models(urls: Sequence[str], api_key_env: str | None) -> list[Listed]:
    """Ask servers which models they list.

    Raises
    ------
    EndpointsUnusable
        A server does not answer, or lists no model; all such servers are named.
    """

    async def ask(url: str) -> list[Listed] | str:
        endpoint = OpenAIChat(url, "", api_key_env=api_key_env, connect_timeout=5.0, total_timeout=30.0)
        try:
            return [Listed(url, model) for model in await endpoint.listed()] or f"{url} lists no models"
        except EndpointError as error:
            hint = "" if url.rstrip("/").endswith("/v1") else f"; is it {url.rstrip('/')}/v1?"
            return f"{error}{hint}" if url in str(error) else f"{url}: {error}{hint}"
        finally:
            await endpoint.aclose()

    async def ask_all() -> list[list[Listed] | str]:
        return await asyncio.gather(*map(ask, urls))

    answers = asyncio.run(ask_all())
    problems = [answer for answer in answers if isinstance(answer, str)]
    if problems:
        raise EndpointsUnusable("\n".join(problems))
    return [one for answer in answers if not isinstance(answer, str) for one in answer]


def task_of(name: str, dataset: str | None, scorer: str | None, folder: Path) -> dict[str, Any]:
    """Return a task for a config in `folder`: a benchmark's, or one guessed from a file's columns.

    Raises
    ------
    UsageError
        `name` is neither a benchmark nor a dataset, or its columns do not say what is asked.
    """
    added: dict[str, Any] = {} if scorer is None else {"scorer": scorer}
    if name in benchmarks():
        return {"benchmark": name, **({} if dataset is None else {"dataset": dataset}), **added}
    if dataset is not None:
        raise UsageError(f"{name!r} is no ready benchmark; `adaptive-eval tasks` lists them")
    if is_file_source(name) and not (folder / Path(name).expanduser()).is_file():
        raise UsageError(
            f"{name!r} is neither a ready benchmark (`adaptive-eval tasks`) nor a file in {folder.resolve()}"
        )
    rows = [row.values for row in read_source(name, folder).rows[:200]]
    columns = dict.fromkeys(column for row in rows for column in row)
    fields = {}
    for field, known in (("input", INPUTS), ("target", TARGETS), ("choices", CHOICES)):
        there = [name for name in known if name in columns]
        if there:
            fields[field] = there[0]
    if lacking := [field for field in ("input", "target") if field not in fields]:
        raise UsageError(
            f"{name}: no column is known to be the {' or the '.join(lacking)} (there are: "
            f"{', '.join(columns)}); rename one, or write the config by hand with fields"
        )
    label = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(name).stem).strip("-.") or "task"
    guessed, prompt = _guess([row.get(fields["target"]) for row in rows], has_choices="choices" in fields)
    task = {"name": label, "dataset": name, "fields": fields, "prompt": prompt, "scorer": guessed, **added}
    if task["scorer"] == "numeric" and any("####" in str(row.get(fields["target"])) for row in rows):
        task["target_pattern"] = r"####\s*(\S+)"
    return task


def _guess(targets: Iterable[Any], *, has_choices: bool) -> tuple[str | dict[str, Any], str]:
    """Return the scorer that the right answers suggest, and a prompt for it."""
    texts = [str(target).strip() for target in targets]
    numbers = all(_NUMBER.fullmatch(text) for text in texts)
    if has_choices:
        ask = "{input}\n\n{choices}\n\nFinish with a line of the form: The answer is X."
        first = min((int(text) for text in texts), default=0) if numbers else None
        return ("choice" if first is None else {"kind": "choice", "index_from": min(first, 1)}), ask
    ask = "{input}\n\nReason step by step, and put the final answer within \\boxed{}."
    return ("numeric" if numbers else "exact"), ask


def config_text(
    name: str,
    models: Sequence[Listed],
    tasks: Sequence[Mapping[str, Any]],
    *,
    margin: float,
    trials: int | None,
    about_trials: str = "",
    api_key_env: str | None,
    sampling: Mapping[str, Any],
) -> str:
    """Return the text of a config, with a comment where a user will want to change something."""
    labels: list[str] = []
    for one in models:
        taken = sum(label == one.label or label.startswith(f"{one.label}.") for label in labels)
        labels.append(f"{one.label}.{taken + 1}" if taken else one.label)
    key = {} if api_key_env is None else {"api_key_env": api_key_env}
    listed = []
    for label, one in zip(labels, models, strict=True):
        asked = {"name": label, "model": one.model, "endpoints": [one.url], **key}
        listed.append({**asked, "sampling": dict(sampling), "concurrency": 16})
    goal, stopping = f"width={2 * margin:g}", {"confidence": 0.95}
    if len(models) > 1:
        goal, stopping = "ranking", {**stopping, "equivalence": margin}
    sections: list[tuple[str, dict[str, Any]]] = [
        ("", {"name": name, "seed": 1}),
        ("The name is the label in reports; sampling is sent exactly as written.", {"models": listed}),
        (
            "`adaptive-eval tasks NAME` shows the task of a ready benchmark; any key can be added.",
            {"tasks": [task["benchmark"] if [*task] == ["benchmark"] else dict(task) for task in tasks]},
        ),
        ("", {"goal": goal}),
        (
            "Models closer than equivalence count as tied: choose it as large as you can defend.",
            {"stopping": stopping},
        ),
    ]
    dear = "What is dear: trials, tokens, usd, or time (on own servers idle slots ask what may be needed)."
    sections.append((dear, {"spend": "trials"}))
    if trials is not None:
        sections.append((about_trials, {"budget": {"trials": trials}}))
    head = "# yaml-language-server: $schema=adaptive-eval.schema.json\n"
    return head + "".join(
        f"\n{f'# {comment}{chr(10)}' if comment else ''}{write_document(section)}"
        for comment, section in sections
    )


def write_one_line(models: Sequence[str], tasks: Sequence[str], margin: float | None, folder: Path) -> Path:
    """Write the config of models (``URL#NAME``) and tasks; return its file, which may be there already.

    Raises
    ------
    UsageError
        A model has no name, a task is unknown, or another config of this name is there.
    """
    listed = []
    for text in models:
        url, mark, name = text.rpartition("#")
        if not mark or not url or not name:
            raise UsageError(f"--model {text!r} is not URL#NAME, such as http://gpu1:8000/v1#qwen3-4b")
        listed.append(Listed(url, name))
    read = [task_of(task, None, None, folder) for task in tasks]
    name = "-".join(str(task.get("benchmark", task.get("name"))) for task in read)
    text = config_text(
        name,
        listed,
        read,
        margin=USUAL if margin is None else margin,
        trials=None,
        api_key_env=None,
        sampling={"temperature": 0.7, "max_tokens": 4096},
    )
    check(text, folder)
    file = folder / f"{name}.yaml"
    if file.exists() and file.read_text("utf-8") != text:
        raise UsageError(f"{file} is there and holds another config; rename it, or run it as it is")
    file.write_text(text, "utf-8")
    return file


@dataclass(frozen=True)
class Offer:
    """A margin, and what the ranking probably takes with it: an approximation from :data:`RUNS` runs."""

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
        runs = f"{RUNS} simulated runs with neighbours one margin apart"
        if self.enough:
            return f"About what 9 of 10 of {runs} needed."
        return f"All passes; {self.resolved} of {runs} were resolved by then. A larger margin needs fewer."


def offers(spec: SessionSpec, margins: Iterable[float]) -> list[Offer]:
    """Simulate the ranking with each margin, neighbours one margin apart, which is close to the worst case.

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
        one = replace(spec, stopping=replace(spec.stopping, equivalence=margin))
        answers = BiasedCoins(means_apart(len(spec.models), margin / spec.scale[1]))
        runs = simulate(one, answers, RUNS, seed=1, in_flight=1, workers=1)
        typical, nearly = (_rounded_up(float(np.quantile(runs.total, share))) for share in (0.5, 0.9))
        found.append(Offer(margin, typical, nearly, runs.reasons.get("resolved", 0)))
    return found


def suggested(offered: Sequence[Offer], trials: int | None = None) -> Offer:
    """Return the smallest margin that `trials` suffice for; without them, the usual or the next larger one.

    Where none does, the largest is returned.

    Examples
    --------
    >>> offered = [Offer(0.1, 500, 900, 20), Offer(0.05, 2000, 4000, 20), Offer(0.03, 9000, 9000, 3)]
    >>> suggested(offered).margin, suggested(offered, 4000).margin, suggested(offered, 100).margin
    (0.05, 0.05, 0.1)
    """
    fit = [
        offer
        for offer in offered
        if offer.enough and (offer.margin >= USUAL if trials is None else offer.trials <= trials)
    ]
    return min(fit, key=lambda offer: offer.margin, default=offered[0])


def _rounded_up(trials: float) -> int:
    """Return two significant digits, rounded up."""
    digits = 10 ** max(0, math.floor(math.log10(trials)) - 1)
    return int(math.ceil(trials / digits) * digits)


def check(text: str, folder: Path) -> Built:
    """Return the run of a config, checked as `validate` does, without asking the servers."""
    return build(parse_config(text, "the new config", folder))


def schema_text() -> str:
    """Return the JSON schema that the config names for editors."""
    return json.dumps(json_schema(), indent=1) + "\n"
