"""What a run of the suite skipped and reran, for CI: a skip that nobody allowed fails the run.

Active if the variable CI_LEDGER names a file; all runs of one CI add to it. ``python tests/ledger.py FILE``
prints the counts, and fails where a test was rerun more than once.
"""

import sys
from collections import Counter
from pathlib import Path
from typing import Any

ALLOWED = Path(__file__).parent / "allowed_skips.txt"
"""Reasons for which a test may be skipped: a line each, part of the reason."""


class Ledger:
    """A plugin of pytest that keeps skips and reruns."""

    def __init__(self, file: Path) -> None:
        self.file = file
        lines = ALLOWED.read_text(encoding="utf-8").splitlines()
        self.allowed = [line for line in lines if line and not line.startswith("#")]
        self.refused: list[str] = []
        self.rerun: set[tuple[str, int]] = set()

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep a test that was skipped, or is rerun: once an attempt, of which both halves may fail."""
        attempt = report.nodeid, getattr(report, "rerun", 0)
        if report.outcome == "rerun" and attempt not in self.rerun:
            self.rerun.add(attempt)
            self._add("rerun", report.nodeid, "")
        elif report.skipped and not hasattr(report, "wasxfail"):
            self._skipped(report)

    def pytest_collectreport(self, report: Any) -> None:
        """Keep a file that was skipped as a whole."""
        if report.skipped:
            self._skipped(report)

    def pytest_sessionfinish(self, session: Any) -> None:
        """Fail a run that has skipped what must not be skipped."""
        if self.refused and session.exitstatus in (0, 5):
            session.exitstatus = 1

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Name the skips that fail the run."""
        for line in self.refused:
            terminalreporter.write_line(f"SKIPPED WITHOUT LEAVE {line}", red=True)

    def _skipped(self, report: Any) -> None:
        reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
        reason = " ".join(reason.split())
        self._add("skip", report.nodeid, reason)
        if not any(part in reason for part in self.allowed):
            self.refused.append(f"{report.nodeid}: {reason} (allow it in tests/{ALLOWED.name})")

    def _add(self, *entry: str) -> None:
        with self.file.open("a", encoding="utf-8") as ledger:
            ledger.write("\t".join(entry) + "\n")


def main(file: Path) -> int:
    """Print what all runs have skipped and rerun; return 1 where a test was rerun twice."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    entries = [line.split("\t") for line in lines]
    skips = Counter(reason for kind, _, reason in entries if kind == "skip")
    reruns = Counter(test for kind, test, _ in entries if kind == "rerun")
    print(f"{skips.total()} tests skipped, {reruns.total()} rerun")
    for reason, times in skips.most_common():
        print(f"  skipped {times}: {reason}")
    for test, times in reruns.most_common():
        print(f"  rerun {times}: {test}")
    twice = [test for test, times in reruns.items() if times > 1]
    return 1 if twice else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
