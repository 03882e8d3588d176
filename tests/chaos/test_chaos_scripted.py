"""Runs through storms of faults in virtual time, and what their books would notice."""

import shutil
import sqlite3
from contextlib import closing

import pytest
from chaos_books import Bill, Books
from storm import MODELS, MOST, World, storm
from weather import Weather

from adaptive_eval.core.spec import BudgetSpec, GoalSpec, ModelSpec, Price, SessionSpec, TaskSpec


@pytest.mark.slow
@pytest.mark.parametrize("seed", [3, 15])
def test_a_run_through_a_storm(tmp_path, figures, seed):
    figures.append(storm(World(seed, tmp_path / "run"), sessions=5))
    assert figures[0].faults.total() > 50


@pytest.mark.slow
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


def test_the_books_notice_what_should_not_happen(tmp_path, figures):
    """A suite that could not fail would promise nothing."""
    world = World(1, tmp_path / "run")
    figures.append(storm(world, sessions=1))
    books, copy = Books(world.run), tmp_path / "copy"
    books.look()
    assert books.figures.answers > 100
    shutil.copytree(world.run, copy)
    with closing(sqlite3.connect(copy / "run.db")) as db:
        db.execute("DELETE FROM answers WHERE outcome = 7")
        db.execute("DELETE FROM outcomes WHERE id = 7")
        db.commit()
    books.look(copy)
    assert books.figures.lost > 0
    assert books.figures.doubled > 0, "the run says of itself that it has one trial more"
    weather = Weather()
    weather.add("harm", books.figures)
    assert weather.failed
    assert not weather.survived
    world.bill.add("c", "s", 10**6, 0)
    assert world.bill.overruns() == 2
