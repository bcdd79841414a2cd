"""Parse the values of ``--threshold``."""

from __future__ import annotations

from lidp.errors import InvalidArgument
from lidp.stats.one_run import RankGuesses
from lidp.stats.thresholds import CentralGrid, FixedThreshold, SplitThreshold, ThresholdStrategy, UnionThreshold

_FORMS = "fixed:T, split:F, split:F,paper, union:N or rank:F"


def parse_threshold(text: str) -> ThresholdStrategy | RankGuesses:
    """Return the strategy for a text such as ``split:0.5``; ``rank:F`` is for the one-run methods, which guess by rank.

    Raises:
        InvalidArgument: if the text has none of the forms, or its number is not allowed.
    """
    kind, _, value = text.partition(":")
    number, comma, extra = value.partition(",")
    if comma and (kind, extra) != ("split", "paper"):
        raise InvalidArgument(f"threshold must be {_FORMS}, got {text!r}")
    match kind:
        case "fixed":
            return FixedThreshold(_float(number, text))
        case "split":
            fraction = _float(number, text)
            return SplitThreshold(fraction, CentralGrid()) if extra else SplitThreshold(fraction)
        case "union":
            count = _float(number, text)
            if count != int(count):
                raise InvalidArgument(f"union:N takes a whole number, got {text!r}")
            return UnionThreshold(int(count))
        case "rank":
            return RankGuesses(_float(number, text))
        case _:
            raise InvalidArgument(f"threshold must be {_FORMS}, got {text!r}")


def _float(number: str, text: str) -> float:
    try:
        value = float(number)
    except ValueError:
        raise InvalidArgument(f"threshold must be {_FORMS}, got {text!r}") from None
    if value != value or value in (float("inf"), float("-inf")):
        raise InvalidArgument(f"threshold must be {_FORMS} with a finite number, got {text!r}")
    return value
