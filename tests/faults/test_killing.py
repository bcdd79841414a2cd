"""Audits that are killed at random moments and resumed lose no saved trial and have the same result."""

import os
import random
import signal
import time

import pytest

from tests.faults.auditing import (
    MOMENTS,
    alive_children,
    assert_like_undisturbed,
    audit_words,
    begin_or_resume,
    end_of,
    running,
    start,
    trials_in,
    wait_for_trials,
)
from tests.waiting import wait_until_gone

pytestmark = pytest.mark.slow
TRIALS = 900


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_an_audit_killed_at_random_moments_has_the_same_result(number, tmp_path):
    """One kill in four comes while lidp starts, the others after some trials and a random moment."""
    store = tmp_path / "a.db"
    words = audit_words(store, "SLOW", TRIALS, 2)
    moments = random.Random(int(number))  # noqa: S311
    visible = set()
    for moment in range(MOMENTS):
        with running(begin_or_resume(store, words)) as process:
            starting = moment % 4 == 3
            if not starting:
                wait_for_trials(store, len(visible) + 1 + moments.randrange(20), process)
            time.sleep(moments.uniform(0, 1.0 if starting else 0.1))
            before = trials_in(store) if store.exists() else set()
            process.send_signal(number)
            code, _, err = end_of(process)
        wait_until_gone(str(store))  # its workers end with it
        assert visible <= before
        visible = trials_in(store) if store.exists() else set()
        assert before <= visible
        if number == signal.SIGKILL:
            assert code == -number
        elif not starting:  # before lidp has started, the signal ends Python
            assert code == 130, err
            assert f"lidp resume {store}" in err
        assert "Traceback" not in err or starting
    code, _, err = end_of(start(begin_or_resume(store, words)))
    assert code == 0, err
    assert_like_undisturbed(store, TRIALS)


def test_trials_of_killed_workers_are_retried(tmp_path):
    """With --retry, a trial whose worker is killed runs again, with the same coins and stream."""
    store = tmp_path / "a.db"
    moments = random.Random(5)  # noqa: S311
    killed = 0
    with running(audit_words(store, "SLOW", TRIALS, 2, "--retry")) as process:
        for _ in range(MOMENTS):
            # A trial that is hit twice fails. After so many further trials, those that ran at the last kill are saved.
            wait_for_trials(store, (len(trials_in(store)) if store.exists() else 0) + 12 + moments.randrange(10), process)
            time.sleep(moments.uniform(0, 0.03))
            workers = alive_children(process.pid)
            if workers:
                os.kill(moments.choice(workers), signal.SIGKILL)
                killed += 1
        code, out, err = end_of(process)
    assert code == 0, err
    assert killed
    assert " trials retried" in out
    assert_like_undisturbed(store, TRIALS)


def test_without_retry_only_trials_of_killed_workers_fail(tmp_path):
    """All other trials have the scores of an undisturbed audit."""
    import lidp
    from lidp import CoinFlip
    from tests.faults import targets
    from tests.faults.auditing import CANARIES, CLAIM

    store = tmp_path / "a.db"
    moments = random.Random(6)  # noqa: S311
    with running(audit_words(store, "SLOW", 300, 2)) as process:
        for _ in range(MOMENTS // 2):
            wait_for_trials(store, (len(trials_in(store)) if store.exists() else 0) + 1 + moments.randrange(20), process)
            time.sleep(moments.uniform(0, 0.03))
            for worker in alive_children(process.pid)[:1]:
                os.kill(worker, signal.SIGKILL)
        code, _, err = end_of(process)
    assert code == 0, err
    result = lidp.result_of(store)
    expected = lidp.audit(targets.LEAKY, claim=CLAIM, design=CoinFlip(CANARIES), trials=300, stop_when="never")
    failures = {note.index: note.failures["scores"] for note in result.notes if note.failures}
    assert 1 <= len(failures) <= MOMENTS // 2
    assert all("worker process died (SIGKILL)" in reason for reason in failures.values())
    for index in set(range(300)) - set(failures):
        for one, other in zip(result.scores.flips(), expected.scores.flips(), strict=True):
            assert (one[index] == other[index]).all()
