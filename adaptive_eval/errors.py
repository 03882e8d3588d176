"""Every error this package raises on purpose, and whose fault each one is.

::

    AdaptiveEvalError
    ├── UsageError                  the user's input; exit code 2
    │   ├── ConfigError             one or more mistakes in a config, each with its place
    │   ├── DatasetError            a dataset cannot be read or misses a field
    │   ├── OutcomesError           results of another tool, a table or an earlier run cannot be used
    │   ├── UserCodeError           a function or package of the user's is missing, or fails
    │   └── RunFileError            the run file cannot be used as asked
    │       ├── RunExists           a run of this name is already there
    │       ├── RunNotFound         no run file at this path
    │       ├── RunLocked           another process is writing to this run
    │       ├── RunMismatch         the config would change what a stored trial is
    │       ├── RunOfOtherVersion   written by another version of this package
    │       ├── RunDiskFull         no space left; what was committed is safe
    │       ├── RunNotWritable      the directory, file or file system cannot be written to
    │       └── RunDamaged          not a run file, or its contents are corrupted
    ├── EndpointError               one request failed
    │   ├── TransientEndpointError  worth another attempt (429, 5xx, timeouts, dropped connections)
    │   │   └── ScorerUnavailable   judge, verifier or scoring process is unavailable; the answer is kept
    │   └── PermanentEndpointError  no attempt will succeed (400, 401, 403, 404, 422)
    ├── EndpointsUnusable           no goal can be reached with the endpoints that answer; exit code 4
    ├── Interrupted                 stopped before its run file was made; exit code 130
    ├── WorkersLost                 every worker of the executor has gone; the run can be resumed; exit code 4
    └── SessionError                the session was driven wrongly (an outcome for an unknown trial)

A message says what is wrong, shows the offending value and says what to do. It has a code, stable over
versions, that docs/troubleshooting.md explains. The command line prints both
without a traceback.
"""

import re
import shlex
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Self

from adaptive_eval.stops import ENDPOINTS, INTERRUPTED, UNEXPECTED, USAGE

BILLED_KINDS = frozenset({"timeout", "dropped", "malformed", "aborted", "too_large", "worker", "seed_test"})
"""Kinds of failure after which a request may have been billed."""

BILLED_STATUSES = frozenset({504, 524})
"""HTTP statuses of gateways that timed out while the server may still work on the request."""

BY_USER_CODE = "code"
"""Kind of failure of a user's function in the place of an endpoint: a mistake in the function."""

REQUEST_STATUSES = frozenset({400, 413, 422})
"""HTTP statuses that may concern one request alone, such as one that is longer than the context."""


class Coded(str):
    """A sentence for the user with its stable code, by which docs/troubleshooting.md explains it.

    Examples
    --------
    >>> said = Coded("config/twice", "'a' appears twice")
    >>> said, said.code
    ("'a' appears twice", 'config/twice')
    """

    code: str

    def __new__(cls, code: str, words: str) -> Self:
        """Return `words`, which are said under `code`."""
        said = super().__new__(cls, words)
        said.code = code
        return said

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.code, str(self))


def codes_of(texts: Iterable[str]) -> list[str | None]:
    """Return the code of every text; None for a text without one."""
    return [getattr(text, "code", None) for text in texts]


class AdaptiveEvalError(Exception):
    """Base of every error raised on purpose by this package.

    Attributes
    ----------
    code : str
        Stable name of what is wrong, such as ``run/locked``: as given, that of the message (:class:`Coded`),
        or that of the class.
    """

    code: str = "run/failed"
    exit_code: ClassVar[int] = UNEXPECTED

    def __init__(self, *args: Any, code: str | None = None) -> None:
        if code is not None:
            args = (Coded(code, args[0]),)
        super().__init__(*args)
        self.code = getattr(args[0], "code", self.code) if args else self.code


class UsageError(AdaptiveEvalError):
    """The input is wrong; nothing was spent."""

    exit_code = USAGE
    code = "usage/argument"


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a config.

    Parameters
    ----------
    path : str
        Dotted place in the config, such as ``models[0].endpoints``; empty for the whole file.
    message : str
        What is wrong, the value, and what to do.
    line : int, optional
        Line in the file, counted from 1.
    code : str
        Stable name of the kind of mistake; the default is for a text that is no config at all.
    """

    path: str
    message: str
    line: int | None = None
    code: str = "config/unreadable"

    def __str__(self) -> str:
        """Return ``line N: path: message [code]`` with the parts that are known."""
        place = ""
        if self.line is not None:
            place = f"line {self.line}: "
        if self.path:
            place += f"{self.path}: "
        return f"{place}{self.message} [{self.code}]"


class ConfigError(UsageError):
    """A config has mistakes; all of them are in `problems`.

    Parameters
    ----------
    problems : sequence of Problem
        Every mistake found, in file order.
    source : str, optional
        The file's name, for the message.
    """

    code = "config/wrong"

    def __init__(self, problems: Sequence[Problem], source: str = "config") -> None:
        self.problems = tuple(problems)
        self.source = source
        count = len(self.problems)
        head = f"{source}: {count} problem{'' if count == 1 else 's'}"
        super().__init__("\n".join([head, *(f"  {problem}" for problem in self.problems)]))


class DatasetError(UsageError):
    """A dataset cannot be read, or a row misses a field; the message names file and line."""

    code = "dataset/unusable"


class OutcomesError(UsageError):
    """Results of another tool, of a table or of an earlier run cannot be read, or do not fit."""

    code = "outcomes/unusable"


class UserCodeError(UsageError):
    """A function or package of the user's cannot be found, fails or returns something else than it should."""

    code = "code/unusable"


