"""The paper's simulated figures and tables next to ours: ``python -m scorio.study.paper --out DIRECTORY``.

Writes ``paper.md`` and one SVG a figure. The paper [1]_ gives the mean success probabilities of its biased
coins but not the coins, and the outcomes of its 20 models are not public: every section says what can be
compared. With ``--data R.npz`` the page shows Figures 4, 5, 6 and 9 and Table 2 of recorded outcomes.

References
----------
.. [1] Hariri, Samandar, Hinczewski and Chaudhary (2026). Don't Pass@k: A Bayesian Framework for Large
   Language Model Evaluation. arXiv:2510.04265.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass
from html import escape
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scorio._named import close_plot, needed, plotting
from scorio.eval import bayes
from scorio.eval._arguments import positive, whole
from scorio.rank import rank_with_confidence
from scorio.study.coins import PAPER_MEANS, biased_coins
from scorio.study.gold import GoldStandard
from scorio.study.growth import convergence_growth, model_subsets
from scorio.study.metrics import Metric, paper_metrics
from scorio.study.patterns import credible_patterns
from scorio.study.priors import paper_originals, prior_study
from scorio.study.separation import pair_separation
from scorio.study.settling import Convergence, convergence, worst_trajectory
from scorio.study.sources import Bootstrap, IndependentRuns, Resampling, Source
from scorio.study.tau import tau_curves

_WIDTH, _HEIGHT = 640, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 170, 30, 45
_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#e377c2", "#7f7f7f")


def line_chart(
    title: str,
    x_label: str,
    y_label: str,
    lines: Mapping[str, tuple[ArrayLike, ArrayLike]],
    *,
    levels: Iterable[float] = (),
    falling: bool = False,
) -> str:
    """Return an SVG of named lines (x, y); NaN is left out, `levels` are dashed, `falling` puts 1 on top."""
    curves = {name: _finite(*xy) for name, xy in lines.items()}
    xs = np.concatenate([x for x, _ in curves.values()])
    ys = np.concatenate([*(y for _, y in curves.values()), np.fromiter(levels, dtype=np.float64)])
    x_ticks, y_ticks = _ticks(xs.min(), xs.max()), _ticks(ys.min(), ys.max())
    span = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def across(value: float) -> float:
        return float(_LEFT + span[0] * (value - x_ticks[0]) / (x_ticks[-1] - x_ticks[0]))

    def down(value: float) -> float:
        share = float((value - y_ticks[0]) / (y_ticks[-1] - y_ticks[0]))
        return _TOP + span[1] * (share if falling else 1.0 - share)

    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        f'font-size="12"><rect width="100%" height="100%" fill="white"/>',
        _text(_LEFT, 18, title, size=14),
        _text((_LEFT + right) / 2, _HEIGHT - 8, x_label, anchor="middle"),
        f'<g transform="rotate(-90 14 {(_TOP + bottom) / 2})">'
        f"{_text(14, (_TOP + bottom) / 2, y_label, anchor='middle')}</g>",
    ]
    for tick in x_ticks:
        parts.append(_line(across(tick), bottom, across(tick), bottom + 4))
        parts.append(_text(across(tick), bottom + 17, f"{tick:g}", anchor="middle"))
    for tick in y_ticks:
        parts.append(_line(_LEFT, down(tick), right, down(tick), "#dddddd"))
        parts.append(_text(_LEFT - 6, down(tick) + 4, f"{tick:g}", anchor="end"))
    parts += [_line(_LEFT, down(level), right, down(level), "#555555", dash=True) for level in levels]
    for number, (name, (x, y)) in enumerate(curves.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        points = " ".join(f"{across(a):.1f},{down(b):.1f}" for a, b in zip(x, y, strict=True))
        dash = "" if number < len(_COLOURS) else ' stroke-dasharray="5 3"'
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.6"{dash}/>')
        parts.append(_line(right + 10, _TOP + 16 * number + 6, right + 28, _TOP + 16 * number + 6, colour))
        parts.append(_text(right + 33, _TOP + 16 * number + 10, name))
    return "".join(parts) + "</svg>\n"


def save_png(
    path: Path,
    title: str,
    x_label: str,
    y_label: str,
    lines: Mapping[str, tuple[ArrayLike, ArrayLike]],
    *,
    levels: Iterable[float] = (),
    falling: bool = False,
) -> None:
    """Write the chart of :func:`line_chart` as PNG; needs matplotlib."""
    axes = plotting(None)
    for name, (x, y) in lines.items():
        axes.plot(*_finite(x, y), label=name)
    for level in levels:
        axes.axhline(level, color="#555555", linestyle="--")
    if falling:
        axes.invert_yaxis()
    axes.set(title=title, xlabel=x_label, ylabel=y_label)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.figure.savefig(path, dpi=150, bbox_inches="tight")
    close_plot(axes)


def _finite(x: ArrayLike, y: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    xs, ys = np.broadcast_arrays(np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64))
    known = np.isfinite(xs) & np.isfinite(ys)
    return xs[known], ys[known]


def _ticks(low: float, high: float) -> NDArray[np.float64]:
    """Return four to nine round numbers that span low to high."""
    raw = max(high - low, 1e-9) / 5.0
    unit = 10.0 ** np.floor(np.log10(raw))
    step = unit * next(m for m in (1.0, 2.0, 5.0, 10.0) if m * unit >= raw)
    first, last = int(np.floor(low / step + 1e-9)), int(np.ceil(high / step - 1e-9))
    return np.asarray(np.round(np.arange(first, max(last, first + 1) + 1) * step, 10))


def _line(x1: float, y1: float, x2: float, y2: float, colour: str = "#333333", dash: bool = False) -> str:
    dashes = ' stroke-dasharray="4 4"' if dash else ""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"{dashes}/>'


def _text(x: float, y: float, text: str, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(text)}</text>'


TRIALS = 80
LLM9, LLM10 = 8, 9
TABLE_1 = (7, 6, 5, 5, 5, 4, 3, 3, 2, 2, 1)  # LLM 1..11, with credible intervals
TABLE_1_STRICT = (11, 10, 9, 8, 7, 6, 4, 5, 2, 3, 1)  # LLM 1..11, without
# Means over the subsets of Tables 8, 9, 10 for AIME'24, AIME'25, HMMT'25, BrUMO'25.
PAPER_GROWTH = {5: (20.6, 43.4, 16.1, 18.8), 10: (50.6, 75.4, 51.8, 61.1), 15: (67.2, 79.0, 70.5, 69.7)}
SUBSETS = ((5, 50), (10, 20), (15, 20))
"""Sizes of the subsets of models in Figure 6, and how many of each."""
RESAMPLINGS: tuple[tuple[Resampling, str, str], ...] = (
    ("columns", "columns with replacement", ""),
    ("permuted-columns", "columns permuted", "-permuted"),
)
"""Ways to draw the trials of Figures 5 and 9, in words and in names of files."""
DRAWS = 10
"""Draws of the coins that curves are averaged over: one draw may be far from their mean."""


@dataclass(frozen=True, slots=True)
class Page:
    """The paths of the page and its figures, and the inputs of every section."""

    folder: Path
    scale: float
    seed: int
    executor: Executor
    png: bool
    text: list[str]

    def replicates(self, number: int) -> int:
        """Return `number` scaled."""
        return max(50, round(number * self.scale))

    def write(self, *paragraphs: str) -> None:
        """Add paragraphs."""
        self.text.extend(f"{paragraph}\n" for paragraph in paragraphs)

    def table(self, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Add a table."""
        lines = [head, ["---"] * len(head), *([str(cell) for cell in row] for row in rows)]
        self.write("\n".join(f"| {' | '.join(line)} |" for line in lines))

    def figure(self, name: str, *chart: Any, **options: Any) -> None:
        """Draw a line chart and add it."""
        (self.folder / f"{name}.svg").write_text(line_chart(*chart, **options), encoding="utf-8")
        if self.png:
            save_png(self.folder / f"{name}.png", *chart, **options)
        self.write(f"![{chart[0]}]({name}.svg)")

    @property
    def run(self) -> dict[str, Any]:
        """Seed and executor of a study."""
        return {"seed": self.seed, "executor": self.executor}


