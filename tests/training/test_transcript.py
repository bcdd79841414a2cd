"""Transcripts of DP-SGD: evidence of each step, its law, and audits that use it."""

import json

import numpy as np
import pytest
from scipy import stats

import lidp
from lidp import Claim, CoinFlip, InvalidArgument, LeaveOneOut, MethodNotApplicable, Neighbours, Verdict
from lidp.canaries.coordinates import SpreadCoordinates
from lidp.data import synthetic_purchases
from lidp.store import Store
from lidp.testing.simulations import assert_covers
from lidp.training import DPSGD, Kind, Network, Training, TrainingSet, training_target
from lidp.training.gradients import RandomGradients, RandomSigns, signed_gradient
from lidp.training.transcript import COLUMNS, STRETCHES, ClaimedSteps, TranscriptRecorder
from tests.sample_targets import same
from tests.training import brute_force

DATA = synthetic_purchases(400, 200, features=120, classes=4)
FEW = synthetic_purchases(40, 10, features=150, classes=4)
CLAIM = Claim(8.0, 1e-5)
QUICK = Training(epochs=2, batch_size=40, learning_rate=0.5)
CLAIMED = ClaimedSteps(noise_multiplier=0.8, rate=0.1, clip_norm=1.0)


def made(data=DATA, claim=CLAIM, **options):
    settings = {"training": QUICK, "canary": "dirac-gradient", "canaries": 64, "scores": "transcript", **options}
    return training_target(data, claim, **settings)


def trainer(network, **options):
    settings = {"rate": 1.0, "batch_size": 40.0, "steps": 1, "learning_rate": 0.5, "sigma": 0.7, "claimed": CLAIMED}
    return DPSGD(network, **settings | options)


def canaries_of(kind, network, count, rng, radius=1.0):
    if kind is Kind.COORDINATE:
        return SpreadCoordinates(network.group_sizes, radius).draw(rng, count)
    if kind is Kind.GRADIENT:
        return RandomGradients(network.size, radius).draw(rng, count)
    if kind is Kind.SIGNS:
        return RandomSigns(network.size, radius).draw(rng, count)
    return np.column_stack([3 * rng.standard_normal((count, network.features)), rng.integers(0, 4, count), np.zeros(count)])


def gradients_of(kind, canaries, network, theta, clip):
    """Return the gradient of each canary at some parameters, clipped."""
    if kind is Kind.COORDINATE:
        dense = np.zeros((len(canaries), network.size))
        dense[np.arange(len(canaries)), canaries[:, 0].astype(int)] = canaries[:, 1]
        return dense
    if kind is Kind.GRADIENT:
        return np.asarray(canaries, float)
    if kind is Kind.SIGNS:
        return np.array([signed_gradient(canary, network.size) for canary in canaries], float)
    rows = [
        brute_force.gradient(theta, network.widths, row[: network.features], int(row[network.features])) for row in canaries
    ]
    return np.array([brute_force.clipped(row, clip) for row in rows])


@pytest.mark.parametrize("hidden", [(), (9,)], ids=["linear", "perceptron"])
@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("clip", [1.0, 2.5])
def test_evidence_of_a_step_is_that_of_its_definition(kind, hidden, clip):
    """With all records in the batch, the change of the parameters shows the residual."""
    network = Network(120, 4, hidden)
    rng = np.random.default_rng(7)
    canaries = canaries_of(kind, network, 6, rng, clip)
    claimed = ClaimedSteps(0.8, 0.1, clip)
    data = TrainingSet(DATA.x[:30], DATA.y[:30], kind).with_canaries(canaries[::2]).watching(canaries)
    subject = trainer(network, clip_norm=clip, claimed=claimed, random_start=False)
    start = network.initial(np.random.default_rng(0)).astype(float)
    theta, transcript = subject._run(data, np.random.default_rng(3))
    released = (start - theta) * subject.batch_size / subject.learning_rate
    base = brute_force.clipped_sum(start, network.widths, DATA.x[:30], DATA.y[:30], clip)
    directions = gradients_of(kind, canaries, network, start, clip) / clip
    products, lengths = directions @ (released - base) / clip, (directions**2).sum(axis=1)
    ratios = np.log(0.9 + 0.1 * np.exp((products - lengths / 2) / 0.8**2))
    evidence = dict(zip(COLUMNS, transcript.evidence[:, 0].T, strict=True))
    np.testing.assert_allclose(evidence["product"], products, atol=2e-4)
    np.testing.assert_allclose(evidence["length"], lengths, rtol=1e-5)
    np.testing.assert_allclose(evidence["square"], products**2 / lengths, atol=1e-3)
    np.testing.assert_allclose(evidence["log_ratio"], ratios, atol=1e-3)
    np.testing.assert_allclose(transcript.log_ratios, ratios, atol=1e-3)
    assert (evidence["count"] == 1).all()


