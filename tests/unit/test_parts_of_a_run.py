"""The parts of a run made from a config: each model and task has the settings of its own section.

A part of a run of several is compared with that of a run of this one alone, and with what was written.
"""

import json
from dataclasses import replace
from itertools import permutations

import pytest
from config_texts import with_changes

from adaptive_eval.build.assembly import build, continue_run
from adaptive_eval.build.changed_settings import change_warnings
from adaptive_eval.build.grading import GradingBudget, grading_model_of, model_graded
from adaptive_eval.build.model_clients import model_clients_of, server_limits
from adaptive_eval.build.prompts import kinds_in
from adaptive_eval.build.rubrics import with_stored_thresholds
from adaptive_eval.build.session_spec import as_configured, deadlines_of, worth_of
from adaptive_eval.config.load_config import config_from_data, parse_config
from adaptive_eval.core.label_record import LabelRecord
from adaptive_eval.core.spec import BudgetSpec, Price, PriorSpec, ReferenceSpec
from adaptive_eval.core.stored_spec import spec_to_json
from adaptive_eval.errors import RunMismatch, UsageError
from adaptive_eval.options.limit_options import RateLimit, SharedLimits
from adaptive_eval.options.request_options import RetryConfig
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.trial import Completion, Conversation, Message, ScoreRange, TrialKey, TrialRequest

SERVERS = {"a": ["http://a1/v1", "http://a2/v1/"], "b": ["http://b/v1"], "c": ["http://c/v1"]}
MODELS = {
    "a": {
        "model": "org/a",
        "sampling": {"max_tokens": 64, "temperature": 0.7},
        "price": {"input": 1.0, "output": 4.0},
        "budget": {"trials": 300, "wall_clock": "90s"},
        "concurrency": 5,
        "samples_per_request": 3,
        "rate_limit": {"requests_per_minute": 60},
        "timeout": {"total": 5},
        "prompt": "Please: {input}",
        "send_seed": False,
    },
    "b": {
        "sampling": {"max_completion_tokens": 128},
        "extra_body": {"temperature": 0, "top_k": 1},
        "budget": {"tokens": "9k"},
        "system": "Be brief.",
        "timeout": {"total": 70},
        "rate_limit": {"tokens_per_minute": 5000},
    },
    "c": {
        "api": "completions",
        "sampling": {"max_tokens": 32, "temperature": 1.5},
        "deterministic": True,
        "price": {"input": 3.0, "output": 5.0},
        "batch": True,
    },
}
JUDGE = {"kind": "judge", "endpoint": "http://judge/v1", "price": {"input": 1.0, "output": 2.0}}
TASKS = {
    "words": {
        "scorer": {"kind": "judge", **JUDGE, "model": "one", "budget": {"requests": 40}, "concurrency": 2},
        "weight": 3.0,
        "budget": {"tokens": "30k", "wall_clock": "1h"},
        "system": "You are a poet.",
    },
    "stars": {
        "scorer": {"kind": "python", "function": "stars.py:stars", "range": [-1, 3]},
        "fields": {"cluster": "page"},
        "prompt": "{input}\n\nPage {page}",
    },
    "sums": {
        "scorer": "numeric",
        "rubric": {"weights": [1, 5], "truncated": "judged"},
        "shuffle": 3,
        "budget": {"trials": 900},
    },
    "options": {
        "scorer": {"kind": "judge", **JUDGE, "model": "two", "budget": {"requests": 9}, "range": [1, 5]},
        "shuffle_options": True,
        "fields": {"choices": "answers"},
        "prompt": "{input}\n{choices}",
    },
}


def sections(models, tasks):
    named = [{"name": name, "endpoints": SERVERS[name], **MODELS[name]} for name in models]
    return {
        "name": "demo",
        "models": named,
        "tasks": [{"name": name, "dataset": f"{name}.jsonl", **TASKS[name]} for name in tasks],
        "stopping": {"target": "population", "equivalence": 0.1},
        "on": {"discarded": ["timeout", "server"]},
        "budget": {"trials": 5000, "wall_clock": "2h", "usage_on_failure": "prompt-only"},
        "servers": [
            {"url": "http://a2/v1/", "concurrency": 2},
            {"url": "http://c/v1", "rate_limit": {"requests_per_minute": 7}},
        ],
    }


OPTIONS = {"answers": ["0", "1"]}


def written(folder):
    """Write datasets of different sizes, with ids in common."""
    (folder / "stars.py").write_text("def stars(answer, question):\n    return 1.0\n", "utf-8")
    for size, name in enumerate(TASKS, start=4):
        rows = [
            {
                "id": f"q{n}",
                "input": f"{name} {n}" * size,
                "target": "1",
                "page": n // 2,
                "answers": ["0", "1"],
            }
            for n in range(size)
        ]
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return written(tmp_path_factory.mktemp("parts"))


