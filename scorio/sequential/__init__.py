"""Comparisons of models while trials arrive, with an error rate that holds at any time.

:func:`compare` reads two outcome matrices, :func:`board` several, :func:`score` one; :class:`Monitor` takes
outcomes one by one in anyone's loop. :func:`forecast` and :func:`sample_size` say how many trials a verdict
takes. :func:`paired_difference`, :func:`unpaired_difference`, :func:`permutation_test`, :func:`mcnemar`,
:func:`mean_score`, :func:`bootstrap` and :func:`posterior_interval` are for one look after a number of trials
fixed in advance.

Outcomes are read by their form: vectors are streams of trials in their order, matrices questions x trials,
three dimensions models x questions x trials, a frame a benchmark with a model a column. Results say how they
were read.

Examples
--------
Two models answered the same 200 questions twice each; an entry is 1 where an answer is right. The verdict is
'first', 'second', 'tie' (the difference is smaller than `equivalence`) or 'open' (more trials are needed).

>>> import numpy as np
>>> from scorio.sequential import compare
>>> rng = np.random.default_rng(1)
>>> A, B = rng.random((200, 2)) < 0.8, rng.random((200, 2)) < 0.6
>>> result = compare(A, B, equivalence=0.05, names=("new", "old"))
>>> result.verdict
'first'
>>> print(result)
new is better than old (after 17 trials of each model; largest e-value ≥ 20)
new - old: +0.2325 [+0.1338, +0.3312] at 95 %, valid at every look; 200 questions x 2 trials
"""

from scorio._names import lazy

__all__, __getattr__, __dir__ = lazy(__name__, __file__)
