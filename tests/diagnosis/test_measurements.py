"""Each kind of deviation is found, named and measured; a correct training shows none."""

from dataclasses import replace

import numpy as np
import pytest

from lidp.diagnosis import Part, Quantity, diagnose
from lidp.diagnosis.diagnosis import Claimed
from lidp.diagnosis.evidence import Evidence
from lidp.diagnosis.measurements import MOST_GROUPS, diagnose_evidence
from tests.diagnosis.simulated_runs import CLAIMED, Training, diagnosed, record_of
from tests.diagnosis.stored_runs import stored


def summary(training, trials=4, **options):
    return diagnosed(training.runs(trials, np.random.default_rng(0)), **options).summary


def one(diagnosis, quantity, part=Part.ALL, where="all"):
    """Return the measurement of a quantity in one part."""
    (measurement,) = (m for m in diagnosis.select(quantity, part) if m.where == where)
    return measurement


def test_a_correct_training_shows_nothing():
    diagnosis = diagnosed(Training().runs(4, np.random.default_rng(0)))
    assert diagnosis.findings == ()
    (text,) = diagnosis.summary
    assert text.startswith("nothing found, within these limits: noise 0.98")
    assert text.endswith("200 steps as claimed")
    assert all(measurement.as_claimed for measurement in diagnosis.measurements)


def test_too_little_noise_everywhere_is_one_finding():
    (text,) = summary(Training(noise=0.8))
    assert text == "noise 0.786 to 0.814 of what is claimed"


def test_noise_that_misses_in_one_group():
    assert summary(Training(group_noise=(1.0, 0.0))) == (
        "fc2.weight: no noise at all; no deviation found in the other groups",
    )
    (text,) = summary(Training(group_noise=(0.1, 1.0)))
    assert text.startswith("fc1.weight: noise 0.09")
    assert text.endswith("; no deviation found in the other groups")


def test_groups_with_different_amounts_of_noise_are_named_one_by_one_the_worst_first():
    first, second = summary(Training(group_noise=(0.7, 0.4)))
    assert first.startswith("fc2.weight: noise 0.3")
    assert second.startswith("fc1.weight: noise 0.6")


def test_noise_that_is_too_small_at_early_steps():
    texts = summary(Training(early_noise=0.5, steps=192), claimed=replace(CLAIMED, steps=192))
    assert len(texts) == 1
    assert texts[0].startswith("steps 1 to 96: noise 0.4")
    assert texts[0].endswith("; no deviation found at the other steps")


def test_more_noise_than_claimed_is_said_to_cost_no_privacy():
    diagnosis = diagnosed(Training(noise=1.5).runs(4, np.random.default_rng(0)))
    assert diagnosis.summary[0].endswith("of what is claimed: more than needed")
    assert diagnosis.findings[0].factor < 1


def test_reused_noise():
    diagnosis = diagnosed(Training(reused_share=1.0).runs(2, np.random.default_rng(0)))
    assert diagnosis.summary == ("noise of successive steps is correlated (at least 0.99): it is reused",)
    assert any("count each canary once" in note for note in diagnosis.notes)
    assert not diagnosis.select(Quantity.PRODUCT)
    noise = one(diagnosis, Quantity.NOISE)
    assert noise.upper - noise.lower > 0.5, "one number per canary is not much"


def test_noise_that_cancels():
    (text,) = summary(Training(reused_share=-0.5))
    assert "negatively correlated (at least 0.4" in text


def test_runs_that_share_their_noise():
    diagnosis = diagnosed(Training(seed=1).runs(4, np.random.default_rng(0)))
    assert diagnosis.summary[0] == "two runs have the same noise along the same parameter: runs share a seed"
    assert any("runs share noise" in note for note in diagnosis.notes)


def test_a_sampling_rate_that_is_understated():
    (text,) = summary(Training(rate=0.5), trials=8)
    assert text.startswith("canaries took part in 3")
    assert text.endswith("times the claimed sampling rate of 10 %")


def test_contributions_above_the_clipping_norm():
    (text,) = summary(Training(contribution=3.0), trials=16)
    assert text == "a canary adds at least 2.63 times its clipped gradient when it takes part: clipping does not hold"


