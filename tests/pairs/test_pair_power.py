"""``audit_pair`` on mechanisms that break their claim: leaks of many kinds are refuted, in outputs of every kind."""

import numpy as np
import pytest

from lidp import Claim, Verdict, audit_pair
from tests.pairs.mechanisms import Laplace, one_by_one, randomized_response

ONE = Claim(1.0)


def test_half_the_noise_is_refuted_within_800_runs():
    needed = [audit_pair(Laplace(0.5), 0, 1, claim=ONE, seed=seed).bound.trials for seed in range(20)]
    assert np.median(needed) <= 800


def test_bound_comes_close_to_the_true_epsilon():
    result = audit_pair(Laplace(1.0), 0, 1, claim=ONE, runs=200_000, stop_when="never")
    assert 0.9 <= result.bound.epsilon <= 1.0
    assert result.verdict is Verdict.NOT_REFUTED


def test_half_the_noise_is_refuted_within_800_single_runs():
    needed = [audit_pair(one_by_one(0.5), 0, 1, claim=ONE, runs=5000, seed=seed).bound.trials for seed in range(10)]
    assert np.median(needed) <= 800


def test_boosting_refutes_a_leak_that_no_single_column_shows():
    """Which of two bits agree is in their exclusive or only; eight other bits are noise."""
    pytest.importorskip("sklearn")

    def mechanism(dataset, rng):
        bits = rng.integers(0, 2, 10)
        if rng.random() < 0.9:
            bits[7] = bits[3] ^ bits[5] ^ dataset
        return bits

    assert audit_pair(mechanism, 0, 1, claim=ONE, runs=30_000).verdict is Verdict.REFUTED


def test_output_array_that_the_mechanism_overwrites_is_copied():
    class Buffer:
        def __init__(self):
            self.output = np.zeros(1)

        def __call__(self, dataset, rng):
            self.output[:] = dataset + 1e-3 * rng.normal()
            return self.output

    assert audit_pair(Buffer(), 0, 1, claim=ONE, runs=1000).verdict is Verdict.REFUTED


def test_rare_outputs_are_refuted_only_if_they_leak():
    """None in 99 of 100 runs, and then the truth."""
    result = audit_pair(lambda data, rng: data if rng.random() < 0.01 else None, 0, 1, claim=Claim(1.0), runs=20_000)
    assert result.verdict is Verdict.REFUTED
    harmless = audit_pair(lambda data, rng: 1 if rng.random() < 0.01 else None, 0, 1, claim=ONE, runs=5000)
    assert harmless.verdict is Verdict.NOT_REFUTED
    assert harmless.leak.startswith("no output for certain; most of all ")


def test_dicts_with_ever_new_keys_are_not_refuted():
    result = audit_pair(lambda data, rng: {int(rng.integers(10**9)): data + rng.laplace()}, 0, 1, claim=ONE, runs=3000)
    assert result.verdict is not Verdict.REFUTED


def test_features_of_the_user_reveal_a_leak_in_texts():
    def mechanism(dataset, rng):
        word = "".join(rng.choice(list("abcdefgh"), 12))
        return word + ("ab" if dataset else "ba") if rng.random() < 0.9 else word

    options = {"claim": Claim(0.5), "runs": 3000}
    plain = audit_pair(mechanism, 0, 1, **options)
    helped = audit_pair(mechanism, 0, 1, features=lambda word: [word.endswith("ab"), word.endswith("ba")], **options)
    assert plain.verdict is not Verdict.REFUTED
    assert helped.verdict is Verdict.REFUTED
    assert "feature" in helped.leak


def test_bits_reveal_a_leak_in_the_last_bits_of_floats():
    """Noise on a grid of its own: equal as numbers go, but the last bits tell."""

    def mechanism(dataset, rng):
        value = rng.normal()
        return np.float64(np.float32(value)) if dataset else value

    assert audit_pair(mechanism, 0, 1, claim=ONE, runs=2000).verdict is not Verdict.REFUTED
    assert audit_pair(mechanism, 0, 1, claim=ONE, runs=2000, bits=True).verdict is Verdict.REFUTED


WRAPS = {
    "bool": lambda bit: bit,
    "int": int,
    "float": float,
    "numpy": lambda bit: np.array([bit, 0.5]),
    "scalar array": lambda bit: np.array(float(bit)),
    "string": lambda bit: "yes" if bit else "no",
    "bytes": lambda bit: b"y" if bit else b"n",
    "tuple": lambda bit: (1, "a", bit),
    "list": lambda bit: [0] * (3 if bit else 2),
    "nested": lambda bit: [[1, [bit]], None],
    "dict": lambda bit: {"a": 1, "b": [bit]},
    "keys": lambda bit: {"a": 1} if bit else {"b": 1},
    "set": lambda bit: {1, 2} if bit else {1},
    "none": lambda bit: None if bit else 1.0,
    "nan": lambda bit: float("nan") if bit else 1.0,
    "infinite": lambda bit: float("inf") if bit else -float("inf"),
    "huge": lambda bit: 10**400 if bit else 1,
    "complex": lambda bit: complex(0, bit),
}


@pytest.mark.parametrize("kind", WRAPS)
def test_output_kind_is_refuted_only_if_it_leaks(kind):
    leaky, tight = (randomized_response(epsilon, WRAPS[kind]) for epsilon in (4.0, 1.0))
    refuted = audit_pair(leaky, 0, 1, claim=ONE, runs=1000, seed=1)
    assert refuted.verdict is Verdict.REFUTED
    assert "runs on d0" in refuted.leak
    unlikely = {"failure_probability": 1e-4}
    assert audit_pair(tight, 0, 1, claim=ONE, runs=500, seed=1, **unlikely).verdict is not Verdict.REFUTED


def test_search_chooses_the_pair_that_leaks():
    """Only the last of many pairs of counts differs by more than the noise was meant for."""
    pairs = [(k, k + 1) for k in range(15)] + [(7, 12)]
    result = audit_pair(Laplace(1.0), pairs=pairs, claim=ONE, runs=8000)
    assert result.verdict is Verdict.REFUTED
    assert 0 < result.preparation_models <= 1600
    assert result.planned_trials == 8000 - 1600
