"""Rankings by every method and metric: those of the published package, options, and unequal trials."""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy
from scipy import stats

from scorio import eval as metrics
from scorio import rank
from scorio.arrays import product
from scorio.rank._glicko import after_period
from scorio.rank._trueskill import _told as trueskill_of

# Ranking methods of the published package: the same names, signatures and numbers, by independent means.


GOLDEN = json.loads((Path(__file__).resolve().parents[1] / "data" / "rank_reference.json").read_text())
TENSORS = [np.array(tensor) for tensor in GOLDEN["tensors"]]
CASES = GOLDEN["cases"]
FITTED = {case["name"] for case in CASES if case["name"].startswith(("bradley", "rao", "plackett", "rasch"))}

METHODS = sorted({case["name"] for case in CASES})


@pytest.mark.parametrize("case", CASES, ids=[f"{c['name']}-{c['tensor']}-{c['options']}" for c in CASES])
def test_scores_and_ranks_are_those_of_the_published_package(case):
    name, R = case["name"], TENSORS[case["tensor"]]
    ranks, scores = getattr(rank, name)(R, return_scores=True, **case["options"])
    # The published fits stop at L-BFGS's default accuracy, and part models there that are exactly equal.
    tolerance = 2e-3 if name in FITTED else 1e-9
    assert scores == pytest.approx(case["scores"], rel=tolerance, abs=tolerance)
    assert ranks.tolist() == rank.rank_scores(case["scores"], tol=1e-5 if name in FITTED else 1e-9).tolist()


def test_independent_packages_agree():
    R, expected = TENSORS[0], GOLDEN["independent"]
    strengths = rank.bradley_terry(R, return_scores=True)[1]
    assert strengths == pytest.approx(expected["bradley_terry"], rel=1e-6)
    assert rank.rasch(R, return_scores=True)[1] == pytest.approx(expected["rasch"], rel=1e-6)
    assert rank.pagerank(R, return_scores=True)[1] == pytest.approx(expected["pagerank"], rel=1e-9)
    logs = np.log(rank.rank_centrality(R, return_scores=True, tie_handling="ignore")[1])
    assert logs - logs.mean() == pytest.approx(expected["rank_centrality"], rel=1e-7)


@pytest.mark.parametrize("name", METHODS)
def test_order_of_the_models_does_not_matter_and_equal_models_tie(name):
    R = TENSORS[1]
    options = {"reg_discrimination": 1.0} if "2pl" in name else {}
    ranks = getattr(rank, name)(R, **options)
    order = [3, 0, 4, 1, 2]
    assert getattr(rank, name)(R[order], **options).tolist() == ranks[order].tolist()
    assert ranks[0] == ranks[1]


@pytest.mark.parametrize("prior", [rank.CauchyPrior(-0.1, 0.7), rank.LaplacePrior(0.2, 0.8), 1.0])
def test_models_with_as_many_right_answers_have_one_ability_in_the_rasch_model(prior):
    R = np.array([[1, 1, 0, 0, 0, 1], [0, 0, 1, 1, 0, 0], [0, 1, 0, 1, 1, 0], [1, 0, 0, 1, 0, 0]])[:, :, None]
    ranks, scores = rank.rasch_map(R, prior, "ordinal", return_scores=True)
    assert (scores[0], scores[1]) == (scores[2], scores[3])
    assert ranks.tolist() == [1, 3, 2, 4]
    missing = np.zeros(R.shape, dtype=bool)
    missing[0, 4] = missing[2, 0] = True  # as many right answers to other questions
    fewer = rank.rasch_map(R, return_scores=True, missing=missing)[1]
    assert abs(fewer[0] - fewer[2]) > 0.01


