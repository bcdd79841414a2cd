"""The recorder saves finished trials while others still run."""

from lidp import Target
from tests.sample_targets import Numbers, closeness, finished, leaky, run
from tests.waiting import wait_until


def test_a_finished_trial_is_saved_while_the_next_one_runs(tmp_path):
    """Regression: finished trials waited for the next one before they were saved."""
    path = tmp_path / "a.db"
    counts = []

    def wait_for_earlier_trials(dataset, rng):
        wait_until(lambda: finished(path) == len(counts), "the earlier trials are saved")
        counts.append(finished(path))
        return leaky(dataset, rng)

    run(Target(wait_for_earlier_trials, Numbers(), closeness), trials=4, store=path)
    assert counts == [0, 1, 2, 3]


def test_finished_trials_are_saved_while_workers_run(tmp_path):
    path = tmp_path / "a.db"

    def last_trial_waits(dataset, rng):
        if rng.bit_generator.seed_seq.spawn_key[0] == 3:
            wait_until(lambda: finished(path) == 3, "the earlier trials are saved")
        return leaky(dataset, rng)

    last_trial_waits.draws_only_from_rng = True  # skips the probe, which would wait
    result = run(Target(last_trial_waits, Numbers(), closeness), trials=4, store=path, workers=2)
    assert result.failed_runs == 0
