"""Versions of Python and of the packages that compute a result."""

from __future__ import annotations

import platform
from importlib import metadata

PACKAGES = ("lidp", "numpy", "scipy", "numba")


def versions() -> dict[str, str]:
    """Return the version of Python and of each installed package on which the numbers of a result may depend."""
    installed = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            installed[package] = metadata.version(package)
        except metadata.PackageNotFoundError:  # run from a source tree
            continue
    return installed
