"""The bound per second of training with the default number of canaries, against 64, in the same run.

Small trainings with a quarter of the claimed noise, one for each kind of canary: gradients along single coordinates of an MLP
scored by every step, random gradients scored by the final model, and mislabelled records scored by their loss. Both numbers of
canaries get equally many models, in turn; seeds are fixed. The bound is the mean over seeds, the time that of a whole audit with
its pilot models. Needs the extra ``torch``.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

MODELS, SEEDS = 8, (11, 12, 13, 14, 15, 16)
RECORDS, POOL, FEATURES, STEPS, RATE = 1000, 512, 40, 60, 0.1
CLAIMED_NOISE, NOISE = 1.0, 0.25
LEARNING_RATE, CLIP_NORM = 0.5, 1.0


def train(records: Any, planting: Any, *, noise: float) -> Any:
    """Train an MLP by DP-SGD with Poisson batches."""
    import torch
    from torch.func import functional_call, grad, vmap

    features, labels = (torch.as_tensor(column) for column in records)
    model = torch.nn.Sequential(torch.nn.Linear(FEATURES, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2))
    parameters = dict(model.named_parameters())
    planting.watch(list(parameters.items()))

    def loss(weights: Any, x: Any, y: Any) -> Any:
        return torch.nn.functional.cross_entropy(functional_call(model, weights, (x[None],)), y[None])

    for _ in range(STEPS):
        batch = torch.rand(len(features)) < RATE
        weights = {name: tensor.detach() for name, tensor in parameters.items()}
        gradients = vmap(grad(loss), in_dims=(None, 0, 0))(weights, features[batch], labels[batch])
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in gradients.values()]).norm(dim=0)
        scale = (CLIP_NORM / norms.clamp(min=CLIP_NORM))[:, None]
        sums = [(g.flatten(1) * scale).sum(dim=0).view(g.shape[1:]) for g in gradients.values()]
        planting.add(sums, clip_norm=CLIP_NORM, rate=RATE)
        sums = [total + noise * CLIP_NORM * torch.randn_like(total) for total in sums]
        planting.released(sums, clip_norm=CLIP_NORM, noise_multiplier=CLAIMED_NOISE, rate=RATE)
        with torch.no_grad():
            for parameter, total in zip(parameters.values(), sums, strict=True):
                parameter -= LEARNING_RATE / (RATE * RECORDS) * total
    return model


def records_with_labels(rng: np.random.Generator, size: int, *, wrong: bool = False) -> tuple[Any, Any]:
    """Return features and labels of two classes; large records with wrong labels are learned only by a model that saw them."""
    features = rng.standard_normal((size, FEATURES)).astype(np.float32)
    labels = (features[:, 0] > 0).astype(np.int64)
    return (3 * features, 1 - labels) if wrong else (features, labels)


def targets() -> dict[str, Callable[[], Any]]:
    """Return what makes the target of each kind of canary."""
    from lidp.integrations.torch import torch_target

    rng = np.random.default_rng(0)
    records, pool = records_with_labels(rng, RECORDS), records_with_labels(rng, POOL, wrong=True)
    loop = partial(train, noise=NOISE)
    return {
        "coordinates, all steps": partial(torch_target, loop, records, scores="transcript", name="mlp"),
        "random gradients, final model": partial(torch_target, loop, records, name="mlp"),
        "records, final model": partial(torch_target, loop, records, canaries=pool, name="mlp"),
    }


def audit_seconds(target: Any, claim: Any, seed: int, canaries: int | None) -> tuple[Any, float]:
    """Return the result of an audit and its processor time, which other work on the machine does not change."""
    import lidp

    design = None if canaries is None else lidp.CoinFlip(canaries)
    start = time.process_time()
    result = lidp.audit(target, claim=claim, design=design, trials=MODELS, seed=seed, stop_when="never", watch=None)
    return result, time.process_time() - start


def main() -> None:
    import lidp

    claim = lidp.Claim.dpsgd(noise_multiplier=CLAIMED_NOISE, sampling_rate=RATE, steps=STEPS, delta=1e-5)
    for kind, make in targets().items():
        target = make()
        for warm_up in (None, 64):
            audit_seconds(target, claim, 0, warm_up)  # bets are compiled, and their sizes are computed once
        runs = [[audit_seconds(target, claim, seed, canaries) for canaries in (None, 64)] for seed in SEEDS]
        speeds = []
        for number, label in enumerate(("default", "as before")):
            bound = statistics.mean(run[number][0].bound.epsilon for run in runs)
            seconds = statistics.mean(run[number][1] for run in runs)
            speeds.append(bound / seconds)
            canaries = runs[0][number][0].design.canaries
            print(
                f"{kind}: {canaries} canaries, {label}: ε ≥ {bound:.2f} from {MODELS} models in {seconds:.1f} s of one core"
            )
        ratio = f"{speeds[0] / speeds[1]:.2f} times" if speeds[1] else f"{speeds[0]:.2f} against 0 as"
        print(f"{kind}: {ratio} the bound per second (goal: at least as much)")
