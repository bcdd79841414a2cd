import os
import sqlite3

import pytest

from lidp.errors import InvalidArgument, StoreError
from lidp.serve.scan import Scanner
from lidp.store import schema
from tests.sample_targets import run


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "deep" / "er").mkdir(parents=True)
    run(trials=2, store=tmp_path / "deep" / "er" / "a.db")
    run(trials=2, store=tmp_path / "b.sqlite")
    return tmp_path


def names(scanned):
    return sorted(path.name for path in scanned.stores)


def test_stores_are_found_at_any_depth_and_other_files_are_not(folder):
    (folder / "text.db").write_text("no database", encoding="utf-8")
    connection = sqlite3.connect(folder / "other.db")
    connection.execute("CREATE TABLE t (x)")
    connection.close()
    scanned = Scanner([folder]).scan()
    assert names(scanned) == ["a.db", "b.sqlite"]
    assert scanned.foreign == 2
    assert not scanned.truncated


def test_a_store_that_is_named_twice_is_listed_once(folder):
    assert names(Scanner([folder, folder / "b.sqlite", folder / "deep"]).scan()) == ["a.db", "b.sqlite"]


def test_hidden_folders_and_links_to_folders_are_left_out(folder, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    run(trials=2, store=elsewhere / "c.db")
    (folder / "link").symlink_to(elsewhere)
    (folder / ".hidden").mkdir()
    run(trials=2, store=folder / ".hidden" / "d.db")
    assert names(Scanner([folder]).scan()) == ["a.db", "b.sqlite"]


def test_a_new_store_is_found_by_the_next_scan(folder):
    scanner = Scanner([folder])
    scanner.scan()
    run(trials=2, store=folder / "new.db")
    (folder / "b.sqlite").unlink()
    assert names(scanner.scan()) == ["a.db", "new.db"]


def test_a_known_store_is_never_opened_again(folder, monkeypatch):
    scanner = Scanner([folder])
    scanner.scan()
    opened = []
    monkeypatch.setattr("lidp.serve.scan.has_store_bytes", lambda path: opened.append(path) or schema.has_store_bytes(path))
    os.utime(folder / "b.sqlite")
    assert names(scanner.scan()) == ["a.db", "b.sqlite"]
    assert opened == []


def test_a_draft_that_becomes_a_store_is_recognised(folder):
    draft = folder / "draft.db"
    draft.touch()
    scanner = Scanner([folder])
    assert "draft.db" not in names(scanner.scan())
    draft.write_bytes((folder / "b.sqlite").read_bytes())
    assert "draft.db" in names(scanner.scan())


def test_a_scan_of_too_many_files_ends(folder):
    for number in range(20):
        (folder / f"{number}.txt").touch()
    assert Scanner([folder], most=10).scan().truncated


def test_a_place_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(InvalidArgument, match="nowhere: there is no such folder or store"):
        Scanner([tmp_path / "nowhere"])


def test_a_named_file_that_is_no_store_is_refused(tmp_path):
    (tmp_path / "text.db").write_text("no database", encoding="utf-8")
    with pytest.raises(StoreError, match="text.db is not a store of an audit"):
        Scanner([tmp_path / "text.db"])
