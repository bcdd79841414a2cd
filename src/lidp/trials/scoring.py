"""Scores that use more of a trial than one output and one canary, and why they keep the test valid.

Any function of the output and the canary is a valid score. A score may also use other things of the trial, as long as
(tested canary, other inserted canaries, everything else the score uses) has the same joint law in both arms:

- :class:`SelfNormalised` compares a canary's raw score with those of auxiliary canaries on the same output. These are fresh
  draws, never inserted, disjoint from all tested canaries, and as many in both arms; so what the score uses besides output
  and canary is independent of which arm it is.
- :class:`Decorrelated` subtracts what the other inserted canaries are known to contribute. The others must be equally many in
  both arms. Leave-one-out has K-1 of them in D0, hence for an inserted canary the K-1 others of D1. In replace-one a held-out
  canary is scored on a model with K inserted ones and must leave one of them out too: subtracting all K would make the score
  tell the arms apart by itself, and refute a mechanism that releases nothing. For coin flips only coins *already revealed* may be
  used, those of lower index; such scores are ``sequential``: they may be wagered on in order, but a statistic that looks at all
  scores of a trial at once would see coins through them.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp._runtime.user_code import must_propagate, user_code
from lidp.errors import InvalidArgument

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Scene:
    """All of an arm that a score may look at.

    ``others[k]`` are the indices into ``inserted`` of the canaries that may be subtracted for the tested canary k. They are made
    when they are asked for: all of them together take memory that grows with the square of the number of canaries.
    """

    output: Any
    tested: Any
    inserted: Any
    others: Sequence[Ints]
    auxiliary: Any
    together: bool = True
    """whether canaries may be scored together; see :func:`raw_scores`"""
    trouble: list[str] = field(default_factory=list)
    """why canaries could not be scored, for the record"""
    notes: dict[str, Any] = field(default_factory=dict)
    """numbers or text that the score wants kept with the trial, as metadata"""


class TrialScore(Protocol):
    """A score of all tested canaries of an arm at once."""

    @property
    def auxiliary(self) -> int:
        """How many auxiliary canaries it needs."""

    @property
    def sequential(self) -> bool:
        """Whether the score of a coin-flip canary uses coins of lower-index canaries."""

    def score_trial(self, scene: Scene, *prepared: Any) -> Floats:
        """A score per tested canary."""
        ...


RawScore = Callable[..., Any]


def raw_scores(score: RawScore, scene: Scene, canaries: Any, *prepared: Any) -> Floats:
    """The plain scores of some canaries: by ``score.many`` if there is one, else one by one.

    With two arms, one by one in any case: sums are rounded by the shape of arrays, so that scores of a batch know how many they
    are. Where all models score alike, or nearly, that alone would tell an arm of 16 canaries from one of a single canary.

    A canary whose score raises or is not finite is NaN, *alone*. If it spoiled the others, or failed the whole run, that would
    be a function of all tested canaries, which are inserted in one arm and not in the other: the arms would differ without
    any help from the mechanism.
    """
    many = getattr(score, "many", None)
    if many is not None and scene.together:
        try:
            with user_code():
                found = np.asarray(many(scene.output, canaries, *prepared), dtype=np.float64)
            if found.shape == (len(canaries),):
                return found
            scene.trouble.append(f"score.many gave shape {found.shape} for {len(canaries)} canaries")
        except BaseException as error:  # which canary did it is found out below
            if must_propagate(error):
                raise
            scene.trouble.append(traceback.format_exc(limit=-4))

    def one(k: int) -> Any:
        if many is None:
            return score(scene.output, canaries[k], *prepared)
        return np.asarray(many(scene.output, canaries[k : k + 1], *prepared)).reshape(1)[0]

    return np.array([guarded(partial(one, k), scene) for k in range(len(canaries))], dtype=np.float64)


def guarded(compute: Callable[[], Any], scene: Scene) -> float:
    """A number, or NaN with the reason noted."""
    try:
        with user_code():
            return float(compute())
    except BaseException as error:  # whatever a score may raise
        if must_propagate(error):
            raise
        scene.trouble.append(traceback.format_exc(limit=-4))
        return float("nan")


@dataclass(frozen=True)
class PlainScore:
    """``score(output, canary)`` for each tested canary: what a bare callable means."""

    score: RawScore

    auxiliary: int = 0
    sequential: bool = False

    def score_trial(self, scene: Scene, *prepared: Any) -> Floats:
        return raw_scores(self.score, scene, scene.tested, *prepared)


@dataclass(frozen=True)
class SelfNormalised:
    """A raw score, relative to the raw scores of auxiliary canaries on the same output.

    ``kind`` is "z" (distance from their mean in standard deviations) or "rank" (the fraction of them that lies below, ties
    counting half). Removes what differs from model to model rather than from canary to canary.

    Guarantee: keeps the test valid; auxiliary canaries are fresh draws that are in no data set.
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

    def score_trial(self, scene: Scene, *prepared: Any) -> Floats:
        raw = raw_scores(self.score, scene, scene.tested, *prepared)
        reference = raw_scores(self.score, scene, scene.auxiliary, *prepared)
        reference = np.where(np.isfinite(reference), reference, 0.0)  # as many in both arms, whatever happens
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

    Guarantee: keeps the test valid; exactly as many others are subtracted in both arms, and for coin flips only those whose coins
    are revealed already.
    """

    score: RawScore
    contribution: Callable[[Any, Any], float]

    auxiliary: int = 0
    sequential: bool = True

    def score_trial(self, scene: Scene, *prepared: Any) -> Floats:
        raw = raw_scores(self.score, scene, scene.tested, *prepared)
        for k, (canary, places) in enumerate(zip(scene.tested, scene.others, strict=True)):
            raw[k] -= guarded(partial(self._contributions, canary, scene.inserted, places), scene)
        return raw

    def _contributions(self, canary: Any, inserted: Any, places: NDArray[np.int64]) -> float:
        others = inserted[places] if isinstance(inserted, np.ndarray) else [inserted[i] for i in places]
        many = getattr(self.contribution, "many", None)
        if many is not None:
            return float(np.sum(many(canary, others)))
        return sum(float(self.contribution(canary, other)) for other in others)


def as_trial_score(score: Any) -> TrialScore:
    """A trial score, from one or from a bare callable."""
    found: TrialScore = score if hasattr(score, "score_trial") else PlainScore(score)
    return found
