"""Audits on a real cluster of several nodes: the same result as in this process, and clear words for what cannot run there."""

import asyncio
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

pytest.importorskip("ray", reason="Ray is missing: pip install 'lidp[ray]'")

import lidp
from lidp import Claim, CoinFlip, Target
from lidp.errors import AuditFailed, InvalidArgument
from lidp.trials import ray_executor
from lidp.trials.ray_executor import Ray, _RayScheduler
from lidp.trials.trial import TrialSetup
from tests import sample_targets
from tests.pages import ROOT
from tests.pairs.test_pair_stores import Texts
from tests.sample_targets import DESIGNS, Many, Numbers, claim_for, closeness, leaky, run, same
from tests.trials.nodes import LONGEST_TEST_SECONDS, Located

pytestmark = pytest.mark.cluster


def test_result_is_that_of_one_process_bit_for_bit(ray):
    for design in DESIGNS:
        options = {"claim": claim_for(design), "design": design, "trials": 60}
        same(run(**options, executor=Ray()), run(**options))


def test_audit_of_a_pair_is_that_of_one_process_bit_for_bit(ray, tmp_path):
    options = {"claim": Claim(1.0), "runs": 4000, "stop_when": "never"}
    expected = lidp.audit_pair(Texts(0.3), 0, 1, **options)

    def interrupt(progress):
        if progress.done > 100:
            raise KeyboardInterrupt

    store = tmp_path / "a.db"
    with pytest.raises(lidp.AuditInterrupted):
        lidp.audit_pair(Texts(0.3), 0, 1, **options, executor=Ray(), store=store, watch=interrupt)
    resumed = lidp.audit_pair(Texts(0.3), 0, 1, **options, executor=Ray(), store=store)
    assert resumed.witness() == expected.witness()
    assert resumed.leak == expected.leak


def test_trials_have_writable_arrays_global_generators_and_one_thread(ray):
    class Writes(Many):
        def __init__(self):
            super().__init__()
            self.memory = np.zeros(100_000)

        def __call__(self, dataset, rng):
            self.memory[:] = rng.standard_normal(100_000)
            noise = np.random.random()  # noqa: NPY002  # what careless mechanisms do
            matrix = rng.standard_normal((200, 200))
            return [*leaky(dataset, rng), noise, float((matrix @ matrix).sum()), float(self.memory.sum())]

        run_many = None

    target = Target(Writes(), Numbers(), closeness, dataset=[0.5])
    same(run(target, executor=Ray()), run(target))


@pytest.mark.slow
def test_trials_that_run_many_at_a_time_are_the_same(ray):
    batched = Target(Many(), Numbers(), closeness, dataset=[0.5, -0.5], name="leaky")
    same(run(batched, trials=300, executor=Ray()), run(trials=300))
    same(run(batched, trials=300, executor=Ray(retry=True)), run(trials=300))


def test_no_more_tasks_are_submitted_than_keep_the_nodes_busy(ray, monkeypatch):
    """Two nodes of one slot each; further trials stay with the driver."""
    counts, submit = [], _RayScheduler._submit_batches

    def counted(self):
        submit(self)
        counts.append(len(self.batches))

    monkeypatch.setattr(_RayScheduler, "_submit_batches", counted)
    run(Target(Located(0.0), Numbers(), closeness), trials=60, executor=Ray())
    assert max(counts) == ray_executor._TASKS_PER_SLOT * 2


def test_tasks_that_ray_has_forgotten_are_submitted_again(ray, monkeypatch):
    """As if its queue were stuck: they wait for a resource that no node has, though nodes are idle."""
    monkeypatch.setattr(ray_executor, "_STALL_SECONDS", 1.0)
    usual, made = _RayScheduler._make_remote, []
    stuck = ray.remote(ray_executor.run_batch).options(num_returns="streaming", resources={"nowhere": 1.0})

    def make_remote(self):
        made.append(usual(self) if made else stuck)
        return made[-1]

    monkeypatch.setattr(_RayScheduler, "_make_remote", make_remote)
    same(run(executor=Ray(), trials=20), run(trials=20))
    assert len(made) >= 2  # more often if the nodes take long to start


@pytest.mark.slow_after_first
@pytest.mark.parametrize("kind", [KeyboardInterrupt, GeneratorExit, asyncio.CancelledError, SystemExit])
def test_whatever_a_mechanism_raises_is_a_failed_run(ray, kind):
    def raising(kind):
        def mechanism(dataset, rng):
            if rng.random() < 0.3:
                raise kind
            return leaky(dataset, rng)

        return Target(mechanism, Numbers(), closeness, name="raising")

    result = run(raising(kind), executor=Ray(), trials=10)
    same(result, run(raising(ValueError), trials=10))
    assert result.failed_runs > 0
    assert all(kind.__name__ in note.failures["scores"] for note in result.notes if note.failures)


