"""A run held against labels, on a terminal and as JSON."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from adaptive_eval.core.held import Bias, Held
from adaptive_eval.core.results import Results, to_json
from adaptive_eval.views.headline import headline
from adaptive_eval.views.inert import inert
from adaptive_eval.views.label_sentences import (
    NO_CHANCES,
    agreement_words,
    bias_words,
    further_words,
    labels_words,
    noise_words,
    pair_words,
    verdict_by_labels,
)

_SHOWN = 20
"""Pairs shown on a terminal; JSON has all."""


def labels_lines(held: Held) -> Iterator[str]:
    """Yield what a terminal shows, line by line."""
    for line in _lines(held):
        yield inert(line)


def _lines(held: Held) -> Iterator[str]:
    if held.results is None:
        yield NO_CHANCES
    else:
        yield verdict_by_labels(held.results, held.questions, held.of)
        yield from ("  " + pair_words(pair) for pair in held.results.pairs[:_SHOWN])
    yield f"The judge alone says: {headline(held.alone)}"
    yield labels_words(held.rows, held.filled)
    yield agreement_words(held.agreement, held.kappa)
    yield "Bias of the judge (its score less the label):"
    yield from ("  " + bias_words(one) for one in (*held.models, *held.pairs[:_SHOWN]))
    if held.further:
        yield "What further labels would decide:"
        for one in held.further[:_SHOWN]:
            yield "  " + further_words(one.first, one.second, one.share, one.questions)
    if held.noise:
        yield "Where labels tell most (for a file of your own, with pi fixed before anything is looked at):"
        for part in sorted(held.noise, key=lambda part: -part.chance):
            yield "  " + noise_words(part.task, part.judge, part.labels, part.noise, part.chance)


def labels_data(held: Held) -> dict[str, Any]:
    """Return everything as JSON-able data."""
    decided: dict[str, Any] = {"verdict": None, "exit_code": None, "results": None}
    if held.results is not None:
        decided["verdict"] = verdict_by_labels(held.results, held.questions, held.of)
        decided["exit_code"] = held.results.exit_code
        decided["results"] = _of(held.results)
    return {
        **decided,
        "judge_alone": {"verdict": headline(held.alone), **_of(held.alone)},
        "labels": {
            "rows": held.rows,
            "filled": held.filled,
            "questions": held.questions,
            "of": held.of,
            "agreement": held.agreement,
            "kappa": held.kappa,
        },
        "bias": list(map(_bias, held.models)),
        "bias_difference": list(map(_bias, held.pairs)),
        "further": list(map(asdict, held.further)),
        "next": list(map(asdict, held.noise)),
    }


_OF_MODEL = ("model", "trials", "score", "score_low", "score_high", "rank", "rank_low", "rank_high")
_OF_PAIR = ("first", "second", "kind", "verdict", "difference", "difference_low", "difference_high")
_OF_EVIDENCE = ("evidence", "threshold", "trials_each")


def _of(results: Results) -> Mapping[str, Any]:
    data = to_json(results)
    models = [_picked(line, _OF_MODEL) for line in data["models"]]
    pairs = [_picked(pair, (*_OF_PAIR, *_OF_EVIDENCE)) for pair in data["pairs"]]
    return {"models": models, "pairs": pairs}


def _picked(data: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    return {key: data[key] for key in keys}


def _bias(one: Bias) -> dict[str, Any]:
    return {name: value for name, value in asdict(one).items() if value is not None or name == "bias"}
