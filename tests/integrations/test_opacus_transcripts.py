"""Transcript scores of Opacus: every mode records its steps, and the accountant's numbers are what is tested."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")
pytest.importorskip("opacus", reason="needs the extra torch")

from opacus import PrivacyEngine  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

import lidp  # noqa: E402
from lidp import Claim, CoinFlip, InvalidArgument, Verdict  # noqa: E402
from lidp.integrations.opacus import audit_opacus, opacus_target  # noqa: E402
from lidp.integrations.opacus_planting import OpacusPlanting  # noqa: E402
from lidp.integrations.opacus_settings import CountedSteps  # noqa: E402
from lidp.testing.simulations import assert_covers  # noqa: E402
from lidp.training.transcript import COLUMNS, SCORES_SEE  # noqa: E402
from tests.integrations.opacus_training import FEATURES, MODES, RECORDS, Script, some_records  # noqa: E402
from tests.sample_targets import InterruptedAfter  # noqa: E402

pytestmark = [
    # Opacus emits warnings of its own, and all scripts have secure_mode off.
    pytest.mark.filterwarnings("default"),
    pytest.mark.filterwarnings("ignore:secure_mode off"),
    pytest.mark.filterwarnings("ignore:noise missing"),
    pytest.mark.filterwarnings("ignore:Secure RNG turned off"),
    pytest.mark.filterwarnings("ignore:Full backward hook is firing"),
]
WEIGHTS = 2 * FEATURES
WATCHED = np.array([[0, 1], [7, -1], [WEIGHTS - 1, 1], [WEIGHTS, -1], [WEIGHTS + 1, 1]], float)
PRODUCT = COLUMNS.index("product")


def one_run(script, inserted, watched=None, **options):
    """Return the outcome of one run, with the same randomness for all canaries."""
    sizes = {"length": RECORDS, "actual_length": RECORDS}
    planting = OpacusPlanting(inserted, np.random.default_rng(3), watched=watched, **sizes, **options)
    torch.manual_seed(5)
    return planting.outcome(script(some_records(), planting))


@pytest.mark.parametrize("parts", [None, 64], ids=["whole", "virtual steps"])
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_plants_and_records(mode, parts):
    """At rate 1 and without noise, the residual of a real step is the sum of the inserted canaries."""
    script = Script(mode=mode, epochs=3, batch=RECORDS, parts=parts)
    transcript = one_run(script, WATCHED[1:4], WATCHED, noiseless=True).transcript
    assert transcript.steps == 3
    assert transcript.group_names == ("weight", "bias")
    np.testing.assert_array_equal(transcript.groups, [0, 0, 0, 1, 1])
    np.testing.assert_allclose(transcript.evidence[:, :, PRODUCT], np.outer([0, 1, 1, 1, 0], np.ones(3)), atol=1e-4)


def test_with_adaptive_clipping_products_are_in_units_of_the_current_norm():
    norms = []

    def train(records, planting):
        model = torch.nn.Linear(FEATURES, 2)
        engine = PrivacyEngine(accountant="rdp")
        model, optimizer, loader = engine.make_private(
            module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.5),
            data_loader=DataLoader(records, batch_size=RECORDS), noise_multiplier=2.0, max_grad_norm=1.5, clipping="adaptive",
            target_unclipped_quantile=0.5, clipbound_learning_rate=0.2, max_clipbound=10.0, min_clipbound=0.1,
            unclipped_num_std=10.0,
        )  # fmt: skip
        planting.attach(engine, optimizer, loader)
        for _ in range(3):
            for x, y in loader:
                norms.append(float(optimizer.max_grad_norm))
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(x), y).backward()
                optimizer.step()
        return model

    evidence = one_run(train, WATCHED[1:4], WATCHED, noiseless=True).transcript.evidence
    assert len(set(norms)) == 3
    np.testing.assert_allclose(evidence[:, :, PRODUCT], np.outer([0, 1, 1, 1, 0], np.ones(3)), atol=1e-4)


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_watched_canaries_do_not_influence_the_training(mode):
    script = Script(mode=mode)
    watching, without = (one_run(script, WATCHED[:2], watched).model.state_dict() for watched in (WATCHED, None))
    for name, values in watching.items():
        assert torch.equal(values, without[name])


def test_the_log_ratio_is_that_of_the_noise_that_the_accountant_counts():
    """An optimizer that adds a tenth of the noise must not lower what is claimed of its steps."""
    target = opacus_target(Script(noise=0.4, stated_noise=4.0), some_records(), scores="transcript").target
    data = target.dataset.with_canaries(WATCHED[:0]).watching(WATCHED)
    transcript = target.mechanism(data, np.random.default_rng(1)).value
    residuals = transcript.evidence[:, :, PRODUCT]
    assert transcript.evidence.shape[1] == 10  # one step each
    expected = np.log(0.5 + 0.5 * np.exp((residuals - 0.5) / 4.0**2))
    np.testing.assert_allclose(transcript.evidence[:, :, 0], expected, rtol=1e-6)
    assert np.abs(residuals).max() < 2.0


def test_an_accountant_that_counts_other_numbers_is_tested_by_its_numbers():
    class WrongHistory(Script):
        def __call__(self, records, planting):
            model = super().__call__(records, planting)
            self.engine.accountant.history[:] = [(8.0, 0.5, 4), (16.0, 0.25, 4)]
            return model

    with pytest.warns(UserWarning, match="noise overstated"):
        target = opacus_target(WrongHistory(), some_records(), scores="transcript").target
    data = target.dataset.with_canaries(WATCHED[:0]).watching(WATCHED)
    evidence = target.mechanism(data, np.random.default_rng(1)).value.evidence
    for step, (noise, rate) in enumerate(4 * [(8.0, 0.5)] + 6 * [(16.0, 0.25)]):
        expected = np.log(1 - rate + rate * np.exp((evidence[:, step, PRODUCT] - 0.5) / noise**2))
        np.testing.assert_allclose(evidence[:, step, 0], expected, rtol=1e-6)


def test_counted_steps():
    counted = CountedSteps([(1.0, 0.1, 2), (2.0, 0.2, 1)])
    assert [counted.at(step) for step in range(5)] == [(1.0, 0.1), (1.0, 0.1), (2.0, 0.2), (2.0, 0.2), (2.0, 0.2)]


def test_the_result_says_what_was_audited():
    result = audit_opacus(Script(), some_records(), delta=1e-5, trials=2, design=CoinFlip(8), scores="transcript")
    assert result.target == "Script, all steps"
    assert result.facts["scores see"].startswith("what every step releases")
    assert result.claim.curve is not None
    assert result.models == 2 + 1  # the rehearsal
    assert (result.failed_runs, result.unscored_canaries) == (0, 0)


@pytest.mark.parametrize("mode", ["hooks", "functorch", "ghost"])
def test_a_correct_script_stands_and_half_the_noise_falls(mode):
    for noise, verdict in ((2.0, Verdict.NOT_REFUTED), (1.0, Verdict.REFUTED)):
        script = Script(noise=noise, stated_noise=2.0, mode=mode)
        result = audit_opacus(script, some_records(), delta=1e-5, trials=10, scores="transcript")
        assert result.verdict is verdict


def test_noise_missing_in_one_layer_falls():
    class SilentWeights(Script):
        """Adds noise to the bias only."""

        def __call__(self, records, planting):
            attach = planting.attach

            def attach_to_silenced(engine, optimizer, loader):
                add_noise = optimizer.add_noise

                def add_noise_to_bias():
                    add_noise()
                    weight, *_ = optimizer.params
                    weight.grad = weight.summed_grad.clone()

                optimizer.add_noise = add_noise_to_bias
                attach(engine, optimizer, loader)

            planting.attach = attach_to_silenced
            return super().__call__(records, planting)

    result = audit_opacus(SilentWeights(noise=2.0), some_records(), delta=1e-5, trials=10, scores="transcript")
    assert result.verdict is Verdict.REFUTED


@pytest.mark.slow
def test_one_run_is_enough_for_independent_canaries():
    options = {"trials": 1, "design": CoinFlip(256), "scores": "transcript", "independent_canaries": True, "delta": 1e-5}
    for noise, verdict in ((1.0, Verdict.NOT_REFUTED), (0.5, Verdict.REFUTED)):
        assert audit_opacus(Script(noise=noise, stated_noise=1.0), some_records(), **options).verdict is verdict


def test_independent_canaries_are_refused_where_their_conditions_fail():
    refused = [
        ({}, "the final model mixes"),
        ({"scores": "transcript", "canary": "random-gradient"}, "random gradients overlap"),
    ]
    for options, message in refused:
        with pytest.raises(InvalidArgument, match=message):
            audit_opacus(Script(epochs=1), some_records(), delta=1e-5, trials=1, independent_canaries=True, **options)
    with (
        pytest.raises(InvalidArgument, match="shuffled batches are not what the accountant assumes; use Poisson sampling"),
        pytest.warns(UserWarning, match="fixed-size batches"),
    ):
        audit_opacus(
            Script(epochs=1, poisson=False), some_records(), delta=1e-5, scores="transcript", independent_canaries=True
        )


def test_a_claim_that_covers_varying_settings_is_tested_too():
    class VaryingSteps(Script):
        def __call__(self, records, planting):
            self.epochs = 1 + int(torch.randint(0, 3, ()))
            return super().__call__(records, planting)

    options = {"claim": Claim(5.0, 1e-5), "trials": 4, "design": CoinFlip(8), "scores": "transcript"}
    assert audit_opacus(VaryingSteps(), some_records(), **options).failed_runs == 0


def test_the_result_is_the_same_with_workers_store_and_resume(tmp_path):
    opacus = opacus_target(Script(epochs=1), some_records(), scores="transcript")
    options = {"claim": opacus.settings.claim(1e-5), "trials": 6, "design": CoinFlip(8), "seed": 4, "stop_when": "never"}
    expected = lidp.audit(opacus.target, **options)
    with pytest.raises(lidp.AuditInterrupted):
        lidp.audit(opacus.target, store=tmp_path / "a.db", executor=InterruptedAfter(3), **options)
    resumed = lidp.audit(opacus.target, store=tmp_path / "a.db", **options)
    for result in (resumed, lidp.audit(opacus.target, workers=2, **options)):
        np.testing.assert_array_equal(result.scores.flips()[0], expected.scores.flips()[0])
        assert result.bound == expected.bound


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"trials": 8, "design": CoinFlip(4)}, {"trials": 1, "independent_canaries": True}])
def test_false_alarms_at_an_exactly_tight_null(options):
    """One step on all records is the Gaussian mechanism, whose curve is known exactly."""
    script = Script(epochs=1, batch=RECORDS, noise=1.0)
    target = opacus_target(script, some_records(), scores="transcript").target
    audits = (lidp.audit(target, claim=Claim.gaussian(1.0, delta=1e-3), seed=seed, **options) for seed in range(100))
    assert_covers(sum(result.verdict is Verdict.REFUTED for result in audits), 100, 0.05)


@pytest.mark.slow
def test_false_alarms_of_the_defaults_for_other_optimizers_at_an_exactly_tight_null():
    """With AdamW, scores use all steps and the number of canaries is chosen, without being asked for."""
    script = Script(epochs=1, batch=RECORDS, noise=1.0, optimizer=torch.optim.AdamW)
    target = opacus_target(script, some_records()).target
    assert target.name.endswith("all steps")
    audits = (lidp.audit(target, claim=Claim.gaussian(1.0, delta=1e-3), seed=seed, trials=4) for seed in range(100))
    assert_covers(sum(result.verdict is Verdict.REFUTED for result in audits), 100, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["hooks", "functorch", "ghost"])
def test_correct_scripts_stand_in_20_of_20_audits(mode):
    opacus = opacus_target(Script(mode=mode), some_records(), scores="transcript")
    claim = opacus.settings.claim(1e-5)
    results = [lidp.audit(opacus.target, claim=claim, trials=32, seed=seed) for seed in range(20)]
    assert [result.verdict for result in results] == 20 * [Verdict.NOT_REFUTED]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fixed-size batches")
def test_shuffled_batches_show_if_there_is_little_noise():
    options = {"delta": 1e-5, "scores": "transcript", "trials": 24, "design": CoinFlip(64), "seed": 1}
    for poisson, verdict in ((True, Verdict.NOT_REFUTED), (False, Verdict.REFUTED)):
        script = Script(epochs=1, poisson=poisson, noise=0.4)
        assert audit_opacus(script, some_records(), **options).verdict is verdict


def test_optimizers_that_hide_canaries_from_the_final_model_are_audited_by_their_steps():
    adam = Script(epochs=1, optimizer=torch.optim.AdamW)
    chosen = opacus_target(adam, some_records()).target
    assert chosen.facts["scores see"] == SCORES_SEE
    assert chosen.canary_count.number == 256  # of 402 parameters
    for options in ({"pilots": 1}, {"scores": "final-model"}):
        assert "all steps" not in opacus_target(adam, some_records(), **options).target.name
    by_sgd = opacus_target(Script(epochs=1), some_records()).target
    assert "scores see" not in by_sgd.facts
    assert by_sgd.canary_count.number == 128  # for 200 records


class Still(torch.optim.AdamW):
    """Moves nothing, so the final model depends on no record."""

    def __init__(self, params, lr):
        super().__init__(params, lr=0 * lr, weight_decay=0.0)


def test_a_claim_that_is_true_of_the_final_model_is_not_refuted_by_the_steps():
    script, options = Script(epochs=1, noise=0.5, optimizer=Still), {"claim": Claim(0.5, 1e-5), "trials": 4, "seed": 1}
    assert audit_opacus(script, some_records(), pilots=2, **options).verdict is Verdict.NOT_REFUTED
    assert audit_opacus(script, some_records(), scores="transcript", **options).verdict is Verdict.REFUTED


def test_the_result_says_which_evidence_is_used_where_there_is_no_transcript():
    adam = Script(epochs=1, optimizer=torch.optim.AdamW)
    target = opacus_target(adam, some_records(), canaries=some_records(16), pilots=0).target
    assert target.facts["scores see"].startswith("the final model, although AdamW hides canaries there")
    arms = audit_opacus(adam, some_records(), delta=1e-5, design=lidp.LeaveOneOut(1, 1), trials=2, pilots=1)
    assert "all steps" not in arms.target
