"""Live views of a run: terminal, JSON lines, metrics, notices and the web page. They read the run file."""
