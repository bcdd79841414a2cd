"""Where data sets are looked for, and how they are fetched."""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from pathlib import Path

from lidp.errors import InvalidData


def own_folders(name: str) -> list[Path]:
    """``$LIDP_DATA`` and its folder of this name, if that is set."""
    place = os.environ.get("LIDP_DATA")
    return [Path(place), Path(place) / name] if place else []


def cache() -> Path:
    """Where fetched files are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")) / "lidp"


def fetch(url: str, path: Path, remedy: str) -> None:
    """Fetch a file, whole or not at all."""
    try:
        with urllib.request.urlopen(url, timeout=60) as response:  # noqa: S310  # the caller's own choice of site
            content = response.read()
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise InvalidData(f"{url}: cannot be fetched: {error}; {remedy}") from None
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_bytes(content)
    draft.replace(path)
