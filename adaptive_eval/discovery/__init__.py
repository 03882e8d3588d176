"""Sources that say which servers are there: files, a command, a name in the DNS.

Each is an :class:`adaptive_eval.engine.discovery.Source`: it is read repeatedly during a run, never raises,
and keeps its last answer where it cannot be read.
"""
