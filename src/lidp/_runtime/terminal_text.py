"""Make text from untrusted files safe for a terminal."""

from __future__ import annotations

import unicodedata

_UNESCAPED = "\n\t"
_ESCAPED_CATEGORIES = (
    "Cc",
    "Cf",
    "Cs",
    "Zl",
    "Zp",
)  # control, format (direction marks among them), surrogates, line and paragraph breaks


def printable(text: str) -> str:
    r"""Return ``text`` with control characters escaped, so that it can neither move the cursor nor hide other output.

    Line breaks and tabs are kept.

    >>> printable("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape(character) for character in text)


def _escape(character: str) -> str:
    if character in _UNESCAPED or unicodedata.category(character) not in _ESCAPED_CATEGORIES:
        return character
    return character.encode("unicode_escape").decode("ascii")
