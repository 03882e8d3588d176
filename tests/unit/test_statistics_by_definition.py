"""Metrics and votes of small tables against their definitions, in whole numbers, with all options crossed."""

from fractions import Fraction
from itertools import combinations, permutations, product
from math import ceil

import numpy as np
import pytest
from scipy.stats import rankdata

from scorio import eval as metrics
from scorio import rank
from scorio.rank._pairwise import pair_counts
from scorio.rank._voting import preferences

# ------------------------------------------------------------------ the mean of rewards


TABLES = {
    "one answer": ((1,),),
    "one question": ((0, 1, 1, 2),),
    "one column": ((0,), (2,), (1,)),
    "ragged": ((0, 1, 2, 2), (1,), (2, 0)),
    "all alike": ((1, 1), (1, 1)),
}
REWARDS = {"rights": (0, 1, 1), "uneven": (-1, 2, 3), "falling": (1, 0, -2), "alike": (2, 2, 2)}
PRIORS = {"none": None, "some": (1, 0, 2), "none of one": (0, 0, 0)}


def weights_of(questions, kind):
    if kind == "equal":
        return None, [Fraction(1, questions)] * questions
    shares = [Fraction(2 * number + 1, questions**2) for number in range(questions)]
    return list(map(float, shares)), shares


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("rewards", REWARDS)
@pytest.mark.parametrize("kind", ["equal", "unequal"])
@pytest.mark.parametrize("prior", PRIORS)
def test_means_of_rewards_are_what_their_formulas_say(name, rewards, kind, prior):
    table, w = TABLES[name], REWARDS[rewards]
    given, shares = weights_of(len(table), kind)
    counts = [[row.count(category) for category in range(3)] for row in table]
    earlier = PRIORS[prior] and [PRIORS[prior]] * len(table)
    mean = variance = average = deviation = Fraction(0)
    for share, row in zip(shares, counts, strict=True):
        nu = [
            1 + count + (0 if earlier is None else old)
            for count, old in zip(row, PRIORS[prior] or (0,) * 3, strict=True)
        ]
        total = sum(nu)
        a = Fraction(sum(n * worth for n, worth in zip(nu, w, strict=True)), total)
        b = Fraction(sum(n * worth**2 for n, worth in zip(nu, w, strict=True)), total)
        mean += share * a
        variance += share**2 * (b - a**2) / (total + 1)
        made = sum(row)
        average += share * Fraction(sum(n * worth for n, worth in zip(row, w, strict=True)), made)
        flat = [1 + count for count in row]
        c = Fraction(sum(n * worth for n, worth in zip(flat, w, strict=True)), made + 3)
        d = Fraction(sum(n * worth**2 for n, worth in zip(flat, w, strict=True)), made + 3)
        deviation += share**2 * Fraction(made + 3, made) ** 2 * (d - c**2) / (made + 4)
    longest = max(map(len, table))
    padded = [[*row, *[-1] * (longest - len(row))] for row in table]
    mask = np.array(padded) < 0
    forms = [
        {"R": None, "counts": counts},
        {"R": padded, "missing": -1},
        {"R": np.abs(padded), "missing": mask},
    ]
    for form in forms:
        R = form.pop("R")
        found = metrics.bayes(R, w, prior_counts=earlier, question_weights=given, **form)
        assert found == pytest.approx((float(mean), float(variance) ** 0.5), rel=1e-12, abs=1e-14)
        found = metrics.avg(R, w, question_weights=given, **form)
        assert found == pytest.approx((float(average), float(deviation) ** 0.5), rel=1e-12, abs=1e-14)


@pytest.mark.parametrize(
    ("earlier", "counts"),
    [
        ([[0, 2], [1, -1]], [[1, 0, 1], [0, 1, 0]]),
        ([2, 1], [[0, 0, 1], [0, 1, 0]]),
        ([2, -1], [[0, 0, 1], [0, 0, 0]]),
        ([0, 2, 1, -1], [[1, 0, 1], [0, 1, 0]]),
        ([[2], [-1]], [[0, 0, 1], [0, 0, 0]]),
    ],
)
def test_earlier_answers_count_as_they_are_written(earlier, counts):
    """A row for each question, or all rows one after another; some answers were not made."""
    R = [[0, 1, 2], [2, 2, -1]]
    by_rows = metrics.bayes(R, [0, 1, 3], earlier, missing=-1)
    assert by_rows == metrics.bayes(R, [0, 1, 3], prior_counts=counts, missing=-1)
    assert by_rows != metrics.bayes(R, [0, 1, 3], missing=-1)


@pytest.mark.parametrize("w", [None, (0.0, 1.0), (-2.0, 5.0)])
def test_right_and_wrong_answers_are_a_table_of_two_categories(w):
    R, counts = [[0, 1, 9], [1, 9, 9], [0, 1, 1]], [[1, 1], [0, 1], [1, 2]]
    low, high = w or (0, 1)
    for metric in (metrics.bayes, metrics.avg):
        found = metric(R, w, missing=9)
        assert found == metric(None, w, counts=counts)
        plain = metric(R, missing=9)
        assert found == pytest.approx((low + (high - low) * plain[0], (high - low) * plain[1]))


