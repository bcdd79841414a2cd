"""Audits of Opacus: canaries are where they should be in every mode, settings are read off, wrong ones are named."""

import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")
pytest.importorskip("opacus", reason="needs the extra torch")

from opacus import PrivacyEngine  # noqa: E402
from opacus.utils.batch_memory_manager import BatchMemoryManager  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

import lidp  # noqa: E402
from lidp import AuditFailed, Claim, CoinFlip, InvalidArgument, LeaveOneOut, Target, Verdict  # noqa: E402
from lidp.integrations.opacus import (  # noqa: E402
    ConfigurationWarning,
    GrownPool,
    GrownRecords,
    OpacusLoop,
    OpacusPlanting,
    audit_opacus,
    opacus_target,
)
from lidp.integrations.planting import GradientSeeds, directions  # noqa: E402
from lidp.integrations.torch import MovedScore, PlantedRecords  # noqa: E402
from lidp.stats.gaussian_curve import gaussian_epsilon  # noqa: E402
from lidp.testing.simulations import assert_covers  # noqa: E402
from tests.integrations.opacus_training import FEATURES, RECORDS, Script, outliers, some_records  # noqa: E402

pytestmark = [
    # Opacus warns about itself, and every one of these scripts has secure_mode off.
    pytest.mark.filterwarnings("default"),
    pytest.mark.filterwarnings("ignore:secure_mode off"),
    pytest.mark.filterwarnings("ignore:Secure RNG turned off"),
    pytest.mark.filterwarnings("ignore:Full backward hook is firing"),
]
SIZE = 2 * FEATURES + 2
FEW = CoinFlip(32)


def planted(seeds=(), records=None, *, seed=0, **options):
    records = records or some_records()
    sizes = {"length": len(records), "real": GrownRecords.count(records)}
    return OpacusPlanting(np.array(seeds, np.int64), np.random.default_rng(seed), **sizes, **options)


def one_run(script, seeds=(), *, records=None, noiseless=True, **options):
    """How far the parameters of a run move; the same run for every set of canaries."""
    records = records or some_records()
    planting = planted(seeds, records, seed=3, noiseless=noiseless, **options)
    torch.manual_seed(5)
    return planting.outcome(script(records, planting))


MODES = ["hooks", "functorch", "ew", "ghost", "fast"]


@pytest.mark.parametrize("parts", [None, 64], ids=["whole", "virtual steps"])
@pytest.mark.parametrize("mode", MODES)
def test_canaries_are_added_to_the_sum_of_clipped_gradients(mode, parts):
    """At rate 1 and without noise a step moves by learning rate x canary / batch size, exactly, in every mode."""
    script = Script(mode=mode, epochs=1, batch=RECORDS, parts=parts)
    seeds = [11, 12, 13]
    there, gone = one_run(script, seeds), one_run(script)
    assert there.steps == gone.steps == 1
    expected = -0.5 * directions(seeds, SIZE).sum(axis=0) / RECORDS
    np.testing.assert_allclose(there.moved - gone.moved, expected, atol=1e-6)


def test_a_canary_takes_part_in_as_many_steps_as_its_sampling_rate_says():
    script = Script(epochs=20, batch=50)
    planting = planted(range(50), noiseless=True)
    taken = []
    sample = planting._sample
    planting._sample = lambda *given: taken.append(len(sample(*given))) or np.empty(0, np.int64)
    script(some_records(), planting)
    assert planting.steps == 80
    share = np.sum(taken) / (80 * 50)
    assert abs(share - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 4000)


def test_with_shuffled_batches_a_canary_takes_part_once_an_epoch():
    script = Script(epochs=6, batch=50, poisson=False)
    planting = planted(range(20), noiseless=True)
    taken = []
    sample = planting._sample
    planting._sample = lambda *given: taken.append(sample(*given)) or np.empty(0, np.int64)
    script(some_records(), planting)
    for epoch in range(6):
        assert sorted(np.concatenate(taken[4 * epoch : 4 * epoch + 4])) == list(range(20))


