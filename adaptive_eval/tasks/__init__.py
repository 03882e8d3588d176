"""From a dataset to questions: files, fields, prompt templates.

:func:`load_task` reads a dataset and reports everything wrong with it at once; a :class:`Task` renders its
questions as chat messages and has a hash of what it asks.
"""
