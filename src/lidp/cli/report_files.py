"""Check, before an audit runs, that its report can be written and replaces no store; write it afterwards."""

from __future__ import annotations

import os
from pathlib import Path

from lidp.errors import InvalidArgument
from lidp.result import AuditResult
from lidp.store import is_store

_STORE_SUFFIXES = ("", "-wal", "-shm", "-journal", "-lock", ".logs")
"""Suffixes of a store's name for the files beside it."""


def check_format(report: Path) -> None:
    """Refuse a report whose name has an ending that stands for no format."""
    from lidp.report.formats import Format  # imported here, because it is slow to import

    Format.of_file(report)


def write_result(result: AuditResult, report: Path) -> None:
    """Write a result in the format that the ending of the name stands for; an existing file is replaced."""
    from lidp.report.formats import Format

    Format.of_file(report).write(result, report)


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
