"""Connect to a Ray cluster, count its slots, check its nodes."""

from __future__ import annotations

import contextlib
import importlib
import math
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from lidp.errors import InvalidArgument

_ADDRESS_SECONDS = 5.0  # within which the address of a cluster must answer
_NODE_SECONDS = 1.0  # within which a node must answer; trials on other nodes wait for the driver meanwhile


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Yield Ray, connected. At the end disconnect it, or stop it if it was started here; keep a connection that the user made.

    Raises:
        InvalidArgument: if Ray is missing, or the address does not answer.
    """
    try:
        ray = importlib.import_module("ray")
    except ImportError:
        raise InvalidArgument("the executor ray needs Ray; pip install 'lidp[ray]'") from None
    if ray.is_initialized():
        yield ray
        return
    try:
        with _kept_sigterm_handler():
            _connect(ray, address)
        yield ray
    finally:
        ray.shutdown()


@dataclass(frozen=True)
class Cluster:
    """The nodes of a cluster, and the processors and graphics cards that a trial takes of its node."""

    ray: Any
    cpus: float
    gpus: float

    def slots(self) -> int:
        """Return how many trials the nodes that are alive can run at once."""
        return sum(self._fit(node["Resources"]) for node in self._nodes())

    def require_slots(self) -> int:
        """Like :meth:`slots`, but raise if there are none.

        Raises:
            InvalidArgument: if there is no node on which a trial ever fits.
        """
        slots = self.slots()
        if not slots:
            have = [(node["Resources"].get("CPU", 0), node["Resources"].get("GPU", 0)) for node in self._nodes()]
            cpus, gpus = max(have, key=lambda both: both[::-1] if self.gpus else both, default=(0, 0))
            raise InvalidArgument(
                f"no node has cpus_per_trial={self.cpus:g} and gpus_per_trial={self.gpus:g}: the largest has {cpus:g} CPUs "
                f"and {gpus:g} GPUs; ask for less, or add a node first"
            )
        return slots

    def nodes(self) -> list[str]:
        """Return the names of the nodes that are alive."""
        return [node["NodeID"] for node in self._nodes()]

    def is_gone(self, node: str) -> bool:
        """Return whether a node has left the cluster or does not answer. Ray itself takes 15 seconds to report the latter."""
        addresses = {
            alive["NodeID"]: f"{alive['NodeManagerAddress']}:{alive['NodeManagerPort']}" for alive in self._nodes()
        }
        return node not in addresses or not _answers(addresses[node], _NODE_SECONDS)

    def _nodes(self) -> list[Any]:
        return [node for node in self.ray.nodes() if node["Alive"]]

    def _fit(self, resources: dict[str, float]) -> int:
        """Return how many trials fit on a node at once."""
        shares = [(resources.get("CPU", 0), self.cpus), (resources.get("GPU", 0), self.gpus)]
        return min(math.floor(amount / share + 1e-9) for amount, share in shares if share)


def _connect(ray: Any, address: str | None) -> None:
    options = {"log_to_driver": False, "logging_level": "ERROR"}
    if address is None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # do not report audits to the makers of Ray
        with _loopback(True):
            ray.init(address="local", include_dashboard=False, **options)
        return
    services = importlib.import_module("ray._private.services")
    for loopback in (False, True):
        with _loopback(loopback):
            try:
                host_and_port = services.canonicalize_bootstrap_address(address)
                if host_and_port is not None and _answers(host_and_port, _ADDRESS_SECONDS):
                    ray.init(address=host_and_port, **options)
                    return
            except (ConnectionError, RuntimeError, ValueError, OSError) as error:
                reason = (str(error).strip() or type(error).__name__).splitlines()[0]
                raise InvalidArgument(f"Ray at {address} cannot be used: {reason}") from None
    raise InvalidArgument(
        f"Ray at {address} does not answer; check that the cluster runs (ray status) and that the address is host:port, or auto"
    )


def _answers(address: str, seconds: float) -> bool:
    """Return whether a process listens at host:port. Ray itself would go on asking for minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=seconds).close()
    except OSError:
        return False
    return True


@contextmanager
def _loopback(wanted: bool) -> Iterator[None]:
    """Make Ray use 127.0.0.1 as it is, if wanted, or replace it by an address that other machines can reach, as it usually does."""
    constants: Any = importlib.import_module("ray._private.ray_constants")
    before = constants.ENABLE_RAY_CLUSTER
    constants.ENABLE_RAY_CLUSTER = before and not wanted
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before


@contextmanager
def _kept_sigterm_handler() -> Iterator[None]:
    """Restore our handler of SIGTERM, which Ray replaces by one that ends the process at once."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            with contextlib.suppress(TypeError):  # a handler that was not set from Python cannot be set from Python
                signal.signal(signal.SIGTERM, before)
