"""Copy records for each run, so that changes in place affect neither other runs nor the scoring."""

from __future__ import annotations

import copy
import random
import sys
from typing import Any

import numpy as np

from lidp.errors import AuditFailed


def copy_for_run(records: Any) -> Any:
    """Return a deep copy of records.

    Raises:
        AuditFailed: if they cannot be copied, or if they hold a random number generator, because all runs would draw the same
            numbers from their copies of it.
    """
    memo: dict[int, Any] = {}
    try:
        copied = copy.deepcopy(records, memo)
    except Exception as error:
        raise AuditFailed(
            f"records of type {type(records).__name__} cannot be copied ({type(error).__name__}: {error}), and every run needs a "
            "separate copy; give them a method __deepcopy__, which may return self if reading them changes nothing"
        ) from error
    _refuse_generators(records, memo)
    return copied


def _refuse_generators(records: Any, memo: dict[int, Any]) -> None:
    """Raise if ``memo``, the memo of the deep copy of ``records``, contains a copy of a generator."""
    torch = sys.modules.get("torch")
    kinds: tuple[Any, ...] = (np.random.Generator, np.random.BitGenerator, np.random.RandomState, random.Random)
    kinds = kinds if torch is None else (*kinds, torch.Generator)
    for part in reversed(memo.values()):  # the outermost first: a generator before its bit generator
        if isinstance(part, kinds):
            kind = f"{type(part).__module__}.{type(part).__qualname__}"
            raise AuditFailed(
                f"records of type {type(records).__name__} hold a random number generator ({kind}). Every run gets a copy of the "
                "records, so all runs would draw the same numbers from it. Create the generator in the mechanism or in "
                "train, from its argument rng, seed or planting"
            )
