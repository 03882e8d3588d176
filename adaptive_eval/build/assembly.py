"""From a config to the parts of a run."""

from __future__ import annotations

import json
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any

from adaptive_eval import __version__
from adaptive_eval.build.anchors import Anchors, anchors_of
from adaptive_eval.build.changed_settings import (
    CHANGES,
    ChangedSetting,
    change_warnings,
    changes_of,
    dump_changes,
)
from adaptive_eval.build.grading import (
    Grading,
    GradingBudget,
    model_graded,
)
from adaptive_eval.build.model_clients import (
    ModelEndpoint,
    asked_temperature,
    endpoints_of,
    functions_of,
    model_clients_of,
    most_connections,
    server_limits,
    shortage,
    solvers_of,
)
from adaptive_eval.build.previous_runs import Previous, named_as, previous_of
from adaptive_eval.build.prompts import (
    RenderedPrompts,
    answer_key,
    own_tasks,
    require_accepted,
    require_tools,
)
from adaptive_eval.build.replay import replay_log
from adaptive_eval.build.rubrics import dump_thresholds, require_same_scoring, rubrics_of
from adaptive_eval.build.session_spec import (
    deadlines_of,
    question_policy,
    rounds_identity,
    samples_per_prompt_of,
    session_spec,
    worth_of,
)
from adaptive_eval.build.stored_answers import with_stored_answers
from adaptive_eval.config import RunConfig, parse_config
from adaptive_eval.config.run_config import difference
from adaptive_eval.core.label_record import LABELS, LabelRecord
from adaptive_eval.core.plugins import package_of
from adaptive_eval.core.results import Decision, Results
from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import SessionSpec
from adaptive_eval.core.stored_spec import SESSION, spec_to_json
from adaptive_eval.endpoints.function import Answerer
from adaptive_eval.engine.answer_watch import AnswerWatch
from adaptive_eval.engine.attempts import InProcess
from adaptive_eval.engine.discovery import Discovery
from adaptive_eval.engine.drift import DriftWatch
from adaptive_eval.engine.events import Observer
from adaptive_eval.engine.independence import AuditedExecutor, IndependenceAudit
from adaptive_eval.engine.judge_watch import JudgeWatch
from adaptive_eval.engine.protocols import Endpoint, Executor, Prompts
from adaptive_eval.engine.runner import Runner, RunnerOptions, with_limits
from adaptive_eval.engine.solving import Solvers
from adaptive_eval.engine.watches import Watches
from adaptive_eval.errors import RunMismatch, UsageError
from adaptive_eval.interop.found import IMPORTED
from adaptive_eval.options.decisions import POLICIES, POLICY_GROUP, RULE_GROUP, RULES
from adaptive_eval.options.scorers import CodeScorerConfig
from adaptive_eval.options.section import IN_INSPECT, INSPECT, PYTHON
from adaptive_eval.options.task_options import TaskConfig
from adaptive_eval.scoring.registry import Given, build_scorer
from adaptive_eval.scoring.rubric import Rubric, TaskScoring
from adaptive_eval.scoring.scorer import Scorer, TogetherScorer
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.tasks.load import load_task
from adaptive_eval.tasks.task import Task
from adaptive_eval.trial import AGAINST, Question, ScoreRange, TrialKey
from adaptive_eval.views.details import STARTED_AT, WORTH
from adaptive_eval.views.sentences import repeat_notices


