"""What local processes and Ray add to short trials: the time in which workers run no trial, as a share of that in which they do."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise

import lidp
from benchmarks.overhead import Zeros, score
from lidp import AuditResult, Claim, CoinFlip, Progress, Target
from lidp.trials.executors import Executor, Processes
from lidp.trials.ray_executor import Ray

_WORKERS = 2
_CASES = ((0.005, 2000, 0.2), (0.05, 240, 0.05), (0.2, 80, 0.05))  # seconds of a trial, trials, target for the overhead
_REPEATS = 3


class Sleepy:
    """A mechanism that takes a given time, and no processor."""

    draws_only_from_rng = True  # not to be probed

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self, dataset, rng):
        time.sleep(self.seconds)
        return 0.0


def audit(executor: Executor, seconds: float, trials: int, watch: Callable[[Progress], None] | None = None) -> AuditResult:
    target = Target(Sleepy(seconds), Zeros(), score)
    options = {"claim": Claim(9.0), "design": CoinFlip(32), "trials": trials, "stop_when": "never"}
    return lidp.audit(target, **options, executor=executor, watch=watch)


def overhead(executor: Executor, seconds: float, trials: int) -> float:
    """Elapsed time per trial and worker, over the time that trials took in their workers, minus one.

    The time from a tenth of the trials to nine tenths counts: neither the start of workers nor the end, when they run out of
    trials. Both times are measured, so that a machine that is busy with other work prolongs both.
    """
    heard: list[tuple[float, int]] = []

    def watch(progress: Progress) -> None:
        heard.append((time.perf_counter(), progress.done))

    result = audit(executor, seconds, trials, watch)
    middle = [(at, done) for at, done in heard if 0.1 * trials <= done <= 0.9 * trials]
    changed = [later for earlier, later in pairwise(middle) if later[1] > earlier[1]]
    (start, first), (end, last) = changed[0], changed[-1]
    worked = sum(note.seconds for note in result.notes[first:last])
    return _WORKERS * (end - start) / worked - 1


def main() -> None:
    try:
        import ray
    except ImportError:
        print("Ray is missing, and so is its overhead: pip install 'lidp[ray]'")
        return
    ray.init(address="local", num_cpus=_WORKERS, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        audit(Ray(), 0.001, 400)  # compiles, and starts workers, which live as long as the cluster does
        for seconds, trials, target in _CASES:
            found = [
                sorted(overhead(by, seconds, trials) for _ in range(_REPEATS))[0] for by in (Processes(_WORKERS), Ray())
            ]
            local, cluster = found
            print(
                f"{1000 * seconds:.0f} ms trials, two workers: {local:+.1%} by processes, {cluster:+.1%} by Ray "
                f"(target below {target:.0%}; the best of {_REPEATS})"
            )
    finally:
        ray.shutdown()