@pytest.mark.parametrize("name", ["bradley_terry", "plackett_luce", "rao_kupper", "rasch", "rasch_2pl"])
def test_separated_models_have_no_maximum_likelihood_strengths_but_map_ranks_them(name):
    R = np.array([[[1, 1], [1, 1], [1, 1]], [[0, 1], [0, 1], [1, 0]], [[0, 0], [0, 0], [0, 0]]])
    if name == "rao_kupper":  # ties say that nobody is infinitely better
        assert rank.rao_kupper(R).tolist() == [1, 2, 3]
        ranks, strengths = rank.rao_kupper(np.ones((3, 4)), return_scores=True)
        assert (ranks.tolist(), strengths.tolist()) == ([1, 1, 1], [1.0, 1.0, 1.0])
    else:
        with pytest.raises(ValueError, match=f"no finite .* use {name}_map"):
            getattr(rank, name)(R)
    assert getattr(rank, f"{name}_map")(R).tolist() == [1, 2, 3]


@pytest.mark.parametrize("shape", [(3, 7, 2), (20, 1003, 20), (500, 3, 450)])
def test_products_in_parts_of_one_thread_are_products(shape):
    rows, terms, columns = shape
    a, b = np.random.default_rng(0).random((rows, terms)), np.random.default_rng(1).random((terms, columns))
    np.testing.assert_allclose(product(a, b), a @ b, rtol=1e-12)


def test_a_condorcet_cycle_ties():
    # Questions that rank the models 0 > 1 > 2, 1 > 2 > 0 and 2 > 0 > 1.
    R = np.array([[[1, 1], [0, 0], [1, 0]], [[1, 0], [1, 1], [0, 0]], [[0, 0], [1, 0], [1, 1]]])
    for method in (
        *(rank.copeland, rank.schulze, rank.ranked_pairs, rank.kemeny_young, rank.borda, rank.win_rate),
    ):
        assert method(R).tolist() == [1, 1, 1]


def test_the_weakest_majority_of_a_cycle_is_left_out_of_ranked_pairs():
    # Questions that rank 0 > 1 > 2 (four), 1 > 2 > 0 (three) and 2 > 0 > 1 (two): 2 > 0 has 5 of 9 votes.
    orders = [[2, 1, 0]] * 4 + [[0, 2, 1]] * 3 + [[1, 0, 2]] * 2
    right = np.array(orders).T
    R = (np.arange(2) < right[..., None]).astype(int)
    for strength in ("margin", "winning_votes"):
        assert rank.ranked_pairs(R, strength, return_scores=True)[1].tolist() == [3.0, 2.0, 1.0]
    # Without the first question two majorities of the cycle are equally weak, 0 > 1 and 2 > 0.
    assert rank.ranked_pairs(R[:, 1:], return_scores=True)[1].tolist() == [3.0, 3.0, 2.0]


def test_glicko_is_that_of_the_example_of_its_author():
    """Glickman, The Glicko system: a player of 1500 (200) beats 1400 (30), and loses to two others."""
    before = [1500.0, 1400.0, 1550.0, 1700.0], [200.0**2, 30.0**2, 100.0**2, 300.0**2]
    ratings, variances = after_period([1, 0, 2, 2], *before, [False] * 3)
    assert (round(ratings[0]), round(variances[0] ** 0.5, 1)) == (1464, 151.4)


def test_deviations_of_glicko_are_those_of_the_published_package():
    # rank.glicko(TENSORS[0][:, :2, 0], c=30.0, return_deviation=True)[2] of scorio 0.2.3.
    R = TENSORS[0][:, :2, 0]
    ranks, ratings, deviations = rank.glicko(R, c=30.0, return_deviation=True)
    assert deviations == pytest.approx(
        [168.7500190389, 161.8420986452, 192.8571948364, 192.8571948364, 173.0227483509, 173.0227483509],
        abs=1e-9,
    )
    named = rank.glicko(dict(zip("abcdef", R, strict=True)), c=30.0, return_deviation=True)
    assert named.deviations.tolist() == deviations.tolist()
    assert (named.ranks.tolist(), named.scores.tolist()) == (ranks.tolist(), ratings.tolist())
    assert rank.glicko(dict(zip("abcdef", R, strict=True))).deviations is None


