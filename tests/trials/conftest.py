"""Fixtures for tests on a Ray cluster."""

import signal
import sys
import traceback

import pytest

from lidp.trials.ray_cluster import connected
from tests.trials.nodes import LONGEST_TEST_SECONDS, Nodes


@pytest.fixture(autouse=True)
def _ended_if_stuck(request):
    """End the run, by an interrupt, if a test on a cluster hangs, and say where: that gets through Ray, and stops the cluster."""
    if request.node.get_closest_marker("cluster") is None:
        yield
        return

    def end(_number, frame):
        with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            sys.stderr.write(f"\n{request.node.nodeid} took longer than {LONGEST_TEST_SECONDS} s:\n")
            traceback.print_stack(frame)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(LONGEST_TEST_SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="package")
def _cluster():
    """One cluster for all tests of this folder."""
    nodes = Nodes()
    yield nodes
    nodes.stop()


@pytest.fixture
def nodes(_cluster):
    """The cluster, with two nodes that run trials."""
    _cluster.fill()
    return _cluster


@pytest.fixture
def ray(nodes):
    """Ray, connected for the whole test, as a user may be."""
    with connected(nodes.address) as module:
        yield module
        assert module.is_initialized()
