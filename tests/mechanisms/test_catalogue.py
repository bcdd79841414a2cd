"""The catalogue: outputs depend on the rng only, true ε match the exact laws, and broken mechanisms break their claims."""

import copy
import math
import subprocess
import sys
from itertools import product

import numpy as np
import pytest

from lidp.errors import InvalidArgument
from lidp.mechanisms.catalogue import CATALOGUE, find
from lidp.mechanisms.catalogue.laws import discrete_epsilon, laplace_cdf, laplace_density, twice_laplace_epsilon
from lidp.mechanisms.catalogue.selection import index_law
from lidp.mechanisms.catalogue.sparse_vector import SparseVector, output_laws

NAMES = list(CATALOGUE)
BROKEN = [name for name in NAMES if not CATALOGUE[name].correct]
CORRECT = [name for name in NAMES if CATALOGUE[name].correct]
FIVE = [False] * 5


def delta_of(name, positive=1e-5):
    return positive if CATALOGUE[name].needs_delta else 0.0


def numbers(output):
    """Return an output as a vector of fixed length: its length, then its numbers, padded with zeros."""
    row = np.atleast_1d(np.asarray(output, np.float64)).ravel()
    return np.concatenate([[len(row)], np.nan_to_num(row, nan=99.0), np.zeros(20 - len(row))])


def test_every_entry_has_its_key_as_name_and_a_reference():
    assert all(key == entry.name and entry.about and entry.reference for key, entry in CATALOGUE.items())
    wanted = "laplace gaussian rappor svt1 svt2 svt3 svt4 svt5 svt6 noisy-max noisy-max-value true-length prefix-sums-wrong"
    assert set(wanted.split()) <= set(NAMES)
    assert len(NAMES) == sum(map(len, (BROKEN, CORRECT))) == 26


def test_find_lists_all_names_for_an_unknown_one():
    with pytest.raises(
        InvalidArgument, match="there is no mechanism 'x' in the catalogue; choose one of laplace, .*budget-spent-twice"
    ):
        find("x")
    assert find("svt3") is CATALOGUE["svt3"]


def test_importing_the_catalogue_imports_no_heavy_packages():
    code = "import sys, lidp.mechanisms.catalogue; print([m for m in ('scipy.stats', 'numba') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize("name", NAMES)
def test_claims_out_of_range_are_refused(name):
    for epsilon, delta in ((0.0, 1e-5), (-1.0, 1e-5), (1.0, 1.0), (1.0, -0.1)):
        for function in (find(name).make, find(name).truth):
            with pytest.raises(InvalidArgument):
                function(epsilon, delta)
    if find(name).needs_delta:
        with pytest.raises(InvalidArgument):
            find(name).make(1.0, 0.0)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_the_true_epsilon_exceeds_the_claim_only_of_broken_mechanisms(name, epsilon):
    entry = find(name)
    target = entry.make(epsilon, delta_of(name))
    assert target.name == name
    truth = entry.truth(epsilon, delta_of(name))
    assert (truth <= epsilon + 1e-9) == entry.correct
    assert entry.truth(epsilon, 0.01) <= truth + 1e-12 or entry.needs_delta


@pytest.mark.parametrize("name", NAMES)
def test_outputs_depend_on_the_rng_only_and_data_sets_are_not_changed(name):
    target = find(name).make(1.0, delta_of(name))
    for dataset in (target.d0, target.d1):
        before = copy.deepcopy(dataset)
        one, same, other = (target.mechanism.many(dataset, 50, np.random.default_rng(seed)) for seed in (5, 5, 6))
        assert len(one) == 50
        assert repr(list(one)) == repr(list(same))
        assert repr(list(one)) != repr(list(other)) or name == "nan-through-clipping"
        single, again = (target.mechanism(dataset, np.random.default_rng(5)) for _ in range(2))
        assert repr(single) == repr(again)
        assert type(single) is not np.ndarray or single.ndim == 1
        assert repr(dataset) == repr(before)
        if isinstance(dataset, tuple):  # arrays give the same outputs, and are not changed either
            array = np.array(dataset, np.int64 if name == "noisy-histogram" else np.float64)
            array.flags.writeable = False
            assert repr(list(target.mechanism.many(array, 50, np.random.default_rng(5)))) == repr(list(one))


