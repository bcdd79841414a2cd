"""The generators that a whole process shares, for mechanisms that draw from them, against the rules."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


def seed_global_generators(rng: np.random.Generator) -> None:
    """Give the global generators of ``random``, numpy and (if it is loaded) torch a seed drawn from a generator."""
    seed = int(rng.integers(2**32))
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002  # the global generator is what is meant
    torch = sys.modules.get("torch")
    if torch is not None:
        seed_torch(torch, seed)


def seed_torch(torch: Any, seed: int) -> None:
    """What ``torch.manual_seed`` does, without what it leaves behind.

    For every kind of device that is not in use it notes the call, with a trace of the stack, in a list that is never emptied: after
    a hundred thousand trials that is slow, and hundreds of megabytes. Where torch is built for processors only there is none.
    """
    if any(getattr(torch.version, device, None) for device in ("cuda", "hip", "xpu")) or torch.backends.mps.is_built():
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)


@contextmanager
def kept_global_generators() -> Iterator[None]:
    """Put the global generators of ``random``, numpy and torch back afterwards.

    Whoever called must not get numbers that repeat: a model that is trained after an audit would have noise that anyone knows.
    """
    states = random.getstate(), np.random.get_state()  # noqa: NPY002
    torch = sys.modules.get("torch")
    noise = torch.get_rng_state() if torch is not None else None
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
        torch = sys.modules.get("torch")
        if torch is not None:
            torch.set_rng_state(noise) if noise is not None else torch.seed()  # loaded meanwhile: begin anew