# ------------------------------------------------------------------ draws of k answers


def chosen(row, k):
    """Return how many are right of each choice of k answers."""
    return [sum(part) for part in combinations(row, k)]


DRAWN = {
    "pass_at_k": lambda right, k: right >= 1,
    "pass_hat_k": lambda right, k: right == k,
    "g_pass_at_k": lambda right, k: right == k,
    "unanimous_at_k": lambda right, k: right == k,
    "maj_at_k": lambda right, k: right >= k // 2 + 1,
    "mg_pass_at_k": lambda right, k: Fraction(2 * max(right - ceil(k / 2), 0), k),
}


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("kind", ["equal", "unequal"])
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_draws_of_answers_are_means_over_all_choices(name, kind, k):
    table = [(0, 1, 1, 0, 1), (1, 1, 1, 1), (0, 0, 0, 0, 0, 0), (0, 1, 0, 0)]
    given, shares = weights_of(len(table), kind)
    value = Fraction(0)
    for share, row in zip(shares, table, strict=True):
        told = [Fraction(DRAWN[name](right, k)) for right in chosen(row, k)]
        value += share * sum(told) / len(told)
    counts = [[row.count(0), row.count(1)] for row in table]
    padded = [[*row, *[9] * (6 - len(row))] for row in table]
    metric = getattr(metrics, name)
    assert metric(None, k, counts=counts, question_weights=given) == pytest.approx(float(value), abs=1e-14)
    assert metric(padded, k, missing=9, question_weights=given) == pytest.approx(float(value), abs=1e-14)
    (row,) = table[:1]
    told = [Fraction(DRAWN[name](right, k)) for right in chosen(row, k)]
    assert metric(row, k) == pytest.approx(float(sum(told) / len(told)), abs=1e-14)


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("tau", [0.0, 0.25, 0.5, 0.75, 1.0])
def test_a_threshold_is_met_by_the_share_of_choices_with_so_many_right(k, tau):
    table = [(0, 1, 1, 0, 1), (1, 0, 0, 1)]
    need = max(ceil(tau * k), 1)
    told = [np.mean([right >= need for right in chosen(row, k)]) for row in table]
    counts = [[row.count(0), row.count(1)] for row in table]
    found = metrics.g_pass_at_k_tau(None, k, tau, counts=counts, question_weights=[0.25, 0.75])
    assert found == pytest.approx(0.25 * told[0] + 0.75 * told[1])


# ------------------------------------------------------------------ ranks and votes


