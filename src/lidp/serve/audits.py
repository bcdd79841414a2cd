"""``Audits``: everything that the pages show, found below some folders and read from stores."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lidp.errors import InvalidArgument, LidpError
from lidp.report.comparison import Comparison
from lidp.result import AuditResult
from lidp.serve.listing import Entry, Listing, State, Unreadable
from lidp.serve.live import LiveAudit, Snapshot
from lidp.serve.scan import Scanner
from lidp.stats.storable import Storable

MOST_COMPARED = 12
_MOST_LIVE = 16  # audits whose scores are kept in memory
_MOST_FOLLOWED = 8  # running audits whose bounds the list shows
_SCAN_SECONDS = 2.0
_REST = 10.0  # after a scan, in units of its duration: large folders are scanned less often


@dataclass(frozen=True)
class Catalogue:
    """The list of audits.

    Attributes:
        entries: the audits, last written first.
        unreadable: stores that cannot be read.
        foreign: the number of databases that are not stores.
        truncated: whether there are more files than one scan looks at.
    """

    entries: tuple[Entry, ...]
    unreadable: tuple[Unreadable, ...]
    foreign: int
    truncated: bool


class Audits:
    """The audits below some folders. Several threads may use it."""

    def __init__(self, places: Sequence[Path], *, methods: Sequence[type[Storable]] = ()) -> None:
        self.places = tuple(places)
        self._methods = tuple(methods)
        self._scanner = Scanner(self.places)
        self._listing = Listing()
        self._mutex = threading.RLock()
        self._live: OrderedDict[str, LiveAudit] = OrderedDict()
        self._catalogue: Catalogue | None = None
        self._next_scan = 0.0

    def catalogue(self) -> Catalogue:
        """Return the list of audits as of the last scan, which is a few seconds ago at most unless folders are large."""
        with self._mutex:
            started = time.monotonic()
            if self._catalogue is None or started >= self._next_scan:
                self._catalogue = self._scan()
                ended = time.monotonic()
                self._next_scan = ended + max(_SCAN_SECONDS, _REST * (ended - started))
            return self._catalogue

    def _scan(self) -> Catalogue:
        scanned = self._scanner.scan()
        read = [self._listing.entry(path) for path in scanned.stores]
        entries = sorted((one for one in read if isinstance(one, Entry)), key=lambda one: one.changed, reverse=True)
        unreadable = tuple(one for one in read if isinstance(one, Unreadable))
        return Catalogue(tuple(entries), unreadable, scanned.foreign, scanned.truncated)

    def entry(self, key: str) -> Entry | None:
        """Return the audit of this name; None if there is none."""
        with self._mutex:
            known = () if self._catalogue is None else self._catalogue.entries
        found = next((entry for entry in known if entry.key == key), None)
        return found or next((entry for entry in self.catalogue().entries if entry.key == key), None)

    def look(self, entry: Entry) -> Snapshot:
        """Return how an audit stands now, up to the trials that one look reads."""
        live = self._live_audit(entry)
        try:
            return live.look()
        except LidpError:
            self._forget(entry)  # the store may have been replaced by another
            raise

    def standings(self) -> dict[str, Snapshot]:
        """Return how the audits stand that are running now, by key: those that were written to last, up to a number."""
        running = [entry for entry in self.catalogue().entries if entry.state is State.RUNNING]
        standings = {}
        for entry in running[:_MOST_FOLLOWED]:
            with suppress(LidpError):  # its own page says what is wrong
                standings[entry.key] = self.look(entry)
        return standings

    def result(self, entry: Entry) -> AuditResult:
        """Return the result so far of an audit."""
        live = self._live_audit(entry)
        try:
            return live.result()
        except LidpError:
            self._forget(entry)
            raise

    def compare(self, keys: Sequence[str]) -> Comparison:
        """Return a comparison of the audits of these names.

        Raises:
            InvalidArgument: if there are fewer than two or too many, or there is no audit of a name.
        """
        keys = list(dict.fromkeys(keys))
        if not 2 <= len(keys) <= MOST_COMPARED:
            raise InvalidArgument(
                f"a comparison takes 2 to {MOST_COMPARED} audits, got {len(keys)}; choose them in the list"
            )
        entries = {key: self.entry(key) for key in keys}
        missing = [key for key, entry in entries.items() if entry is None]
        if missing:
            raise InvalidArgument(f"there is no audit {missing[0]!r} any more; choose others in the list")
        return Comparison.of([(entry.path.stem, self.result(entry)) for entry in entries.values() if entry is not None])

    def _live_audit(self, entry: Entry) -> LiveAudit:
        with self._mutex:
            if entry.key not in self._live:
                self._live[entry.key] = LiveAudit(entry.path, methods=self._methods)
            self._live.move_to_end(entry.key)
            while len(self._live) > _MOST_LIVE:
                self._live.popitem(last=False)
            return self._live[entry.key]

    def _forget(self, entry: Entry) -> None:
        with self._mutex:
            self._live.pop(entry.key, None)
