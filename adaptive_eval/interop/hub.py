"""A run on the Hugging Face Hub: a dataset of its trials, its report and a card."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from adaptive_eval.config.document import write_document
from adaptive_eval.errors import UsageError, first_line, library
from adaptive_eval.interop.run_tables import RunDescription, trial_rows, write_parquet
from adaptive_eval.store.reader import RunReader
from adaptive_eval.views.page import to_markdown
from adaptive_eval.views.report_json import to_json
from adaptive_eval.views.summary import RunSummary

_TRIALS = "trials.parquet"
_THEIRS = ("huggingface_hub", "httpx", "httpx2")


def push_run(
    reader: RunReader, about: RunDescription, summary: RunSummary, name: str, *, texts: bool, public: bool
) -> str:
    """Write a run into the dataset `name` of the Hub, made if it is not there; return its address."""
    if name.count("/") != 1 or not all(name.split("/")):
        raise UsageError(f"--push {name!r}: a dataset of the Hub is OWNER/NAME, such as me/results")
    hub = library("huggingface_hub", "--push", "huggingface_hub")
    api = hub.HfApi(endpoint=os.environ.get("HF_ENDPOINT") or None, library_name="adaptive-eval")
    with TemporaryDirectory() as folder:
        trials = Path(folder, _TRIALS)
        write_parquet(trial_rows(reader, about, texts=texts), trials)
        files: dict[str, Path | bytes] = {
            "README.md": _card(summary).encode("utf-8", "replace"),
            "report.json": to_json(summary).encode("utf-8", "replace"),
            _TRIALS: trials,
        }
        changes = [hub.CommitOperationAdd(path, content) for path, content in files.items()]
        try:
            url = api.create_repo(name, repo_type="dataset", private=not public, exist_ok=True)
            api.create_commit(name, changes, commit_message=f"Add {summary.name}", repo_type="dataset")
        except Exception as error:
            # Versions of the library send by different clients, and let their errors through.
            if not isinstance(error, OSError) and type(error).__module__.partition(".")[0] not in _THEIRS:
                raise
            advice = "is the name OWNER/NAME, and does HF_TOKEN hold a token that may write?"
            raise UsageError(f"--push {name}: {first_line(error)}; {advice}") from None
    return str(url)


def _card(summary: RunSummary) -> str:
    """Return the card of the dataset: the Hub's header, then the report."""
    front = {
        "tags": ["adaptive-eval", "evaluation", "llm"],
        "configs": [{"config_name": "trials", "data_files": _TRIALS}],
    }
    return f"---\n{write_document(front)}---\n\n{to_markdown(summary)}"
