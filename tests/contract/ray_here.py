"""The cluster that the tests marked ``ray`` share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

KEY = "ray-test-key-5e7d1c"
"""A key that the cluster's nodes have in their environment, as LAB_PASS."""


@dataclass(frozen=True)
class Cluster:
    """A running cluster: its address, and the folder in which it keeps its logs and what was shipped."""

    address: str
    folder: Path
