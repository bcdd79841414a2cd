"""Load the target of a training that a target spec names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lidp.claim import Claim
from lidp.target import Target
from lidp.training.catalogue import find


def load_training(options: Mapping[str, Any], claim: Claim) -> Target:  # noqa: ARG001  # all loaders get the claim
    """Return the trainer of the option ``name``. What it does and what its scores assume does not depend on the claim.

    Raises:
        InvalidArgument: if the name is unknown.
    """
    return find(options["name"]).target