_BUILT = {}


def built(folder, models="abc", tasks=tuple(TASKS)):
    key = (tuple(models), tuple(tasks))
    if key not in _BUILT:
        data = sections(*key)
        asked = {url for name in models for url in SERVERS[name]}
        data["servers"] = [one for one in data["servers"] if one["url"] in asked]
        data["goal"] = "width=0.1"
        _BUILT[key] = build(config_from_data(data, folder))
    return _BUILT[key]


ORDERS = list(permutations("abc"))[::2]
TURNS = [tuple(TASKS), tuple(TASKS)[::-1]]


def asked(built, model, task, question="q1", seed=11):
    """Return the messages of a trial."""
    request = TrialRequest(TrialKey(model, 0), task, question, 0, seed)
    return [(message.role, message.content) for message in built.prompts.messages(request)]


def of_model(run, name):
    """Return the parts of a run that are of one model."""
    endpoints = run.endpoints(None)
    client = model_clients_of(run.config, endpoints, RetryConfig(), dict.fromkeys(endpoints, 2))[name]
    times = deadlines_of(run.config)
    bodies = [one.body([], seed=5, n=2) for one in endpoints[name]]
    (spec,) = [one for one in run.spec.models if one.name == name]
    return {
        "spec": spec,
        "identity": run.identity["models"][name],
        "asked": [asked(run, name, task.name) for task in run.tasks],
        "bodies": bodies,
        "urls": [one.url for one in endpoints[name]],
        "connect": [one._exchange._connect_timeout for one in endpoints[name]],
        "limit": (type(client.limit).__name__, getattr(client.limit, "slots", None)),
        "client": (client.rate, client.answer_tokens, client.batched, client.repeats, client.time_limit),
        "servers": {
            url: one for url, one in server_limits(run.config, endpoints).items() if f"//{name}" in url
        },
        "time": times.models.get(name),
        "temperature": run.watches().copies._models[name].temperature
        if name in run.watches().copies._models
        else None,
    }


@pytest.mark.parametrize("order", ORDERS, ids="".join)
@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_asked_as_its_own_section_says(folder, order, name):
    assert of_model(built(folder, order), name) == of_model(built(folder, name), name)


def test_what_sections_of_models_say(folder):
    run = built(folder)
    none = BudgetSpec()
    facts = [
        (one.name, one.max_tokens, one.price, one.budget, one.deterministic, one.greedy)
        for one in run.spec.models
    ]
    assert facts == [
        ("a", 64, Price(1.0, 4.0), BudgetSpec(trials=300, wall_clock=90.0), False, False),
        ("b", 128, None, BudgetSpec(tokens=9000), False, True),
        ("c", 32, Price(3.0, 5.0), none, True, False),
    ]
    a, b, c = (of_model(run, name) for name in "abc")
    assert [one["time"] for one in (a, b, c)] == [90.0, None, None]
    assert a["client"] == (RateLimit(requests_per_minute=60), 64, False, False, 5.0)
    assert b["client"][:4] == (RateLimit(tokens_per_minute=5000), 128, False, True)
    assert c["client"][:4] == (RateLimit(), 32, True, True)
    assert [one["limit"][0] for one in (a, b, c)] == ["FixedConcurrency", "NoneType", "BatchRounds"]
    assert [one["temperature"] for one in (a, b, c)] == [0.7, 0.0, None]
    assert a["urls"] == ["http://a1/v1", "http://a2/v1"]
    assert [one["connect"] for one in (a, b, c)] == [[5.0, 5.0], [10.0], [10.0]]
    assert (
        a["bodies"] == [{"model": "org/a", "messages": [], "n": 2, "temperature": 0.7, "max_tokens": 64}] * 2
    )
    cold = {"temperature": 0, "top_k": 1, "max_completion_tokens": 128}
    assert b["bodies"] == [{"model": "b", "messages": [], "n": 2, "seed": 5, **cold}]
    assert c["bodies"][0]["prompt"] == ""
    assert {url: (one.concurrency, one.rate_limit) for url, one in a["servers"].items()} == {
        "http://a2/v1": (2, None)
    }
    assert [one.rate_limit.requests_per_minute for one in c["servers"].values()] == [7]
    assert isinstance(next(iter(a["servers"].values())), SharedLimits)


