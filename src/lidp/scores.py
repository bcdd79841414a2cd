"""``Scores``: the waist of the hourglass. Every trial hands these on, every statistic starts from them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lidp.claim import Neighbours
from lidp.designs import CoinFlip, Design, LeaveOneOut, ReplaceOne
from lidp.errors import InvalidScores, MethodNotApplicable

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class Scores:
    """The scores of n trials; higher means "looks more inserted".

    Two layouts, by keyword:

    - ``Scores(inserted=(n, K), held_out=(n, m))``: leave-one-out scores, or replace-one scores with
      ``neighbours="replace-one"``;
    - ``Scores(scores=(n, K), coins=(n, K))``: coin-flip scores, with a coin of 1 where the canary was in.

    Rows are trials in their index order: statistics that learn as they go learn from lower rows only.
    The arrays are copied and made read-only.

    Raises:
        InvalidScores: naming the trial and canary of the first offending value.
    """

    __slots__ = ("_first", "_second", "design")

    design: Design

    def __init__(
        self,
        *,
        inserted: ArrayLike | None = None,
        held_out: ArrayLike | None = None,
        scores: ArrayLike | None = None,
        coins: ArrayLike | None = None,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    ) -> None:
        given = {
            name
            for name, value in (
                ("inserted", inserted),
                ("held_out", held_out),
                ("scores", scores),
                ("coins", coins),
            )
            if value is not None
        }
        relation = _neighbours(neighbours)
        if given == {"inserted", "held_out"}:
            first = _score_matrix("inserted", inserted)
            second: NDArray[Any] = _score_matrix("held_out", held_out)
            if len(first) != len(second):
                raise InvalidScores(
                    f"inserted has {len(first)} trials but held_out has {len(second)}; each trial needs both arms"
                )
            layout = ReplaceOne if relation is Neighbours.REPLACE_ONE else LeaveOneOut
            self.design = layout(canaries=first.shape[1], held_out=second.shape[1])
        elif given == {"scores", "coins"}:
            first = _score_matrix("scores", scores)
            second = _coin_matrix(coins, first.shape)
            self.design = CoinFlip(canaries=first.shape[1], neighbours=relation)
        else:
            raise InvalidScores(
                "expected inserted and held_out, or scores and coins; "
                f"got {' and '.join(sorted(given)) if given else 'nothing'}"
            )
        self._first = first
        self._second = second
        first.flags.writeable = False
        second.flags.writeable = False

    @property
    def trials(self) -> int:
        """How many trials (rows) there are."""
        return len(self._first)

    @property
    def canaries(self) -> int:
        """How many canaries a trial tests: K."""
        return self.design.canaries

    @property
    def neighbours(self) -> Neighbours:
        """The neighbour relation that a bound from these scores is about."""
        return self.design.neighbours

    @property
    def models(self) -> int:
        """How many models the trials trained."""
        return self.trials * self.design.models_per_trial

    @property
    def has_coins(self) -> bool:
        """Whether these are coin-flip scores."""
        return isinstance(self.design, CoinFlip)

    def arms(self) -> tuple[Floats, Floats]:
        """The (inserted, held-out) arrays of leave-one-out and replace-one scores."""
        if self.has_coins:
            raise MethodNotApplicable("coin-flip scores have no fixed arms; use a method for coins, such as CoinWager")
        return self._first, self._second

    def flips(self) -> tuple[Floats, Bools]:
        """The (scores, coins) arrays of coin-flip scores."""
        if not self.has_coins:
            raise MethodNotApplicable(
                "these scores have no coins; use a method for inserted and held-out arms, such as LiftedBetting"
            )
        return self._first, self._second

    def __getitem__(self, rows: slice) -> Scores:
        """The same scores for a slice of the trials."""
        if not isinstance(rows, slice):
            raise TypeError(f"scores are sliced by trial, as in scores[:10]; got {rows!r}")
        if len(range(*rows.indices(self.trials))) == 0:
            raise InvalidScores(f"no trial is left in rows {rows.start}:{rows.stop} of {self.trials}")
        part = object.__new__(Scores)
        part.design = self.design
        part._first = self._first[rows]
        part._second = self._second[rows]
        return part

    def __len__(self) -> int:
        return self.trials

    def __repr__(self) -> str:
        return f"Scores(trials={self.trials}, design={self.design})"

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by the names the constructor and ``.npz`` files use."""
        names = ("scores", "coins") if self.has_coins else ("inserted", "held_out")
        return dict(zip(names, (self._first, self._second), strict=True))


def _neighbours(value: Neighbours | str) -> Neighbours:
    try:
        return Neighbours(value)
    except ValueError:
        known = " or ".join(repr(str(n)) for n in Neighbours)
        raise InvalidScores(f"neighbours must be {known}, got {value!r}") from None


def _matrix(name: str, values: Any) -> NDArray[Any]:
    try:
        array = np.asarray(values)
    except ValueError:
        raise InvalidScores(f"{name} must be a rectangular array of trials x canaries; its rows differ in length") from None
    if array.dtype.kind not in "biuf":
        raise InvalidScores(f"{name} must hold real numbers, got an array of type {array.dtype}")
    if array.ndim != 2:
        raise InvalidScores(
            f"{name} must have two axes, trials x canaries, got shape {array.shape}; "
            "one canary a trial is .reshape(-1, 1), one trial is .reshape(1, -1)"
        )
    if 0 in array.shape:
        what = "trial" if array.shape[0] == 0 else "canary"
        raise InvalidScores(f"{name} must hold at least one {what}, got shape {array.shape}")
    return array


def _score_matrix(name: str, values: Any) -> Floats:
    array = np.array(_matrix(name, values), dtype=np.float64, order="C")
    if not np.isfinite(array).all():
        trial, canary = (int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise InvalidScores(
            f"{name} must be finite, got {array[trial, canary]} at trial {trial}, canary {canary}; "
            "a failed run is an output too: keep it, with one fixed score for all its canaries"
        )
    return array


def _coin_matrix(values: Any, shape: tuple[int, int]) -> Bools:
    array = _matrix("coins", values)
    if array.shape != shape:
        raise InvalidScores(f"coins must have the shape of scores, {shape}, got {array.shape}")
    wrong = (array != 0) & (array != 1)
    if wrong.any():
        trial, canary = (int(i) for i in np.argwhere(wrong)[0])
        raise InvalidScores(f"coins must be 0 or 1, got {array[trial, canary]} at trial {trial}, canary {canary}")
    return array.astype(np.bool_)
