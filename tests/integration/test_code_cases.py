"""Cases of LiveCodeBench: read from its rows without unpickling, and programs run on them."""

import json
import pickle
import sys
import zlib
from base64 import b64encode

import pytest
from programs import programs
from test_code_scorer import sandboxed, scored

from adaptive_eval.scoring import code
from adaptive_eval.scoring.code import read_cases
from adaptive_eval.tasks.sources import read_source
from adaptive_eval.trial import Question

SUMS = [
    {"input": "3\n1 2 3\n", "output": "6\n", "testtype": "stdin"},
    {"input": "2\n5 5\n", "output": "10.0", "testtype": "stdin"},
]
CALLS = [{"input": "[1, 2]\n3", "output": "[4, 5]", "testtype": "functional"}]


def packed(value, protocol=None):
    return b64encode(zlib.compress(pickle.dumps(value, protocol))).decode()


def asked(public, private, metadata="{}"):
    fields = {"public": json.dumps(public), "private": packed(json.dumps(private)), "metadata": metadata}
    return Question("t", "q", "x", fields)


class Hostile:
    def __reduce__(self):
        return sys.exit, ("unpickled",)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_cases_are_read_from_json_and_from_a_compressed_pickle(protocol):
    assert read_cases(json.dumps(SUMS)) == SUMS
    assert read_cases(packed(json.dumps(SUMS), protocol)) == SUMS


def test_a_field_that_unpacks_to_too_much_is_refused(monkeypatch):
    """Others that hold no cases are in tests/data/refusals.txt."""
    monkeypatch.setattr(code, "MOST_BYTES", 2**20)
    with pytest.raises(ValueError, match="more than 1 MiB"):
        read_cases(b64encode(zlib.compress(b"\0" * (2**20 + 1))).decode())


@sandboxed
@pytest.mark.parametrize("name", programs("of cases"))
def test_a_program_is_run_on_the_input_of_every_case(name):
    program, _, reason = programs("of cases")[name]
    question = asked(SUMS[:1], SUMS[1:])
    score = scored(f"```python\n{program}\n```", question, cases=("public", "private"), cpu_limit=1.0)
    assert (score.category, score.reason) == (int(reason == "the tests pass"), reason)


@sandboxed
@pytest.mark.parametrize("name", programs("called"))
def test_a_function_is_called_with_the_arguments_of_every_case(name):
    program, _, reason = programs("called")[name]
    question = asked(CALLS, CALLS, '{"func_name": "add"}')
    score = scored(f"```python\n{program}\n```", question, cases=("public", "private"))
    assert score.reason.startswith(reason)
    assert score.category == int(reason == "the tests pass")


@sandboxed
@pytest.mark.parametrize(
    ("question", "words"),
    [
        (asked(CALLS, []), "func_name"),
        (asked([], []), "no case"),
        (Question("t", "q", "x", {"public": "[]", "private": packed(Hostile())}), "the field 'private'"),
    ],
    ids=range(3),
)
def test_questions_without_usable_cases_are_named(question, words):
    from adaptive_eval.scoring.registry import build_scorer

    scorer = build_scorer("code", {"allow_execution": True, "cases": ("public", "private")})
    assert words in scorer.check_target(question)


def test_one_file_of_a_repository_of_the_hub_is_read(tmp_path, monkeypatch):
    hub = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr("adaptive_eval.tasks.sources._go_offline_where_unreachable", lambda _: None)
    (tmp_path / "test6.jsonl").write_text('{"input": "a", "target": "b"}\n', "utf-8")
    got = []

    def download(repository, file, **options):
        got.append((repository, file, options))
        return str(tmp_path / file)

    monkeypatch.setattr(hub, "hf_hub_download", download)
    assert read_source("hf:owner/name/test6.jsonl", revision="abc").rows[0].values["target"] == "b"
    assert got == [("owner/name", "test6.jsonl", {"repo_type": "dataset", "revision": "abc"})]
