"""Connecting to clusters, and checking nodes."""

import socket
from types import SimpleNamespace

import pytest

pytest.importorskip("ray", reason="Ray is missing: pip install 'lidp[ray]'")

from lidp.errors import InvalidArgument
from lidp.trials.ray_cluster import Cluster
from lidp.trials.ray_executor import Ray
from tests.sample_targets import run, same

pytestmark = pytest.mark.cluster


def test_a_node_that_does_not_answer_is_gone():
    """Whatever Ray says: it takes a quarter of a minute to give up a node that was killed."""
    with socket.create_server(("127.0.0.1", 0)) as living, socket.socket() as dead:
        dead.bind(("127.0.0.1", 0))
        ports = {"living": living.getsockname()[1], "dead": dead.getsockname()[1], "left": living.getsockname()[1]}
        listed = [
            {"NodeID": name, "Alive": name != "left", "NodeManagerAddress": "127.0.0.1", "NodeManagerPort": port}
            for name, port in ports.items()
        ]
        cluster = Cluster(SimpleNamespace(nodes=lambda: listed), 1.0, 0.0)
        assert [cluster.is_gone(name) for name in ("living", "dead", "left", "unknown")] == [False, True, True, True]


@pytest.mark.parametrize(
    ("cpus", "gpus", "slots"), [(1.0, 0.0, 12), (3.0, 0.0, 3), (0.1, 0.0, 120), (1.0, 1.0, 2), (5.0, 2.0, 1), (9.0, 0.0, 0)]
)
def test_slots_are_what_fits_on_nodes_that_are_alive(cpus, gpus, slots):
    resources = [(True, {"CPU": 4.0}), (True, {"CPU": 8.0, "GPU": 2.0}), (False, {"CPU": 100.0})]
    listed = [{"Alive": alive, "Resources": has} for alive, has in resources]
    assert Cluster(SimpleNamespace(nodes=lambda: listed), cpus, gpus).slots() == slots


def test_an_address_that_does_not_answer_is_refused():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        free = f"127.0.0.1:{taken.getsockname()[1]}"
    with pytest.raises(InvalidArgument, match=f"Ray at {free} does not answer"):
        run(executor=Ray(free))
    with pytest.raises(InvalidArgument, match="Ray at nonsense cannot be used"):
        run(executor=Ray("nonsense"))


def test_auto_finds_the_cluster_of_this_machine(nodes, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", nodes.address)
    same(run(executor=Ray("auto"), trials=10), run(trials=10))
