"""DP-SGD of lidp and of Opacus reach the same accuracy on Fashion-MNIST."""

import itertools

import numpy as np
import pytest

from lidp.errors import InvalidData
from lidp.training import DPSGD, Kind, Network, TrainingSet

RECORDS, BATCH, SIGMA, STEPS = 6_000, 100, 1.0, 600
SEEDS = 3


@pytest.fixture(scope="module")
def data():
    from lidp.data import load_fashion_mnist

    try:
        return load_fashion_mnist().first(RECORDS)
    except InvalidData as error:
        pytest.skip(str(error))


def accuracy_of_lidp(data, network, learning_rate, seed):
    trainer = DPSGD(network, BATCH / RECORDS, BATCH, STEPS, learning_rate, SIGMA)
    theta = trainer.train(TrainingSet(data.x, data.y, Kind.EXAMPLE, unit=data.unit), np.random.default_rng(seed))
    return network.accuracy(theta, data.test_x, data.test_y)


def accuracy_of_opacus(data, network, learning_rate, seed):
    torch = pytest.importorskip("torch")
    opacus = pytest.importorskip("opacus")
    torch.manual_seed(seed)
    layers = []
    for inputs, outputs in itertools.pairwise(network.widths):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
    plain = torch.nn.Sequential(*layers[:-1])
    start = torch.from_numpy(network.initial(np.random.default_rng(0)))
    torch.nn.utils.vector_to_parameters(start, plain.parameters())
    x = torch.from_numpy(data.x * np.float32(data.unit))
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, torch.from_numpy(data.y)), batch_size=BATCH)
    model, optimizer, criterion, loader = opacus.PrivacyEngine().make_private(
        module=plain,
        optimizer=torch.optim.SGD(plain.parameters(), lr=learning_rate),
        data_loader=loader,
        criterion=torch.nn.CrossEntropyLoss(),
        noise_multiplier=SIGMA,
        max_grad_norm=1.0,
        grad_sample_mode="ghost",
    )
    batches = itertools.chain.from_iterable(iter(loader) for _ in itertools.count())
    for features, labels in itertools.islice(batches, STEPS):
        optimizer.zero_grad()
        criterion(model(features), labels).backward()
        optimizer.step()
    theta = torch.nn.utils.parameters_to_vector(plain.parameters()).detach().numpy()
    return network.accuracy(theta, data.test_x, data.test_y)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of Opacus, about itself
@pytest.mark.parametrize(("hidden", "learning_rate"), [((), 0.1), ((64,), 0.2)])
def test_accuracies_differ_by_at_most_one_percentage_point(data, hidden, learning_rate):
    network = Network(784, 10, hidden)
    ours = [accuracy_of_lidp(data, network, learning_rate, seed) for seed in range(SEEDS)]
    theirs = [accuracy_of_opacus(data, network, learning_rate, seed) for seed in range(SEEDS)]
    assert np.mean(ours) > 0.65
    assert abs(np.mean(ours) - np.mean(theirs)) < 0.01
