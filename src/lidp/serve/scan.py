"""Find the stores below folders, by the first bytes of files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lidp.errors import InvalidArgument, StoreError
from lidp.store import has_store_bytes

MOST_FILES = 200_000
"""How many files one scan looks at."""
_SIDE_FILES = ("-wal", "-shm", "-journal", "-lock", ".new")
_DATABASES = (".db", ".sqlite", ".sqlite3")
_SKIPPED_FOLDERS = frozenset(("node_modules", "__pycache__", "site-packages"))

_Identity = tuple[int, int]
_Version = tuple[int, int, int, int]


@dataclass(frozen=True)
class Scanned:
    """What a scan found: stores, and how many databases are not stores; ``truncated`` if there were too many files."""

    stores: tuple[Path, ...]
    foreign: int = 0
    truncated: bool = False


@dataclass
class Scanner:
    """Finds stores again and again. It reads the first bytes of a file only if the file is new or has changed.

    A file that is known to be a store is never opened here again: closing it would drop the locks of SQLite's connections.
    """

    places: Sequence[Path]
    most: int = MOST_FILES
    _stores: set[_Identity] = field(default_factory=set)
    _others: set[_Version] = field(default_factory=set)

    def __post_init__(self) -> None:
        for place in self.places:
            if not os.path.lexists(place):
                raise InvalidArgument(f"{place}: there is no such folder or store")
            if place.is_file() and not self._is_store(place):
                raise StoreError(f"{place} is not a store of an audit")

    def scan(self) -> Scanned:
        """Return all stores that are there now, in the order of their names."""
        stores: dict[Path, None] = {}
        foreign = 0
        for count, path in enumerate(path for place in self.places for path in _files(place)):
            if count >= self.most:
                return Scanned(tuple(stores), foreign, truncated=True)
            if self._is_store(path):
                stores[path.resolve()] = None
            else:
                foreign += path.suffix.lower() in _DATABASES
        return Scanned(tuple(stores), foreign)

    def _is_store(self, path: Path) -> bool:
        try:
            status = path.stat()
            identity = (status.st_dev, status.st_ino)
            version = (*identity, status.st_mtime_ns, status.st_size)
            if identity in self._stores or version in self._others:
                return identity in self._stores
            if has_store_bytes(path):
                self._stores.add(identity)
                return True
            self._others.add(version)
        except OSError:  # it is gone, or may not be read
            return False
        return False


def _files(place: Path) -> Iterator[Path]:
    """Yield the regular files below a folder, or the file itself. Links to folders are not followed."""
    if place.is_file():
        yield place
        return
    for folder, folders, names in os.walk(place):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED_FOLDERS)
        for name in sorted(names):
            path = Path(folder, name)
            if not name.endswith(_SIDE_FILES) and path.is_file():
                yield path
