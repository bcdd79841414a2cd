"""The built-in targets: their noise is what their claim takes."""

import numpy as np
import pytest

import lidp
from lidp import Claim, CoinFlip, InvalidArgument, Neighbours
from lidp.curves.gaussian import gaussian_epsilon
from lidp.target_spec import TargetSpec


@pytest.mark.parametrize(("name", "share"), [("gaussian", 1.0), ("gaussian-half-noise", 0.5)])
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_the_noise_of_gaussian_is_that_of_the_neighbours_of_its_claim(name, share, neighbours):
    target = TargetSpec("built-in", {"name": name}).load(Claim(2.0, 1e-5, neighbours))
    vector = np.zeros(target.mechanism.dimension)
    vector[0] = 1.0
    # The furthest neighbours of one vector of length 1: none at all, and its opposite.
    other = [] if neighbours is Neighbours.ADD_REMOVE else [-vector]
    sums = [target.mechanism(dataset, np.random.default_rng(0)) for dataset in ([vector], other)]
    sensitivity = np.linalg.norm(sums[0] - sums[1])
    truth = gaussian_epsilon(sensitivity / target.mechanism.sigma, 1e-5)
    expected = gaussian_epsilon(1 / share * _mu(2.0, 1e-5), 1e-5)
    assert truth == pytest.approx(expected, rel=1e-9)
    assert (truth == pytest.approx(2.0, rel=1e-9)) is (share == 1)


def _mu(epsilon, delta):
    """The μ of a Gaussian mechanism that is exactly (ε, δ)-DP, by halving."""
    low, high = 0.0, 100.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_epsilon(middle, delta) <= epsilon else (low, middle)
    return low


def test_a_target_made_for_one_relation_is_not_audited_under_another():
    target = TargetSpec("built-in", {"name": "gaussian"}).load(Claim(2.0, 1e-5))
    claim = Claim(2.0, 1e-5, Neighbours.REPLACE_ONE)
    with pytest.raises(InvalidArgument, match="replace-one"):
        lidp.audit(target, claim=claim, design=CoinFlip(2, Neighbours.REPLACE_ONE), trials=2)


@pytest.mark.parametrize(
    ("kind", "name", "claim", "message"),
    [
        ("built-in", "laplace", Claim(1, 1e-5), "there is no built-in target 'laplace'"),
        ("built-in", "gaussian", Claim(1), "needs an epsilon and a delta above 0"),
        ("catalogue", "svt9", Claim(1), "no mechanism 'svt9' in the catalogue"),
        ("catalogue", "gaussian", Claim(1), "gaussian adds Gaussian noise, which needs --delta above 0"),
    ],
)
def test_a_target_that_does_not_exist_for_the_claim_is_refused(kind, name, claim, message):
    with pytest.raises(InvalidArgument, match=message):
        TargetSpec(kind, {"name": name}).load(claim)


def test_an_entry_of_the_catalogue_is_a_pair():
    assert isinstance(TargetSpec("catalogue", {"name": "laplace"}).load(Claim(1)), lidp.PairTarget)
