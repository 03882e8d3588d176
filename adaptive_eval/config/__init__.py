"""A run's config: one YAML file to a frozen :class:`RunConfig`, or every mistake in it at once.

:func:`load_config` reads a file, :func:`parse_config` a text; :func:`json_schema` describes the grammar for
editors. :func:`difference` says why two configs cannot share a run file.
"""

from adaptive_eval.config.load_config import load_config, parse_config
from adaptive_eval.config.run_config import RunConfig

__all__ = ["RunConfig", "load_config", "parse_config"]
