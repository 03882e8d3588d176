"""Sources that say which servers are there: files, a command, a name in the DNS.

Each of them is an :class:`adaptive_eval.engine.discovery.Source`: it is read again and again while a run goes
on, raises nothing, and stays with what it said last where it cannot be read.
"""
