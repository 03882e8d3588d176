"""The result of a test or an interval for one look."""

from dataclasses import dataclass

from scorio._named import Named


@dataclass(frozen=True, slots=True, repr=False)
class FixedTest(Named):
    """Result of a test or an interval for one look.

    Parameters
    ----------
    test : str
        Name of the test.
    estimate : float
        Difference A − B of the mean scores, or the mean score of one model.
    low, high : float or None
        Interval at `confidence`; None if the test has none.
    p_value : float or None
        Two-sided, against no difference; None if there is no test.
    standard_error : float or None
        Of the estimate.
    confidence : float
        Level of the interval.
    units : int
        Independent units: questions, clusters, trials of a single question, or discordant pairs.
    null : str or None
        The hypothesis that the p-value is about; None if there is no test.
    reading : str
        How the outcomes were read: as questions x trials; a vector has one trial a question.
    """

    test: str
    estimate: float
    low: float | None
    high: float | None
    p_value: float | None
    standard_error: float | None
    confidence: float
    units: int
    null: str | None = None
    reading: str = ""

    def __str__(self) -> str:
        """Say the result in a line, and that it is for one look."""
        parts = [f"{self.test}: {self.estimate:+.4f}"]
        if self.low is not None:
            parts.append(f"[{self.low:.4f}, {self.high:.4f}] at {100 * self.confidence:g} %")
        if self.p_value is not None:
            parts.append(f"p = {self.p_value:.3g} of {self.null}")
        return ", ".join(parts) + f" (units: {self.units}, {self.reading}; for one look)"
