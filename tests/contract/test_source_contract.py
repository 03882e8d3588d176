"""Sources of servers, one suite for all kinds: real files, real commands, and the resolver."""

import asyncio
import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from adaptive_eval.build.server_discovery import command_source, file_source
from adaptive_eval.endpoints.redaction import Redactor
from adaptive_eval.engine.discovery import Reading

PATIENCE = 60.0
"""Seconds for what must happen, on a machine that is busy with other things."""


def urls(*hosts):
    return tuple(f"http://{host}:8000/v1" for host in hosts)


def write(path: Path, *hosts):
    """Write a file whole, as a job should: under another name first."""
    draft = path.with_name(f".{path.name}.part")
    draft.write_text("".join(f"{host}:8000\n" for host in hosts), "utf-8")
    draft.replace(path)


class OneFile:
    """A single file, which others may replace, remove, or put a pipe in the place of."""

    def __init__(self, folder, monkeypatch):
        self.file = folder / "servers.txt"
        self.source = file_source("servers.txt", folder, every=1.0, timeout=PATIENCE)

    def say(self, *hosts):
        write(self.file, *hosts)

    def fail(self):
        self.file.unlink(missing_ok=True)

    def hang(self):
        self.fail()
        os.mkfifo(self.file)
        self.source = file_source("servers.txt", self.file.parent, every=1.0, timeout=0.2)

    def release(self):
        with self.file.open("w") as pipe:
            pipe.write("10.0.0.8:8000\n")
        self.say("10.0.0.9")


class ManyFiles(OneFile):
    """A file for each server."""

    def __init__(self, folder, monkeypatch):
        self.folder = folder / "servers"
        self.folder.mkdir()
        self.source = file_source("servers/*.txt", folder, every=1.0, timeout=PATIENCE)

    def say(self, *hosts):
        self.folder.mkdir(exist_ok=True)
        for known in self.folder.glob("*.txt"):
            if known.stem not in hosts:
                known.unlink()
        for host in hosts:
            write(self.folder / f"{host}.txt", host)

    def fail(self):
        shutil.rmtree(self.folder)


class Command:
    """A command that shows a file."""

    def __init__(self, folder, monkeypatch):
        self.folder = folder
        self.source = self.running("cat list", PATIENCE)

    def running(self, line, timeout):
        return command_source(["/bin/sh", "-c", line], self.folder, every=1.0, timeout=timeout)

    def say(self, *hosts):
        write(self.folder / "list", *hosts)

    def fail(self):
        (self.folder / "list").unlink(missing_ok=True)

    def hang(self):
        os.mkfifo(self.folder / "pipe")
        self.source = self.running("cat pipe", 2.0)

    def release(self):
        (self.folder / "pipe").unlink()
        write(self.folder / "pipe", "10.0.0.9")


@pytest.fixture(params=[OneFile, ManyFiles, Command])
def world(request, tmp_path, monkeypatch):
    return request.param(tmp_path, monkeypatch)


@pytest.fixture(params=[OneFile, Command])
def hanging(request, tmp_path, monkeypatch):
    """Return one that can be made to hang; a pattern matches regular files only, which do not."""
    return request.param(tmp_path, monkeypatch)


def read(world) -> Reading:
    return asyncio.run(world.source.read())


def test_it_follows_what_joins_and_what_leaves(world):
    world.say("10.0.0.1")
    assert read(world).addresses == urls("10.0.0.1")
    world.say("10.0.0.1", "10.0.0.2")
    assert read(world).addresses == urls("10.0.0.1", "10.0.0.2")
    world.say("10.0.0.2")
    assert read(world) == Reading(urls("10.0.0.2"))


def test_where_it_cannot_be_read_the_last_answer_stands_and_it_recovers_quietly(world):
    world.say("10.0.0.1")
    read(world)
    world.fail()
    for _ in range(2):
        broken = read(world)
        assert broken.addresses == urls("10.0.0.1")
        problem = broken.problem
        assert world.source.name in problem
    world.say("10.0.0.2")
    assert read(world) == Reading(urls("10.0.0.2"))


def test_it_may_be_unreadable_from_the_start(world):
    world.fail()
    broken = read(world)
    assert broken.addresses == ()
    assert broken.problem
    world.say("10.0.0.1")
    assert read(world) == Reading(urls("10.0.0.1"))


def test_one_that_hangs_holds_up_nobody_and_is_read_again(hanging):
    """Others have their turns meanwhile, the reading ends, and what comes at last is taken."""

    async def main():
        turns = 0

        async def work():
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        worker = asyncio.create_task(work())
        hung = await hanging.source.read()
        worker.cancel()
        assert turns > 0
        assert hung.addresses == ()
        assert hanging.source.name in hung.problem
        hanging.release()
        deadline = time.monotonic() + PATIENCE
        while (again := await hanging.source.read()).addresses != urls("10.0.0.9"):
            assert time.monotonic() < deadline, again
            await asyncio.sleep(0.01)
        assert again.problem == ""

    hanging.hang()
    asyncio.run(main())


# Files


def files(folder, pattern="*.txt"):
    return file_source(pattern, folder, every=1.0, timeout=PATIENCE)


def test_while_one_file_of_many_is_half_written_no_server_leaves(tmp_path):
    source = files(tmp_path)
    write(tmp_path / "a.txt", "gpu1")
    write(tmp_path / "b.txt", "gpu2")
    assert asyncio.run(source.read()).addresses == urls("gpu1", "gpu2")
    (tmp_path / "a.txt").write_text("gpu1:8000\ngpu", "utf-8")
    write(tmp_path / "b.txt", "gpu3")
    half = asyncio.run(source.read())
    assert half.addresses == urls("gpu1", "gpu2", "gpu3")
    words = "a.txt: line 2: 'gpu' is neither host:port nor a URL such as http://gpu1:8000/v1"
    assert half.problem == f"*.txt: {words}"


