"""Seed and preserve the global random generators, from which some mechanisms draw although they should not."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


def seed_global_generators(rng: np.random.Generator) -> None:
    """Seed the global generators of ``random``, numpy and (if it is imported) torch with a number drawn from ``rng``."""
    seed = int(rng.integers(2**32))
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002  # the global generator is intended
    torch = sys.modules.get("torch")
    if torch is not None:
        seed_torch(torch, seed)


def seed_torch(torch: Any, seed: int) -> None:
    """Seed torch like ``torch.manual_seed``, but without its memory leak on builds for the CPU only.

    For every kind of device that is not initialised, ``torch.manual_seed`` appends the call with its stack trace to a list that is
    never emptied. After 100,000 trials this is slow and takes hundreds of megabytes.
    """
    if any(getattr(torch.version, device, None) for device in ("cuda", "hip", "xpu")) or torch.backends.mps.is_built():
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)


@contextmanager
def preserve_global_generators() -> Iterator[None]:
    """Restore the states of the global generators of ``random``, numpy and torch after the block.

    Otherwise the caller would draw predictable numbers: a model trained after an audit would have noise that anyone can compute.
    """
    states = random.getstate(), np.random.get_state()  # noqa: NPY002
    torch = sys.modules.get("torch")
    torch_state = torch.get_rng_state() if torch is not None else None
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
        torch = sys.modules.get("torch")
        if torch is not None:
            torch.set_rng_state(torch_state) if torch_state is not None else torch.seed()  # imported within the block
