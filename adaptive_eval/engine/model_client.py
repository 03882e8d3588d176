"""The client of a model: its servers, its limits, and when a trial is dropped."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from adaptive_eval.engine.discovery import Discovery
from adaptive_eval.engine.health import SEVERAL
from adaptive_eval.engine.limits import ConcurrencyLimit
from adaptive_eval.engine.pool import Pool
from adaptive_eval.engine.protocols import Endpoint, SamplingEndpoint
from adaptive_eval.engine.solving import Solvers
from adaptive_eval.errors import UsageError
from adaptive_eval.options.limit_options import RateLimit
from adaptive_eval.options.request_options import RetryConfig
from adaptive_eval.trial import Message


def _unknown(messages: Sequence[Message]) -> int:
    """Return 0: without a limit of tokens their number is not needed."""
    return 0


@dataclass(frozen=True, slots=True)
class ModelClient:
    """The servers and limits with which one model is asked."""

    endpoints: Sequence[Endpoint]  # one or more servers of the same model; none where they are discovered
    # trials in flight. None: as many as its servers can take; a server without a limit gets an adaptive
    # one.
    limit: ConcurrencyLimit | None
    # how long one trial is attempted before it frees its slot, and how often it is queued again
    retry: RetryConfig = field(default_factory=RetryConfig)
    # after this many consecutive missing trials the model is stopped: a server without usable answers must
    # not turn the whole trial sequence into missing trials
    outage: int = SEVERAL
    samples: int = 1  # most trials of a question that share one request
    rate: RateLimit = field(default_factory=RateLimit)  # requests and tokens a minute, over all servers
    # returns the most tokens that these messages can be; needed where tokens are limited
    prompt_tokens: Callable[[Sequence[Message]], int] = _unknown
    answer_tokens: int = 0  # most tokens of one answer; needed where tokens are limited
    solvers: Solvers = field(default_factory=dict)  # functions that answer trials of a task by several calls
    batched: bool = False  # whether it is asked in batches
    repeats: bool = False  # whether it is expected to answer a question the same every time
    time_limit: float | None = None  # seconds that its servers have for an answer
    discovery: Discovery | None = None  # how its servers are discovered, where they come and go

    def __post_init__(self) -> None:
        if self.samples > 1 and not all(isinstance(one, SamplingEndpoint) for one in self.endpoints):
            raise UsageError(f"samples is {self.samples}; an endpoint gives one answer at a time, so give 1")

    @property
    def patience(self) -> float:
        """Seconds for which no server may be there before the model is stopped."""
        if self.discovery is None:
            return self.retry.max_seconds
        return self.discovery.config.patience


@dataclass(frozen=True, slots=True)
class OfServers:
    """As many trials of a model in flight as its servers take requests, of `samples` trials each."""

    pool: Pool
    samples: int

    @property
    def slots(self) -> int:
        """Trials that may be in flight now."""
        return self.pool.slots * self.samples
