r"""A mimic: a real local HTTP server of biased coins that speaks OpenAI's API.

A mimic sits an exam whose answer key it has. It recognises a known question in a prompt, tosses a coin with
that model's probability for that question, and writes a worked answer that is right or plausibly wrong,
with lognormal latency and honest usage. Every toss is a hash of (mimic's seed, model, prompt, request's
seed), so answers depend neither on the order of arrival nor on the process. It can be told to misbehave.

Examples
--------
>>> from urllib.request import urlopen
>>> spec = MimicSpec(models=(ModelSpec("novice", mean=0.3), ModelSpec("expert", mean=0.9)), seed=7)
>>> with MimicProcess(spec) as mimic:
...     urlopen(f"{mimic.url}/health").status
200
"""

from adaptive_eval.mock_server.mock_spec import (
    DatasetSpec,
    FaultSpec,
    KnownQuestion,
    LatencySpec,
    MimicSpec,
    ModelSpec,
    TokenSpec,
)
from adaptive_eval.mock_server.process import MimicProcess
from adaptive_eval.mock_server.spec_json import (
    faults_from_data,
    spec_from_data,
    spec_from_json,
    spec_to_json,
)

__all__ = [
    "DatasetSpec",
    "FaultSpec",
    "KnownQuestion",
    "LatencySpec",
    "MimicProcess",
    "MimicSpec",
    "ModelSpec",
    "TokenSpec",
    "faults_from_data",
    "spec_from_data",
    "spec_from_json",
    "spec_to_json",
]
