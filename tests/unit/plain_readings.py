"""What STATISTICS says of scores and pairs, summed again from single trials in plain Python.

Nothing here keeps running sums: every figure is computed from the list of a model's trials up to a step.
"""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from scorio.sequential.evidence import tie_variance
from scorio.sequential.reference import Overlap, with_extra_questions

LOST, DROPPED = "lost", "dropped"
GATE = 2.0
"""Σ n v from which on the noise within questions is believed."""


@dataclass(frozen=True)
class Trial:
    """A question, its score, LOST or DROPPED, and the text of which the answer may be a copy."""

    question: int
    score: float | str
    text: int | None = None


@dataclass(frozen=True)
class Noise:
    """w, u, G and R of a model."""

    w: float
    u: float
    g: float
    r: float


@dataclass(frozen=True)
class Estimate:
    """What is read of a contrast, or of a score; all is of one task, or of all."""

    difference: float
    variance: float
    guarded: float
    margin: float
    questions: int
    trials: float
    slack: float


class Plain:
    """A model's trials on one task of so many questions, whose categories have these scores."""

    def __init__(self, trials, scores, questions, *, stored=False):
        self.trials, self.scores, self.size = trials, scores, questions
        self.answers, self.lost, self.asked = {}, Counter(), set()
        for trial in trials:
            self.asked.add(trial.question)
            if trial.score == LOST:
                self.lost[trial.question] += 1
            elif trial.score != DROPPED:
                self.answers.setdefault(trial.question, []).append(trial.score)
        self.means = {question: float(np.mean(given)) for question, given in self.answers.items()}
        self.estimates = self.means
        self.shares = {q: self.lost[q] / (len(xs) + self.lost[q]) for q, xs in self.answers.items()}
        self.prior = self._prior(len(trials) if stored else self._fitted_at())

    @property
    def count(self):
        return sum(map(len, self.answers.values()))

    @property
    def score(self):
        return float(np.mean(list(self.estimates.values()))) if self.estimates else 0.0

    @property
    def repeats(self):
        return float(sum(map(len, self.answers.values())) - len(self.answers))

    def _fitted_at(self):
        """Return the last step at which the prior was fitted."""
        number, at, before = Counter(), 0, 0
        for step, trial in enumerate(self.trials, start=1):
            number[trial.question] += trial.score not in (LOST, DROPPED)
            twice = sum(one >= 2 for one in number.values())
            doubled = twice >= 2 * max(before, 1)
            before = twice if doubled else before
            if doubled or step % self.size == 0 or (twice == 0 and step & (step - 1) == 0):
                at = step if any(number.values()) else at
        return at

    def _prior(self, steps):
        """Return A, m1 and m2 from the first trials."""
        cells = {}
        for trial in self.trials[:steps]:
            if trial.score not in (LOST, DROPPED):
                cells.setdefault(trial.question, []).append(trial.score)
        p1, p2 = float(np.mean(self.scores)), float(np.mean(np.square(self.scores)))
        if not cells:
            return 1e4, p1, p2
        m, each = len(cells), np.mean([len(xs) for xs in cells.values()])
        y = np.mean([np.mean(xs) for xs in cells.values()])
        y2 = np.mean([np.mean(np.square(xs)) for xs in cells.values()])
        m1, m2 = (m * y + p1 / each) / (m + 1 / each), (m * y2 + p2 / each) / (m + 1 / each)
        repeated = [np.var(xs, ddof=1) for xs in cells.values() if len(xs) > 1]
        total = (y2 - y * y) * m / max(m - 1, 1)
        within = (sum(repeated) + total) / (len(repeated) + 1)
        strength = min(max(within / (total - within), 0.05), 1e4) if repeated and total > within else 1e4
        return strength, m1, m2

    def variance(self, question, prior=None):
        """Return v of a question by a prior: that of the model, or the uniform one."""
        xs = self.answers[question]
        strength, m1, m2 = prior or self.prior
        total = len(xs) + strength
        a = (strength * m1 + sum(xs)) / total
        b = (strength * m2 + float(np.square(xs).sum())) / total
        return (b - a * a) * total / (total + 1.0)

    def avg_variance(self, question):
        size, n = len(self.scores), len(self.answers[question])
        uniform = size, float(np.mean(self.scores)), float(np.mean(np.square(self.scores)))
        return self.variance(question, uniform) * (n + size) / n**2

    def noise(self):
        """Return w, u, G and R with every answer as a draw."""
        w, u, g = ([0.0], [0.0], [0.0]) if not self.answers else ([], [], [])
        for question, xs in self.answers.items():
            v = self.variance(question)
            w, u, g = [*w, v / len(xs)], [*u, self.avg_variance(question)], [*g, len(xs) * v]
        return Noise(float(np.mean(w)), float(np.mean(u)), sum(g), float(self.count - len(self.answers)))

    def noise_of_copies(self):
        """Return the same if answers that may be copies were some: n²/Σ m² of n answers are left."""
        plain, copies, repeats = self.noise(), Counter(), self.repeats
        for trial in self.trials:
            if trial.text is not None:
                copies[trial.question, trial.text] += 1
        if not copies or repeats == 0.0:
            return plain
        inverse = inverse_left = left = shared = answers = 0.0
        for question, xs in self.answers.items():
            n, sizes = len(xs), [1 + more for (one, _), more in copies.items() if one == question]
            squares = n - sum(sizes) + sum(size**2 for size in sizes)
            inverse, inverse_left, answers = inverse + 1.0 / n, inverse_left + squares / n**2, answers + n
            left, shared = left + n**2 / squares, shared + (squares - n) / n
        alike, wider = max(repeats - shared, 1e-9) / repeats, inverse_left / inverse
        r = min(max(left - len(self.answers), 0.0), plain.r)
        return Noise(plain.w * wider / alike, plain.u * wider, plain.g * left / answers, r)

    def ends(self):
        """Return the least and the greatest mean over asked questions, each lost answer being worth 0, or 1.

        A question without an answer may have any score.
        """
        low = sum((1.0 - self.shares[q]) * mean for q, mean in self.estimates.items())
        high = low + sum(self.shares.values()) + len(self.asked) - len(self.estimates)
        return low / max(len(self.asked), 1), high / max(len(self.asked), 1)


