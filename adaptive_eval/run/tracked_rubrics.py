"""After a sitting: the answers ranked by the rubrics that the config tracks beside the one that steers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from adaptive_eval.build.assembly import Built
from adaptive_eval.errors import AdaptiveEvalError
from adaptive_eval.run.rescoring import Rescoring, rescore
from adaptive_eval.run.rescoring_requests import Wish, tracked
from adaptive_eval.store import RunReader, RunWriter
from adaptive_eval.store.codec import dump_json, load_json

__all__ = ["track"]


def track(built: Built, directory: Path) -> None:
    """Rank the stored answers by every tracked rubric and store what is new; a rubric that cannot is named.

    Parameters
    ----------
    built : Built
        The run.
    directory : Path
        Its directory; no other writer has it open.
    """
    wishes = tracked(built.config)
    if not wishes:
        return
    with RunReader(directory) as reader:
        if not reader.count():
            return
        built = replace(built, continued=reader.meta())
        known = {record.name: record.body for record in reader.scorings()}
        found = _ranked(built, reader, wishes)
    new = [result for result in found if known.get(result.name) != load_json(dump_json(result.body))]
    if new:
        with RunWriter.open(directory) as writer:
            for result in new:
                writer.scoring(result.record, result.rows)


def _ranked(built: Built, reader: RunReader, wishes: Sequence[Wish]) -> list[Rescoring]:
    """Rank by all rubrics with one reading of the answers; where one cannot, by each alone."""
    try:
        return rescore(built, reader, wishes)
    except AdaptiveEvalError as error:
        if len(wishes) == 1:
            click.echo(f"The rubric {wishes[0].name} ranks nothing: {error}", err=True)
            return []
    return [result for wish in wishes for result in _ranked(built, reader, [wish])]
