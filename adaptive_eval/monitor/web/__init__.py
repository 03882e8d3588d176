"""The web page of a run: the same content as the terminal, live, with plots and every trial one click away.

A :class:`~adaptive_eval.monitor.web.feed.RunWatch` keeps what has been read of a run file and reads only
what is new; :mod:`pages` and :mod:`plots` turn it into HTML and numbers; :mod:`app` serves them. Everything a
model, a dataset or a server has said is data: made inert, escaped, and bounded in size.
"""
