"""Runs through storms of faults in virtual time, and what their books would notice."""

import json
import shutil
import sqlite3
from contextlib import closing

import pytest
from chaos_books import Bill, Books
from storm import MODELS, MOST, World, storm
from weather import Weather

from adaptive_eval.core.spec import BudgetSpec, GoalSpec, ModelSpec, Price, SessionSpec, TaskSpec
from adaptive_eval.errors import RunDamaged
from adaptive_eval.store.codec import load_json


@pytest.mark.slow
@pytest.mark.parametrize("seed", [3, 15])
def test_a_run_through_a_storm(tmp_path, figures, seed):
    figures.append(storm(World(seed, tmp_path / "run"), sessions=5))
    assert figures[0].faults.total() > 50


def test_512_in_flight_stay_within_every_budget(tmp_path, figures):
    """No own budgets that would end a model early: all three have hundreds of requests out."""
    world = World(7, tmp_path / "run", trouble=0.2)
    world.spec = SessionSpec(
        models=tuple(ModelSpec(name, MOST, Price(0.1, 0.4)) for name in MODELS),
        tasks=(TaskSpec("s", tuple(f"s{n}" for n in range(20)), prompt_bounds=(40,) * 20),),
        goal=GoalSpec("budget"),
        budget=BudgetSpec(tokens=140_000, usd=0.04),
    )
    world.bill = Bill(world.spec)
    figures.append(storm(world, sessions=2))
    assert world.most_in_flight >= 512


def lose(db: sqlite3.Connection) -> None:
    """Take a stored trial out of a run file."""
    db.execute("DELETE FROM answers WHERE outcome = 7")
    db.execute("DELETE FROM outcomes WHERE id = 7")


def double(db: sqlite3.Connection) -> None:
    """Let a run say of itself that it has one trial more than it has stored."""
    number, body = db.execute("SELECT id, body FROM snapshots ORDER BY id DESC LIMIT 1").fetchone()
    snapshot = load_json(body)
    snapshot["results"]["trials"] += 1
    db.execute("UPDATE snapshots SET body = ? WHERE id = ?", (json.dumps(snapshot), number))


def damage(db: sqlite3.Connection) -> None:
    """Let a stored trial ask a question that does not exist."""
    db.execute("UPDATE outcomes SET question = 999 WHERE id = 7")


HARMS = {"lost": lose, "doubled": double, "damaged": damage}


def test_the_books_notice_what_should_not_happen(tmp_path, figures):
    """A suite that could not fail would promise nothing."""
    world = World(1, tmp_path / "run")
    figures.append(storm(world, sessions=1))
    for harm, do in HARMS.items():
        books, copy = Books(world.run), tmp_path / harm
        books.look()
        assert books.figures.answers > 100
        shutil.copytree(world.run, copy)
        with closing(sqlite3.connect(copy / "run.db", isolation_level=None)) as db:
            do(db)
        if harm == "damaged":
            with pytest.raises(RunDamaged):
                books.look(copy)
        else:
            books.look(copy)
        assert getattr(books.figures, harm) > 0
        weather = Weather()
        weather.add(harm, books.figures)
        assert weather.failed
        assert not weather.survived
    world.bill.add("c", "s", 10**6, 0)
    assert world.bill.overruns() == 2
