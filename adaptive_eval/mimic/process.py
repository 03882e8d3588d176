"""The mimic server in a child process, which ends with this process."""

import json
import selectors
import subprocess
import sys
import tempfile
from contextlib import suppress
from typing import IO, ClassVar, Self

from adaptive_eval.errors import DatasetError, EndpointsUnusable, UsageError
from adaptive_eval.mimic.mimic_spec import MimicSpec, spec_to_json

_HOST = "127.0.0.1"
_START_SECONDS = 30.0
_STOP_SECONDS = 5.0
_TAIL = 2000  # characters of standard error shown when the process does not start


class MimicProcess:
    """A mimic server that runs while this context is open. Started again after a stop, it keeps its port.

    The child sees the end of its standard input when this process closes the pipe or dies, even by
    ``kill -9``, and exits then. It has its own session, so Ctrl-C in the terminal does not reach it.

    Examples
    --------
    >>> from adaptive_eval.mimic.mimic_spec import MimicModelSpec
    >>> with MimicProcess(MimicSpec(models=(MimicModelSpec(name="a", mean=0.5),))) as server:
    ...     server.base_url.startswith("http://127.0.0.1:"), server.base_url.endswith("/v1")
    (True, True)
    """

    program: ClassVar[tuple[str, ...]] = ("-m", "adaptive_eval.mimic.serving")

    def __init__(self, spec: MimicSpec, *, port: int = 0) -> None:
        self._spec = spec
        self._port = port
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The server's root, such as ``http://127.0.0.1:49152``; `base_url` is what clients want."""
        return f"http://{_HOST}:{self._port}"

    @property
    def base_url(self) -> str:
        """The base URL for OpenAI clients: `url` and ``/v1``."""
        return f"{self.url}/v1"

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        if self._child is None:
            return None
        return self._child.pid

    def start(self) -> Self:
        """Start the process and return when it accepts connections."""
        if self._child is not None:
            return self
        with tempfile.TemporaryFile() as log:
            child = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [sys.executable, *self.program, _HOST, str(self._port)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
            self._child = child
            try:
                self._port = _handshake(child, spec_to_json(self._spec), log)
            except BaseException:
                self.stop()
                raise
        return self

    def stop(self) -> None:
        """Stop the process and wait for its end; harmless if it does not run."""
        child, self._child = self._child, None
        if child is None:
            return
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        try:
            child.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()

    def __enter__(self) -> Self:
        """Start."""
        return self.start()

    def __exit__(self, *exception: object) -> None:
        """Stop."""
        self.stop()


def _handshake(child: subprocess.Popen[bytes], spec: str, log: IO[bytes]) -> int:
    """Hand `spec` to `child` and return the port that it answers with."""
    assert child.stdin is not None
    assert child.stdout is not None
    # A child that dies early has its say through standard output or its log.
    with suppress(BrokenPipeError):
        child.stdin.write(spec.encode("utf-8", "surrogatepass") + b"\n")
        child.stdin.flush()
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        line = None
        if selector.select(_START_SECONDS):
            line = child.stdout.readline()
    if line is None:
        raise EndpointsUnusable(
            f"the mimic server did not start within {_START_SECONDS:g} s{_last_words(log)}"
        )
    if not line:
        child.wait()
        raise EndpointsUnusable(
            f"the mimic server ended with code {child.returncode} on start{_last_words(log)}"
        )
    answer = json.loads(line)
    if "error" in answer:
        kind = UsageError
        if answer["error"] == "dataset":
            kind = DatasetError
        raise kind(answer["message"])
    return int(answer["port"])


def _last_words(log: IO[bytes]) -> str:
    log.seek(0)
    text = log.read().decode("utf-8", "replace").strip()[-_TAIL:]
    if text:
        return f"; its last words:\n{text}"
    return ""
