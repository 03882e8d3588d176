"""From an answer to a category: extractors, scorers, signals and rubrics.

A section of a config says where its scorer is; :func:`build_scorer` makes one from its options. A scorer
takes an answer of any size and content, in bounded time, and always returns a score.
"""