def test_adaptive_clipping():
    """A canary is as long as the clip norm of its step, which changes from step to step."""

    def train(records, planting):
        model = torch.nn.Linear(FEATURES, 2)
        torch.nn.init.zeros_(model.weight)
        engine = PrivacyEngine(accountant="rdp")
        model, optimizer, loader = engine.make_private(
            module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.5),
            data_loader=DataLoader(records, batch_size=RECORDS), noise_multiplier=2.0, max_grad_norm=1.5, clipping="adaptive",
            target_unclipped_quantile=0.5, clipbound_learning_rate=0.2, max_clipbound=10.0, min_clipbound=0.1,
            unclipped_num_std=10.0,
        )  # fmt: skip
        planting.attach(engine, optimizer, loader)
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        assert optimizer.max_grad_norm != 1.5
        return model

    seeds = [4, 5]
    moved = one_run(train, seeds).moved - one_run(train).moved
    np.testing.assert_allclose(moved, -0.5 * 1.5 * directions(seeds, SIZE).sum(axis=0) / RECORDS, atol=1e-6)


def test_large_models_draw_their_canaries_anew(monkeypatch):
    kept = one_run(Script(), [1, 2, 3], noiseless=False).moved
    monkeypatch.setattr("lidp.integrations.planting._KEPT_NUMBERS", 0)
    np.testing.assert_array_equal(one_run(Script(), [1, 2, 3], noiseless=False).moved, kept)


# what the engine was told


def test_the_claim_is_what_the_accountant_says():
    script = Script()
    made = opacus_target(script, some_records())
    found = made.settings
    assert (found.sample_rate, found.noise_multiplier, found.steps) == (0.5, 4.0, 10)
    assert found.history == ((4.0, 0.5, 10),)
    assert found.claim(1e-5).epsilon == script.engine.get_epsilon(1e-5)
    assert made.target.facts["steps"] == 10
    result = audit_opacus(script, some_records(), delta=1e-5, trials=3, design=CoinFlip(4))
    assert result.claim == found.claim(1e-5)
    assert result.models == 3 + 4 + 1