@pytest.mark.parametrize(("won", "lead", "margin"), [(1, -2.0, 0.3), (-1, 1.5, 0.1), (0, -1.2, 0.4)])
def test_a_game_of_trueskill_tells_the_moments_of_a_truncated_normal(won, lead, margin):
    low, high = {1: (margin, np.inf), -1: (-np.inf, -margin), 0: (-margin, margin)}[won]
    told = trueskill_of(won, lead, margin)
    cut = scipy.stats.truncnorm(low - lead, high - lead)
    assert told.shift == pytest.approx(cut.mean(), rel=1e-9)
    assert 1.0 - told.shrink == pytest.approx(cut.var(), rel=1e-7)


def test_trueskill_holds_for_surprises_that_no_density_has():
    shift, shrink = trueskill_of(1, -60.0, 0.0)
    assert (shift, shrink) == pytest.approx((60.01665, 0.99972), abs=1e-4)
    assert trueskill_of(0, 60.0, 1.0) == pytest.approx((-59.01694, 0.99971), abs=1e-4)
    assert trueskill_of(1, 60.0, 0.0) == (0.0, 0.0)


def test_marginal_difficulties_are_a_maximum_of_the_integrated_likelihood():
    R = np.concatenate([TENSORS[0], np.ones((6, 1, 8), dtype=int), np.zeros((6, 1, 8), dtype=int)], axis=1)
    _, scores, items = rank.rasch_mml(R, em_iter=300, n_quadrature=151, return_item_params=True)
    assert items["difficulty"][-2:].tolist() == [-np.inf, np.inf]
    right, grid = TENSORS[0].sum(axis=2), np.linspace(-8.0, 8.0, 1001)

    def densities(difficulty):
        chance = scipy.special.expit(grid[:, None] - difficulty)
        answers = scipy.stats.binom.pmf(right[:, None], 8, chance).prod(axis=2)
        return answers * scipy.stats.norm.pdf(grid)

    def value(difficulty):
        return np.log(densities(difficulty).sum(axis=1)).sum()

    best, steps = items["difficulty"][:-2], 1e-4 * np.eye(9)
    slopes = [(value(best + step) - value(best - step)) / 2e-4 for step in steps]
    assert np.abs(slopes).max() < 1e-4
    of_model = densities(best)
    assert scores == pytest.approx((of_model * grid).sum(axis=1) / of_model.sum(axis=1), abs=1e-6)


def test_an_empirical_prior_decides_where_there_are_no_decisive_outcomes():
    prior = rank.EmpiricalPrior([[0, 0, 1], [1, 1, 1]], var=0.5)
    assert rank.bradley_terry_map([[1, 0, 1], [1, 0, 1]], prior).tolist() == [2, 1]


@pytest.mark.parametrize("name", ["avg", "pass_at_k", "borda", "elo", "bradley_terry_map", "rasch_map"])
def test_names_of_models_are_kept(name):
    method, arguments = getattr(rank, name), (2,) if name == "pass_at_k" else ()
    names = [f"m{number}" for number in range(len(TENSORS[0]))]
    ranks, scores = method(TENSORS[0], *arguments, return_scores=True)
    named = method(dict(zip(names, TENSORS[0], strict=True)), *arguments)
    assert named.names == tuple(names)
    assert np.asarray(named).tolist() == ranks.tolist()
    assert named.scores.tolist() == scores.tolist()
    assert named.to_dict()["ranking"] == name
    assert str(named).splitlines()[1].split()[1] == names[int(np.argmin(ranks))]


