import shutil
from pathlib import Path

import pytest

from lidp import CoinFlip, LeaveOneOut, result_of
from lidp.engine.follower import Follower, _ranges
from lidp.errors import StoreError
from lidp.store import Store
from tests.assets import make_stores
from tests.sample_targets import DESIGNS, claim_for, run, same

ASSETS = Path(make_stores.__file__).parent


def read_all(follower, most=7):
    while follower.update(most):
        pass
    return follower


@pytest.fixture
def whole(tmp_path):
    run(trials=40, store=tmp_path / "whole.db")
    with Store.read(tmp_path / "whole.db") as store:
        return store.trials()


@pytest.mark.parametrize("design", DESIGNS, ids=str)
def test_the_result_is_that_of_the_audit(tmp_path, design):
    run(design=design, claim=claim_for(design), trials=30, store=tmp_path / "a.db")
    follower = read_all(Follower(tmp_path / "a.db"))
    assert follower.ended
    same(follower.result(), result_of(tmp_path / "a.db"))


def test_a_pair_audit_is_followed_by_its_stored_predictions(tmp_path):
    shutil.copy(ASSETS / "pair.db", tmp_path / "pair.db")
    same(read_all(Follower(tmp_path / "pair.db"), 1).result(), result_of(tmp_path / "pair.db"))


def test_the_bound_so_far_is_that_of_the_trials_so_far(tmp_path):
    result = run(trials=40, store=tmp_path / "a.db")
    follower = Follower(tmp_path / "a.db")
    assert follower.ledger.bound_so_far() is None
    follower.update(10)
    assert follower.ledger.bound_so_far().epsilon == result.bound.epsilon_after(10)
    assert not follower.ended


def test_each_trial_is_read_once_in_whatever_order_they_come(store, whole):
    follower = Follower(store.path)
    order = [3, 2, 9, 0, 1, 8, *range(20, 30), 4, 5, 6, 7, *range(10, 20), *range(30, 40)]
    seen = []
    for number in order:
        store.keep_trials([whole[number]])
        seen += [record.index for record in follower.update()]
    assert seen == order
    assert follower.update() == []
    same(follower.result(), result_of(store.path))


def test_trials_behind_a_missing_one_wait_and_are_not_read_again(store, whole):
    store.keep_trials(whole[1:])
    follower = Follower(store.path)
    assert [len(follower.update(15)) for _ in range(4)] == [15, 15, 9, 0]
    assert follower.ledger.bound_so_far() is None
    assert follower.ledger.waiting == 39
    store.keep_trials(whole[:1])
    assert len(follower.update()) == 1
    assert follower.ledger.bet_trials == 40


def test_only_new_trials_are_decoded(store, whole, monkeypatch):
    store.keep_trials(whole[:30])
    follower = read_all(Follower(store.path))
    store.keep_trials(whole[30:33])
    asked = []
    original = Store.trials
    monkeypatch.setattr(Store, "trials", lambda self, *limits: asked.append(limits) or original(self, *limits))
    assert len(follower.update()) == 3
    assert asked == [(30, 32)]


def test_another_store_of_the_same_name_is_refused(tmp_path):
    run(trials=5, store=tmp_path / "a.db")
    follower = Follower(tmp_path / "a.db")
    (tmp_path / "a.db").unlink()
    run(trials=5, store=tmp_path / "a.db")
    with pytest.raises(StoreError, match="replaced by the store of another audit"):
        follower.update()


def test_a_damaged_trial_is_refused(store, whole):
    store.keep_trials(whole)
    with store._transaction("") as connection:
        connection.execute("UPDATE scores SET data = zeroblob(48) WHERE trial = 7 AND name = 'scores'")
    with pytest.raises(StoreError, match="is damaged"):
        read_all(Follower(store.path))


def test_few_trials_could_not_refute_and_many_could(tmp_path):
    run(trials=40, design=CoinFlip(6), store=tmp_path / "a.db")
    follower = Follower(tmp_path / "a.db")
    assert not follower.could_refute()
    follower.update(1)
    assert not follower.could_refute()
    assert read_all(follower).could_refute()


def test_an_audit_of_fixed_size_has_no_bound_before_its_end(tmp_path):
    design = LeaveOneOut(4, 3)
    run(design=design, claim=claim_for(design), method="wilson", trials=30, store=tmp_path / "a.db")
    follower = read_all(Follower(tmp_path / "a.db"))
    assert follower.ledger.bound_so_far() is None
    same(follower.result(), result_of(tmp_path / "a.db"))


@pytest.mark.parametrize(("numbers", "ranges"), [([], []), ([4], [(4, 4)]), ([0, 1, 2, 5, 7, 8], [(0, 2), (5, 5), (7, 8)])])
def test_ranges_of_consecutive_numbers(numbers, ranges):
    assert list(_ranges(numbers)) == ranges
