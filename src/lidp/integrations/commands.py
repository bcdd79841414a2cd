"""A program that trains, as a mechanism: data are written for it, it is run, losses are read."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lidp import checks
from lidp._runtime.interrupts import defer_signals
from lidp._runtime.workers import die_with_parent
from lidp.errors import AuditFailed, InvalidArgument
from lidp.integrations.private_folders import FREE_SPACE_REMEDY, create_private, private_folder
from lidp.integrations.record_sets import PooledRecords, are_columns, count
from lidp.integrations.trainers import pool_target
from lidp.target import Target

Floats = NDArray[np.float64]

_LARGE = 2**20  # a script is smaller than this, an interpreter is not
_KEPT_LINES = 3  # of a log, in the reason of a failure
_KEPT_BYTES = 4096  # ... within its last so many
_MOST_BYTES = 1024  # of a loss in {out}; a file of more than so many each holds something else
_OPERATORS = ("&&", "||", "|", ";", "&", ">", ">>", "<", "2>&1")
_WITH_SHELL = "put what needs one into sh -c '...', {data} and {out} within"


class ProgramFailed(Exception):
    """A run of the program that brought no losses."""


@dataclass(frozen=True)
class Program:
    """A command line as a mechanism.

    ``{data}`` is an .npz file with the training data (``x`` and ``y``, canaries among them) and the canaries to be scored
    (``canary_x`` and ``canary_y``: all of the pool, whoever is in). The program trains on x and y and writes to ``{out}`` a loss
    for each of ``canary_x``: an .npy array, or text with one number a line, or a JSON list. ``{seed}`` is a number, all
    randomness of the run should come from it.

    A run that exits with another code than 0, passes ``time_limit`` (in seconds), or writes anything else has failed, which is an
    outcome like any other. It runs in a process group of its own, which is killed at the limit and dies with the audit.
    What it prints goes to a log in ``logs``; logs of failed runs are kept, if there is such a folder. Data and logs are for this
    user's eyes only, and data are removed even if this process is killed.

    Raises:
        AuditFailed: when run, if its data cannot be written, it cannot be started, or its log cannot be kept. That is no outcome:
            it may follow the coins, as a file with more canaries is larger.
    """

    command: str
    pool: tuple[NDArray[Any], ...] = field(repr=False)
    time_limit: float | None = field(default=None, compare=False)
    logs: str | None = field(default=None, compare=False)
    folder: str | None = field(default=None, compare=False)
    """where it runs; where lidp does, if left out"""
    files: tuple[str, ...] = field(default=(), init=False, repr=False)
    """digests of the files that the command names: a program that was changed is another one"""
    draws_only_from_rng: ClassVar[bool] = True
    """it shares no memory with workers: what it draws besides ``{seed}`` is no copy of theirs"""

    def __post_init__(self) -> None:
        words = self._words()
        missing = [place for place in ("{data}", "{out}") if place not in self.command]
        if missing:
            raise InvalidArgument(
                f"the command must contain {{data}} and {{out}}, and may contain {{seed}}, got {self.command!r}"
            )
        operators = [word for word in _unquoted(self.command) if word in _OPERATORS]
        if operators:
            raise InvalidArgument(
                f"the command has {operators[0]}, but no shell is used; {_WITH_SHELL}, got {self.command!r}"
            )
        program = Path(self.folder or ".", words[0])
        if shutil.which(words[0]) is None and shutil.which(str(program)) is None:
            there = os.path.isfile(program)  # noqa: PTH113  # of names that are too long, too, this says no
            missing_hint = f"is not there; no shell is used, so that what only a shell knows is not found: {_WITH_SHELL}"
            hint = "is not executable; chmod +x it, or run it by its interpreter" if there else missing_hint
            raise InvalidArgument(f"there is no program {words[0]!r} to run: it {hint}")
        if self.time_limit is not None:
            checks.positive(time_limit=self.time_limit)
        object.__setattr__(self, "files", tuple(_digests(words, Path(self.folder or "."))))

    def _words(self) -> list[str]:
        try:
            words = shlex.split(self.command)
        except ValueError as error:
            raise InvalidArgument(f"the command {self.command!r} cannot be read: {error}") from None
        if not words:
            raise InvalidArgument("the command is empty; it must run a program that contains {data} and {out}")
        return words

    def __call__(self, records: tuple[NDArray[Any], ...], rng: np.random.Generator) -> Floats:
        """The losses of all records of the pool."""
        seed = int(rng.integers(2**31))
        with private_folder() as folder:
            data, out, log = folder / "data.npz", folder / "out", folder / "log.txt"
            with _own(f"writing {data}", FREE_SPACE_REMEDY), os.fdopen(create_private(data), "wb") as file:
                np.savez(file, x=records[0], y=records[1], canary_x=self.pool[0], canary_y=self.pool[1])
            words = self._words()
            for place, value in (("{data}", data), ("{out}", out), ("{seed}", seed)):  # other braces are the program's own
                words = [word.replace(place, str(value)) for word in words]
            try:
                self._run(words, log)
                return read_losses(out, count(self.pool))
            except ProgramFailed as failure:
                raise ProgramFailed(f"{failure}{self._keep(log, seed)}") from None

    def _run(self, words: Sequence[str], log: Path) -> None:
        with contextlib.ExitStack() as stack:
            with _own(f"writing {log}", FREE_SPACE_REMEDY):
                told = stack.enter_context(os.fdopen(create_private(log), "wb"))
            with (
                _own(f"starting {words[0]} in {self.folder or '.'}", "see that both are there and memory is left"),
                defer_signals(),  # one that came before the process has a name would leave it behind
            ):
                process = subprocess.Popen(  # noqa: S603  # running the user's program is what this is for
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=told,
                    stderr=subprocess.STDOUT,
                    cwd=self.folder,
                    start_new_session=True,
                    preexec_fn=die_with_parent,
                )
                stack.callback(_end, process)
            try:
                code = process.wait(self.time_limit)
            except subprocess.TimeoutExpired:
                raise ProgramFailed(f"passed the time limit of {self.time_limit:g} s") from None
        if code:
            raise ProgramFailed(f"exit code {code}" if code > 0 else f"ended by signal {-code}")

    def _keep(self, log: Path, seed: int) -> str:
        """The last lines of a log, and where all of it is."""
        if not log.is_file():  # the program has tidied up
            return ""
        kept = ""
        with _own(f"reading {log}", "see that the disk works"), log.open("rb") as told:
            told.seek(max(0, log.stat().st_size - _KEPT_BYTES))
            lines = told.read().decode("utf-8", "replace").splitlines()
        if self.logs is not None:
            place = Path(self.logs, f"seed-{seed}.txt")
            with _own(f"keeping a log in {place}", "make room there, or have logs kept elsewhere"):
                # A program may print its training data.
                place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                with log.open("rb") as source, os.fdopen(create_private(place, 0), "wb") as target:
                    shutil.copyfileobj(source, target)
            kept = f"; all of its log is in {place}"
        last = " | ".join(line.strip() for line in lines[-_KEPT_LINES:] if line.strip())
        return (f"; it printed: {last[:500]}" if last else "") + kept


@contextlib.contextmanager
def _own(doing: str, remedy: str) -> Iterator[None]:
    """Do something of the auditor's own: if it fails the audit ends, as that may follow the coins."""
    try:
        yield
    except Exception as error:
        raise AuditFailed(f"{doing} failed: {type(error).__name__}: {error}; {remedy}") from error


