"""Views of a run, all drawn from its run file: pages, terminal, Markdown, JSON, CSV, metrics and notices."""