def figure_1(page: Page) -> None:
    """Mean Kendall's tau of every metric against the true ranking."""
    page.write(
        "## Figure 1: Kendall's tau to the true ranking of 11 sets of biased coins",
        "The paper draws these curves without numbers: Bayes@N is the highest from the start, and panel a is "
        "close to b and c. Ours agree on average over draws of the coins. With one draw every Pass@k-like "
        "metric settles on its own ranking of these coins, so that one of them can end above Bayes@N near "
        "N = 80. The stated tie of LLM4 and LLM5 caps tau-b at 0.991.",
    )
    coins = [biased_coins(seed=page.seed + draw) for draw in range(DRAWS)]
    run = coins[0].sample(TRIALS, seed=page.seed + 1)
    panels: list[tuple[str, str, list[Source], int]] = [
        ("a", f"independent runs, {DRAWS} draws of coins", [IndependentRuns(c, TRIALS) for c in coins], 100),
        ("b", "columns of one run resampled", [Bootstrap(run, "columns")], 10_000),
        ("c", "rows of the same run resampled", [Bootstrap(run, "rows")], 10_000),
    ]
    shown = [1, 2, 4, 8, 20, 40, 80]
    for panel, title, sources, number in panels:
        curves = [
            tau_curves(
                source,
                paper_metrics(),
                replicates=page.replicates(number),
                gold=GoldStandard.from_scores(PAPER_MEANS),
                **page.run,
            ).tau
            for source in sources
        ]
        tau = np.mean(curves, axis=0)
        lines = {
            m.label: (np.arange(1, TRIALS + 1), row) for m, row in zip(paper_metrics(), tau, strict=True)
        }
        page.figure(f"figure-1{panel}", f"{panel}) {title}", "trials N", "mean Kendall's tau", lines)
        page.table(
            ["metric", *(f"N = {n}" for n in shown)],
            (
                [m.label, *("" if np.isnan(row[n - 1]) else f"{row[n - 1]:.3f}" for n in shown)]
                for m, row in zip(paper_metrics(), tau, strict=True)
            ),
        )


