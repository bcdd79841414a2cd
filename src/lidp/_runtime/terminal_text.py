"""Text from strangers' files, made safe for a terminal."""

from __future__ import annotations

import unicodedata

_KEPT = "\n\t"
_HIDDEN = (
    "Cc",
    "Cf",
    "Cs",
    "Zl",
    "Zp",
)  # control, format (direction marks among them), surrogates, line and paragraph breaks


def printable(text: str) -> str:
    r"""Return ``text`` with control characters written out, so that a name can neither move the cursor nor hide what is printed.

    Line breaks and tabs stay.

    >>> printable("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_written_out(character) for character in text)


def _written_out(character: str) -> str:
    if character in _KEPT or unicodedata.category(character) not in _HIDDEN:
        return character
    return character.encode("unicode_escape").decode("ascii")
