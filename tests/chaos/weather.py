"""Storms of faults for some minutes: a table of the faults tried and survived, and what was lost or doubled.

Most storms run whole sessions in virtual time, against servers that keep their own accounts. Every fifth one
kills and stops the installed command for real: in bad weather, at any moment, in batches, while it rescores.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from zlib import crc32

from batch_mimic import BatchMimic
from chaos_books import Figures
from command_line import mimic_spec
from ordeal import LATENCY, Ordeal
from rescored import RescoredOrdeal, program
from scripted_chat import scripted_chat
from storm import World, storm

from adaptive_eval.mimic.mimic_spec import LatencySpec
from adaptive_eval.mimic.process import MimicProcess

BEGIN, END = "<!-- chaos: begin -->\n", "<!-- chaos: end -->\n"
"""Marks around the table in a page."""

REAL_EVERY = 5
"""Every so many storms one is of real processes."""


@dataclass
class Weather:
    """What the storms so far have shown."""

    figures: Figures = field(default_factory=Figures)
    survived: Counter[str] = field(default_factory=Counter)
    virtual: int = 0
    real: int = 0
    failed: list[str] = field(default_factory=list)

    def add(self, name: str, figures: Figures) -> None:
        """Count one storm; its faults are survived if nothing was lost, doubled, overrun or damaged."""
        self.figures += figures
        if figures.harm:
            self.failed.append(f"{name}: {'; '.join(figures.lines()[2:])}")
        else:
            self.survived += figures.faults

    @property
    def kills(self) -> int:
        """Kills that are counted by the stage that they met."""
        counted = self.figures.faults.items()
        return sum(
            number for kind, number in counted if kind.startswith(("kill", "full disk: ")) and ": " in kind
        )

    def table(self) -> str:
        """Return the figures as Markdown."""
        rows = [
            f"| {kind} | {number:,} | {self.survived[kind]:,} |"
            for kind, number in sorted(self.figures.faults.items())
        ]
        total = f"| **all** | {self.figures.faults.total():,} | {self.survived.total():,} |"
        first = (
            f"{self.virtual:,} storms in virtual time and {self.real:,} of real processes: "
            f"{self.figures.sessions:,} sessions, {self.figures.answers:,} answers stored.\n"
        )
        harm = [
            f"| {what} | {number:,} |"
            for what, number in (
                ("answers lost", self.figures.lost),
                ("answers or tokens counted twice", self.figures.doubled),
                ("budgets exceeded", self.figures.overrun),
                ("run files corrupted", self.figures.damaged),
            )
        ]
        faults = ["| fault | tried | survived |", "| :-- | --: | --: |", *rows, total]
        return "\n".join([first, *faults, "", "| harm | number |", "| :-- | --: |", *harm, ""])


def in_virtual_time(folder: Path, seed: int) -> Figures:
    """Let one run go through twelve bad sessions, and then to its end."""
    return storm(World(seed, folder / "run"), sessions=12)


def of_real_processes(folder: Path, seed: int) -> Figures:
    """Let the installed command be killed and stopped six times, and then end by itself."""
    with MimicProcess(mimic_spec(latency=LATENCY)) as mimic:
        ordeal = Ordeal(folder, mimic, seed, tokens=200_000, usd=0.6)
        ordeal.stopped_by_signals()
        return ordeal.account()


def _verdict(body: object) -> str:
    """Return a judge's verdict that follows from what it is asked."""
    right = crc32(json.dumps(body).encode()) % 3 > 0
    return json.dumps({"reason": "so", "verdict": "correct" if right else "wrong"})


def killed_at_every_stage(folder: Path, seed: int) -> Figures:
    """Let a run with a judge be killed twenty times, at any moment from its start to its end."""
    with MimicProcess(mimic_spec(latency=LATENCY)) as mimic, scripted_chat() as make:
        ordeal = Ordeal(folder, mimic, seed, tokens=40_000, usd=0.12)
        ordeal.judged_by(make(_verdict))
        for _ in range(20):
            ordeal.killed_after(ordeal.random.uniform(0.2, 6.0))
        return ordeal.account()


def _killed_often(ordeal: Ordeal, longest: float) -> Figures:
    """Kill a run twenty times, after up to so many seconds or soon after one of its answers."""
    for number in range(20):
        if number % 2:
            ordeal.killed_after(ordeal.random.uniform(0.0, 0.5), ordeal.random.randrange(1, 40))
        else:
            ordeal.killed_after(ordeal.random.uniform(0.2, longest))
    return ordeal.account()


def killed_in_batches(folder: Path, seed: int) -> Figures:
    """Let a run in batches be killed twenty times, at any moment from its start to its end."""
    with BatchMimic(mimic_spec(latency=LATENCY)) as mimic:
        ordeal = Ordeal(folder, mimic, seed, tokens=60_000, usd=0.18)
        ordeal.in_batches()
        return _killed_often(ordeal, 6.0)


def killed_while_rescoring(folder: Path, seed: int) -> Figures:
    """Let stored answers be scored again twenty times, and the command killed at any moment of it."""
    with scripted_chat() as make:
        ordeal = RescoredOrdeal(folder, seed, make(program), make(_verdict))
        for number in range(20):
            if number % 2:
                ordeal.killed_after(ordeal.random.uniform(0.0, 0.05), of_its_end=True)
            else:
                ordeal.killed_after(ordeal.random.uniform(0.2, 6.0))
        return ordeal.account()


