"""Import packages that only some features need."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from lidp.errors import InvalidArgument


def import_optional(module: str, *, purpose: str, extra: str) -> Any:
    """Return a module of an optional package.

    Raises:
        InvalidArgument: if the package is not installed; the message names the extra of lidp that installs it.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if (error.name or "").partition(".")[0] != package:
            raise  # the package is there, and something that it needs is not
        raise InvalidArgument(f"{purpose} needs the package {package}; pip install 'lidp[{extra}]'") from None


def data_frame(columns: Mapping[str, Any]) -> Any:
    """Return a pandas data frame of these columns."""
    return import_optional("pandas", purpose="a data frame", extra="frame").DataFrame(dict(columns))
