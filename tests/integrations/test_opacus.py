"""Audits of Opacus: canaries in every mode, scripts that cannot be audited, false alarms and power."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")
pytest.importorskip("opacus", reason="needs the extra torch")

from opacus import PrivacyEngine  # noqa: E402
from opacus.utils.batch_memory_manager import BatchMemoryManager  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

import lidp  # noqa: E402
from lidp import AuditFailed, Claim, CoinFlip, InvalidArgument, LeaveOneOut, Target, Verdict  # noqa: E402
from lidp.curves.gaussian import gaussian_epsilon  # noqa: E402
from lidp.integrations.gradient_canaries import GradientSeeds, directions  # noqa: E402
from lidp.integrations.opacus import GrownPool, GrownRecords, OpacusLoop, audit_opacus, opacus_target  # noqa: E402
from lidp.integrations.opacus_planting import OpacusPlanting  # noqa: E402
from lidp.integrations.torch import MovedScore, PlantedRecords  # noqa: E402
from lidp.testing.simulations import assert_covers  # noqa: E402
from tests.integrations.opacus_training import FEATURES, MODES, RECORDS, Script, outliers, some_records  # noqa: E402

pytestmark = [
    # Opacus emits warnings of its own, and all scripts have secure_mode off.
    pytest.mark.filterwarnings("default"),
    pytest.mark.filterwarnings("ignore:secure_mode off"),
    pytest.mark.filterwarnings("ignore:Secure RNG turned off"),
    pytest.mark.filterwarnings("ignore:Full backward hook is firing"),
]
PARAMETERS = 2 * FEATURES + 2
FEW = CoinFlip(32)


def make_planting(seeds=(), records=None, *, seed=0, **options):
    records = records or some_records()
    sizes = {"length": len(records), "actual_length": GrownRecords.count(records)}
    return OpacusPlanting(np.array(seeds, np.int64), np.random.default_rng(seed), **sizes, **options)


def one_run(script, seeds=(), *, records=None, noiseless=True, **options):
    """Return the outcome of one run, with the same randomness for every set of canaries."""
    records = records or some_records()
    planting = make_planting(seeds, records, seed=3, noiseless=noiseless, **options)
    torch.manual_seed(5)
    return planting.outcome(script(records, planting))


@pytest.mark.parametrize("parts", [None, 64], ids=["whole", "virtual steps"])
@pytest.mark.parametrize("mode", MODES)
def test_canaries_are_added_to_the_sum_of_clipped_gradients(mode, parts):
    """At rate 1 and without noise, a canary changes the parameters by learning rate x canary / batch size in every mode."""
    script = Script(mode=mode, epochs=1, batch=RECORDS, parts=parts)
    seeds = [11, 12, 13]
    with_canaries, without = one_run(script, seeds), one_run(script)
    assert with_canaries.steps == without.steps == 1
    expected = -0.5 * directions(seeds, PARAMETERS).sum(axis=0) / RECORDS
    np.testing.assert_allclose(with_canaries.moved - without.moved, expected, atol=1e-6)


def test_canaries_are_sampled_at_the_sampling_rate():
    script = Script(epochs=20, batch=50)
    planting = make_planting(range(50), noiseless=True)
    sampled = []
    sample = planting._sample
    planting._sample = lambda *given: sampled.append(len(sample(*given))) or np.empty(0, np.int64)
    script(some_records(), planting)
    assert planting.steps == 80
    share = np.sum(sampled) / (80 * 50)
    assert abs(share - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 4000)


def test_with_shuffled_batches_each_canary_is_sampled_once_per_epoch():
    script = Script(epochs=6, batch=50, poisson=False)
    planting = make_planting(range(20), noiseless=True)
    sampled = []
    sample = planting._sample
    planting._sample = lambda *given: sampled.append(sample(*given)) or np.empty(0, np.int64)
    script(some_records(), planting)
    for epoch in range(6):
        assert sorted(np.concatenate(sampled[4 * epoch : 4 * epoch + 4])) == list(range(20))


def test_with_adaptive_clipping_canaries_have_the_current_clipping_norm():
    """The clipping norm changes from step to step."""

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
    np.testing.assert_allclose(moved, -0.5 * 1.5 * directions(seeds, PARAMETERS).sum(axis=0) / RECORDS, atol=1e-6)


def test_directions_too_large_to_cache_are_drawn_again(monkeypatch):
    cached = one_run(Script(), [1, 2, 3], noiseless=False).moved
    monkeypatch.setattr("lidp.integrations.planted_gradients._MAX_CACHED_NUMBERS", 0)
    np.testing.assert_array_equal(one_run(Script(), [1, 2, 3], noiseless=False).moved, cached)


# Scripts that cannot be audited.


def test_a_script_that_seeds_its_noise_ends_the_audit():
    """With the same noise in every run, a true claim would be refuted."""

    class Seeded(Script):
        def __call__(self, records, planting):
            torch.manual_seed(7)
            return super().__call__(records, planting)

    class SeededGenerator(Script):
        def batches(self, loader):
            self.optimizer.generator = torch.Generator().manual_seed(7)
            return loader

        def __call__(self, records, planting):
            attach = planting.attach

            def attach_and_remember(engine, optimizer, loader):
                self.optimizer = optimizer
                attach(engine, optimizer, loader)

            planting.attach = attach_and_remember
            return super().__call__(records, planting)

    for script in (Seeded(epochs=1), SeededGenerator(epochs=1)):
        with pytest.raises(AuditFailed, match="train seeds the generator itself"):
            audit_opacus(script, some_records(), delta=1e-5, trials=2, design=CoinFlip(2), pilots=1)
        with pytest.raises(AuditFailed, match="train seeds the generator itself"):
            audit_opacus(script, some_records(), claim=Claim(2.0, 1e-5), trials=2, design=CoinFlip(2), pilots=1)


MODULE_LEVEL = torch.Generator().manual_seed(7)


class ModuleLevelGenerator(Script):
    """Draws noise from a generator of the process; its copies in several workers would draw the same noise."""

    def __call__(self, records, planting):
        attach = planting.attach

        def attach_with_generator(engine, optimizer, loader):
            optimizer.generator = MODULE_LEVEL  # as make_private(noise_generator=...) does
            attach(engine, optimizer, loader)

        planting.attach = attach_with_generator
        return super().__call__(records, planting)


@pytest.mark.slow_after_first
@pytest.mark.parametrize("canaries", [None, outliers()], ids=["gradients", "records"])
def test_a_module_level_noise_generator_is_refused_with_several_workers(canaries):
    options = {"delta": 1e-5, "trials": 4, "design": CoinFlip(2), "pilots": 1, "canaries": canaries}
    with pytest.raises(InvalidArgument, match="same ones in every worker process"):
        audit_opacus(ModuleLevelGenerator(epochs=1), some_records(), workers=2, **options)
    assert audit_opacus(ModuleLevelGenerator(epochs=1), some_records(), **options).bound.trials == 4
    assert audit_opacus(Script(epochs=1), some_records(), workers=2, **options).bound.trials == 4


def test_a_script_that_trains_on_another_loader_is_refused():
    class OtherLoader(Script):
        def batches(self, loader):
            return DataLoader(loader.dataset, batch_size=100)

    for canaries in (None, outliers()):
        with pytest.raises(AuditFailed, match="train takes its batches from another loader"):
            opacus_target(OtherLoader(), some_records(), canaries=canaries)


def test_unsupported_scripts_are_refused():
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

    messages = {
        Script(attach=False): "did not call planting.attach",
        other_records: "the loader has 100 records, but train got 200",
        plain_optimizer: "the optimizer that make_private returned, got SGD",
        per_layer: "DPPerLayerOptimizer is not supported",
        Script(epochs=0): "planted no canaries",
    }
    for script, message in messages.items():
        with pytest.raises(AuditFailed, match=message):
            opacus_target(script, some_records())
    with pytest.raises(AuditFailed, match="need Poisson sampling"):
        opacus_target(Script(poisson=False), some_records(), canaries=outliers())
    with pytest.raises(InvalidArgument, match="transcript scores are for gradient canaries.*leave out canaries="):
        opacus_target(Script(), some_records(), canaries=outliers(), scores="transcript")
    with pytest.raises(InvalidArgument, match="wrap arrays in a TensorDataset"):
        opacus_target(Script(), some_records().tensors)
    with pytest.raises(InvalidArgument, match="give either delta"):
        audit_opacus(Script(), some_records())


# Canaries that are records.


def test_public_sizes_do_not_depend_on_inserted_canaries():
    pool = GrownPool(some_records(), outliers())
    settings, lengths = [], []
    for inserted in ([], [1, 2, 3], range(8)):
        data = pool.with_canaries(inserted)
        planting = make_planting((), data, required=False)

        def train(records, planting):
            script = Script(batch=52)
            attach = planting.attach

            def attach_and_measure(engine, optimizer, loader):
                attach(engine, optimizer, loader)
                with BatchMemoryManager(data_loader=loader, max_physical_batch_size=7, optimizer=optimizer) as parts:
                    lengths.append((len(records), len(loader), len(parts), len(loader.dataset)))

            planting.attach = attach_and_measure
            return script(records, planting)

        train(data, planting)
        settings.append(planting.settings())
    assert settings[0] == settings[1] == settings[2]
    assert len(set(lengths)) == 1


def test_inserted_canaries_are_sampled_like_other_records():
    seen = []

    class Watched(list):
        def __getitem__(self, index):
            seen.append(index)
            return super().__getitem__(index)

    data = GrownPool(some_records(), outliers()).with_canaries([5, 6])
    canaries = data._records.datasets
    canaries[1] = Watched(canaries[1])
    Script(epochs=60)(data, make_planting((), data, required=False))
    assert set(seen) == {0, 1}
    for canary in (0, 1):  # 120 steps at a rate of a half
        assert abs(seen.count(canary) - 60) < 4 * np.sqrt(30)


def test_a_loader_may_have_worker_processes():
    class LoaderWithWorker(Script):
        loader = {"num_workers": 1}  # noqa: RUF012

    result = audit_opacus(
        LoaderWithWorker(epochs=1), some_records(), delta=1e-5, trials=2, design=CoinFlip(4), canaries=outliers(), pilots=1
    )
    assert result.failed_runs == 0


@pytest.mark.parametrize("design", [CoinFlip(1), CoinFlip(4), LeaveOneOut(1, 1)], ids=str)
def test_a_loop_that_never_plants_ends_the_audit_and_is_no_failed_run(design):
    """Failing only if a canary is inserted would reveal the coins, and refute a correct trainer."""
    with pytest.raises(AuditFailed, match="did not call planting.attach"):
        lidp.audit(
            Target(OpacusLoop(Script(attach=False)), GradientSeeds(), MovedScore(), PlantedRecords(some_records())),
            claim=Claim(0.5, 1e-5), trials=40, design=design,
        )  # fmt: skip


# Whole audits.


@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_workers(tmp_path):
    opacus = opacus_target(Script(), some_records())
    options = {"claim": opacus.settings.claim(1e-5), "trials": 6, "design": CoinFlip(8), "seed": 4}
    one = lidp.audit(opacus.target, **options)
    two = lidp.audit(opacus.target, workers=2, store=tmp_path / "a.db", **options)
    np.testing.assert_array_equal(one.scores.flips()[0], two.scores.flips()[0])
    assert one.bound == two.bound


@pytest.mark.parametrize("design", [LeaveOneOut(4, 4), CoinFlip(4)], ids=["leave one out", "coin flips"])
@pytest.mark.parametrize("options", [{}, {"canaries": outliers()}], ids=["gradients", "records"])
def test_every_kind_of_canary_with_every_design(design, options):
    result = audit_opacus(Script(epochs=1), some_records(), delta=1e-5, trials=3, design=design, **options)
    assert result.failed_runs == 0
    assert result.unscored_canaries == 0


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"canaries": outliers()}], ids=["gradients", "records"])
@pytest.mark.parametrize("design", [CoinFlip(4), LeaveOneOut(4, 4)], ids=["coin flips", "leave one out"])
def test_false_alarms_at_an_exactly_tight_null(options, design):
    """One step on all records is the Gaussian mechanism, whose ε is known exactly."""
    script, delta = Script(epochs=1, batch=RECORDS, noise=1.0), 1e-3
    opacus = opacus_target(script, some_records(), **options)
    claim = Claim(gaussian_epsilon(1.0, delta), delta)
    alarms = sum(
        lidp.audit(opacus.target, claim=claim, trials=8, design=design, seed=seed).verdict is Verdict.REFUTED
        for seed in range(100)
    )
    assert_covers(alarms, 100, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("canaries", [None, outliers()], ids=["gradients", "records"])
def test_a_correct_script_is_not_refuted(canaries):
    opacus = opacus_target(Script(), some_records(), canaries=canaries)
    claim = opacus.settings.claim(1e-5)
    results = [lidp.audit(opacus.target, claim=claim, trials=128, design=FEW, seed=seed) for seed in range(20)]
    assert [result.verdict for result in results] == 20 * [Verdict.NOT_REFUTED]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_too_little_noise_is_refuted(mode):
    """The noise is that of an ε four times as large as the accountant states."""
    from opacus.accountants.utils import get_noise_multiplier

    epsilon = opacus_target(Script(), some_records()).settings.claim(1e-5).epsilon
    noise = get_noise_multiplier(target_epsilon=4 * epsilon, target_delta=1e-5, sample_rate=0.5, steps=10, accountant="rdp")
    script = Script(noise=noise, stated_noise=4.0, mode=mode)
    for seed in range(3):
        result = audit_opacus(script, some_records(), delta=1e-5, trials=384, design=FEW, seed=seed)
        assert result.verdict is Verdict.REFUTED
        assert result.claim.epsilon == pytest.approx(epsilon)


@pytest.mark.slow
def test_missing_clipping_is_refuted_by_record_canaries_only():
    script = Script(clipping=False)
    for seed in range(3):
        result = audit_opacus(script, some_records(), delta=1e-5, trials=384, design=FEW, seed=seed, canaries=outliers())
        assert result.verdict is Verdict.REFUTED
    # A gradient canary is added to the sum of gradients, with the norm that clipping would have given it.
    result = audit_opacus(script, some_records(), delta=1e-5, trials=64, design=FEW)
    assert result.verdict is Verdict.NOT_REFUTED
