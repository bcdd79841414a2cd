"""The time left is within a factor of two of the truth whenever it is shown, by simulated clocks."""

import heapq

import numpy as np
import pytest

from lidp.engine import loop
from lidp.engine.pace import Pace
from lidp.engine.progress import Progress, describe_cost, seconds_left
from lidp.result import AuditInterrupted
from lidp.trials.serial import Serial
from tests.sample_targets import run


def arrivals(*, trials, seconds, workers=1, warm_up=0.0, spread=0.0, seed=0):
    """Yield the times at which trials finish, with their durations; the first trial of a worker also takes the warm-up."""
    rng = np.random.default_rng(seed)
    free = [(0.05 * worker, worker) for worker in range(workers)]
    fresh = set(range(workers))
    for _ in range(trials):
        start, worker = heapq.heappop(free)
        length = seconds * np.exp(spread * rng.standard_normal()) + (warm_up if worker in fresh else 0.0)
        fresh.discard(worker)
        heapq.heappush(free, (start + length, worker))
        yield start + length, length


def estimates(finished, *, polled=0.0):
    """Yield the trials that have arrived, the estimate of the time left, and the truth, after each arrival."""
    ends = sorted(finished)
    if polled:
        looks = np.arange(polled, ends[-1][0] + 2 * polled, polled)
        groups = [(look, [one for one in ends if look - polled < one[0] <= look]) for look in looks]
    else:
        groups = [(end, [(end, length)]) for end, length in ends]
    pace, done = Pace(), 0
    for now, group in groups:
        done += len(group)
        pace.arrived(now, len(group), [length for _, length in group])
        yield done, seconds_left(done, len(ends), pace.per_second()), ends[-1][0] - now


CLOCKS = {
    "constant": {"seconds": 1.0},
    "slow": {"seconds": 40.0},
    "fast": {"seconds": 0.01, "trials": 2000},
    "compiled": {"seconds": 0.1, "warm_up": 20.0},
    "two workers": {"seconds": 0.1, "workers": 2, "warm_up": 6.0},
    "many workers": {"seconds": 10.0, "workers": 16, "warm_up": 30.0},
    "uneven": {"seconds": 1.0, "workers": 2, "spread": 0.3},
}


@pytest.mark.parametrize("polled", [0.0, 0.5])
@pytest.mark.parametrize("clock", CLOCKS.values(), ids=CLOCKS.keys())
def test_every_estimate_is_right_within_a_factor_of_two(clock, polled):
    clock = {"trials": 256} | clock
    shown = [
        (done, left, truth)
        for done, left, truth in estimates(arrivals(**clock), polled=polled)
        if left is not None and truth > 2 * clock["seconds"] + 2 * polled
    ]
    assert shown
    assert shown[0][0] <= clock["trials"] / 4
    for _, left, truth in shown:
        assert truth / 2 <= left <= 2 * truth


def test_one_slow_trial_gives_no_estimate():
    lefts = [left for _, left, _ in estimates(arrivals(trials=5, seconds=40.0))]
    assert lefts[:4] == [None] * 4
    assert lefts[4] == 0.0


def test_a_burst_of_workers_gives_no_estimate():
    lefts = [left for _, left, _ in estimates(arrivals(trials=32, seconds=40.0, workers=8))]
    assert lefts[:16] == [None] * 16


def test_a_pause_that_is_longer_than_a_trial_starts_again():
    pace = Pace()
    for number in range(10):
        pace.arrived(float(number), 1, [1.0])
    assert pace.per_second() == pytest.approx(1.0)
    pace.pause(0.2)
    assert pace.per_second() == pytest.approx(1.0)
    pace.pause(3.0)
    assert pace.per_second() is None
    assert pace.quiet_seconds(20.0) == 0.0
    for number in range(10):
        pace.arrived(20.0 + 2 * number, 1, [2.0])
    assert pace.per_second() == pytest.approx(0.5)
    assert pace.quiet_seconds(40.0) == 2.0


def test_old_trials_are_forgotten():
    pace = Pace()
    for number in range(100):
        pace.arrived(float(number), 10, [1.0])
    for number in range(400):
        pace.arrived(100.0 + number, 1, [1.0])
    assert pace.per_second() == pytest.approx(1.0, rel=0.01)


def test_growing_blocks_of_runs_get_an_estimate():
    pace, now = Pace(), 0.0
    for block in (32, 32, 64, 128, 256):
        now += block / 16
        pace.arrived(now, block, [block / 16])
    assert pace.per_second() == pytest.approx(16.0)


def test_a_line_without_an_estimate_says_nothing_about_time():
    assert str(Progress(3, 12, None, 1.0, 2.0, 0)) == "3/12 trials"
    assert str(Progress(12, 12, None, 1.0, 2.0, 0, rate=2.0)) == "12/12 trials"


@pytest.mark.parametrize(("may_stop", "words"), [(True, "at most"), (False, "about")])
def test_a_line_says_whether_the_audit_may_stop_before(may_stop, words):
    progress = Progress(4, 12, None, 1.0, 2.0, 0, rate=0.1, may_stop=may_stop)
    assert str(progress) == f"4/12 trials, 0.1/s, {words} 1 min 20 s left"


class Ticking(Serial):
    """Every trial takes a second of a simulated clock; the audit is interrupted after so many trials."""

    def __init__(self, clock, trials=None):
        object.__setattr__(self, "clock", clock)
        object.__setattr__(self, "trials", trials)

    def run(self, setup, indices):
        for records in super().run(setup, indices[: self.trials]):
            self.clock["now"] += 1.0
            yield records
        if self.trials is not None:
            raise KeyboardInterrupt


def test_a_resumed_audit_measures_its_own_trials_only(tmp_path, monkeypatch):
    clock, seen = {"now": 0.0}, []
    monkeypatch.setattr(loop.time, "monotonic", lambda: clock["now"])
    with pytest.raises(AuditInterrupted):
        run(trials=60, store=tmp_path / "a.db", executor=Ticking(clock, 40))
    clock["now"] = 1000.0
    run(trials=60, store=tmp_path / "a.db", executor=Ticking(clock), watch=seen.append)
    assert (seen[0].done, seen[0].rate) == (40, None)
    assert {round(progress.rate, 6) for progress in seen if progress.rate is not None} == {1.0}
    assert not seen[-1].may_stop


def test_the_cost_of_expensive_models_is_shown_until_there_is_a_rate():
    cost = describe_cost(12, 40.0, 1)
    assert cost == "12 models of 40 s: about 8 min 0 s"
    assert describe_cost(12, 40.0, 2) == "12 models of 40 s with 2 workers: about 4 min 0 s"
    assert str(Progress(1, 12, None, 1.0, 2.0, 0, cost=cost)) == f"1/12 trials, {cost}"
    assert cost not in str(Progress(4, 12, None, 1.0, 2.0, 0, rate=0.1, cost=cost))
    assert describe_cost(12, 0.5, 1) == describe_cost(12, None, 1) == ""