@pytest.mark.parametrize(
    ("script", "name"),
    [
        (Script(poisson=False), "fixed-size batches"),
        (Script(batch=70), "batch size floored"),
        (Script(), "secure_mode off"),
    ],
)
def test_what_does_not_fit_is_named(script, name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = opacus_target(script, some_records())
    told = [str(one.message) for one in caught if one.category is ConfigurationWarning]
    assert any(text.startswith(name) for text in told)
    assert name in made.target.facts["does not fit"]


def test_an_accountant_that_is_told_other_numbers_is_named():
    class Meddling(Script):
        def __call__(self, records, planting):
            model = super().__call__(records, planting)
            self.engine.accountant.history[:] = [(8.0, 0.05, 9)]
            return model

    with pytest.warns(ConfigurationWarning) as caught:
        opacus_target(Meddling(), some_records())
    names = {str(one.message).partition(":")[0] for one in caught}
    assert {"noise overstated", "sampling rate understated", "steps not counted"} <= names


class Changing(Script):
    """Noise that changes after every step."""

    def __init__(self, change):
        super().__init__()
        self.change = change

    def __call__(self, records, planting):
        attach = planting.attach

        def and_let_it_change(engine, optimizer, loader):
            attach(engine, optimizer, loader)
            step = optimizer.step

            def changing():
                step()
                optimizer.noise_multiplier = self.change(optimizer.noise_multiplier)

            optimizer.step = changing

        planting.attach = and_let_it_change
        return super().__call__(records, planting)


def test_noise_that_changes_on_the_way_is_not_overstated():
    found = opacus_target(Changing(lambda noise: 1.1 * noise), some_records()).settings
    assert len(found.noises) == 10
    names = {check.name for check in found.checks()}
    assert not names & {"noise overstated", "noise missing", "steps not counted"}


def test_noise_that_only_some_steps_have_is_overstated():
    class Sparing(Changing):
        def __call__(self, records, planting):
            model = super().__call__(records, planting)
            self.engine.accountant.history[:] = [(4.0, 0.5, 10)]
            return model

    with pytest.warns(ConfigurationWarning, match="noise overstated: the accountant was told 4, the optimizer had 0.5"):
        opacus_target(Sparing(lambda noise: 0.5), some_records())


@pytest.mark.parametrize("mode", MODES)
def test_noise_is_measured(mode):
    """An optimizer that says one thing and does another is named."""
    right = opacus_target(Script(mode=mode), some_records()).settings
    assert right.measured.numbers == 10 * SIZE
    assert abs(right.measured.share - 1) < 5 / np.sqrt(2 * right.measured.numbers)
    assert "noise missing" not in {check.name for check in right.checks()}
    with pytest.warns(ConfigurationWarning, match=r"noise missing: steps added 0\.1\d* times the noise"):
        opacus_target(Script(mode=mode, noise=0.5, told=4.0), some_records())


def test_a_script_that_seeds_itself_ends_the_audit():
    """With the same noise in every run a true claim is refuted."""

    class Seeded(Script):
        def __call__(self, records, planting):
            torch.manual_seed(7)
            return super().__call__(records, planting)

    class OwnGenerator(Script):
        def batches(self, loader):
            self.optimizer.generator = torch.Generator().manual_seed(7)
            return loader

        def __call__(self, records, planting):
            attach = planting.attach

            def and_remember(engine, optimizer, loader):
                self.optimizer = optimizer
                attach(engine, optimizer, loader)

            planting.attach = and_remember
            return super().__call__(records, planting)

    for script in (Seeded(epochs=1), OwnGenerator(epochs=1)):
        with pytest.raises(AuditFailed, match="train seeds its generator itself"):
            audit_opacus(script, some_records(), delta=1e-5, trials=2, design=CoinFlip(2), pilots=1)
        with pytest.raises(AuditFailed, match="train seeds its generator itself"):
            audit_opacus(script, some_records(), claim=Claim(2.0, 1e-5), trials=2, design=CoinFlip(2), pilots=1)


MODULE_LEVEL = torch.Generator().manual_seed(7)


class ModuleLevelGenerator(Script):
    """Noise from a generator that lives as long as the process: copies of it in several workers draw the same noise."""

    def __call__(self, records, planting):
        attach = planting.attach

        def attach_with_generator(engine, optimizer, loader):
            optimizer.generator = MODULE_LEVEL  # what make_private(noise_generator=...) does
            attach(engine, optimizer, loader)

        planting.attach = attach_with_generator
        return super().__call__(records, planting)


@pytest.mark.parametrize("canaries", [None, outliers()], ids=["gradients", "records"])
def test_a_noise_generator_that_several_workers_would_copy_is_refused(canaries):
    options = {"delta": 1e-5, "trials": 4, "design": CoinFlip(2), "pilots": 1, "canaries": canaries}
    with pytest.raises(InvalidArgument, match="same ones in every worker process"):
        audit_opacus(ModuleLevelGenerator(epochs=1), some_records(), workers=2, **options)
    assert audit_opacus(ModuleLevelGenerator(epochs=1), some_records(), **options).bound.trials == 4
    assert audit_opacus(Script(epochs=1), some_records(), workers=2, **options).bound.trials == 4


def test_a_script_that_trains_on_another_loader_ends_the_audit():
    class Astray(Script):
        def batches(self, loader):
            return DataLoader(loader.dataset, batch_size=100)

    for canaries in (None, outliers()):
        with pytest.raises(AuditFailed, match="train takes its batches from another loader"):
            opacus_target(Astray(), some_records(), canaries=canaries)


def test_what_a_final_model_does_not_show_of_fixed_size_batches_the_check_does():
    """Neither the final model nor single steps tell shuffled batches from Poisson ones: the warning is what names them."""
    script = Script(poisson=False, noise=2.0)
    for white_box in (False, True):
        with pytest.warns(ConfigurationWarning, match="fixed-size batches: the RDP accountant assumes Poisson sampling"):
            found = audit_opacus(script, some_records(), delta=1e-5, trials=48, design=FEW, white_box=white_box)
        assert found.verdict is Verdict.NOT_REFUTED
        assert "fixed-size batches" in found.facts["does not fit"]


@pytest.mark.parametrize("accountant", ["rdp", "prv", "gdp"])
def test_every_accountant_and_scripts_that_ask_it_on_the_way(accountant):
    class Asking(Script):
        def __call__(self, records, planting):
            model = super().__call__(records, planting)
            self.epsilon = self.engine.get_epsilon(1e-5)  # also in pilot runs, which have no noise
            return model

    script = Asking(accountant=accountant)
    result = audit_opacus(script, some_records(), delta=1e-5, trials=2, design=CoinFlip(2))
    assert result.claim.epsilon == pytest.approx(script.epsilon)


def test_scripts_that_cannot_be_audited():
    def other_records(records, planting):
        return Script()(some_records(100), planting)

    def plain_optimizer(records, planting):
        model = torch.nn.Linear(2, 2)
        planting.attach(PrivacyEngine(), torch.optim.SGD(model.parameters(), lr=1.0), DataLoader(records))

    def per_layer(records, planting):
        model = torch.nn.Linear(FEATURES, 2)
        engine = PrivacyEngine()
        model, optimizer, loader = engine.make_private(
            module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.5), data_loader=DataLoader(records),
            noise_multiplier=1.0, max_grad_norm=[1.0, 1.0], clipping="per_layer",
        )  # fmt: skip
        planting.attach(engine, optimizer, loader)

    told = {
        Script(attach=False): "did not call planting.attach",
        other_records: "the loader has 100 records, train was given 200",
        plain_optimizer: "the optimizer that make_private returned, got SGD",
        per_layer: "DPPerLayerOptimizer is not supported",
        Script(epochs=0): "planted nothing",
    }
    for script, message in told.items():
        with pytest.raises(AuditFailed, match=message):
            opacus_target(script, some_records())
    with pytest.raises(AuditFailed, match="need Poisson sampling"):
        opacus_target(Script(poisson=False), some_records(), canaries=outliers())
    with pytest.raises(InvalidArgument, match="white-box scores are for gradient canaries"):
        opacus_target(Script(), some_records(), canaries=outliers(), white_box=True)
    with pytest.raises(InvalidArgument, match="wrap arrays in a TensorDataset"):
        opacus_target(Script(), some_records().tensors)
    with pytest.raises(InvalidArgument, match="give delta"):
        audit_opacus(Script(), some_records())