@pytest.mark.parametrize("name", NAMES)
def test_single_and_batched_outputs_have_the_same_law(name):
    target = find(name).make(1.0, delta_of(name))
    for dataset in (target.d0, target.d1):
        rng = np.random.default_rng(11)
        singles = np.array([numbers(target.mechanism(dataset, rng)) for _ in range(600)])
        many = np.array([numbers(output) for output in target.mechanism.many(dataset, 3000, rng)])
        # Means of each number, of its size and of its sign, which detect a wrong scale as well as a wrong location.
        for a, b in ((singles, many), (np.abs(singles) > 1, np.abs(many) > 1), (singles > 0, many > 0)):
            slack = 5 * np.sqrt(a.var(axis=0) / len(a) + b.var(axis=0) / len(b)) + 0.004
            assert (np.abs(a.mean(axis=0) - b.mean(axis=0)) < slack).all()


def brute_delta(p, q, epsilon):
    return max(sum(max(0.0, a - math.exp(epsilon) * b) for a, b in zip(x, y, strict=True)) for x, y in ((p, q), (q, p)))


@pytest.mark.parametrize("delta", [0.0, 1e-4, 0.03])
def test_discrete_epsilon_is_the_smallest_that_reaches_delta(delta):
    rng = np.random.default_rng(3)
    for _ in range(20):
        p, q = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6))
        epsilon = discrete_epsilon(p, q, delta)
        assert brute_delta(p, q, epsilon + 1e-9) <= delta + 1e-12
        assert epsilon == 0 or brute_delta(p, q, epsilon - 1e-6) > delta
    assert discrete_epsilon(np.array([0.5, 0.5]), np.array([1.0, 0.0]), delta) == math.inf
    assert discrete_epsilon(np.array([0.5, 0.5]), np.array([1.0, 0.0]), 0.6) == 0


@pytest.mark.parametrize(("name", "centres", "scales"), [
    ("laplace", (0, 1), (1, 1)),
    ("laplace-half-scale", (0, 1), (0.5, 0.5)),
    ("laplace-wrong-sensitivity", (0, 2), (1, 1)),
    ("unclipped-sum", (0, 5), (1, 1)),
    ("noisy-mean-true-count", (0, 0.5), (2, 1)),
])  # fmt: skip
def test_true_epsilon_of_one_noisy_number_matches_its_density(name, centres, scales):
    at = np.arange(-60, 60, 0.001) + 0.0005
    laws = [0.001 * laplace_density(at - c, s) for c, s in zip(centres, scales, strict=True)]
    for delta in (0.001, 0.05):
        assert find(name).truth(1.0, delta) == pytest.approx(discrete_epsilon(*laws, delta), abs=2e-3)
    ratio = np.abs(np.log(laws[0]) - np.log(laws[1])).max()
    assert find(name).truth(1.0, 0.0) == (math.inf if name == "noisy-mean-true-count" else pytest.approx(ratio, abs=1e-6))
    # The mechanism has these densities.
    target = find(name).make(1.0, 0.0)
    for dataset, centre, scale in zip((target.d0, target.d1), centres, scales, strict=True):
        drawn = np.sort(target.mechanism.many(dataset, 20_000, np.random.default_rng(1)))
        assert np.abs(laplace_cdf(drawn - centre, scale) - np.arange(1, 20_001) / 20_000).max() < 2.2 / math.sqrt(20_000)