@contextmanager
def small_disk(place: Path) -> Iterator[Path]:
    """Mount a disk of 16 MB in memory, which takes root."""
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


def on_a_full_disk(folder: Path, seed: int) -> Figures:
    """Let the disk of a run be full twenty times, after up to 1.5 MB more, or kill it before."""
    latency, disk = LatencySpec(median=0.01), small_disk(folder / "disk")
    with MimicProcess(mimic_spec(latency=latency)) as mimic, disk as place:
        ordeal = Ordeal(folder, mimic, seed, tokens=4_000_000, usd=12.0)
        ordeal.moved(place / "run")
        for _ in range(20):
            ordeal.out_of_space(ordeal.random.uniform(1.0, 12.0), ordeal.random.randrange(1_500_000))
        return ordeal.account()


@contextmanager
def cluster() -> Iterator[str]:
    """Start a cluster of Ray on this machine; yield its address."""
    import ray

    store = 80 * 2**20
    ray.init("local", num_cpus=2, include_dashboard=False, object_store_memory=store, log_to_driver=False)
    try:
        yield ray.get_runtime_context().gcs_address
    finally:
        ray.shutdown()


def killed_on_ray(folder: Path, seed: int) -> Figures:
    """Let a run with workers on Ray be killed twenty times, at any moment from its start to its end."""
    with MimicProcess(mimic_spec(latency=LATENCY)) as mimic, cluster() as address:
        ordeal = Ordeal(folder, mimic, seed, tokens=60_000, usd=0.18)
        ordeal.on_ray(address)
        return _killed_often(ordeal, 12.0)


IN_STORMS = {"judged": killed_at_every_stage, "batches": killed_in_batches, "rescore": killed_while_rescoring}
KILLED = {**IN_STORMS, "ray": killed_on_ray, "full-disk": on_a_full_disk}
"""What may be killed, by the value of ``--of``; the last two need Ray and root, and are in no storm."""


def kill(number: int, of: str, seed: int, say: Callable[[str], None]) -> Weather:
    """Kill a command twenty times a run, unless it ends, until so many kills are counted."""
    weather = Weather()
    while weather.kills < number:
        name = f"{KILLED[of].__name__.replace('_', ' ')}, seed {seed + weather.real}"
        with tempfile.TemporaryDirectory() as folder:
            weather.add(name, KILLED[of](Path(folder), seed + weather.real))
        weather.real += 1
        say(f"{name}: {weather.kills:,} kills so far")
    return weather


def brew(minutes: float, seed: int, say: Callable[[str], None]) -> Weather:
    """Let storms follow each other until the time is over; at least one of each kind."""
    weather, until = Weather(), time.monotonic() + 60.0 * minutes
    while time.monotonic() < until or not (weather.virtual and weather.real):
        number = weather.virtual + weather.real
        real = number % REAL_EVERY == 1
        weather.real, weather.virtual = weather.real + real, weather.virtual + (not real)
        kind = in_virtual_time
        if real:
            kind = (of_real_processes, *IN_STORMS.values())[(weather.real - 1) % (1 + len(IN_STORMS))]
        name = f"{kind.__name__.replace('_', ' ')}, seed {seed + number}"
        with tempfile.TemporaryDirectory() as folder:
            weather.add(name, kind(Path(folder), seed + number))
        say(f"{name}: {weather.figures.faults.total():,} faults so far")
    return weather


def say(line: str) -> None:
    """Say how far it is."""
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    """Run the storms, print the table, and exit with 1 if any harm was done."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=5.0, help="how long (default: 5)")
    parser.add_argument("--kills", type=int, metavar="N", help="in place of storms, N kills of a command")
    parser.add_argument(
        "--of",
        choices=KILLED,
        default="judged",
        help="what --kills kills: a run with a judge, in batches, on Ray or a full disk, or rescore "
        "(default: judged)",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the first storm; the next has one more")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument(
        "--write", type=Path, metavar="PAGE", help="replace the table between the marks of a page"
    )
    given = parser.parse_args()
    page = None if given.write is None else given.write.read_text("utf-8")
    if page is not None and (BEGIN not in page or END not in page):
        parser.error(f"{given.write} has no {BEGIN.strip()} and {END.strip()}")
    if given.kills is None:
        weather = brew(given.minutes, given.seed, say)
    else:
        weather = kill(given.kills, given.of, given.seed, say)
    table = weather.table()
    print(table)
    for line in weather.failed:
        print(f"HARM: {line}")
    if given.json is not None:
        numbers = {**vars(weather.figures), "survived": weather.survived, "failed": weather.failed}
        given.json.write_text(json.dumps(numbers, indent=1) + "\n", "utf-8")
    if page is not None:
        before, _, rest = page.partition(BEGIN)
        given.write.write_text(f"{before}{BEGIN}\n{table}\n{END}{rest.partition(END)[2]}", "utf-8")
    sys.exit(1 if weather.failed else 0)


if __name__ == "__main__":
    main()
