"""Rows of datasets: a file, Parquet, the Hugging Face hub or a folder of it, a user's function."""

import datetime
import decimal
import hashlib
import importlib
import socket
import sys
from base64 import b64encode
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from io import BytesIO
from itertools import islice, starmap
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from adaptive_eval.errors import AdaptiveEvalError, DatasetError, first_line, last_line, library, user_code
from adaptive_eval.options.section import HUB, INSPECT, LM_EVAL, PYTHON
from adaptive_eval.tasks.rows import Found, Row, RowFile, no_such_file, read_rows

EXECUTABLE = (PYTHON, INSPECT, LM_EVAL)
"""Prefixes of datasets whose rows code gives."""

_LOADERS = {
    INSPECT: "adaptive_eval.interop.inspect_task:inspect_rows",
    LM_EVAL: "adaptive_eval.interop.lm_eval_task:lm_eval_rows",
}
"""Functions that give rows by name and folder, for other tools' datasets; imported when one is named."""

REACH_SECONDS = 5.0
"""Timeout of a connection to the Hugging Face hub, in seconds."""

MOST_ROWS = 5_000_000
"""Rows that a function may give: one that never ends is stopped here."""


def is_file_source(dataset: str) -> bool:
    """Tell whether a dataset is a file.

    Examples
    --------
    >>> is_file_source("data/aime.jsonl"), is_file_source("hf:openai/gsm8k")
    (True, False)
    """
    return not dataset.startswith((HUB, PYTHON, INSPECT, LM_EVAL))


def read_source(
    dataset: str,
    base: Path | None = None,
    *,
    split: str = "test",
    subset: str | tuple[str, ...] | None = None,
    revision: str | None = None,
    media: Collection[str] = (),
) -> RowFile:
    """Read the rows of a dataset; bytes in the columns `media` become data URIs, others their hash."""
    base = base or Path()
    if dataset.startswith(HUB) and not _is_folder(dataset) and dataset.count("/") > 1:
        return read_source(_file_of_the_hub(dataset.removeprefix(HUB), revision), media=media)
    if dataset.startswith(HUB):
        return _numbered(_from_hub(dataset.removeprefix(HUB), base, split, subset, revision), media)
    if dataset.startswith(PYTHON):
        return _numbered(_from_function(dataset.removeprefix(PYTHON), base), media)
    for prefix, place in _LOADERS.items():
        if dataset.startswith(prefix):
            module, function = place.split(":")
            rows = getattr(import_module(module), function)
            return _numbered(rows(dataset.removeprefix(prefix), base))
    path = base / Path(dataset).expanduser()
    if path.suffix.lower() == ".parquet":
        return _numbered(_from_parquet(path), media)
    return read_rows(path)


def _from_parquet(path: Path) -> Iterator[Mapping[str, Any]]:
    if not path.is_file():
        raise no_such_file(path)
    try:
        yield from parquet_rows(path)
    except (OSError, ValueError) as error:  # those of Arrow are either
        raise DatasetError(f"{path}: not readable as Parquet: {error}") from None


