"""``python -m adaptive_eval``: the command line."""

from __future__ import annotations

import gc

from adaptive_eval.run.interrupts import ends_at_once


def main() -> None:
    """Run the command line; an interrupt ends it quietly from its first import on."""
    gc.set_threshold(20_000)  # 700 by default: trials in flight are many objects, and hardly any are rings
    with ends_at_once():
        from adaptive_eval.cli.main import main as command_line

        command_line()


if __name__ == "__main__":
    main()
