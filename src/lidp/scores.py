"""``Scores``: the waist of the hourglass. Every trial hands these on, every statistic starts from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lidp.claim import Neighbours, neighbours_named
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

    A run that failed is an output too, and dropping it would not be valid: failing may depend on the canary. Mark it in
    ``failed``, (n,) for coins or (n, 2) for the inserted and held-out arms; its scores are then ignored (they become NaN) and
    nobody bets on it. ``sequential`` marks coin-flip scores that use coins of lower-index canaries of the same trial.

    Rows are trials in their index order: statistics that learn as they go learn from lower rows only.
    The arrays are copied and made read-only.

    Raises:
        InvalidScores: naming the trial and canary of the first offending value.
    """

    __slots__ = ("_first", "_second", "design", "failed", "sequential")

    design: Design
    failed: Bools
    """(n, runs): which runs of the mechanism failed"""
    sequential: bool

    def __init__(
        self,
        *,
        inserted: ArrayLike | None = None,
        held_out: ArrayLike | None = None,
        scores: ArrayLike | None = None,
        coins: ArrayLike | None = None,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
        failed: ArrayLike | None = None,
        sequential: bool = False,
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
        relation = neighbours_named(neighbours)
        if given == {"inserted", "held_out"}:
            trials = len(_matrix("inserted", inserted))
            if trials != len(_matrix("held_out", held_out)):
                raise InvalidScores(
                    f"inserted has {trials} trials but held_out has {len(np.asarray(held_out))}; each trial needs both arms"
                )
            self.failed = _failed_matrix(failed, (trials, 2))
            first = _score_matrix("inserted", inserted, self.failed[:, 0])
            second: NDArray[Any] = _score_matrix("held_out", held_out, self.failed[:, 1])
            layout = ReplaceOne if relation is Neighbours.REPLACE_ONE else LeaveOneOut
            self.design = layout(canaries=first.shape[1], held_out=second.shape[1])
        elif given == {"scores", "coins"}:
            self.failed = _failed_matrix(failed, (len(_matrix("scores", scores)), 1))
            first = _score_matrix("scores", scores, self.failed[:, 0])
            second = _coin_matrix(coins, first.shape)
            self.design = CoinFlip(canaries=first.shape[1], neighbours=relation)
        else:
            raise InvalidScores(
                "expected inserted and held_out, or scores and coins; "
                f"got {' and '.join(sorted(given)) if given else 'nothing'}"
            )
        self._first = first
        self._second = second
        self.sequential = bool(sequential)
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
        part.failed = self.failed[rows]
        part.sequential = self.sequential
        return part

    def __len__(self) -> int:
        return self.trials

    def __repr__(self) -> str:
        return f"Scores(trials={self.trials}, design={self.design})"

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by the names the constructor and ``.npz`` files use."""
        names = ("scores", "coins") if self.has_coins else ("inserted", "held_out")
        arrays = dict(zip(names, (self._first, self._second), strict=True))
        if self.failed.any():
            arrays["failed"] = self.failed
        return arrays

    @classmethod
    def join(cls, parts: Sequence[Scores]) -> Scores:
        """The trials of several scores of one design, one after the other."""
        if not parts:
            raise InvalidScores("no trial was given yet")
        if len(parts) == 1:
            return parts[0]
        whole = object.__new__(cls)
        whole.design, whole.sequential = parts[0].design, parts[0].sequential
        for name in ("_first", "_second", "failed"):
            setattr(whole, name, np.concatenate([getattr(part, name) for part in parts]))
        return whole


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


def _failed_matrix(values: Any, shape: tuple[int, int]) -> Bools:
    if values is None:
        return np.zeros(shape, dtype=np.bool_)
    array = np.asarray(values)
    if array.ndim == 1 and shape[1] == 1:
        array = array.reshape(-1, 1)
    if array.shape != shape or array.dtype.kind not in "biuf":
        raise InvalidScores(f"failed must be {shape[0]} trials x {shape[1]} runs of 0 and 1, got shape {array.shape}")
    return array.astype(np.bool_)


def _score_matrix(name: str, values: Any, failed: Bools) -> Floats:
    with np.errstate(over="ignore"):  # what does not fit becomes infinite, and is refused below
        array = np.array(_matrix(name, values), dtype=np.float64, order="C")
    array[failed] = 0.0
    if not np.isfinite(array).all():
        trial, canary = (int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise InvalidScores(
            f"{name} must be finite, got {array[trial, canary]} at trial {trial}, canary {canary}; "
            "if the run failed, keep the trial and mark it in failed="
        )
    array[failed] = np.nan
    return array


def _coin_matrix(values: Any, shape: tuple[int, int]) -> Bools:
    array = _matrix("coins", values)
    if array.shape != shape:
        raise InvalidScores(f"coins must have the shape of scores, {shape}, got {array.shape}")
    wrong = (array != 0) & (array != 1)
    if wrong.any():
        trial, canary = (int(i) for i in np.argwhere(wrong)[0])
        raise InvalidScores(f"coins must be 0 or 1, got {array[trial, canary]} at trial {trial}, canary {canary}")
    coins = array.astype(np.bool_)
    _check_fair(coins)
    return coins


def _check_fair(coins: Bools) -> None:
    """Refuse coins that fair, independent ones would be in fewer than one of 10^12 audits: no bound would hold for them."""
    trials, canaries = coins.shape
    heads = int(coins.sum())
    if 2 * (heads - coins.size / 2) ** 2 / coins.size > math.log(2e12):
        raise InvalidScores(
            f"coins must be fair, but {heads:,} of {coins.size:,} are 1; a canary goes in with probability 1/2, independently"
        )
    halves = canaries % 2 == 0 and bool((coins.sum(axis=1) * 2 == canaries).all())
    log_chance = trials * (math.lgamma(canaries + 1) - 2 * math.lgamma(canaries / 2 + 1) - canaries * math.log(2))
    if halves and log_chance < -math.log(1e12):
        raise InvalidScores(
            f"coins must be independent, but exactly {canaries // 2} of the {canaries} canaries are in, in every trial; "
            "flip a coin for each canary instead of inserting half of them"
        )
