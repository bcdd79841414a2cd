"""``Pace``: how fast the trials of an audit finish, and how long the others will take. All progress displays use it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

_WINDOW_SECONDS = 120.0
_FEWEST_ROWS = 4
_FEWEST_ARRIVALS = 2
_FEWEST_SECONDS = 0.5
_DURATIONS = 1.9
"""Durations of a trial that the window must span: then bursts of trials, one per worker, err by less than a factor of two."""
_SHORT_PAUSE = 0.25  # of the duration of a trial
_POINT_SECONDS = 0.25  # between two points that are kept


@dataclass(frozen=True)
class _Point:
    """Totals at a point in time: finished rows, arrivals, and the sum of the durations of arrivals."""

    at: float
    rows: int = 0
    arrivals: int = 0
    durations: float = 0.0


class Pace:
    """The speed of an audit, from the times at which its trials arrive.

    The first trial of every worker takes longer, since modules are imported and code is compiled in it. So the measurement begins
    at the last arrival of a trial that had begun before the first arrival. There is no estimate before it is within a factor of
    two of the truth, provided that later trials take as long as those that were measured. How many workers there are need not be
    known.
    """

    def __init__(self) -> None:
        self._first: float | None = None
        self._last_arrival: float | None = None
        self._points: deque[_Point] = deque()
        self._latest = _Point(0.0)
        self._duration = 0.0

    def arrived(self, now: float, rows: int, seconds: Sequence[float]) -> None:
        """Take note of trials that arrived together, with the number of their rows and the duration of each trial."""
        if not seconds:
            return
        before = self._latest
        alone = now - (now if self._last_arrival is None else self._last_arrival)
        longest = max(seconds)
        self._duration = max(longest, min(sum(seconds), alone))
        self._latest = _Point(now, before.rows + rows, before.arrivals + 1, before.durations + self._duration)
        self._last_arrival = now
        if self._first is None or now - longest < self._first - longest / 2:
            self._first = now if self._first is None else self._first
            self._points = deque([self._latest])
        elif now - self._points[-1].at >= _POINT_SECONDS:
            self._points.append(self._latest)
        while len(self._points) > 2 and now - self._points[1].at > _WINDOW_SECONDS and self._is_enough(self._points[1]):
            self._points.popleft()

    def pause(self, seconds: float) -> None:
        """Take note of other work that no trial waits for again. Start again if it took long in comparison with a trial."""
        if seconds > _SHORT_PAUSE * self._duration:
            self.forget()

    def forget(self) -> None:
        """Start again: nobody works, or trials that finished long ago were read."""
        self._first = None
        self._points.clear()

    def per_second(self) -> float | None:
        """Return how many rows finish per second; None before there are enough trials for an estimate."""
        if not self._points or not self._is_enough(self._points[0]):
            return None
        start, end = self._points[0], self._latest
        return (end.rows - start.rows) / (end.at - start.at)

    def quiet_seconds(self, now: float) -> float:
        """Return the seconds since the last arrival."""
        return now - self._last_arrival if self._first is not None and self._last_arrival is not None else 0.0

    def _is_enough(self, start: _Point) -> bool:
        """Return whether an estimate from this point on can be trusted."""
        rows, arrivals = self._latest.rows - start.rows, self._latest.arrivals - start.arrivals
        if rows < _FEWEST_ROWS or arrivals < _FEWEST_ARRIVALS:
            return False
        duration = (self._latest.durations - start.durations) / arrivals
        return self._latest.at - start.at >= max(_FEWEST_SECONDS, _DURATIONS * duration)
