"""A Ray cluster: connecting to it, and how many trials it can run at once."""

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

_ANSWER_SECONDS = 5.0  # an address must answer within
_LIFE_SECONDS = 1.0  # ... and a node that is waited for, while others work


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Ray, connected; disconnected at the end, or stopped if it was started here. A connection of the user's is kept.

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
        with _own_handlers():
            _connect(ray, address)
        yield ray
    finally:
        ray.shutdown()


@dataclass(frozen=True)
class Cluster:
    """The nodes, and what a trial needs of one."""

    ray: Any
    cpus: float
    gpus: float

    def slots(self) -> int:
        """How many trials the living nodes can run at once."""
        return sum(self._fit(node["Resources"]) for node in self._nodes())

    def require_slots(self) -> int:
        """The same, at least one.

        Raises:
            InvalidArgument: if there is no node on which a trial ever fits.
        """
        found = self.slots()
        if not found:
            have = [(node["Resources"].get("CPU", 0), node["Resources"].get("GPU", 0)) for node in self._nodes()]
            cpus, gpus = max(have, key=lambda both: both[::-1] if self.gpus else both, default=(0, 0))
            raise InvalidArgument(
                f"no node has cpus_per_trial={self.cpus:g} and gpus_per_trial={self.gpus:g}: the largest has {cpus:g} CPUs "
                f"and {gpus:g} GPUs; ask for less, or add a node first"
            )
        return found

    def is_gone(self, node: str) -> bool:
        """Whether a node has left the cluster, or does not answer: then Ray takes a quarter of a minute to say so."""
        places = {one["NodeID"]: f"{one['NodeManagerAddress']}:{one['NodeManagerPort']}" for one in self._nodes()}
        return node not in places or not _answers(places[node], _LIFE_SECONDS)

    def _nodes(self) -> list[Any]:
        return [node for node in self.ray.nodes() if node["Alive"]]

    def _fit(self, has: dict[str, float]) -> int:
        wants = [(has.get("CPU", 0), self.cpus), (has.get("GPU", 0), self.gpus)]
        return min(math.floor(amount / want + 1e-9) for amount, want in wants if want)


def _connect(ray: Any, address: str | None) -> None:
    options = {"log_to_driver": False, "logging_level": "ERROR"}
    if address is None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nobody asked for an audit to be reported
        with _loopback(True):
            ray.init(address="local", include_dashboard=False, **options)
        return
    services = importlib.import_module("ray._private.services")
    for loopback in (False, True):
        with _loopback(loopback):
            try:
                place = services.canonicalize_bootstrap_address(address)
                if place is not None and _answers(place, _ANSWER_SECONDS):
                    ray.init(address=place, **options)
                    return
            except (ConnectionError, RuntimeError, ValueError, OSError) as error:
                reason = (str(error).strip() or type(error).__name__).splitlines()[0]
                raise InvalidArgument(f"Ray at {address} cannot be used: {reason}") from None
    raise InvalidArgument(
        f"Ray at {address} does not answer; see that the cluster runs (ray status) and that the address is host:port, or auto"
    )


def _answers(place: str, seconds: float) -> bool:
    """Whether something listens. Ray itself goes on asking for minutes."""
    host, _, port = place.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=seconds).close()
    except OSError:
        return False
    return True


@contextmanager
def _loopback(wanted: bool) -> Iterator[None]:
    """Have Ray take 127.0.0.1 as it is, or replace it by an address that other machines can reach, as it usually does."""
    constants: Any = importlib.import_module("ray._private.ray_constants")
    before = constants.ENABLE_RAY_CLUSTER
    constants.ENABLE_RAY_CLUSTER = before and not wanted
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before


@contextmanager
def _own_handlers() -> Iterator[None]:
    """Keep our handler of SIGTERM, which Ray replaces by one that leaves at once."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            with contextlib.suppress(TypeError):  # a handler that was not set from Python cannot be set from Python
                signal.signal(signal.SIGTERM, before)
