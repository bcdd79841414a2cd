"""What Ray adds to trials of 200 ms, against local processes: seconds of the same audit, as a ratio."""

from __future__ import annotations

import time

import lidp
from benchmarks.overhead import Zeros, score
from lidp import Claim, CoinFlip, Target
from lidp.trials.executors import Executor, Processes
from lidp.trials.ray_executor import Ray

_TRIALS = 100
_REPEATS = 3


def sleepy(dataset, rng):
    time.sleep(0.2)
    return 0.0


def measure(executor: Executor, trials: int) -> float:
    """Seconds of an audit of so many trials."""
    start = time.perf_counter()
    target = Target(sleepy, Zeros(), score)
    lidp.audit(target, claim=Claim(9.0), design=CoinFlip(32), trials=trials, stop_when="never", executor=executor)
    return time.perf_counter() - start


def main() -> None:
    try:
        import ray
    except ImportError:
        print("Ray is missing, and so is its overhead: pip install 'lidp[ray]'")
        return
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        measure(Ray(), 8)  # compiles, and starts workers, which live as long as the cluster does
        local, cluster = (min(measure(by, _TRIALS) for _ in range(_REPEATS)) for by in (Processes(2), Ray()))
    finally:
        ray.shutdown()
    ideal = _TRIALS * 0.2 / 2
    print(
        f"200 ms trials, two workers: {ideal / local:.1%} of the ideal throughput by processes, {ideal / cluster:.1%} by Ray"
    )
    print(f"Ray against processes: {cluster / local - 1:+.1%} (target below +10 %)")