@pytest.mark.parametrize("kind", [Kind.COORDINATE, Kind.GRADIENT])
def test_watching_does_not_change_the_training(kind):
    network = Network(120, 4)
    canaries = canaries_of(kind, network, 8, np.random.default_rng(1))
    planted = TrainingSet(DATA.x, DATA.y, kind).with_canaries(canaries[:4])
    subject = trainer(network, rate=0.1, steps=50)
    plain, watching = (subject.train(data, np.random.default_rng(2)) for data in (planted, planted.watching(canaries)))
    np.testing.assert_array_equal(plain, watching)


def test_watching_planted_examples_changes_the_training_by_rounding_only():
    network = Network(120, 4)
    canaries = canaries_of(Kind.EXAMPLE, network, 8, np.random.default_rng(1))
    planted = TrainingSet(DATA.x, DATA.y, Kind.EXAMPLE).with_canaries(canaries[:4])
    subject = trainer(network, rate=0.1, steps=50)
    plain, watching = (subject.train(data, np.random.default_rng(2)) for data in (planted, planted.watching(canaries)))
    np.testing.assert_allclose(plain, watching, atol=1e-4)


def log_ratios(rate, steps, sigma, runs, seed):
    """Return the log-likelihood ratios of inserted and held-out canaries of some runs."""
    network = Network(150, 4)
    claimed = ClaimedSteps(sigma, rate, 1.0)
    subject = trainer(network, rate=rate, steps=steps, sigma=sigma, claimed=claimed, batch_size=max(1.0, rate * 40))
    rng = np.random.default_rng(seed)
    parts = ([], [])
    for run_rng in rng.spawn(runs):
        canaries = SpreadCoordinates(network.group_sizes).draw(run_rng, 500)
        data = TrainingSet(FEW.x, FEW.y, Kind.COORDINATE).with_canaries(canaries[:250]).watching(canaries)
        ratios = subject(data, run_rng).value.log_ratios
        parts[0].append(ratios[:250])
        parts[1].append(ratios[250:])
    return [np.concatenate(part) for part in parts]


def simulated(rate, steps, sigma, count, seed, *, inserted):
    """Return log-likelihood ratios of the pair of distributions that an accountant composes."""
    rng = np.random.default_rng(seed)
    total = np.zeros(count)
    for _ in range(steps):
        z = sigma * rng.standard_normal(count) + inserted * (rng.random(count) < rate)
        total += np.log1p(rate * np.expm1((z - 0.5) / sigma**2)) if rate < 1 else (z - 0.5) / sigma**2
    return total


@pytest.mark.parametrize(("rate", "steps", "sigma"), [(0.001, 400, 0.4), (0.1, 60, 0.8), (1.0, 20, 5.0)])
def test_log_ratios_have_the_law_of_the_accountants_pair(rate, steps, sigma):
    """Kolmogorov-Smirnov in both directions; a correct law fails with probability 1e-4 per direction."""
    inserted, held_out = log_ratios(rate, steps, sigma, runs=12, seed=11)
    for ratios, is_in in ((inserted, True), (held_out, False)):
        reference = simulated(rate, steps, sigma, 60_000, 5, inserted=is_in)
        assert stats.ks_2samp(ratios, reference).pvalue > 1e-4
    # The test is sharp: a law with 15 % less noise would not pass.
    wrong = simulated(rate, steps, sigma / 1.15, 60_000, 6, inserted=False)
    assert rate == 0.001 or stats.ks_2samp(held_out, wrong).pvalue < 1e-4


@pytest.mark.parametrize(("rate", "steps", "sigma"), [(0.1, 60, 0.8), (1.0, 20, 5.0)])
def test_log_ratios_fill_the_accountants_curve(rate, steps, sigma):
    """The hockey-stick divergence of the scores is that of the claimed curve, within five standard errors."""
    claim = Claim.dpsgd(noise_multiplier=sigma, sampling_rate=rate, steps=steps, delta=1e-5)
    inserted, held_out = log_ratios(rate, steps, sigma, runs=40, seed=12)
    for e in (0.0, 0.5, 1.0, 2.0):
        excess = np.maximum(-np.expm1(e - inserted), 0.0)  # its mean under "in" is the divergence
        assert abs(excess.mean() - claim.curve.forward(np.array([e]))[0]) < 5 * excess.std() / np.sqrt(len(excess))
        excess = np.maximum(-np.expm1(e + held_out), 0.0)
        assert abs(excess.mean() - claim.curve.backward(np.array([e]))[0]) < 5 * excess.std() / np.sqrt(len(excess))


