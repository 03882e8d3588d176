"""Where requests are made and answers scored: in this process, or by workers on a cluster of Ray.

The engine stays in this process with everything that decides, counts and stores. A place at a server is given
out by it alone, so limits and budgets hold over all workers. Workers make attempts and score answers
(:mod:`~adaptive_eval.executors.worker`), and know nothing else.
"""

from adaptive_eval.executors.workplace import Here, Workplace, workplace_of

__all__ = ["Here", "Workplace", "workplace_of"]
