"""``Scores``: the scores of trials, from which every statistical method computes its bound."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lidp import checks
from lidp.arrays import Bools, Floats
from lidp.claim import Neighbours
from lidp.designs import CoinFlip, Design, LeaveOneOut, ReplaceOne
from lidp.errors import InvalidScores, MethodNotApplicable

LEAST_CHANCE = 1e-6
"""Coins with fewer or more ones than fair coins have with this probability are refused."""
_LEAST_CHANCE_OF_ORDER = 1e-12
_LEAST_CHANCE_OF_BLOCK = 1e-12  # a long audit has many blocks, and none of them may be refused by chance


class Scores:
    """The scores of n trials; higher means "looks more inserted".

    Two layouts, by keyword:

    - ``Scores(inserted=(n, K), held_out=(n, m))``: leave-one-out scores, or replace-one scores with
      ``neighbours="replace-one"``;
    - ``Scores(scores=(n, K), coins=(n, K))``: coin-flip scores, with a coin of 1 where the canary was in.

    A failed run is an outcome, and dropping it would not be valid: failing may depend on the canary. Mark it in ``failed``,
    (n,) for coins or (n, 2) for the inserted and held-out arms; its scores are then ignored (they become NaN) and nothing is
    bet on it. ``sequential`` marks coin-flip scores that use coins of lower-index canaries of the same trial.
    ``stopped_early`` marks scores of fewer trials than planned, because the audit stopped on a refutation or is not finished:
    only anytime-valid methods accept those.

    Rows are trials in the order of their indices: methods that learn use earlier rows only.
    The order of canaries and trials must not depend on the coins. Coins that are not fair, or are in an order that fair
    coins would not give (sorted by coin, for example), are refused.
    The arrays are copied and made read-only.

    Raises:
        InvalidScores: with the trial and canary of the first invalid value.
    """

    __slots__ = ("_first", "_second", "design", "failed", "sequential", "stopped_early")

    design: Design
    failed: Bools
    """(n, runs): which runs of the mechanism failed"""
    sequential: bool
    stopped_early: bool
    """whether there are fewer trials than planned, because the audit stopped on a refutation or is not finished"""

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
        stopped_early: bool = False,
    ) -> None:
        self._fill(inserted, held_out, scores, coins, neighbours, failed, LEAST_CHANCE)
        self.sequential = bool(sequential)
        self.stopped_early = bool(stopped_early)

    def _fill(
        self,
        inserted: ArrayLike | None,
        held_out: ArrayLike | None,
        scores: ArrayLike | None,
        coins: ArrayLike | None,
        neighbours: Neighbours | str,
        failed: ArrayLike | None,
        least_chance: float,
    ) -> None:
        """Check and copy the arrays; refuse coins as unfair below ``least_chance``."""
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
        relation = checks.member(Neighbours, neighbours=neighbours)
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
            second = _coin_matrix(coins, first.shape, least_chance)
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

    @classmethod
    def of_block(
        cls,
        *,
        neighbours: Neighbours,
        inserted: ArrayLike | None = None,
        held_out: ArrayLike | None = None,
        scores: ArrayLike | None = None,
        coins: ArrayLike | None = None,
        failed: ArrayLike | None = None,
        sequential: bool = False,
    ) -> Scores:
        """Return the scores of one of many blocks of an audit, whose coins this library has drawn itself.

        Unlike the constructor, this refuses only coins that fair coins would give in fewer than one of 10^12 blocks: with
        the limit of the constructor, long audits would fail by chance.
        """
        block = object.__new__(cls)
        block._fill(inserted, held_out, scores, coins, neighbours, failed, _LEAST_CHANCE_OF_BLOCK)
        block.sequential = bool(sequential)
        block.stopped_early = False
        return block

    @property
    def trials(self) -> int:
        """The number of trials (rows)."""
        return len(self._first)

    @property
    def canaries(self) -> int:
        """The number of canaries per trial: K."""
        return self.design.canaries

    @property
    def neighbours(self) -> Neighbours:
        """The neighbour relation for which a bound from these scores holds."""
        return self.design.neighbours

    @property
    def models(self) -> int:
        """The number of models that the trials trained."""
        return self.trials * self.design.models_per_trial

    @property
    def failed_runs(self) -> int:
        """The number of runs of the mechanism that failed."""
        return int(self.failed.sum())

    @property
    def has_coins(self) -> bool:
        """Whether these are coin-flip scores."""
        return self.design.has_coins

    def arms(self) -> tuple[Floats, Floats]:
        """Return the (inserted, held-out) arrays of leave-one-out and replace-one scores."""
        if self.has_coins:
            raise MethodNotApplicable("coin-flip scores have no fixed arms; use a method for coins, such as CoinWager")
        return self._first, self._second

    def flips(self) -> tuple[Floats, Bools]:
        """Return the (scores, coins) arrays of coin-flip scores."""
        if not self.has_coins:
            raise MethodNotApplicable(
                "these scores have no coins; use a method for inserted and held-out arms, such as LiftedBetting"
            )
        return self._first, self._second

    def __getitem__(self, rows: slice) -> Scores:
        """Return the scores of a slice of the trials."""
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
        part.stopped_early = self.stopped_early
        return part

    def stored_arrays(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return the arrays that hold the scores, with one row per trial, as :meth:`with_stored_arrays` takes them."""
        return self._first, self._second, self.failed

    def with_stored_arrays(self, first: NDArray[Any], second: NDArray[Any], failed: NDArray[Any]) -> Scores:
        """Return scores of the same design and marks with other arrays, which were checked before."""
        other = self[:]
        other._first, other._second, other.failed = first, second, failed
        return other

    def stopped(self) -> Scores:
        """Return the same scores, marked as ``stopped_early``."""
        marked = self[:]
        marked.stopped_early = True
        return marked

    def as_planned(self) -> Scores:
        """Return the same scores without the mark ``stopped_early``, for provisional bounds."""
        unmarked = self[:]
        unmarked.stopped_early = False
        return unmarked

    def __len__(self) -> int:
        return self.trials

    def __repr__(self) -> str:
        return f"Scores(trials={self.trials}, design={self.design})"

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by the names the constructor and ``.npz`` files use.

        ``neighbours`` and the marks ``sequential`` and ``stopped_early`` are not arrays: pass them to the constructor
        separately. Files of :func:`lidp.score_files.write_scores` keep the marks.
        """
        names = ("scores", "coins") if self.has_coins else ("inserted", "held_out")
        arrays = dict(zip(names, (self._first, self._second), strict=True))
        if self.failed.any():
            arrays["failed"] = self.failed
        return arrays

    def to_columns(self) -> dict[str, NDArray[Any]]:
        """Return the scores as columns ``trial``, ``canary``, ``score`` and ``failed``, with one entry per trial and canary.

        Between them stands ``coin`` (0 or 1) for coin-flip scores, else ``arm`` (inserted or held_out; held-out canaries are
        numbered anew). Scores of failed runs are NaN.
        """
        arms = (self._first,) if self.has_coins else (self._first, self._second)
        sizes = [arm.shape[1] for arm in arms]
        columns = {
            "trial": np.repeat(np.arange(self.trials), sum(sizes)),
            "canary": np.tile(np.concatenate([np.arange(size) for size in sizes]), self.trials),
        }
        if self.has_coins:
            columns["coin"] = self._second.ravel().astype(np.int8)
        else:
            columns["arm"] = np.tile(np.repeat(np.array(["inserted", "held_out"], dtype=object), sizes), self.trials)
        return columns | {
            "score": np.concatenate(arms, axis=1).ravel(),
            "failed": np.repeat(self.failed, sizes, axis=1).ravel(),
        }

    def to_frame(self) -> Any:
        """Return :meth:`to_columns` as a pandas data frame (extra ``frame``).

        Written by ``to_csv``, it is a file for ``lidp bound``, unless runs failed.
        """
        from lidp._runtime.optional_packages import data_frame

        return data_frame(self.to_columns())

    @classmethod
    def join(cls, parts: Sequence[Scores]) -> Scores:
        """Return the trials of several scores of one design, concatenated."""
        if not parts:
            raise InvalidScores("there are no trials yet")
        if len(parts) == 1:
            return parts[0]
        whole = object.__new__(cls)
        whole.design, whole.sequential = parts[0].design, parts[0].sequential
        whole.stopped_early = any(part.stopped_early for part in parts)
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
            "for one canary per trial use .reshape(-1, 1), for one trial .reshape(1, -1)"
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
    with np.errstate(over="ignore"):  # values that overflow become infinite and are refused below
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


def _coin_matrix(values: Any, shape: tuple[int, int], least_chance: float) -> Bools:
    array = _matrix("coins", values)
    if array.shape != shape:
        raise InvalidScores(f"coins must have the shape of scores, {shape}, got {array.shape}")
    wrong = (array != 0) & (array != 1)
    if wrong.any():
        trial, canary = (int(i) for i in np.argwhere(wrong)[0])
        raise InvalidScores(f"coins must be 0 or 1, got {array[trial, canary]} at trial {trial}, canary {canary}")
    coins = array.astype(np.bool_)
    _check_fair(coins, least_chance)
    _check_order(coins, least_chance)
    return coins


def _check_fair(coins: Bools, least_chance: float) -> None:
    """Refuse coins that fair, independent coins would give with less than the given probability: no bound would hold."""
    trials, canaries = coins.shape
    heads = int(coins.sum())
    if _chance_of(heads, coins.size) < least_chance:
        raise InvalidScores(
            f"coins must be fair, but {heads:,} of {coins.size:,} are 1; insert each canary with probability 1/2, independently"
        )
    halves = canaries % 2 == 0 and bool((coins.sum(axis=1) * 2 == canaries).all())
    log_chance = trials * (math.lgamma(canaries + 1) - 2 * math.lgamma(canaries / 2 + 1) - canaries * math.log(2))
    if halves and log_chance < math.log(least_chance):
        raise InvalidScores(
            f"coins must be independent, but exactly {canaries // 2} of the {canaries} canaries are inserted in every trial; "
            "flip a coin for each canary instead of inserting half of them"
        )


def _check_order(coins: Bools, least_chance: float) -> None:
    """Refuse orders that do not come from fair, independent coins, such as trials in which all inserted canaries come first.

    Of such coins every two neighbours differ with probability 1/2, independently of all other neighbours: in a trial from
    canary to canary, and for one canary from trial to trial. The majority of a trial's coins is a fair coin too, where they do
    not tie, so the same holds for the majorities of consecutive trials. Those differ too rarely where trials are ordered by how
    many of their canaries are in; that is refused below ``least_chance``, because even short sequences of it make false bounds.
    """
    excess = 2 * coins.sum(axis=1, dtype=np.int64) - coins.shape[1]
    majorities = excess[excess != 0] > 0
    for one, other, limit, where in (
        (coins[:, 1:], coins[:, :-1], _LEAST_CHANCE_OF_ORDER, "neighbouring canaries of a trial"),
        (coins[1:], coins[:-1], _LEAST_CHANCE_OF_ORDER, "coins of consecutive trials"),
        (majorities[1:], majorities[:-1], least_chance, "majorities of coins of consecutive trials"),
    ):
        changes = int(np.count_nonzero(one != other))
        if _chance_of(changes, one.size) < limit:
            raise InvalidScores(
                f"coins must be independent, but {changes:,} of {one.size:,} {where} differ, where fair coins differ about "
                f"{one.size // 2:,} times; were they sorted by coin? Keep canaries and trials in an order that does not "
                "depend on the coins, such as the one in which they were drawn"
            )


def _chance_of(successes: int, size: int) -> float:
    """Return an upper bound on the probability that ``size`` fair coins fall at least as unevenly as this.

    The tail of a binomial law is at most its first term times a geometric series, since the ratio of consecutive terms falls.
    """
    more, less = max(successes, size - successes), min(successes, size - successes)
    if more == less or not size:
        return 1.0
    log_term = math.lgamma(size + 1) - math.lgamma(more + 1) - math.lgamma(less + 1) - size * math.log(2)
    return min(1.0, 2 * math.exp(log_term) / (1 - less / (more + 1)))
