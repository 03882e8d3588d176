"""The paper's simulated figures and tables next to ours, as ``adaptive-eval paper`` writes them.

The paper [1]_ gives the mean success probabilities of its biased coins but not the coins, and the outcomes of
its 20 models are not public: every section says what can be compared. Of recorded outcomes the page shows
Figures 4, 5, 6 and 9 and Table 2.

References
----------
.. [1] Hariri, Samandar, Hinczewski and Chaudhary (2026). Don't Pass@k: A Bayesian Framework for Large
   Language Model Evaluation. arXiv:2510.04265.
"""

import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass
from importlib.resources import files
from math import comb
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.typing import ArrayLike

from scorio._arguments import most_unpacked, positive, whole
from scorio._named import close_plot, needed, plotting
from scorio.arrays import Floats, Integers, floats
from scorio.eval import bayes
from scorio.rank import rank_with_confidence
from scorio.study.credible import credible_patterns, pair_separation
from scorio.study.curves import paper_originals, prior_study, tau_curves
from scorio.study.metrics import Metric, competition_ranks, paper_metrics
from scorio.study.settling import (
    Convergence,
    convergence,
    convergence_growth,
    model_subsets,
    worst_trajectory,
)
from scorio.study.sources import PAPER_MEANS, Bootstrap, IndependentRuns, Resampling, Source, biased_coins

TRIALS = 80
LLM9_AND_10 = (9, 8)
TABLE_1 = (7, 6, 5, 5, 5, 4, 3, 3, 2, 2, 1)  # LLM 1..11, with credible intervals
TABLE_1_STRICT = (11, 10, 9, 8, 7, 6, 4, 5, 2, 3, 1)  # LLM 1..11, without
# Means over the subsets of Tables 8, 9, 10 for AIME'24, AIME'25, HMMT'25, BrUMO'25.
PAPER_GROWTH = {5: "20.6, 43.4, 16.1, 18.8", 10: "50.6, 75.4, 51.8, 61.1", 15: "67.2, 79.0, 70.5, 69.7"}
SUBSETS = ((5, 50), (10, 20), (15, 20))
"""Sizes of the subsets of models in Figure 6, and how many of each."""
RESAMPLINGS: tuple[tuple[Resampling, str, str], ...] = (
    ("columns", "columns with replacement", ""),
    ("permuted-columns", "columns permuted", "-permuted"),
)
"""Ways to draw the trials of Figures 5 and 9, in words and in names of files."""
DRAWS = 10
"""Draws of the coins that curves are averaged over: one draw may be far from their mean."""


_SAME_FILE: Mapping[str, Any] = {"svg.hashsalt": "scorio", "svg.fonttype": "none"}
"""Settings with which the same chart gives the same file."""


@dataclass(frozen=True, slots=True, eq=False)
class Chart:
    """Named lines (x, y); NaN is left out, `levels` are dashed, `falling` puts the lowest value on top."""

    title: str
    x_label: str
    y_label: str
    lines: Mapping[str, tuple[ArrayLike, ArrayLike]]
    levels: Sequence[float] = ()
    falling: bool = False

    def save(self, *paths: Path) -> None:
        """Write the chart to files, in the format that the ending of each says; needs matplotlib."""
        axes = plotting(None)
        for number, (name, (x, y)) in enumerate(self.lines.items()):
            linestyle = "--"
            if number < 10:
                linestyle = "-"
            axes.plot(x, floats(y), label=name, linestyle=linestyle)
        for level in self.levels:
            axes.axhline(level, color="#555555", linestyle=":")
        if self.falling:
            axes.invert_yaxis()
        axes.set(title=self.title, xlabel=self.x_label, ylabel=self.y_label)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        with needed("matplotlib", "save").rc_context(_SAME_FILE):
            for path in paths:
                if path.suffix == ".svg":
                    date = {"Date": None}
                else:
                    date = {}
                axes.figure.savefig(path, dpi=150, bbox_inches="tight", metadata=date)
        close_plot(axes)


