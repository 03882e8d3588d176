"""Statistics of small tables, with the options of every function crossed, as they are recorded.

The tables follow from hashes. What one function says is recorded beside what related ones say.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from course_facts import digest, text, together
from crossed_options import Case, Options, Refused, chance

from scorio import categorical, rank, study
from scorio import eval as metrics
from scorio.categorical import Schema, Signals, Thresholds

SHOWN = 9
"""Figures up to which each is recorded; more are recorded together."""


def parts_of(value: Any) -> tuple[list[object], list[float]]:
    """Return words and whole numbers of a result, and its figures; sentences are left out."""
    if isinstance(value, float | np.floating):
        return [], [float(value)]
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "f":
            return [value.shape], value.ravel().tolist()
        return [value.shape, *value.ravel().tolist()], []
    if isinstance(value, str):
        return [] if " " in value else [value], []
    if value is None or isinstance(value, bool | int | np.integer | np.bool_):
        return [str(value)], []
    rows: list[tuple[object, Any]]
    if isinstance(value, Mapping):
        rows = list(value.items())
    elif is_dataclass(value):
        rows = [("", getattr(value, one.name)) for one in fields(value)]
    else:
        rows = [("", one) for one in value]
    words: list[object] = [len(rows)]
    figures: list[float] = []
    for name, one in rows:
        more = parts_of(one)
        words += [name, *more[0]]
        figures += more[1]
    return words, figures


def fact(name: str, function: Callable[..., Any], *given: object, **options: object) -> str:
    """Return what a function says: a digest of words and whole numbers, and its figures."""
    try:
        value = function(*given, **options)
    except (ValueError, RuntimeError) as error:
        return f"{name} {type(error).__name__}"
    words, figures = parts_of(value)
    shown: object = figures
    if len(figures) > SHOWN:
        shown = together(figures)
    return f"{name} {digest(words)} {text(shown)}"


def table_of(name: str, shape: tuple[int, ...], spread: float = 0.5, mean: float = 0.5) -> np.ndarray:
    """Return the chance of each cell: models (the best first) differ by `spread` in all."""
    found = np.empty(shape)
    for place in np.ndindex(shape):
        model = 0.0 if shape[0] < 2 else 0.5 - place[0] / (shape[0] - 1)
        hard = chance("hard", name, place[1]) - 0.5
        found[place] = mean + spread * model + 0.4 * hard - chance("draw", name, place) + 0.5
    return found


def right_of(name: str, shape: tuple[int, ...], spread: float = 0.5, mean: float = 0.5) -> np.ndarray:
    """Return right and wrong answers."""
    return (table_of(name, shape, spread, mean) > 0.5).astype(int)


def graded_of(name: str, shape: tuple[int, ...], spread: float = 0.5) -> np.ndarray:
    """Return categories 0, 1 and 2."""
    found = table_of(name, shape, spread)
    return (found > 0.3).astype(int) + (found > 0.6)


def lost_of(name: str, shape: tuple[int, ...], share: float) -> np.ndarray:
    """Return which cells have no answer."""
    return np.array([chance("lost", name, place) < share for place in np.ndindex(shape)]).reshape(shape)


# ---------------------------------------------------------------------------- rankings

FITTED = (
    "bradley_terry", "bradley_terry_davidson", "rao_kupper", "plackett_luce", "rasch", "rasch_2pl",
    "rasch_3pl",
)  # fmt: skip
"""Rankings by a fit, each with another that has a prior."""
UNFITTED = (
    "borda", "copeland", "win_rate", "schulze", "ranked_pairs", "kemeny_young", "elo", "glicko", "trueskill",
    "pagerank", "rank_centrality",
)  # fmt: skip
RANKINGS: Options = {
    "by": (*UNFITTED, *FITTED, *(f"{name}_map" for name in FITTED), "rasch_mml", "rasch_mml_credible"),
    "options": ("usual", "other", "third"),
    "table": ("mixed", "alike", "apart", "one-question", "one-trial"),
    "lost": ("none", "some", "much"),
    "ties": ("competition", "competition_max", "dense", "avg", "ordinal"),
    "models": ("three", "two", "five"),
    "named": ("no", "yes"),
    "best": ("first", "last"),
}
"""The options of rankings."""
RANKINGS_REFUSED: Refused = (
    ("by", " ".join((*UNFITTED, "rasch_mml", "rasch_mml_credible")), "lost", "some much"),
)
PRIORS: Mapping[str, Any] = {
    "usual": 0.5, "other": rank.LaplacePrior(0.2, 0.8), "third": rank.CauchyPrior(-0.1, 0.7),
}  # fmt: skip
RANKED_OTHERWISE: Mapping[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "schulze": ({"tie_policy": "ignore"}, {}),
    "ranked_pairs": (
        {"strength": "winning_votes"}, {"tie_policy": "ignore", "strength": "winning_votes"},
    ),
    "kemeny_young": ({"tie_policy": "ignore"}, {"tie_aware": False}),
    "elo": ({"K": 16.0, "tie_handling": "draw"}, {"tie_handling": "skip", "initial_rating": 1000.0}),
    "glicko": (
        {"c": 40.0, "tie_handling": "draw", "return_deviation": True},
        {"initial_rd": 200.0, "rd_max": 250.0, "c": 90.0, "tie_handling": "skip", "initial_rating": 900.0},
    ),
    "trueskill": (
        {"tie_handling": "draw", "draw_margin": 0.3, "beta": 3.0},
        {"mu_initial": 10.0, "sigma_initial": 3.0, "tau": 0.5},
    ),
    "pagerank": ({"damping": 0.5}, {"teleport": [0.5, 0.3, 0.2]}),
    "rank_centrality": ({"tie_handling": "ignore"}, {"smoothing": 0.5, "teleport": 0.1}),
    "rao_kupper": ({"tie_strength": 1.5}, {"tie_strength": 3.0}),
    "rasch": ({"return_item_params": True}, {}),
    "rasch_2pl": ({"reg_discrimination": 0.5, "return_item_params": True}, {"reg_discrimination": 1.0}),
    "rasch_3pl": (
        {"fix_guessing": 0.2, "reg_discrimination": 0.5, "return_item_params": True},
        {"reg_guessing": 1.0, "guessing_upper": 0.3, "reg_discrimination": 1.0},
    ),
    "rasch_mml": ({"n_quadrature": 9, "return_item_params": True}, {"em_iter": 4}),
    "rasch_mml_credible": ({"quantile": 0.3}, {"n_quadrature": 9}),
}  # fmt: skip
"""Options of each ranking where they are not the usual ones."""


def ranking_facts(written: Case) -> list[str]:
    """Return what a ranking says of a table."""
    case = {name: written.get(name, values[0]) for name, values in RANKINGS.items()}
    models = {"two": 2, "three": 3, "five": 5}[case["models"]]
    sizes = {"one-question": (1, 9), "one-trial": (14, 1), "apart": (4, 3)}
    shape = (models, *sizes.get(case["table"], (7, 4)))
    spread = {"alike": 0.0, "apart": 1.0}.get(case["table"], 0.4)
    R = right_of(case["table"], shape, -spread if case["best"] == "last" else spread)
    name = case["by"].removesuffix("_map")
    fitted = name in FITTED or name.startswith("rasch")
    gone = None
    if case["lost"] != "none":
        gone = lost_of(case["table"], shape, {"some": 0.1, "much": 0.5}[case["lost"]])
    if name in ("rasch", "rasch_2pl", "rasch_3pl"):  # each question needs a right and a wrong answer
        made = np.ones(shape, dtype=bool) if gone is None else ~gone
        kept = ((R == 1) & made).any(axis=(0, 2)) & ((R == 0) & made).any(axis=(0, 2))
        R, gone = R[:, kept], None if gone is None else gone[:, kept]
    otherwise = RANKED_OTHERWISE.get(name, ({}, {}))
    options = {} if case["options"] == "usual" else dict(otherwise[case["options"] == "third"])
    if models != 3:
        options.pop("teleport", None)
    if case["by"] != name:
        options["prior"] = PRIORS[case["options"]]
    if gone is not None:
        options["missing"] = gone
    options |= {"method": case["ties"], "return_scores": True}
    given = {f"m{place}": R[place] for place in range(models)} if case["named"] == "yes" else R
    found: list[Any] = []

    def scores() -> tuple[Any, ...]:
        got = getattr(rank, case["by"])(given, **options)
        if case["named"] == "yes":
            got = (got.ranks, got.scores, got.item_params, got.deviations)
        found.extend(np.asarray(one) for one in got[:2])
        return tuple(rounded(one) if fitted else one for one in got)

    facts = [fact("ranking", scores)]
    if found:
        low = float(min(found[1]))
        unit = (found[1] - low) / (float(max(found[1])) - low or 1.0)
        unit = rounded(unit)
        sigma = np.array([0.05 + 0.3 * chance("sigma", place) for place in range(models)])
        facts.append(fact("confidence", rank.pairwise_confidence, unit, sigma))
        with_confidence = {"confidence": 0.7, "method": case["ties"]}
        facts.append(fact("credible", rank.rank_with_confidence, unit, sigma, **with_confidence))
        facts.append(fact("tau", rank.kendall_tau_b, found[0], np.arange(models)))
        facts += stacked_facts(unit, sigma, case["ties"])
    return facts


def stacked_facts(unit: np.ndarray, sigma: np.ndarray, ties: str) -> list[str]:
    """Return what is said of several rankings at once, whose scores have other sizes."""
    near = 0.5 + 1e-13 * unit
    stack = np.array([[unit, 1e-9 * unit, 1.0 - unit], [near, -1e5 * unit, np.round(unit)]])
    earlier = stack[:, ::-1].copy()
    earlier[0, :, 0], earlier[1, 1] = np.nan, np.nan
    spread = sigma[::-1] * np.array([[1.0, 1e-9, 0.3], [1e-13, 1e5, 2.0]])[..., None]
    moved = (stack, sigma**2, earlier, spread**2)
    ranks = rank.rank_scores(stack, ties), rank.rank_scores(stack, ties, 0.2, scale=0.9)
    found = (
        *ranks, study.credible_ranks(stack, spread, 0.9), rank.kendall_tau_b(ranks[0], unit),
        rank.transfer_posterior(*moved, 0.7),
    )  # fmt: skip
    return [fact("stacks", lambda: found)]


def rounded(value: Any) -> Any:
    """Return figures of a fit to the digits that every machine finds."""
    if isinstance(value, Mapping):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return np.round(np.clip(value, -1e6, 1e6), 2)  # a fit without an end stops anywhere beyond
    return value


# ---------------------------------------------------------------------------- metrics

METRICS: Options = {
    "of": (
        "bayes", "avg", "pass_at_k", "pass_hat_k", "auc_at_k", "maj_at_k", "g_pass_at_k", "mg_pass_at_k",
        "unanimous_at_k", "g_pass_at_k_tau", "geom_at_k", "geom_ds_at_k", "geo_spectrum_at_k",
        "geo_spectrum_star_at_k", "threshold_spectrum_at_k", "max_at_k", "transfer", "tailpass",
    ),
    "form": ("plain", "marked", "counts", "masked"),
    "k": ("two", "one", "three"),
    "weighed": ("no", "yes"),
    "prior": ("none", "common", "of-each", "counts"),
    "options": ("usual", "other", "third"),
    "rewards": ("none", "uneven", "negative"),
    "confidence": ("high", "low"),
    "bounds": ("usual", "narrow", "none"),
    "ties": ("competition", "dense", "avg"),
    "questions": ("five", "one"),
    "best": ("first", "last"),
}  # fmt: skip
"""The options of metrics."""
METRICS_REFUSED: Refused = (
    ("of", "transfer", "prior", "none common"),
    ("of", "tailpass", "rewards", "negative"),
)
REWARDED = ("bayes", "avg", "max_at_k", "transfer", "tailpass")
"""Metrics of categories; the others are of right and wrong answers."""
OTHERWISE: Mapping[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "g_pass_at_k_tau": ({"tau": 0.4}, {"tau": 1.0}),
    "geom_at_k": ({"pass_power": 1.5}, {"unanimous_power": 0.2, "pass_power": 0.0}),
    "geom_ds_at_k": ({"pass_power": 1.5}, {"unanimous_power": 0.2, "pass_power": 0.7}),
    "geo_spectrum_at_k": ({"lam": 0.2, "weights": True}, {"lambda_": 0.9, "weights": True}),
    "bayes": ({"quantile": 0.2}, {"quantile": 0.9}),
}


def metric_facts(written: Case) -> list[str]:
    """Return what a metric says of some models, ranks them by, and expects of new trials."""
    case = {name: written.get(name, values[0]) for name, values in METRICS.items()}
    name, questions = case["of"], {"five": 5, "one": 1}[case["questions"]]
    shape = (3, questions, 6)
    k = {"one": 1, "two": 2, "three": 3}[case["k"]]
    graded = name in REWARDED and case["rewards"] != "none"
    draw = graded_of if graded else right_of
    spread = -0.3 if case["best"] == "last" else 0.3
    R = draw(name, shape, spread)
    gone = lost_of(name, shape, 0.3) & (np.arange(6) > 2)
    categories = 3 if graded else 2
    given: dict[str, Any] = {"R": R}
    if case["form"] == "masked":
        given["missing"] = gone
    elif case["form"] == "marked":
        given = {"R": np.where(gone, 7, R), "missing": 7}
    elif case["form"] == "counts":
        counts = np.stack([((one == R) & ~gone).sum(axis=2) for one in range(categories)], axis=2)
        given = {"R": None, "counts": counts}
    options: dict[str, Any] = {}
    if graded:
        options["w"] = {"uneven": (0.0, 0.3, 1.0), "negative": (-1.0, 2.0, 0.5)}[case["rewards"]]
    if case["weighed"] == "yes" and name != "tailpass":
        options["question_weights"] = [(2 * place + 1) / questions**2 for place in range(questions)]
    if name not in ("bayes", "avg", "transfer"):
        options["k"] = k
    if name == "threshold_spectrum_at_k":
        options["weights"] = [0.5, 0.2, 0.1][:k]
    if name == "g_pass_at_k_tau":
        options["tau"] = 0.6
    otherwise = OTHERWISE.get(name, ({}, {}))
    options |= {} if case["options"] == "usual" else otherwise[case["options"] == "third"]
    if options.get("weights") is True:
        options["weights"] = [0.3, 0.1, 0.4][:k]
    earlier = draw("earlier", (3, questions, 2), spread)
    prior: dict[str, Any] = {}
    if case["prior"] == "common":
        prior["R0"] = earlier[0]
    elif case["prior"] == "of-each":
        prior["R0"] = earlier
    elif case["prior"] == "counts":
        prior["prior_counts"] = np.stack([(one == earlier).sum(axis=2) for one in range(categories)], axis=2)
        if name == "transfer":
            prior["prior_counts"][1] = 0  # this model has no earlier results
    if case["form"] == "counts" and "R0" in prior and case["prior"] == "of-each" and questions == 1:
        prior = {}
    if name == "tailpass":
        return tailpass_facts(given, options, prior, case)
    of_models = options | (prior if name in ("bayes", "transfer") else {})
    facts = [
        fact("ranks", getattr(rank, name), **given, **of_models, method=case["ties"], return_scores=True)
    ]
    if name == "transfer":
        return facts
    options.pop("quantile", None)
    level: dict[str, Any] = {"confidence": 0.9 if case["confidence"] == "high" else 0.6}
    if case["bounds"] != "usual":
        level["bounds"] = (0.4, 0.6) if case["bounds"] == "narrow" else None
    if name not in REWARDED and case["prior"] != "none":
        level |= {"alpha0": 0.5, "beta0": 2.0}
    for model in range(3):
        own = {one: None if value is None else value[model] for one, value in given.items() if one == "R"}
        own |= {one: value[model] for one, value in given.items() if one == "counts"}
        if "missing" in given:
            own["missing"] = given["missing"] if case["form"] == "marked" else given["missing"][model]
        before = {one: value if value.ndim < 3 else value[model] for one, value in prior.items()}
        takes = before if name == "bayes" else {}
        facts.append(fact("of one", getattr(metrics, name), **own, **options, **takes))
        takes = before if name in ("bayes", "max_at_k") else {}
        facts.append(fact("expected", getattr(metrics, f"{name}_ci"), **own, **options, **takes, **level))
    return facts


def tailpass_facts(
    given: Mapping[str, Any], options: Mapping[str, Any], prior: Mapping[str, Any], case: Case
) -> list[str]:
    """Return the profiles of one model, drawn and expected."""
    own = {name: value if np.ndim(value) == 0 else value[0] for name, value in given.items()}
    thresholds = {"usual": None, "other": [0.2, 0.5, 0.9], "third": [1.0]}[case["options"]]
    options = {**options, "thresholds": thresholds}
    facts = [fact("drawn", metrics.tailpass_empirical, **own, **options)]
    before = {name: value if value.ndim < 3 else value[0] for name, value in prior.items() if name == "R0"}
    weigh = {"eta": 0.5, "prior": 0.7} if case["confidence"] == "low" else {}
    try:
        profile = metrics.tailpass(**own, **options, **before, **weigh)
    except ValueError:
        return [*facts, "refused"]
    facts.append(fact("profile", lambda: (profile.mean, profile.std, profile.covariance)))
    weights = [1.0 / len(profile.thresholds)] * len(profile.thresholds)
    facts.append(fact("scores", lambda: (profile.linear(weights), profile.moment(2), profile.discovery())))
    facts.append(fact("stability", lambda: (profile.stability(), profile.question_mean)))
    facts.append(fact("other k", lambda: profile.at_k(4).mean))
    by_draws = fact("mc", profile.ci, 0.8, n_draws=60, rng=3)
    return [*facts, by_draws, fact("normal", profile.ci, 0.8, method="normal")]


# ---------------------------------------------------------------------------- categories

OWN: Mapping[str, Any] = {
    "name": "own",
    "variables": {
        "sure": {"signal": "completion_bpt", "below": "low"},
        "likely": {"if_known": {"signal": "verifier_a", "at_least": 0.8}},
        "right": {"any": [{"signal": "is_correct", "equals": True}, "likely"]},
    },
    "thresholds": {
        "low": {"signal": "completion_bpt", "quantile": 0.4, "among": "right"},
        "long": {"signal": "token_ratio", "quantile": 0.75},
        "fixed": 0.2,
    },
    "categories": [
        {"name": "sure and right", "when": {"all": ["right", "sure"]}},
        {"name": "right", "when": "right"},
        {"name": "short", "when": {"signal": "token_ratio", "below": "fixed"}},
        {"name": "long", "when": {"signal": "token_ratio", "above": "long"}},
        {"name": "wrong", "when": "otherwise"},
    ],
    "weights": [1.0, 0.8, 0.1, 0.0, 0.2],
}
SCHEMAS: Options = {
    "schema": ("own", *categorical.schema_names()),
    "cuts": ("observed", "frozen", "of-few", "given"),
    "shape": ("matrix", "models", "one-question"),
    "made": ("all", "some"),
    "weights": ("usual", "other"),
    "prior": ("none", "common", "of-each"),
    "absent": ("none", "verifier", "some-values"),
}
"""The options of schemas of categories."""
SCHEMAS_REFUSED: Refused = (("prior", "of-each", "shape", "matrix one-question"),)


def attempts_of(name: str, shape: tuple[int, ...], case: Case) -> Signals:
    """Return signals of attempts that follow from their place."""

    def drawn(signal: str) -> np.ndarray:
        return np.array([chance(signal, name, place) for place in np.ndindex(shape)]).reshape(shape)

    a, b = drawn("a"), drawn("b")
    found: dict[str, Any] = {
        "has_box": drawn("box") < 0.7, "is_correct": drawn("right") < 0.55, "token_ratio": drawn("tokens"),
        "repeated_pattern": drawn("again") < 0.1, "prompt_bpt": 1.0 + 3.0 * drawn("prompt"),
        "completion_bpt": 2.0 * drawn("bits"), "verifier_a": a * 0.9, "verifier_b": (1.0 - a * 0.9) * b,
        "verifier_c": (1.0 - a * 0.9) * (1.0 - b),
    }  # fmt: skip
    found = {signal: values.astype(float) for signal, values in found.items()}
    if case["absent"] == "verifier":
        found = {signal: values for signal, values in found.items() if not signal.startswith("verifier")}
    elif case["absent"] == "some-values":
        gone = drawn("gone") < 0.2
        found["token_ratio"] = np.where(gone, np.nan, found["token_ratio"])
    return Signals(observed=drawn("made") > 0.25 if case["made"] == "some" else None, **found)


def schema_facts(written: Case) -> list[str]:
    """Return how a schema judges attempts, and what they are worth."""
    case = {name: written.get(name, values[0]) for name, values in SCHEMAS.items()}
    schema = Schema.from_dict(OWN) if case["schema"] == "own" else categorical.get_schema(case["schema"])
    shape = {"matrix": (4, 5), "models": (2, 4, 5), "one-question": (9,)}[case["shape"]]
    signals = attempts_of("now", shape, case)
    earlier = attempts_of("before", (3, 7), case)
    options: dict[str, Any] = {}
    number = len(schema.categories)
    if case["weights"] == "other":
        options["weights"] = [chance("weight", place) for place in range(number)]
    facts = []
    cuts: Any = None
    rules = [rule.name for rule in schema.threshold_rules]
    try:
        if case["cuts"] == "frozen":
            cuts = Thresholds.observed(earlier, schema)
        elif case["cuts"] == "of-few":
            cuts = Thresholds.observed(attempts_of("few", (2,), case), schema, partial=True)
        elif case["cuts"] == "given":
            given = {name: 0.4 + 0.2 * place for place, name in enumerate(rules)}
            given |= dict.fromkeys(schema.given_thresholds, 0.6)  # another value than the schema's
            cuts = Thresholds.observed(earlier, schema, given)
    except ValueError:
        return ["thresholds ValueError"]
    if cuts is not None:
        facts.append(fact("thresholds", lambda: dict(cuts)))
        facts.append(fact("again", lambda: Thresholds.from_dict(cuts.to_dict()).to_dict()))
    if case["prior"] != "none":
        before = (4, 2) if case["shape"] != "one-question" else (1, 2)
        before = (2, *before) if case["prior"] == "of-each" else before
        drawn = [int(number * chance("R0", place)) for place in np.ndindex(before)]
        options["R0"] = np.array(drawn).reshape(before)

    def judged() -> tuple[Any, ...]:
        found = categorical.evaluate(signals, schema, thresholds=cuts, **options)
        return found.weights, dict(found.thresholds), found.outcomes, found.counts, found.mu, found.sigma

    return [*facts, fact("judged", judged)]


GRADES: Options = {
    "schema": (
        "Confident_&_Correct", "Token_Surprise_vs._Correctness", "Format_Compliance_&_Correctness",
        "Difficulty-Adjusted_Correctness", "IO_Ratio_Profile",
    ),
    "cuts": ("medians", "given", "of-some"),
    "absent": ("none", "one-column", "some-values"),
    "group": ("model", "source_file"),
    "trials": ("numbered", "ragged", "none"),
}  # fmt: skip
"""The options of grades as in the published package."""
GRADES_REFUSED: Refused = ()


def grade_facts(written: Case) -> list[str]:
    """Return the grades of recorded completions by group."""
    case = {name: written.get(name, values[0]) for name, values in GRADES.items()}
    rows = [
        (model, question, trial) for model in "ab" for question in range(4) for trial in range(3)
        if case["trials"] != "ragged" or chance("row", model, question, trial) > 0.2
    ]  # fmt: skip
    columns: dict[str, Any] = {
        "model": np.array([row[0] for row in rows], dtype=object),
        "problem": np.array([row[1] for row in rows], dtype=object),
        "source_file": np.array([f"f{row[1] % 2}" for row in rows], dtype=object),
        "trial": np.array([float(row[2]) for row in rows]),
    }
    if case["trials"] == "none":
        columns.pop("trial")
    for name, column in categorical.SIGNAL_TO_COLUMN.items():
        values = np.array([chance(name, row) for row in rows])
        columns[column] = (values < 0.6).astype(float) if name in categorical.BINARY_SIGNALS else values
        if case["absent"] == "some-values":
            gone = [chance("gone", name, row) < 0.2 for row in rows]
            columns[column] = np.where(gone, np.nan, columns[column])
    if case["absent"] == "one-column":
        columns.pop(categorical.SIGNAL_TO_COLUMN["C1"])
        columns.pop(categorical.SIGNAL_TO_COLUMN["P2"])
    cuts: Any = {"C1": 0.3, "P2": 0.7, "C3": 0.2, "R1": 0.9} if case["cuts"] == "given" else None
    if case["cuts"] == "of-some":
        cuts = Thresholds.from_columns({name: values[:7] for name, values in columns.items()})
    schema = case["schema"].replace("_", " ")
    found = categorical.evaluate_schema(columns, schema, cuts, case["group"])
    every = categorical.evaluate_all(columns, None, cuts, case["group"])
    assert every[schema] == found
    medians = Thresholds.from_columns(columns).medians
    return [fact("grades", lambda: found), fact("medians", lambda: medians)]


# ---------------------------------------------------------------------------- studies

STUDIES: Options = {
    "metric": (
        "avg", "bayes", "pass_at_k", "naive_pass_at_k", "pass_hat_k", "g_pass_at_k_tau", "mg_pass_at_k",
        "maj_at_k", "auc_at_k", "threshold_spectrum_at_k", "geom_at_k", "geom_ds_at_k", "geo_spectrum_at_k",
    ),
    "source": ("columns", "permuted-columns", "columns-per-model", "rows", "runs"),
    "k": ("two", "one", "three"),
    "gold": ("own", "other", "tied"),
    "confirm": ("one", "none", "three"),
    "trials": ("all", "fewer"),
    "weights": ("none", "some"),
    "options": ("usual", "other"),
    "coins": ("apart", "near", "correlated"),
}  # fmt: skip
"""The options of studies of replicates."""
STUDIES_REFUSED: Refused = (
    ("weights", "some", "source", "runs"),
    ("weights", "some", "metric", " ".join(STUDIES["metric"][2:])),
)


def study_facts(written: Case) -> list[str]:
    """Return when rankings settle, and how they agree with the true one."""
    case = {name: written.get(name, values[0]) for name, values in STUDIES.items()}
    k = {"one": 1, "two": 2, "three": 3}[case["k"]]
    means = {"near": (0.5, 0.45, 0.55), "correlated": (0.3, 0.5, 0.6)}.get(case["coins"], (0.2, 0.5, 0.85))
    mixed = {"correlated": {"correlation": 0.7, "concentration": 2.0}}.get(case["coins"], {})
    coins = study.biased_coins(means, 6, seed=4, **mixed)
    trials = {"all": 9, "fewer": 5}[case["trials"]]
    options: dict[str, Any] = {}
    if case["options"] == "other":
        options = {"tau": 0.8, "powers": (1.0, 0.3), "lam": 0.2}
    if case["metric"] in ("threshold_spectrum_at_k", "geo_spectrum_at_k"):
        options["weights"] = (0.5, 0.3, 0.1)[:k]
    metric = study.Metric(case["metric"], k=k, **options)
    weights = (0.0, 0.1, 0.3) if case["weights"] == "some" else None
    draw = graded_of if weights else right_of
    outcomes = draw("study", (3, 6, 9), 0.5)
    source: study.Source = study.IndependentRuns(coins, trials)
    if case["source"] != "runs":
        source = study.Bootstrap(outcomes, case["source"], trials=trials, weights=weights)
    gold = {"other": (2, 3, 1), "tied": (1, 1, 3)}.get(case["gold"])
    confirm = {"none": 0, "one": 1, "three": 3}[case["confirm"]]
    told = study.convergence(source, metric, replicates=40, seed=5, gold=gold, confirm=confirm)
    facts = [f"label {metric.label.replace(' ', '_')}", fact("at", lambda: (told.gold, told.at, told.trials))]
    summary = (told.never, told.mean, told.mean_at_least, told.worst, told.pmf(), told.quantile(0.7))
    facts.append(fact("settles", lambda: summary))
    grown = study.convergence_growth(
        source, [(0, 1), (0, 1, 2)], metric, replicates=30, seed=5, gold=gold, confirm=confirm
    )
    facts.append(fact("growth", lambda: {str(one): found.at for one, found in grown.items()}))
    others = [metric, study.Metric("avg")]
    drawn = study.tau_curves(source, others, replicates=30, seed=6, gold=gold)
    facts.append(fact("curves", lambda: (drawn.tau, drawn.standard_error, drawn.constant)))
    facts.append(fact("worst", lambda: study.worst_trajectory(source, told).ranks))
    if case["source"] == "columns":
        facts.append(fact("course", lambda: study.rank_trajectory(outcomes, metric, weights=weights).ranks))
    if case["source"] == "runs":
        facts.append(fact("coins", lambda: (coins.p, coins.means, coins.subset((2, 0)).p)))
        facts.append(fact("patterns", study.credible_patterns, coins, 12, replicates=40, seed=7))
        pair = study.Coins(coins.p[:2], coins.means[:2])
        facts.append(fact("pairs", study.pair_separation, pair, [2, 5, 9], replicates=40, seed=8))
        update = study.BetaUpdate((3.0, 4.0, 5.0), (5.0, 4.0, 3.0), shift=0.5)
        depths = (0, 1, 3)
        changed = study.prior_study(coins, update, depths=depths, trials=4, replicates=30, seed=9)
        facts.append(fact("prior", lambda: (changed, changed.gain, changed.changed)))
    return facts


STATISTICS: Mapping[str, tuple[Options, Refused, Callable[[Case], list[str]]]] = {
    "rankings": (RANKINGS, RANKINGS_REFUSED, ranking_facts),
    "metrics": (METRICS, METRICS_REFUSED, metric_facts),
    "schemas": (SCHEMAS, SCHEMAS_REFUSED, schema_facts),
    "grades": (GRADES, GRADES_REFUSED, grade_facts),
    "studies": (STUDIES, STUDIES_REFUSED, study_facts),
}
"""What is crossed: options, what is refused, and what a case leads to."""
