"""Claims about runs as assertions, for tests."""

from adaptive_eval.run.claims import Claim, Place, at_least, not_worse
from adaptive_eval.run.each_question import each_question
from adaptive_eval.run.evaluate import Evaluation


def assert_not_worse(run: Evaluation | Place, model: str, than: str, margin: float | None = None) -> None:
    """Assert that a model is not worse than another by more than a margin; for tests.

    Parameters
    ----------
    run : Evaluation or path
        An evaluation, or the directory of a run.
    model, than : str
        The model in question, and the one it is compared with.
    margin : float, optional
        In score units, above 0. Default: that of the run's goal, or its equivalence margin.

    Raises
    ------
    AssertionError
        If it is worse, or the trials cannot tell; the message says which, with the interval.
    """
    _require(not_worse(_directory(run), model, than, margin))


def assert_at_least(run: Evaluation | Place, model: str, value: float) -> None:
    """Assert that a model's score is at least `value`; see :func:`assert_not_worse`."""
    _require(at_least(_directory(run), model, value))


def assert_each_question(
    run: Evaluation | Place, asked: str, model: str | None = None, confidence: float | None = None
) -> None:
    """Assert that models answer each question well enough, such as ``"8 of 10"``; for tests.

    See :func:`adaptive_eval.run.each_question.each_question` for the parameters.

    Raises
    ------
    AssertionError
        If a question fails, or has too few answers; the message lists these questions.
    """
    for claim in each_question(_directory(run), asked, model, confidence):
        _require(claim)


def _require(claim: Claim) -> None:
    if claim.holds is not True:
        raise AssertionError(claim.text)


def _directory(run: Evaluation | Place) -> Place:
    if isinstance(run, Evaluation):
        return run.directory
    return run