def test_prompts_and_systems_take_the_place_of_the_tasks_own(folder):
    run = built(folder)
    poem, plain = ("system", "You are a poet."), "words 1" * 4
    assert asked(run, "a", "words") == [poem, ("user", f"Please: {plain}")]
    assert asked(run, "b", "words") == [("system", "Be brief."), ("user", plain)]
    assert asked(run, "c", "words") == [poem, ("user", plain)]
    page = "stars 1" * 5
    assert [asked(run, name, "stars")[-1][1] for name in "abc"] == [
        f"Please: {page}", f"{page}\n\nPage 0", f"{page}\n\nPage 0",
    ]  # fmt: skip
    assert asked(run, "b", "stars")[0] == ("system", "Be brief.")
    assert asked(run, "c", "stars")[0][0] == "user"


def of_task(run, name):
    """Return the parts of a run that are of one task."""
    (spec,) = [one for one in run.spec.tasks if one.name == name]
    (task,) = [one for one in run.tasks if one.name == name]
    watches = run.watches()
    question = task.by_id["q1"]
    cut = Completion("\\boxed{1}", "length")
    judged = None
    if name == "sums":
        judged = run.scoring[name].score(cut, question)
    anchors = run.anchors.get(name)
    return {
        "spec": [getattr(spec, field) for field in type(spec).__slots__],
        "weights": (type(spec.weights).__name__, *spec.weights),
        "identity": run.identity["tasks"][name],
        "judging": run.judging[name],
        "cut": name in watches.answers._may_be_cut,
        "range": watches.drift._ranges.get(name),
        "anchors": watches.judges._judges.get(name) and anchors.number,
        "score": judged,
        "time": deadlines_of(run.config).tasks.get(name),
        "worths": worth_of(run.spec)[name]["worths"],
    }


@pytest.mark.parametrize("turn", TURNS, ids="-".join)
@pytest.mark.parametrize("name", TASKS)
def test_a_task_is_scored_and_counted_as_its_own_section_says(folder, turn, name):
    beside = ["sums"] if name == "options" else []  # whose options are shuffled in every trial
    alone, among = built(folder, "abc", [name, *beside]), built(folder, "abc", turn)
    assert of_task(among, name) == of_task(alone, name)


def test_what_sections_of_tasks_say(folder):
    run = built(folder)
    words, stars, sums, options = run.spec.tasks
    assert [one.weight for one in run.spec.tasks] == [3.0, 1.0, 1.0, 1.0]
    assert [one.weights for one in (words, sums)] == [(0.0, 1.0), (1.0, 5.0)]
    assert [one.weights for one in (stars, options)] == [ScoreRange((-1, 3)), ScoreRange((1, 5))]
    assert [one.clusters for one in run.spec.tasks] == [None, ("0", "0", "1", "1", "2"), None, None]
    assert [one.prompt_varies for one in run.spec.tasks] == [False, False, False, True]
    none = BudgetSpec()
    limits = [BudgetSpec(tokens=30_000, wall_clock=3600.0), none, BudgetSpec(trials=900), none]
    assert [one.budget for one in run.spec.tasks] == limits
    assert deadlines_of(run.config).tasks == {"words": 3600.0}
    assert deadlines_of(run.config).run == 7200.0
    assert [len(one.questions) for one in run.spec.tasks] == [4, 5, 6, 7]
    parts = [of_task(run, name) for name in TASKS]
    assert [one["cut"] for one in parts] == [False, False, True, False]
    assert [one["range"] for one in parts] == [None, ScoreRange((-1, 3)), None, ScoreRange((1, 5))]
    assert [bool(one["anchors"]) for one in parts] == [True, False, False, True]
    assert parts[2]["score"].category == 1
    assert (run.spec.redrawn, run.spec.usage_on_failure) == ({"timeout", "server"}, "prompt-only")


def test_a_reserved_prompt_is_the_longest_that_a_model_is_sent(folder):
    """Of each question, over all models, whichever comes last."""
    for order in ORDERS:
        spec = built(folder, order).spec
        for number, name in enumerate(TASKS):
            alone = [built(folder, one).spec.tasks[number].prompt_bounds for one in order]
            assert spec.tasks[number].prompt_bounds == tuple(map(max, *alone)), name
            assert len(set(alone)) > 1


def test_the_budget_of_each_judge_ends_the_run_by_itself(folder):
    """40 and 9 requests, two an answer, of which so many are spent."""
    for turn in TURNS:
        data = sections("ab", turn)
        data["servers"] = data["servers"][:1]
        run = build(config_from_data(data, folder))
        budget = GradingBudget(run.tasks, run.scorers)
        graders = model_graded(run.scorers)
        assert list(graders) == [name for name in turn if name in ("words", "options")]
        assert (budget.room(), budget.spent()["owner"]) == (4, "judge of options")
        for task, spent, room, first in (("words", 36, 2, "words"), ("options", 9, 0, "options")):
            grading_model_of(graders[task]).account.trials += spent
            assert (budget.room(), budget.spent()["owner"]) == (room, f"judge of {first}")
        lines = {line.owner: (line.spent, line.limit) for line in budget.lines() if line.name == "requests"}
        assert lines == {"judge of words": (36, 40), "judge of options": (9, 9)}


