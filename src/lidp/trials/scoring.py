"""Scores that use more of a trial than one output and one canary, and why they keep the audit valid.

Any function of the output and the canary is a valid score. A score may also use other things of the trial, as long as
(tested canary, other inserted canaries, everything else the score uses) has the same joint law in both arms:

- :class:`SelfNormalised` compares a canary's raw score with those of auxiliary canaries on the same output. These are fresh
  draws, never inserted, disjoint from all tested canaries, and as many in both arms; so what the score uses besides output
  and canary is independent of which arm it is.
- :class:`Decorrelated` subtracts what the other inserted canaries are known to contribute. The others must be equally many in
  both arms. Leave-one-out has K-1 of them in D0, hence for an inserted canary the K-1 others of D1. In replace-one a held-out
  canary is scored on a model with K inserted ones and must leave one of them out too: subtracting all K would make the score
  distinguish the arms by itself, and refute a mechanism that releases nothing. For coin flips only coins *already revealed* may be
  used, those of lower index. Such scores are ``sequential``: a method may bet on them in order, but a statistic that uses all
  scores of a trial at once would learn coins from them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp._runtime.tracebacks import format_failure
from lidp._runtime.user_code import must_propagate, user_code
from lidp.arrays import Floats, Ints
from lidp.errors import InvalidArgument


@dataclass(frozen=True)
class ScoringContext:
    """Everything about one arm that a score may use.

    ``others[k]`` are the indices in ``inserted`` of the canaries whose contributions may be subtracted from the score of the
    tested canary k. They are computed on access, since all of them together would take memory quadratic in the canaries.
    """

    output: Any
    tested: Any
    inserted: Any
    others: Sequence[Ints]
    auxiliary: Any
    together: bool = True
    """whether canaries may be scored together; see :func:`raw_scores`"""
    problems: list[str] = field(default_factory=list)
    """why canaries could not be scored"""
    notes: dict[str, Any] = field(default_factory=dict)
    """numbers or text that the score wants kept with the trial, as metadata"""
    evidence: dict[str, Floats] = field(default_factory=dict)
    """arrays that the score wants kept with the trial, for ``lidp diagnose``"""


class TrialScore(Protocol):
    """A score of all tested canaries of an arm at once."""

    @property
    def auxiliary(self) -> int:
        """The number of auxiliary canaries that the score needs."""

    @property
    def sequential(self) -> bool:
        """Whether the score of a coin-flip canary uses coins of lower-index canaries."""

    def score_trial(self, context: ScoringContext, *prepared: Any) -> Floats:
        """Return one score per tested canary."""
        ...


RawScore = Callable[..., Any]


def raw_scores(score: RawScore, context: ScoringContext, canaries: Any, *prepared: Any) -> Floats:
    """Return the plain scores of canaries, from ``score.many`` if it exists, otherwise one by one.

    Designs with two arms always score one by one: the rounding of sums depends on the shape of arrays, so the scores of a batch
    reveal its size. Where all models give nearly equal scores, that alone would distinguish an arm of 16 canaries from one of a
    single canary.

    If the score of a canary raises or is not finite, only that canary gets NaN. If it affected the others or failed the whole
    run, the outcome would depend on all tested canaries, which are inserted in one arm and not in the other: the arms would
    differ although the mechanism does not.
    """
    many = getattr(score, "many", None)
    if many is not None and context.together:
        try:
            with user_code():
                scores = np.asarray(many(context.output, canaries, *prepared), dtype=np.float64)
            if scores.shape == (len(canaries),):
                return scores
            context.problems.append(f"score.many gave shape {scores.shape} for {len(canaries)} canaries")
        except BaseException as error:  # the loop below finds the canary that raises
            if must_propagate(error):
                raise
            context.problems.append(format_failure(error, frames=4))

    def one(k: int) -> Any:
        if many is None:
            return score(context.output, canaries[k], *prepared)
        return np.asarray(many(context.output, canaries[k : k + 1], *prepared)).reshape(1)[0]

    return np.array([guarded(partial(one, k), context) for k in range(len(canaries))], dtype=np.float64)


def guarded(compute: Callable[[], Any], context: ScoringContext) -> float:
    """Return the computed number, or NaN after noting the reason."""
    try:
        with user_code():
            return float(compute())
    except BaseException as error:  # whatever a score may raise
        if must_propagate(error):
            raise
        context.problems.append(format_failure(error, frames=4))
        return float("nan")


@dataclass(frozen=True)
class PlainScore:
    """``score(output, canary)`` for each tested canary: the meaning of a bare callable."""

    score: RawScore

    auxiliary: int = 0
    sequential: bool = False

    def score_trial(self, context: ScoringContext, *prepared: Any) -> Floats:
        return raw_scores(self.score, context, context.tested, *prepared)


@dataclass(frozen=True)
class SelfNormalised:
    """A raw score, relative to the raw scores of auxiliary canaries on the same output.

    ``kind`` is "z" (distance from their mean in standard deviations) or "rank" (the fraction of them that lies below, ties
    counting half). This removes differences between models that all canaries share.

    Guarantee: keeps the audit valid; auxiliary canaries are fresh draws that are in no data set.
    """

    score: RawScore
    auxiliary: int = 64
    kind: str = "z"

    sequential: bool = False

    def __post_init__(self) -> None:
        checks.count(auxiliary=self.auxiliary)
        if self.kind not in ("z", "rank"):
            raise InvalidArgument(f"kind must be 'z' or 'rank', got {self.kind!r}")
        if self.kind == "z" and self.auxiliary < 2:
            raise InvalidArgument(f"a z-score needs at least 2 auxiliary canaries, got {self.auxiliary}")

    def score_trial(self, context: ScoringContext, *prepared: Any) -> Floats:
        raw = raw_scores(self.score, context, context.tested, *prepared)
        reference = raw_scores(self.score, context, context.auxiliary, *prepared)
        reference = np.where(np.isfinite(reference), reference, 0.0)  # equally many in both arms
        if self.kind == "rank":
            ordered = np.sort(reference)
            below, up_to = (np.searchsorted(ordered, raw, side=side) for side in ("left", "right"))
            ranks: Floats = (below + up_to) / (2 * len(ordered))
            return ranks
        spread = reference.std()
        normalised: Floats = (raw - reference.mean()) / (spread if spread > 0 else 1.0)
        return normalised


@dataclass(frozen=True)
class Decorrelated:
    """A raw score minus the known contributions of other inserted canaries.

    ``contribution(canary, other) -> float`` is what an inserted ``other`` adds to the raw score of ``canary``: the inner
    product, for a sum of vectors scored by inner products. May have ``many(canary, others) -> array``.

    Guarantee: keeps the audit valid; equally many others are subtracted in both arms, and for coin flips only those whose coins
    are already revealed.
    """

    score: RawScore
    contribution: Callable[[Any, Any], float]

    auxiliary: int = 0
    sequential: bool = True

    def score_trial(self, context: ScoringContext, *prepared: Any) -> Floats:
        raw = raw_scores(self.score, context, context.tested, *prepared)
        for k, (canary, others) in enumerate(zip(context.tested, context.others, strict=True)):
            raw[k] -= guarded(partial(self._contributions, canary, context.inserted, others), context)
        return raw

    def _contributions(self, canary: Any, inserted: Any, indices: NDArray[np.int64]) -> float:
        others = inserted[indices] if isinstance(inserted, np.ndarray) else [inserted[i] for i in indices]
        many = getattr(self.contribution, "many", None)
        if many is not None:
            return float(np.sum(many(canary, others)))
        return sum(float(self.contribution(canary, other)) for other in others)


def watches(score: Any) -> bool:
    """Return whether a score needs the mechanism to watch the tested canaries while it runs.

    The data set of its target has ``watching(canaries)``, which returns the data with these canaries watched, inserted or not.
    """
    return bool(getattr(score, "watches", False))


def as_trial_score(score: Any) -> TrialScore:
    """Return a score as a trial score; bare callables are wrapped."""
    trial_score: TrialScore = score if hasattr(score, "score_trial") else PlainScore(score)
    return trial_score
