"""Find mechanisms whose own random numbers are the same in every process.

A mechanism should draw all its randomness from the ``rng`` that it is given. One that has a generator of its own gets a copy of
it in every forked worker process, and in every process that unpickles it; and a generator with a fixed seed starts again when
an audit is resumed. Trials that share noise are not independent, and a true claim is refuted far too often.

The probe runs trials with the same streams in fresh processes and throws the results away: each twice in one process, and
again in another. What differs between the two runs of one process comes from randomness of the mechanism's own; if the other
process gives the same nevertheless, the processes replay one sequence, and the audit is refused. Numbers are compared by how far
they are apart, so that rounding that differs from run to run hides nothing. Entropy of the operating system differs everywhere
and passes. Trial 0 is probed, and for mechanisms that are fast enough some more: coarse outputs are alike by chance, and
a generator may be used from a later run on. A mechanism that cannot have randomness of its own says so by an
attribute ``draws_only_from_rng = True`` and is not probed.

Not found: own randomness that shows neither in the outputs nor in the scores of the probed runs.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lidp._runtime.workers import use_one_core
from lidp.arrays import Floats
from lidp.errors import AuditFailed, InvalidArgument
from lidp.target import Output
from lidp.trials.executor import Executor
from lidp.trials.setup import Setup

_MOST_TRIALS = 16
_SECONDS = 1.0  # no further trial is probed after this time
_PATIENCE = 30.0  # seconds that a process may need besides its runs
_NEAR = 1e-4
_SAMPLED = 2**14  # numbers that are kept of an output
_MOST = 0.75  # of the trials that differ: coarse outputs may agree by chance


@dataclass(frozen=True, eq=False)
class Shown:
    """What a run showed: some of its numbers, a digest of all that is not a number, and a digest of everything."""

    numbers: Floats
    rest: str
    whole: str


@dataclass(frozen=True, eq=False)
class Trace:
    """What a run of a trial gave: the outputs of the mechanism, None if they cannot be compared, and all scores."""

    outputs: Shown | None
    scores: Shown

    def same_as(self, other: Trace) -> bool:
        """Return whether two runs had the same outputs and the same scores, as far as they are known."""
        if self.scores.whole != other.scores.whole:
            return False
        return self.outputs is None or other.outputs is None or self.outputs.whole == other.outputs.whole


def refuse_shared_randomness(executor: Executor, setup: Setup, recorded: Iterable[int] | None) -> None:
    """Refuse a mechanism whose own randomness is the same in several processes, or may be that of recorded trials.

    ``recorded`` are the trials that an audit has when it is resumed, without those that failed; None if it is a new one.

    Raises:
        InvalidArgument: if it is; see :func:`refuse_replays` and :func:`refuse_restarts`.
    """
    # Where the preparation step and the trials run in different processes, even a single worker is a second process.
    prepared_elsewhere = setup.has_preparation and executor.separate_processes
    if executor.several or prepared_elsewhere:
        refuse_replays(executor, setup)
    elif recorded is not None:
        refuse_restarts(executor, setup, recorded)


def refuse_replays(executor: Executor, setup: Setup) -> None:
    """Refuse a mechanism whose own randomness is the same in every process of an executor.

    Costs two or three runs of a trial; of a fast mechanism more, for about a second.

    Raises:
        InvalidArgument: if it is.
    """
    if not draws_only_from_rng(setup) and _is_replayed(executor, setup, range(_MOST_TRIALS), executor.time_limit):
        raise InvalidArgument(
            f"{setup.target.name} draws random numbers that do not come from rng, and the same ones in every worker process: "
            "its runs would share noise. Draw from the rng that the mechanism is given, or run with one worker in one process "
            "(workers=1, without a time limit)"
        )


def refuse_restarts(executor: Executor, setup: Setup, recorded: Iterable[int]) -> None:
    """Refuse to resume with a mechanism whose own randomness may have started again.

    A mechanism that gives the same when it is run again has none. Otherwise it is run in two fresh processes: if they give the
    same, its random numbers come from a state of the process, which may be the one that the recorded trials began with. Which
    trial that was does not matter: a preparation step may have drawn before the first one.

    Raises:
        InvalidArgument: if it is so.
    """
    if draws_only_from_rng(setup):
        return
    indices = list(islice(recorded, _MOST_TRIALS)) or [0]  # these did not end the process when they were run
    time_limit = executor.time_limit
    if not executor.separate_processes:
        start = time.monotonic()
        with use_one_core():
            here = _none_if_failed(partial(run_traces, setup, indices, 2, _SECONDS))
        if here is None or all(first.same_as(second) for first, second in here):
            return
        # Some libraries hang in a forked process: such a mechanism cannot be judged.
        time_limit = _PATIENCE + 10 * (time.monotonic() - start)
    if _is_replayed(executor, setup, indices, time_limit):
        raise InvalidArgument(
            f"{setup.target.name} draws random numbers that do not come from rng, but from a state of its process, which may "
            "have started again when this audit was resumed: its runs may share noise. Draw from the rng that the mechanism is "
            "given, and begin a new audit; the trials so far can be reported (lidp report)"
        )


def run_traces(setup: Setup, indices: Sequence[int], times: int, seconds: float | None = None) -> list[list[Trace]]:
    """Run trials some times in a row each, in this process, and return what they gave; begin none after so many seconds."""
    recording = _Recording(setup.target.mechanism)
    probed: Any = setup
    if setup.design.has_canaries:  # otherwise records hold the outputs themselves
        probed = replace(probed, target=replace(setup.target, mechanism=recording))
    start = time.monotonic()
    traces: list[list[Trace]] = []
    for index in indices:
        if traces and seconds is not None and time.monotonic() - start > seconds:
            break
        traces.append([_run_once(probed, index, recording) for _ in range(times)])
    return traces


def _run_once(setup: Setup, index: int, recording: _Recording) -> Trace:
    recording.outputs = []
    record = setup.run([index])[0]
    parts = [part for part in recording.outputs if part is not None]
    outputs = _Parts()
    for part in parts:
        outputs.join(part)
    scores = _Parts()
    for name in sorted(record.arrays):
        scores.add(np.asarray(record.arrays[name], dtype=np.float64))
    return Trace(outputs.shown() if len(parts) == len(recording.outputs) else None, scores.shown())


def _is_replayed(executor: Executor, setup: Setup, indices: Sequence[int], time_limit: float | None) -> bool:
    """Return whether fresh processes of an executor give the same, and would not if they ran a trial again.

    ``time_limit`` is that of one trial, in seconds.
    """

    def run_fresh(work: Callable[[], Any], runs: int) -> Any:
        limit = None if time_limit is None else runs * time_limit + 2 * _SECONDS
        return _none_if_failed(partial(executor.run_work, work, limit))

    with executor.session():
        repeated = run_fresh(partial(run_traces, setup, indices, 2, _SECONDS), runs=2)
        if repeated is None:  # a later trial may have ended the process
            repeated = run_fresh(partial(run_traces, setup, indices[:1], 2), runs=2)
        if repeated is None or all(first.same_as(second) for first, second in repeated):
            return False
        times = 1 if len(repeated) == 1 else 2  # an own generator is only where it was after as many runs
        other = run_fresh(partial(run_traces, setup, indices[: len(repeated)], times), runs=times * len(repeated))
    if other is None:
        return False
    # Scores and outputs are compared apart: either may be coarse, or carry what differs for other reasons.
    return any(
        _mostly(
            _replays([getattr(trace, name) for trace in pair], [getattr(trace, name) for trace in again])
            for pair, again in zip(repeated, other, strict=True)
        )
        for name in ("scores", "outputs")
    )


def _mostly(verdicts: Iterator[bool | None]) -> bool:
    known = [verdict for verdict in verdicts if verdict is not None]
    return bool(known) and sum(known) >= _MOST * len(known)


def _replays(pair: Sequence[Shown | None], again: Sequence[Shown | None]) -> bool | None:
    """Return whether another process gave what two runs in a row gave; None if these are alike, or not known."""
    first, second = pair
    if first is None or second is None or first.whole == second.whole:
        return None
    return all(one is not None and _is_near(one, mine, first, second) for one, mine in zip(again, pair, strict=False))


def _is_near(one: Shown, mine: Shown | None, first: Shown, second: Shown) -> bool:
    """Return whether a run is as good as the same as another, in the measure of how far two other runs are apart."""
    assert mine is not None  # noqa: S101  # for the type checker
    if first.rest != second.rest and one.rest == mine.rest:
        return True
    if not one.numbers.shape == first.numbers.shape == second.numbers.shape:
        return False
    with np.errstate(invalid="ignore", over="ignore"):
        differ = ~_equal(first.numbers, second.numbers)
        near = _equal(one.numbers, mine.numbers) | (
            np.abs(one.numbers - mine.numbers) <= _NEAR * np.abs(second.numbers - first.numbers)
        )
    if not differ.any():  # it shows in none of the numbers that are kept
        return first.rest == second.rest and one.whole == mine.whole
    return bool(near[differ].mean() > 0.5)


def _equal(one: Floats, other: Floats) -> NDArray[np.bool_]:
    equal: NDArray[np.bool_] = (one == other) | (np.isnan(one) & np.isnan(other))
    return equal


class _Recording:
    """A mechanism that notes the parts of each output; an exception counts as an output by its type."""

    def __init__(self, mechanism: Callable[..., Any]) -> None:
        self.mechanism = mechanism
        self.outputs: list[_Parts | None] = []

    def __call__(self, dataset: Any, rng: np.random.Generator) -> Any:
        try:
            output = self.mechanism(dataset, rng)
        except BaseException as error:
            self.outputs.append(_parts(type(error).__qualname__))
            raise
        self.outputs.append(_parts(output.value if isinstance(output, Output) else output))
        return output


def draws_only_from_rng(setup: Setup) -> bool:
    """Return whether the mechanism promises to have no randomness of its own."""
    return bool(getattr(setup.target.mechanism, "draws_only_from_rng", False))


def show_output(output: Any) -> Shown | None:
    """Return what can be compared of an output; None if nothing can."""
    parts = _parts(output)
    return None if parts is None else parts.shown()


def _none_if_failed(work: Callable[[], Any]) -> Any:
    """Return ``work()``; None if it dies, hangs or fails, which is for the trials to record.

    Raises:
        InvalidArgument: if the work is refused.
    """
    try:
        return work()
    except InvalidArgument:
        raise
    except (AuditFailed, RuntimeError):
        return None


def _parts(output: Any) -> _Parts | None:
    """Return the numbers and texts that an output holds; None if it holds other things only.

    Of objects that are not data, such as models, only parameters and floats count: their pickles also hold identities and
    counters, which differ from run to run without any randomness.
    """
    parts = _Parts()
    try:
        known = parts.add(output)
    except Exception:  # noqa: BLE001  # whatever an object may raise when it is looked at
        return None
    return parts if known else None


@dataclass(eq=False)
class _Parts:
    """Numbers and digests, as they are collected from outputs."""

    numbers: list[Floats] = field(default_factory=list)
    rest: Any = field(default_factory=hashlib.sha256)
    whole: Any = field(default_factory=hashlib.sha256)

    def join(self, more: _Parts) -> None:
        self.numbers.extend(more.numbers)
        self.rest.update(more.rest.digest())
        self.whole.update(more.whole.digest())

    def shown(self) -> Shown:
        numbers = np.concatenate([np.empty(0), *self.numbers])
        return Shown(numbers[:: -(-len(numbers) // _SAMPLED) or 1].copy(), self.rest.hexdigest(), self.whole.hexdigest())

    def _note(self, text: bytes) -> None:
        self.rest.update(text)
        self.whole.update(text)

    def add(self, part: Any) -> bool:
        """Add what a part of an output holds; return whether it held anything that counts."""
        self._note(type(part).__qualname__.encode())
        if hasattr(part, "detach") and hasattr(part, "cpu"):  # a tensor
            part = np.asarray(part.detach().cpu().numpy())
        if isinstance(part, (bool, int, float, complex)) and _fits(part):
            part = np.asarray(part)
        if isinstance(part, (np.ndarray, np.generic)) and part.dtype != object:
            return self._add_array(np.asarray(part))
        if part is None or isinstance(part, (int, str, bytes)):
            self._note(repr(part).encode())
            return True
        if isinstance(part, Mapping):
            part = [one for pair in part.items() for one in pair]
        if isinstance(part, (list, tuple, np.ndarray)):
            known = [self.add(one) for one in part]
            return all(known)
        if is_dataclass(part) and not isinstance(part, type):
            known = [self.add(getattr(part, item.name)) for item in fields(part)]
            return any(known)
        if hasattr(part, "state_dict"):  # a model of PyTorch
            return self.add(part.state_dict())
        numbers = {name: value for name, value in vars(part).items() if _is_of_floats(value)}
        return bool(numbers) and self.add(numbers)

    def _add_array(self, array: NDArray[Any]) -> bool:
        self._note(str((array.shape, array.dtype)).encode())
        self.whole.update(array.tobytes())
        if array.dtype.kind == "c":
            array = np.stack([array.real, array.imag])
        if array.dtype.kind in "biuf":
            self.numbers.append(array.astype(np.float64).ravel())
        else:
            self.rest.update(array.tobytes())
        return True


def _fits(number: complex) -> bool:
    return not isinstance(number, int) or abs(number) < 2**63


def _is_of_floats(value: Any) -> bool:
    kind = getattr(value, "dtype", None)
    return isinstance(value, float) or getattr(kind, "kind", "") == "f" or bool(getattr(kind, "is_floating_point", False))
