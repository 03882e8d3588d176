"""Sampling seeds of trials."""

from __future__ import annotations

from hashlib import blake2b

from adaptive_eval.core.spec import SessionSpec

_SEEDS = 2**31
_REPEATS = 2**16


def trial_seed(run_seed: int, model: str, task: str, question: str, repeat: int) -> int:
    """Sampling seed of a trial: a hash of (run seed, model, task, question), plus `repeat`; in [0, 2**31).

    The repeats of a question have neighbouring seeds, because vLLM gives answer i of a request the seed + i:
    a request for the next n repeats of a question gives each repeat the seed that it would have alone. So no
    two trials of a question share a seed, however they are grouped into requests.

    Examples
    --------
    >>> trial_seed(1, "a", "t", "q", 3) - trial_seed(1, "a", "t", "q", 0)
    3
    >>> trial_seed(1, "a", "t", "q", 0) != trial_seed(1, "b", "t", "q", 0)
    True
    """
    return _seed(_begun_hash(run_seed, model, task), question, repeat)


class TrialSeeds:
    """The seeds of a session's trials, with the common part of their names hashed once."""

    def __init__(self, spec: SessionSpec) -> None:
        self._begun = [
            [_begun_hash(spec.seed, model.name, task.name) for task in spec.tasks] for model in spec.models
        ]

    def of(self, model: int, task: int, question: str, repeat: int) -> int:
        """Return :func:`trial_seed` of the numbers of a model and a task."""
        return _seed(self._begun[model][task], question, repeat)


def _begun_hash(run_seed: int, model: str, task: str) -> blake2b:
    """Return the hash of what the seeds of a model's trials of a task have in common."""
    return blake2b(f"{run_seed}\x1f{model}\x1f{task}\x1f".encode("utf-8", "surrogatepass"), digest_size=8)


def _seed(begun: blake2b, question: str, repeat: int) -> int:
    whole = begun.copy()
    whole.update(question.encode("utf-8", "surrogatepass"))
    first = int.from_bytes(whole.digest(), "big") % (_SEEDS - _REPEATS)
    return (first + repeat) % _SEEDS