@dataclass(frozen=True)
class PreparedRun:
    """A config with its data loaded and checked; nothing is started or spent yet."""

    config: RunConfig
    tasks: tuple[Task, ...]
    scorers: Mapping[str, Scorer]
    rubrics: Mapping[str, Rubric]
    continued: Mapping[str, str] | None = None  # description of the run file that is continued
    looked_at: int = 0  # its trials
    discoveries: Mapping[str, Discovery] = field(default_factory=dict)
    functions: Mapping[str, Answerer] = field(default_factory=dict)  # models that are functions
    solvers: Solvers = field(default_factory=dict)
    labels: LabelRecord | None = None  # which decide in the place of a judge
    started_at: float = field(default_factory=time.time)  # Unix time of a run that is new

    @cached_property
    def spec(self) -> SessionSpec:
        """The session's view of the run."""
        spec = session_spec(self.config, self.tasks, self.samples_per_prompt, self.own_tasks)
        chosen = question_policy(spec, self.config.models, self.continued)
        taken = self.previous
        found = replace(spec, allocation=chosen, references=taken.references, prior=taken.prior)
        return replace(found, labels=self.labels)

    @property
    def prompts(self) -> Prompts:
        """The messages of every question."""
        if self.drives_inspect:
            from adaptive_eval.interop.inspect_driver import InspectPrompts

            return InspectPrompts(self.tasks)
        return RenderedPrompts(self.tasks, self.own_tasks)

    @cached_property
    def own_tasks(self) -> dict[str, tuple[Task, ...]]:
        """The tasks as models with their own prompt are asked them."""
        return own_tasks(self.config.models, self.tasks)

    @cached_property
    def previous(self) -> Previous:
        """The models and priors from previous runs."""
        return previous_of(self.config, self.tasks, self.rubrics, self.judging, self.continued)

    @cached_property
    def changes(self) -> list[ChangedSetting]:
        """The settings that were changed after answers had been looked at."""
        return changes_of(self.config, self.continued, self.looked_at, time.time())

    @cached_property
    def identity(self) -> dict[str, Any]:
        """The identity of a trial of this run, with the content of its datasets."""
        identity = self.config.trial_identity()
        for task in self.tasks:
            identity["tasks"][task.name]["dataset"] = task.content_hash
        identity["samples_per_request"] = self.samples_per_prompt
        code: dict[str, str] = {}
        for model in self.config.models:
            code |= self._code(model.function)
        for solver in [task.solver for task in self.config.tasks if task.solver is not None]:
            code |= self._code(solver.function)
        if code:
            identity["code"] = code
        return identity | rounds_identity(self.spec)

    @cached_property
    def samples_per_prompt(self) -> int:
        """Samples per prompt."""
        return samples_per_prompt_of(self.config, self.tasks)

    @property
    def drives_inspect(self) -> bool:
        """Whether Inspect runs the trials."""
        return any(task.dataset.startswith(INSPECT) for task in self.config.tasks)

    @property
    def notices(self) -> tuple[str, ...]:
        """Notices for a person, before the run starts."""
        notices = []
        for task in self.config.tasks:
            for section in task.scorer.sections:
                if isinstance(section, CodeScorerConfig):
                    from adaptive_eval.scoring.sandbox import sandbox_notice

                    notices.append(f"task {task.name}: {sandbox_notice(section.python)}")
        if not self.drives_inspect:  # of a sample of Inspect only the text is known
            notices += [
                f"task {one.name}: {one.repeated:,} of {len(one.questions):,} questions repeat an earlier "
                "one, and each counts in full; remove the repeats"
                for one in self.tasks
                if one.repeated
            ]
        notices += repeat_notices(self.spec)
        if self.config.references and not self.spec.references:
            notices.append(_first_of_series(self.config))
        if few := shortage(self.config, most_connections()):
            notices.append(few)
        return tuple(notices)

    def with_stored_answers(self) -> PreparedRun:
        """Return the same with the stored answers that judges compare with."""
        base = self.config.base_dir
        meta = self.continued or {}
        tasks = [with_stored_answers(task, self.scorers[task.name], base, meta) for task in self.tasks]
        return replace(self, tasks=tuple(tasks))

    def session(self, remarks: Callable[[], tuple[str, ...]] = tuple) -> Session:
        """Return a fresh session that shows `remarks` with its own warnings."""
        changed = tuple(change_warnings(self.changes))
        return Session(self.spec, lambda: (*changed, *remarks()))

    def meta(self) -> dict[str, str]:
        """Return the description of a run for its run file."""
        config = self.config
        versions = {name: version(name) for name in ("numpy", "scipy", "aiohttp", "openai", "tenacity")}
        versions = {"adaptive-eval": __version__, "python": platform.python_version(), **versions}
        versions |= dict(self._plugins())
        against = {}
        for task in self.tasks:
            if task.against:
                scorer = self.config.task(task.name).scorer
                against[task.name] = {scorer.identity()["against"]: task.against}
        if against:
            compared = {AGAINST: json.dumps(against)}
        else:
            compared = {}
        return {
            "name": config.name,
            "config": config.text,
            "source": config.source,
            "base_dir": str(config.base_dir.resolve()),
            "config_hash": config.hash(),
            "identity": json.dumps(self.identity),
            "scoring": json.dumps(self.judging),
            WORTH: json.dumps(worth_of(self.spec)),
            "thresholds": dump_thresholds(self.rubrics),
            CHANGES: dump_changes(self.changes),
            **self.previous.meta(),
            **compared,
            "seed": str(config.seed),
            LABELS: "" if self.labels is None else self.labels.to_json(),
            SESSION: spec_to_json(self.spec),
            STARTED_AT: str(self.started_at),
            "versions": json.dumps(versions),
        }

    @cached_property
    def judging(self) -> dict[str, dict[str, Any]]:
        """What decides the category of an answer, by task, as JSON-able data."""
        found = {}
        for task in self.tasks:
            config = self.config.task(task.name)
            found[task.name] = {**config.scoring_identity(), "missing": list(self.config.on.missing)}
            for section in config.scorer.sections:
                found[task.name] |= self._code(getattr(section, "function", None))
        return found

    def _code(self, function: str | None) -> dict[str, str]:
        """Return the checksum of the file beside the config, by name, that a user's function is in."""
        module = (function or "").removeprefix(PYTHON).rpartition(":")[0]
        name = module
        if not module.endswith(".py"):
            name = f"{module.replace('.', '/')}.py"
        file = self.config.base_dir / name
        if module and file.is_file():
            return {name: sha256(file.read_bytes()).hexdigest()}
        return {}

    def _plugins(self) -> Iterator[tuple[str, str]]:
        """Yield the rule and policy of installed packages that the run decides by, with their versions."""
        for kind, group, name, own in (
            ("rule", RULE_GROUP, self.spec.stopping.rule, RULES),
            ("policy", POLICY_GROUP, self.spec.allocation.models, POLICIES),
        ):
            if name not in own:
                yield f"{kind} {name}", package_of(group, name)

    def endpoints(
        self, mimic_url: str | None, directory: Path | None = None
    ) -> dict[str, tuple[ModelEndpoint, ...]]:
        """Return the endpoints of every model; `mimic_url` replaces the word mimic."""
        asked = [model for model in self.config.models if IN_INSPECT not in model.addresses]
        started = self.started_at if self.continued is None else self.continued.get(STARTED_AT)
        notes = None if directory is None else directory / "batches.jsonl"
        return endpoints_of(asked, mimic_url, self.functions, f"{self.config.name} {started}", notes)

    def start_mimic(self, stack: ExitStack | AsyncExitStack) -> str | None:
        """Start the config's own server of biased coins, if it is asked; return its base URL."""
        mimic = self.config.mimic
        asked = any(model.uses_mimic for model in self.config.models)
        if mimic is None or not asked:
            return None
        from adaptive_eval.mimic.process import MimicProcess

        questions: dict[tuple[str, str], dict[str, Any]] = {}
        for task in (*self.tasks, *chain.from_iterable(self.own_tasks.values())):
            for known in answer_key(task, self.config.task(task.name).scorer):
                questions.setdefault((known["id"], known["question"]), known)
        return stack.enter_context(MimicProcess(mimic.spec(questions.values()))).base_url

    def watches(self) -> Watches:
        """Return watches over the answers that have not seen any."""
        config = self.config
        sampled = [model for model in config.models if not model.deterministic]
        may_be_cut = [
            section.name
            for section in config.tasks
            if section.scorer.has("choice_probability")  # which asks for one token
            or "truncated" in section.rubric.model_fields_set
            or "length" in config.on.model_fields_set
        ]
        ranges = {}
        for task in self.spec.tasks:
            if isinstance(task.weights, ScoreRange):
                ranges[task.name] = task.weights
        temperatures = {model.name: asked_temperature(model) for model in sampled}
        anchors = {name: one.number for name, one in self.anchors.items()}
        return Watches(
            AnswerWatch(
                may_be_cut,
                asked=[model.name for model in config.models],
                ranked=config.on.mostly_empty == "rank",
                nothing_is_wrong=config.on.nothing_found == "wrong",
            ),
            IndependenceAudit(temperatures, independent=config.on.copies == "independent"),
            DriftWatch(ranges),
            JudgeWatch(anchors),
        )

    def rebuild(self, session: Session, reader: RunReader, watches: Watches) -> list[Decision]:
        """Replay a run file into a fresh session, past the `watches`; return what was decided."""

        def text_of(key: TrialKey) -> str:
            found = [record.completion for record in reader.trials(model=key.model, step=key.index)]
            return "".join(completion.text for completion in found if completion is not None)

        log = watches.read_back(session, reader.logged(), text_of)
        return replay_log(session, reader, self.changes, log)

    def runner(
        self,
        session: Session,
        writer: RunWriter,
        endpoints: Mapping[str, Sequence[Endpoint]],
        *,
        watches: Watches | None = None,
        elapsed: float = 0.0,
        observer: Observer | None = None,
        executor: Executor | None = None,
        allow_missing: bool = False,
    ) -> Runner:
        """Return the runner that drives `session` against `endpoints` and stores everything in `writer`.

        The `executor` makes the attempts and scores the answers; default: this process. With `allow_missing`
        a model whose very first request is refused does not end the run.
        """
        executor = executor or InProcess(self.grading)
        watches = watches or self.watches()
        executor = AuditedExecutor(executor, watches.copies)
        retry = self.config.retry
        if self.drives_inspect:  # Inspect tries a sample again by itself, and runs no epoch of it twice
            retry = retry.model_copy(update={"attempts": 1, "requeue": 0})
        samples = {
            model.name: self.config.samples(model, self.samples_per_prompt) for model in self.config.models
        }
        with writer.reader() as reader:
            unfinished = reader.unfinished()
            fastest = reader.fastest_answers()
        return Runner(
            session,
            writer,
            model_clients_of(self.config, endpoints, retry, samples, self.discoveries, self.solvers),
            servers=server_limits(self.config, endpoints),
            prompts=self.prompts,
            executor=executor,
            options=RunnerOptions(
                deadlines=deadlines_of(self.config),
                at_deadline=self.config.budget.at_deadline,
                elapsed=elapsed,
                allow_missing=allow_missing,
                reached=watches.answers.answered,
                unfinished=unfinished,
                fastest=fastest,
            ),
            observer=observer,
            watches=watches,
            scoring_budget=self.scoring_budget(),
        )

    def with_limits(self, results: Results, elapsed: float) -> Results:
        """Add to the results of a replayed session what the runner adds to those of a running one."""
        deadlines = deadlines_of(self.config).lines(elapsed)
        return with_limits(results, deadlines=deadlines, scoring_budget=self.scoring_budget())

    def scoring_budget(self) -> GradingBudget | None:
        """Return the accounts of judges and verifiers; None if there are none."""
        if model_graded(self.scorers):
            return GradingBudget(self.tasks, self.scorers)
        return None

    @cached_property
    def anchors(self) -> dict[str, Anchors]:
        """Answers by task that a judge is shown again."""
        return anchors_of(self.tasks, self.scorers, [model.name for model in self.config.models])

    @property
    def grading(self) -> Grading:
        """The scorers at work in this process."""
        return Grading(self.tasks, self.scoring, anchors=self.anchors)

    @property
    def scoring(self) -> dict[str, TaskScoring]:
        """The judging of each task: from answers to categories."""
        return {
            task.name: TaskScoring(self.scorers[task.name], self.rubrics[task.name], self.config.on.missing)
            for task in self.tasks
        }


