"""Datasets of crossed options: the questions, prompts and targets that they become, or their faulty lines."""

import csv
import gzip
import io
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from course_facts import digest, text
from crossed_options import Case, Options, Refused

from adaptive_eval.build.assembly import build
from adaptive_eval.build.prompts import answer_key
from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.core.session import Session
from adaptive_eval.errors import AdaptiveEvalError
from adaptive_eval.trial import estimated_tokens

TASKS: Options = {
    "file": ("jsonl", "csv", "json", "gz"),
    "choices": ("none", "list", "columns", "labelled", "by-letter", "as-text"),
    "target": ("plain", "letter", "number", "from-0", "from-1", "in-text", "own-label"),
    "scorer": ("exact", "numeric", "choice", "contains", "own"),
    "prompt": ("plain", "options", "latex", "messages", "given", "several"),
    "names": ("usual", "own", "nested", "optional"),
    "ids": ("given", "numbers", "none"),
    "shots": ("none", "two", "of-file", "own-words"),
    "order": ("kept", "shuffled", "seeded"),
    "chosen": ("all", "three", "of-value", "of-values"),
    "options": ("kept", "shuffled"),
    "twice": ("no", "refused", "skipped"),
    "system": ("none", "given"),
    "model": ("as-task", "own-system", "own-prompt"),
    "media": ("none", "image", "sound"),
    "tools": ("none", "listed", "column"),
    "flaw": ("none", "no-target", "empty", "kind"),
}  # fmt: skip
"""The options of datasets and of the task that reads them."""
TASKS_REFUSED: Refused = (
    ("choices", "none", "options", "shuffled"),
    ("choices", "none", "prompt", "options several"),
    ("choices", "none", "scorer", "choice"),
    ("choices", "none", "target", "letter from-0 from-1 own-label"),
    ("target", "letter from-0 from-1 own-label", "scorer", "numeric"),
    ("file", "csv", "choices", "list labelled by-letter"),
    ("file", "csv", "target", "own-label"),
    ("file", "csv", "prompt", "given"),
    ("file", "csv", "names", "nested"),
    ("file", "csv", "tools", "column"),
    ("prompt", "given", "model", "own-prompt"),
    ("prompt", "messages", "model", "own-prompt"),
    ("prompt", "given", "media", "image sound"),
    ("model", "own-prompt", "media", "image sound"),
    ("target", "number from-0 from-1 in-text own-label", "options", "shuffled"),
    ("scorer", "numeric", "options", "shuffled"),
    ("scorer", "choice", "target", "number in-text"),
    ("choices", "list columns as-text", "target", "own-label"),
)
OWN = "def score(answer, target):\n    return 1.0\n"
TOOLS = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]
PICTURE = "data:image/png;base64,iVBORw0KGgo="
SOUND = "data:audio/wav;base64,UklGRgAAAABXQVZF"
WORDS = ("red", "green", "blue", "grey")
SIZE = 7


def rows_of(case: Case, start: int = 0) -> list[dict[str, Any]]:
    """Return the rows of a dataset."""
    rows = []
    plain = case["choices"] == "none" or case["scorer"] == "numeric"
    for place in range(start, start + SIZE):
        asked = f"What is {place} + {place // 2}, with {{x}} and \\frac{{1}}{{2}}?"
        right = place % 3
        texts = [f"{WORDS[(place + turn) % 4]} {turn}" for turn in range(3)]
        targets: dict[str, Any] = {
            "plain": f"{place + place // 2}" if plain else texts[right],
            "letter": "abc"[right] if place % 2 else "ABC"[right], "number": place + place // 2,
            "from-0": right, "from-1": right + 1, "in-text": f"So 7. #### {place}\n#### {right + 1}",
            "own-label": ("u", "v", "w")[right],
        }  # fmt: skip
        one: dict[str, Any] = {"input": asked, "target": targets[case["target"]]}
        if case["ids"] != "none":
            one["id"] = f"row-{place}" if case["ids"] == "given" else place
        one |= {"level": place % 3, "hard": place % 2 == 0, "hint": "" if place == 4 else f"hint {place}"}
        choices: Mapping[str, Any] = {
            "list": texts, "as-text": json.dumps(texts), "columns": None,
            "labelled": {"text": texts, "label": ["u", "v", "w"]},
            "by-letter": dict(zip("uvw", texts, strict=True)),
        }  # fmt: skip
        if case["choices"] == "columns":
            one |= {f"option {turn}": each for turn, each in enumerate(texts)}
        elif case["choices"] != "none":
            one["choices"] = choices[case["choices"]]
        if case["prompt"] == "given":
            one["talk"] = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": asked}]
        if case["tools"] == "column":
            one["tool list"] = TOOLS if place % 2 else [*TOOLS, {**TOOLS[0], "type": "function"}]
        one |= {"picture": PICTURE, "sound": SOUND}
        rows.append(one)
    flawed(case, rows)
    return rows


