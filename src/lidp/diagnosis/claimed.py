"""Read from a claim what it says of every step."""

from __future__ import annotations

from typing import Any

from lidp import checks
from lidp.claim import Claim
from lidp.diagnosis.diagnosis import Claimed
from lidp.errors import InvalidArgument


def claimed_training(
    claim: Claim,
    *,
    noise_multiplier: float | None = None,
    sampling_rate: float | None = None,
    steps: int | None = None,
) -> Claimed:
    """Return what is claimed of a training: what its curve says, except for the numbers that are given.

    Raises:
        InvalidArgument: if the claim does not say it, and it is not given.
    """
    stated = _stated(claim)
    given = {"noise_multiplier": noise_multiplier, "sampling_rate": sampling_rate, "steps": steps}
    values = stated | {name: value for name, value in given.items() if value is not None}
    for name in given:
        if name not in values:
            option = f"--{name.replace('_', '-')}"
            raise InvalidArgument(
                f"the claim of {claim} does not say the {name.replace('_', ' ')} of the training; name it: {option}"
            )
    return Claimed(
        noise_multiplier=checks.positive(noise_multiplier=values["noise_multiplier"]),
        sampling_rate=checks.share(sampling_rate=values["sampling_rate"]),
        steps=checks.count(steps=values["steps"]),
    )


def _stated(claim: Claim) -> dict[str, Any]:
    """Return what the curve of a claim says, if all its steps are alike; nothing otherwise."""
    plain = {} if claim.curve is None else claim.curve.to_json().get("event")
    if not isinstance(plain, dict):
        return {}
    steps = 1
    while plain.get("event") == "SelfComposedDpEvent":
        steps, plain = steps * int(plain["count"]), plain["of"]
    rate = 1.0
    if plain.get("event") == "PoissonSampledDpEvent":
        rate, plain = plain["sampling_probability"], plain["of"]
    if plain.get("event") != "GaussianDpEvent":
        return {}
    return {"noise_multiplier": plain["noise_multiplier"], "sampling_rate": rate, "steps": steps}
