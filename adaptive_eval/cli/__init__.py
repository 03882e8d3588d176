"""The command line: one file a command, each imported only when it is called."""

from adaptive_eval.cli.main import main

__all__ = ["main"]