def test_a_number_of_steps_that_varies_ends_the_audit_unless_the_claim_covers_it():
    """The accountant of the rehearsal would speak of one run only."""

    class Moody(Script):
        def __call__(self, records, planting):
            self.epochs = 1 + int(torch.randint(0, 3, ()))
            return super().__call__(records, planting)

    class Fickle(Script):
        """The noise that was promised in the rehearsal only."""

        def __call__(self, records, planting):
            model = super().__call__(records, planting)
            self.noise = 1.0
            return model

    for script, what in ((Moody(), "steps"), (Fickle(), "noises")):
        with pytest.raises(AuditFailed, match=f"one run had {what} .*differs from run to run"):
            audit_opacus(script, some_records(), delta=1e-5, trials=20, design=CoinFlip(2))
    covered = audit_opacus(Moody(), some_records(), claim=Claim(5.0, 1e-5), trials=4, design=CoinFlip(2))
    assert covered.failed_runs == 0


# canaries that are records


def test_the_size_of_the_data_does_not_tell_who_is_in():
    pool = GrownPool(some_records(), outliers())
    found, lengths = [], []
    for inserted in ([], [1, 2, 3], range(8)):
        data = pool.with_canaries(inserted)
        planting = planted((), data, required=False)

        def train(records, planting):
            script = Script(batch=52)
            attach = planting.attach

            def and_measure(engine, optimizer, loader):
                attach(engine, optimizer, loader)
                with BatchMemoryManager(data_loader=loader, max_physical_batch_size=7, optimizer=optimizer) as parts:
                    lengths.append((len(records), len(loader), len(parts), len(loader.dataset)))

            planting.attach = and_measure
            return script(records, planting)

        train(data, planting)
        found.append(planting.settings())
    assert found[0] == found[1] == found[2]
    assert len(set(lengths)) == 1


def test_those_who_are_in_are_sampled_like_everybody_else():
    seen = []

    class Watched(list):
        def __getitem__(self, place):
            seen.append(place)
            return super().__getitem__(place)

    data = GrownPool(some_records(), outliers()).with_canaries([5, 6])
    canaries = data._records.datasets
    canaries[1] = Watched(canaries[1])
    Script(epochs=60)(data, planted((), data, required=False))
    assert set(seen) == {0, 1}
    for canary in (0, 1):  # 120 steps at a rate of a half
        assert abs(seen.count(canary) - 60) < 4 * np.sqrt(30)


def test_a_loader_with_workers_of_its_own():
    class Busy(Script):
        loader = {"num_workers": 1}  # noqa: RUF012

    found = audit_opacus(
        Busy(epochs=1), some_records(), delta=1e-5, trials=2, design=CoinFlip(4), canaries=outliers(), pilots=1
    )
    assert found.failed_runs == 0