def test_a_forked_child_does_not_go_on_with_the_trials(ray):
    def forks(dataset, rng):
        output = leaky(dataset, rng)
        child = os.fork()
        if child:
            os.waitpid(child, 0)
        return output

    plain = Target(leaky, Numbers(), closeness, name="x")
    same(run(Target(forks, Numbers(), closeness, name="x"), executor=Ray(), trials=10), run(plain, trials=10))


class OwnGenerator:
    """Noise from a generator that is pickled with the mechanism."""

    def __init__(self):
        self.own = np.random.default_rng()

    def __call__(self, dataset, rng):
        return [self.own.standard_normal()]


def from_the_system(dataset, rng):
    return [np.random.default_rng().standard_normal()]


@pytest.mark.slow
def test_own_randomness_that_every_process_replays_is_refused(ray):
    with pytest.raises(InvalidArgument, match="same ones in every worker process"):
        run(Target(OwnGenerator(), Numbers(), closeness), executor=Ray(), trials=4)
    assert run(Target(from_the_system, Numbers(), closeness), executor=Ray(), trials=4).bound.trials == 4


def test_an_executor_that_waits_returns_control(ray, tmp_path):
    gate = tmp_path / "gate"

    def waits(dataset, rng):
        while not gate.exists():
            time.sleep(0.01)
        return leaky(dataset, rng)

    results = Ray().run(TrialSetup(Target(waits, Numbers(), closeness), CoinFlip(2), 0), [0])
    assert next(results) == []
    gate.touch()
    assert [record.index for records in results for record in records] == [0]


def test_canaries_that_cannot_be_drawn_end_the_audit(ray):
    class Shy:
        def draw(self, rng, size):
            if size != 2:
                raise RuntimeError("too many")
            return rng.standard_normal(size)

    with pytest.raises(AuditFailed, match="drawing .* canaries.* failed: RuntimeError: too many"):
        run(Target(leaky, Shy(), closeness), executor=Ray())


def test_a_target_that_nodes_cannot_load_is_named(ray, monkeypatch):
    class Homebody:
        def __init__(self):
            self.pid = os.getpid()

        def __call__(self, dataset, rng):
            return []

        def __setstate__(self, state):
            raise ImportError("only at home")

    with pytest.raises(AuditFailed, match="cannot run trials: ImportError: only at home; every node needs"):
        run(Target(Homebody(), Numbers(), closeness), executor=Ray())
    lock = threading.Lock()
    with pytest.raises(InvalidArgument, match="cannot be sent to other machines .*lock"):
        run(Target(lambda dataset, rng: lock, Numbers(), closeness), executor=Ray())
    monkeypatch.setattr(lidp, "__version__", "9.9")
    with pytest.raises(AuditFailed, match=r"a node has lidp 0\..* instead of 9\.9"):
        run(executor=Ray())


def test_trials_that_no_node_can_ever_run_are_refused(ray):
    with pytest.raises(
        InvalidArgument, match="no node has cpus_per_trial=1 and gpus_per_trial=1: the largest has 1 CPUs and 0"
    ):
        run(executor=Ray(gpus_per_trial=1))
    with pytest.raises(InvalidArgument, match="cpus_per_trial=2"):
        run(executor=Ray(cpus_per_trial=2))


OWN_RAY = """
import ray
from lidp.trials.ray_executor import Ray
from tests.sample_targets import run, same

def watch(progress):
    if ray.is_initialized():
        addresses.update(node["NodeManagerAddress"] for node in ray.nodes())

addresses = set()
same(run(executor=Ray(), watch=watch), run())
assert addresses == {"127.0.0.1"}, addresses
assert not ray.is_initialized()
"""


@pytest.mark.slow
def test_without_an_address_ray_is_started_on_the_loopback_interface_and_stopped():
    """In a process of its own: Ray runs no tasks of a process that has started a cluster, stopped it and connected to another."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-c", OWN_RAY]
    ended = subprocess.run(
        words, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True, timeout=LONGEST_TEST_SECONDS
    )
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cpus_per_trial": 0}, "cpus_per_trial must be above 0"),
        ({"gpus_per_trial": -1}, "gpus_per_trial must be at least 0"),
        ({"cpus_per_trial": 1.5}, "cpus_per_trial must be a whole number, or a part of one, got 1.5"),
        ({"time_limit": 0}, "time_limit must be above 0"),
        ({"address": "ray://a:1"}, "run lidp on a node of the cluster"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(InvalidArgument, match=message):
        Ray(**options)


def test_without_ray_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InvalidArgument, match=r"pip install 'lidp\[ray\]'"):
        lidp.audit(sample_targets.LEAKY, claim=Claim(1.0), design=CoinFlip(2), trials=4, executor=Ray())