@dataclass(frozen=True, slots=True)
class PaperPage:
    """The folder of the page and its figures, and the inputs of every section."""

    folder: Path
    scale: float
    seed: int
    executor: Executor
    png: bool

    def run(self, replicates: int) -> dict[str, Any]:
        """Return the options of a study: `replicates` scaled, seed and executor."""
        number = max(50, round(replicates * self.scale))
        return {"replicates": number, "seed": self.seed, "executor": self.executor}

    def figure(self, name: str, *lines: Any, **options: Any) -> str:
        """Draw a :class:`Chart`; return its Markdown."""
        chart = Chart(*lines, **options)
        endings = ("svg", "png") if self.png else ("svg",)
        chart.save(*(self.folder / f"{name}.{ending}" for ending in endings))
        return f"![{chart.title}]({name}.svg)"


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def figure_1(page: PaperPage) -> dict[str, Any]:
    """Mean Kendall's tau of every metric against the true ranking."""
    coins = [biased_coins(seed=page.seed + draw) for draw in range(DRAWS)]
    outcomes = coins[0].sample(TRIALS, seed=page.seed + 1)
    panels: list[tuple[str, str, list[Source], int]] = [
        ("a", f"independent runs, {DRAWS} draws of coins", [IndependentRuns(c, TRIALS) for c in coins], 100),
        ("b", "columns of one run resampled", [Bootstrap(outcomes, "columns")], 10_000),
        ("c", "rows of the same run resampled", [Bootstrap(outcomes, "rows")], 10_000),
    ]
    shown = np.array([1, 2, 4, 8, 20, 40, 80])
    gold = competition_ranks(np.array(PAPER_MEANS))
    parts = []
    for panel, title, sources, number in panels:
        options = page.run(number)
        found = [tau_curves(source, paper_metrics(), gold=gold, **options).tau for source in sources]
        lines, rows = {}, []
        for metric, tau in zip(paper_metrics(), np.mean(found, axis=0), strict=True):
            lines[metric.label] = (np.arange(1, TRIALS + 1), tau)
            rows.append([metric.label, *(f"{value:.3f}".replace("nan", "") for value in tau[shown - 1])])
        chart = page.figure(f"figure-1{panel}", f"{panel}) {title}", "trials N", "mean Kendall's tau", lines)
        parts += [chart, _table(["metric", *(f"N = {n}" for n in shown)], rows)]
    return {"panels": "\n\n".join(parts)}


def figure_2(page: PaperPage) -> dict[str, Any]:
    """Trials of the original models as a prior of their updates."""
    study = prior_study(paper_originals(seed=page.seed), **page.run(50_000))
    gains = zip(study.depths[1:], study.gain[1:], strict=True)
    lines = {f"D = {depth}": (study.trials, gain) for depth, gain in gains}
    title = "c) gain over the uniform prior"
    chart = page.figure("figure-2c", title, "trials N", "gain in tau", lines, levels=[0.0])
    return {"tau": study.original_tau.mean(), "changed": 100 * study.changed, "figure": chart}


def figure_3(page: PaperPage) -> dict[str, Any]:
    """Order and z of LLM10 and LLM9."""
    at = sorted({*range(1, 100, 3), *range(100, 401, 5), 80, 199, 285})
    draws = []
    for draw in range(DRAWS):
        pair = biased_coins(seed=page.seed + draw).subset(LLM9_AND_10)
        found = pair_separation(pair, at, **page.run(2_000))
        draws.append((found.correct, found.z))
    correct, z = map(np.array, zip(*draws, strict=True))
    rows = []
    for n, right, score in ((80, 0.837, 1.14), (199, 0.947, 1.645), (285, 0.969, 1.96)):
        column = at.index(n)
        rows.append([n, right, _spread(correct[:, column], 3), score, _spread(z[:, column], 2)])
    order = {"Bayes@N": (at, correct.mean(axis=0))}
    scores = {"z": (at, z.mean(axis=0))}
    charts = [
        page.figure("figure-3a", "a) P(LLM10 above LLM9)", "trials N", "probability", order),
        page.figure("figure-3b", "b) absolute z-score", "trials N", "mean z", scores, levels=[1.645, 1.96]),
    ]
    first, second = (at[int(np.argmax(z.mean(axis=0) >= level))] for level in (1.645, 1.96))
    table = _table(["N", "P(right order): paper", "ours", "mean z: paper", "ours"], rows)
    return {"draws": DRAWS, "table": table, "first": first, "second": second, "figures": "\n\n".join(charts)}


