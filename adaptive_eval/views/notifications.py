"""Telling others what happens in a run, by a webhook or a command, without ever holding it up."""

import json
import queue
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from adaptive_eval.errors import UsageError
from adaptive_eval.views.inert import inert
from adaptive_eval.views.numbers import count
from adaptive_eval.views.plain_data import picked

NoticeKind: TypeAlias = Literal["pair_decided", "stopped", "error"]

_TEXT = 2_000


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that happened."""

    event: NoticeKind  # what kind of thing
    run: str  # the run's name
    at: float  # unix time
    text: str  # in words
    trials: int = 0  # counted trials of the run
    models: tuple[str, ...] = ()  # the models concerned
    verdict: str | None = None  # of a pair, seen from the first model; of a stop, its reason

    def to_json(self) -> str:
        r"""Return the notice as JSON in one line; `text` is what chat services show of it.

        Examples
        --------
        >>> notice = Notice("stopped", "demo", 0.0, "goal\x1b reached", 9, verdict="resolved")
        >>> json.loads(notice.to_json())["text"]
        'demo: goal␛ reached'
        """
        return json.dumps(
            {
                "schema": "adaptive-eval/notice",
                "version": 1,
                **picked(
                    self,
                    "event run at text trials models verdict",
                    text=inert(f"{self.run}: {self.text}"[:_TEXT]),
                ),
            }
        )


class DeliveryError(Exception):
    """A notice did not arrive; the message names no address."""


Channel: TypeAlias = Callable[[Notice], None]
"""Delivers a notice or raises DeliveryError; it may take its time."""


def webhook(url: str, timeout: float = 10.0) -> Channel:
    """Return a channel that posts each notice as JSON."""
    parts = urlsplit(url.strip())
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise UsageError("the webhook is no URL that begins with http:// or https://; its value is not shown")

    def post(notice: Notice) -> None:
        import httpx2  # most runs notify nobody

        try:
            answer = httpx2.post(
                url.strip(),
                content=notice.to_json(),
                headers={"Content-Type": "application/json"},
                timeout=timeout,
            )
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise DeliveryError(f"the webhook could not be reached ({type(error).__name__})") from None
        if answer.status_code >= 300:
            raise DeliveryError(f"the webhook answered {answer.status_code}")

    return post


def command(arguments: Sequence[str], timeout: float = 60.0) -> Channel:
    """Return a channel that starts a program for each notice, with the JSON on its standard input."""

    def run(notice: Notice) -> None:
        try:
            done = subprocess.run(  # noqa: S603 - the command of the user's own config
                list(arguments),
                input=notice.to_json() + "\n",
                text=True,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=timeout,
                check=False,
                start_new_session=True,  # Ctrl-C is for the run
            )
        except subprocess.TimeoutExpired:
            raise DeliveryError(f"the command took longer than {timeout:g} s and was killed") from None
        except OSError as error:
            raise DeliveryError(f"the command could not be started: {error.strerror}") from None
        if done.returncode:
            raise DeliveryError(f"the command ended with code {done.returncode}")

    return run


class Notifier:
    """Delivers notices in a thread."""

    def __init__(self, channels: Sequence[Channel], most: int = 1_000) -> None:
        self._channels = tuple(channels)
        self._waiting: queue.Queue[Notice] = queue.Queue(most)
        self._closing = threading.Event()
        self._notices = self._dropped = 0  # by the thread that tells
        self._failed = 0  # by the thread that delivers
        self._problem = ""
        self._thread = threading.Thread(target=self._deliver, name="notices", daemon=True)
        self._thread.start()

    def tell(self, notice: Notice) -> None:
        """Hand over a notice; returns at once."""
        self._notices += 1
        try:
            self._waiting.put_nowait(notice)
        except queue.Full:
            self._dropped += 1
            self._problem = "they came faster than they could be delivered"

    def close(self, patience: float = 15.0) -> str | None:
        """Wait up to `patience` seconds for pending deliveries."""
        self._closing.set()
        self._thread.join(patience)
        lost = self._failed + self._dropped * len(self._channels)
        if self._thread.is_alive():
            self._problem = f"they were still under way {patience:g} s after the end"
            lost += 1 + self._waiting.qsize() * len(self._channels)
        if not lost:
            return None
        notices = count(self._notices * len(self._channels), "notice")
        return f"{lost:,} of {notices} not delivered: {self._problem}"

    def _deliver(self) -> None:
        while not (self._closing.is_set() and self._waiting.empty()):
            try:
                notice = self._waiting.get(timeout=0.1)
            except queue.Empty:
                continue
            for channel in self._channels:
                try:
                    channel(notice)
                except DeliveryError as error:
                    self._failed += 1
                    self._problem = str(error)
