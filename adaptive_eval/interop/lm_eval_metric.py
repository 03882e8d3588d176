"""The filters and the metric of a task of lm-evaluation-harness, over single answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from adaptive_eval.errors import UsageError
from adaptive_eval.interop.found import Choices

__all__ = ["HarnessMetric"]

_NOT_THE_METRICS = ("metric", "aggregation", "higher_is_better", "hf_evaluate")


class HarnessMetric:
    """Scores an answer as the harness would have scored it alone.

    Parameters
    ----------
    path : Path
        The file of samples, for messages.
    config : mapping or None
        The task's config, from the ``results_{date}.json`` beside it.
    choices : Choices
        Which metric, where there are several.

    Raises
    ------
    UsageError
        If the config is not there, scores by code of its own, or the harness is not installed.
    """

    def __init__(self, path: Path, config: Mapping[str, Any] | None, choices: Choices) -> None:
        self._path = path
        otherwise = "score the answers with a scorer of this package: --scorer exact, numeric, math, …"
        if config is None:
            raise UsageError(
                f"{path}: it has several answers to a question but one score, and there is no results_….json "
                f"beside it that says how they were scored; put it there, or {otherwise}"
            )
        if config.get("process_results") or config.get("output_type", "generate_until") != "generate_until":
            raise UsageError(f"{path}: this task scores by code of its own; {otherwise}")
        self._config = config
        self._metric = choices.metric
        self._ensembles: dict[str, Any] = {}
        try:
            self._build: Callable[..., Any] = import_module("lm_eval.filters").build_filter_ensemble
            self._instance: Callable[..., Any] = import_module("lm_eval.api.instance").Instance
            self._registry = import_module("lm_eval.api.registry")
            import_module("lm_eval.api.metrics")
        except ImportError:
            raise UsageError(
                f"{path}: it has several answers to a question but one score; to score each with the "
                f"harness's own metric, pip install 'adaptive-eval[lm-eval]', or {otherwise}"
            ) from None

    def score(self, row: Mapping[str, Any], text: str) -> dict[str, Any]:
        """Return score, extraction and reason of one answer of a row.

        Raises
        ------
        ValueError
            If it cannot be scored so.
        """
        extracted = self._filtered(row, text)
        if not isinstance(extracted, str):
            raise ValueError(f"the filter {row.get('filter')!r} makes no text of one answer; use --scorer")
        entry = self._entry(row)
        name = str(entry["metric"])
        kwargs = {key: value for key, value in entry.items() if key not in _NOT_THE_METRICS}
        metric = self._registry.get_metric(name)
        try:
            value = metric(references=[str(row["target"])], predictions=[extracted], **kwargs)
        except TypeError:  # the harness's older metrics take pairs
            value = metric([str(row["target"]), extracted])
        score: Any = value.get(name) if isinstance(value, dict) else value
        try:
            number = float(score)  # NumPy's numbers among them
        except (TypeError, ValueError):
            number = -1.0
        if not 0.0 <= number <= 1.0:
            raise ValueError(f"the metric {name} gave {score!r}, not a score from 0 to 1")
        return {"score": number, "extracted": extracted, "reason": name}

    def _filtered(self, row: Mapping[str, Any], text: str) -> Any:
        name = str(row.get("filter", "none"))
        if name not in self._ensembles:
            self._ensembles[name] = self._build(name, self._components(name))
        metadata = (self._config.get("task", ""), row["doc_id"], 1)
        instance = self._instance(
            request_type="generate_until", doc=row.get("doc"), arguments=("", {}), idx=0, metadata=metadata
        )
        instance.resps = [text]
        self._ensembles[name].apply([instance])
        return instance.filtered_resps[name]

    def _components(self, name: str) -> list[list[Any]]:
        for section in self._config.get("filter_list") or ():
            if section["name"] == name:
                return [
                    [step["function"], {key: value for key, value in step.items() if key != "function"}]
                    for step in section["filter"]
                ]
        return [["take_first", None]]

    def _entry(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        entries = self._config.get("metric_list") or [{"metric": "exact_match"}]
        for entry in entries:
            if len(entries) == 1 or entry["metric"] == self._metric:
                found: Mapping[str, Any] = entry
                return found
        names = ", ".join(str(entry["metric"]) for entry in entries)
        raise ValueError(f"the task has the metrics {names}; choose one with --metric")
