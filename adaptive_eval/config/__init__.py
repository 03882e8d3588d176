"""A run's config: one YAML file to a frozen :class:`RunConfig`, or every mistake in it at once.

:func:`load_config` reads a file, :func:`parse_config` a text; :func:`json_schema` describes the grammar for
editors. :func:`difference` says why two configs cannot share a run file.
"""

from adaptive_eval.config.decisions import (
    AllGoal,
    AllocationConfig,
    AnyGoal,
    BaselineGoal,
    BudgetGoal,
    Goal,
    PairsGoal,
    RankingGoal,
    RetryConfig,
    StoppingConfig,
    ThresholdGoal,
    TopKGoal,
    WidthGoal,
)
from adaptive_eval.config.discovery_config import (
    CommandDiscovery,
    DiscoveryConfig,
    DnsDiscovery,
    EachServerConfig,
    FileDiscovery,
)
from adaptive_eval.config.identity import difference
from adaptive_eval.config.limits_config import BudgetConfig, LimitsConfig, RateLimitConfig
from adaptive_eval.config.load_config import config_from_data, json_schema, load_config, parse_config
from adaptive_eval.config.mock_server_config import MockServerConfig
from adaptive_eval.config.model import (
    HeaderConfig,
    ModelConfig,
    PriceConfig,
    SamplingConfig,
    TimeoutConfig,
)
from adaptive_eval.config.previous import PriorConfig, ReferenceConfig
from adaptive_eval.config.rubric_config import RubricConfig
from adaptive_eval.config.run_config import ExecutorConfig, NotifyConfig, RunConfig
from adaptive_eval.config.scorers import ScorerConfig
from adaptive_eval.config.section import parse_count, parse_duration
from adaptive_eval.config.server_config import ServerConfig
from adaptive_eval.config.task_config import TaskConfig

__all__ = [
    "AllGoal",
    "AllocationConfig",
    "AnyGoal",
    "BaselineGoal",
    "BudgetConfig",
    "BudgetGoal",
    "CommandDiscovery",
    "DiscoveryConfig",
    "DnsDiscovery",
    "EachServerConfig",
    "ExecutorConfig",
    "FileDiscovery",
    "Goal",
    "HeaderConfig",
    "LimitsConfig",
    "MockServerConfig",
    "ModelConfig",
    "NotifyConfig",
    "PairsGoal",
    "PriceConfig",
    "PriorConfig",
    "RankingGoal",
    "RateLimitConfig",
    "ReferenceConfig",
    "RetryConfig",
    "RubricConfig",
    "RunConfig",
    "SamplingConfig",
    "ScorerConfig",
    "ServerConfig",
    "StoppingConfig",
    "TaskConfig",
    "ThresholdGoal",
    "TimeoutConfig",
    "TopKGoal",
    "WidthGoal",
    "config_from_data",
    "difference",
    "json_schema",
    "load_config",
    "parse_config",
    "parse_count",
    "parse_duration",
]