def _unquoted(command: str) -> list[str]:
    """The words of a command, quoted ones with their quotes."""
    with contextlib.suppress(ValueError):
        return shlex.split(command, posix=False)
    return []


def _digests(words: Sequence[str], folder: Path) -> Iterator[str]:
    # A word may be a script for a shell, with words of its own.
    for piece in dict.fromkeys(piece for word in words for piece in (word, *word.split())):
        place = folder / piece
        if os.path.isfile(place) and place.stat().st_size < _LARGE:  # noqa: PTH113  # a script is too long for Path's
            yield hashlib.sha256(place.read_bytes()).hexdigest()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a program and what it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # all gone already
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def read_losses(path: Path, wanted: int) -> Floats:
    """The losses in a file.

    Raises:
        ProgramFailed: if they are not so many finite numbers.
        AuditFailed: if the file is as it should be, and cannot be read.
    """
    with _own(f"reading {path}", "see that the disk works"):
        # numpy.save adds the suffix of its own accord
        path = next((place for place in (path, path.with_suffix(".npy")) if os.path.lexists(place)), path)
        written = _written(path, _MOST_BYTES * (wanted + 1))
    if isinstance(written, str):
        raise ProgramFailed(written)
    try:
        if written.startswith(b"\x93NUMPY"):
            found = np.load(io.BytesIO(written), allow_pickle=False)
        elif written.lstrip().startswith(b"["):
            found = np.array(json.loads(written), dtype=np.float64)
        else:
            found = np.array(written.decode("utf-8").split(), dtype=np.float64)
        losses = np.asarray(found, dtype=np.float64).ravel()
    except Exception as error:  # noqa: BLE001  # whatever nonsense may raise when it is read
        raise ProgramFailed(
            f"what it wrote to {{out}} cannot be read as losses: {' '.join(str(error).split())[:200]}"
        ) from None
    if len(losses) != wanted:
        raise ProgramFailed(f"wrote {len(losses)} losses to {{out}}, {wanted} canaries are to be scored")
    if not np.isfinite(losses).all():
        raise ProgramFailed("wrote losses to {out} that are not finite")
    return losses


def _written(path: Path, most: int) -> bytes | str:
    """What a program wrote, or why that cannot be losses."""
    if not os.path.lexists(path):
        return "exited with 0 but wrote nothing to {out}"
    if not path.is_file():
        return "what it wrote to {out} is no file"
    if path.stat().st_size > most:
        return f"wrote {path.stat().st_size:,} bytes to {{out}}, which cannot be losses alone"
    try:
        return path.read_bytes()
    except PermissionError:
        return "what it wrote to {out} may not be read"


def _loss_of(losses: Floats, number: int) -> float:
    return float(losses[number])


def _text(path: str | Path | None) -> str | None:
    return None if path is None else str(path)


def command_target(
    command: str,
    records: tuple[NDArray[Any], NDArray[Any]],
    canaries: tuple[NDArray[Any], NDArray[Any]],
    *,
    pilots: int = 8,
    time_limit: float | None = None,
    logs: str | Path | None = None,
    folder: str | Path | None = None,
) -> Target:
    """A target from a command line: see :class:`Program`.

    Args:
        records: features and labels.
        canaries: a pool of features and labels that canaries are drawn from.
        pilots: runs before the audit, without canaries, to learn how hard each record of the pool is; 0 for none.
        time_limit: seconds a run may take.
        logs: a folder for what failed runs printed.
        folder: where the command runs.
    """
    for which, columns in (("records", records), ("canaries", canaries)):
        if not are_columns(columns) or len(columns) != 2:
            raise InvalidArgument(f"{which} must be a tuple of two arrays: features and labels")
    program = Program(command, canaries, time_limit, _text(logs), _text(folder))
    return pool_target(program, _loss_of, PooledRecords(records, canaries), pilots=pilots, name=command)
