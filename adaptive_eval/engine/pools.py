"""The pools of all models, and the servers that are in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from adaptive_eval.engine.adaptive import AdaptiveConcurrency
from adaptive_eval.engine.discovery import Discovery
from adaptive_eval.engine.health import HealthMonitor
from adaptive_eval.engine.lane import Lane
from adaptive_eval.engine.pool import Member, Pool
from adaptive_eval.engine.protocols import Clock, Endpoint
from adaptive_eval.engine.server import ServerLimits, Servers

__all__ = ["OfServers", "Pools"]


class Pools:
    """The pool of every model as a run begins; models that name the same address share the server.

    Parameters
    ----------
    lanes : mapping of str to Lane
        How each model is asked.
    limits : mapping of str to ServerLimits
        Limits of servers, by their address.
    clock : Clock
        Tells when.

    Attributes
    ----------
    of : dict of str to Pool
        The pools.
    """

    def __init__(self, lanes: Mapping[str, Lane], limits: Mapping[str, ServerLimits], clock: Clock) -> None:
        self._lanes = dict(lanes)
        self._servers = Servers(limits)
        self.of = {
            model: Pool(
                [self.member(model, endpoint) for endpoint in lane.endpoints],
                lane.rate,
                open_since=None if lane.discovery is None else clock.now(),
            )
            for model, lane in lanes.items()
        }

    @property
    def discoveries(self) -> dict[str, Discovery]:
        """How servers are found, for the models where they are."""
        return {model: lane.discovery for model, lane in self._lanes.items() if lane.discovery is not None}

    def member(self, model: str, endpoint: Endpoint) -> Member:
        """Return who asks `model` through `endpoint`."""
        lane = self._lanes[model]
        limits = ServerLimits if lane.discovery is None else lane.discovery.limits
        server = self._servers.at(endpoint.url, limits)
        if lane.limit is None and server.concurrency is None:
            server.concurrency = AdaptiveConcurrency()
        return Member(endpoint, server, HealthMonitor(model, endpoint.url))


@dataclass(frozen=True, slots=True)
class OfServers:
    """As many trials of a model in flight as its servers take requests, of `samples` trials each."""

    pool: Pool
    samples: int

    @property
    def slots(self) -> int:
        """Trials that may be in flight now."""
        return self.pool.slots * self.samples
