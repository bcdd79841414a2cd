"""Audits on a real cluster of several nodes: the same result as in this process, and nothing lost in trouble."""

import asyncio
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

pytest.importorskip("ray", reason="Ray is missing: pip install 'lidp[ray]'")

import lidp
from lidp import Claim, CoinFlip, Output, Target
from lidp.cli.app import run as run_command
from lidp.errors import AuditFailed, InvalidArgument
from lidp.result import AuditInterrupted
from lidp.store import Store
from lidp.trials import ray_executor
from lidp.trials.ray_cluster import Cluster, connected
from lidp.trials.ray_executor import Ray
from lidp.trials.trial import TrialSetup
from tests import engine
from tests.engine import DESIGNS, Many, Numbers, Trouble, claim_for, closeness, leaky, run, same

pytestmark = pytest.mark.cluster
ROOT = Path(__file__).parent.parent
LONG = 200  # seconds: for what takes a few of them, on a machine that is busy with other things
SMALL = {"node_ip_address": "127.0.0.1", "include_dashboard": False, "object_store_memory": 80_000_000}


class Nodes:
    """A head that runs no trials, and two nodes of one processor that do."""

    def __init__(self):
        from ray import cluster_utils

        # A node that does not answer is given up after a second and a half, not after a quarter of a minute.
        hasty = {"health_check_period_ms": 500, "health_check_timeout_ms": 500, "health_check_failure_threshold": 3}
        # A folder of its own: elsewhere Ray notes the newest cluster of the machine, which may be somebody's; and on a machine
        # that never ran Ray there is no such place.
        self.folder = tempfile.mkdtemp(prefix="lidp")
        head = {"num_cpus": 0, "_system_config": hasty, "temp_dir": f"{self.folder}/ray", **SMALL}
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("RAY_TMPDIR", self.folder)
            self.cluster = cluster_utils.Cluster(initialize_head=True, head_node_args=head)
        self.address = self.cluster.address
        self.workers = []
        self.all = [self.cluster.head_node]
        self.fill()

    def fill(self):
        self.workers = [node for node in self.workers if not node.dead_processes()]
        while len(self.workers) < 2:
            self.workers.append(self.cluster.add_node(num_cpus=1, **SMALL))
            self.all.append(self.workers[-1])

    def kill(self):
        """SIGKILL all of a node at once, as if its machine were gone; returns its name."""
        node = self.workers.pop()
        self.strike(node)
        self.cluster.remove_node(node, allow_graceful=False)
        return node.node_id

    def kill_workers(self):
        """SIGKILL the worker processes of the node that is killed next. Its agents live: without them it would end by itself."""
        self.strike(self.workers[-1], r"ray::(?!.*Agent)")

    @staticmethod
    def strike(node, names=""):
        import psutil

        raylet = psutil.Process(node.all_processes["raylet"][0].process.pid)
        for process in (raylet, *raylet.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):  # it went by itself
                if re.match(names, process.name()):
                    process.kill()

    def stop(self):
        self.cluster.shutdown()
        shutil.rmtree(self.folder, ignore_errors=True)
        assert not [process for node in self.all for process in node.live_processes()]


@pytest.fixture(autouse=True)
def ended_if_stuck(request):
    """A test that hangs is told where and ends the run, by an interrupt: that gets through Ray, and the cluster is stopped."""

    def end(_number, frame):
        with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            sys.stderr.write(f"\n{request.node.nodeid} took longer than {2 * LONG} s:\n")
            traceback.print_stack(frame)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(2 * LONG)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def started():
    nodes = Nodes()
    yield nodes
    nodes.stop()


@pytest.fixture
def nodes(started):
    started.fill()
    return started


@pytest.fixture
def ray(nodes):
    """Connected for the whole test, as a user may be."""
    with connected(nodes.address) as found:
        yield found
        assert found.is_initialized()


@dataclass(frozen=True)
class Somewhere:
    """A leaky mechanism that takes a while and says where it ran; with a folder it begins when two nodes have begun."""

    seconds: float = 0.1
    folder: str | None = None
    draws_only_from_rng: ClassVar[bool] = True  # or the probe would wait

    def __call__(self, dataset, rng):
        import ray

        node = ray.get_runtime_context().get_node_id() if ray.is_initialized() else "here"
        if self.folder is not None:
            Path(self.folder, node).touch()
            while len(list(Path(self.folder).iterdir())) < 2:
                time.sleep(0.05)
        time.sleep(self.seconds)
        return Output(leaky(dataset, rng), {"node": node})


