"""Check, before an audit runs, that its report can be written and replaces no store."""

from __future__ import annotations

import os
from pathlib import Path

from lidp.errors import InvalidArgument
from lidp.store import is_store

_PAGE_SUFFIXES = (".html", ".htm")
_STORE_SUFFIXES = ("", "-wal", "-shm", "-journal", "-lock", ".logs")
"""Suffixes of a store's name for the files beside it."""


def is_page(report: Path) -> bool:
    """Return whether a report is to be a page (.html), not JSON (.json).

    Raises:
        InvalidArgument: if its name ends otherwise.
    """
    suffix = report.suffix.lower()
    if suffix in _PAGE_SUFFIXES:
        return True
    if suffix == ".json":
        return False
    ending = f"not {suffix}" if suffix else "and the name has no ending"
    raise InvalidArgument(f"{report}: a report is a page (.html) or JSON (.json), {ending}; choose another name")


def check_report(report: Path, *stores: Path) -> None:
    """Create the folder of a report if there is none, and refuse a file that cannot be written or belongs to a store.

    Raises:
        InvalidArgument: also if the file belongs to one of ``stores``, whether that exists or not.
    """
    try:
        report.parent.mkdir(parents=True, exist_ok=True)  # as for stores
    except OSError as error:
        raise InvalidArgument(f"{report}: its folder cannot be created: {error.strerror}") from None
    if report.is_dir():
        raise InvalidArgument(f"{report} is a folder; name a file to write the report to")
    if report.is_file() and is_store(report):
        raise InvalidArgument(f"{report} is the store of an audit, which a report must not replace; choose another name")
    for store in stores:
        if _names(report) & {f"{name}{suffix}" for name in _names(store) for suffix in _STORE_SUFFIXES}:
            raise InvalidArgument(
                f"{report} belongs to the store {store}, which a report must not replace; choose another name"
            )


def _names(path: Path) -> set[str]:
    """Return the names of a file, in lower case as some file systems ignore case: as given, and with links resolved."""
    given = os.path.join(os.path.realpath(path.parent), path.name)  # noqa: PTH118
    return {name.casefold() for name in (given, os.path.realpath(path))}  # realpath never raises, not even on loops
