"""Suggest the name that somebody may have meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``; did you mean X?`` for the known name that is most similar; empty if none is similar."""
    similar = get_close_matches(name, sorted(known), n=1)
    return f"; did you mean {similar[0]}?" if similar else ""
