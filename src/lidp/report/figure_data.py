"""What the figures of a result show, as plain numbers. Drawing is done elsewhere, and sizes do not grow with the trials."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from lidp.arrays import Bools, Floats, Ints
from lidp.claim import Claim
from lidp.epsilon_bound import EpsilonBound, Guarantee
from lidp.result import AuditResult, Verdict
from lidp.rounding import at_least, at_most, claimed, exact
from lidp.scores import Scores

STEPS = 400
BINS = 60
_FAR = 1e100  # larger scores are clipped to this: their sums and squares would overflow
_OUTSIDE = 0.0005  # the share of scores at each end that may lie outside the bins, so that outliers do not hide the rest


def claimed_epsilon(result: AuditResult) -> str:
    """Return the claimed ε as text: as a person would write it, rounded up if it has many digits.

    A rounded ε that would exceed a bound that the claimed one does not is shown exactly instead.
    """
    return claim_words(result.claim, (result.bound.epsilon, result.bound.epsilon_point))


def claim_words(claim: Claim, bounds: Iterable[float]) -> str:
    """Return the claimed ε as text, beside these bounds: see :func:`claimed_epsilon`."""
    epsilon = claim.epsilon
    rounded = claimed(epsilon) if claim.curve is None else at_most(epsilon, 6)
    return exact(epsilon) if any(epsilon < bound <= float(rounded) for bound in bounds) else rounded


@dataclass(frozen=True)
class Gauge:
    """Claim and bound on a line from 0 to ``most``, with the label of each.

    If the audit tested a curve, the bound is that on ε at the claim's δ alone.
    """

    bound: float
    claim: float
    most: float
    refuted: bool
    bound_words: str
    claim_text: str

    @property
    def claim_words(self) -> str:
        """The label of the claim."""
        return f"claimed {self.claim_text}"

    @classmethod
    def of(cls, result: AuditResult) -> Gauge:
        bound, claim = result.bound.epsilon_point, result.claim.epsilon
        tested = result.bound.point or result.bound
        verdict = result.verdict if result.bound.point is None else result.verdicts["point"]
        credible = tested.guarantee is Guarantee.CREDIBLE
        word = "provisional" if result.provisional else "credible" if credible else "at least"
        return cls(
            bound=bound,
            claim=claim,
            most=1.15 * max(bound, claim) or 1.0,
            refuted=verdict is Verdict.REFUTED,
            bound_words=f"{word} {at_least(bound, above=claim)}",
            claim_text=claimed_epsilon(result),
        )


@dataclass(frozen=True)
class BoundPath:
    """The bound by number of trials: after ``trials[i]`` trials it was ``epsilons[i]``.

    It starts at (0, 0) and ends at the last trial. A path of more than ``STEPS`` steps is thinned; the points that are kept are
    exact and include the one at which the claim was refuted. Methods that are not anytime-valid have no path, only a bound at
    the end.

    If the audit tested a curve, ε is that of the curve with the effective noise, ``fell_at`` is the number of trials after which
    the claimed curve was refuted, if it was, and ``point`` is the path of the bound on ε at the claim's δ alone.
    """

    trials: Ints
    epsilons: Floats
    claim: float
    claim_text: str
    planned: int
    has_path: bool
    fell_at: int | None = None
    point: BoundPath | None = None

    @classmethod
    def of(cls, result: AuditResult) -> BoundPath:
        words, refuted = claimed_epsilon(result), result.verdict is Verdict.REFUTED
        anytime, planned = result.method.anytime, result.planned_trials
        return cls.of_bound(result.bound, result.claim, planned=planned, anytime=anytime, refuted=refuted, claim_text=words)

    @classmethod
    def of_bound(
        cls, bound: EpsilonBound, claim: Claim, *, planned: int, anytime: bool, refuted: bool, claim_text: str
    ) -> BoundPath:
        """Return the path of a bound, and of the bound on the point beside it if there is one."""
        point = (
            None
            if bound.point is None
            else cls.of_bound(bound.point, claim, planned=planned, anytime=anytime, refuted=refuted, claim_text=claim_text)
        )
        last = (bound.trials, bound.epsilon)
        steps = [(0, 0.0), *bound.path]
        if steps[-1] != last:
            steps.append(last)
        about_curve = bound.curve is not None
        fell = next(
            (
                number
                for number, (trials, epsilon) in enumerate(steps)
                if (trials == bound.fell_at if about_curve else epsilon > claim.epsilon)
            ),
            0,
        )
        kept = thinned(len(steps), STEPS, keep=(fell,))
        return cls(
            trials=np.array([steps[number][0] for number in kept], dtype=np.int64),
            epsilons=np.array([steps[number][1] for number in kept], dtype=np.float64),
            claim=claim.epsilon,
            claim_text=claim_text,
            planned=planned,
            has_path=bool(bound.path) or anytime,
            fell_at=bound.fell_at if refuted else None,
            point=point,
        )


@dataclass(frozen=True)
class ScoreDistributions:
    """The distributions of the scores of inserted and held-out canaries, over the same bins.

    ``inserted[b]`` is the share of all scores of inserted canaries in bin b. ``outside`` counts the scores outside the bins, at
    most one in a thousand. Failed runs have no scores and are in no share.
    """

    edges: Floats
    inserted: Floats
    held_out: Floats
    count_inserted: int
    count_held_out: int
    mean_inserted: float
    mean_held_out: float
    outside: int

    @classmethod
    def of(cls, scores: Scores) -> ScoreDistributions:
        inserted, held_out = by_arm(scores)
        edges = _edges(np.concatenate([inserted, held_out]))
        counts = [np.histogram(arm, edges)[0] for arm in (inserted, held_out)]
        shares = [count / max(1, len(arm)) for count, arm in zip(counts, (inserted, held_out), strict=True)]
        return cls(
            edges=edges,
            inserted=shares[0],
            held_out=shares[1],
            count_inserted=len(inserted),
            count_held_out=len(held_out),
            mean_inserted=float(inserted.mean()) if len(inserted) else 0.0,
            mean_held_out=float(held_out.mean()) if len(held_out) else 0.0,
            outside=int(len(inserted) + len(held_out) - counts[0].sum() - counts[1].sum()),
        )


@dataclass(frozen=True)
class CanaryCorrelation:
    """The correlation between the scores of canaries of one trial, beyond the effect of inserting them.

    ``matrix[i, j]`` is the correlation over trials between the scores of canaries i and j, for those in ``shown``; for coin
    flips the mean score of each side of the coin is subtracted first. ``mean`` is over all pairs, shown or not. The mean over
    all canaries is as precise as over ``effective`` independent ones. ``noise`` is the standard error of a single correlation.
    """

    arm: str
    canaries: int
    trials: int
    mean: float
    shown: Ints
    matrix: Floats

    LARGEST = 24

    @property
    def noise(self) -> float:
        """The standard error of one correlation between independent canaries."""
        return float(1 / np.sqrt(self.trials))

    @property
    def effective(self) -> float:
        """The number of independent canaries whose mean would be as precise."""
        inflation = 1 + (self.canaries - 1) * self.mean
        return self.canaries if inflation <= 0 else min(self.canaries, self.canaries / inflation)

    @classmethod
    def of(cls, scores: Scores) -> tuple[CanaryCorrelation, ...]:
        """Return one per arm; none for arms of one canary, fewer than three trials, or scores that never vary."""
        if scores.has_coins:
            values, coins = scores.flips()
            ran = ~scores.failed[:, 0]
            correlations = [cls._of_arm("all", _without_sides(_scaled(values[ran]), coins[ran]))]
        else:
            correlations = [
                cls._of_arm(name, _scaled(values[~failed]))
                for name, values, failed in zip(("inserted", "held-out"), scores.arms(), scores.failed.T, strict=True)
            ]
        return tuple(one for one in correlations if one is not None)

    @classmethod
    def _of_arm(cls, arm: str, values: Floats) -> CanaryCorrelation | None:
        trials, canaries = values.shape
        if trials < 3 or canaries < 2:
            return None
        centred = values - values.mean(axis=0)
        scale = np.sqrt((centred**2).mean(axis=0))
        varies = scale > 1e-12  # smaller spreads are rounding errors
        if varies.sum() < 2:
            return None
        unit = centred[:, varies] / scale[varies]
        canaries = unit.shape[1]
        # All pairs at once: the mean square of a trial's sum is the sum of all entries of the correlation matrix.
        mean = float(((unit.sum(axis=1) ** 2).mean() - canaries) / (canaries * (canaries - 1)))
        shown = np.array(thinned(canaries, cls.LARGEST), dtype=np.int64)
        # Not a matrix product: its threads would wait for busy cores far longer than this small sum takes.
        picked = np.ascontiguousarray(unit[:, shown])
        matrix = np.clip(np.einsum("ti,tj->ij", picked, picked) / trials, -1.0, 1.0)
        return cls(arm, canaries, trials, min(1.0, mean), np.flatnonzero(varies)[shown], matrix)


def by_arm(scores: Scores) -> tuple[Floats, Floats]:
    """Return all scores of inserted and of held-out canaries, without failed runs."""
    if not scores.has_coins:
        inserted, held_out = scores.arms()
        return _tamed(inserted[~scores.failed[:, 0]].ravel()), _tamed(held_out[~scores.failed[:, 1]].ravel())
    values, coins = scores.flips()
    ran = ~scores.failed[:, 0]
    values, coins = _tamed(values[ran]), coins[ran]
    return values[coins], values[~coins]


def _tamed(values: Floats) -> Floats:
    """Return the scores, clipped to ±``_FAR``."""
    return np.clip(values, -_FAR, _FAR)


def _scaled(values: Floats) -> Floats:
    """Return the scores divided by the largest, which keeps their correlations."""
    tame = _tamed(values)
    return tame / max(float(np.abs(tame).max(initial=0.0)), 1e-300)


def thinned(size: int, most: int, keep: Iterable[int] = ()) -> list[int]:
    """Return at most ``most`` indices below ``size``, evenly spread, including the first, the last and those in ``keep``."""
    if size <= most:
        return list(range(size))
    kept = sorted(set(keep) | {0, size - 1})
    evenly = np.linspace(0, size - 1, most - len(kept) + 2).round().astype(int)
    return sorted({*evenly.tolist(), *kept})


def _edges(values: Floats) -> Floats:
    if not len(values):
        return np.linspace(0.0, 1.0, 2)
    low, high = np.quantile(values, [_OUTSIDE, 1 - _OUTSIDE])
    lowest, highest = values.min(), values.max()
    # Cut off an end only if it is far away.
    width = high - low
    low, high = (lowest if low - lowest <= width / 4 else low), (highest if highest - high <= width / 4 else high)
    if not high > low:
        reach = max(0.5, abs(low) * 1e-6)
        return np.linspace(low - reach, high + reach, 4)
    return np.linspace(low, high, BINS + 1)


def _without_sides(values: Floats, coins: Bools) -> Floats:
    """Return the scores minus the mean score of the same canary on the same side of the coin."""
    left = np.array(values)
    for side in (coins, ~coins):
        count = np.maximum(side.sum(axis=0), 1)
        mean = np.where(side, values, 0.0).sum(axis=0) / count
        left -= np.where(side, mean, 0.0)
    return left