class PlainRounds(Plain):
    """The same of a model in a round of its own; `only` some questions may count.

    Passes 1 and 2 have the weight 1. A round begins after 2, 4, 8, … passes; its weight follows from the
    noise that was known when half of the round before was still to be asked.
    """

    def __init__(self, trials, scores, questions, only=None):
        super().__init__(trials, scores, questions)
        first = 2 * questions
        begins, due = [first], [first - int(0.5 * questions)]
        while 2 * begins[-1] < len(trials):
            due.append(2 * begins[-1] - int(0.5 * begins[-1]))
            begins.append(2 * begins[-1])
        start = Plain(trials[:first], scores, questions)
        n, every = {q: max(len(start.answers.get(q, ())), 1) for q in range(questions)}, range(questions)
        weight = {q: float(q in start.answers) for q in every}
        total = {q: start.means.get(q, 0.0) for q in every}
        square = {q: weight[q] / n[q] for q in every}
        lost = {q: start.lost[q] / max(len(start.answers.get(q, ())) + start.lost[q], 1) for q in every}
        asked = {q: float(q in start.answers or start.lost[q] > 0) for q in every}
        for number, (begin, at) in enumerate(zip(begins, due, strict=True)):
            is_last = number + 1 == len(begins)
            end = len(trials) if is_last else begins[number + 1]
            known = Plain(trials[:at], scores, questions)
            prior = known._prior(at)
            known.answers |= {q: [] for q in every if q not in known.answers}
            noise = {q: known.variance(q, prior) for q in every}
            inside = Plain(trials[begin:end], scores, questions)
            r = {q: len(inside.answers.get(q, ())) for q in every}
            unit = sum(noise[q] / n[q] for q in every)
            h = unit / sum(noise[q] / max(r[q], 1) for q in every)
            if is_last:
                seen = [q for q in every if weight[q] > 0.0 and (only is None or q in only)]
                self.means = {q: total[q] / weight[q] for q in seen}
            for q in every:
                total[q] += h * inside.means.get(q, 0.0)
                weight[q] += h * (r[q] > 0)
                square[q] += h * h * (r[q] > 0) / max(r[q], 1)
                lost[q] += h * inside.lost[q] / max(r[q] + inside.lost[q], 1)
                asked[q] = asked[q] + h * (r[q] + inside.lost[q] > 0)
        self.asked, self.prior = set(every), prior
        self.estimates = {q: total[q] / weight[q] for q in seen}
        self.squares = {q: square[q] / weight[q] ** 2 for q in seen}
        self.shares = {q: lost[q] / asked[q] for q in seen}

    @property
    def count(self):
        return sum(len(self.answers[q]) for q in self.estimates)

    def noise(self):
        w, u, g = ([0.0], [0.0], 0.0) if not self.estimates else ([], [], 0.0)
        size, p1, p2 = len(self.scores), float(np.mean(self.scores)), float(np.mean(np.square(self.scores)))
        for q, estimate in self.estimates.items():
            v, n = self.variance(q), 1.0 / self.squares[q]
            squared = estimate if size == 2 else float(np.mean(np.square(self.answers[q])))
            a, b = (size * p1 + n * estimate) / (n + size), (size * p2 + n * squared) / (n + size)
            w, g = [*w, v * self.squares[q]], g + len(self.answers[q]) * v
            u.append(((n + size) / n) ** 2 * (b - a * a) / (n + size + 1.0))
        return Noise(float(np.mean(w)), float(np.mean(u)), g, float(self.count - len(self.estimates)))


