import json
import shutil
import sqlite3

import pytest

from lidp.result import Verdict
from lidp.serve.listing import Entry, Listing, State, Unreadable, key_of
from lidp.store import Store
from tests.assets import make_stores
from tests.sample_targets import LEAKY, InterruptedAfter, run

ASSETS = make_stores.__file__.rpartition("/")[0]


def entry(path):
    return Listing().entry(path)


def interrupted(path, after=5, trials=40):
    with pytest.raises(KeyboardInterrupt):
        run(trials=trials, store=path, executor=InterruptedAfter(after))


def test_a_finished_audit_is_listed_with_its_outcome(tmp_path):
    result = run(LEAKY, trials=60, store=tmp_path / "a.db")
    listed = entry(tmp_path / "a.db")
    assert (listed.state, listed.done, listed.planned, listed.unit) == (State.ENDED, 60, 60, "trials")
    assert listed.outcome.verdict is result.verdict is Verdict.REFUTED
    assert listed.outcome.epsilon == result.bound.epsilon
    assert (listed.target, listed.epsilon, listed.delta, listed.method) == ("leaky", 1.0, 1e-5, "coin-wager")
    assert listed.key == key_of(tmp_path / "a.db")


def test_an_interrupted_audit_is_not_running_and_has_no_outcome(tmp_path):
    interrupted(tmp_path / "a.db")
    listed = entry(tmp_path / "a.db")
    assert (listed.state, listed.done, listed.planned, listed.outcome) == (State.PAUSED, 5, 40, None)


def test_an_audit_that_is_being_written_is_running(tmp_path):
    interrupted(tmp_path / "a.db")
    listing = Listing()
    assert listing.entry(tmp_path / "a.db").state is State.PAUSED
    with Store.open(tmp_path / "a.db"):
        assert listing.entry(tmp_path / "a.db").state is State.RUNNING
    assert listing.entry(tmp_path / "a.db").state is State.PAUSED


def test_stores_of_older_versions_are_listed_without_outcome(tmp_path):
    shutil.copy(f"{ASSETS}/pair.db", tmp_path / "pair.db")
    listed = entry(tmp_path / "pair.db")
    assert isinstance(listed, Entry)
    assert listed.unit == "runs"
    assert listed.outcome is None


def test_a_store_is_read_again_only_when_it_has_changed(tmp_path, monkeypatch):
    interrupted(tmp_path / "a.db")
    listing = Listing()
    first = listing.entry(tmp_path / "a.db")
    monkeypatch.setattr("lidp.serve.listing.Store.read", lambda path: pytest.fail("it was read again"))
    assert listing.entry(tmp_path / "a.db") is first
    monkeypatch.undo()
    interrupted(tmp_path / "a.db", after=3)
    assert listing.entry(tmp_path / "a.db").done == 8


def test_no_trial_is_read(tmp_path, monkeypatch):
    interrupted(tmp_path / "a.db")
    monkeypatch.setattr("lidp.store.audit_store.decode_trials", lambda *_: pytest.fail("a trial was read"))
    assert entry(tmp_path / "a.db").done == 5


def test_a_damaged_store_is_unreadable_with_its_reason(tmp_path):
    run(trials=3, store=tmp_path / "a.db")
    connection = sqlite3.connect(tmp_path / "a.db")
    with connection:
        connection.execute("UPDATE facts SET value = '{}' WHERE name = 'configuration'")
    connection.close()
    listed = entry(tmp_path / "a.db")
    assert isinstance(listed, Unreadable)
    assert "is damaged: configuration cannot be read" in listed.reason


@pytest.mark.parametrize(
    "change",
    [
        {"design": {"kind": "os.system"}},
        {"trials": "many"},
        {"claim": {}},
        {"claim": {"epsilon": "NaN", "delta": 0}},
        {"method": 3},
    ],
    ids=lambda change: json.dumps(change),
)
def test_a_crafted_configuration_is_unreadable(tmp_path, change):
    run(trials=3, store=tmp_path / "a.db")
    with Store.read(tmp_path / "a.db") as store:
        configuration = store.configuration
    Store.create(tmp_path / "crafted.db", configuration | change).close()
    assert isinstance(entry(tmp_path / "crafted.db"), Unreadable)


def test_the_outcome_of_a_smaller_budget_is_not_shown(tmp_path):
    run(trials=60, store=tmp_path / "a.db")
    with Store.open(tmp_path / "a.db") as store:
        store.keep_fact("configuration", store.configuration | {"trials": 100})
    listed = entry(tmp_path / "a.db")
    assert (listed.state, listed.outcome) == (State.PAUSED, None)