@pytest.mark.parametrize("steps", [1, 5, 16, 17, 33, 1000])
def test_a_recorder_keeps_all_evidence_in_flat_memory(steps):
    rng = np.random.default_rng(steps)
    recorder, total = TranscriptRecorder(3), np.zeros(3)
    for _ in range(steps):
        products = rng.standard_normal(3)
        recorder.add(products, np.full(3, 4.0), ClaimedSteps(1.0, 0.1, 2.0))
        total += products / 4
    transcript = recorder.transcript()
    assert transcript.steps == steps
    assert transcript.evidence.shape[1] <= 2 * STRETCHES
    np.testing.assert_allclose(transcript.evidence[:, :, 1].sum(axis=1), total)
    assert (transcript.evidence[:, :, 5].sum(axis=1) == steps).all()


def test_the_product_of_successive_steps_shows_noise_that_repeats():
    claimed, rng = ClaimedSteps(1.0, 0.5, 1.0), np.random.default_rng(4)
    fresh, repeated = TranscriptRecorder(2), TranscriptRecorder(2)
    noise = rng.standard_normal(2)
    for _ in range(500):
        fresh.add(rng.standard_normal(2), np.ones(2), claimed)
        repeated.add(noise, np.ones(2), claimed)
    lagged, squares = (COLUMNS.index(name) for name in ("lagged", "square"))
    shares = [each.transcript().evidence.sum(axis=1)[:, [lagged, squares]] for each in (fresh, repeated)]
    assert (np.abs(shares[0][:, 0] / shares[0][:, 1]) < 0.25).all()
    np.testing.assert_allclose(shares[1][:, 0] / shares[1][:, 1], 499 / 500)


def test_a_gradient_of_zero_counts_no_step():
    recorder = TranscriptRecorder(1)
    recorder.add(np.zeros(1), np.zeros(1), CLAIMED)
    evidence = dict(zip(COLUMNS, recorder.transcript().evidence[0, 0], strict=True))
    assert evidence["count"] == 0
    assert evidence["log_ratio"] == 0


@pytest.mark.slow
def test_a_correct_trainer_stands_and_shows_most_of_its_epsilon():
    result = lidp.audit(made().target, claim=CLAIM, trials=64, seed=1)
    assert result.verdict is Verdict.NOT_REFUTED
    assert result.bound.epsilon > 0.7 * 8
    assert "not the final model alone" in str(result)


@pytest.mark.parametrize("canary", ["random-gradient", "dirac-gradient"])
def test_too_little_noise_is_refuted_with_few_models(canary):
    target = made(canary=canary, true_noise=0.7).target
    result = lidp.audit(target, claim=CLAIM, trials=24, seed=2)
    assert result.verdict is Verdict.REFUTED
    assert "0.7 times the noise" in result.target


@pytest.mark.slow
@pytest.mark.parametrize("canary", ["mislabelled", "tail-example"])
def test_examples_as_canaries_show_a_trainer_that_does_not_clip(canary):
    options = {"canary": canary, "canaries": 8, "pilots": 4 if canary == "tail-example" else None}
    broken = made(fault="no-clipping", **options)
    assert lidp.audit(broken.target, claim=CLAIM, design=CoinFlip(8), trials=60, seed=3).verdict is Verdict.REFUTED
    honest = made(**options)
    assert lidp.audit(honest.target, claim=CLAIM, design=CoinFlip(8), trials=20, seed=3).verdict is Verdict.NOT_REFUTED


@pytest.mark.slow
def test_one_run_is_enough_if_canaries_are_independent():
    data = synthetic_purchases(400, 200, features=300, classes=4)
    audits = [
        lidp.audit(
            made(data, canaries=1024, true_noise=share).target,
            claim=CLAIM,
            design=CoinFlip(1024),
            trials=1,
            seed=5,
            independent_canaries=True,
        )
        for share in (1.0, 0.8)
    ]
    assert [audit.verdict for audit in audits] == [Verdict.NOT_REFUTED, Verdict.REFUTED]
    assert all("independently of the other canaries" in str(audit) for audit in audits)
    assert json.loads(audits[1].to_json())["hypothesis"] == "curve, canary by canary"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"canary": "random-gradient"}, "random gradients overlap"),
        ({"canary": "blank"}, "gradients of examples overlap"),
        ({"scores": "centred"}, "the final model mixes"),
        ({"training": Training(epochs=2, batch_size=40, sampling="shuffle")}, "shuffled batches"),
    ],
)
def test_independent_canaries_are_refused_where_their_conditions_fail(options, reason):
    with pytest.raises(InvalidArgument, match=reason):
        lidp.audit(made(**options).target, claim=CLAIM, trials=1, independent_canaries=True)


