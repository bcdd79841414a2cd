"""``PairTarget``: a mechanism and two neighbouring data sets, for audits that use nothing but outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lidp.errors import InvalidArgument


@dataclass(frozen=True)
class PairTarget:
    """The target of a pair audit, which infers from an output which of two data sets the mechanism got.

    Attributes:
        mechanism: ``mechanism(dataset, rng) -> output`` with a numpy ``Generator`` for all its randomness. Outputs may be numbers,
            vectors, strings, tuples, lists of any length, dicts, None. If it also has ``many(dataset, size, rng)``, which returns
            the outputs of ``size`` independent runs (a list, or an array with one row per run), that is used instead.
        d0, d1: data sets that are neighbours in the sense of the claim.
        features: ``features(output) -> sequence of numbers``, given to the classifier in addition to the output's own numbers.
        name: the name of the target in results.
    """

    mechanism: Callable[..., Any]
    d0: Any
    d1: Any
    features: Callable[[Any], Any] | None = None
    name: str = field(default="")

    def __post_init__(self) -> None:
        if not callable(self.mechanism):
            raise InvalidArgument(f"a mechanism must be callable as mechanism(dataset, rng), got {self.mechanism!r}")
        if self.features is not None and not callable(self.features):
            raise InvalidArgument(f"features must be callable as features(output), got {self.features!r}")
        if not self.name:
            named = getattr(self.mechanism, "__name__", None) or type(self.mechanism).__name__
            object.__setattr__(self, "name", named)

    @property
    def parts(self) -> tuple[Any, ...]:
        """Everything that determines what is audited."""
        return self.mechanism, self.d0, self.d1, self.features