class EndedByUserCode(RuntimeError):
    """A function of the user's raised SystemExit, StopIteration or the like: a failure as any other."""


@contextmanager
def user_code() -> Iterator[None]:
    """Turn what would end this process, or a task that waits for it, into a failure of the user's function.

    Its line stays the last one.

    Examples
    --------
    >>> with user_code():
    ...     raise SystemExit(3)
    Traceback (most recent call last):
    adaptive_eval.errors.EndedByUserCode: SystemExit: 3
    """
    task = _current_task()
    try:
        yield
    except BaseException as error:
        if _is_failure(error) or _is_from_outside(error, task):
            raise
        words = f"{type(error).__name__}: {error}".removesuffix(": ")
        # Without the cause: contextlib takes an error whose cause is a StopIteration for that.
        raise EndedByUserCode(words).with_traceback(error.__traceback__) from None


def in_user_code(call: Callable[[], Any]) -> Any:
    """Return what a function of the user's returns: for threads, whose future takes no StopIteration."""
    with user_code():
        return call()


def _is_failure(error: BaseException) -> bool:
    """Return whether an error can be handed on as it is: a future and a generator take no StopIteration."""
    return isinstance(error, Exception) and not isinstance(error, StopIteration)


def _is_from_outside(error: BaseException, task: Any) -> bool:
    """Return whether the task that called user code is cancelled or closed: a function may raise the same."""
    import asyncio  # who imports errors alone needs none of it

    if isinstance(error, GeneratorExit):  # a task that is left behind is closed by another, or by none
        return _current_task() is not task
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def _current_task() -> Any:
    """Return the task that runs; None in a thread without an event loop."""
    import asyncio

    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


_LIBRARIES = (str(Path(traceback.__file__).parent), str(Path(__file__).parent), "<frozen")


def without_home(text: str) -> str:
    """Return a text with the path of this user's home as ``~``: what a run says is passed on to others.

    Examples
    --------
    >>> without_home(f"no such file: {Path.home()}/own.py")
    'no such file: ~/own.py'
    """
    home = str(Path("~").expanduser())
    if len(home) < 2 or home not in text:
        return text
    return re.sub(rf"(?<![\w.-]){re.escape(home)}(?![\w.-])", "~", text)


def last_line(error: BaseException) -> str:
    """Return the last line of an error's traceback, and the last file and line of the user's in it.

    Examples
    --------
    >>> last_line(ValueError("no idea"))
    'ValueError: no idea'
    """
    if isinstance(error.__cause__, StopIteration):  # in a coroutine; the cause has the line
        error = error.__cause__
    words = str(error) if isinstance(error, EndedByUserCode) else traceback.format_exception_only(error)[-1]
    words = without_home(words.strip())[:300]
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f"{words} ({Path(error.filename).name}, line {error.lineno})"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not _is_of_a_library(frame.filename)]
    if not own:
        return words
    frame = own[-1]
    return f"{words} ({Path(frame.filename).name}, line {frame.lineno})"


def _is_of_a_library(file: str) -> bool:
    """Tell whether a line is not the user's."""
    return file.startswith(_LIBRARIES) or "site-packages" in file


class RunFileError(UsageError):
    """The run file cannot be used as asked."""

    code = "run/file"


class RunExists(RunFileError):
    """A run of this name already exists."""

    code = "run/exists"


class RunNotFound(RunFileError):
    """There is no run file at this path."""

    code = "run/not-found"


class RunLocked(RunFileError):
    """Another process is writing to this run."""

    code = "run/locked"


class RunMismatch(RunFileError):
    """The config would change what a stored trial is; the message names each difference."""

    code = "run/mismatch"


class RunOfOtherVersion(RunFileError):
    """The file was written by another version of this package."""

    code = "run/other-version"


class RunDiskFull(RunFileError):
    """There is no space left on the run file's disk; what was committed is safe."""

    code = "run/disk-full"


