"""What runs on the nodes of a Ray cluster, and how the target gets there."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import sysconfig
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from lidp._runtime.user_code import user_code
from lidp._runtime.workers import ignore_interrupts, raise_dismissed_on_sigterm, use_one_core
from lidp.errors import AuditFailed, InvalidArgument
from lidp.trials.trial import TrialRecord, TrialSetup, run_trials

_RUN_MANY = 64


@dataclass(frozen=True)
class Parcel:
    """Where a setup lies in Ray's object store, pickled; each worker process fetches it once."""

    key: str
    reference: Any
    versions: dict[str, str]


def packed(ray: Any, setup: TrialSetup) -> Parcel:
    """Put a setup where all nodes can fetch it. Modules that only this process can find travel with it.

    Raises:
        InvalidArgument: if it cannot be pickled.
    """
    # As bytes: arrays that Ray unpacks itself are read-only, and a mechanism may count on theirs not being so.
    return Parcel(uuid.uuid4().hex, ray.put(pickled(ray, setup)), _versions())


def work(parcel: Parcel, indices: list[int]) -> Iterator[list[TrialRecord] | tuple[str, bool]]:
    """Run trials, saying first on which node, and whether they begin or all that they need must be loaded before."""
    node = importlib.import_module("ray").get_runtime_context().get_node_id()
    if parcel.key not in _kept:
        yield node, False
    setup = _setup(parcel)
    yield node, True
    step = _RUN_MANY if hasattr(setup.target.mechanism, "run_many") else 1
    found: list[TrialRecord] = []
    try:
        with _signals_of_a_worker():
            for start in range(0, len(indices), step):
                found.extend(run_trials(setup, indices[start : start + step]))
    except Exception:
        raise
    except BaseException:  # noqa: BLE001  # no outcome of the mechanism: the process was told to end
        os._exit(1)
    yield found


def work_once(content: bytes) -> tuple[Any, str | None]:
    """Do some pickled work and return what comes of it, or why it failed. For a process that does nothing else."""
    use_one_core()
    ray = importlib.import_module("ray")
    try:
        with _signals_of_a_worker(), user_code():
            return ray.cloudpickle.loads(content)(), None
    except Exception as error:  # noqa: BLE001  # told to the driver
        return None, f"{type(error).__name__}: {error}"
    except BaseException:  # noqa: BLE001  # the process was told to end
        os._exit(1)


def pickled(ray: Any, content: Any) -> bytes:
    """Pickle something for other nodes. Modules that only this process can find travel with it.

    Raises:
        InvalidArgument: if it cannot be pickled.
    """
    with _by_value(ray.cloudpickle):
        try:
            found: bytes = ray.cloudpickle.dumps(content)
        except Exception as error:  # noqa: BLE001  # whatever a part of it raises when pickled
            raise InvalidArgument(f"the target cannot be sent to other machines ({error}); use local workers") from None
    return found


@contextmanager
def _signals_of_a_worker() -> Iterator[None]:
    """Have signals raise nothing that a mechanism may raise by itself, as in worker processes of this machine."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    ignore_interrupts()
    raise_dismissed_on_sigterm()
    try:
        yield
    finally:
        for number, handler in before.items():
            with contextlib.suppress(TypeError):  # a handler that was not set from Python cannot be set from Python
                signal.signal(number, handler)


_kept: dict[str, TrialSetup] = {}


def _setup(parcel: Parcel) -> TrialSetup:
    """The setup, unpickled once a process: it may be large, and compile what it brings."""
    if parcel.key not in _kept:
        here = _versions()
        if here != parcel.versions:
            told = ", ".join(f"{name} {here[name]} instead of {wanted}" for name, wanted in parcel.versions.items())
            raise AuditFailed(f"a node has {told}; install the same versions on all nodes")
        ray = importlib.import_module("ray")
        use_one_core()
        setup: TrialSetup = ray.cloudpickle.loads(ray.get(parcel.reference))
        use_one_core()  # also for libraries that came with it
        _kept.clear()
        _kept[parcel.key] = setup
    return _kept[parcel.key]


def _versions() -> dict[str, str]:
    """Of what decides the last bit of a score."""
    return {"lidp": importlib.import_module("lidp").__version__, "numpy": np.__version__}


@contextmanager
def _by_value(cloudpickle: Any) -> Iterator[None]:
    """Pickle the code of modules that an import elsewhere would not find: those loaded from a file, and their neighbours."""
    known = set(cloudpickle.list_registry_pickle_by_value())
    strangers = [module for name, module in list(sys.modules.items()) if name not in known and _is_stranger(name)]
    for module in strangers:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in strangers:
            cloudpickle.unregister_pickle_by_value(module)


def _is_stranger(name: str) -> bool:
    """Whether a module was loaded from a file that an ordinary import would not find. What is installed is no stranger."""
    module = sys.modules.get(name)
    file = str(getattr(module, "__file__", None))
    if (
        "." in name
        or name in ("__main__", "__mp_main__", "lidp")
        or not isinstance(module, ModuleType)
        or not file.endswith(".py")
    ):
        return False
    places = {sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")}
    if any(Path(file).is_relative_to(place) for place in places):
        return False
    for finder in sys.meta_path:
        with contextlib.suppress(Exception):
            spec = finder.find_spec(name, None)
            if spec is not None:
                return spec.origin != file
    return True
