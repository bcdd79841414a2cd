"""``Rate``: how fast trials finish, from a few observations of how many are done."""

from __future__ import annotations

from collections import deque

_WINDOW_SECONDS = 120.0
_FEWEST = 4  # changes that an estimate needs


class Rate:
    """Observations of a count that grows in steps, each with its time in seconds."""

    def __init__(self) -> None:
        self._changes: deque[tuple[float, int]] = deque()

    def observe(self, now: float, done: int) -> None:
        """Take note of how many are done. A smaller count than before starts again."""
        if self._changes and done < self._changes[-1][1]:
            self._changes.clear()
        if not self._changes or done != self._changes[-1][1]:
            self._changes.append((now, done))
        while len(self._changes) > _FEWEST and now - self._changes[1][0] > _WINDOW_SECONDS:
            self._changes.popleft()

    def forget(self) -> None:
        """Start again: nobody works, or old trials have been read at once."""
        self._changes.clear()

    def per_second(self) -> float | None:
        """Return how many finish per second; None before there are enough observations for an estimate."""
        if len(self._changes) < _FEWEST:
            return None
        (start, before), (end, after) = self._changes[0], self._changes[-1]
        return (after - before) / (end - start) if end > start else None

    def quiet_seconds(self, now: float) -> float:
        """Return the seconds since the last change."""
        return now - self._changes[-1][0] if self._changes else 0.0
