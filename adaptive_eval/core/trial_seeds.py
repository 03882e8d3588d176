"""The sampling seed of every trial."""

from __future__ import annotations

from hashlib import blake2b

from adaptive_eval.core.spec import SessionSpec

_SEEDS = 2**31
_REPEATS = 2**16


class TrialSeeds:
    """The sampling seeds of a session's trials, in [0, 2**31): a hash of the names, plus the repeat.

    The repeats of a question have neighbouring seeds, because vLLM gives answer i of a request the seed + i:
    a request for the next n repeats of a question gives each repeat the seed that it would have alone. So no
    two trials of a question share a seed, however they are grouped into requests.
    """

    def __init__(self, spec: SessionSpec) -> None:
        self._begun = []
        for model in spec.models:
            names = [f"{spec.seed}\x1f{model.name}\x1f{task.name}\x1f" for task in spec.tasks]
            self._begun.append([blake2b(_bytes(name), digest_size=8) for name in names])

    def of(self, model: int, task: int, question: str, repeat: int) -> int:
        """Return the seed of a trial, given the numbers of its model and task."""
        whole = self._begun[model][task].copy()
        whole.update(_bytes(question))
        first = int.from_bytes(whole.digest(), "big") % (_SEEDS - _REPEATS)
        return (first + repeat) % _SEEDS


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")