# Settings that change between two sessions: the stored session with the changed config is the new one.


CHANGES = {
    "tasks.0.weight": 2.0,
    "tasks.2.weight": 0.5,
    "tasks.2.rubric.weights": [0, 7],
    "tasks.0.budget": {"trials": 50},
    "tasks.3.budget": {"tokens": "70k"},
    "models.0.price": {"input": 2.0, "output": 9.0},
    "models.2.price": None,
    "models.1.budget": {"trials": 44},
    "models.1.deterministic": True,
    "stopping.confidence": 0.9,
    "stopping.max_passes": 4,
    "goal": {"kind": "top-k", "k": 2},
    "overall": "pooled",
    "spend": "tokens",
    "budget.trials": 70,
    "budget.usage_on_failure": "none",
    "on.discarded": ["timeout"],
    "on.copies": "independent",
    "allocation.models": "uniform",
}


def changed(folder, changes):
    return parse_config(with_changes(changes, sections("abc", TASKS)), base_dir=folder)


@pytest.mark.parametrize("place", CHANGES)
def test_a_stored_session_under_a_changed_setting_is_that_of_the_changed_config(folder, place):
    first = build(changed(folder, {}))
    kept = ReferenceSpec("old", {}, "from a run")
    prior = PriorSpec({"a": {}}, "from a run")
    stored = replace(first.spec, references=(kept,), prior=prior)
    config = changed(folder, {place: CHANGES[place]})
    again = as_configured(config, stored)
    assert (again.references, again.prior) == ((kept,), prior)
    new = build(config).spec
    for part in type(new).__slots__ if hasattr(type(new), "__slots__") else vars(new):
        if part in ("references", "prior"):
            continue
        one, other = getattr(again, part), getattr(new, part)
        if part == "tasks":
            one = [[getattr(task, field) for field in type(task).__slots__] for task in one]
            other = [[getattr(task, field) for field in type(task).__slots__] for task in other]
        assert one == other, part


# Code of the user, and what a continued run keeps, notes and refuses.


FUNCTIONS = {
    "answer.py": "def answer(prompt):\n    return prompt\n",
    "one.py": "async def solve(model, messages):\n    return await model(messages)\n",
    "tools/two.py": "async def solve(model, messages):\n    return await model(messages)\n",
    "short.py": "def short(answer, question):\n    return len(answer) < 9\n",
    "long.py": "def long(answer, question):\n    return len(answer) > 2\n",
}
IN_CODE = {
    "name": "coded",
    "models": [
        {"name": "f", "endpoints": ["python:answer.py:answer"]},
        {"name": "g", "endpoints": ["http://g/v1"]},
        {"name": "h", "endpoints": ["python:answer:answer"]},
    ],
    "tasks": [
        {"name": "first", "scorer": "exact", "solver": {"function": "python:one.py:solve"}},
        {"name": "second", "scorer": "exact", "solver": {"function": "python:tools.two:solve"}},
        {"name": "third", "scorer": ["numeric", "short.py:short", "long.py:long"]},
        {"name": "fourth", "scorer": "long.py:long"},
    ],
}


def coded(folder, **changes):
    tasks = [{**task, "dataset": "sums.jsonl"} for task in IN_CODE["tasks"]]
    return build(config_from_data({**IN_CODE, "tasks": tasks, **changes}, folder))


@pytest.mark.slow
def test_the_code_of_every_function_is_part_of_what_a_run_is(tmp_path):
    """What asks is of the trials, what scores of its own task; no other file is."""
    written(tmp_path)
    (tmp_path / "tools").mkdir()
    for name, code in FUNCTIONS.items():
        (tmp_path / name).write_text(code, "utf-8")
    before = coded(tmp_path)
    assert before.identity["code"].keys() == {"answer.py", "one.py", "tools/two.py"}
    files = {name: {key for key in judged if key.endswith(".py")} for name, judged in before.judging.items()}
    assert files == {"first": set(), "second": set(), "third": {"short.py", "long.py"}, "fourth": {"long.py"}}
    for name, code in FUNCTIONS.items():
        (tmp_path / name).write_text(f"{code}\n# changed", "utf-8")
        now = coded(tmp_path)
        of_trials, of_scores = name in before.identity["code"], name in ("short.py", "long.py")
        assert (now.identity != before.identity, now.judging != before.judging) == (of_trials, of_scores)
        changed_tasks = {task for task in files if now.judging[task] != before.judging[task]}
        assert changed_tasks == {task for task, judged in files.items() if name in judged}
        (tmp_path / name).write_text(code, "utf-8")
    usual = set(before.judging["fourth"]["missing"])
    for words in ({"length"}, {"length", "empty"}):
        more = coded(tmp_path, on=dict.fromkeys(words, "missing")).judging["fourth"]["missing"]
        assert set(more) - usual - {"calls"} == words