def places(result):
    return {note.metadata["scores_node"] for note in result.notes}


def test_the_same_as_in_this_process_bit_for_bit(ray):
    for design in DESIGNS:
        options = {"claim": claim_for(design), "design": design, "trials": 60}
        same(run(**options, executor=Ray()), run(**options))


def test_what_a_trial_may_count_on(ray):
    """Many at a time, arrays it may write to, global generators, one thread for linear algebra."""
    import numpy as np

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
    batched = Target(Many(), Numbers(), closeness, dataset=[0.5, -0.5], name="leaky")
    same(run(batched, trials=300, executor=Ray()), run(trials=300))


def test_a_node_killed_in_mid_audit(nodes, tmp_path):
    """What was running there is run again, with the same stream, and charged to nobody."""
    (tmp_path / "begun").mkdir()
    target = Target(Somewhere(0.1, str(tmp_path / "begun")), Numbers(), closeness, dataset=[0.5])
    killed = []

    def watch(progress):
        if progress.done >= 20 and not killed:
            killed.append(nodes.kill())

    options = {"trials": 60, "store": tmp_path / "a.db"}
    result = run(target, **options, executor=Ray(nodes.address), watch=watch)
    assert set(killed) < places(result)
    assert result.failed_runs == result.retried_trials == 0
    with Store.read(tmp_path / "a.db") as store:
        assert store.finished() == list(range(60))
    same(result, run(Target(leaky, Numbers(), closeness, dataset=[0.5], name=target.name), trials=60))


@dataclass(frozen=True)
class Doomed:
    """A leaky mechanism that stops on one of the nodes, once, when it is told to; elsewhere it waits until that one is struck."""

    node: str
    folder: str
    seconds: float
    draws_only_from_rng: ClassVar[bool] = True  # or the probe would wait

    def __call__(self, dataset, rng):
        import ray

        time.sleep(self.seconds)
        told, stopped, struck = (Path(self.folder, name) for name in ("told", "stopped", "struck"))
        if ray.get_runtime_context().get_node_id() == self.node and told.exists() and not stopped.exists():
            stopped.touch()
            time.sleep(300)
        while told.exists() and not struck.exists():
            time.sleep(0.05)
        return leaky(dataset, rng)


@pytest.mark.parametrize(
    ("trials", "after", "seconds", "options"),
    [(6, 0, 0.0, {}), (80, 20, 0.1, {"time_limit": 120}), (300, 100, 0.02, {"retry": True})],
    ids=["in the end", "in the middle", "a batch"],
)
def test_a_node_whose_workers_die_first(nodes, tmp_path, monkeypatch, trials, after, seconds, options):
    """Ray says that a worker process died: by no fault of its trial, as shows a second later. Others do not wait for that."""
    doomed, died, meanwhile = nodes.workers[-1].node_id, [], []
    flight = ray_executor._Flight
    set_aside, receive = flight._set_aside, flight._receive

    def watched_aside(self, stream):
        died.append(len(self.tasks[stream].pending))
        return set_aside(self, stream)

    def watched_receive(self, stream):
        found = receive(self, stream)
        meanwhile.extend(found if self.aside else [])
        return found

    monkeypatch.setattr(flight, "_set_aside", watched_aside)
    monkeypatch.setattr(flight, "_receive", watched_receive)

    def tell(done):
        if done >= after:
            (tmp_path / "told").touch()

    def strike():
        end = time.monotonic() + LONG
        while not (tmp_path / "stopped").exists() and time.monotonic() < end:
            time.sleep(0.1)
        time.sleep(2.0)  # the driver has heard where it runs
        nodes.kill_workers()
        (tmp_path / "struck").touch()
        time.sleep(1.0)
        assert nodes.kill() == doomed

    tell(0)
    target = Target(Doomed(doomed, str(tmp_path), seconds), Numbers(), closeness, dataset=[0.5], name="x")
    options = {"executor": Ray(nodes.address, **options), "watch": lambda progress: tell(progress.done)}
    with ThreadPoolExecutor(1) as pool:
        struck = pool.submit(strike)
        result = run(target, trials=trials, store=tmp_path / "a.db", **options)
        struck.result()
    assert result.failed_runs == result.retried_trials == 0
    assert {note.attempts for note in result.notes} == {1}
    with Store.read(tmp_path / "a.db") as store:
        assert store.finished() == list(range(trials))
    same(result, run(Target(leaky, Numbers(), closeness, dataset=[0.5], name="x"), trials=trials))
    assert meanwhile or not after  # in the end there may be nothing else to hear of
    assert (max(died) > 1) == options["executor"].retry


