"""Reports on a run, from its run file alone: HTML and Markdown to read, JSON and CSV to process."""

from adaptive_eval.report.summary import Summary, summarise
from adaptive_eval.report.write import ReportPaths, write_reports

__all__ = ["ReportPaths", "Summary", "summarise", "write_reports"]
