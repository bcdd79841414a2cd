"""Find the files of data sets in folders, and download them."""

from __future__ import annotations

import http.client
import os
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from lidp.errors import InvalidData

T = TypeVar("T")

_MAX_BYTES = 2**29
"""Largest download, in bytes."""

DOWNLOAD = "a download (download=True, or lidp audit-dpsgd --download)"
"""How to allow a download, for error messages."""


def user_folders(name: str) -> list[Path]:
    """Return ``$LIDP_DATA`` and its subfolder of this name, if that variable is set."""
    folder = os.environ.get("LIDP_DATA")
    return [Path(folder), Path(folder) / name] if folder else []


def cache_folder() -> Path:
    """Return the folder for downloaded files."""
    return Path(os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")) / "lidp"


def read(path: Path) -> bytes:
    """Return the content of a file.

    Raises:
        InvalidData: if it cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidData(f"{path}: cannot be read: {error.strerror or error}") from None


def is_web_page(content: bytes) -> bool:
    """Return whether the content is a web page, which sites may send instead of a missing file."""
    return content[:100].lstrip().startswith(b"<")


def fetch(url: str, path: Path, remedy: str, parse: Callable[[bytes, str], T]) -> T:
    """Download a file to ``path``, completely or not at all, after ``parse(content, source)`` has accepted its content.

    Returns:
        The result of ``parse``.

    Raises:
        InvalidData: if the file cannot be downloaded or written, or ``parse`` raises it.
    """
    try:
        with urllib.request.urlopen(url, timeout=60) as response:  # noqa: S310  # the caller chooses the site
            content = response.read(_MAX_BYTES + 1)
            if response.length and len(content) <= _MAX_BYTES:
                raise http.client.IncompleteRead(content, response.length)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise InvalidData(f"{url}: cannot be downloaded: {error}; {remedy}") from None
    if len(content) > _MAX_BYTES:
        raise InvalidData(f"{url}: sent more than {_MAX_BYTES:,} bytes, more than any data set of lidp has; {remedy}")
    parsed = parse(content, f"the download from {url}")
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(content)
        draft.replace(path)
    except OSError as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise InvalidData(f"{path}: the download cannot be saved there: {error.strerror or error}; {remedy}") from None
    return parsed