def outcomes_of_items(seed):
    """Outcomes of 5 to 20 models on 30 to 150 questions that tell models apart more or less sharply."""
    rng = np.random.default_rng(seed)
    models, questions, trials = (5, 10, 20)[seed % 3], (30, 60, 150)[seed // 3 % 3], (1, 4, 16)[seed // 9 % 3]
    ability, difficulty = rng.normal(0.0, 1.0, (models, 1)), rng.normal(0.0, 1.2, questions)
    logit = np.exp(rng.normal(0.0, 0.4, questions)) * (ability - difficulty)
    R = (rng.random((models, questions, trials)) < 1.0 / (1.0 + np.exp(-logit))[..., None]).astype(int)
    right = R.sum(axis=(0, 2))
    return R[:, (right > 0) & (right < models * trials)]


@pytest.mark.parametrize("name", ["rasch_2pl", "rasch_2pl_map"])
def test_two_parameter_fits_converge_at_their_defaults(name):
    for seed in range(27):
        R = outcomes_of_items(seed)
        _, theta, items = getattr(rank, name)(R, return_item_params=True)
        a, b = items["discrimination"], items["difficulty"]
        error = R.shape[2] * scipy.special.expit(a * (theta[:, None] - b)) - R.sum(axis=2)
        slope = (error * a).sum(axis=1) + (theta if name.endswith("map") else 0.0)
        assert np.abs(slope).max() < 1e-4
        assert b.mean() == pytest.approx(0.0, abs=1e-9)


def loss_of_guesses(x, right, trials, fixed, variance):
    """Return minus the penalised log-likelihood of 3PL as it is published; the questions' mean is free."""
    models, questions = right.shape
    theta, b, log_a, g = np.split(x, models + questions * np.arange(3))
    c = fixed if fixed is not None else 0.5 * scipy.special.expit(g)
    p = c + (1.0 - c) * scipy.special.expit(np.exp(log_a) * (theta[:, None] - b + b.mean()))
    answers = scipy.special.xlogy(right, p) + scipy.special.xlog1py(trials - right, -p)
    return (theta**2).sum() / (2.0 * variance) + 0.01 * log_a @ log_a + 0.1 * g @ g - answers.sum()


@pytest.mark.parametrize(("seed", "fixed"), [(18, None), (18, 0.2), (18, 0.0)])
@pytest.mark.parametrize("name", ["rasch_3pl", "rasch_3pl_map"])
def test_an_independent_optimiser_finds_the_abilities_of_guesses_too(name, seed, fixed):
    R = outcomes_of_items(seed)[:, -16:]  # whose discriminations are within their limits
    _, theta, items = getattr(rank, name)(R, return_item_params=True, fix_guessing=fixed)
    c = items["guessing"]
    free = np.log(c / (0.5 - c)) if fixed is None else np.empty(0)
    found = np.concatenate([theta, items["difficulty"], np.log(items["discrimination"]), free])
    told = R.sum(axis=2), R.shape[2], fixed, 1.0 if name.endswith("map") else np.inf
    best = scipy.optimize.minimize(loss_of_guesses, found + 1e-3, told, method="BFGS")
    assert loss_of_guesses(found, *told) <= best.fun + 1e-7
    assert theta == pytest.approx(best.x[: theta.size], abs=2e-3)


def test_a_model_whose_right_answers_may_be_guesses_has_no_ability_but_with_a_prior():
    R = np.array([[1, 1, 1, 1, 0, 0, 1, 1], [1, 1, 0, 1, 1, 1, 1, 0], [0, 0, 1, 0, 0, 0, 0, 0]])
    R = np.stack([R, np.roll(R, 1, axis=1)], axis=2)
    with pytest.raises(ValueError, match=r"of model 2 has no finite .* use rasch_3pl_map"):
        rank.rasch_3pl(R, fix_guessing=0.4)
    assert rank.rasch_3pl_map(R, fix_guessing=0.4)[2] == 3


def test_without_guesses_three_parameters_are_two():
    R = outcomes_of_items(21)
    two, three = rank.rasch_2pl_map(R, return_scores=True), rank.rasch_3pl_map(R, 1.0, fix_guessing=0.0)
    assert three.tolist() == two.ranks.tolist()
    R = outcomes_of_items(18)[:, -16:]
    custom = rank.rasch_3pl_map(R, rank.CustomPrior(lambda x: x @ x / 2.0), max_iter=5000)
    assert custom.tolist() == rank.rasch_3pl_map(R).tolist()
    scores = rank.rasch_3pl(R, return_scores=True, fix_guessing=0.0)[1]
    assert scores == pytest.approx(rank.rasch_2pl(R, return_scores=True)[1], abs=1e-4)


@pytest.mark.parametrize("quantile", [0.05, 0.5, 0.9])
def test_quantiles_of_marginal_abilities_are_those_of_the_integral(quantile):
    R, grid = TENSORS[0], np.linspace(-8.0, 8.0, 4001)
    options = {"em_iter": 300, "n_quadrature": 151}
    b = rank.rasch_mml(R, return_item_params=True, **options)[2]["difficulty"]
    chance = scipy.special.expit(grid[:, None] - b)
    density = scipy.stats.binom.pmf(R.sum(axis=2)[:, None], 8, chance).prod(axis=2) * scipy.stats.norm.pdf(
        grid
    )
    below = (np.cumsum(density, axis=1) - 0.5 * density) / density.sum(axis=1, keepdims=True)
    expected = [np.interp(quantile, row, grid) for row in below]
    scores = rank.rasch_mml_credible(R, quantile, return_scores=True, **options)[1]
    assert scores == pytest.approx(expected, abs=1e-4)


def test_two_parameter_fits_end_where_a_question_is_flat_or_not_convex():
    flat = [[0, 0, 0, 0, 1, 0, 0], [0, 1, 1, 1, 0, 0, 0], [1, 0, 1, 1, 1, 1, 1]]
    assert rank.rasch_2pl(flat).tolist() == [3, 2, 1]
    bent = ["11101", "01100", "00011", "00011", "00111", "10000", "01101", "11000", "01101", "10011"]
    R = [[int(answer) for answer in row] for row in bent]
    ranks, scores = rank.rasch_2pl_map(R, return_scores=True)
    again, exact = rank.rasch_2pl_map(R, return_scores=True, max_iter=5000)
    assert ranks.tolist() == again.tolist()
    assert scores == pytest.approx(exact, abs=2e-4)


@pytest.mark.parametrize("prior", [rank.GaussianPrior(0.5, 2.0), rank.CauchyPrior(0.2, 0.7)])
def test_newton_and_descent_find_the_same_abilities(prior):
    R = outcomes_of_items(4)
    newton = rank.rasch_map(R, prior, return_scores=True)[1]
    descent = rank.rasch_map(R, rank.CustomPrior(prior.penalty), return_scores=True)[1]
    assert newton == pytest.approx(descent, abs=2e-5)


@pytest.mark.parametrize(
    ("prior", "density"),
    [
        (rank.GaussianPrior(0.5, 2.0), stats.norm(0.5, np.sqrt(2.0))),
        (rank.LaplacePrior(0.2, 0.7), stats.laplace(0.2, 0.7)),
        (rank.CauchyPrior(0.2, 0.7), stats.cauchy(0.2, 0.7)),
    ],
)
def test_a_penalty_is_what_the_log_density_falls_from_its_top(prior, density):
    abilities = np.array([-3.0, 0.1, 1.7])
    fall = density.logpdf(density.median()) - density.logpdf(abilities)
    assert prior.penalty(abilities) == pytest.approx(fall.sum())


FITS = "rasch rasch_map rasch_2pl_map bradley_terry bradley_terry_map bradley_terry_davidson_map "
FITS += "rao_kupper_map plackett_luce_map rasch_3pl_map"


@pytest.mark.parametrize("name", FITS.split())
def test_missing_trials_are_left_out_of_a_fit(name):
    R = outcomes_of_items(18)
    absent = np.zeros(R.shape, dtype=bool)
    absent[:, :, 8:] = True
    kept = getattr(rank, name)(R[:, :, :8], return_scores=True)[1]
    marked = getattr(rank, name)(np.where(absent, -1, R), return_scores=True, missing=-1)[1]
    assert marked == pytest.approx(kept, abs=1e-6)
    # A model that lacks trials keeps the others' comparisons.
    absent[:, :, 8:] = False
    absent[0, ::2] = True
    fitted = getattr(rank, name)(R, return_scores=True, missing=absent)[1]
    full = getattr(rank, name)(R, return_scores=True)[1]
    assert fitted == pytest.approx(full, rel=1.0, abs=0.5)
    assert not np.allclose(fitted, full, atol=1e-6)


def test_scores_near_0_tie_up_to_the_rounding_of_what_they_were_made_of():
    R = [[[0, 3], [1, 2]], [[3, 0], [2, 1]], [[0, 2], [1, 3]]]
    for metric in (rank.bayes, rank.avg):
        assert metric(R, w=[-0.3, 0.1, 0.2, 0.0]).tolist() == [1, 1, 1]
    assert rank.rank_scores([1e-13, 0.0]).tolist() == [1, 2]
    assert rank.rank_scores([1e-13, 0.0], scale=1.0).tolist() == [1, 1]
    # Two models with equally many right answers have one ability, here 0.
    assert rank.rasch([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 1]]).tolist() == [1, 1, 1]