def _first_of_series(config: RunConfig) -> str:
    """Say that a run has no earlier one to compare with, and which would belong to its series."""
    words = "there is no earlier run to compare with, so this one is the first of its series"
    if all(section.run is not None for section in config.references):
        return words
    return (
        f"{words}: of the runs that ask and score the same, none is {named_as(config.name)}. For another "
        'pattern write references: [{run: "runs/NAME-*", series: previous}]'
    )


def build(
    config: RunConfig,
    functions: Mapping[str, Answerer] = MappingProxyType({}),
    scorers: Given = MappingProxyType({}),
) -> PreparedRun:
    """Load and check the data of a config; `functions` and `scorers` are what it has as objects."""
    if names_functions(config):
        make_importable(config.base_dir)
    if any(task.dataset.startswith(INSPECT) for task in config.tasks):
        from adaptive_eval.interop.inspect_driver import require_drivable

        require_drivable(config)
        if config.executor.kind != "local":
            raise UsageError("executor: Inspect runs its tasks in this process; leave the executor out")
    elif any(IN_INSPECT in model.addresses for model in config.models):
        raise UsageError(f"the endpoint {IN_INSPECT} is for tasks of Inspect; give the model's base URL")
    made = {task.name: _scorer_of(task, scorers) for task in config.tasks}
    tasks = tuple(load_task_of(config, task, made[task.name].check_target) for task in config.tasks)
    named = functions_of(config)
    require_accepted(config.models, tasks, {**functions, **named})
    require_tools(config.tasks, tasks)
    return PreparedRun(config, tasks, made, rubrics_of(config), functions=named, solvers=solvers_of(config))


