"""What a planting records of a run: products of residuals with watched canaries, in any kind of tensor."""

import numpy as np
import pytest
from scipy import stats

torch = pytest.importorskip("torch", reason="needs the extra torch")

from lidp import AuditFailed  # noqa: E402
from lidp.integrations.gradient_canaries import directions  # noqa: E402
from lidp.integrations.planting import Planting  # noqa: E402
from lidp.training.transcript import COLUMNS, STRETCHES  # noqa: E402
from tests.integrations.noisy_loop import NAMES, RECORDS, SIZES, NoisyLoop  # noqa: E402

PARAMETERS = sum(SIZES)
SEEDS = np.arange(5)
COORDINATES = np.array([[0, 1], [119, -1], [120, 1], [140, -1], [170, 1]], float)
STEP = {"clip_norm": 1.0, "noise_multiplier": 1.0, "rate": 1.0}


def run(loop, inserted, watched=None, seed=3):
    """Return the outcome of one run, with the same randomness for all canaries."""
    planting = Planting(np.asarray(inserted), np.random.default_rng(seed), watched=watched)
    torch.manual_seed(seed)
    return planting.outcome(loop(RECORDS, planting))


def log_ratios(rng, size, *, inserted, noise, rate, steps):
    """Return the log-likelihood ratios of canaries, simulated step by step without a model."""
    sampled = (rng.random((size, steps)) < rate) & inserted
    products = sampled + noise * rng.standard_normal((size, steps))
    return np.log(1 - rate + rate * np.exp((products - 0.5) / noise**2)).sum(axis=1)


@pytest.mark.parametrize("rate", [0.1, 1.0])
@pytest.mark.parametrize("clip_norm", [1.0, 0.3])
def test_log_ratios_have_the_law_of_the_accountants_pair(rate, clip_norm):
    """The probability that this test fails by chance is below 2e-4 per case; the seeds are fixed."""
    loop = NoisyLoop(noise=1.0, stated=1.0, rate=rate, steps=15, clip_norm=clip_norm)
    scores = {True: [], False: []}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        coordinates = rng.permutation(PARAMETERS)[:150]
        watched = np.column_stack([coordinates, rng.choice([-1.0, 1.0], 150)])
        ratios = run(loop, watched[:75], watched, seed).transcript.log_ratios
        scores[True].append(ratios[:75])
        scores[False].append(ratios[75:])
    rng = np.random.default_rng(99)
    for inserted, ratios in scores.items():
        expected = log_ratios(rng, 20_000, inserted=inserted, noise=1.0, rate=rate, steps=15)
        assert stats.ks_2samp(np.concatenate(ratios), expected).pvalue > 1e-4


@pytest.mark.parametrize("canaries", [SEEDS, COORDINATES], ids=["random directions", "coordinates"])
def test_products_are_those_of_the_residual(canaries):
    """Without noise, the residual of a step is the sum of the canaries that are in it."""
    loop = NoisyLoop(noise=0.0, rate=1.0, steps=1, clip_norm=0.5)
    transcript = run(loop, canaries[:3], canaries).transcript
    if canaries is SEEDS:
        gradients = directions(SEEDS, PARAMETERS)
    else:
        gradients = np.zeros((5, PARAMETERS))
        gradients[np.arange(5), COORDINATES[:, 0].astype(int)] = COORDINATES[:, 1]
    expected = gradients @ gradients[:3].sum(axis=0)
    np.testing.assert_allclose(transcript.evidence[:, 0, COLUMNS.index("product")], expected, atol=1e-5)
    np.testing.assert_allclose(transcript.evidence[:, 0, COLUMNS.index("length")], 1.0)


@pytest.mark.parametrize("canaries", [SEEDS, COORDINATES], ids=["random directions", "coordinates"])
def test_watched_canaries_do_not_influence_the_training(canaries):
    loop = NoisyLoop()
    watching = run(loop, canaries[:2], canaries).model.state_dict()
    without = run(loop, canaries[:2]).model.state_dict()
    other = run(loop, canaries[:3], canaries).model.state_dict()
    for name, values in watching.items():
        assert torch.equal(values, without[name])
    assert any(not torch.equal(values, other[name]) for name, values in watching.items())


def test_random_directions_too_large_to_cache_give_the_same_products(monkeypatch):
    cached = run(NoisyLoop(), SEEDS[:2], SEEDS).transcript.log_ratios
    monkeypatch.setattr("lidp.integrations.planted_gradients._MAX_CACHED_NUMBERS", 0)
    np.testing.assert_allclose(run(NoisyLoop(), SEEDS[:2], SEEDS).transcript.log_ratios, cached, atol=1e-4)


