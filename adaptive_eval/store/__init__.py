"""The run file: one SQLite database per run, one writer, any number of readers.

:class:`RunWriter` appends launches, attempts, outcomes, decisions and snapshots, and makes them durable in
groups; :class:`RunReader` reads them, from any process, during the run or after it. The rows are the
plain data of :mod:`adaptive_eval.store.records`.
"""
