"""Versions of what a result is computed with."""

from __future__ import annotations

import platform
from importlib import metadata

PACKAGES = ("lidp", "numpy", "scipy", "numba")


def versions() -> dict[str, str]:
    """Those of this process: Python's, and of the packages on which the numbers of a result may depend."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:  # run from a source tree
            continue
    return found