@pytest.mark.parametrize("steps", [3, 40, 1000])
def test_memory_does_not_grow_with_the_steps(steps):
    transcript = run(NoisyLoop(steps=steps), COORDINATES[:2], COORDINATES).transcript
    assert transcript.steps == steps
    assert transcript.evidence.shape[::2] == (5, len(COLUMNS))
    assert transcript.evidence.shape[1] <= 2 * STRETCHES
    np.testing.assert_array_equal(transcript.evidence[:, :, COLUMNS.index("count")].sum(axis=1), steps)


def test_groups_are_named_by_the_loop_or_by_the_returned_model():
    class Unnamed(NoisyLoop):
        def watch(self, model, planting):
            planting.watch(model.parameters())

    class Anonymous(Unnamed):
        def __call__(self, records, planting):
            super().__call__(records, planting)

    numbers = tuple(f"parameter {number}" for number in (1, 2, 3, 4))
    for loop, names in ((NoisyLoop(), NAMES), (Unnamed(), NAMES), (Anonymous(), numbers)):
        transcript = run(loop, COORDINATES[:2], COORDINATES).transcript
        assert transcript.group_names == names
        np.testing.assert_array_equal(transcript.groups, [0, 0, 1, 2, 3])
    assert run(NoisyLoop(), SEEDS, SEEDS).transcript.group_names == ()


def test_any_layout_and_type_of_tensor_is_read_and_changed():
    watched = np.array([[1, 1], [6, -1], [11, 1]], float)
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        parameter = torch.zeros(4, 3, dtype=dtype).t()  # not contiguous: shape (3, 4)
        planting = Planting(watched, np.random.default_rng(0), watched=watched)
        planting.watch([parameter])
        total = torch.full((4, 3), 2.0, dtype=dtype).t()
        planting.add([total], clip_norm=1.0, rate=1.0)
        expected = np.full(12, 2.0)
        expected[[1, 6, 11]] += [1, -1, 1]
        np.testing.assert_array_equal(total.double().reshape(-1).numpy(), expected)
        planting.released([total], **STEP)
        evidence = planting.outcome(None).transcript.evidence
        np.testing.assert_array_equal(evidence[:, 0, COLUMNS.index("product")], 1.0)


def test_runs_that_diverge_give_scores_that_are_not_finite():
    planting = Planting(COORDINATES[:0], np.random.default_rng(0), watched=COORDINATES[:2])
    planting.watch([torch.zeros(PARAMETERS)])
    infinite = [torch.full((PARAMETERS,), torch.inf)]
    planting.add(infinite, clip_norm=1.0, rate=1.0)
    planting.released(infinite, **STEP)
    assert np.isnan(planting.outcome(None).transcript.log_ratios).all()


def test_calls_in_the_wrong_order_are_refused():
    def planting():
        made = Planting(COORDINATES[:1], np.random.default_rng(0), watched=COORDINATES[:1])
        made.watch([torch.zeros(2), torch.zeros(3)])
        return made

    sums = [torch.zeros(2), torch.zeros(3)]
    with pytest.raises(AuditFailed, match="released was called without planting.add"):
        planting().released(sums, **STEP)
    twice = planting()
    twice.add(sums, clip_norm=1.0, rate=1.0)
    for call in (lambda: twice.add(sums, clip_norm=1.0, rate=1.0), lambda: twice.outcome(None)):
        with pytest.raises(AuditFailed, match="a step did not record what it releases"):
            call()
    with pytest.raises(AuditFailed, match="pass them in the same order"):
        planting().add(sums[::-1], clip_norm=1.0, rate=1.0)
    with pytest.raises(
        AuditFailed, match="must be 0 to 4 for this model, got 0 to 170; watch the same parameters in every run"
    ):
        Planting(COORDINATES, np.random.default_rng(0)).watch(sums)


def test_without_watched_canaries_released_does_nothing():
    outcome = run(NoisyLoop(), COORDINATES)
    assert outcome.transcript is None
    assert len(outcome.moved) == PARAMETERS


@pytest.mark.parametrize("steps", [[1] * 10, [4, 4, 2], [3, 3, 3, 1], [7, 7, 6]], ids=str)
def test_a_canary_is_in_one_batch_of_every_shuffled_epoch_however_batches_are_summed_up(steps):
    """Steps of 10 batches per epoch; the last list of steps goes over the end of the first epoch."""
    epochs = sum(steps) // 10
    canaries = np.array([[coordinate, 1.0] for coordinate in range(5)])
    planting = Planting(canaries, np.random.default_rng(0))
    planting.watch([torch.zeros(5)])
    for _ in range(20):
        total = torch.zeros(5)
        for batches in steps:
            planting.add([total], clip_norm=1.0, rate=0.1, steps_per_epoch=10, batches=batches)
        np.testing.assert_array_equal(total.numpy(), np.full(5, float(epochs)))
