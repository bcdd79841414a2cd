"""Batches of trials on a real cluster: a trial that dies, hangs or is interrupted in a batch costs itself only."""

import pytest

pytest.importorskip("ray", reason="Ray is missing: pip install 'lidp[ray]'")

from lidp.result import AuditInterrupted
from lidp.store import Store
from lidp.trials import ray_executor, ray_journal
from lidp.trials.ray_executor import Ray, _RayScheduler
from tests.sample_targets import run, same
from tests.trials.test_process_batches import failed, trouble

pytestmark = pytest.mark.cluster

TRIALS = 60
KEYS = set()  # of the audits of a test, by which their journals are named


@pytest.fixture(autouse=True)
def sizes(monkeypatch):
    """The sizes of all batches, which are large however slow the machine is, and report several trials at once."""
    handed_out, submit = [], _RayScheduler._submit_batches
    KEYS.clear()

    def submit_batches(self):
        submit(self)
        KEYS.add(self.packed.key)
        handed_out.extend(batch.size for batch in self.batches.values())

    monkeypatch.setattr(ray_executor, "_BATCH_SECONDS", 1e6)
    monkeypatch.setattr(ray_executor, "_REPORT_SECONDS", 1.0)
    monkeypatch.setattr(ray_executor, "_NODE_CHECK_SECONDS", 0.5)
    monkeypatch.setattr(_RayScheduler, "_submit_batches", submit_batches)
    yield handed_out
    assert max(handed_out) > 1


def test_a_death_in_a_batch_costs_its_trial_only(ray):
    """Those before it are found in the journal of the dead process, those after it run elsewhere, and none runs twice."""
    result, expected = run(trouble("dies"), trials=TRIALS, executor=Ray()), run(trouble("raises"), trials=TRIALS)
    assert failed(result) == failed(expected) != []
    assert {note.attempts for note in result.notes} == {1}
    same(result, expected)
    assert len(KEYS) == 1
    assert not any(ray_journal._path(key, 0).parent.exists() for key in KEYS)


@pytest.mark.slow
def test_with_retry_a_death_in_a_batch_runs_its_trial_once_more(ray):
    result = run(trouble("dies"), trials=TRIALS, executor=Ray(retry=True))
    assert {note.attempts for note in result.notes if note.failures} == {2}
    assert {note.attempts for note in result.notes if not note.failures} == {1}
    same(result, run(trouble("raises"), trials=TRIALS))


@pytest.mark.slow
def test_a_time_out_in_a_batch_costs_its_trial_only(ray):
    result = run(trouble("hangs", 0.05), trials=TRIALS, executor=Ray(time_limit=3))
    expected = run(trouble("raises", 0.05), trials=TRIALS)
    assert failed(result) == failed(expected) != []
    assert all("time limit of 3 s" in note.failures["scores"] for note in result.notes if note.failures)
    same(result, expected)


def test_if_its_journal_is_lost_the_trials_of_a_batch_have_failed_and_none_runs_twice(ray, monkeypatch):
    monkeypatch.setattr(ray_journal.JournalReader, "take", lambda self, batch: self.forget(batch))
    result = run(trouble("dies"), trials=TRIALS, executor=Ray())
    assert set(failed(result)) > set(failed(run(trouble("raises"), trials=TRIALS)))
    lost = {note.failures["scores"] for note in result.notes if note.failures}
    assert any("records of its trials are lost" in reason for reason in lost)
    assert {note.attempts for note in result.notes} == {1}


def test_an_audit_that_is_interrupted_in_a_batch_resumes_with_the_same_result(ray, tmp_path):
    def interrupt(progress):
        if progress.done >= TRIALS // 3:
            raise KeyboardInterrupt

    options = {"trials": TRIALS, "store": tmp_path / "a.db"}
    with pytest.raises(AuditInterrupted):
        run(**options, executor=Ray(), watch=interrupt)
    with Store.read(tmp_path / "a.db") as store:
        assert store.count_trials() >= TRIALS // 3
    same(run(**options, executor=Ray()), run(trials=TRIALS))