def table_1(page: PaperPage) -> dict[str, Any]:
    """Ranking with credible intervals."""
    coins = biased_coins(seed=page.seed)
    options = page.run(20_000)
    found = credible_patterns(coins, TRIALS, threshold=1.645, **options)
    strict = credible_patterns(coins, TRIALS, threshold=0.0, **options)
    rows = [["paper", *TABLE_1[::-1]]]
    for ranks, share in zip(found.ranks[:4].tolist(), found.frequency[:4], strict=True):
        rows.append([f"ours, {100 * share:.1f} %", *ranks[::-1]])
    return {
        "share": 100 * found.frequency_of(TABLE_1),
        "runs": found.replicates,
        "different": len(found.frequency),
        "strict": 100 * strict.frequency_of(TABLE_1_STRICT),
        "table": _table(["", *(f"LLM{model}" for model in range(11, 0, -1))], rows),
    }


def figures_5_and_9(page: PaperPage) -> dict[str, Any]:
    """Worst trajectories and the distribution of convergence@n of coins."""
    outcomes = biased_coins(seed=page.seed).sample(TRIALS, seed=page.seed + 1)
    return {"settling": _settling(page, outcomes, "")}


def _settling(page: PaperPage, outcomes: Integers, suffix: str) -> str:
    """Return Figures 5 and 9 of recorded outcomes, columns drawn with and without replacement."""
    trials = outcomes.shape[2]
    metrics = [Metric("bayes"), *(Metric("pass_at_k", k=k) for k in (2, 4, 8) if k < trials)]
    head = ["never", "mean", f"mean, never = {trials}", "P(n <= N/4)", "P(n <= N/2)", "worst"]
    parts = []
    for resampling, words, mark in RESAMPLINGS:
        source = Bootstrap(outcomes, resampling)
        rows, cdf = [], {}
        for metric in metrics:
            result = convergence(source, metric, **page.run(100_000))
            cdf[metric.label] = (np.arange(1, trials + 1), result.cdf())
            rows.append(_settling_row(result))
            if metric is metrics[0]:
                worst = worst_trajectory(source, result)
                lines = {f"LLM{m + 1}": (worst.trials, ranks) for m, ranks in enumerate(worst.ranks.T)}
                title = f"Worst replicate of Bayes@N, {words}"
                name = f"figure-5{mark}{suffix}"
                parts.append(page.figure(name, title, "trials N", "rank", lines, falling=True))
        parts.append(_table([words, *head], rows))
        title = f"Convergence@n, {words}"
        parts.append(page.figure(f"figure-9{mark}{suffix}", title, "n", "P(convergence@n <= n)", cdf))
    return "\n\n".join(parts)