def figure_2(page: Page) -> None:
    """Trials of the original models as a prior of their updates."""
    study = prior_study(paper_originals(seed=page.seed), replicates=page.replicates(50_000), **page.run)
    page.write("## Figure 2: trials of the original models as a prior")
    page.table(
        ["", "paper", "ours"],
        [
            ["mean tau of original and updated ranking", "0.88", f"{study.original_tau.mean():.3f}"],
            ["updates that change the ranking", "about 86 %", f"{100 * study.changed:.1f} %"],
        ],
    )
    page.write(
        "The paper's curves have no numbers: up to D = 4 the prior gains until the uniform prior catches up "
        "after N = 5; D = 8 and 16 lose at larger N."
    )
    trials = np.arange(1, study.gain.shape[1] + 1)
    lines = {f"D = {d}": (trials, gain) for d, gain in zip(study.depths, study.gain, strict=True) if d}
    page.figure("figure-2c", "c) gain over the uniform prior", "trials N", "gain in tau", lines, levels=[0.0])


def figure_3(page: Page) -> None:
    """Order and z of LLM10 and LLM9."""
    grid = [*range(1, 100, 3), *range(100, 401, 5)]
    at = sorted({*grid, 80, 199, 285})
    draws = [
        pair_separation(
            biased_coins(seed=page.seed + draw).subset([LLM10, LLM9]),
            at,
            replicates=page.replicates(2_000),
            **page.run,
        )
        for draw in range(DRAWS)
    ]
    correct, z = np.array([d.correct for d in draws]), np.array([d.z for d in draws])
    crossing = [at[int(np.argmax(z.mean(axis=0) >= level))] for level in (1.645, 1.96)]
    page.write(
        "## Figure 3: LLM10 (0.6213) above LLM9 (0.608) by Bayes@N",
        f"Means and standard deviations over {DRAWS} draws of the coins; the paper has one, unknown draw.",
    )
    page.table(
        ["N", "P(right order): paper", "ours", "mean z: paper", "ours"],
        (
            [n, p, _spread(correct[:, at.index(n)], 3), score, _spread(z[:, at.index(n)], 2)]
            for n, p, score in ((80, 0.837, 1.14), (199, 0.947, 1.645), (285, 0.969, 1.96))
        ),
    )
    page.write(
        f"The mean over draws reaches 1.645 at N = {crossing[0]} (paper 199) and 1.96 at {crossing[1]} (285)."
    )
    page.figure(
        "figure-3a",
        "a) P(LLM10 above LLM9)",
        "trials N",
        "probability",
        {"Bayes@N": (at, correct.mean(axis=0))},
    )
    page.figure(
        "figure-3b",
        "b) absolute z-score",
        "trials N",
        "mean z",
        {"z": (at, z.mean(axis=0))},
        levels=[1.645, 1.96],
    )


