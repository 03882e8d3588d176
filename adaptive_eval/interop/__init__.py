"""Results of other tools: read into the vocabulary of this package, written out again, and driven.

A reader turns one file of another tool into a :class:`~adaptive_eval.interop.found.Log`;
:func:`~adaptive_eval.interop.recorded_files.open_logs` finds the reader that a file needs. The libraries of
those tools are imported when they are needed and only then.
"""
