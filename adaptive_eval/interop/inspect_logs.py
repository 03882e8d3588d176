"""Logs of Inspect, ``.eval`` or ``.json``, through Inspect's own log API."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

from adaptive_eval.errors import OutcomesError, first_line, library
from adaptive_eval.interop.found import (
    Flaw,
    Found,
    Log,
    Piece,
    ReadingOptions,
    chosen_metric,
    cluster_in,
    content_of,
    in_range,
    reading,
)
from adaptive_eval.interop.inspect_task import score_value
from adaptive_eval.tasks.unpacking import require_bounded_zip

SCORER = "adaptive_eval"
"""Name of the scorer in logs that this package writes."""

_CUT_OFF = ("token", "context", "time", "working", "message", "turn", "cost")
"""Limits that end a sample before its answer is complete; it is scored as it is."""

_KIND = "an Inspect log; it may be cut off or damaged"


def inspect_log(path: Path, choices: ReadingOptions) -> Log:
    """Return the log in a file of Inspect; its header is read at once, its samples later."""
    opened = _Opened(path, choices)
    spec = opened.header.eval
    version = str(spec.task_version)
    return Log(path, "Inspect log", opened.pieces, str(spec.eval_id), {opened.task: version})


class _Opened:
    """One log with its header read."""

    def __init__(self, path: Path, choices: ReadingOptions) -> None:
        self._path = path
        self._choices = choices
        if path.suffix.lower() == ".eval" and is_zipfile(path):
            with reading(path, _KIND):
                require_bounded_zip(path, unread="samples/")
        self._api = library("inspect_ai.log", f"{path}: reading logs of Inspect", "inspect-ai")
        self.header: Any = self._reading(self._api.read_eval_log, header_only=True)
        if self.header.status != "success" and not choices.incomplete:
            raise OutcomesError(
                f"{path}: this evaluation has not finished (its status is {self.header.status!r}); finish it "
                "with `inspect eval-retry`, or take the samples that are there with --incomplete"
            )

        spec = self.header.eval
        is_export = "stopping_rule" in (spec.metadata or {})  # of this package, whose names are whole
        named = str(spec.task) if is_export else str(spec.task).rpartition("/")[2]
        self.task = choices.task or named
        self._model = choices.named(str(self.header.eval.model), path)

    def pieces(self) -> Iterator[Piece]:
        """Yield the trials, from the summaries of the samples."""
        summaries = self._reading(self._api.read_eval_log_sample_summaries)
        seen: set[tuple[str, int]] = set()
        for summary in summaries:
            key = (str(summary.id), summary.epoch)
            place = f"sample {summary.id!r}, epoch {summary.epoch}"
            if key in seen:
                yield Flaw(place, "appears twice")
                continue
            seen.add(key)
            yield self._piece(summary, place)
        if not seen:
            yield Flaw("", "it has no samples")

    def _piece(self, summary: Any, place: str) -> Piece:
        question = str(summary.id)
        if self._choices.question_id is not None:
            question = str(summary.metadata.get(self._choices.question_id, ""))
            if not question:
                return Flaw(place, f"its metadata has no {self._choices.question_id!r}")
        result: dict[str, Any] = {}
        try:
            result = self._result(summary)
            result["cluster"] = cluster_in(self._choices.cluster, summary.metadata, {"task": self.task})
        except ValueError as error:
            return Flaw(place, str(error))
        usage = summary.model_usage.get(str(self.header.eval.model))
        if usage is not None:
            tokens = (usage.input_tokens, usage.output_tokens)
        else:
            tokens = (0, 0)
        if isinstance(summary.target, str):
            target = summary.target
        else:
            target = ", ".join(summary.target)
        prompt = _text(summary.input)
        finish_reason = ""
        if summary.limit in _CUT_OFF:
            finish_reason = "length"
        return Found(
            self._model,
            self.task,
            question,
            place,
            number=summary.epoch,
            rule=str((self.header.eval.metadata or {}).get("stopping_rule", "")),
            content=content_of(prompt, target, summary.choices),
            finish_reason=finish_reason,
            prompt=prompt,
            target=target,
            tokens=tokens,
            latency=float(summary.working_time or summary.total_time or 0.0),
            finished_at=_unix(summary.completed_at),
            uuid=str(summary.uuid or ""),
            **result,
        )

    def _result(self, summary: Any) -> dict[str, Any]:
        if summary.error:
            return {"missing": f"error: {first_line(summary.error)}"}
        if summary.limit == "operator":
            return {"missing": "ended by an operator"}
        if not summary.scores:
            return {"missing": "no score in the log"}
        own = SCORER if SCORER in summary.scores else None  # next to it there are its checks
        name = chosen_metric(self._path, self._choices.metric or own, summary.scores)
        score = summary.scores[name]
        try:
            value = score_value(score.value)
            if value is not None:
                value = in_range(value, name, self._choices.range)
        except ValueError as error:
            raise ValueError(f"scorer {name}: {error}") from None
        if value is None:
            return {"missing": f"not scored by {name}"}
        return {
            "score": value,
            "extracted": score.answer,
            "reason": name,
            "text": score.explanation or score.answer or "",
            "whole": False,
        }

    def _reading(self, function: Any, **options: Any) -> Any:
        """Call a function of the log API; errors of a damaged file become one clear error."""
        with reading(self._path, _KIND):
            return function(str(self._path), **options)


def _text(given: Any) -> str:
    if isinstance(given, str):
        return given
    return "\n".join(str(getattr(message, "text", "")) for message in given)


def _unix(stamp: Any) -> float:
    if not stamp:
        return 0.0
    moment = stamp if isinstance(stamp, datetime) else datetime.fromisoformat(str(stamp))
    return moment.timestamp()
