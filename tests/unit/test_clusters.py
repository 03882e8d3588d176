"""Questions in groups: a config names the groups, and only where questions are a sample do they count."""

import json
from dataclasses import replace

import numpy as np
import pytest
from config_texts import plain
from session_scripts import coin, drive, make_spec

from adaptive_eval.build.assembly import build
from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.core.session import Session
from adaptive_eval.errors import DatasetError
from scorio.sequential.evidence import GUARD, log_evidence

ROWS = [{"id": f"q{n}", "q": f"{n} + 1?", "a": str(n + 1), "passage": n // 3} for n in range(12)]
FIELDS = {"input": "q", "target": "a", "cluster": "passage"}


def built(folder, target="population", fields=FIELDS, rows=ROWS):
    (folder / "d.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    task = {"dataset": "d.jsonl", "scorer": "numeric", "fields": fields}
    return build(config_from_data(plain(task=task, stopping={"target": target}), folder))


def test_a_column_names_the_clusters(tmp_path):
    assert built(tmp_path).spec.tasks[0].clusters == tuple(str(n // 3) for n in range(12))


def test_for_these_very_questions_there_are_none(tmp_path):
    assert built(tmp_path, target="benchmark").spec.tasks[0].clusters is None
    assert built(tmp_path, fields={"input": "q", "target": "a"}).spec.tasks[0].clusters is None


def test_a_question_without_its_cluster_is_a_mistake(tmp_path):
    rows = [*ROWS[:3], {key: ROWS[3][key] for key in ("id", "q", "a")}, *ROWS[4:]]
    with pytest.raises(DatasetError, match="line 4: the field 'passage' is missing"):
        built(tmp_path, rows=rows)


@pytest.mark.parametrize("groups", [1, 2, 6, 30])
def test_any_number_of_groups_gives_an_interval_and_groups_of_one_the_plain_one(groups):
    def answer(request):
        question = int(request.question[1:])
        chance = 0.5 + 0.1 * (request.key.model == "m0" and question % groups != 0)
        return int(
            np.random.default_rng([question, request.key.index, ord(request.key.model[1])]).random() < chance
        )

    def width(clusters):
        spec = make_spec(2, 30, target="population", goal="budget", trials=240)
        spec = replace(spec, tasks=(replace(spec.tasks[0], clusters=clusters),))
        (pair,) = drive(Session(spec), answer).results().pairs
        return pair.high - pair.low

    grouped = width(tuple(str(n % groups) for n in range(30)))
    assert np.isfinite(grouped)
    if groups == 30:
        assert grouped == pytest.approx(width(None), rel=0.1)


def test_a_score_too_is_as_uncertain_as_its_groups_differ():
    """Read step by step, for a width, and all at once, for the tables: the spread of groups by hand."""

    def answer(request):
        group = int(request.question[1:]) // 5
        return int(np.random.default_rng([group, request.key.index]).random() < 0.2 + 0.6 * (group % 2))

    spec = make_spec(1, 30, target="population", goal="width", width=0.01, trials=75)
    spec = replace(spec, tasks=(replace(spec.tasks[0], clusters=tuple(str(n // 5) for n in range(30))),))
    session = drive(Session(spec), answer)
    counts = session.board.cells[0].counts[0]
    means = counts[:, 1] / counts.sum(axis=1)
    sums = (means - means.mean()).reshape(6, 5).sum(axis=1)
    expected = (sums**2).sum() / 30**2 + GUARD / 6**2
    assert session.board.task_scores(0).variance[0, 0] == pytest.approx(expected)
    assert session.comparison.latest.guarded[0] == pytest.approx(expected)


def test_a_winner_by_bets_on_groups_has_an_interval_that_ends_at_0():
    """The bets call it long before the normal approximation would exclude 0."""
    spec = make_spec(2, 60, target="population", max_passes=6, seed=0)
    spec = replace(spec, tasks=(replace(spec.tasks[0], clusters=tuple(str(n % 30) for n in range(60))),))
    session = drive(Session(spec), coin([0.8, 0.6]), slots=4)
    (pair,) = session.results().pairs
    latest = session.comparison.latest
    assert (pair.verdict, pair.low) == ("better", 0.0)
    assert log_evidence(latest.difference, latest.variance)[0] < 2.0
