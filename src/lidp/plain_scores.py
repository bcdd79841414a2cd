"""Scores as plain data for JSON, and the scores of a result that was read from JSON without them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from lidp.claim import Neighbours
from lidp.errors import MissingScores
from lidp.scores import Scores

_WITH_GAPS = ("inserted", "held_out", "scores")
"""Arrays whose scores of failed runs are NaN, which JSON does not have: they become null."""


def plain_arrays(scores: Scores) -> dict[str, list[list[Any]]]:
    """Return the arrays of scores as lists, ready for JSON."""
    arrays = {name: array.tolist() for name, array in scores.to_arrays().items()}
    for name in set(_WITH_GAPS) & set(arrays):
        arrays[name] = [[None if value != value else value for value in row] for row in arrays[name]]
    return arrays


def scores_from_plain(plain: Mapping[str, Any], *, neighbours: Neighbours, sequential: bool, stopped_early: bool) -> Scores:
    """Return the scores whose arrays :func:`plain_arrays` returned."""
    arrays = dict(plain)
    for name in set(_WITH_GAPS) & set(arrays):
        arrays[name] = [[float("nan") if value is None else value for value in row] for row in arrays[name]]
    return Scores(**arrays, neighbours=neighbours, sequential=sequential, stopped_early=stopped_early)


class AbsentScores(Scores):
    """The scores of a result that was read from JSON without them: only the number of failed runs is known.

    Everything else raises :class:`lidp.errors.MissingScores`.
    """

    __slots__ = ("_failed_runs",)

    def __init__(self, failed_runs: int) -> None:
        self._failed_runs = failed_runs

    @property
    def failed_runs(self) -> int:
        """The number of failed runs."""
        return self._failed_runs

    def __getattr__(self, name: str) -> NoReturn:  # the attributes of Scores that nobody has set
        if name.startswith("__"):
            raise AttributeError(name)  # a protocol of Python that scores do not follow
        raise MissingScores(
            "this result was read from JSON that does not hold its scores; read the store with lidp.result_of, or write the JSON "
            "with to_json(scores=True)"
        )

    def __reduce__(self) -> tuple[type[AbsentScores], tuple[int]]:
        return AbsentScores, (self._failed_runs,)

    def __repr__(self) -> str:
        return "AbsentScores()"