def _settling_row(result: Convergence) -> list[Any]:
    cdf, trials = result.cdf(), result.trials
    shares = [result.never, cdf[max(trials // 4, 1) - 1], cdf[max(trials // 2, 1) - 1]]
    never, quarter, half = (f"{share:.3f}" for share in shares)
    means = f"{result.mean:.1f}", f"{result.mean_at_least:.1f}"
    worst = "never"
    if not result.never:
        worst = result.at.max()
    return [result.metric.label, never, *means, quarter, half, worst]


def figure_6(page: PaperPage) -> dict[str, Any]:
    """Growth of convergence@n with the number of models."""
    coins = biased_coins(np.linspace(0.2, 0.8, 20), seed=page.seed)
    return {"growth": _growth(page, coins.sample(TRIALS, seed=page.seed + 1), "")}


def _growth(page: PaperPage, outcomes: Integers, suffix: str) -> str:
    """Return Figure 6 of recorded outcomes."""
    models = len(outcomes)
    plan = [(size, min(number, comb(models, size))) for size, number in SUBSETS if size < models]
    rows, lines = [], {}
    for size, number in [*plan, (models, 1)]:
        subsets = model_subsets(models, size, number, seed=page.seed)
        found = convergence_growth(Bootstrap(outcomes), subsets, Metric("avg"), **page.run(100_000)).values()
        bound = np.sort([result.mean_at_least for result in found])
        means = [f"{value:.1f}" for value in (bound.mean(), bound[0], bound[-1])]
        never = np.mean([result.never for result in found])
        rows.append([size, number, *means, f"{never:.3f}", PAPER_GROWTH.get(size, "-")])
        if number > 1:
            lines[f"{size} models"] = (np.linspace(0, 1, number), bound)
    table = _table(["models", "subsets", "mean", "lowest", "highest", "never", "paper"], rows)
    if not lines:
        return table
    labels = "Subsets in order of mean", "share of subsets", "mean convergence@n"
    return f"{table}\n\n{page.figure(f'figure-6{suffix}', *labels, lines)}"


def recorded(page: PaperPage, name: str, outcomes: Integers) -> dict[str, Any]:
    """Figures 4, 5, 6 and 9 and Table 2 of one set of recorded outcomes, shape (L, M, N)."""
    models, questions, trials = outcomes.shape
    metrics = [metric for metric in paper_metrics() if metric.first <= trials]
    curves = tau_curves(Bootstrap(outcomes), metrics, **page.run(10_000))
    lines = {metric.label: (curves.trials, row) for metric, row in zip(metrics, curves.tau, strict=True)}
    title = f"{name}: tau to avg@{trials}"
    mu, sigma = np.array(list(map(bayes, outcomes))).T
    ranks, rows = rank_with_confidence(mu, sigma), []
    for model in np.argsort(-mu, kind="stable"):
        scores = f"{mu[model]:.4f}", f"{sigma[model]:.4f}"
        rows.append([ranks[model], f"LLM{model + 1}", *scores])
    growth = ""
    if models > 2:
        growth = _growth(page, outcomes, f"-{name}")
    return {
        "name": name,
        "models": models,
        "questions": questions,
        "trials": trials,
        "figure": page.figure(f"figure-4-{name}", title, "trials N", "mean Kendall's tau", lines),
        "settling": _settling(page, outcomes, f"-{name}"),
        "growth": growth,
        "table": _table(["rank with 95 % intervals", "model", "Bayes@N", "deviation"], rows),
    }


def _spread(values: Floats, digits: int) -> str:
    return f"{values.mean():.{digits}f} ± {values.std():.{digits}f}"


SECTIONS = (figure_1, figure_2, figure_3, table_1, figures_5_and_9, figure_6)


def write_page(
    folder: Path,
    scale: float = 1.0,
    jobs: int = 2,
    seed: int = 1,
    data: Path | None = None,
    png: bool = False,
) -> Path:
    """Write page and figures to a folder; return the path of the page.

    Parameters
    ----------
    folder : Path
        Folder of page and figures; made if it is missing.
    scale : float
        Multiplies all numbers of replicates, positive.
    jobs : int
        Processes; they change no number.
    seed : int
        Seed of coins and runs.
    data : Path, optional
        An npz file of outcomes 0 and 1, an array of shape (L, M, N) a benchmark: the page is of these.
    png : bool
        Also write each figure as PNG.

    Raises
    ------
    ValueError
        If `scale` is not positive, `jobs` less than 1, or `data` holds something else.
    ImportError
        If matplotlib is missing.
    """
    positive("scale", scale), whole("jobs", jobs)
    if data is not None:
        benchmarks = read_outcomes(data)
    else:
        benchmarks = {}
    needed("matplotlib.pyplot", "the page")
    folder.mkdir(parents=True, exist_ok=True)
    source = files("scorio.study").joinpath("paper.txt").read_text(encoding="utf-8")
    texts = dict(re.findall(r"^=== (\w+)\n(.*?)(?=^=== |\Z)", source, flags=re.MULTILINE | re.DOTALL))
    with ProcessPoolExecutor(jobs) as executor:
        page = PaperPage(folder, scale, seed, executor, png)
        written = [texts["head"].format(scale=scale, seed=seed)]
        for name, outcomes in benchmarks.items():
            written.append(texts["recorded"].format(**recorded(page, name, outcomes)))
        for section in SECTIONS if data is None else ():
            values = section(page)
            written.append(texts[section.__name__].format(**values))
    if data is None:
        written.append(texts["not_public"])
    path = folder / "paper.md"
    path.write_text("".join(written), encoding="utf-8")
    return path


def read_outcomes(data: Path) -> dict[str, Integers]:
    """Return the outcomes of an npz file by name, after checking that they are 0 and 1."""
    try:
        with ZipFile(data) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
        if unpacked > (most := most_unpacked(data.stat().st_size)):
            raise ValueError(
                f"it unpacks to {unpacked:,} bytes, and {most:,} is the most for a file of its size"
            )
        with np.load(data, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError, BadZipFile, MemoryError, zlib.error) as error:
        raise ValueError(f"data must be an npz file of arrays; cannot read {data}: {error}") from error
    for name, array in arrays.items():
        if array.ndim != 3 or len(array) < 2 or array.shape[2] < 2 or not np.isin(array, (0, 1)).all():
            raise ValueError(
                f"data must have outcomes 0 and 1 of two models or more, shape (L, M, N), N at least 2; "
                f"{name} of {data} has shape {array.shape} and dtype {array.dtype}"
            )
    return {name: array.astype(np.uint8) for name, array in arrays.items()}
