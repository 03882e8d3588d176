"""From a dataset to questions: files, fields, prompt templates.

:func:`load_task` reads a dataset and reports everything wrong with it at once; a :class:`Task` renders its
questions as chat messages and has a hash of what it asks.
"""

from adaptive_eval.tasks.load import FewShot, load_task
from adaptive_eval.tasks.sources import is_file_source
from adaptive_eval.tasks.task import Task
from adaptive_eval.tasks.template import PromptTemplate, template_problem

__all__ = ["FewShot", "PromptTemplate", "Task", "is_file_source", "load_task", "template_problem"]