def test_many_models_are_ranked_without_ties():
    R = (np.random.default_rng(1).random((26, 5, 2)) < 0.5).astype(int)
    assert sorted(rank.kemeny_young(R, tie_aware=False, method="ordinal")) == list(range(1, 27))


@pytest.mark.parametrize("seed", range(6))
def test_models_that_can_be_swapped_tie_in_2pl(seed):
    """The second model has the answers of the first, to the questions in another order."""
    first, second = np.random.default_rng(seed).integers(0, 2, (2, 9, 4))
    R = np.stack([np.vstack([first, second]), np.vstack([second, first])])
    totals = R.sum(axis=(0, 2))
    R = R[:, (totals > 0) & (totals < 8)]
    assert rank.rasch_2pl_map(R, max_iter=5000).tolist() == [1, 1]
    three = np.stack([R[0], R[0], 1 - R[0]])
    ranks = rank.rasch_2pl_map(three, max_iter=5000)
    assert ranks[0] == ranks[1]
    turned = [np.roll([1, 0, 0, 1, 1], by) for by in range(5)]  # no two alone can be swapped
    assert set(rank.rasch_2pl_map(np.hstack([turned, np.eye(5, dtype=int)[seed % 5 - np.arange(5)]]))) == {1}


# Every metric as a ranking: scores of scorio.eval, options, unequal trials, bad input.


