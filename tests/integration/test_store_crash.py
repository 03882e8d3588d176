"""The run file under ``kill -9``, power loss, a full disk and read-only media, for real."""

import functools
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import store_crash_child as child

from adaptive_eval.errors import RunLocked
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.writer import RunWriter

trial = functools.cache(child.trial)


@contextmanager
def started(mode: str, directory: Path, seed: int = 0) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, child.__file__, mode, str(directory), str(seed)], stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def killed_after(process: subprocess.Popen[str], seconds: float) -> int:
    """Let it run on for `seconds`, kill it, and return the last number it printed (0 for none)."""
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=seconds)
    process.kill()
    printed, _ = process.communicate()
    complete = printed[: printed.rfind("\n") + 1].split()
    return int(complete[-1]) if complete else 0


def check_file(run: Path) -> None:
    with closing(sqlite3.connect(run / "run.db", isolation_level=None)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []
        assert (
            db.execute("SELECT model, step FROM outcomes GROUP BY 1, 2 HAVING count(*) > 1").fetchall() == []
        )


def check_run(run: Path, *, whole: bool = True) -> int:
    """Check that the run holds whole groups from the first on, and nothing else; return how many trials."""
    with RunReader(run) as reader:
        count = reader.count()
        upto = [decision.trials for decision in reader.decisions()]
        assert reader.meta() == {"upto": str(count)}
        assert (upto[-1] if upto else 0) == count
        latest = reader.latest_snapshot()
        assert (latest.trials if latest else 0) == count
        assert reader.launched() == []
        expected = [trial(number) for number in range(count)]
        logged = [outcome for batch in reader.log() for outcome in batch]
        assert logged == [record.outcome for record in expected]
        assert len(list(reader.attempts())) == count
        if whole:
            assert list(reader.trials()) == expected
    return count


def crash_repeatedly(run: Path, seed: int, kills: int) -> int:
    """Kill the writer at random moments, check the run each time, and return the last number it printed."""
    rng = random.Random(seed)
    promised = 0
    for number in range(kills):
        with started("write", run, seed * 1000 + number) as process:
            if rng.random() < 0.8:  # else: maybe before it has created or opened the run
                promised = int(process.stdout.readline())
            promised = max(promised, killed_after(process, rng.uniform(0.0, 0.25)))
        if not (run / "run.db").exists():
            assert promised == 0
            continue
        check_file(run)
        assert check_run(run, whole=number == kills - 1) >= promised
    return promised


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "kills"), [(1, 6), (2, 40), (3, 40), (4, 40), (5, 40)])
def test_a_writer_killed_at_random_moments_loses_and_doubles_nothing(tmp_path, seed, kills):
    assert crash_repeatedly(tmp_path / "run", seed, kills) > 0


def test_after_power_loss_every_group_on_the_disk_is_whole(tmp_path):
    """Cut the write-ahead log anywhere, as a disk does that lost its last writes.

    What was committed before the cut is there, and no part of what was not.
    """
    run = tmp_path / "run"
    writer = RunWriter.create(run, meta={"upto": "0"})
    writer._db.execute("PRAGMA wal_autocheckpoint = 0")
    ends, number = [(0, 0)], 0
    for size in (1, 5, 2, 8, 1, 3):
        number = child.write_group(writer, number, size)
        ends.append(((run / "run.db-wal").stat().st_size, number))
    log = (run / "run.db-wal").read_bytes()
    rng = random.Random(1)
    cuts = (
        {rng.randrange(len(log)) for _ in range(60)}
        | {end for end, _ in ends}
        | {end - 1 for end, _ in ends[1:]}
    )
    for cut in cuts:
        after = tmp_path / f"cut-{cut}"
        after.mkdir()
        shutil.copy(run / "run.db", after)
        garbage = rng.randbytes(rng.choice((0, 100, 9000)))  # what a torn write may leave behind the cut
        (after / "run.db-wal").write_bytes(log[:cut] + garbage)
        check_file(after)
        assert check_run(after) == max(trials for end, trials in ends if end <= cut)
    writer.close()


def test_a_second_process_cannot_write_until_the_first_is_dead(tmp_path):
    run = tmp_path / "run"
    with started("stay", run) as process:
        process.stdout.readline()
        with pytest.raises(RunLocked, match="Stop that process, wait for it, or choose another") as caught:
            RunWriter.open(run)
        assert f"{run} is being written by process {process.pid} on {os.uname().nodename}" in str(
            caught.value
        )
        promised = killed_after(process, 0.05)
    with RunWriter.open(run) as writer, writer.reader() as reader:
        assert reader.count() >= promised


# A full disk and read-only media: real ones, in a child that mounts or may not write


