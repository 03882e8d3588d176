"""``adaptive-eval tasks``: the ready benchmarks, and the task of each."""

import click

from adaptive_eval.options.mistakes import did_you_mean


@click.command("tasks")
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List the ready benchmarks; with NAME, print its task.

    A config uses one by its name (tasks: [gsm8k]), or with further keys: tasks: [{benchmark: gsm8k,
    limit: 100}].
    """
    from adaptive_eval.config.short_forms import benchmarks

    known = benchmarks()
    if name is None:
        width = max(map(len, known))
        for benchmark in known.values():
            if benchmark.revision:
                about = benchmark.about
            else:
                about = f"{benchmark.about} Dataset not pinned."
            click.echo(f"{benchmark.name:{width}}  {benchmark.questions:6,}  {about}")
        return
    if name not in known:
        raise click.UsageError(f"there is no benchmark {name!r}{did_you_mean(name, known)}")
    benchmark = known[name]
    click.echo(f"# {benchmark.about} {benchmark.questions:,} questions.")
    click.echo(f"# License: {benchmark.license}. Prompt: {benchmark.prompt_from}.")
    if benchmark.revision is None:
        click.echo("# Dataset: not pinned, so the newest version is asked.")
    if benchmark.needs:
        click.echo(f"# Needs: {benchmark.needs}.")
    click.echo(benchmark.config, nl=False)
