"""Audit DP-SGD written by hand in PyTorch, with its noise and with a quarter of it: python examples/training/torch_loop.py

The loop clips gradients and adds noise itself, where mistakes are easily made. It passes its parameters to the audit (`watch`),
and lets the audit add canaries to the sum of clipped gradients (`add`).
"""

from functools import partial

import torch
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant

import lidp
from lidp.data import synthetic_purchases
from lidp.integrations.torch import torch_target

RATE, STEPS, NOISE, CLIP, BATCH = 0.5, 10, 2.0, 1.0, 200


def train(records, planting, noise=NOISE):
    x, y = records
    model = torch.nn.Linear(x.shape[1], 10)
    parameters = list(model.parameters())
    names = [name for name, _ in model.named_parameters()]
    planting.watch(parameters)

    def loss(values, features, label):
        return torch.nn.functional.cross_entropy(torch.func.functional_call(model, values, features), label)

    gradients_of = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))
    for _ in range(STEPS):
        chosen = torch.rand(len(y)) < RATE
        gradients = gradients_of(dict(zip(names, parameters, strict=True)), x[chosen], y[chosen])
        norms = torch.stack([gradients[name].flatten(1).norm(dim=1) for name in names]).norm(dim=0)
        factors = (CLIP / norms.clamp(min=1e-9)).clamp(max=1.0)
        sums = [torch.einsum("i,i...->...", factors, gradients[name]) for name in names]
        planting.add(sums, clip_norm=CLIP, rate=RATE)
        with torch.no_grad():
            for parameter, total in zip(parameters, sums, strict=True):
                parameter -= 0.5 * (total + noise * CLIP * torch.randn_like(total)) / BATCH
    return model


accountant = PLDAccountant()
accountant.compose(dp_event.PoissonSampledDpEvent(RATE, dp_event.GaussianDpEvent(NOISE)), STEPS)
claim = lidp.Claim(accountant.get_epsilon(1e-5), 1e-5)
data = synthetic_purchases(400, 10, classes=10)
records = torch.from_numpy(data.x.astype("float32")), torch.from_numpy(data.y.copy())
for noise in (NOISE, NOISE / 4):
    target = torch_target(partial(train, noise=noise), records, name=f"a loop with noise {noise:g}")
    print(lidp.audit(target, claim=claim, trials=64, workers=2))