def variance_of(square, guard, size, questions, total, noise, target):
    """Return V; `guard` is κ and `size` the squared size of a cluster."""
    between = (square + guard * size) / questions**2
    if target == "population":
        return max(between, 1e-15)
    trust = 1.0 - (8.0 / (8.0 + noise.r)) ** 2
    trials = noise.w / questions + guard * size / (questions + noise.r) ** 2
    within = (1.0 - trust) * between + trust * trials
    if noise.g < GATE:
        within = min(between, max(noise.w, noise.u) / questions)
    share = questions / total
    return max((1.0 - share) * between + share * within, 1e-15)


def spread(values, clusters, *, centred=False):
    """Return Σ over clusters of the squared sum of values by question, and the squared size of a cluster."""
    groups = {}
    middle = np.mean(list(values.values())) if centred else 0.0
    for question, value in values.items():
        home = question if clusters is None else clusters[question]
        groups.setdefault(home, []).append(value - middle)
    number = len(values)
    size = sum(len(one) ** 2 for one in groups.values()) / number
    return sum(sum(one) ** 2 for one in groups.values()), size**2 if clusters is not None else 1.0


def _together(first, second):
    return Noise(first.w + second.w, first.u + second.u, min(first.g, second.g), min(first.r, second.r))


def _larger(one, other):
    names = ("variance", "guarded", "margin")
    return replace(one, **{name: max(getattr(one, name), getattr(other, name)) for name in names})


def pair(first, second, *, guard, margin, target, clusters=None):
    """Return what is read of two models that were asked the same on one task."""
    gaps = {q: first.means[q] - second.means[q] for q in first.means if q in second.means}
    c, difference = max(len(gaps), 1), first.score - second.score
    (low, high), (other_low, other_high) = first.ends(), second.ends()
    slack = max(difference - (low - other_high), high - other_low - difference)
    square, size = spread(gaps, clusters) if gaps else (0.0, 1.0)
    trials = float(min(first.count, second.count))
    most = sum(one.score * (1.0 - one.score) for one in (first, second))
    step = _step(first.scores, _first_gaps(first, second), guard)
    single = first.repeats == second.repeats == 0.0

    def read(noise):
        of = lambda kappa: variance_of(square, kappa, size, c, first.size, noise, target)  # noqa: E731
        plain = 0.0 if single and len(first.scores) == 2 and clusters is None else guard
        variance, guarded = of(plain), of(guard)
        tie = _margin(difference, variance, guarded, len(gaps), trials, most, margin, step, target)
        return Estimate(difference, variance, guarded, tie, len(gaps), trials, slack)

    as_draws = read(_together(first.noise(), second.noise()))
    return _larger(as_draws, read(_together(first.noise_of_copies(), second.noise_of_copies())))


def _first_gaps(first, second):
    """Return the differences at the steps at which a question first had answers of both."""
    found, seen = {}, ({}, {})
    shared = 2 * first.size if isinstance(first, PlainRounds) else None
    for one, other in zip(first.trials[:shared], second.trials[:shared], strict=True):
        for trial, known in zip((one, other), seen, strict=True):
            if trial.score not in (LOST, DROPPED):
                known.setdefault(trial.question, []).append(trial.score)
        if one.question in seen[0] and one.question in seen[1] and one.question not in found:
            found[one.question] = float(np.mean(seen[0][one.question]) - np.mean(seen[1][one.question]))
    return list(found.values())


def _step(scores, gaps, guard):
    """Return the squared size of a difference that is not 0, of single answers."""
    if len(scores) == 2:
        return 1.0
    return (guard + sum(gap**4 for gap in gaps)) / (guard + sum(gap**2 for gap in gaps))


def _margin(difference, variance, guarded, questions, trials, most, margin, step, target):
    n = float(questions)
    if target == "benchmark":
        n = max(trials, 1.0)
        variance = min(variance, (difference**2 + most) / n)
    return float(tie_variance(difference, variance, guarded, n, margin, step))


