"""A Ray cluster of several nodes on this machine, whose nodes and workers tests can kill."""

import contextlib
import re
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from lidp import Output
from tests.sample_targets import leaky

SMALL = {"node_ip_address": "127.0.0.1", "include_dashboard": False, "object_store_memory": 80_000_000}
LONGEST_TEST_SECONDS = 400  # for tests that take a few seconds, on a machine that is busy with other work


class Nodes:
    """A head that runs no trials, and two nodes of one processor that do."""

    def __init__(self):
        from ray import cluster_utils

        # A node that does not answer is given up after a second and a half, not after a quarter of a minute.
        hasty = {"health_check_period_ms": 500, "health_check_timeout_ms": 500, "health_check_failure_threshold": 3}
        # A folder of its own: in the usual one Ray notes the newest cluster of the machine, which may be somebody's; and on a
        # machine that never ran Ray there is no such folder.
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
        """Start nodes until there are two that run trials."""
        self.workers = [node for node in self.workers if not node.dead_processes()]
        while len(self.workers) < 2:
            self.workers.append(self.cluster.add_node(num_cpus=1, **SMALL))
            self.all.append(self.workers[-1])

    def kill(self):
        """SIGKILL all processes of a node at once, as if its machine were gone; return its name."""
        node = self.workers.pop()
        self._kill_processes(node)
        self.cluster.remove_node(node, allow_graceful=False)
        return node.node_id

    def kill_workers(self):
        """SIGKILL the worker processes of the node that is killed next. Its agents live: without them it would end by itself."""
        self._kill_processes(self.workers[-1], r"ray::(?!.*Agent)")

    @staticmethod
    def _kill_processes(node, names=""):
        import psutil

        raylet = psutil.Process(node.all_processes["raylet"][0].process.pid)
        for process in (raylet, *raylet.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):  # it ended by itself
                if re.match(names, process.name()):
                    process.kill()

    def stop(self):
        """End all processes of the cluster."""
        self.cluster.shutdown()
        shutil.rmtree(self.folder, ignore_errors=True)
        assert not [process for node in self.all for process in node.live_processes()]


@dataclass(frozen=True)
class Located:
    """A leaky mechanism that takes a while and notes its node; with a folder, runs wait until two nodes have one."""

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
