"""A config file to a :class:`~adaptive_eval.config.run_config.RunConfig`, or every mistake in it at once."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from adaptive_eval.config.checks import check_all
from adaptive_eval.config.document import (
    Document,
    Override,
    apply_overrides,
    read_document,
    read_overrides,
    write_document,
)
from adaptive_eval.config.run_config import RunConfig
from adaptive_eval.config.secret_checks import find_secrets
from adaptive_eval.config.short_forms import written_out
from adaptive_eval.errors import ConfigError, Problem
from adaptive_eval.options.decisions import Decisions, conflicts
from adaptive_eval.options.mistakes import (
    CONFLICT,
    Found,
    Mistakes,
    Place,
    did_you_mean,
    dotted,
    looks_like_secret,
    no_dataset,
    shown,
)
from adaptive_eval.options.section import as_read
from adaptive_eval.tasks.sources import is_file_source

MAX_BYTES = 2_000_000
"""Largest config file read."""


def load_config(path: str | Path, overrides: Sequence[str] = ()) -> RunConfig:
    """Read a config file.

    Examples
    --------
    >>> load_config("no-such-file.yaml")
    Traceback (most recent call last):
        ...
    adaptive_eval.errors.ConfigError: no-such-file.yaml: 1 problem
      there is no such file [config/unreadable]
    """
    file = Path(path)
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
    except FileNotFoundError:
        near = did_you_mean(file.name, [one.name for one in file.parent.glob("*.y*ml")])
        raise ConfigError([Problem("", f"there is no such file{near}")], str(path)) from None
    except OSError as error:
        raise ConfigError([Problem("", f"cannot be read: {error.strerror}")], str(path)) from None
    if len(content) > MAX_BYTES:
        raise ConfigError([Problem("", f"is larger than {MAX_BYTES:,} bytes and no config")], str(path))
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        problem = Problem("", "is not UTF-8 here; save the file as UTF-8", line)
        raise ConfigError([problem], str(path)) from None
    return parse_config(text, str(path), file.resolve().parent, overrides)


def parse_config(
    text: str, source: str = "config", base_dir: str | Path | None = None, overrides: Sequence[str] = ()
) -> RunConfig:
    r"""Read a config from its text.

    Examples
    --------
    >>> try:
    ...     parse_config("name: x\nseed: one\nmodels: []")
    ... except ConfigError as error:
    ...     print(error)
    config: 3 problems
      tasks: is missing; the tasks [config/missing]
      line 2: seed: 'one' is not a whole number [config/type]
      line 3: models: has 0 items and needs at least 1; the models [config/out-of-range]
    """
    document = read_document(text)
    if document.data is None:
        empty = Problem("", "is empty; configs/quickstart.yaml shows what it holds")
        raise ConfigError(list(map(_without_secrets, document.problems)) or [empty], source)
    return _checked(document, text, source, base_dir, overrides)


def _checked(
    document: Document, text: str, source: str, base_dir: str | Path | None, overrides: Sequence[str] = ()
) -> RunConfig:
    """Return the config of a document; its text is kept if nothing is changed in it."""
    base = None
    if base_dir is not None:
        base = Path(base_dir).absolute()
    unknown: list[tuple[Place, str]] = []
    read = document
    document = written_out(document, base, unknown)
    data = document.data
    given, unreadable = read_overrides(overrides, data)
    collected = _Collected(document, given)
    data = apply_overrides(data, given)
    collected.add(find_secrets(data))
    collected.add_lines(text)
    collected.document = read  # what is wrong with a short form is at its place in the file
    collected.add(unknown)
    collected.document = document
    config: RunConfig | None = None
    try:
        config = RunConfig.from_data(data)
    except Mistakes as error:
        collected.add(error.found)
        collected.add(_conflicts_elsewhere(data, [path for path, _ in error.found]))
    else:
        collected.add(check_all(config))
    collected.add(_missing_datasets(data, base))
    problems = collected.in_file_order(unreadable)
    if config is None or problems:
        raise ConfigError(problems, source)
    if text and data == read.data:
        config._text = text
    else:
        config._text = write_document(data)
    config._source, config._base_dir = source, base
    return config


def _conflicts_elsewhere(data: Any, wrong: Sequence[Place]) -> Found:
    """Yield what does not go together in a config without its wrong settings, if that is one.

    Not in the sections, models and tasks that now lack one, nor about whole sections: they may only seem so.
    """
    for path in wrong:
        data = _without(data, path)
    try:
        rest = RunConfig.from_data(data)
    except Mistakes:
        return
    lacking = {_owner(path) for path in wrong}
    for path, words in check_all(rest):
        if len(path) > 1 and _owner(path) not in lacking:
            yield path, words


def _owner(path: Place) -> Place:
    """Return the place of the section, or of the item of a list, that a setting belongs to."""
    in_list = len(path) > 1 and isinstance(path[1], int)
    if in_list:
        return path[:2]
    return path[:1]


def _without(data: Any, path: Place) -> Any:
    """Return data without the setting at `path`; items stay in their lists, or others would move up."""
    if not path:
        return data
    first = path[0]
    rest = path[1:]
    if isinstance(data, tuple) and isinstance(first, int) and rest:
        return (*data[:first], _without(data[first], rest), *data[first + 1 :])
    if not isinstance(data, dict) or first not in data:
        return data
    if rest:
        return {**data, first: _without(data[first], rest)}
    return {key: value for key, value in data.items() if key != first}


def config_from_data(data: Any, base_dir: str | Path | None = None) -> RunConfig:
    """Check a config given as plain data, with everything that :func:`parse_config` checks.

    Examples
    --------
    >>> models = [{"name": name, "endpoints": ["http://localhost:8000/v1"]} for name in ("a", "b")]
    >>> task = {"name": "sums", "dataset": "sums.jsonl", "scorer": "numeric"}
    >>> config_from_data({"name": "demo", "models": models, "tasks": [task]}).stopping.rule
    'anytime'
    """
    return _checked(Document(as_read(data)), "", "config", base_dir)


def decisions_from_data(
    data: Mapping[str, Any],
    models: Sequence[str],
    weights: Sequence[tuple[float, ...]],
    overrides: Sequence[str],
    source: str,
) -> Decisions:
    """Check goal, stopping and allocation for models of these names and tasks with these weights.

    Examples
    --------
    >>> data, tasks = {"goal": "baseline=c"}, [(0.0, 1.0)]
    >>> decisions_from_data(data, ("a", "b"), tasks, ["stopping.confidence=0.9"], "options")
    Traceback (most recent call last):
        ...
    adaptive_eval.errors.ConfigError: options: 1 problem
      goal.model: 'c' is not a model of this run (a, b) [config/unknown-name]
    """
    given, unreadable = read_overrides(overrides, data)
    changed = apply_overrides(data, given)
    collected = _Collected(Document(changed), ())
    decisions = Decisions()
    try:
        decisions = Decisions.from_data(changed)
    except Mistakes as error:
        collected.add(error.found)
    else:
        collected.add(conflicts(decisions, models, (), weights))
    problems = collected.in_file_order(unreadable)
    if problems:
        raise ConfigError(problems, source)
    return decisions


class _Collected:
    """The problems of one config: one for each mistake, however many checks stumble over it."""

    def __init__(self, document: Document, overrides: Sequence[Override]) -> None:
        self.document = document
        self.overridden = [path for path, _ in overrides]
        problems = map(_without_secrets, document.problems)
        self.in_file = [((problem.line or 0, 0), problem) for problem in problems]
        self.outside: list[Problem] = []
        self.covered: list[Place] = []

    def add(self, found: Iterable[tuple[Place, str]]) -> None:
        """Take what one check found, except at places that an earlier check has reported."""
        covered = list(self.covered)
        for path, words in found:
            if any(path[: len(place)] == place for place in covered):
                continue
            self.covered.append(path)
            code = getattr(words, "code", CONFLICT)
            if any(path[: len(place)] == place for place in self.overridden):
                words = f"{words} (given outside the file)"
                self.outside.append(Problem(_written(path), words, code=code))
                continue
            mark = self.document.mark(path)
            line = None
            if mark is not None:
                line = mark[0]
            self.in_file.append((mark or (0, 0), Problem(_written(path), words, line, code)))

    def add_lines(self, text: str) -> None:
        """Take the further lines of the file that hold a secret."""
        known = {problem.line for _, problem in self.in_file if problem.code == "config/secret"}
        words = "this line holds what looks like a key; remove it (the text is stored with the run)"
        for number, line in enumerate(text.split("\n"), start=1):
            if number not in known and looks_like_secret(line):
                self.in_file.append(((number, 0), Problem("", words, number, "config/secret")))

    def in_file_order(self, outside: Sequence[Problem]) -> list[Problem]:
        """Return everything collected and `outside`: the file's problems by line, then the others."""
        in_file = [problem for _, problem in sorted(self.in_file, key=lambda item: item[0])]
        return [*dict.fromkeys(in_file), *outside, *self.outside]


def _written(path: Place) -> str:
    """Return a place as people write it, without a key that looks like a secret."""
    shown = list(path)
    for number, part in enumerate(path):
        if looks_like_secret(str(part)):
            shown[number] = "(hidden)"
    return dotted(tuple(shown))


def _without_secrets(problem: Problem) -> Problem:
    """Return a problem of the text's form without the piece of text it quotes, if that may be a key."""
    if not looks_like_secret(str(problem)):
        return problem
    return Problem("", "not readable as YAML (the place may hold a key and is not shown)", problem.line)


def _missing_datasets(data: Any, base: Path | None) -> Iterator[tuple[Place, str]]:
    tasks = None
    if isinstance(data, dict):
        tasks = data.get("tasks")
    if base is None or not isinstance(tasks, tuple):
        return
    for place, task in enumerate(tasks):
        dataset = None
        if isinstance(task, dict):
            dataset = task.get("dataset")
        if not isinstance(dataset, str) or not dataset or not is_file_source(dataset):
            continue
        if not (base / Path(dataset).expanduser()).is_file():
            words = f"{shown(dataset)}: there is no such file in {base}"
            yield ("tasks", place, "dataset"), no_dataset(words)
