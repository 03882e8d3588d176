"""A run in which everything that comes from outside tries to act on whoever looks at it."""

from dataclasses import asdict, replace
from pathlib import Path

import standings_examples as examples

from adaptive_eval.core.results import Decision, Results
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import AttemptRecord, TrialRecord
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.trial import Completion, Score, TrialKey, TrialRequest, Usage
from adaptive_eval.views.reading import summarise
from adaptive_eval.views.summary import RunSummary

SCRIPT = "<script>window.pwned = 'script'</script>"
IMAGE = "<img src=x onerror=\"window.pwned = 'image'\">"
BREAKOUT = "</pre></details></td></table><h1>gotcha</h1>"
ANSI = "\x1b[2J\x1b]0;title\x07\x1b[31m"
OVERRIDE = "safe\u202etxt.exe"
SURROGATE = "half \ud83d a character"
TEMPLATE = "{{ 7 * 7 }}{% raw %} javascript:alert(1)"
LONG_LINE = "x" * 1_000_000
ANSWERS = (SCRIPT, IMAGE, BREAKOUT, ANSI, OVERRIDE, SURROGATE, TEMPLATE, LONG_LINE, "\0\r\n\u2028</script>")
NAMES = (*examples.HOSTILE_NAMES, f"lone {SURROGATE}", IMAGE, "<b>bold</b>")


def results(stopped: bool = True) -> Results:
    """Return results whose names, warnings, notes, goal and stop text are hostile."""
    base = examples.example({name: 0.9 - 0.1 * i for i, name in enumerate(NAMES)}, 200)
    stop = replace(examples.RESOLVED, text=f"stopped {SCRIPT}{ANSI}") if stopped else None
    models = tuple(replace(line, note=IMAGE) if i == 1 else line for i, line in enumerate(base.models))
    return replace(base, models=models, stop=stop, goal=SCRIPT, warnings=(IMAGE + OVERRIDE, SCRIPT * 1000))


def make_hostile_run(directory: Path) -> Path:
    """Make the run file and return its directory."""
    meta = {"name": f"{SCRIPT}{OVERRIDE}", "started_at": repr(examples.STARTED), f"note|{IMAGE}": ANSI}
    meta["config"] = f"a: |\n  ```\n  {BREAKOUT}{SCRIPT}\n"
    with RunWriter.create(directory, meta=meta, durability="normal") as writer:
        for m, model in enumerate(NAMES):
            for step, answer in enumerate(ANSWERS):
                request = TrialRequest(TrialKey(model, step), SCRIPT, f"q{step}{IMAGE}", 0, 7)
                writer.launch([request], examples.STARTED)
                writer.attempt(
                    AttemptRecord(
                        request.key, 1, f"http://{IMAGE}/v1", examples.STARTED, 0.5, 500, SCRIPT, IMAGE + ANSI
                    )
                )
                writer.outcome(_trial(request, answer, missing=(m == 0 and step == 0)))
        now = results()
        snapshot = examples.snapshot_of(now)
        endpoints = tuple(
            replace(health, endpoint=f"http://{IMAGE}", errors={SCRIPT: 3, ANSI: 1})
            for health in snapshot.endpoints
        )
        writer.snapshot(replace(snapshot, endpoints=endpoints))
        for text in (SCRIPT, ANSI + OVERRIDE, SURROGATE, BREAKOUT):
            decision = Decision(
                "pair", NAMES[:2], "better", 9, 18, text, {"statistic": 6.0, "threshold": 5.0}
            )
            writer.decision(examples.STARTED, 18, asdict(decision))
    return directory


def hostile_summary(directory: Path) -> RunSummary:
    """Make the run file, and return what a report says of it, with answers."""
    with RunReader(make_hostile_run(directory)) as reader:
        return summarise(reader, examples_with=lambda trial: SCRIPT * (1 + 9 * (trial.request.key.index % 2)))


def _trial(request: TrialRequest, answer: str, *, missing: bool) -> TrialRecord:
    if missing:
        return TrialRecord(request, examples.STARTED, None, None, missing=SCRIPT + ANSI)
    right = int(request.key.model == NAMES[1])
    return TrialRecord(
        request,
        examples.STARTED,
        Completion(answer, SCRIPT, Usage(100, 50), 0.5, IMAGE, SCRIPT, reasoning=answer),
        Score(right, answer[:500], {"is_correct": bool(right), IMAGE: SCRIPT}, f"because {IMAGE}{ANSI}"),
        sent={
            "model": IMAGE,
            "messages": [
                {"role": SCRIPT, "content": answer},
                {"role": "user", "content": [{"type": "text", "text": BREAKOUT}]},
                {"role": "user"},
            ],
            "stop": [SCRIPT],
        },
    )