def table_1(page: Page) -> None:
    """Ranking with credible intervals."""
    coins = biased_coins(seed=page.seed)
    number = page.replicates(20_000)
    with_ci, without = (
        credible_patterns(coins, TRIALS, threshold=threshold, replicates=number, **page.run)
        for threshold in (1.645, 0.0)
    )
    page.write(
        "## Table 1: ranking with credible intervals at N = 80",
        f"The paper prints one run. Its row comes up in {100 * with_ci.frequency_of(TABLE_1):.1f} % of "
        f"{number} runs ({len(with_ci.frequency)} different rankings did), its row without intervals in "
        f"{100 * without.frequency_of(TABLE_1_STRICT):.1f} %.",
    )
    best = zip(with_ci.ranks[:4].tolist(), with_ci.frequency[:4].tolist(), strict=True)
    rows = [("paper", TABLE_1), *((f"ours, {100 * share:.1f} %", ranks) for ranks, share in best)]
    page.table(
        ["", *(f"LLM{model}" for model in range(11, 0, -1))], ([name, *ranks[::-1]] for name, ranks in rows)
    )


def figures_5_and_9(page: Page) -> None:
    """Worst trajectories and the distribution of convergence@n of coins."""
    page.write(
        "## Figures 5 and 9: convergence@n of 11 models, gold standard avg@80",
        "Not comparable in numbers: the outcomes of the paper's models are not public. It states Bayes@N "
        "means of 44.2 (HMMT'25) and 27.1 (BrUMO'25) against 69.5 and 48.5 for the best Pass@k, and worst "
        "replicates at 75, 78 and 68 trials. With replacement a replicate may never agree with the gold "
        "standard; a permutation of the columns always ends with it.",
    )
    _settling(page, biased_coins(seed=page.seed).sample(TRIALS, seed=page.seed + 1), "")


def _settling(page: Page, outcomes: NDArray[np.integer], suffix: str) -> None:
    """Add Figures 5 and 9 of recorded outcomes, columns drawn with and without replacement."""
    trials = outcomes.shape[2]
    metrics = [Metric("bayes"), *(Metric("pass_at_k", k=k) for k in (2, 4, 8) if k < trials)]
    for resampling, words, mark in RESAMPLINGS:
        source = Bootstrap(outcomes, resampling)
        rows, cdf = [], {}
        for metric in metrics:
            result = convergence(source, metric, replicates=page.replicates(100_000), **page.run)
            worst = worst_trajectory(source, result)
            cdf[metric.label] = (np.arange(1, trials + 1), result.cdf())
            rows.append(_settling_row(metric.label, result, worst.convergence(result.gold)))
            if metric is metrics[0]:
                page.figure(
                    f"figure-5{mark}{suffix}",
                    f"Worst replicate of Bayes@N, {words}",
                    "trials N",
                    "rank",
                    {f"LLM{m + 1}": (worst.trials, ranks) for m, ranks in enumerate(worst.ranks.T)},
                    falling=True,
                )
        page.table(
            [words, "never", "mean", f"mean, never = {trials}", "P(n <= N/4)", "P(n <= N/2)", "worst"], rows
        )
        page.figure(f"figure-9{mark}{suffix}", f"Convergence@n, {words}", "n", "P(convergence@n <= n)", cdf)


