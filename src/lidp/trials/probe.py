"""Find mechanisms whose own random numbers are the same in every process.

A mechanism should draw all its randomness from the ``rng`` that it is given. One that has a generator of its own gets a copy of
it in every forked worker process, and in every process that unpickles it; and a generator with a fixed seed starts again when
an audit is resumed. Trials that share noise are not independent, and a true claim is refuted far too often.

The probe runs a trial with the same streams in fresh processes and throws the results away: twice in one of them, and once
in another. Outputs that differ within a process come from randomness of the mechanism's own; if the first outputs
of the two processes are the same nevertheless, the processes replay one sequence, and the audit is refused. Entropy of the
operating system differs everywhere and passes. A mechanism that cannot have such randomness says so by an attribute
``draws_only_from_rng = True`` and is not probed.

Not found: own randomness that shows neither in the outputs nor in the scores of the first two runs.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from lidp.errors import AuditFailed, InvalidArgument
from lidp.target import Output
from lidp.trials.trial import TrialRecord, TrialSetup, run_trial
from lidp.workers import use_one_core

_PROBED_TRIAL = 0


@dataclass(frozen=True)
class Digests:
    """What a trial gave: the outputs of the mechanism, None if they cannot be compared, and all scores."""

    outputs: str | None
    scores: str

    def same_as(self, other: Digests) -> bool:
        """Return whether two trials had the same outputs and the same scores, as far as they are known."""
        return self.scores == other.scores and (None in (self.outputs, other.outputs) or self.outputs == other.outputs)


def refuse_shared_randomness(executor: Any, setup: TrialSetup, recorded: TrialRecord | None) -> None:
    """Refuse a mechanism whose own randomness is the same in several processes, or that of a recorded trial.

    Raises:
        InvalidArgument: if it is; see :func:`refuse_replays` and :func:`refuse_restarts`.
    """
    if getattr(executor, "several", False):
        refuse_replays(executor, setup)
    refuse_restarts(executor, setup, recorded)


def refuse_replays(executor: Any, setup: TrialSetup) -> None:
    """Refuse a mechanism whose own randomness is the same in every process of an executor. Costs two or three runs.

    Raises:
        InvalidArgument: if it is.
    """
    if not hasattr(executor, "run_work") or _draws_only_from_rng(setup):
        return
    with _session(executor):
        repeated = _work(executor, partial(run_digests, setup, 2), runs=2)
        if repeated is None or repeated[0].same_as(repeated[1]):
            return
        once = _work(executor, partial(run_digests, setup, 1), runs=1)
    if once is None:
        return
    first, second = repeated
    # Scores and outputs are compared apart: either may be coarse, or carry what differs for other reasons.
    by_scores = first.scores != second.scores and once[0].scores == first.scores
    by_outputs = first.outputs != second.outputs and once[0].outputs is not None and once[0].outputs == first.outputs
    if by_scores or by_outputs:
        raise InvalidArgument(
            f"{setup.target.name} draws random numbers that do not come from rng, and the same ones in every worker process: "
            "its runs would share noise. Draw from the rng that the mechanism is given, or run with one worker in one process "
            "(workers=1, without a time limit)"
        )


def refuse_restarts(executor: Any, setup: TrialSetup, recorded: TrialRecord | None) -> None:
    """Refuse to resume with a mechanism whose own randomness has started again. Costs one or two runs.

    Run a trial again that is recorded: the same scores, and others when it is run a second time in the same process, mean that
    the mechanism's own sequence is the recorded one.

    Raises:
        InvalidArgument: if it is.
    """
    if recorded is None or recorded.failures or _draws_only_from_rng(setup):
        return
    expected = _digest_scores(recorded)
    work = partial(_starts_again, setup, recorded.index, expected)
    if _work(executor, work, runs=2):
        raise InvalidArgument(
            f"{setup.target.name} draws random numbers that do not come from rng, and has drawn the same ones before this audit "
            "was resumed: its runs would share noise. Draw from the rng that the mechanism is given, and begin a new audit"
        )


def run_digests(setup: TrialSetup, times: int) -> list[Digests]:
    """Run the probed trial some times in a row, in this process, and return digests of what it gave."""
    recording = _Recording(setup.target.mechanism)
    probed = replace(setup, target=replace(setup.target, mechanism=recording))
    found = []
    for _ in range(times):
        recording.outputs = []
        record = run_trial(probed, _PROBED_TRIAL)
        outputs = [output for output in recording.outputs if output is not None]
        known = len(outputs) == len(recording.outputs)
        found.append(Digests("".join(outputs) if known else None, _digest_scores(record)))
    return found


class _Recording:
    """A mechanism that notes a digest of each output; an exception counts as an output by its type."""

    def __init__(self, mechanism: Callable[..., Any]) -> None:
        self.mechanism = mechanism
        self.outputs: list[str | None] = []

    def __call__(self, dataset: Any, rng: np.random.Generator) -> Any:
        try:
            output = self.mechanism(dataset, rng)
        except BaseException as error:
            self.outputs.append(type(error).__qualname__)
            raise
        self.outputs.append(_digest(output.value if isinstance(output, Output) else output))
        return output


def _starts_again(setup: TrialSetup, index: int, expected: str) -> bool:
    """Return whether a trial gives the expected scores at first and others when it is run again."""
    return _digest_scores(run_trial(setup, index)) == expected and _digest_scores(run_trial(setup, index)) != expected


def _draws_only_from_rng(setup: TrialSetup) -> bool:
    return bool(getattr(setup.target.mechanism, "draws_only_from_rng", False))


def _work(executor: Any, work: Callable[[], Any], *, runs: int) -> Any:
    """Return the result of some work in a fresh process, or here if the executor has none; None if that tells nothing."""
    run_work = getattr(executor, "run_work", None)
    limit = getattr(executor, "time_limit", None)
    try:
        if run_work is not None:
            return run_work(work, None if limit is None else runs * limit)
        with use_one_core():
            return work()
    except InvalidArgument:
        raise
    except (AuditFailed, RuntimeError):
        return None  # a run that dies, hangs or fails is for the trials to record


@contextlib.contextmanager
def _session(executor: Any) -> Iterator[None]:
    """Keep an executor's connection, if it has one, for several pieces of work."""
    session = getattr(executor, "session", None)
    with contextlib.nullcontext() if session is None else session():
        yield


