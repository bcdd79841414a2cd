"""Numbers of records that are private: Opacus divides gradients by a batch size that follows from them."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")
pytest.importorskip("opacus", reason="needs the extra torch")

from opacus import PrivacyEngine  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from lidp import AuditFailed, Claim, CoinFlip, InvalidArgument, Verdict  # noqa: E402
from lidp.integrations.opacus import GrownPool, StatedLength, audit_opacus, opacus_target  # noqa: E402
from tests.integrations.opacus_training import Script, outliers, some_records  # noqa: E402

pytestmark = [
    # Opacus emits warnings of its own, and all scripts have secure_mode off.
    pytest.mark.filterwarnings("default"),
    pytest.mark.filterwarnings("ignore:secure_mode off"),
    pytest.mark.filterwarnings("ignore:Secure RNG turned off"),
    pytest.mark.filterwarnings("ignore:Full backward hook is firing"),
]
COUNT = 50


def equal_records(count, label):
    """Return records with one large feature, whose clipped gradients all point in the same direction."""
    return TensorDataset(torch.full((count, 1), 50.0), torch.full((count,), label))


class FullBatches:
    """A function ``train(records, planting)`` with full batches; with a ``divisor``, gradients are divided by this number.

    Together, the records move the model by one clipping norm per step, however many there are. A canary has the opposite gradient.
    It moves the sum of gradients by one clipping norm, and the divisor moves the mean by as much again.
    """

    def __init__(self, divisor=None, batch=2 * COUNT):
        self.divisor, self.batch = divisor, batch

    def __call__(self, records, planting):
        model = torch.nn.Linear(1, 2, bias=False)
        torch.nn.init.zeros_(model.weight)
        engine = PrivacyEngine(accountant="rdp")
        model, optimizer, loader = engine.make_private(
            module=model, optimizer=torch.optim.SGD(model.parameters(), lr=1e-3),
            data_loader=DataLoader(records, batch_size=self.batch), noise_multiplier=2.0, max_grad_norm=1.0,
        )  # fmt: skip
        if self.divisor is not None:
            optimizer.expected_batch_size = self.divisor
        planting.attach(engine, optimizer, loader)
        for _ in range(10):
            for x, y in loader:
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(x), y).backward()
                optimizer.step()
        return model


def audit(script, trials=200, **options):
    return audit_opacus(
        script,
        equal_records(COUNT, 0),
        delta=1e-5,
        canaries=equal_records(1, 1),
        trials=trials,
        design=CoinFlip(1),
        **options,
    )


def test_a_divisor_that_follows_a_private_number_of_records_is_found():
    result = audit(FullBatches(), stated_length="actual")
    assert result.verdict is Verdict.REFUTED
    assert result.facts["stated length"].startswith("actual")


@pytest.mark.parametrize(
    ("script", "stated_length"),
    [(FullBatches(divisor=COUNT), "actual"), (FullBatches(), "fixed")],
    ids=["divisor", "length"],
)
def test_fixed_divisors_and_public_numbers_of_records_stand(script, stated_length):
    assert audit(script, stated_length=stated_length).verdict is Verdict.NOT_REFUTED


def test_stated_lengths():
    for stated, length in ((StatedLength.FIXED, 200), (StatedLength.ACTUAL, 203)):
        data = GrownPool(some_records(), outliers(), stated).with_canaries([1, 2, 3])
        assert (len(data), data.count(data)) == (length, 203)


def test_sampling_rates_that_follow_the_number_of_records_need_a_claim():
    """One canary more than a multiple of the batch size adds a batch per epoch, and so changes what the accountant states."""
    script = FullBatches(batch=COUNT)
    with pytest.raises(AuditFailed, match="one run had steps .*Pass a claim that covers all of them"):
        audit(script, trials=8, stated_length="actual")
    options = {"claim": Claim(20.0, 1e-5), "canaries": equal_records(1, 1), "trials": 4, "design": CoinFlip(1)}
    assert audit_opacus(script, equal_records(COUNT, 0), stated_length="actual", **options).failed_runs == 0


def test_gradient_canaries_have_no_length():
    with pytest.raises(InvalidArgument, match="stated_length='actual' is for canaries that are records"):
        opacus_target(Script(), some_records(), stated_length="actual")
    with pytest.raises(InvalidArgument, match="stated_length"):
        opacus_target(Script(), some_records(), canaries=outliers(), stated_length="true")
    assert np.isfinite(opacus_target(Script(), some_records(), canaries=outliers()).settings.sample_rate)
