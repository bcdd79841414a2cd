"""Load targets that come with the library: Gaussian mechanisms and the entries of the catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lidp.claim import Claim, Neighbours
from lidp.errors import InvalidArgument
from lidp.target import PairTarget, Target

GAUSSIAN = {"gaussian": 1.0, "gaussian-half-noise": 0.5}
"""Names of the Gaussian mechanisms, with the share of the noise that the claim requires."""
_DIMENSION = 1000


def load_gaussian(options: Mapping[str, Any], claim: Claim) -> Target:
    """Return the Gaussian mechanism of the option ``name``, with noise for the claim.

    Raises:
        InvalidArgument: if the name is unknown, or ε or δ is 0.
    """
    from lidp.canaries.sphere import UniformSphere
    from lidp.curves.gaussian import sigma_for
    from lidp.mechanisms.gaussian import GaussianSum, InnerProduct

    name = options["name"]
    if name not in GAUSSIAN:
        raise InvalidArgument(f"there is no built-in target {name!r}; there are {', '.join(GAUSSIAN)}")
    if not claim.epsilon or not claim.delta:
        raise InvalidArgument("the built-in Gaussian mechanism needs an epsilon and a delta above 0")
    # One vector of length 1 is added or removed; or it is replaced by another one, at a distance of up to 2.
    sensitivity = 2.0 if claim.neighbours is Neighbours.REPLACE_ONE else 1.0
    share = GAUSSIAN[name]
    mechanism = GaussianSum(share * sensitivity * sigma_for(claim.epsilon, claim.delta), _DIMENSION)
    return Target(
        mechanism,
        UniformSphere(_DIMENSION),
        InnerProduct(),
        name="gaussian" if share == 1 else f"gaussian with {share:g} of the noise",
        neighbours=claim.neighbours,
        interference="the vectors overlap, so that each adds to the scores of the others",
    )


def load_catalogue_entry(options: Mapping[str, Any], claim: Claim) -> PairTarget:
    """Return the mechanism of the catalogue of the option ``name``, with the parameters that it has for the claim.

    Raises:
        InvalidArgument: if the name is unknown, or the mechanism needs a δ above 0.
    """
    from lidp.mechanisms.catalogue import find

    entry = find(options["name"])
    if entry.needs_delta and not claim.delta:
        raise InvalidArgument(f"{entry.name} adds Gaussian noise, which needs --delta above 0")
    return entry.make(claim.epsilon, claim.delta)
