"""Files that list servers: one, or many."""

import asyncio
import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from adaptive_eval.build.server_discovery import file_source
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


def files(folder, pattern="*.txt", timeout=PATIENCE):
    return file_source(pattern, folder, every=1.0, timeout=timeout)


class OneFile:
    """A single file, which others may replace, remove, or put a pipe in the place of."""

    def __init__(self, folder):
        self.file = folder / "servers.txt"
        self.source = files(folder, "servers.txt")

    def say(self, *hosts):
        write(self.file, *hosts)

    def fail(self):
        self.file.unlink(missing_ok=True)

    def hang(self):
        self.fail()
        os.mkfifo(self.file)
        self.source = files(self.file.parent, "servers.txt", 0.2)

    def release(self):
        with self.file.open("w") as pipe:
            pipe.write("10.0.0.8:8000\n")
        self.say("10.0.0.9")


class ManyFiles(OneFile):
    """A file for each server."""

    def __init__(self, folder):
        self.folder = folder / "servers"
        self.folder.mkdir()
        self.source = files(folder, "servers/*.txt")

    def say(self, *hosts):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        for host in hosts:
            write(self.folder / f"{host}.txt", host)

    def fail(self):
        shutil.rmtree(self.folder)


@pytest.fixture(params=[OneFile, ManyFiles])
def world(request, tmp_path):
    return request.param(tmp_path)


def read(source) -> Reading:
    return asyncio.run(source.read())


def test_it_follows_what_joins_and_what_leaves(world):
    for hosts in (["10.0.0.1"], ["10.0.0.1", "10.0.0.2"], ["10.0.0.2"]):
        world.say(*hosts)
        assert read(world.source) == Reading(urls(*hosts))


@pytest.mark.parametrize("known", [["10.0.0.1"], []])
def test_where_it_cannot_be_read_the_last_answer_stands_and_it_recovers_quietly(world, known):
    if known:
        world.say(*known)
        read(world.source)
    world.fail()
    for _ in range(2):
        broken = read(world.source)
        assert broken.addresses == urls(*known)
        assert world.source.name in broken.problem
    world.say("10.0.0.2")
    assert read(world.source) == Reading(urls("10.0.0.2"))


# A pattern matches regular files only, which do not hang.
def test_one_that_hangs_holds_up_nobody_and_is_read_again(tmp_path):
    """Others have their turns meanwhile, the reading ends, and what comes at last is taken."""
    hanging = OneFile(tmp_path)

    async def main():
        reading = asyncio.create_task(hanging.source.read())
        for _ in range(5):
            await asyncio.sleep(0)
        assert not reading.done()
        hung = await reading
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


def test_while_one_file_of_many_is_half_written_no_server_leaves(tmp_path):
    source = files(tmp_path)
    write(tmp_path / "a.txt", "gpu1")
    write(tmp_path / "b.txt", "gpu2")
    assert read(source).addresses == urls("gpu1", "gpu2")
    (tmp_path / "a.txt").write_text("gpu1:8000\ngpu", "utf-8")
    write(tmp_path / "b.txt", "gpu3")
    half = read(source)
    assert half.addresses == urls("gpu1", "gpu2", "gpu3")
    words = "a.txt: line 2: 'gpu' is neither host:port nor a URL such as http://gpu1:8000/v1"
    assert half.problem == f"*.txt: {words}"


def test_an_empty_file_is_believed_the_second_time(tmp_path):
    """It may be about to be written: the shell empties a file before it writes it."""
    source = files(tmp_path, "servers.txt")
    write(tmp_path / "servers.txt", "gpu1")
    read(source)
    (tmp_path / "servers.txt").write_text("", "utf-8")
    assert read(source) == Reading(urls("gpu1"))
    assert read(source) == Reading(())
    write(tmp_path / "servers.txt", "gpu1")
    assert read(source) == Reading(urls("gpu1"))


def test_where_files_lie_and_what_they_are_called(tmp_path):
    folder = tmp_path / "runs [1] *"
    (folder / "a" / "b").mkdir(parents=True)
    write(folder / "a" / "b" / "x.txt", "gpu1")
    write(folder / "y.txt", "gpu2")
    (folder / ".draft.txt").write_text("nonsense", "utf-8")
    (folder / "z.txt").mkdir()
    assert read(files(folder, "**/*.txt")) == Reading(urls("gpu1", "gpu2"))
    write(tmp_path / "y.txt", "gpu3")
    assert read(files(folder, str(tmp_path / "y.txt"))).addresses == urls("gpu3")
    assert read(files(folder, "[xy].txt")) == Reading(urls("gpu2"))


@pytest.mark.parametrize("content", [b"gpu1:8000\n" * 200_000, b"\xff\xfe\x00gpu"])
def test_a_file_that_is_no_list_of_servers(tmp_path, content):
    (tmp_path / "bom.txt").write_text("\ufeffgpu1:8000\r\n", "utf-8")
    source = files(tmp_path)
    assert read(source) == Reading(urls("gpu1"))
    (tmp_path / "a.txt").write_bytes(content)
    reading = read(source)
    assert reading.addresses == urls("gpu1")
    assert reading.problem.startswith("*.txt: a.txt: ")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read(tmp_path):
    write(tmp_path / "a.txt", "gpu1")
    (tmp_path / "a.txt").chmod(stat.S_IWUSR)
    assert read(files(tmp_path)).problem == "*.txt: a.txt: Permission denied"


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
