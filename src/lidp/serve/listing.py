"""The list of audits: what is known about each store without reading its trials."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from lidp.designs import design_from_json
from lidp.engine.outcome import OUTCOME, Outcome
from lidp.errors import InvalidArgument, StoreError
from lidp.store import Store, is_locked

_FileState = tuple[tuple[int, int, int] | None, ...]


class State(StrEnum):
    """Whether an audit is being run."""

    RUNNING = "running"
    ENDED = "finished"
    PAUSED = "not running"
    """trials are missing and nobody runs them: it was interrupted, and can be resumed"""


@dataclass(frozen=True)
class Entry:
    """One audit of the list.

    Attributes:
        key: its name in addresses; it depends on the path of the store only.
        path: its store.
        target: the name of what is audited.
        epsilon: the claimed ε.
        delta: the claimed δ.
        method: the name of the method.
        unit: what is counted, in the plural.
        done: finished trials (runs, for two data sets).
        planned: the budget.
        outcome: how it ended; None if it has not, or a version of lidp ran it that did not record this.
        state: whether it is being run.
        changed: when the store was last written to, in seconds since 1970.
    """

    key: str
    path: Path
    target: str
    epsilon: float
    delta: float
    method: str
    unit: str
    done: int
    planned: int
    outcome: Outcome | None
    state: State
    changed: float


@dataclass(frozen=True)
class Unreadable:
    """A store that cannot be listed, and why."""

    path: Path
    reason: str


def key_of(path: Path) -> str:
    """Return the name of a store in addresses."""
    return hashlib.blake2b(os.fsencode(path), digest_size=8).hexdigest()


class Listing:
    """Reads entries, and reads a store again only if its files have changed."""

    def __init__(self) -> None:
        self._read: dict[Path, tuple[_FileState, Entry | Unreadable]] = {}

    def entry(self, path: Path) -> Entry | Unreadable:
        """Return what is known about the audit in a store."""
        files = _file_state(path)
        known = self._read.get(path)
        # The state is that of a lock, which changes without the files.
        if known is not None and known[0] == files and not _may_have_changed(known[1]):
            return known[1]
        entry = _read_entry(path)
        self._read[path] = (files, entry)
        return entry


def _may_have_changed(entry: Entry | Unreadable) -> bool:
    return isinstance(entry, Entry) and is_locked(entry.path) != (entry.state is State.RUNNING)


def _file_state(path: Path) -> _FileState:
    """Return what changes when a store is written to: inode, time and size of its file and of its write-ahead log."""
    states: list[tuple[int, int, int] | None] = []
    for file in (path, path.with_name(path.name + "-wal")):
        try:
            status = file.stat()
        except OSError:
            states.append(None)
        else:  # readers may leave an empty log behind
            states.append((status.st_ino, status.st_mtime_ns, status.st_size) if status.st_size else None)
    return tuple(states)


def _read_entry(path: Path) -> Entry | Unreadable:
    try:
        running = is_locked(path)
        with Store.read(path) as store:
            configuration, trials = store.configuration, store.count_trials()
            outcome = Outcome.from_plain(store.fact(OUTCOME))
        return _make_entry(path, configuration, trials, outcome, running=running)
    except StoreError as error:
        return Unreadable(path, str(error))
    except (InvalidArgument, KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        return Unreadable(path, f"{path} is damaged: its configuration cannot be read ({type(error).__name__}: {error})")


def _make_entry(
    path: Path, configuration: Mapping[str, Any], trials: int, outcome: Outcome | None, *, running: bool
) -> Entry:
    design = design_from_json(configuration["design"])
    claim = configuration["claim"]
    planned = design.rows(int(configuration["trials"]))
    done = design.rows(min(trials, int(configuration["trials"])))
    if outcome is not None and outcome.planned != planned:
        outcome = None  # of an earlier, smaller budget
    ended = not running and (outcome is not None or done >= planned)
    return Entry(
        key=key_of(path),
        path=path,
        target=str(configuration["target"]),
        epsilon=_finite(claim["epsilon"]),
        delta=_finite(claim["delta"]),
        method=_method_name(configuration["method"]),
        unit=design.unit,
        done=done,
        planned=planned,
        outcome=outcome,
        state=State.RUNNING if running else State.ENDED if ended else State.PAUSED,
        changed=max((state[1] for state in _file_state(path) if state is not None), default=0) / 1e9,
    )


def _finite(value: Any) -> float:
    if not math.isfinite(number := float(value)):
        raise ValueError(f"{value!r} is not a finite number")
    return number


def _method_name(plain: Any) -> str:
    """Return the name of a stored method: lidp's own name for it, or the class of a user's own."""
    from lidp.stats.registry import METHODS

    kind = str(plain.get("kind") or plain["class"])
    return next((name for name, cls in METHODS.items() if cls.__name__ == kind), kind)
