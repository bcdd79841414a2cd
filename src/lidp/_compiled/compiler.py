"""``compiled``: the decorator of every compiled function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that compiles a function on its first call, with these options of ``numba.njit``.

    The machine code is cached on disk for later processes. In a read-only installation without a writable cache folder, every
    process compiles the function again.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        try:
            compiled_function: Callable[..., Any] = njit(cache=True, **options)(function)
        except RuntimeError:  # numba has no writable folder for its cache
            compiled_function = njit(**options)(function)
        return compiled_function

    return decorate