def _settling_row(label: str, result: Convergence, worst: int | None) -> list[Any]:
    cdf, trials = result.cdf(), result.trials
    shares = [result.never, cdf[max(trials // 4, 1) - 1], cdf[max(trials // 2, 1) - 1]]
    never, quarter, half = (f"{share:.3f}" for share in shares)
    return [
        label,
        never,
        f"{result.mean:.1f}",
        f"{result.mean_at_least:.1f}",
        quarter,
        half,
        worst or "never",
    ]


def figure_6(page: Page) -> None:
    """Growth of convergence@n with the number of models."""
    coins = biased_coins(np.linspace(0.2, 0.8, 20), seed=page.seed)
    page.write(
        "## Figure 6: convergence@n grows with the number of models",
        "20 coins spaced from 0.2 to 0.8. Only the trend compares with the paper's means of Tables 8 to 10 "
        "for AIME'24, AIME'25, HMMT'25 and BrUMO'25.",
    )
    _growth(page, coins.sample(TRIALS, seed=page.seed + 1), "")


def _growth(page: Page, outcomes: NDArray[np.integer], suffix: str) -> None:
    """Add Figure 6 of recorded outcomes."""
    source, models = Bootstrap(outcomes), len(outcomes)
    plan = [(size, min(number, comb(models, size))) for size, number in SUBSETS if size < models]
    plan.append((models, 1))
    subsets = [
        subset for size, number in plan for subset in model_subsets(models, size, number, seed=page.seed)
    ]
    result = convergence_growth(
        source, subsets, Metric("avg"), replicates=page.replicates(100_000), **page.run
    )
    rows, lines = [], {}
    for size, _ in plan:
        bound = np.sort(result.mean_at_least[result.sizes == size])
        never = result.never[result.sizes == size].mean()
        paper = ", ".join(map(str, PAPER_GROWTH.get(size, ()))) or "-"
        means = [f"{value:.1f}" for value in (bound.mean(), bound[0], bound[-1])]
        rows.append([size, bound.size, *means, f"{never:.3f}", paper])
        if bound.size > 1:
            lines[f"{size} models"] = (np.linspace(0, 1, bound.size), bound)
    page.table(["models", "subsets", "mean", "lowest", "highest", "never", "paper"], rows)
    if lines:
        page.figure(
            f"figure-6{suffix}", "Subsets in order of mean", "share of subsets", "mean convergence@n", lines
        )


def recorded(page: Page, name: str, outcomes: NDArray[np.integer]) -> None:
    """Figures 4, 5, 6 and 9 and Table 2 of one set of recorded outcomes, shape (L, M, N)."""
    models, questions, trials = outcomes.shape
    page.write(f"## {name}: {models} models, {questions} questions, {trials} trials")
    metrics = [metric for metric in paper_metrics() if metric.first <= trials]
    curves = tau_curves(Bootstrap(outcomes), metrics, replicates=page.replicates(10_000), **page.run)
    lines = {metric.label: (curves.trials, row) for metric, row in zip(metrics, curves.tau, strict=True)}
    page.figure(f"figure-4-{name}", f"{name}: tau to avg@{trials}", "trials N", "mean Kendall's tau", lines)
    _settling(page, outcomes, f"-{name}")
    if models > 2:
        _growth(page, outcomes, f"-{name}")
    mu, sigma = np.array([bayes(matrix) for matrix in outcomes]).T
    ranks = rank_with_confidence(mu, sigma)
    rows = [
        [ranks[m], f"LLM{m + 1}", f"{mu[m]:.4f}", f"{sigma[m]:.4f}"] for m in np.argsort(-mu, kind="stable")
    ]
    page.table(["rank with 95 % intervals", "model", "Bayes@N", "deviation"], rows)


def not_public(page: Page) -> None:
    """Name the figures that cannot be made."""
    page.write(
        "## Figures 4, 7 and 8, Table 2",
        "These show outcomes, signals and costs of the paper's 20 models on four benchmarks, which are not "
        "public. `--data R.npz` makes Figures 4, 5, 6 and 9 and Table 2 of your own outcomes; "
        "`scorio.categorical.evaluate_models` makes Figure 7.",
    )


def _spread(values: NDArray[np.float64], digits: int) -> str:
    return f"{values.mean():.{digits}f} ± {values.std():.{digits}f}"


SECTIONS = (figure_1, figure_2, figure_3, table_1, figures_5_and_9, figure_6, not_public)


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
        Folder of page and figures; made where it is missing.
    scale : float
        Multiplies all numbers of replicates, positive.
    jobs : int
        Processes; they change no number.
    seed : int
        Seed of coins and runs.
    data : Path, optional
        An npz file of outcomes 0 and 1, an array of shape (L, M, N) a benchmark: the page is of these.
    png : bool
        Also write each figure as PNG; needs matplotlib.

    Raises
    ------
    ValueError
        If `scale` is not positive, `jobs` less than 1, or `data` holds something else.
    ImportError
        If matplotlib is missing for `png`.
    """
    positive("scale", scale), whole("jobs", jobs)
    benchmarks = {} if data is None else read_outcomes(data)
    if png:
        needed("matplotlib.pyplot", "png")
    folder.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(jobs) as executor:
        page = Page(folder, scale, seed, executor, png, [])
        page.write(
            "# \"Don't Pass@k\" (arXiv:2510.04265): the paper's simulations and ours",
            f"Made by `python -m scorio.study.paper --scale {scale:g} --seed {seed}`. Coins: "
            "30 questions, p ~ Beta(8 p, 8 (1 - p)) moved to the stated means.",
        )
        for name, outcomes in benchmarks.items():
            recorded(page, name, outcomes)
        for section in SECTIONS if data is None else ():
            section(page)
    written = folder / "paper.md"
    written.write_text("\n".join(page.text), encoding="utf-8")
    return written


def read_outcomes(data: Path) -> dict[str, NDArray[np.integer]]:
    """Return the outcomes of an npz file by name; ValueError where they are not 0 and 1 of two models."""
    try:
        with np.load(data, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError, AttributeError) as error:
        raise ValueError(f"data must be an npz file of arrays; cannot read {data}: {error}") from error
    for name, array in arrays.items():
        if array.ndim != 3 or len(array) < 2 or array.shape[2] < 2 or not np.isin(array, (0, 1)).all():
            raise ValueError(
                f"data must have outcomes 0 and 1 of two models or more, shape (L, M, N), N at least 2; "
                f"{name} of {data} has shape {array.shape} and dtype {array.dtype}"
            )
    return {name: array.astype(np.uint8) for name, array in arrays.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page; return 0."""
    parser = argparse.ArgumentParser(
        prog="python -m scorio.study.paper", description="Make the paper's simulated figures and tables."
    )
    for name, kind, default, text in (
        ("--out", Path, Path("paper"), "folder of page and figures"),
        ("--scale", float, 1.0, "multiplies all numbers of replicates"),
        ("--jobs", int, 2, "processes; changes no number"),
        ("--seed", int, 1, "seed of coins and runs"),
        ("--data", Path, None, "npz file of your outcomes, (L, M, N) each"),
    ):
        parser.add_argument(name, type=kind, default=default, help=f"{text} (default: {default})")
    parser.add_argument("--png", action="store_true", help="also write PNG files; needs matplotlib")
    options = vars(parser.parse_args(arguments))
    try:
        print(write_page(options.pop("out"), **options))
    except ValueError as error:
        parser.error(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
