"""The guarantees of a report's figures, and their limits, for the rule and settings of the run."""

from __future__ import annotations

from dataclasses import dataclass

from adaptive_eval.core.results import Results
from adaptive_eval.views.numbers import trimmed
from adaptive_eval.views.sentences import sentences
from adaptive_eval.views.verdicts import rank_column


@dataclass(frozen=True, slots=True)
class Promises:
    """Sentences on what holds and on what does not."""

    holds: tuple[str, ...]  # what the run's rule promises
    limits: tuple[str, ...]  # what it does not, and what is only for reference


def promises(results: Results, target: str | None = None) -> Promises:
    """Return the promises that belong to a run's rule, family, margin and confidence.

    Examples
    --------
    >>> run = Results("rank all models", "zscore", 0.95, "pair", None, 30, (), (), (), 0, None)
    >>> promises(run).holds
    ()
    """
    plugin = results.rule_plugin
    margin = results.equivalence
    lines = sentences(
        "promises.txt",
        results=results,
        target=target,
        at=f"{trimmed(results.confidence * 100)} %",
        error=f"{trimmed((1 - results.confidence) * 100)} %",
        in_family=plugin is None or plugin.in_family,
        compared=sum(pair.kind != "width" for pair in results.pairs),
        ranked=rank_column(results).ranked,
        kinds=sorted({pair.kind for pair in results.pairs}),
        margin=None if margin is None else trimmed(margin),
        questions=f"{results.questions:,}",
    )
    end = lines.index("---")
    return Promises(tuple(lines[:end]), tuple(lines[end + 1 :]))