def flawed(case: Case, rows: list[dict[str, Any]]) -> None:
    """Put what is wrong into some rows."""
    if case["twice"] != "no":
        rows.insert(4, rows[1])
    if case["flaw"] == "no-target":
        del rows[2]["target"], rows[5]["target"]
    elif case["flaw"] == "empty":
        rows[3] = {**rows[3], "input": "  "}
    elif case["flaw"] == "kind":
        rows[5] = {**rows[5], "target": {"a": 1}, "choices": ["one"]}


def write(case: Case, rows: list[dict[str, Any]], place: Path, name: str) -> str:
    """Write a dataset; return the name of its file."""
    if case["names"] == "own":
        rows = [
            {{"input": "question", "target": "answer"}.get(key, key): one[key] for key in one} for one in rows
        ]
    elif case["names"] == "nested":
        rows = [{**one, "inner": {"input": one.get("input"), "target": one.get("target")}} for one in rows]
        rows = [{key: value for key, value in one.items() if key not in ("input", "target")} for one in rows]
    lines = "\n".join(map(json.dumps, rows))
    if case["file"] == "csv":
        text_of = io.StringIO()
        table = csv.DictWriter(text_of, list(dict.fromkeys(key for one in rows for key in one)))
        table.writeheader()
        table.writerows(rows)
        lines = text_of.getvalue()
    elif case["file"] == "json":
        lines = json.dumps(rows, indent=1)
    if case["file"] == "gz":
        (place / f"{name}.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
        return f"{name}.jsonl.gz"
    (place / f"{name}.{case['file']}").write_text(lines, "utf-8")
    return f"{name}.{case['file']}"


PROMPTS: Mapping[str, Any] = {
    "options": "{input}\n{choices}\nAnswer:", "latex": "{input} Use \\boxed{{}}, not \\frac{a}{b} or {{x}}.",
    "messages": [
        {"role": "system", "content": "Be {level}."},
        {"role": "user", "content": "{input}"},
        {"role": "assistant", "content": "Let me see."},
        {"role": "user", "content": [{"type": "text", "text": "Go on, {level}."}]},
    ],
    "several": "{input} ({level}): {choices} or {input}?",
}  # fmt: skip


def task_config(case: Case, place: Path) -> dict[str, Any]:
    """Write the dataset of a case; return its config."""
    task: dict[str, Any] = {"name": "t", "dataset": write(case, rows_of(case), place, "rows")}
    fields: dict[str, Any] = {}
    if case["names"] in ("own", "nested"):
        own = {"own": ("question", "answer"), "nested": ("inner.input", "inner.target")}[case["names"]]
        fields = dict(zip(("input", "target"), own, strict=True))
    if case["choices"] == "columns":
        fields["choices"] = [f"option {turn}" for turn in range(3)]
    if case["prompt"] == "given":
        fields["messages"] = "talk"
    if case["prompt"] in PROMPTS:
        task["prompt"] = PROMPTS[case["prompt"]]
    if case["names"] == "optional" and case["prompt"] in ("plain", "options"):
        fields["more"] = "hint?"
        task["prompt"] = task.get("prompt", "{input}") + " {more}"
    if case["choices"] not in ("none", "columns"):
        fields["choices"] = "choices"
    shown = task.get("prompt", "{input}")
    if case["choices"] != "none" and isinstance(shown, str) and "{choices}" not in shown:
        task["prompt"] = shown + " {choices}"
    kinds: Mapping[str, Any] = {"own": "own.py:score", "choice": {"kind": "choice"}}
    task["scorer"] = kinds.get(case["scorer"], case["scorer"])
    if case["target"].startswith("from") and case["scorer"] == "choice":
        task["scorer"]["index_from"] = int(case["target"][-1])
    if case["target"] == "in-text":
        task["target_pattern"] = "#### (\\d+)"
    shots = {"two": {"count": 2}, "own-words": {"count": 1, "answer": "It is {target}, of {level}."}}
    shots["of-file"] = {"count": 2, "dataset": write(case, rows_of(case, 5), place, "shown")}
    if case["shots"] != "none":
        task["few_shot"] = shots[case["shots"]]
    task["shuffle"] = {"kept": False, "shuffled": True, "seeded": 11}[case["order"]]
    chosen: Mapping[str, Any] = {
        "three": {"limit": 3}, "of-value": {"filter": {"hard": True}},
        "of-values": {"filter": {"level": [0, 2]}},
    }  # fmt: skip
    task |= chosen.get(case["chosen"], {})
    task["shuffle_options"] = case["options"] == "shuffled"
    if case["twice"] == "skipped":
        task["duplicates"] = "skip"
    if case["system"] == "given":
        task["system"] = "Answer well."
    if case["media"] == "image":
        task |= {"images": "pic", "image_tokens": 300}
        fields["pic"] = "picture"
    elif case["media"] == "sound":
        task["audio"] = "sound"
    task["tools"] = {"none": [], "listed": TOOLS, "column": "tool list"}[case["tools"]]
    models: list[dict[str, Any]] = [{"name": name, "endpoints": ["http://one/v1"]} for name in "ab"]
    own = {"own-system": {"system": "My own."}, "own-prompt": {"prompt": "My {level}: {input}"}}
    models[1] |= own.get(case["model"], {})
    if case["tools"] == "listed" and case["options"] == "kept":
        models[0]["samples_per_request"] = "auto"
    return {"name": "demo", "seed": 3, "models": models, "tasks": [{**task, "fields": fields}]}


def task_facts(written: Case) -> list[str]:
    """Return the questions that a dataset becomes, or the lines that are wrong."""
    case = {name: written.get(name, values[0]) for name, values in TASKS.items()}
    facts = list(read(case))
    if facts[0].startswith("refused") and {case["flaw"], case["twice"]} != {"none", "no"}:
        facts += read({**case, "flaw": "none", "twice": "skipped"})
    return facts


def read(case: Case) -> Iterator[str]:
    """Yield the questions that a dataset becomes, or the lines that are wrong."""
    with TemporaryDirectory() as folder:
        (Path(folder) / "own.py").write_text(OWN, "utf-8")
        data = task_config(case, Path(folder))
        try:
            yield from facts_of_task(config_from_data(data, folder))
        except AdaptiveEvalError as error:
            codes = [one.code for one in getattr(error, "problems", ())] or [error.code]
            lines = re.findall(r"line (\d+)|(\d+) (?:more|problem)", str(error))
            yield f"refused {text(codes)} lines={text([one or two for one, two in lines])}"


def facts_of_task(config: Any) -> Iterator[str]:
    """Yield the questions, and how models are asked them."""
    built = build(config)
    for name, (task,) in {"all": built.tasks, **built.own_tasks}.items():
        asked = [task.render(one) for one in task.questions]
        said = [[(one.role, one.content, one.whole) for one in each] for each in asked]
        tools, tokens = digest(one.fields for one in asked), sum(map(estimated_tokens, asked))
        yield f"{name} {len(asked)} {digest(said)} tools={tools} tokens={tokens}"
    (task,), (spec,) = built.tasks, built.spec.tasks
    plain = {"image": "", "sound": ""}
    known = [
        (one.id, one.target, one.choices, sorted({**one.fields, **plain}.items(), key=str))
        for one in task.questions
    ]
    yield f"targets {text([one.target for one in task.questions][:3])} {digest(known)}"
    again = [task.asked(one, seed, seed % 3) for one in task.questions for seed in (1, 2, 3)]
    yield f"asked {digest((one.target, one.choices, task.render(one)[-1].content) for one in again)}"
    yield f"hash {task.content_hash[:8]} repeated={task.repeated} varies={spec.prompt_varies}"
    yield f"bounds {text(spec.prompt_bounds)} samples={built.samples_per_prompt}"
    yield f"key {digest(sorted(one.items(), key=str) for one in answer_key(task, config.tasks[0].scorer))}"
    first = Session(built.spec).ask(6)
    sent = [built.prompts.messages(one)[-1].content for one in first]
    yield f"sent {digest(sent)}"