STEPS = [
    ({"tasks.0.weight": 2.0}, [("tasks[words].weight", 3.0, 2.0)]),
    ({"tasks.0.weight": 2.0, "models.1.deterministic": True}, [("models[b].deterministic", False, True)]),
    (
        {"stopping.confidence": 0.9, "models.1.deterministic": True},
        [("stopping.confidence", 0.95, 0.9), ("tasks[words].weight", 2.0, 3.0)],
    ),
]


def test_a_run_that_is_continued_three_times_keeps_its_start_and_thresholds_and_notes_every_change(
    folder, tmp_path
):
    first = build(changed(folder, {}))
    thresholds = json.dumps({"sums": {"len_p33": {"value": 0.5, "source": "observed"}}})
    with RunWriter.create(tmp_path / "run", meta=first.meta(), durability="normal") as writer:
        writer.set_meta("thresholds", thresholds)
        writer.commit()
    noted = []
    for number, (changes, expected) in enumerate(STEPS):
        with RunReader(tmp_path / "run") as reader:
            stored = reader.meta()
        again = replace(build(changed(folder, changes)), continued=stored, looked_at=7 + number)
        with continue_run(again, tmp_path / "run") as writer, writer.reader() as reader:
            meta = reader.meta()
        noted += [(7 + number, *one) for one in expected]
        found = [
            (one["trials"], one["setting"], one["before"], one["now"]) for one in json.loads(meta["changes"])
        ]
        assert sorted(found, key=str) == sorted(noted, key=str)
        assert (meta["started_at"], meta["thresholds"]) == (stored["started_at"], thresholds)
        assert json.loads(meta["worth"])["sums"]["worths"] == [1.0, 5.0]
        assert parse_config(meta["config"], meta["source"], meta["base_dir"]).hash() == again.config.hash()
        assert meta["session"] == spec_to_json(again.spec)
        words = " ".join(change_warnings(again.changes))
        assert all(setting in words for _, setting, *_ in noted)


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ("models.1.extra_body", {"temperature": 0, "top_k": 2}, "model 'b'"),
        ("models.2.sampling.max_tokens", 33, "model 'c'"),
        ("tasks.1.prompt", "{input} {page}", "task 'stars'"),
        ("tasks.2.scorer", {"kind": "numeric", "tolerance": 0.5}, "task 'sums'"),
        ("tasks.2.rubric.truncated", "zero", "task 'sums'"),
        ("tasks.3.scorer.model", "three", "task 'options'"),
        ("on.length", "missing", "missing"),
        ("models.0.samples_per_request", 2, "samples_per_request"),
    ],
)
def test_a_run_is_not_continued_with_other_trials_or_scores_of_any_part(
    folder, tmp_path, place, value, words
):
    with RunWriter.create(tmp_path / "run", meta=build(changed(folder, {})).meta(), durability="normal"):
        pass
    with RunReader(tmp_path / "run") as reader:
        before = reader.meta()
    with pytest.raises(RunMismatch, match=words):
        continue_run(build(changed(folder, {place: value})), tmp_path / "run")
    with RunReader(tmp_path / "run") as reader:
        assert reader.meta() == before


# A resumed run: what earlier sessions have spent, and what they had begun.


def test_what_a_run_has_used_up_and_lost_is_known_to_its_next_session(folder, tmp_path):
    run = build(changed(folder, {"models.1.extra_body": {"temperature": 0.5}}))
    lost = TrialRequest(TrialKey("a", 0), "words", "q1", 0, 7)
    with RunWriter.create(tmp_path / "run", meta=run.meta(), durability="normal") as writer:
        writer.launch([lost], 1.0)
        writer.commit()
        endpoints = run.endpoints(None)
        options = run.runner(run.session(), writer, endpoints, elapsed=50.0, allow_missing=True)._options
        assert (options.elapsed, options.allow_missing) == (50.0, True)
        assert list(options.unfinished) == [lost.key]
        assert options.deadlines == deadlines_of(run.config)
    spent = {}
    for line in run.with_limits(run.session().results(), 50.0).budgets:
        if line.name == "wall_clock":
            spent[line.scope, line.owner] = (line.spent, line.limit)
    assert spent == {
        ("run", ""): (50.0, 7200.0),
        ("model", "a"): (50.0, 90.0),
        ("task", "words"): (50.0, 3600.0),
    }