TARGET = """
import time
import helper
from lidp import Target
from dataclasses import dataclass

@dataclass(frozen=True)
class Normal:
    def draw(self, rng, size):
        return rng.standard_normal(size)

def slow(dataset, rng):
    time.sleep(0.05)
    return helper.noisy(dataset, rng)

def closeness(output, canary):
    return -min((abs(canary - value) for value in output), default=10.0)

target = Target(slow, Normal(), closeness, dataset=[0.5])
"""
HELPER = """
SCALE = 0.01

def noisy(dataset, rng):
    return [value + SCALE * rng.standard_normal() for value in dataset]
"""


@pytest.fixture
def file(tmp_path):
    """A target in a file, with a neighbour that it imports: nodes know of neither."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "target.py").write_text(TARGET)
    (folder / "helper.py").write_text(HELPER)
    return f"{folder / 'target.py'}:target"


def command(file, store, address, trials):
    return [
        "audit", file, "--epsilon", "9", "--canaries", "4", "--trials", str(trials), "--stop-when", "never", "--store", str(store),
        "--quiet", "--executor", "ray", "--ray-address", address, "--cpus-per-trial", "1",
    ]  # fmt: skip


# Shells start background jobs with interrupts ignored, and that is inherited. It is not set right by a function between fork and
# exec: in this process there are threads of Ray's, whose locks nobody would unlock.
DRIVER = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from lidp.cli import main; main()"


def start(arguments, folder):
    words = [sys.executable, "-c", DRIVER, *arguments]
    return subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def test_the_driver_killed_and_resumed(nodes, file, tmp_path):
    """SIGKILL, a node killed besides, and on with the same cluster: every trial once, the result that of one process."""
    store = tmp_path / "a.db"
    driver = start(command(file, store, nodes.address, 300), tmp_path)
    engine.wait_for_more(store, 20)
    driver.kill()
    driver.communicate(timeout=LONG)
    nodes.kill()
    before = engine.finished(store)
    assert 20 < before < 300
    resume = ["resume", str(store), "--quiet", "--executor", "ray", "--ray-address", nodes.address]
    again = start(resume, tmp_path)
    complaint = again.communicate(timeout=LONG)[1]
    assert again.returncode == 0, complaint
    with Store.read(store) as opened:
        assert opened.finished() == list(range(300))
    serial = tmp_path / "b.db"
    plain = command(file, serial, "", 300)[:-6]
    assert run_command(plain) == 0
    same(lidp.result_of(store), lidp.result_of(serial))


def test_an_interrupt_keeps_what_is_done_and_says_how_to_go_on(nodes, file, tmp_path):
    for how, name in ((signal.SIGINT, "a.db"), (signal.SIGTERM, "b.db")):
        store = tmp_path / name
        driver = start(command(file, store, nodes.address, 2000), tmp_path)
        engine.wait_for_more(store, 5)
        os.kill(driver.pid, how)
        complaint = driver.communicate(timeout=LONG)[1]
        assert driver.returncode == 130, complaint
        assert f"lidp resume {store} --executor ray --ray-address {nodes.address} --cpus-per-trial 1\n" in complaint
        assert "Traceback" not in complaint
        assert 5 < engine.finished(store) < 2000


def test_closing_cancels_what_runs(ray, nodes, tmp_path):
    def interrupt(progress):
        if progress.done >= 5:
            raise KeyboardInterrupt

    slow = Target(Somewhere(), Numbers(), closeness, dataset=[0.5])
    with pytest.raises(AuditInterrupted) as caught:
        run(slow, trials=500, store=tmp_path / "a.db", watch=interrupt, executor=Ray())
    assert caught.value.result is not None
    end = time.monotonic() + LONG
    while ray.available_resources().get("CPU", 0) < 2 and time.monotonic() < end:
        time.sleep(0.1)
    assert ray.available_resources()["CPU"] == 2


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


def test_a_trial_that_died_is_not_late_as_well(ray, monkeypatch):
    """While it is seen whether its node lives, its clock stands still."""
    target = Target(Trouble("dies", 0.1), Numbers(), closeness, dataset=[0.5])
    monkeypatch.setattr(ray_executor, "_ASIDE_SECONDS", 12.0)
    result = run(target, trials=20, executor=Ray(time_limit=10))
    dead = [note for note in result.notes if note.failures]
    assert dead
    assert all("worker process died" in note.failures["scores"] for note in dead)
    assert all(note.seconds < 10 for note in dead)
    assert sorted(note.index for note in result.notes) == list(range(20))


def test_no_more_is_handed_out_than_keeps_the_nodes_busy(ray, monkeypatch):
    """Two nodes of one slot each; what is further ahead stays with the driver."""
    most, give = [], ray_executor._Flight._give

    def counted(self):
        give(self)
        most.append(len(self.tasks))

    monkeypatch.setattr(ray_executor._Flight, "_give", counted)
    run(Target(Somewhere(0.0), Numbers(), closeness), trials=60, executor=Ray())
    assert max(most) == ray_executor._AHEAD * 2


def test_tasks_that_ray_has_forgotten_are_handed_out_anew(ray, monkeypatch):
    """As if its queue were stuck: they wait for something that no node has, though nodes are idle."""
    monkeypatch.setattr(ray_executor, "_SILENT_SECONDS", 1.0)
    usual, made = ray_executor._Flight._remote, []
    stuck = ray.remote(ray_executor.work).options(num_returns="streaming", resources={"nowhere": 1.0})

    def remote(self):
        made.append(usual(self) if made else stuck)
        return made[-1]

    monkeypatch.setattr(ray_executor._Flight, "_remote", remote)
    same(run(executor=Ray(), trials=20), run(trials=20))
    assert len(made) >= 2  # more often if the nodes take long to begin


def test_a_second_try_has_the_same_coins_and_stream(ray, tmp_path):
    fragile = Target(engine.DiesOnce(str(tmp_path)), Numbers(), closeness, dataset=[0.5], name="x")
    result = run(fragile, executor=Ray(retry=True), trials=20)
    assert result.failed_runs == 0
    same(result, run(fragile, trials=20))


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


def test_canaries_that_cannot_be_drawn_end_the_audit(ray):
    class Shy:
        def draw(self, rng, size):
            if size != 2:
                raise RuntimeError("too many")
            return rng.standard_normal(size)

    with pytest.raises(AuditFailed, match="drawing .* canaries.* failed: RuntimeError: too many"):
        run(Target(leaky, Shy(), closeness), executor=Ray())


def test_what_cannot_be_loaded_elsewhere_is_named(ray, monkeypatch):
    class Homebody:
        def __init__(self):
            self.pid = os.getpid()

        def __call__(self, dataset, rng):
            return []

        def __setstate__(self, state):
            raise ImportError("only at home")

    with pytest.raises(AuditFailed, match="cannot run trials: ImportError: only at home; every node needs"):
        run(Target(Homebody(), Numbers(), closeness), executor=Ray())
    lock = __import__("threading").Lock()
    with pytest.raises(InvalidArgument, match="cannot be sent to other machines .*lock"):
        run(Target(lambda dataset, rng: lock, Numbers(), closeness), executor=Ray())
    monkeypatch.setattr(lidp, "__version__", "9.9")
    with pytest.raises(AuditFailed, match=r"a node has lidp 0\..* instead of 9\.9"):
        run(executor=Ray())


def test_what_no_node_can_ever_run_is_refused(ray):
    with pytest.raises(
        InvalidArgument, match="no node has cpus_per_trial=1 and gpus_per_trial=1: the largest has 1 CPUs and 0"
    ):
        run(executor=Ray(gpus_per_trial=1))
    with pytest.raises(InvalidArgument, match="cpus_per_trial=2"):
        run(executor=Ray(cpus_per_trial=2))


def test_a_node_that_does_not_answer_is_gone():
    """Whatever Ray says: it takes a quarter of a minute to give a node up that was killed."""
    with socket.create_server(("127.0.0.1", 0)) as living, socket.socket() as dead:
        dead.bind(("127.0.0.1", 0))
        ports = {"living": living.getsockname()[1], "dead": dead.getsockname()[1], "left": living.getsockname()[1]}
        told = [
            {"NodeID": name, "Alive": name != "left", "NodeManagerAddress": "127.0.0.1", "NodeManagerPort": port}
            for name, port in ports.items()
        ]
        cluster = Cluster(SimpleNamespace(nodes=lambda: told), 1.0, 0.0)
        assert [cluster.is_gone(name) for name in ("living", "dead", "left", "unheard of")] == [False, True, True, True]


def test_an_address_that_does_not_answer():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        free = f"127.0.0.1:{taken.getsockname()[1]}"
    with pytest.raises(InvalidArgument, match=f"Ray at {free} does not answer"):
        run(executor=Ray(free))
    with pytest.raises(InvalidArgument, match="Ray at nonsense cannot be used"):
        run(executor=Ray("nonsense"))


def test_the_cluster_of_this_machine_is_found(nodes, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", nodes.address)
    same(run(executor=Ray("auto"), trials=10), run(trials=10))


def test_a_mechanism_that_brings_nodes_down_ends_the_audit(nodes, monkeypatch):
    def bomb(dataset, rng):
        time.sleep(1.0)  # the driver hears that it has begun
        for process in (os.getppid(), os.getpid()):
            os.kill(process, signal.SIGKILL)

    bomb.draws_only_from_rng = True  # the probe would bring down the nodes that the trials need
    monkeypatch.setattr(ray_executor, "_MOST_LOSSES", 0)
    monkeypatch.setattr(ray_executor, "_PATIENCE_SECONDS", 100.0)
    with pytest.raises(AuditFailed, match="lost its node 1 times"):
        run(Target(bomb, Numbers(), closeness), executor=Ray(nodes.address))


def test_a_cluster_without_nodes_is_waited_for_only_so_long(ray, nodes, monkeypatch):
    def watch(progress):
        if progress.done >= 5 and len(nodes.workers) == 2:
            nodes.kill(), nodes.kill()

    monkeypatch.setattr(ray_executor, "_PATIENCE_SECONDS", 1.0)
    monkeypatch.setattr(ray_executor, "_LOOK_SECONDS", 0.5)
    slow = Target(Somewhere(), Numbers(), closeness)
    with pytest.raises(AuditFailed, match="no node that can run a trial"):
        run(slow, trials=500, executor=Ray(), watch=watch)


def test_a_ray_of_its_own():
    """Started for the audit, on the loopback interface only, and gone afterwards."""
    import ray

    seen = []

    def watch(progress):
        if ray.is_initialized():
            seen.extend(node["NodeManagerAddress"] for node in ray.nodes())

    same(run(executor=Ray(), watch=watch), run())
    assert set(seen) == {"127.0.0.1"}
    assert not ray.is_initialized()


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
def test_options_out_of_range(options, message):
    with pytest.raises(InvalidArgument, match=message):
        Ray(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--executor", "slurm"], "executor must be local or ray, got 'slurm'"),
        (["--ray-address", "auto"], "--ray-address is for --executor ray"),
        (["--cpus-per-trial", "2"], "--cpus-per-trial is for --executor ray"),
        (["--gpus-per-trial", "0"], "--gpus-per-trial is for --executor ray"),
        (["--executor", "ray", "--workers", "2"], "--workers is for --executor local"),
        (["--executor", "ray", "--cpus-per-trial", "0"], "cpus_per_trial must be above 0"),
    ],
)
def test_options_that_do_not_fit_together_are_one_line(capsys, options, message):
    for arguments in (["audit", "tests.engine:LEAKY", "--epsilon", "1"], ["resume", "a.db"]):
        assert run_command([*arguments, *options]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith(f"lidp: {message}")
        assert err.count("\n") == 1


def test_without_ray_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InvalidArgument, match=r"pip install 'lidp\[ray\]'"):
        lidp.audit(engine.LEAKY, claim=Claim(1.0), design=CoinFlip(2), trials=4, executor=Ray())
