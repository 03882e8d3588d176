"""``adaptive-eval export``: a run for other tools."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from adaptive_eval.cli.options import COUNT, PATH, flag, named, option
from adaptive_eval.errors import RunFileError, UsageError
from adaptive_eval.store.reader import RunReader

if TYPE_CHECKING:
    from adaptive_eval.interop.run_tables import RunDescription
    from adaptive_eval.views.reading import Replayed
    from adaptive_eval.views.summary import RunSummary

TABLES = ("csv", "jsonl", "parquet")
FOLDERS = ("lm-eval", "inspect", "eval-results", "eee")
TEXTS = ("latex", "markdown")

SUFFIXES: dict[str, tuple[str, ...]] = {
    ".csv": ("csv",),
    ".jsonl": ("jsonl",),
    ".parquet": ("parquet",),
    ".tex": ("latex",),
    ".md": ("markdown",),
}
"""Formats that a file with such a name can hold; the first is the default."""


@named(
    "export",
    "runs/aime --out aime.parquet",
    "runs/long --format parquet --out trials",
    "runs/aime --format eval-results --out results",
    "runs/aime --push me/aime-results",
)
@click.argument("run", type=PATH, metavar="RUN")
@click.option(
    "--format",
    "form",
    type=click.Choice([*TABLES, *FOLDERS, *TEXTS]),
    help=f"What to write. Default: what the name of --out says ({', '.join(SUFFIXES)}).",
)
@option(
    "--out PATH",
    "File, or a folder for lm-eval, inspect, eval-results and eee. Default: standard output, if it is text.",
    PATH,
)
@option("--part-rows N", "Most rows of a part, for Parquet in a folder. Default: 100,000.", COUNT)
@flag("--no-texts", "Leave prompts and answers out of a table.")
@option(
    "--push OWNER/NAME",
    "Put trials, report and card into this dataset of the Hugging Face Hub. Default: nothing is sent.",
)
@flag("--public", "Make the dataset that --push creates public. Default: private.")
def command(run: Path, form: str | None, out: Path | None, push: str | None, **options: Any) -> None:
    """Write the run in the directory RUN for other tools.

    csv, jsonl, parquet: a row a trial; parquet to a PATH that does not end in .parquet: a folder of parts,
    for long runs. lm-eval: samples and results in the form of lm-evaluation-harness. inspect: logs for
    Inspect's viewer. eval-results: the .eval_results files that model pages of the Hugging Face Hub read.
    eee: every_eval_ever, with intervals. latex, markdown: a table for a paper.

    A trial's weight is in every export: weight times score, summed over a model's trials, is its score.
    If tasks have different ranges of scores, take the lowest of its task from each score first.
    """
    texts = not options["no_texts"]
    part_rows = options["part_rows"]
    in_parts = form == "parquet" and out is not None and out.suffix.lower() != ".parquet"
    if push is not None and (form, out) != (None, None):
        raise UsageError("--push sends trials, report and card; leave --format and --out out")
    if part_rows is not None and not in_parts:
        raise UsageError(
            f"--part-rows {part_rows}: only a folder of Parquet files has parts; give --format parquet and "
            "an --out that does not end in .parquet"
        )
    if push is not None:
        form = None
    else:
        form = _form(form, out)
    if out is None and form in ("parquet", *FOLDERS):
        raise UsageError(f"--format {form} is no text for a terminal; say where to with --out")
    with RunReader(run) as reader:
        reader.require_undamaged()
        shown_run = _RunShown.read(reader)
        try:
            if push is not None:
                _push(shown_run, push, texts=texts, public=options["public"])
            elif out is not None and (in_parts or form in FOLDERS):
                _write_folder(shown_run, str(form), out, part_rows, texts=texts)
            elif form in TABLES:
                _write_table(shown_run, form, out, texts=texts)
            else:
                _write_text(_text(shown_run, str(form)), out)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise RunFileError(
                f"{out or 'standard output'}: cannot be written: {error.strerror}", code="run/output"
            ) from None


@dataclass(frozen=True)
class _RunShown:
    """A run, and what its trials lead to if the stored results say otherwise."""

    reader: RunReader
    made: Replayed | None

    @classmethod
    def read(cls, reader: RunReader) -> _RunShown:
        """Replay the run, and warn if the stored results are not those of its trials."""
        from adaptive_eval.build.replay import replay, shown
        from adaptive_eval.views.reading import disagreeing

        if reader.latest_snapshot() is None or not reader.count():
            return cls(reader, None)
        made = shown(replay(reader))
        if not made.disagreements:
            return cls(reader, None)
        click.echo(f"Warning: {disagreeing(made.disagreements)}", err=True)
        return cls(reader, made)

    def summary(self) -> RunSummary:
        """Return the summary of the run, as its trials say."""
        from adaptive_eval.views.reading import summarise

        made = self.made
        return summarise(self.reader, replay=None if made is None else lambda _: made)

    def about(self) -> RunDescription:
        """Return the description of the run."""
        from adaptive_eval.build.describe import describe_run
        from adaptive_eval.core.results import from_json

        results = None
        if self.made is not None:
            results = from_json(self.made.results)
        return replace(describe_run(self.reader), results=results)


def _push(run: _RunShown, name: str, *, texts: bool, public: bool) -> None:
    from adaptive_eval.interop.hub import push_run

    click.echo(push_run(run.reader, run.about(), run.summary(), name, texts=texts, public=public))


def _form(form: str | None, out: Path | None) -> str:
    """Return what to write: as given, or as the name of the file says; the two must not contradict."""
    if out is None and form is None:
        raise UsageError("say what to write: --format csv, for instance, or --out with a name like x.csv")
    if out is not None:
        fitting = SUFFIXES.get(out.suffix.lower(), ())
    else:
        fitting = ()
    if form is None and not fitting:
        raise UsageError(f"--out {out}: only names in {', '.join(SUFFIXES)} say what to write; give --format")
    if form is not None and fitting and form not in fitting:
        raise UsageError(f"--out {out} contradicts --format {form}: such a name is for {', '.join(fitting)}")
    return form or fitting[0]


def _write_folder(run: _RunShown, form: str, out: Path, part_rows: int | None, *, texts: bool) -> None:
    from adaptive_eval.interop import export_logs
    from adaptive_eval.interop.every_eval import write_every_eval
    from adaptive_eval.interop.run_tables import PART_ROWS, trial_rows, write_parts

    if form == "eval-results":
        _write_eval_results(run, out)
        return
    reader, about = run.reader, run.about()
    if form == "parquet":
        written = write_parts(trial_rows(reader, about, texts=texts), out, part_rows or PART_ROWS)
    elif form == "eee":
        written = write_every_eval(reader, about, run.summary(), out)
    elif form == "inspect":
        written = export_logs.write_inspect(reader, about, out)
    else:
        written = export_logs.write_lm_eval(reader, about, out)
    for path in written:
        click.echo(path)


def _write_eval_results(run: _RunShown, out: Path) -> None:
    from adaptive_eval.interop.eval_results import write_eval_results

    written, remarks = write_eval_results(run.reader, run.summary(), out)
    for remark in remarks:
        click.echo(remark, err=True)
    for path in written:
        click.echo(path)


def _write_table(run: _RunShown, form: str, out: Path | None, *, texts: bool) -> None:
    from adaptive_eval.interop.run_tables import trial_rows, write_csv, write_jsonl, write_parquet
    from adaptive_eval.views.files import whole_file

    rows = trial_rows(run.reader, run.about(), texts=texts)
    write = write_jsonl
    if form == "csv":
        write = write_csv
    if out is None:
        write(rows, sys.stdout)
        return
    with whole_file(out) as draft:
        if form == "parquet":
            write_parquet(rows, draft)
            return
        with draft.open("w", encoding="utf-8", errors="replace", newline="") as file:
            write(rows, file)


def _text(run: _RunShown, form: str) -> str:
    from adaptive_eval.views.score_tables import paper_latex, paper_markdown

    write = {"latex": paper_latex, "markdown": paper_markdown}[form]
    return write(run.summary()).removesuffix("\n") + "\n"


def _write_text(text: str, out: Path | None) -> None:
    if out is None:
        click.echo(text, nl=False)
    else:
        out.write_text(text, encoding="utf-8")
