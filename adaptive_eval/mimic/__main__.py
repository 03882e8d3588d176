"""The mimic server as a child process: spec in, port out; it ends when the parent's pipe closes.

Run as ``python -m adaptive_eval.mimic HOST PORT``. The first line of standard input is the spec
as JSON. One line of JSON goes to standard output: ``{"port": N}`` when connections are accepted, or
``{"error": kind, "message": text}``.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable

from starlette.types import ASGIApp

from adaptive_eval.errors import DatasetError, UsageError
from adaptive_eval.mimic.mimic_spec import MimicSpec, spec_from_json
from adaptive_eval.mimic.routes import create_app
from adaptive_eval.mimic.serving import serve


def main(create_app: Callable[[MimicSpec], ASGIApp] = create_app) -> int:
    """Serve until standard input ends."""
    host, port = sys.argv[1], int(sys.argv[2])
    try:
        spec = spec_from_json(_first_line(sys.stdin.fileno()))
        serve(create_app(spec), host=host, port=port, ready=lambda bound: _say({"port": bound}), lifeline=0)
    except UsageError as error:
        kind = "dataset" if isinstance(error, DatasetError) else "usage"
        _say({"error": kind, "message": str(error)})
        return 2
    return 0


def _first_line(descriptor: int) -> str:
    """Read one line and nothing after it, so that the end of file is still to be seen."""
    with os.fdopen(os.dup(descriptor), "rb") as stream:
        return stream.readline().decode("utf-8", "surrogatepass")


def _say(message: dict[str, object]) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    sys.exit(main())
