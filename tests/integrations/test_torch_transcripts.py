"""Transcript scores of PyTorch loops: correct loops stand, wrong ones fall within few models, audits are reproducible."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")

import lidp  # noqa: E402
from lidp import AuditFailed, Claim, CoinFlip, InvalidArgument, LeaveOneOut, Verdict  # noqa: E402
from lidp.integrations.torch import FirstStepEnded, FirstStepPlanting, torch_target  # noqa: E402
from lidp.testing.simulations import assert_covers  # noqa: E402
from tests.integrations.noisy_loop import RECORDS, SIZES, NoisyLoop  # noqa: E402
from tests.sample_targets import InterruptedAfter  # noqa: E402

CLAIM = Claim.dpsgd(noise_multiplier=2.0, sampling_rate=0.5, steps=10, delta=1e-5)


def audit(loop, *, canary=None, claim=CLAIM, trials=16, design=None, **options):
    target = torch_target(loop, RECORDS, scores="transcript", canary=canary, name="loop")
    return lidp.audit(target, claim=claim, trials=trials, design=design or CoinFlip(64), **options)


@pytest.mark.slow_after_first
@pytest.mark.parametrize("canary", ["dirac-gradient", "random-gradient"])
def test_a_correct_loop_stands_and_half_the_noise_falls(canary):
    for seed in range(3):
        result = audit(NoisyLoop(), canary=canary, seed=seed)
        assert result.verdict is Verdict.NOT_REFUTED
        result = audit(NoisyLoop(noise=1.0), canary=canary, seed=seed)
        assert result.verdict is Verdict.REFUTED
        assert result.bound.trials <= 8


def test_noise_missing_in_one_layer_falls():
    for seed in range(3):
        result = audit(NoisyLoop(silent="second.weight"), seed=seed)
        assert result.verdict is Verdict.REFUTED


def test_one_run_is_enough_for_independent_canaries():
    claim = Claim.dpsgd(noise_multiplier=1.0, sampling_rate=0.5, steps=10, delta=1e-5)
    options = {"claim": claim, "trials": 1, "design": CoinFlip(sum(SIZES)), "independent_canaries": True}
    for seed in range(3):
        assert audit(NoisyLoop(noise=0.5, stated=1.0), seed=seed, **options).verdict is Verdict.REFUTED
        assert audit(NoisyLoop(noise=1.0, stated=1.0), seed=seed, **options).verdict is Verdict.NOT_REFUTED


def test_the_result_says_that_all_steps_were_audited():
    result = audit(NoisyLoop(), trials=2)
    assert result.target == "loop, all steps"
    assert result.facts["scores see"].startswith("what every step releases")
    assert result.models == 2  # none to prepare


def test_canaries_are_spread_over_all_groups():
    target = torch_target(NoisyLoop(), RECORDS, scores="transcript")
    prepared = {
        name: np.asarray(array) for name, array in target.prepare(target.dataset, np.random.default_rng(0)).arrays.items()
    }
    rows = target.canaries.prepared(prepared).draw(np.random.default_rng(1), 64)
    groups = np.searchsorted(np.cumsum(SIZES), rows[:, 0], side="right")
    assert np.bincount(groups).tolist() == [25, 12, 24, 3]
    assert len(set(rows[:, 0])) == 64


def test_the_preparation_runs_one_step_and_trains_no_model():
    steps = []

    class Counting(NoisyLoop):
        def __call__(self, records, planting):
            released = planting.released

            def count(sums, **claimed):
                steps.append(1)
                released(sums, **claimed)

            planting.released = count
            return super().__call__(records, planting)

    target = torch_target(Counting(), RECORDS, scores="transcript")
    prepared = target.prepare(target.dataset, np.random.default_rng(0))
    assert prepared.models == 0
    assert len(steps) == 2
    np.testing.assert_array_equal(prepared.arrays["group_sizes"], SIZES)


def test_the_result_is_the_same_with_workers_store_and_resume(tmp_path):
    options = {"trials": 6, "seed": 3, "stop_when": "never", "design": CoinFlip(16)}
    expected = audit(NoisyLoop(), **options)
    with pytest.raises(lidp.AuditInterrupted):
        audit(NoisyLoop(), store=tmp_path / "a.db", executor=InterruptedAfter(3), **options)
    for result in (audit(NoisyLoop(), workers=2, **options), audit(NoisyLoop(), store=tmp_path / "a.db", **options)):
        np.testing.assert_array_equal(result.scores.flips()[0], expected.scores.flips()[0])
        assert result.bound == expected.bound


@pytest.mark.slow
def test_false_alarms_at_an_exactly_tight_null():
    """The law of the scores is exactly the pair of the claimed curve."""
    claim = Claim.dpsgd(noise_multiplier=1.0, sampling_rate=0.5, steps=3, delta=1e-3)
    loop = NoisyLoop(noise=1.0, stated=1.0, steps=3)
    results = [audit(loop, claim=claim, trials=8, design=CoinFlip(16), seed=seed) for seed in range(100)]
    assert_covers(sum(result.verdict is Verdict.REFUTED for result in results), 100, 0.05)


@pytest.mark.slow
def test_false_alarms_canary_by_canary_at_an_exactly_tight_null():
    claim = Claim.dpsgd(noise_multiplier=1.0, sampling_rate=0.5, steps=3, delta=1e-3)
    loop = NoisyLoop(noise=1.0, stated=1.0, steps=3)
    options = {"claim": claim, "trials": 1, "design": CoinFlip(64), "independent_canaries": True}
    results = [audit(loop, seed=seed, **options) for seed in range(100)]
    assert_covers(sum(result.verdict is Verdict.REFUTED for result in results), 100, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [1.0, 2.0, 4.0])
def test_correct_loops_stand_in_20_of_20_audits(noise):
    claim = Claim.dpsgd(noise_multiplier=noise, sampling_rate=0.5, steps=10, delta=1e-5)
    results = [audit(NoisyLoop(noise=noise, stated=noise), claim=claim, trials=64, seed=seed) for seed in range(20)]
    assert [result.verdict for result in results] == 20 * [Verdict.NOT_REFUTED]


def test_independent_canaries_are_refused_where_canaries_interfere():
    with pytest.raises(InvalidArgument, match="random gradients overlap; use canary='dirac-gradient'"):
        audit(NoisyLoop(), canary="random-gradient", independent_canaries=True)
    final = torch_target(NoisyLoop(), RECORDS)
    pool = torch_target(NoisyLoop(), RECORDS, canaries=RECORDS)
    for target, remedy in ((final, "use scores='transcript'$"), (pool, "and gradient canaries")):
        with pytest.raises(InvalidArgument, match=f"the final model mixes .*{remedy}"):
            lidp.audit(target, claim=CLAIM, trials=2, independent_canaries=True)


def test_options_that_do_not_fit_are_refused():
    refused = [
        ({"scores": "transcript", "canaries": RECORDS}, "leave out canaries=, or use scores='final-model'"),
        ({"canary": "dirac-gradient", "canaries": RECORDS}, "canaries= gives records; leave one of them out"),
        ({"scores": "transcript", "pilots": 4}, "relative to no pilot models; leave pilots out, got 4"),
        ({"canary": "dirac-gradient"}, "use scores='transcript', or canary='random-gradient'"),
        ({"scores": "steps"}, "scores"),
        ({"canary": "blank"}, "canary"),
    ]
    for options, message in refused:
        with pytest.raises(InvalidArgument, match=message):
            torch_target(NoisyLoop(), RECORDS, **options)
    with pytest.raises(InvalidArgument, match="need coin-flip canaries"):
        audit(NoisyLoop(), design=LeaveOneOut(2, 2))
    with pytest.raises(AuditFailed, match="172 canaries need as many coordinates, and there are 171"):
        audit(NoisyLoop(), design=CoinFlip(172))


def test_loops_that_do_not_record_their_steps_end_the_audit():
    with pytest.raises(AuditFailed, match="a step did not record what it releases; call planting.released"):
        audit(NoisyLoop(releases=False))
    with pytest.raises(AuditFailed, match="planted no canaries"):
        audit(NoisyLoop(steps=0))


def test_a_loop_with_noise_from_a_fixed_seed_ends_the_audit():
    class Seeded(NoisyLoop):
        def __call__(self, records, planting):
            torch.manual_seed(0)
            return super().__call__(records, planting)

    with pytest.raises(AuditFailed, match="exactly the same noise: the loop seeds its generator itself"):
        audit(Seeded())
    assert audit(Seeded(noise=0.0), trials=40).verdict is Verdict.REFUTED  # without noise, there is nothing to repeat


def first_step(sums, released):
    """The first step of a run that releases these numbers."""
    planting = FirstStepPlanting(np.random.default_rng(0))
    planting.watch([np.zeros(len(sums))])
    planting.add([sums.copy()], clip_norm=1.0, rate=0.5)
    with pytest.raises(FirstStepEnded):
        planting.released([released], clip_norm=1.0, noise_multiplier=1.0, rate=0.5)
    return planting


def test_the_same_noise_is_found_whatever_the_sums():
    rng = np.random.default_rng(0)
    sums, noise = 100 * rng.standard_normal((2, 20)), rng.standard_normal((2, 20))
    step = first_step(sums[0], sums[0] + noise[0])
    assert step.has_noise_of(first_step(sums[1], sums[1] + noise[0]))
    assert not step.has_noise_of(first_step(sums[0], sums[0] + noise[1]))
    assert not step.has_noise_of(first_step(sums[1][:19], sums[1][:19] + noise[0][:19]))
    assert not step.has_noise_of(first_step(sums[1], np.full(20, np.nan)))


def test_rounding_is_not_taken_for_noise():
    sums = 100 * np.random.default_rng(0).standard_normal((2, 20)).astype(np.float32)
    one, other = (first_step(some, some * np.float32(1 + 2e-7)) for some in sums)
    assert one.noise.any()
    assert not one.has_noise_of(other)