def against_stored(live, stored, *, guard, margin, target, clusters=None):
    """Return what is read of a model against one whose trials are all in, on one task."""
    common = [q for q in live.means if q in stored.means]
    unasked = len(live.asked) - len(live.means)
    gone = sum(1 for q in live.means if q not in stored.means and stored.lost[q])
    if isinstance(live, PlainRounds):  # there the questions of both are read alone
        live = PlainRounds(live.trials, live.scores, live.size, common)
    gaps = {q: live.means[q] - stored.means[q] for q in common}
    c = max(len(common), 1)
    shares = {q: stored.lost[q] / (len(stored.answers[q]) + stored.lost[q]) for q in common}
    fall = sum(shares[q] * stored.means[q] for q in common)
    rise = sum(shares.values()) - fall
    own_fall = sum(share * live.estimates[q] for q, share in live.shares.items())
    most = max(own_fall + rise, sum(live.shares.values()) - own_fall + fall)
    slack = (most + unasked + gone) / c
    square, size = spread(gaps, clusters) if gaps else (0.0, 1.0)
    w = sum(stored.variance(q) / len(stored.answers[q]) for q in common) / c
    u = sum(stored.avg_variance(q) for q in common) / c
    of_all, copied, trials = stored.noise(), stored.noise_of_copies(), float(live.count)
    of_stored = replace(of_all, w=w, u=u)
    of_copies = replace(copied, w=w * copied.w / of_all.w, u=u * copied.u / of_all.u)
    step = _step(live.scores, _first_gaps_with(live, stored), guard)
    single = live.repeats == of_stored.r == 0.0

    def read(noise):
        of = lambda kappa: variance_of(square, kappa, size, c, live.size, noise, target)  # noqa: E731
        plain = 0.0 if single and len(live.scores) == 2 and clusters is None else guard
        variance, guarded = of(plain), of(guard)
        difference = (sum(live.estimates[q] for q in common) - sum(stored.means[q] for q in common)) / c
        if clusters is None:
            beyond = _beyond(stored, gaps)
            guarded = float(with_extra_questions(difference, guarded, beyond)[1])
            difference, variance = map(float, with_extra_questions(difference, variance, beyond))
        other = live.score - difference
        largest = live.score * (1.0 - live.score) + max(other * (1.0 - other), 0.0)
        tie = _margin(difference, variance, guarded, len(common), trials, largest, margin, step, target)
        return Estimate(difference, variance, guarded, tie, len(common), trials, slack)

    as_draws = read(_together(live.noise(), of_stored))
    return _larger(as_draws, read(_together(live.noise_of_copies(), of_copies)))


def _first_gaps_with(live, stored):
    found = {}
    shared = 2 * live.size if isinstance(live, PlainRounds) else None
    for trial in live.trials[:shared]:
        if trial.score not in (LOST, DROPPED) and trial.question in stored.means:
            found.setdefault(trial.question, trial.score - stored.means[trial.question])
    return list(found.values())


def _beyond(stored, gaps):
    """Return what the stored results say on further questions: nothing if an answer of theirs is lost."""
    values, c = np.array(list(stored.means.values())), max(len(gaps), 1)
    here = np.array([stored.means[q] for q in gaps])
    d = np.array(list(gaps.values()))
    extra = 0 if any(stored.lost.values()) else values.size - len(gaps)
    covariance = ((d * here).sum() - d.sum() * here.sum() / c) / max(c - 1, 1)
    spread_of = values.var() * values.size / max(values.size - 1, 1)
    lead = (values.sum() - here.sum()) / max(extra, 1) - here.sum() / c
    return Overlap(*map(np.float64, (len(gaps), extra, d @ d, covariance, spread_of, lead)))


def score(model, *, guard, target, clusters=None):
    """Return what is read of a model's own score on one task."""
    low, high = model.ends()
    square, size = spread(model.means, clusters, centred=True) if model.means else (0.0, 1.0)
    slack, seen = max(model.score - low, high - model.score), max(len(model.means), 1)

    def read(noise):
        variance = variance_of(square, guard, size, seen, model.size, noise, target)
        return Estimate(
            model.score, variance, variance, variance, len(model.means), float(model.count), slack
        )

    return _larger(read(model.noise()), read(model.noise_of_copies()))


def overall(weights, parts):
    """Return what is read over several tasks of these weights."""
    if len(parts) == 1:
        return parts[0]

    def total(name, power):
        return sum(weight**power * getattr(part, name) for weight, part in zip(weights, parts, strict=True))

    return Estimate(
        total("difference", 1),
        total("variance", 2),
        total("guarded", 2),
        total("margin", 2),
        min(part.questions for part in parts),
        sum(part.trials for part in parts),
        total("slack", 1),
    )
