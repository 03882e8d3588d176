"""Live web pages of a run: the content of the terminal, with plots and every trial.

A :class:`~adaptive_eval.views.web.feed.RunWatch` caches a run file and reads only
new rows; :mod:`pages` and :mod:`plots` turn it into HTML and numbers; :mod:`app` serves them. Everything a
model, a dataset or a server has said is data: made inert, escaped, and bounded in size.
"""
