"""Audit a program that trains: write its data, run its command, read the losses that it writes."""

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
from lidp.arrays import Floats
from lidp.errors import AuditFailed, InvalidArgument
from lidp.integrations.private_folders import FREE_SPACE_REMEDY, create_private, private_folder
from lidp.integrations.record_sets import PooledRecords, are_columns, count
from lidp.integrations.trainers import pool_target
from lidp.target import Target

_LARGEST_SCRIPT_BYTES = 2**20  # larger files, such as interpreters, are not part of the fingerprint
_QUOTED_LOG_LINES = 3  # last lines of a log, quoted in the reason of a failure
_QUOTED_LOG_BYTES = 4096  # at most, of the end of a log
_LARGEST_LOSS_BYTES = 1024  # per loss; a larger {out} holds something else
_OPERATORS = ("&&", "||", "|", ";", "&", ">", ">>", "<", "2>&1")
_WITH_SHELL = "put what needs one into sh -c '...', {data} and {out} within"


class ProgramFailed(Exception):
    """A run of the program that wrote no losses."""


@dataclass(frozen=True)
class Program:
    """A command as a mechanism.

    ``{data}`` in the command is replaced by the path of an .npz file with the training data (``x`` and ``y``, canaries included)
    and the canaries to score (``canary_x`` and ``canary_y``: the whole pool, whichever of them are inserted). The program trains
    on x and y and writes the loss of each row of ``canary_x`` to ``{out}``: as an .npy array, as text with one number per line,
    or as a JSON list. ``{seed}`` is replaced by a number, from which all randomness of the run should come.

    A run fails if it exits with a code other than 0, exceeds ``time_limit`` (in seconds), or writes anything else. Failing is an
    outcome like any other. The program runs in its own process group, which is killed at the time limit and when the audit ends.
    Its output goes to a log; logs of failed runs are kept in the folder ``logs``, if one is given. Only this user can read data
    and logs, and data are removed even if this process is killed.

    Raises:
        AuditFailed: when called, if the data cannot be written, the program cannot be started, or its log cannot be kept. That is
            no outcome of the program, and it may depend on the coins: a file with more canaries is larger.
    """

    command: str
    pool: tuple[NDArray[Any], ...] = field(repr=False)
    time_limit: float | None = field(default=None, compare=False)
    logs: str | None = field(default=None, compare=False)
    folder: str | None = field(default=None, compare=False)
    """Folder to run the command in; None for the current one."""
    files: tuple[str, ...] = field(default=(), init=False, repr=False)
    """Digests of the files that the command names. They are part of the fingerprint: a changed script is another program."""
    draws_only_from_rng: ClassVar[bool] = True
    """A program shares no memory with workers, so its other random numbers are not copies of theirs."""

    def __post_init__(self) -> None:
        words = self._words()
        if not all(placeholder in self.command for placeholder in ("{data}", "{out}")):
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
            exists = os.path.isfile(program)  # noqa: PTH113  # Path.is_file raises on names that are too long
            missing_hint = f"is not there; no shell is used, so that what only a shell knows is not found: {_WITH_SHELL}"
            hint = "is not executable; chmod +x it, or run it by its interpreter" if exists else missing_hint
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
        """Run the program and return the losses of all records of the pool."""
        seed = int(rng.integers(2**31))
        with private_folder() as folder:
            data, out, log = folder / "data.npz", folder / "out", folder / "log.txt"
            with _auditor_step(f"writing {data}", FREE_SPACE_REMEDY), os.fdopen(create_private(data), "wb") as file:
                np.savez(file, x=records[0], y=records[1], canary_x=self.pool[0], canary_y=self.pool[1])
            words = self._words()
            # Other braces are left as they are.
            for placeholder, value in (("{data}", data), ("{out}", out), ("{seed}", seed)):
                words = [word.replace(placeholder, str(value)) for word in words]
            try:
                self._run(words, log)
                return read_losses(out, count(self.pool))
            except ProgramFailed as failure:
                raise ProgramFailed(f"{failure}{self._keep_log(log, seed)}") from None

    def _run(self, words: Sequence[str], log: Path) -> None:
        with contextlib.ExitStack() as stack:
            with _auditor_step(f"writing {log}", FREE_SPACE_REMEDY):
                log_file = stack.enter_context(os.fdopen(create_private(log), "wb"))
            with (
                _auditor_step(f"starting {words[0]} in {self.folder or '.'}", "see that both are there and memory is left"),
                defer_signals(),  # a signal before the callback is registered would leave the process running
            ):
                process = subprocess.Popen(  # noqa: S603  # the user asked to run this program
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=log_file,
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

    def _keep_log(self, log: Path, seed: int) -> str:
        """Keep the log of a failed run, and return its last lines and its path."""
        if not log.is_file():  # the program has removed it
            return ""
        kept = ""
        with _auditor_step(f"reading {log}", "see that the disk works"), log.open("rb") as log_file:
            log_file.seek(max(0, log.stat().st_size - _QUOTED_LOG_BYTES))
            lines = log_file.read().decode("utf-8", "replace").splitlines()
        if self.logs is not None:
            kept_log = Path(self.logs, f"seed-{seed}.txt")
            with _auditor_step(f"keeping a log in {kept_log}", "make room there, or have logs kept elsewhere"):
                # Only this user may read it: a program may print its training data.
                kept_log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                with log.open("rb") as source, os.fdopen(create_private(kept_log, 0), "wb") as target:
                    shutil.copyfileobj(source, target)
            kept = f"; all of its log is in {kept_log}"
        last = " | ".join(line.strip() for line in lines[-_QUOTED_LOG_LINES:] if line.strip())
        return (f"; it printed: {last[:500]}" if last else "") + kept


@contextlib.contextmanager
def _auditor_step(doing: str, remedy: str) -> Iterator[None]:
    """End the audit if the block fails: it is work of the auditor, and its failure may depend on the coins."""
    try:
        yield
    except Exception as error:
        raise AuditFailed(f"{doing} failed: {type(error).__name__}: {error}; {remedy}") from error


def _unquoted(command: str) -> list[str]:
    """Return the words of a command; quoted words keep their quotes."""
    with contextlib.suppress(ValueError):
        return shlex.split(command, posix=False)
    return []


def _digests(words: Sequence[str], folder: Path) -> Iterator[str]:
    """Yield the digests of the scripts that a command names."""
    # A word may be a script for a shell, which names files as well.
    for name in dict.fromkeys(name for word in words for name in (word, *word.split())):
        file = folder / name
        if os.path.isfile(file) and file.stat().st_size < _LARGEST_SCRIPT_BYTES:  # noqa: PTH113  # Path.is_file raises on long names
            yield hashlib.sha256(file.read_bytes()).hexdigest()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a program and all processes that it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # they have ended already
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def read_losses(path: Path, wanted: int) -> Floats:
    """Return the losses in a file.

    Raises:
        ProgramFailed: if the file does not hold ``wanted`` finite numbers.
        AuditFailed: if the file is intact but cannot be read.
    """
    with _auditor_step(f"reading {path}", "see that the disk works"):
        # numpy.save may have added a suffix
        path = next((file for file in (path, path.with_suffix(".npy")) if os.path.lexists(file)), path)
        written = _read_output(path, _LARGEST_LOSS_BYTES * (wanted + 1))
    if isinstance(written, str):
        raise ProgramFailed(written)
    try:
        if written.startswith(b"\x93NUMPY"):
            numbers = np.load(io.BytesIO(written), allow_pickle=False)
        elif written.lstrip().startswith(b"["):
            numbers = np.array(json.loads(written), dtype=np.float64)
        else:
            numbers = np.array(written.decode("utf-8").split(), dtype=np.float64)
        losses = np.asarray(numbers, dtype=np.float64).ravel()
    except Exception as error:  # noqa: BLE001  # a malformed file may raise anything
        raise ProgramFailed(
            f"what it wrote to {{out}} cannot be read as losses: {' '.join(str(error).split())[:200]}"
        ) from None
    if len(losses) != wanted:
        raise ProgramFailed(f"wrote {len(losses)} losses to {{out}}, {wanted} canaries are to be scored")
    if not np.isfinite(losses).all():
        raise ProgramFailed("wrote losses to {out} that are not finite")
    return losses


def _read_output(path: Path, most: int) -> bytes | str:
    """Return the bytes that a program wrote, or the reason why they cannot be losses."""
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


def _as_text(path: str | Path | None) -> str | None:
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
    """Return a target that runs a command; see :class:`Program`.

    Args:
        records: features and labels.
        canaries: a pool of features and labels that canaries are drawn from.
        pilots: number of runs before the audit, without canaries, to learn how hard each record of the pool is; 0 for none.
        time_limit: seconds per run, at most.
        logs: folder for the logs of failed runs.
        folder: folder to run the command in.
    """
    for which, columns in (("records", records), ("canaries", canaries)):
        if not are_columns(columns) or len(columns) != 2:
            raise InvalidArgument(f"{which} must be a tuple of two arrays: features and labels")
    program = Program(command, canaries, time_limit, _as_text(logs), _as_text(folder))
    return pool_target(program, _loss_of, PooledRecords(records, canaries), pilots=pilots, name=command)
