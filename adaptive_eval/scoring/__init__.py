"""From an answer to a category: extractors, scorers, signals and rubrics.

:data:`SCORERS` names the scorers of a config; :func:`build_scorer` makes one from its options. A scorer takes
an answer of any size and content, in bounded time, and always returns a score.
"""
