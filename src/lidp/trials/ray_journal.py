"""Journals: records of finished trials in a file on their node, where they survive the worker process that made them.

Ray delivers what a task yields a moment later, and loses it if the process dies meanwhile. A journal keeps every record as soon as
its trial ends. After a death the driver reads it on that node: it learns which trials have finished, and so which one was running.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import shutil
import struct
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lidp.designs.trial_record import TrialRecord
from lidp.errors import AuditFailed

_FOLDER = Path(tempfile.gettempdir())  # before a target is loaded, which may change it
_PREFIX = "lidp-journals-"
_LENGTH = struct.Struct("<q")
_STALE_SECONDS = 86_400.0  # after which the journals of an audit whose driver was killed are removed
_READ_SECONDS = 60.0  # within which a node must read a journal
_REMOVE_SECONDS = 2.0

_previous: list[Path] = []  # journals of earlier batches of this process


class Journal:
    """The journal of one batch, written by the worker process that runs it.

    It is removed when the process begins its next batch, and not before: the last records may still be on their way.

    Raises:
        AuditFailed: if it cannot be written.
    """

    def __init__(self, audit: str, batch: int) -> None:
        self.path = _path(audit, batch)
        while _previous:
            _previous.pop().unlink(missing_ok=True)
        _previous.append(self.path)
        try:
            _make_folder(self.path.parent)
            flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
            self._descriptor = os.open(self.path, flags, 0o600)
        except OSError as error:
            raise _write_error(error) from None

    def add(self, records: Sequence[TrialRecord]) -> None:
        """Write records. They are in the hands of the system afterwards, whatever happens to this process."""
        content = pickle.dumps(list(records), protocol=pickle.HIGHEST_PROTOCOL)
        frame = memoryview(_LENGTH.pack(len(content)) + content)
        try:
            while frame:
                frame = frame[os.write(self._descriptor, frame) :]
        except OSError as error:
            raise _write_error(error) from None

    def close(self) -> None:
        """Close the file, and leave it."""
        os.close(self._descriptor)


def read_journal(audit: str, batch: int) -> list[TrialRecord] | None:
    """Return the records of a journal on this node, None if there is none that can be read. To be run there, as a task."""
    path = _path(audit, batch)
    try:
        if not _is_own_folder(path.parent):
            return None
        content = path.read_bytes()
        records: list[TrialRecord] = []
        while len(content) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(content)[0]
            if end > len(content):  # the process died while it wrote this record
                break
            records += pickle.loads(content[_LENGTH.size : end])  # noqa: S301  # written by a worker of this audit, whom it trusts
            content = content[end:]
    except Exception:  # noqa: BLE001  # whatever a mechanism has written into it
        return None
    return records


def remove_journals(audit: str) -> None:
    """Remove all journals of an audit on this node. To be run there, as a task."""
    shutil.rmtree(_path(audit, 0).parent, ignore_errors=True)


class JournalReader:
    """Reads journals on other nodes, without waiting for them."""

    def __init__(self, ray: Any, audit: str) -> None:
        self._ray = ray
        self._audit = audit
        self._tasks: dict[int, tuple[list[Any], float]] = {}

    def ready(self, batch: int, nodes: Sequence[str], *, now: float) -> bool:
        """Return whether the journal of a batch was read, or cannot be; the first call lets these nodes look for it."""
        if batch not in self._tasks:
            self._tasks[batch] = ([self._on(node, read_journal, batch) for node in nodes], now + _READ_SECONDS)
        tasks, end = self._tasks[batch]
        if not tasks or now > end:
            return True
        return len(self._ray.wait(tasks, num_returns=len(tasks), timeout=0)[0]) == len(tasks)

    def take(self, batch: int) -> list[TrialRecord] | None:
        """Return the records in a journal that is ready, None if it was not found."""
        for task in self._tasks.pop(batch)[0]:
            with contextlib.suppress(self._ray.exceptions.RayError):  # also a time-out: the node does not answer
                records: list[TrialRecord] | None = self._ray.get(task, timeout=0)
                if records is not None:
                    return records
        return None

    def forget(self, batch: int) -> None:
        """Forget about the journal of a batch."""
        self._tasks.pop(batch, None)

    def remove(self, nodes: Sequence[str]) -> None:
        """Remove all journals of the audit from nodes; nodes that do not answer soon remove them with those of a later audit."""
        remove_journals(self._audit)  # those of this machine at once, however busy Ray is
        tasks = [self._on(node, remove_journals) for node in nodes]
        if tasks:
            self._ray.wait(tasks, num_returns=len(tasks), timeout=_REMOVE_SECONDS)

    def _on(self, node: str, function: Any, *arguments: Any) -> Any:
        strategies: Any = importlib.import_module("ray.util.scheduling_strategies")
        there = strategies.NodeAffinitySchedulingStrategy(node, soft=False)
        options = {"num_cpus": 0, "max_retries": 0, "scheduling_strategy": there, "name": "lidp journals"}
        return self._ray.remote(function).options(**options).remote(self._audit, *arguments)


def _path(audit: str, batch: int) -> Path:
    return _FOLDER / f"{_PREFIX}{audit}" / str(batch)


def _make_folder(folder: Path) -> None:
    """Make the folder of an audit, which only its user may read; remove those that were left behind long ago."""
    if not folder.exists():
        for other in _FOLDER.glob(f"{_PREFIX}*"):
            with contextlib.suppress(OSError):
                if _is_own_folder(other) and time.time() - other.stat().st_mtime > _STALE_SECONDS:
                    shutil.rmtree(other, ignore_errors=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    if not _is_own_folder(folder):
        raise FileExistsError(0, f"{folder} belongs to somebody else")


def _is_own_folder(folder: Path) -> bool:
    return folder.is_dir() and not folder.is_symlink() and folder.stat().st_uid == os.geteuid()


def _write_error(error: OSError) -> AuditFailed:
    return AuditFailed(f"a node cannot write to {_FOLDER} ({error.strerror}); free space there, or set TMPDIR on that node")