def test_rate_and_contribution_together_where_they_cannot_be_told_apart():
    (text,) = summary(Training(rate=0.2, noise=1.0, canaries=64), trials=4)
    assert text.startswith("sampling rate times contribution is at least 1.")
    assert "if contributions are as claimed, canaries took part in" in text


def test_participation_below_the_claim_costs_no_privacy():
    training, claimed = Training(rate=0.02, noise=0.3), replace(CLAIMED, noise_multiplier=0.3)
    diagnosis = diagnosed(training.runs(8, np.random.default_rng(0)), claimed=claimed)
    assert all(finding.factor < 1 for finding in diagnosis.findings)
    assert "at most" in diagnosis.summary[0]


def test_steps_that_are_not_counted():
    assert summary(Training(steps=400)) == ("400 steps were recorded, 2 times the 200 that are claimed",)
    assert summary(Training(steps=100)) == ("100 steps were recorded, fewer than the 200 that are claimed",)


def test_the_worst_finding_comes_first():
    texts = summary(Training(noise=0.9, steps=1000))
    assert texts[0].startswith("1,000 steps were recorded, 5 times")
    assert texts[1].startswith("noise 0.8")


def test_canaries_that_may_overlap_give_upper_limits_on_noise_only():
    diagnosis = diagnosed(Training(noise=0.5).runs(4, np.random.default_rng(0)), separate_canaries=False)
    assert {measurement.quantity for measurement in diagnosis.measurements} == {Quantity.NOISE}
    assert all(measurement.lower is None for measurement in diagnosis.measurements)
    assert diagnosis.summary[0].startswith("noise at most 0.5")
    assert any("may overlap" in note for note in diagnosis.notes)


def test_one_group_without_noise_is_found_among_canaries_that_may_overlap():
    texts = summary(Training(group_noise=(1.0, 0.05)), separate_canaries=False)
    assert texts[0].startswith("fc2.weight: noise at most 0.05")


def test_a_single_canary_per_run_overlaps_no_other():
    runs = Training(canaries=1).runs(8, np.random.default_rng(0))
    assert diagnosed(runs, separate_canaries=False).separate_canaries


def test_runs_of_another_length_are_left_out_of_stretches_only():
    rng = np.random.default_rng(0)
    runs = [*Training().runs(3, rng), Training(steps=120).run(3, rng)]
    diagnosis = diagnosed(runs)
    assert diagnosis.steps == (120, 200)
    assert any("1 run with another number of steps is" in note for note in diagnosis.notes)
    assert len(diagnosis.select(Quantity.NOISE, Part.STRETCH)) == 13


def test_runs_without_groups_and_of_one_step():
    rng = np.random.default_rng(0)
    records = [record_of(trial, rng.standard_normal((1, 16)), rng.integers(0, 2, 16)) for trial in range(3)]
    diagnosis = diagnosed(records, claimed=Claimed(1.0, 0.1, 1))
    assert not diagnosis.select(Quantity.NOISE, Part.GROUP)
    assert not diagnosis.select(Quantity.NOISE, Part.STRETCH)


def test_very_many_groups_are_measured_together_only():
    canaries = MOST_GROUPS + 1
    record = Training(canaries=canaries, steps=10).run(0, np.random.default_rng(0))
    record.evidence["group"] = np.arange(canaries, dtype=float)
    record.metadata["scores_groups"] = ", ".join(map(str, range(canaries)))
    diagnosis = diagnosed([record])
    assert not diagnosis.select(Quantity.NOISE, Part.GROUP)
    assert any("401 are more than 400" in note for note in diagnosis.notes)


