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


def labelled_lines(text: str) -> list[tuple[str, str]]:
    r"""Return the label and the rest of each line after the first, as results are printed: the label has ten characters.

    >>> labelled_lines("refuted\n  method     wilson\n  hypothesis is false")
    [('method', 'wilson'), ('hypothesis', 'is false')]
    """
    return [(line[2:12].strip(), line[12:].strip()) for line in text.splitlines()[1:]]


def _escape(character: str) -> str:
    if character in _UNESCAPED or unicodedata.category(character) not in _ESCAPED_CATEGORIES:
        return character
    return character.encode("unicode_escape").decode("ascii")
