"""A run on the Hugging Face Hub: a dataset of its trials, its report and a card; results for model cards."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from adaptive_eval.config.document import write_document
from adaptive_eval.core.results import ModelResult
from adaptive_eval.errors import UsageError, first_line, library
from adaptive_eval.interop.run_tables import RunDescription, trial_rows, write_parquet
from adaptive_eval.store.reader import RunReader
from adaptive_eval.views.inert import inert
from adaptive_eval.views.page import to_markdown
from adaptive_eval.views.report_json import to_json
from adaptive_eval.views.sentences import score_name
from adaptive_eval.views.summary import Summary


def model_card(summary: Summary) -> str:
    """Return the YAML for the front matter of model cards: one entry of ``model-index`` for each model."""
    entries = [_entry(line, summary) for line in summary.results.models if line.score is not None]
    return write_document({"model-index": entries})


def _entry(line: ModelResult, summary: Summary) -> dict[str, Any]:
    results = summary.results
    arguments: dict[str, Any] = {
        "trials": line.trials,
        "questions": line.questions,
        "rule": results.rule,
        "confidence": results.confidence,
        "rank": [line.rank_low, line.rank_high],
        "models_compared": len(results.models),
    }
    if line.score_low is not None and line.score_high is not None:
        arguments["interval"] = [round(line.score_low, 4), round(line.score_high, 4)]
    assert line.score is not None
    metric = {"type": "accuracy", "name": f"score ({score_name(results)})", "value": round(line.score, 4)}
    return {
        "name": inert(line.model),
        "results": [
            {
                "task": {"type": "text-generation"},
                "dataset": {"name": inert(summary.name), "type": inert(summary.name)},
                "metrics": [{**metric, "args": arguments}],
                "source": {"name": "adaptive-eval"},
            }
        ],
    }


_TRIALS = "trials.parquet"
_THEIRS = ("huggingface_hub", "httpx", "httpx2")


def push_run(
    reader: RunReader, about: RunDescription, summary: Summary, name: str, *, texts: bool, public: bool
) -> str:
    """Write a run into the dataset `name` of the Hub, made if it is not there; return its address."""
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


def _card(summary: Summary) -> str:
    """Return the card of the dataset: the Hub's header, then the report."""
    front = {
        "tags": ["adaptive-eval", "evaluation", "llm"],
        "configs": [{"config_name": "trials", "data_files": _TRIALS}],
    }
    return f"---\n{write_document(front)}---\n\n{to_markdown(summary)}"