@pytest.mark.parametrize("delta", [0.001, 0.05])
def test_true_epsilon_of_two_noisy_numbers_matches_their_density(delta):
    at = np.arange(-14, 15, 0.02) + 0.01
    one, other = (0.02 * laplace_density(at - c, 1.0) for c in (0, 1))
    brute = discrete_epsilon(np.outer(one, one).ravel(), np.outer(other, other).ravel(), delta)
    assert twice_laplace_epsilon(1.0, delta) == pytest.approx(brute, abs=3e-3)
    assert find("budget-spent-twice").truth(1.0, 0.0) == pytest.approx(2.0)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_true_epsilon_of_flipped_bits_matches_enumeration(epsilon):
    for name in ("randomized-response", "randomized-response-half", "rappor"):
        target = find(name).make(epsilon, 0.0)
        flip = target.mechanism.flip
        length = 4 if name == "rappor" else 1
        bits = [np.arange(length) == d if name == "rappor" else np.array([d]) for d in (target.d0, target.d1)]
        p, q = (
            np.array(
                [
                    math.prod(flip if a != b else 1 - flip for a, b in zip(reported, true, strict=True))
                    for reported in product((0, 1), repeat=length)
                ]
            )
            for true in bits
        )
        for delta in (0.0, 0.01):
            assert find(name).truth(epsilon, delta) == pytest.approx(discrete_epsilon(p, q, delta))
    assert find("rappor").truth(epsilon, 0.0) == pytest.approx(epsilon)
    assert find("randomized-response-half").truth(epsilon, 0.0) == pytest.approx(math.log(2 * math.exp(epsilon) - 1))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_true_epsilon_of_the_third_sparse_vector_matches_its_density(epsilon):
    target, scale, step = find("svt3").make(epsilon, 0.0), 2 / epsilon, 0.01
    at = np.arange(-40 * scale, 40 * scale, step) + step / 2
    laws = []
    for answers in (target.d0, target.d1):
        law, weight = [], step * laplace_density(at - 0.5, scale)
        for answer in answers:
            law.append(step * laplace_density(at - answer, scale) * (np.cumsum(weight) - weight / 2))
            weight = weight * laplace_cdf(at - answer, scale)
        laws.append(np.array([*np.concatenate(law), weight.sum()]))
    assert laws[0].sum() == pytest.approx(1, abs=1e-4)
    assert np.abs(np.log(laws[0] / laws[1])).max() == pytest.approx(find("svt3").truth(epsilon, 0.0), abs=0.01)


@pytest.mark.parametrize("name", ["svt1", "svt2", "svt4", "svt5", "svt6"])
def test_output_laws_match_the_frequencies_of_outputs(name):
    """The frequency of no True in 40,000 runs matches a probability of the law, and outputs respect the cut-off."""
    target = find(name).make(1.0, 0.0)
    law = np.array(output_laws(target.mechanism, target.d0, target.d1))
    np.testing.assert_allclose(law.sum(axis=1), 1, atol=1e-10)
    runs = 40_000
    for row, dataset in zip(law, (target.d0, target.d1), strict=True):
        outputs = target.mechanism.many(dataset, runs, np.random.default_rng(7))
        half = len(dataset) // 2
        quiet = sum(not any(output) and len(output) == 2 * half for output in outputs) / runs
        # No True at all is a single output, so that its probability is in the law.
        assert np.abs(row - quiet).min() < 4 * math.sqrt(max(quiet, 1e-4) / runs)
        cutoff = target.mechanism.cutoff
        assert max(map(sum, outputs)) <= (cutoff or 2 * half)
        assert all(len(output) == 2 * half or (output[-1] and sum(output) == cutoff) for output in outputs)


def test_merging_outputs_does_not_change_epsilon():
    """Three answers with cut-off 2; the reference integrates every output separately on a fine grid."""
    d0, d1, at = (1, 0, 1), (0, 1, 1), np.arange(-60, 60, 0.001) + 0.0005
    mechanism = SparseVector(0.5, 2.0, 3.0, cutoff=2)
    prior = 0.001 * laplace_density(at - 0.5, 2.0)
    outputs = {row[: next((i + 1 for i in range(3) if sum(row[: i + 1]) == 2), 3)] for row in product((0, 1), repeat=3)}
    p, q = (
        [
            (prior * math.prod(laplace_cdf((a - at) if t else (at - a), 3.0) for t, a in zip(o, d, strict=False))).sum()
            for o in outputs
        ]
        for d in (d0, d1)
    )
    for delta in (0.0, 0.01):
        merged = discrete_epsilon(*output_laws(mechanism, d0, d1), delta)
        assert merged == pytest.approx(discrete_epsilon(np.array(p), np.array(q), delta), abs=1e-5)


def test_index_law_matches_frequencies():
    target = find("noisy-max").make(1.0, 0.0)
    for counts in (target.d0, target.d1):
        law = index_law(counts, 2.0)
        assert law.sum() == pytest.approx(1)
        seen = np.bincount(target.mechanism.many(counts, 40_000, np.random.default_rng(2)), minlength=5) / 40_000
        assert (np.abs(seen - law) < 4.5 * np.sqrt(law / 40_000)).all()


def test_true_epsilon_of_the_noisy_maximum_and_of_prefix_sums():
    for epsilon in (0.5, 1.0, 2.0):
        assert find("noisy-max-value").truth(epsilon, 0.0) == pytest.approx(2.5 * epsilon)
        assert find("prefix-sums").truth(epsilon, 0.0) == epsilon
        assert find("prefix-sums-wrong").truth(epsilon, 0.0) == 4 * epsilon


