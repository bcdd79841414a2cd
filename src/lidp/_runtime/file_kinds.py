"""Say what kind of file something is, by its first bytes. Reading them runs no code."""

from __future__ import annotations

from pathlib import Path

_FIRST_BYTES = 4096
_ZIP = b"PK\x03\x04"
_KINDS = (
    (b"SQLite format 3\0", "an SQLite file, such as the store of an audit"),
    (_ZIP, "a zip file, such as .npz"),
    (b"\x93NUMPY", "a single array (.npy)"),
    (b"\x80", "a pickle or another binary file"),
)


def is_zip_file(path: Path) -> bool:
    """Return whether a file begins like a zip file, damaged or not."""
    with path.open("rb") as file:
        return file.read(len(_ZIP)) == _ZIP


def describe_file(path: Path) -> str:
    """Return what kind of file this is, in words that follow "is"."""
    with path.open("rb") as file:
        start = file.read(_FIRST_BYTES)
    if not start:
        return "an empty file"
    for magic, kind in _KINDS:
        if start.startswith(magic):
            return kind
    try:
        text = start.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(start) - 4:  # a longer file may be cut within a character
            return "a binary file of another kind"
        text = start[: error.start].decode("utf-8")
    return "a binary file of another kind" if "\0" in text else "a text file"