def test_batches_of_an_earlier_session_are_found_by_the_start_of_the_run(folder):
    """A run of the same name that is started again has others, and so has each model."""
    models = {"models.0.samples_per_request": 1, "models.0.batch": True, "models.0.concurrency": "auto"}
    models["models.2.model"] = "org/a"  # as model a is called
    first, other = (build(changed(folder, models)) for _ in range(2))
    other = replace(other, started_at=first.started_at + 1.0)
    again = replace(other, continued=first.meta())

    def labels(run):
        ends = run.endpoints(None)
        return [ends[name][0]._batches._interface.options.label for name in "ac"]

    assert labels(again) == labels(first)
    assert len({*labels(first), *labels(other)}) == 4


def test_labels_reach_the_session(folder):
    record = LabelRecord("labels.jsonl", rows=2, labels=(("a", 0, 1.0),))
    run = build(changed(folder, {}))
    assert run.spec.labels is None
    assert replace(run, labels=record).spec.labels == record
    assert LabelRecord.from_json(replace(run, labels=record).meta()["labels"]) == record


# Rounds: resumed with some tasks too small for them, and what identifies their order.


@pytest.mark.parametrize("spend", ["trials", "tokens", "usd"])
def test_rounds_of_some_tasks_stay_where_they_are_and_are_known_by_what_is_spent(folder, tmp_path, spend):
    written(tmp_path)
    rows = [{"id": f"q{n}", "input": f"{n}?", "target": "1"} for n in range(2)]
    (tmp_path / "few.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    tasks = [{"name": name, "dataset": f"{name}.jsonl", "scorer": "numeric"} for name in ("few", "sums")]
    priced = {"price": {"input": 1.0, "output": 2.0}, "sampling": {"max_tokens": 9}}
    models = [{"name": name, "endpoints": SERVERS[name], **priced} for name in "ab"]
    data = {"name": "demo", "models": models, "tasks": tasks, "spend": spend}
    first = build(config_from_data(data, tmp_path))
    assert first.spec.tasks_in_rounds == ("sums",)
    assert first.identity["rounds"] == ["sums"]
    prices = {"input": 1.0, "output": 2.0, "cached_input": None}
    by_money = {"usd": dict.fromkeys("ab", prices)}
    assert first.identity.get("spend") == {"trials": None, "tokens": {"tokens": {}}, "usd": by_money}[spend]
    for model in models:
        model["concurrency"] = 64
    again = replace(build(config_from_data(data, tmp_path)), continued=first.meta())
    assert (again.spec.tasks_in_rounds, again.identity["rounds"]) == (("sums",), ["sums"])
    in_order = {**first.meta(), "identity": json.dumps({"rounds": []})}
    assert replace(again, continued=in_order).spec.tasks_in_rounds == ()


@pytest.mark.parametrize("order", ["ab", "ba"])
@pytest.mark.parametrize(
    ("cold", "wanted", "number"),
    [("", "auto", "many"), ("a", "auto", 1), ("b", "auto", 1), ("", 3, 3), ("b", 3, 3)],
)
def test_one_model_at_temperature_0_ends_several_answers_a_request_that_nobody_wrote(
    tmp_path, order, cold, wanted, number
):
    long = "Read this. " * 400
    rows = [{"id": f"q{n}", "input": f"{n} {long}", "target": "1"} for n in range(9)]
    (tmp_path / "long.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    models = []
    for name in order:
        sampling = {"max_tokens": 64, "temperature": 0 if name == cold else 0.7}
        asked_for = 1 if name == cold else "auto" if name == "b" else wanted
        models.append(
            {"name": name, "endpoints": SERVERS["b"], "sampling": sampling, "samples_per_request": asked_for}
        )
    task = {"name": "long", "dataset": "long.jsonl", "scorer": "numeric"}
    run = build(config_from_data({"name": "demo", "models": models, "tasks": [task]}, tmp_path))
    assert run.samples_per_prompt == (8 if number == "many" else number)


# Content: what models are asked, and what they take.


def test_shuffled_options_follow_the_seed_in_a_models_own_prompt_too(folder):
    data = sections("ab", ["options", "sums"])
    data["servers"] = data["servers"][:1]
    data["models"][0] |= {"prompt": "{input}\n{choices}\nLetter:"}
    data["tasks"][1] |= {"fields": {"choices": "answers"}, "prompt": "{input}\n{choices}"}
    run = build(config_from_data(data, folder))
    for name in "ab":
        seen = [asked(run, name, "options", seed=seed)[-1][1] for seed in range(12)]
        again = [asked(run, name, "options", seed=seed)[-1][1] for seed in range(12)]
        assert seen == again
        assert len(set(seen)) == 2
        assert all(text.endswith("Letter:") == (name == "a") for text in seen)
    both = [[asked(run, name, "options", seed=seed)[-1][1] for name in "ab"] for seed in range(12)]
    assert all(one.startswith(other) for one, other in both)


def talks(folder, *rows, models, **task):
    (folder / "talks.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    data = {"name": "demo", "models": models, "tasks": [{"name": "t", "dataset": "talks.jsonl", **task}]}
    return build(config_from_data({**data, "goal": "width=0.1"}, folder))


TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
PLAIN = {"id": "p", "input": "How?", "target": "f", "offered": []}
OFFERED = {**PLAIN, "id": "o", "offered": [TOOL]}


@pytest.mark.parametrize("rows", [(PLAIN, OFFERED), (OFFERED, PLAIN)])
def test_tools_of_one_question_are_tools_of_its_task(tmp_path, rows):
    chats = {"name": "a", "endpoints": SERVERS["a"]}
    target = {**TOOL["function"], "arguments": {}}
    rows = [{**row, "target": json.dumps([{"name": target["name"], "arguments": {}}])} for row in rows]
    task = {"tools": "offered", "scorer": "tool_calls"}
    assert len(talks(tmp_path, *rows, models=[chats], **task).tasks[0].questions) == 2
    with pytest.raises(UsageError, match="offers no tools"):
        talks(tmp_path, *({**row, "offered": []} for row in rows), models=[chats], **task)
    texts = {**chats, "name": "b", "accepts": ["text"]}
    with pytest.raises(UsageError, match="model b: takes text only, and the task t has tools"):
        talks(tmp_path, *rows, models=[chats, texts], **task)


def test_a_models_own_prompt_needs_its_fields_of_every_question(tmp_path):
    rows = [
        {"id": "one", "input": "1?", "target": "1", "hint": "x"},
        {"id": "two", "input": "2?", "target": "2"},
    ]
    for order in (rows, rows[::-1]):
        hinted = {"name": "a", "endpoints": SERVERS["a"], "prompt": "{input} {hint}"}
        with pytest.raises(UsageError, match="has no field hint"):
            assert talks(tmp_path, *order, models=[hinted], scorer="exact").own_tasks


def test_calls_in_a_conversation_are_tools_though_no_result_follows():
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    said = Message.from_mapping({"role": "assistant", "content": None, "tool_calls": [call]})
    result = Message.from_mapping({"role": "tool", "tool_call_id": "c", "content": "1"})
    for talk in ([said], [result], [said, result]):
        assert kinds_in(Conversation([Message("user", "How?"), *talk])) == {"tools"}
    assert kinds_in(Conversation([Message("user", "How?")])) == set()


def test_a_function_is_given_sampling_and_further_fields(tmp_path):
    (tmp_path / "says.py").write_text("def says(prompt, sampling):\n    return prompt", "utf-8")
    written(tmp_path)
    function = {"name": "f", "endpoints": ["python:says.py:says"], "sampling": {"max_tokens": 3}}
    function |= {"extra_body": {"top_k": 2}}
    data = {"name": "demo", "models": [function], "goal": "width=0.1"}
    data["tasks"] = [{"name": "sums", "dataset": "sums.jsonl", "scorer": "numeric"}]
    ((endpoint,),) = build(config_from_data(data, tmp_path)).endpoints(None).values()
    assert endpoint.parameters == {"max_tokens": 3, "top_k": 2}


def test_stored_answers_that_judges_began_with_are_kept_by_task_and_by_whom_they_are_of(folder):
    """The previous runs may have grown, or be gone."""
    tasks = [
        {"name": "words", "dataset": "words.jsonl", "scorer": {**JUDGE, "model": "j", "against": "gone#old"}},
        {"name": "stars", "dataset": "stars.jsonl", "scorer": {**JUDGE, "model": "j", "against": "gone#new"}},
        {"name": "sums", "dataset": "sums.jsonl", "scorer": "numeric"},
    ]
    models = [{"name": name, "endpoints": SERVERS[name]} for name in "ab"]
    run = build(config_from_data({"name": "demo", "models": models, "tasks": tasks}, folder))
    kept = {
        "words": {"gone#old": {f"q{n}": [f"old {n}", "older"] for n in range(4)}},
        "stars": {"gone#new": {f"q{n}": [f"new {n}"] for n in range(5)}},
    }
    again = replace(run, continued={**run.meta(), "against": json.dumps(kept)}).with_stored_answers()
    assert [task.against for task in again.tasks] == [
        *(one for of in kept.values() for one in of.values()),
        {},
    ]
    assert json.loads(again.meta()["against"]) == kept
    question = again.tasks[0].by_id["q1"]
    assert [again.tasks[0].asked(question, 0, repeat).target for repeat in range(3)] == [
        "old 1",
        "older",
        "old 1",
    ]
    other = {**kept, "words": {"gone#another": kept["words"]["gone#old"]}}
    with pytest.raises(UsageError, match="against"):
        replace(run, continued={**run.meta(), "against": json.dumps(other)}).with_stored_answers()


@pytest.mark.parametrize(
    ("scorers", "hint"),
    [
        (("numeric", "numeric"), True),
        (({"kind": "contains"}, {"kind": "contains"}), True),
        (("numeric", "contains"), False),
        (("exact", "numeric"), False),
        ((["numeric", "contains"], ["numeric", "contains"]), True),
    ],
)
def test_another_scorer_can_be_tried_on_stored_answers_where_one_option_says_it_of_all_tasks(
    folder, tmp_path, scorers, hint
):
    def scored(*kinds):
        models = [{"name": name, "endpoints": SERVERS[name]} for name in "ab"]
        tasks = [
            {"name": name, "dataset": f"{name}.jsonl", "scorer": kind}
            for name, kind in zip(("words", "sums"), kinds, strict=True)
        ]
        return build(config_from_data({"name": "demo", "models": models, "tasks": tasks}, folder))

    with RunWriter.create(tmp_path / "run", meta=scored("exact", "exact").meta(), durability="normal"):
        pass
    with pytest.raises(RunMismatch) as raised:
        continue_run(scored(*scorers), tmp_path / "run")
    assert ("adaptive-eval rescore" in str(raised.value)) is hint


def test_an_answer_of_one_token_may_be_cut_off_and_all_may_if_their_end_is_named(folder):
    one_token = {"max_tokens": 1, "temperature": 0, "logprobs": True, "top_logprobs": 20}
    models = [{"name": name, "endpoints": SERVERS[name], "sampling": one_token} for name in "ab"]
    tasks = [
        {"name": "options", "dataset": "options.jsonl", "scorer": "choice_probability"}
        | {"fields": {"choices": "answers"}, "prompt": "{input}\n{choices}"},
        {"name": "sums", "dataset": "sums.jsonl", "scorer": "numeric"},
    ]
    data = {"name": "demo", "models": models, "tasks": tasks}
    for on, expected in (({}, {"options"}), ({"length": "missing"}, {"options", "sums"})):
        run = build(config_from_data({**data, "on": on}, folder))
        assert run.watches().answers._may_be_cut == expected


def test_thresholds_are_those_of_each_task_and_what_the_config_gives_comes_first(folder, tmp_path):
    def frozen(low, high):
        return {"len_p33": {"value": low, "source": "q"}, "len_p66": {"value": high, "source": "q"}}

    meta = {"thresholds": json.dumps({"words": frozen(0.3, 0.4), "sums": frozen(0.1, 0.2)})}
    with RunWriter.create(tmp_path / "run", meta=meta, durability="normal"):
        pass
    rubric = {"schema": "efficiency-adjusted", "thresholds_from": str(tmp_path / "run")}
    tasks = [
        {"name": "sums", "dataset": "sums.jsonl", "scorer": "numeric"}
        | {"rubric": {**rubric, "thresholds": {"len_p33": 0.05}}},
        {"name": "words", "dataset": "words.jsonl", "scorer": "numeric", "rubric": rubric},
        {"name": "stars", "dataset": "stars.jsonl", "scorer": "numeric"},
    ]
    models = [{"name": name, "endpoints": SERVERS[name]} for name in "ab"]
    run = build(config_from_data({"name": "demo", "models": models, "tasks": tasks}, folder))
    expected = {"sums": {"len_p33": 0.05, "len_p66": 0.2}, "words": {"len_p33": 0.3, "len_p66": 0.4}}
    expected["stars"] = {}
    assert {name: dict(one.thresholds) for name, one in run.rubrics.items()} == expected
    assert json.loads(run.meta()["thresholds"]).keys() == {"sums", "words"}
    open_ones = {name: replace(one, thresholds={}) for name, one in run.rubrics.items()}
    stored = with_stored_thresholds(open_ones, run.meta())
    assert {name: dict(one.thresholds) for name, one in stored.items()} == expected