def _scorer_of(task: TaskConfig, given: Given) -> Scorer:
    scorer = build_scorer(task.scorer.kind, task.scorer.options(), given)
    if task.answers is None:
        return scorer
    return TogetherScorer(scorer, task.answers.by)


def load_task_of(
    config: RunConfig, task: TaskConfig, check_target: Callable[[Question], str | None] | None = None
) -> Task:
    """Load the data of one task of a config."""
    source = config.dataset_source(task)
    return load_task(task, source, config.base_dir, seed=config.seed, check_target=check_target)


def names_functions(config: RunConfig) -> bool:
    """Whether the config names functions of the user, which building it imports."""
    named = any(model.function is not None for model in config.models)
    tasks = config.tasks
    named = named or any(task.solver is not None for task in tasks)
    return named or any(task.dataset.startswith(PYTHON) or task.scorer.has("python") for task in tasks)


def make_importable(folder: Path) -> None:
    """Let Python import the functions that a config names from its `folder`.

    The folder comes before those of configs that the process has built previously.
    """
    place = str(folder.resolve())
    sys.path[:] = [place, *(other for other in sys.path if other != place)]


def _way_out(directory: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return what to do about a config that asks for other trials than a run."""
    new = [name for name in now["models"] if name not in before["models"]]
    rest = {**now, "models": {name: one for name, one in now["models"].items() if name not in new}}
    if not new or difference(before, rest):
        return "Undo the change, or keep the old run and start a new one with run --new."
    return (
        "To compare it with answers that are paid for, write a config of another name with only "
        f"{', '.join(new)} under models, and add the line\n"
        f"  references: [{{run: {directory.resolve()}, models: [{', '.join(before['models'])}]}}]\n"
        "run --new would ask all models again."
    )


def continue_run(built: PreparedRun, directory: Path) -> RunWriter:
    """Open the run in `directory` to continue it under the given config."""
    writer = RunWriter.open(directory)
    try:
        with writer.reader() as reader:
            stored = json.loads(reader.meta()["identity"])
            scored = json.loads(reader.meta().get("scoring", "null"))
        differences = difference(stored, built.identity)
        if differences:
            listed = "\n".join(f"  {line}" for line in differences)
            raise RunMismatch(
                f"{directory}: the config now asks for other trials than those stored there:\n{listed}\n"
                f"{_way_out(directory, stored, built.identity)}"
            )
        require_same_scoring(directory, scored, json.loads(json.dumps(built.judging)), built.config.tasks)
        for key, value in built.meta().items():
            if key not in ("started_at", "thresholds"):  # thresholds stay as they were frozen
                writer.set_meta(key, value)
        writer.commit()
    except BaseException:
        writer.close()
        raise
    return writer


def config_of_run(reader: RunReader, overrides: Sequence[str] = ()) -> RunConfig:
    """Return the config stored in a run file, with `overrides` (``key=value``) applied."""
    meta = reader.meta()
    if IMPORTED in meta:
        raise UsageError(
            f"{reader.directory} holds imported results and no config: it cannot be resumed or rescored. "
            "Import the logs again with another --scorer, or name the run in references or prior of a config"
        )
    return parse_config(meta["config"], meta["source"], meta["base_dir"], overrides)
