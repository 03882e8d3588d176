"""Reports on a run, from its run file alone: HTML and Markdown to read, JSON and CSV to process."""
