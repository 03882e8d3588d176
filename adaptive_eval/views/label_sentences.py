"""Sentences about labels: of people, or of a dearer judge, that a run's judge is held against."""

from collections.abc import Iterator, Sequence
from shlex import quote

from adaptive_eval.core.held import Bias
from adaptive_eval.core.label_record import LABELS
from adaptive_eval.core.results import PairResult, Results
from adaptive_eval.views.headline import headline
from adaptive_eval.views.numbers import count, fixed, interval, percent, signed, trimmed


def how_to_label(rows: int) -> str:
    """Say on the page what is to be done."""
    return (
        f"{count(rows, 'answer')} of models whose names are not shown. Give each answer the label that it "
        "deserves by your own judgement, leave none out because it is hard, and save the file: an answer "
        "that was chosen and has no label counts as the worst for every verdict."
    )


def offered(run: str, rows: int, new: int, filled: int, chance: float) -> Iterator[str]:
    """Say what was chosen, and how to label it.

    Examples
    --------
    >>> for line in offered("runs/aime", 24, 24, 0, 0.1):
    ...     print(line)
    runs/aime/labels.jsonl: 24 answers, 24 of them new, 0 with a label; each was chosen with a chance of 0.1.
    Open runs/aime/labels.html in a browser, label every answer and save the file, or fill in "score" by hand.
    Then: adaptive-eval rescore runs/aime --labels runs/aime/labels.jsonl
    """
    yield (
        f"{run}/labels.jsonl: {count(rows, 'answer')}, {new:,} of them new, {filled:,} with a label; each "
        f"was chosen with a chance of {chance:.3g}."
    )
    yield (
        f'Open {run}/labels.html in a browser, label every answer and save the file, or fill in "score" by '
        "hand."
    )
    yield f"Then: adaptive-eval rescore {quote(run)} --labels {quote(run)}/labels.jsonl"


def verdict_by_labels(results: Results, held_out: int, of: int) -> str:
    """Return the verdict that rests on labels, in one sentence."""
    words = headline(results).removesuffix(".")
    return f"{words}, by labels of {held_out:,} of {count(of, 'question')}."


def labels_words(rows: int, filled: int) -> str:
    """Say how many answers have a label, and what the others count as."""
    if filled == rows:
        return f"{count(rows, 'answer')}, all of them with a label."
    blank = rows - filled
    return (
        f"{count(rows, 'answer')}, {filled:,} with a label; {blank:,} without one count as the worst for "
        "every verdict: label them too."
    )


NO_CHANCES = (
    "No verdict: the rows have no pi. The judge's bias and its agreement with the labels are shown as if the "
    "labelled answers were chosen at random."
)
"""What labels without chances cannot say."""


def agreement_words(agreement: float | None, kappa: float | None) -> str:
    """Say how often judge and labels agree."""
    if agreement is None:
        return "No answer has both a score and a label."
    more = ""
    if kappa is not None:
        more = f", κ = {fixed(kappa, 2)}"
    return f"Judge and labels give the same score to {percent(agreement)} of these answers{more}."


def further_words(first: str, second: str, share: float | None, questions: int | None) -> str:
    """Say how many labels would decide an open pair."""
    if share is None:
        return f"{first}, {second}: labels of all answers would not decide it if it is as it looks; run more."
    return (
        f"{first}, {second}: about {count(questions or 0, 'more question')} with labels would decide it if "
        f"the difference is as it looks (samples --label {share:.2g})."
    )


def noise_words(task: str, judge: float, labels: int, noise: float, chance: float) -> str:
    """Say how much labels tell of answers that the judge gives one score."""
    return (
        f"{task}, judge's score about {trimmed(judge)}: labels lie {noise:.2g} from what it predicts "
        f"({count(labels, 'label')}); a suitable chance is {chance:.2g} times the mean one."
    )


def report_by_labels(rankings: Sequence[tuple[str, Results]]) -> list[str]:
    """Return the verdicts among the rankings of a report that rest on labels, in a sentence each."""
    return [
        f"{name}: {headline(results)} This verdict corrects the judge by labels of a random share of the "
        f"answers: at most {trimmed(100 * (1 - results.confidence))} % of such runs name a wrong winner, "
        "however biased the judge is."
        for name, results in rankings
        if results.rule == LABELS
    ]


def pair_words(pair: PairResult) -> str:
    """Return the verdict of a contrast with its interval."""
    said = {"better": "is ahead of", "worse": "is behind", "tie": "is tied with", "open": "is open against"}
    words = f"{pair.first} {said[pair.verdict]} {pair.second}"
    if pair.difference is None:
        return words
    ends = interval(pair.difference_low, pair.difference_high, sign=True)
    return f"{words}: {signed(pair.difference)} {ends}"


def bias_words(one: Bias) -> str:
    """Return the judge's bias of a model, or how it differs between two, with its interval."""
    if one.second is None:
        name = one.first
    else:
        name = f"{one.first} less {one.second}"
    if one.bias is None:
        return f"{name}: no labels"
    words = f"{name}: {signed(one.bias)} {interval(one.low, one.high, sign=True)}"
    if one.second is not None:
        return f"{words}, on {count(one.labels, 'pair of labels', 'pairs of labels')}"
    kappa = ""
    if one.kappa is not None:
        kappa = f", κ = {fixed(one.kappa, 2)}"
    agreed = ""
    if one.agreement is not None:
        agreed = f", agreement {percent(one.agreement)}{kappa}"
    return f"{words}, on {count(one.labels, 'label')}{agreed}"