def test_independent_canaries_need_a_curve_and_coins():
    with pytest.raises(MethodNotApplicable, match="independent canaries are a hypothesis for curve-wager"):
        lidp.audit(made().target, claim=CLAIM, trials=1, independent_canaries=True, method="coin-wager")


def test_transcripts_need_coin_flips():
    with pytest.raises(InvalidArgument, match="need coin-flip canaries"):
        lidp.audit(made(canaries=4).target, claim=CLAIM, design=LeaveOneOut(4, 4), trials=1)


@pytest.mark.slow
def test_transcripts_under_replace_one_test_the_point():
    claim = Claim(8.0, 1e-5, Neighbours.REPLACE_ONE)
    target = made(claim=claim, canaries=8).target
    assert "replace records" in target.interference
    result = lidp.audit(target, claim=claim, design=CoinFlip(8, Neighbours.REPLACE_ONE), trials=4)
    assert result.bound.hypothesis == "point"
    assert result.verdict is not Verdict.REFUTED


@pytest.mark.parametrize(
    "options", [{"true_noise": 0.0}, {"true_noise": float("nan")}, {"true_noise": -1.0}, {"pilots": 3}]
)
def test_settings_that_make_no_sense_are_refused(options):
    with pytest.raises(InvalidArgument, match=next(iter(options))):
        made(**options)


def test_evidence_is_stored_and_the_audit_resumes_to_the_same_result(tmp_path):
    target, path = made().target, tmp_path / "audit.db"
    options = {"claim": CLAIM, "trials": 6, "seed": 4, "stop_when": "never"}
    whole = lidp.audit(target, **options)
    stored = lidp.audit(target, store=path, workers=2, **options)
    same(whole, stored)
    same(lidp.audit(target, store=path, **options), stored)
    with Store.read(path) as store:
        records = store.trials()
    assert len(records) == 6
    for record in records:
        assert set(record.evidence) == {*COLUMNS, "group"}
        assert set(record.arrays) == {"scores", "coins"}
        evidence = record.evidence["log_ratio"].reshape(64, STRETCHES)
        np.testing.assert_allclose(evidence.sum(axis=1), record.arrays["scores"])
        assert record.metadata["scores_groups"] == "layer 1 weights, layer 1 biases"
        assert (np.bincount(record.evidence["group"].astype(int)) == [60, 4]).all()


def alarms(repeats, *, data=FEW, trials=4, canaries=16, epsilon=4.0, canary="dirac-gradient", **options):
    """Return how many audits of a correct trainer refute its curve, which is exactly tight for gradient canaries."""
    claim = Claim(epsilon, 1e-3)
    training = Training(epochs=2, batch_size=10, learning_rate=0.5)
    target = made(data, claim, training=training, canary=canary, canaries=canaries, measure_accuracy=False).target
    settings = {"claim": claim, "design": CoinFlip(canaries), "trials": trials, **options}
    return sum(lidp.audit(target, seed=seed, **settings).bound.fell_at is not None for seed in range(repeats))


@pytest.mark.slow_after_first
@pytest.mark.parametrize("independent", [False, True], ids=["runs", "canaries"])
def test_false_alarms_at_the_exactly_tight_null(independent):
    assert_covers(alarms(60, independent_canaries=independent), 60, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trials", "canaries", "independent"), [(1, 512, True), (8, 64, True), (16, 64, False), (64, 8, False)]
)
@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_false_alarms_at_the_exactly_tight_null_in_many_audits(trials, canaries, independent, epsilon):
    repeats = 300
    count = alarms(repeats, trials=trials, canaries=canaries, epsilon=epsilon, independent_canaries=independent)
    assert_covers(count, repeats, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("canary", "canaries"), [("random-gradient", 16), ("random-gradient", 1), ("mislabelled", 8), ("blank", 8)]
)
def test_false_alarms_with_canaries_that_overlap(canary, canaries):
    """A single random gradient is exactly tight; several overlap. Examples have shorter gradients than the claim allows."""
    assert_covers(alarms(200, canary=canary, canaries=canaries, trials=16), 200, 0.05)


@pytest.mark.slow
def test_a_correct_trainer_stands_in_forty_of_forty_seeds():
    target = made().target
    audits = [lidp.audit(target, claim=CLAIM, trials=32, seed=seed) for seed in range(40)]
    assert all(audit.verdict is Verdict.NOT_REFUTED for audit in audits)
