"""Trouble of the auditor's own ends an audit; what dies, exits or was changed does not speak for it."""

import os
import signal
import sys
from dataclasses import dataclass
from functools import partial

import pytest

import lidp
from lidp import Claim, CoinFlip, Prepared, Target
from lidp.errors import AuditFailed, InvalidArgument, StoreError
from lidp.target_spec.fingerprint import fingerprint
from lidp.trials.executors import Processes
from lidp.trials.ray_executor import Ray
from tests.sample_targets import Numbers, closeness, leaky, run


def edited(factor):
    """The same function but for a constant."""
    names: dict = {}
    exec(f"def mechanism(dataset, rng):\n    '''Noise {factor}.'''\n    return {factor} * rng.standard_normal()", names)  # noqa: S102
    return names["mechanism"]


def test_a_mechanism_that_was_changed_is_another_one():
    def target(mechanism):
        return Target(mechanism, Numbers(), closeness)

    def with_default(dataset, rng, noise=1.0):
        return noise

    def with_another(dataset, rng, noise=2.0):
        return noise

    with_another.__qualname__ = with_default.__qualname__

    def closure(scale):
        return lambda dataset, rng: scale * rng.random()

    assert fingerprint(target(edited(0.1))) == fingerprint(target(edited(0.1)))
    assert fingerprint(target(edited(0.1))) != fingerprint(target(edited(100.0)))
    assert fingerprint(target(with_default)) != fingerprint(target(with_another))
    assert fingerprint(target(closure(1.0))) != fingerprint(target(closure(2.0)))
    assert fingerprint(target(partial(with_default, noise=3))) != fingerprint(target(partial(with_default, noise=4)))


@dataclass(frozen=True)
class Unplantable:
    """A data set that cannot take more than one canary."""

    def __len__(self):
        return 1

    def with_canaries(self, canaries):
        if len(canaries) > 1:
            raise ValueError("no room")
        return []


@pytest.mark.parametrize("workers", [1, 2])
def test_canaries_that_cannot_be_planted_end_the_audit(workers):
    """Were it a failed run, only runs with few canaries in would be left to bet on."""
    target = Target(leaky, Numbers(), closeness, dataset=Unplantable())
    with pytest.raises(AuditFailed, match="planting 4 canaries failed: ValueError: no room"):
        run(target, design=CoinFlip(4), workers=workers)


@pytest.mark.parametrize("workers", [1, 2])
def test_trouble_of_the_auditor_within_a_trial_ends_the_audit(workers):
    def troubled(dataset, rng):
        raise AuditFailed("planted nothing")

    with pytest.raises(AuditFailed, match="planted nothing"):
        run(Target(troubled, Numbers(), closeness), workers=workers)


def test_a_score_that_works_for_no_canary_is_no_sign_of_privacy():
    def blind(output, canary):
        raise ValueError("which end is up")

    with pytest.raises(AuditFailed, match="no canary could be scored, the first because: ValueError: which end is up"):
        run(Target(leaky, Numbers(), blind), trials=4)


def test_with_workers_the_preparation_has_a_process_of_its_own():
    here = os.getpid()

    def prepare(dataset, rng):
        return Prepared({"other": [float(os.getpid() != here)], "draw": [rng.random()]}, models=3)

    def tell(output, canary, prepared):
        return float(prepared["other"][0])

    found = [run(Target(leaky, Numbers(), tell, prepare=prepare), workers=workers, trials=2) for workers in (1, 2)]
    assert [float(result.scores.flips()[0].max()) for result in found] == [0.0, 1.0]
    assert found[1].preparation_models == 3

    def dies(dataset, rng):
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(AuditFailed, match="the process of the preparation died \\(SIGKILL\\)"):
        run(Target(leaky, Numbers(), closeness, prepare=dies), workers=2)


def test_a_store_without_a_trial_is_begun_anew(tmp_path):
    """An audit that fails before its first trial must not block the one that is right."""
    store = tmp_path / "a.db"

    def broken(dataset, rng):
        raise ValueError("a typo")

    with pytest.raises(AuditFailed, match="a typo"):
        run(Target(leaky, Numbers(), closeness, prepare=broken), store=store)
    assert run(Target(leaky, Numbers(), closeness), store=store, trials=5).bound.trials == 5
    with pytest.raises(StoreError, match="seed was 3, is 2"):
        run(Target(leaky, Numbers(), closeness), store=store, trials=5, seed=2)
    with pytest.raises(StoreError, match="is not what it was when"):
        run(Target(leaky, Numbers(), lambda output, canary: 0.0, name="leaky"), store=store, trials=5)


def test_a_distribution_that_gives_too_few_canaries_is_named():
    class Few:
        def draw(self, rng, size):
            return list(range(min(size, 5)))

    with pytest.raises(AuditFailed, match="draw\\(rng, 6\\) gave 5 canaries"):
        run(Target(leaky, Few(), closeness))


def test_large_claims_can_be_refuted_too():
    result = run(claim=Claim(12.0), trials=3)
    assert result.method.largest == 24
    assert run(claim=Claim(12.0), trials=3, method="coin-wager").method.largest == 24
    with pytest.raises(InvalidArgument, match="gives bounds up to ε = 10 only"):
        run(claim=Claim(12.0), trials=3, method=lidp.CoinWager())


def test_dying_and_trying_again_with_other_randomness_is_not_the_default():
    """A mechanism with randomness of its own that dies for one of three answers: run again, it would answer otherwise."""
    assert Processes(2).retry is False
    assert Ray().retry is False


def test_a_worker_that_dies_while_its_own_child_lives_is_noticed(tmp_path):
    """The children outlive the audits: what waited for one of them would never end."""

    def forks_and_dies(dataset, rng):
        child = os.fork()
        if not child:
            signal.pause()  # holds a copy of the worker's pipe, until the test ends it
            os._exit(0)
        (tmp_path / str(child)).touch()
        os.kill(os.getpid(), signal.SIGKILL)

    try:
        with pytest.raises(AuditFailed, match="all 2 trials failed, the first with: the worker process died"):
            run(Target(forks_and_dies, Numbers(), closeness), workers=2, trials=2)
        with pytest.raises(AuditFailed, match=r"the process of the preparation died \(SIGKILL\)"):
            run(Target(leaky, Numbers(), closeness, prepare=forks_and_dies), workers=2, trials=2)
    finally:
        children = [int(path.name) for path in tmp_path.iterdir()]
        for child in children:
            os.kill(child, signal.SIGKILL)  # fails if it has ended already
    assert len(children) >= 3  # two trials, the preparation, and runs of the probe


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("where", ["prepare", "draw"])
def test_a_target_that_exits_does_not_speak_for_the_audit(where, workers):
    class Leaving(Numbers):
        def draw(self, rng, size):
            sys.exit(1)

    def prepare(dataset, rng):
        sys.exit(0)

    target = (
        Target(leaky, Numbers(), closeness, prepare=prepare) if where == "prepare" else Target(leaky, Leaving(), closeness)
    )
    with pytest.raises(AuditFailed, match="SystemExit"):
        run(target, workers=workers)
