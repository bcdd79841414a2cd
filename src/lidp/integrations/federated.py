"""Audit federated averaging with differential privacy at user level: a function ``train(clients, planting) -> model``.

    def train(clients, planting):
        planting.watch(parameters)
        for _ in range(rounds):
            sums = ...  # clipped updates of the clients sampled in this round, added up; all randomness comes from planting.rng
            planting.add(sums, clip_norm=1.0, rate=0.1)
            noisy_sums = ...
            planting.released(noisy_sums, clip_norm=1.0, noise_multiplier=1.0, rate=0.1)
            ...
        return model

    print(audit_federated(train, clients, noise_multiplier=1.0, sampling_rate=0.1, rounds=100, delta=1e-5, trials=8))

A canary is a whole client: either an update of the length of the clipping norm, or a client of a pool with data of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from lidp.canaries.gradients import GradientCanary
from lidp.claim import Claim, Neighbours
from lidp.designs import Design
from lidp.engine.audit import audit
from lidp.errors import InvalidArgument
from lidp.integrations.accounted_steps import AccountedSteps
from lidp.integrations.gradient_canaries import ScoredOutput
from lidp.integrations.planting import Planting, Trained
from lidp.integrations.record_sets import PooledRecords, copy_records
from lidp.integrations.torch import (
    FirstSteps,
    GradientPlan,
    Loop,
    PlantedRecords,
    count_parameters,
    gradient_target,
    name_of_loop,
    record_target,
)
from lidp.integrations.trainers import Loss
from lidp.result import AuditResult
from lidp.target import Target

__all__ = ["audit_federated", "federated_target"]

Train = Callable[[Any, Planting], Any]

PRIVACY_UNIT = "one client: user-level, add-remove of one client"
_NOT_TESTED_BY_UPDATES = "local training, clipping and sampling of clients (update canaries are added after them)"
_NOT_TESTED_BY_CLIENTS = "what single rounds release (scores use the final model)"


@dataclass(frozen=True)
class FederatedLoop(Loop):
    """Federated training as a mechanism. It needs no PyTorch, but seeds PyTorch's generators if PyTorch is installed.

    They are seeded although the training may not have imported PyTorch yet: it may do so while it runs, and would then have the
    same noise in the first run of every process.
    """

    def run(self, data: Any, planting: Planting, torch_rng: np.random.Generator) -> Trained:
        """See :class:`Loop`."""
        if find_spec("torch") is not None:
            return super().run(data, planting, torch_rng)
        clients = copy_records(data.records) if isinstance(data, PlantedRecords) else data
        return planting.outcome(self.train(clients, planting))


def federated_target(
    train: Train,
    clients: Sequence[Any],
    *,
    noise_multiplier: float,
    sampling_rate: float,
    rounds: int,
    canary: GradientCanary | str | None = None,
    canaries: Sequence[Any] | None = None,
    loss: Loss | None = None,
    pilots: int | None = None,
    name: str = "",
    facts: Mapping[str, float | str] | None = None,
) -> Target:
    """Return a target for federated averaging, whose canaries are whole clients.

    Without ``canaries``, a canary is an update of the length of the clipping norm, which :meth:`Planting.add` adds to the sums of
    clipped updates, and scores use what every round releases. With ``canaries``, a canary is a client of that pool, with whose data
    the model is trained, and scores use the loss of the final model on them.

    Args:
        train: ``train(clients, planting) -> model``. All randomness should come from the generator ``planting.rng``, or be
            seeded from it; the global generators are seeded too. Public quantities, such as the divisor of sums, must not depend
            on the number of clients: canaries are among them in some runs and not in others. With ``canaries`` it may ignore the
            other methods of ``planting``.
        clients: one item per client, such as its arrays. Every run gets copies.
        noise_multiplier: the noise multiplier that the accountant was told: the standard deviation of the noise in the sums,
            divided by the clipping norm of an update.
        sampling_rate: the probability of Poisson sampling with which a client takes part in a round, as told to the accountant.
        rounds: the number of rounds that the accountant was told.
        canary: the kind of update: "dirac-gradient" (default), along one parameter, or "random-gradient".
        canaries: a pool of clients like ``clients``, fixed before the audit.
        loss: ``loss(model, client) -> float``, for a pool of clients; smaller for clients with whose data the model was trained.
        pilots: number of models trained before the audit without canaries, for a pool of clients. Default: 8.
        facts: numbers or words by name, which results show.

    Guarantee: keeps the audit valid for any ``train`` and ``loss``, if runs are independent given their arguments.
    """
    if not callable(train):
        raise InvalidArgument(f"train must be callable as train(clients, planting), got {train!r}")
    if (canaries is None) != (loss is None):
        raise InvalidArgument(
            "a pool of clients as canaries= needs loss=, and nothing else does; give loss(model, client), or leave out both"
        )
    accounted = AccountedSteps(noise_multiplier, sampling_rate, rounds)
    stated = {
        "privacy unit": PRIVACY_UNIT,
        "noise multiplier": noise_multiplier,
        "sampling rate": sampling_rate,
        "rounds": rounds,
        **(facts or {}),
        "not tested": _NOT_TESTED_BY_UPDATES if canaries is None else _NOT_TESTED_BY_CLIENTS,
    }
    scored = ScoredOutput.TRANSCRIPT if canaries is None else ScoredOutput.FINAL_MODEL
    plan = GradientPlan.choose(canaries, canary, scored, pilots)
    loop, name = FederatedLoop(train), name or name_of_loop(train)
    if canaries is None or loss is None:
        listed = _listed(clients=clients)
        target = gradient_target(loop, listed, plan, prepare=FirstSteps(loop), name=name, facts=stated)
        counted = plan.count_canaries(count_parameters(loop, target.dataset), len(listed))
        target = replace(target, canary_count=counted)
    else:
        data = PooledRecords(_listed(clients=clients), _listed(canaries=canaries))
        target = record_target(loop, data, loss=loss, pilots=pilots, name=name, facts=stated)
    return replace(target, neighbours=Neighbours.ADD_REMOVE, curve=accounted.curve)


def _listed(**named: Any) -> list[Any]:
    """Return clients as a list, in which a client may be of any type."""
    ((name, clients),) = named.items()
    if not isinstance(clients, (list, tuple, np.ndarray)):
        raise InvalidArgument(f"{name} must be a list with one item per client, got {type(clients).__name__}")
    return list(clients)


def audit_federated(
    train: Train,
    clients: Sequence[Any],
    *,
    noise_multiplier: float,
    sampling_rate: float,
    rounds: int,
    delta: float | None = None,
    claim: Claim | None = None,
    design: Design | None = None,
    canary: GradientCanary | str | None = None,
    canaries: Sequence[Any] | None = None,
    loss: Loss | None = None,
    pilots: int | None = None,
    name: str = "",
    **options: Any,
) -> AuditResult:
    """Audit federated averaging at user level against what its accountant promises.

    The claim is what PLD accounting promises at ``delta`` for the noise multiplier, the sampling rate and the rounds, about adding
    or removing one client, unless ``claim`` is given. See :func:`federated_target` for the other arguments, and :func:`lidp.audit`
    for ``options``, such as ``trials``, ``seed``, ``workers`` and ``store``.

    Guarantee: that of :func:`lidp.audit`.
    """
    claim = AccountedSteps(noise_multiplier, sampling_rate, rounds).choose(delta, claim)
    target = federated_target(
        train,
        clients,
        noise_multiplier=noise_multiplier,
        sampling_rate=sampling_rate,
        rounds=rounds,
        canary=canary,
        canaries=canaries,
        loss=loss,
        pilots=pilots,
        name=name,
    )
    return audit(target, claim=claim, design=design, **options)