def parquet_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a Parquet file, some at a time."""
    from adaptive_eval.tasks.unpacking import require_bounded_parquet

    arrow, parquet = (library(name, "reading Parquet", "pyarrow") for name in ("pyarrow", "pyarrow.parquet"))
    file = parquet.ParquetFile(path)
    require_bounded_parquet(path, parquet, file)
    narrow = (arrow.float16(), arrow.float32())
    single = {field.name for field in file.schema_arrow if field.type in narrow}
    for batch in file.iter_batches(batch_size=4096):
        for row in batch.to_pylist():
            yield _shortened(row, single)


def _shortened(row: Mapping[str, Any], single: Collection[str]) -> Mapping[str, Any]:
    """Return a row with its single-precision numbers as they were written: 0.1, not 0.10000000149."""
    if not single:
        return row
    import numpy as np

    known = {name: row[name] for name in single if row.get(name) is not None}
    return {**row, **{name: float(str(np.float32(value))) for name, value in known.items()}}


def _from_hub(
    name: str, base: Path, split: str, subset: str | tuple[str, ...] | None, revision: str | None
) -> Iterator[Any]:
    datasets = library("datasets", "a dataset of Hugging Face", "datasets", DatasetError)
    errors = library("datasets.exceptions", "a dataset of Hugging Face", "datasets", DatasetError)
    is_folder = _is_folder(name)
    path = name
    if is_folder:
        path = str(base / Path(name).expanduser())
    if is_folder and not Path(path).is_dir():
        raise DatasetError(f"{HUB}{name}: there is no such folder ({path})", code="dataset/not-found")
    marks = (Path(path, name) for name in ("dataset_dict.json", "state.json"))
    is_saved = is_folder and any(mark.is_file() for mark in marks)
    unreachable = None if is_folder else _go_offline_where_unreachable(datasets)
    if is_folder:
        revision = None
    try:
        if is_saved:
            yield from _saved(datasets, path, split)
        elif not isinstance(subset, tuple):
            yield from _rows(_loaded(datasets, path, subset, split, revision))
        else:
            for one in subset:
                for row in _rows(_loaded(datasets, path, one, split, revision)):
                    yield {"subset": one, **row}
    except (errors.DatasetsError, ValueError, OSError, RuntimeError) as error:
        raise _not_loaded(f"{name} (split {split!r})", error, unreachable) from None


def _loaded(datasets: Any, path: str, subset: str | None, split: str, revision: str | None) -> Any:
    """Load a dataset after a look at what its files unpack to."""
    from adaptive_eval.tasks.unpacking import require_bounded_file

    builder = datasets.load_dataset_builder(path, subset, revision=revision)
    if not Path(builder.cache_dir).is_dir():  # otherwise it was prepared before
        files = getattr(builder.config, "data_files", None) or {}
        for file in {str(file) for of_split in files.values() for file in of_split}:
            require_bounded_file(Path(datasets.DownloadManager().download(file)))
    return datasets.load_dataset(path, subset, split=split, revision=revision)


def is_pinned(dataset: str, revision: str | None) -> bool:
    """Return whether the rows stay the same as long as nobody edits a file here.

    Examples
    --------
    >>> is_pinned("hf:openai/gsm8k", None), is_pinned("hf:./folder", None), is_pinned("lm_eval:ifeval", None)
    (False, True, False)
    """
    if dataset.startswith(HUB):
        return revision is not None or _is_folder(dataset)
    return not dataset.startswith(LM_EVAL) or "/" in dataset


def _is_folder(name: str) -> bool:
    return name.removeprefix(HUB).startswith((".", "/", "~"))


def _file_of_the_hub(name: str, revision: str | None) -> str:
    """Return the local path of one file of a dataset's repository, ``OWNER/NAME/FILE``."""
    hub = library("huggingface_hub", "a dataset of Hugging Face", "datasets", DatasetError)
    datasets = library("datasets", "a dataset of Hugging Face", "datasets", DatasetError)
    owner, repository, file = name.split("/", 2)
    unreachable = _go_offline_where_unreachable(datasets)
    try:
        found = hub.hf_hub_download(f"{owner}/{repository}", file, repo_type="dataset", revision=revision)
    except (ValueError, OSError) as error:
        raise _not_loaded(name, error, unreachable) from None
    return str(found)


def _not_loaded(name: str, error: Exception, unreachable: str | None) -> DatasetError:
    words = first_line(error)
    if unreachable is not None:
        words = (
            f"{unreachable} cannot be reached, and no copy is in the local cache; set HF_ENDPOINT to a "
            "mirror, or give dataset: a file or hf:./FOLDER"
        )
    return DatasetError(f"{HUB}{name}: cannot be loaded: {words}")


def _go_offline_where_unreachable(datasets: Any) -> str | None:
    """Return the Hub's host if it cannot be reached; then only the local cache is looked at.

    The library tries for half a minute otherwise. Behind a proxy it is left to find out by itself.
    """
    constants = library("huggingface_hub.constants", "a dataset of Hugging Face", "datasets", DatasetError)
    hub = urlsplit(constants.ENDPOINT)
    if constants.HF_HUB_OFFLINE:
        return str(hub.hostname)
    if getproxies().get(hub.scheme):
        return None
    try:
        address = (hub.hostname, hub.port or (443 if hub.scheme == "https" else 80))
        socket.create_connection(address, timeout=REACH_SECONDS).close()
    except OSError:
        constants.HF_HUB_OFFLINE = datasets.config.HF_HUB_OFFLINE = True
        return str(hub.hostname)
    return None


def _saved(datasets: Any, path: str, split: str) -> Iterator[Any]:
    """Yield the rows of what ``save_to_disk`` has written."""
    from adaptive_eval.tasks.unpacking import require_bounded_file

    for file in Path(path).rglob("*.arrow"):
        require_bounded_file(file)
    loaded = datasets.load_from_disk(path)
    if isinstance(loaded, datasets.DatasetDict):
        if split not in loaded:
            raise DatasetError(f"{path} has no split {split!r}; it has {', '.join(loaded)}")
        loaded = loaded[split]
    yield from _rows(loaded)


def _rows(loaded: Any) -> Iterator[Any]:
    """Yield the rows of a dataset of the library datasets."""
    features = getattr(loaded, "features", None) or {}
    for name, kind in features.items():
        if getattr(kind, "decode", False):  # an image or a sound: its bytes are enough
            loaded = loaded.cast_column(name, type(kind)(decode=False))
    single = {name for name, kind in features.items() if getattr(kind, "dtype", "") in ("float16", "float32")}
    for row in loaded:
        yield _shortened(row, single)


