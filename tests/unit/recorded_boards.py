"""Boards of answers whose kinds are crossed: copies, losses, rounds, stored results, what is asked of them.

A session meets few of these at once; here they meet without its budgets and its choice of whom to ask.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import log
from typing import Any

import numpy as np
from course_facts import digest, text, together
from crossed_options import Case, Options, Refused, chance

from scorio.sequential.answers import Answers
from scorio.sequential.boards import Board, Call
from scorio.sequential.cells import Cells
from scorio.sequential.contrasts import Contrasts
from scorio.sequential.courses import interval
from scorio.sequential.families import family
from scorio.sequential.fold import Levels
from scorio.sequential.moments import Mark
from scorio.sequential.rules import stopping_rule
from scorio.sequential.trial_sequence import RunSequence

BOARDS: Options = {
    "asks": ("pairs", "claims", "numbers", "widths", "mixed"),
    "answers": tuple(
        f"{scores}-{copies}"
        for scores in ("right", "graded", "values")
        for copies in ("drawn", "copies-of-first", "copies-of-all")
    ),
    "lost": ("none", "some", "of-one", "burst"),
    "tasks": ("one", "uneven", "few", "three"),
    "target": ("benchmark", "population", "clusters"),
    "noise": ("drawn", "one-repeats", "two-repeat", "turns", "greedy"),
    "stored": ("none", "one", "alike"),
    "sequence": ("shared", "rounds", "in-a-row", "priced-rounds", "in-a-row-rounds"),
    "rule": ("anytime", "zscore", "exact"),
    "margin": ("some", "none", "wide"),
    "told": ("together", "uneven", "late"),
    "gap": ("some", "none", "large"),
    "best": ("first", "last"),
    "family": ("holm", "pair"),
    "gone": ("none", "one"),
    "level": ("strict", "low"),
}
"""The options of boards."""
BOARDS_REFUSED: Refused = (
    ("rule", "exact zscore", "sequence", "rounds priced-rounds in-a-row-rounds"),
    ("rule", "exact zscore", "asks", "claims mixed"),
    ("rule", "exact", "asks", "numbers widths"),
    ("rule", "exact", "tasks", "uneven three"),
    ("rule", "exact", "stored", "one alike"),
    ("asks", "numbers mixed", "sequence", "rounds priced-rounds in-a-row-rounds"),
    ("noise", "greedy", "sequence", "rounds in-a-row priced-rounds in-a-row-rounds"),
    ("tasks", "few", "sequence", "rounds priced-rounds in-a-row-rounds"),
)
SIZES = {"one": (9,), "uneven": (8, 3), "few": (2,), "three": (5, 4, 3)}
WEIGHTS = {"one": (1.0,), "uneven": (0.3, 0.7), "few": (1.0,), "three": (0.5, 0.2, 0.3)}
SCORES = {"right": (0.0, 1.0), "graded": (1.0, 0.0, 0.4), "values": tuple(np.linspace(0.0, 1.0, 21))}
GAPS = {"some": (0.8, 0.5, 0.3), "none": (0.55, 0.5, 0.45), "large": (0.97, 0.5, 0.04)}
STEPS = 110
LOOKS = (14, 45, STEPS)


class Told:
    """A board on its way."""

    def __init__(self, case: Case) -> None:
        of = self.case = {name: case.get(name, values[0]) for name, values in BOARDS.items()}
        of["scores"], _, of["copies"] = of["answers"].partition("-")
        self.alpha = {"strict": 0.001, "low": 0.3}[of["level"]]
        self.means = GAPS[of["gap"]][:: -1 if of["best"] == "last" else 1]
        self.asked = len(self.means)
        self.sizes = SIZES[of["tasks"]]
        self.scores = np.array(SCORES[of["scores"]])
        each = 3 if of["sequence"].startswith("in-a-row") else 1
        own = [of["sequence"].endswith("rounds")] * len(self.sizes)
        self.run = RunSequence(self.sizes, 4, each, own, early_repeats=of["noise"] != "greedy")
        greedy = (1,) if of["noise"] == "greedy" else ()
        rows = self.asked + (of["stored"] != "none")
        numbers = of["scores"] == "values"
        cells = [
            Cells(one, self.scores, rows, repeat_weight=1 / each, greedy=greedy, level=0.01, moments=numbers)
            for one in self.run.sequences
        ]
        for number, one in enumerate(cells if rows > self.asked else ()):
            self.load(one, number)
        clusters = None
        if of["target"] == "clusters":
            clusters = [np.arange(size) ** 2 % 5 for size in self.sizes]
        target: Any = "benchmark" if of["target"] == "benchmark" else "population"
        self.answers = Answers(
            self.run, cells, self.asked, WEIGHTS[of["tasks"]], target, clusters, -log(self.alpha)
        )
        if of["sequence"] == "priced-rounds":
            self.answers.costs = np.zeros(self.answers.answers.shape)
        self.margin = {"some": 0.15, "none": None, "wide": 0.4}[of["margin"]]
        self.board = self.made(self.contrasts(rows))
        turns = {"one-repeats": 1, "two-repeat": 1, "turns": 2}.get(of["noise"], 0)
        self.turned = [self.run.one_of_each(sum(self.sizes) + 2), self.run.one_of_each(60)][:turns]
        """The steps from which the models that repeat have no noise, and have some again."""
        self.repeating = (0, 2) if of["noise"] == "two-repeat" else (0,)
        self.given: dict[tuple[int, int, int], list[int]] = {}
        self.calls: list[Call] = []

    def made(self, contrasts: Contrasts) -> Board:
        """Return the board of what is asked."""
        rule = stopping_rule(self.case["rule"], self.alpha, self.margin, 2.0)
        claims = 2 if self.margin is not None and self.case["rule"] != "zscore" else 0
        levels = Levels(
            family(self.case["family"]), family("pair"), max(contrasts.hypotheses, 1), rule.level, self.alpha,
            rule.fixed_threshold, claims, self.margin or 0.0, contrasts.claims,
        )  # fmt: skip
        return Board(self.answers, contrasts, rule, levels, self.margin)

    def contrasts(self, rows: int) -> Contrasts:
        """Return what is asked: pairs, claims, scores against numbers, widths, or some of each."""
        none, found = np.nan, list[tuple[int, int, float, float, float]]()
        asks = self.case["asks"]
        pairs = [(first, second) for second in range(rows) for first in range(min(second, self.asked))]
        if asks in ("pairs", "mixed"):
            found += [(*one, 0.0, none, none) for one in pairs]
        if asks in ("claims", "mixed"):
            found += [(*one[:: 1 - 2 * (place % 2)], 0.0, none, 0.2) for place, one in enumerate(pairs)]
        if asks in ("numbers", "mixed"):
            found += [(row, -1, value, none, none) for row in range(self.asked) for value in (0.3, 0.75)]
        if asks in ("widths", "mixed"):
            found += [(row, -1, 0.0, width, none) for row in range(self.asked) for width in (0.5, 0.3)]
        first, second, *others = np.array(found).T
        return Contrasts(first.astype(int), second.astype(int), *others)

    def load(self, cells: Cells, task: int) -> None:
        """Give the last model stored answers, some of them lost, and perhaps alike."""
        questions = np.arange(cells.sequence.questions)
        counts = np.zeros_like(cells.counts[-1])
        for question in questions.tolist():
            for turn in range(3 + question % 2):
                drawn = self.drawn(0.45, (task, question), ("stored", task, question, turn))
                counts[question] += cells.scale.shares[drawn]
        alike = 2 * (questions % 3 == 1) if self.case["stored"] == "alike" else None
        lost = (questions % 4 == 3).astype(int) if self.case["lost"] != "none" else None
        cells.load(self.asked, counts, lost, alike)

    def drawn(self, mean: float, question: tuple[int, int], trial: object) -> int:
        """Return the category of an answer."""
        right = mean + 0.4 * (chance("hard", question) - 0.5)
        draw, part = chance("draw", trial), chance("part", trial)
        if self.case["scores"] == "values":
            return int(20.0 * min(max(right + 0.6 * (draw - 0.5), 0.0), 1.0))
        if self.case["scores"] == "graded":
            return 2 if part < 0.3 else int(draw > right)
        return int(draw < right)

    def category(self, model: int, index: int) -> int:
        """Return what is told at an index, after its doubt."""
        of, (task, question) = self.case, self.run.at(index, model)
        known = self.given.setdefault((model, task, question), [])
        fate = chance("fate", of["noise"], model, index)
        share = {"some": 0.08, "of-one": 0.3 * (model == 1), "burst": 0.7 * (20 <= index < 32)}
        if (
            known
            and model in self.repeating
            and self.turned
            and self.turned[:1] <= [index] < (self.turned[1:] or [STEPS])
        ):
            return Mark.FILLED_IN
        if fate < share.get(of["lost"], 0.0):
            return Mark.DROPPED if known and fate < 0.03 else Mark.MISSING
        again = known and (of["noise"] == "greedy" and model == 1 and fate > 0.2)
        of_copies = {"first": (0,), "all": (0, 1, 2)}.get(of["copies"].rpartition("-")[2], ())
        copied = known and model in of_copies and fate > 0.6
        trial = (model, task, question, len(known))
        found = known[-1] if again or copied else self.drawn(self.means[model], (task, question), trial)
        if copied:
            self.answers.doubt(model, index, found + 50 * (len(known) % 2))
        known.append(found)
        return int(found)

    # ------------------------------------------------------------------ telling

    def facts(self) -> Iterator[str]:
        """Tell all answers; yield what is known on the way and at the end."""
        for model in self.repeating:
            for index in self.turned:
                self.answers.turn(model, index)
        for start, stop in zip((0, *LOOKS), LOOKS, strict=False):
            self.tell(start, stop)
            yield from self.look(stop)
            if self.case["gone"] == "one" and stop == LOOKS[0]:
                self.board.lose(1)
        events = [one.event for one in self.calls]
        called = [tuple(map(int, (one.contrast, one.verdict, one.step))) for one in events]
        figures = [(one.event.threshold, one.low, one.high, one.statistic) for one in self.calls]
        yield f"calls {len(called)} {digest(called)} {text(together(np.ravel(figures)))}"
        yield from self.scored()

    def tell(self, start: int, stop: int) -> None:
        """Tell every model's answers to some steps, as far as they are laid out."""
        width = {"together": 40, "uneven": 22, "late": 13}[self.case["told"]]
        for begin in range(start, stop, width):
            for model in range(self.asked):
                until = min(begin + width, stop)
                late = self.case["told"] == "uneven" and stop < STEPS
                made = self.answers.complete[model]
                steps = range(made, until - 3 * model * late)
                if self.case["told"] == "late":  # the first of them comes last
                    told = [(index, self.category(model, index)) for index in self.askable(model, steps)]
                    for index, category in [*told[1:], *told[:1]]:
                        self.add(model, index, category)
                    continue
                for index in self.askable(model, steps):
                    self.add(model, index, self.category(model, index))
            self.calls += self.board.read()

    def askable(self, model: int, steps: range) -> Sequence[int]:
        return [index for index in steps if index < self.run.laid_out(model)]

    def add(self, model: int, index: int, category: int) -> None:
        self.answers.add(model, index, category, told=category != Mark.FILLED_IN)
        if self.answers.costs is not None:
            self.answers.costs[model, index] = 1.0 + self.run.at(index, model)[1] % 4

    # ------------------------------------------------------------------ looking

    def look(self, stop: int) -> Iterator[str]:
        """Yield what is known of the contrasts now."""
        board, latest = self.board, self.board.latest
        said = "".join("-?+="[verdict + 1] for verdict in board.fold.verdict)
        known = [np.minimum(values, 99.0) for values in latest[2:]]
        shown = {
            "e": np.maximum(latest.statistic, -99.0), "d": latest.difference, "all": np.concatenate(known),
            "ends": np.concatenate(board.interval()), "signs": latest.sign, "bet": board.courses.bet,
            "enough": board.fold.enough_at, "widths": board.progress_to_widths,
        }  # fmt: skip
        if self.margin is not None:
            shown["ties"] = board.progress_to_ties(self.margin)
        if (bets := board.courses.answer_bets) is not None:
            shown["squares"], shown["stake"] = bets.squares, np.array([bets.step_stake])
        left = 0.5 * latest.slack
        more = board.undecidable(left, 16.0).tolist(), board.exact.tolist(), board.members, board.reached
        figures = " ".join(f"{name}={text(together(values.ravel()))}" for name, values in shown.items())
        yield f"after {stop} {said} {figures} {digest(more)}"

    def scored(self) -> Iterator[str]:
        """Yield what is known of the models at the end, and what is foreseen."""
        board, answers = self.board, self.answers
        shown, ends = [], list[float]()
        for block in (answers.scores(), *map(answers.task_scores, range(len(self.sizes)))):
            shown.append(block.difference[:, 0].tolist())
            ends += np.ravel(interval(block, self.alpha, self.margin)).tolist()
        yield f"scores {text(shown)} ends={text(together(ends))}"
        alone = [board.population_interval(row) for row in np.flatnonzero(board.exact).tolist()]
        yield f"alone {len(alone)} {text(together(np.ravel(alone)))} passes={board.fixed_passes(0.8)}"
        rows = np.arange(board.contrasts.first.size)
        difference, variance = board.latest.difference, np.minimum(board.latest.variance, 9.0)
        ahead = [
            *board.foreseen(np.abs(difference), 0.5 * np.abs(difference), variance, variance),
            board.foreseen_claims(rows, difference, np.full(rows.size, 0.05), variance),
            board.courses.with_foreseen_bets(rows, np.zeros(rows.size), difference, 300.0),
        ]
        noise = [np.ravel([one.variance_by_rounds(), one.mean_noise()]) for one in answers.cells]
        shown_ahead = np.clip(np.concatenate([*ahead, *noise]), -99.0, 99.0)
        yield f"ahead {text(together(shown_ahead))}"


def board_facts(written: Case) -> list[str]:
    """Return what a board says while it is told answers."""
    return list(Told(written).facts())


OF_BOARDS: Mapping[str, tuple[Options, Refused, Callable[[Case], list[str]]]] = {
    "boards": (BOARDS, BOARDS_REFUSED, board_facts),
}
"""What is crossed: options, what is refused, and what a case leads to."""