# For each broken mechanism, an event and the data set on which it is likelier.
EVENTS = {
    "laplace-half-scale": (lambda x: x > 1, 1),
    "laplace-wrong-sensitivity": (lambda x: x > 2, 1),
    "unclipped-sum": (lambda x: x > 4, 1),
    "nan-through-clipping": (lambda x: np.isnan(x), 1),
    "true-length": (lambda x: len(x) == 3, 1),
    "gaussian-half-scale": (lambda x: x > 4.0, 1),
    "gaussian-wrong-sensitivity": (lambda x: x > 8.0, 1),
    "randomized-response-half": (lambda x: x == 1, 1),
    "svt3": (lambda x: x[:5] == FIVE and len(x) == 6 and x[5] is not False and 0 < x[5] < 2.5, 1),
    "svt4": (lambda x: x[:5] == FIVE and sum(x) >= 2, 1),
    "svt5": (lambda x: x == FIVE + [True] * 5, 1),
    "svt6": (lambda x: sum(x[10:]) - sum(x[:10]) >= 4, 1),
    "noisy-max-value": (lambda x: x < 0, 0),
    "noisy-mean-true-count": (lambda x: x < -2.4, 0),
    "prefix-sums-wrong": (lambda x: (x > 1).all(), 1),
    "budget-spent-twice": (lambda x: (x > 1).all(), 1),
}


def frequency(name, dataset, event, runs, seed):
    target = find(name).make(1.0, delta_of(name))
    outputs = target.mechanism.many((target.d0, target.d1)[dataset], runs, np.random.default_rng(seed))
    return sum(bool(event(output)) for output in outputs) / runs


def test_every_broken_mechanism_has_an_event():
    assert sorted(EVENTS) == sorted(BROKEN)


@pytest.mark.parametrize("name", BROKEN)
def test_broken_mechanisms_break_their_claim_and_not_their_true_epsilon(name):
    """At the claim (1, δ), the event exceeds e times its other probability plus δ by five standard errors.

    There are 30,000 runs per data set (Gaussian: 120,000).
    """
    event, likelier = EVENTS[name]
    runs = 120_000 if find(name).needs_delta else 30_000
    high, low = (frequency(name, dataset, event, runs, 9 + dataset) for dataset in (likelier, 1 - likelier))
    slack = 5 * math.sqrt((high + math.e**2 * low + 1 / runs) / runs)
    assert high > math.e * low + delta_of(name) + slack
    # The true ε covers the event.
    truth = find(name).truth(1.0, delta_of(name))
    assert truth == math.inf or high <= math.exp(truth) * low + delta_of(name) + 5 * math.exp(truth) * math.sqrt(
        (low + 1 / runs) / runs
    )


def events_of(name):
    if name.startswith("svt"):
        yield from (lambda x, k=k: len(x) == k for k in range(1, 11))
        yield from (lambda x, k=k: not any(x[:k]) for k in range(1, 11))
        yield from (lambda x, k=k: sum(x) == k for k in range(3))
    elif name in ("randomized-response", "noisy-max"):
        yield from (lambda x, k=k: x == k for k in range(5))
    elif name == "rappor":
        yield from (lambda x, s=s: tuple(x[:2]) == s for s in product((0, 1), repeat=2))
    else:
        yield from (lambda x, t=t: np.mean(x) > t for t in np.linspace(-2, 3, 11))
        yield from (lambda x, t=t: np.max(x) < t for t in np.linspace(-2, 3, 11))


@pytest.mark.parametrize("name", CORRECT)
def test_no_event_of_a_family_breaks_the_true_epsilon_of_a_correct_mechanism(name):
    target, runs = find(name).make(1.0, delta_of(name)), 3000
    truth = find(name).truth(1.0, delta_of(name))
    outputs = [target.mechanism.many(d, runs, np.random.default_rng(21 + i)) for i, d in enumerate((target.d0, target.d1))]
    for event in events_of(name):
        seen = [sum(bool(event(output)) for output in some) / runs for some in outputs]
        for high, low in (seen, seen[::-1]):
            slack = 5 * math.sqrt((high + math.exp(2 * truth) * (low + 1 / runs)) / runs)
            assert high <= math.exp(truth) * low + delta_of(name) + slack
