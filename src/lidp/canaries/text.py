"""Text canaries: new tokens, random words, or texts sampled from the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lidp import checks
from lidp.errors import InvalidData

KINDS = ("new-tokens", "random-tokens", "sampled")
_LETTERS = np.array(list("bcdfghjklmnpqrstvwxz"))


@dataclass(frozen=True)
class TextCanaries:
    """Texts to plant, and the new tokens in them."""

    texts: tuple[str, ...]
    new_tokens: tuple[str, ...] = ()


def text_canaries(
    kind: str, texts: Sequence[str], size: int, rng: np.random.Generator, *, length: int = 16, secret: int = 0
) -> TextCanaries:
    """Return ``size`` texts: a new token, ``length`` random words or a text of the data, and ``secret`` random words."""
    checks.one_of(KINDS, canary_text=kind)
    words = sorted({word for text in texts for word in text.split()})
    if not words:
        raise InvalidData("the texts of the data have no words; name the column of the texts by --text-field")
    tails = [" ".join(rng.choice(words, secret)) for _ in range(size)]
    if kind == "new-tokens":
        tokens = _new_tokens(set(words), size, rng)
        return TextCanaries(tuple(f"{token} {tail}".strip() for token, tail in zip(tokens, tails, strict=True)), tokens)
    if kind == "random-tokens":
        heads = [" ".join(rng.choice(words, length)) for _ in range(size)]
    else:
        heads = [texts[row] for row in rng.integers(0, len(texts), size)]
    return TextCanaries(tuple(f"{head} {tail}".strip() for head, tail in zip(heads, tails, strict=True)))


def _new_tokens(known: set[str], size: int, rng: np.random.Generator) -> tuple[str, ...]:
    tokens: dict[str, None] = {}
    while len(tokens) < size:
        letters = _LETTERS[rng.integers(0, len(_LETTERS), (size - len(tokens), 12))]
        tokens.update(dict.fromkeys(word for word in map("".join, letters) if word not in known))
    return tuple(tokens)
