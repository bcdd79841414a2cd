"""Text canaries for language models: tokens of their own, random words, or text sampled like the data."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np

from lidp import checks
from lidp.arrays import Ints
from lidp.errors import InvalidArgument

_PREFIX = "<canary-"
_NEW_TOKEN = re.compile(r"<canary-[0-9a-f]{16}>")
_MAX_ROUNDS = 100
"""How often texts that occur already are drawn again before the drawing fails."""


class TextCanaryKind(StrEnum):
    """The kind of text canaries."""

    NEW_TOKENS = "new-tokens"
    """Tokens that occur in no record and in no other canary. They must be added to the tokenizer, whoever is inserted."""
    RANDOM_TOKENS = "random-tokens"
    """Words drawn uniformly from the vocabulary of the data."""
    SAMPLED = "sampled"
    """Text that reads like the data: each word follows the word before it as often as in the data."""


@dataclass(frozen=True)
class TextCanaries:
    """Texts of candidates, and the tokens that must be added to a tokenizer for them, in the order of the candidates."""

    texts: tuple[str, ...]
    new_tokens: tuple[str, ...] = ()


def text_canaries(
    kind: TextCanaryKind | str,
    texts: Sequence[str],
    size: int,
    rng: np.random.Generator,
    *,
    length: int = 16,
    secret: int = 0,
) -> TextCanaries:
    """Return ``size`` candidates for the data ``texts``, different from every record and from one another.

    Args:
        kind: "new-tokens", "random-tokens" or "sampled"; see :class:`TextCanaryKind`.
        texts: the records, whose words (parts between white space) are the vocabulary.
        size: the number of candidates.
        rng: draws the candidates; it must not have drawn the coins.
        length: words per candidate, without the secret. New tokens count as words.
        secret: number of words, drawn uniformly from the vocabulary, that are appended to every candidate.

    Guarantee: given the data, candidates are exchangeable and independent of the coins: they are independent draws from one
    distribution, and a text that occurs already is drawn again. Bounds from fair coins therefore hold for them.
    """
    chosen = checks.member(TextCanaryKind, kind=kind)
    checks.count(size=size)
    distribution = TextDistribution(chosen, tuple(texts), checks.count(length=length), _whole_number(secret))
    drawn = tuple(distribution.draw(rng, size))
    return TextCanaries(drawn, tuple(token for text in drawn for token in _own_tokens(text, chosen)))


def _whole_number(secret: int) -> int:
    return 0 if isinstance(secret, int) and secret == 0 else checks.count(secret=secret)


def _own_tokens(text: str, kind: TextCanaryKind) -> tuple[str, ...]:
    """Return the new tokens of a candidate: its first word, which it repeats."""
    return (text.partition(" ")[0],) if kind is TextCanaryKind.NEW_TOKENS else ()


@dataclass(frozen=True)
class TextDistribution:
    """The distribution of text canaries of one kind for some data."""

    kind: TextCanaryKind
    texts: tuple[str, ...]
    length: int = 16
    secret: int = 0

    @cached_property
    def _data(self) -> _Words:
        return _Words.of(self.texts)

    @cached_property
    def _taken(self) -> frozenset[str]:
        """The records, with white space as candidates have it, and the new tokens that occur in them."""
        records = {" ".join(text.split()) for text in self.texts}
        return frozenset(records | {token for text in records if _PREFIX in text for token in _NEW_TOKEN.findall(text)})

    def draw(self, rng: np.random.Generator, size: int) -> list[str]:
        """Return ``size`` candidates.

        Raises:
            InvalidArgument: if the words of the data do not allow so many different texts.
        """
        drawn: list[str] = []
        seen: set[str] = set()
        for _ in range(_MAX_ROUNDS):
            for text in self._propose(rng, size - len(drawn)):
                marks = (text, *_own_tokens(text, self.kind))
                if not any(mark in self._taken or mark in seen for mark in marks):
                    seen.update(marks)
                    drawn.append(text)
            if len(drawn) == size:
                return drawn
        raise InvalidArgument(
            f"could draw only {len(drawn):,} of {size:,} different texts of {self.length + self.secret} words that are no "
            f"records, from {len(self._data.vocabulary):,} different words; ask for longer or fewer canaries"
        )

    def _propose(self, rng: np.random.Generator, size: int) -> list[str]:
        words = _KINDS[self.kind](self._data).words(rng, size, self.length)
        secrets = RandomWords(self._data).words(rng, size, self.secret)
        return [" ".join([*own, *secret]) for own, secret in zip(words, secrets, strict=True)]


@dataclass(frozen=True)
class _Words:
    """The words of all records, one after another: their numbers in the vocabulary, with -1 after each record."""

    vocabulary: tuple[str, ...]
    numbers: Ints

    @classmethod
    def of(cls, texts: Sequence[str]) -> _Words:
        known: dict[str, int] = {}
        numbers: list[int] = []
        for text in texts:
            if not isinstance(text, str):
                raise InvalidArgument(f"texts must be strings, got {type(text).__name__}")
            numbers.extend(known.setdefault(word, len(known)) for word in text.split())
            numbers.append(-1)
        if not known:
            raise InvalidArgument("text canaries need the words of the data, and its texts have none")
        return cls(tuple(known), np.array(numbers, np.int64))

    def spell(self, numbers: Ints) -> list[list[str]]:
        """Return the words with these numbers, row by row."""
        return [[self.vocabulary[number] for number in row] for row in numbers]


@dataclass(frozen=True)
class NewTokens:
    """One new token per candidate, repeated: a candidate shares no word with any other one."""

    data: _Words

    def words(self, rng: np.random.Generator, size: int, length: int) -> list[list[str]]:
        """Return ``size`` lists of ``length`` words."""
        return [[f"{_PREFIX}{number:016x}>"] * length for number in rng.integers(0, 2**64, size, dtype=np.uint64)]


@dataclass(frozen=True)
class RandomWords:
    """Words drawn uniformly from the vocabulary."""

    data: _Words

    def words(self, rng: np.random.Generator, size: int, length: int) -> list[list[str]]:
        """Return ``size`` lists of ``length`` words."""
        return self.data.spell(rng.integers(0, len(self.data.vocabulary), (size, length)))


@dataclass(frozen=True)
class SampledWords:
    """A Markov chain: the next word is one that follows the last word in the data, or begins a record after the end of one."""

    data: _Words

    def words(self, rng: np.random.Generator, size: int, length: int) -> list[list[str]]:
        """Return ``size`` lists of ``length`` words."""
        numbers = self.data.numbers
        previous = np.concatenate([[-1], numbers[:-1]])  # the word before each word; -1 at the beginning of a record
        real = numbers >= 0
        order = np.flatnonzero(real)[np.argsort(previous[real], kind="stable")]
        sorted_previous = previous[order]
        rows = np.empty((size, length), np.int64)
        last = np.full(size, -1)
        for position in range(length):
            low, high = (np.searchsorted(sorted_previous, last, side=side) for side in ("left", "right"))
            # A word that only ever ends a record is followed by the beginning of another one.
            ends = low == high
            low, high = np.where(ends, 0, low), np.where(ends, np.searchsorted(sorted_previous, -1, side="right"), high)
            last = numbers[order[rng.integers(low, high)]]
            rows[:, position] = last
        return self.data.spell(rows)


_KINDS: dict[TextCanaryKind, type[NewTokens | RandomWords | SampledWords]] = {
    TextCanaryKind.NEW_TOKENS: NewTokens,
    TextCanaryKind.RANDOM_TOKENS: RandomWords,
    TextCanaryKind.SAMPLED: SampledWords,
}
