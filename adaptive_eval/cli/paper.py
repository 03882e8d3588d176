"""``adaptive-eval paper``: the paper's simulated figures and tables next to ours."""

from __future__ import annotations

from pathlib import Path

import click

from adaptive_eval.cli.options import Number, WholeNumber


@click.command("paper")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("paper"),
    help="Folder of page and figures.",
)
@click.option(
    "--scale",
    type=Number(min=0.0, min_open=True),
    default=1.0,
    help="Multiplies all numbers of replicates; 0.01 takes about a minute.",
)
@click.option("--jobs", type=WholeNumber(1), default=2, help="Processes; they change no number.")
@click.option("--seed", type=WholeNumber(min=0), default=1, help="Seed of coins and runs.")
@click.option(
    "--data",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="An npz file of your own outcomes, an array (models, questions, trials) a benchmark.",
)
@click.option("--png", is_flag=True, help="Also write every figure as PNG.")
def command(out: Path, scale: float, jobs: int, seed: int, data: Path | None, png: bool) -> None:
    """Write the paper's simulated figures and tables (arXiv:2510.04265) next to ours, as a page.

    It needs matplotlib: pip install 'adaptive-eval[figures]'.
    """
    from scorio.study.paper import write_page

    try:
        click.echo(write_page(out, scale, jobs, seed, data, png))
    except (ValueError, ImportError) as error:
        raise click.UsageError(str(error)) from error
