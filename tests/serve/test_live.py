import pytest

from lidp import LeaveOneOut, Target
from lidp.engine import follower
from lidp.errors import AuditFailed, StoreError
from lidp.result import Verdict
from lidp.serve import live
from lidp.serve.listing import State
from lidp.serve.live import LiveAudit
from lidp.store import Store
from tests.sample_targets import (
    SILENT,
    InterruptedAfter,
    Numbers,
    Trouble,
    broken,
    claim_for,
    closeness,
    run,
)


@pytest.fixture(autouse=True)
def _read_at_every_look(monkeypatch):
    monkeypatch.setattr(live, "_LEAST_SECONDS", 0.0)


def interrupted(path, after, **options):
    with pytest.raises(KeyboardInterrupt):
        run(store=path, executor=InterruptedAfter(after), **options)


def test_a_finished_audit_has_its_result(tmp_path):
    result = run(trials=60, store=tmp_path / "a.db")
    snapshot = LiveAudit(tmp_path / "a.db").look()
    assert snapshot.state is State.ENDED
    assert snapshot.result == result
    assert snapshot.verdict is Verdict.REFUTED
    assert (snapshot.done, snapshot.models, snapshot.planned_models) == (60, 60, 60)
    assert snapshot.path.epsilons[-1] == result.bound.epsilon
    assert snapshot.scores.count_inserted + snapshot.scores.count_held_out == 60 * 6


def test_an_interrupted_audit_has_its_bound_so_far_and_goes_on_when_resumed(tmp_path):
    interrupted(tmp_path / "a.db", 30, trials=60)
    audit = LiveAudit(tmp_path / "a.db")
    before = audit.look()
    assert (before.state, before.done, before.result) == (State.PAUSED, 30, None)
    result = run(trials=60, store=tmp_path / "a.db")
    assert before.bound.epsilon == result.bound.epsilon_after(30)
    after = audit.look()
    assert (after.state, after.done) == (State.ENDED, 60)
    assert after.result == result


def test_few_trials_give_no_verdict_and_more_do(tmp_path):
    interrupted(tmp_path / "a.db", 1, target=SILENT, trials=200)
    audit = LiveAudit(tmp_path / "a.db")
    assert audit.look().verdict is None
    interrupted(tmp_path / "a.db", 150, target=SILENT, trials=200)
    assert audit.look().verdict is Verdict.NOT_REFUTED


def test_an_audit_that_is_being_written_is_running(tmp_path):
    interrupted(tmp_path / "a.db", 5, trials=60)
    audit = LiveAudit(tmp_path / "a.db")
    with Store.open(tmp_path / "a.db"):
        assert audit.look().state is State.RUNNING
    assert audit.look().state is State.PAUSED


def test_a_large_store_is_read_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(live, "MOST_TRIALS", 20)
    monkeypatch.setattr(follower.Follower.update, "__defaults__", (20,))
    result = run(trials=50, store=tmp_path / "a.db")
    audit = LiveAudit(tmp_path / "a.db")
    looks = [audit.look() for _ in range(3)]
    assert [look.done for look in looks] == [20, 40, 50]
    assert [look.reading for look in looks] == [True, True, False]
    assert looks[-1].result == result
    assert LiveAudit(tmp_path / "a.db").result() == result


def test_failed_trials_are_counted_with_their_reasons(tmp_path):
    target = Target(Trouble("raises", rate=0.3), Numbers(), closeness)
    result = run(target, trials=40, store=tmp_path / "a.db")
    snapshot = LiveAudit(tmp_path / "a.db").look()
    assert snapshot.failed_trials == sum(bool(note.failures) for note in result.notes) > 0
    assert snapshot.reasons == (("RuntimeError: no luck today", snapshot.failed_trials),)
    assert len(snapshot.examples) <= live.MOST_REASONS
    assert "Traceback" in snapshot.examples[0].reason
    assert snapshot.examples[0].number == max(note.index for note in result.notes if note.failures)


def test_an_audit_in_which_all_trials_fail_says_so(tmp_path):
    def fails():
        with pytest.raises(AuditFailed):
            run(Target(broken, Numbers(), closeness), store=tmp_path / "a.db", trials=11)

    fails()
    audit = LiveAudit(tmp_path / "a.db")
    snapshot = audit.look()
    assert snapshot.failed_trials == snapshot.done == 8  # after which the audit stops
    fails()
    ended = audit.look()
    assert ended.result is None
    assert "all 11 trials failed, the first with: RuntimeError: never works" in ended.problem


def test_a_method_of_fixed_size_has_no_bound_before_the_end(tmp_path):
    design = LeaveOneOut(4, 3)
    options = {"design": design, "claim": claim_for(design), "method": "wilson", "trials": 30}
    interrupted(tmp_path / "a.db", 10, **options)
    audit = LiveAudit(tmp_path / "a.db")
    assert (audit.look().bound, audit.look().path, audit.look().verdict) == (None, None, None)
    result = run(store=tmp_path / "a.db", **options)
    assert audit.look().bound == result.bound


def test_nothing_is_computed_again_if_nothing_has_changed(tmp_path, monkeypatch):
    interrupted(tmp_path / "a.db", 10, trials=60)
    audit = LiveAudit(tmp_path / "a.db")
    first = audit.look()
    monkeypatch.setattr(LiveAudit, "_evaluate", lambda *_, **__: pytest.fail("computed again"))
    assert audit.look().path is first.path


def test_a_replaced_store_is_refused(tmp_path):
    run(trials=5, store=tmp_path / "a.db")
    audit = LiveAudit(tmp_path / "a.db")
    (tmp_path / "a.db").unlink()
    run(trials=5, store=tmp_path / "a.db")
    with pytest.raises(StoreError, match="replaced"):
        audit.look()


def test_the_rate_is_that_of_new_trials(tmp_path, monkeypatch):
    interrupted(tmp_path / "a.db", 10, trials=60)
    with Store.read(tmp_path / "a.db") as store:
        configuration, records = store.configuration, store.trials()
    seconds = iter(range(0, 1000, 2))
    monkeypatch.setattr(live.time, "monotonic", lambda: float(next(seconds)))
    with Store.create(tmp_path / "b.db", configuration) as store:
        audit = LiveAudit(tmp_path / "b.db")
        rates = []
        for record in records[:6]:
            store.keep_trials([record])
            rates.append(audit.look().rate)
    assert rates[:4] == [None, None, None, None]
    assert rates[5] == pytest.approx(1 / 4)  # each look asks for the time twice
