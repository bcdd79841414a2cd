"""Where data sets are looked for, and how they are fetched."""

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

_MOST_BYTES = 2**29
"""What is fetched at most."""

DOWNLOAD = "a download (download=True, or lidp audit-dpsgd --download)"
"""How to allow one, in Python and on the command line."""


def own_folders(name: str) -> list[Path]:
    """``$LIDP_DATA`` and its folder of this name, if that is set."""
    place = os.environ.get("LIDP_DATA")
    return [Path(place), Path(place) / name] if place else []


def cache() -> Path:
    """Where fetched files are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")) / "lidp"


def read(path: Path) -> bytes:
    """The content of a file."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidData(f"{path}: cannot be read: {error.strerror or error}") from None


def is_web_page(content: bytes) -> bool:
    """Whether this is a page, as is saved when a site answers with an excuse instead of a file."""
    return content[:100].lstrip().startswith(b"<")


def fetch(url: str, path: Path, remedy: str, read_checked: Callable[[bytes, str], T]) -> T:
    """Fetch a file, whole and checked or not at all: ``read_checked(content, where)`` comes before it is put in its place.

    Returns:
        What ``read_checked`` makes of the content.

    Raises:
        InvalidData: if it cannot be fetched or written, and whatever ``read_checked`` raises.
    """
    try:
        with urllib.request.urlopen(url, timeout=60) as response:  # noqa: S310  # the caller's own choice of site
            content = response.read(_MOST_BYTES + 1)
            if response.length and len(content) <= _MOST_BYTES:
                raise http.client.IncompleteRead(content, response.length)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise InvalidData(f"{url}: cannot be fetched: {error}; {remedy}") from None
    if len(content) > _MOST_BYTES:
        raise InvalidData(f"{url}: sent more than {_MOST_BYTES:,} bytes, which is no data set that is known here; {remedy}")
    found = read_checked(content, f"what was fetched from {url}")
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(content)
        draft.replace(path)
    except OSError as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise InvalidData(f"{path}: what was fetched cannot be kept there: {error.strerror or error}; {remedy}") from None
    return found
