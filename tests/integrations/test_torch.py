"""PyTorch loops that call the planting: false alarms at a tight null, power, and loops that omit a call."""

import random
from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")

import lidp  # noqa: E402
from lidp import AuditFailed, Claim, CoinFlip, InvalidArgument, LeaveOneOut, Target, Verdict  # noqa: E402
from lidp._runtime.global_generators import seed_torch  # noqa: E402
from lidp.curves.gaussian import gaussian_epsilon  # noqa: E402
from lidp.integrations.gradient_canaries import GradientSeeds, directions  # noqa: E402
from lidp.integrations.planting import Planting  # noqa: E402
from lidp.integrations.record_sets import PooledRecords, record  # noqa: E402
from lidp.integrations.torch import Loop, MovedScore, PlantedRecords, cross_entropy, torch_target  # noqa: E402
from lidp.testing.simulations import assert_covers  # noqa: E402

RECORDS = (np.linspace(-1, 1, 20, dtype=np.float32), np.zeros(20, np.int64))


def one_step(records, planting, noise=1.0):
    """Train a "model" of 30 and 2 x 5 parameters with one noisy step, which is exactly the Gaussian mechanism."""
    model = torch.nn.ParameterList([torch.zeros(30), torch.zeros(2, 5)])
    parameters = list(model)
    planting.watch(parameters)
    sums = [torch.full_like(p, float(records[0].mean())) for p in parameters]
    planting.add(sums, clip_norm=1.0, rate=1.0)
    with torch.no_grad():
        noisy = [total + noise * torch.randn_like(total) for total in sums]
        for p, total in zip(parameters, noisy, strict=True):
            p -= total
    return model


@pytest.mark.slow
@pytest.mark.parametrize("design", [CoinFlip(4), pytest.param(LeaveOneOut(4, 4), marks=pytest.mark.slow)], ids=str)
def test_false_alarms_at_an_exactly_tight_null(design):
    target = torch_target(one_step, RECORDS, pilots=4)
    claim = Claim(gaussian_epsilon(1.0, 1e-3), 1e-3)
    audits = (lidp.audit(target, claim=claim, trials=20, design=design, seed=seed) for seed in range(100))
    assert_covers(sum(result.verdict is Verdict.REFUTED for result in audits), 100, 0.05)


def test_little_noise_is_refuted():
    target = torch_target(partial(one_step, noise=0.2), RECORDS)
    result = lidp.audit(target, claim=Claim(2.0, 1e-5), trials=100, design=CoinFlip(8))
    assert result.verdict is Verdict.REFUTED
    assert "all steps" not in result.target


def test_canaries_change_the_parameters_by_their_directions():
    for seeds in ([], [1, 2]):
        planting = Planting(np.array(seeds, np.int64), np.random.default_rng(0))
        one_step(RECORDS, planting, noise=0.0)
        moved = planting.outcome(None).moved
        np.testing.assert_allclose(moved, -directions(seeds, 40).sum(axis=0) - RECORDS[0].mean(), atol=1e-6)


def test_directions_are_unit_vectors_and_depend_on_the_seed_only():
    seeds = GradientSeeds().draw(np.random.default_rng(0), 200)
    rows = directions(seeds, 50)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)
    np.testing.assert_array_equal(directions(seeds[7:8], 50)[0], rows[7])
    assert np.abs(rows @ rows.T - np.eye(200)).max() < 0.8
    assert np.abs(rows.mean(axis=0)).max() < 0.05


def test_results_do_not_depend_on_workers_or_global_generators():
    target = torch_target(one_step, RECORDS, pilots=2)
    options = {"claim": Claim(1.0, 1e-5), "trials": 6, "design": CoinFlip(4), "stop_when": "never"}
    one = lidp.audit(target, **options)
    torch.manual_seed(12345)
    two = lidp.audit(target, workers=2, **options)
    np.testing.assert_array_equal(one.scores.flips()[0], two.scores.flips()[0])


