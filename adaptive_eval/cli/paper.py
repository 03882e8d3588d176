"""``adaptive-eval paper``: the paper's simulated figures and tables next to ours."""

from pathlib import Path

import click

from adaptive_eval.cli.options import COUNT, FOLDER, FROM_0, POSITIVE, flag, option


@click.command("paper")
@option("--out DIRECTORY", "Folder of page and figures.", FOLDER, default=Path("paper"))
@option(
    "--scale N", "Multiplies all numbers of replicates; 0.01 takes about a minute.", POSITIVE, default=1.0
)
@option("--jobs N", "Processes; they change no number.", COUNT, default=2)
@option("--seed N", "Seed of coins and runs.", FROM_0, default=1)
@option(
    "--data FILE",
    "An npz file of your own outcomes, an array (models, questions, trials) a benchmark.",
    click.Path(path_type=Path, dir_okay=False, exists=True),
)
@flag("--png", "Also write every figure as PNG.")
def command(out: Path, scale: float, jobs: int, seed: int, data: Path | None, png: bool) -> None:
    """Write the paper's simulated figures and tables (arXiv:2510.04265) next to ours, as a page.

    It needs matplotlib: pip install 'adaptive-eval[figures]'.
    """
    from scorio.study.paper import write_page

    try:
        click.echo(write_page(out, scale, jobs, seed, data, png))
    except (ValueError, ImportError) as error:
        raise click.UsageError(str(error)) from error
