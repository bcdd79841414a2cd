"""Functions that run on the nodes of a Ray cluster, and the transport of targets to the nodes."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import sysconfig
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from lidp._runtime.user_code import user_code
from lidp._runtime.workers import ignore_interrupts, raise_dismissed_on_sigterm, use_one_core
from lidp.designs.trial_record import TrialRecord
from lidp.errors import AuditFailed, InvalidArgument
from lidp.trials.executor import group_trials
from lidp.trials.ray_journal import Journal
from lidp.trials.setup import Setup, describe_time_limit


@dataclass(frozen=True)
class PackedSetup:
    """A setup in Ray's object store, as a pickle that each worker process fetches once.

    Attributes:
        key: a name that no other setup has.
        reference: where the pickle is.
        versions: the versions of the packages that decide the last bit of a score, on the machine that runs the audit.
    """

    key: str
    reference: Any
    versions: dict[str, str]


def pack_setup(ray: Any, setup: Setup) -> PackedSetup:
    """Put a setup where all nodes can fetch it, together with the modules that only this process can import.

    Raises:
        InvalidArgument: if it cannot be pickled.
    """
    # As bytes: arrays that Ray itself unpickles are read-only, and a mechanism may rely on writing to its arrays.
    return PackedSetup(uuid.uuid4().hex, ray.put(pickle_for_nodes(ray, setup)), _versions())


@dataclass(frozen=True)
class BatchOrder:
    """What a task is to run.

    Attributes:
        number: the number of the batch, by which its journal is found.
        indices: its trials, in order.
        together: whether they may run in one go.
        time_limit: seconds after which a trial has failed; None if there is no limit.
        report_seconds: how long a finished trial may wait before its record is sent.
    """

    number: int
    indices: tuple[int, ...]
    together: bool
    time_limit: float | None
    report_seconds: float


def run_batch(packed: PackedSetup, order: BatchOrder) -> Iterator[list[TrialRecord] | tuple[str, bool]]:
    """Run trials and yield their records, several at a time.

    First yield the name of the node and whether the trials start now. They do not if their setup must be loaded before; then the
    name and True follow when it is loaded, so that loading is not counted as time of the first trial.
    """
    node = importlib.import_module("ray").get_runtime_context().get_node_id()
    if packed.key not in _loaded_setups:
        yield node, False
    setup = _load_setup(packed)
    journal = Journal(packed.key, order.number) if len(order.indices) > 1 else None
    yield node, True
    groups = iter(list(group_trials(setup, order.indices) if order.together else [[index] for index in order.indices]))
    while records := _run_for_a_while(setup, groups, order, journal):
        yield records
    if journal is not None:
        journal.close()


def _run_for_a_while(
    setup: Setup, groups: Iterator[Sequence[int]], order: BatchOrder, journal: Journal | None
) -> list[TrialRecord]:
    """Run the next groups of trials until it is time to send their records, and return these; none if all trials have run."""
    records: list[TrialRecord] = []
    end = time.monotonic() + order.report_seconds
    try:
        with _worker_signals():
            for group in groups:
                finished = _run_in_time(setup, group, order.time_limit)
                if journal is not None:
                    journal.add(finished)
                records.extend(finished)
                if time.monotonic() >= end:
                    break
    except Exception:
        raise
    except BaseException:  # noqa: BLE001  # no outcome of the mechanism: this process was asked to end
        os._exit(1)
    return records


def _run_in_time(setup: Setup, group: Sequence[int], time_limit: float | None) -> list[TrialRecord]:
    """Run a group of trials. A trial that took longer than the limit has failed, though nobody stopped it in time."""
    started = time.monotonic()
    records = setup.run(group)
    seconds = time.monotonic() - started
    if time_limit is None or seconds <= time_limit:
        return records
    return [setup.lost_record(index, describe_time_limit(time_limit), seconds=seconds) for index in group]


def run_once(content: bytes) -> tuple[Any, str | None]:
    """Run pickled work; return its result and None, or None and why it failed. For a process that does nothing else."""
    use_one_core()
    ray = importlib.import_module("ray")
    try:
        with _worker_signals(), user_code():
            return ray.cloudpickle.loads(content)(), None
    except Exception as error:  # noqa: BLE001  # reported to the driver
        return None, f"{type(error).__name__}: {error}"
    except BaseException:  # noqa: BLE001  # this process was asked to end
        os._exit(1)


def pickle_for_nodes(ray: Any, content: Any) -> bytes:
    """Return the pickle of an object for other nodes, together with the modules that only this process can import.

    Raises:
        InvalidArgument: if it cannot be pickled.
    """
    with _pickled_by_value(ray.cloudpickle):
        try:
            pickled: bytes = ray.cloudpickle.dumps(content)
        except Exception as error:  # noqa: BLE001  # whatever a part of it raises when pickled
            raise InvalidArgument(f"the target cannot be sent to other machines ({error}); use local workers") from None
    return pickled


@contextmanager
def _worker_signals() -> Iterator[None]:
    """Handle signals as worker processes of this machine do: none raises an exception that a mechanism may raise by itself."""
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


_loaded_setups: dict[str, Setup] = {}


def _load_setup(packed: PackedSetup) -> Setup:
    """Return the setup, unpickled once per process: it may be large, and compile functions when it is loaded."""
    if packed.key not in _loaded_setups:
        here = _versions()
        if here != packed.versions:
            differences = ", ".join(f"{name} {here[name]} instead of {wanted}" for name, wanted in packed.versions.items())
            raise AuditFailed(f"a node has {differences}; install the same versions on all nodes")
        ray = importlib.import_module("ray")
        use_one_core()
        setup: Setup = ray.cloudpickle.loads(ray.get(packed.reference))
        use_one_core()  # also for libraries that were loaded with it
        _loaded_setups.clear()
        _loaded_setups[packed.key] = setup
    return _loaded_setups[packed.key]


def _versions() -> dict[str, str]:
    """Return the versions of the packages that decide the last bit of a score."""
    return {"lidp": importlib.import_module("lidp").__version__, "numpy": np.__version__}


@contextmanager
def _pickled_by_value(cloudpickle: Any) -> Iterator[None]:
    """Pickle modules with their code if other nodes cannot import them: those loaded from a file, and their neighbours."""
    registered = set(cloudpickle.list_registry_pickle_by_value())
    modules = [
        module for name, module in list(sys.modules.items()) if name not in registered and _must_pickle_by_value(name)
    ]
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)


def _must_pickle_by_value(name: str) -> bool:
    """Return whether a module was loaded from a file that an ordinary import would not find. Installed modules were not."""
    module = sys.modules.get(name)
    file = str(getattr(module, "__file__", None))
    if (
        "." in name
        or name in ("__main__", "__mp_main__", "lidp")
        or not isinstance(module, ModuleType)
        or not file.endswith(".py")
    ):
        return False
    installed = {sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")}
    if any(Path(file).is_relative_to(folder) for folder in installed):
        return False
    for finder in sys.meta_path:
        with contextlib.suppress(Exception):
            spec = finder.find_spec(name, None)
            if spec is not None:
                return spec.origin != file
    return True