def test_loops_that_omit_a_call_end_the_audit():
    def nothing(records, planting):
        return None

    def no_watch(records, planting):
        planting.add([torch.zeros(3)], clip_norm=1.0, rate=1.0)

    def other_sums(records, planting):
        planting.watch([torch.zeros(3)])
        planting.add([torch.zeros(4)], clip_norm=1.0, rate=1.0)

    def twice(records, planting):
        planting.watch([torch.zeros(3)])
        planting.watch([torch.zeros(3)])

    def empty(records, planting):
        planting.watch([])

    messages = {
        nothing: "planted no canaries",
        no_watch: "call planting.watch\\(parameters\\) before",
        twice: "planting.watch was called twice",
        empty: "no parameters to watch",
    }
    for loop, message in messages.items():
        with pytest.raises(AuditFailed, match=message):
            lidp.audit(torch_target(loop, RECORDS), claim=Claim(1.0), trials=2)
    with pytest.raises(AuditFailed, match="the sums have 4 numbers, but the watched parameters have 3"):
        lidp.audit(torch_target(other_sums, RECORDS), claim=Claim(1.0), trials=2)
    for loop in (nothing, other_sums):  # in every run, so that failing does not reveal the coins
        bare = Target(Loop(loop), GradientSeeds(), MovedScore(), PlantedRecords(RECORDS))
        for design in (CoinFlip(1), LeaveOneOut(1, 1)):
            with pytest.raises(AuditFailed):
                lidp.audit(bare, claim=Claim(0.5), trials=30, design=design)
    with pytest.raises(InvalidArgument, match="train must be callable"):
        torch_target(3, RECORDS)


def test_record_canaries_refute_a_loop_without_privacy():
    def train(records, planting):
        features, labels = map(torch.as_tensor, records)
        model = torch.nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=2.0)
        for _ in range(60):  # no privacy at all
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(features), labels).backward()
            optimizer.step()
        return model

    rng = np.random.default_rng(0)
    records = rng.standard_normal((10, 4)).astype(np.float32), rng.integers(0, 2, 10)
    pool = 3 * rng.standard_normal((60, 4)).astype(np.float32), rng.integers(0, 2, 60)
    target = torch_target(train, records, canaries=pool, pilots=3)
    result = lidp.audit(target, claim=Claim(0.5, 1e-5), trials=100, design=CoinFlip(4))
    assert result.verdict is Verdict.REFUTED


def test_cross_entropy_is_computed_in_evaluation_mode():
    model = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(3, 2))
    record = (np.ones(3, np.float32), 1)
    assert model.training
    assert cross_entropy(model, record) == cross_entropy(model, record)
    assert model.training


def test_add_accepts_an_iterator_of_sums():
    planting = Planting(np.array([3]), np.random.default_rng(0))
    total = torch.zeros(6)
    planting.watch([torch.zeros(6)])
    planting.add((tensor for tensor in [total]), clip_norm=2.0, rate=1.0)
    np.testing.assert_allclose(total.numpy(), 2 * directions([3], 6)[0], atol=1e-6)


def test_tensors_can_be_columns():
    x, y = torch.arange(12.0).reshape(6, 2), torch.arange(6)
    data = PooledRecords((x, y), (x[:3] + 100, y[:3]))
    features, labels = data.with_canaries([2, 0])
    assert features.shape == (8, 2)
    assert labels.tolist() == [0, 1, 2, 3, 4, 5, 2, 0]
    assert record(data.pool, 1)[1] == 1


def test_a_loop_with_noise_from_a_fixed_seed_ends_the_audit():
    def fixed(records, planting):
        torch.manual_seed(0)
        return one_step(records, planting)

    with pytest.raises(AuditFailed, match="ignores its seed"):
        lidp.audit(torch_target(fixed, RECORDS), claim=Claim(1.0), trials=2)


def test_an_audit_preserves_global_generators_and_threads():
    """The noise of a model trained after an audit must not follow from the audit's seed."""
    threads = torch.get_num_threads()

    def seeded(start):
        torch.manual_seed(start)
        random.seed(start)
        np.random.seed(start)  # noqa: NPY002

    def drawn():
        return torch.rand(1).item(), random.random(), np.random.random()  # noqa: NPY002, S311

    numbers = []
    for start in (1, 2):
        seeded(start)
        lidp.audit(torch_target(one_step, RECORDS, pilots=2), claim=Claim(5.0, 1e-5), trials=2, design=CoinFlip(2))
        numbers.append(drawn())
        seeded(start)
        assert numbers[-1] == drawn()
    assert numbers[0] != numbers[1]
    assert torch.get_num_threads() == threads


def test_seed_torch_leaks_no_memory():
    """Every trial seeds PyTorch's generator, and an audit may have 100,000 trials."""
    if torch.version.cuda or torch.backends.mps.is_built():
        pytest.skip("this PyTorch is built for other devices, and queues seeds for them")
    queued = len(torch.cuda._queued_calls)
    for seed in (3, 2**63 - 1):
        seed_torch(torch, seed)
        expected = torch.rand(3)
        assert len(torch.cuda._queued_calls) == queued
        torch.manual_seed(seed)
        assert torch.equal(torch.rand(3), expected)
        queued = len(torch.cuda._queued_calls)
