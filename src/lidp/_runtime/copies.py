"""Copy records for a run, so that what it does to them in place reaches neither other runs nor the scoring."""

from __future__ import annotations

import copy
import random
import sys
from typing import Any

import numpy as np

from lidp.errors import AuditFailed


def copy_for_run(thing: Any) -> Any:
    """Return a deep copy of records.

    Raises:
        AuditFailed: if they cannot be copied, or hold a random number generator, from whose copy every run would draw the same
            numbers.
    """
    memo: dict[int, Any] = {}
    try:
        own = copy.deepcopy(thing, memo)
    except Exception as error:
        raise AuditFailed(
            f"records of type {type(thing).__name__} cannot be copied ({type(error).__name__}: {error}), and every run needs a "
            "copy of its own; give them a method __deepcopy__, which may return self if reading them changes nothing"
        ) from error
    _refuse_generators(thing, memo)
    return own


def _refuse_generators(thing: Any, memo: dict[int, Any]) -> None:
    """Refuse a thing whose copy, made with this memo, has a copy of a generator."""
    torch = sys.modules.get("torch")
    kinds: tuple[Any, ...] = (np.random.Generator, np.random.BitGenerator, np.random.RandomState, random.Random)
    kinds = kinds if torch is None else (*kinds, torch.Generator)
    for part in reversed(memo.values()):  # the outermost first
        if isinstance(part, kinds):
            kind = f"{type(part).__module__}.{type(part).__qualname__}"
            raise AuditFailed(
                f"records of type {type(thing).__name__} hold a random number generator ({kind}). Every run gets a copy of its "
                "records, so that all runs would draw the same numbers from it. Make the generator in the mechanism or in train, "
                "from the rng, seed or planting that it is given"
            )
