"""The options in the text that a store keeps of its target, as ``dpsgd?canaries=64&epochs=2``.

Whoever shows such a text and whoever runs it read it here, so that both see the same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeVar
from urllib.parse import parse_qsl

from lidp.errors import InvalidArgument

UNDECODABLE = "surrogateescape"
"""How bytes of names and commands that are no UTF-8 are written and read."""
_SHOWN = 60  # characters of a value in a message

Number = TypeVar("Number", int, float)


def options_of(text: str, known: Collection[str]) -> dict[str, str]:
    """Return the options after the question mark, each given once and not empty.

    Raises:
        InvalidArgument: if there is an unknown, repeated or empty option, or the text is not made of options.
    """
    name, _, query = text.partition("?")
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True, errors=UNDECODABLE) if query else []
    except ValueError as error:
        raise InvalidArgument(f"the options of {name} cannot be read: {error}") from None
    given: dict[str, str] = {}
    for option, value in pairs:
        if option not in known:
            raise InvalidArgument(f"{name} has no option {_short(option)}; it has {', '.join(known)}")
        if option in given:
            raise InvalidArgument(f"{name} takes the option {option} once, got {_short(given[option])} and {_short(value)}")
        if not value:
            raise InvalidArgument(f"the option {option} of {name} is empty; say what it shall be, or leave it out")
        given[option] = value
    return given


def required(text: str, given: Mapping[str, str], *names: str) -> None:
    """Refuse a text without some of its options.

    Raises:
        InvalidArgument: naming the first that is missing.
    """
    for name in names:
        if name not in given:
            raise InvalidArgument(f"{text.partition('?')[0]} needs the option {name}, which is missing")


def number(kind: type[Number], name: str, value: str) -> Number:
    """Return the number that the value of an option is.

    Raises:
        InvalidArgument: if it is none, or has too many digits.
    """
    try:
        return kind(value)
    except (ValueError, OverflowError):
        what = "a whole number" if kind is int else "a number"
        raise InvalidArgument(f"{name} must be {what}, got {_short(value)}") from None


def _short(value: str) -> str:
    return repr(value if len(value) <= _SHOWN else f"{value[:_SHOWN]}...")
