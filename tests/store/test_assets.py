"""Stores that were written by this format's first version must stay readable; see tests/assets/make_stores.py."""

import json
import shutil

import pytest

from lidp.store import Store
from tests.assets.make_stores import FOLDER, expected_of

STORES = sorted(FOLDER.glob("*.db"))


def test_there_is_a_store_for_every_kind_of_design():
    assert [store.stem for store in STORES] == ["coin-flip", "leave-one-out", "pair", "replace-one"]


@pytest.mark.parametrize("store", STORES, ids=lambda store: store.stem)
def test_a_kept_store_gives_the_result_that_it_was_written_with(store, tmp_path):
    copy = shutil.copy(store, tmp_path / store.name)
    assert expected_of(copy) == json.loads(store.with_suffix(".json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("store", STORES, ids=lambda store: store.stem)
def test_a_kept_store_can_be_opened_to_write(store, tmp_path):
    copy = shutil.copy(store, tmp_path / store.name)
    with Store.open(copy) as opened:
        opened.keep_fact("note", "still writable")
        assert opened.fact("note") == "still writable"
