"""Read and write the files of a seal: strict JSON, hashes, no symbolic links, folders that appear whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from lidp.errors import SealError

MAX_JSON_BYTES = 2**31
"""Largest JSON file that is read. The receipt of a million candidates has about ten million bytes."""
_MAX_DEPTH_ERROR = "its values are nested too deeply"
_READ_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_CHUNK = 2**20
_MAX_FOLDERS = 50


def canonical(plain: Any) -> bytes:
    """Return plain data as JSON of one form: keys sorted, no spaces, no NaN."""
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def sha256(*parts: bytes) -> str:
    """Return the hash of bytes, as ``sha256:`` and 64 hexadecimal digits."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return f"sha256:{digest.hexdigest()}"


def parse_json(text: str | bytes, where: object) -> Any:
    """Return the value of a JSON text from an untrusted file.

    Raises:
        SealError: also for NaN, infinities, duplicate keys, numbers of thousands of digits and deep nesting.
    """
    try:
        return json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant, parse_float=_finite)
    except RecursionError:
        raise SealError(f"{where}: {_MAX_DEPTH_ERROR}") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise SealError(f"{where}: not the JSON that lidp writes ({str(error)[:200]})") from None


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    if len(plain) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]  # adds it
        raise ValueError(f"the key {twice[:40]!r} occurs twice")
    return plain


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{text[:40]} is out of range")
    return number


@contextlib.contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a regular file for reading, without following a symbolic link in its place.

    Raises:
        SealError: if it is missing, a link, or not a regular file.
    """
    try:
        descriptor = os.open(path, _READ_FLAGS)
    except OSError as error:
        if path.is_symlink():
            raise SealError(
                f"{path} is a symbolic link, which may lead out of the folder; put the file itself there"
            ) from None
        raise SealError(f"{path}: {error.strerror or error}") from None
    except ValueError:  # a name with a null character
        raise SealError(f"{path!s}: there is no such file") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):  # Python raises an error of its own for folders
        os.close(descriptor)
        raise SealError(f"{path} is not a regular file")
    with os.fdopen(descriptor, "rb") as stream:
        yield stream


def read_bytes(path: Path, limit: int = MAX_JSON_BYTES) -> bytes:
    """Return the content of a regular file of at most ``limit`` bytes."""
    with opened(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > limit:
            raise SealError(f"{path} has {size:,} bytes; at most {limit:,} are read")
        return stream.read(size)


def read_json(path: Path, limit: int = MAX_JSON_BYTES) -> dict[str, Any]:
    """Return the object in a JSON file."""
    plain = parse_json(read_bytes(path, limit), path)
    if not isinstance(plain, dict):
        raise SealError(f"{path}: expected a JSON object, got {type(plain).__name__}")
    return plain


def hash_of(path: Path) -> str:
    """Return the hash of a file, or of a folder: of the names and hashes of its files."""
    if path.is_dir() and not path.is_symlink():
        return sha256(canonical({str(file.relative_to(path)): hash_of(file) for file in _files_below(path)}))
    digest = hashlib.sha256()
    with opened(path) as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return f"sha256:{digest.hexdigest()}"


def _files_below(folder: Path, depth: int = 0) -> list[Path]:
    if depth > _MAX_FOLDERS:
        raise SealError(f"{str(folder)[:100]}: its folders are nested too deeply")
    entries = sorted(folder.iterdir())
    folders = [entry for entry in entries if entry.is_dir() and not entry.is_symlink()]
    nested = [file for entry in folders for file in _files_below(entry, depth + 1)]
    return [entry for entry in entries if entry.is_symlink() or not entry.is_dir()] + nested


def write_json(path: Path, plain: Any, *, private: bool = False, indent: int | None = 1) -> None:
    """Write a new JSON file; a private one can be read by this user only, whatever the umask."""
    text = json.dumps(plain, indent=indent, allow_nan=False, ensure_ascii=True) + "\n"
    write_bytes(path, text.encode(), private=private)


def write_bytes(path: Path, content: bytes, *, private: bool = False) -> None:
    """Write a new file and force it to disk."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666), "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def force_folder(path: Path) -> None:
    """Force the names of the files in a folder to disk, where the system can."""
    with contextlib.suppress(OSError):  # Windows cannot open folders
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _force_files(folder: Path) -> None:
    """Force all files below a folder to disk."""
    for file in _files_below(folder):
        with file.open("rb+") as stream:
            os.fsync(stream.fileno())
    force_folder(folder)


def replace_file(path: Path, content: bytes) -> None:
    """Write a file, or replace it by a whole new one.

    Raises:
        SealError: if it cannot be written.
    """
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            Path(name).chmod(0o666 & ~_umask())
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise SealError(f"{path}: cannot be written: {error.strerror}") from None


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Fill a folder that appears under its name only when the block has ended without an error. Only this user can enter it.

    Raises:
        SealError: if there is a file or a folder with content of this name, or it cannot be created.
    """
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        raise SealError(f"{path} exists and is not a folder; choose another name")
    if path.is_dir() and any(path.iterdir()):
        raise SealError(f"{path} is not empty; a seal needs a new folder, choose another name")
    if not path.absolute().parent.is_dir():
        raise SealError(f"{path}: there is no folder {path.absolute().parent} to create it in")
    try:
        partial = Path(tempfile.mkdtemp(dir=path.absolute().parent, prefix=f".{path.name}-partial-"))
    except OSError as error:
        raise SealError(f"{path}: cannot be created: {error.strerror}") from None
    try:
        try:
            yield partial
            _force_files(partial)
            partial.rename(path)  # replaces an empty folder, and fails if it is not empty any more
            force_folder(path.absolute().parent)
        except OSError as error:
            raise SealError(f"{path}: cannot be created: {error.strerror or error}") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)  # after the renaming there is nothing of this name