def _from_function(name: str, base: Path) -> list[Any]:
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise DatasetError(f"{PYTHON}{name}: write python:module:function")
    with modules_of(base, module):
        with _of_dataset(name):
            function = getattr(import_module(module), attribute, None)
        if not callable(function):
            raise DatasetError(f"{PYTHON}{name}: the module {module} has no function {attribute!r}")
        with _of_dataset(name):
            rows = function()
        if not isinstance(rows, Iterable) or isinstance(rows, str | Mapping):
            raise DatasetError(f"{PYTHON}{name}: it returned {type(rows).__name__}, not rows (mappings)")
        with _of_dataset(name):
            found = list(islice(rows, MOST_ROWS + 1))
    if len(found) > MOST_ROWS:
        raise DatasetError(f"{PYTHON}{name}: it gave more than {MOST_ROWS:,} rows and does not end")
    return found


@contextmanager
def _of_dataset(name: str) -> Iterator[None]:
    """Name the line of a function that fails, or ends the process, in place of giving rows."""
    try:
        with user_code():
            yield
    except AdaptiveEvalError:
        raise
    except Exception as error:
        raise DatasetError(f"{PYTHON}{name}: it raised {last_line(error)}") from error


def _numbered(found: Iterable[Any], media: Collection[str] = ()) -> RowFile:
    return RowFile.from_found(starmap(partial(_row, media), enumerate(found, start=1)), "dataset")


def _row(media: Collection[str], number: int, values: Any) -> Found:
    if not isinstance(values, Mapping):
        return number, f"a row must be a mapping with named fields, not {values!r:.40}"
    plain = {}
    for name, value in values.items():
        plain[str(name)] = _data(value) if name in media else _plain(value)
    return Row(number, plain)


def _data(value: Any) -> Any:
    """Return an image, a sound, or a list of them as a data URI; a name of one as it is."""
    if isinstance(value, list | tuple):
        return list(map(_data, value))
    if isinstance(value, Mapping) and value.get("bytes") is not None:
        value = value["bytes"]
    elif hasattr(value, "save") and hasattr(value, "tobytes"):  # an image of Pillow
        file = BytesIO()
        value.save(file, "PNG")
        value = file.getvalue()
    if isinstance(value, bytes):
        return f"data:;base64,{b64encode(value).decode()}"
    return _plain(value)


def _plain(value: Any) -> Any:
    """Return a value as JSON would hold it; bytes, such as of an image, become their hash."""
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return list(map(_plain, value))
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if getattr(value, "ndim", None) != 0:
        return str(value)
    item = value.item()
    if isinstance(item, float):
        return float(str(value))
    return item


_folders: set[Path] = set()
"""Folders whose modules were looked for in this process."""


@contextmanager
def modules_of(folder: Path, module: str) -> Iterator[None]:
    """Make `module` and its neighbours in `folder` importable inside the block.

    A process that has read one config may read another, and both may have a ``data.py`` next to them. If
    a module of the same name has come from another such folder it is put aside meanwhile, and so is any of
    the name of `module` itself; what the process has loaded is afterwards what it was.
    """
    place = folder.resolve()
    path = list(sys.path)
    sys.path[:] = [str(place), *(other for other in path if other != str(place))]
    importlib.invalidate_caches()  # a file may have been written since the folder was looked at
    aside = _put_aside(place, module.partition(".")[0])
    _folders.add(place)
    try:
        yield
    finally:
        for name in {name for name in sys.modules if name.partition(".")[0] in aside}:
            del sys.modules[name]
        for modules in aside.values():
            sys.modules.update(modules)
        sys.path[:] = [*(new for new in sys.path if new != str(place) and new not in path), *path]


def _put_aside(place: Path, asked: str) -> dict[str, dict[str, ModuleType]]:
    """Take modules out that hide one of `place`; return them by the first part of their name."""
    hidden: dict[str, dict[str, ModuleType]] = {}
    for name, module in list(sys.modules.items()):
        if "." in name or name in sys.stdlib_module_names or not _has(place, name):
            continue
        home = _folder_of(module)
        if home is not None and home != place and (name == asked or home in _folders):
            hidden[name] = {}
    for name in list(sys.modules):
        if name.partition(".")[0] in hidden:
            hidden[name.partition(".")[0]][name] = sys.modules.pop(name)
    return hidden


def _has(place: Path, name: str) -> bool:
    return (place / f"{name}.py").is_file() or (place / name / "__init__.py").is_file()


def _folder_of(module: ModuleType) -> Path | None:
    """Return the folder in which the import of a module or package has found it, if it is a file."""
    file = getattr(module, "__file__", None)
    if not isinstance(file, str):
        return None
    path = Path(file).resolve()
    if path.stem == "__init__":
        return path.parent.parent
    return path.parent
