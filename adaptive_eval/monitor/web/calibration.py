"""How earlier forecasts compare with what happened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adaptive_eval.core.results import Range, Results
from adaptive_eval.monitor.web.history import Moment

__all__ = ["Calibration", "PairForecastCheck", "TotalForecast", "calibration"]

PER_PAIR = 5
"""Forecasts shown of one pair at most: neighbouring ones say nearly the same."""


@dataclass(frozen=True, slots=True)
class TotalForecast:
    """What was forecast at one moment: trials of the whole run from its start to its end, all issued ones.

    `trials` is the moment on the run's own axis, in counted trials.
    """

    trials: int
    total: Range


@dataclass(frozen=True, slots=True)
class PairForecastCheck:
    """One forecast of one pair that has been decided since: further trials of its models until the call."""

    first: str
    second: str
    said: Range
    happened: int

    @property
    def held(self) -> bool:
        """Whether the 80 % interval contains what happened."""
        return self.said.low <= self.happened <= self.said.high


@dataclass(frozen=True, slots=True)
class Calibration:
    """Forecasts against what happened.

    Parameters
    ----------
    totals : tuple of TotalForecast
        Forecasts of the whole run, oldest first.
    issued : int
        Trials issued by now.
    finished : bool
        Whether the run has reached its goal, so that `issued` is what happened.
    pairs : tuple of PairForecastCheck
        Forecasts of decided pairs.
    """

    totals: tuple[TotalForecast, ...]
    issued: int
    finished: bool
    pairs: tuple[PairForecastCheck, ...]

    @property
    def held(self) -> tuple[int, int]:
        """How many of the pairs' 80 % intervals held what happened, and how many there are."""
        return sum(check.held for check in self.pairs), len(self.pairs)


def calibration(moments: Sequence[Moment], results: Results) -> Calibration:
    """Compare the forecasts made at `moments` with where the run stands now.

    Parameters
    ----------
    moments : sequence of Moment
        Oldest first.
    results : Results
        The run now.
    """
    forecasting = [moment for moment in moments if moment.forecast is not None]
    totals = []
    for moment in forecasting:
        assert moment.forecast is not None
        more = moment.forecast.trials
        total = Range(*(moment.issued + value for value in (more.low, more.median, more.high)))
        totals.append(TotalForecast(moment.trials, total))
    stop = results.stop
    return Calibration(
        totals=tuple(totals),
        issued=sum(line.issued for line in results.models),
        finished=stop is not None and stop.reason == "resolved",
        pairs=tuple(_checks(forecasting, results)),
    )


def _checks(moments: Sequence[Moment], results: Results) -> list[PairForecastCheck]:
    called = {
        (pair.first, pair.second): pair.decided_at for pair in results.pairs if pair.decided_at is not None
    }
    walking = {line.model for line in results.models if line.state != "reference"}
    found: dict[tuple[str, str], list[PairForecastCheck]] = {}
    for moment in moments:
        assert moment.forecast is not None
        for said in moment.forecast.pairs:
            key = said.first, said.second
            point = moment.pairs.get(key)
            if key not in called or point is None or called[key] < point.trials:
                continue
            happened = sum(name in walking for name in key) * (called[key] - point.trials)
            found.setdefault(key, []).append(PairForecastCheck(*key, said.trials, happened))
    return [check for checks in found.values() for check in checks[:: -(-len(checks) // PER_PAIR)]]
