"""Write finished trials to the store soon after they finish, also while the next trial runs for hours."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from lidp.designs.trial_record import TrialRecord
from lidp.store import Store

WRITE_SECONDS = 0.2
"""How long a finished trial may wait before it is written."""


class Recorder:
    """Collects finished trials and writes them in batches.

    With ``timer`` a thread writes what has waited for ``WRITE_SECONDS``: for executors that run trials in this process and give the
    driver no turn meanwhile. Other executors may fork, which is unsafe beside a thread; they yield empty lists while they wait.
    """

    def __init__(self, store: Store | None, *, timer: bool) -> None:
        self._store = store
        self._changed = threading.Condition()
        self._unwritten: list[TrialRecord] = []
        self._written: list[TrialRecord] = []
        self._error: Exception | None = None
        self._closed = False
        self._timer = threading.Thread(target=self._write_on_time, name="lidp-recorder", daemon=True)
        if timer and store is not None:
            self._timer.start()

    def add(self, records: Sequence[TrialRecord]) -> None:
        """Take finished trials, to be written within ``WRITE_SECONDS``."""
        with self._changed:
            self._unwritten.extend(records)
            self._changed.notify()

    def write(self) -> list[TrialRecord]:
        """Write what is not written yet, and return all trials that were written since the last call.

        Raises:
            StoreError: if they cannot be written; then also if the timer found that out.
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

    def _write_on_time(self) -> None:
        with self._changed:
            while not self._closed:
                self._changed.wait_for(lambda: self._unwritten or self._closed)
                self._changed.wait_for(lambda: self._closed, timeout=WRITE_SECONDS)
                try:
                    self._write()
                except Exception as error:  # noqa: BLE001  # raised again where the driver looks
                    self._error = error
                    return

    def close(self) -> None:
        """Stop the timer, if there is one, and write what is left.

        Raises:
            StoreError: if that cannot be written.
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
