"""The asynchronous shell around a session: it asks models, scores and stores, and decides nothing.

:class:`~adaptive_eval.engine.runner.Runner` drives a controller; what it needs of its neighbours is said in
:mod:`adaptive_eval.engine.protocols`.
"""
