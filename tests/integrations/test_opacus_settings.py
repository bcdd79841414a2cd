"""The settings of an Opacus engine give the claim, and inconsistent settings are named."""

import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")
pytest.importorskip("opacus", reason="needs the extra torch")

from lidp import AuditFailed, Claim, CoinFlip, Verdict  # noqa: E402
from lidp.integrations.opacus import ConfigurationWarning, audit_opacus, opacus_target  # noqa: E402
from tests.integrations.opacus_training import FEATURES, MODES, Script, some_records  # noqa: E402

pytestmark = [
    # Opacus emits warnings of its own, and all scripts have secure_mode off.
    pytest.mark.filterwarnings("default"),
    pytest.mark.filterwarnings("ignore:secure_mode off"),
    pytest.mark.filterwarnings("ignore:Secure RNG turned off"),
    pytest.mark.filterwarnings("ignore:Full backward hook is firing"),
]
PARAMETERS = 2 * FEATURES + 2


def test_the_claim_is_the_statement_of_the_accountant():
    script = Script()
    opacus = opacus_target(script, some_records())
    settings = opacus.settings
    assert (settings.sample_rate, settings.noise_multiplier, settings.steps) == (0.5, 4.0, 10)
    assert settings.history == ((4.0, 0.5, 10),)
    assert settings.claim(1e-5).epsilon == script.engine.get_epsilon(1e-5)
    assert opacus.target.facts["steps"] == 10
    result = audit_opacus(script, some_records(), delta=1e-5, trials=3, design=CoinFlip(4))
    assert result.claim == settings.claim(1e-5)
    assert result.models == 3 + 4 + 1


@pytest.mark.parametrize(
    ("script", "name"),
    [
        (Script(poisson=False), "fixed-size batches"),
        (Script(batch=70), "batch size floored"),
        (Script(), "secure_mode off"),
    ],
)
def test_an_inconsistent_setting_is_reported_by_name(script, name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        opacus = opacus_target(script, some_records())
    messages = [str(warning.message) for warning in caught if warning.category is ConfigurationWarning]
    assert any(message.startswith(name) for message in messages)
    assert name in opacus.target.facts["warnings"]


def test_an_accountant_with_other_numbers_than_the_run_is_reported():
    class WrongHistory(Script):
        def __call__(self, records, planting):
            model = super().__call__(records, planting)
            self.engine.accountant.history[:] = [(8.0, 0.05, 9)]
            return model

    with pytest.warns(ConfigurationWarning) as caught:
        opacus_target(WrongHistory(), some_records())
    names = {str(warning.message).partition(":")[0] for warning in caught}
    assert {"noise overstated", "sampling rate understated", "steps not counted"} <= names


class VaryingNoise(Script):
    """A script whose noise multiplier changes after every step."""

    def __init__(self, change):
        super().__init__()
        self.change = change

    def __call__(self, records, planting):
        attach = planting.attach

        def attach_and_vary(engine, optimizer, loader):
            attach(engine, optimizer, loader)
            step = optimizer.step

            def step_and_change():
                step()
                optimizer.noise_multiplier = self.change(optimizer.noise_multiplier)

            optimizer.step = step_and_change

        planting.attach = attach_and_vary
        return super().__call__(records, planting)


def test_varying_noise_that_the_accountant_counts_is_consistent():
    settings = opacus_target(VaryingNoise(lambda noise: 1.1 * noise), some_records()).settings
    assert len(settings.noises) == 10
    names = {check.name for check in settings.checks()}
    assert not names & {"noise overstated", "noise missing", "steps not counted"}


def test_noise_that_only_the_first_step_adds_is_overstated():
    class NoiseOnce(VaryingNoise):
        def __call__(self, records, planting):
            model = super().__call__(records, planting)
            self.engine.accountant.history[:] = [(4.0, 0.5, 10)]
            return model

    with pytest.warns(ConfigurationWarning, match="noise overstated: .*counted a noise multiplier of 4, .*used 0.5"):
        opacus_target(NoiseOnce(lambda noise: 0.5), some_records())


@pytest.mark.parametrize("mode", MODES)
def test_missing_noise_is_measured(mode):
    """The measurement detects an optimizer that adds less noise than it states."""
    right = opacus_target(Script(mode=mode), some_records()).settings
    assert right.measured.numbers == 10 * PARAMETERS
    assert abs(right.measured.share - 1) < 5 / np.sqrt(2 * right.measured.numbers)
    assert "noise missing" not in {check.name for check in right.checks()}
    with pytest.warns(ConfigurationWarning, match=r"noise missing: the steps added 0\.1\d* times the noise"):
        opacus_target(Script(mode=mode, noise=0.5, stated_noise=4.0), some_records())


def test_fixed_size_batches_are_reported_though_no_score_detects_them():
    """Neither the final model nor single steps distinguish shuffled from Poisson batches; only the warning does."""
    script = Script(poisson=False, noise=2.0)
    for scores in ("final-model", "transcript"):
        with pytest.warns(ConfigurationWarning, match="fixed-size batches: the RDP accountant assumes Poisson sampling"):
            result = audit_opacus(script, some_records(), delta=1e-5, trials=48, design=CoinFlip(32), scores=scores)
        assert result.verdict is Verdict.NOT_REFUTED
        assert "fixed-size batches" in result.facts["warnings"]


@pytest.mark.slow_after_first
@pytest.mark.parametrize("accountant", ["rdp", "prv", "gdp"])
def test_scripts_may_ask_any_accountant_for_epsilon(accountant):
    class Asking(Script):
        def __call__(self, records, planting):
            model = super().__call__(records, planting)
            self.epsilon = self.engine.get_epsilon(1e-5)  # also in pilot runs, which have no noise
            return model

    script = Asking(accountant=accountant)
    result = audit_opacus(script, some_records(), delta=1e-5, trials=2, design=CoinFlip(2))
    assert result.claim.epsilon == pytest.approx(script.epsilon)


def test_settings_that_vary_between_runs_end_the_audit_unless_a_claim_is_given():
    """The accountant of the rehearsal describes that run only."""

    class VaryingSteps(Script):
        def __call__(self, records, planting):
            self.epochs = 1 + int(torch.randint(0, 3, ()))
            return super().__call__(records, planting)

    class NoiseInRehearsalOnly(Script):
        """Adds the stated noise in the rehearsal only."""

        def __call__(self, records, planting):
            model = super().__call__(records, planting)
            self.noise = 1.0
            return model

    for script, setting in ((VaryingSteps(), "steps"), (NoiseInRehearsalOnly(), "noises")):
        with pytest.raises(AuditFailed, match=f"one run had {setting} .*differs between runs"):
            audit_opacus(script, some_records(), delta=1e-5, trials=20, design=CoinFlip(2))
    covered = audit_opacus(VaryingSteps(), some_records(), claim=Claim(5.0, 1e-5), trials=4, design=CoinFlip(2))
    assert covered.failed_runs == 0
