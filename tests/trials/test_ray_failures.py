"""Nodes and worker processes that die, and trials that hang, on a real cluster: nothing is lost, and no trial charged wrongly."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import ClassVar

import pytest

pytest.importorskip("ray", reason="Ray is missing: pip install 'lidp[ray]'")

from lidp import Target
from lidp.errors import AuditFailed
from lidp.store import Store
from lidp.trials import ray_executor
from lidp.trials.dispatcher import Dispatcher
from lidp.trials.ray_executor import Ray, _RayScheduler
from tests import sample_targets
from tests.sample_targets import Numbers, Trouble, closeness, leaky, run, same
from tests.trials.nodes import Located
from tests.waiting import wait_until

pytestmark = pytest.mark.cluster


def nodes_of(result):
    return {note.metadata["scores_node"] for note in result.notes}


# Nodes.


def test_a_node_that_is_killed_costs_no_trial(nodes, tmp_path):
    """Its trials run again, with the same streams, and none is charged."""
    (tmp_path / "started").mkdir()
    target = Target(Located(0.1, str(tmp_path / "started")), Numbers(), closeness, dataset=[0.5])
    killed = []

    def watch(progress):
        if progress.done >= 20 and not killed:
            killed.append(nodes.kill())

    options = {"trials": 60, "store": tmp_path / "a.db"}
    result = run(target, **options, executor=Ray(nodes.address), watch=watch)
    assert set(killed) < nodes_of(result)
    assert result.failed_runs == result.retried_trials == 0
    with Store.read(tmp_path / "a.db") as store:
        assert store.finished() == list(range(60))
    same(result, run(Target(leaky, Numbers(), closeness, dataset=[0.5], name=target.name), trials=60))


@dataclass(frozen=True)
class Doomed:
    """A leaky mechanism. As soon as the file ``armed`` exists, one run on one of the nodes stops and names its task in the file
    ``stopped``; runs elsewhere wait until the file ``struck`` exists.
    """  # noqa: D205

    node: str
    folder: str
    seconds: float
    draws_only_from_rng: ClassVar[bool] = True  # or the probe would wait

    def __call__(self, dataset, rng):
        import ray

        time.sleep(self.seconds)
        armed, stopped, struck = (Path(self.folder, name) for name in ("armed", "stopped", "struck"))
        context = ray.get_runtime_context()
        if context.get_node_id() == self.node and armed.exists() and not stopped.exists():
            (Path(self.folder) / "new").write_text(context.get_task_id())
            (Path(self.folder) / "new").rename(stopped)
            signal.pause()
        while armed.exists() and not struck.exists():
            time.sleep(0.05)
        return leaky(dataset, rng)


@dataclass
class Watched:
    """What the scheduler of a test has seen, for threads that wait for it."""

    started: set  # tasks whose start the driver has heard of
    died: list  # sizes of the batches whose worker process died
    meanwhile: list  # records that arrived while the node of a dead worker was still to be checked

    def install(self, monkeypatch, may_check):
        """Watch the scheduler; check nodes as soon as ``may_check()``, not after some seconds."""
        defer, receive = _RayScheduler._defer_until_node_checked, _RayScheduler._receive
        due = Dispatcher.due_node_checks

        def watched_defer(scheduler, stream):
            self.died.append(len(scheduler.batches[stream].pending))
            return defer(scheduler, stream)

        def watched_receive(scheduler, stream):
            batch = scheduler.batches[stream]
            records = receive(scheduler, stream)
            if batch.running_since is not None:
                self.started.add(stream.completed().task_id().hex())
            self.meanwhile.extend(records if scheduler.dispatcher.deferred else [])
            return records

        monkeypatch.setattr(_RayScheduler, "_defer_until_node_checked", watched_defer)
        monkeypatch.setattr(_RayScheduler, "_receive", watched_receive)
        monkeypatch.setattr(Dispatcher, "due_node_checks", lambda self, now: due(self, now=now) if may_check() else [])
        monkeypatch.setattr(ray_executor, "_NODE_CHECK_SECONDS", 0.0)
        return self


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    ("trials", "after", "seconds", "options"),
    [(6, 0, 0.0, {}), (80, 20, 0.1, {"time_limit": 300}), (300, 100, 0.02, {"retry": True})],
    ids=["in the end", "in the middle", "a batch"],
)
def test_a_node_whose_workers_die_first_costs_no_trial(nodes, tmp_path, monkeypatch, trials, after, seconds, options):
    """Ray reports that a worker process died; that it died with its node shows later. Other trials do not wait for that."""
    doomed, killed = nodes.workers[-1].node_id, Event()
    watched = Watched(set(), [], [])
    # In the end there may be no other trial that could return a record meanwhile.
    watched.install(monkeypatch, lambda: killed.is_set() and (watched.meanwhile or not after))

    def arm(done):
        if done >= after:
            (tmp_path / "armed").touch()

    def strike():
        stopped = tmp_path / "stopped"
        wait_until(stopped.exists, "a run on the doomed node has stopped")
        wait_until(lambda: stopped.read_text() in watched.started, "the driver knows on which node that run is")
        nodes.kill_workers()
        (tmp_path / "struck").touch()
        wait_until(lambda: watched.died, "the driver knows that the worker process is dead")
        assert nodes.kill() == doomed
        killed.set()

    arm(0)
    target = Target(Doomed(doomed, str(tmp_path), seconds), Numbers(), closeness, dataset=[0.5], name="x")
    executor = Ray(nodes.address, **options)
    with ThreadPoolExecutor(1) as pool:
        struck = pool.submit(strike)
        result = run(target, trials=trials, store=tmp_path / "a.db", executor=executor, watch=lambda p: arm(p.done))
        struck.result()
    assert result.failed_runs == result.retried_trials == 0
    assert {note.attempts for note in result.notes} == {1}
    with Store.read(tmp_path / "a.db") as store:
        assert store.finished() == list(range(trials))
    same(result, run(Target(leaky, Numbers(), closeness, dataset=[0.5], name="x"), trials=trials))
    assert max(watched.died) > 1 or trials < 300


def test_a_mechanism_that_brings_nodes_down_ends_the_audit(nodes, tmp_path, monkeypatch):
    heard = tmp_path / "heard"

    def bomb(dataset, rng):
        while not heard.exists():
            time.sleep(0.05)
        for process in (os.getppid(), os.getpid()):
            os.kill(process, signal.SIGKILL)

    def note_start(self, batch, *, now):
        usual(self, batch, now=now)
        heard.touch()

    bomb.draws_only_from_rng = True  # the probe would bring down the nodes that the trials need
    usual = Dispatcher.note_start
    monkeypatch.setattr(Dispatcher, "note_start", note_start)
    monkeypatch.setattr(ray_executor, "_MOST_NODE_LOSSES", 0)
    monkeypatch.setattr(ray_executor, "_NO_SLOT_SECONDS", 100.0)
    with pytest.raises(AuditFailed, match="lost its node 1 times"):
        run(Target(bomb, Numbers(), closeness), executor=Ray(nodes.address))


@pytest.mark.slow
def test_a_cluster_without_nodes_is_waited_for_only_so_long(ray, nodes, monkeypatch):
    def watch(progress):
        if progress.done >= 5 and len(nodes.workers) == 2:
            nodes.kill(), nodes.kill()

    monkeypatch.setattr(ray_executor, "_NO_SLOT_SECONDS", 1.0)
    monkeypatch.setattr(ray_executor, "_COUNT_SECONDS", 0.5)
    slow = Target(Located(), Numbers(), closeness)
    with pytest.raises(AuditFailed, match="no node that can run a trial"):
        run(slow, trials=500, executor=Ray(), watch=watch)


# Worker processes.


@pytest.mark.slow
def test_a_process_that_dies_costs_its_trial_only(ray):
    target = Target(Trouble("dies", 0.1), Numbers(), closeness, dataset=[0.5])
    result = run(target, executor=Ray(retry=True), trials=20)
    dead = [note for note in result.notes if note.failures]
    assert 1 <= len(dead) <= 10
    assert all(note.attempts == 2 for note in dead)
    assert all("worker process died" in note.failures["scores"] for note in dead)
    # The same trials get into trouble whatever the trouble is. (Not in processes that are forked: Ray has threads here.)
    same(result, run(Target(Trouble("raises", 0.1), Numbers(), closeness, dataset=[0.5]), trials=20))
    strict = run(target, executor=Ray(), trials=20)
    assert [note.index for note in strict.notes if note.failures] == [note.index for note in dead]
    assert all(note.attempts == 1 for note in strict.notes)


@pytest.mark.slow
def test_a_trial_that_died_is_not_late_as_well(ray, monkeypatch):
    """Its clock stands still while its node is to be checked, which takes longer here than the time limit."""
    target = Target(Trouble("dies", 0.1), Numbers(), closeness, dataset=[0.5])
    monkeypatch.setattr(ray_executor, "_NODE_CHECK_SECONDS", 12.0)
    result = run(target, trials=20, executor=Ray(time_limit=10))
    dead = [note for note in result.notes if note.failures]
    assert dead
    assert all("worker process died" in note.failures["scores"] for note in dead)
    assert all(note.seconds < 10 for note in dead)
    assert sorted(note.index for note in result.notes) == list(range(20))


@pytest.mark.slow
def test_a_second_try_has_the_same_coins_and_stream(ray, tmp_path):
    fragile = Target(sample_targets.DiesOnce(str(tmp_path)), Numbers(), closeness, dataset=[0.5], name="x")
    result = run(fragile, executor=Ray(retry=True), trials=20)
    assert result.failed_runs == 0
    same(result, run(fragile, trials=20))


@pytest.mark.slow
def test_a_trial_that_hangs_is_given_up(ray):
    """The clock starts with the trial, not while it waits for a worker process to start."""
    target = Target(Trouble("hangs", 0.1), Numbers(), closeness, dataset=[0.5])
    result = run(target, trials=20, executor=Ray(time_limit=10))
    late = [note for note in result.notes if note.failures]
    assert all("time limit of 10 s" in note.failures["scores"] for note in late)
    # The same trials get into trouble whatever the trouble is.
    expected = run(Target(Trouble("raises", 0.1), Numbers(), closeness, dataset=[0.5]), trials=20)
    assert [note.index for note in late] == [note.index for note in expected.notes if note.failures] != []
    same(result, expected)