SCORES = [(0.5,), (1.0, 1.0, 1.0), (0.2, 0.9, 0.9, 0.1, 0.2), (3.0, 2.0, 1.0), (0.0, 0.0, -1.0)]
METHODS = {
    "competition": "min",
    "competition_max": "max",
    "dense": "dense",
    "avg": "average",
    "ordinal": "ordinal",
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scores", SCORES)
def test_ranks_are_those_of_scipy_with_the_best_first(method, scores):
    expected = rankdata(-np.array(scores), method=METHODS[method])
    assert rank.rank_scores(scores, method).tolist() == expected.tolist()


def votes(seed, models, questions, trials, absent=0.0):
    rng = np.random.default_rng([20_261, seed, models])
    R = rng.integers(0, 2, (models, questions, trials))
    if seed % 3 == 0:
        R[-1] = R[0]  # two alike
    mask = rng.random(R.shape) < absent
    return R, mask


BOARDS = [
    votes(seed, models, questions, 2)[0]
    for seed in range(4)
    for models, questions in ((2, 1), (3, 4), (4, 5))
]


def preferred(R, policy):
    """Return the votes for each model over each other, by questions, as whole halves."""
    right = R.sum(axis=2)
    models = len(R)
    above = [[Fraction(0)] * models for _ in range(models)]
    for i, j in permutations(range(models), 2):
        for q in range(R.shape[1]):
            if right[i, q] > right[j, q]:
                above[i][j] += 1
            elif right[i, q] == right[j, q] and policy == "half":
                above[i][j] += Fraction(1, 2)
    return above


CLOSE = [votes(seed, 5, 3, 1)[0] for seed in range(40)]
"""Boards with many majorities that are equally strong, and cycles of them."""


@pytest.mark.parametrize("policy", ["half", "ignore"])
def test_votes_of_two_models_are_counted_by_questions(policy):
    for R in BOARDS + CLOSE:
        assert preferences(R, policy).tolist() == [list(map(float, row)) for row in preferred(R, policy)]


@pytest.mark.parametrize("number", range(len(BOARDS)))
def test_points_and_won_pairs_are_counted_by_questions(number):
    R = BOARDS[number]
    models = range(len(R))
    above = preferred(R, "ignore")
    halves = preferred(R, "half")
    # L - rank points with the mean of tied ranks is one for each model that is beaten, a half for one as good
    borda = [float(sum(halves[i][j] for j in models if j != i)) for i in models]
    assert rank.borda(R, return_scores=True)[1].tolist() == pytest.approx(borda)
    won = [sum(int(np.sign(above[i][j] - above[j][i])) for j in models) for i in models]
    assert rank.copeland(R, return_scores=True)[1].tolist() == won
    shares = []
    for i in models:
        decided = sum(above[i][j] + above[j][i] for j in models)
        shares.append(float(sum(above[i]) / decided) if decided else 0.5)
    assert rank.win_rate(R, return_scores=True)[1].tolist() == pytest.approx(shares)


def paths_of(above, i, j):
    """Return the strongest of all paths of majorities from one model to another."""
    others = [one for one in range(len(above)) if one not in (i, j)]
    best = Fraction(0)
    for size in range(len(others) + 1):
        for middle in permutations(others, size):
            way = list(zip((i, *middle), (*middle, j), strict=True))
            strength = min(above[a][b] if above[a][b] > above[b][a] else Fraction(0) for a, b in way)
            best = max(best, strength)
    return best


def levels(above):
    """Return L for those that none left is above, and so on."""
    found, left, level = [0.0] * len(above), set(range(len(above))), float(len(above))
    while left:
        top = {one for one in left if not any(above[other][one] for other in left)}
        for one in top:
            found[one] = level
        left, level = left - top, level - 1.0
    return found


@pytest.mark.parametrize("policy", ["half", "ignore"])
@pytest.mark.parametrize("number", range(len(BOARDS)))
def test_orders_of_majorities_are_those_of_their_definitions(number, policy):
    R = BOARDS[number]
    models = range(len(R))
    above = preferred(R, policy)
    path = [[paths_of(above, i, j) if i != j else Fraction(0) for j in models] for i in models]
    beats = [[path[i][j] > path[j][i] for j in models] for i in models]
    assert rank.schulze(R, policy, return_scores=True)[1].tolist() == levels(beats)
    values = {}
    for order in permutations(models):
        values[order] = sum(above[i][j] - above[j][i] for i, j in combinations(order, 2))
    best = [order for order, value in values.items() if value == max(values.values())]
    forced = [
        [i != j and all(order.index(i) < order.index(j) for order in best) for j in models] for i in models
    ]
    assert rank.kemeny_young(R, policy, return_scores=True)[1].tolist() == levels(forced)


CYCLES = [
    np.random.default_rng([7, seed, *shape]).integers(0, 2, shape)
    for shape, seed in (((3, 7, 2), 276), ((3, 7, 2), 2162), ((3, 9, 3), 333), ((3, 9, 3), 1013))
]
"""Boards on which majorities with one margin and different votes, or equally strong ones, form a cycle."""


@pytest.mark.parametrize("policy", ["half", "ignore"])
@pytest.mark.parametrize("strength", ["margin", "winning_votes"])
@pytest.mark.parametrize("R", BOARDS + CLOSE + CYCLES, ids=range(len(BOARDS + CLOSE + CYCLES)))
def test_ranked_pairs_keep_the_strongest_majorities(R, strength, policy):
    """Of equally strong ones those that contradict each other are all left out."""
    models = range(len(R))
    above = preferred(R, policy)
    won = [(i, j) for i, j in permutations(models, 2) if above[i][j] > above[j][i]]
    keys = {}
    for i, j in won:
        lead = above[i][j] - above[j][i] if strength == "margin" else above[i][j]
        keys.setdefault((lead, above[i][j]), []).append((i, j))
    reach = set()

    def closed(pairs):
        found = set(pairs)
        while True:
            more = {(a, d) for (a, b), (c, d) in product(found, found) if b == c} - found
            if not more:
                return found
            found |= more

    for key in sorted(keys, reverse=True):
        new = {(i, j) for i, j in keys[key] if (j, i) not in reach}
        together = closed(reach | new)
        sound = {(i, j) for i, j in new if (j, i) not in together}
        reach = closed(reach | sound)
    beats = [[(i, j) in reach for j in models] for i in models]
    assert rank.ranked_pairs(R, strength, policy, return_scores=True)[1].tolist() == levels(beats)


@pytest.mark.parametrize("absent", [0.0, 0.3, 1.0])
def test_pairs_are_counted_over_trials_that_both_made(absent):
    R, mask = votes(5, 3, 4, 3, absent)
    wins, ties = pair_counts(R, mask if absent else None)
    for i, j in product(range(3), repeat=2):
        both = [
            (R[i, q, t], R[j, q, t])
            for q in range(4)
            for t in range(3)
            if not mask[i, q, t] and not mask[j, q, t]
        ]
        assert wins[i, j] == sum(one > other for one, other in both)
        assert ties[i, j] == (0 if i == j else sum(one == other for one, other in both))