class RunNotWritable(RunFileError):
    """The run's directory, file or file system cannot be written to."""

    code = "run/not-writable"


class RunDamaged(RunFileError):
    """The file is not a run file, or its contents are corrupted."""

    code = "run/damaged"


class EndpointError(AdaptiveEvalError):
    """One request to an endpoint failed.

    Parameters
    ----------
    message : str
        What happened, in the server's own words if it said anything. Never holds a secret.
    kind : str
        A short stable name for counting: ``timeout``, ``connection`` (never made), ``dropped`` (lost after
        the request had gone out), ``rate_limit``, ``server``, ``malformed``, ``aborted``, ``too_large`` (a
        body beyond its limit), ``expired`` (a request of a batch that was not carried out), ``auth``,
        ``not_found``, ``bad_request``, ``worker`` (lost with the process that had made the request),
        ``code`` (a mistake in a user's function).
    status : int, optional
        HTTP status.
    cause : tuple of str, optional
        Why a request was refused, and what that names, as the table in :mod:`adaptive_eval.endpoints.causes`
        calls them.
    """

    code = "endpoint/failed"

    def __init__(
        self, message: str, *, kind: str, status: int | None = None, cause: tuple[str, ...] = ()
    ) -> None:
        super().__init__(without_home(message))
        self.kind = kind
        self.status = status
        self.cause = cause

    @property
    def billed(self) -> bool:
        """Whether the request may have been billed: the server may have answered, and no usage came."""
        return self.kind in BILLED_KINDS or self.status in BILLED_STATUSES

    def __reduce__(self) -> tuple[Any, ...]:
        return _copied, (type(self), str(self), vars(self))


def _copied(kind: type[EndpointError], message: str, state: dict[str, Any]) -> EndpointError:
    """Return an error from another process with all that it said."""
    error = kind.__new__(kind, message)
    vars(error).update(state)
    return error


class TransientEndpointError(EndpointError):
    """Worth another attempt.

    Parameters
    ----------
    retry_after : float, optional
        Seconds the server asked to wait.
    """

    def __init__(
        self, message: str, *, kind: str, status: int | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message, kind=kind, status=status)
        self.retry_after = retry_after


class ScorerUnavailable(TransientEndpointError):
    """A judge, a verifier or a scoring process is unavailable: the answer is kept, and scored later.

    Parameters
    ----------
    discarded : tuple of str, optional
        Causes for which judgements were given up that may have been begun.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: str,
        status: int | None = None,
        retry_after: float | None = None,
        discarded: tuple[Any, ...] = (),
    ) -> None:
        super().__init__(message, kind=kind, status=status, retry_after=retry_after)
        self.discarded = discarded


class PermanentEndpointError(EndpointError):
    """No attempt will succeed: the model is stopped, or a request that it does not take is lost."""


class EndpointsUnusable(AdaptiveEvalError):
    """The goal cannot be reached with the endpoints that answer."""

    code = "run/no-endpoint"
    exit_code = ENDPOINTS


class Interrupted(AdaptiveEvalError):
    """The user stopped the run before its run file was created."""

    code = "run/interrupted"
    exit_code = INTERRUPTED


class WorkersLost(AdaptiveEvalError):
    """No worker is left, and none has replaced those that died; stored trials are safe."""

    code = "run/workers-lost"
    exit_code = ENDPOINTS


class SessionError(AdaptiveEvalError):
    """The session was driven wrongly: an unknown trial, or an outcome that contradicts an earlier one."""

    code = "session/misuse"


def first_line(said: object) -> str:
    r"""Return the first line of what an error of a library says, in short; its type if it says nothing.

    Examples
    --------
    >>> first_line(ValueError("no task\nsuch as x")), first_line(ValueError())
    ('no task', 'ValueError')
    """
    return next(iter(without_home(str(said)).strip().splitlines()), type(said).__name__)[:300]


def in_words(error: Exception) -> str:
    """Return what an error of the system says, without its number and the path, which a message names itself.

    Examples
    --------
    >>> in_words(FileNotFoundError(2, "No such file or directory", "x.jsonl"))
    'No such file or directory'
    >>> in_words(OverflowError("bind(): port must be 0-65535."))
    'bind(): port must be 0-65535.'
    """
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def library(module: str, needed_by: str, package: str, error: type[UsageError] = UsageError) -> Any:
    """Return a module that `needed_by` needs; raise `error`, with what to install, if it is missing.

    Examples
    --------
    >>> library("json", "this example", "json").dumps([1])
    '[1]'
    """
    try:
        return import_module(module)
    except ImportError as failure:
        if failure.name is not None and failure.name.split(".")[0] != module.split(".")[0]:
            raise
        words = f"{needed_by} needs a library that is not installed: pip install {shlex.quote(package)}"
        raise error(words, code="library/missing") from None