RNG = np.random.default_rng(20)
R = (RNG.random((6, 5, 12)) < RNG.random((6, 5, 1))).astype(int)
CATEGORIES = RNG.integers(0, 3, (6, 5, 12))
W = [0.2, -1.0, 1.0]

# Name, arguments after R, tensor.
METRICS = [
    ("pass_at_k", (4,), R), ("pass_hat_k", (4,), R), ("unanimous_at_k", (4,), R), ("auc_at_k", (4,), R),
    ("maj_at_k", (5,), R), ("g_pass_at_k", (4,), R), ("g_pass_at_k_tau", (4, 0.6), R),
    ("mg_pass_at_k", (4,), R), ("geom_at_k", (4, 0.3, 0.7), R), ("geom_ds_at_k", (4, 0.3, 0.7), R),
    ("geo_spectrum_at_k", (4, 0.3), R), ("geo_spectrum_at_k", (4, 0.3, [0.1, 0.2, 0.3, 0.1]), R),
    ("geo_spectrum_star_at_k", (4,), R), ("threshold_spectrum_at_k", (4, [0.4, 0.3, 0.2, 0.1]), R),
    ("max_at_k", (4,), R), ("max_at_k", (4, W), CATEGORIES),
]  # fmt: skip
IDS = [f"{name}{args}" for name, args, _ in METRICS]