def test_canaries_of_different_lengths_give_no_participation():
    record = Training().run(0, np.random.default_rng(0))
    record.evidence["length"][: len(record.evidence["length"]) // 2] *= 0.5
    diagnosis = diagnosed([record])
    assert not diagnosis.select(Quantity.PRODUCT)
    assert any("differ in length" in note for note in diagnosis.notes)


def test_without_held_out_canaries_nothing_is_known_of_the_noise():
    record = Training(canaries=1).run(0, np.random.default_rng(0))
    record.arrays["coins"][:] = 1.0
    diagnosis = diagnosed([record])
    assert (one(diagnosis, Quantity.NOISE).lower, one(diagnosis, Quantity.NOISE).upper) == (0.0, None)
    assert diagnosis.findings == ()
    assert any("no held-out canary shows the noise" in note for note in diagnosis.notes)


def test_gradients_that_vanish_at_some_steps_leave_the_upper_limit_only():
    record = Training(canaries=16).run(0, np.random.default_rng(0))
    record.evidence["count"][::13] -= 1.0
    noise = one(diagnosed([record]), Quantity.NOISE)
    assert noise.lower == 0
    assert 1 < noise.upper < 1.2


def test_more_trials_give_narrower_limits():
    runs = Training().runs(16, np.random.default_rng(0))
    few, many = (one(diagnosed(runs[:size]), Quantity.NOISE) for size in (1, 16))
    assert many.upper - many.lower < 0.5 * (few.upper - few.lower)


def test_a_smaller_failure_probability_gives_wider_limits():
    runs = Training().runs(2, np.random.default_rng(0))
    usual, strict = (one(diagnosed(runs, failure_probability=p), Quantity.NOISE) for p in (0.05, 1e-9))
    assert strict.lower < usual.lower < usual.upper < strict.upper


def test_the_failure_probability_is_checked():
    evidence = Evidence.of(Training().runs(1, np.random.default_rng(0)))
    with pytest.raises(ValueError, match="failure_probability"):
        diagnose_evidence(evidence, CLAIMED, target="t", separate_canaries=True, failure_probability=0.0)


def test_a_store_is_diagnosed_as_its_records_are(tmp_path):
    path = stored(tmp_path / "a.db", Training(noise=0.8))
    diagnosis = diagnose(path)
    assert diagnosis.separate_canaries, "those of dirac-gradient audits are"
    assert diagnosis.claimed == CLAIMED
    assert diagnosis.summary[0].startswith("noise 0.7")


def test_a_store_of_unknown_canaries_is_diagnosed_carefully_unless_told_otherwise(tmp_path):
    path = stored(tmp_path / "a.db", Training(noise=0.8, grouped=False))
    assert not diagnose(path).separate_canaries
    assert diagnose(path, separate_canaries=True).separate_canaries


def uneven_runs(scale, trials, canaries=32, steps=600, seed=0):
    """Return runs of a correct training whose noise is multiplied by ``scale(rng, trial)``, for steps x canaries."""
    rng = np.random.default_rng(seed)
    records = []
    for trial in range(trials):
        coins = rng.integers(0, 2, canaries)
        noise = scale(rng, trial) * rng.standard_normal((steps, canaries))
        records.append(record_of(trial, noise + coins * (rng.random(noise.shape) < 0.1), coins, np.arange(canaries) % 2))
    return records


@pytest.mark.parametrize(
    "scale",
    [
        lambda rng, trial: np.where(rng.random(32) < 0.5, 0.25, 1.0),
        lambda rng, trial: np.where(rng.random(32) < 0.1, 3.0, 1.0),
        lambda rng, trial: 1.0 if trial % 2 else 0.25,
    ],
    ids=["half of the parameters", "a tenth of the parameters", "every second run"],
)
def test_participation_is_not_measured_where_noise_differs_between_canaries(scale):
    for seed in range(5):
        diagnosis = diagnosed(uneven_runs(scale, 4, seed=seed), replace(CLAIMED, steps=600))
        assert not diagnosis.select(Quantity.PRODUCT)
        assert any("participation is not measured" in note for note in diagnosis.notes)
        assert not any("clipping" in text or "took part" in text for text in diagnosis.summary)


@pytest.mark.parametrize(
    "decay", [np.where(np.arange(600) < 2, 100.0, 1.0), 1 + 20 * 0.8 ** np.arange(600)], ids=["two", "decay"]
)
def test_a_few_steps_of_large_noise_are_no_correlation(decay):
    for seed in range(5):
        diagnosis = diagnosed(uneven_runs(lambda rng, trial: decay[:, None], 2, seed=seed), replace(CLAIMED, steps=600))
        assert all(one.as_claimed for one in diagnosis.select(Quantity.CORRELATION))


def test_sums_in_single_precision_are_read():
    """A residual that repeats has the largest products that its squares allow, up to the rounding of long sums."""
    records = Training(reused_share=1.0).runs(2, np.random.default_rng(0))
    for record in records:
        for name in ("lagged", "product"):
            record.evidence[name] = record.evidence[name] * (1 + 1e-5)
    assert "it is reused" in diagnosed(records).summary[0]
