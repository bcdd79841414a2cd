"""DP-SGD as a target of audits: training, canaries, false alarms, and detection of faults."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import lidp
from lidp import Claim, CoinFlip, InvalidArgument, LeaveOneOut, Neighbours, ReplaceOne, Verdict
from lidp.data import synthetic_purchases
from lidp.testing.simulations import assert_covers
from lidp.training import DPSGD, Canary, Kind, Network, Scoring, Training, TrainingSet, training_target
from tests.sample_targets import same

DATA = synthetic_purchases(400, 200, features=120, classes=4)
CLAIM = Claim(2.0, 1e-5)
QUICK = Training(epochs=2, batch_size=40, learning_rate=0.5)
NETWORK = Network(120, 4)


def trainer(**options):
    settings = {"rate": 0.1, "batch_size": 40.0, "steps": 200, "learning_rate": 0.5, "sigma": 0.5, **options}
    return DPSGD(settings.pop("network", NETWORK), **settings)


def records(kind=Kind.EXAMPLE, **options):
    return TrainingSet(DATA.x, DATA.y, kind, **options)


@pytest.mark.parametrize("hidden", [(), (16,), (16, 8)])
@pytest.mark.parametrize("sampling", ["poisson", "shuffle"])
def test_training_reaches_a_high_accuracy(hidden, sampling):
    network = Network(120, 4, hidden)
    output = trainer(network=network, sampling=sampling, test=(DATA.test_x, DATA.test_y))(
        records(), np.random.default_rng(0)
    )
    assert output.metadata["accuracy"] > 0.8
    assert output.value.shape == (network.size,)
    assert network.accuracy(output.value, DATA.test_x, DATA.test_y) == output.metadata["accuracy"]


def test_the_same_stream_gives_the_same_model():
    first, second = (trainer().train(records(), np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert (first != trainer().train(records(), np.random.default_rng(6))).any()


def test_initial_parameters_are_fixed_unless_random_start():
    network = Network(120, 4, (8,))
    still = {"network": network, "sigma": 0.0, "learning_rate": 1e-12, "steps": 1}
    fixed = [trainer(**still).train(records(), np.random.default_rng(seed)) for seed in (0, 1)]
    np.testing.assert_allclose(fixed[0], fixed[1], atol=1e-6)
    random = [trainer(**still, random_start=True).train(records(), np.random.default_rng(seed)) for seed in (0, 1)]
    assert np.abs(random[0] - random[1]).max() > 0.1


def test_with_canaries_shares_the_records_and_copies_the_canaries():
    canaries = np.ones((3, 122))
    planted = records().with_canaries(canaries)
    assert planted.x is DATA.x
    canaries[:] = 7
    assert (planted.planted == 1).all()
    assert len(planted) == 403
    replaced = records(replaces=True).with_canaries(canaries)
    assert len(replaced) == 400
    assert np.shares_memory(replaced.x, DATA.x)
    with pytest.raises(InvalidArgument, match="500 canaries cannot replace 400 records"):
        records(replaces=True).with_canaries(np.ones((500, 122)))


@pytest.mark.slow_after_first
@pytest.mark.parametrize("canary", list(Canary))
@pytest.mark.parametrize(
    "design", [CoinFlip(8), CoinFlip(8, Neighbours.REPLACE_ONE), LeaveOneOut(4, 4), ReplaceOne(4, 4)], ids=str
)
def test_every_canary_works_in_every_design(canary, design):
    claim = Claim(2.0, 1e-5, design.neighbours)
    made = training_target(DATA, claim, training=QUICK, canary=canary, canaries=design.canaries, pilots=4, tail=10)
    result = lidp.audit(made.target, claim=claim, design=design, trials=6, seed=1, stop_when="never")
    assert result.verdict is not Verdict.REFUTED
    assert result.failed_runs == 0
    assert result.unscored_canaries == 0
    assert result.preparation_models == 4
    assert all(np.isfinite(array).all() for array in result.scores.to_arrays().values())
    assert result.notes[0].metadata


@pytest.mark.parametrize("canary", ["random-gradient", "dirac-gradient"])
def test_decorrelated_scores_separate_many_canaries_better_than_centred_ones(canary):
    def separation(scoring):
        """Return how far inserted scores are from held-out ones, in standard deviations; other canaries are most of the noise."""
        data = synthetic_purchases(100, 10, features=20, classes=2)
        once = Training(epochs=1, batch_size=1000)
        made = training_target(data, CLAIM, training=once, canary=canary, canaries=200, scores=scoring)
        quiet = replace(made.target, mechanism=replace(made.trainer, sigma=0.5))
        scores, coins = lidp.audit(quiet, claim=CLAIM, design=CoinFlip(200), trials=20).scores.flips()
        inserted, held_out = scores[coins == 1], scores[coins == 0]
        return (inserted.mean() - held_out.mean()) / np.sqrt((inserted.var() + held_out.var()) / 2)

    # The contributions of half of the other canaries, those that come later, are never subtracted.
    assert separation("decorrelated") > 1.25 * separation("centred")


@pytest.mark.slow
@pytest.mark.parametrize("canary", list(Canary))
def test_self_normalised_scores_of_held_out_canaries_are_standardised(canary):
    made = training_target(DATA, CLAIM, training=QUICK, canary=canary, canaries=16, pilots=4, scores="self-normalised")
    scores, coins = lidp.audit(made.target, claim=CLAIM, design=CoinFlip(16), trials=60).scores.flips()
    assert abs(scores[coins == 0].mean()) < 0.15
    assert scores[coins == 0].std() == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize("canary", ["random-gradient", "dirac-gradient"])
def test_raw_scores_of_gradients_train_no_pilots(canary):
    made = training_target(DATA, CLAIM, training=QUICK, canary=canary, canaries=8, scores="raw")
    assert lidp.audit(made.target, claim=CLAIM, design=CoinFlip(8), trials=3).models == 3


def test_the_accountant_gets_rate_and_steps_of_the_training():
    added = training_target(DATA, CLAIM, training=QUICK, canaries=100, pilots=1)
    assert added.calibration.rate == 40 / 500
    assert added.calibration.steps == 25
    assert added.trainer.rate == added.calibration.rate
    assert added.trainer.sigma == added.calibration.sigma
    assert added.calibration.epsilon <= 2.0
    replaced = training_target(DATA, Claim(2.0, 1e-5, "replace-one"), training=QUICK, canaries=100, pilots=1)
    assert replaced.calibration.rate == 40 / 400


def test_auditing_under_other_neighbours_than_those_of_the_target_is_refused():
    """A target that replaces records leaks more under add/remove neighbours than its noise allows: a true claim would fall."""
    replaced = training_target(DATA, Claim(2.0, 1e-5, "replace-one"), training=QUICK, pilots=1)
    with pytest.raises(InvalidArgument, match="made for replace-one neighbours, the claim is about add-remove ones"):
        lidp.audit(replaced.target, claim=CLAIM, trials=4)
    added = training_target(DATA, CLAIM, training=QUICK, pilots=1)
    with pytest.raises(InvalidArgument, match="made for add-remove neighbours, the claim is about replace-one ones"):
        lidp.audit(
            added.target, claim=Claim(2.0, 1e-5, "replace-one"), design=CoinFlip(4, Neighbours.REPLACE_ONE), trials=4
        )
    with pytest.raises(InvalidArgument, match="401 canaries cannot replace 400 records"):
        training_target(DATA, Claim(2.0, 1e-5, "replace-one"), training=QUICK, canaries=401)


@pytest.mark.parametrize("canary", ["random-gradient", "dirac-gradient"])
def test_gradient_canaries_have_the_clipping_norm_even_without_clipping(canary):
    training = replace(QUICK, clip_norm=0.5)
    made = training_target(DATA, CLAIM, training=training, canary=canary, pilots=1, fault="no-clipping")
    canaries = made.target.canaries.draw(np.random.default_rng(0), 1)
    data = made.target.dataset
    quiet = replace(made.trainer, sigma=0.0, rate=1.0, steps=1)
    apart = [quiet.train(one, np.random.default_rng(0)) for one in (data, data.with_canaries(canaries))]
    moved = np.linalg.norm(apart[1] - apart[0])
    assert moved == pytest.approx(0.5 * training.learning_rate / training.batch_size, rel=1e-3)


@pytest.mark.slow
def test_each_fault_changes_the_training_as_named():
    right = training_target(DATA, CLAIM, training=QUICK, pilots=1)
    little = training_target(DATA, CLAIM, training=QUICK, pilots=1, fault="little-noise")
    assert little.trainer.sigma < right.trainer.sigma
    assert little.calibration.epsilon == pytest.approx(8.0, rel=1e-3)
    assert training_target(DATA, CLAIM, training=QUICK, pilots=1, fault="no-clipping").trainer.clip_norm == 0
    wrong = training_target(DATA, CLAIM, training=QUICK, pilots=1, fault="wrong-rate")
    assert wrong.trainer.rate == right.trainer.rate
    assert wrong.trainer.sigma < right.trainer.sigma
    assert "fault: wrong-rate" in wrong.target.name
    shuffled = training_target(DATA, CLAIM, training=Training(sampling="shuffle", epochs=1), pilots=1)
    assert "not what the accountant assumes" in shuffled.target.name
    assert "ε by pld accounting, if batches were Poisson samples" in shuffled.target.facts
    assert "sampling rate" not in shuffled.target.facts


@pytest.mark.slow_after_first
@pytest.mark.parametrize("hidden", [(), (256, 256)], ids=["linear", "perceptron"])
def test_results_do_not_depend_on_the_number_of_workers(hidden):
    """Pilot models neither: the rounding of large matrix products depends on the number of threads."""
    made = training_target(DATA, CLAIM, training=replace(QUICK, hidden=hidden), pilots=3)
    one, two = (lidp.audit(made.target, claim=CLAIM, trials=8, workers=workers, stop_when="never") for workers in (1, 2))
    same(one, two)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"canary": "elephant"}, "canary must be one of random-gradient, .*, got 'elephant'"),
        ({"fault": "all"}, "fault must be one of"),
        ({"canaries": 0}, "canaries must be"),
        ({"pilots": 0}, "pilots must be"),
        ({"scores": "odd"}, "scores must be one of centred, raw, self-normalised, decorrelated, transcript, got 'odd'"),
        (
            {"scores": "raw", "pilots": 4},
            "raw scores of gradients are relative to no pilot models; leave pilots out, got 4",
        ),
        ({"scores": "decorrelated", "canary": "mislabelled"}, "decorrelated scores are for gradients"),
        ({"canary": "tail-example", "tail": 121}, "must be 1 to 120"),
    ],
)
def test_invalid_arguments_are_refused(options, message):
    with pytest.raises(InvalidArgument, match=message):
        training_target(DATA, CLAIM, **{"training": QUICK, "pilots": 1, **options})


def test_invalid_training_settings_are_refused():
    with pytest.raises(InvalidArgument, match="sampling must be one of poisson, shuffle, got 'sorted'"):
        Training(sampling="sorted")
    with pytest.raises(InvalidArgument, match="sampling must be one of poisson, shuffle, got 'sorted'"):
        trainer(sampling="sorted")
    with pytest.raises(InvalidArgument, match="epochs must be"):
        Training(epochs=0)
    with pytest.raises(InvalidArgument, match="clip_norm must be above 0"):
        Training(clip_norm=0)
    with pytest.raises(InvalidArgument, match="shuffled batches need a batch_size of at least 1, got 0.5"):
        trainer(sampling="shuffle", batch_size=0.5)


def test_claims_that_cannot_be_calibrated_are_refused():
    with pytest.raises(InvalidArgument, match="epsilon and delta above 0"):
        training_target(DATA, Claim(1.0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rate": 0.0}, "rate must be"),
        ({"steps": 0}, "steps must be"),
        ({"sigma": -1.0}, "sigma must be"),
        ({"clip_norm": -1.0}, "clip_norm must be"),
        ({"learning_rate": 0.0}, "learning_rate must be"),
    ],
)
def test_invalid_trainers_are_refused(options, message):
    with pytest.raises(InvalidArgument, match=message):
        trainer(**options)


def test_records_of_another_shape_are_refused():
    with pytest.raises(InvalidArgument, match="but the model takes 121"):
        trainer(network=Network(121, 4)).train(records(), np.random.default_rng(0))
    with pytest.raises(InvalidArgument, match="trains on a TrainingSet, got list"):
        trainer().train([], np.random.default_rng(0))
    wrong = records(Kind.GRADIENT).with_canaries(np.ones((2, 5)))
    with pytest.raises(InvalidArgument, match="gradient canaries have 5 numbers"):
        trainer().train(wrong, np.random.default_rng(0))


TIGHT = Claim(1.0, 1e-3)
ONE_STEP = Training(epochs=1, batch_size=1000)  # more than there are: everyone is in the one batch


def assert_false_alarms_are_rare(training, *, claim=TIGHT, design=None, **options):
    """Check the rate of false alarms of audits with 20 records and 4 canaries; with a tenth of the noise, the claim is refuted."""
    data = synthetic_purchases(20, 20, features=30, classes=2)
    made = training_target(data, claim, training=training, canaries=4, tail=20, measure_accuracy=False, **options)
    assert (made.trainer.rate, made.trainer.steps) == (1.0, 1)
    audited = {"claim": claim, "design": design or CoinFlip(4), "trials": 150}
    alarms = sum(lidp.audit(made.target, seed=seed, **audited).verdict is Verdict.REFUTED for seed in range(100))
    assert_covers(alarms, 100, 0.05)
    quiet = replace(made.trainer, sigma=made.trainer.sigma / 10)
    pilots = made.target.prepare
    broken = replace(made.target, mechanism=quiet, prepare=pilots and replace(pilots, trainer=quiet))
    assert lidp.audit(broken, seed=0, **{**audited, "trials": 1500}).verdict is Verdict.REFUTED


@pytest.mark.slow
@pytest.mark.parametrize("canary", list(Canary))
def test_false_alarms_at_a_tight_null(canary):
    """One step on all records is a Gaussian mechanism, and a gradient of clipping norm its worst case: the claim is tight.

    The whole way is tested: canaries, planting, training, pilots, scores, wager.
    """
    assert_false_alarms_are_rare(ONE_STEP, canary=canary)


@pytest.mark.slow
@pytest.mark.parametrize("scores", ["raw", "self-normalised", "decorrelated"])
@pytest.mark.parametrize("canary", ["random-gradient", "dirac-gradient"])
def test_false_alarms_with_other_scores_of_gradients(canary, scores):
    assert_false_alarms_are_rare(ONE_STEP, canary=canary, scores=scores)


@pytest.mark.slow
@pytest.mark.parametrize("scores", ["raw", "self-normalised"])
def test_false_alarms_with_other_scores_of_examples(scores):
    assert_false_alarms_are_rare(ONE_STEP, canary="tail-example", scores=scores)


FINAL_MODEL = [scores for scores in Scoring if scores is not Scoring.TRANSCRIPT]  # all steps need coin-flip canaries
FEW_SCORINGS = [("random-gradient", Scoring.DECORRELATED), ("tail-example", Scoring.CENTRED)]
ALL_SCORINGS = [
    *(("random-gradient", scores) for scores in FINAL_MODEL),
    *(("dirac-gradient", scores) for scores in FINAL_MODEL),
    *(("tail-example", scores) for scores in FINAL_MODEL if scores != "decorrelated"),
]
SLOW_SCORINGS = [
    pytest.param(*each, marks=pytest.mark.slow, id="-".join(each)) for each in ALL_SCORINGS if each not in FEW_SCORINGS
]


@pytest.mark.slow_after_first
@pytest.mark.parametrize(("canary", "scores"), [*FEW_SCORINGS, *SLOW_SCORINGS])
@pytest.mark.parametrize("held_out", [1, 16])
@pytest.mark.parametrize("make", [LeaveOneOut, ReplaceOne])
def test_a_mechanism_independent_of_its_data_is_not_refuted(make, held_out, canary, scores):
    """The arms must have the same distribution if no output depends on the inserted canaries, whatever the scores subtract.

    A pool of one example has scores that are all alike, so that a last digit would tell.
    """
    design = make(16, held_out)
    claim = Claim(0.1, 1e-5, design.neighbours)
    data = synthetic_purchases(40, 10, features=30, classes=10)
    made = training_target(data, claim, training=QUICK, canary=canary, canaries=16, tail=1, scores=scores)
    for mechanism in (ConstantModel(made.trainer), PureNoise(made.trainer)):
        result = lidp.audit(replace(made.target, mechanism=mechanism), claim=claim, design=design, trials=300)
        assert result.verdict is Verdict.NOT_REFUTED
        assert result.bound.epsilon < 0.1


@dataclass(frozen=True)
class ConstantModel:
    """Returns the same model for all data."""

    trainer: DPSGD

    def __call__(self, records, rng):
        return np.random.default_rng(5).standard_normal(self.trainer.network.size).astype(np.float32)


@dataclass(frozen=True)
class PureNoise:
    """Returns noise that does not depend on the data."""

    trainer: DPSGD

    def __call__(self, records, rng):
        return rng.standard_normal(self.trainer.network.size).astype(np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("canary", ["random-gradient", "dirac-gradient"])
def test_false_alarms_with_random_starts(canary):
    """The step is so long that the initial parameters hardly matter, which leaves the claim nearly tight."""
    training = replace(ONE_STEP, hidden=(8,), random_start=True, learning_rate=3_000)
    assert_false_alarms_are_rare(training, canary=canary)


@pytest.mark.slow
@pytest.mark.parametrize("canary", ["random-gradient", "dirac-gradient", "tail-example"])
def test_false_alarms_where_features_that_are_0_are_skipped(canary):
    """A hidden layer of 64 units and batches of 1,000 go through panels, if the processor has wide registers."""
    assert_false_alarms_are_rare(replace(ONE_STEP, hidden=(64,)), canary=canary)


@pytest.mark.slow
@pytest.mark.parametrize("canary", ["random-gradient", "dirac-gradient", "tail-example"])
@pytest.mark.parametrize("design", [ReplaceOne(4, 4), CoinFlip(4, Neighbours.REPLACE_ONE)], ids=["replace-one", "coins"])
def test_false_alarms_where_canaries_replace_records(canary, design):
    """Two gradients of clipping norm differ by at most twice that, and random ones by less: this null is not tight."""
    claim = replace(TIGHT, neighbours=Neighbours.REPLACE_ONE)
    assert_false_alarms_are_rare(ONE_STEP, claim=claim, design=design, canary=canary)


@pytest.mark.slow
@pytest.mark.parametrize("canary", ["dirac-gradient", "random-gradient"])
def test_false_alarms_with_sampling_and_many_steps(canary):
    """Ten steps on batches of a third of the records; the claim is the ε of the nearly exact accountant."""
    data = synthetic_purchases(56, 5, features=30, classes=2)
    made = training_target(
        data,
        TIGHT,
        training=Training(epochs=10 / 3, batch_size=20),
        canary=canary,
        canaries=4,
        pilots=4,
        measure_accuracy=False,
    )
    assert (made.trainer.rate, made.trainer.steps) == (1 / 3, 10)
    options = {"claim": TIGHT, "design": CoinFlip(4), "trials": 150}
    alarms = sum(lidp.audit(made.target, seed=seed, **options).verdict is Verdict.REFUTED for seed in range(100))
    assert_covers(alarms, 100, 0.05)


FAULTY = [
    ("little-noise", "random-gradient"),
    ("little-noise", "dirac-gradient"),
    ("wrong-rate", "random-gradient"),
    ("no-clipping", "tail-example"),
    ("no-clipping", "mislabelled"),
]
BUDGET = 256  # of make audit


def preset_target(**options):
    """Return the default target of ``lidp audit-dpsgd``."""
    data = synthetic_purchases(2_000, 1_000, classes=10)
    training = Training(epochs=10, learning_rate=0.5)
    return training_target(data, CLAIM, training=training, measure_accuracy=False, **options).target


@pytest.mark.slow
@pytest.mark.parametrize("canary", list(Canary))
def test_a_correct_trainer_is_not_refuted_in_forty_of_forty_seeds(canary):
    target = preset_target(canary=canary)
    verdicts = [lidp.audit(target, claim=CLAIM, trials=96, seed=seed).verdict for seed in range(40)]
    assert verdicts.count(Verdict.NOT_REFUTED) == 40


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "canary"), FAULTY)
@pytest.mark.parametrize("seed", range(3))
def test_faults_are_refuted_within_the_budget(fault, canary, seed):
    assert (
        lidp.audit(preset_target(canary=canary, fault=fault), claim=CLAIM, trials=BUDGET, seed=seed).verdict
        is Verdict.REFUTED
    )


def test_the_result_and_the_store_state_the_noise(tmp_path):
    made = training_target(DATA, CLAIM, training=QUICK, pilots=2)
    result = lidp.audit(made.target, claim=CLAIM, trials=4, store=tmp_path / "audit.db")
    for stated in (result, lidp.result_of(tmp_path / "audit.db")):
        assert stated.facts["noise multiplier"] == made.calibration.sigma
        assert stated.facts["ε by pld accounting"] == made.calibration.epsilon
        assert "ε by pld accounting " in str(stated)
    assert result.to_dict()["facts"]["steps"] == made.trainer.steps
