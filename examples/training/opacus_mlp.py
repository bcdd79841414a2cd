"""Audit an MLP that Opacus trains on Fashion-MNIST: python examples/training/opacus_mlp.py [trials]

The audit adds the argument `planting` and one line to an ordinary training function.
"""

import sys

import torch
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset

from lidp.data import load_fashion_mnist
from lidp.integrations.opacus import audit_opacus


def train(records, planting):
    model = torch.nn.Sequential(torch.nn.Linear(784, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    criterion = torch.nn.CrossEntropyLoss()
    engine = PrivacyEngine()
    model, optimizer, criterion, loader = engine.make_private(
        module=model,
        optimizer=optimizer,
        criterion=criterion,
        data_loader=DataLoader(records, batch_size=200),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        grad_sample_mode="ghost",
    )
    planting.attach(engine, optimizer, loader)  # the added line
    for _ in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
    return model


if __name__ == "__main__":
    data = load_fashion_mnist().first(2_000)
    records = TensorDataset(torch.from_numpy(data.x * data.unit).float(), torch.from_numpy(data.y.copy()))
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 64
    print(audit_opacus(train, records, delta=1e-5, trials=trials, workers=2, name="Opacus MLP"))