def _digest_scores(record: TrialRecord) -> str:
    whole = hashlib.sha256()
    for name in sorted(record.arrays):
        whole.update(np.ascontiguousarray(record.arrays[name], dtype=np.float64).tobytes())
    return whole.hexdigest()


def _digest(output: Any) -> str | None:
    """Return a digest of the numbers and texts that an output holds; None if it holds other things only.

    Of objects that are not data, such as models, only parameters and floats count: their pickles also hold identities and
    counters, which differ from run to run without any randomness.
    """
    whole = hashlib.sha256()
    try:
        known = _add(whole, output)
    except Exception:  # noqa: BLE001  # whatever an object may raise when it is looked at
        return None
    return whole.hexdigest() if known else None


def _add(whole: Any, part: Any) -> bool:
    """Add what a part of an output holds to a digest; return whether it held anything that counts."""
    whole.update(type(part).__qualname__.encode())
    if hasattr(part, "detach") and hasattr(part, "cpu"):  # a tensor
        part = np.asarray(part.detach().cpu().numpy())
    if isinstance(part, (np.ndarray, np.generic)) and part.dtype != object:
        whole.update(str((part.shape, part.dtype)).encode() + part.tobytes())
        return True
    if part is None or isinstance(part, (bool, int, float, complex, str, bytes)):
        whole.update(repr(part).encode())
        return True
    if isinstance(part, Mapping):
        part = [one for pair in part.items() for one in pair]
    if isinstance(part, (list, tuple, np.ndarray)):
        known = [_add(whole, one) for one in part]
        return all(known)
    if is_dataclass(part) and not isinstance(part, type):
        known = [_add(whole, getattr(part, item.name)) for item in fields(part)]
        return any(known)
    if hasattr(part, "state_dict"):  # a model of PyTorch
        return _add(whole, part.state_dict())
    numbers = {name: value for name, value in vars(part).items() if _is_of_floats(value)}
    return bool(numbers) and _add(whole, numbers)


def _is_of_floats(value: Any) -> bool:
    kind = getattr(value, "dtype", None)
    return isinstance(value, float) or getattr(kind, "kind", "") == "f" or bool(getattr(kind, "is_floating_point", False))