@pytest.mark.parametrize("design", [CoinFlip(1), CoinFlip(4), LeaveOneOut(1, 1)], ids=str)
def test_a_loop_that_plants_nothing_is_not_taken_for_one_that_fails(design):
    """Failing only if a canary is in would tell the coins, and refute a trainer that does nothing wrong."""
    with pytest.raises(AuditFailed, match="did not call planting.attach"):
        lidp.audit(
            Target(OpacusLoop(Script(attach=False)), GradientSeeds(), MovedScore(), PlantedRecords(some_records())),
            claim=Claim(0.5, 1e-5), trials=40, design=design,
        )  # fmt: skip


# whole audits


def test_workers_change_nothing(tmp_path):
    made = opacus_target(Script(), some_records())
    options = {"claim": made.settings.claim(1e-5), "trials": 6, "design": CoinFlip(8), "seed": 4}
    one = lidp.audit(made.target, **options)
    two = lidp.audit(made.target, workers=2, store=tmp_path / "a.db", **options)
    np.testing.assert_array_equal(one.scores.flips()[0], two.scores.flips()[0])
    assert one.bound == two.bound


@pytest.mark.parametrize("design", [LeaveOneOut(4, 4), CoinFlip(4)], ids=["leave one out", "coin flips"])
@pytest.mark.parametrize("options", [{}, {"white_box": True}, {"canaries": outliers()}], ids=["moved", "steps", "records"])
def test_every_kind_of_canary_with_every_design(design, options):
    found = audit_opacus(Script(epochs=1), some_records(), delta=1e-5, trials=3, design=design, **options)
    assert found.failed_runs == 0
    assert found.unscored_canaries == 0


def test_white_box_scores_that_would_not_fit(monkeypatch):
    monkeypatch.setattr("lidp.integrations.planting._RELEASED_NUMBERS", 1000)
    with pytest.raises(AuditFailed, match="white-box scores would keep more than 1,000 numbers"):
        audit_opacus(Script(), some_records(), delta=1e-5, trials=2, white_box=True)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"white_box": True}, {"canaries": outliers()}], ids=["moved", "steps", "records"])
@pytest.mark.parametrize("design", [CoinFlip(4), LeaveOneOut(4, 4)], ids=["coin flips", "leave one out"])
def test_false_alarms_at_an_exactly_tight_null(options, design):
    """One step on all records is the Gaussian mechanism, whose ε is known exactly."""
    script, delta = Script(epochs=1, batch=RECORDS, noise=1.0), 1e-3
    made = opacus_target(script, some_records(), **options)
    claim = Claim(gaussian_epsilon(1.0, delta), delta)
    alarms = sum(
        lidp.audit(made.target, claim=claim, trials=8, design=design, seed=seed).verdict is Verdict.REFUTED
        for seed in range(100)
    )
    assert_covers(alarms, 100, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("canaries", [None, outliers()], ids=["gradients", "records"])
def test_the_right_script_is_not_refuted(canaries):
    made = opacus_target(Script(), some_records(), canaries=canaries)
    claim = made.settings.claim(1e-5)
    found = [lidp.audit(made.target, claim=claim, trials=128, design=FEW, seed=seed) for seed in range(20)]
    assert [result.verdict for result in found] == 20 * [Verdict.NOT_REFUTED]


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"white_box": True}], ids=["moved", "steps"])
@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_too_little_noise_is_refuted(mode, options):
    """Noise for an ε four times as large as the accountant is made to say."""
    from opacus.accountants.utils import get_noise_multiplier

    epsilon = opacus_target(Script(), some_records()).settings.claim(1e-5).epsilon
    noise = get_noise_multiplier(target_epsilon=4 * epsilon, target_delta=1e-5, sample_rate=0.5, steps=10, accountant="rdp")
    script = Script(noise=noise, told=4.0, mode=mode)
    for seed in range(3):
        found = audit_opacus(script, some_records(), delta=1e-5, trials=384, design=FEW, seed=seed, **options)
        assert found.verdict is Verdict.REFUTED
        assert found.claim.epsilon == pytest.approx(epsilon)


@pytest.mark.slow
def test_bypassed_clipping_is_refuted_by_records_and_not_seen_by_gradients():
    script = Script(clipping=False)
    for seed in range(3):
        found = audit_opacus(script, some_records(), delta=1e-5, trials=384, design=FEW, seed=seed, canaries=outliers())
        assert found.verdict is Verdict.REFUTED
    # A gradient canary is planted where sums are, at the norm that clipping would have left it.
    blind = audit_opacus(script, some_records(), delta=1e-5, trials=64, design=FEW)
    assert blind.verdict is Verdict.NOT_REFUTED