def run_python(
    code: str, *arguments: str | Path, before: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Run `code` with access to the modules beside this one."""
    beside = {"PYTHONPATH": str(Path(__file__).parent)}
    command = [*before, sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | beside, check=False)


FILL_THE_DISK = """
import subprocess, sys
from pathlib import Path
import store_crash_child as child
from adaptive_eval.errors import RunDiskFull
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.writer import RunWriter
from test_store_crash import check_run

disk = Path(sys.argv[1])
run = disk / "run"
mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk]
mount = subprocess.run(mount, stderr=subprocess.PIPE, text=True)
if mount.returncode:
    sys.exit("SKIP " + mount.stderr)
(disk / "ballast").write_bytes(bytes(300_000))

def fill(writer, number):
    while True:
        try:
            number = child.write_group(writer, number, 10)
        except RunDiskFull as error:
            assert f"committing to {run / 'run.db'}: no space left on the disk" in str(error), error
            assert check_run(run) == number
            return number

writer = RunWriter.create(run, meta={"upto": "0"})
number = fill(writer, 0)
(disk / "ballast").unlink()
assert writer.commit() == 10
assert check_run(run) == number + 10
number = fill(writer, number + 10)
try:
    writer.close()
except RunDiskFull:
    assert check_run(run) == number
else:
    sys.exit("closing did not say that the last group is lost")
try:
    RunWriter.create(disk / "other", meta={"config": "x" * 100_000}).close()
except RunDiskFull:
    assert not (disk / "other" / "run.db").exists()
else:
    sys.exit("a run was created on a full disk")
subprocess.run(["mount", "-o", "remount,size=8m", disk], check=True)
with RunWriter.open(run) as writer:
    number = child.write_group(writer, number, 10)
print("survived", number == check_run(run))
"""


def test_a_full_disk_stops_commits_loses_nothing_and_is_survived(tmp_path):
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("needs Linux's unshare, to mount a small file system that nobody else sees")
    user = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    result = run_python(FILL_THE_DISK, tmp_path, before=(unshare, *user, "--mount"))
    if "unshare failed" in result.stderr or result.stderr.startswith("SKIP"):
        pytest.skip(f"may not mount a small file system here: {result.stderr.strip()}")
    assert (result.stdout, result.stderr) == ("survived True\n", "")


READ_WITHOUT_RIGHTS = """
import os, sys
from adaptive_eval.errors import RunNotWritable
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.store import cells
from test_store_crash import check_run

if os.geteuid() == 0:  # root may write anywhere
    os.setgid(65534)
    os.setuid(65534)
for use in (RunWriter.open, lambda path: RunWriter.create(path + "/new", meta={})):
    try:
        use(sys.argv[1])
    except RunNotWritable as error:
        assert sys.argv[1] in str(error) and "Change its permissions" in str(error), error
    else:
        sys.exit("could write to a read-only directory")
print(check_run(sys.argv[1]))
"""


@pytest.fixture
def anyones_directory() -> Iterator[Path]:
    """A directory that other users can reach, which those of pytest are not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def left_in_mid_journal(run: Path, copy: Path) -> None:
    """Copy a closed run as a crash in the middle of a transaction in SQLite's plain mode leaves it."""
    db = sqlite3.connect(run / "run.db", isolation_level=None)
    db.execute("PRAGMA cache_size = 1")  # so that changed pages reach the file before the commit
    db.execute("BEGIN")
    db.execute("UPDATE answers SET text = 'half-written'")
    shutil.copytree(run, copy)
    db.close()
    assert (copy / "run.db-journal").stat().st_size > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "left", ["live", "closed", "by a crash", "by a crash, without run.db-shm", "in mid-journal"]
)
def test_who_may_not_write_can_read_a_run_whatever_state_it_is_in(anyones_directory, left):
    source, run = anyones_directory / "source", anyones_directory / "run"
    with RunWriter.create(source, meta={"upto": "0"}) as writer:
        child.write_group(writer, 0, 30)
        child.write_group(writer, 30, 10)
        if left.startswith("by a crash"):
            shutil.copytree(source, run)
        if left == "live":
            check_without_rights(source)
            return
    if left == "closed":
        shutil.copytree(source, run)
    if left == "by a crash, without run.db-shm":
        (run / "run.db-shm").unlink()
    if left == "in mid-journal":
        left_in_mid_journal(source, run)
    check_without_rights(run)


def check_without_rights(run: Path) -> None:
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    for path in run.iterdir():
        path.chmod(0o444)
    run.chmod(0o555)
    try:
        result = run_python(READ_WITHOUT_RIGHTS, run)
        assert (result.stdout, result.stderr) == ("40\n", "")
        assert {path.name: path.read_bytes() for path in run.iterdir()} == before
    finally:
        run.chmod(0o755)