def test_an_empty_file_is_believed_the_second_time(tmp_path):
    """It may be about to be written: the shell empties a file before it writes it."""
    source = files(tmp_path, "servers.txt")
    write(tmp_path / "servers.txt", "gpu1")
    asyncio.run(source.read())
    (tmp_path / "servers.txt").write_text("", "utf-8")
    assert asyncio.run(source.read()) == Reading(urls("gpu1"))
    assert asyncio.run(source.read()) == Reading(())
    write(tmp_path / "servers.txt", "gpu1")
    assert asyncio.run(source.read()) == Reading(urls("gpu1"))


def test_where_files_lie_and_what_they_are_called(tmp_path):
    folder = tmp_path / "runs [1] *"
    (folder / "a" / "b").mkdir(parents=True)
    write(folder / "a" / "b" / "x.txt", "gpu1")
    write(folder / "y.txt", "gpu2")
    (folder / ".draft.txt").write_text("nonsense", "utf-8")
    (folder / "z.txt").mkdir()
    assert asyncio.run(files(folder, "**/*.txt").read()) == Reading(urls("gpu1", "gpu2"))
    write(tmp_path / "y.txt", "gpu3")
    assert asyncio.run(files(folder, str(tmp_path / "y.txt")).read()).addresses == urls("gpu3")
    assert asyncio.run(files(folder, "[xy].txt").read()) == Reading(urls("gpu2"))


@pytest.mark.parametrize("content", [b"gpu1:8000\n" * 200_000, b"\xff\xfe\x00gpu"])
def test_a_file_that_is_no_list_of_servers(tmp_path, content):
    (tmp_path / "bom.txt").write_text("\ufeffgpu1:8000\r\n", "utf-8")
    source = files(tmp_path)
    assert asyncio.run(source.read()) == Reading(urls("gpu1"))
    (tmp_path / "a.txt").write_bytes(content)
    reading = asyncio.run(source.read())
    assert reading.addresses == urls("gpu1")
    assert reading.problem.startswith("*.txt: a.txt: ")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read(tmp_path):
    write(tmp_path / "a.txt", "gpu1")
    (tmp_path / "a.txt").chmod(stat.S_IWUSR)
    assert asyncio.run(files(tmp_path).read()).problem == "*.txt: a.txt: Permission denied"


def test_a_hung_file_system_does_not_hold_up_the_end_of_the_process(tmp_path):
    os.mkfifo(tmp_path / "servers.txt")
    program = (
        "import asyncio, pathlib, sys\n"
        "from adaptive_eval.build.server_discovery import file_source\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "source = file_source('servers.txt', folder, every=1.0, timeout=0.1)\n"
        "print(asyncio.run(source.read()).problem)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path], capture_output=True, text=True, timeout=2 * PATIENCE
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "servers.txt: has not answered within 0.1 s" in done.stdout


# Commands


def command(folder, *words, timeout=PATIENCE):
    return command_source(words, folder, every=1.0, timeout=timeout)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "echo gpu1:8000; echo the queue is down >&2; exit 3",
            "has failed with exit code 3: the queue is down",
        ),
        ("echo gpu1:8000; echo 2 nodes", "line 2: '2 nodes' is neither host:port nor a URL"),
        ("yes gpu1:8000", "writes more than 1,000,000 bytes"),
        ("sleep 600", "has not answered within 0.2 s"),
    ],
)
def test_a_command_that_fails_names_nobody_and_says_why(tmp_path, line, words, monkeypatch):
    monkeypatch.setattr(
        "adaptive_eval.build.server_discovery._KILL_TIMEOUT", 2 * PATIENCE
    )  # it needs no such time
    limit = 0.2 if "sleep" in line else PATIENCE
    source = command(tmp_path, "/bin/sh", "-c", line, timeout=limit)
    reading = asyncio.run(asyncio.wait_for(source.read(), PATIENCE))
    assert reading.addresses == ()
    problem = reading.problem
    assert problem.startswith("the command /bin/sh: ")
    assert words in problem


def test_a_key_in_the_last_words_of_a_command_is_hidden(tmp_path):
    source = command_source(
        ["/bin/sh", "-c", "echo bad token sk-12345678 >&2; exit 1"],
        tmp_path,
        every=1.0,
        timeout=PATIENCE,
        redact=Redactor(["sk-12345678"]),
    )
    problem = asyncio.run(source.read()).problem
    assert problem.endswith("exit code 1: bad token [redacted]")


def is_gone(pid):
    """Return whether a process has ended, whether or not its parent has taken note."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_a_command_is_killed_with_all_that_it_has_started(tmp_path):
    line = "sleep 600 & echo $! > pid.part; mv pid.part pid; wait"
    source = command(tmp_path, "/bin/sh", "-c", line, timeout=1.0)
    deadline = time.monotonic() + PATIENCE
    while not (tmp_path / "pid").exists():  # a busy machine may need longer to start it
        asyncio.run(source.read())
        assert time.monotonic() < deadline
    pid = int((tmp_path / "pid").read_text())
    while not is_gone(pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_reading_that_is_broken_off_leaves_no_command_behind(tmp_path):
    line = "echo $$ > pid.part; mv pid.part pid; exec sleep 600"
    source = command(tmp_path, "/bin/sh", "-c", line)

    async def main():
        reading = asyncio.create_task(source.read())
        async with asyncio.timeout(PATIENCE):
            while not (tmp_path / "pid").exists():
                await asyncio.sleep(0.01)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading

    asyncio.run(main())
    assert is_gone(int((tmp_path / "pid").read_text()))