@pytest.mark.parametrize(("name", "args", "tensor"), METRICS, ids=IDS)
def test_unequal_trials_by_padding_mask_and_counts(name, args, tensor):
    absent = np.random.default_rng(1).random(tensor.shape) < 0.3
    absent[..., :5] = False
    padded = np.where(absent, -1, tensor)
    ranks, scores = getattr(rank, name)(padded, *args, missing=-1, return_scores=True)
    expected = [getattr(metrics, name)(model, *args, missing=-1) for model in padded]
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-13)
    assert ranks.tolist() == rank.rank_scores(expected).tolist()
    size = 3 if tensor is CATEGORIES else 2
    counts = np.stack([(padded == category).sum(-1) for category in range(size)], axis=-1)
    for same in (
        getattr(rank, name)(tensor, *args, missing=absent, return_scores=True),
        getattr(rank, name)(np.where(absent, np.nan, tensor), *args, missing=np.nan, return_scores=True),
        getattr(rank, name)(None, *args, counts=counts, return_scores=True),
    ):
        assert same[0].tolist() == ranks.tolist()
        assert same[1].tolist() == scores.tolist()


@pytest.mark.parametrize(("name", "args", "tensor"), METRICS, ids=IDS)
def test_question_weights(name, args, tensor):
    weights = [0.4, 0.1, 0.0, 0.2, 0.3]
    options = {"question_weights": weights, "method": "dense"}
    ranks, scores = getattr(rank, name)(tensor, *args, **options, return_scores=True)
    expected = [getattr(metrics, name)(model, *args, question_weights=weights) for model in tensor]
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-13)
    assert ranks.tolist() == rank.rank_scores(expected, "dense").tolist()


@pytest.mark.parametrize("name", ["avg", "bayes"])
def test_avg_and_bayes_are_those_of_eval(name):
    for w, tensor in ((None, R), (W, CATEGORIES)):
        tensor = np.where(np.random.default_rng(2).random(tensor.shape) < 0.2, -1, tensor)
        _, scores = getattr(rank, name)(tensor, w=w, missing=-1, return_scores=True)
        expected = [getattr(metrics, name)(model, w, missing=-1)[0] for model in tensor]
        np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-13)


def test_bayes_with_a_shared_and_a_models_own_prior():
    shared, own = RNG.integers(0, 3, (5, 4)), RNG.integers(0, 3, (6, 5, 4))
    for R0, of_model in ((shared, [shared] * 6), (own, own)):
        _, scores = rank.bayes(CATEGORIES, W, R0, return_scores=True)
        expected = [
            metrics.bayes(model, W, prior)[0] for model, prior in zip(CATEGORIES, of_model, strict=True)
        ]
        np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-13)
        table = np.stack([(category == R0).sum(-1) for category in range(3)], axis=-1)
        _, same = rank.bayes(CATEGORIES, W, prior_counts=table, return_scores=True)
        assert same.tolist() == scores.tolist()
    _, empty = rank.bayes(CATEGORIES, W, np.empty((5, 0), int), return_scores=True)
    assert empty.tolist() == rank.bayes(CATEGORIES, W, return_scores=True)[1].tolist()


def test_bayes_by_quantile():
    moments = np.array([metrics.bayes(model) for model in R])
    for quantile, z in ((0.05, -1.6448536269514722), (0.5, 0.0), (0.9, 1.2815515655446004)):
        _, scores = rank.bayes(R, quantile=quantile, return_scores=True)
        np.testing.assert_allclose(scores, moments[:, 0] + z * moments[:, 1], rtol=0, atol=1e-12)
