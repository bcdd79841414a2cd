"""Save trials soon after they finish, even while the next trial runs for hours."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from lidp.designs.trial_record import TrialRecord
from lidp.store import Store

WRITE_SECONDS = 0.2
"""Longest time that a finished trial waits before it is saved."""


class Recorder:
    """Collects finished trials and saves them in batches.

    With ``timer``, a thread saves trials that have waited for ``WRITE_SECONDS``. Executors that run trials in this process need
    it, because they return no control to the audit meanwhile. Other executors yield empty lists while they wait; they may fork
    processes, which is unsafe while a thread runs, and so must not use it.
    """

    def __init__(self, store: Store | None, *, timer: bool) -> None:
        self._store = store
        self._changed = threading.Condition()
        self._unwritten: list[TrialRecord] = []
        self._written: list[TrialRecord] = []
        self._error: Exception | None = None
        self._closed = False
        self._timer = threading.Thread(target=self._write_periodically, name="lidp-recorder", daemon=True)
        if timer and store is not None:
            self._timer.start()

    def add(self, records: Sequence[TrialRecord]) -> None:
        """Accept finished trials, to be saved within ``WRITE_SECONDS``."""
        with self._changed:
            if (
                records and not self._unwritten
            ):  # else the timer runs already: waking it for every trial would cost more than most
                self._changed.notify()
            self._unwritten.extend(records)

    def write(self) -> list[TrialRecord]:
        """Save all waiting trials, and return the trials that were saved since the last call.

        Raises:
            StoreError: if trials could not be saved, now or earlier by the timer.
        """
        with self._changed:
            if self._error is not None:
                raise self._error
            self._write()
            written, self._written = self._written, []
            return written

    def _write(self) -> None:
        if self._unwritten:
            if self._store is not None:
                self._store.keep_trials(self._unwritten)
            self._written.extend(self._unwritten)
            self._unwritten = []

    def _write_periodically(self) -> None:
        with self._changed:
            while not self._closed:
                self._changed.wait_for(lambda: self._unwritten or self._closed)
                self._changed.wait_for(lambda: self._closed, timeout=WRITE_SECONDS)
                try:
                    self._write()
                except Exception as error:  # noqa: BLE001  # raised again by the next write() or close()
                    self._error = error
                    return

    def close(self) -> None:
        """Stop the timer, if there is one, and save all waiting trials.

        Raises:
            StoreError: if trials could not be saved, now or earlier by the timer.
        """
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._timer.ident is not None:
            self._timer.join()
        with self._changed:
            if self._error is not None:
                raise self._error
            self._write()
