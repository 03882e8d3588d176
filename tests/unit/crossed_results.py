"""Results of runs that are made from a case alone, so that states, verdicts, ends, budgets and losses meet.

They need not be those of one run: a view shows what it is given.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import fsum
from typing import Any

from crossed_options import Options, Refused, chance

from adaptive_eval.core.label_record import LABELS
from adaptive_eval.core.results import (
    FIXED,
    BudgetLine,
    Chance,
    ChangedModel,
    Decision,
    ModelResult,
    PairForecast,
    PairResult,
    Range,
    Results,
    RulePlugin,
    RunForecast,
    StopVerdict,
    TaskResult,
    TaskScore,
    to_json,
)
from adaptive_eval.errors import Coded
from adaptive_eval.store.records import EndpointHealth, SnapshotRecord
from adaptive_eval.views.accounts import ModelAccount, QuestionAccount
from adaptive_eval.views.details import AS_RUN, Details, moment_of
from adaptive_eval.views.summary import RunHeader, RunSummary, summary_at

SHOWN: Options = {
    "goal": (
        "ranking", "best", "best-two", "baseline", "new-model", "claims", "thresholds", "width", "pairs",
        "all", "budget",
    ),
    "end": (
        "resolved", "running", "killed", "interrupted", "partial", "budget", "of-models", "of-judge",
        "passes", "servers", "unusable", "lost",
    ),
    "lost": ("none", "missing", "discarded", "copies", "cut-off", "no-answer", "late"),
    "states": ("asked", "references", "stopped", "few", "waiting", "unknown"),
    "budgets": ("trials", "none", "usd", "parts", "of-all", "presumed"),
    "rule": ("anytime", "exact", "zscore", FIXED, LABELS, "own"),
    "before": ("same", "settings", "scoring", "unknown", "scale", "other-run"),
    "more": ("none", "ranked", "judged", "together", "changed"),
    "verdicts": ("mixed", "decided", "open", "ties", "one-win"),
    "models": ("three", "two", "five", "eleven", "one"),
    "tasks": ("one", "two", "rounds", "three"),
    "ahead": ("none", "likely", "hopeless", "many"),
    "questions": ("apart", "none", "several", "suspect"),
    "scores": ("right", "graded", "numbers"),
    "exact": ("no", "some", "all"),
    "told": ("nothing", "some", "much"),
    "servers": ("none", "well", "failing"),
    "spend": ("trials", "tokens", "usd"),
    "family": ("holm", "pair", "top-set"),
    "margin": ("some", "none"),
    "target": ("benchmark", "population"),
    "size": ("wide", "narrow"),
}  # fmt: skip
"""The options of results that views show."""
SHOWN_REFUSED: Refused = (
    ("models", "one", "goal", "ranking best best-two baseline new-model claims pairs all"),
    ("models", "two", "goal", "best-two"),
    ("models", "one", "states", "references waiting"),
)

STARTED = 1_750_000_000.0
TASKS = {"sums-1": 3.0, "words-2": 1.0, "code-3": 1.0}
NUMBERS = {"one": 1, "two": 2, "three": 3, "five": 5, "eleven": 11}
ENDS = {  # what ends a run, each in a few ways
    "resolved": ("resolved",) * 4,
    "interrupted": ("interrupted",),
    "partial": ("partial",) * 4,
    "budget": ("budget",) * 4,
    "of-models": ("budget",) * 2,
    "of-judge": ("budget",),
    "passes": ("max_passes",) * 2,
    "servers": ("endpoints",) * 2,
    "unusable": ("unusable",) * 4,
    "lost": ("lost",) * 3,
}


@dataclass(frozen=True)
class Made:
    """What is made of a case; `salt` makes another run of the same case."""

    case: Mapping[str, Any]
    name: str
    salt: str = ""

    def __getattr__(self, key: str) -> Any:
        return self.case[key]

    def part(self, *key: object) -> float:
        """Return a number from 0 to 1."""
        return chance("shown", self.name, self.salt, *key)

    def among(self, *key: object, of: Sequence[Any]) -> Any:
        """Return one of several."""
        return of[int(self.part(*key) * len(of))]

    @property
    def names(self) -> list[str]:
        """The models; of many, some names are too long for a column."""
        trees = ("oak", "elm", "ash", "fir", "yew")
        number = NUMBERS[self.models]
        if number <= len(trees):
            found = [f"{tree}-{place}" for place, tree in enumerate(trees[:number])]
            return [*found[:-1], "new-9"] if self.salt and self.before == "other-run" else found
        return [f"a-model-{place}{'-of-a-long-name' * (place % 3)}-{place}" for place in range(number)]

    @property
    def scale(self) -> tuple[float, float]:
        """The lowest and the highest score."""
        return (-1.0, 3.0) if self.scores == "graded" else (0.0, 1.0)

    @property
    def references(self) -> set[int]:
        """The models that are asked nothing."""
        if self.goal == "new-model":
            return set(range(1, len(self.names)))
        return {1, 3} if self.states == "references" else set()

    def score(self, place: int) -> float:
        """Return the score of a model."""
        low, high = self.scale
        number = len(self.names)
        order = (place * 2 + (self.salt != "")) % number if number % 2 else place
        return low + (high - low) * (0.92 - 0.8 * order / number - 0.1 * self.part("score", place))

    # ------------------------------------------------------------------ models, pairs and budgets

    def lines(self, pairs: Sequence[PairResult]) -> tuple[ModelResult, ...]:
        """Return the lines of the models."""
        found = []
        last = len(self.names) - 1
        unit = self.scale[1] - self.scale[0]
        scores = [self.score(place) for place in range(last + 1)]
        for place, name in enumerate(self.names):
            state, note, trials = "active", "", 40 + int(900 * self.part("trials", place))
            mine = [pair for pair in pairs if name in (pair.first, pair.second) and pair.kind == "pair"]
            if mine and all(pair.verdict != "open" for pair in mine):
                state = "retired"
            waits: tuple[str, ...] = ()
            if place in self.references:
                state, note = "reference", f"of the file r{place}"
            if self.states == "stopped" and place in (last, last - 2):
                state, note = "stopped", self.among("note", place, of=("", "HTTP 401"))
            if self.states == "waiting" and place % 2:
                waits = tuple(self.names[:place][-2:])
            if self.states == "few" and place in (0, last):
                trials = 9 if place else 10 - (last == 0)
            score: float | None = scores[place]
            radius = unit * (0.02 + 0.3 * self.part("radius", place))
            ends = (score - radius, score + radius) if place != 2 or self.exact != "all" else (None, None)
            mu: float | None = score - 0.04 * unit
            is_blank = self.states == "unknown"
            if self.salt:
                is_blank = self.part("blank") < (0.5 if is_blank else 0.2)
            if is_blank and place == last:
                score, ends, mu, trials = None, (None, None), None, 0
            if self.scores == "numbers":
                mu = None
            won = sum(pair.verdict == ("better" if pair.first == name else "worse") for pair in mine)
            lost = sum(pair.verdict == ("worse" if pair.first == name else "better") for pair in mine)
            number = 1 + int(9 * self.part("lost", place))
            gone = {"missing": number, "copies": number, "discarded": number // 2}.get(self.lost, 0)
            if self.lost == "missing" and place == 0:
                gone = 0
            found.append(
                ModelResult(
                    model=name, state=state, trials=trials, issued=trials + 4 + gone, missing=gone,
                    after_stop=number if self.lost == "late" else 0,
                    questions=min(trials, 30 - 3 * place % 7),
                    score=score, score_low=ends[0], score_high=ends[1], bayes_mu=mu,
                    bayes_sigma=None if mu is None else 0.4 * radius,
                    rank=1 + sum(other > scores[place] for other in scores), rank_low=1 + lost,
                    rank_high=last + 1 - won, prompt_tokens=120 * trials + place,
                    completion_tokens=350 * trials, note=note,
                    usd=None if self.budgets in ("none", "trials") else 0.000307 * trials * (1.013 + place),
                    score_if_missing_wrong=None if not gone or score is None else score - 0.01 * gone,
                    score_if_missing_right=None if not gone or score is None else score + 0.02 * gone,
                    copies=gone if self.lost == "copies" else 0,
                    discarded_trials=number if self.lost == "discarded" else 0,
                    redrawn_trials=number if self.lost == "discarded" and place == 1 else 0,
                    no_answer_trials=40 * number if self.lost == "no-answer" and place == 0 else 0,
                    waits_for=waits,
                )
            )  # fmt: skip
        return tuple(found)

    def verdict(self, difference: float, *key: object) -> str:
        """Return the verdict of a contrast."""
        winner = "better" if difference > 0 else "worse"
        draw = self.part("verdict", *key)
        return {
            "open": "open", "decided": winner, "ties": "tie",
            "one-win": winner if 0 in key[:2] and 1 in key[:2] else "open",
        }.get(self.verdicts, winner if draw < 0.5 else "tie" if draw < 0.75 else "open")  # fmt: skip

    def contrasts(self) -> tuple[PairResult, ...]:
        """Return what the goal asks about."""
        number = len(self.names)
        every = list(combinations(range(number), 2))
        two = {
            "ranking": every, "best": every, "best-two": every, "all": every, "budget": [],
            "baseline": [(1, place) if place < 1 else (place, 1) for place in range(number) if place != 1],
            "new-model": [(0, place) for place in range(1, number)], "pairs": every[::2],
        }.get(self.goal, [])  # fmt: skip
        found = [self.contrast("pair", *pair) for pair in two if not self.references.issuperset(pair)]
        if self.goal in ("claims", "all"):
            found += [self.contrast("not-worse", place, 0) for place in range(1, number)]
            found += [replace(one, margin=0.25) for one in found[-1:] if self.part("two margins") < 0.5]
        if self.goal in ("thresholds", "all"):
            level = self.among("level", of=(0.5, 0.6))
            found += [self.contrast("threshold", place, level) for place in range(number)]
        if self.goal == "thresholds" and self.part("two levels") < 0.5:
            found += [self.contrast("threshold", place, 0.8) for place in range(number)]
        if self.goal in ("width", "all"):
            found += [self.contrast("width", place, "width 0.1") for place in range(number)]
        earlier = {self.names[place] for place in self.references if place < number}
        return tuple(one for one in found if one.first not in earlier or one.kind in ("pair", "not-worse"))

    def contrast(self, kind: Any, first: int, second: Any) -> PairResult:
        """Return one contrast; the second is a model, a number or a width."""
        unit = self.scale[1] - self.scale[0]
        key = (first, second, kind)
        against = {"threshold": second, "width": 0.0}.get(kind)
        difference = self.score(first) - (self.score(second) if against is None else against)
        verdict: Any = self.verdict(difference, *key)
        if kind == "width":
            verdict = "open" if verdict == "open" else "tie"
        if kind == "not-worse" and verdict == "tie":
            verdict = "better"
        radius = unit * (0.03 + 0.2 * self.part("radius", *key))
        unread = verdict == "open" and self.states == "unknown" and first == len(self.names) - 1
        exact = verdict != "open" and self.exact != "no"
        exact = exact and (self.exact == "all" or self.part("exact", *key) < 0.3)
        population = (difference - 2 * radius, difference + 2 * radius) if exact else (None, None)
        trials = int(20 + 300 * self.part("each", *key))
        of_tie = (self.margin == "some" and kind != "not-worse") or kind == "width"
        one_look = self.rule == FIXED
        return PairResult(
            first=self.names[first], second=self.names[second] if against is None else f"{second}",
            verdict=verdict, difference=None if unread else difference,
            difference_low=None if unread else difference - radius,
            difference_high=None if unread else difference + radius,
            evidence=7.0 * self.part("evidence", *key) - 1.0, threshold=4.0 + self.part("threshold", *key),
            tie_margin=1.4 * self.part("tie", *key) - 0.3 if of_tie else None, trials_each=trials,
            questions=min(trials, 30), decided_at=None if verdict == "open" else trials - 3, kind=kind,
            exact=exact, population_low=population[0], population_high=population[1],
            needed=verdict != "open" or self.part("needed", *key) < 0.7,
            p_value=0.2 * self.part("p", *key) if one_look else None,
            test=self.among("test", *key, of=("t-test", "sign test")) if one_look else "",
            margin=0.1 * unit if kind == "not-worse" else None,
            evidence_beyond=verdict != "open" and self.part("beyond", *key) < 0.2,
        )  # fmt: skip

    def budget_lines(self, trials: int) -> tuple[BudgetLine, ...]:
        """Return the budgets."""
        used = 0.5 + 0.5 * self.part("used")
        limits = {
            "trials": [("trials", trials)], "usd": [("usd", 1.3), ("wall_clock", 154.0)],
            "parts": [("prompt_tokens", 120.0 * trials), ("completion_tokens", 350.0 * trials)],
            "of-all": [("trials", trials), ("tokens", 470.0 * trials), ("wall_clock", 154.0)],
            "presumed": [("tokens", 470.0 * trials), ("usd", 2.5)],
        }.get(self.budgets, [])  # fmt: skip
        found = [BudgetLine("trials", trials, 24, None)] if not limits else []
        for name, spent in limits:
            presumed = 0.04 * spent if self.budgets == "presumed" else 0.0
            found.append(BudgetLine(name, spent, 0.02 * spent, spent / used, presumed=presumed))
        if self.budgets == "of-all" or self.end == "of-models":
            for place, name in enumerate(self.names[:3]):
                limit = (None, 90.0, 400.0)[place % 3]
                found.append(BudgetLine("trials", 90.0, 2.0, limit, "model", name))
                found.append(BudgetLine("usd", 0.1 + place, 0.0, 0.1 + place, "model", name))
        if self.budgets == "of-all" and self.tasks != "one":
            found.append(BudgetLine("trials", 70.0, 1.0, 71.0, "task", "words-2"))
        if self.budgets == "presumed" or self.end == "of-judge":
            for name, spent in (("requests", 80.0), ("tokens", 9_000.0), ("usd", 0.02)):
                line = BudgetLine(name, spent, 0.0, 100.0 if name == "requests" else None, "scorer")
                found.append(replace(line, owner="judge of sums-1", presumed=0.1 * spent))
        return tuple(found)

    # ------------------------------------------------------------------ the end

    def stop(self, pairs: Sequence[PairResult], budgets: Sequence[BudgetLine]) -> StopVerdict | None:
        """Return why the run has ended; None while it has not."""
        if self.end not in ENDS:
            return None
        reasons = ENDS[self.end]
        way = int(self.part("way") * len(reasons))
        first, last = self.names[0], self.names[-1]
        still = sum(pair.verdict == "open" for pair in pairs)
        used = {one.name: [one.spent, one.limit] for one in budgets if one.scope == "run" and one.limit}
        found: dict[str, Any] = {}
        spent = {"trials": [90.0, 90.0], "usd": [0.1, 0.11]}
        if self.end == "resolved":
            found = [
                {"pairs": len(pairs) - still, "tied_pairs": sum(one.verdict == "tie" for one in pairs)},
                {"good_enough": self.names[: 1 + way], "within": 0.05, "pairs": 1},
                {"models": 3, "tied_models": 1, "measured": 2, "goals": ["find the best 2", "width 0.1"]},
                {"held": 2, "failed": 1, "measured": 0},
            ][way]
        elif self.end == "partial":
            found = [
                {"silent": [last], "spent": []}, {"silent": [], "spent": [first, last], "unusable": [last]},
                {"silent": [first, last], "spent": [first], "noisy": [last], "sample": True},
                {"silent": [], "spent": [last], "noisy": [first, last]},
            ][way]  # fmt: skip
            found |= {"open": max(still, 1), "open_models": way % 2}
        elif self.end == "budget":
            run = {"scope": "run", "owner": "", "used": used or {"trials": [60.0, 60.0]}}
            found = [
                run, {**run, "is_goal": True}, {**run, "used": {"wall_clock": [154.2, 50.5]}},
                {"scope": "task", "owner": "words-2", "used": {"trials": [70.0, 71.0]}},
            ][way]  # fmt: skip
        elif self.end == "of-models":
            found = {"scope": "models", "models": {first: spent, last: "HTTP 401"}, "is_goal": way == 1}
        elif self.end == "of-judge":
            judge = {"requests": [80.0, 100.0], "usd": [0.02, 0.02]}
            found = {"scope": "scorer", "owner": "judge of sums-1", "used": judge}
        elif self.end == "passes":
            found = [{"passes": 9}, {}][way]
        elif self.end == "servers":
            found = {"models": {first: "HTTP 500", last: spent}, "refused": way == 1}
        elif self.end == "unusable":
            of_task = {"owner": "sums-1", "affected": 60, "answers": 64}
            found = [
                {"cause": "models", "models": {first: "HTTP 401", last: {}}},
                {"cause": "scorer", "said": "error 7", **of_task},
                {"cause": "nothing_found", "examples": ["12", "x" * 99], **of_task},
                {"cause": "nothing_found", "examples": [], **of_task},
            ][way]  # fmt: skip
        elif self.end == "lost":
            lost = {first: 7, last: 3}
            found = {"open": max(still, 2 - way), "open_models": way, "lost": lost}
            if way:
                causes = {first: {"timeout": 6, "server": 2}, last: {"killed": 1}}
                some = lost if way == 1 else {last: 1}
                found |= {"discarded_trials": some, "discarded": causes, "redrawn": ("connection",)}
        words = ""
        if self.end == "interrupted" and self.part("words") < 0.5:
            words = "ended by signal 15"
        return StopVerdict(reasons[way], words, found)

    def told_decisions(self, results: Results) -> Iterator[Decision]:
        """Yield the decisions that led to results."""
        trials = 0
        for pair in results.pairs:
            if pair.verdict == "open" or pair.difference is None or pair.decided_at is None:
                continue
            trials += 31
            of_two = pair.kind in ("pair", "not-worse")
            found: dict[str, Any] = {
                "difference": pair.difference, "low": pair.difference_low, "high": pair.difference_high,
                "statistic": pair.evidence, "threshold": pair.threshold + 0.5, "questions": pair.questions,
                "kind": pair.kind, "equivalence": results.equivalence,
            }  # fmt: skip
            if pair.margin is not None:
                found["margin"] = pair.margin
            if not of_two:
                level = float(pair.second) if pair.kind == "threshold" else 0.0
                found |= {"score": pair.difference + level, "against": pair.second}
                if results.equivalence is None and pair.verdict == "tie":
                    found["equivalence"] = 0.07
            if pair.exact:
                low, high = pair.population_low, pair.population_high
                found |= {"exact": True, "population_low": low, "population_high": high}
            if self.goal == "new-model" and of_two:
                found["reference"] = pair.second
            models = (pair.first, pair.second) if of_two else (pair.first,)
            yield Decision("pair", models, pair.verdict, pair.decided_at, trials, "", found)
        yield from self.other_decisions(trials)
        if results.stop is not None:
            stop = results.stop
            yield Decision("stop", (), stop.reason, 0, results.trials, stop.text, stop.evidence)

    def other_decisions(self, trials: int) -> Iterator[Decision]:
        """Yield decisions about single models."""
        first, last = self.names[0], self.names[-1]
        for place, found in enumerate(
            (
                {"separated": [last], "tied": self.names}, {"lost": [first, last]}, {"lost": [first]},
                {"not_better": [last], "within": 0.05, "worse": self.names[:2]}, {},
            )
        ):  # fmt: skip
            if self.part("retired", place) < 0.3:
                yield Decision("retired", (first,), "retired", 33 + place, trials, "", found)
        used = {"trials": [90.0, 90.0], "usd": [0.1, 0.1]}
        if self.states == "stopped" or self.end == "of-models":
            yield Decision("model_stopped", (last,), "budget", 45, trials, "", {"used": used})
        if self.told == "much":
            yield Decision("model_stopped", (first,), "stopped", 45, trials, "HTTP 401")
            yield Decision("withdrawn", (first, last), "better", 45, trials, "withdrawn: 45 trials")
            yield Decision("servers", (last,), "joined", 0, trials, "http://localhost:9/v1 joined")
            yield Decision("laid_out", (last,), "", 60, trials, "", {"awaited": [[58, 1], [59, 0]]})

    # ------------------------------------------------------------------ the whole

    def results(self) -> Results:
        """Return the results."""
        pairs = self.contrasts()
        lines = self.lines(pairs)
        asked = [line for line in lines if line.state != "reference"]
        trials = sum(line.trials + line.missing for line in asked) + (3 if self.told == "much" else 0)
        budgets = self.budget_lines(trials)
        stop = self.stop(pairs, budgets)
        tasks = list(TASKS)[: {"one": 0, "two": 2, "rounds": 2, "three": 3}[self.tasks]]
        shares = [TASKS[name] / sum(TASKS[one] for one in tasks) for name in tasks]
        single = self.goal in ("claims", "thresholds", "width")
        warnings: list[str] = []
        if self.told != "nothing":
            warnings = [
                Coded("warning/unanswered", "7 requests"),
                Coded("warning/settings-changed", "x was 3"),
            ]
        if self.told == "much":
            warnings += [Coded("warning/copies", f"{name}: 3 copies") for name in self.names]
        results = Results(
            goal=f"goal {self.goal}-1", rule=self.rule,
            confidence=self.among("confidence", of=(0.95, 0.9)),
            family=self.family, equivalence=0.05 if self.margin == "some" else None, questions=30,
            models=lines, pairs=pairs, budgets=budgets, trials=trials, stop=stop, warnings=tuple(warnings),
            prior="2 runs of r1" if self.more == "judged" else None,
            fixed_passes=self.among("fixed", of=(None, 9, 31)) if self.end == "resolved" else None,
            tasks=tuple(self.task(name, share, lines) for name, share in zip(tasks, shares, strict=True)),
            ties=self.among("of ties", of=("pair", "family")),
            top_k={"best": 1, "best-two": 2, "all": self.among("k", of=(None, 1, 2))}.get(self.goal),
            spend=self.spend,
            in_rounds={"rounds": ("words-2",), "three": (), "one": ("sums-1",)}.get(self.tasks),
            pass_cost=self.among("cost", of=(None, 4_100.5)) if self.spend != "trials" else None,
            scale=self.among("scale", of=(None, (0.0, 1.0))) if self.scale == (0.0, 1.0) else self.scale,
            target=self.target,
        )  # fmt: skip
        if self.rule == "own":
            plugin = RulePlugin("a-rule 1.0", "errs in 5 %. ", in_family=self.part("own") < 0.5)
            results = replace(results, rule_plugin=plugin)
        if self.rule == LABELS:
            alone = replace(self, salt=f"{self.salt} alone").contrasts() if single else pairs
            results = replace(results, judge_alone=replace(results, rule="anytime", pairs=alone))
        if self.more == "changed":
            changed = ChangedModel(self.names[0], "http://localhost:9/v1", 41, STARTED + 9, 0.4, 0.7, 0.003)
            results = replace(results, changes=(changed, replace(changed, server="", trials=80)))
        return replace(results, forecast=self.forecast(results))

    def task(self, name: str, share: float, lines: Sequence[ModelResult]) -> TaskResult:
        """Return the scores of all models on a task."""
        scores = []
        for line in lines:
            score = None if line.score is None else line.score - 0.03 * self.part(name, line.model)
            ends = (None, None) if score is None else (score - 0.2, score + 0.25)
            scores.append(TaskScore(line.model, score, *ends))
        return TaskResult(name, 10 if name == "sums-1" else 20, share, tuple(scores))

    def forecast(self, results: Results) -> RunForecast | None:
        """Return what the rest of the run will take."""
        still = [pair for pair in results.pairs if pair.verdict == "open" and pair.needed]
        if self.ahead == "none":
            return None
        more = Range(594.0, 1_056.0, 4_362.0)
        some = [
            PairForecast(one.first, one.second, 0.9, more)
            for one in still[: 2 if self.ahead == "many" else 99]
        ]
        chances = {
            "likely": (Chance(900.0, 0.12), Chance(1_900.0, 0.5), Chance(3_111.0, 0.82)),
            "many": (Chance(900.0, 0.3), Chance(9_000.0, 0.55)),
        }.get(self.ahead, ())  # fmt: skip
        usd = None if results.usd is None else Range(0.21, 0.4, 1.6)
        tokens = Range(83e3, 147e3, 609e3)
        then = len(still) + (self.ahead == "many")  # one more was open when it was made
        return RunForecast(
            0.004 if self.ahead == "hopeless" else 0.91, more, tokens, usd, tuple(some), then, chances
        )

    def health(self) -> tuple[EndpointHealth, ...]:
        """Return the health of the servers."""
        states = ("in", "out", "probation", "refused", "joining", "left")
        found = []
        for place, name in enumerate(self.names if self.servers != "none" else ()):
            failing = self.servers == "failing"
            errors = {"timeout": 3, "rate_limit": 12, "usage": 2} if failing and place != 1 else {}
            state = self.among("server", place, of=states) if failing else "in"
            found.append(
                EndpointHealth(
                    name, f"http://localhost:80{place:02d}/v1", place, 8, 40 * place, 7.5, 2_600.0,
                    0.42 if place else None, 1.7 if place else None, errors, state,
                )
            )  # fmt: skip
        return tuple(found)

    def summary(self) -> RunSummary:
        """Return the whole summary."""
        results = self.results()
        decisions = tuple(self.told_decisions(results))
        elapsed = 0.0 if self.part("young") < 0.15 else 154.0
        now = SnapshotRecord(STARTED + 154.0, elapsed, results.trials, to_json(results), self.health())
        past = replace(results, trials=results.trials // 2, stop=None, models=tuple(
            replace(line, prompt_tokens=line.prompt_tokens // 2) for line in results.models
        ))  # fmt: skip
        before = SnapshotRecord(STARTED + 100.0, 100.0, past.trials, to_json(past))
        summary = summary_at(
            RunHeader(f"run-{1 + len(self.salt)}", STARTED), now, decisions,
            times=[STARTED + place for place in range(len(decisions))],
            previous=before if self.part("previous") < 0.7 else None, alive=self.end != "killed",
        )  # fmt: skip
        details = Details(
            models=tuple(map(self.account, summary.results.models)),
            questions=self.asked(len(summary.results.models)),
            stored=sum(line.counted_steps for line in results.models) + int(9 * self.part("stored") - 3),
            meta=self.meta(), target=self.among("known", of=(self.target, self.target, None)),
            rankings=self.ranked(summary.results), course=(moment_of(before), moment_of(now)),
            judged=self.among("judged", of=JUDGED) if self.more == "judged" else {},
        )  # fmt: skip
        return replace(summary, details=details)

    def account(self, line: ModelResult) -> ModelAccount:
        """Return what is stored of a model."""
        many = self.part("account", line.model)
        long = "a reason of the server that takes more than a column has, number 7"
        reasons = {"timeout": line.missing - 1, long if many < 0.3 else "server": 1} if line.missing else {}
        return ModelAccount(
            model=line.model,
            categories=() if self.scores == "numbers" else (line.trials // 3, line.trials // 2),
            truncated=int(8 * many) if self.lost == "cut-off" else 0, missing=reasons,
            errors={"timeout": 2, "rate_limit": 5} if many > 0.5 else {},
            latency_p50_seconds=0.4 + many if line.trials else None,
            latency_p95_seconds=1.4 + many if line.trials else None,
            no_answer={"empty": line.no_answer_trials} if line.no_answer_trials else {},
        )  # fmt: skip

    def asked(self, number: int) -> tuple[QuestionAccount, ...] | None:
        """Return the questions with the answers of so many models."""
        if self.questions == "none" or self.scores != "right":
            return None
        found = []
        for place in range(14):
            of_models = []
            for model in range(number):
                trials = {"several": 4 + place % 5}.get(self.questions, int(4 * self.part("n", place, model)))
                right = int((trials + 1) * self.part("k", place, model))
                if self.questions == "suspect":
                    right = (
                        0 if place % 4 == 0 else trials * (model >= number / 2) if place % 4 == 1 else right
                    )
                of_models.append((trials, min(right, trials)))
            shares = [right / trials for trials, right in of_models if trials]
            correct = fsum(shares) / len(shares) if shares else 0.0
            task = list(TASKS)[place % 2 if self.tasks != "one" else 0]
            trials = sum(n for n, _ in of_models)
            found.append(
                QuestionAccount(task, f"q{place}", trials, correct, place % 5 / 13, tuple(of_models))
            )
        return tuple(found)

    def ranked(self, results: Results) -> tuple[tuple[str, Results], ...]:
        """Return the same answers ranked by another rubric."""
        if self.more != "ranked":
            return ()
        asked = replace(results, models=tuple(one for one in results.models if one.state != "reference"))
        lines = [
            replace(
                line,
                rank=len(asked.models) - place,
                score=line.score and line.score / 2,
                missing=line.missing + 2,
            )
            for place, line in enumerate(asked.models)
        ]
        other = replace(asked, models=tuple(lines), trials=asked.trials - int(2 * self.part("other")))
        return ((AS_RUN, asked), ("strict-2", other), ("same-3", asked))

    def meta(self) -> dict[str, str]:
        """Return the description of the run."""
        found = {"seed": "7", "config_hash": "ab12", "versions": json.dumps({"adaptive-eval": "1.0"})}
        found["config"] = json.dumps({"name": "run-1", "stopping": {"target": self.target}})
        other = self.before if self.salt else "same"
        hidden = replace(self, salt="").among("hidden", of=(("",), (" before",), ("", " before")))
        if self.before != "unknown" or self.salt not in hidden:
            seed = 8 if other == "settings" else 7
            is_other = other == "other-run" and self.part("dataset") < 0.5
            asked = {"sums-1": {"prompt": "?", "dataset": "b2" if is_other else "a1"}}
            found["identity"] = json.dumps({"tasks": asked, "models": {}, "seed": seed})
            kind = "exact" if other == "scoring" else "numeric"
            of_task: dict[str, Any] = {"scorer": {"kind": kind}}
            if self.lost == "cut-off":
                of_task["rubric"] = {"truncated": self.among("cut", of=("zero", "judged"))}
            if self.more == "together":
                of_task["answers"] = {"k": 4, "by": self.among("by", of=("all", "any", "majority"))}
            both = {"sums-1": of_task, "words-2": {"rubric": {"truncated": "zero"}}}
            found["scoring"] = json.dumps(both if self.part("scored") < 0.5 else {"sums-1": of_task})
            if self.before == "unknown" and self.part("half") < 0.5:
                del found["identity"]
        return found


JUDGED = (
    {"changed": 3, "same": 40}, {"by_order": 4, "in_either_order": 60}, {"tied_by_order": 2, "changed": 1},
    {"same": 9, "in_either_order": 8},
)  # fmt: skip
